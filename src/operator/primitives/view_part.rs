//! Parts of tensors, given by a layout; the derivatives of views are built on them.

use crate::base::views::may_overlap;
use crate::base::{DType, Dims, Error, Layout, Result, Scalar};
use crate::operator::batch::Batch;
use crate::operator::bodies::index::add_at;
use crate::operator::bodies::overlap::refuse_expanded;
use crate::operator::bodies::{carry, copy, fill, filled, preserved};
use crate::operator::primitives::constant;
use crate::tensor::{Body, Meta, Part, Tensor};
use gradiron_macros::primitive;

/// Returns an error if a part exceeds a whole of this dtype, or if elements of the whole share memory.
pub fn check_part(part: &Part, dtype: DType) -> Result<()> {
    if part.layout.offset > isize::MAX as usize {
        return Err(Error::runtime(format!(
            "Tensor: invalid storage offset {}",
            part.layout.offset as isize
        )));
    }
    if part.whole.is_expanded() {
        return Err(refuse_expanded());
    }
    if part.layout.numel() == 0 {
        return Ok(());
    }
    crate::operator::bodies::within(&part.layout, part.dtype.size(), part.whole.end() * dtype.size())
}

/// A copy of a body, with the layout of the whole.
pub fn copy_of_whole(part: &Part, body: &Body) -> Result<Body> {
    let out = Body::new(&[part.whole.end()], body.dtype, body.device())?.with_layout(part.whole.clone());
    copy(&out, body)?;
    Ok(out)
}

/// Zeros of `shape` with `input` at `place`. If elements of `place` coincide, values are added.
#[primitive(tangent = linear)]
impl Embed {
    fn forward(input: &Tensor, shape: Dims, place: Layout) -> Result<Body> {
        let body = input.body();
        let out = filled(&shape, Scalar::Int(0), body.dtype, body.device())?;
        if may_overlap(&place) {
            add_at(&out, &place, &body)?;
        } else {
            copy(&out.with_layout(place), &body)?;
        }
        Ok(out)
    }
    fn d_input(g: &Tensor, place: Layout) -> Result<Tensor> {
        shown_part(g, place)
    }
    fn batch(b: &Batch, input: &Tensor, shape: Dims, place: Layout) -> Result<Tensor> {
        let numel = shape.iter().product();
        embed(&b.full(input)?, b.shape(&shape), b.place(&place, numel)).map(|t| b.wrap(t))
    }
}

/// The elements of `input` at `place`.
#[primitive(tangent = linear)]
impl ReadPart {
    fn forward(input: &Tensor, place: Part) -> Result<Body> {
        let body = input.body();
        if body.layout == place.whole && body.conj_neg.is_none() {
            return preserved(&place.of(&body));
        }
        preserved(&place.of(&copy_of_whole(&place, &body)?))
    }
    fn d_input(g: &Tensor, at: Meta, place: Part) -> Result<Tensor> {
        match may_overlap(&place.layout) {
            true => embed(g, at.shape, place.layout),
            false => put_part(&constant::zeros(&at.shape, at.dtype, at.device)?, g, place),
        }
    }
    fn batch(b: &Batch, input: &Tensor, place: Part) -> Result<Tensor> {
        read_part(&b.full(input)?, b.placed(&place, input.dtype())).map(|t| b.wrap(t))
    }
}

/// A view of the elements of a contiguous `input` at `place`.
#[primitive(tangent = linear, batch = none)]
impl ViewPart {
    fn forward(input: &Tensor, place: Layout) -> Result<Layout> {
        Ok(Layout { offset: input.body().layout.offset + place.offset, ..place })
    }
    fn d_input(g: &Tensor, at: Meta, place: Layout) -> Result<Tensor> {
        embed(g, at.shape, place)
    }
}

/// A copy of `input` with the layout of the whole and zeros at `place`.
#[primitive(tangent = linear)]
impl Erase {
    fn forward(input: &Tensor, place: Part) -> Result<Body> {
        let out = copy_of_whole(&place, &input.body())?;
        fill(&place.of(&out), Scalar::Int(0))?;
        Ok(out)
    }
    fn d_input(g: &Tensor, place: Part) -> Result<Tensor> {
        erase(g, place)
    }
    fn batch(b: &Batch, input: &Tensor, place: Part) -> Result<Tensor> {
        erase(&b.full(input)?, b.placed(&place, input.dtype())).map(|t| b.wrap(t))
    }
}

/// A copy of `input` with the layout of the whole and `value` at `place`.
#[primitive(tangent = linear)]
impl PutPart {
    fn forward(input: &Tensor, value: &Tensor, place: Part) -> Result<Body> {
        let out = copy_of_whole(&place, &input.body())?;
        carry(&place.of(&out), &value.body())?;
        Ok(out)
    }
    fn d_input(g: &Tensor, place: Part) -> Result<Tensor> {
        erase(g, place)
    }
    fn d_value(g: &Tensor, place: Part) -> Result<Tensor> {
        read_part(g, place)
    }
    fn batch(b: &Batch, input: &Tensor, value: &Tensor, place: Part) -> Result<Tensor> {
        put_part(&b.full(input)?, &b.full(value)?, b.placed(&place, input.dtype())).map(|t| b.wrap(t))
    }
}

/// One slice across a dimension.
#[primitive(copy, tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl Select {
    fn forward(input: &Tensor, dim: i64, index: i64) -> Result<Layout> {
        input.body().layout.select(dim, index)
    }
    fn d_input(g: &Tensor, at: Meta, dim: i64, index: i64) -> Result<Tensor> {
        put_back(g, at, |l| l.select(dim, index))
    }
    fn batch(b: &Batch, input: &Tensor, dim: i64, index: i64) -> Result<Tensor> {
        let x = b.full(input)?;
        Select::call(&x, b.dim(dim, b.rank(&x))?, index).map(|t| b.wrap(t))
    }
}

/// The gradient of a contiguous tensor from that of its part `view`.
pub fn put_back(g: &Tensor, at: Meta, view: impl FnOnce(&Layout) -> Result<Layout>) -> Result<Tensor> {
    let place = view(&Layout::contiguous(&at.shape))?;
    embed(g, at.shape, place)
}

pub fn embed(input: &Tensor, shape: Dims, place: Layout) -> Result<Tensor> {
    Embed::call(input, shape, place)
}

pub fn read_part(input: &Tensor, place: Part) -> Result<Tensor> {
    ReadPart::call(input, place)
}

pub fn erase(input: &Tensor, place: Part) -> Result<Tensor> {
    Erase::call(input, place)
}

pub fn put_part(input: &Tensor, value: &Tensor, place: Part) -> Result<Tensor> {
    PutPart::call(input, value, place)
}

/// The elements of `t`, taken as contiguous, at `place`: a view if possible.
fn shown_part(t: &Tensor, place: Layout) -> Result<Tensor> {
    let viewable = !t.is_batched() && t.body().layout.is_contiguous();
    if viewable { ViewPart::call(t, place) } else { read_part(t, Part::in_dense(&t.body(), place)) }
}
