//! The singular value decomposition.
#![allow(non_snake_case, reason = "PyTorch's names are A, U, S and Vh")]

use super::factors::*;
use crate::operator::bodies::{copy, filled};
use crate::operator::primitives::constant;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce;
use crate::ops::shape::{slices, squeeze, triangle};

/// The conjugate transpose, in new memory.
fn adjoint(x: &Body) -> Result<Body> {
    let columns = by_columns(&transposed(x)?)?;
    if !x.dtype.is_complex() {
        return Ok(columns);
    }
    reduce::no_grad(|| crate::ops::complex::conj_physical(&Tensor::new(columns)))
}

fn decompose(x: &Body, full: bool) -> Result<[Body; 3]> {
    let [m, n] = rows_and_columns(x.shape());
    if m < n {
        // Decompose the conjugate transpose, because the kernel takes tall matrices only.
        let [u, s, vh] = decompose(&adjoint(x)?, full)?;
        return Ok([adjoint(&vh)?, s, adjoint(&u)?]);
    }
    let width = if full { m } else { n };
    let (device, info) = (x.device(), codes(x)?);
    let u = columns(&batch_of(x, &[m, width]), x.dtype, device)?;
    let s = filled(&batch_of(x, &[n]), Scalar::Int(0), x.dtype.to_real(), device)?;
    let v = columns(&batch_of(x, &[n, n]), x.dtype, device)?;
    if u.numel() > 0 || !has_kernel(x.dtype) {
        if n > 0 {
            copy(&leading(&u, -1, n)?, x)?;
        }
        fork!(over [u, s, v, info], with [x],
            cpu: crate::cpu::linalg::svd(u.host()?, s.host()?, Some(v.host()?), info.host()?),
            gpu: no_shader("linalg_svd", x.dtype))?;
    }
    check_found(&info)?;
    Ok([u, s, adjoint(&v)?])
}

/// The singular values without vectors.
fn values_of(x: &Body) -> Result<Body> {
    let [m, n] = rows_and_columns(x.shape());
    let (a, info) = (by_columns(&if m < n { transposed(x)? } else { x.clone() })?, codes(x)?);
    let s = filled(&batch_of(x, &[m.min(n)]), Scalar::Int(0), x.dtype.to_real(), x.device())?;
    if a.numel() > 0 || !has_kernel(x.dtype) {
        fork!(over [a, s, info], with [x],
            cpu: crate::cpu::linalg::svd(a.host()?, s.host()?, None, info.host()?),
            gpu: no_shader("linalg_svd", x.dtype))?;
    }
    check_found(&info)?;
    Ok(s)
}

fn check_found(info: &Body) -> Result<()> {
    let Some((place, code)) = first_failure(info)? else { return Ok(()) };
    Err(if code == 1 {
        Error::linalg(format!(
            "linalg.svd: {place}The algorithm failed to converge because the input matrix contained non-finite values."
        ))
    } else {
        not_converged("linalg.svd", &place, "singular values", code)
    })
}

/// The gradient of a matrix from those of its singular values and vectors.
fn gradient(g: [Option<V>; 3], U: V, S: V, Vh: V, [m, n]: [usize; 2]) -> Result<V> {
    let [gu, gs, gvh] = g;
    let k = m.min(n);
    let row = |x: &V| x.clone().then(|t| squeeze::unsqueeze(&t, -2));
    let high = |x: &V| x.clone().then(|t| squeeze::unsqueeze(&t, -1));
    if gu.is_none() && gvh.is_none() {
        let gs = gs.ok_or_else(|| Error::runtime("a derivative was called without a gradient"))?;
        let (u, vh) = (columns_of(&U, 0, k), rows_of(&Vh, 0, k));
        return Ok(if m >= n { u.matmul(high(&gs) * vh) } else { (u * row(&gs)).matmul(vh) });
    }
    // If `full_matrices` was set, only the vectors that belong to a singular value have a gradient.
    let (u, vh) = (columns_of(&U, 0, k), rows_of(&Vh, 0, k));
    let (gu, gvh) = (gu.map(|g| columns_of(&g, 0, k)), gvh.map(|g| rows_of(&g, 0, k)));
    let dtype = U.clone().tensor()?.dtype();
    let skew = |x: V| &x - x.mh();
    let of_u = gu.as_ref().map(|g| skew(u.mh().matmul(g)));
    let of_v = gvh.as_ref().map(|g| skew(vh.matmul(g.mh())));
    if U.is_complex() && !U.is_special() {
        check_gauge(of_u.as_ref(), of_v.as_ref())?;
    }
    let squares = &S * &S;
    let gaps = row(&squares) - high(&squares);
    let one = unit_like(&S)?;
    let gaps = &gaps + V::from(one);
    let inner =
        plus(of_u.as_ref().map(|x| (x / &gaps) * row(&S)), of_v.as_ref().map(|x| high(&S) * (x / &gaps)));
    let turning = of_u
        .filter(|_| U.is_complex())
        .map(|x| diagonal_matrix(x.then(|t| slices::diagonal(&t, 0, -2, -1)) / (&S * 2.0)));
    let inner = plus(plus(inner, gs.map(|g| diagonal_matrix(g.cast(dtype)))), turning);
    let mut left = u.matmul(inner.unwrap_or_else(V::misuse));
    if let (Some(gu), true) = (&gu, m > k) {
        let beyond = gu / row(&S);
        left = left + &beyond - u.matmul(u.mh().matmul(&beyond));
    }
    let mut whole = left.matmul(&vh);
    if let (Some(gvh), true) = (&gvh, n > k) {
        let beyond = gvh / high(&S);
        whole = whole + u.matmul(&beyond - beyond.matmul(vh.mh()).matmul(&vh));
    }
    Ok(whole)
}

/// The identity matrix with the dtype, device and size of a vector.
fn unit_like(s: &V) -> Result<Tensor> {
    let V::Tensor(s) = s else { return V::misuse().tensor() };
    let n = *s.shape().last().unwrap_or(&0);
    triangle::diag_embed(&constant::ones(&[n], s.dtype(), s.device())?, 0, -2, -1)
}

/// Complex singular vectors are determined up to a phase, so a loss that depends on the phase has no gradient.
fn check_gauge(of_u: Option<&V>, of_v: Option<&V>) -> Result<()> {
    let line = |x: &V| x.clone().then(|t| slices::diagonal(&t, 0, -2, -1));
    let sum = match (of_u, of_v) {
        (Some(a), Some(b)) => line(a) + line(b),
        (Some(x), None) | (None, Some(x)) => line(x),
        (None, None) => return Ok(()),
    };
    let size = crate::ops::creation::factories::detach(&abs(sum).re().tensor()?)?;
    if size.numel() > 0
        && !size.device().is_meta()
        && crate::ops::reduction::extrema::max(&size)?.item()?.as_f64() > 1e-2
    {
        return Err(Error::runtime(
            "svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. The \
             specified loss function depends on this phase term, making it ill-defined.",
        ));
    }
    Ok(())
}

#[primitive(batch = in_front, results(U, S, Vh))]
impl LinalgSvd {
    fn forward(A: &Tensor, full_matrices: bool) -> Result<[Body; 3]> {
        decompose(&A.body(), full_matrices)
    }
    fn d_A(g: [Option<V>; 3], U: V, S: V, Vh: V, at: Meta) -> Result<V> {
        gradient(g, U, S, Vh, rows_and_columns(&at.shape))
    }
}

/// The gradient of the determinant, also for singular matrices: `det = det(U) det(Vᴴ) ∏ S`.
pub fn singular_determinant_gradient(g: &V, a: &V) -> Result<V> {
    let a = a.clone().tensor()?;
    let [u, s, vh] = LinalgSvd::call(&a, false)?;
    let alpha = g * (V::from(super::solve::linalg_det(&u)?) * V::from(super::solve::linalg_det(&vh)?)).conj();
    let others = crate::ops::reduction::scan::exclusive_product(&s, -1)?;
    let inner = V::from(others) * alpha.then(|t| squeeze::unsqueeze(&t, -1));
    let inner = inner.then(|t| squeeze::unsqueeze(&t, -2));
    Ok((V::from(u) * inner).matmul(V::from(vh)))
}

pub fn check_values(name: &str, A: &Tensor) -> Result<()> {
    check_matrix(name, "A", A)?;
    check_floating(name, A, true)
}

fn check_driver(driver: Option<&String>) -> Result<()> {
    match driver {
        None => Ok(()),
        Some(_) => Err(Error::runtime(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.",
        )),
    }
}

/// Compute the singular value decomposition (SVD) of matrices: `A = U @ diag(S) @ Vh`.
///
/// Args:
///     full_matrices: whether `U` and `Vh` are square; else they have `min(m, n)` columns and rows.
///     driver: which method of cuSOLVER to use; refused, since there is none.
///
/// Returns:
///     A named tuple `(U, S, Vh)`; the singular values `S` are in descending order.
///
/// Examples:
///     >>> U, S, Vh = torch.linalg.svd(torch.tensor([[3.0, 0.0], [0.0, -4.0]]))
///     >>> S
///     tensor([4., 3.])
#[operator(
    function,
    space = "linalg",
    returns(U, S, Vh),
    out(declared),
    sample = "on_host(rectangles(lambda x: phaseless(*T.linalg.svd(apart(x), full_matrices=False))))"
)]
pub fn linalg_svd(
    A: &Tensor,
    #[default(true)] full_matrices: bool,
    #[keyword] driver: Option<String>,
) -> Result<[Tensor; 3]> {
    check_values("linalg.svd", A)?;
    check_driver(driver.as_ref())?;
    LinalgSvd::call(A, full_matrices)
}

/// Compute the singular values of matrices, in descending order.
///
/// Args:
///     driver: which method of cuSOLVER to use; refused, since there is none.
///
/// Examples:
///     >>> torch.linalg.svdvals(torch.tensor([[3.0, 0.0], [0.0, -4.0]]))
///     tensor([4., 3.])
#[operator(
    function,
    space = "linalg",
    out(declared),
    sample = "on_host(rectangles(lambda x: T.linalg.svdvals(apart(x))))"
)]
pub fn linalg_svdvals(A: &Tensor, #[keyword] driver: Option<String>) -> Result<Tensor> {
    check_values("linalg.svd", A)?;
    check_driver(driver.as_ref())?;
    if values_suffice(A) {
        return values_of(&A.body()).map(Tensor::new);
    }
    let [_, s, _] = LinalgSvd::call(A, false)?;
    Ok(s)
}

/// Compute the singular value decomposition `U @ diag(S) @ V.mH`; `torch.linalg.svd` is the newer form.
///
/// Args:
///     input: matrix or batch of matrices.
///     some: whether `U` and `V` have only `min(m, n)` columns; else they are square.
///     compute_uv: whether to compute `U` and `V`; else they are zeros.
///
/// Returns:
///     A named tuple `(U, S, V)`, with `V` not transposed.
///
/// Examples:
///     >>> torch.svd(torch.tensor([[3.0, 0.0], [0.0, -4.0]])).S
///     tensor([4., 3.])
#[operator(
    function,
    method,
    returns(U, S, V),
    out(declared),
    autocast = single,
    sample = "on_host(rectangles(lambda x: T.svd(apart(x))[1]))"
)]
pub fn svd(
    input: &Tensor,
    #[default(true)] some: bool,
    #[default(true)] compute_uv: bool,
) -> Result<[Tensor; 3]> {
    if input.ndim() < 2 {
        return Err(Error::runtime(format!(
            "linalg.svd: input should have at least 2 dimensions, but has {} dimensions instead",
            input.ndim()
        )));
    }
    check_values("linalg.svd", input)?;
    let [u, s, vh] = LinalgSvd::call(input, compute_uv && !some)?;
    if compute_uv {
        return Ok([u, s, V::from(vh).mh().tensor()?]);
    }
    let shape = input.shape();
    let zeros = |n: usize| {
        let mut square = Dims::from_slice(&shape[..shape.len() - 2]);
        square.extend([n, n]);
        constant::zeros(&square, input.dtype(), input.device())
    };
    let [m, n] = rows_and_columns(&shape);
    Ok([zeros(m)?, s, zeros(n)?])
}
