//! Forward mode: the tangents of an operator's results, from its inputs' tangents and its row. The derivative
//! of a pointwise operator is its own transpose, a linear operator is applied to the tangents, and for the
//! rest two reverse passes give the tangent.

mod call;
pub mod dual;
pub(crate) mod missing;
pub(crate) mod rows;
mod write;

pub use call::{FromTangentCall, IntoTangents, TangentCall};
pub use write::{before_write, erase, put, remember_write, rewrite};

use crate::base::views::may_overlap;
use crate::base::{DType, Error, Result, Scalar};
use crate::operator::V;
use crate::operator::batch::Batch;
use crate::operator::inplace;
use crate::operator::primitives::constant;
use crate::operator::primitives::detached::shallow_input;
use crate::operator::primitives::views::{Expand, alias, ints};
use crate::tensor::levels::func;
use crate::tensor::levels::tangents::{self, DualLevel, Reverse};
use crate::tensor::{Body, Edge, Grads, Saved, Tensor, mode};

/// The rule for an operator's tangents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// The operator applied to the tangents.
    Linear,
    /// The sum of the operator applied to each input's tangent and the other inputs.
    Multilinear,
    /// [`Rule::Multilinear`] for all inputs but the first, whose tangent is added.
    Added,
    /// Zero.
    Still,
    /// By the derivative: it is linear in the incoming gradient, and the derivative of that map gives the
    /// tangent.
    Transposed,
}

/// The rule named by the words in a row's brackets.
pub const fn rule(words: &[&str]) -> Rule {
    let mut i = 0;
    while i < words.len() {
        if crate::operator::same(words[i], "linear") {
            return Rule::Linear;
        }
        if crate::operator::same(words[i], "multilinear") {
            return Rule::Multilinear;
        }
        if crate::operator::same(words[i], "added") {
            return Rule::Added;
        }
        if crate::operator::same(words[i], "still") {
            return Rule::Still;
        }
        i += 1;
    }
    Rule::Transposed
}

/// An operator as a function of its tensors.
pub type Map<'a> = &'a dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>;

/// Sets the tangents of an operator's outputs. The inputs must be unchanged since the call.
#[cold]
pub fn attach<'a>(outputs: &'a [Tensor], inputs: &[&'a Tensor], rule: Rule, map: Map) -> Result<()> {
    attach_by_rule(outputs, inputs, rule, map, &|i| inputs.get(i).copied())
}

/// Like [`attach`]; `source` returns the input that the node saves under a number.
#[cold]
pub fn attach_by_rule<'a>(
    outputs: &'a [Tensor],
    inputs: &[&Tensor],
    rule: Rule,
    map: Map,
    source: &dyn Fn(usize) -> Option<&'a Tensor>,
) -> Result<()> {
    attach_by(outputs, inputs, source, &|level, lower, tangents, _| {
        let found = match rule {
            Rule::Linear => linear(lower, tangents, map)?,
            Rule::Multilinear => multilinear(lower, tangents, map)?,
            Rule::Added if tangents[1..].iter().any(Option::is_some) => added(lower, tangents, map)?,
            Rule::Still => outputs.iter().map(|y| zeros_like(y).map(Some)).collect::<Result<_>>()?,
            Rule::Added | Rule::Transposed => transposed(lower, tangents, map, tangents::reverse_at(level)?)?,
        };
        Ok(found.into())
    })
}

/// A custom jvp: takes the level, the inputs without tangents of that level, the tangents and the results;
/// returns the results' tangents.
pub type CustomJvp<'a> = &'a dyn Fn(DualLevel, &[Tensor], &[Option<Tensor>], &[Tensor]) -> Result<Grads>;

/// Sets tangents by a custom jvp.
#[cold]
pub fn attach_by<'a>(
    outputs: &'a [Tensor],
    inputs: &[&Tensor],
    source: &dyn Fn(usize) -> Option<&'a Tensor>,
    rule: CustomJvp,
) -> Result<()> {
    if is_still(inputs.iter().copied()) {
        return Ok(());
    }
    for level in tangents::levels_of(inputs.iter().copied()) {
        let lower: Vec<Tensor> = inputs.iter().map(|t| t.below(level)).collect();
        let tangents: Vec<Option<Tensor>> = inputs.iter().map(|t| t.tangent(level)).collect();
        let made: Vec<Tensor> = outputs.iter().map(|t| t.below(level)).collect();
        let found = rule(level, &lower, &tangents, &made)?;
        // If an input's tangent has a dtype other than its primal, the result's tangent may have one, too.
        let alike =
            lower.iter().zip(&tangents).all(|(x, t)| t.as_ref().is_none_or(|t| t.dtype() == x.dtype()));
        for (output, tangent) in outputs.iter().zip(found) {
            if let Some(mut tangent) = tangent.filter(|_| output.dtype().is_differentiable()) {
                if alike && tangent.dtype() != output.dtype() {
                    tangent = V::from(tangent).cast(output.dtype()).tensor()?;
                }
                output.set_tangent(level, own_tangent(output, tangent)?)?;
            }
        }
    }
    remember(outputs, source);
    Ok(())
}

/// True if tangents are not propagated: all operands are inference tensors.
pub fn is_still<'a>(mut inputs: impl Iterator<Item = &'a Tensor>) -> bool {
    !mode::inference() && !func::is_inside() && inputs.all(Tensor::is_inference)
}

/// Like [`attach`], for an operator with one output.
#[cold]
pub fn attach_one(
    output: &Tensor,
    inputs: &[&Tensor],
    rule: Rule,
    map: &dyn Fn(&[Tensor]) -> Result<Tensor>,
) -> Result<()> {
    attach(std::slice::from_ref(output), inputs, rule, &|xs| Ok(vec![map(xs)?]))
}

/// Like [`attach`], for an operator that is linear in its list of operands.
pub fn joined(made: Tensor, inputs: &[Tensor], map: &dyn Fn(&[Tensor]) -> Result<Tensor>) -> Result<Tensor> {
    if inputs.iter().any(Tensor::is_dual) {
        attach_one(&made, &inputs.iter().collect::<Vec<_>>(), Rule::Linear, map)?;
    }
    Ok(made)
}

/// Keeps the tangents of the values that the node of these outputs saved.
fn remember<'a>(outputs: &'a [Tensor], input: impl Fn(usize) -> Option<&'a Tensor>) {
    if let Some(Edge { node, .. }) = outputs.iter().find_map(Tensor::history) {
        tangents::remember(&node, |source| match source.checked_sub(Saved::OUTPUT) {
            Some(output) => outputs.get(output as usize),
            None => input(source as usize),
        });
    }
}

fn zeros_like(t: &Tensor) -> Result<Tensor> {
    constant::zeros(&t.shape(), t.dtype(), t.device())
}

fn linear(lower: &[Tensor], tangents: &[Option<Tensor>], map: Map) -> Result<Vec<Option<Tensor>>> {
    let moved = |(x, t): (&Tensor, &Option<Tensor>)| match t {
        Some(t) => Ok(t.clone()),
        None if x.dtype().is_differentiable() => zeros_like(x),
        None => Ok(x.clone()),
    };
    let moved = lower.iter().zip(tangents).map(moved).collect::<Result<Vec<_>>>()?;
    Ok(map(&moved)?.into_iter().map(Some).collect())
}

fn multilinear(lower: &[Tensor], tangents: &[Option<Tensor>], map: Map) -> Result<Vec<Option<Tensor>>> {
    let mut sums: Vec<Option<Tensor>> = Vec::new();
    for (i, tangent) in tangents.iter().enumerate() {
        let Some(tangent) = tangent else { continue };
        let mut moved = lower.to_vec();
        moved[i] = tangent.clone();
        let parts = map(&moved)?;
        sums.resize(parts.len(), None);
        for (sum, part) in sums.iter_mut().zip(parts) {
            *sum = Some(match sum.take() {
                Some(sum) => (V::from(sum) + V::from(part)).tensor()?,
                None => part,
            });
        }
    }
    for (i, _) in tangents.iter().enumerate().filter(|(_, tangent)| tangent.is_none()) {
        let others = lower.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, x)| x);
        let others = missing::recorded(others);
        for sum in sums.iter_mut().flatten() {
            *sum = missing::with_factors(sum, &others)?;
        }
    }
    Ok(sums)
}

/// An input with a node of its own, so that its gradient can be computed separately.
fn source(x: &Tensor) -> Result<Tensor> {
    if x.requires_grad() {
        return alias(x);
    }
    let fresh = unrecorded(x, true)?;
    fresh.set_requires_grad(true)?;
    Ok(fresh)
}

/// `x` without its edge. Its tangents keep their edges if `keep`.
pub fn unrecorded(x: &Tensor, keep: bool) -> Result<Tensor> {
    if let Some(batched) = x.as_batched() {
        let value = unrecorded(&batched.value, keep)?;
        return Ok(Tensor::batched_at(value, batched.levels.clone(), batched.place, None));
    }
    let fresh = shallow_input(x);
    for level in x.dual_levels() {
        if let Some(tangent) = x.tangent(level) {
            fresh.set_tangent(level, if keep { tangent } else { unrecorded(&tangent, false)? })?;
        }
    }
    Ok(fresh)
}

/// [`Rule::Added`]: the first product is added to the tangent of the first input, the others to zeros.
fn added(lower: &[Tensor], tangents: &[Option<Tensor>], map: Map) -> Result<Vec<Option<Tensor>>> {
    let nothing = zeros_like(&lower[0])?;
    let first = std::cell::Cell::new(Some(tangents[0].clone().unwrap_or_else(|| nothing.clone())));
    multilinear(&lower[1..], &tangents[1..], &|factors| {
        let start = first.take().unwrap_or_else(|| nothing.clone());
        map(&[std::slice::from_ref(&start), factors].concat())
    })
}

/// True if a value or one of its tangents requires a gradient.
fn is_recorded(t: &Tensor) -> bool {
    t.requires_grad() || t.dual_levels().iter().any(|&l| t.tangent(l).is_some_and(|t| is_recorded(&t)))
}

/// [`Rule::Transposed`]; `reverse` computes gradients.
fn transposed(
    lower: &[Tensor],
    tangents: &[Option<Tensor>],
    map: Map,
    reverse: Reverse,
) -> Result<Vec<Option<Tensor>>> {
    let recording = mode::grad_enabled() && lower.iter().chain(tangents.iter().flatten()).any(is_recorded);
    mode::with_grad(true, || {
        let moved: Vec<usize> = (0..lower.len()).filter(|&i| tangents[i].is_some()).collect();
        let mut xs = lower.to_vec();
        // The engine gives gradients the dtype of their tensor, so the primal is promoted to the tangent's
        // dtype.
        for (i, x) in xs.iter_mut().enumerate() {
            if let Some(t) = tangents[i].as_ref().filter(|t| t.dtype() != x.dtype()) {
                *x = V::from(&*x).cast(x.dtype().promote(t.dtype())).tensor()?;
            }
        }
        for x in xs.iter_mut().filter(|x| x.is_inference()) {
            *x = unrecorded(x, true)?;
        }
        for &i in &moved {
            xs[i] = source(&xs[i])?;
        }
        let sources: Vec<Tensor> = moved.iter().map(|&i| xs[i].clone()).collect();
        let outputs = map(&xs)?;
        // The result is linear in the incoming gradient, so any value would do. Ones, because some formulas
        // have a kink at zero.
        let mut roots: Vec<(Tensor, Tensor)> = Vec::new();
        let mut places: Vec<Option<usize>> = Vec::new();
        for output in &outputs {
            places.push(output.requires_grad().then_some(roots.len()));
            if output.requires_grad() {
                let incoming = constant::ones(&output.shape(), output.dtype(), output.device())?;
                incoming.set_requires_grad(true)?;
                roots.push((output.clone(), incoming));
            }
        }
        let gradients = reverse(&roots, &sources, true)?;
        let pairs: Vec<(Tensor, Tensor)> = gradients
            .into_iter()
            .zip(&moved)
            .filter_map(|(g, &i)| Some((g.filter(Tensor::requires_grad)?, tangents[i].clone()?)))
            .collect();
        let incoming: Vec<Tensor> = roots.into_iter().map(|(_, u)| u).collect();
        let found = if pairs.is_empty() {
            vec![None; incoming.len()]
        } else {
            reverse(&pairs, &incoming, recording)?
        };
        Ok(places.into_iter().map(|p| p.and_then(|p| found[p].clone())).collect())
    })
}

/// Returns an error if a tangent's shape differs from its tensor's.
pub fn check_shape(tensor: &Tensor, tangent: &Tensor) -> Result<()> {
    let body = tensor.body();
    if tangent.shape().as_slice() != body.shape() {
        return Err(Error::runtime(format!(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not \
             supported. Tensor is of size {:?} while the given forward gradient is of size {:?}.",
            body.shape(),
            tangent.shape().as_slice()
        )));
    }
    Ok(())
}

/// Gives a tangent the shape and layout of its output, in memory of its own, so that views of both match and
/// a write to one tangent does not change another. A view's tangent stays a view.
pub fn own_tangent(output: &Tensor, tangent: Tensor) -> Result<Tensor> {
    let body = output.body();
    let mut tangent = tangent;
    if tangent.shape().as_slice() != body.shape() {
        tangent = Expand::call(&tangent, ints(body.shape()))?;
    }
    let alike = same_layout(&body, &tangent.body());
    if alike && (output.tangent_base().is_some() || is_free(&tangent)) {
        return Ok(tangent);
    }
    // A copy with the output's layout also gets its dtype.
    let tangent_body = zeros_with_layout(&body, if alike { tangent.dtype() } else { body.dtype }, &tangent)?;
    inplace::copy_into(&tangent_body, &tangent)?;
    Ok(tangent_body)
}

/// True if no other tensor shares this tensor's memory, and none of its elements share memory.
fn is_free(t: &Tensor) -> bool {
    let alone = |t: &Tensor| t.handles() == 1 && t.body().storage.is_unique();
    match t.as_batched() {
        Some(batched) => {
            t.handles() == 1 && alone(&batched.value) && !may_overlap(&batched.value.body().layout)
        }
        None => alone(t),
    }
}

/// True if both bodies have the same layout and conj and neg bits, apart from strides of dimensions of size
/// 1.
pub fn same_layout(a: &Body, b: &Body) -> bool {
    let apart = |i: usize| a.layout.shape[i] != 1 && a.layout.strides[i] != b.layout.strides[i];
    a.layout.shape == b.layout.shape
        && a.layout.offset == b.layout.offset
        && a.conj_neg == b.conj_neg
        && !(0..a.layout.ndim()).any(apart)
}

/// Zeros with the layout of `body`, batched like `values`.
pub fn zeros_with_layout(body: &Body, dtype: DType, values: &Tensor) -> Result<Tensor> {
    let (batch, end) = (Batch::of([values]), body.layout.end());
    let whole = crate::operator::bodies::filled(&batch.shape(&[end]), Scalar::Int(0), dtype, body.device())?;
    let body = Body { conj_neg: body.conj_neg, ..whole.with_layout(batch.place(&body.layout, end)) };
    Ok(batch.wrap(Tensor::new(body)))
}
