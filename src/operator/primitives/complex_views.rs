//! Views of complex tensors as pairs of real numbers and back, lazy conjugation and negation, and their
//! derivatives.

use crate::base::{ConjNeg, DType, Error, Layout, Result};
use crate::operator::bodies::preserved;
use crate::operator::primitives::copies::{clone_dense, clone_preserved};
use crate::operator::primitives::view_part::Select;
use crate::operator::primitives::views::reshape;
use crate::tensor::{Body, Tensor, mode};
use gradiron_macros::primitive;

/// The layout of the complex numbers whose parts lie in adjacent pairs.
fn over_pairs(parts: &Body) -> Result<Layout> {
    if parts.dtype.is_complex() {
        return Err(Error::type_error("view_as_complex is not supported for complex tensors"));
    }
    if !matches!(parts.dtype, DType::F16 | DType::F32 | DType::F64) {
        return Err(Error::not_implemented(format!(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: {}",
            parts.dtype.scalar_name()
        )));
    }
    let mut layout = parts.layout.clone();
    let (Some(size), Some(step)) = (layout.shape.pop(), layout.strides.pop()) else {
        return Err(Error::runtime("Input tensor must have one or more dimensions"));
    };
    if size != 2 {
        return Err(Error::runtime("Tensor must have a last dimension of size 2"));
    }
    if step != 1 {
        return Err(Error::runtime("Tensor must have a last dimension with stride 1"));
    }
    if layout.strides.iter().zip(&layout.shape).any(|(s, &n)| s % 2 != 0 && n != 1) {
        return Err(Error::runtime("Tensor must have a stride divisible by 2 for all but last dimension"));
    }
    if !layout.offset.is_multiple_of(2) {
        return Err(Error::runtime("Tensor must have a storage_offset divisible by 2"));
    }
    layout.strides.iter_mut().for_each(|s| *s /= 2);
    layout.offset /= 2;
    Ok(layout)
}

#[primitive(copy, tangent = linear, batch = pointwise)]
impl ViewAsReal {
    fn forward(input: &Tensor) -> Result<(Layout, DType)> {
        let body = input.body();
        if !body.dtype.is_complex() {
            return Err(Error::type_error("view_as_real is only supported for complex tensors"));
        }
        if body.conj_neg.has(ConjNeg::CONJ) {
            return Err(Error::runtime(
                "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can view \
                 it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the original.",
            ));
        }
        Ok((body.layout.as_parts(), body.dtype.to_real()))
    }
    fn d_input(g: &Tensor) -> Result<Tensor> {
        ViewAsComplex::call(&dense(g)?)
    }
}

#[primitive(tangent = linear, batch = pointwise)]
impl ViewAsComplex {
    fn forward(input: &Tensor) -> Result<(Layout, DType)> {
        let body = input.body();
        Ok((over_pairs(&body)?, body.dtype.of_parts()))
    }
    fn d_input(g: &Tensor) -> Result<Tensor> {
        ViewAsReal::call(&without_conj(g)?)
    }
}

/// The lazy conjugate (a view).
#[primitive(tangent = linear, batch = pointwise)]
impl Conj {
    fn forward(input: &Tensor) -> Result<ConjNeg> {
        let _ = input;
        Ok(ConjNeg::CONJ)
    }
    fn d_input(g: Tensor) -> Result<Tensor> {
        conjugate_gradient(g)
    }
}

/// The lazy negative (a view).
#[primitive(copy, tangent = linear, batch = pointwise)]
impl NegView {
    fn forward(input: &Tensor) -> Result<ConjNeg> {
        let _ = input;
        Ok(ConjNeg::NEG)
    }
    fn d_input(g: &Tensor) -> Result<Tensor> {
        Negated::call(g)
    }
}

/// The conjugate, computed.
#[primitive(node = "ConjPhysicalBackward0", tangent = linear, batch = pointwise)]
impl Conjugated {
    fn forward(input: &Tensor) -> Result<Body> {
        computed(&input.body(), ConjNeg::CONJ)
    }
    fn d_input(g: &Tensor) -> Result<Tensor> {
        conjugated(g)
    }
}

/// The negative, computed.
#[primitive(node = "NegBackward0", tangent = linear, batch = pointwise)]
impl Negated {
    fn forward(input: &Tensor) -> Result<Body> {
        computed(&input.body(), ConjNeg::NEG)
    }
    fn d_input(g: &Tensor) -> Result<Tensor> {
        Negated::call(g)
    }
}

fn computed(body: &Body, conj_neg: ConjNeg) -> Result<Body> {
    preserved(&Body { conj_neg: body.conj_neg.then(conj_neg), ..body.clone() })
}

/// The conjugate, computed; a real tensor is returned as it is.
fn conjugated(t: &Tensor) -> Result<Tensor> {
    if t.dtype().is_complex() { Conjugated::call(t) } else { Ok(t.clone()) }
}

/// Applies the conj and neg bits to the tensor, which is its own inverse.
pub fn with_conj_neg(t: Tensor, conj_neg: ConjNeg) -> Result<Tensor> {
    let t = if conj_neg.has(ConjNeg::CONJ) { conjugated(&t)? } else { t };
    if conj_neg.has(ConjNeg::NEG) { Negated::call(&t) } else { Ok(t) }
}

/// The lazy conjugate (a view); a real tensor is returned as it is.
pub fn conj(t: &Tensor) -> Result<Tensor> {
    if t.dtype().is_complex() { Conj::call(t) } else { Ok(t.clone()) }
}

fn without_conj(t: &Tensor) -> Result<Tensor> {
    if t.body().conj_neg.has(ConjNeg::CONJ) { clone_preserved(t) } else { Ok(t.clone()) }
}

fn dense(t: &Tensor) -> Result<Tensor> {
    let body = t.body();
    let paired = body.layout.strides.last() == Some(&1);
    let ready = paired && body.layout.is_contiguous() && !body.conj_neg.has(ConjNeg::CONJ);
    if ready { Ok(t.clone()) } else { clone_dense(t) }
}

/// If the gradient is not differentiated again, it is not made a view, so that a leaf can take it over
/// without a copy.
fn conjugate_gradient(g: Tensor) -> Result<Tensor> {
    if !g.dtype().is_complex() {
        return Ok(g);
    }
    if g.is_dual() || g.is_batched() || mode::grad_enabled() {
        return Conj::call(&g);
    }
    let body = g.body();
    Ok(Tensor::new(Body { conj_neg: body.conj_neg.then(ConjNeg::CONJ), ..body.clone() }))
}

/// Reinterprets a tensor as real or complex, for a view of a base with the other kind of elements: parts of
/// complex numbers, or complex numbers made of all parts in a row.
pub fn seen_as(t: &Tensor, dtype: DType) -> Result<Tensor> {
    match (t.dtype() == dtype, dtype.is_complex()) {
        (true, _) => Ok(t.clone()),
        (false, false) => ViewAsReal::call(&dense(t)?),
        (false, true) => {
            let flat = reshape(&dense(t)?, &[t.numel() / 2, 2])?;
            ViewAsComplex::call(&flat)
        }
    }
}

/// The real (0) or imaginary (1) part. For a lazy conjugate it is a view of the base's part, and the
/// imaginary part is negated lazily.
pub fn part(t: &Tensor, which: i64) -> Result<Tensor> {
    if !t.body().conj_neg.has(ConjNeg::CONJ) {
        return Select::call(&ViewAsReal::call(t)?, t.ndim() as i64, which);
    }
    let parts = ViewAsReal::call(&Conj::call(t)?)?;
    let parts = if which == 1 { NegView::call(&parts)? } else { parts };
    Select::call(&parts, t.ndim() as i64, which)
}

/// The real part (a view); a real tensor is returned as it is.
pub fn real(t: &Tensor) -> Result<Tensor> {
    if t.dtype().is_complex() { part(t, 0) } else { Ok(t.clone()) }
}
