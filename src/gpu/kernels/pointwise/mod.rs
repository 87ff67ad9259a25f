//! Pointwise kernels: expressions, copies, fills, and functions of an element's index. If all operands are
//! contiguous along the last dimension, one invocation computes four elements; otherwise one.

pub mod code;

use crate::base::{DType, Dims, Error, Fault, Result, Scalar, contiguous_strides};
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::memory::alloc;
use crate::gpu::device::view::{Source, View};
use crate::gpu::device::{Gpu, gpu};
use crate::gpu::kernels::pointwise::code::{Access, PointwisePlan, plan_strides, push_number};
use crate::gpu::kernels::transpose::transpose;
use crate::gpu::launch::index_space::{Space, Words, check, groups};
use crate::gpu::shader::code::GROUP;
use crate::gpu::shader::prelude;
use crate::gpu::shader::stored::{Stored, Value, compute as compute_value};
use smallvec::SmallVec;
use std::hash::{Hash, Hasher};

/// A pointwise expression in WGSL over named inputs. Its key is unique among all expressions.
#[derive(Clone, Copy, Debug)]
pub struct Expr {
    pub key: &'static str,
    pub inputs: &'static [&'static str],
    pub wgsl: &'static str,
    /// True if the expression is a bool.
    pub predicate: bool,
}

/// The computation of a kernel for each element: a function body over its inputs (`a` is called `a_`), the
/// element's index `at` (in row-major order of the output) and the parameter words `p0`, `p1`...
pub(in crate::gpu) struct PointwiseMap<'a> {
    pub family: &'static str,
    pub name: &'static str,
    pub inputs: &'a [&'a str],
    pub body: &'a dyn Fn() -> String,
    /// The type of the inputs, called `T`.
    pub compute: Value,
    /// The type of the body's value.
    pub result: Value,
    pub words: &'a [u32],
    /// True if operands of the output's dtype are moved as bits rather than read as numbers.
    pub bits: bool,
}

/// Keys are unique, so that a key stands for its expression.
impl Hash for Expr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

/// Rows of one family have different names, so that the name stands for inputs and body.
impl Hash for PointwiseMap<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.family, self.name, self.compute, self.result, self.words.len()).hash(state);
    }
}

impl PointwiseMap<'_> {
    /// Copies elements that a shader reads as `value`.
    pub const fn copy(value: Value) -> PointwiseMap<'static> {
        PointwiseMap {
            family: "copy",
            name: "copy_",
            inputs: &["x"],
            body: &|| String::from("return x_;"),
            compute: value,
            result: value,
            words: &[],
            bits: true,
        }
    }
}

/// Computes `expr` over `ins`, which are already broadcast to the shape of `out`. Operands are converted to
/// `compute` when they are read, and the result to the dtype of `out`.
pub fn pointwise(expr: &Expr, compute: DType, out: View<'_>, ins: &[Source<'_>]) -> Result<()> {
    let gpu = gpu()?;
    let value = compute_value(compute);
    gpu.supports(expr.key, compute)?;
    let result = if expr.predicate { Value::Bool } else { value };
    let body = || format!("return {};", prelude::expression(value, expr.wgsl, expr.inputs));
    let map = PointwiseMap {
        family: "pointwise",
        name: expr.key,
        inputs: expr.inputs,
        body: &body,
        compute: value,
        result,
        words: &[],
        bits: false,
    };
    if !matches!(value, Value::F32) && !prelude::knows(value, expr.wgsl) {
        return Err(Fault::NoShader { op: expr.key, dtype: compute }.into());
    }
    run(gpu, &map, out, Stored::of(out.dtype), ins)
}

/// Copies with conversion; `out` and `src` have the same shape.
pub fn copy(out: View<'_>, src: View<'_>) -> Result<()> {
    let gpu = gpu()?;
    check(&out)?;
    check(&src)?;
    if out.dtype == src.dtype && out.shape == src.shape && out.numel() > 0 && transpose(gpu, out, src)? {
        return Ok(());
    }
    let (stored, value) = if out.dtype == src.dtype {
        (Stored::bits(out.dtype), Stored::bits(out.dtype).value())
    } else {
        gpu.supports("copy_", src.dtype)?;
        gpu.supports("copy_", out.dtype)?;
        (Stored::of(out.dtype), Stored::of(src.dtype).value())
    };
    run(gpu, &PointwiseMap::copy(value), out, stored, &[Source::View(src)])
}

/// Copies `src` with `dims` reversed. A reversed stride is negative, which works since 32-bit indices wrap.
pub fn flip(out: View<'_>, src: View<'_>, dims: &[usize]) -> Result<()> {
    let gpu = gpu()?;
    check(&out)?;
    check(&src)?;
    if out.dtype != src.dtype || out.shape != src.shape || out.buffer.same(src.buffer) {
        return Err(Error::runtime(
            "flip: the result must be a new tensor with the shape and dtype of the input",
        ));
    }
    if out.numel() == 0 {
        return Ok(());
    }
    let (mut strides, mut offset) = (Dims::from_slice(src.strides), src.offset);
    for &d in dims {
        offset += (src.shape[d] - 1) * src.strides[d];
        strides[d] = src.strides[d].wrapping_neg();
    }
    let stored = Stored::bits(out.dtype);
    let body = || "return x_;".to_owned();
    let map = PointwiseMap {
        family: "copy",
        name: "copy_",
        inputs: &["x"],
        body: &body,
        compute: stored.value(),
        result: stored.value(),
        words: &[],
        bits: true,
    };
    launch(gpu, &map, out, stored, &[Source::View(View { strides: &strides, offset, ..src })])
}

/// Sets every element.
pub fn fill(out: View<'_>, value: Scalar) -> Result<()> {
    let gpu = gpu()?;
    let mut bytes = [0u8; 8];
    // SAFETY: no dtype is larger than eight bytes.
    unsafe { value.write(out.dtype, bytes.as_mut_ptr()) };
    let words: [u32; 2] = bytemuck::cast(bytes);
    let stored = Stored::bits(out.dtype);
    let (body, words): (&dyn Fn() -> String, &[u32]) = if stored == Stored::Bits64 {
        (&|| "return vec2<u32>(p0, p1);".to_owned(), &words)
    } else {
        (&|| "return bitcast<i32>(p0);".to_owned(), &words[..1])
    };
    let map = PointwiseMap {
        family: "fill",
        name: "fill_",
        inputs: &[],
        body,
        compute: stored.value(),
        result: stored.value(),
        words,
        bits: true,
    };
    run(gpu, &map, out, stored, &[])
}

/// Writes `map` to `out`, whose elements are accessed as `stored`.
pub(in crate::gpu) fn run(
    gpu: &Gpu,
    map: &PointwiseMap<'_>,
    out: View<'_>,
    stored: Stored,
    ins: &[Source<'_>],
) -> Result<()> {
    check(&out)?;
    if out.numel() == 0 {
        return Ok(());
    }
    gpu.supports(map.name, out.dtype)
        .or_else(|error| if stored == Stored::Bits64 { Ok(()) } else { Err(error) })?;
    let mut aside: SmallVec<[Buffer; 2]> = SmallVec::new();
    for source in ins {
        if let Source::View(view) = source {
            check(view)?;
            if clashes(&out, view) {
                let whole = alloc(view.numel() * view.dtype.size())?;
                let strides = contiguous_strides(view.shape);
                copy(View { buffer: &whole, strides: &strides, offset: 0, ..*view }, *view)?;
                aside.push(whole);
            }
        }
    }
    let shape = out.shape;
    let dense = contiguous_strides(shape);
    let mut moved = aside.iter();
    let ins: SmallVec<[Source<'_>; 6]> = ins
        .iter()
        .map(|&source| match source {
            Source::View(view) if clashes(&out, &view) => match moved.next() {
                Some(buffer) => Source::View(View { buffer, strides: &dense, offset: 0, ..view }),
                None => source,
            },
            _ => source,
        })
        .collect();
    launch(gpu, map, out, stored, &ins)
}

/// Returns true if an input could be overwritten before it is read: it shares memory with the output in
/// another layout.
fn clashes(out: &View<'_>, input: &View<'_>) -> bool {
    if !out.buffer.same(input.buffer) {
        return false;
    }
    let same_layout =
        out.offset == input.offset && out.strides == input.strides && out.dtype.size() == input.dtype.size();
    let range = |v: &View<'_>| {
        let last: usize = v.shape.iter().zip(v.strides).map(|(n, s)| (n - 1) * s).sum();
        (v.offset * v.dtype.size(), (v.offset + last + 1) * v.dtype.size())
    };
    let ((a, b), (c, d)) = (range(out), range(input));
    !same_layout && a < d && c < b
}

/// Returns true if four neighbouring elements of the output are neighbours (or all the same element) in
/// every operand, and begin at a multiple of four.
fn in_quads(space: &Space, offsets: &[usize]) -> bool {
    let last = space.rank() - 1;
    let whole = |n: &usize| n.is_multiple_of(4);
    let fits = |(strides, offset): (&SmallVec<[usize; 6]>, &usize)| match strides[last] {
        0 => true,
        1 => whole(offset) && strides[..last].iter().all(whole),
        _ => false,
    };
    (last == 0 || whole(&space.dims[last]))
        && space.strides[0][last] == 1
        && space.strides.iter().zip(offsets).all(fits)
}

fn launch(
    gpu: &Gpu,
    map: &PointwiseMap<'_>,
    out: View<'_>,
    stored: Stored,
    ins: &[Source<'_>],
) -> Result<()> {
    let views = |source: &Source<'_>| if let Source::View(view) = source { Some(view.offset) } else { None };
    let offsets: SmallVec<[usize; 8]> =
        [out.offset].into_iter().chain(ins.iter().filter_map(views)).collect();
    let mut operands: SmallVec<[&[usize]; 8]> = SmallVec::new();
    operands.push(out.strides);
    for source in ins {
        if let Source::View(view) = source {
            operands.push(view.strides);
        }
    }
    let space = Space::new(out.shape, &operands);
    let quads = in_quads(&space, &offsets);
    let rank = space.rank();
    let mut plan = PointwisePlan { map, out: stored, rank, quads, inputs: SmallVec::new() };
    let mut buffers: SmallVec<[&Buffer; 8]> = SmallVec::new();
    let mut words = Words::new();
    words.push(out.numel() as u32);
    words.extend(space.dims[1..].iter().map(|&n| n as u32));
    if quads && rank > 1 {
        // The last dimension is counted in quads.
        words[rank - 1] /= 4;
    }
    let place = |k: usize, words: &mut Words| {
        words.push(offsets[k] as u32);
        words.extend(space.strides[k][..plan_strides(rank, quads)].iter().map(|&s| s as u32));
    };
    buffers.push(out.buffer);
    place(0, &mut words);
    let mut at = 0;
    for source in ins {
        match source {
            Source::Scalar(scalar) => {
                push_number(map.compute, *scalar, &mut words);
                plan.inputs.push((Access::Number, false));
            }
            Source::View(view) => {
                at += 1;
                let from = if map.bits && view.dtype == out.dtype { stored } else { Stored::of(view.dtype) };
                if from != Stored::Bits64 {
                    gpu.supports(map.name, view.dtype)?;
                }
                place(at, &mut words);
                let access = match space.strides[at][rank - 1] {
                    0 if quads => Access::Same(from),
                    _ if quads => Access::Quad(from),
                    _ => Access::Strided(from),
                };
                plan.inputs.push((access, view.buffer.same(out.buffer)));
                buffers.push(view.buffer);
            }
        }
    }
    words.extend_from_slice(map.words);
    let items = if quads { out.numel().div_ceil(4) } else { out.numel() };
    gpu.launch(&plan, &buffers, &words, groups(items, GROUP))
}
