//! Code shared by all pools in one to three dimensions. A pool computes the maximum or mean of each window; the submodules differ
//! in the windows.

pub mod adaptive;
pub mod fractional;
pub mod sliding;
pub mod unpool;

use crate::base::kernel_args::pool::PoolWindows;
use crate::base::{MemoryFormat, Put, numel};
use crate::cpu::pool::At;
use crate::operator::bodies::{copy, duplicate, fill};
use crate::operator::primitives::{constant, views};
use crate::ops::indexing::index;
use crate::ops::prelude::*;
use crate::ops::shape::squeeze::{squeeze, unsqueeze};
use smallvec::smallvec;

/// Expands a single number to one for each dimension. An empty list means `or`.
fn per_dim(list: &Ints, dims: usize, or: &Ints) -> Ints {
    match list.len() {
        0 => or.clone(),
        1 => smallvec![list[0]; dims],
        _ => list.clone(),
    }
}

/// Extends a list to three dimensions by `missing` in front.
fn three(list: &[i64], missing: usize) -> [usize; 3] {
    [0, 1, 2].map(|d| if d + list.len() < 3 { missing } else { list[d + list.len() - 3] as usize })
}

/// The last `dims` sizes of a shape.
fn image(shape: &[usize], dims: usize) -> Ints {
    shape[shape.len() - dims..].iter().map(|&n| n as i64).collect()
}

fn dense(x: &Body) -> Result<Body> {
    if x.layout.is_contiguous() && x.conj_neg.is_none() { Ok(x.clone()) } else { duplicate(x) }
}

fn convert(x: &Body, dtype: DType) -> Result<Body> {
    if x.dtype == dtype { dense(x) } else { crate::operator::bodies::converted(x, dtype) }
}

/// Puts `out` into the memory format of `x`, if that has a format for `dims` dimensions.
fn match_format(out: Body, x: &Body, dims: usize) -> Result<Body> {
    // A volume without a batch dimension is treated as one example.
    let single = dims == 3 && x.layout.ndim() == 4;
    let mut layout = x.layout.clone();
    if single {
        layout = layout.unsqueeze(0)?;
        layout.strides[0] = x.numel();
    }
    let format = MemoryFormat::suggested(&layout);
    if format == MemoryFormat::Contiguous || layout.ndim() != dims + 2 {
        return Ok(out);
    }
    let mut to = Body::new(out.shape(), out.dtype, out.device())?;
    to.layout = if single {
        format.layout(&to.layout.unsqueeze(0)?)?.select(0, 0)?
    } else {
        format.layout(&to.layout)?
    };
    copy(&to, &out)?;
    Ok(to)
}

/// `shape` with the last dimensions replaced by `sizes`.
fn replace_sizes(shape: &[usize], sizes: &[usize; 3], dims: usize) -> Dims {
    let mut shape = Dims::from_slice(shape);
    let lead = shape.len() - dims;
    (0..dims).for_each(|d| shape[lead + d] = sizes[3 - dims + d]);
    shape
}

/// Rejects results with negative sizes.
fn check_sizes(shape: &[usize], sizes: &Ints) -> Result<()> {
    let Some(n) = sizes.iter().find(|&&n| n < 0) else { return Ok(()) };
    let lead = shape[..shape.len() - sizes.len()].iter().map(|&n| n as i64);
    let all: Vec<i64> = lead.chain(sizes.iter().copied()).collect();
    fail(format!("Trying to create tensor with negative dimension {n}: {all:?}"))
}

/// The dtype that kernels compute in: float32 for half precision.
fn compute_type(op: &'static str, x: &Body, others: &[DType]) -> Result<DType> {
    match x.dtype {
        DType::F64 => Ok(DType::F64),
        DType::F32 | DType::F16 | DType::BF16 => Ok(DType::F32),
        dtype if others.contains(&dtype) => Ok(DType::I64),
        dtype => Err(Fault::NoKernel { op, dtype }.into()),
    }
}

fn largest(
    op: &'static str,
    input: &Body,
    pool: &PoolWindows,
    dims: usize,
    whole: &[DType],
) -> Result<[Body; 2]> {
    let dtype = compute_type(op, input, whole)?;
    let shape = replace_sizes(input.shape(), &pool.windows.result, dims);
    let (values, indices) =
        (Body::new(&shape, dtype, input.device())?, Body::new(&shape, DType::I64, input.device())?);
    if values.numel() > 0 {
        let x = convert(input, dtype)?;
        let size: usize = pool.windows.image.iter().product();
        if u32::try_from(size).is_err() {
            return Err(Error::runtime("max_pool: images of 2^32 elements or more are not supported"));
        }
        let planes = x.numel() / size;
        fork!(over [values, x], with [pool, planes, indices],
            cpu: crate::cpu::pool::max_pool(pool, planes, values.host()?, indices.host()?, x.host()?),
            gpu: crate::gpu::max_pool(pool, values.gpu()?, indices.gpu()?, x.gpu()?))?;
    }
    let values = if values.dtype == input.dtype { values } else { convert(&values, input.dtype)? };
    // Adaptive pools in three dimensions return contiguous results, as PyTorch's do.
    if dims == 3 && pool.adaptive {
        return Ok([values, indices]);
    }
    Ok([match_format(values, input, dims)?, match_format(indices, input, dims)?])
}

/// The maxima without their indices, for tensors in host memory.
fn highest(op: &'static str, input: &Body, pool: &PoolWindows, dims: usize) -> Result<Body> {
    let dtype = compute_type(op, input, &[])?;
    let values = Body::new(&replace_sizes(input.shape(), &pool.windows.result, dims), dtype, input.device())?;
    let x = convert(input, dtype)?;
    let planes = x.numel() / pool.windows.image.iter().product::<usize>();
    fork!(over [values, x], with [pool, planes],
        cpu: crate::cpu::pool::max_pool_values(pool, planes, values.host()?, x.host()?),
        gpu: no_shader(op, x.dtype))?;
    convert(&values, input.dtype)
}

/// The mean of each window; or, if `back`, the gradient of an image like `like`.
fn means(
    op: &'static str,
    input: &Body,
    pool: &PoolWindows,
    dims: usize,
    whole: &[DType],
    like: Option<&Body>,
) -> Result<Body> {
    let dtype = compute_type(op, input, whole)?;
    let w = &pool.windows;
    let (from, to) = if like.is_some() { (w.result, w.image) } else { (w.image, w.result) };
    let out = Body::new(&replace_sizes(input.shape(), &to, dims), dtype, input.device())?;
    if input.numel() == 0 {
        fill(&out, Scalar::Int(0))?;
    } else if out.numel() > 0 {
        let x = convert(input, dtype)?;
        let planes = x.numel() / from.iter().product::<usize>();
        let back = like.is_some();
        fork!(over [out, x], with [pool, planes, back],
            cpu: crate::cpu::pool::avg_pool(pool, planes, out.host()?, x.host()?, back),
            gpu: crate::gpu::avg_pool(pool, out.gpu()?, x.gpu()?, back))?;
    }
    let out = if out.dtype == input.dtype { out } else { convert(&out, input.dtype)? };
    if dims == 3 { Ok(out) } else { match_format(out, like.unwrap_or(input), dims) }
}

/// The gradient of a maximum pool: adds the gradients of the maxima at their indices in the image.
#[cfg_attr(not(feature = "gpu"), allow(unused_variables, reason = "only the GPU asks for the windows"))]
fn max_pool_gradient(
    g: &Body,
    indices: &Body,
    input: &Body,
    pool: Option<&PoolWindows>,
    dims: usize,
) -> Result<Body> {
    let out = Body::new(input.shape(), g.dtype, g.device())?;
    if out.numel() == 0 || g.numel() == 0 || g.device().is_cpu() {
        fill(&out, Scalar::Int(0))?;
        if out.numel() > 0 {
            at_places(At::Add, &out, indices, g, dims)?;
        }
        // Adaptive pools in three dimensions return contiguous results, as PyTorch's do.
        return if dims == 3 && pool.is_some_and(|pool| pool.adaptive) {
            Ok(out)
        } else {
            match_format(out, input, dims)
        };
    }
    let Some(pool) = pool else {
        fill(&out, Scalar::Int(0))?;
        scatter_planes(&out, indices, g, dims, Put::Add)?;
        return match_format(out, input, dims);
    };
    let (g, indices) = (dense(g)?, dense(indices)?);
    fork!(over [out, g, indices], with [pool], cpu: Ok(()),
        gpu: crate::gpu::max_pool_backward(pool, out.gpu()?, g.gpu()?, indices.gpu()?))?;
    match_format(out, input, dims)
}

/// Reads, writes or adds elements at indices into the planes of the last dimensions, in host memory.
fn at_places(at: At, out: &Body, indices: &Body, x: &Body, dims: usize) -> Result<()> {
    let (indices, x) = (dense(indices)?, dense(x)?);
    let shape = out.shape();
    let planes: usize = shape[..shape.len() - dims].iter().product();
    if planes == 0 || indices.numel() == 0 {
        return Ok(());
    }
    let sizes = Dims::from_slice(&shape[shape.len() - dims..]);
    fork!(over [out, indices, x], with [at, planes, sizes],
        cpu: match crate::cpu::pool::at_places(at, planes, out.host()?, indices.host()?, x.host()?)? {
            None => Ok(()),
            Some(place) => Err(invalid_index(place, &sizes)),
        },
        gpu: no_shader("max_unpool", x.dtype))
}

#[cold]
fn invalid_index(place: i64, sizes: &[usize]) -> Error {
    let by = sizes.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
    Error::runtime(format!("Found an invalid max index: {place} (output volumes are of size {by})"))
}

/// The elements of `x` at indices into its planes.
fn gather_planes(x: &Tensor, indices: &Tensor, dims: usize) -> Result<Tensor> {
    let flat = |t: &Tensor| -> Result<Tensor> {
        let shape = t.shape();
        let lead = shape.len() - dims;
        let mut flat = Dims::from_slice(&shape[..lead]);
        flat.push(numel(&shape[lead..]));
        views::reshape(t, &flat)
    };
    views::reshape(&index::Gather::call(&flat(x)?, -1, &flat(indices)?)?, &indices.shape())
}

fn zeros(at: &Meta) -> Result<Tensor> {
    constant::zeros(&at.shape, at.dtype, at.device)
}

/// Writes or adds values at indices into planes, by the kernel of `scatter`.
fn scatter_planes(out: &Body, indices: &Body, x: &Body, dims: usize, how: Put) -> Result<()> {
    let lead = out.layout.ndim() - dims;
    let flat = |t: &Body| {
        let mut shape = Dims::from_slice(&t.shape()[..lead]);
        shape.push(numel(&t.shape()[lead..]));
        dense(t).map(|t| crate::operator::bodies::with_shape(t, &shape))
    };
    let places = Tensor::new(flat(indices)?);
    crate::ops::indexing::scatter::scatter_over(&flat(out)?, &flat(x)?, -1, &places, how)
}

const WORDS: [&str; 4] = ["", "one", "two", "three"];

fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::runtime(message.into()))
}

/// Computes a one-dimensional pool as a two-dimensional one: a line is an image with one row.
fn as_plane<R>(input: &Tensor, run: impl FnOnce(&Tensor) -> Result<R>) -> Result<R> {
    run(&unsqueeze(input, -2)?)
}

fn as_line(out: &Tensor) -> Result<Tensor> {
    squeeze(out, Some(smallvec![-2]))
}

fn check_rank(name: &str, input: &Tensor) -> Result<()> {
    if matches!(input.ndim(), 2 | 3) {
        return Ok(());
    }
    fail(format!(
        "Expected 2 to 3 dimensions, but got {}-dimensional tensor for argument #1 'self' (while checking arguments for {name})",
        input.ndim()
    ))
}

/// The only number of a list; an error if it has more.
fn single(name: &str, what: &str, list: &Ints) -> Result<i64> {
    match list.as_slice() {
        [n] => Ok(*n),
        _ => fail(format!("{name}() argument '{what}' should contain one int (got {})", list.len())),
    }
}

fn one() -> Ints {
    smallvec![1]
}
