//! Runs an expression's kernel on the device of the result.

use crate::base::{DType, Fault, Layout, Result, Scalar};
use crate::capture;
use crate::cpu::group::code::Formula;
use crate::cpu::pointwise::{Source, packed_bytes, run};
use crate::operator::bodies;
#[cfg(feature = "gpu")]
use crate::operator::pointwise::complex_parts;
use crate::operator::pointwise::row::Expr;
use crate::storage::access;
use crate::tensor::Body;
use smallvec::SmallVec;

/// The dtype in which a kernel computes.
pub fn compute_type(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F64,
        DType::F32 | DType::F16 | DType::BF16 | DType::F8E4M3 | DType::F8E5M2 => DType::F32,
        DType::C32 | DType::C64 => DType::C64,
        DType::C128 => DType::C128,
        _ => DType::I64,
    }
}

/// An operand of a kernel: a body or a number.
pub enum Input<'a> {
    Body(&'a Body),
    Scalar(Scalar),
}

/// Runs an expression's kernel on the device of `out`.
pub fn execute(
    name: &'static str,
    expr: &'static Expr,
    compute: DType,
    out: &Body,
    inputs: &[Input],
) -> Result<()> {
    let plain = |input: &Input| !matches!(input, Input::Body(body) if !body.conj_neg.is_none());
    if !(out.conj_neg.is_none() && inputs.iter().all(plain)) {
        return crate::operator::bodies::conj_neg::execute(name, expr, compute, out, inputs);
    }
    if access::is_captured() && out.numel() > 0 && !out.device().is_meta() {
        return capture_kernel(name, expr, compute, out, inputs);
    }
    run_kernel(name, expr, compute, out, inputs)
}

fn described_input<'a>(input: &Input<'a>) -> capture::Input<'a> {
    match input {
        Input::Body(body) => capture::Input::Body(body),
        Input::Scalar(number) => capture::Input::Number(*number),
    }
}

#[cold]
fn capture_kernel(
    name: &'static str,
    expr: &'static Expr,
    compute: DType,
    out: &Body,
    inputs: &[Input],
) -> Result<()> {
    /// An operand that is kept for replays.
    enum Kept {
        Body(Body),
        Scalar(Scalar),
    }
    let is_by_parts = compute.is_complex() && expr.of_parts.is_some();
    let stored_only = |input: &Input| matches!(input, Input::Body(body) if body.dtype.is_stored_only());
    let is_readable = !out.dtype.is_stored_only() && !inputs.iter().any(stored_only);
    if expr.loops.of(compute).is_some() && !is_by_parts && is_readable {
        let described: SmallVec<[capture::Input; 4]> = inputs.iter().map(described_input).collect();
        capture::describe(Formula::Row { loops: &expr.loops, compute }, out, &described)?;
    }
    let keep = |recorder: &mut capture::Recorder| {
        let out = recorder.stand_in(out)?;
        let keep = |input: &Input| match input {
            Input::Body(body) => recorder.stand_in(body).map(Kept::Body),
            Input::Scalar(number) => Ok(Kept::Scalar(*number)),
        };
        let kept = inputs.iter().map(keep).collect::<Result<SmallVec<[Kept; 4]>>>()?;
        Ok(move || {
            let see = |kept| match kept {
                &Kept::Scalar(number) => Input::Scalar(number),
                Kept::Body(body) => Input::Body(body),
            };
            let inputs: SmallVec<[Input; 4]> = kept.iter().map(see).collect();
            run_kernel(name, expr, compute, &out, &inputs)
        })
    };
    capture::run(keep, || run_kernel(name, expr, compute, out, inputs))
}

#[inline]
fn run_kernel(
    name: &'static str,
    expr: &'static Expr,
    compute: DType,
    out: &Body,
    inputs: &[Input],
) -> Result<()> {
    if out.numel() == 0 || out.device().is_meta() {
        return Ok(());
    }
    #[cfg(feature = "gpu")]
    if out.storage.gpu().is_some() {
        if compute.is_complex() {
            return match expr.by_parts {
                Some(formula) if complex_parts::execute(formula, out, inputs)? => Ok(()),
                _ => bodies::no_shader(name, out.dtype),
            };
        }
        return execute_gpu(expr, compute, out, inputs).map_err(|error| error.of_operator(name));
    }
    // A function of the parts uses the vectorized real kernel.
    if let (true, Some(row), [Input::Body(x)]) = (compute.is_complex(), expr.of_parts, inputs) {
        let [re, im] = bodies::parts(x)?;
        return run_kernel(
            name,
            &row().forward,
            compute.to_real(),
            out,
            &[Input::Body(&im), Input::Body(&re)],
        );
    }
    let last = || if let Input::Scalar(number) = inputs.last()? { Some(*number) } else { None };
    let Some(kernel) = expr.loop_for_number(last, compute).or_else(|| expr.loops.of(compute)) else {
        return Err(Fault::NoKernel { op: name, dtype: compute }.into());
    };
    let (view, expanded) = (out.host_of_any_dtype()?, stretch(out, inputs));
    let mut sources: SmallVec<[Source; 4]> = SmallVec::new();
    for (i, input) in inputs.iter().enumerate() {
        sources.push(match input {
            Input::Scalar(s) => Source::Scalar(*s),
            Input::Body(body) => {
                let mut view = body.host_of_any_dtype()?;
                if let Some(layout) = expanded.get(i).and_then(Option::as_ref) {
                    (view.shape, view.strides) = (&layout.shape, &layout.strides);
                }
                Source::Strided(view)
            }
        });
    }
    // SAFETY: all views lie inside live storages and have out's shape; the loop is the one for `compute`.
    unsafe {
        let predicate = expr.loops.predicate;
        let words = |element_loop| packed_bytes::run(element_loop, predicate, view, &sources);
        if !expr.loops.words.as_ref().is_some_and(words) {
            let narrow = || expr.loops.narrow?.of(predicate, &view, &sources);
            let own = if compute == DType::I64 { narrow() } else { None };
            let (compute, kernel) = own.unwrap_or((compute, kernel));
            run(kernel, predicate, compute, view, &sources);
        }
    }
    Ok(())
}

/// The expanded layouts of the inputs that must be broadcast to the output's shape.
fn stretch(out: &Body, inputs: &[Input]) -> SmallVec<[Option<Layout>; 4]> {
    let needed = |input: &Input| matches!(input, Input::Body(b) if b.layout.shape != out.layout.shape);
    if !inputs.iter().any(needed) {
        return SmallVec::new();
    }
    let layout = |input: &Input| match input {
        Input::Body(b) if needed(input) => Some(b.layout.broadcast_to(&out.layout.shape)),
        _ => None,
    };
    inputs.iter().map(layout).collect()
}

#[cfg(feature = "gpu")]
fn execute_gpu(expr: &Expr, compute: DType, out: &Body, inputs: &[Input]) -> Result<()> {
    use crate::cpu::pointwise::powers;
    use crate::gpu;
    use crate::tensor::Tensor;
    let expanded = stretch(out, inputs);
    let mut sources: SmallVec<[gpu::Source; 4]> = SmallVec::new();
    for (i, input) in inputs.iter().enumerate() {
        sources.push(match input {
            Input::Scalar(s) => gpu::Source::Scalar(*s),
            Input::Body(body) if body.device().is_cpu() => {
                gpu::Source::Scalar(Tensor::new((*body).clone()).item()?)
            }
            Input::Body(body) => {
                let mut view = body.gpu()?;
                if let Some(layout) = expanded.get(i).and_then(Option::as_ref) {
                    (view.shape, view.strides) = (&layout.shape, &layout.strides);
                }
                gpu::Source::View(view)
            }
        });
    }
    // All adapters support int32, but not all support int64.
    let compute = if compute == DType::I64 && out.dtype == DType::I32 { DType::I32 } else { compute };
    let power = match inputs.last() {
        Some(Input::Scalar(exponent)) if compute.is_float() => powers::find(&expr.loops, *exponent),
        _ => None,
    };
    // The expression of a power is unique, so it serves as the key.
    let (key, wgsl) = power.map_or((expr.key, expr.wgsl), |power| (power.wgsl, power.wgsl));
    let expr = gpu::Expr { key, inputs: expr.inputs, wgsl, predicate: expr.loops.predicate };
    gpu::pointwise(&expr, compute, out.gpu()?, &sources)
}
