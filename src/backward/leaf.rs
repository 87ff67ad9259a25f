//! The end of an edge: a leaf's `.grad`, taken over or added to, and the hooks that follow.

use super::Turn;
use crate::base::{Layout, Result};
use crate::ops::{arithmetic, create, inplace, pointwise, quick};
use crate::tensor::{Body, Leaf, Tensor, When, mode};
use smallvec::SmallVec;

pub fn accumulate(turn: &Turn, leaf: &Leaf, create_graph: bool) -> Result<()> {
    if !turn.node.has_hooks() {
        return add(turn.grads.first(), leaf, create_graph);
    }
    let mut changed: Option<SmallVec<[Option<Tensor>; 1]>> = None;
    for (_, hook) in turn.node.hooks_at(|w| w == When::Before) {
        if let Some(new) = hook.call(&[], changed.as_ref().unwrap_or(&turn.grads))? {
            changed = Some(new.into_iter().collect());
        }
    }
    let grads = changed.as_ref().unwrap_or(&turn.grads);
    add(grads.first(), leaf, create_graph)?;
    // Also when no gradient came, or the leaf wants none any more.
    if let Some(tensor) = leaf.tensor.upgrade() {
        for (_, hook) in turn.node.hooks_at(|w| w == When::Accumulated) {
            hook.call(&[Some(tensor.clone())], &[])?;
        }
    }
    for (_, hook) in turn.node.hooks_at(|w| w == When::After) {
        hook.call(&[], grads)?;
    }
    Ok(())
}

/// Adds a gradient to the leaf's, if both are there still.
fn add(grad: Option<&Option<Tensor>>, leaf: &Leaf, create_graph: bool) -> Result<()> {
    let (Some(tensor), Some(Some(grad))) = (leaf.tensor.upgrade(), grad) else { return Ok(()) };
    if !tensor.requires_grad() {
        return Ok(());
    }
    let bare = (grad.is_dual() && !create_graph).then(|| create::shallow(grad));
    let grad = bare.as_ref().unwrap_or(grad);
    tensor.update_grad(|old| match old {
        None => first(&tensor, grad, create_graph),
        Some(old) if create_graph || mode::grad_enabled() => arithmetic::add(&old, grad),
        Some(old) if quick::add_into(&old.body(), &grad.body()) => Ok(old),
        Some(old) => {
            pointwise::apply_inplace(&arithmetic::add::ROW, &old, &[(&old).into(), grad.into()])?;
            Ok(old)
        }
    })
}

/// The first gradient of a leaf: taken over when nobody else holds it and it lies as it should, else copied. It lies in
/// memory as its tensor does where that is dense, and in order where not.
fn first(tensor: &Tensor, grad: &Tensor, create_graph: bool) -> Result<Tensor> {
    let (body, like) = (grad.body(), tensor.body());
    let ordered = like.layout.is_contiguous() || !is_dense(&like.layout);
    let lies = if ordered { body.layout.is_contiguous() } else { body.layout.strides == like.layout.strides };
    let owned = grad.handles() <= 1 && body.storage.is_unique();
    if lies && owned && !create_graph && !grad.requires_grad() {
        return Ok(grad.clone());
    }
    let mut out = Body::new(body.shape(), body.dtype, body.device())?;
    if !ordered {
        out.layout.strides = like.layout.strides.clone();
    }
    let out = Tensor::new(out);
    mode::with_grad(create_graph, || inplace::copy_into(&out, grad))?;
    Ok(out)
}

/// Whether the elements fill their place without gaps, in some order.
fn is_dense(layout: &Layout) -> bool {
    let mut dims: SmallVec<[(usize, usize); 6]> =
        layout.strides.iter().copied().zip(layout.shape.iter().copied()).filter(|d| d.1 > 1).collect();
    dims.sort_unstable();
    dims.iter().try_fold(1, |gap, &(stride, size)| (stride == gap).then_some(gap * size)).is_some()
}
