//! Copies with another tensor in the place of one of their views: `select_scatter`, `slice_scatter`, `diagonal_scatter`.

use super::kernel::carry;
use super::macros::{compose, ops};
use super::place::{erase, put_part};
use super::view::{diagonal, select, slice};
use super::{batch, create};
use crate::base::views::may_overlap;
use crate::base::{Error, Layout, Result};
use crate::tensor::{Body, Part, Tensor};

/// A copy of `input` that lies as it does, with `src` where a view of it would lie.
fn patched(input: &Tensor, src: &Tensor, view: impl FnOnce(&Layout) -> Result<Layout>) -> Result<Body> {
    let (own, src) = (input.body(), src.body());
    let apart = !may_overlap(&own.layout);
    let layout = if apart { own.layout.clone() } else { Layout::contiguous(own.shape()) };
    let part = Part { lies: view(&layout)?, dtype: own.dtype, whole: layout };
    let whole = part.laid(&own)?;
    carry(&part.of(&whole), &src)?;
    Ok(whole)
}

/// `grad` without its part in the view that was put over.
fn outside(grad: &Tensor, view: impl FnOnce(&Layout) -> Result<Layout>) -> Result<Tensor> {
    erase(grad, Part::in_dense(grad, view(&Layout::contiguous(&grad.shape()))?))
}

ops! { "index";
    /// A copy of `input` with `src` as one slice across `dim`.
    [hidden, linear] fn select_patched(input, src; dim: i64, index: i64) -> y {
        patched(input, src, |whole| whole.select(dim, index))
    }
    input: |g, dim, index| g.then(|t| outside(&t, |whole| whole.select(dim, index)));
    src: |g, dim, index| g.then(|t| select(&t, dim, index));
    /// A copy of `input` with `src` as every `step`-th slice from `start` to `end`.
    [hidden, linear] fn slice_patched(input, src; dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> y {
        patched(input, src, |whole| whole.slice(dim, start, end, step))
    }
    input: |g, dim, start, end, step| g.then(|t| outside(&t, |whole| whole.slice(dim, start, end, step)));
    src: |g, dim, start, end, step| g.then(|t| slice(&t, dim, start, end, step));
    /// A copy of `input` with `src` as a diagonal.
    [hidden, linear] fn diagonal_patched(input, src; offset: i64, dim1: i64, dim2: i64) -> y {
        patched(input, src, |whole| whole.diagonal(offset, dim1, dim2))
    }
    input: |g, offset, dim1, dim2| g.then(|t| outside(&t, |whole| whole.diagonal(offset, dim1, dim2)));
    src: |g, offset, dim1, dim2| g.then(|t| diagonal(&t, offset, dim1, dim2));
}

/// `input` outside `place`, `src` inside; recorded by `row`, in whose stead samples have their own way.
fn replaced(
    input: &Tensor,
    src: &Tensor,
    place: Layout,
    row: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    if src.shape() != place.shape {
        return Err(Error::runtime(format!(
            "expected src to have a size equal to the slice of self. src size = {:?}, slice size = {:?}",
            src.shape().as_slice(),
            place.shape.as_slice()
        )));
    }
    let src = create::to_dtype(src, input.dtype())?;
    if batch::any(&[input, &src]) { put_part(input, &src, Part::in_dense(input, place)) } else { row(&src) }
}

mod more {
    use super::*;

    compose! { "index";
        /// A copy of `input` with `src` as one slice across `dim`.
        fn select_scatter(input: Tensor, src: Tensor, dim: i64, index: i64) -> Tensor {
            let place = Layout::contiguous(&input.shape()).select(dim, index)?;
            replaced(&input, &src, place, |src| select_patched(&input, src, dim, index))
        }
        /// A copy of `input` with `src` as every `step`-th slice from `start` to `end`.
        [out] fn slice_scatter(input: Tensor, src: Tensor, dim: i64 = 0, start: Option<i64> = None, end: Option<i64> = None, step: i64 = 1) -> Tensor {
            let place = Layout::contiguous(&input.shape()).slice(dim, start, end, step)?;
            replaced(&input, &src, place, |src| slice_patched(&input, src, dim, start, end, step))
        }
        /// A copy of `input` with `src` as a diagonal.
        fn diagonal_scatter(input: Tensor, src: Tensor, offset: i64 = 0, dim1: i64 = 0, dim2: i64 = 1) -> Tensor {
            let place = Layout::contiguous(&input.shape()).diagonal(offset, dim1, dim2)?;
            replaced(&input, &src, place, |src| diagonal_patched(&input, src, offset, dim1, dim2))
        }
    }
}
pub use more::COMPOSED;
