//! Functions of singular values and eigenvalues: pseudoinverses, ranks, least squares.
#![allow(non_snake_case, reason = "PyTorch's names are A and B")]

use super::eigh::{LinalgEigh, linalg_eigvalsh};
use super::factors::*;
use super::svd::{LinalgSvd, linalg_svdvals};
use crate::operator::primitives::constant;
use crate::ops::elementwise::unary;
use crate::ops::prelude::*;
use crate::ops::reduction::extrema::amax;
use crate::ops::reduction::reduce;
use crate::ops::shape::squeeze;

/// The tolerance below which a value counts as zero: one number, or one for each matrix.
#[derive(Clone)]
pub enum Bound {
    Number(f64),
    Each(V),
}

impl Bound {
    fn value(self) -> V {
        match self {
            Bound::Number(x) => V::from(x),
            Bound::Each(x) => x.then(|t| squeeze::unsqueeze(&t, -1)),
        }
    }
}

fn epsilon(dtype: DType) -> f64 {
    if matches!(dtype.to_real(), DType::F64) { f64::EPSILON } else { f64::from(f32::EPSILON) }
}

/// The default relative tolerance.
fn usual(A: &Tensor, atol: Option<&Bound>, rtol: Option<Bound>) -> Bound {
    let [m, n] = rows_and_columns(&A.shape());
    let small = epsilon(A.dtype()) * m.max(n) as f64;
    match (rtol, atol) {
        (Some(rtol), _) => rtol,
        (None, Some(Bound::Number(atol))) if *atol > 0.0 => Bound::Number(0.0),
        (None, Some(Bound::Each(atol))) => {
            let zeros = select(small, 0.0, gt(atol, 0.0)).cast(A.dtype().to_real());
            Bound::Each(zeros)
        }
        (None, _) => Bound::Number(small),
    }
}

/// The tolerance for singular values along the last dimension.
fn threshold(values: &V, atol: Option<Bound>, rtol: Bound) -> V {
    let largest = values.clone().then(|t| amax(&t, Some(smallvec::smallvec![-1]), true));
    let atol = atol.map_or(V::from(0.0), Bound::value);
    let relative = rtol.value() * largest;
    let V::Tensor(like) = &relative else { return relative };
    let dtype = like.dtype();
    if let V::Tensor(_) = atol { maximum(atol.cast(dtype), relative) } else { maximum(relative, atol) }
}

fn pseudo_inverse(A: &Tensor, atol: Option<Bound>, rtol: Bound, hermitian: bool) -> Result<Tensor> {
    if A.numel() == 0 {
        let mut shape = A.shape();
        let n = shape.len();
        shape.swap(n - 2, n - 1);
        return constant::zeros(&shape, A.dtype(), A.device());
    }
    let row = |x: V| x.then(|t| squeeze::unsqueeze(&t, -2));
    let inverted = |values: &V, sizes: &V| {
        select(0.0, recip(values), gt(sizes, threshold(sizes, atol.clone(), rtol.clone()))).cast(A.dtype())
    };
    if hermitian {
        let [values, vectors] = LinalgEigh::call(A, false)?.map(V::from);
        let inverse = inverted(&values, &abs(&values));
        return (&vectors * row(inverse)).matmul(vectors.mh()).tensor();
    }
    let [u, s, vh] = LinalgSvd::call(A, false)?.map(V::from);
    (vh.mh() * row(inverted(&s, &s))).matmul(u.mh()).tensor()
}

#[primitive(batch = in_front)]
impl LinalgPinv {
    fn forward(
        A: &Tensor,
        #[hidden] atol: Option<f64>,
        #[hidden] rtol: f64,
        hermitian: bool,
    ) -> Result<Body> {
        reduce::no_grad(|| pseudo_inverse(A, atol.map(Bound::Number), Bound::Number(rtol), hermitian))
    }
    fn d_A(g: V, A: V, result: V, at: Meta) -> V {
        let [m, n] = rows_and_columns(&at.shape);
        let (inverse, adjoint, g) = (&result, result.mh(), g.mh());
        if m <= n {
            let k = g.matmul(inverse);
            let first = k.matmul(&adjoint);
            -inverse.matmul(&k).mh() + &first - A.matmul(inverse).matmul(&first)
                + adjoint.matmul(inverse).matmul(&g - k.matmul(&A))
        } else {
            let k = inverse.matmul(&g);
            let first = adjoint.matmul(&k);
            -k.matmul(inverse).mh() + (&g - A.matmul(&k)).matmul(inverse).matmul(&adjoint) + &first
                - first.matmul(inverse).matmul(&A)
        }
    }
}

fn check_invertible(A: &Tensor) -> Result<()> {
    if A.ndim() >= 2 && has_kernel(A.dtype()) {
        return Ok(());
    }
    let sizes: Vec<String> = A.shape().iter().map(usize::to_string).collect();
    Err(Error::runtime(format!(
        "linalg.pinv({}{{[{}]}}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble types",
        A.dtype().scalar_name(),
        sizes.join(", ")
    )))
}

fn bound(x: Option<&Tensor>) -> Option<Bound> {
    x.map(|x| Bound::Each(V::from(x)))
}

/// Compute the pseudoinverse (Moore-Penrose inverse) of matrices.
///
/// Singular values are taken as zero up to `max(atol, rtol * largest)`.
///
/// Args:
///     input: matrix or batch of matrices.
///     rcond: an older name of `rtol`.
///     atol: absolute tolerance; 0 if not given.
///     rtol: relative tolerance; if `atol` is not given either, the larger size times the dtype's epsilon.
///     hermitian: whether the matrices are symmetric (Hermitian), which is faster.
///
/// Examples:
///     >>> torch.linalg.pinv(torch.tensor([[2.0, 0.0], [0.0, 0.0]]))
///     tensor([[0.5000, 0.0000],
///             [0.0000, 0.0000]])
#[operator(
    function,
    space = "linalg",
    out(castable = "linalg.pinv: Expected result"),
    sample = "on_host(rectangles(lambda x: T.linalg.pinv(apart(x))), squares(lambda x: T.linalg.pinv(symmetric(apart(x)), hermitian=True)))"
)]
pub fn linalg_pinv(
    input: &Tensor,
    #[keyword] atol: Option<f64>,
    rtol: Option<f64>,
    #[default(false)] hermitian: bool,
) -> Result<Tensor> {
    check_invertible(input)?;
    let Bound::Number(rtol) = usual(input, atol.map(Bound::Number).as_ref(), rtol.map(Bound::Number)) else {
        return Err(Error::runtime("linalg.pinv: atol and rtol must be numbers"));
    };
    LinalgPinv::call(input, atol, rtol, hermitian)
}

/// Compute the pseudoinverse with a relative tolerance alone.
#[overload(linalg_pinv.rcond)]
pub fn linalg_pinv_rcond(input: &Tensor, rcond: f64, #[default(false)] hermitian: bool) -> Result<Tensor> {
    check_invertible(input)?;
    LinalgPinv::call(input, None, rcond, hermitian)
}

/// Compute the pseudoinverse with a tolerance for each matrix.
#[overload(linalg_pinv.atol_rtol_tensor)]
pub fn linalg_pinv_bounds(
    input: &Tensor,
    #[keyword] atol: Option<&Tensor>,
    rtol: Option<&Tensor>,
    #[default(false)] hermitian: bool,
) -> Result<Tensor> {
    check_invertible(input)?;
    let atol = bound(atol);
    let rtol = usual(input, atol.as_ref(), bound(rtol));
    pseudo_inverse(input, atol, rtol, hermitian)
}

/// Compute the pseudoinverse with a relative tolerance for each matrix.
#[overload(linalg_pinv.rcond_tensor)]
pub fn linalg_pinv_rcond_tensor(
    input: &Tensor,
    rcond: &Tensor,
    #[default(false)] hermitian: bool,
) -> Result<Tensor> {
    linalg_pinv_bounds(input, None, Some(rcond), hermitian)
}

/// Compute the pseudoinverse of matrices; see `torch.linalg.pinv`.
///
/// Args:
///     input: matrix or batch of matrices.
///     rcond: relative tolerance below which singular values are taken as zero.
///
/// Examples:
///     >>> torch.pinverse(torch.tensor([[2.0, 0.0], [0.0, 0.0]]))
///     tensor([[0.5000, 0.0000],
///             [0.0000, 0.0000]])
#[operator(function, method, autocast = single, sample = "on_host(rectangles(lambda x: T.pinverse(apart(x))))")]
pub fn pinverse(input: &Tensor, #[default(1e-15)] rcond: f64) -> Result<Tensor> {
    linalg_pinv_rcond(input, rcond, false)
}

fn rank(A: &Tensor, atol: Option<Bound>, rtol: Option<Bound>, hermitian: bool) -> Result<Tensor> {
    let name = "torch.linalg.matrix_rank";
    check_matrix(name, "input", A)?;
    if !has_kernel(A.dtype()) {
        return Err(Error::runtime("This function doesn't handle types other than float and double"));
    }
    let A = crate::ops::creation::factories::detach(A)?;
    let rtol = usual(&A, atol.as_ref(), rtol);
    let values =
        if hermitian { unary::abs(&linalg_eigvalsh(&A, "L".into())?)? } else { linalg_svdvals(&A, None)? };
    if A.numel() == 0 {
        let shape = A.shape();
        return constant::zeros(&shape[..shape.len() - 2], DType::I64, A.device());
    }
    let values = V::from(values);
    let above = gt(&values, threshold(&values, atol, rtol)).tensor()?;
    reduce::sum(&above, Some(smallvec::smallvec![-1]), false, None)
}

/// Compute the rank of matrices: the number of singular values above a tolerance.
///
/// The tolerance is `max(atol, rtol * largest)`.
///
/// Args:
///     input: matrix or batch of matrices.
///     tol: an older name of `atol`.
///     atol: absolute tolerance; 0 if not given.
///     rtol: relative tolerance; if `atol` is not given either, the larger size times the dtype's epsilon.
///     hermitian: whether the matrices are symmetric (Hermitian), which is faster.
///
/// Examples:
///     >>> torch.linalg.matrix_rank(torch.tensor([[1.0, 2.0], [2.0, 4.0]]))
///     tensor(1)
#[operator(
    function,
    space = "linalg",
    unrecorded,
    out(castable = "torch.linalg.matrix_rank: Expected result"),
    sample = "underived"
)]
pub fn linalg_matrix_rank(
    input: &Tensor,
    #[keyword] atol: Option<f64>,
    rtol: Option<f64>,
    #[default(false)] hermitian: bool,
) -> Result<Tensor> {
    rank(input, atol.map(Bound::Number), rtol.map(Bound::Number), hermitian)
}

/// Compute the rank of matrices with an absolute tolerance.
#[overload(linalg_matrix_rank.tol)]
pub fn linalg_matrix_rank_tol(input: &Tensor, tol: f64, #[default(false)] hermitian: bool) -> Result<Tensor> {
    rank(input, Some(Bound::Number(tol)), Some(Bound::Number(0.0)), hermitian)
}

/// Compute the rank of matrices with a tolerance for each.
#[overload(linalg_matrix_rank.atol_rtol_tensor)]
pub fn linalg_matrix_rank_bounds(
    input: &Tensor,
    #[keyword] atol: Option<&Tensor>,
    rtol: Option<&Tensor>,
    #[default(false)] hermitian: bool,
) -> Result<Tensor> {
    rank(input, bound(atol), bound(rtol), hermitian)
}

/// Compute the rank of matrices with an absolute tolerance for each.
#[overload(linalg_matrix_rank.tol_tensor)]
pub fn linalg_matrix_rank_tol_tensor(
    input: &Tensor,
    tol: &Tensor,
    #[default(false)] hermitian: bool,
) -> Result<Tensor> {
    rank(input, bound(Some(tol)), Some(Bound::Number(0.0)), hermitian)
}

/// Solve least squares problems: find `X` that minimizes the norm of `A @ X - B`.
///
/// Args:
///     input: the matrix `A`, or a batch of matrices.
///     b: the right-hand side `B`.
///     rcond: relative tolerance below which singular values are taken as zero.
///     driver: LAPACK's method: `"gelsy"`, `"gels"` (full rank only), `"gelsd"` or `"gelss"`; `"gelsy"` if not given.
///     out: four tensors to write the results into.
///
/// Returns:
///     A named tuple `(solution, residuals, rank, singular_values)`; what a driver does not compute is empty.
///
/// Examples:
///     >>> a = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
///     >>> torch.linalg.lstsq(a, torch.tensor([[1.0], [3.0], [5.0]])).solution
///     tensor([[1.0000],
///             [2.0000]])
#[operator(
    function,
    space = "linalg",
    returns(solution, residuals, rank, singular_values),
    out(castable = "torch.linalg.lstsq: Expected {name}"),
    sample = "on_host(rectangles(lambda x: T.linalg.lstsq(apart(x), x)[0]))"
)]
pub fn linalg_lstsq(
    input: &Tensor,
    b: &Tensor,
    rcond: Option<f64>,
    #[keyword] driver: Option<String>,
) -> Result<[Tensor; 4]> {
    let name = "torch.linalg.lstsq";
    if input.ndim() < 2 {
        return Err(Error::runtime(format!("{name}: input must have at least 2 dimensions.")));
    }
    if b.ndim() < 1 {
        return Err(Error::runtime(format!("{name}: other must have at least 1 dimension.")));
    }
    if input.dtype() != b.dtype() {
        return Err(Error::runtime(format!(
            "{name}: Expected input and other to have the same dtype, but got input's dtype {} and other's dtype {}",
            input.dtype().scalar_name(),
            b.dtype().scalar_name()
        )));
    }
    let gap = input.ndim() as i64 - b.ndim() as i64;
    if !(0..=1).contains(&gap) {
        return Err(Error::runtime(format!(
            "{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )));
    }
    let driver = driver.as_deref().unwrap_or("gelsy");
    if !matches!(driver, "gels" | "gelsy" | "gelsd" | "gelss") {
        return Err(Error::runtime(format!(
            "{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )));
    }
    let vector = super::solve::is_vector(&input.shape(), &b.shape());
    let sides = if vector { squeeze::unsqueeze(b, -1)? } else { b.clone() };
    let ([m, n], [rows, _]) = (rows_and_columns(&input.shape()), rows_and_columns(&sides.shape()));
    if m != rows {
        return Err(Error::runtime(if vector {
            format!("{name}: input.size(-2) should match other.size(-1)")
        } else {
            format!("{name}: input.size(-2) should match other.size(-2)")
        }));
    }
    check_floating("linalg.lstsq", input, true)?;
    let rcond = rcond.unwrap_or(epsilon(input.dtype()) * m.max(n) as f64);
    let inverse = V::from(LinalgPinv::call(input, None, rcond, false)?);
    // The solution is column-major, as LAPACK returns it.
    let found = V::from(&sides).transpose(-2, -1).matmul(inverse.transpose(-2, -1)).transpose(-2, -1);
    let solution = if vector { found.clone().then(|t| squeeze::squeeze_one(&t, -1)) } else { found.clone() };
    let (real, device) = (input.dtype().to_real(), input.device());
    let nothing = |dtype| constant::zeros(&[0], dtype, device);
    let ranked = driver != "gels";
    let rank =
        if ranked { rank(input, None, Some(Bound::Number(rcond)), false)? } else { nothing(DType::I64)? };
    let whole = !ranked || {
        let short = lt(V::from(&rank), n as f64).tensor()?;
        rank.is_batched() || !reduce::any_true(&short)?
    };
    let residuals = if m > n && whole && driver != "gelsy" {
        let rest = abs(V::from(input).matmul(found) - V::from(&sides)).re();
        (&rest * &rest).sum(&[-2], false).tensor()?
    } else {
        nothing(real)?
    };
    let values = if matches!(driver, "gelsd" | "gelss") {
        linalg_svdvals(&crate::ops::creation::factories::detach(input)?, None)?
    } else {
        nothing(real)?
    };
    Ok([solution.tensor()?, residuals, rank, values])
}
