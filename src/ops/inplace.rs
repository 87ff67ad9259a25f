//! Writing a finished result over a tensor: `copy_`, `out=`, and the in-place form of every row that has no own one.

use super::batch;
use super::kernel::copy;
use super::pointwise::{check_cast, check_writable, overlaps};
use crate::base::{Error, Fault, Result, broadcast};
use crate::tensor::{Tensor, check_inplace, finish_inplace, mode};

/// `target` becomes `result`, values and history.
pub fn overwrite(target: &Tensor, result: &Tensor) -> Result<()> {
    if batch::any(&[target, result]) {
        return batch::overwrite(target, result);
    }
    let recording = mode::grad_enabled() && (target.requires_grad() || result.requires_grad());
    check_inplace(target, recording)?;
    let (body, new) = (target.body(), result.body());
    check_writable(&body)?;
    if body.shape() != new.shape() {
        return Err(Error::runtime(format!(
            "output with shape {:?} doesn't match the broadcast shape {:?}",
            body.shape(),
            new.shape()
        )));
    }
    check_cast(new.dtype, body.dtype)?;
    if recording && let Some(edge) = result.history() {
        super::pointwise::keep_old(&edge, &body)?;
    }
    copy(&body, &new)?;
    body.storage.bump();
    if recording {
        let same = super::create::to_dtype(result, body.dtype)?;
        finish_inplace(target, same.history());
    }
    if target.is_dual() || result.is_dual() {
        super::tangent::rewrite(target, result)?;
    }
    Ok(())
}

/// `target.copy_(source)`: values converted and broadcast, the gradient goes to the source.
pub fn copy_into(target: &Tensor, source: &Tensor) -> Result<()> {
    if batch::any(&[target, source]) {
        return batch::copy_into(target, source);
    }
    let recording = mode::grad_enabled() && (target.requires_grad() || source.requires_grad());
    check_inplace(target, recording)?;
    let body = target.body();
    check_writable(&body)?;
    let from = source.body();
    let fits = broadcast(from.shape(), body.shape()).is_ok_and(|s| s.as_slice() == body.shape());
    if !fits {
        return Err(match broadcast(body.shape(), from.shape()) {
            Err(e) => e,
            Ok(shape) => Error::runtime(format!(
                "output with shape {:?} doesn't match the broadcast shape {:?}",
                body.shape(),
                shape.as_slice()
            )),
        });
    }
    let wide = from.with_layout(from.layout.broadcast_to(body.shape()));
    if overlaps(&wide, &body) {
        copy(&body, &super::kernel::duplicate(&wide)?)?;
    } else {
        copy(&body, &wide)?;
    }
    body.storage.bump();
    if recording && body.dtype.is_float() {
        let edge = match source.requires_grad() {
            // Through the operators that say the same: stretched, converted, moved.
            true => {
                let mut value = super::create::to_dtype(source, body.dtype)?;
                value = super::create::to_device(&value, body.device())?;
                value = super::view::expand(&value, super::view::ints(body.shape()))?;
                value = super::create::copied(&value)?;
                value.history()
            }
            false => super::create::constant(target),
        };
        finish_inplace(target, edge);
    }
    if target.is_dual() || source.is_dual() {
        super::tangent::rewrite(target, source)?;
    }
    Ok(())
}

/// `out=`: resized when its shape differs, then written.
pub fn write_out(target: &Tensor, result: &Tensor) -> Result<()> {
    let new = result.body();
    let body = target.body();
    if !body.device().same_place(new.device()) {
        return Err(Fault::Devices { a: body.device(), b: new.device() }.into());
    }
    check_cast(new.dtype, body.dtype)?;
    if body.shape() != new.shape() {
        let fresh = crate::tensor::Body::new(new.shape(), body.dtype, body.device())?;
        copy(&fresh, &new)?;
        fresh.storage.set_version(body.storage.version() + 1);
        target.set_body(fresh);
        return Ok(());
    }
    copy(&body, &new)?;
    body.storage.bump();
    Ok(())
}
