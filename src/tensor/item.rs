//! Reading a tensor from outside: the number of a one-element tensor, and the objects that the garbage
//! collector visits.

use crate::base::{Error, Result, Scalar};
use crate::storage::access;
use crate::tensor::levels::batched;
use crate::tensor::{Body, NodeRef, Tensor};
use smallvec::SmallVec;

/// The objects that the garbage collector visits from a tensor.
pub struct Referents {
    /// All nodes to which the tensor has handles: of its edge at birth, of the edge that replaced it, and the
    /// leaf's node.
    pub nodes: SmallVec<[NodeRef; 2]>,
    pub grad: Option<Tensor>,
    /// The tangents, and the parts of a sparse tensor.
    pub beside: Vec<Tensor>,
}

impl Body {
    /// The value of the only element. Waits for the body's device.
    pub(crate) fn item(&self) -> Result<Scalar> {
        debug_assert_eq!(self.numel(), 1);
        let size = self.dtype.size();
        match self.storage.host() {
            Some(base) => {
                // SAFETY: the layout lies inside the storage, and the element was written when the tensor was made.
                Ok(self.conj_neg.of(unsafe { Scalar::read(self.dtype, base.add(self.layout.offset * size)) }))
            }
            #[cfg(feature = "gpu")]
            None => {
                let mut bytes = [0u8; 16];
                if let Some(buffer) = self.storage.gpu() {
                    crate::gpu::download(buffer, self.layout.offset * size, &mut bytes[..size])?;
                }
                // SAFETY: sixteen bytes hold any element.
                Ok(self.conj_neg.of(unsafe { Scalar::read(self.dtype, bytes.as_ptr()) }))
            }
            #[cfg(not(feature = "gpu"))]
            None => Err(Error::runtime("this build of gradiron has no GPU support")),
        }
    }
}

impl Tensor {
    /// The value of a one-element tensor. Waits for the tensor's device.
    pub fn item(&self) -> Result<Scalar> {
        let body = self.body();
        if self.is_batched() {
            return Err(batched::item_error());
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
        access::check()?;
        body.item()
    }

    /// The nodes and tensors behind this one, without updating a view and without waiting for a lock.
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
        let mut beside: Vec<Tensor> = tangents.unwrap_or_default();
        if let Some(Ok(parts)) = extra.map(|extra| extra.coo.try_lock()) {
            beside.extend(parts.iter().flat_map(|parts| [parts.indices.clone(), parts.values.clone()]));
        }
        Referents { nodes, grad, beside }
    }
}
