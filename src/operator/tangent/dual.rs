//! `make_dual` and `unpack_dual`.

use crate::base::{Error, Result};
use crate::operator::batch::Batch;
use crate::operator::inplace;
use crate::operator::primitives::views::View;
use crate::operator::tangent::{check_shape, is_still, own_tangent, same_layout, zeros_with_layout};
use crate::tensor::Tensor;
use crate::tensor::levels::tangents::{self, DualLevel};

/// The tangent that a user pairs with a tensor: unchanged if it has the tensor's layout, otherwise a copy
/// with its layout and dtype.
fn paired(tensor: &Tensor, tangent: &Tensor) -> Result<Tensor> {
    check_shape(tensor, tangent)?;
    let body = tensor.body();
    if same_layout(&body, &tangent.body()) {
        return Ok(tangent.clone());
    }
    let tangent_body = zeros_with_layout(&body, body.dtype, tangent)?;
    inplace::copy_into(&tangent_body, tangent)?;
    Ok(tangent_body)
}

/// A view of `tensor` with a tangent.
pub fn make_dual(tensor: &Tensor, tangent: &Tensor, level: DualLevel) -> Result<Tensor> {
    if tensor.is_batched() {
        // If only the tangent is batched at a level, it stays so.
        let batch = Batch::of([tensor]);
        return Ok(batch.wrap(make_dual(tensor.physical(), &batch.lowered(tangent)?, level)?));
    }
    if tensor.tangent(level).is_some() {
        return Err(Error::runtime(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported.",
        ));
    }
    if tangent.tangent(level).is_some() {
        return Err(Error::runtime(
            "Setting a forward grad that itself has a forward gradient at the same level0 is not supported.",
        ));
    }
    let dual = view_without_tangent(tensor, level)?;
    if !is_still([tensor, tangent].into_iter()) {
        dual.set_tangent(level, paired(tensor, tangent)?)?;
    }
    Ok(dual)
}

/// Sets the tangent of a new tensor; batched values go to the physical tensor.
pub fn pair(tensor: &Tensor, tangent: &Tensor, level: DualLevel) -> Result<()> {
    let (physical, tangent) = (tensor.physical(), Batch::of([tensor]).lowered(tangent)?);
    physical.set_tangent(level, own_tangent(physical, tangent)?)
}

/// The tensor without its tangent at `level`, and that tangent.
pub fn unpack_dual(tensor: &Tensor, level: DualLevel) -> Result<(Tensor, Option<Tensor>)> {
    if let Some(batched) = tensor.as_batched() {
        let (value, tangent) = unpack_dual(&batched.value, level)?;
        let batch = Batch::of([tensor]);
        return Ok((batch.wrap(value), tangent.map(|t| batch.raised(&t)).transpose()?));
    }
    Ok((view_without_tangent(tensor, level)?, tensor.tangent(level).filter(|_| tangents::enabled())))
}

/// A view that has the tangents of all other levels, independent of later changes in the tensor's.
fn view_without_tangent(tensor: &Tensor, level: DualLevel) -> Result<Tensor> {
    let carried = tangents::set_enabled(false);
    let view = View::call(tensor, tensor.shape());
    tangents::set_enabled(carried);
    let view = view.inspect(Tensor::own_tangents)?;
    for other in tensor.dual_levels().into_iter().filter(|&l| l != level) {
        if let Some(tangent) = tensor.tangent(other) {
            view.set_tangent(other, tangent)?;
        }
    }
    Ok(view)
}
