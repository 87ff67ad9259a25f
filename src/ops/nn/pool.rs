//! Pools over one to three dimensions: the largest element of each window, or the mean; over windows that slide, divide the
//! image into nearly equal parts, or begin at random places.

use crate::base::pool::{Count, Pool};
use crate::base::{MemoryFormat, Put, Windows, numel};
use crate::cpu::pool::At;
use crate::operator::kernel::{copy, duplicate, fill};
use crate::operator::prelude::*;
use crate::ops::creation::create;
use crate::ops::indexing::index;
use crate::ops::shape::view;
use crate::ops::shape::view::{squeeze, unsqueeze};
use crate::tensor::mode;
use smallvec::smallvec;

/// One number for all dimensions, or one for each; none means what `or` says.
fn spread(list: &Ints, dims: usize, or: &Ints) -> Ints {
    match list.len() {
        0 => or.clone(),
        1 => smallvec![list[0]; dims],
        _ => list.clone(),
    }
}

/// Sizes of up to three dimensions, those that are missing in front.
fn three(list: &[i64], missing: usize) -> [usize; 3] {
    [0, 1, 2].map(|d| if d + list.len() < 3 { missing } else { list[d + list.len() - 3] as usize })
}

/// The last dimensions of a shape.
fn image(shape: &[usize], dims: usize) -> Ints {
    shape[shape.len() - dims..].iter().map(|&n| n as i64).collect()
}

/// How a window slides, as it was told, with an item for each dimension.
struct Slide<'a> {
    kernel: &'a Ints,
    stride: &'a Ints,
    padding: &'a Ints,
    dilation: &'a Ints,
    ceil: bool,
}

impl Slide<'_> {
    /// How many windows there are along a dimension; PyTorch's refusals.
    fn count(&self, d: usize, size: i64) -> Result<i64> {
        let (kernel, stride, padding, dilation) =
            (self.kernel[d], self.stride[d], self.padding[d], self.dilation[d]);
        if stride == 0 {
            return Err(Error::runtime("stride should not be zero"));
        }
        if padding < 0 {
            return Err(Error::runtime(format!("pad must be non-negative, but got pad: {padding}")));
        }
        let reach = (kernel - 1).saturating_mul(dilation);
        if padding > (reach + 1) / 2 {
            return Err(Error::runtime(format!(
                "pad should be at most half of effective kernel size, but got pad={padding}, kernel_size={kernel} and \
                 dilation={dilation}"
            )));
        }
        let more = if self.ceil { stride - 1 } else { 0 };
        let room = size.saturating_add(2 * padding).saturating_sub(reach).saturating_sub(1);
        let count = room.saturating_add(more).div_euclid(stride) + 1;
        // The last window begins inside the image, or the padding before it.
        let outside = self.ceil && (count - 1).saturating_mul(stride) >= size + padding;
        Ok(count - i64::from(outside))
    }

    fn pool(&self, shape: &[usize], count: Count) -> Result<Pool> {
        let sizes = image(shape, self.kernel.len());
        let result: Result<Ints> = (0..sizes.len()).map(|d| self.count(d, sizes[d])).collect();
        let windows = Windows {
            image: three(&sizes, 1),
            kernel: three(self.kernel, 1),
            result: three(&result?, 1),
            stride: three(self.stride, 1),
            padding: three(self.padding, 0),
            dilation: three(self.dilation, 1),
        };
        windows.check()?;
        Ok(Pool { windows, adaptive: false, count })
    }
}

/// Windows that divide the image.
fn adaptive(shape: &[usize], output: &[i64]) -> Result<Pool> {
    let windows = Windows {
        image: three(&image(shape, output.len()), 1),
        kernel: [1; 3],
        result: three(output, 1),
        stride: [1; 3],
        padding: [0; 3],
        dilation: [1; 3],
    };
    windows.check()?;
    Ok(Pool { windows, adaptive: true, count: Count::Inside })
}

fn dense(x: &Body) -> Result<Body> {
    if x.layout.is_contiguous() && x.lazy.is_nothing() { Ok(x.clone()) } else { duplicate(x) }
}

fn converted(x: &Body, dtype: DType) -> Result<Body> {
    if x.dtype == dtype {
        return dense(x);
    }
    let out = Body::new(x.shape(), dtype, x.device())?;
    copy(&out, x)?;
    Ok(out)
}

/// The same elements in the memory format of `x`, if that has so many dimensions.
fn formatted(out: Body, x: &Body, dims: usize) -> Result<Body> {
    let format = MemoryFormat::suggested(&x.layout);
    if format == MemoryFormat::Contiguous || x.layout.ndim() != dims + 2 {
        return Ok(out);
    }
    let mut to = Body::new(out.shape(), out.dtype, out.device())?;
    to.layout = format.layout(&to.layout)?;
    copy(&to, &out)?;
    Ok(to)
}

/// The shape of `x` with other sizes of its last dimensions.
fn resized(shape: &[usize], sizes: &[usize; 3], dims: usize) -> Dims {
    let mut shape = Dims::from_slice(shape);
    let lead = shape.len() - dims;
    (0..dims).for_each(|d| shape[lead + d] = sizes[3 - dims + d]);
    shape
}

/// The type that a kernel computes in; halves by way of float.
fn compute_type(op: &'static str, x: &Body, others: &[DType]) -> Result<DType> {
    match x.dtype {
        DType::F64 => Ok(DType::F64),
        DType::F32 | DType::F16 | DType::BF16 => Ok(DType::F32),
        dtype if others.contains(&dtype) => Ok(DType::I64),
        dtype => Err(Fault::NoKernel { op, dtype }.into()),
    }
}

const WHOLE: &[DType] = &[DType::U8, DType::I8, DType::I16, DType::I32, DType::I64];

fn largest(op: &'static str, input: &Body, pool: &Pool, dims: usize, whole: &[DType]) -> Result<[Body; 2]> {
    let dtype = compute_type(op, input, whole)?;
    let shape = resized(input.shape(), &pool.windows.result, dims);
    let (values, indices) =
        (Body::new(&shape, dtype, input.device())?, Body::new(&shape, DType::I64, input.device())?);
    if values.numel() > 0 {
        let x = converted(input, dtype)?;
        let size: usize = pool.windows.image.iter().product();
        if u32::try_from(size).is_err() {
            return Err(Error::runtime("pools of more than 2^32 elements are not there yet"));
        }
        let planes = x.numel() / size;
        fork!([&values, &x],
            cpu: crate::cpu::pool::max_pool(pool, planes, values.host()?, indices.host()?, x.host()?),
            gpu: crate::gpu::max_pool(pool, values.gpu()?, indices.gpu()?, x.gpu()?))?;
    }
    let values = if values.dtype == input.dtype { values } else { converted(&values, input.dtype)? };
    // Parts of space come without gaps.
    if dims == 3 && pool.adaptive {
        return Ok([values, indices]);
    }
    Ok([formatted(values, input, dims)?, formatted(indices, input, dims)?])
}

/// The mean of each window; or, back, the gradient of an image like `like`.
fn means(
    op: &'static str,
    input: &Body,
    pool: &Pool,
    dims: usize,
    whole: &[DType],
    like: Option<&Body>,
) -> Result<Body> {
    let dtype = compute_type(op, input, whole)?;
    let w = &pool.windows;
    let (from, to) = if like.is_some() { (w.result, w.image) } else { (w.image, w.result) };
    let out = Body::new(&resized(input.shape(), &to, dims), dtype, input.device())?;
    if input.numel() == 0 {
        fill(&out, Scalar::Int(0))?;
    } else if out.numel() > 0 {
        let x = converted(input, dtype)?;
        let planes = x.numel() / from.iter().product::<usize>();
        let back = like.is_some();
        if back && out.device().is_cpu() {
            fill(&out, Scalar::Int(0))?;
        }
        fork!([&out, &x],
            cpu: crate::cpu::pool::avg_pool(pool, planes, out.host()?, x.host()?, back),
            gpu: crate::gpu::avg_pool(pool, out.gpu()?, x.gpu()?, back))?;
    }
    let out = if out.dtype == input.dtype { out } else { converted(&out, input.dtype)? };
    if dims == 3 { Ok(out) } else { formatted(out, like.unwrap_or(input), dims) }
}

/// Values are added up at their places in the image.
#[cfg_attr(not(feature = "gpu"), allow(unused_variables, reason = "only the GPU asks for the windows"))]
fn returned(g: &Body, indices: &Body, input: &Body, pool: Option<&Pool>, dims: usize) -> Result<Body> {
    let out = Body::new(input.shape(), g.dtype, g.device())?;
    if out.numel() == 0 || g.numel() == 0 || g.device().is_cpu() {
        fill(&out, Scalar::Int(0))?;
        if out.numel() > 0 {
            at_places(At::Add, &out, indices, g, dims)?;
        }
        return formatted(out, input, dims);
    }
    let Some(pool) = pool else {
        fill(&out, Scalar::Int(0))?;
        scattered(&out, indices, g, dims, Put::Add)?;
        return formatted(out, input, dims);
    };
    let (g, indices) = (dense(g)?, dense(indices)?);
    fork!([&out, &g, &indices], cpu: Ok(()),
        gpu: crate::gpu::max_pool_backward(pool, out.gpu()?, g.gpu()?, indices.gpu()?))?;
    formatted(out, input, dims)
}

/// Picks, puts or adds at places in the planes of the last dimensions, in host memory.
fn at_places(at: At, out: &Body, indices: &Body, x: &Body, dims: usize) -> Result<()> {
    let (indices, x) = (dense(indices)?, dense(x)?);
    let shape = out.shape();
    let planes: usize = shape[..shape.len() - dims].iter().product();
    if planes == 0 || indices.numel() == 0 {
        return Ok(());
    }
    // SAFETY: three dense tensors of so many planes; `out` is new.
    let wrong = unsafe { crate::cpu::pool::at_places(at, planes, out.host()?, indices.host()?, x.host()?)? };
    let Some(place) = wrong else { return Ok(()) };
    let sizes = &shape[shape.len() - dims..];
    let by = sizes.iter().map(usize::to_string).collect::<Vec<_>>().join("x");
    Err(Error::runtime(format!("Found an invalid max index: {place} (output volumes are of size {by})")))
}

/// The elements of `x` at places in its planes.
fn picked(x: &Tensor, indices: &Tensor, dims: usize) -> Result<Tensor> {
    let flat = |t: &Tensor| -> Result<Tensor> {
        let shape = t.shape();
        let lead = shape.len() - dims;
        let mut flat = Dims::from_slice(&shape[..lead]);
        flat.push(numel(&shape[lead..]));
        view::reshape(t, &flat)
    };
    view::reshape(&index::gather(&flat(x)?, -1, &flat(indices)?)?, &indices.shape())
}

fn zeros(at: &Meta) -> Result<Tensor> {
    create::zeros(&at.shape, at.dtype, at.device)
}

/// The image that has the values at their places, and zeros elsewhere.
fn unpooled(input: &Tensor, indices: &Tensor, sizes: &Ints) -> Result<Body> {
    let (x, places, dims) = (input.body(), indices.body(), sizes.len());
    let shape = resized(x.shape(), &three(sizes, 1), dims);
    let out = Body::new(&shape, x.dtype, x.device())?;
    fill(&out, Scalar::Int(0))?;
    if x.device().is_cpu() {
        at_places(At::Put, &out, &places, &x, dims)?;
        return formatted(out, &x, dims);
    }
    scattered(&out, &places, &x, dims, Put::Assign)?;
    formatted(out, &x, dims)
}

/// Puts or adds values at places in planes, by the kernel of `scatter`.
fn scattered(out: &Body, indices: &Body, x: &Body, dims: usize, how: Put) -> Result<()> {
    let lead = out.layout.ndim() - dims;
    let flat = |t: &Body| {
        let mut shape = Dims::from_slice(&t.shape()[..lead]);
        shape.push(numel(&t.shape()[lead..]));
        dense(t).map(|t| crate::operator::kernel::with_shape(t, &shape))
    };
    let places = Tensor::new(flat(indices)?);
    index::scatter_over(&flat(out)?, &flat(x)?, -1, &places, how)
}

/// `0, 1, …` along one dimension of so many.
fn counted(n: usize, dim: usize, dims: usize, device: Device) -> Result<V> {
    let mut shape: Dims = smallvec![1; dims];
    shape[dim] = n;
    let numbers =
        crate::ops::creation::factories::range(Scalar::Int(0), Scalar::Int(1), n, DType::I64, device)?;
    Ok(V::from(Tensor::new(crate::operator::kernel::with_shape(numbers, &shape))))
}

/// The largest elements of windows that begin at random places, as far apart as they can, and their places.
fn at_random(
    input: &Tensor,
    kernel: &Ints,
    output: &Ints,
    samples: &Tensor,
    dims: usize,
) -> Result<[Tensor; 2]> {
    let (shape, device, dtype) = (input.shape(), input.device(), input.dtype());
    let lead = shape.len() - dims;
    let planes = numel(&shape[..lead]);
    // Planes, windows, elements of a window.
    let ndim = 1 + 2 * dims;
    let samples = view::reshape(samples, &[planes, dims])?;
    let mut places = V::from(create::zeros(&vec![1; ndim], DType::I64, device)?);
    for d in 0..dims {
        let (size, many) = (shape[lead + d], output[d] as usize);
        let last = size as i64 - kernel[d];
        // The numbers of a plane have the last dimension first.
        let column = if dims == 2 { 1 - d } else { d } as i64;
        let number = V::from(view::slice(&samples, 1, Some(column), Some(column + 1), 1)?);
        let alpha = if many < 2 { 0.0 } else { last as f64 / (many - 1) as f64 };
        let place = |i: V| ((i.cast(dtype) + &number) * alpha).cast(DType::I64);
        let steps = counted(many, 1, 2, device)?;
        let start = place(steps.clone()) - place(counted(1, 1, 2, device)?);
        let at_end = crate::ops::elementwise::arithmetic::eq(&steps.tensor()?, (many - 1) as f64)?;
        let start = select(start, Scalar::Int(last), at_end);
        let mut line: Dims = smallvec![1; ndim];
        (line[0], line[1 + d]) = (planes, many);
        let taps = counted(kernel[d] as usize, 1 + dims + d, ndim, device)?;
        places = places * V::from(Scalar::Int(size as i64)) + start.reshape(&line) + taps;
    }
    let whole = places.shape();
    let (many, taps) = (numel(&whole[1..=dims]), numel(&whole[1 + dims..]));
    let places = places.reshape(&[planes, many * taps]).tensor()?;
    let plane = view::reshape(input, &[planes, numel(&shape[lead..])])?;
    let values = view::reshape(&index::gather(&plane, -1, &places)?, &[planes, many, taps])?;
    let [values, at] = crate::ops::reduction::extrema::max_along(&values, -1, true)?;
    let indices = index::gather(&view::reshape(&places, &[planes, many, taps])?, -1, &at)?;
    let result = resized(&shape, &three(output, 1), dims);
    Ok([view::reshape(&values, &result)?, view::reshape(&indices, &result)?])
}

macro_rules! pools {
    ($($dims:literal $max_name:literal $avg_name:literal $adaptive_max:literal $adaptive_avg:literal $fractional:literal:
       $Max:ident $MaxBack:ident $Avg:ident $AvgBack:ident $Parts:ident $PartsBack:ident $PartsMax:ident $PartsMaxBack:ident
       $Random:ident $RandomBack:ident $Unpool:ident;)*) => { $(
        #[primitive(batch = in_front, tangent = fn, results(result0, result1))]
        impl $Max {
            fn forward(
                input: &Tensor,
                kernel_size: &Ints,
                stride: &Ints,
                padding: &Ints,
                dilation: &Ints,
                ceil_mode: bool,
            ) -> Result<[Body; 2]> {
                let slide = Slide { kernel: kernel_size, stride, padding, dilation, ceil: ceil_mode };
                let input = input.body();
                largest($max_name, &input, &slide.pool(input.shape(), Count::Inside)?, $dims, WHOLE)
            }
            #[allow(clippy::too_many_arguments, reason = "what a pool is told")]
            fn d_input(
                g: Tensor,
                input: Tensor,
                result1: Tensor,
                kernel_size: &Ints,
                stride: &Ints,
                padding: &Ints,
                dilation: &Ints,
                ceil_mode: bool,
            ) -> Result<Tensor> {
                $MaxBack::call(&g, &input, &result1, kernel_size, stride, padding, dilation, ceil_mode)
            }
            fn tangent(t_input: &Tensor, result1: &Tensor) -> Result<Tensor> {
                picked(t_input, result1, $dims)
            }
        }

        #[primitive(tangent = fn)]
        impl $MaxBack {
            #[allow(clippy::too_many_arguments, reason = "what a pool is told")]
            fn forward(
                grad_output: &Tensor,
                input: &Tensor,
                indices: &Tensor,
                #[hidden] kernel_size: &Ints,
                #[hidden] stride: &Ints,
                #[hidden] padding: &Ints,
                #[hidden] dilation: &Ints,
                #[hidden] ceil_mode: bool,
            ) -> Result<Body> {
                let slide = Slide { kernel: kernel_size, stride, padding, dilation, ceil: ceil_mode };
                let input = input.body();
                let pool = slide.pool(input.shape(), Count::Inside)?;
                returned(&grad_output.body(), &indices.body(), &input, Some(&pool), $dims)
            }
            fn d_grad_output(g: Tensor, indices: Tensor) -> Result<Tensor> {
                picked(&g, &indices, $dims)
            }
            fn d_input(at: Meta) -> Result<Tensor> {
                zeros(&at)
            }
            #[allow(clippy::too_many_arguments, reason = "what a pool is told")]
            fn tangent(
                t_grad_output: &Tensor,
                input: &Tensor,
                indices: &Tensor,
                kernel_size: &Ints,
                stride: &Ints,
                padding: &Ints,
                dilation: &Ints,
                ceil_mode: bool,
            ) -> Result<Tensor> {
                $MaxBack::call(t_grad_output, input, indices, kernel_size, stride, padding, dilation, ceil_mode)
            }
            #[allow(clippy::too_many_arguments, reason = "what a pool is told")]
            fn batch(
                b: &Batch,
                grad_output: &Tensor,
                input: &Tensor,
                indices: &Tensor,
                kernel_size: &Ints,
                stride: &Ints,
                padding: &Ints,
                dilation: &Ints,
                ceil_mode: bool,
            ) -> Result<Tensor> {
                let (g, x, indices) = (b.full(grad_output)?, b.full(input)?, b.full(indices)?);
                Ok(b.wrap($MaxBack::call(&g, &x, &indices, kernel_size, stride, padding, dilation, ceil_mode)?))
            }
        }

        #[primitive(batch = in_front, tangent = linear)]
        impl $Avg {
            #[allow(clippy::too_many_arguments, reason = "what a pool is told")]
            fn forward(
                input: &Tensor,
                kernel_size: &Ints,
                stride: &Ints,
                padding: &Ints,
                ceil_mode: bool,
                count_include_pad: bool,
                divisor_override: Option<i64>,
            ) -> Result<Body> {
                let input = input.body();
                let pool = averaging(input.shape(), kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)?;
                means($avg_name, &input, &pool, $dims, &[DType::I64], None)
            }
            #[allow(clippy::too_many_arguments, reason = "what a pool is told")]
            fn d_input(
                g: Tensor,
                input: Tensor,
                kernel_size: &Ints,
                stride: &Ints,
                padding: &Ints,
                ceil_mode: bool,
                count_include_pad: bool,
                divisor_override: Option<i64>,
            ) -> Result<Tensor> {
                $AvgBack::call(&g, &input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
            }
        }

        #[primitive(tangent = fn)]
        impl $AvgBack {
            #[allow(clippy::too_many_arguments, reason = "what a pool is told")]
            fn forward(
                grad_output: &Tensor,
                input: &Tensor,
                kernel_size: &Ints,
                stride: &Ints,
                padding: &Ints,
                ceil_mode: bool,
                count_include_pad: bool,
                divisor_override: Option<i64>,
            ) -> Result<Body> {
                let input = input.body();
                let pool = averaging(input.shape(), kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)?;
                means($avg_name, &grad_output.body(), &pool, $dims, &[], Some(&input))
            }
            #[allow(clippy::too_many_arguments, reason = "what a pool is told")]
            fn d_grad_output(
                g: Tensor,
                kernel_size: &Ints,
                stride: &Ints,
                padding: &Ints,
                ceil_mode: bool,
                count_include_pad: bool,
                divisor_override: Option<i64>,
            ) -> Result<Tensor> {
                $Avg::call(&g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
            }
            fn d_input(at: Meta) -> Result<Tensor> {
                zeros(&at)
            }
            #[allow(clippy::too_many_arguments, reason = "what a pool is told")]
            fn tangent(
                t_grad_output: &Tensor,
                input: &Tensor,
                kernel_size: &Ints,
                stride: &Ints,
                padding: &Ints,
                ceil_mode: bool,
                count_include_pad: bool,
                divisor_override: Option<i64>,
            ) -> Result<Tensor> {
                $AvgBack::call(t_grad_output, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
            }
            #[allow(clippy::too_many_arguments, reason = "what a pool is told")]
            fn batch(
                b: &Batch,
                grad_output: &Tensor,
                input: &Tensor,
                kernel_size: &Ints,
                stride: &Ints,
                padding: &Ints,
                ceil_mode: bool,
                count_include_pad: bool,
                divisor_override: Option<i64>,
            ) -> Result<Tensor> {
                let (g, x) = (b.full(grad_output)?, b.full(input)?);
                Ok(b.wrap($AvgBack::call(&g, &x, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)?))
            }
        }

        #[primitive(batch = in_front, tangent = linear)]
        impl $Parts {
            fn forward(input: &Tensor, #[hidden] output_size: &Ints) -> Result<Body> {
                let input = input.body();
                means($adaptive_avg, &input, &adaptive(input.shape(), output_size)?, $dims, &[], None)
            }
            fn d_input(g: Tensor, input: Tensor) -> Result<Tensor> {
                $PartsBack::call(&g, &input)
            }
        }

        #[primitive(tangent = fn)]
        impl $PartsBack {
            fn forward(grad_output: &Tensor, input: &Tensor) -> Result<Body> {
                let (g, input) = (grad_output.body(), input.body());
                let pool = adaptive(input.shape(), &image(g.shape(), $dims))?;
                means($adaptive_avg, &g, &pool, $dims, &[], Some(&input))
            }
            fn d_grad_output(g: Tensor, at: Meta) -> Result<Tensor> {
                $Parts::call(&g, &image(&at.shape, $dims))
            }
            fn d_input(at: Meta) -> Result<Tensor> {
                zeros(&at)
            }
            fn tangent(t_grad_output: &Tensor, input: &Tensor) -> Result<Tensor> {
                $PartsBack::call(t_grad_output, input)
            }
            fn batch(b: &Batch, grad_output: &Tensor, input: &Tensor) -> Result<Tensor> {
                Ok(b.wrap($PartsBack::call(&b.full(grad_output)?, &b.full(input)?)?))
            }
        }

        #[primitive(batch = in_front, tangent = fn, results(result0, result1))]
        impl $PartsMax {
            fn forward(input: &Tensor, #[hidden] output_size: &Ints) -> Result<[Body; 2]> {
                let input = input.body();
                largest($adaptive_max, &input, &adaptive(input.shape(), output_size)?, $dims, &[])
            }
            fn d_input(g: Tensor, input: Tensor, result1: Tensor) -> Result<Tensor> {
                $PartsMaxBack::call(&g, &input, &result1)
            }
            fn tangent(t_input: &Tensor, result1: &Tensor) -> Result<Tensor> {
                picked(t_input, result1, $dims)
            }
        }

        #[primitive(tangent = fn)]
        impl $PartsMaxBack {
            fn forward(grad_output: &Tensor, input: &Tensor, indices: &Tensor) -> Result<Body> {
                let (g, input) = (grad_output.body(), input.body());
                let pool = adaptive(input.shape(), &image(g.shape(), $dims))?;
                returned(&g, &indices.body(), &input, Some(&pool), $dims)
            }
            fn d_grad_output(g: Tensor, indices: Tensor) -> Result<Tensor> {
                picked(&g, &indices, $dims)
            }
            fn d_input(at: Meta) -> Result<Tensor> {
                zeros(&at)
            }
            fn tangent(t_grad_output: &Tensor, input: &Tensor, indices: &Tensor) -> Result<Tensor> {
                $PartsMaxBack::call(t_grad_output, input, indices)
            }
            fn batch(b: &Batch, grad_output: &Tensor, input: &Tensor, indices: &Tensor) -> Result<Tensor> {
                Ok(b.wrap($PartsMaxBack::call(&b.full(grad_output)?, &b.full(input)?, &b.full(indices)?)?))
            }
        }

        #[primitive(tangent = fn, results(result0, result1))]
        impl $Random {
            fn forward(
                input: &Tensor,
                kernel_size: &Ints,
                output_size: &Ints,
                #[hidden] random_samples: &Tensor,
            ) -> Result<[Body; 2]> {
                let found = mode::with_grad(false, || at_random(input, kernel_size, output_size, random_samples, $dims))?;
                Ok(found.map(|t| t.body().clone()))
            }
            fn d_input(
                g: Tensor,
                input: Tensor,
                kernel_size: &Ints,
                output_size: &Ints,
                result1: Tensor,
            ) -> Result<Tensor> {
                let _ = (kernel_size, output_size);
                $RandomBack::call(&g, &input, &result1)
            }
            fn tangent(t_input: &Tensor, result1: &Tensor) -> Result<Tensor> {
                picked(t_input, result1, $dims)
            }
            fn batch(
                b: &Batch,
                input: &Tensor,
                kernel_size: &Ints,
                output_size: &Ints,
                random_samples: &Tensor,
            ) -> Result<[Tensor; 2]> {
                // Random numbers have as many planes as the input: those of every sample come together.
                let (x, samples) = (b.full(input)?, b.full(random_samples)?);
                let [values, indices] = $Random::call(&x, kernel_size, output_size, &samples)?;
                Ok([b.wrap(values), b.wrap(indices)])
            }
        }

        #[primitive(tangent = fn)]
        impl $RandomBack {
            fn forward(grad_output: &Tensor, input: &Tensor, indices: &Tensor) -> Result<Body> {
                returned(&grad_output.body(), &indices.body(), &input.body(), None, $dims)
            }
            fn d_grad_output(g: Tensor, indices: Tensor) -> Result<Tensor> {
                picked(&g, &indices, $dims)
            }
            fn d_input(at: Meta) -> Result<Tensor> {
                zeros(&at)
            }
            fn tangent(t_grad_output: &Tensor, input: &Tensor, indices: &Tensor) -> Result<Tensor> {
                $RandomBack::call(t_grad_output, input, indices)
            }
            fn batch(b: &Batch, grad_output: &Tensor, input: &Tensor, indices: &Tensor) -> Result<Tensor> {
                Ok(b.wrap($RandomBack::call(&b.full(grad_output)?, &b.full(input)?, &b.full(indices)?)?))
            }
        }

        #[primitive(tangent = fn)]
        impl $Unpool {
            fn forward(input: &Tensor, indices: &Tensor, #[hidden] output_size: &Ints) -> Result<Body> {
                unpooled(input, indices, output_size)
            }
            fn d_input(g: Tensor, indices: Tensor) -> Result<Tensor> {
                picked(&g, &indices, $dims)
            }
            fn tangent(t_input: &Tensor, indices: &Tensor, output_size: &Ints) -> Result<Tensor> {
                $Unpool::call(t_input, indices, output_size)
            }
            fn batch(b: &Batch, input: &Tensor, indices: &Tensor, output_size: &Ints) -> Result<Tensor> {
                Ok(b.wrap($Unpool::call(&b.full(input)?, &b.full(indices)?, output_size)?))
            }
        }
    )* };
}
pools! {
    2 "max_pool2d" "avg_pool2d" "adaptive_max_pool2d" "adaptive_avg_pool2d" "fractional_max_pool2d":
        MaxPool2DWithIndices MaxPool2DWithIndicesBackward AvgPool2D AvgPool2DBackward AdaptiveAvgPool2D
        AdaptiveAvgPool2DBackward AdaptiveMaxPool2D AdaptiveMaxPool2DBackward FractionalMaxPool2D FractionalMaxPool2DBackward
        MaxUnpool2D;
    3 "max_pool3d" "avg_pool3d_out_frame" "adaptive_max_pool3d_cpu" "adaptive_avg_pool3d_cpu" "fractional_max_pool3d_out_frame":
        MaxPool3DWithIndices MaxPool3DWithIndicesBackward AvgPool3D AvgPool3DBackward AdaptiveAvgPool3D
        AdaptiveAvgPool3DBackward AdaptiveMaxPool3D AdaptiveMaxPool3DBackward FractionalMaxPool3D FractionalMaxPool3DBackward
        MaxUnpool3D;
}

fn averaging(
    shape: &[usize],
    kernel: &Ints,
    stride: &Ints,
    padding: &Ints,
    ceil: bool,
    padded: bool,
    divisor: Option<i64>,
) -> Result<Pool> {
    let dilation = smallvec![1; kernel.len()];
    let count = match divisor {
        Some(n) => Count::Given(n),
        None if padded => Count::Padded,
        None => Count::Inside,
    };
    Slide { kernel, stride, padding, dilation: &dilation, ceil }.pool(shape, count)
}

const WORDS: [&str; 4] = ["", "one", "two", "three"];

fn fail<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::runtime(message.into()))
}

/// Refuses lists that are neither single numbers nor have one for each dimension.
fn check_list(name: &str, what: &str, list: &Ints, dims: usize, says: &str) -> Result<()> {
    if list.len() == 1 || list.len() == dims || (list.is_empty() && what == "stride") {
        return Ok(());
    }
    let omitted = if what == "stride" { "omitted, a single int" } else { "a single int" };
    fail(format!("{name}: {what} must {says} {omitted}, or a tuple of {} ints", WORDS[dims]))
}

/// The letters of sizes in messages: `kH: 2 kW: 2`.
fn lettered(prefix: &str, list: &[i64], letters: &[&str]) -> String {
    let all: Vec<String> = letters.iter().zip(list).map(|(l, n)| format!("{prefix}{l}: {n}")).collect();
    all.join(" ")
}

/// Refuses inputs and windows that do not fit together, in PyTorch's words.
fn check_slide(name: &str, input: &Tensor, slide: &Slide<'_>, largest: bool) -> Result<()> {
    let (shape, dims) = (input.shape(), slide.kernel.len());
    let letters: &[&str] = if dims == 2 { &["H", "W"] } else { &["T", "H", "W"] };
    let batched = shape.len() == dims + 2;
    let ranked = batched || shape.len() == dims + 1;
    if !ranked && (largest || dims == 3) {
        return fail(format!(
            "non-empty {}D or {}D (batch mode) tensor expected for input",
            dims + 1,
            dims + 2
        ));
    }
    if shape.len() < dims + 1 {
        return Err(Error::index(format!(
            "Dimension out of range (expected to be in range of [-{0}, {1}], but got -{2})",
            shape.len().max(1),
            shape.len().max(1) - 1,
            dims + 1
        )));
    }
    let sizes = image(&shape, dims);
    let result: Result<Ints> = (0..dims).map(|d| slide.count(d, sizes[d])).collect();
    let result = result?;
    for (what, list, letter) in [
        ("kernel size", slide.kernel, "k"),
        ("stride", slide.stride, "d"),
        ("dilation", slide.dilation, "dilation"),
    ] {
        if list.iter().any(|&n| n <= 0) {
            return fail(format!(
                "{what} should be greater than zero, but got {}",
                lettered(letter, list, letters)
            ));
        }
    }
    if dims == 3 {
        if let Some(d) = (usize::from(batched)..shape.len()).find(|&d| shape[d] == 0) {
            let call = if largest { "max_pool3d_with_indices_out_cpu_template" } else { name };
            return fail(format!(
                "{call}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {:?} with \
                 dimension {d} being empty",
                shape.as_slice()
            ));
        }
    } else if !ranked || shape[usize::from(batched)..].contains(&0) {
        return fail(format!(
            "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{:?}",
            shape.as_slice()
        ));
    }
    if (0..dims).any(|d| slide.padding[d] > slide.kernel[d] / 2) {
        let pads: Vec<String> =
            letters.iter().zip(slide.padding).rev().map(|(l, n)| format!("pad{l} = {n}")).collect();
        let kernels: Vec<String> =
            letters.iter().zip(slide.kernel).rev().map(|(l, n)| format!("k{l} = {n}")).collect();
        return fail(format!(
            "pad should be smaller than or equal to half of kernel size, but got {}, {}",
            pads.join(", "),
            kernels.join(", ")
        ));
    }
    if !largest && dims == 3 && (0..3).any(|d| sizes[d] < slide.kernel[d]) {
        return fail(format!(
            "input image ({}) smaller than kernel size ({})",
            lettered("", &sizes, letters),
            lettered("k", slide.kernel, letters)
        ));
    }
    if result.iter().any(|&n| n < 1) {
        let by = |list: &[i64]| list.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
        let channels = shape[shape.len() - dims - 1];
        return fail(format!(
            "Given input size: ({channels}x{}). Calculated output size: ({channels}x{}). Output size is too small",
            by(&sizes),
            by(&result)
        ));
    }
    Ok(())
}

/// A row of pixels as an image, and back: how pools of one dimension are computed.
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

/// A list with one number.
fn single(name: &str, what: &str, list: &Ints) -> Result<i64> {
    match list.as_slice() {
        [n] => Ok(*n),
        _ => fail(format!("{name}() argument '{what}' should contain one int (got {})", list.len())),
    }
}

fn one() -> Ints {
    smallvec![1]
}

macro_rules! sliding {
    ($($dims:literal $max:ident $max_name:literal $both:ident $avg:ident $avg_name:literal $Max:ident $Avg:ident $says:literal
       $what:literal;)*) => { $(
        #[doc = concat!("The largest elements of windows that slide over ", $what, ", and their places.")]
        #[operator(nn, out(declared), sample = "pooled(name)")]
        pub fn $both(
            input: &Tensor,
            kernel_size: Ints,
            stride: Option<Ints>,
            #[default(smallvec![0])] padding: Ints,
            #[default(smallvec![1])] dilation: Ints,
            #[default(false)] ceil_mode: bool,
        ) -> Result<[Tensor; 2]> {
            let stride = stride.unwrap_or_default();
            for (what, list) in [("kernel_size", &kernel_size), ("stride", &stride), ("padding", &padding)] {
                check_list($max_name, what, list, $dims, "either be")?;
            }
            check_list($max_name, "dilation", &dilation, $dims, "be either")?;
            let kernel = spread(&kernel_size, $dims, &one());
            let (stride, padding) = (spread(&stride, $dims, &kernel), spread(&padding, $dims, &one()));
            let dilation = spread(&dilation, $dims, &one());
            let slide =
                Slide { kernel: &kernel, stride: &stride, padding: &padding, dilation: &dilation, ceil: ceil_mode };
            check_slide($max_name, input, &slide, true)?;
            $Max::call(input, &kernel, &stride, &padding, &dilation, ceil_mode)
        }

        #[doc = concat!("The largest elements of windows that slide over ", $what, ".")]
        #[operator(function, composite, sample = "pooled(name)")]
        pub fn $max(
            input: &Tensor,
            kernel_size: Ints,
            stride: Option<Ints>,
            #[default(smallvec![0])] padding: Ints,
            #[default(smallvec![1])] dilation: Ints,
            #[default(false)] ceil_mode: bool,
        ) -> Result<Tensor> {
            $both(input, kernel_size, stride, padding, dilation, ceil_mode).map(|[values, _]| values)
        }

        #[doc = concat!("The means of windows that slide over ", $what, ".")]
        #[operator(nn, out(declared), sample = "pooled(name)")]
        pub fn $avg(
            input: &Tensor,
            kernel_size: Ints,
            stride: Option<Ints>,
            #[default(smallvec![0])] padding: Ints,
            #[default(false)] ceil_mode: bool,
            #[default(true)] count_include_pad: bool,
            divisor_override: Option<i64>,
        ) -> Result<Tensor> {
            let stride = stride.unwrap_or_default();
            for (what, list) in [("kernel_size", &kernel_size), ("stride", &stride), ("padding", &padding)] {
                check_list($avg_name, what, list, $dims, $says)?;
            }
            let kernel = spread(&kernel_size, $dims, &one());
            let (stride, padding) = (spread(&stride, $dims, &kernel), spread(&padding, $dims, &one()));
            if divisor_override == Some(0) {
                return fail("divisor must be not zero");
            }
            let dilation = smallvec![1; $dims];
            let slide =
                Slide { kernel: &kernel, stride: &stride, padding: &padding, dilation: &dilation, ceil: ceil_mode };
            check_slide($avg_name, input, &slide, false)?;
            $Avg::call(input, &kernel, &stride, &padding, ceil_mode, count_include_pad, divisor_override)
        }
    )* };
}
sliding! {
    2 max_pool2d "max_pool2d" max_pool2d_with_indices avg_pool2d "avg_pool2d" MaxPool2DWithIndices AvgPool2D "either be" "a plane";
    3 max_pool3d "max_pool3d" max_pool3d_with_indices avg_pool3d "avg_pool3d" MaxPool3DWithIndices AvgPool3D "be" "space";
}

/// What windows over a line are told, in PyTorch's order of refusal.
fn of_line(
    name: &str,
    kernel_size: &Ints,
    stride: Option<Ints>,
    padding: &Ints,
    dilation: &Ints,
) -> Result<[i64; 4]> {
    let kernel = single(name, "kernel_size", kernel_size)?;
    let stride = match stride.filter(|list| !list.is_empty()) {
        Some(list) => single(name, "stride", &list)?,
        None => kernel,
    };
    Ok([kernel, stride, single(name, "padding", padding)?, single(name, "dilation", dilation)?])
}

/// The largest elements of windows that slide over a line, and their places.
#[operator(function, composite, sample = "pooled(name)")]
pub fn max_pool1d_with_indices(
    input: &Tensor,
    kernel_size: Ints,
    stride: Option<Ints>,
    #[default(smallvec![0])] padding: Ints,
    #[default(smallvec![1])] dilation: Ints,
    #[default(false)] ceil_mode: bool,
) -> Result<[Tensor; 2]> {
    check_rank("max_pool1d", input)?;
    let [kernel, stride, padding, dilation] =
        of_line("max_pool1d", &kernel_size, stride, &padding, &dilation)?;
    let across = |n: i64, one: i64| smallvec![one, n];
    let [values, indices] = as_plane(input, |x| {
        let stride = Some(across(stride, 1));
        max_pool2d_with_indices(
            x,
            across(kernel, 1),
            stride,
            across(padding, 0),
            across(dilation, 1),
            ceil_mode,
        )
    })?;
    Ok([as_line(&values)?, as_line(&indices)?])
}

/// The largest elements of windows that slide over a line.
#[operator(function, composite, sample = "pooled(name)")]
pub fn max_pool1d(
    input: &Tensor,
    kernel_size: Ints,
    stride: Option<Ints>,
    #[default(smallvec![0])] padding: Ints,
    #[default(smallvec![1])] dilation: Ints,
    #[default(false)] ceil_mode: bool,
) -> Result<Tensor> {
    let shape = input.shape();
    let ranked = matches!(shape.len(), 2 | 3);
    if !ranked || shape[shape.len() - 2..].contains(&0) {
        return fail(format!(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:{:?}",
            shape.as_slice()
        ));
    }
    let own = stride.unwrap_or_default();
    for (what, list, wanted) in [
        ("kernel_size", &kernel_size, "an int, list of ints or tuple of ints"),
        ("stride", &own, "None, an int, list of ints, or tuple of ints"),
        ("padding", &padding, "an int, list of ints, or tuple of ints"),
        ("dilation", &dilation, "an int, list of ints or tuple of ints"),
    ] {
        if list.len() != 1 && (what != "stride" || !list.is_empty()) {
            return fail(format!(
                "max_pool1d() {what} must be {wanted} of size 1 but got size {}",
                list.len()
            ));
        }
    }
    let (kernel, by) = (kernel_size[0], own.first().copied().unwrap_or(kernel_size[0]));
    for (what, n) in [("kernel_size", kernel), ("stride", by)] {
        if n <= 0 {
            return fail(format!("max_pool1d() {what} must be greater than zero, but got {n}"));
        }
    }
    if padding[0] < 0 {
        return fail(format!("max_pool1d() padding must be non-negative, but got {}", padding[0]));
    }
    if padding[0] > kernel / 2 {
        return fail(format!(
            "max_pool1d() padding should be at most half of kernel size, but got padding={} and kernel_size={kernel}",
            padding[0]
        ));
    }
    if dilation[0] <= 0 {
        return fail(format!("max_pool1d() dilation must be greater than zero, but got {}", dilation[0]));
    }
    let (kernel, by) = (smallvec![kernel], smallvec![by]);
    let slide =
        Slide { kernel: &kernel, stride: &by, padding: &padding, dilation: &dilation, ceil: ceil_mode };
    let count = slide.count(0, shape[shape.len() - 1] as i64)?;
    if count <= 0 {
        return fail(format!("max_pool1d() Invalid computed output size: {count}"));
    }
    if !input.dtype().is_float() {
        return Err(Fault::NoKernel { op: "max_pool1d_impl", dtype: input.dtype() }.into());
    }
    max_pool1d_with_indices(input, kernel_size, Some(own), padding, dilation, ceil_mode)
        .map(|[values, _]| values)
}

/// The means of windows that slide over a line.
#[operator(function, composite, sample = "pooled(name)")]
pub fn avg_pool1d(
    input: &Tensor,
    kernel_size: Ints,
    stride: Option<Ints>,
    #[default(smallvec![0])] padding: Ints,
    #[default(false)] ceil_mode: bool,
    #[default(true)] count_include_pad: bool,
) -> Result<Tensor> {
    check_rank("avg_pool1d", input)?;
    let [kernel, stride, padding, _] = of_line("avg_pool1d", &kernel_size, stride, &padding, &one())?;
    let out = as_plane(input, |x| {
        let (stride, padding) = (Some(smallvec![1, stride]), smallvec![0, padding]);
        avg_pool2d(x, smallvec![1, kernel], stride, padding, ceil_mode, count_include_pad, None)
    })?;
    as_line(&out)
}

/// Refuses what cannot be divided.
fn check_parts(name: &str, input: &Tensor, dims: usize, colon: &str) -> Result<()> {
    let shape = input.shape();
    if !matches!(shape.len().checked_sub(dims), Some(1 | 2)) {
        return fail(format!(
            "{name}(): Expected {}D or {}D tensor, but got{colon} {:?}",
            dims + 1,
            dims + 2,
            shape.as_slice()
        ));
    }
    match (shape.len() - dims..shape.len()).find(|&d| shape[d] == 0) {
        Some(d) => fail(format!(
            "{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {:?} with dimension \
             {d} being empty",
            shape.as_slice()
        )),
        None => Ok(()),
    }
}

macro_rules! dividing {
    ($($dims:literal $avg:ident $max:ident $unpool:ident $Avg:ident $Max:ident $Unpool:ident $what:literal;)*) => { $(
        #[doc = concat!("The means of the nearly equal parts that ", $what, " is divided into.")]
        #[operator(nn, out(declared), sample = "pooled(name)")]
        pub fn $avg(input: &Tensor, output_size: Ints) -> Result<Tensor> {
            let name = stringify!($avg);
            if output_size.len() != $dims && output_size.len() != 1 {
                return fail(format!("{name}: output_size must be {}", $dims));
            }
            let sizes = spread(&output_size, $dims, &one());
            if sizes.iter().any(|&n| n < 0) {
                let mut all = sizes.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
                if $dims == 3 {
                    all = format!("{}, {},{}", sizes[0], sizes[1], sizes[2]);
                }
                return fail(format!(
                    "{name}: elements of output_size must be greater than or equal to 0 but received {{{all}}}"
                ));
            }
            if sizes.iter().all(|&n| n == 1) && input.ndim() > $dims {
                let dims: Ints = (1..=$dims).map(|d: i64| -d).collect();
                return crate::ops::reduction::reduce::mean(input, Some(dims), true, None);
            }
            check_parts(name, input, $dims, "")?;
            $Avg::call(input, &sizes)
        }

        #[doc = concat!("The largest elements of the nearly equal parts that ", $what, " is divided into, and their places.")]
        #[operator(nn, out(declared), sample = "pooled(name)")]
        pub fn $max(input: &Tensor, output_size: Ints) -> Result<[Tensor; 2]> {
            let name = stringify!($max);
            check_parts(name, input, $dims, ":")?;
            if output_size.len() != $dims && output_size.len() != 1 {
                return fail(format!("{name}(): internal error: output_size.size() must be {}", $dims));
            }
            let sizes = spread(&output_size, $dims, &one());
            if let Some(n) = sizes.iter().find(|&&n| n < 0) {
                let lead = input.ndim() - $dims;
                let shape: Vec<i64> =
                    input.shape()[..lead].iter().map(|&n| n as i64).chain(sizes.iter().copied()).collect();
                return fail(format!("Trying to create tensor with negative dimension {n}: {shape:?}"));
            }
            $Max::call(input, &sizes)
        }

        #[doc = concat!("Values at the places that they were taken from in ", $what, ", and zeros elsewhere.")]
        #[operator(nn, out(declared), sample = "unpooled(name)")]
        pub fn $unpool(
            input: &Tensor,
            indices: &Tensor,
            output_size: Ints,
            stride: Option<Ints>,
            padding: Option<Ints>,
        ) -> Result<Tensor> {
            let _ = (stride, padding);
            check_unpool(input, indices, &output_size, $dims)?;
            $Unpool::call(input, indices, &output_size)
        }
    )* };
}
dividing! {
    2 adaptive_avg_pool2d adaptive_max_pool2d max_unpool2d AdaptiveAvgPool2D AdaptiveMaxPool2D MaxUnpool2D "a plane";
    3 adaptive_avg_pool3d adaptive_max_pool3d max_unpool3d AdaptiveAvgPool3D AdaptiveMaxPool3D MaxUnpool3D "space";
}

fn check_unpool(input: &Tensor, indices: &Tensor, sizes: &Ints, dims: usize) -> Result<()> {
    if indices.dtype() != DType::I64 {
        return fail(format!(
            "elements in indices should be type int64 but got: {}",
            indices.dtype().scalar_name()
        ));
    }
    if sizes.len() != dims {
        return fail(format!(
            "There should be exactly {} elements ({}) in output_size, but got {} elements.",
            WORDS[dims],
            if dims == 2 { "height, width" } else { "depth, height, width" },
            sizes.len()
        ));
    }
    if !matches!(input.ndim().checked_sub(dims), Some(1 | 2)) {
        return fail(format!(
            "Input to max_unpooling{dims}d should be a {}d or {}d Tensor, but got a tensor with {} dimensions.",
            dims + 1,
            dims + 2,
            input.ndim()
        ));
    }
    if input.shape() != indices.shape() {
        return fail(format!(
            "Expected shape of indices to be same as that of the input tensor ({:?}) but got indices tensor with shape: {:?}",
            input.shape().as_slice(),
            indices.shape().as_slice()
        ));
    }
    match sizes.iter().find(|&&n| n < 0) {
        Some(n) => {
            fail(format!("Trying to create tensor with negative dimension {n}: {:?}", sizes.as_slice()))
        }
        None => Ok(()),
    }
}

/// The means of the nearly equal parts that a line is divided into.
#[operator(function, composite, sample = "pooled(name)")]
pub fn adaptive_avg_pool1d(input: &Tensor, output_size: Ints) -> Result<Tensor> {
    check_rank("adaptive_avg_pool1d", input)?;
    let size = single("adaptive_avg_pool1d", "output_size", &output_size)?;
    as_line(&as_plane(input, |x| adaptive_avg_pool2d(x, smallvec![1, size]))?)
}

/// The largest elements of the nearly equal parts that a line is divided into, and their places.
#[operator(function, composite, sample = "pooled(name)")]
pub fn adaptive_max_pool1d(input: &Tensor, output_size: Ints) -> Result<[Tensor; 2]> {
    check_rank("adaptive_max_pool1d", input)?;
    let size = single("adaptive_max_pool1d", "output_size", &output_size)?;
    let shape = input.shape();
    if let Some(d) = (1..shape.len()).find(|&d| shape[d] == 0) {
        return fail(format!(
            "adaptive_max_pool1d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {:?} with \
             dimension {d} being empty",
            shape.as_slice()
        ));
    }
    let [values, indices] = as_plane(input, |x| adaptive_max_pool2d(x, smallvec![1, size]))?;
    Ok([as_line(&values)?, as_line(&indices)?])
}

/// Refuses windows at random places that do not fit.
fn check_random(
    name: &str,
    input: &Tensor,
    kernel: &Ints,
    output: &Ints,
    samples: &Tensor,
    dims: usize,
) -> Result<()> {
    let (shape, given) = (input.shape(), samples.shape());
    for (what, list) in [("kernel_size", kernel), ("output_size", output)] {
        if list.len() != dims {
            return fail(format!(
                "{name}: {what} must either be a single Int or tuple of {} Ints",
                WORDS[dims]
            ));
        }
    }
    let batched = shape.len() == dims + 2;
    if (!batched && shape.len() != dims + 1) || shape[usize::from(batched)..].contains(&0) {
        return fail(format!(
            "{name}(): Expected {}D or {}D tensor, but got: {:?}",
            dims + 1,
            dims + 2,
            shape.as_slice()
        ));
    }
    let call = if dims == 2 { name.to_owned() } else { format!("{name}_out") };
    // (Those of space must not fit exactly, and are looked at in this order.)
    let axes: &[(usize, &str)] =
        if dims == 2 { &[(0, "height"), (1, "width")] } else { &[(0, "time"), (2, "width"), (1, "height")] };
    let room = dims as i64 - 2;
    for &(d, axis) in axes {
        let size = shape[shape.len() - dims + d] as i64;
        if kernel[d] <= 0 || output[d] <= 0 {
            return fail(format!("{name}: kernel and output sizes must be greater than zero"));
        }
        if output[d].saturating_add(kernel[d]).saturating_sub(1) > size - room {
            return fail(format!(
                "{call}(): pool {axis} {} too large relative to input {axis} {size}",
                kernel[d]
            ));
        }
    }
    if samples.dtype() != input.dtype() {
        return fail("Expect _random_samples to have the same dtype as input");
    }
    if given.len() != 3 {
        return fail(format!("Expect _random_samples to have 3 dimensions, got {}", given.len()));
    }
    let (count, channels) = if batched { (shape[0], shape[1]) } else { (1, shape[0]) };
    if given[0] < count {
        return fail("Expect _random_samples.size(0) no less then input batch size.");
    }
    if given[1] != channels {
        return fail("Expect _random_samples.size(1) equals to input channel size.");
    }
    if given[2] != dims {
        return fail(format!("Expect _random_samples.size(2) equals to {dims}; got {}.", given[2]));
    }
    Ok(())
}

macro_rules! random {
    ($($dims:literal $name:ident $Random:ident $what:literal;)*) => { $(
        #[doc = concat!("The largest elements of windows that begin at random places of ", $what, ", and their places.")]
        #[operator(nn, sample = "pooled(name)")]
        pub fn $name(
            input: &Tensor,
            kernel_size: Ints,
            output_size: Ints,
            random_samples: &Tensor,
        ) -> Result<[Tensor; 2]> {
            let (kernel, output) =
                (spread(&kernel_size, $dims, &one()), spread(&output_size, $dims, &one()));
            check_random(stringify!($name), input, &kernel, &output, random_samples, $dims)?;
            let count = if input.ndim() == $dims + 2 { input.shape()[0] } else { 1 };
            let samples = view::slice(random_samples, 0, Some(0), Some(count as i64), 1)?;
            $Random::call(input, &kernel, &output, &samples)
        }
    )* };
}
random! {
    2 fractional_max_pool2d FractionalMaxPool2D "a plane";
    3 fractional_max_pool3d FractionalMaxPool3D "space";
}
