//! Operators that overwrite all elements. No gradient flows to the old values.

use crate::operator::bodies::overlap::{check_writable, overlaps};
use crate::operator::bodies::{carry, duplicate, fill as fill_body};
use crate::operator::primitives::copies::{to_device, to_dtype};
use crate::ops::prelude::*;

#[primitive(tangent = still, batch = none)]
impl Zero {
    fn write(input: &Body) -> Result<()> {
        fill_body(input, Scalar::Int(0))
    }
    fn d_input(g: V) -> V {
        constant_zero(g)
    }
}

#[primitive(tangent = still, batch = none)]
impl Fill2 {
    fn write(input: &Body, value: Scalar) -> Result<()> {
        fill_body(input, value)
    }
    fn d_input(g: V) -> V {
        constant_zero(g)
    }
}

/// Fills with the value of a 0-d tensor.
#[primitive(tangent = linear, batch = none, devices = any)]
impl Fill3 {
    fn write(input: &Body, #[overlaps] value: &Tensor) -> Result<()> {
        check_writable(input)?;
        let value = value.body();
        let wide = value.with_layout(value.layout.broadcast_to(input.shape()));
        // If the value is an element of the target, read it before it is overwritten.
        if overlaps(&wide, input) { carry(input, &duplicate(&wide)?) } else { carry(input, &wide) }
    }
    fn d_input(g: V) -> V {
        constant_zero(g)
    }
    fn d_value(g: &Tensor, at: Meta) -> Result<Tensor> {
        to_device(&to_dtype(g, at.dtype)?, at.device)
    }
}

/// Fill the tensor with zeros.
///
/// Examples:
///     >>> torch.tensor([1.0, 2.0]).zero_()
///     tensor([0., 0.])
#[inplace]
pub fn zero_(input: &Tensor) -> Result<()> {
    Zero::over(input.physical())
}

/// Fill the tensor with one value.
///
/// Args:
///     value: a number, or a tensor that holds one.
///
/// Examples:
///     >>> torch.zeros(2).fill_(7)
///     tensor([7., 7.])
#[inplace(overloads((1, 1), (1, 1)))]
pub fn fill_(input: &Tensor, #[elsewhere] value: Operand) -> Result<()> {
    match value {
        Operand::Scalar(value) => fill(input, value),
        Operand::Tensor(value) if value.ndim() > 0 => Err(Error::runtime(format!(
            "fill_ only supports 0-dimension value tensor but got tensor with {} dimensions.",
            value.ndim()
        ))),
        Operand::Tensor(value) if input.is_batched() || value.is_batched() => {
            crate::operator::inplace::copy_into(input, value)
        }
        Operand::Tensor(value) => Fill3::over(input, value),
    }
}

/// Fills with a number.
pub fn fill(target: &Tensor, value: Scalar) -> Result<()> {
    Fill2::over(target.physical(), value)
}

/// Return a tensor like `input` that is filled with one value.
///
/// Args:
///     value: a number, or a tensor that holds one.
///
/// Examples:
///     >>> torch.fill(torch.zeros(2), 7)
///     tensor([7., 7.])
#[operator(function, name = "fill", overloads((1, 1), (1, 1)), sample = "shaped(lambda draw, shape: lambda x: T.fill(x, 2.0))")]
pub fn filled_like(input: &Tensor, #[elsewhere] value: Operand) -> Result<Tensor> {
    let made = crate::ops::shape::rearrange::clone(input, None)?;
    fill_(&made, value)?;
    Ok(made)
}
