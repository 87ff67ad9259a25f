//! Finds the parameters that a backward will reach.

use crate::python::sequences::ListArg;
use crate::python::wrapper::class::PyTensor;
use crate::tensor::NodeRef;
use gradiron_macros::pyfunction;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Returns for each of `leaves` whether a gradient of `outputs` reaches it.
#[pyfunction]
pub fn leaves_behind(
    outputs: ListArg<Bound<'_, PyTensor>>,
    leaves: ListArg<Bound<'_, PyTensor>>,
) -> PyResult<Vec<bool>> {
    let starts = nodes(&outputs.0)?.into_iter().flatten().collect::<Vec<_>>();
    let ends = nodes(&leaves.0)?.into_iter().map(|end| {
        end.filter(|node| node.is_leaf())
            .ok_or_else(|| PyValueError::new_err("expected leaves that require gradients"))
    });
    let ends = ends.collect::<PyResult<Vec<_>>>()?;
    Ok(crate::backward::reached(&starts, &ends)?)
}

/// Returns the node to which each tensor's gradient flows.
fn nodes(tensors: &[Bound<'_, PyTensor>]) -> PyResult<Vec<Option<NodeRef>>> {
    let node = |tensor: &Bound<'_, PyTensor>| Ok(tensor.get().tensor.edge_of_many()?.map(|edge| edge.node));
    tensors.iter().map(node).collect()
}

/// Returns the number of tensors and other holders of this tensor's storage.
#[pyfunction]
pub fn storage_holders(tensor: &Bound<'_, PyTensor>) -> usize {
    tensor.get().tensor.body().storage.holders()
}
