//! Padding at both ends of the last dimensions; negative padding crops. New elements are a constant, or are copied from the
//! tensor: mirrored, the outermost element repeated, or those of the other end.

use crate::base::MemoryFormat;
use crate::operator::bodies::{copy, filled, preserved};
use crate::operator::inplace;
use crate::operator::primitives::constant;
use crate::ops::elementwise::arithmetic as a;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::no_grad;
use crate::ops::shape::join;
use crate::ops::shape::rearrange::flip;
use crate::ops::shape::slices::slice;

/// The source of the elements beyond the ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PadEdge {
    /// Mirrored at the outermost element, which is not repeated.
    Reflect,
    /// The outermost element.
    Replicate,
}

/// The relation of a segment of the result to one of the input.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SegmentKind {
    Straight,
    Backwards,
    /// All elements come from one element.
    Repeated,
}

/// A segment along one dimension: `length` elements of the result from `to` on come from those of the input from `from` on.
#[derive(Clone, Copy)]
struct Segment {
    to: usize,
    from: usize,
    length: usize,
    kind: SegmentKind,
}

impl Segment {
    fn source(&self) -> usize {
        if self.kind == SegmentKind::Repeated { 1 } else { self.length }
    }
}

/// One dimension with `size` elements and the padding at both ends. Negative padding crops.
#[derive(Clone, Copy)]
struct Side {
    before: i64,
    after: i64,
    size: i64,
}

impl Side {
    /// The padded size; `None` on overflow.
    fn total(&self) -> Option<i64> {
        self.size.checked_add(self.before)?.checked_add(self.after)
    }

    /// The segments of the result: the padding before, the elements themselves, the padding after.
    fn segments(&self, edge: PadEdge) -> Vec<Segment> {
        let (n, left) = (self.size, self.before);
        let total = self.total().unwrap_or(0);
        // The range of the result that holds the elements themselves.
        let (first, last) = (left.clamp(0, total), (left + n).clamp(0, total));
        let kind = if edge == PadEdge::Reflect { SegmentKind::Backwards } else { SegmentKind::Repeated };
        // Element `o` of the result corresponds to position `o - left` of the input.
        let lowest = |from: i64, to: i64| match edge {
            PadEdge::Replicate if from < left => 0,
            PadEdge::Replicate => n - 1,
            PadEdge::Reflect if from < left => left - to + 1,
            PadEdge::Reflect => 2 * (n - 1) - (to - 1 - left),
        };
        let segment = |from: i64, to: i64, source: i64, kind| Segment {
            to: from as usize,
            from: source as usize,
            length: (to - from) as usize,
            kind,
        };
        let mut all = Vec::new();
        if first > 0 {
            all.push(segment(0, first, lowest(0, first), kind));
        }
        if last > first {
            all.push(segment(first, last, first - left, SegmentKind::Straight));
        }
        let start = last.max(first);
        if total > start {
            all.push(segment(start, total, lowest(start, total), kind));
        }
        all
    }
}

/// Pairs the dimensions with their padding, from the last dimension on, as in PyTorch's argument.
fn sides(shape: &[usize], pad: &[i64]) -> Vec<Side> {
    let sizes = shape.iter().rev();
    pad.chunks_exact(2)
        .zip(sizes)
        .map(|(pair, &n)| Side { before: pair[0], after: pair[1], size: n as i64 })
        .collect()
}

/// The padded shape.
fn pad_shape(shape: &[usize], sides: &[Side]) -> Result<Dims> {
    let mut shape = Dims::from_slice(shape);
    let ndim = shape.len();
    for (i, side) in sides.iter().enumerate() {
        let total = side.total().and_then(|n| usize::try_from(n).ok());
        shape[ndim - 1 - i] = total.ok_or_else(|| {
            Error::runtime(format!(
                "The input size {}, plus negative padding {} and {} resulted in a negative output size, which is invalid. \
                 Check dimension {} of your input.",
                side.size,
                side.before,
                side.after,
                ndim - 1 - i
            ))
        })?;
    }
    Ok(shape)
}

/// One segment per dimension: a block of the result, and the block of the input that it comes from.
struct PadBlock {
    segments: Vec<Segment>,
}

impl PadBlock {
    /// All combinations of one segment from each dimension.
    fn all(sides: &[Side], edge: PadEdge) -> Vec<PadBlock> {
        let mut all = vec![PadBlock { segments: Vec::new() }];
        for side in sides {
            let own = side.segments(edge);
            let with = |block: &PadBlock| {
                let extend = |s: &Segment| PadBlock { segments: [&block.segments[..], &[*s]].concat() };
                own.iter().map(extend).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(with).collect();
        }
        all
    }

    fn dims(&self, ndim: usize) -> impl Iterator<Item = (usize, &Segment)> {
        self.segments.iter().enumerate().map(move |(i, segment)| (ndim - 1 - i, segment))
    }

    fn part(&self, body: &Body, of: impl Fn(&Segment) -> (usize, usize)) -> Result<Body> {
        let mut layout = body.layout.clone();
        for (dim, segment) in self.dims(body.layout.ndim()) {
            let (start, length) = of(segment);
            layout = layout.narrow(dim as i64, start as i64, length as i64)?;
        }
        Ok(body.with_layout(layout))
    }

    fn in_result(&self, body: &Body) -> Result<Body> {
        self.part(body, |s| (s.to, s.length))
    }

    fn in_input(&self, body: &Body) -> Result<Body> {
        self.part(body, |s| (s.from, s.source()))
    }

    /// Flips the dimensions whose segments run backwards.
    fn flip_segments(&self, body: &Body) -> Result<Body> {
        let flipped =
            self.dims(body.layout.ndim()).filter(|(_, s)| s.kind == SegmentKind::Backwards && s.length > 1);
        let dims: Ints = flipped.map(|(dim, _)| dim as i64).collect();
        if dims.is_empty() {
            return Ok(body.clone());
        }
        no_grad(|| flip(&Tensor::new(body.clone()), Sizes(dims)))
    }

    fn is_straight(&self) -> bool {
        self.segments.iter().all(|s| s.kind == SegmentKind::Straight)
    }
}

/// Pads `x` with its own elements; `kernel` is PyTorch's name of it.
fn pad_with_elements(x: &Body, pad: &[i64], edge: PadEdge, kernel: &'static str) -> Result<Body> {
    if x.dtype == DType::Bool {
        return Err(Fault::NoKernel { op: kernel, dtype: x.dtype }.into());
    }
    let sides = sides(x.shape(), pad);
    let mut out = Body::new(&pad_shape(x.shape(), &sides)?, x.dtype, x.device())?;
    if sides.len() > 1 {
        out.layout = MemoryFormat::suggested(&x.layout).layout(&out.layout)?;
    }
    if out.numel() == 0 {
        return Ok(out);
    }
    for block in PadBlock::all(&sides, edge) {
        let place = block.in_result(&out)?;
        let source = block.flip_segments(&block.in_input(x)?)?;
        copy(&place, &source.with_layout(source.layout.broadcast_to(place.shape())))?;
    }
    Ok(out)
}

/// The gradient of [`extended`]: sums the gradients of all copies of an element.
fn sum_copies(g: &Body, like: &Meta, pad: &[i64], edge: PadEdge) -> Result<Body> {
    let sides = sides(&like.shape, pad);
    let out = filled(&like.shape, Scalar::Int(0), g.dtype, g.device())?;
    if g.numel() == 0 {
        return Ok(out);
    }
    // The middle block comes first: it can be copied, because the memory still holds zeros.
    let (middle, rest): (Vec<_>, Vec<_>) =
        PadBlock::all(&sides, edge).into_iter().partition(PadBlock::is_straight);
    for block in middle {
        copy(&block.in_input(&out)?, &block.in_result(g)?)?;
    }
    for block in rest {
        let part = Tensor::new(block.flip_segments(&block.in_result(g)?)?);
        let ndim = part.ndim();
        let repeated = block.dims(ndim).filter(|(_, s)| s.kind == SegmentKind::Repeated);
        let dims: Ints = repeated.map(|(dim, _)| dim as i64).collect();
        let sum = || match dims.is_empty() {
            true => Ok(part.clone()),
            false => crate::ops::reduction::reduce::sum(&part, Some(dims.clone()), true, None),
        };
        let place = block.in_input(&out)?;
        let sum = no_grad(|| a::add(&Tensor::new(place.clone()), &sum()?))?;
        copy(&place, &sum)?;
    }
    Ok(out)
}

/// The primitives for each kind of edge and number of dimensions. Each gradient is a primitive as well.
macro_rules! extended {
    ($($Pad:ident, $Backward:ident, $edge:ident, $kernel:tt;)*) => { $(
        #[primitive(tangent = linear)]
        impl $Pad {
            fn forward(input: &Tensor, padding: Ints) -> Result<Body> {
                pad_with_elements(&input.body(), &padding, PadEdge::$edge, $kernel)
            }
            fn d_input(g: V, input: Tensor, padding: Ints) -> V {
                g.then(|g| $Backward::call(&g, &input, padding))
            }
            fn batch(b: &Batch, input: &Tensor, padding: Ints) -> Result<Tensor> {
                Ok(b.wrap($Pad::call(&b.full(input)?, padding)?))
            }
        }

        #[primitive(tangent = linear)]
        impl $Backward {
            fn forward(grad_output: &Tensor, input: &Tensor, padding: Ints) -> Result<Body> {
                sum_copies(&grad_output.body(), &input.body().meta(), &padding, PadEdge::$edge)
            }
            fn d_grad_output(g: V, padding: Ints) -> V {
                g.then(|g| $Pad::call(&g, padding))
            }
            fn d_input(at: Meta) -> Result<Tensor> {
                constant::zeros(&at.shape, at.dtype, at.device)
            }
            fn batch(b: &Batch, grad_output: &Tensor, input: &Tensor, padding: Ints) -> Result<Tensor> {
                Ok(b.wrap($Backward::call(&b.full(grad_output)?, &b.full(input)?, padding)?))
            }
        }
    )* };
}
extended! {
    ReflectionPad1D, ReflectionPad1DBackward, Reflect, "reflection_pad1d";
    ReflectionPad2D, ReflectionPad2DBackward, Reflect, "reflection_pad2d";
    ReflectionPad3D, ReflectionPad3DBackward, Reflect, "reflection_pad3d";
    ReplicationPad1D, ReplicationPad1DBackward, Replicate, "replication_pad1d";
    ReplicationPad2D, ReplicationPad2DBackward, Replicate, "replication_pad2d";
    ReplicationPad3D, ReplicationPad3DBackward, Replicate, "replication_pad3d";
}

/// Pads `x` with a constant.
fn pad_with_constant(x: &Body, pad: &[i64], value: Scalar) -> Result<Body> {
    let sides = sides(x.shape(), pad);
    // Negative padding is applied first.
    let ndim = x.layout.ndim();
    let mut kept = x.layout.clone();
    for (i, side) in sides.iter().enumerate() {
        let dim = (ndim - 1 - i) as i64;
        let (before, after) = (side.before.min(0), side.after.min(0));
        let fewer = side.size.checked_add(before).and_then(|n| n.checked_add(after)).unwrap_or(-1);
        kept = kept.narrow(dim, before.saturating_neg().min(side.size), fewer)?;
    }
    if pad.iter().all(|&n| n <= 0) {
        return preserved(&x.with_layout(kept));
    }
    let shape = pad_shape(x.shape(), &sides)?;
    let mut out = Body::new(&shape, x.dtype, x.device())?;
    out.layout = MemoryFormat::suggested(&x.layout).layout(&out.layout)?;
    crate::operator::bodies::fill(&out, value)?;
    let mut place = out.layout.clone();
    for (i, side) in sides.iter().enumerate() {
        let dim = ndim - 1 - i;
        place = place.narrow(dim as i64, side.before.max(0), kept.shape[dim] as i64)?;
    }
    copy(&out.with_layout(place), &x.with_layout(kept))?;
    Ok(out)
}

fn check_count(pad: &[i64], ndim: usize) -> Result<()> {
    if !pad.len().is_multiple_of(2) {
        return Err(Error::runtime("Padding length must be divisible by 2"));
    }
    if pad.len() > 2 * ndim {
        return Err(Error::runtime(format!(
            "Padding length should be less than or equal to two times the input dimension but got padding length {} and \
             input of dimension {ndim}",
            pad.len()
        )));
    }
    Ok(())
}

#[primitive]
impl ConstantPadNd {
    fn forward(input: &Tensor, pad: Ints, value: Scalar) -> Result<Body> {
        pad_with_constant(&input.body(), &pad, value)
    }
    fn d_input(g: V, pad: Ints) -> V {
        let back = pad.iter().map(|n| n.saturating_neg()).collect();
        g.then(|g| ConstantPadNd::call(&g, back, Scalar::Int(0)))
    }
    fn batch(b: &Batch, input: &Tensor, pad: Ints, value: Scalar) -> Result<Tensor> {
        Ok(b.wrap(ConstantPadNd::call(&b.full(input)?, pad, value)?))
    }
}

/// Pad the last dimensions with a constant value.
///
/// Args:
///     pad: number of elements to add before and after each dimension, last one first; negative numbers remove some.
///     value: value of the added elements.
///
/// Examples:
///     >>> torch.constant_pad_nd(torch.tensor([[1, 2]]), (1, 1, 0, 1))
///     tensor([[0, 1, 2, 0],
///             [0, 0, 0, 0]])
#[operator(function, sample = "view(lambda draw, shape: lambda x: T.constant_pad_nd(x, (1, 2), 0.5), 1)")]
pub fn constant_pad_nd(
    input: &Tensor,
    #[strict] pad: Ints,
    #[default(Scalar::Int(0))] value: Scalar,
) -> Result<Tensor> {
    check_count(&pad, input.ndim())?;
    ConstantPadNd::call(input, pad, value)
}

/// Checks the sizes as PyTorch's kernels for each number of dimensions do.
fn check_sizes(input: &Tensor, pad: &[i64], edge: PadEdge) -> Result<()> {
    let (shape, count) = (input.shape(), pad.len() / 2);
    let ndim = shape.len();
    let batched = usize::from(ndim == count + 2);
    if shape[batched..].contains(&0) {
        return Err(Error::runtime(format!(
            "Expected {}D or {}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but \
             got: {:?}",
            count + 1,
            count + 2,
            shape.as_slice()
        )));
    }
    let sides = sides(&shape, pad);
    for (i, side) in sides.iter().enumerate().filter(|_| edge == PadEdge::Reflect) {
        if side.before >= side.size || side.after >= side.size {
            return Err(Error::runtime(format!(
                "Argument #{}: Padding size should be less than the corresponding input dimension, but got: padding ({}, {}) \
                 at dimension {} of input {:?}",
                4 + 2 * i,
                side.before,
                side.after,
                ndim - 1 - i,
                shape.as_slice()
            )));
        }
    }
    let totals: Vec<i64> = sides.iter().map(|side| side.total().unwrap_or(-1)).collect();
    if totals.iter().all(|&n| n >= 1) {
        return Ok(());
    }
    if count == 1 {
        return Err(Error::runtime(format!(
            "input (W: {}) is too small. Calculated output W: {}",
            sides[0].size, totals[0]
        )));
    }
    let told = |sizes: Vec<i64>, between: &str| {
        let names = ["W", "H", "D"].iter().zip(sizes).map(|(name, n)| format!("{name}: {n}"));
        let names: Vec<String> = names.collect();
        names.into_iter().rev().collect::<Vec<_>>().join(between)
    };
    Err(Error::runtime(format!(
        "Calculated output {} must be >= 1 in every dimension (input {})",
        told(totals, " "),
        told(sides.iter().map(|side| side.size).collect(), ", ")
    )))
}

/// Circular padding: the elements of the other end beyond each end, copied into new memory segment by segment.
fn pad_circular(input: &Tensor, pad: &[i64]) -> Result<Tensor> {
    let shape = input.shape();
    let sides = sides(&shape, pad);
    // Negative padding is applied first; the rest wraps around.
    if sides.iter().any(|side| side.total().is_none_or(|n| n < 0)) {
        return Err(Error::runtime("Negative padding value is resulting in an empty dimension"));
    }
    let around = |side: &Side| {
        let left = side.size + side.before.min(0) + side.after.min(0);
        side.before > side.size || side.after > side.size || left < side.before.max(side.after).max(0)
    };
    if sides.iter().any(around) {
        return Err(Error::runtime("Padding value causes wrapping around more than once."));
    }
    let whole = pad_shape(&shape, &sides)?;
    let ndim = shape.len();
    let dim = |i: usize| (ndim - 1 - i) as i64;
    let part = |t: &Tensor, dim: i64, start: i64, end: i64| slice(t, dim, Some(start), Some(end), 1);
    if input.is_batched() {
        // Batched tensors cannot be written into an unbatched one, so concatenate instead.
        let mut made = input.clone();
        for (i, side) in sides.iter().enumerate() {
            let own = part(&made, dim(i), (-side.before).max(0), side.size + side.after.min(0))?;
            let length = own.shape()[ndim - 1 - i] as i64;
            let before = part(&own, dim(i), length - side.before.max(0), length)?;
            let after = part(&own, dim(i), 0, side.after.max(0))?;
            made = join::cat(&[before, own, after], dim(i))?;
        }
        return Ok(made);
    }
    let out = Tensor::new(Body::new(&whole, input.dtype(), input.device())?);
    let (mut place, mut own) = (out.clone(), input.clone());
    for (i, side) in sides.iter().enumerate() {
        let total = whole[ndim - 1 - i] as i64;
        place = part(&place, dim(i), side.before.max(0), total - side.after.max(0))?;
        own = part(&own, dim(i), (-side.before).max(0), side.size + side.after.min(0))?;
    }
    inplace::copy_into(&place, &own)?;
    for (i, side) in sides.iter().enumerate() {
        let total = whole[ndim - 1 - i] as i64;
        let (before, after) = (side.before.max(0), side.after.max(0));
        if before > 0 {
            let source = part(&out, dim(i), total - before - after, total - after)?;
            inplace::copy_into(&part(&out, dim(i), 0, before)?, &source)?;
        }
        if after > 0 {
            let source = part(&out, dim(i), before, before + after)?;
            inplace::copy_into(&part(&out, dim(i), total - after, total)?, &source)?;
        }
    }
    Ok(out)
}

/// Pad the last dimensions of a tensor.
///
/// Args:
///     pad: number of elements to add before and after each dimension, last one first; negative numbers remove some.
///     mode: `"constant"`, `"reflect"`, `"replicate"` or `"circular"`.
///     value: value of the added elements for `"constant"`; 0 if not given.
///
/// Examples:
///     >>> F.pad(torch.tensor([[1, 2]]), (1, 1, 0, 1))
///     tensor([[0, 1, 2, 0],
///             [0, 0, 0, 0]])
///     >>> F.pad(torch.tensor([[1.0, 2.0, 3.0]]), (2, 0), mode="reflect")
///     tensor([[3., 2., 1., 2., 3.]])
#[operator(
    nn,
    name = "pad",
    sample = "fixed([(2, 3, 4)], lambda x: [F.pad(x, (2, -1), m) for m in ('constant', 'reflect', 'replicate', 'circular')])"
)]
pub fn nn_pad(
    input: &Tensor,
    #[strict] pad: Ints,
    #[default("constant".into())] mode: &str,
    value: Option<f64>,
) -> Result<Tensor> {
    check_count(&pad, input.ndim())?;
    if mode == "constant" {
        let value = value.map_or(Scalar::Int(0), Scalar::Float);
        return ConstantPadNd::call(input, pad, value);
    }
    if value.is_some_and(|value| value != 0.0) {
        return Err(Error::runtime(format!("Padding mode \"{mode}\" doesn't take in value argument")));
    }
    let (count, ndim) = (pad.len() / 2, input.ndim());
    if !["reflect", "replicate", "circular"].contains(&mode) {
        return Err(Error::not_implemented(format!("Unrecognised padding mode {mode}")));
    }
    if !(1..=3).contains(&count) || ndim != count + 1 && ndim != count + 2 {
        return Err(Error::not_implemented(format!(
            "Padding size {} is not supported for {ndim}D input tensor.",
            pad.len()
        )));
    }
    match mode {
        "circular" => return pad_circular(input, &pad),
        "reflect" => check_sizes(input, &pad, PadEdge::Reflect)?,
        _ => check_sizes(input, &pad, PadEdge::Replicate)?,
    }
    match (mode, count) {
        ("reflect", 1) => ReflectionPad1D::call(input, pad),
        ("reflect", 2) => ReflectionPad2D::call(input, pad),
        ("reflect", _) => ReflectionPad3D::call(input, pad),
        (_, 1) => ReplicationPad1D::call(input, pad),
        (_, 2) => ReplicationPad2D::call(input, pad),
        _ => ReplicationPad3D::call(input, pad),
    }
}
