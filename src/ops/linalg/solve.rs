//! Linear systems, inverses and determinants, by LU decomposition.
#![allow(non_snake_case, reason = "PyTorch's names are A, B and LU")]

use super::factors::*;
use super::lu::{factor, substitute};
use super::svd::singular_determinant_gradient;
use crate::base::broadcast;
use crate::operator::bodies::{duplicate, filled};
use crate::ops::prelude::*;
use crate::ops::shape::{slices, squeeze};

/// True if the right-hand side is a vector for each matrix.
pub fn is_vector(a: &[usize], b: &[usize]) -> bool {
    b.len() == 1 || (a.len() == b.len() + 1 && a[..a.len() - 1] == *b)
}

fn column(x: V) -> V {
    x.then(|t| squeeze::unsqueeze(&t, -1))
}

fn without_column(x: V) -> V {
    x.then(|t| squeeze::squeeze_one(&t, -1))
}

fn solution_of(a: &V, b: &V, left: bool) -> V {
    a.with(b, |a, b| LinalgSolveEx::call(a, b, left, Checked(None)).map(|[x, _]| x))
}

/// The gradients of the matrix and the right-hand side; `back` computes the latter.
fn gradients(
    g: Option<V>,
    a: &[usize],
    b: Option<Meta>,
    x: V,
    left: bool,
    wants: [bool; 2],
    back: impl FnOnce(V) -> V,
) -> [Option<V>; 2] {
    let Some(g) = g else { return [None, None] };
    let vector = x.shape().len() < a.len();
    let (g, x) = if vector { (column(g), column(x)) } else { (g, x) };
    let of_b = back(g);
    let of_a = wants[0].then(|| {
        let product = if left { of_b.matmul(x.mh()) } else { x.mh().matmul(&of_b) };
        (-product).sum_to(a)
    });
    let of_b = if vector { without_column(of_b) } else { of_b };
    [of_a, b.filter(|_| wants[1]).map(|b| of_b.sum_to(&b.shape))]
}

/// A batch of vectors has the layout of a matrix with these columns.
fn vectors_by_columns(x: Body) -> Result<Body> {
    if x.layout.ndim() < 2 { Ok(x) } else { by_columns(&x) }
}

fn without_last(x: Body) -> Body {
    let last = x.layout.ndim() - 1;
    drop_dims(x, &[last])
}

fn solve_system(a: &Body, b: &Body, left: bool, checked: Checked) -> Result<[Body; 4]> {
    let vector = is_vector(a.shape(), b.shape());
    let b = if vector { b.with_layout(b.layout.unsqueeze(-1)?) } else { b.clone() };
    // X A = B is Aᵀ Xᵀ = Bᵀ.
    let (matrix, right) = if left { (a.clone(), b) } else { (transposed(a)?, transposed(&b)?) };
    let [lu, pivots, info] = factor(&matrix)?;
    if let Some(name) = checked.0
        && let Some((place, _)) = first_failure(&info)?
    {
        return Err(Error::linalg(format!(
            "{name}: {place}The solver failed because the input matrix is singular."
        )));
    }
    let found = substitute(&lu, &pivots, &right, false)?;
    let found = if left { found } else { transposed(&found)? };
    let found = if vector { vectors_by_columns(without_last(found))? } else { found };
    Ok([found, info, lu, pivots])
}

#[primitive(results(result, info, LU, pivots), scratch(LU, pivots))]
impl LinalgSolveEx {
    fn forward(A: &Tensor, B: &Tensor, left: bool, #[hidden] checked: Checked) -> Result<[Body; 4]> {
        solve_system(&A.body(), &B.body(), left, checked)
    }
    fn derivative(
        g: [Option<V>; 2],
        A: V,
        B: Option<Meta>,
        result: V,
        left: bool,
        wants: [bool; 2],
    ) -> [Option<V>; 2] {
        let [g, _] = g;
        gradients(g, &A.shape(), B, result, left, wants, |g| solution_of(&A.mh(), &g, left))
    }
    /// Uses the factors that the forward saved.
    fn fast_derivative(
        g: [Option<V>; 2],
        A: Unread,
        B: Option<Meta>,
        result: V,
        LU: Tensor,
        pivots: Tensor,
        left: bool,
        wants: [bool; 2],
    ) -> [Option<V>; 2] {
        let (Unread, [g, _]) = (A, g);
        let oriented = |x: V| if left { x } else { x.mt() };
        gradients(g, &LU.shape(), B, result, left, wants, |g| {
            oriented(
                oriented(g)
                    .then(|g| substitute(&LU.body(), &pivots.body(), &g.body(), true).map(Tensor::new)),
            )
        })
    }
    fn batch(b: &Batch, A: &Tensor, B: &Tensor, left: bool, checked: Checked) -> Result<[Tensor; 2]> {
        let vector = is_vector(&A.shape(), &B.shape());
        let right = if vector { squeeze::unsqueeze(B, -1)? } else { B.clone() };
        let [x, y] = aligned(b, A, &right)?;
        let [found, info] = LinalgSolveEx::call(&x, &y, left, checked)?;
        let found = if vector { squeeze::squeeze_one(&found, -1)? } else { found };
        Ok([b.wrap(found), b.wrap(info)])
    }
}

fn check_system(A: &Tensor, B: &Tensor, left: bool) -> Result<()> {
    let name = "linalg.solve";
    check_floating(name, A, true)?;
    check_same(name, A, B)?;
    check_square(name, A)?;
    let vector = is_vector(&A.shape(), &B.shape());
    if vector && !left {
        return Err(Error::runtime(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for left=False. In this case \
             linalg.solve is equivalent to B / A.squeeze(-1)",
        ));
    }
    let sides = B.shape();
    let mut shape = sides.clone();
    if vector {
        shape.push(1);
    } else if shape.len() < 2 {
        check_matrix(name, "B", B)?;
    }
    check_sides(name, &A.shape(), &shape, left)?;
    broadcast(&A.shape()[..A.ndim() - 2], &shape[..shape.len() - 2]).map(|_| ())
}

/// Solve systems of linear equations `A @ X = B` with a unique solution.
///
/// Args:
///     A: square matrix or batch of square matrices.
///     B: right-hand side: vectors or matrices.
///     left: whether to solve `A @ X = B`, else `X @ A = B`.
///
/// Raises:
///     torch.linalg.LinAlgError: if a matrix is singular.
///
/// Examples:
///     >>> torch.linalg.solve(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([2.0, 4.0]))
///     tensor([1., 1.])
#[operator(
    function,
    space = "linalg",
    out(declared),
    sample = "on_host(right_sides(lambda x, y, left: T.linalg.solve(steep(x), y, left=left)), \
              squares(lambda x: T.linalg.solve(steep(x), x[..., 0])))"
)]
pub fn linalg_solve(
    A: &Tensor,
    B: &Tensor,
    #[keyword]
    #[default(true)]
    left: bool,
) -> Result<Tensor> {
    check_system(A, B, left)?;
    let [found, _] = LinalgSolveEx::call(A, B, left, Checked(Some("torch.linalg.solve")))?;
    Ok(found)
}

/// Solve `A @ X = B` like `torch.linalg.solve`, with error codes instead of an exception.
///
/// Args:
///     A: square matrix or batch of square matrices.
///     B: right-hand side: vectors or matrices.
///     left: whether to solve `A @ X = B`, else `X @ A = B`.
///
/// Returns:
///     A named tuple `(result, info)`: `info` is 0, or which pivot is zero.
///
/// Examples:
///     >>> torch.linalg.solve_ex(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([2.0, 4.0])).result
///     tensor([1., 1.])
#[operator(
    function,
    space = "linalg",
    returns(result, info),
    out(declared),
    sample = "on_host(right_sides(lambda x, y, left: T.linalg.solve_ex(steep(x), y, left=left)[0]))"
)]
pub fn linalg_solve_ex(
    A: &Tensor,
    B: &Tensor,
    #[keyword]
    #[default(true)]
    left: bool,
    #[default(false)] check_errors: bool,
) -> Result<[Tensor; 2]> {
    check_system(A, B, left)?;
    LinalgSolveEx::call(A, B, left, Checked(check_errors.then_some("torch.linalg.solve_ex")))
}

/// The inverses of factored matrices.
fn invert(lu: &Body, pivots: &Body) -> Result<Body> {
    // The identity matrix is its own transpose, so this makes it column-major.
    let out = transposed(&units(lu)?)?;
    if out.numel() > 0 {
        fork!(over [lu, pivots, out], with [],
            cpu: crate::cpu::linalg::lu_invert(lu.host()?, pivots.host()?, out.host()?),
            gpu: no_shader("linalg_inv", out.dtype))?;
    }
    Ok(out)
}

#[primitive(batch = in_front, results(inverse, info))]
impl LinalgInvEx {
    fn forward(A: &Tensor, #[hidden] checked: Checked) -> Result<[Body; 2]> {
        let x = A.body();
        let [lu, pivots, info] = factor(&x)?;
        if let Some(name) = checked.0
            && let Some((place, order)) = first_failure(&info)?
        {
            return Err(Error::linalg(format!(
                "{name}: {place}The diagonal element {order} is zero, the inversion could not be completed because the input \
                 matrix is singular."
            )));
        }
        Ok([invert(&lu, &pivots)?, info])
    }
    fn d_A(g: V, inverse: V) -> V {
        let inverse = inverse.mh();
        -inverse.matmul(g.matmul(&inverse))
    }
}

fn check_invertible(A: &Tensor) -> Result<()> {
    check_square("linalg.inv", A)?;
    check_floating("linalg.inv", A, false)
}

/// Compute the inverse of square matrices.
///
/// Raises:
///     torch.linalg.LinAlgError: if a matrix is singular.
///
/// Examples:
///     >>> torch.linalg.inv(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
///     tensor([[0.5000, 0.0000],
///             [0.0000, 0.2500]])
#[operator(
    function,
    space = "linalg",
    out(declared),
    sample = "on_host(squares(lambda x: T.linalg.inv(steep(x))))"
)]
pub fn linalg_inv(A: &Tensor) -> Result<Tensor> {
    check_invertible(A)?;
    let [found, _] = LinalgInvEx::call(A, Checked(Some("linalg.inv")))?;
    Ok(found)
}

/// Compute the inverse of square matrices; the same as `torch.linalg.inv`.
///
/// Args:
///     input: square matrix or batch of square matrices.
///
/// Examples:
///     >>> torch.inverse(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
///     tensor([[0.5000, 0.0000],
///             [0.0000, 0.2500]])
#[operator(
    function,
    method,
    out(declared, called = "linalg_inv"),
    autocast = single,
    sample = "on_host(squares(lambda x: T.inverse(steep(x))))"
)]
pub fn inverse(input: &Tensor) -> Result<Tensor> {
    linalg_inv(input)
}

/// Compute the inverse like `torch.linalg.inv`, with error codes instead of an exception.
///
/// Returns:
///     A named tuple `(inverse, info)`: `info` is 0, or which pivot is zero.
///
/// Examples:
///     >>> torch.linalg.inv_ex(torch.tensor([[2.0, 0.0], [0.0, 0.0]])).info
///     tensor(2, dtype=torch.int32)
#[operator(
    function,
    space = "linalg",
    returns(inverse, info),
    out(declared),
    sample = "on_host(squares(lambda x: T.linalg.inv_ex(steep(x))[0]))"
)]
pub fn linalg_inv_ex(
    A: &Tensor,
    #[keyword]
    #[default(false)]
    check_errors: bool,
) -> Result<[Tensor; 2]> {
    check_invertible(A)?;
    LinalgInvEx::call(A, Checked(check_errors.then_some("linalg.inv_ex")))
}

/// The determinants of factored matrices.
fn determinants(lu: &Body, pivots: &Body) -> Result<Body> {
    let out = filled(lead(lu), Scalar::Int(1), lu.dtype, lu.device())?;
    // The determinant of an empty matrix is 1.
    if out.numel() > 0 && lu.numel() > 0 {
        fork!(over [lu, pivots, out], with [],
            cpu: crate::cpu::linalg::determinant(lu.host()?, pivots.host()?, out.host()?, None),
            gpu: no_shader("linalg_det", lu.dtype))?;
    }
    Ok(out)
}

/// The signs of the determinants of factored matrices (complex numbers of magnitude 1 for complex ones), and the logarithms of
/// their magnitudes.
fn logarithms(lu: &Body, pivots: &Body) -> Result<[Body; 2]> {
    let sign = filled(lead(lu), Scalar::Int(1), lu.dtype, lu.device())?;
    let size = filled(lead(lu), Scalar::Int(0), lu.dtype.to_real(), lu.device())?;
    if sign.numel() > 0 && lu.numel() > 0 {
        fork!(over [lu, pivots, sign, size], with [],
            cpu: crate::cpu::linalg::determinant(lu.host()?, pivots.host()?, sign.host()?, Some(size.host()?)),
            gpu: no_shader("linalg_slogdet", lu.dtype))?;
    }
    Ok([sign, size])
}

/// The identity matrix times each element of `x`.
fn scale_identity(x: V, n: usize) -> V {
    let mut shape = x.shape();
    shape.push(n);
    diagonal_matrix(column(x).expand(&shape))
}

#[primitive(batch = in_front, results(result, LU, pivots), scratch(LU, pivots))]
impl LinalgDet {
    fn forward(A: &Tensor) -> Result<[Body; 3]> {
        let [lu, pivots, _] = factor(&A.body())?;
        Ok([determinants(&lu, &pivots)?, lu, pivots])
    }
    fn d_A(g: V, A: V, result: V) -> Result<V> {
        let n = *A.shape().last().unwrap_or(&0);
        if !A.is_batched() && is_nearly_zero(&result)? {
            return singular_determinant_gradient(&g, &A);
        }
        Ok(solution_of(&A.mh(), &scale_identity(g * result.conj(), n), true))
    }
    /// Uses the factors that the forward saved. Zeros on the diagonal are replaced by small numbers, because the gradient is
    /// continuous.
    fn fast_d_A(g: Body, LU: Body, pivots: Body) -> Result<Body> {
        let n = *LU.shape().last().unwrap_or(&0);
        let value = |x: &Body| V::from(Tensor::new(x.clone()));
        let line = value(&LU).then(|t| slices::diagonal(&t, 0, -2, -1));
        let epsilon =
            if matches!(LU.dtype, DType::F32 | DType::C64) { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let moved = value(&LU) + diagonal_matrix(select(epsilon, 0.0, ne(line, 0.0)).cast(LU.dtype));
        let moved = by_columns(&moved.tensor()?.body())?;
        let det = determinants(&moved, &duplicate(&pivots)?)?;
        let scale = scale_identity(value(&g) * value(&det).conj(), n).tensor()?;
        substitute(&moved, &pivots, &scale.body(), true)
    }
}

fn is_nearly_zero(det: &V) -> Result<bool> {
    let narrow = det.clone().tensor()?;
    let epsilon = if matches!(narrow.dtype(), DType::F32 | DType::C64) {
        f64::from(f32::EPSILON)
    } else {
        f64::EPSILON
    };
    let small = lt(abs(det).re(), 100.0 * epsilon).tensor()?;
    crate::ops::reduction::reduce::any_true(&small)
}

/// Compute the determinant of square matrices.
///
/// Examples:
///     >>> torch.linalg.det(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
///     tensor(-2.)
#[operator(
    function,
    space = "linalg",
    out(declared),
    sample = "on_host(squares(lambda x: T.linalg.det(steep(x))))"
)]
pub fn linalg_det(A: &Tensor) -> Result<Tensor> {
    check_square("linalg.det", A)?;
    check_floating("linalg.det", A, true)?;
    LinalgDet::call(A)
}

/// Compute the determinant of square matrices; the same as `torch.linalg.det`.
///
/// Args:
///     input: square matrix or batch of square matrices.
///
/// Examples:
///     >>> torch.det(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
///     tensor(-2.)
#[operator(function, method, sample = "on_host(squares(lambda x: T.det(steep(x))))")]
pub fn det(input: &Tensor) -> Result<Tensor> {
    linalg_det(input)
}

#[primitive(batch = in_front, results(sign, logabsdet, LU, pivots), scratch(LU, pivots))]
impl LinalgSlogdet {
    fn forward(A: &Tensor) -> Result<[Body; 4]> {
        let [lu, pivots, _] = factor(&A.body())?;
        let [sign, size] = logarithms(&lu, &pivots)?;
        Ok([sign, size, lu, pivots])
    }
    fn d_A(g: [Option<V>; 2], A: V, sign: V) -> V {
        let n = *A.shape().last().unwrap_or(&0);
        let [of_sign, of_size] = g;
        // The derivative of a complex sign follows the imaginary part of the logarithm. A real sign has derivative zero.
        let turning = of_sign.map(|g| {
            let i = V::Scalar(Scalar::Complex(0.0, 1.0));
            if g.is_complex() { real_part(g.conj() * &sign * i.clone()) * i } else { g * 0.0 }
        });
        let whole = plus(turning, of_size).unwrap_or_else(V::misuse);
        let V::Tensor(like) = &A else { return A };
        solution_of(&A.mh(), &scale_identity(whole.cast(like.dtype()), n), true)
    }
}

/// Compute the sign and the logarithm of the absolute value of the determinant of square matrices.
///
/// Returns:
///     A named tuple `(sign, logabsdet)`.
///
/// Examples:
///     >>> sign, logabsdet = torch.linalg.slogdet(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
///     >>> sign, logabsdet
///     (tensor(-1.), tensor(0.6931))
#[operator(
    function,
    space = "linalg",
    returns(sign, logabsdet),
    out(declared),
    sample = "on_host(squares(lambda x: T.linalg.slogdet(steep(x))))"
)]
pub fn linalg_slogdet(A: &Tensor) -> Result<[Tensor; 2]> {
    check_square("linalg.slogdet", A)?;
    check_floating("linalg.slogdet", A, false)?;
    LinalgSlogdet::call(A)
}

/// Compute the sign and the logarithm of the absolute value of the determinant; see `torch.linalg.slogdet`.
///
/// Args:
///     input: square matrix or batch of square matrices.
///
/// Returns:
///     A named tuple `(sign, logabsdet)`.
///
/// Examples:
///     >>> torch.slogdet(torch.tensor([[2.0, 0.0], [0.0, 4.0]])).logabsdet
///     tensor(2.0794)
#[operator(
    function,
    method,
    returns(sign, logabsdet),
    out(declared, called = "linalg_slogdet"),
    sample = "on_host(squares(lambda x: T.slogdet(steep(x))))"
)]
pub fn slogdet(input: &Tensor) -> Result<[Tensor; 2]> {
    linalg_slogdet(input)
}

/// Compute the logarithm of the determinant of square matrices; NaN where that is negative.
///
/// Args:
///     input: square matrix or batch of square matrices.
///
/// Examples:
///     >>> torch.logdet(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
///     tensor(2.0794)
#[operator(function, method, sample = "on_host(squares(lambda x: T.logdet(positive(x))))")]
pub fn logdet(input: &Tensor) -> Result<Tensor> {
    check_square("logdet", input)?;
    check_floating("logdet", input, false)?;
    let [sign, size] = LinalgSlogdet::call(input)?.map(V::from);
    if sign.is_complex() {
        return (size + log(sign)).tensor();
    }
    select(size, f64::NAN, eq(sign, -1.0)).tensor()
}
