//! Tensors that show another one's bytes without its history.

use crate::tensor::{Body, Tensor, mode};

/// `x.data`: the bytes of `x` without its history and with a version of its own.
pub fn data(t: &Tensor) -> Tensor {
    if let Some(batched) = t.as_batched() {
        return Tensor::batched(data(&batched.value), batched.levels.clone());
    }
    let body = t.body();
    Tensor::new(Body { storage: body.storage.alias(), ..body.clone() })
}

/// `x.detach()`: the storage of `x` without its history.
pub fn shallow(t: &Tensor) -> Tensor {
    match t.as_batched() {
        Some(batched) => Tensor::batched(shallow(&batched.value), batched.levels.clone()),
        // What is detached of a tensor of inference mode counts its own writes.
        None if t.is_inference() => data(t),
        None => Tensor::new(t.body().clone()),
    }
}

/// An input of a transform, without its history: inside of one, no tensor is of inference mode.
pub fn shallow_input(t: &Tensor) -> Tensor {
    let body = t.body();
    if mode::inference() || !body.storage.is_untracked() {
        return shallow(t);
    }
    Tensor::new(Body { storage: body.storage.counted(), ..body.clone() })
}
