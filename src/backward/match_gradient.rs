//! Converts gradients to the shape, dtype and device of the values that they are gradients of.

use super::sparse;
use crate::base::{DType, Dims, Error, Guidance, Result};
use crate::operator::primitives::complex_views::real;
use crate::operator::primitives::copies::{to_device, to_dtype};
use crate::operator::primitives::sums::sum_to;
use crate::tensor::{Edge, GradType, Kind, Meta, Node, Tensor};

/// Converts a gradient for an edge: undoes broadcasting, restores dtype and device.
pub fn fit(node: &Node, index: usize, edge: &Edge, grad: Tensor) -> Result<Tensor> {
    let meta = &edge.node.outputs[edge.output as usize];
    let compare = |meta: &Meta| {
        let body = grad.body();
        let dtype = wanted(edge, body.dtype, meta.dtype);
        (body.layout.shape == meta.shape, body.dtype == dtype && body.device() == meta.device, dtype)
    };
    let found = compare(meta);
    if let (true, true, _) = found {
        return Ok(grad);
    }
    let leaf = shown_by_leaf(edge);
    let (meta, (same_shape, same_type, dtype)) =
        leaf.as_ref().map_or((meta, found), |leaf| (leaf, compare(leaf)));
    if grad.is_sparse() {
        return match sparse_misfit(&grad, meta) {
            Some(what) => Err(misfit(node, index, edge, &what)),
            None => sparse::to_dtype(&grad, dtype),
        };
    }
    let mut grad = grad;
    if !same_shape {
        let have = grad.shape();
        if !expandable(&meta.shape, &have) {
            return Err(misfit(
                node,
                index,
                edge,
                &format!(
                    "got {:?} but expected shape compatible with {:?}",
                    have.as_slice(),
                    meta.shape.as_slice()
                ),
            ));
        }
        grad = sum_to(&grad, &meta.shape)?;
    }
    if !same_type {
        let (is_complex, wants_complex) = (grad.dtype().is_complex(), dtype.is_complex());
        if matches!(node.kind, Kind::Custom(_)) && is_complex != wants_complex && !grad.dtype().is_float() {
            return Err(Error::runtime(
                "Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex) to be true, but got \
                 false.  (Could this error message be improved?  If so, please report an enhancement request to PyTorch.)",
            ));
        }
        if !matches!(&edge.node.kind, Kind::Custom(custom) if custom.takes_any(edge.output as usize)) {
            let part = if is_complex && !wants_complex { real(&grad)? } else { grad };
            grad = to_dtype(&part, dtype)?;
        }
        if grad.device() != meta.device {
            // Only 0-d gradients are moved implicitly.
            if grad.ndim() > 0 {
                let what = format!("expected device {} but got {}", meta.device, grad.device());
                return Err(misfit(node, index, edge, &what));
            }
            grad = to_device(&grad, meta.device)?;
        }
    }
    Ok(grad)
}

/// What does not fit of a sparse gradient: unlike dense ones, these are not summed or moved.
fn sparse_misfit(grad: &Tensor, meta: &Meta) -> Option<String> {
    let (shape, device) = (grad.shape(), grad.device_of_values());
    if shape != meta.shape {
        let (have, expected) = (shape.as_slice(), meta.shape.as_slice());
        return Some(format!("got {have:?} but expected shape compatible with {expected:?}"));
    }
    (device != meta.device).then(|| format!("expected device {} but got {device}", meta.device))
}

/// The dtype that the edge's gradient must have: `own`, the dtype of the value, unless a leaf's grad_dtype
/// says otherwise.
#[inline]
fn wanted(edge: &Edge, dtype: DType, own: DType) -> DType {
    match &edge.node.kind {
        Kind::Leaf(leaf) if leaf.grad_type() != GradType::Own => match leaf.grad_type() {
            GradType::Other(other) => other,
            _ => dtype,
        },
        _ => own,
    }
}

/// The current shape and dtype of a leaf whose node stayed after `x.data = y` because it has hooks.
fn shown_by_leaf(edge: &Edge) -> Option<Meta> {
    match &edge.node.kind {
        Kind::Leaf(leaf) if edge.node.has_hooks() => Some(leaf.body().meta()),
        _ => None,
    }
}

#[cold]
fn misfit(node: &Node, index: usize, edge: &Edge, what: &str) -> Error {
    let name = node.name();
    Guidance::new(format!("Function {name} returned an invalid gradient at index {index} - {what}"))
        .node("operator", node)
        .node("gradient of", &edge.node)
        .advice(format!(
            "backward must return for input {index} a gradient of that input's shape, on its device"
        ))
        .done()
}

/// Converts the gradient of a root. The root's shape may have changed after its node was made.
pub fn fit_root(index: usize, edge: &Edge, grad: &Tensor) -> Result<Tensor> {
    let meta = &edge.node.outputs[edge.output as usize];
    let have = grad.shape();
    if edge.node.is_leaf() {
        return sparse::to_dtype(grad, wanted(edge, grad.dtype(), meta.dtype));
    }
    if have == meta.shape {
        return Ok(grad.clone());
    }
    if expandable(&meta.shape, &have) {
        return sum_to(grad, &meta.shape);
    }
    Err(Error::runtime(format!(
        "invalid gradient at index {index} - got {:?} but expected shape compatible with {:?}",
        have.as_slice(),
        meta.shape.as_slice()
    )))
}

/// True if `small` broadcasts to `large`.
fn expandable(small: &Dims, large: &Dims) -> bool {
    small.len() <= large.len() && small.iter().rev().zip(large.iter().rev()).all(|(&s, &l)| s == l || s == 1)
}
