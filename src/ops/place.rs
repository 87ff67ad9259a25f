//! Parts of tensors, told by the layout of the part: what derivatives of views are made of.

use super::create;
use super::kernel::{carry, copy, fill, filled};
use super::macros::ops;
use super::pointwise_inplace::refuse_stretched;
use super::shape::preserved;
use crate::base::views::may_overlap;
use crate::base::{DType, Dims, Error, Layout, Result, Scalar};
use crate::tensor::{Body, Part, Tensor};

impl Part {
    /// Where `part` lies in what has the elements of `base` and lies as that does.
    pub fn between(base: &Body, part: &Body) -> Part {
        let (size, part_size) = (base.dtype.size(), part.dtype.size());
        // Complex numbers begin at even places.
        let odd = if part_size > size { base.layout.offset % 2 } else { 0 };
        let start = base.layout.offset - odd;
        let offset = part.layout.offset.wrapping_sub(start * size / part_size);
        Part {
            whole: Layout { offset: odd, ..base.layout.clone() },
            dtype: part.dtype,
            lies: Layout { offset, ..part.layout.clone() },
        }
    }

    /// A part of a dense tensor.
    pub fn in_dense(whole: &Tensor, lies: Layout) -> Part {
        Part { whole: Layout::contiguous(&whole.shape()), dtype: whole.dtype(), lies }
    }

    /// Refuses a part that reaches out of a whole of this type, or a whole whose elements have places in common.
    pub fn check(&self, dtype: DType) -> Result<()> {
        if self.lies.offset > isize::MAX as usize {
            return Err(Error::runtime(format!(
                "Tensor: invalid storage offset {}",
                self.lies.offset as isize
            )));
        }
        if self.whole.is_stretched() {
            return Err(refuse_stretched());
        }
        if self.lies.numel() == 0 {
            return Ok(());
        }
        super::scatter::within(&self.lies, self.dtype.size(), self.whole.end() * dtype.size())
    }

    /// A copy that lies as the whole does.
    pub fn laid(&self, body: &Body) -> Result<Body> {
        let out = Body::new(&[self.whole.end()], body.dtype, body.device())?.with_layout(self.whole.clone());
        copy(&out, body)?;
        Ok(out)
    }

    /// The part of what lies as the whole does.
    pub fn of(&self, whole: &Body) -> Body {
        Body { dtype: self.dtype, ..whole.with_layout(self.lies.clone()) }
    }
}

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
    /// What lies at `place` in `input`.
    [hidden, linear] fn read_part(input; place: Part) -> y {
        let body = input.body();
        if body.layout == place.whole && body.lazy.is_nothing() {
            return preserved(&place.of(&body));
        }
        preserved(&place.of(&place.laid(&body)?))
    }
    input: |g, at, place| g.then(|t| match may_overlap(&place.lies) {
        true => embed(&t, at.shape, place.lies),
        false => put_part(&create::zeros(&at.shape, at.dtype, at.device)?, &t, place),
    });
    /// What lies at `place` in `input`, which is dense (a view).
    [hidden, linear] fn view_part(input; place: Layout) -> y {
        Ok(Layout { offset: input.body().layout.offset + place.offset, ..place.clone() })
    }
    input: |g, at, place| g.then(|t| embed(&t, at.shape, place));
    /// A copy of `input` that lies as the whole does, with zeros at `place`.
    [hidden, linear] fn erase(input; place: Part) -> y {
        let out = place.laid(&input.body())?;
        fill(&place.of(&out), Scalar::Int(0))?;
        Ok(out)
    }
    input: |g, place| g.then(|t| erase(&t, place));
    /// A copy of `input` that lies as the whole does, with `value` at `place`.
    [hidden, linear] fn put_part(input, value; place: Part) -> y {
        let out = place.laid(&input.body())?;
        carry(&place.of(&out), &value.body())?;
        Ok(out)
    }
    input: |g, place| g.then(|t| erase(&t, place));
    value: |g, place| g.then(|t| read_part(&t, place));
}

/// What lies at `place` in a dense tensor of the same values: a view where it can be.
fn shown_part(t: &Tensor, place: Layout) -> Result<Tensor> {
    let viewable = !t.is_batched() && t.body().layout.is_contiguous();
    if viewable { view_part(t, place) } else { read_part(t, Part::in_dense(t, place)) }
}
