//! Norms of vectors and matrices, and condition numbers.
#![allow(non_snake_case, reason = "PyTorch's name is A")]

use super::factors::*;
use super::solve::LinalgInvEx;
use super::svd::linalg_svdvals;
use crate::base::warn_once;
use crate::ops::prelude::*;
use crate::ops::reduction::extrema::{amax, amin};
use crate::ops::reduction::reduce::{self, no_grad};
use crate::ops::reduction::variance::{LinalgVectorNorm, in_dtype, norm_grad};
use crate::ops::shape::{slices, squeeze, view};
use smallvec::smallvec;
use std::sync::atomic::AtomicBool;

/// Compute a vector norm of all elements, or over the given dimensions.
///
/// Args:
///     ord: order of the norm; 0 counts the elements that are not zero, `inf` takes the largest magnitude.
///     dtype: data type that the elements are converted to first.
///
/// Examples:
///     >>> x = torch.tensor([3.0, -4.0])
///     >>> torch.linalg.vector_norm(x), torch.linalg.vector_norm(x, ord=1)
///     (tensor(5.), tensor(7.))
#[operator(
    function,
    space = "linalg",
    out(declared),
    sample = "shaped(lambda draw, shape: lambda x: T.linalg.vector_norm(x, 3))"
)]
pub fn linalg_vector_norm(
    input: &Tensor,
    #[default(Scalar::Int(2))] ord: Scalar,
    dim: Option<Ints>,
    #[default(false)] keepdim: bool,
    #[keyword] dtype: Option<DType>,
) -> Result<Tensor> {
    LinalgVectorNorm::call(&in_dtype("linalg.vector_norm", input, dtype)?, ord, dim, keepdim)
}

/// The two dimensions of the matrices, counted from the front.
fn matrix_dims(name: &str, A: &Tensor, dim: &[i64]) -> Result<[i64; 2]> {
    let &[a, b] = dim else {
        return Err(Error::runtime(format!("{name}: dim must be a 2-tuple. Got {}", join(dim))));
    };
    let n = A.ndim();
    let (a, b) = (wrap_dim(a, n)?, wrap_dim(b, n)?);
    if a == b {
        return Err(Error::runtime(format!("{name}: dims must be different. Got ({}, {})", dim[0], dim[1])));
    }
    Ok([a as i64, b as i64])
}

fn join(numbers: &[i64]) -> String {
    let all: Vec<String> = numbers.iter().map(i64::to_string).collect();
    all.join(" ")
}

/// The singular values over two dimensions; they are the last dimension of the result.
fn values_over(A: &Tensor, [a, b]: [i64; 2]) -> Result<Tensor> {
    let order: Ints = (0..A.ndim() as i64).filter(|&d| d != a && d != b).chain([a, b]).collect();
    let permuted = if order.windows(2).all(|w| w[0] < w[1]) { A.clone() } else { view::permute(A, order)? };
    linalg_svdvals(&permuted, None)
}

fn restore_dims(y: &Tensor, dims: [i64; 2], keepdim: bool) -> Result<Tensor> {
    if !keepdim {
        return Ok(y.clone());
    }
    squeeze::unsqueeze(&squeeze::unsqueeze(y, dims[0].min(dims[1]))?, dims[0].max(dims[1]))
}

fn by_number(A: &Tensor, ord: f64, dims: [i64; 2], keepdim: bool) -> Result<Tensor> {
    let size = ord.abs();
    let pick = |y: &Tensor, dim: i64, keepdim: bool| {
        let dim = smallvec![dim];
        if ord > 0.0 { amax(y, Some(dim), keepdim) } else { amin(y, Some(dim), keepdim) }
    };
    if size == 2.0 {
        let found = pick(&values_over(A, dims)?, -1, false)?;
        return restore_dims(&found, dims, keepdim);
    }
    // The largest (or, for negative orders, smallest) sum of absolute values: of a column for order 1, of a row for infinity.
    let [summed, mut other] = if size == 1.0 { dims } else { [dims[1], dims[0]] };
    if !keepdim && summed < other {
        other -= 1;
    }
    let sums = LinalgVectorNorm::call(A, Scalar::Int(1), Some(smallvec![summed]), keepdim)?;
    pick(&sums, other, keepdim)
}

fn check_order(ord: f64) -> Result<()> {
    if [1.0, 2.0, f64::INFINITY].contains(&ord.abs()) {
        return Ok(());
    }
    Err(Error::runtime(format!("linalg.matrix_norm: Order {ord} not supported.")))
}

fn prepare(A: &Tensor, dim: &[i64], dtype: Option<DType>, halves: bool) -> Result<(Tensor, [i64; 2])> {
    let name = "linalg.matrix_norm";
    check_matrix(name, "A", A)?;
    check_floating(name, A, halves)?;
    let dims = matrix_dims(name, A, dim)?;
    Ok((in_dtype(name, A, dtype)?, dims))
}

/// Compute a norm of matrices.
///
/// Args:
///     input: matrix or batch of matrices.
///     ord: `"fro"` (Frobenius), `"nuc"` (nuclear), `inf` and `-inf` (largest and smallest sum of a row), 1 and -1 (of a
///         column), 2 and -2 (largest and smallest singular value). Default: `"fro"`
///     dim: dimensions of the matrices.
///     dtype: data type that the elements are converted to first.
///
/// Examples:
///     >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
///     >>> torch.linalg.matrix_norm(x), torch.linalg.matrix_norm(x, ord=1)
///     (tensor(5.4772), tensor(6.))
#[operator(
    function,
    space = "linalg",
    out(message = "linalg.matrix_norm expected out tensor dtype {result} but got: {target}"),
    sample = "on_host(rectangles(lambda x: [T.linalg.matrix_norm(apart(x), p) for p in ('fro', 'nuc', 2, -2, 1, -float('inf'))]))"
)]
pub fn linalg_matrix_norm(
    input: &Tensor,
    ord: Scalar,
    #[default(smallvec![-2, -1])] dim: Ints,
    #[default(false)] keepdim: bool,
    #[keyword] dtype: Option<DType>,
) -> Result<Tensor> {
    check_order(ord.as_f64())?;
    let (input, dims) = prepare(input, &dim, dtype, true)?;
    by_number(&input, ord.as_f64(), dims, keepdim)
}

/// Compute a norm of matrices by its name: `fro` or `nuc`.
#[overload(linalg_matrix_norm.str_ord)]
pub fn named_matrix_norm(
    input: &Tensor,
    #[default("fro".to_string())] ord: String,
    #[default(smallvec![-2, -1])] dim: Ints,
    #[default(false)] keepdim: bool,
    #[keyword] dtype: Option<DType>,
) -> Result<Tensor> {
    match ord.as_str() {
        "fro" => {
            let (input, dims) = prepare(input, &dim, dtype, true)?;
            LinalgVectorNorm::call(&input, Scalar::Int(2), Some(Ints::from_slice(&dims)), keepdim)
        }
        "nuc" => {
            let (input, dims) = prepare(input, &dim, dtype, false)?;
            let sum = reduce::sum(&values_over(&input, dims)?, Some(smallvec![-1]), false, None)?;
            restore_dims(&sum, dims, keepdim)
        }
        other => Err(Error::runtime(format!("linalg.matrix_norm: Order {other} not supported."))),
    }
}

/// Compute a vector or matrix norm.
///
/// Without `ord` and `dim` it is the 2-norm of the flattened tensor. With two dimensions, or `ord` and a matrix, it is a
/// matrix norm; else a vector norm.
///
/// Args:
///     ord: order of the norm; see `torch.linalg.vector_norm` and `torch.linalg.matrix_norm`.
///     dtype: data type that the elements are converted to first.
///
/// Examples:
///     >>> torch.linalg.norm(torch.tensor([[3.0, 4.0], [0.0, 0.0]]))
///     tensor(5.)
///     >>> torch.linalg.norm(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), ord=1)
///     tensor(4.)
#[operator(
    function,
    space = "linalg",
    out(message = "linalg.norm expected out tensor dtype {result} but got: {target}"),
    sample = "on_host(rectangles(lambda x: [T.linalg.norm(apart(x)), T.linalg.norm(apart(x), 'nuc', dim=(-2, -1)), \
              T.linalg.norm(apart(x), 3, dim=-1)]))"
)]
pub fn linalg_norm(
    input: &Tensor,
    ord: Option<Scalar>,
    dim: Option<Ints>,
    #[default(false)] keepdim: bool,
    #[keyword] dtype: Option<DType>,
) -> Result<Tensor> {
    let n = input.ndim();
    if let Some(dim) = &dim
        && !matches!(dim.len(), 1 | 2)
    {
        return Err(Error::runtime(format!(
            "linalg.norm: If dim is specified, it must be of length 1 or 2. Got {dim:?}"
        )));
    }
    let Some(ord) = ord else {
        return linalg_vector_norm(input, Scalar::Int(2), dim, keepdim, dtype);
    };
    if dim.is_none() && !matches!(n, 1 | 2) {
        return Err(Error::runtime(format!(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {n}D."
        )));
    }
    match dim {
        Some(dim) if dim.len() == 2 => linalg_matrix_norm(input, ord, dim, keepdim, dtype),
        None if n == 2 => linalg_matrix_norm(input, ord, smallvec![0, 1], keepdim, dtype),
        dim => linalg_vector_norm(input, ord, dim, keepdim, dtype),
    }
}

/// Compute a norm of matrices by its name.
#[overload(linalg_norm.ord_str)]
pub fn named_norm(
    input: &Tensor,
    ord: String,
    dim: Option<Ints>,
    #[default(false)] keepdim: bool,
    #[keyword] dtype: Option<DType>,
) -> Result<Tensor> {
    if let Some(dim) = &dim
        && !matches!(dim.len(), 1 | 2)
    {
        return Err(Error::runtime(format!(
            "linalg.norm: If dim is specified, it must be of length 1 or 2. Got {dim:?}"
        )));
    }
    if dim.is_none() && !matches!(input.ndim(), 1 | 2) {
        return Err(Error::runtime(format!(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {}D.",
            input.ndim()
        )));
    }
    named_matrix_norm(input, ord, dim.unwrap_or_else(|| smallvec![-2, -1]), keepdim, dtype)
}

/// Compute the nuclear norm of matrices, the sum of their singular values.
///
/// Args:
///     dim: the two dimensions of the matrices; the last two if not given.
///
/// Examples:
///     >>> torch.nuclear_norm(torch.eye(3))
///     tensor(3.)
#[operator(
    function,
    out(declared, called = "linalg_svdvals"),
    sample = "on_host(rectangles(lambda x: unwarned(T.nuclear_norm)(apart(x))))"
)]
pub fn nuclear_norm(input: &Tensor, #[default(false)] keepdim: bool) -> Result<Tensor> {
    caution_of_nuclear_norm()?;
    named_matrix_norm(input, "nuc".into(), smallvec![-2, -1], keepdim, None)
}

fn caution_of_nuclear_norm() -> Result<()> {
    static TOLD: AtomicBool = AtomicBool::new(false);
    warn_once(
        &TOLD,
        "at::nuclear_norm is deprecated and it is just left for JIT compatibility. It will be removed in a future PyTorch \
         release. Please use `linalg.matrix_norm(A, 'nuc', dim, keepdim)` instead",
    )
}

/// Compute the nuclear norm over two dimensions.
#[overload(nuclear_norm.dim)]
pub fn nuclear_norm_over(input: &Tensor, dim: Ints, #[default(false)] keepdim: bool) -> Result<Tensor> {
    caution_of_nuclear_norm()?;
    named_matrix_norm(input, "nuc".into(), dim, keepdim, None)
}

/// Compute the Frobenius norm, the root of the sum of squares, over dimensions.
///
/// Args:
///     dim: dimension or dimensions to reduce.
///
/// Examples:
///     >>> torch.frobenius_norm(torch.tensor([[3.0, 4.0]]), (0, 1))
///     tensor(5.)
#[operator(
    function,
    out(declared, called = "linalg_vector_norm"),
    sample = "over_dim(unwarned(T.frobenius_norm))"
)]
pub fn frobenius_norm(input: &Tensor, dim: Ints, #[default(false)] keepdim: bool) -> Result<Tensor> {
    static TOLD: AtomicBool = AtomicBool::new(false);
    warn_once(
        &TOLD,
        "at::frobenius_norm is deprecated and it is just left for JIT compatibility. It will be removed in a future PyTorch \
         release. Please use `linalg.vector_norm(A, 2., dim, keepdim)` instead",
    )?;
    if !input.dtype().is_differentiable() {
        return Err(Error::not_implemented(format!(
            "norm(): input dtype should be either floating point or complex. Got {} instead.",
            input.dtype().scalar_name()
        )));
    }
    if dim.len() > 2 {
        return Err(Error::runtime(format!(
            "Expected at most 2 dimensions, but got {} dimensions instead.",
            dim.len()
        )));
    }
    LinalgVectorNorm::call(input, Scalar::Int(2), (!dim.is_empty()).then_some(dim), keepdim)
}

fn check_condition(A: &Tensor) -> Result<()> {
    if A.ndim() >= 2 {
        return Ok(());
    }
    Err(Error::runtime("linalg.cond: The input tensor must have at least 2 dimensions."))
}

/// The condition number, by the norms of the matrix and its inverse. Infinite for singular matrices.
fn by_inverse(A: &Tensor, norm: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    check_square("linalg.inv", A)?;
    check_floating("linalg.inv", A, false)?;
    let of_matrix = norm(A)?;
    let [inverse, info] = LinalgInvEx::call(A, Checked(None))?;
    let inverse = norm(&inverse)?;
    select(V::from(of_matrix) * V::from(inverse), f64::INFINITY, ne(V::from(info), 0.0)).tensor()
}

/// Compute the condition number of matrices: the norm of the matrix times that of its inverse.
///
/// Args:
///     input: matrix or batch of matrices.
///     p: the norm, as `ord` of `torch.linalg.matrix_norm`; 2 if not given.
///
/// Examples:
///     >>> torch.linalg.cond(torch.tensor([[1.0, 0.0], [0.0, 10.0]]))
///     tensor(10.)
#[operator(
    function,
    space = "linalg",
    out(castable = "linalg.cond: Expected result"),
    sample = "on_host(squares(lambda x: [T.linalg.cond(apart(x), p) for p in (None, -2, 1, float('inf'), 'fro', 'nuc')]))"
)]
pub fn linalg_cond(input: &Tensor, p: Option<Scalar>) -> Result<Tensor> {
    check_condition(input)?;
    let ord = p.map_or(2.0, Scalar::as_f64);
    if ord.abs() == 2.0 {
        let values = linalg_svdvals(input, None)?;
        if values.shape().last() == Some(&0) {
            return reduce::sum(&values, Some(smallvec![-1]), false, None);
        }
        let end = |at| V::from(slices::select(&values, -1, at));
        return (if ord > 0.0 { end(0) / end(-1) } else { end(-1) / end(0) }).tensor();
    }
    if ![1.0, f64::INFINITY].contains(&ord.abs()) {
        return Err(Error::value(format!("linalg.cond got an invalid norm type: {ord}")));
    }
    let [rows, columns] = rows_and_columns(&input.shape());
    if rows != columns {
        return Err(Error::runtime(format!(
            "linalg.cond(ord={ord}): input must be batches of square matrices, but they are {rows} by {columns} matrices"
        )));
    }
    by_inverse(input, |x| linalg_matrix_norm(x, Scalar::Float(ord), smallvec![-2, -1], false, None))
}

/// Compute the condition number by the norm `fro` or `nuc`.
#[overload(linalg_cond.p_str)]
pub fn linalg_cond_named(input: &Tensor, p: String) -> Result<Tensor> {
    check_condition(input)?;
    if p == "nuc" {
        let values = V::from(linalg_svdvals(input, None)?);
        let sum = |x: V| x.sum(&[-1], false);
        return (sum(values.clone()) * sum(recip(values))).tensor();
    }
    if p != "fro" {
        return Err(Error::value(format!("linalg.cond got an invalid norm type: {p}")));
    }
    let [rows, columns] = rows_and_columns(&input.shape());
    if rows != columns {
        return Err(Error::runtime(format!(
            "linalg.cond(ord={p}): input must be batches of square matrices, but they are {rows} by {columns} matrices"
        )));
    }
    by_inverse(input, |x| named_matrix_norm(x, p.clone(), smallvec![-2, -1], false, None))
}

/// Compute the `p`-norm of the difference of two tensors.
///
/// Args:
///     p: order of the norm.
///
/// Examples:
///     >>> torch.dist(torch.tensor([1.0, 2.0]), torch.tensor([4.0, 6.0]))
///     tensor(5.)
#[operator(function, method, sample = "fixed([(2, 3), (3,)], lambda x, y: T.dist(x, y, 3))")]
pub fn dist(input: &Tensor, other: &Tensor, #[default(Scalar::Int(2))] p: Scalar) -> Result<Tensor> {
    let gap = (V::from(input) - V::from(other)).tensor()?;
    LinalgVectorNorm::call(&in_dtype("linalg.vector_norm", &gap, None)?, p, None, false)
}

/// Added to norms before dividing by them.
const LEAST: f64 = 1e-7;

/// Scale down the slices along a dimension whose `p`-norm exceeds `maxnorm`, to that norm.
///
/// Args:
///     p: order of the norm.
///     dim: dimension whose slices are looked at.
///     maxnorm: the largest norm.
///
/// Examples:
///     >>> torch.renorm(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), p=2, dim=0, maxnorm=1.0)
///     tensor([[0.6000, 0.8000],
///             [0.3000, 0.4000]])
#[operator(
    function,
    method,
    out(declared),
    sample = "shaped(lambda draw, shape: lambda x: T.renorm(x, 2, 0, 1.0), least=2)"
)]
pub fn renorm(input: &Tensor, p: Scalar, dim: i64, maxnorm: Scalar) -> Result<Tensor> {
    let refuse = |text: String| Err(Error::runtime(format!("renorm: {text}")));
    for (name, number) in [("p", p), ("maxnorm", maxnorm)] {
        if matches!(number, Scalar::Complex(..)) {
            return refuse(format!("{name} must be real-valued"));
        }
    }
    let (order, most, n) = (p.as_f64(), maxnorm.as_f64(), input.ndim());
    if order <= 0.0 {
        return refuse("non-positive-norm not supported".into());
    }
    if most < 0.0 {
        return refuse(format!("expected maxnorm to be >= 0 but got {most}"));
    }
    if n < 2 {
        return refuse(format!("input needs at least 2 dimensions, got {n} dimensions"));
    }
    wrap_dim(dim, n)?;
    check_floating("linalg.vector_norm", input, true)?;
    Renorm::call(input, p, dim, maxnorm)
}

/// All dimensions except `dim`.
fn others(n: usize, dim: i64) -> Result<Ints> {
    let at = wrap_dim(dim, n)? as i64;
    Ok((0..n as i64).filter(|&d| d != at).collect())
}

#[primitive(batch = each)]
impl Renorm {
    fn forward(input: &Tensor, p: Scalar, dim: i64, maxnorm: Scalar) -> Result<Body> {
        let most = maxnorm.as_f64();
        no_grad(|| {
            let length = V::from(LinalgVectorNorm::call(input, p, Some(others(input.ndim(), dim)?), true)?);
            let factor = select(1.0, most / (&length + LEAST), gt(&length, most));
            (V::from(input) * factor.cast(input.dtype())).tensor()
        })
    }
    /// Computed in float64 on the CPU.
    fn d_input(g: V, input: Tensor, p: Scalar, dim: i64, maxnorm: Scalar) -> Result<V> {
        let (dtype, most, others) = (input.dtype(), maxnorm.as_f64(), others(input.ndim(), dim)?);
        let wide = match dtype {
            dtype if !input.device().is_cpu() => dtype,
            dtype if dtype.is_complex() => DType::C128,
            _ => DType::F64,
        };
        let (g, x) = (g.cast(wide), V::from(&input).cast(wide));
        let length = V::from(LinalgVectorNorm::call(&x.clone().tensor()?, p, Some(others.clone()), true)?);
        let along = (&g * conj(&x)).re().sum(&others, true);
        let inverse = recip(&length + LEAST);
        let turned = &g - norm_grad(along * &inverse, x, length.clone(), wide, p.as_f64(), &others);
        Ok(select(&g, turned * inverse * most, gt(length, most)).cast(dtype))
    }
}

/// Scale down slices of the tensor itself whose `p`-norm exceeds `maxnorm`.
#[inplace(renorm)]
pub fn renorm_(input: &Tensor, p: Scalar, dim: i64, maxnorm: Scalar) -> Result<()> {
    let before = crate::ops::shape::rearrange::clone(input, None)?;
    crate::operator::inplace::copy_into(input, &renorm(&before, p, dim, maxnorm)?)
}
