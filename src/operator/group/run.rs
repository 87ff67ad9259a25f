//! Runs a program over lists of tensors: checks, dispatch by device, version counts.

#[cfg(feature = "gpu")]
use crate::base::Dims;
use crate::base::group::{Group, Number};
use crate::base::lock;
use crate::base::{DType, Error, Fault, Result, Scalar, broadcast};
use crate::capture;
use crate::cpu::group::{Job, MAX_OPERANDS, MAX_REGISTERS};
use crate::cpu::pointwise::Loops;
#[cfg(feature = "gpu")]
use crate::gpu::Expr;
use crate::operator::bodies::overlap::{check_writable, overlaps};
use crate::operator::group::Program;
use crate::operator::group::kept::Kept;
use crate::operator::group::lower::{Types, register_type};
use crate::operator::inplace::write::Write;
#[cfg(feature = "gpu")]
use crate::operator::pointwise::Pointwise;
use crate::storage::access::{self, Permit};
use crate::tensor::{Body, BodyRef, Tensor, mode};
use smallvec::SmallVec;
use std::sync::{Arc, Mutex};

/// A program, and the groups it was lowered to so far.
pub struct Rule {
    program: Program,
    lowered: Mutex<Vec<Arc<Lowered>>>,
}

/// The groups of a program, for operands of some dtypes.
pub(super) struct Lowered {
    dtypes: SmallVec<[DType; 8]>,
    /// For each scalar, true if it is on the GPU, so that the kernel reads it and the host does not know its
    /// value.
    pub(super) on_gpu: SmallVec<[bool; 4]>,
    rounds: bool,
    /// The types of the operands' registers.
    types: SmallVec<[DType; 8]>,
    pub(super) loops: Group<&'static Loops>,
    #[cfg(feature = "gpu")]
    shader: Group<Expr>,
    /// The group that updates scalars on the GPU.
    #[cfg(feature = "gpu")]
    scalars: Option<Group<Expr>>,
}

/// Tensors of one element: one for all items, or one for each.
pub enum Scalars {
    One(Tensor),
    Each(Vec<Tensor>),
}

impl Scalars {
    fn at(&self, i: usize) -> Option<&Tensor> {
        match self {
            Scalars::One(tensor) => Some(tensor),
            Scalars::Each(tensors) => tensors.get(i),
        }
    }
}

/// The arguments of a program: lists of tensors of the same length, and numbers.
pub struct Run<'a> {
    pub operands: &'a [Vec<Tensor>],
    pub scalars: &'a [Scalars],
    pub numbers: &'a [f64],
    /// The places of numbers that each replay of a captured call is given anew, and their indices there.
    pub live: &'a [(usize, u32)],
    /// True if each instruction rounds to the tensors' half dtype, like separate operators do.
    pub rounds: bool,
}

impl Rule {
    pub fn new(program: Program) -> Result<Rule> {
        let rule = Rule { program: program.checked()?, lowered: Mutex::default() };
        let dtypes = vec![DType::F32; rule.program.operands];
        rule.lowered(&dtypes, &vec![false; rule.program.scalars], false)?;
        Ok(rule)
    }

    fn lowered(&self, dtypes: &[DType], on_gpu: &[bool], rounds: bool) -> Result<Arc<Lowered>> {
        let mut known = lock(&self.lowered);
        let same = |lowered: &&Arc<Lowered>| {
            *lowered.dtypes == *dtypes && *lowered.on_gpu == *on_gpu && lowered.rounds == rounds
        };
        if let Some(lowered) = known.iter().find(same) {
            return Ok(Arc::clone(lowered));
        }
        // An untyped program takes complex numbers as pairs of real ones.
        let is_typed = self.program.is_typed();
        let part = |dtype: DType| if is_typed || !dtype.is_complex() { dtype } else { dtype.to_real() };
        let operands: SmallVec<[DType; 8]> = dtypes.iter().copied().map(part).collect();
        let types = Types { operands: &operands, on_gpu, rounds };
        let group = self.program.lower(&types)?;
        if group.operands > MAX_OPERANDS || group.registers > MAX_REGISTERS {
            return Err(Error::runtime("invalid program: too many tensors, or too many values at a time"));
        }
        let lowered = Arc::new(Lowered {
            dtypes: dtypes.into(),
            on_gpu: on_gpu.into(),
            rounds,
            types: operands.iter().copied().map(register_type).collect(),
            loops: group.map(|row| &row.forward.loops),
            #[cfg(feature = "gpu")]
            shader: group.map(shader_text),
            #[cfg(feature = "gpu")]
            scalars: self.program.lower_scalars(&types)?.map(|group| group.map(shader_text)),
        });
        known.push(Arc::clone(&lowered));
        Ok(lowered)
    }

    /// Runs the program over all tensors of the lists. Returns false and does nothing if operators must do it
    /// instead: if gradients are recorded, or if the tensors do not match or are not plain.
    pub fn run(self: &Arc<Self>, run: &Run) -> Result<bool> {
        let Some(first) = run.operands.first() else { return Ok(true) };
        let count = first.len();
        let counts = run.operands.iter().map(Vec::len);
        let short = |scalars: &Scalars| matches!(scalars, Scalars::Each(each) if each.len() != count);
        if counts.clone().any(|n| n != count) || run.scalars.iter().any(short) {
            return Err(Error::runtime(format!(
                "the lists of an optimizer's step differ in length: {:?}",
                counts.collect::<Vec<_>>()
            )));
        }
        if run.operands.len() != self.program.operands
            || run.scalars.len() != self.program.scalars
            || run.numbers.len() != self.program.numbers
        {
            return Err(Error::runtime(
                "a program was called with the wrong number of tensor lists or numbers",
            ));
        }
        let is_captured = access::is_captured();
        let permit = is_captured.then(Permit::new);
        let Some(items) = self.read(run, count)? else { return Ok(false) };
        drop(permit);
        let write = || capture::run(|recorder| self.keep(recorder, run, &items), || self.write(run, &items));
        Write::put_all(&items.writes, write).map(|()| true)
    }

    /// Keeps the run for replays, which read scalars of the host and write them back.
    #[cold]
    fn keep(
        self: &Arc<Self>,
        recorder: &mut capture::Recorder,
        run: &Run,
        items: &Items,
    ) -> Result<impl Fn() -> Result<()> + Send + Sync + use<>> {
        let mut keep = |tensor: &Tensor| recorder.stand_in(&tensor.body()).map(Tensor::new);
        let mut operands = Vec::with_capacity(run.operands.len());
        for list in run.operands {
            operands.push(list.iter().map(&mut keep).collect::<Result<Vec<_>>>()?);
        }
        let mut scalars = Vec::with_capacity(run.scalars.len());
        for kind in run.scalars {
            scalars.push(match kind {
                Scalars::One(tensor) => Scalars::One(keep(tensor)?),
                Scalars::Each(list) => Scalars::Each(list.iter().map(&mut keep).collect::<Result<_>>()?),
            });
        }
        let kept = self.kept(items, &operands, &scalars);
        let (rule, numbers, rounds) = (Arc::clone(self), run.numbers.to_vec(), run.rounds);
        let live: Vec<_> = run.live.iter().map(|&(at, index)| (at, recorder.live_number(index))).collect();
        Ok(move || {
            let mut numbers: SmallVec<[f64; 8]> = SmallVec::from_slice(&numbers);
            live.iter().for_each(|(at, number)| numbers[*at] = number.get());
            match &kept {
                Some(kept) => kept.run(&numbers),
                None => {
                    let run =
                        Run { operands: &operands, scalars: &scalars, numbers: &numbers, live: &[], rounds };
                    rule.run(&run).map(|_| ())
                }
            }
        })
    }

    /// The run over stand-ins as a kept one, if each item is in memory of its own.
    fn kept(self: &Arc<Self>, items: &Items, operands: &[Vec<Tensor>], scalars: &[Scalars]) -> Option<Kept> {
        let is_typed = self.program.is_typed();
        let count = items.lowered.len();
        let span = |body: &Body| {
            let (address, (start, end)) = (body.storage.address()?, body.byte_range());
            Some((address + start, address + end))
        };
        let host_scalars = || (0..count).flat_map(|i| scalars.iter().map(move |list| list.at(i)));
        let mut spans = items.bodies.iter().map(|body| span(body)).collect::<Option<Vec<_>>>()?;
        spans.sort_unstable();
        let is_apart = spans.windows(2).all(|pair| pair[0].1 <= pair[1].0);
        let is_plain = items.bodies.iter().all(|body| body.conj_neg.is_none());
        let on_host = items.lowered.iter().all(|lowered| !lowered.on_gpu.contains(&true));
        if !(is_apart && is_plain && on_host) {
            return None;
        }
        let part = |body: BodyRef| {
            if body.dtype.is_complex() && !is_typed { body.as_parts() } else { (*body).clone() }
        };
        let bodies =
            (0..count).flat_map(|i| operands.iter().map(move |list| &list[i])).map(|own| part(own.body()));
        let singles =
            host_scalars().map(|own| Some((*own?.body()).clone())).collect::<Option<Vec<Body>>>()?;
        Kept::new(self, &items.lowered, bodies.collect(), singles)
    }

    pub(super) fn program(&self) -> &Program {
        &self.program
    }

    /// The checked items, one for each position of the lists; `None` if one of them needs operators instead.
    fn read<'a>(&self, run: &'a Run, count: usize) -> Result<Option<Items<'a>>> {
        let mut items = Items {
            width: run.operands.len(),
            bodies: Vec::with_capacity(count * run.operands.len()),
            scalars: Vec::with_capacity(count * run.scalars.len()),
            lowered: Vec::with_capacity(count),
            writes: Vec::with_capacity(count * (self.program.results.len() + self.program.kept.len())),
        };
        let mut on_gpu: SmallVec<[bool; 4]> = smallvec::smallvec![false; run.scalars.len()];
        for i in 0..count {
            items.bodies.extend(run.operands.iter().map(|list| list[i].body()));
            let place = items.of(i).0.device();
            if !self.takes_operands(run, &items, i)? {
                return Ok(None);
            }
            for (k, list) in run.scalars.iter().enumerate() {
                let Some(tensor) = list.at(i) else { return Ok(None) };
                let kept = self.program.kept.iter().any(|&(scalar, _)| scalar == k);
                if !is_single(tensor, kept) {
                    return Ok(None);
                }
                let device = tensor.device();
                on_gpu[k] = !device.is_cpu();
                if on_gpu[k] && device != place {
                    return Err(Fault::Devices { a: place, b: device }.into());
                }
                let value = if on_gpu[k] { f64::NAN } else { tensor.item()?.as_f64() };
                items.scalars.push(Single { value, dtype: tensor.dtype() });
            }
            let dtypes: SmallVec<[DType; 8]> = items.of(i).1.iter().map(|body| body.dtype).collect();
            let lowered = match items.lowered.last() {
                Some(last) if last.on_gpu == on_gpu && last.dtypes == dtypes => Arc::clone(last),
                _ => self.lowered(&dtypes, &on_gpu, run.rounds)?,
            };
            items.lowered.push(lowered);
            let written = self.program.results.iter().map(|&(k, _)| &run.operands[k][i]);
            let kept = self.program.kept.iter().filter_map(|&(k, _)| run.scalars[k].at(i));
            for tensor in written.chain(kept) {
                let over = Write::begin(tensor, false)?;
                over.check_counted()?;
                items.writes.push(over);
            }
        }
        Ok(Some(items))
    }

    /// True if the operands of an item are plain tensors. Those of a typed program are broadcast to the shape of the
    /// results; others have the same dtype and shape.
    fn takes_operands(&self, run: &Run, items: &Items, i: usize) -> Result<bool> {
        let (lead, bodies) = items.of(i);
        let recording = mode::grad_enabled();
        let whole = self.program.results.first().map_or(lead, |&(k, _)| &bodies[k]);
        let written = |k: usize| self.program.results.iter().any(|&(operand, _)| operand == k);
        let is_typed = self.program.is_typed();
        for (k, body) in bodies.iter().enumerate() {
            let tensor = &run.operands[k][i];
            let fits = if is_typed {
                body.shape() == whole.shape() || !written(k) && broadcasts(body, whole)
            } else {
                body.dtype == lead.dtype && body.dtype.is_differentiable() && body.shape() == lead.shape()
            };
            let special = tensor.is_batched() || tensor.is_dual() || recording && tensor.requires_grad();
            if special || !fits || body.dtype.is_stored_only() {
                return Ok(false);
            }
            if body.device() != lead.device() {
                return Err(Fault::Devices { a: lead.device(), b: body.device() }.into());
            }
        }
        for &(k, _) in &self.program.results {
            check_writable(&bodies[k])?;
            // Results that overlap each other or are lazily conjugated or negated need operators.
            let meets = |other: usize| other != k && overlaps(&bodies[k], &bodies[other]);
            if !bodies[k].conj_neg.is_none() || self.program.results.iter().any(|&(other, _)| meets(other)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes the results. All is checked: from here on only memory can run out.
    fn write(&self, run: &Run, items: &Items) -> Result<()> {
        let program = &self.program;
        let owned = self.owned(items)?;
        let mut numbers: Vec<Numbers> = Vec::new();
        let mut numbers_of = Vec::with_capacity(items.lowered.len());
        let mut values = Vec::new();
        for (i, lowered) in items.lowered.iter().enumerate() {
            let scalars = items.scalars(i);
            // Usually all parameters have taken the same number of steps.
            if i == 0 || !items.have_same_numbers(i - 1, i) {
                let round = |k: usize, x| scalars[k].dtype.round(x);
                program.numbers(&lowered.on_gpu, run.numbers, |k| scalars[k].value, round, &mut values);
                let round = |number: &Number| {
                    let value = values[number.value];
                    Scalar::Float(number.rounds.map_or(value, |dtype| dtype.round(value)))
                };
                numbers.push(Numbers {
                    elements: lowered.loops.numbers.iter().map(round).collect(),
                    #[cfg(feature = "gpu")]
                    singles: lowered.scalars.iter().flat_map(|group| &group.numbers).map(round).collect(),
                    kept: program.kept.iter().map(|&(_, value)| values[value]).collect(),
                });
            }
            numbers_of.push(numbers.len() - 1);
        }
        for (i, lowered) in items.lowered.iter().enumerate() {
            for (&(k, _), &value) in program.kept.iter().zip(&numbers[numbers_of[i]].kept) {
                if let Some(tensor) = run.scalars[k].at(i).filter(|_| !lowered.on_gpu[k]) {
                    crate::operator::bodies::fill(&tensor.body(), Scalar::Float(value))?;
                }
            }
        }
        let body = |at: usize| -> &Body {
            match owned.binary_search_by_key(&at, |(at, _)| *at) {
                Ok(found) => &owned[found].1,
                Err(_) => &items.bodies[at],
            }
        };
        let mut start = 0;
        while start < items.lowered.len() {
            let lowered = &items.lowered[start];
            let host = |i: &usize| items.of(*i).0.device().is_cpu();
            let end = (start..items.lowered.len())
                .find(|i| !host(i) || !Arc::ptr_eq(&items.lowered[*i], lowered))
                .unwrap_or(items.lowered.len());
            let bodies = |i: usize| (i * items.width..(i + 1) * items.width).map(body);
            if end == start {
                let bodies: SmallVec<[&Body; 8]> = bodies(start).collect();
                self.write_gpu(run, start, lowered, &bodies, &numbers[numbers_of[start]])?;
                start += 1;
                continue;
            }
            let numbers = numbers_of[start..end].iter().map(|&at| numbers[at].elements.as_slice());
            write_host(lowered, (start..end).flat_map(bodies), items.width, numbers)?;
            start = end;
        }
        Ok(())
    }

    /// Bodies that kernels get instead of the tensors' own, by number: the parts of complex tensors, views that are
    /// broadcast, and copies of tensors that are lazily conjugated or negated or that would be overwritten before they
    /// are read.
    fn owned(&self, items: &Items) -> Result<Vec<(usize, Body)>> {
        let mut owned = Vec::new();
        let is_typed = self.program.is_typed();
        for (at, body) in items.bodies.iter().enumerate() {
            let (k, own) = (at % items.width, &items.bodies[at - at % items.width..]);
            let is_result = self.program.results.iter().any(|&(operand, _)| operand == k);
            let meets = |&(other, _): &(usize, usize)| {
                other != k && (overlaps(body, &own[other]) || !is_result && is_same(body, &own[other]))
            };
            let mut made = None;
            if !body.conj_neg.is_none() {
                made = Some(crate::operator::bodies::conj_neg::values(body)?);
            } else if self.program.results.iter().any(meets) {
                made = Some(crate::operator::bodies::duplicate(body)?);
            }
            if body.dtype.is_complex() && !is_typed {
                made = Some(made.as_ref().unwrap_or(body).as_parts());
            }
            let whole = self.program.results.first().map_or(body, |&(k, _)| &own[k]);
            if is_typed && body.shape() != whole.shape() {
                let body: &Body = made.as_ref().unwrap_or(body);
                made = Some(body.with_layout(body.layout.broadcast_to(whole.shape())));
            }
            owned.extend(made.map(|body| (at, body)));
        }
        Ok(owned)
    }

    #[cfg(feature = "gpu")]
    fn write_gpu(
        &self,
        run: &Run,
        i: usize,
        lowered: &Lowered,
        bodies: &[&Body],
        numbers: &Numbers,
    ) -> Result<()> {
        use crate::gpu::{View, run_group};
        if bodies[0].device().is_meta() {
            return Ok(());
        }
        let on_gpu = (0..run.scalars.len()).filter(|&k| lowered.on_gpu[k]);
        let scalars: SmallVec<[BodyRef; 4]> =
            on_gpu.filter_map(|k| run.scalars[k].at(i)).map(Tensor::body).collect();
        let shape = bodies[0].shape();
        let still: Dims = smallvec::smallvec![0; shape.len()];
        let mut views = bodies.iter().map(|body| body.gpu()).collect::<Result<SmallVec<[View; 8]>>>()?;
        let mut single: SmallVec<[View; 4]> = SmallVec::new();
        for body in &scalars {
            let view = body.gpu()?;
            views.push(View { shape, strides: &still, ..view });
            single.push(View { shape: &[], strides: &[], ..view });
        }
        run_group(&lowered.shader, &views, &numbers.elements)?;
        match &lowered.scalars {
            Some(group) => run_group(group, &single, &numbers.singles),
            None => Ok(()),
        }
    }

    #[cfg(not(feature = "gpu"))]
    fn write_gpu(&self, _: &Run, _: usize, _: &Lowered, _: &[&Body], _: &Numbers) -> Result<()> {
        Err(Error::runtime("this build of gradiron has no GPU support"))
    }
}

/// The data that a program runs over, item by item.
struct Items<'a> {
    /// The number of operands in an item.
    width: usize,
    bodies: Vec<BodyRef<'a>>,
    scalars: Vec<Single>,
    lowered: Vec<Arc<Lowered>>,
    /// The writes of all items.
    writes: Vec<Write<'a>>,
}

/// A tensor of one element; the value is NaN if the host does not know it.
#[derive(Clone, Copy)]
pub(super) struct Single {
    pub(super) value: f64,
    pub(super) dtype: DType,
}

impl Single {
    pub(super) fn is_same(&self, other: &Single) -> bool {
        self.value.to_bits() == other.value.to_bits() && self.dtype == other.dtype
    }
}

impl<'a> Items<'a> {
    /// The first operand of an item, and all operands.
    fn of(&self, i: usize) -> (&Body, &[BodyRef<'a>]) {
        let bodies = &self.bodies[i * self.width..(i + 1) * self.width];
        (&bodies[0], bodies)
    }

    fn scalars(&self, i: usize) -> &[Single] {
        let width = self.scalars.len() / self.lowered.len();
        &self.scalars[i * width..(i + 1) * width]
    }

    fn have_same_numbers(&self, i: usize, j: usize) -> bool {
        Arc::ptr_eq(&self.lowered[i], &self.lowered[j])
            && self.scalars(i).iter().zip(self.scalars(j)).all(|(a, b)| a.is_same(b))
    }
}

/// The numbers of an item: for the group over elements, for the group over GPU scalars, and the new values of host
/// scalars.
struct Numbers {
    elements: SmallVec<[Scalar; 8]>,
    #[cfg(feature = "gpu")]
    singles: SmallVec<[Scalar; 8]>,
    kept: SmallVec<[f64; 4]>,
}

/// True if two tensors are the same elements of one storage.
fn is_same(a: &Body, b: &Body) -> bool {
    a.storage.same(&b.storage) && a.layout == b.layout && a.dtype == b.dtype
}

/// True if a tensor can be broadcast to the shape of another one.
fn broadcasts(body: &Body, whole: &Body) -> bool {
    broadcast(body.shape(), whole.shape()).is_ok_and(|shape| shape[..] == *whole.shape())
}

/// True if a tensor is one plain number, which can be overwritten if it is `kept`.
fn is_single(tensor: &Tensor, kept: bool) -> bool {
    let body = tensor.body();
    let special = tensor.is_batched() || tensor.is_dual() || !body.conj_neg.is_none();
    let recorded = mode::grad_enabled() && tensor.requires_grad();
    !special
        && !recorded
        && body.numel() == 1
        && !body.dtype.is_complex()
        && !body.dtype.is_stored_only()
        && (body.dtype.is_differentiable() || !kept)
}

/// Runs all items that are in host memory.
fn write_host<'a>(
    lowered: &Lowered,
    bodies: impl Iterator<Item = &'a Body>,
    width: usize,
    numbers: impl Iterator<Item = &'a [Scalar]>,
) -> Result<()> {
    let mut operands = Vec::with_capacity(bodies.size_hint().0);
    let mut spans: Vec<(usize, usize)> = Vec::with_capacity(bodies.size_hint().0);
    for body in bodies {
        let view = body.host()?;
        if view.numel() > 0 {
            let bytes = (body.layout.end() - body.layout.offset) * body.dtype.size();
            spans.push((view.ptr as usize, view.ptr as usize + bytes));
        }
        operands.push(view);
    }
    spans.sort_unstable();
    let apart = spans.windows(2).all(|pair| pair[0].1 <= pair[1].0);
    let job = |(operands, numbers)| Job { operands, numbers };
    let jobs: Vec<Job> = operands.chunks(width).zip(numbers).map(job).collect();
    // SAFETY: the bodies are live and have one shape. In an item, an operand that overlaps a result was
    // copied; items that overlap each other are not `apart`.
    unsafe { crate::cpu::group::run(&lowered.loops, &lowered.types, &jobs, apart) };
    Ok(())
}

/// What a shader needs of a row.
#[cfg(feature = "gpu")]
fn shader_text(row: &&'static Pointwise) -> Expr {
    let expr = &row.forward;
    Expr { key: expr.key, inputs: expr.inputs, wgsl: expr.wgsl, predicate: expr.loops.predicate }
}
