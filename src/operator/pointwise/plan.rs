//! Plans a pointwise call: dtypes by promotion, the shape by broadcasting, and the device.

use crate::base::{Category, DType, Device, Dims, Error, Fault, Result, Scalar, broadcast};
use crate::operator::bodies::converted;
use crate::operator::pointwise::execute::{Input, compute_type};
use crate::operator::pointwise::row::{Class, Pointwise};
use crate::operator::row::operand::Operand;
use crate::tensor::{BodyRef, Tensor};
use smallvec::SmallVec;

/// The dtype of a number in promotion.
pub fn scalar_dtype(scalar: Scalar) -> DType {
    match scalar.category() {
        Category::Bool => DType::Bool,
        Category::Int => DType::I64,
        Category::Float => crate::base::default_dtype(),
        Category::Complex => crate::base::default_dtype().to_complex(),
    }
}

/// The promoted dtype: of tensors with dimensions first, then 0-d ones, then numbers. A lower rank counts
/// only if its category is higher.
pub fn result_type<'a>(operands: impl IntoIterator<Item = Operand<'a>>) -> Result<DType> {
    let mut ranks: [Option<DType>; 3] = [None; 3];
    let mut join = |rank: usize, dtype: DType| -> Result<()> {
        ranks[rank] = Some(ranks[rank].map_or(Ok(dtype), |d| d.promoted_with(dtype))?);
        Ok(())
    };
    for operand in operands {
        match operand {
            Operand::Tensor(t) => {
                let body = t.body();
                join(usize::from(body.layout.ndim() == 0), body.dtype)?;
            }
            Operand::Scalar(s) => join(2, scalar_dtype(s))?,
        }
    }
    let combine = |high: Option<DType>, low: Option<DType>| -> Result<Option<DType>> {
        let (Some(h), Some(l)) = (high, low) else { return Ok(high.or(low)) };
        Ok(Some(if h.is_float8() && l.is_complex() {
            h.promoted_with(l)?
        } else if h.is_float() && l.is_complex() {
            h.to_complex()
        } else if h.is_differentiable() {
            h
        } else if h == DType::Bool || l.is_differentiable() {
            h.promoted_with(l)?
        } else {
            h
        }))
    };
    Ok(combine(combine(ranks[0], ranks[1])?, ranks[2])?.unwrap_or(DType::F32))
}

pub struct Plan {
    /// The dtype to which operands are converted. Small integers are computed in a larger dtype.
    pub promoted: DType,
    pub compute: DType,
    pub result: DType,
    pub shape: Dims,
    pub device: Device,
}

impl Class {
    /// The dtypes of the computation and of the result, from the promoted dtype.
    fn types(self, op: &Pointwise, promoted: DType) -> Result<(DType, DType)> {
        if promoted.is_stored_only() && !op.takes_stored(promoted) {
            return Err(crate::operator::pointwise::dtype_checks::unknown(op, promoted));
        }
        let no_kernel = |dtype| {
            Error::from(Fault::NoKernel { op: crate::operator::pointwise::dtype_checks::kernel(op), dtype })
        };
        Ok(match self {
            Class::Modulus | Class::Angle if promoted.is_complex() => (promoted, promoted.to_real()),
            Class::Float | Class::Angle if !promoted.is_differentiable() => {
                let default = crate::base::default_dtype();
                (compute_type(default), default)
            }
            Class::Compare => (compute_type(promoted), DType::Bool),
            Class::Test if promoted.is_differentiable() => (compute_type(promoted), DType::Bool),
            Class::Test => (DType::F64, DType::Bool),
            Class::Bits | Class::Shift if promoted.is_differentiable() => {
                return Err(crate::operator::pointwise::dtype_checks::unknown(op, promoted));
            }
            Class::Shift if promoted == DType::Bool => {
                return Err(crate::operator::pointwise::dtype_checks::unknown(op, promoted));
            }
            Class::Plain | Class::Divide | Class::Modulus if promoted == DType::Bool => {
                return Err(no_kernel(promoted));
            }
            Class::Real if !promoted.is_differentiable() => return Err(no_kernel(promoted)),
            _ => (compute_type(promoted), promoted),
        })
    }
}

pub fn plan(op: &Pointwise, operands: &[Operand]) -> Result<Plan> {
    if op.class == Class::Number {
        crate::operator::pointwise::dtype_checks::booleans(operands)?;
    }
    // The scalar parameters of a row do not count in promotion, nor does the condition of `where`.
    let typed =
        if op.class == Class::Choose { &operands[..2] } else { &operands[..op.inputs.min(operands.len())] };
    let (mut device, mut shape): (Option<Device>, Option<Dims>) = (None, None);
    let mut only_zero_dim = true;
    for i in 0..operands.len() {
        // PyTorch's `where` takes the condition first; errors name shapes in that order.
        let at = if op.class == Class::Choose { (i + 2) % 3 } else { i };
        let Operand::Tensor(t) = operands[at] else { continue };
        let body = t.body();
        match device {
            None => device = Some(body.device()),
            Some(d) if d == body.device() => device = Some(d.joined(body.device())),
            // A 0-d CPU tensor may be combined with tensors on the GPU.
            Some(d) if d.is_cpu() && only_zero_dim => device = Some(body.device()),
            Some(_) if body.device().is_cpu() && body.layout.ndim() == 0 => {}
            // PyTorch's message names the GPU first.
            Some(d) if d.is_cpu() && !body.device().is_meta() => {
                return Err(Fault::Devices { a: body.device(), b: d }.into());
            }
            Some(d) => return Err(Fault::Devices { a: d, b: body.device() }.into()),
        }
        only_zero_dim &= body.layout.ndim() == 0;
        shape = Some(match shape {
            None => body.layout.shape.clone(),
            Some(s) if s == body.layout.shape => s,
            Some(s) => broadcast(&s, &body.layout.shape)?,
        });
    }
    let promoted = match typed {
        [Operand::Tensor(a), Operand::Tensor(b)] if a.dtype() == b.dtype() => a.dtype(),
        [Operand::Tensor(a)] => a.dtype(),
        _ => result_type(typed.iter().copied())?,
    };
    if promoted.is_complex() && op.forward.loops.c128.is_none() {
        return Err(crate::operator::pointwise::dtype_checks::complex(op, promoted));
    }
    let (compute, result) = op.class.types(op, promoted)?;
    if op.class == Class::Divide && !promoted.is_float() {
        crate::operator::pointwise::dtype_checks::divisor(operands[1], promoted)?;
    }
    if let Some(check) = op.clauses.check {
        check(operands)?;
    }
    let scales = operands.len() > op.inputs && op.class != Class::Float;
    if scales || op.class == Class::Choose {
        crate::operator::pointwise::dtype_checks::numbers(
            op,
            operands,
            if op.class == Class::Real { compute } else { promoted },
        )?;
    }
    // Integers that are computed as floats are not wrapped to a narrow dtype.
    let real = matches!(op.class, Class::Float | Class::Angle) && !promoted.is_differentiable();
    Ok(Plan {
        promoted: if real { result } else { promoted },
        compute,
        result,
        shape: shape.unwrap_or_default(),
        device: device.unwrap_or(Device::Cpu),
    })
}

pub fn bodies<'a>(operands: &[Operand<'a>]) -> SmallVec<[Option<BodyRef<'a>>; 4]> {
    let body = |o: &Operand<'a>| if let Operand::Tensor(t) = o { Some(t.body()) } else { None };
    operands.iter().map(body).collect()
}

/// True if the promoted dtype is an integer type that cannot hold every number.
fn is_narrow(promoted: DType) -> bool {
    matches!(promoted, DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::U16 | DType::U32)
}

/// The tensors that a kernel gets in place of the operands' if the promoted dtype is narrower than one of
/// them: 0-d integers, and tensors that are rounded to half precision. The operands keep their edges.
pub fn narrowed(op: &Pointwise, operands: &[Operand], promoted: DType) -> Result<Option<Vec<Tensor>>> {
    let half = promoted.is_half();
    if !half && !is_narrow(promoted) {
        return Ok(None);
    }
    let wide = |at: usize, t: &Tensor| match half {
        true => op.rounds(at, t, promoted),
        false => t.dtype().is_int() && t.dtype().size() >= promoted.size() && t.dtype() != promoted,
    };
    let given = || operands.iter().take(op.inputs).enumerate().filter_map(|(at, o)| Some((at, o.tensor()?)));
    if !given().any(|(at, t)| wide(at, t)) {
        return Ok(None);
    }
    let convert = |(at, t): (usize, &Tensor)| {
        if wide(at, t) { Ok(Tensor::new(converted(&t.body(), promoted)?)) } else { Ok(t.clone()) }
    };
    given().map(convert).collect::<Result<_>>().map(Some)
}

/// The operands with their tensors replaced.
pub fn with_tensors<'a>(operands: &[Operand<'a>], tensors: &'a [Tensor]) -> SmallVec<[Operand<'a>; 4]> {
    let mut next = tensors.iter();
    let instead = |operand: &Operand<'a>| match operand {
        Operand::Tensor(_) => next.next().map_or(*operand, Operand::Tensor),
        number => *number,
    };
    operands.iter().map(instead).collect()
}

/// The inputs of a kernel; numbers are converted to the promoted dtype, which may be narrower.
pub fn inputs<'b>(
    op: &Pointwise,
    operands: &[Operand],
    bodies: &'b [Option<BodyRef>],
    promoted: DType,
) -> Result<SmallVec<[Input<'b>; 4]>> {
    let narrow = is_narrow(promoted);
    let mut inputs = SmallVec::new();
    for (at, (operand, body)) in operands.iter().zip(bodies).enumerate() {
        inputs.push(match (operand, body) {
            (_, Some(body)) => Input::Body(body),
            (Operand::Scalar(number @ Scalar::Int(_)), None) if narrow && at < op.inputs => Input::Scalar(
                Scalar::Int(crate::operator::pointwise::dtype_checks::narrowed(op, at, *number, promoted)?),
            ),
            (Operand::Scalar(s), None) => Input::Scalar(op.beside(at, *s, promoted)),
            (Operand::Tensor(_), None) => Input::Scalar(Scalar::Float(f64::NAN)),
        });
    }
    Ok(inputs)
}
