//! Operand types and values that a pointwise row has no answer for, checked before anything is written.

use crate::base::{DType, Dims, Error, Fault, Fold, Result, Scalar};
use crate::operator::kernel::{fork, reduce};
use crate::operator::pointwise::{Class, Operand, Pointwise};
use crate::tensor::{Body, Tensor};

/// What PyTorch calls the kernels of rows whose own name, with `_cpu`, is not it.
const KERNELS: &[(&str, &str)] = &[
    ("floor_divide", "div_floor_cpu"),
    ("floor_quotient", "div_floor_cpu"),
    ("trunc_quotient", "div_trunc_cpu"),
    ("round", "round_vml_cpu"),
    ("erf", "erf_vml_cpu"),
    ("erfc", "erfc_vml_cpu"),
    ("erfinv", "erfinv_vml_cpu"),
    ("lgamma", "lgamma_vml_cpu"),
    ("digamma", "digamma"),
    ("bit_invert", "bitwise_not_cpu"),
    ("gelu_erf", "GeluKernelImpl"),
    ("gelu_tanh", "GeluKernelImpl"),
    ("abs", "abs_cpu"),
    ("ceil", "ceil_vml_cpu"),
    ("floor", "floor_vml_cpu"),
    ("trunc", "trunc_vml_cpu"),
    ("frac", "frac_cpu"),
    ("fmod", "fmod_cpu"),
    ("remainder", "remainder_cpu"),
    ("pow_tensor", "pow"),
    ("pow_number", "pow"),
    ("hypot", "hypot_cpu"),
    ("logaddexp", "logaddexp_cpu"),
    ("leaky_relu", "leaky_relu_cpu"),
    ("elu", "elu_cpu"),
    ("leaky_relu_over", "leaky_relu_cpu"),
    ("elu_over", "elu_cpu"),
    ("silu", "silu_cpu"),
    ("softplus", "softplus_cpu"),
    ("logsigmoid", "log_sigmoid_cpu"),
    ("clamp_both", "clamp_scalar_cpu"),
    ("clamp_tensors", "clamp_cpu"),
    ("clamp_low", "clamp_min_scalar_cpu"),
    ("clamp_min_number", "clamp_min_scalar_cpu"),
    ("clamp_high", "clamp_max_scalar_cpu"),
    ("clamp_max_number", "clamp_max_scalar_cpu"),
    ("bitwise_left_shift", "lshift_cpu"),
    ("bitwise_right_shift", "rshift_cpu"),
];

/// What PyTorch calls a row's kernel where it has none for a dtype.
pub fn kernel(row: &'static str) -> &'static str {
    KERNELS.iter().find(|k| k.0 == row).map_or(row, |k| k.1)
}

/// Pointwise operators that have no meaning, or no kernel, for complex numbers.
#[cold]
pub fn complex(row: &'static str, dtype: DType) -> Error {
    match row {
        "maximum" | "minimum" | "fmax" | "fmin" => {
            Error::type_error(format!("{row} not implemented for complex tensors."))
        }
        "heaviside" => Error::not_implemented("heaviside is not yet implemented for complex tensors."),
        "sign" => Error::not_implemented(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
        ),
        "floor" | "ceil" | "trunc" => {
            Error::not_implemented(format!("{row} is not supported for complex inputs"))
        }
        "deg2rad" | "rad2deg" => {
            Error::not_implemented(format!("{row} is not supported for complex tensors."))
        }
        _ if row.starts_with("clamp") => Fault::NoComplex("clamp").into(),
        _ => match KERNELS.iter().find(|k| k.0 == row) {
            Some((_, op)) => Fault::NoKernel { op, dtype }.into(),
            None => Fault::NoKernelOf { op: row, dtype }.into(),
        },
    }
}

/// Refuses to order complex numbers.
pub fn order(kernel: &'static str, dtype: DType) -> Result<()> {
    if dtype.is_complex() { Err(Fault::NoKernel { op: kernel, dtype }.into()) } else { Ok(()) }
}

/// Bitwise operators on floats, and shifts of truth values.
#[cold]
pub fn bits(row: &'static str, dtype: DType) -> Error {
    match kernel(row) {
        own if own == row => Fault::NoKernelOf { op: row, dtype }.into(),
        op => Fault::NoKernel { op, dtype }.into(),
    }
}

/// A whole number as C++ prints it as a float: six digits.
fn general(value: i64) -> String {
    if value.abs() < 1_000_000 {
        return value.to_string();
    }
    let text = format!("{:.5e}", value as f64);
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{}e+{exponent:0>2}", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// Operand `at`, a number, in the narrow integer type that the operands are promoted to: it wraps as tensors do, but for
/// rows that ask for a number of that type, and bounds, which may lie beyond all of its numbers.
pub fn narrowed(op: &Pointwise, at: usize, number: Scalar, to: DType) -> Result<i64> {
    let (value, (least, most)) = (number.as_i64(), to.range().unwrap_or((i64::MIN, i64::MAX)));
    if value >= least && value <= most {
        return Ok(value);
    }
    let outside = |which: &str| {
        let shown = general(value);
        let name = to.scalar_name();
        Error::runtime(format!("Clamp {which} value {shown} is outside the representable range of {name}"))
    };
    match (op.row.name, at) {
        ("clamp_low" | "clamp_min_number" | "clamp_both", 1) if value > most => Err(outside("min")),
        ("clamp_high" | "clamp_max_number", 1) | ("clamp_both", 2) if value < least => Err(outside("max")),
        ("clamp_low" | "clamp_min_number" | "clamp_high" | "clamp_max_number" | "clamp_both", _) => {
            Ok(value.clamp(least, most))
        }
        ("pow" | "choose", _) if !number.fits(to) => Err(crate::operator::kernel::overflow(to.fixed_name())),
        _ => Ok(to.wrap(value)),
    }
}

pub fn check(op: &Pointwise, operands: &[Operand], promoted: DType) -> Result<()> {
    match op.class {
        Class::Divide if !promoted.is_float() => divisor(operands[1]),
        Class::Alike | Class::FloatAlike => types(op.row.name, operands),
        _ => Ok(()),
    }
}

/// Numbers that are chosen or that scale operands must fit the elements.
pub fn numbers(op: &Pointwise, operands: &[Operand], promoted: DType) -> Result<()> {
    let numbers = match op.class {
        Class::Choose => &operands[..2],
        _ => &operands[op.inputs.min(operands.len())..],
    };
    numbers.iter().try_for_each(|operand| match operand {
        Operand::Scalar(number) => crate::operator::kernel::holds(promoted, *number),
        Operand::Tensor(_) => Ok(()),
    })
}

/// Subtraction and negation have no meaning for truth values, whatever their shapes.
pub fn booleans(name: &str, operands: &[Operand]) -> Result<()> {
    let is_bool =
        |o: &&Operand| matches!(o, Operand::Scalar(Scalar::Bool(_))) || dtype_of(o) == Some(DType::Bool);
    let count = operands.iter().filter(is_bool).count();
    let advice = "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.";
    Err(Error::not_implemented(match count {
        0 => return Ok(()),
        _ if name == "neg" => format!("Negation, the `-` operator, on a bool tensor is not supported. {advice}"),
        2 => "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` \
              operator instead."
            .into(),
        _ => format!("Subtraction, the `-` operator, with a bool tensor is not supported. {advice}"),
    }))
}

/// Integers cannot be divided by zero. (On the GPU nobody waits to see: there the result is undefined, as in CUDA.)
fn divisor(divisor: Operand) -> Result<()> {
    let zero = match divisor {
        Operand::Scalar(number) => number.as_i64() == 0,
        Operand::Tensor(t) if !t.device().is_cpu() => false,
        Operand::Tensor(t) => {
            let all = crate::ops::reduction::reduce::folded(Fold::All, &t.body(), None, false, DType::Bool)?;
            !crate::tensor::Tensor::new(all).item()?.as_bool()
        }
    };
    if zero { Err(Error::runtime("ZeroDivisionError")) } else { Ok(()) }
}

/// Rows that do not promote their operands.
fn types(name: &str, operands: &[Operand]) -> Result<()> {
    let dtypes: smallvec::SmallVec<[Option<DType>; 4]> = operands.iter().map(dtype_of).collect();
    match (name, dtypes.as_slice()) {
        ("heaviside", [Some(a), Some(b)]) if a != b => {
            Err(Error::runtime("heaviside is not yet implemented for tensors with different dtypes."))
        }
        ("lerp", [Some(a), rest @ ..]) => {
            // A 0-d weight is as good as a number.
            let free =
                |which| which == "weight" && matches!(operands[2], Operand::Tensor(t) if t.ndim() == 0);
            match rest
                .iter()
                .zip(["end", "weight"])
                .find(|(b, which)| b.is_some_and(|b| b != *a) && !free(*which))
            {
                Some((Some(b), which)) => Err(Error::runtime(format!(
                    "expected dtype {} for `{which}` but got dtype {}",
                    a.c_name(),
                    b.c_name()
                ))),
                _ if !a.is_differentiable() => {
                    Err(Fault::NoKernel { op: "lerp_kernel_scalar", dtype: *a }.into())
                }
                _ => match operands[2] {
                    Operand::Scalar(weight) => crate::operator::kernel::holds(*a, weight),
                    Operand::Tensor(_) => Ok(()),
                },
            }
        }
        ("addcdiv", [_, Some(a), Some(b), ..]) if !a.is_differentiable() && !b.is_differentiable() => {
            Err(Error::runtime(
                "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true \
             division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * \
             torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / tensor2) \
             for float inputs.",
            ))
        }
        _ => Ok(()),
    }
}

fn dtype_of(operand: &Operand) -> Option<DType> {
    if let Operand::Tensor(t) = operand { Some(t.dtype()) } else { None }
}

/// Refuses values that are not between 0 and 1. Those of the GPU are told of when the host next waits for it.
pub fn improbable(op: &'static str, body: &Body, message: &'static str) -> Result<()> {
    if body.numel() == 0 {
        return Ok(());
    }
    let body = &crate::operator::conj_neg::values(body)?;
    fork!([body],
    cpu: {
        let _ = op;
        let all = (0..body.layout.ndim()).collect::<Dims>();
        let end = |fold| Tensor::new(reduce(fold, body, &all, DType::F64)?).item();
        let inside = end(Fold::Min)?.as_f64() >= 0.0 && end(Fold::Max)?.as_f64() <= 1.0;
        if inside { Ok(()) } else { Err(Error::runtime(message)) }
    },
    gpu: {
        let wrong = crate::gpu::Wrong::Values(message);
        let origin = crate::gpu::Origin { op, line: crate::tensor::anomaly::line(), wrong };
        crate::gpu::expect(origin, body.gpu()?, "x >= T(0) && x <= T(1)")
    })
}
