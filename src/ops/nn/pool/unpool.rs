//! Unpooling: puts values back at the indices that a maximum pool returned.

use super::{WORDS, at_places, fail, gather_planes, match_format, replace_sizes, scatter_planes, three};
use crate::base::Put;
use crate::cpu::pool::At;
use crate::operator::bodies::fill;
use crate::ops::prelude::*;

/// An image with the values at their indices, and zeros elsewhere.
fn unpool_planes(input: &Tensor, indices: &Tensor, sizes: &Ints) -> Result<Body> {
    let (x, places, dims) = (input.body(), indices.body(), sizes.len());
    let shape = replace_sizes(x.shape(), &three(sizes, 1), dims);
    let out = Body::new(&shape, x.dtype, x.device())?;
    fill(&out, Scalar::Int(0))?;
    if x.device().is_cpu() {
        at_places(At::Put, &out, &places, &x, dims)?;
        return match_format(out, &x, dims);
    }
    scatter_planes(&out, &places, &x, dims, Put::Assign)?;
    match_format(out, &x, dims)
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

macro_rules! unpools {
    ($($dims:literal $unpool:ident $Unpool:ident;)*) => { $(
        #[primitive(tangent = fn)]
        impl $Unpool {
            fn forward(input: &Tensor, indices: &Tensor, #[hidden] output_size: &Ints) -> Result<Body> {
                unpool_planes(input, indices, output_size)
            }
            fn d_input(g: Tensor, indices: Tensor) -> Result<Tensor> {
                gather_planes(&g, &indices, $dims)
            }
            fn tangent(t_input: &Tensor, indices: &Tensor, output_size: &Ints) -> Result<Tensor> {
                $Unpool::call(t_input, indices, output_size)
            }
            fn batch(b: &Batch, input: &Tensor, indices: &Tensor, output_size: &Ints) -> Result<Tensor> {
                Ok(b.wrap($Unpool::call(&b.full(input)?, &b.full(indices)?, output_size)?))
            }
        }

        #[doc = concat!("Put maxima back where pooling over ", $dims, " dimensions found them, and zeros elsewhere.")]
        #[operator(nn, out(declared), autocast = single, sample = "unpooled(name)")]
        pub fn $unpool(
            input: &Tensor,
            indices: &Tensor,
            output_size: Ints,
            stride: Option<Ints>,
            padding: Option<Ints>,
        ) -> Result<Tensor> {
            let _ = padding;
            check_unpool(input, indices, &output_size, $dims)?;
            if let Some(stride) = stride.filter(|stride| $dims == 3 && stride.iter().any(|&n| n <= 0)) {
                return Err(Error::runtime(format!(
                    "strides should be greater than zero, but got stride: {:?}",
                    stride.as_slice()
                )));
            }
            $Unpool::call(input, indices, &output_size)
        }
    )* };
}
unpools! {
    2 max_unpool2d MaxUnpool2D;
    3 max_unpool3d MaxUnpool3D;
}
