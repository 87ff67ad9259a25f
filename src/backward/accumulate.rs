//! Accumulates a gradient in a leaf's `.grad`, and runs the leaf's hooks.

use super::ReadyNode;
use super::sparse;
use crate::base::{Guidance, Layout, Result};
use crate::operator::inplace;
use crate::operator::primitives::copies::clone_dense;
use crate::operator::primitives::detached::shallow;
use crate::storage::access;
use crate::tensor::{Body, CooParts, Leaf, Tensor, When, mode, with_snapshot};
use smallvec::SmallVec;
use std::cell::Cell;

pub fn accumulate(ready: &ReadyNode, leaf: &Leaf, create_graph: bool) -> Result<()> {
    if !ready.node.has_hooks() {
        return add(ready.grads.first(), ready, leaf, create_graph);
    }
    let mut changed: Option<SmallVec<[Option<Tensor>; 1]>> = None;
    for (_, hook) in ready.node.hooks_at(|w| w == When::Before)? {
        if let Some(new) = hook.call(&[], changed.as_ref().unwrap_or(&ready.grads))? {
            changed = Some(new.into_iter().collect());
        }
    }
    let grads = changed.as_ref().unwrap_or(&ready.grads);
    add(grads.first(), ready, leaf, create_graph)?;
    // Runs also if no gradient arrived or the leaf no longer requires one.
    let accumulated = ready.node.hooks_at(|w| w == When::Accumulated)?;
    if !accumulated.is_empty() {
        let tensor = leaf.tensor_again(&ready.node);
        for (_, hook) in accumulated {
            hook.call(&[Some(tensor.clone())], &[])?;
        }
    }
    for (_, hook) in ready.node.hooks_at(|w| w == When::After)? {
        hook.call(&[], grads)?;
    }
    Ok(())
}

fn add(grad: Option<&Option<Tensor>>, ready: &ReadyNode, leaf: &Leaf, create_graph: bool) -> Result<()> {
    let Some(Some(grad)) = grad else { return Ok(()) };
    // A node may have any number of leaves, so memory is checked for each.
    crate::storage::reserve::check()?;
    let tensor = leaf.tensor_again(&ready.node);
    if !tensor.is_leaf() {
        return Err(Guidance::new("leaf variable has been moved into the graph interior")
            .note("leaf", tensor.describe().0, None)
            .advice("repeat the computation from the leaf as it was before the write")
            .done());
    }
    if !tensor.requires_grad() {
        return Ok(());
    }
    let bare = (grad.is_dual() && !create_graph).then(|| shallow(grad));
    let grad = bare.as_ref().unwrap_or(grad);
    if grad.is_sparse() && access::captures() {
        access::note(|| "a sparse gradient is added to a .grad".into());
    }
    with_snapshot(|| {
        tensor.update_grad(|old| match old {
            None => first(&tensor, grad, create_graph),
            Some(old) if create_graph || mode::grad_enabled() => sparse::add(&old, grad),
            Some(old) if old.is_sparse() && !grad.is_sparse() => sparse::add(&old, grad),
            Some(old) => sparse::add_in_place(&old, grad).map(|()| old),
        })
    })
}

/// True if two layouts of one shape have the same strides. For a dimension of size 1 any stride is accepted
/// except 0, which marks an expanded dimension.
fn same_strides(grad: &Layout, like: &Layout) -> bool {
    let strides = grad.strides.iter().zip(&like.strides);
    grad.shape.iter().zip(strides).all(|(&n, (&g, &l))| if n == 1 { g != 0 } else { g == l })
}

thread_local! {
    static ENFORCED: Cell<bool> = const { Cell::new(true) };
}

/// Moves this thread's switch into the returned closure, which sets it in the thread that calls it.
pub fn hand_over() -> impl FnOnce() + Send {
    let on = ENFORCED.replace(true);
    move || ENFORCED.set(on)
}

/// Sets whether a leaf's first gradient gets the strides of the leaf, in this thread.
pub fn enforce_layouts(on: bool) {
    ENFORCED.set(on);
}

/// The first gradient of a leaf. It is taken over if it has no other holder and the right strides, otherwise
/// copied. The right strides are those of the leaf if it is dense, otherwise contiguous ones.
fn first(tensor: &Tensor, grad: &Tensor, create_graph: bool) -> Result<Tensor> {
    if let Some(parts) = grad.coo_parts() {
        return first_sparse(grad, &parts, create_graph);
    }
    let (body, like) = (grad.body(), tensor.body());
    let fits = fits(&body.layout, &like.layout) || (!ENFORCED.get() && !body.layout.is_expanded());
    let owned = grad.handles() <= 1 && body.storage.is_unique();
    if fits && owned && !create_graph && !grad.requires_grad() {
        return Ok(grad.clone());
    }
    copied(grad, &like.layout, create_graph)
}

/// True if a gradient has the right strides for a leaf of this layout.
fn fits(grad: &Layout, like: &Layout) -> bool {
    if like.is_dense() { same_strides(grad, like) } else { grad.is_contiguous() }
}

/// A copy with the right strides for a leaf of this layout.
fn copied(grad: &Tensor, like: &Layout, create_graph: bool) -> Result<Tensor> {
    let (body, dense) = (grad.body(), like.is_dense());
    // A leaf that was resized gets a gradient of its new shape.
    let shape = if dense { &like.shape } else { body.shape() };
    let mut out = Body::new(shape, body.dtype, body.device())?;
    if dense {
        out.layout.strides.clone_from(&like.strides);
    }
    let out = Tensor::new(out);
    mode::with_grad(create_graph, || inplace::copy_into(&out, grad))?;
    Ok(out)
}

/// A gradient of a leaf of this layout, copied if it could not be taken over as the leaf's first one.
pub fn laid_out(grad: Tensor, like: &Layout) -> Result<Tensor> {
    let is_fit = grad.is_sparse() || grad.as_view().is_none() && fits(&grad.body().layout, like);
    if is_fit { Ok(grad) } else { copied(&grad, like, false) }
}

/// True if this thread gives a leaf's first gradient the strides of the leaf.
pub fn enforces_layouts() -> bool {
    ENFORCED.get()
}

/// The first gradient of a leaf, if it is sparse. Parts whose memory has another holder are copied.
fn first_sparse(grad: &Tensor, parts: &CooParts, create_graph: bool) -> Result<Tensor> {
    let is_own = |part: &Tensor| {
        let body = part.body();
        // One handle is the gradient's, one is `parts`'s.
        grad.handles() <= 1
            && part.handles() <= 2
            && !part.requires_grad()
            && body.storage.is_unique()
            && body.layout.is_contiguous()
    };
    let own = |part: &Tensor| {
        if !create_graph && is_own(part) { Ok(part.clone()) } else { clone_dense(part) }
    };
    mode::with_grad(create_graph, || {
        let (indices, values) = (own(&parts.indices)?, own(&parts.values)?);
        Tensor::sparse(&grad.shape(), CooParts { indices, values, ..*parts })
    })
}
