//! The QR decomposition.
#![allow(non_snake_case, reason = "PyTorch's names are A, Q and R")]

use super::factors::*;
use super::triangular::solve;
use crate::operator::bodies::copy;
use crate::ops::prelude::*;

/// The upper triangle of the first `rows` rows, in new memory.
fn triangle_of(reflected: &Body, rows: usize) -> Result<Body> {
    let r = by_columns(&leading(reflected, -2, rows)?)?;
    let lower = transposed(&r)?;
    if r.numel() > 0 {
        fork!(over [lower], with [r], cpu: done(crate::cpu::triangle::keep_triangle(lower.host()?, 0, true)),
            gpu: no_shader("linalg_qr", r.dtype))?;
    }
    Ok(r)
}

/// The triangle with the Householder vectors below it. Their factors go to `tau`.
fn factor(x: &Body, tau: &Body) -> Result<[Body; 2]> {
    let a = by_columns(x)?;
    if a.numel() > 0 {
        fork!(over [a, tau], with [x], cpu: crate::cpu::linalg::reflect(a.host()?, tau.host()?), gpu: no_shader("linalg_qr", x.dtype))?;
    }
    Ok([a, tau.clone()])
}

fn decompose(x: &Body, mode: &str) -> Result<[Body; 2]> {
    let [m, n] = rows_and_columns(x.shape());
    let (k, device) = (m.min(n), x.device());
    let complete = mode == "complete";
    let [a, tau] = factor(x, &Body::new(&batch_of(x, &[k]), x.dtype, device)?)?;
    let r = triangle_of(&a, if complete { m } else { k })?;
    if mode == "r" {
        return Ok([Body::new(&[0], x.dtype, device)?, r]);
    }
    let width = if complete { m } else { k };
    let q = columns(&batch_of(x, &[m, width]), x.dtype, device)?;
    if q.numel() > 0 {
        if k > 0 {
            copy(&leading(&q, -1, k)?, &leading(&a, -1, k)?)?;
        }
        fork!(over [q, tau], with [x], cpu: crate::cpu::linalg::unreflect(q.host()?, tau.host()?), gpu: no_shader("linalg_qr", x.dtype))?;
    }
    Ok([q, r])
}

#[primitive(batch = in_front, results(a, tau))]
impl Geqrf {
    fn forward(input: &Tensor) -> Result<[Body; 2]> {
        let x = input.body();
        let [m, n] = rows_and_columns(x.shape());
        factor(&x, &Body::new(&batch_of(&x, &[m.min(n)]), x.dtype, x.device())?)
    }
    fn d_input(g: [Option<V>; 2]) -> Result<V> {
        let _ = g;
        Err(Error::not_implemented("the derivative for 'geqrf' is not implemented."))
    }
}

/// Compute a QR factorization in the compact form of LAPACK, as Householder reflections.
///
/// Args:
///     input: matrix or batch of matrices.
///
/// Returns:
///     A named tuple `(a, tau)`: `R` with the vectors of the reflections below it, and their factors.
///
/// Examples:
///     >>> a, tau = torch.geqrf(torch.eye(3))
///     >>> a.shape, tau.shape
///     (torch.Size([3, 3]), torch.Size([3]))
#[operator(
    function,
    method,
    returns(a, tau),
    out(castable = "torch.geqrf: Expected {name}"),
    sample = "underived"
)]
pub fn geqrf(input: &Tensor) -> Result<[Tensor; 2]> {
    if input.ndim() < 2 {
        return Err(Error::runtime("torch.geqrf: input must have at least 2 dimensions."));
    }
    if !input.dtype().is_differentiable() || matches!(input.dtype(), DType::F16 | DType::BF16) {
        return Err(Fault::NoKernel { op: "geqrf_cpu", dtype: input.dtype() }.into());
    }
    Geqrf::call(input)
}

/// The gradient of a tall or square matrix.
fn tall(gq: Option<V>, gr: Option<V>, q: &V, r: &V) -> V {
    let inner = match (&gq, &gr) {
        (Some(gq), Some(gr)) => gr.matmul(r.mh()) - q.mh().matmul(gq),
        (None, Some(gr)) => gr.matmul(r.mh()),
        (Some(gq), None) => -q.mh().matmul(gq),
        (None, None) => return V::misuse(),
    };
    let whole = q.matmul(twice_symmetric(triu(inner, 0)));
    let whole = if let Some(gq) = gq { whole + gq } else { whole };
    // Multiply by the inverse of rᴴ.
    solve(&r.mh(), &whole, false, false, false)
}

/// The gradient of a wide matrix. Its columns behind the first square are `q` times those of `r`.
fn wide(gq: Option<V>, gr: Option<V>, q: &V, r: &V, [m, n]: [usize; 2]) -> V {
    let (square, rest) = (columns_of(r, 0, m), columns_of(r, m, n));
    let Some(gr) = gr else {
        let first = tall(gq, None, q, &square);
        let none = q.matmul(&rest) * 0.0;
        return cat_columns(&[first, none]);
    };
    let (of_square, of_rest) = (columns_of(&gr, 0, m), columns_of(&gr, m, n));
    let more = q.matmul(&rest).matmul(of_rest.mh());
    let gq = Some(if let Some(gq) = gq { gq + more } else { more });
    let second = q.matmul(&of_rest);
    cat_columns(&[tall(gq, Some(of_square), q, &square), second])
}

#[primitive(batch = in_front, results(Q, R))]
impl LinalgQr {
    fn forward(input: &Tensor, mode: String) -> Result<[Body; 2]> {
        decompose(&input.body(), &mode)
    }
    fn d_input(g: [Option<V>; 2], Q: V, R: V, at: Meta, mode: String) -> Result<V> {
        let sizes = rows_and_columns(&at.shape);
        if mode == "r" {
            return Err(Error::runtime(
                "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use \
                 torch.linalg.qr(A, mode='reduced') if you are going to require gradients",
            ));
        }
        if mode == "complete" && sizes[0] > sizes[1] {
            return Err(Error::runtime(
                "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.",
            ));
        }
        let [gq, gr] = g;
        Ok(if sizes[0] >= sizes[1] { tall(gq, gr, &Q, &R) } else { wide(gq, gr, &Q, &R, sizes) })
    }
}

/// Compute the QR factorization of matrices: `A = Q @ R`, with orthonormal columns and an upper triangle.
///
/// Args:
///     mode: `"reduced"`, `"complete"` (`Q` is square), or `"r"` (`Q` is empty).
///
/// Returns:
///     A named tuple `(Q, R)`.
///
/// Examples:
///     >>> Q, R = torch.linalg.qr(torch.ones(4, 2))
///     >>> Q.shape, R.shape
///     (torch.Size([4, 2]), torch.Size([2, 2]))
#[operator(
    function,
    space = "linalg",
    returns(Q, R),
    out(declared),
    sample = "on_host(rectangles(lambda x: T.linalg.qr(steep(x))))"
)]
pub fn linalg_qr(A: &Tensor, #[default("reduced".to_string())] mode: String) -> Result<[Tensor; 2]> {
    check_matrix("linalg.qr", "A", A)?;
    check_floating("linalg.qr", A, true)?;
    if !matches!(mode.as_str(), "reduced" | "complete" | "r") {
        return Err(Error::runtime(format!(
            "qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )));
    }
    LinalgQr::call(A, mode)
}
