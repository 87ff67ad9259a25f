//! Adaptive pooling: windows divide the image into nearly equal parts.

use super::{
    as_line, as_plane, check_rank, check_sizes, fail, gather_planes, image, largest, max_pool_gradient,
    means, one, per_dim, single, three, zeros,
};
use crate::base::kernel_args::pool::{PoolDivisor, PoolWindows};
use crate::base::{MemoryFormat, Windows};
use crate::ops::prelude::*;
use crate::ops::shape::as_strided::as_strided_;
use smallvec::smallvec;

/// The windows that divide an image into `output` parts.
fn adaptive(shape: &[usize], output: &[i64]) -> Result<PoolWindows> {
    let windows = Windows {
        image: three(&image(shape, output.len()), 1),
        kernel: [1; 3],
        result: three(output, 1),
        stride: [1; 3],
        padding: [0; 3],
        dilation: [1; 3],
    };
    windows.check()?;
    Ok(PoolWindows { windows, adaptive: true, count: PoolDivisor::Inside })
}

macro_rules! primitives {
    ($($dims:literal $max_name:literal $max_back:literal $avg_name:literal $avg_back:literal $Max:ident $MaxBack:ident $Avg:ident $AvgBack:ident;)*) => { $(
        #[primitive(batch = in_front, tangent = fn, results(result0, result1))]
        impl $Max {
            fn forward(input: &Tensor, #[hidden] output_size: &Ints) -> Result<[Body; 2]> {
                let input = input.body();
                largest($max_name, &input, &adaptive(input.shape(), output_size)?, $dims, &[])
            }
            fn d_input(g: Tensor, input: Tensor, result1: Tensor) -> Result<Tensor> {
                $MaxBack::call(&g, &input, &result1)
            }
            fn tangent(t_input: &Tensor, result1: &Tensor) -> Result<Tensor> {
                gather_planes(t_input, result1, $dims)
            }
        }

        #[primitive(tangent = fn)]
        impl $MaxBack {
            fn forward(grad_output: &Tensor, input: &Tensor, indices: &Tensor) -> Result<Body> {
                let (g, input) = (grad_output.body(), input.body());
                check_filled($max_back, "grad_output", g.shape(), 1)?;
                let pool = adaptive(input.shape(), &image(g.shape(), $dims))?;
                max_pool_gradient(&g, &indices.body(), &input, Some(&pool), $dims)
            }
            fn d_grad_output(g: Tensor, indices: Tensor) -> Result<Tensor> {
                gather_planes(&g, &indices, $dims)
            }
            fn d_input(at: Meta) -> Result<Tensor> {
                zeros(&at)
            }
            fn tangent(t_grad_output: &Tensor, input: &Tensor, indices: &Tensor) -> Result<Tensor> {
                $MaxBack::call(t_grad_output, input, indices)
            }
            fn batch(b: &Batch, grad_output: &Tensor, input: &Tensor, indices: &Tensor) -> Result<Tensor> {
                Ok(b.wrap($MaxBack::call(&b.full(grad_output)?, &b.full(input)?, &b.full(indices)?)?))
            }
        }

        #[primitive(batch = in_front, tangent = linear)]
        impl $Avg {
            fn forward(input: &Tensor, #[hidden] output_size: &Ints) -> Result<Body> {
                let input = input.body();
                means($avg_name, &input, &adaptive(input.shape(), output_size)?, $dims, &[], None)
            }
            fn d_input(g: Tensor, input: Tensor) -> Result<Tensor> {
                $AvgBack::call(&g, &input)
            }
        }

        #[primitive(tangent = fn)]
        impl $AvgBack {
            fn forward(grad_output: &Tensor, input: &Tensor) -> Result<Body> {
                let (g, input) = (grad_output.body(), input.body());
                check_filled($avg_back, "grad_output", g.shape(), 1)?;
                let pool = adaptive(input.shape(), &image(g.shape(), $dims))?;
                means($avg_name, &g, &pool, $dims, &[], Some(&input))
            }
            fn d_grad_output(g: Tensor, at: Meta) -> Result<Tensor> {
                $Avg::call(&g, &image(&at.shape, $dims))
            }
            fn d_input(at: Meta) -> Result<Tensor> {
                zeros(&at)
            }
            fn tangent(t_grad_output: &Tensor, input: &Tensor) -> Result<Tensor> {
                $AvgBack::call(t_grad_output, input)
            }
            fn batch(b: &Batch, grad_output: &Tensor, input: &Tensor) -> Result<Tensor> {
                Ok(b.wrap($AvgBack::call(&b.full(grad_output)?, &b.full(input)?)?))
            }
        }
    )* };
}
primitives! {
    2 "adaptive_max_pool2d" "adaptive_max_pool2d_backward" "adaptive_avg_pool2d" "adaptive_avg_pool2d_backward" AdaptiveMaxPool2D
        AdaptiveMaxPool2DBackward AdaptiveAvgPool2D AdaptiveAvgPool2DBackward;
    3 "adaptive_max_pool3d_cpu" "adaptive_max_pool3d_backward" "adaptive_avg_pool3d_cpu" "adaptive_avg_pool3d_backward" AdaptiveMaxPool3D AdaptiveMaxPool3DBackward AdaptiveAvgPool3D
        AdaptiveAvgPool3DBackward;
}

/// Rejects inputs that cannot be divided.
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
    // `adaptive_avg_pool2d` also accepts inputs without channels.
    let first = if name == "adaptive_avg_pool2d" { shape.len() - dims } else { 1 };
    check_filled(name, "input", &shape, first)
}

/// Rejects sizes of 0 from dimension `first` on.
fn check_filled(name: &str, what: &str, shape: &[usize], first: usize) -> Result<()> {
    match (first..shape.len()).find(|&d| shape[d] == 0) {
        Some(d) => fail(format!(
            "{name}(): Expected {what} to have non-zero size for non-batch dimensions, but {what} has sizes {shape:?} with \
             dimension {d} being empty"
        )),
        None => Ok(()),
    }
}

/// Gives means of whole images the memory format of the input, which the strides of single elements leave open.
fn in_format(means: Tensor, input: &Tensor) -> Result<Tensor> {
    if !input.is_batched() && MemoryFormat::suggested(&input.body().layout) != MemoryFormat::Contiguous {
        let sizes: Ints = means.shape().iter().map(|&n| n as i64).collect();
        let strides = (0..sizes.len()).map(|d| if d == 1 { 1 } else { sizes[1] }).collect();
        as_strided_(&means, sizes, strides, None)?;
    }
    Ok(means)
}

macro_rules! operators {
    ($($dims:literal $avg:ident $max:ident $Avg:ident $Max:ident $(, $cast:ident)?;)*) => { $(
        #[doc = concat!("Average over nearly equal parts of the last ", $dims, " dimensions.")]
        #[operator(nn, out(declared), $(autocast = $cast,)? sample = "pooled(name)")]
        pub fn $avg(input: &Tensor, output_size: Ints) -> Result<Tensor> {
            let name = stringify!($avg);
            if output_size.len() != $dims && output_size.len() != 1 {
                return fail(format!("{name}: output_size must be {}", $dims));
            }
            let sizes = per_dim(&output_size, $dims, &one());
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
                return in_format(crate::ops::reduction::reduce::mean(input, Some(dims), true, None)?, input);
            }
            check_parts(name, input, $dims, "")?;
            $Avg::call(input, &sizes)
        }

        #[doc = concat!("Take the maxima over nearly equal parts of the last ", $dims, " dimensions, and their indices.")]
        #[operator(nn, out(declared), $(autocast = $cast,)? sample = "pooled(name)")]
        pub fn $max(input: &Tensor, output_size: Ints) -> Result<[Tensor; 2]> {
            let name = stringify!($max);
            check_parts(name, input, $dims, ":")?;
            if output_size.len() != $dims && output_size.len() != 1 {
                return fail(format!("{name}(): internal error: output_size.size() must be {}", $dims));
            }
            let sizes = per_dim(&output_size, $dims, &one());
            check_sizes(&input.shape(), &sizes)?;
            $Max::call(input, &sizes)
        }
    )* };
}
operators! {
    2 adaptive_avg_pool2d adaptive_max_pool2d AdaptiveAvgPool2D AdaptiveMaxPool2D;
    3 adaptive_avg_pool3d adaptive_max_pool3d AdaptiveAvgPool3D AdaptiveMaxPool3D, single;
}

/// Average over `output_size` nearly equal parts of the last dimension.
///
/// Args:
///     input: the input, `(N, C, L)` or `(C, L)`.
///     output_size: size of the output.
///
/// Examples:
///     >>> torch.adaptive_avg_pool1d(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), 2)
///     tensor([[1.5000, 3.5000]])
#[operator(function, composite, sample = "pooled(name)")]
pub fn adaptive_avg_pool1d(input: &Tensor, output_size: Ints) -> Result<Tensor> {
    check_rank("adaptive_avg_pool1d", input)?;
    let size = single("adaptive_avg_pool1d", "output_size", &output_size)?;
    as_line(&as_plane(input, |x| adaptive_avg_pool2d(x, smallvec![1, size]))?)
}

/// Take the maxima over `output_size` nearly equal parts of the last dimension, and their indices.
///
/// Args:
///     input: the input, `(N, C, L)` or `(C, L)`.
///     output_size: size of the output.
///
/// Examples:
///     >>> torch.adaptive_max_pool1d(torch.tensor([[1.0, 2.0, 3.0, 4.0]]), 2)
///     (tensor([[2., 4.]]), tensor([[1, 3]]))
#[operator(function, composite, sample = "pooled(name)")]
pub fn adaptive_max_pool1d(input: &Tensor, output_size: Ints) -> Result<[Tensor; 2]> {
    check_rank("adaptive_max_pool1d", input)?;
    let size = single("adaptive_max_pool1d", "output_size", &output_size)?;
    let shape = input.shape();
    check_filled("adaptive_max_pool1d", "input", &shape, 1)?;
    let [values, indices] = as_plane(input, |x| adaptive_max_pool2d(x, smallvec![1, size]))?;
    Ok([as_line(&values)?, as_line(&indices)?])
}
