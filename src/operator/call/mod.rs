//! The call of a primitive: transforms, conj and neg bits, recording, kernel, tangents. One test of the
//! operands' flags sends plain tensors straight to the kernel.

pub mod derivative;
pub mod devices;
pub mod grad_expr;
mod operands;
pub mod results;

pub use operands::{Extent, Group, flags};

use crate::base::{Error, Fault, Result, try_alloc};
use crate::operator::batch::Batch;
use crate::operator::bodies::{conj_neg, overlap};
use crate::operator::call::results::{PrimitiveResults, Tensors, Views, one};
use crate::operator::inplace;
use crate::operator::inplace::write::Write;
use crate::operator::tangent::{self, TangentCall};
use crate::storage::reserve;
use crate::tensor::levels::func::is_recorded_outside;
use crate::tensor::{
    Body, CreationMeta, Derivative, Edge, Grads, Marks, NodeRef, Params, Recorder, Saved, Tensor,
    any_requires_grad, mode, saved_hooks,
};
use smallvec::SmallVec;

/// True if a call of a view operator only has to make the view.
#[inline]
pub fn is_plain_view(flags: Marks, of: &Tensor) -> bool {
    let plain = !flags.is_batched() && !flags.may_be_dual();
    plain && !(of.requires_grad() && mode::grad_enabled())
}

/// The rule for tangents; a custom jvp comes with the call.
pub type Tangent = tangent::Rule;

pub struct Primitive {
    pub derivative: Derivative,
    /// For each operand, true if it has an edge.
    pub edges: &'static [bool],
    /// The values saved if an operand requires a gradient: one bit for each operand, and from the highest bit
    /// down for results.
    pub saves: &'static [(u8, u64)],
    /// The values saved whichever operand requires one.
    pub always: u64,
    /// The order in which operands are saved: by PyTorch's names.
    pub order: &'static [u8],
    /// The number of results that are returned; further ones are only saved.
    pub returned: usize,
    pub tangent: Tangent,
    pub views: bool,
    /// True if operands may be on several devices.
    pub anywhere: bool,
}

/// The bits of operands; higher bits are those of results.
const OPERANDS: u64 = (1 << 56) - 1;

/// A custom jvp: the tangents of the results.
pub type CustomJvp<'a> = &'a dyn Fn(&TangentCall) -> Result<Grads>;

/// One call of a primitive.
pub struct Call<'a> {
    pub primitive: &'static Primitive,
    pub flags: Marks,
    pub groups: &'a [Group<'a>],
    /// The arguments that the node keeps.
    pub keep: &'a dyn Fn() -> Option<Params>,
    /// Repeats this call on other operands.
    pub again: &'a dyn Fn(&[Tensor]) -> Result<Tensors>,
    /// A custom jvp.
    pub tangent: Option<CustomJvp<'a>>,
}

impl<'a> Call<'a> {
    pub fn operands(&self) -> impl Iterator<Item = &'a Tensor> + Clone + use<'a> {
        let groups: &'a [Group<'a>] = self.groups;
        groups.iter().flat_map(|group| (0..group.len()).filter_map(|i| group.get(i)))
    }

    fn with_edges(&self) -> impl Iterator<Item = &'a Tensor> + Clone + use<'a> {
        let (groups, edges): (&'a [Group<'a>], _) = (self.groups, self.primitive.edges);
        groups
            .iter()
            .zip(edges)
            .filter(|(_, edge)| **edge)
            .flat_map(|(group, _)| (0..group.len()).filter_map(|i| group.get(i)))
    }

    pub fn batch(&self) -> Batch {
        Batch::of(self.operands())
    }

    /// The operands of a call under `vmap`, batched where they must be; `None` if nothing changes.
    pub fn with_own_samples(&self) -> Result<Option<Vec<Tensor>>> {
        let operands: Vec<&Tensor> = self.operands().collect();
        let own = self.batch().own_samples_of(&operands)?;
        if own.iter().all(Option::is_none) {
            return Ok(None);
        }
        Ok(Some(own.into_iter().zip(operands).map(|(own, t)| own.unwrap_or_else(|| t.clone())).collect()))
    }

    /// Returns an error for operands on different devices.
    #[inline]
    fn check(&self) -> Result<()> {
        let p = self.primitive;
        if p.anywhere || matches!(self.groups, [Group::One(_)]) || !devices::any_elsewhere() {
            return Ok(());
        }
        let mut operands = self.operands();
        let Some(first) = operands.next().map(Tensor::device) else { return Ok(()) };
        match operands.find(|t| t.device() != first) {
            Some(other) => Err(Fault::Devices { a: first, b: other.device() }.into()),
            None => Ok(()),
        }
    }

    /// Starts a node if an operand requires a gradient. This happens before the kernel runs, so the node sees
    /// the old operands.
    #[inline]
    fn begin(&self) -> Option<Recorder> {
        if !mode::grad_enabled() {
            return None;
        }
        for (at, group) in self.groups.iter().enumerate() {
            let wants = self.primitive.edges[at]
                && match group {
                    Group::One(t) => t.requires_grad(),
                    group => group.iter().any(Tensor::requires_grad),
                };
            if wants {
                return Some(self.recorder());
            }
        }
        None
    }

    fn recorder(&self) -> Recorder {
        let p = self.primitive;
        let derivative =
            if saved_hooks::active() { saved_hooks::instead_of(&p.derivative) } else { &p.derivative };
        let mut recorder = Recorder::new(derivative);
        for (at, group) in self.groups.iter().enumerate() {
            if !p.edges[at] {
                continue;
            }
            for i in 0..group.len() {
                match group.get(i) {
                    Some(t) => recorder.input_as_shown(t),
                    None => {
                        recorder.input(None);
                    }
                }
            }
        }
        if let Some(params) = (self.keep)() {
            recorder.params(params);
        }
        recorder
    }

    /// The bits of the values to save, given the operands that require gradients.
    #[inline]
    fn needed(&self, recorder: &Recorder) -> u64 {
        let p = self.primitive;
        if p.saves.is_empty() { p.always } else { p.always | self.wanted(recorder) }
    }

    fn wanted(&self, recorder: &Recorder) -> u64 {
        let p = self.primitive;
        let (mut start, mut bits) = (0, 0);
        for (at, group) in self.groups.iter().enumerate() {
            if !p.edges[at] {
                continue;
            }
            let end = start + group.len();
            if (start..end).any(|edge| recorder.has_edge(edge)) {
                for (of, more) in p.saves {
                    bits |= if usize::from(*of) == at { *more } else { 0 };
                }
            }
            start = end;
        }
        bits
    }

    fn save_operands(&self, recorder: &mut Recorder, bits: u64) {
        let edges = self.primitive.edges;
        for at in self.primitive.order.iter().map(|&at| usize::from(at)).filter(|at| bits >> at & 1 == 1) {
            // Operands with edges and operands without are counted separately.
            let mut start = 0;
            for before in 0..at {
                start += if edges[before] == edges[at] { self.groups[before].len() } else { 0 };
            }
            for i in 0..self.groups[at].len() {
                let Some(t) = self.groups[at].get(i) else { continue };
                if edges[at] {
                    recorder.save_input(t, &t.body(), start + i);
                } else {
                    recorder.save_argument(t, start + i);
                }
            }
        }
    }

    /// Publishes the node. `made` holds all results, or none if the call failed.
    fn finish(&self, mut recorder: Recorder, bits: u64, made: &[Body]) -> Result<NodeRef> {
        if bits & OPERANDS != 0 {
            self.save_operands(&mut recorder, bits);
        }
        if bits & !OPERANDS != 0 {
            for (i, body) in made.iter().enumerate() {
                if bits >> (63 - i) & 1 == 1 {
                    recorder.save_output(body, i);
                }
            }
        }
        recorder.check(self.operands(), is_recorded_outside)?;
        let made = &made[..made.len().min(self.primitive.returned)];
        // Trailing integer results, such as indices, have no gradients and are not counted.
        let mut values = made.len();
        while values > 0 && !made[values - 1].dtype.is_differentiable() {
            values -= 1;
        }
        let node = recorder.publish_all(&made[..values]);
        if saved_hooks::active() {
            saved_hooks::pack(&node, |source| self.operand(source), &made.iter().collect::<Vec<_>>())?;
        }
        Ok(node)
    }

    /// The operand that is saved under `source`.
    fn operand(&self, source: usize) -> Option<&'a Tensor> {
        let held = source.checked_sub(Saved::ARGUMENT as usize);
        let mut left = held.unwrap_or(source);
        for (group, edge) in self.groups.iter().zip(self.primitive.edges) {
            if *edge == held.is_some() {
                continue;
            }
            if left < group.len() {
                return group.get(left);
            }
            left -= group.len();
        }
        None
    }

    /// The error of a call that failed with `error`. PyTorch makes the node before the call runs, so an error
    /// in making it, or in a hook that packs the operands, takes precedence.
    #[cold]
    fn call_error(&self, error: Error, recorder: Option<Recorder>) -> Error {
        let Some(recorder) = recorder else { return error };
        let bits = self.needed(&recorder);
        self.finish(recorder, bits, &[]).err().unwrap_or(error)
    }

    #[inline]
    fn end(&self, recorder: Option<Recorder>, made: &mut PrimitiveResults) -> Result<Tensors> {
        if self.primitive.views {
            return self.viewed(recorder, made);
        }
        let bodies = &mut made.bodies;
        let kept = bodies.len().min(self.primitive.returned);
        let node = match recorder {
            Some(recorder) if bodies[..kept].iter().any(|b| b.dtype.is_differentiable()) => {
                let bits = self.needed(&recorder);
                Some(self.finish(recorder, bits, bodies)?)
            }
            _ => None,
        };
        if bodies.len() == 1
            && let Some(body) = bodies.pop()
        {
            return Ok(smallvec::smallvec![Tensor::made_by(body, node.map(|node| Edge { node, output: 0 }))]);
        }
        let mut tensors = Tensors::new();
        for (i, body) in bodies.drain(..).take(kept).enumerate() {
            let edge = match &node {
                Some(node) if body.dtype.is_differentiable() => {
                    Some(Edge { node: node.clone(), output: i as u32 })
                }
                _ => None,
            };
            tensors.push(Tensor::made_by(body, edge));
        }
        Ok(tensors)
    }

    fn viewed(&self, recorder: Option<Recorder>, made: &mut PrimitiveResults) -> Result<Tensors> {
        let of = self.operands().next().ok_or_else(|| Error::runtime("there is no tensor to view"))?;
        let body = of.body();
        let views = std::mem::take(&mut made.views);
        let untied = matches!(views, Views::Untied(_));
        let viewing = if let Views::Several(_) = views { CreationMeta::Multi } else { CreationMeta::Plain };
        let bodies = &mut made.bodies;
        match views {
            Views::None => {}
            Views::One(layout) => bodies.push(body.with_layout(layout)),
            Views::Reread(layout, dtype) => bodies.push(Body { dtype, ..body.with_layout(layout) }),
            Views::ConjNeg(conj_neg) => {
                bodies.push(Body { conj_neg: body.conj_neg.then(conj_neg), ..body.clone() })
            }
            Views::Several(layouts) | Views::Untied(layouts) => {
                bodies
                    .try_reserve(layouts.len())
                    .map_err(|_| try_alloc::out_of_memory(layouts.len() * size_of::<Body>()))?;
                bodies.extend(layouts.into_iter().map(|layout| body.with_layout(layout)));
            }
        }
        drop(body);
        let node = match recorder {
            Some(recorder) => {
                let bits = self.needed(&recorder);
                Some(self.finish(recorder, bits, bodies)?)
            }
            None => None,
        };
        let view = |(i, body): (usize, Body)| {
            let edge = node.as_ref().map(|node| Edge { node: node.clone(), output: i as u32 });
            if untied {
                return Ok(Tensor::of(Body { storage: body.storage.alias(), ..body }, edge));
            }
            if viewing == CreationMeta::Multi {
                reserve::check()?;
            }
            Ok(crate::operator::call::results::view_of(of, body, edge, viewing))
        };
        bodies.drain(..).enumerate().map(view).collect()
    }

    #[cold]
    fn tangents(&self, made: &Tensors) -> Result<()> {
        let moving: Vec<&Tensor> = self.with_edges().collect();
        if !moving.iter().any(|t| t.is_dual()) {
            return Ok(());
        }
        // A missing operand is counted, too.
        let source = |i: usize| self.operand(i);
        if let Some(own) = self.tangent {
            return tangent::attach_by(made, &moving, &source, &|_, lower, tangents, outputs| {
                own(&TangentCall { groups: self.groups, lower, tangents, outputs })
            });
        }
        // Operands without edges stay as they are.
        let map = |xs: &[Tensor]| {
            let mut xs = xs.iter();
            let mut all = Vec::new();
            for (group, edge) in self.groups.iter().zip(self.primitive.edges) {
                for t in group.iter() {
                    all.push(if *edge { xs.next().unwrap_or(t).clone() } else { t.clone() });
                }
            }
            (self.again)(&all).map(SmallVec::into_vec)
        };
        tangent::attach_by_rule(made, &moving, self.primitive.tangent, &map, &source)
    }
}

/// Runs `f` out of line, for rare cases.
#[cold]
#[inline(never)]
pub fn cold<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// A copy to write over, with the operand's layout.
pub fn copy_of(t: &Tensor) -> Result<Body> {
    crate::operator::bodies::preserved(&t.body())
}

/// A contiguous copy to write over.
pub fn dense_copy_of(t: &Tensor) -> Result<Body> {
    crate::operator::bodies::duplicate(&t.body())
}

/// Computes a primitive. It gets resolved operands if some are lazily conjugated or negated.
pub type Compute<'a> = dyn FnMut(Option<&[Tensor]>, &mut PrimitiveResults) -> Result<()> + 'a;

/// True if a view operator has nothing to do but make the view and perhaps its node.
#[inline]
pub fn is_only_recorded(flags: Marks) -> bool {
    !flags.is_batched() && !flags.may_be_dual() && !saved_hooks::active()
}

/// Makes a view and its node: the fast path of [`run`].
#[inline]
pub fn view_of(call: &Call, of: &Tensor, view: impl FnOnce() -> Result<Body>) -> Result<Tensor> {
    let recorder = call.begin();
    let body = match view() {
        Ok(body) => body,
        Err(error) => return Err(call.call_error(error, recorder)),
    };
    let edge = match recorder {
        Some(recorder) => {
            let bits = call.needed(&recorder);
            Some(Edge { node: call.finish(recorder, bits, std::slice::from_ref(&body))?, output: 0 })
        }
        None => None,
    };
    Ok(crate::operator::call::results::view_of(of, body, edge, CreationMeta::Plain))
}

/// Runs a primitive on operands that are not batched.
pub fn run(call: &Call, forward: &mut Compute) -> Result<Tensors> {
    let recorder = call.begin();
    let mut made = PrimitiveResults::default();
    let supplied = match &recorder {
        Some(_) => saved_hooks::supply(&call.primitive.derivative)?,
        None => None,
    };
    let done = match supplied {
        Some(body) => {
            made.bodies.push(body);
            Ok(())
        }
        None => compute(call, forward, &mut made),
    };
    if let Err(error) = done {
        return Err(call.call_error(error, recorder));
    }
    let tensors = call.end(recorder, &mut made)?;
    if call.flags.may_be_dual() {
        call.tangents(&tensors)?;
    }
    Ok(tensors)
}

#[inline]
fn compute(call: &Call, forward: &mut Compute, made: &mut PrimitiveResults) -> Result<()> {
    call.check()?;
    if call.flags.is_conj_or_neg() && !call.primitive.views {
        let plain = |t: &Tensor| match t.is_conj_or_neg() {
            true => conj_neg::values(&t.body()).map(Tensor::new),
            false => Ok(t.clone()),
        };
        let plain = call.operands().map(plain).collect::<Result<Vec<_>>>()?;
        return mode::with_grad(false, || forward(Some(&plain), made));
    }
    forward(None, made)
}

/// Runs a primitive that writes over its first operand: checks, records, writes, and sets the new edge.
/// `apart` marks the operands that may not overlap the target; this is tested after `check`.
pub fn over(
    call: &Call,
    apart: &[bool],
    check: &dyn Fn(&Body) -> Result<()>,
    write: &mut dyn FnMut(&Body) -> Result<()>,
) -> Result<()> {
    let target = call.operands().next().ok_or_else(|| Error::runtime("there is no tensor to write"))?;
    if call.flags.is_batched() || call.flags.is_conj_or_neg() || call.flags.may_be_dual() {
        return over_special(call, target);
    }
    let recorder = call.begin();
    let over = Write::begin(target, recorder.is_some())?;
    let recorder = recorder.filter(|_| target.dtype().is_differentiable());
    call.check()?;
    let body = target.body().clone();
    check(&body)?;
    for (group, _) in call.groups.iter().zip(apart).skip(1).filter(|(_, apart)| **apart) {
        group.iter().try_for_each(|t| overlap::check_disjoint(target, t))?;
    }
    let edge = match recorder {
        Some(recorder) => {
            let bits = call.needed(&recorder);
            Some(Edge { node: call.finish(recorder, bits, std::slice::from_ref(&body))?, output: 0 })
        }
        None => None,
    };
    over.put(&body, edge.as_ref(), |body| write(body))?;
    over.end(edge)
}

/// Computes the result first and then writes it, for batched, dual, and lazily conjugated or negated tensors.
#[cold]
fn over_special(call: &Call, target: &Tensor) -> Result<()> {
    let over = Write::begin(target, any_requires_grad(call.with_edges()))?;
    let mut all: Vec<Tensor> = call.operands().cloned().collect();
    if target.physical().is_dual() {
        all[0] = tangent::before_write(target)?;
    }
    let made = one((call.again)(&all)?)?;
    inplace::rewrite(over, target, &made, inplace::replace)
}
