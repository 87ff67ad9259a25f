//! What operators make of complex numbers where shaders know real ones only: rows name these (`complex = exp`).

use crate::operator::pointwise::complex_formula::{Complex, Made};
use crate::ops::elementwise::complex_numbers::{length, number};
use crate::ops::elementwise::formula as f;

const LN_2: f64 = std::f64::consts::LN_2;
const LN_10: f64 = std::f64::consts::LN_10;

macro_rules! formulas {
    ($($name:ident($($x:ident),+) = $e:expr;)*) => { $(
        pub fn $name(operands: &[Complex]) -> Option<Made> {
            let [$($x),+] = operands else { return None };
            Some(Made::from($e))
        }
    )* };
}

formulas! {
    abs(a) = length(&a.re, &a.im);
    angle(a) = f::atan2(&a.im, &a.re);
    isnan(a) = f::either(f::is_nan(&a.re), f::is_nan(&a.im));
    isinf(a) = f::either(f::is_inf(&a.re), f::is_inf(&a.im));
    isfinite(a) = f::both(f::is_finite(&a.re), f::is_finite(&a.im));
    logical_not(a) = f::not(a.truth());
    eq(a, b) = f::both(f::eq(&a.re, &b.re), f::eq(&a.im, &b.im));
    ne(a, b) = f::not(f::both(f::eq(&a.re, &b.re), f::eq(&a.im, &b.im)));
    logical_and(a, b) = f::both(a.truth(), b.truth());
    logical_or(a, b) = f::either(a.truth(), b.truth());
    logical_xor(a, b) = f::ne(a.truth(), b.truth());
    sub(a, b) = a.sub(b);
    add_scaled(a, b, alpha) = a.add(&b.mul(alpha));
    sub_scaled(a, b, alpha) = a.sub(&b.mul(alpha));
    rsub(a, b) = b.sub(a);
    mul(a, b) = a.mul(b);
    div(a, b) = a.div(b);
    pow(base, exponent) = base.pow(exponent);
    pow_number(exponent, base) = base.pow(exponent);
    pow_square(a) = a.mul(a);
    pow_one(a) = a.clone();
    choose(yes, no, condition) = Complex::chosen(no, yes, &condition.truth());
    lerp(a, b, weight) = a.add(&b.sub(a).mul(weight));
    addcmul(a, b, c, value) = a.add(&b.mul(c).mul(value));
    addcdiv(a, b, c, value) = a.add(&b.div(c).mul(value));
    neg(a) = Complex::new(-&a.re, -&a.im);
    conj_physical(a) = a.conj();
    reciprocal(a) = number(1.0).div(a);
    exp(a) = a.exp();
    exp2(a) = a.times(LN_2).exp();
    expm1(a) = a.exp().sub(&number(1.0));
    log(a) = a.log();
    log2(a) = a.log().times(LN_2.recip());
    log10(a) = a.log().times(LN_10.recip());
    log1p(a) = a.add(&number(1.0)).log();
    sqrt(a) = a.sqrt();
    rsqrt(a) = number(1.0).div(&a.sqrt());
    sin(a) = a.turned().sinh().turned_back();
    cos(a) = a.turned().cosh();
    tan(a) = a.turned().tanh().turned_back();
    sinh(a) = a.sinh();
    cosh(a) = a.cosh();
    tanh(a) = a.tanh();
    asin(a) = a.asin();
    acos(a) = a.acos();
    atan(a) = a.turned().atanh().turned_back();
    asinh(a) = a.turned().asin().turned_back();
    acosh(a) = a.acosh();
    atanh(a) = a.atanh();
    sigmoid(a) = a.sigmoid();
    silu(a) = a.mul(&a.sigmoid());
    sgn(a) = {
        let size = length(&a.re, &a.im);
        let size = f::select(&size, 1.0, f::eq(&size, 0.0));
        Complex::new(&a.re / &size, &a.im / size)
    };
    sinc(a) = {
        let turn = a.times(std::f64::consts::PI);
        let wave = turn.turned().sinh().turned_back().div(&turn);
        Complex::chosen(&number(1.0), &wave, &a.truth())
    };
    logaddexp(a, b) = {
        let first = f::le(&b.re, &a.re);
        let (top, low) = (Complex::chosen(b, a, &first), Complex::chosen(a, b, &first));
        let apart = low.sub(&top).exp().add(&number(1.0)).log();
        let alike = f::both(f::eq(&a.re, &b.re), f::both(f::eq(&a.im, &b.im), f::is_inf(&a.re)));
        Complex::chosen(&top.add(&apart), a, &alike)
    };
}
