//! Calls the kernel for real matrix products; complex products are composed of real ones.

use crate::operator::bodies::{copy, duplicate, fill, parts};
use crate::ops::prelude::*;

/// `out = alpha * a @ b + beta * out`, batched.
pub(crate) fn multiply(out: &Body, a: &Body, b: &Body, alpha: f64, beta: f64) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    if out.dtype == DType::Bool && a.numel() == 0 {
        return fill(out, Scalar::Bool(false));
    }
    if out.dtype.is_complex() {
        return multiply_parts(out, a, b, alpha, beta);
    }
    fork!(over [out], reads [a, b], with [alpha, beta], cpu: crate::cpu::matmul::matmul(out.host()?, a.host()?, b.host()?, alpha, beta),
    gpu: crate::gpu::matmul(out.gpu()?, a.gpu()?, b.gpu()?, alpha, beta))
}

/// `out = alpha * a @ b + beta * start` by one kernel of the GPU; false if there is none. `start` has the shape of `out`.
pub(crate) fn multiply_add(
    out: &Body,
    start: &Body,
    a: &Body,
    b: &Body,
    alpha: f64,
    beta: f64,
) -> Result<bool> {
    let is_plain =
        |body: &&Body| body.conj_neg.is_none() && body.device() == out.device() && body.dtype == out.dtype;
    let is_known = out.device().is_gpu() && !out.dtype.is_complex() && out.dtype != DType::Bool;
    if !is_known || out.numel() == 0 || ![start, a, b].iter().all(is_plain) {
        return Ok(false);
    }
    fork!(over [out], reads [start, a, b], with [alpha, beta],
        cpu: {
            crate::cpu::cast::copy(out.host()?, start.host()?);
            crate::cpu::matmul::matmul(out.host()?, a.host()?, b.host()?, alpha, beta)
        },
        gpu: crate::gpu::add_matmul(out.gpu()?, start.gpu()?, a.gpu()?, b.gpu()?, alpha, beta))?;
    Ok(true)
}

/// A complex matrix product, as four real products.
fn multiply_parts(out: &Body, a: &Body, b: &Body, alpha: f64, beta: f64) -> Result<()> {
    let split = |x: &Body| -> Result<[Body; 2]> {
        let [re, im] = parts(x)?;
        Ok([duplicate(&re)?, duplicate(&im)?])
    };
    // The kernel is much faster on contiguous parts than on parts with stride 2.
    let ([or, oi], [ar, ai], [br, bi]) = (split(out)?, split(a)?, split(b)?);
    multiply(&or, &ar, &br, alpha, beta)?;
    multiply(&or, &ai, &bi, -alpha, 1.0)?;
    multiply(&oi, &ar, &bi, alpha, beta)?;
    multiply(&oi, &ai, &br, alpha, 1.0)?;
    let [re, im] = parts(out)?;
    copy(&re, &or)?;
    copy(&im, &oi)
}
