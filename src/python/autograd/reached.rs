//! Which parameters a backward will reach.

use crate::python::sequences::Listed;
use crate::python::wrapper::class::PyTensor;
use crate::tensor::NodeRef;
use gradiron_macros::pyfunction;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// For each of `leaves`, whether a gradient of `outputs` reaches it.
#[pyfunction]
pub fn leaves_behind(
    outputs: Listed<Bound<'_, PyTensor>>,
    leaves: Listed<Bound<'_, PyTensor>>,
) -> PyResult<Vec<bool>> {
    let starts = nodes(&outputs.0)?.into_iter().flatten().collect::<Vec<_>>();
    let ends = nodes(&leaves.0)?.into_iter().map(|end| {
        end.filter(|node| node.is_leaf())
            .ok_or_else(|| PyValueError::new_err("expected leaves that require gradients"))
    });
    let ends = ends.collect::<PyResult<Vec<_>>>()?;
    Ok(crate::backward::reached(&starts, &ends)?)
}

/// The node that each tensor's gradient flows to.
fn nodes(tensors: &[Bound<'_, PyTensor>]) -> PyResult<Vec<Option<NodeRef>>> {
    let node = |tensor: &Bound<'_, PyTensor>| Ok(tensor.get().tensor.edge_of_many()?.map(|edge| edge.node));
    tensors.iter().map(node).collect()
}

/// How many tensors, and others, hold the memory of this one.
#[pyfunction]
pub fn storage_holders(tensor: &Bound<'_, PyTensor>) -> usize {
    tensor.get().tensor.body().storage.holders()
}
