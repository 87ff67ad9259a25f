//! What decides, beside its elements, what operators do with a tensor.

use crate::base::{ConjNeg, DType, Device, Layout};
use crate::tensor::{Body, HookNumbers, Tensor};

/// What a body is beside its elements.
pub(super) struct Form {
    pub layout: Layout,
    pub dtype: DType,
    pub device: Device,
    pub conj_neg: ConjNeg,
}

impl Form {
    pub fn of(body: &Body) -> Form {
        Form {
            layout: body.layout.clone(),
            dtype: body.dtype,
            device: body.device(),
            conj_neg: body.conj_neg,
        }
    }

    /// True if kernels can treat `body` alike; on the host, it may begin at another place of its storage.
    pub fn matches(&self, body: &Body) -> bool {
        self.dtype == body.dtype
            && self.layout.shape == body.layout.shape
            && self.layout.strides == body.layout.strides
            && self.conj_neg == body.conj_neg
            && self.device == body.device()
            && (self.device.is_cpu() || self.layout.offset == body.layout.offset)
    }

    /// The first byte of the body in its storage.
    pub fn start(&self) -> usize {
        self.layout.offset * self.dtype.size()
    }
}

/// What a tensor is beside its body.
#[derive(PartialEq, Eq)]
struct Role {
    requires_grad: bool,
    is_leaf: bool,
    is_inference: bool,
    is_transformed: bool,
    hooks: Option<HookNumbers>,
}

impl Role {
    fn of(tensor: &Tensor) -> Role {
        let requires_grad = tensor.requires_grad();
        Role {
            requires_grad,
            is_leaf: !requires_grad || tensor.is_leaf(),
            is_inference: tensor.body().storage.is_untracked(),
            is_transformed: tensor.is_batched() || tensor.is_dual(),
            hooks: if requires_grad { tensor.hook_numbers() } else { None },
        }
    }
}

/// What decides which kernels operators run on a tensor.
pub struct Kind {
    pub(super) form: Form,
    role: Role,
}

impl Kind {
    pub fn of(tensor: &Tensor) -> Kind {
        Kind { form: Form::of(&tensor.body()), role: Role::of(tensor) }
    }

    pub fn matches(&self, tensor: &Tensor) -> bool {
        self.form.matches(&tensor.body()) && self.role == Role::of(tensor)
    }
}
