//! What a pointwise operator is given: tensors, and numbers beside them.

use crate::base::Scalar;
use crate::operator::row::Value;
use crate::tensor::Tensor;

/// A borrowed operand.
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    Tensor(&'a Tensor),
    Scalar(Scalar),
}

impl<'a> Operand<'a> {
    pub fn tensor(&self) -> Option<&'a Tensor> {
        if let Operand::Tensor(t) = *self { Some(t) } else { None }
    }

    pub fn is_batched(&self) -> bool {
        self.tensor().is_some_and(Tensor::is_batched)
    }
}

impl<'a> From<&'a Tensor> for Operand<'a> {
    fn from(t: &'a Tensor) -> Self {
        Operand::Tensor(t)
    }
}
impl From<f64> for Operand<'_> {
    fn from(x: f64) -> Self {
        Operand::Scalar(Scalar::Float(x))
    }
}
impl From<i64> for Operand<'_> {
    fn from(x: i64) -> Self {
        Operand::Scalar(Scalar::Int(x))
    }
}
impl From<Scalar> for Operand<'_> {
    fn from(x: Scalar) -> Self {
        Operand::Scalar(x)
    }
}
impl<'a> From<&'a Value> for Operand<'a> {
    fn from(v: &'a Value) -> Self {
        match v {
            Value::Tensor(t) => Operand::Tensor(t),
            Value::Scalar(s) => Operand::Scalar(*s),
        }
    }
}
