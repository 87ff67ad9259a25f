//! One tensor cut into several views, with one node for all of them.

use super::join::cat;
use super::row::{Arg, Ints};
use super::tangent;
use super::view::RULES;
use crate::base::{DType, Device, Error, Layout, Result, room, wrap_dim};
use crate::storage::reserve;
use crate::tensor::{Body, Derivative, Edge, Grads, Recorder, Step, Tensor, Viewing, packing, records};

/// Where each input lies along the joined dimension.
#[derive(Clone)]
pub struct Joined {
    pub dim: i64,
    pub lengths: Vec<usize>,
}

/// The gradients of the pieces, zeros where a piece got none.
fn pieces(step: &Step, dim: usize, lengths: &[usize]) -> Result<Vec<Tensor>> {
    let at = super::meta_of(step, 0)?;
    let piece = |(i, &length): (usize, &usize)| match step.grad(i) {
        Some(g) => Ok(g.clone()),
        None => {
            let mut shape = at.shape.clone();
            shape[dim] = length;
            super::create::zeros(&shape, at.dtype, at.device)
        }
    };
    room::collect(lengths.iter().enumerate().map(piece))
}

fn unsplit(step: &Step) -> Result<Grads> {
    let mut grads: Grads = smallvec::smallvec![None];
    if step.wants(0) {
        let Joined { dim, lengths } = step.params::<Joined>()?;
        grads[0] = Some(cat(&pieces(step, *dim as usize, lengths)?, *dim)?);
    }
    Ok(grads)
}

static SPLIT: Derivative = Derivative { facts: None, name: "SplitBackward0", apply: unsplit };
pub static SPLIT_SIZES: Derivative =
    Derivative { facts: None, name: "SplitWithSizesBackward0", apply: unsplit };
/// Refuses more parts than memory can hold the tensors for.
pub fn check_count(count: usize) -> Result<()> {
    /// What the view, its place in lists, and its object in Python take, or more.
    const PART: usize = 512;
    if count < 1 << 16 { Ok(()) } else { room::check(count, PART) }
}

/// Views of `input` with one node for all of them.
fn views(
    derivative: &'static Derivative,
    input: &Tensor,
    layouts: &[Layout],
    joined: &Joined,
) -> Result<Vec<Tensor>> {
    if input.is_batched() {
        return views_of_samples(derivative, input, layouts, joined);
    }
    let body = input.body();
    let bodies: Vec<Body> = room::collect(layouts.iter().map(|l| Ok(body.with_layout(l.clone()))))?;
    let derivative = if packing::active() { packing::instead_of(derivative) } else { derivative };
    let node = records([input])?.then(|| {
        let mut recorder = Recorder::new(derivative);
        recorder.input(Some(input)).params(Box::new(joined.clone()));
        recorder.publish(&bodies.iter().collect::<Vec<_>>())
    });
    let view = |(i, body): (usize, Body)| {
        let edge = node.clone().map(|node| Edge { node, output: i as u32 });
        reserve::check()?;
        Ok(Tensor::view_of(input, body, edge, Viewing::Multi, &RULES))
    };
    let made: Vec<Tensor> = room::collect(bodies.into_iter().enumerate().map(view))?;
    if input.is_dual() {
        tangent::attach(&made, &[input], tangent::Rule::Linear, &|xs| {
            views(derivative, &xs[0], layouts, joined)
        })?;
    }
    Ok(made)
}

/// [`views`] of samples that lie as the one tensor does for which the layouts are meant.
fn views_of_samples(
    derivative: &'static Derivative,
    input: &Tensor,
    layouts: &[Layout],
    joined: &Joined,
) -> Result<Vec<Tensor>> {
    super::batch::cut(input, |value, k| {
        let lead = value.body().layout.clone();
        let lifted = |layout: &Layout| {
            let mut lifted = layout.clone();
            lifted.shape.insert_from_slice(0, &lead.shape[..k]);
            lifted.strides.insert_from_slice(0, &lead.strides[..k]);
            lifted
        };
        let layouts: Vec<Layout> = layouts.iter().map(lifted).collect();
        let joined = Joined { dim: joined.dim + k as i64, lengths: joined.lengths.clone() };
        views(derivative, value, &layouts, &joined)
    })
}

pub fn split_at(
    derivative: &'static Derivative,
    input: &Tensor,
    lengths: Vec<usize>,
    dim: usize,
) -> Result<Vec<Tensor>> {
    if input.is_batched() {
        return super::batch::cut(input, |value, k| split_at(derivative, value, lengths, dim + k));
    }
    let layout = input.body().layout.clone();
    let mut start = 0;
    let mut part = |length: usize| {
        let from = start;
        start += length as i64;
        layout.slice(dim as i64, Some(from), Some(start), 1)
    };
    let layouts = room::collect(lengths.iter().map(|&n| part(n)))?;
    views(derivative, input, &layouts, &Joined { dim: dim as i64, lengths })
}

/// The parts that `cut` makes, histories and all, without a base, and each with a count of writes of its own.
pub fn untied(cut: impl FnOnce() -> Result<Vec<Tensor>>) -> Result<Vec<Tensor>> {
    static UNSAFE: Derivative = Derivative { facts: None, name: "UnsafeSplitBackward0", apply: unsplit };
    static UNSAFE_SIZES: Derivative =
        Derivative { facts: None, name: "UnsafeSplitWithSizesBackward0", apply: unsplit };
    let name: packing::Rename = |cut| match cut {
        cut if std::ptr::eq(cut, &SPLIT) => &UNSAFE,
        cut if std::ptr::eq(cut, &SPLIT_SIZES) => &UNSAFE_SIZES,
        other => other,
    };
    let parts = packing::renamed(name, cut)?;
    room::collect(parts.iter().map(alone))
}

fn alone(part: &Tensor) -> Result<Tensor> {
    if let Some(batched) = part.as_batched() {
        return Ok(Tensor::batched(alone(&batched.value)?, batched.levels.clone()));
    }
    let body = part.body().clone();
    let made = Tensor::of(Body { storage: body.storage.alias(), ..body }, part.history());
    for level in part.dual_levels() {
        if let Some(tangent) = part.tangent(level) {
            made.set_tangent(level, tangent)?;
        }
    }
    Ok(made)
}

/// Equal parts of `size`; the last may be shorter.
pub fn split_evenly(input: &Tensor, size: i64, dim: i64) -> Result<Vec<Tensor>> {
    if input.ndim() == 0 {
        return Err(Error::runtime("split expects at least a 1-dimensional tensor"));
    }
    if size < 0 {
        return Err(Error::runtime(format!(
            "split expects split_size be non-negative, but got split_size={size}"
        )));
    }
    let dim = wrap_dim(dim, input.ndim())?;
    let (total, size) = (input.shape()[dim], size as usize);
    if size == 0 && total != 0 {
        return Err(Error::runtime(format!(
            "split_size can only be 0 if dimension size is 0, but got dimension size of {total}"
        )));
    }
    let count = if size == 0 { 1 } else { total.div_ceil(size).max(1) };
    check_count(count)?;
    let lengths = room::collect((0..count).map(|i| Ok(size.min(total - i * size))))?;
    split_at(&SPLIT, input, lengths, dim)
}

/// `input` cut before each of `places`.
fn cut(input: &Tensor, places: &[i64], dim: i64) -> Result<Vec<Tensor>> {
    let mut start = 0;
    let whole = input.shape()[dim as usize] as i64;
    let part = |end| super::view::slice(input, dim, Some(std::mem::replace(&mut start, end)), Some(end), 1);
    room::collect(places.iter().copied().chain([whole]).map(part))
}

/// `tensor_split`: so many nearly equal parts, or cuts at these places.
pub fn cut_into(input: &Tensor, how: &Arg, dim: i64) -> Result<Vec<Tensor>> {
    if input.ndim() == 0 {
        return Err(Error::runtime(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims",
        ));
    }
    let at = wrap_dim(dim, input.ndim())?;
    let places: Ints = match how {
        Arg::Int(n) if *n > 0 => {
            let (total, n) = (input.shape()[at], *n as usize);
            let (each, longer) = (total / n, total % n);
            check_count(n)?;
            Ints::from_vec(room::collect((1..n).map(|i| Ok((i * each + i.min(longer)) as i64)))?)
        }
        Arg::Int(n) => {
            return Err(Error::runtime(format!("number of sections must be larger than 0, got {n}")));
        }
        Arg::Ints(places) => places.clone(),
        Arg::Tensor(t) => {
            let refuse = |what: String| {
                Err(Error::runtime(format!("tensor_split expected tensor_indices_or_sections to {what}")))
            };
            if t.ndim() > 1 {
                return refuse(format!(
                    "be a zero-dimensional or one-dimensional tensor, but got a tensor with {} dims",
                    t.ndim()
                ));
            }
            if t.dtype() != DType::I64 {
                return refuse(format!("have dtype of long, but got {}", t.dtype().scalar_name()));
            }
            let host = super::create::to_device(t, Device::Cpu)?;
            let list = (0..host.numel())
                .map(|i| {
                    super::view::select(&super::view::reshape(&host, &[host.numel()])?, 0, i as i64)?.item()
                })
                .collect::<Result<Vec<_>>>()?;
            if t.ndim() == 0 {
                return cut_into(input, &Arg::Int(list[0].as_i64()), dim);
            }
            list.into_iter().map(|s| s.as_i64()).collect()
        }
        other => return Err(neither("tensor_split", other)),
    };
    cut(input, &places, at as i64)
}

/// A call with something that is neither a number of parts nor a list of places.
fn neither(name: &str, given: &Arg) -> Error {
    let expected = " * (Tensor input, int sections)\n * (Tensor input, tuple of ints indices)\n";
    Error::type_error(format!(
        "{name}() received an invalid combination of arguments - got (Tensor, {}), but expected one of:\n{expected}",
        given.type_name()
    ))
}

/// The argument, or the number that a tensor of one integer stands for.
pub fn as_number(given: Arg) -> Result<Arg> {
    match &given {
        Arg::Tensor(t) if t.numel() == 1 && t.dtype().is_int() => Ok(Arg::Int(t.item()?.as_i64())),
        _ => Ok(given),
    }
}

/// `hsplit` and its sisters want whole parts.
pub fn cut_whole(name: &str, input: &Tensor, how: &Arg, ndim: usize, dim: usize) -> Result<Vec<Tensor>> {
    if input.ndim() < ndim {
        return Err(Error::runtime(format!(
            "torch.{name} requires a tensor with at least {ndim} dimension, but got a tensor with {} dimensions!",
            input.ndim()
        )));
    }
    let total = input.shape()[dim];
    if !matches!(how, Arg::Int(_) | Arg::Ints(_)) {
        return Err(neither(name, how));
    }
    if let Arg::Int(n) = how
        && (*n <= 0 || total as i64 % n != 0)
    {
        return Err(Error::runtime(format!(
            "torch.{name} attempted to split along dimension {dim}, but the size of the dimension {total} is not divisible \
             by the split_size {n}!"
        )));
    }
    cut_into(input, how, dim as i64)
}

/// Parts of these sizes.
pub fn split_sizes(input: &Tensor, sections: &[i64], dim: i64) -> Result<Vec<Tensor>> {
    if input.ndim() == 0 {
        return Err(Error::runtime("split expects at least a 1-dimensional tensor"));
    }
    let at = wrap_dim(dim, input.ndim())?;
    let total = input.shape()[at] as i64;
    if sections.iter().any(|&n| n < 0) {
        return Err(Error::runtime(format!(
            "split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={sections:?}"
        )));
    }
    if sections.iter().sum::<i64>() != total {
        return Err(Error::runtime(format!(
            "split_with_sizes expects split_sizes to sum exactly to {total} (input tensor's size at dimension {at}), but got \
             split_sizes={sections:?}"
        )));
    }
    split_at(&SPLIT_SIZES, input, sections.iter().map(|&n| n as usize).collect(), at)
}
