//! Sparse tensors in coordinate (COO) format: tensors without memory that know some values and their coordinates. Operators
//! are not called with them: the engine adds such gradients up, and everything else is Python's.

use crate::base::{Device, Result};
use crate::tensor::{Body, CooParts, Tensor, lock};

impl Tensor {
    /// A sparse tensor of the given shape.
    pub fn sparse(shape: &[usize], parts: CooParts) -> Result<Tensor> {
        let made = Tensor::new(Body::new(shape, parts.values.dtype(), Device::Meta)?);
        made.set_coo_parts(parts);
        Ok(made)
    }

    pub fn is_sparse(&self) -> bool {
        self.0.extra.get().is_some_and(|extra| lock(&extra.coo).is_some())
    }

    /// The parts, if this tensor is sparse.
    pub fn coo_parts(&self) -> Option<CooParts> {
        lock(&self.0.extra.get()?.coo).as_deref().cloned()
    }

    /// Changes a sparse tensor in place.
    pub fn set_coo_parts(&self, parts: CooParts) {
        let old = lock(&self.extra().coo).replace(Box::new(parts));
        drop(old);
    }

    /// The device of the elements: for a sparse tensor, that of its values.
    pub fn device_of_values(&self) -> Device {
        self.coo_parts().map_or_else(|| self.device(), |parts| parts.values.device())
    }

    /// True if gradients flow through this tensor, or through the values of a sparse one.
    pub fn has_graph(&self) -> bool {
        self.requires_grad() || self.coo_parts().is_some_and(|parts| parts.values.requires_grad())
    }
}
