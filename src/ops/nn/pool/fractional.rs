//! Fractional pooling: windows begin at random places.

use super::{check_sizes, fail, gather_planes, max_pool_gradient, replace_sizes, three, zeros};
use crate::base::numel;
use crate::operator::primitives::{constant, views};
use crate::ops::indexing::index;
use crate::ops::prelude::*;
use crate::ops::shape::slices;
use crate::tensor::mode;
use smallvec::smallvec;

/// `0, 1, …` along one of `dims` dimensions.
fn count_along(n: usize, dim: usize, dims: usize, device: Device) -> Result<V> {
    let mut shape: Dims = smallvec![1; dims];
    shape[dim] = n;
    let numbers = crate::ops::creation::ranges::range(Scalar::Int(0), Scalar::Int(1), n, DType::I64, device)?;
    Ok(V::from(Tensor::new(crate::operator::bodies::with_shape(numbers, &shape))))
}

/// The largest elements of windows at random, evenly spread places, and their indices.
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
    // The dimensions are planes, windows, and the elements of a window.
    let ndim = 1 + 2 * dims;
    let samples = views::reshape(samples, &[planes, dims])?;
    let mut places = V::from(constant::zeros(&vec![1; ndim], DType::I64, device)?);
    for d in 0..dims {
        let (size, many) = (shape[lead + d], output[d] as usize);
        let last = size as i64 - kernel[d];
        // The random samples of a plane have the last dimension first.
        let column = if dims == 2 { 1 - d } else { d } as i64;
        let number = V::from(slices::slice(&samples, 1, Some(column), Some(column + 1), 1)?);
        let alpha = if many < 2 { 0.0 } else { last as f64 / (many as f64 - 1.0) };
        let place = |i: V| ((i.cast(dtype) + &number) * alpha).cast(DType::I64);
        let steps = count_along(many, 1, 2, device)?;
        let start = place(steps.clone()) - place(count_along(1, 1, 2, device)?);
        let at_end = crate::ops::elementwise::arithmetic::eq(&steps.tensor()?, many as f64 - 1.0)?;
        let start = select(start, Scalar::Int(last), at_end);
        let mut line: Dims = smallvec![1; ndim];
        (line[0], line[1 + d]) = (planes, many);
        let taps = count_along(kernel[d] as usize, 1 + dims + d, ndim, device)?;
        places = places * V::from(Scalar::Int(size as i64)) + start.reshape(&line) + taps;
    }
    let whole = places.shape();
    let (many, taps) = (numel(&whole[1..=dims]), numel(&whole[1 + dims..]));
    let places = places.reshape(&[planes, many * taps]).tensor()?;
    let plane = views::reshape(input, &[planes, numel(&shape[lead..])])?;
    let values = views::reshape(&index::Gather::call(&plane, -1, &places)?, &[planes, many, taps])?;
    let [values, at] = crate::ops::reduction::extrema::max_along(&values, -1, true)?;
    let indices = index::Gather::call(&views::reshape(&places, &[planes, many, taps])?, -1, &at)?;
    let result = replace_sizes(&shape, &three(output, 1), dims);
    Ok([views::reshape(&values, &result)?, views::reshape(&indices, &result)?])
}

/// Rejects windows that do not fit.
fn check_random(
    name: &str,
    input: &Tensor,
    kernel: &Ints,
    output: &Ints,
    samples: &Tensor,
    dims: usize,
) -> Result<()> {
    let (shape, given) = (input.shape(), samples.shape());
    let ints = if dims == 2 { "Ints" } else { "three Ints" };
    for (what, list) in [("kernel_size", kernel), ("output_size", output)] {
        if list.len() != dims {
            return fail(format!("{name}: {what} must either be a single Int or tuple of {ints}"));
        }
    }
    if kernel.iter().any(|&n| n <= 0) {
        let by = kernel.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
        return fail(format!("{name}(): kernel size should be greater than zero, but got {by}"));
    }
    let call = if dims == 2 { name.to_owned() } else { format!("{name}_out") };
    let batched = shape.len() == dims + 2;
    if !batched && shape.len() != dims + 1 {
        return fail(format!(
            "{call}(): Expected {}D or {}D tensor, but got: {:?}",
            dims + 1,
            dims + 2,
            shape.as_slice()
        ));
    }
    if let Some(d) = (1..shape.len()).find(|&d| shape[d] == 0) {
        return fail(format!(
            "{call}(): Expected input to have non-zero size for non-batch dimensions, but got{:?} with dimension {d} being empty.",
            shape.as_slice()
        ));
    }
    // The spatial dimensions need not fit exactly, and are checked in this order.
    let axes: &[(usize, &str)] =
        if dims == 2 { &[(0, "height"), (1, "width")] } else { &[(0, "time"), (2, "width"), (1, "height")] };
    let offset = dims as i64 - 2;
    for &(d, axis) in axes {
        let size = shape[shape.len() - dims + d] as i64;
        if output[d].saturating_add(kernel[d]).saturating_sub(1) > size - offset {
            return fail(format!(
                "{call}(): pool {axis} {} too large relative to input {axis} {size}",
                kernel[d]
            ));
        }
    }
    check_sizes(&shape, output)?;
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

macro_rules! pools {
    ($($dims:literal $name:ident $Random:ident $RandomBack:ident;)*) => { $(
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
                gather_planes(t_input, result1, $dims)
            }
            fn batch(
                b: &Batch,
                input: &Tensor,
                kernel_size: &Ints,
                output_size: &Ints,
                random_samples: &Tensor,
            ) -> Result<[Tensor; 2]> {
                // There are random numbers for each plane of the input, so both are batched in the same way.
                let (x, samples) = (b.full(input)?, b.full(random_samples)?);
                let [values, indices] = $Random::call(&x, kernel_size, output_size, &samples)?;
                Ok([b.wrap(values), b.wrap(indices)])
            }
        }

        #[primitive(tangent = fn)]
        impl $RandomBack {
            fn forward(grad_output: &Tensor, input: &Tensor, indices: &Tensor) -> Result<Body> {
                max_pool_gradient(&grad_output.body(), &indices.body(), &input.body(), None, $dims)
            }
            fn d_grad_output(g: Tensor, indices: Tensor) -> Result<Tensor> {
                gather_planes(&g, &indices, $dims)
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

        #[doc = concat!("Take the maxima of windows at random places of the last ", $dims, " dimensions, and their indices.")]
        #[operator(nn, autocast = single, sample = "pooled(name)")]
        pub fn $name(
            input: &Tensor,
            kernel_size: Ints,
            output_size: Ints,
            random_samples: &Tensor,
        ) -> Result<[Tensor; 2]> {
            check_random(stringify!($name), input, &kernel_size, &output_size, random_samples, $dims)?;
            let count = if input.ndim() == $dims + 2 { input.shape()[0] } else { 1 };
            let samples = slices::slice(random_samples, 0, Some(0), Some(count as i64), 1)?;
            $Random::call(input, &kernel_size, &output_size, &samples)
        }
    )* };
}
pools! {
    2 fractional_max_pool2d FractionalMaxPool2D FractionalMaxPool2DBackward;
    3 fractional_max_pool3d FractionalMaxPool3D FractionalMaxPool3DBackward;
}
