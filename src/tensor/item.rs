//! What is read of a tensor from outside: its one number, and what the collector may walk into.

use crate::base::{Error, Result, Scalar};
use crate::tensor::{NodeRef, Tensor, sample};
use smallvec::SmallVec;

/// What the collector may walk into from a tensor.
pub struct Referents {
    /// All of the tensor's own handles: of its history at birth and of what replaced it, and of the leaf's end.
    pub nodes: SmallVec<[NodeRef; 2]>,
    pub grad: Option<Tensor>,
    pub tangents: Vec<Tensor>,
}

impl Tensor {
    /// One element as a number; for the tensor's device this waits.
    pub fn item(&self) -> Result<Scalar> {
        let body = self.body();
        if self.is_batched() {
            return Err(sample::no_number());
        }
        if body.numel() != 1 {
            return Err(Error::runtime(format!(
                "a Tensor with {} elements cannot be converted to Scalar",
                body.numel()
            )));
        }
        if body.device().is_meta() {
            return Err(Error::runtime("Tensor.item() cannot be called on meta tensors"));
        }
        let size = body.dtype.size();
        match body.storage.host() {
            Some(base) => {
                // SAFETY: the layout lies inside the storage, and the element was written when the tensor was made.
                Ok(body.conj_neg.of(unsafe { Scalar::read(body.dtype, base.add(body.layout.offset * size)) }))
            }
            #[cfg(feature = "gpu")]
            None => {
                let mut bytes = [0u8; 16];
                if let Some(buffer) = body.storage.gpu() {
                    crate::gpu::download(buffer, body.layout.offset * size, &mut bytes[..size])?;
                }
                // SAFETY: sixteen bytes hold any element.
                Ok(body.conj_neg.of(unsafe { Scalar::read(body.dtype, bytes.as_ptr()) }))
            }
            #[cfg(not(feature = "gpu"))]
            None => Err(Error::runtime("this build of gradiron has no GPU support")),
        }
    }

    /// The graph behind this tensor, without bringing a view up to date and without waiting for a lock.
    pub fn referents(&self) -> Referents {
        let extra = self.0.extra.get();
        let mut nodes: SmallVec<[NodeRef; 2]> = self.0.edge.iter().map(|edge| edge.node.clone()).collect();
        if let Some(extra) = extra {
            nodes.extend(extra.leaf.get().cloned());
            if let Ok(replaced) = extra.replaced.try_lock() {
                nodes.extend(replaced.edge.iter().flatten().map(|edge| edge.node.clone()));
                nodes.extend(replaced.leaf.iter().flatten().cloned());
            }
        }
        let grad = extra.and_then(|extra| extra.grad.try_lock().ok()).and_then(|grad| grad.clone());
        let tangents = extra.and_then(|extra| extra.tangents.try_lock().ok());
        let tangents = tangents.map(|all| all.iter().filter_map(|(_, tangent)| tangent.clone()).collect());
        Referents { nodes, grad, tangents: tangents.unwrap_or_default() }
    }
}
