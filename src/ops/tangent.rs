//! Forward mode: the tangents of what an operator made, from its inputs' tangents and its row. A pointwise derivative is
//! its own transpose, a linear operator is its own tangent map, and for the rest two reverse passes give the tangent.

use super::batch::Batch;
use super::pointwise::{GRAD, Operand, Pointwise};
use super::value::V;
use super::{create, inplace, view};
use crate::base::views::may_overlap;
use crate::base::{DType, Error, Result, Scalar};
use crate::tensor::dual::{self, DualLevel};
use crate::tensor::{Body, Edge, Saved, Tensor, mode};
use smallvec::SmallVec;
use std::sync::OnceLock;

/// How an operator's tangent follows from its row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// The operator itself, on the tangents.
    Linear,
    /// The sum of the operator on each input's tangent and the other inputs.
    Multilinear,
    /// The same for all inputs but the first, which is added to what the others give.
    Added,
    /// Zero: nothing moves with the input.
    Still,
    /// From the derivative: the gradient is linear in what comes in, and the gradient of that map is the tangent.
    Transposed,
}

/// The rule that the words in a row's brackets name.
pub const fn rule(words: &[&str]) -> Rule {
    let mut i = 0;
    while i < words.len() {
        if super::same(words[i], "linear") {
            return Rule::Linear;
        }
        if super::same(words[i], "multilinear") {
            return Rule::Multilinear;
        }
        if super::same(words[i], "added") {
            return Rule::Added;
        }
        if super::same(words[i], "still") {
            return Rule::Still;
        }
        i += 1;
    }
    Rule::Transposed
}

/// Gradients of outputs (each with what comes in) with respect to inputs, and whether they are recorded themselves.
pub type Reverse = fn(&[(Tensor, Tensor)], &[Tensor], bool) -> Result<Vec<Option<Tensor>>>;

/// The scheduler, a room above: it serves here from the first level on that is entered.
pub static REVERSE: OnceLock<Reverse> = OnceLock::new();

fn reverse(roots: &[(Tensor, Tensor)], inputs: &[Tensor], create_graph: bool) -> Result<Vec<Option<Tensor>>> {
    let reverse = REVERSE.get().ok_or_else(|| Error::runtime("forward mode without a level"))?;
    reverse(roots, inputs, create_graph)
}

/// An operator as a function of its tensors.
pub type Map<'a> = &'a dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>;

/// Gives the outputs of an operator their tangents. The inputs are as they were when it was called.
#[cold]
pub fn attach(outputs: &[Tensor], inputs: &[&Tensor], rule: Rule, map: Map) -> Result<()> {
    for level in dual::levels_of(inputs.iter().copied()) {
        let lower: Vec<Tensor> = inputs.iter().map(|t| t.below(level)).collect();
        let tangents: Vec<Option<Tensor>> = inputs.iter().map(|t| t.tangent(level)).collect();
        let found = match rule {
            Rule::Linear => linear(&lower, &tangents, map)?,
            Rule::Multilinear => multilinear(&lower, &tangents, map)?,
            Rule::Added if tangents[1..].iter().any(Option::is_some) => added(&lower, &tangents, map)?,
            Rule::Still => outputs.iter().map(|y| zeros_like(y).map(Some)).collect::<Result<_>>()?,
            Rule::Added | Rule::Transposed => transposed(&lower, &tangents, map)?,
        };
        for (output, tangent) in outputs.iter().zip(found) {
            if let Some(tangent) = tangent.filter(|_| output.dtype().is_differentiable()) {
                output.set_tangent(level, own(output, tangent)?)?;
            }
        }
    }
    remember(outputs, |i| inputs.get(i).copied());
    Ok(())
}

/// [`attach`] for an operator with one output.
#[cold]
pub fn attach_one(
    output: &Tensor,
    inputs: &[&Tensor],
    rule: Rule,
    map: &dyn Fn(&[Tensor]) -> Result<Tensor>,
) -> Result<()> {
    attach(std::slice::from_ref(output), inputs, rule, &|xs| Ok(vec![map(xs)?]))
}

/// [`attach`] for an operator on a list, linear in all of it.
pub fn joined(made: Tensor, inputs: &[Tensor], map: &dyn Fn(&[Tensor]) -> Result<Tensor>) -> Result<Tensor> {
    if inputs.iter().any(Tensor::is_dual) {
        attach_one(&made, &inputs.iter().collect::<Vec<_>>(), Rule::Linear, map)?;
    }
    Ok(made)
}

/// The tangents of values picked along a dimension: `outputs` are the values and where they were, `kept` tells whether they
/// have that dimension.
pub fn picked(outputs: Vec<Tensor>, input: &Tensor, dim: i64, kept: bool) -> Result<Vec<Tensor>> {
    if input.is_dual() {
        let index = create::shallow(&outputs[1]);
        attach(&outputs, &[input], Rule::Linear, &|xs| {
            if kept || xs[0].ndim() == 0 {
                return Ok(vec![super::index::gather(&xs[0], dim, index.clone())?]);
            }
            let values = super::index::gather(&xs[0], dim, view::unsqueeze(&index, dim)?)?;
            Ok(vec![view::squeeze_one(&values, dim)?])
        })?;
    }
    Ok(outputs)
}

/// Lets the node of these outputs remember the tangents of what it saved.
fn remember<'a>(outputs: &'a [Tensor], input: impl Fn(usize) -> Option<&'a Tensor>) {
    if let Some(Edge { node, .. }) = outputs.iter().find_map(Tensor::history) {
        dual::remember(&node, |source| match source.checked_sub(Saved::OUTPUT) {
            Some(output) => outputs.get(usize::from(output)),
            None => input(usize::from(source)),
        });
    }
}

fn zeros_like(t: &Tensor) -> Result<Tensor> {
    create::zeros(&t.shape(), t.dtype(), t.device())
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
                Some(sum) => super::arithmetic::add(&sum, &part)?,
                None => part,
            });
        }
    }
    Ok(sums)
}

/// An input on a node of its own, so that a gradient for it alone can be asked for.
fn source(x: &Tensor) -> Result<Tensor> {
    if x.requires_grad() {
        return view::alias(x);
    }
    let fresh = unrecorded(x, true)?;
    fresh.set_requires_grad(true)?;
    Ok(fresh)
}

/// The same values without their history, and the same tangents: with theirs, or without too.
pub fn unrecorded(x: &Tensor, keep: bool) -> Result<Tensor> {
    if let Some(batched) = x.as_batched() {
        return Ok(Tensor::batched(unrecorded(&batched.value, keep)?, batched.levels.clone()));
    }
    let fresh = create::shallow(x);
    for level in x.dual_levels() {
        if let Some(tangent) = x.tangent(level) {
            fresh.set_tangent(level, if keep { tangent } else { unrecorded(&tangent, false)? })?;
        }
    }
    Ok(fresh)
}

/// The same values and history without tangents.
pub fn bare(x: &Tensor) -> Tensor {
    match x.as_batched() {
        Some(batched) => Tensor::batched(bare(&batched.value), batched.levels.clone()),
        None => x.below(0),
    }
}

/// What is added moves along with the first of the products.
fn added(lower: &[Tensor], tangents: &[Option<Tensor>], map: Map) -> Result<Vec<Option<Tensor>>> {
    let nothing = zeros_like(&lower[0])?;
    let first = std::cell::Cell::new(Some(tangents[0].clone().unwrap_or_else(|| nothing.clone())));
    multilinear(&lower[1..], &tangents[1..], &|factors| {
        let start = first.take().unwrap_or_else(|| nothing.clone());
        map(&[std::slice::from_ref(&start), factors].concat())
    })
}

/// Whether a value, or a tangent that it carries, wants a gradient.
fn is_recorded(t: &Tensor) -> bool {
    t.requires_grad() || t.dual_levels().iter().any(|&l| t.tangent(l).is_some_and(|t| is_recorded(&t)))
}

fn transposed(lower: &[Tensor], tangents: &[Option<Tensor>], map: Map) -> Result<Vec<Option<Tensor>>> {
    let recording = mode::grad_enabled() && lower.iter().chain(tangents.iter().flatten()).any(is_recorded);
    mode::with_grad(true, || {
        let moved: Vec<usize> = (0..lower.len()).filter(|&i| tangents[i].is_some()).collect();
        let mut xs = lower.to_vec();
        for &i in &moved {
            xs[i] = source(&lower[i])?;
        }
        let sources: Vec<Tensor> = moved.iter().map(|&i| xs[i].clone()).collect();
        let outputs = map(&xs)?;
        // What comes in does not matter, as the gradient is linear in it; zero would be a corner of some formulas.
        let mut roots: Vec<(Tensor, Tensor)> = Vec::new();
        let mut places: Vec<Option<usize>> = Vec::new();
        for output in &outputs {
            places.push(output.requires_grad().then_some(roots.len()));
            if output.requires_grad() {
                let incoming = create::ones(&output.shape(), output.dtype(), output.device())?;
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

/// A tangent as its output needs it: of its dtype and shape, and with bytes of its own that lie as the output's do, so that
/// views of both match and a write to one tangent is no write to another. A view's tangent is a view.
pub fn own(output: &Tensor, tangent: Tensor) -> Result<Tensor> {
    let body = output.body();
    let mut tangent = tangent;
    if tangent.dtype() != body.dtype {
        tangent = create::to_dtype(&tangent, body.dtype)?;
    }
    if tangent.shape().as_slice() != body.shape() {
        tangent = view::expand(&tangent, view::ints(body.shape()))?;
    }
    if (output.moves_with().is_some() || is_free(&tangent)) && lies_alike(&body, &tangent.body()) {
        return Ok(tangent);
    }
    let room = room(&body, body.dtype, &tangent)?;
    inplace::copy_into(&room, &tangent)?;
    Ok(room)
}

/// Whether nobody else has this tensor's bytes, and each of its elements has some of its own.
fn is_free(t: &Tensor) -> bool {
    let alone = |t: &Tensor| t.handles() == 1 && t.body().storage.is_unique();
    match t.as_batched() {
        Some(batched) => {
            t.handles() == 1 && alone(&batched.value) && !may_overlap(&batched.value.body().layout)
        }
        None => alone(t),
    }
}

/// Whether an element lies at the same place of both.
fn lies_alike(a: &Body, b: &Body) -> bool {
    let apart = |i: usize| a.layout.shape[i] > 1 && a.layout.strides[i] != b.layout.strides[i];
    a.layout.shape == b.layout.shape && a.layout.offset == b.layout.offset && !(0..a.layout.ndim()).any(apart)
}

/// Zeros that lie as `body` does: for each sample, where `values` are to go there that have samples.
fn room(body: &Body, dtype: DType, values: &Tensor) -> Result<Tensor> {
    let (batch, end) = (Batch::of([values]), body.layout.end());
    let whole = super::kernel::filled(&batch.shape(&[end]), Scalar::Int(0), dtype, body.device())?;
    Ok(batch.wrap(Tensor::new(whole.with_layout(batch.place(&body.layout, end)))))
}

/// Refuses a tangent of another shape than its tensor's.
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

/// A tangent for a tensor that the user pairs with it: as it is where it lies as its tensor does, else a copy.
fn paired(tensor: &Tensor, tangent: &Tensor) -> Result<Tensor> {
    check_shape(tensor, tangent)?;
    let body = tensor.body();
    if lies_alike(&body, &tangent.body()) {
        return Ok(tangent.clone());
    }
    let room = room(&body, tangent.dtype(), tangent)?;
    inplace::copy_into(&room, tangent)?;
    Ok(room)
}

/// The tangents of a pointwise result: each derivative's formula, on the operand's tangent in place of a gradient.
#[cold]
pub fn pointwise(op: &'static Pointwise, operands: &[Operand], output: &Tensor) -> Result<()> {
    if op.gradients.is_empty() || !output.dtype().is_differentiable() {
        return Ok(());
    }
    let tensors = || operands.iter().filter_map(|o| if let Operand::Tensor(t) = o { Some(*t) } else { None });
    // A derivative with respect to a complex number need not be its own transpose.
    if output.dtype().is_complex() || tensors().any(|t| t.dtype().is_complex()) {
        let inputs: Vec<&Tensor> = tensors().collect();
        return attach_one(output, &inputs, Rule::Transposed, &|xs| {
            let mut next = xs.iter();
            let moved =
                |o: &Operand<'_>| if let Operand::Scalar(s) = o { Some(Operand::Scalar(*s)) } else { None };
            let operands: Option<SmallVec<[Operand; 4]>> =
                operands.iter().map(|o| moved(o).or_else(|| next.next().map(Operand::Tensor))).collect();
            super::pointwise::apply(op, &operands.unwrap_or_default())
        });
    }
    for level in dual::levels_of(tensors()) {
        let result = output.below(level);
        let mut sum: Option<V> = None;
        for gradient in op.gradients {
            let Some(Operand::Tensor(moved)) = operands.get(usize::from(gradient.of)) else { continue };
            let Some(tangent) = moved.tangent(level) else { continue };
            let value = |&source: &u16| match source {
                GRAD => V::from(&tangent),
                Saved::OUTPUT => V::from(&result),
                place => match operands.get(usize::from(place)) {
                    Some(Operand::Tensor(t)) => V::from(t.below(level)),
                    Some(Operand::Scalar(s)) => V::from(*s),
                    None => V::misuse(),
                },
            };
            let values: SmallVec<[V; 4]> = gradient.sources.iter().map(value).collect();
            let part = (gradient.formal)(&values);
            sum = Some(match sum {
                Some(sum) => sum + part,
                None => part,
            });
        }
        if let Some(sum) = sum {
            output.set_tangent(level, own(output, sum.tensor()?)?)?;
        }
    }
    let outputs = std::slice::from_ref(output);
    remember(outputs, |i| if let Some(Operand::Tensor(t)) = operands.get(i) { Some(*t) } else { None });
    Ok(())
}

// --- in place ---

/// Lets a node that stands for an in-place write remember the tangents of what it saved.
pub fn remember_write(edge: &Edge, operands: &[Operand], target: &Tensor) {
    dual::remember(&edge.node, |source| match source {
        Saved::OUTPUT => Some(target),
        place => match operands.get(usize::from(place)) {
            Some(Operand::Tensor(t)) => Some(t),
            _ => None,
        },
    });
}

/// `target` was overwritten with values that have `result`'s tangents.
#[cold]
pub fn rewrite(target: &Tensor, result: &Tensor) -> Result<()> {
    for level in dual::levels_of([target, result]) {
        match (target.tangent(level), result.tangent(level)) {
            (Some(old), Some(new)) if old.same(&new) => {}
            (Some(old), Some(new)) => inplace::copy_into(&old, &new.below(level))?,
            (Some(old), None) => inplace::copy_into(&old, &create::zeros(&[], old.dtype(), old.device())?)?,
            (None, Some(new)) => begin(target, level, new)?,
            (None, None) => {}
        }
    }
    Ok(())
}

/// `target` was overwritten with constants.
#[cold]
pub fn erase(target: &Tensor) -> Result<()> {
    for level in dual::levels_of([target]) {
        if let Some(tangent) = target.tangent(level) {
            super::write::erase(&tangent)?;
        }
    }
    Ok(())
}

/// The first tangent of a tensor that was there before. A view's lies in its base's, which is zero elsewhere.
fn begin(target: &Tensor, level: DualLevel, tangent: Tensor) -> Result<()> {
    let Some(base) = target.moves_with() else {
        return target.set_tangent(level, own(target, tangent)?);
    };
    let whole = match base.tangent(level) {
        Some(whole) => whole,
        None => {
            let whole = room(&base.body(), base.dtype(), &tangent)?;
            base.set_tangent(level, whole.clone())?;
            whole
        }
    };
    let part = view::part(&whole, &target.body())?;
    // What is written may be a view of what became dual here: its values count, not what it moves with from now on.
    inplace::copy_into(&part, &tangent.below(level))?;
    target.set_tangent(level, part)
}

/// `write` put `values` into `target`: it does so with their tangents too.
#[cold]
pub fn put(target: &Tensor, values: &Tensor, write: &dyn Fn(&Tensor, &Tensor) -> Result<()>) -> Result<()> {
    for level in dual::levels_of([target, values]) {
        let moved = values.tangent(level).map_or_else(|| zeros_like(values), Ok)?;
        if target.tangent(level).is_none() {
            let body = target.body();
            begin(target, level, room(&body, body.dtype, &moved)?)?;
        }
        if let Some(tangent) = target.tangent(level) {
            write(&tangent, &moved)?;
        }
    }
    Ok(())
}

// --- for the user ---

/// `tensor` (the same bytes) with a tangent.
pub fn make_dual(tensor: &Tensor, tangent: &Tensor, level: DualLevel) -> Result<Tensor> {
    if tensor.is_batched() {
        // Samples that only the tangent has stay its own affair.
        let batch = Batch::of([tensor]);
        return Ok(batch.wrap(make_dual(tensor.physical(), &batch.lowered(tangent)?, level)?));
    }
    if tensor.tangent(level).is_some() {
        return Err(Error::runtime(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not supported.",
        ));
    }
    if tangent.tangent(level).is_some() {
        return Err(Error::runtime(
            "Setting a forward grad that itself has a forward gradient at the same level0 is not supported.",
        ));
    }
    let dual = aloof(tensor, level)?;
    dual.set_tangent(level, paired(tensor, tangent)?)?;
    Ok(dual)
}

/// Gives a tensor that is new the tangent that moves its samples.
pub fn pair(tensor: &Tensor, tangent: &Tensor, level: DualLevel) -> Result<()> {
    let (physical, tangent) = (tensor.physical(), Batch::of([tensor]).lowered(tangent)?);
    physical.set_tangent(level, own(physical, tangent)?)
}

/// The tensor without its tangent at `level`, and that tangent.
pub fn unpack_dual(tensor: &Tensor, level: DualLevel) -> Result<(Tensor, Option<Tensor>)> {
    if let Some(batched) = tensor.as_batched() {
        let (value, tangent) = unpack_dual(&batched.value, level)?;
        let batch = Batch::of([tensor]);
        return Ok((batch.wrap(value), tangent.map(|t| batch.raised(&t)).transpose()?));
    }
    Ok((aloof(tensor, level)?, tensor.tangent(level).filter(|_| dual::enabled())))
}

/// A view with the tangents of other levels than this one, which does not follow those of what it shows.
fn aloof(tensor: &Tensor, level: DualLevel) -> Result<Tensor> {
    let carried = dual::set_enabled(false);
    let view = view::view_as_shape(tensor, tensor.shape());
    dual::set_enabled(carried);
    let view = view.inspect(Tensor::keep_aloof)?;
    for other in tensor.dual_levels().into_iter().filter(|&l| l != level) {
        if let Some(tangent) = tensor.tangent(other) {
            view.set_tangent(other, tangent)?;
        }
    }
    Ok(view)
}
