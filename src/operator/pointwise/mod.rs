//! The pointwise family: shapes, promotion, in-place forms and recording for every row that maps elements to elements.
//! A row states only its formula and its derivatives.

pub mod backward;
#[cfg(feature = "gpu")]
pub mod complex_parts;
pub mod inplace;
pub mod kernel_table;
pub mod layout_formula;
pub mod memory_format;
pub mod small;

use crate::base::{Category, DType, Device, Dims, Error, Fault, Layout, Result, Scalar, broadcast};
use crate::cpu::pointwise::{Loop, Loops, Source, powers, run, words};
use crate::operator::clauses::Clauses;
use crate::operator::grad_expr::V;
use crate::operator::names::OUTPUTS;
use crate::operator::pointwise::layout_formula::LayoutFormula;
use crate::operator::row::{Arg, Out, Row, Value, take};
use crate::tensor::{Body, BodyRef, Derivative, Edge, Recorder, Tensor, mode, saved_hooks};
use smallvec::SmallVec;

pub use crate::operator::operand::Operand;
pub use crate::operator::pointwise::backward::backward;
pub use crate::operator::pointwise::inplace::{
    apply_inplace, check_cast, check_writable, keep_old, overlaps,
};
pub(crate) use crate::operator::pointwise::kernel_table::loops;

/// A default as a row writes it: whole numbers stay so.
pub const fn number(written: &str, value: f64) -> Scalar {
    let (digits, mut i) = (written.as_bytes(), 0);
    while i < digits.len() {
        if digits[i] == b'.' || digits[i] == b'e' {
            return Scalar::Float(value);
        }
        i += 1;
    }
    Scalar::Int(value as i64)
}

/// The source that is the incoming gradient.
pub const GRAD: u16 = u16::MAX;

/// How a row's dtypes follow from its operands'.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Floating point; integers become the default dtype.
    Float,
    /// The promoted type, whatever it is.
    Arith,
    /// As `Arith`, but bool is refused.
    Number,
    /// As `Arith`, but bool has no kernel.
    Plain,
    /// Floating point only.
    Real,
    /// As `Plain`, but an integer divisor must not be zero.
    Divide,
    /// As `Arith`, where operands are not promoted: a clause `check` says to what.
    Alike,
    /// As `Alike`, floating point only.
    FloatAlike,
    /// Compared in the promoted type; gives bool.
    Compare,
    /// Integers and bool.
    Bits,
    /// Integers.
    Shift,
    /// The last operand is a condition that has no say in the type.
    Choose,
    /// Floating point only, keeps the type, gives bool.
    Test,
    /// As `Plain`; of complex numbers the result is real.
    Modulus,
    /// As `Float`; of complex numbers the result is real.
    Angle,
}

/// One expression in its readings for kernels.
#[derive(Clone, Copy)]
pub struct Expr {
    pub key: &'static str,
    pub inputs: &'static [&'static str],
    pub wgsl: &'static str,
    pub loops: Loops,
    /// What it makes of complex numbers where shaders know real ones only.
    #[cfg(feature = "gpu")]
    pub by_parts: Option<complex_parts::Formula>,
    /// The row that computes it of the imaginary and the real part of complex numbers.
    pub of_parts: Option<fn() -> &'static Pointwise>,
}

pub struct Gradient {
    /// Which operand it is for.
    pub of: u16,
    /// Where the formula's names come from; the first is usually the gradient.
    pub sources: &'static [u16],
    /// What is saved, a bit each: the sources, and what PyTorch saves beside them.
    pub saves: u64,
    pub expr: Expr,
    /// The same formula over differentiable values.
    pub formal: fn(&[V]) -> V,
    /// The same over layouts.
    pub layout: fn(&[LayoutFormula]) -> LayoutFormula,
}

pub struct Pointwise {
    pub row: Row,
    pub class: Class,
    /// Operands; what follows them in `row.params` are scalar arguments.
    pub inputs: usize,
    pub defaults: &'static [Scalar],
    pub forward: Expr,
    pub derivative: Derivative,
    /// The same under the name that PyTorch has for a number as the last operand.
    pub by_number: Derivative,
    /// What the row says beside its formula.
    pub clauses: Clauses,
    /// In which order operands are saved.
    pub order: &'static [u8],
    /// What is saved whichever gradients are wanted.
    pub always: u64,
    pub gradients: &'static [Gradient],
}

impl Expr {
    /// The loop for a number as the last operand, of an expression that has some.
    #[inline(always)]
    pub fn loop_for_number(
        &self,
        last: impl FnOnce() -> Option<Scalar>,
        compute: DType,
    ) -> Option<&'static Loop> {
        if self.loops.powers.is_empty() { None } else { powers::chosen(&self.loops, last()?, compute) }
    }

    /// Whether the formula is just one of its names.
    pub fn is_identity(&self) -> bool {
        self.inputs.len() == 1 && self.inputs[0] == self.wgsl
    }
}

/// The type that a kernel computes in.
pub fn compute_type(dtype: DType) -> DType {
    match dtype {
        DType::F64 => DType::F64,
        DType::F32 | DType::F16 | DType::BF16 => DType::F32,
        DType::C64 => DType::C64,
        DType::C128 => DType::C128,
        _ => DType::I64,
    }
}

/// A number's type when it meets tensors.
pub fn scalar_dtype(scalar: Scalar) -> DType {
    match scalar.category() {
        Category::Bool => DType::Bool,
        Category::Int => DType::I64,
        Category::Float => crate::ops::creation::create::default_dtype(),
        Category::Complex => crate::ops::creation::create::default_dtype().to_complex(),
    }
}

/// The type that operands promote to: dimensioned tensors first, then 0-d ones, then numbers; a lower rank counts only
/// by a higher category.
pub fn result_type<'a>(operands: impl IntoIterator<Item = Operand<'a>>) -> DType {
    let mut ranks: [Option<DType>; 3] = [None; 3];
    let mut join = |rank: usize, dtype: DType| {
        ranks[rank] = Some(ranks[rank].map_or(dtype, |d| d.promote(dtype)));
    };
    for operand in operands {
        match operand {
            Operand::Tensor(t) => {
                let body = t.body();
                join(usize::from(body.layout.ndim() == 0), body.dtype);
            }
            Operand::Scalar(s) => join(2, scalar_dtype(s)),
        }
    }
    let combine = |high: Option<DType>, low: Option<DType>| match (high, low) {
        (Some(h), Some(l)) => Some(if h.is_float() && l.is_complex() {
            h.to_complex()
        } else if h.is_differentiable() {
            h
        } else if h == DType::Bool || l.is_differentiable() {
            h.promote(l)
        } else {
            h
        }),
        (h, l) => h.or(l),
    };
    combine(combine(ranks[0], ranks[1]), ranks[2]).unwrap_or(DType::F32)
}

/// What a call computes: in which type, into which type and shape, where.
pub struct Plan {
    /// What the operands are converted to; small integers are computed in a larger type.
    pub promoted: DType,
    pub compute: DType,
    pub result: DType,
    pub shape: Dims,
    pub device: Device,
}

impl Class {
    /// The types computed in and returned, from the promoted type of the operands.
    fn types(self, op: &Pointwise, promoted: DType) -> Result<(DType, DType)> {
        let no_kernel =
            |dtype| Error::from(Fault::NoKernel { op: crate::operator::dtype_checks::kernel(op), dtype });
        Ok(match self {
            Class::Modulus | Class::Angle if promoted.is_complex() => (promoted, promoted.to_real()),
            Class::Float | Class::Angle if !promoted.is_differentiable() => {
                let default = crate::ops::creation::create::default_dtype();
                (compute_type(default), default)
            }
            Class::Compare => (compute_type(promoted), DType::Bool),
            Class::Test if promoted.is_differentiable() => (compute_type(promoted), DType::Bool),
            Class::Test => (DType::F64, DType::Bool),
            Class::Bits | Class::Shift if promoted.is_differentiable() => {
                return Err(crate::operator::dtype_checks::unknown(op, promoted));
            }
            Class::Shift if promoted == DType::Bool => {
                return Err(crate::operator::dtype_checks::unknown(op, promoted));
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
        crate::operator::dtype_checks::booleans(operands)?;
    }
    // A row's parameters have no say in its type, nor has the condition of a choice.
    let typed =
        if op.class == Class::Choose { &operands[..2] } else { &operands[..op.inputs.min(operands.len())] };
    let (mut device, mut shape): (Option<Device>, Option<Dims>) = (None, None);
    let mut only_zero_dim = true;
    for i in 0..operands.len() {
        // PyTorch's `where` has its condition first; errors name shapes in that order.
        let at = if op.class == Class::Choose { (i + 2) % 3 } else { i };
        let Operand::Tensor(t) = operands[at] else { continue };
        let body = t.body();
        match device {
            None => device = Some(body.device()),
            Some(d) if d == body.device() => device = Some(d.joined(body.device())),
            // A 0-d tensor on the CPU goes along with the GPU's tensors.
            Some(d) if d.is_cpu() && only_zero_dim => device = Some(body.device()),
            Some(_) if body.device().is_cpu() && body.layout.ndim() == 0 => {}
            // The message names the GPU first.
            Some(d) if d.is_cpu() => return Err(Fault::Devices { a: body.device(), b: d }.into()),
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
        _ => result_type(typed.iter().copied()),
    };
    if promoted.is_complex() && op.forward.loops.c128.is_none() {
        return Err(crate::operator::dtype_checks::complex(op, promoted));
    }
    let (compute, result) = op.class.types(op, promoted)?;
    if op.class == Class::Divide && !promoted.is_float() {
        crate::operator::dtype_checks::divisor(operands[1])?;
    }
    if let Some(check) = op.clauses.check {
        check(operands)?;
    }
    let scales = operands.len() > op.inputs && op.class != Class::Float;
    if scales || op.class == Class::Choose {
        crate::operator::dtype_checks::numbers(
            op,
            operands,
            if op.class == Class::Real { compute } else { promoted },
        )?;
    }
    Ok(Plan {
        promoted,
        compute,
        result,
        shape: shape.unwrap_or_default(),
        device: device.unwrap_or(Device::Cpu),
    })
}

/// A kernel's operand: bytes or a number.
pub enum Input<'a> {
    Body(&'a Body),
    Scalar(Scalar),
}

/// Runs an expression's kernel on the device of `out`.
pub fn execute(name: &'static str, expr: &Expr, compute: DType, out: &Body, inputs: &[Input]) -> Result<()> {
    match run_kernel(name, expr, compute, out, inputs) {
        Err(error) if error.is_lazy() => crate::operator::conj_neg::execute(name, expr, compute, out, inputs),
        done => done,
    }
}

#[inline]
fn run_kernel(name: &'static str, expr: &Expr, compute: DType, out: &Body, inputs: &[Input]) -> Result<()> {
    if out.numel() == 0 {
        return Ok(());
    }
    #[cfg(feature = "gpu")]
    if out.storage.gpu().is_some() {
        if compute.is_complex() {
            return match expr.by_parts {
                Some(formula) if complex_parts::execute(formula, out, inputs)? => Ok(()),
                _ => Err(Fault::NoShader { op: name, dtype: out.dtype }.into()),
            };
        }
        return execute_gpu(expr, compute, out, inputs);
    }
    // What is a function of the parts has kernels with vectors.
    if let (true, Some(row), [Input::Body(x)]) = (compute.is_complex(), expr.of_parts, inputs) {
        let [re, im] = crate::operator::kernel::parts(x)?;
        return execute(name, &row().forward, compute.to_real(), out, &[Input::Body(&im), Input::Body(&re)]);
    }
    let last = || if let Input::Scalar(number) = inputs.last()? { Some(*number) } else { None };
    let Some(kernel) = expr.loop_for_number(last, compute).or_else(|| expr.loops.of(compute)) else {
        return Err(Fault::NoKernel { op: name, dtype: compute }.into());
    };
    let (view, stretched) = (out.host()?, stretch(out, inputs));
    let mut sources: SmallVec<[Source; 4]> = SmallVec::new();
    for (i, input) in inputs.iter().enumerate() {
        sources.push(match input {
            Input::Scalar(s) => Source::Scalar(*s),
            Input::Body(body) => {
                let mut view = body.host()?;
                if let Some(layout) = stretched.get(i).and_then(Option::as_ref) {
                    (view.shape, view.strides) = (&layout.shape, &layout.strides);
                }
                Source::Strided(view)
            }
        });
    }
    // SAFETY: all views lie inside live storages and have out's shape; the loop is the one for `compute`.
    unsafe {
        let predicate = expr.loops.predicate;
        if !expr.loops.words.is_some_and(|looop| words::run(looop, predicate, view, &sources)) {
            let narrow = || expr.loops.narrow?.of(predicate, &view, &sources);
            let own = if compute == DType::I64 { narrow() } else { None };
            let (compute, kernel) = own.unwrap_or((compute, kernel));
            run(kernel, predicate, compute, view, &sources);
        }
    }
    Ok(())
}

/// The layouts of the inputs that must be stretched to the output's shape.
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
    use crate::gpu;
    let stretched = stretch(out, inputs);
    let mut sources: SmallVec<[gpu::Source; 4]> = SmallVec::new();
    for (i, input) in inputs.iter().enumerate() {
        sources.push(match input {
            Input::Scalar(s) => gpu::Source::Scalar(*s),
            Input::Body(body) if body.device().is_cpu() => {
                gpu::Source::Scalar(Tensor::new((*body).clone()).item()?)
            }
            Input::Body(body) => {
                let mut view = body.gpu()?;
                if let Some(layout) = stretched.get(i).and_then(Option::as_ref) {
                    (view.shape, view.strides) = (&layout.shape, &layout.strides);
                }
                gpu::Source::View(view)
            }
        });
    }
    // int32 is native on every adapter, int64 is not.
    let compute = if compute == DType::I64 && out.dtype == DType::I32 { DType::I32 } else { compute };
    let power = match inputs.last() {
        Some(Input::Scalar(exponent)) if compute.is_float() => powers::known(&expr.loops, *exponent),
        _ => None,
    };
    // The text of a power is as good a key.
    let (key, wgsl) = power.map_or((expr.key, expr.wgsl), |power| (power.wgsl, power.wgsl));
    let expr = gpu::Expr { key, inputs: expr.inputs, wgsl, predicate: expr.loops.predicate };
    gpu::pointwise(&expr, compute, out.gpu()?, &sources)
}

/// Computes a row, recorded where gradients are wanted.
pub fn apply(op: &'static Pointwise, operands: &[Operand]) -> Result<Tensor> {
    if let Some(done) = crate::operator::pointwise::small::apply(op, operands) {
        return done;
    }
    if operands.iter().any(Operand::is_batched) {
        return crate::transforms::vmap::apply(op, operands);
    }
    let plan = plan(op, operands)
        .map_err(|error| crate::operator::record::refused_pointwise(op, operands, error))?;
    if let Some(tensors) = narrowed(op, operands, plan.promoted)? {
        return apply(op, &with_tensors(operands, &tensors));
    }
    let mut out = Body::new(&plan.shape, plan.result, plan.device)?;
    let bodies = bodies(operands);
    if let Some(layout) = crate::operator::pointwise::memory_format::kept(op, &plan, &bodies) {
        out.layout = layout;
    }
    match crate::operator::record::supplied_pointwise(op, operands, plan.result)? {
        Some(body) => out = body,
        None => execute(
            op.row.name,
            &op.forward,
            plan.compute,
            &out,
            &inputs(op, operands, &bodies, plan.promoted)?,
        )?,
    }
    let edge = record(op, operands, &bodies, &out)?;
    drop(bodies);
    let out = Tensor::made_by(out, edge);
    if operands.iter().any(|o| matches!(o, Operand::Tensor(t) if t.is_dual())) {
        crate::transforms::forward::pointwise(op, operands, &out)?;
    }
    Ok(out)
}

pub fn bodies<'a>(operands: &[Operand<'a>]) -> SmallVec<[Option<BodyRef<'a>>; 4]> {
    let body = |o: &Operand<'a>| if let Operand::Tensor(t) = o { Some(t.body()) } else { None };
    operands.iter().map(body).collect()
}

/// Whether operands are promoted to integers narrower than numbers may be.
fn is_narrow(promoted: DType) -> bool {
    matches!(promoted, DType::U8 | DType::I8 | DType::I16 | DType::I32)
}

/// The operands with 0-d ones of wider integers converted, where there are any: those have no say in the type.
pub fn narrowed(op: &Pointwise, operands: &[Operand], promoted: DType) -> Result<Option<Vec<Tensor>>> {
    let wide = |t: &Tensor| t.dtype().is_int() && t.dtype().size() > promoted.size();
    let given = operands.get(..op.inputs).unwrap_or_default();
    if !is_narrow(promoted) || !given.iter().filter_map(Operand::tensor).any(wide) {
        return Ok(None);
    }
    let convert =
        |t: &Tensor| if wide(t) { crate::ops::creation::create::convert(t, promoted) } else { Ok(t.clone()) };
    given.iter().filter_map(Operand::tensor).map(convert).collect::<Result<_>>().map(Some)
}

/// The same call with other tensors.
pub fn with_tensors<'a>(operands: &[Operand<'a>], tensors: &'a [Tensor]) -> SmallVec<[Operand<'a>; 4]> {
    let mut next = tensors.iter();
    let instead = |operand: &Operand<'a>| match operand {
        Operand::Tensor(_) => next.next().map_or(*operand, Operand::Tensor),
        number => *number,
    };
    operands.iter().map(instead).collect()
}

/// What a kernel is given: the operands in the type that they are promoted to, which is narrower than numbers may be.
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
                Scalar::Int(crate::operator::dtype_checks::narrowed(op, at, *number, promoted)?),
            ),
            (Operand::Scalar(s), None) => Input::Scalar(*s),
            (Operand::Tensor(_), None) => Input::Scalar(Scalar::Float(f64::NAN)),
        });
    }
    Ok(inputs)
}

/// The numbers among a call's operands, as its node keeps them.
pub type Numbers = SmallVec<[Option<Scalar>; 4]>;

/// The node of a call, when gradients are wanted. `out` holds the result already.
pub fn record(
    op: &'static Pointwise,
    operands: &[Operand],
    bodies: &[Option<BodyRef>],
    out: &Body,
) -> Result<Option<Edge>> {
    if !op.is_recorded() || !mode::grad_enabled() || !out.dtype.is_differentiable() {
        return Ok(None);
    }
    let wants = |o: &Operand| matches!(o, Operand::Tensor(t) if t.requires_grad());
    if !operands.iter().any(wants) {
        return Ok(None);
    }
    let (derivative, edges) = op.node_of(operands);
    let mut recorder = Recorder::new(derivative);
    for operand in &operands[..edges] {
        recorder.input(if let Operand::Tensor(t) = operand { Some(t) } else { None });
    }
    let wanted = recorder.wanted();
    let read = op.gradients.iter().filter(|g| wanted >> g.of & 1 == 1).fold(0, |bits, g| bits | g.saves);
    // Saved once each, in order; numbers go into the node's params.
    let (need, mut scalars) = (op.always | read, false);
    for i in op.order.iter().map(|&i| usize::from(i)).filter(|i| need >> i & 1 == 1) {
        match (bodies.get(i), operands.get(i)) {
            (Some(Some(body)), Some(Operand::Tensor(tensor))) => {
                recorder.save_input(tensor, body, i);
            }
            _ => scalars = true,
        }
    }
    if need & OUTPUTS != 0 {
        recorder.save_output(out, 0);
    }
    if scalars {
        let numbers: Numbers =
            operands.iter().map(|o| if let Operand::Scalar(s) = o { Some(*s) } else { None }).collect();
        recorder.params(Box::new(numbers));
        // A factor or a divisor is a tensor to PyTorch.
        if op.clauses.wraps {
            recorder.saves_number();
        }
    }
    recorder
        .check(operands.iter().filter_map(|o| if let Operand::Tensor(t) = o { Some(*t) } else { None }))?;
    let node = recorder.publish(&[out]);
    saved_hooks::pack(&node, |i| operands.get(i).and_then(Operand::tensor), &[out])?;
    Ok(Some(Edge { node, output: 0 }))
}

/// The call from parsed arguments.
pub fn call(op: &'static Pointwise, args: &[Arg]) -> Result<Out> {
    let values = values(op, args)?;
    let operands: SmallVec<[Operand; 4]> = values.iter().map(Operand::from).collect();
    if !operands[..op.inputs].iter().any(|o| matches!(o, Operand::Tensor(_))) {
        return Err(Error::type_error(format!(
            "{}(): argument '{}' (position 1) must be Tensor, not {}",
            op.row.name,
            op.row.params[0].name,
            match args.first() {
                Some(Arg::Int(_)) => "int",
                Some(Arg::Bool(_)) => "bool",
                _ => "float",
            }
        )));
    }
    apply(op, &operands).map(Out::Tensor)
}

pub fn call_inplace(op: &'static Pointwise, args: &[Arg]) -> Result<Tensor> {
    let values = values(op, args)?;
    let Some(Value::Tensor(target)) = values.first() else {
        return Err(Error::type_error("an in-place operator needs a tensor to write to"));
    };
    let operands: SmallVec<[Operand; 4]> = values.iter().map(Operand::from).collect();
    apply_inplace(op, target, &operands)?;
    Ok(target.clone())
}

pub fn values(op: &'static Pointwise, args: &[Arg]) -> Result<SmallVec<[Value; 4]>> {
    let (name, params) = (op.row.name, op.row.params);
    let mut values: SmallVec<[Value; 4]> = SmallVec::new();
    for i in 0..params.len() {
        values.push(if i < op.inputs {
            take(name, params, args, i, None)?
        } else {
            match args.get(i) {
                None | Some(Arg::Missing) => Value::Scalar(op.defaults[i - op.inputs]),
                _ => Value::Scalar(take(name, params, args, i, None)?),
            }
        });
    }
    Ok(values)
}
