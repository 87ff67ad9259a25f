//! Checks of operand dtypes and values for pointwise rows, done before anything is written.

use crate::base::{DType, Device, Dims, Error, Fault, Reduction, Result, Scalar};
use crate::operator::bodies::{fork, reduce};
use crate::operator::pointwise::clauses::{NoComplex, Rounds};
use crate::operator::pointwise::{Class, Operand, Pointwise};
use crate::tensor::{Body, Tensor};

/// PyTorch's name of a row's kernel in errors about dtypes.
pub fn kernel(op: &Pointwise) -> &'static str {
    if op.clauses.kernel.is_empty() { op.row.name } else { op.clauses.kernel }
}

/// The error for a dtype without a kernel: it names the kernel, or the row if they have the same name.
#[cold]
pub fn unknown(op: &Pointwise, dtype: DType) -> Error {
    match op.clauses.kernel {
        "" => Fault::NoKernelOf { op: op.row.name, dtype }.into(),
        op => Fault::NoKernel { op, dtype }.into(),
    }
}

/// The error for complex operands.
#[cold]
pub fn complex(op: &Pointwise, dtype: DType) -> Error {
    match op.clauses.no_complex {
        NoComplex::NoKernel => unknown(op, dtype),
        NoComplex::Of(name) => Fault::NoComplex(name).into(),
        NoComplex::Words(text) => Error::not_implemented(text),
        NoComplex::Type(text) => Error::unordered(text),
    }
}

/// Returns an error if the dtype `to` is of a lower category than `from`.
pub fn check_cast(from: DType, to: DType) -> Result<()> {
    if from.category() > to.category() {
        return Err(Error::runtime(format!(
            "result type {} can't be cast to the desired output type {}",
            from.scalar_name(),
            to.scalar_name()
        )));
    }
    Ok(())
}

/// Returns an error if the dtype is complex, because complex numbers have no order.
pub fn order(kernel: &'static str, dtype: DType) -> Result<()> {
    if dtype.is_complex() { Err(Fault::NoKernel { op: kernel, dtype }.into()) } else { Ok(()) }
}

/// An integer as C++ prints it as a float: with six digits.
fn general(value: i64) -> String {
    if value.abs() < 1_000_000 {
        return value.to_string();
    }
    let text = format!("{:.5e}", value as f64);
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{}e+{exponent:0>2}", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// Operand `at`, a number, converted to the narrow integer dtype of the promotion. It wraps like tensors do.
/// Rows with `no_wrap` refuse it instead, and bounds are clamped, as they may lie outside the dtype's range.
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
    let [min, max] = op.clauses.bounds;
    match Some(at as u32) {
        bound if bound == min && value > most => Err(outside("min")),
        bound if bound == max && value < least => Err(outside("max")),
        _ if min.or(max).is_some() => Ok(value.clamp(least, most)),
        _ if op.clauses.no_wrap && !number.fits(to) => {
            Err(crate::operator::bodies::overflow(to.fixed_name()))
        }
        _ => Ok(to.wrap(value)),
    }
}

/// The dtype in which a kernel takes a number beside elements of `dtype`.
pub fn without_halves(dtype: DType) -> DType {
    if dtype.is_half() { DType::F32 } else { dtype }
}

/// Returns an error if numbers that are selected or that scale operands do not fit the dtype.
pub fn numbers(op: &Pointwise, operands: &[Operand], promoted: DType) -> Result<()> {
    let numbers = match op.class {
        // `where` with half precision rounds the numbers, to infinity if they are too large.
        Class::Choose if promoted.is_half() => return Ok(()),
        Class::Choose => &operands[..2],
        _ => &operands[op.inputs.min(operands.len())..],
    };
    let promoted = if op.clauses.rounds == Rounds::All { promoted } else { without_halves(promoted) };
    numbers.iter().try_for_each(|operand| match operand {
        Operand::Scalar(number) => crate::operator::bodies::holds(promoted, *number),
        Operand::Tensor(_) => Ok(()),
    })
}

/// Subtraction and negation are not defined for bools.
pub fn booleans(operands: &[Operand]) -> Result<()> {
    let is_bool =
        |o: &&Operand| matches!(o, Operand::Scalar(Scalar::Bool(_))) || dtype_of(o) == Some(DType::Bool);
    let count = operands.iter().filter(is_bool).count();
    let advice = "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.";
    Err(Error::not_implemented(match count {
        0 => return Ok(()),
        _ if operands.len() == 1 => format!("Negation, the `-` operator, on a bool tensor is not supported. {advice}"),
        2 => "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` \
              operator instead."
            .into(),
        _ => format!("Subtraction, the `-` operator, with a bool tensor is not supported. {advice}"),
    }))
}

/// Returns an error if an integer divisor is zero. On the GPU the result is undefined, as in CUDA, because a
/// check would have to wait.
pub fn divisor(divisor: Operand, promoted: DType) -> Result<()> {
    let zero = match divisor {
        Operand::Scalar(number) => promoted.wrap(number.as_i64()) == 0,
        Operand::Tensor(t) if !t.device().is_cpu() => false,
        Operand::Tensor(t) => {
            let dims = (0..t.ndim()).collect::<Dims>();
            !Tensor::new(reduce(Reduction::All, &t.body(), &dims, DType::Bool)?).item()?.as_bool()
        }
    };
    if zero { Err(Error::runtime("ZeroDivisionError")) } else { Ok(()) }
}

pub fn dtype_of(operand: &Operand) -> Option<DType> {
    if let Operand::Tensor(t) = operand { Some(t.dtype()) } else { None }
}

/// Returns an error if values are not between 0 and 1. On the GPU the error is raised when the host next
/// waits for it.
pub fn improbable(op: &'static str, body: &Body, message: &'static str) -> Result<()> {
    if body.numel() == 0 {
        return Ok(());
    }
    let body = &crate::operator::bodies::conj_neg::values(body)?;
    if body.device() == Device::Cpu {
        let once = body.with_layout(body.layout.unexpanded());
        let all = (0..once.layout.ndim()).collect::<Dims>();
        let (least, most) = (
            reduce(Reduction::Min, &once, &all, DType::F64)?,
            reduce(Reduction::Max, &once, &all, DType::F64)?,
        );
        return fork!(reads [least, most], with [],
        cpu: {
            let (least, most) = (*least.host()?.ptr.cast::<f64>(), *most.host()?.ptr.cast::<f64>());
            if least >= 0.0 && most <= 1.0 { Ok(()) } else { Err(Error::runtime(message)) }
        },
        gpu: Ok(()));
    }
    fork!(reads [body], with [],
    cpu: {
        let _ = op;
        Ok(())
    },
    gpu: {
        let wrong = crate::gpu::Wrong::Values(message);
        let origin = crate::gpu::Origin { op, line: crate::tensor::anomaly::line(), wrong };
        crate::gpu::expect(origin, body.gpu()?, "x >= T(0) && x <= T(1)")
    })
}
