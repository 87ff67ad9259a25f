//! Rules of what complex numbers are made of and taken apart by.

use super::Batch;
use super::rules::{Rules, rules};
use crate::base::{Result, broadcast};
use crate::ops::view::{expand, ints};
use crate::ops::{arithmetic as a, complex as c, reduce};
use crate::tensor::Tensor;

/// Parts that broadcast against each other, made one.
fn made_of(
    b: &Batch,
    x: &Tensor,
    y: &Tensor,
    join: fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let shape = ints(&broadcast(&x.shape(), &y.shape())?);
    let part = |t: &Tensor| b.full(&expand(t, shape.clone())?);
    Ok(b.wrap(join(&part(x)?, &part(y)?)?))
}

pub const PHYSICAL: Rules = rules! { physical b;
    complex::view_as_real(x) => c::view_as_real(x);
    complex::view_as_complex(x) => c::view_as_complex(x);
    complex::conjugate(x) => c::conjugate(x);
    complex::neg_view(x) => c::neg_view(x);
    complex::conjugate_product(x, y) => reduce::Sum1::call(&a::mul(&c::conj_(x.clone())?, y)?, smallvec::smallvec![-1], false);
};

pub const SEEN: Rules = rules! { seen b;
    complex::complex(x, y) => made_of(b, x, y, c::complex);
    complex::polar(x, y) => made_of(b, x, y, c::polar);
};
