//! Tensors that share storage with another tensor but have no edge.

use crate::tensor::{Body, Tensor, mode};

/// `x.data`: shares the storage without an edge and has its own version counter.
pub fn data(t: &Tensor) -> Tensor {
    if let Some(batched) = t.as_batched() {
        return Tensor::batched(data(&batched.value), batched.levels.clone());
    }
    let body = t.body();
    Tensor::new(Body { storage: body.storage.alias(), ..body.clone() })
}

/// `x.detach()`: shares the storage and version counter without an edge.
pub fn shallow(t: &Tensor) -> Tensor {
    match t.as_batched() {
        Some(batched) => Tensor::batched(shallow(&batched.value), batched.levels.clone()),
        // A tensor detached from an inference tensor counts its own writes.
        None if t.is_inference() => data(t),
        None => Tensor::new(t.body().clone()),
    }
}

/// An input of a transform, without its edge. Inside a transform it is no inference tensor.
pub fn shallow_input(t: &Tensor) -> Tensor {
    let body = t.body();
    if mode::inference() || !body.storage.is_untracked() {
        return shallow(t);
    }
    Tensor::new(Body { storage: body.storage.counted(), ..body.clone() })
}
