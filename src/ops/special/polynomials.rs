//! Orthogonal polynomials; the degree is an operand. They have no shaders.

use crate::cpu::math::polynomial::{Family, MOST, polynomial};
use crate::ops::prelude::*;
use crate::ops::special::{map_pairs, together};

#[primitive(tangent = fn)]
impl SpecialPolynomial {
    fn forward(input: &Tensor, #[constant] order: &Tensor, name: String, derivative: i64) -> Result<Body> {
        let family =
            Family::named(&name).ok_or_else(|| Error::runtime(format!("unknown polynomial: {name}")))?;
        let derivative = usize::try_from(derivative).ok().filter(|&d| d <= MOST).ok_or_else(|| {
            Error::not_implemented(format!(
                "special_{name}: derivatives of an order above {MOST} are not supported"
            ))
        })?;
        map_pairs("polynomial_cpu", input, order, move |x, n| polynomial(family, derivative, x, n))
    }
    fn d_input(g: V, input: &Tensor, order: &Tensor, name: String, derivative: i64) -> Result<V> {
        Ok(g * V::from(SpecialPolynomial::call(input, order, name, derivative + 1)?))
    }
    fn tangent(
        t_input: Tensor,
        input: &Tensor,
        order: &Tensor,
        name: String,
        derivative: i64,
    ) -> Result<Tensor> {
        let slope = SpecialPolynomial::call(input, order, name, derivative + 1)?;
        (V::from(t_input) * V::from(slope)).tensor()
    }
    fn batch(b: &Batch, input: &Tensor, order: &Tensor, name: String, derivative: i64) -> Result<Tensor> {
        let [x, n] = together(b, input, order)?;
        SpecialPolynomial::call(&x, &n, name, derivative).map(|t| b.wrap(t))
    }
}

/// Compute polynomials of a family, given by its name, of the orders `order`.
#[operator(
    function,
    space = "special",
    sample = "on_host(shaped(lambda draw, shape: lambda x: T.special.legendre_polynomial_p(x, 3)))"
)]
pub fn special_polynomial(input: &Tensor, order: &Tensor, name: String) -> Result<Tensor> {
    SpecialPolynomial::call(input, order, name, 0)
}
