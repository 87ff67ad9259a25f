//! Functions composed of products and solutions: matrix exponentials, Householder products, `multi_dot`, `tensorsolve`,
//! `tensorinv`.
#![allow(non_snake_case, reason = "PyTorch's names are A and B")]

use super::factors::*;
use super::product::{LinalgCross, check_cross};
use super::solve::{linalg_inv, linalg_solve};
use crate::base::{broadcast, existing_dim, try_alloc};
use crate::operator::primitives::{copies, views};
use crate::ops::prelude::*;
use crate::ops::reduction::reduce;
use crate::ops::shape::{slices, squeeze, view};

/// The coefficients of the Padé approximant of order 13, and the largest norm for which it is accurate.
const PADE: [f64; 14] = [
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
];
const REACH: f64 = 5.37;

/// The matrix exponential: the Padé approximant of `A / 2ˢ`, squared `s` times.
fn exponential(A: &Tensor) -> Result<Tensor> {
    if A.numel() == 0 {
        return copies::clone_dense(A);
    }
    // Half precision has no solver.
    let own = A.dtype();
    let wide = if own.size() == 2 { copies::to_dtype(A, DType::F32)? } else { A.clone() };
    let size =
        super::norms::linalg_matrix_norm(&wide, Scalar::Int(1), smallvec::smallvec![-2, -1], false, None)?;
    let size = crate::ops::reduction::extrema::max(&size)?.item()?.as_f64();
    let halvings = if size > REACH && size.is_finite() { (size / REACH).log2().ceil() } else { 0.0 };
    let x = V::from(wide) * 0.5f64.powf(halvings);
    let unit = V::from(Tensor::new(super::factors::units(&x.clone().tensor()?.body())?));
    let x2 = x.matmul(&x);
    let x4 = x2.matmul(&x2);
    let x6 = x4.matmul(&x2);
    let c = PADE;
    let of = |a: f64, b: f64, d: f64| &x6 * a + &x4 * b + &x2 * d;
    let odd = x.matmul(x6.matmul(of(c[13], c[11], c[9])) + of(c[7], c[5], c[3]) + &unit * c[1]);
    let even = x6.matmul(of(c[12], c[10], c[8])) + of(c[6], c[4], c[2]) + &unit * c[0];
    let mut y = (&even - &odd).with(&even + &odd, |a, b| linalg_solve(a, b, true));
    for _ in 0..halvings as usize {
        y = y.matmul(&y);
    }
    y.cast(own).tensor()
}

#[primitive(batch = in_front)]
impl LinalgMatrixExp {
    fn forward(A: &Tensor) -> Result<Body> {
        reduce::no_grad(|| exponential(A))
    }
    /// The derivative is a block of the exponential of a block matrix.
    fn d_A(g: V, A: V) -> V {
        let n = *A.shape().last().unwrap_or(&0);
        let (a, zeros) = (A.mh(), A.mh() * 0.0);
        let above = cat_columns(&[a.clone(), g]);
        let below = cat_columns(&[zeros, a]);
        let whole = cat_rows(&[above, below]).then(|t| LinalgMatrixExp::call(&t));
        columns_of(&rows_of(&whole, 0, n), n, 2 * n)
    }
}

fn check_exponent(A: &Tensor) -> Result<()> {
    check_square("linalg.matrix_exp", A)?;
    check_floating("linalg.matrix_exp", A, true)
}

/// Compute the matrix exponential of square matrices, the sum of `A^k / k!`.
///
/// Args:
///     input: square matrix or batch of square matrices.
///
/// Examples:
///     >>> torch.linalg.matrix_exp(torch.zeros(2, 2))
///     tensor([[1., 0.],
///             [0., 1.]])
#[operator(function, space = "linalg", sample = "on_host(squares(lambda x: T.linalg.matrix_exp(x)))")]
pub fn linalg_matrix_exp(input: &Tensor) -> Result<Tensor> {
    check_exponent(input)?;
    LinalgMatrixExp::call(input)
}

/// Compute the matrix exponential of square matrices; the same as `torch.linalg.matrix_exp`.
///
/// Args:
///     input: square matrix or batch of square matrices.
///
/// Examples:
///     >>> torch.matrix_exp(torch.zeros(2, 2))
///     tensor([[1., 0.],
///             [0., 1.]])
#[operator(function, method, sample = "on_host(squares(lambda x: T.matrix_exp(x)))")]
pub fn matrix_exp(input: &Tensor) -> Result<Tensor> {
    linalg_matrix_exp(input)
}

/// Raise square matrices to an integer power, by repeated multiplication.
///
/// Args:
///     input: square matrix or batch of square matrices.
///     n: the exponent; negative ones raise the inverse, 0 gives the identity.
///
/// Examples:
///     >>> torch.linalg.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
///     tensor([[1., 3.],
///             [0., 1.]])
#[operator(
    function,
    space = "linalg",
    out(declared),
    sample = "on_host(squares(lambda x: [T.linalg.matrix_power(steep(x), n) for n in (-2, 0, 1, 3)]))"
)]
pub fn linalg_matrix_power(input: &Tensor, n: i64) -> Result<Tensor> {
    super::product::matrix_power(input, n)
}

/// Applies `k` Householder reflections to `x`, the last one first. With `inverse`, applies them in the opposite order, which
/// undoes it.
fn reflect(vectors: &V, tau: &V, mut x: V, k: usize, inverse: bool) -> V {
    for step in 0..k {
        let at = if inverse { step } else { k - 1 - step };
        let v = columns_of(vectors, at, at + 1);
        let factor = tau.clone().then(|t| {
            let one = slices::narrow(&t, -1, at as i64, 1)?;
            squeeze::unsqueeze(&one, -1)
        });
        let factor = if inverse { factor.conj() } else { factor };
        let along = v.mh().matmul(&x);
        x = x - (factor * v).matmul(along);
    }
    x
}

/// The Householder vectors: the elements below the diagonal, with ones on it.
fn reflectors(x: &Tensor, k: usize) -> Result<V> {
    let [m, _] = rows_and_columns(&x.shape());
    let below = tril(columns_of(&V::from(x), 0, k), -1);
    Ok(below
        + V::from(crate::ops::creation::factories::eye(
            m as i64,
            Some(k as i64),
            TensorOptions::default().or_those_of(x),
        )?))
}

fn check_reflectors(name: &str, x: &Tensor, tau: &Tensor) -> Result<()> {
    if x.ndim() < 2 {
        return Err(Error::runtime(format!("{name}: input must have at least 2 dimensions.")));
    }
    if x.ndim() != tau.ndim() + 1 {
        return Err(Error::runtime(format!(
            "{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {} and input.ndim is equal \
             to {}",
            tau.ndim(),
            x.ndim()
        )));
    }
    Ok(())
}

/// Compute the first columns of a product of Householder reflections, such as the `Q` of a QR factorization.
///
/// Args:
///     input: the vectors of the reflections, below the diagonal of matrices, as `torch.geqrf` gives them.
///     tau: the factors of the reflections.
///
/// Examples:
///     >>> a, tau = torch.geqrf(torch.eye(3))
///     >>> torch.linalg.householder_product(a, tau).shape
///     torch.Size([3, 3])
#[operator(
    function,
    space = "linalg",
    out(castable = "torch.linalg.householder_product: Expected result"),
    sample = "on_host(squares(lambda x: T.linalg.householder_product(x, x[..., 0])))"
)]
pub fn linalg_householder_product(input: &Tensor, tau: &Tensor) -> Result<Tensor> {
    let name = "torch.linalg.householder_product";
    if input.ndim() < 2 {
        return Err(Error::runtime(format!("{name}: input must have at least 2 dimensions.")));
    }
    let ([m, n], shape) = (rows_and_columns(&input.shape()), tau.shape());
    if m < n {
        return Err(Error::runtime(format!(
            "{name}: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )));
    }
    let k = shape.last().copied().unwrap_or(0);
    if n < k {
        return Err(Error::runtime(format!(
            "{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )));
    }
    check_reflectors(name, input, tau)?;
    if input.dtype() != tau.dtype() {
        return Err(Error::runtime(format!(
            "{name}: tau dtype {} does not match input dtype {}",
            tau.dtype().scalar_name(),
            input.dtype().scalar_name()
        )));
    }
    refuse_gpu("linalg_householder_product", &[input, tau])?;
    let unit = crate::ops::creation::factories::eye(
        m as i64,
        Some(n as i64),
        TensorOptions::default().or_those_of(input),
    )?;
    let unit = V::from(view::expand(&unit, views::ints(&input.shape()))?);
    reflect(&reflectors(input, k)?, &V::from(tau), unit, k, false).tensor()
}

/// Compute the first columns of a product of Householder reflections; see `torch.linalg.householder_product`.
///
/// Args:
///     input: the vectors of the reflections, as `torch.geqrf` gives them.
///     input2: the factors of the reflections.
///
/// Examples:
///     >>> a, tau = torch.geqrf(torch.eye(3))
///     >>> torch.orgqr(a, tau).shape
///     torch.Size([3, 3])
#[operator(function, method, out(castable = "torch.linalg.householder_product: Expected result"), autocast = single, sample = "on_host(squares(lambda x: T.orgqr(x, x[..., 0])))")]
pub fn orgqr(input: &Tensor, input2: &Tensor) -> Result<Tensor> {
    linalg_householder_product(input, input2)
}

/// Multiply a matrix by a product of Householder reflections, the `Q` of a QR factorization.
///
/// Args:
///     input: the vectors of the reflections, as `torch.geqrf` gives them.
///     input2: the factors of the reflections.
///     input3: the matrix to multiply.
///     left: whether the product stands on the left of the matrix, else on the right.
///     transpose: whether to multiply by the conjugate transpose.
///
/// Examples:
///     >>> a, tau = torch.geqrf(torch.eye(3))
///     >>> torch.ormqr(a, tau, torch.ones(3, 2)).shape
///     torch.Size([3, 2])
#[operator(
    function,
    method,
    out(message = "torch.ormqr: Expected input and result to have the same dtype, but input has dtype{result} and result has dtype {target}"),
    autocast = single,
    sample = "on_host(squares(lambda x: [T.ormqr(x, x[..., 0], x, left, t) for left in (True, False) for t in (True, False)]))"
)]
pub fn ormqr(
    input: &Tensor,
    input2: &Tensor,
    input3: &Tensor,
    #[default(true)] left: bool,
    #[default(false)] transpose: bool,
) -> Result<Tensor> {
    let name = "torch.ormqr";
    if input.ndim() >= 2 && input3.ndim() < 2 {
        return Err(Error::runtime(format!("{name}: other must have at least 2 dimensions.")));
    }
    check_reflectors(name, input, input2)?;
    let k = input2.shape().last().copied().unwrap_or(0);
    let ([m, width], [rows, columns]) = (rows_and_columns(&input.shape()), rows_and_columns(&input3.shape()));
    let (side, which) = if left { (rows, -2) } else { (columns, -1) };
    if side < k {
        return Err(Error::runtime(format!(
            "{name}: other.shape[{which}] must be greater than or equal to tau.shape[-1]"
        )));
    }
    if side != m {
        return Err(Error::runtime(format!("{name}: other.shape[{which}] must be equal to input.shape[-2]")));
    }
    if k != side.min(width) {
        return Err(Error::runtime(format!(
            "{name}: tau.shape[-1] must be equal to min(other.shape[{which}], input.shape[-1])"
        )));
    }
    for (other, what) in [(input2, "tau"), (input3, "other")] {
        if other.dtype() != input.dtype() {
            return Err(Error::runtime(format!(
                "{name}: Expected input and {what} to have the same dtype, but input has dtype{} and {what} has dtype {}",
                input.dtype().scalar_name(),
                other.dtype().scalar_name()
            )));
        }
    }
    refuse_gpu("ormqr", &[input, input2, input3])?;
    if k == 0 {
        return copies::clone_preserved(input3);
    }
    let (vectors, tau, x) = (reflectors(input, k)?, V::from(input2), V::from(input3));
    if left {
        return reflect(&vectors, &tau, x, k, transpose).tensor();
    }
    // x Q is the conjugate transpose of Qᴴ xᴴ.
    reflect(&vectors, &tau, x.mh(), k, !transpose).mh().tensor()
}

/// The cheapest order of the products of a chain, by dynamic programming.
fn cheapest(sizes: &[usize]) -> Result<Vec<Vec<usize>>> {
    let n = sizes.len() - 1;
    let mut cost = try_alloc::collect((0..n).map(|_| try_alloc::filled(0.0f64, n)))?;
    let mut at = try_alloc::collect((0..n).map(|_| try_alloc::filled(0, n)))?;
    for length in 1..n {
        for i in 0..n - length {
            let j = i + length;
            cost[i][j] = f64::INFINITY;
            for k in i..j {
                let product = sizes[i] as f64 * sizes[k + 1] as f64 * sizes[j + 1] as f64;
                let whole = cost[i][k] + cost[k + 1][j] + product;
                if whole < cost[i][j] {
                    (cost[i][j], at[i][j]) = (whole, k);
                }
            }
        }
    }
    Ok(at)
}

fn multiply_chain(tensors: &[Tensor], at: &[Vec<usize>], i: usize, j: usize) -> Result<Tensor> {
    if i == j {
        return Ok(tensors[i].clone());
    }
    let k = at[i][j];
    super::matmul::matmul(&multiply_chain(tensors, at, i, k)?, &multiply_chain(tensors, at, k + 1, j)?)
}

/// Multiply a chain of matrices, in the order that needs the fewest operations.
///
/// Args:
///     tensors: two or more matrices; the first and the last may be vectors.
///
/// Examples:
///     >>> torch.linalg.multi_dot([torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 1)])
///     tensor([[12.],
///             [12.]])
#[operator(
    function,
    space = "linalg",
    out(declared),
    sample = "fixed([(2,), (2, 3), (3, 1), (1, 2)], lambda *xs: T.linalg.multi_dot(xs))"
)]
pub fn linalg_multi_dot(tensors: &[Tensor]) -> Result<Tensor> {
    let n = tensors.len();
    let refuse = |text: String| Err(Error::runtime(format!("multi_dot(): {text}")));
    if n < 2 {
        return refuse(format!("expected at least 2 tensors but got {n}"));
    }
    for (i, t) in tensors.iter().enumerate() {
        let (edge, name) = (i == 0 || i == n - 1, if i == 0 { "first" } else { "last" });
        match t.ndim() {
            2 => {}
            1 if edge => {}
            d if edge => return refuse(format!("the {name} tensor must be 1D or 2D but got {d}D")),
            d => return refuse(format!("tensor {i} must be 2D but got {d}D")),
        }
        if t.dtype() != tensors[0].dtype() {
            return refuse(format!(
                "all tensors must have be the same dtype but tensor 0 is {} and tensor {i} {}",
                tensors[0].dtype().scalar_name(),
                t.dtype().scalar_name()
            ));
        }
    }
    let mut chain = tensors.to_vec();
    let (row, column) = (chain[0].ndim() == 1, chain[n - 1].ndim() == 1);
    if row {
        chain[0] = squeeze::unsqueeze(&chain[0], 0)?;
    }
    if column {
        chain[n - 1] = squeeze::unsqueeze(&chain[n - 1], -1)?;
    }
    for i in 1..n {
        let (a, b) = (chain[i - 1].shape(), chain[i].shape());
        if a[1] != b[0] {
            return refuse(format!(
                "tensors {} and {i} with shapes {:?} and {:?} cannot be multiplied",
                i - 1,
                a.as_slice(),
                b.as_slice()
            ));
        }
    }
    let mut sizes: Vec<usize> = chain.iter().map(|t| t.shape()[0]).collect();
    sizes.push(chain[n - 1].shape()[1]);
    let mut made = multiply_chain(&chain, &cheapest(&sizes)?, 0, n - 1)?;
    if column {
        made = squeeze::squeeze_one(&made, -1)?;
    }
    if row { squeeze::squeeze_one(&made, 0) } else { Ok(made) }
}

/// Compute the inverse of a tensor for `torch.tensordot`.
///
/// The first `ind` dimensions are taken as the rows of a matrix, the others as its columns.
///
/// Args:
///     input: the tensor; the sizes before and after `ind` have the same product.
///     ind: number of dimensions that are the rows of the matrix.
///
/// Examples:
///     >>> torch.linalg.tensorinv(torch.eye(6).reshape(2, 3, 6)).shape
///     torch.Size([6, 2, 3])
#[operator(
    function,
    space = "linalg",
    out(castable = "tensorinv: Expected result"),
    sample = "on_host(fixed([(2, 2, 4)], lambda x: T.linalg.tensorinv(x + 3 * T.eye(4, dtype=x.dtype).reshape(2, 2, 4), 2)))"
)]
pub fn linalg_tensorinv(input: &Tensor, #[default(2)] ind: i64) -> Result<Tensor> {
    if ind <= 0 {
        return Err(Error::runtime("Expected a strictly positive integer for 'ind'"));
    }
    let shape = input.shape();
    let (first, last) = shape.split_at((ind as usize).min(shape.len()));
    let (rows, columns): (usize, usize) = (first.iter().product(), last.iter().product());
    if rows != columns {
        return Err(Error::runtime(format!(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got {columns} != \
             {rows}"
        )));
    }
    let mut out = Dims::from_slice(last);
    out.extend_from_slice(first);
    views::reshape(&linalg_inv(&views::reshape(input, &[rows, columns])?)?, &out)
}

/// Solve `tensordot(A, X, X.ndim) = B` for `X`.
///
/// Args:
///     input: the tensor `A`.
///     other: the right-hand side `B`, with the shape of the first dimensions of `A`.
///     dims: dimensions of `A` that are moved to the end first.
///
/// Examples:
///     >>> torch.linalg.tensorsolve(torch.eye(6).reshape(2, 3, 6), torch.ones(2, 3))
///     tensor([1., 1., 1., 1., 1., 1.])
#[operator(
    function,
    space = "linalg",
    out(castable = "tensorsolve: Expected result"),
    sample = "on_host(fixed([(2, 2, 4), (2, 2)], lambda x, y: T.linalg.tensorsolve(x + 3 * T.eye(4, dtype=x.dtype).reshape(2, 2, 4), y)))"
)]
pub fn linalg_tensorsolve(input: &Tensor, other: &Tensor, dims: Option<Ints>) -> Result<Tensor> {
    let mut x = input.clone();
    if let Some(dims) = dims {
        let n = input.ndim();
        let last = dims.iter().map(|&d| wrap_dim(d, n)).collect::<Result<Vec<_>>>()?;
        let order: Ints =
            (0..n).filter(|d| !last.contains(d)).chain(last.iter().copied()).map(|d| d as i64).collect();
        x = view::permute(&x, order)?;
    }
    let shape = x.shape();
    let (first, last) = shape.split_at(other.ndim().min(shape.len()));
    let (rows, columns): (usize, usize) = (first.iter().product(), last.iter().product());
    if rows != columns {
        return Err(Error::runtime(format!(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got \
             {columns} != {rows}"
        )));
    }
    let found = linalg_solve(&views::reshape(&x, &[rows, columns])?, &views::reshape(other, &[rows])?, true)?;
    views::reshape(&found, last)
}

/// Compute the cross product of vectors with three elements.
///
/// Args:
///     dim: dimension of the vectors, of size 3.
///
/// Examples:
///     >>> torch.linalg.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]))
///     tensor([0., 0., 1.])
#[operator(
    function,
    space = "linalg",
    out(declared),
    sample = "fixed([(2, 3), (1, 3)], lambda a, b: T.linalg.cross(a, b))"
)]
pub fn linalg_cross(
    input: &Tensor,
    other: &Tensor,
    #[keyword]
    #[default(-1)]
    dim: i64,
) -> Result<Tensor> {
    let (n, other_n) = (input.ndim(), other.ndim());
    if n != other_n {
        return Err(Error::runtime("linalg.cross: inputs must have the same number of dimensions."));
    }
    let at = existing_dim(dim, n)?;
    let (a, b) = (input.shape()[at], other.shape()[at]);
    if a != 3 || b != 3 {
        return Err(Error::runtime(format!(
            "linalg.cross: inputs dimension {dim} must have length 3. Got {a} and {b}"
        )));
    }
    broadcast(&input.shape(), &other.shape())?;
    check_cross(input, other)?;
    LinalgCross::call(input, other, at as i64)
}

/// Compute dot products of vectors along a dimension; complex vectors of `x` are conjugated.
///
/// Args:
///     x: the vectors on the left.
///     y: the vectors on the right, broadcast with `x`.
///     dim: dimension of the vectors.
///
/// Examples:
///     >>> torch.linalg.vecdot(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 1.0]))
///     tensor([3., 7.])
#[operator(
    function,
    space = "linalg",
    out(message = "linalg.vecdot: Expected out of dtype{result} but found {target}"),
    sample = "fixed([(2, 3), (1, 3)], lambda a, b: T.linalg.vecdot(a, b))"
)]
pub fn linalg_vecdot(
    x: &Tensor,
    y: &Tensor,
    #[keyword]
    #[default(-1)]
    dim: i64,
) -> Result<Tensor> {
    check_floating("linalg.vecdot", x, true)?;
    if x.dtype() != y.dtype() {
        return Err(Error::runtime(format!(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type {} and y of type {} instead",
            x.dtype().scalar_name(),
            y.dtype().scalar_name()
        )));
    }
    (V::from(x).conj() * V::from(y)).sum(&[dim], false).tensor()
}

/// Return a diagonal of matrices, as the last dimension of the result (a view).
///
/// Args:
///     offset: which diagonal: 0 the main one, positive ones above it, negative ones below.
///     dim1, dim2: dimensions of the matrices. Default: `-2` and `-1`
///
/// Examples:
///     >>> torch.linalg.diagonal(torch.tensor([[1, 2], [3, 4]]))
///     tensor([1, 4])
#[operator(
    function,
    space = "linalg",
    sample = "view(lambda draw, shape: lambda x: T.linalg.diagonal(x), 2)"
)]
pub fn linalg_diagonal(
    A: &Tensor,
    #[keyword]
    #[default(0)]
    #[strict]
    offset: i64,
    #[default(-2)] dim1: i64,
    #[default(-1)] dim2: i64,
) -> Result<Tensor> {
    slices::diagonal(A, offset, dim1, dim2)
}
