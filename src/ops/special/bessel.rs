//! Bessel functions of the first and second kind, and the Airy function. They have no shaders.

use crate::cpu::math::{airy, bessel};
use crate::ops::prelude::*;
use crate::ops::special::{floating, map};

#[primitive(node = "SpecialBesselJ0Backward0", batch = pointwise)]
impl SpecialBesselJ0 {
    fn forward(input: &Tensor) -> Result<Body> {
        map("bessel_j0_cpu", input, bessel::j0)
    }
    fn d_input(g: V, input: &Tensor) -> Result<V> {
        Ok(-g * V::from(SpecialBesselJ1::call(input)?))
    }
}

/// Compute the Bessel function of the first kind of order 0.
///
/// Examples:
///     >>> torch.special.bessel_j0(torch.tensor([0.0, 1.0, 5.0]))
///     tensor([ 1.0000,  0.7652, -0.1776])
#[operator(
    function,
    space = "special",
    out,
    elementwise,
    sample = "on_host(shaped(lambda draw, shape: lambda x: T.special.bessel_j0(x), domain=(0.5, 2.5)))"
)]
pub fn special_bessel_j0(input: &Tensor) -> Result<Tensor> {
    SpecialBesselJ0::call(&floating("bessel_j0_cpu", input)?)
}

#[primitive(node = "SpecialBesselJ1Backward0", batch = pointwise)]
impl SpecialBesselJ1 {
    fn forward(input: &Tensor) -> Result<Body> {
        map("bessel_j1_cpu", input, bessel::j1)
    }
    /// At 0 the quotient is 0/0; its limit gives the derivative one half.
    fn d_input(g: V, input: &Tensor) -> Result<V> {
        let (x, zeroth, first) =
            (V::from(input), V::from(SpecialBesselJ0::call(input)?), V::from(SpecialBesselJ1::call(input)?));
        let nought = eq(x.clone(), 0.0);
        let slope = zeroth - first / select(x, 1.0, nought.clone());
        Ok(g * select(slope, 0.5, nought))
    }
}

/// Compute the Bessel function of the first kind of order 1.
///
/// Examples:
///     >>> torch.special.bessel_j1(torch.tensor([0.5, 1.0, 5.0]))
///     tensor([ 0.2423,  0.4401, -0.3276])
#[operator(
    function,
    space = "special",
    out,
    elementwise,
    sample = "on_host(shaped(lambda draw, shape: lambda x: T.special.bessel_j1(x), domain=(0.5, 2.5)))"
)]
pub fn special_bessel_j1(input: &Tensor) -> Result<Tensor> {
    SpecialBesselJ1::call(&floating("bessel_j1_cpu", input)?)
}

#[primitive(node = "SpecialBesselY0Backward0", batch = pointwise)]
impl SpecialBesselY0 {
    fn forward(input: &Tensor) -> Result<Body> {
        map("bessel_y0_cpu", input, bessel::y0)
    }
    fn d_input(g: V, input: &Tensor) -> Result<V> {
        Ok(-g * V::from(SpecialBesselY1::call(input)?))
    }
}

/// Compute the Bessel function of the second kind of order 0.
///
/// Examples:
///     >>> torch.special.bessel_y0(torch.tensor([0.5, 1.0, 5.0]))
///     tensor([-0.4445,  0.0883, -0.3085])
#[operator(
    function,
    space = "special",
    out,
    elementwise,
    sample = "on_host(shaped(lambda draw, shape: lambda x: T.special.bessel_y0(x), domain=(0.5, 2.5)))"
)]
pub fn special_bessel_y0(input: &Tensor) -> Result<Tensor> {
    SpecialBesselY0::call(&floating("bessel_y0_cpu", input)?)
}

#[primitive(node = "SpecialBesselY1Backward0", batch = pointwise)]
impl SpecialBesselY1 {
    fn forward(input: &Tensor) -> Result<Body> {
        map("bessel_y1_cpu", input, bessel::y1)
    }
    fn d_input(g: V, input: &Tensor) -> Result<V> {
        let (zeroth, first) =
            (V::from(SpecialBesselY0::call(input)?), V::from(SpecialBesselY1::call(input)?));
        Ok(g * (zeroth - first / V::from(input)))
    }
}

/// Compute the Bessel function of the second kind of order 1.
///
/// Examples:
///     >>> torch.special.bessel_y1(torch.tensor([0.5, 1.0, 5.0]))
///     tensor([-1.4715, -0.7812,  0.1479])
#[operator(
    function,
    space = "special",
    out,
    elementwise,
    sample = "on_host(shaped(lambda draw, shape: lambda x: T.special.bessel_y1(x), domain=(0.5, 2.5)))"
)]
pub fn special_bessel_y1(input: &Tensor) -> Result<Tensor> {
    SpecialBesselY1::call(&floating("bessel_y1_cpu", input)?)
}

#[primitive(node = "SpecialModifiedBesselK0Backward0", batch = pointwise)]
impl SpecialModifiedBesselK0 {
    fn forward(input: &Tensor) -> Result<Body> {
        map("modified_bessel_k0_cpu", input, bessel::k0)
    }
    fn d_input(g: V, input: &Tensor) -> Result<V> {
        Ok(-g * V::from(SpecialModifiedBesselK1::call(input)?))
    }
}

/// Compute the modified Bessel function of the second kind of order 0.
///
/// Examples:
///     >>> torch.special.modified_bessel_k0(torch.tensor([0.5, 1.0]))
///     tensor([0.9244, 0.4210])
#[operator(
    function,
    space = "special",
    out,
    elementwise,
    sample = "on_host(shaped(lambda draw, shape: lambda x: T.special.modified_bessel_k0(x), domain=(0.5, 2.5)))"
)]
pub fn special_modified_bessel_k0(input: &Tensor) -> Result<Tensor> {
    SpecialModifiedBesselK0::call(&floating("modified_bessel_k0_cpu", input)?)
}

#[primitive(node = "SpecialModifiedBesselK1Backward0", batch = pointwise)]
impl SpecialModifiedBesselK1 {
    fn forward(input: &Tensor) -> Result<Body> {
        map("modified_bessel_k1_cpu", input, bessel::k1)
    }
    fn d_input(g: V, input: &Tensor) -> Result<V> {
        let (zeroth, first) =
            (V::from(SpecialModifiedBesselK0::call(input)?), V::from(SpecialModifiedBesselK1::call(input)?));
        Ok(-g * (zeroth + first / V::from(input)))
    }
}

/// Compute the modified Bessel function of the second kind of order 1.
///
/// Examples:
///     >>> torch.special.modified_bessel_k1(torch.tensor([0.5, 1.0]))
///     tensor([1.6564, 0.6019])
#[operator(
    function,
    space = "special",
    out,
    elementwise,
    sample = "on_host(shaped(lambda draw, shape: lambda x: T.special.modified_bessel_k1(x), domain=(0.5, 2.5)))"
)]
pub fn special_modified_bessel_k1(input: &Tensor) -> Result<Tensor> {
    SpecialModifiedBesselK1::call(&floating("modified_bessel_k1_cpu", input)?)
}

#[primitive(node = "SpecialScaledModifiedBesselK0Backward0", batch = pointwise)]
impl SpecialScaledModifiedBesselK0 {
    fn forward(input: &Tensor) -> Result<Body> {
        map("scaled_modified_bessel_k0_cpu", input, bessel::k0e)
    }
    fn d_input(g: V, input: &Tensor) -> Result<V> {
        let (zeroth, first) = (
            V::from(SpecialScaledModifiedBesselK0::call(input)?),
            V::from(SpecialScaledModifiedBesselK1::call(input)?),
        );
        Ok(g * (zeroth - first))
    }
}

/// Compute the modified Bessel function of the second kind of order 0, scaled by `exp(input)`.
///
/// Examples:
///     >>> torch.special.scaled_modified_bessel_k0(torch.tensor([0.5, 1.0]))
///     tensor([1.5241, 1.1445])
#[operator(
    function,
    space = "special",
    out,
    elementwise,
    sample = "on_host(shaped(lambda draw, shape: lambda x: T.special.scaled_modified_bessel_k0(x), domain=(0.5, 2.5)))"
)]
pub fn special_scaled_modified_bessel_k0(input: &Tensor) -> Result<Tensor> {
    SpecialScaledModifiedBesselK0::call(&floating("scaled_modified_bessel_k0_cpu", input)?)
}

#[primitive(node = "SpecialScaledModifiedBesselK1Backward0", batch = pointwise)]
impl SpecialScaledModifiedBesselK1 {
    fn forward(input: &Tensor) -> Result<Body> {
        map("scaled_modified_bessel_k1_cpu", input, bessel::k1e)
    }
    fn d_input(g: V, input: &Tensor) -> Result<V> {
        let (zeroth, first) = (
            V::from(SpecialScaledModifiedBesselK0::call(input)?),
            V::from(SpecialScaledModifiedBesselK1::call(input)?),
        );
        Ok(g * (first.clone() - zeroth - first / V::from(input)))
    }
}

/// Compute the modified Bessel function of the second kind of order 1, scaled by `exp(input)`.
///
/// Examples:
///     >>> torch.special.scaled_modified_bessel_k1(torch.tensor([0.5, 1.0]))
///     tensor([2.7310, 1.6362])
#[operator(
    function,
    space = "special",
    out,
    elementwise,
    sample = "on_host(shaped(lambda draw, shape: lambda x: T.special.scaled_modified_bessel_k1(x), domain=(0.5, 2.5)))"
)]
pub fn special_scaled_modified_bessel_k1(input: &Tensor) -> Result<Tensor> {
    SpecialScaledModifiedBesselK1::call(&floating("scaled_modified_bessel_k1_cpu", input)?)
}

#[primitive(batch = pointwise)]
impl SpecialAirySlope {
    fn forward(input: &Tensor) -> Result<Body> {
        map("airy_ai_cpu", input, |x| airy::airy(x).1)
    }
    /// The derivative of the Airy function's derivative, because y'' = x y.
    fn d_input(g: V, input: &Tensor) -> Result<V> {
        Ok(g * V::from(input) * V::from(SpecialAiryAi::call(input)?))
    }
}

#[primitive(node = "SpecialAiryAiBackward0", batch = pointwise)]
impl SpecialAiryAi {
    fn forward(input: &Tensor) -> Result<Body> {
        map("airy_ai_cpu", input, |x| airy::airy(x).0)
    }
    fn d_input(g: V, input: &Tensor) -> Result<V> {
        Ok(g * V::from(SpecialAirySlope::call(input)?))
    }
}

/// Compute the Airy function Ai.
///
/// Examples:
///     >>> torch.special.airy_ai(torch.tensor([0.0, 1.0]))
///     tensor([0.3550, 0.1353])
#[operator(
    function,
    space = "special",
    out,
    elementwise,
    sample = "on_host(shaped(lambda draw, shape: lambda x: T.special.airy_ai(x), domain=(-3.0, 3.0)))"
)]
pub fn special_airy_ai(input: &Tensor) -> Result<Tensor> {
    SpecialAiryAi::call(&floating("airy_ai_cpu", input)?)
}
