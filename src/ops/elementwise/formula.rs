//! The functions that formulas of derivatives use, over [`V`]. Each pointwise row defines its own; this module adds those that
//! are composed of several, or that depend on the dtype of their operands.

use crate::base::Scalar;
use crate::operator::V;
use crate::operator::primitives::constant::scalar_tensor;
use crate::operator::primitives::copies;
use crate::ops::elementwise::{arithmetic as a, unary as u};

pub use crate::ops::elementwise::arithmetic::words::*;
pub use crate::ops::elementwise::unary::words::*;

/// The functions of formulas that compute layouts only.
pub mod layouts {
    use crate::operator::pointwise::layout_formula::{LayoutFormula, combined};
    pub use crate::ops::elementwise::arithmetic::layouts::*;
    pub use crate::ops::elementwise::unary::layouts::*;

    macro_rules! combined {
        ($($name:ident ( $($x:ident),+ );)*) => { $(
            pub fn $name($($x: impl Into<LayoutFormula>),+) -> LayoutFormula {
                combined(&[$($x.into()),+])
            }
        )* };
    }
    combined! {
        multiply_add(a, b, c);
        constant_zero(x);
        zeroth_power(x);
        acosh_slope(x);
        angle_gradient(g, x);
        sgn_gradient(g, x, y);
        log_of_base(x, y);
    }
}

/// `yes` where `condition` is true, else `no`.
pub fn select(no: impl Into<V>, yes: impl Into<V>, condition: impl Into<V>) -> V {
    V::apply(&a::choose::ROW, &[yes.into(), no.into(), condition.into()])
}

/// `a * b + c`; rounded only once if the operands are numbers.
pub fn multiply_add(a: impl Into<V>, b: impl Into<V>, c: impl Into<V>) -> V {
    V::apply(&a::addcmul::ROW, &[c.into(), a.into(), b.into(), V::Scalar(Scalar::Int(1))])
}

/// Zeros that have no edge to `x` in the graph.
pub fn constant_zero(x: impl Into<V>) -> V {
    let x = x.into();
    select(0.0, 0.0, eq(&x, &x))
}

/// A power. If the exponent is the number 0, the derivative is zero.
pub fn pow(x: impl Into<V>, y: impl Into<V>) -> V {
    let y = y.into();
    let row = match &y {
        V::Scalar(number) if !number.as_bool() => &a::pow_zero::ROW,
        V::Tensor(_) => &a::pow_tensor::ROW,
        _ => &a::pow::ROW,
    };
    V::apply(row, &[x.into(), y])
}

/// Ones that have an edge to `x` in the graph.
pub fn zeroth_power(x: impl Into<V>) -> V {
    pow(x, 0.0)
}

pub fn conj(x: impl Into<V>) -> V {
    x.into().conj()
}

pub fn real_part(x: impl Into<V>) -> V {
    x.into().re()
}

/// The sign; for complex values a number of magnitude 1.
pub fn sign(x: impl Into<V>) -> V {
    let x = x.into();
    if x.is_complex() { V::apply(&u::sgn::ROW, &[x]) } else { V::apply(&u::sign::ROW, &[x]) }
}

/// The derivative of acosh. For complex values it has two roots, to stay on the right branches.
pub fn acosh_slope(x: impl Into<V>) -> V {
    let x = x.into();
    if x.is_complex() { rsqrt(&x - 1.0) * rsqrt(x + 1.0) } else { rsqrt(&x * &x - 1.0) }
}

/// The gradient of `angle`, whose derivative is i z / |z|²; 0 for real values.
pub fn angle_gradient(g: impl Into<V>, x: impl Into<V>) -> V {
    let x = x.into();
    if !x.is_complex() {
        return constant_zero(x);
    }
    let slope = &x * V::Scalar(Scalar::Complex(0.0, 1.0)) / (&x * conj(&x)).re();
    select(g.into() * slope, 0.0, eq(x, 0.0))
}

/// The gradient of `y = sgn(x)`: the component orthogonal to `y`. It is 0 for real values.
pub fn sgn_gradient(g: impl Into<V>, x: impl Into<V>, y: impl Into<V>) -> V {
    let (g, x, y) = (g.into(), x.into(), y.into());
    if !x.is_complex() {
        return constant_zero(x);
    }
    let turning = &g - real_part(&g * conj(&y)) * &y;
    select(turning / real_part(abs(&x)), 0.0, eq(x, 0.0))
}

/// The logarithm of the base of the power `y`. If `y` is complex, so is the logarithm, because a real base may be negative.
pub fn log_of_base(x: impl Into<V>, y: impl Into<V>) -> V {
    let (x, y) = (x.into(), y.into());
    match (x, y) {
        (V::Scalar(x), V::Tensor(y)) if y.dtype().is_complex() => log(scalar_tensor(x, Some(y.dtype()))),
        (x, V::Tensor(y)) if y.dtype().is_complex() => log(x.cast(y.dtype())),
        (x, _) => log(x),
    }
}

pub fn xlogy(x: impl Into<V>, y: impl Into<V>) -> V {
    V::apply(&a::xlogy::ROW, &[x.into(), y.into()])
}

/// `polygamma`, with the order first, as in the kernels.
pub fn polygamma(n: impl Into<V>, x: impl Into<V>) -> V {
    V::apply(&u::polygamma::ROW, &[x.into(), n.into()])
}

/// Compares the real parts, for complex exponents.
pub fn ge(x: impl Into<V>, y: impl Into<V>) -> V {
    V::apply(&a::ge::ROW, &[x.into().re(), y.into().re()])
}

/// Conditions need no conversion, because [`select`] takes any tensor.
pub fn truth(x: impl Into<V>) -> V {
    x.into()
}

/// Makes a gradient contiguous.
pub fn in_order(grad: V) -> V {
    grad.then(
        |t| {
            if t.is_special() || t.body().layout.is_contiguous() { Ok(t) } else { copies::clone_dense(&t) }
        },
    )
}
