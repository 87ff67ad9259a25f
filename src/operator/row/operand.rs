//! Operands: tensors or numbers.

use crate::base::{Result, Scalar};
use crate::operator::row::{Arg, FromArg, Kind};
use crate::tensor::Tensor;

/// A tensor or a number, borrowed. (The corresponding type for kernels is `Input`, the one for formulas is
/// `V`.)
#[derive(Clone, Copy)]
pub enum Operand<'a> {
    Tensor(&'a Tensor),
    Scalar(Scalar),
}

impl<'a> Operand<'a> {
    pub fn tensor(&self) -> Option<&'a Tensor> {
        if let Operand::Tensor(t) = *self { Some(t) } else { None }
    }

    pub fn item(self) -> Result<Scalar> {
        match self {
            Operand::Tensor(t) => t.item(),
            Operand::Scalar(s) => Ok(s),
        }
    }

    pub fn is_complex(&self) -> bool {
        match self {
            Operand::Tensor(t) => t.dtype().is_complex(),
            Operand::Scalar(s) => matches!(s, Scalar::Complex(..)),
        }
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
impl<'a> FromArg<'a> for Operand<'a> {
    const KIND: Kind = Kind::Operand;
    fn from_arg(arg: &'a Arg) -> Option<Operand<'a>> {
        if let Arg::Tensor(t) = arg { Some(t.into()) } else { arg.number().map(Operand::Scalar) }
    }
}
