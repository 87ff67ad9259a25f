//! A fast path for small pointwise calls: contiguous float operands of one shape and dtype on the host, where
//! planning would cost more than computing. All other calls are left to [`crate::operator::pointwise`].

use crate::base::{DType, Device, Layout, Result, Scalar, contiguous_strides};
use crate::cpu::pointwise::{Loop, MAX_IN};
use crate::operator::inplace::write::Write;
use crate::operator::pointwise::{Class, Expr, Input, Operand, Pointwise, record};
use crate::storage::{Storage, access};
use crate::tensor::{Body, BodyRef, Tensor, mode};
use std::mem::MaybeUninit;

/// Above this number of elements, the general path's threads and tiles are faster.
const MAX_NUMEL: usize = 2048;
/// The length of the buffer into which numbers are repeated.
const BUFFER_LEN: usize = 32;

/// Computes the call, or returns `None` if the fast path does not apply.
#[inline]
pub fn apply(op: &'static Pointwise, operands: &[Operand]) -> Option<Result<Tensor>> {
    if operands.len() > 2 || operands.len() != op.forward.inputs.len() || access::is_captured() {
        return None;
    }
    let lead =
        operands.iter().find_map(|o| if let Operand::Tensor(t) = o { t.original_body() } else { None })?;
    let dtype = lead.dtype;
    let kernel = float_loop(&op.forward, dtype)?;
    let result = result_of(op.class, dtype)?;
    let n = lead.layout.numel();
    if n > MAX_NUMEL {
        return None;
    }
    let mut buffers = [const { MaybeUninit::<[f64; BUFFER_LEN]>::uninit() }; 2];
    let mut inputs = [std::ptr::null::<u8>(); MAX_IN];
    let mut bodies = [const { None::<BodyRef> }; 2];
    for (i, operand) in operands.iter().enumerate() {
        inputs[i] = match operand {
            Operand::Tensor(t) => {
                let body = t.original_body()?;
                bodies[i] = Some(BodyRef::Original(body));
                dense_like(lead, body)?
            }
            // Next to a number, the strides of dimensions of size 1 decide the layout of the result.
            Operand::Scalar(_) if is_odd(&lead.layout) => return None,
            Operand::Scalar(number) => operand_of(*number, dtype, n, &mut buffers[i])?,
        };
    }
    let last = || if let Operand::Scalar(number) = operands.last()? { Some(*number) } else { None };
    let kernel = op.forward.loop_for_number(last, dtype).unwrap_or(kernel);
    Some(run(op, operands, lead, result, kernel, &inputs, &bodies[..operands.len()]))
}

#[inline(always)]
fn float_loop(expr: &Expr, dtype: DType) -> Option<&Loop> {
    match dtype {
        DType::F32 => expr.loops.f32.as_ref(),
        DType::F64 => expr.loops.f64.as_ref(),
        _ => None,
    }
}

/// The result's dtype, for classes that a float kernel can compute.
#[inline(always)]
fn result_of(class: Class, dtype: DType) -> Option<DType> {
    match class {
        Class::Float | Class::Arith | Class::Number | Class::Plain | Class::Real | Class::Divide => {
            Some(dtype)
        }
        Class::Modulus | Class::Angle => Some(dtype),
        Class::Compare => Some(DType::Bool),
        _ => None,
    }
}

/// True if a contiguous layout has unusual strides in dimensions of size 1.
fn is_odd(layout: &Layout) -> bool {
    layout.shape.contains(&1) && layout.strides != contiguous_strides(&layout.shape)
}

fn run(
    op: &'static Pointwise,
    operands: &[Operand],
    lead: &Body,
    result: DType,
    kernel: &Loop,
    inputs: &[*const u8; MAX_IN],
    bodies: &[Option<BodyRef>],
) -> Result<Tensor> {
    let n = lead.layout.numel();
    let storage = Storage::new(n * result.size(), Device::Cpu)?;
    let layout = Layout::contiguous(&lead.layout.shape);
    if let (Some(out), true) = (storage.host(), n > 0) {
        // SAFETY: every input points at `n` dense elements of the kernel's type, and the output has space for `n` results.
        unsafe { (kernel.each)(n, out, inputs) };
    }
    let out = Body::plain(storage, layout, result);
    let edge = record(op, operands, bodies, &out)?;
    Ok(Tensor::made_by(out, edge))
}

/// Computes one expression over small contiguous operands of `dtype` with the same shape, for derivatives.
#[inline]
pub fn compute(expr: &Expr, dtype: DType, inputs: &[Input]) -> Option<Result<Body>> {
    let kernel = float_loop(expr, dtype)?;
    let lead = inputs.iter().find_map(|i| if let Input::Body(b) = i { Some(*b) } else { None })?;
    let n = lead.layout.numel();
    if n > MAX_NUMEL || inputs.len() > 4 || access::is_captured() {
        return None;
    }
    let mut buffers = [const { MaybeUninit::<[f64; BUFFER_LEN]>::uninit() }; 4];
    let mut pointers = [std::ptr::null::<u8>(); MAX_IN];
    for (i, input) in inputs.iter().enumerate() {
        pointers[i] = match input {
            Input::Body(body) if body.dtype == dtype => dense_like(lead, body)?,
            Input::Body(_) => return None,
            Input::Scalar(number) if n <= BUFFER_LEN => fill(&mut buffers[i], dtype, *number, n),
            Input::Scalar(_) => return None,
        };
    }
    let last = || if let Input::Scalar(number) = inputs.last()? { Some(*number) } else { None };
    let kernel = expr.loop_for_number(last, dtype).unwrap_or(kernel);
    let storage = match Storage::new(n * dtype.size(), Device::Cpu) {
        Ok(storage) => storage,
        Err(error) => return Some(Err(error)),
    };
    if let (Some(out), true) = (storage.host(), n > 0) {
        // SAFETY: every input points at `n` dense elements of the kernel's type, and the output has space for as many.
        unsafe { (kernel.each)(n, out, &pointers) };
    }
    let layout = Layout::contiguous(&lead.layout.shape);
    Some(Ok(Body::plain(storage, layout, dtype)))
}

/// The address of a body's elements, if it is contiguous, on the host, and of the same dtype and shape as
/// `lead`.
#[inline(always)]
fn dense_like(lead: &Body, body: &Body) -> Option<*const u8> {
    let fits =
        body.dtype == lead.dtype && body.layout.shape == lead.layout.shape && body.layout.is_contiguous();
    let start = if fits { body.storage.host()? } else { return None };
    Some(start.wrapping_add(body.layout.offset * body.dtype.size()).cast_const())
}

/// A number as `n` elements. `None` for bools, which some rows refuse, and for complex numbers.
#[inline(always)]
fn operand_of(
    number: Scalar,
    dtype: DType,
    n: usize,
    buffer: &mut MaybeUninit<[f64; BUFFER_LEN]>,
) -> Option<*const u8> {
    let simple = n <= BUFFER_LEN && !matches!(number, Scalar::Bool(_) | Scalar::Complex(..));
    simple.then(|| fill(buffer, dtype, number, n))
}

/// A number as `n` elements.
fn fill(buffer: &mut MaybeUninit<[f64; BUFFER_LEN]>, dtype: DType, number: Scalar, n: usize) -> *const u8 {
    let start = buffer.as_mut_ptr();
    for i in 0..n {
        // SAFETY: `n` is at most BUFFER_LEN, and an element is at most as large as an f64.
        unsafe {
            match dtype {
                DType::F32 => start.cast::<f32>().add(i).write(number.as_f64() as f32),
                _ => start.cast::<f64>().add(i).write(number.as_f64()),
            }
        }
    }
    start.cast()
}

/// Runs the call in place, with a loop that may read what it writes, or returns `None` if the fast path does
/// not apply. It is not recorded.
#[inline]
pub fn apply_inplace(op: &'static Pointwise, target: &Tensor, operands: &[Operand]) -> Option<Result<()>> {
    if operands.len() > 2 || operands.len() != op.forward.inputs.len() || access::is_captured() {
        return None;
    }
    let body = target.original_body()?;
    let (dtype, n) = (body.dtype, body.layout.numel());
    let kernel = float_loop(&op.forward, dtype)?;
    if n > MAX_NUMEL || result_of(op.class, dtype)? != dtype {
        return None;
    }
    if mode::grad_enabled() && operands.iter().any(|o| o.tensor().is_some_and(Tensor::requires_grad)) {
        return None;
    }
    let mut buffers = [const { MaybeUninit::<[f64; BUFFER_LEN]>::uninit() }; 2];
    let mut inputs = [std::ptr::null::<u8>(); MAX_IN];
    let start = dense_like(body, body)?.cast_mut();
    for (i, operand) in operands.iter().enumerate() {
        inputs[i] = match operand {
            Operand::Tensor(t) if t.same(target) => start,
            Operand::Tensor(t) => {
                let other = t.original_body()?;
                // Another part of the target's memory could be read after it was written.
                if other.storage.same(&body.storage) {
                    return None;
                }
                dense_like(body, other)?
            }
            Operand::Scalar(number) => operand_of(*number, dtype, n, &mut buffers[i])?,
        };
    }
    let last = || if let Operand::Scalar(number) = operands.last()? { Some(*number) } else { None };
    let over = op.forward.loop_for_number(last, dtype).unwrap_or(kernel).over?;
    let write = Write::begin(target, false);
    Some(write.and_then(|write| {
        write.put(body, None, |_| {
            if n > 0 {
                // SAFETY: all operands hold `n` dense elements of the kernel's type, and share the target's or none of them.
                unsafe { over(n, start, &inputs) };
            }
            Ok(())
        })?;
        write.end(None)
    }))
}
