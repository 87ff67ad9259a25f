//! The end of an edge: a leaf's `.grad`, taken over or added to, and the hooks that follow.

use super::Turn;
use crate::base::Result;
use crate::ops::{arithmetic, create, pointwise, quick};
use crate::tensor::{Leaf, Tensor, When, mode};

pub fn accumulate(turn: &Turn, leaf: &Leaf, create_graph: bool) -> Result<()> {
    let (Some(tensor), Some(Some(grad))) = (leaf.tensor.upgrade(), turn.grads.first()) else { return Ok(()) };
    if !tensor.requires_grad() {
        return Ok(());
    }
    tensor.update_grad(|old| match old {
        None => first(&tensor, grad, create_graph),
        Some(old) if create_graph || mode::grad_enabled() => arithmetic::add(&old, grad),
        Some(old) if quick::add_into(&old.body(), &grad.body()) => Ok(old),
        Some(old) => {
            pointwise::apply_inplace(&arithmetic::add::ROW, &old, &[(&old).into(), grad.into()])?;
            Ok(old)
        }
    })?;
    for (_, hook) in turn.node.hooks_at(|w| w == When::Accumulated) {
        hook.call(&[Some(tensor.clone())], &[])?;
    }
    Ok(())
}

/// The first gradient of a leaf: taken over when nobody else holds it and it lies as it should, else copied.
fn first(tensor: &Tensor, grad: &Tensor, create_graph: bool) -> Result<Tensor> {
    if create_graph {
        return create::clone_dense(grad);
    }
    let (body, like) = (grad.body(), tensor.body());
    let owned = grad.handles() <= 1 && body.storage.is_unique();
    if owned && !grad.requires_grad() && body.layout.strides == like.layout.strides {
        return Ok(grad.clone());
    }
    // The gradient lies in memory as its tensor does, where that is dense.
    let out = crate::tensor::Body::new(body.shape(), body.dtype, body.device())?;
    crate::ops::kernel::copy(&out, &body)?;
    Ok(Tensor::new(out))
}
