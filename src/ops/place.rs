//! Parts of dense tensors, told by the layout of the part: what derivatives of views are made of.

use super::kernel::{copy, duplicate, fill, filled};
use super::macros::ops;
use crate::base::views::may_overlap;
use crate::base::{Dims, Layout, Result, Scalar};
use crate::tensor::Tensor;

ops! { "view";
    /// Zeros of `shape` with `input` at `place`; where places coincide, the sum.
    [hidden, linear] fn embed(input; shape: Dims, place: Layout) -> y {
        let body = input.body();
        let out = filled(&shape, Scalar::Int(0), body.dtype, body.device())?;
        let part = out.with_layout(place.clone());
        if may_overlap(&place) {
            super::index::add_at(&out, &place, &body)?;
        } else {
            copy(&part, &body)?;
        }
        Ok(out)
    }
    input: |g, place| g.then(|t| shown_part(&t, place));
    /// What lies at `place` in a dense copy of `input`.
    [hidden, linear] fn read_part(input; place: Layout) -> y {
        let dense = duplicate(&input.body())?;
        duplicate(&dense.with_layout(place.clone()))
    }
    input: |g, at, place| g.then(|t| embed(&t, at.shape, place));
    /// What lies at `place` in `input`, which is dense (a view).
    [hidden, linear] fn view_part(input; place: Layout) -> y {
        Ok(Layout { offset: input.body().layout.offset + place.offset, ..place.clone() })
    }
    input: |g, at, place| g.then(|t| embed(&t, at.shape, place));
    /// A dense copy of `input` with zeros at `place`.
    [hidden, linear] fn erase(input; place: Layout) -> y {
        let out = duplicate(&input.body())?;
        fill(&out.with_layout(place.clone()), Scalar::Int(0))?;
        Ok(out)
    }
    input: |g, place| g.then(|t| erase(&t, place));
    /// A dense copy of `input` with `value` at `place`.
    [hidden, linear] fn put_part(input, value; place: Layout) -> y {
        let out = duplicate(&input.body())?;
        copy(&out.with_layout(place.clone()), &value.body())?;
        Ok(out)
    }
    input: |g, place| g.then(|t| erase(&t, place));
    value: |g, place| g.then(|t| read_part(&t, place));
}

/// What lies at `place` in a dense tensor of the same values: a view where it can be.
fn shown_part(t: &Tensor, place: Layout) -> Result<Tensor> {
    let viewable = !t.is_batched() && t.body().layout.is_contiguous();
    if viewable { view_part(t, place) } else { read_part(t, place) }
}
