//! Complex numbers and the functions of them that formulas use, computed with those of [`super::f64`]. Signed
//! zeros choose the side of a branch cut, and infinities and NaNs give what Annex G of the C standard says. complex64 has
//! its own arithmetic in f32; most of its functions are those of complex128, rounded once.

use super::f64 as real;
use crate::cpu::float::Float;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, LN_10, PI};
use std::ops::{Add, Div, Mul, Neg, Sub};

pub use crate::cpu::element::Complex;

pub type T = Complex<f64>;

#[inline(always)]
pub const fn new(re: f64, im: f64) -> T {
    T { re, im }
}

/// The arithmetic of one precision. Constants in formulas are f64 in both.
macro_rules! arithmetic {
    ($part:ty) => {
        impl From<f64> for Complex<$part> {
            #[inline(always)]
            fn from(re: f64) -> Self {
                Complex { re: re as $part, im: 0.0 }
            }
        }

        impl Add for Complex<$part> {
            type Output = Self;
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                Complex { re: self.re + b.re, im: self.im + b.im }
            }
        }

        impl Sub for Complex<$part> {
            type Output = Self;
            #[inline(always)]
            fn sub(self, b: Self) -> Self {
                Complex { re: self.re - b.re, im: self.im - b.im }
            }
        }

        impl Mul for Complex<$part> {
            type Output = Self;
            #[inline(always)]
            fn mul(self, b: Self) -> Self {
                Complex { re: self.re * b.re - self.im * b.im, im: self.re * b.im + self.im * b.re }
            }
        }

        impl Neg for Complex<$part> {
            type Output = Self;
            #[inline(always)]
            fn neg(self) -> Self {
                Complex { re: -self.re, im: -self.im }
            }
        }

        with_numbers!($part; Add add, Sub sub, Mul mul, Div div);
    };
}

macro_rules! with_numbers {
    ($part:ty; $($trait:ident $method:ident),*) => { $(
        impl $trait<f64> for Complex<$part> {
            type Output = Self;
            #[inline(always)]
            fn $method(self, b: f64) -> Self { self.$method(Self::from(b)) }
        }
        impl $trait<Complex<$part>> for f64 {
            type Output = Complex<$part>;
            #[inline(always)]
            fn $method(self, b: Complex<$part>) -> Complex<$part> { Complex::<$part>::from(self).$method(b) }
        }
    )* };
}
arithmetic!(f64);
arithmetic!(f32);

impl Div for Complex<f64> {
    type Output = Self;
    #[inline(always)]
    fn div(self, b: Self) -> Self {
        divide_by_larger_part(self, b)
    }
}

impl Div for Complex<f32> {
    type Output = Self;
    /// Divides by the square of the divisor's magnitude in f64, where it cannot overflow.
    #[inline(always)]
    fn div(self, b: Self) -> Self {
        let (a_re, a_im, b_re, b_im) = (self.re as f64, self.im as f64, b.re as f64, b.im as f64);
        let square = b_re * b_re + b_im * b_im;
        if square > 0.0 && square < f64::INFINITY {
            let scale = 1.0 / square;
            let (re, im) = ((a_re * b_re + a_im * b_im) * scale, (a_im * b_re - a_re * b_im) * scale);
            return Complex { re: re as f32, im: im as f32 };
        }
        divide_by_larger_part(self, b)
    }
}

/// Divides by the larger part of the divisor first, so that its square cannot overflow.
#[inline(always)]
fn divide_by_larger_part<F: Float>(a: Complex<F>, b: Complex<F>) -> Complex<F> {
    let (x, y) = (b.re.abs(), b.im.abs());
    if x == F::ZERO && y == F::ZERO {
        Complex { re: a.re / x, im: a.im / y }
    } else if x >= y {
        let ratio = b.im / b.re;
        let scale = F::ONE / (b.re + b.im * ratio);
        let (re, im) = (a.re + a.im * ratio, a.im - a.re * ratio);
        Complex { re: re * scale, im: im * scale }
    } else {
        let ratio = b.re / b.im;
        let scale = F::ONE / (b.re * ratio + b.im);
        let (re, im) = (a.re * ratio + a.im, a.im * ratio - a.re);
        Complex { re: re * scale, im: im * scale }
    }
}

/// z times i, exactly.
fn times_i(z: T) -> T {
    new(-z.im, z.re)
}

/// z over i, exactly.
fn over_i(z: T) -> T {
    new(z.im, -z.re)
}

/// Functions that take constants, each with its own precision.
macro_rules! with_constants {
    () => {
        #[inline(always)]
        pub fn eq(a: T, b: impl Into<T>) -> bool {
            a == b.into()
        }

        #[inline(always)]
        pub fn ne(a: T, b: impl Into<T>) -> bool {
            a != b.into()
        }

        /// Compares real parts, for numbers that are known to be real.
        #[inline(always)]
        pub fn lt(a: T, b: impl Into<T>) -> bool {
            a.re < b.into().re
        }

        #[inline(always)]
        pub fn select(if_false: impl Into<T>, if_true: impl Into<T>, condition: bool) -> T {
            if condition { if_true.into() } else { if_false.into() }
        }

        #[inline(always)]
        pub fn square(x: T) -> T {
            x * x
        }

        #[inline(always)]
        pub fn multiply_add(a: T, b: T, c: impl Into<T>) -> T {
            a * b + c.into()
        }

        #[inline(always)]
        pub fn recip(x: T) -> T {
            T::from(1.0) / x
        }
    };
}
with_constants!();

/// The one with the larger real part, whose exponential is larger.
#[inline(always)]
pub fn maximum<F: Float>(a: Complex<F>, b: Complex<F>) -> Complex<F> {
    if a.re >= b.re { a } else { b }
}

/// The one with the smaller real part.
#[inline(always)]
pub fn minimum<F: Float>(a: Complex<F>, b: Complex<F>) -> Complex<F> {
    if a.re >= b.re { b } else { a }
}

#[inline(always)]
pub fn truth<F: Float>(x: Complex<F>) -> bool {
    x.re != F::ZERO || x.im != F::ZERO
}

#[inline(always)]
pub fn conj<F: Float>(x: Complex<F>) -> Complex<F> {
    Complex { re: x.re, im: -x.im }
}

#[inline(always)]
pub fn first_power<F: Float>(x: Complex<F>) -> Complex<F> {
    x
}

#[inline(always)]
pub fn zeroth_power<F: Float>(_: Complex<F>) -> Complex<F> {
    Complex { re: F::ONE, im: F::ZERO }
}

#[inline(always)]
pub fn is_nan<F: Float>(x: Complex<F>) -> bool {
    x.re.is_nan() || x.im.is_nan()
}

#[inline(always)]
pub fn is_inf<F: Float>(x: Complex<F>) -> bool {
    x.re.abs() == F::INFINITY || x.im.abs() == F::INFINITY
}

#[inline(always)]
pub fn is_finite<F: Float>(x: Complex<F>) -> bool {
    x.re.abs() < F::INFINITY && x.im.abs() < F::INFINITY
}

pub use real::{both, differ, either, not};

/// The functions of complex64: those of complex128, rounded.
pub mod single {
    use super::{Complex, real};

    pub type T = Complex<f32>;

    with_constants!();
    pub use super::{
        both, conj, differ, either, first_power, is_finite, is_inf, is_nan, maximum, minimum, not, truth,
        zeroth_power,
    };

    #[inline(always)]
    fn wide(x: T) -> super::T {
        super::new(x.re as f64, x.im as f64)
    }

    #[inline(always)]
    fn rounded(x: super::T) -> T {
        T { re: x.re as f32, im: x.im as f32 }
    }

    macro_rules! rounded {
        ($($name:ident)*) => { $(
            pub fn $name(x: T) -> T {
                rounded(super::$name(wide(x)))
            }
        )* };
    }
    rounded! {
        exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan sinh cosh tanh asin acos atan asinh acosh
        atanh sigmoid silu
    }

    /// The squares of f32 numbers neither overflow nor underflow in f64.
    #[inline(always)]
    pub fn abs(x: T) -> T {
        let (re, im) = (x.re as f64, x.im as f64);
        let size =
            if x.re.is_infinite() || x.im.is_infinite() { f64::INFINITY } else { (re * re + im * im).sqrt() };
        size.into()
    }

    #[inline(always)]
    pub fn angle(x: T) -> T {
        real::atan2(x.im as f64, x.re as f64).into()
    }

    #[inline(always)]
    pub fn sign(x: T) -> T {
        let (re, im) = (x.re as f64, x.im as f64);
        let size = (re * re + im * im).sqrt();
        let scale = if size == 0.0 { 0.0 } else { 1.0 / size };
        T { re: (re * scale) as f32, im: (im * scale) as f32 }
    }

    pub fn pow(a: T, b: impl Into<T>) -> T {
        rounded(super::pow(wide(a), wide(b.into())))
    }
}

pub fn abs(x: T) -> T {
    let square = x.re * x.re + x.im * x.im;
    // The careful computation is needed only if the square overflows or loses bits.
    if square > 1e-290 && square < 1e300 { square.sqrt().into() } else { x.re.hypot(x.im).into() }
}

pub fn angle(x: T) -> T {
    real::atan2(x.im, x.re).into()
}

/// The number of magnitude 1 in the same direction; 0 for 0.
pub fn sign(x: T) -> T {
    let size = abs(x).re;
    if size == 0.0 { new(0.0, 0.0) } else { new(x.re / size, x.im / size) }
}

pub fn exp(x: T) -> T {
    if x.im == 0.0 {
        return new(real::exp(x.re), x.im);
    }
    if !x.im.is_finite() && x.re.is_infinite() {
        return if x.re < 0.0 { new(0.0, 0f64.copysign(x.im)) } else { new(x.re, f64::NAN) };
    }
    // In two steps if the magnitude alone would overflow.
    let extra = if x.re > 709.0 && x.re < 1420.0 { 700.0 } else { 0.0 };
    let (size, more) = (real::exp(x.re - extra), real::exp(extra));
    new(size * real::cos(x.im) * more, size * real::sin(x.im) * more)
}

pub fn exp2(x: T) -> T {
    exp(new(x.re * LN_2, x.im * LN_2))
}

pub fn expm1(x: T) -> T {
    let half = real::sin(0.5 * x.im);
    new(real::expm1(x.re) * real::cos(x.im) - 2.0 * half * half, real::exp(x.re) * real::sin(x.im))
}

pub fn log(x: T) -> T {
    let (a, b) = (x.re.abs(), x.im.abs());
    let (large, small) = if a > b { (a, b) } else { (b, a) };
    // Near the unit circle, from the distance to it.
    let size = if large > 0.5 && large < 2.0 {
        0.5 * real::log1p((large - 1.0) * (large + 1.0) + small * small)
    } else {
        real::log(x.re.hypot(x.im))
    };
    new(size, real::atan2(x.im, x.re))
}

pub fn log2(x: T) -> T {
    let y = log(x);
    new(y.re / LN_2, y.im / LN_2)
}

pub fn log10(x: T) -> T {
    let y = log(x);
    new(y.re / LN_10, y.im / LN_10)
}

pub fn log1p(x: T) -> T {
    if x.re.abs() > 0.5 || x.im.abs() > 0.5 {
        return log(new(x.re + 1.0, x.im));
    }
    new(0.5 * real::log1p(x.re * (x.re + 2.0) + x.im * x.im), real::atan2(x.im, x.re + 1.0))
}

pub fn sqrt(x: T) -> T {
    if x.im.is_infinite() {
        return new(f64::INFINITY, x.im);
    }
    if x.re.is_infinite() {
        let nothing = if x.im.is_nan() { f64::NAN } else { 0.0 };
        return if x.re > 0.0 {
            new(x.re, nothing.copysign(x.im))
        } else {
            new(nothing, f64::INFINITY.copysign(x.im))
        };
    }
    if x.re == 0.0 && x.im == 0.0 {
        return new(0.0, x.im);
    }
    // Scaled, so that the magnitude neither overflows nor underflows.
    let large = x.re.abs().max(x.im.abs());
    let (up, down) = match large {
        l if l > 1e300 => (0.0625, 4.0),
        l if l < 1e-290 => (2f64.powi(108), 2f64.powi(-54)),
        _ => (1.0, 1.0),
    };
    let (re, im) = (x.re * up, x.im * up);
    let root = (0.5 * (re.abs() + re.hypot(im))).sqrt();
    let other = im.abs() / (2.0 * root);
    let (a, b) = if re >= 0.0 { (root, other) } else { (other, root) };
    new(a * down, (b * down).copysign(x.im))
}

pub fn rsqrt(x: T) -> T {
    recip(sqrt(x))
}

/// Small integer exponents by products, which keep exact results exact.
pub fn pow(a: T, b: impl Into<T>) -> T {
    let b: T = b.into();
    if b.im == 0.0 && b.re == b.re.trunc() && b.re.abs() <= 32.0 {
        let (mut base, mut rest, mut result) = (a, b.re.abs() as u32, T::from(1.0));
        while rest > 0 {
            if rest & 1 == 1 {
                result = if result == T::from(1.0) { base } else { result * base };
            }
            base = base * base;
            rest >>= 1;
        }
        return if b.re < 0.0 { recip(result) } else { result };
    }
    if !truth(a) {
        return if b.re > 0.0 { new(0.0, 0.0) } else { new(f64::INFINITY, f64::NAN) };
    }
    exp(b * log(a))
}

pub fn sin(x: T) -> T {
    over_i(sinh(times_i(x)))
}

pub fn cos(x: T) -> T {
    cosh(times_i(x))
}

pub fn tan(x: T) -> T {
    over_i(tanh(times_i(x)))
}

pub fn sinh(x: T) -> T {
    if x.im == 0.0 {
        return new(real::sinh(x.re), x.im);
    }
    if !x.im.is_finite() {
        return new(if x.re == 0.0 || x.re.is_infinite() { x.re } else { f64::NAN }, f64::NAN);
    }
    let across = if x.re == 0.0 { x.re } else { real::sinh(x.re) * real::cos(x.im) };
    new(across, real::cosh(x.re) * real::sin(x.im))
}

pub fn cosh(x: T) -> T {
    if x.re == 0.0 || x.im == 0.0 {
        let is_below = x.re.is_sign_negative() != x.im.is_sign_negative();
        return new(real::cosh(x.re) * real::cos(x.im), if is_below { -0.0 } else { 0.0 });
    }
    if !x.im.is_finite() {
        return new(if x.re.is_infinite() { f64::INFINITY } else { f64::NAN }, f64::NAN);
    }
    let up = real::sinh(x.re) * real::sin(x.im);
    new(real::cosh(x.re) * real::cos(x.im), up)
}

pub fn tanh(x: T) -> T {
    if x.im == 0.0 {
        return new(real::tanh(x.re), x.im);
    }
    if x.re.abs() > 20.0 {
        let rest = 4.0 * real::sin(x.im) * real::cos(x.im) * real::exp(-2.0 * x.re.abs());
        return new(1f64.copysign(x.re), if x.re.is_infinite() { 0f64.copysign(x.im) } else { rest });
    }
    if !x.im.is_finite() {
        return new(if x.re == 0.0 { x.re } else { f64::NAN }, f64::NAN);
    }
    let (t, s) = (real::tan(x.im), real::sinh(x.re));
    let beta = 1.0 + t * t;
    let below = 1.0 + beta * s * s;
    new(beta * (1.0 + s * s).sqrt() * s / below, t / below)
}

/// √(1 - z) and √(1 + z), from which the inverse functions are computed.
fn roots(x: T) -> (T, T) {
    (sqrt(new(1.0 - x.re, -x.im)), sqrt(new(1.0 + x.re, x.im)))
}

/// [`asinh`] of a number that is not finite.
fn asinh_beyond(x: T) -> T {
    let (re, im) = (x.re.abs(), x.im.abs());
    let angle = match (re.is_infinite(), im.is_infinite()) {
        (true, true) => FRAC_PI_4,
        (false, true) if !re.is_nan() => FRAC_PI_2,
        (true, false) if !im.is_nan() => 0.0,
        (false, false) if im == 0.0 => 0.0,
        _ => f64::NAN,
    };
    let size = if is_inf(x) { f64::INFINITY } else { f64::NAN };
    new(size.copysign(x.re), angle.copysign(x.im))
}

/// [`acos`] of a number that is not finite.
fn acos_beyond(x: T) -> T {
    let angle = match (x.re.is_infinite(), x.im.is_infinite()) {
        (true, true) if x.re > 0.0 => FRAC_PI_4,
        (true, true) => 3.0 * FRAC_PI_4,
        (false, true) if !x.re.is_nan() => FRAC_PI_2,
        (true, false) if !x.im.is_nan() => {
            if x.re > 0.0 {
                0.0
            } else {
                PI
            }
        }
        (false, false) if x.re == 0.0 => FRAC_PI_2,
        _ => f64::NAN,
    };
    let size = if is_inf(x) { f64::INFINITY } else { f64::NAN };
    new(angle, if x.im.is_sign_negative() { size } else { -size })
}

pub fn asin(x: T) -> T {
    if !is_finite(x) {
        return over_i(asinh_beyond(times_i(x)));
    }
    let (less, more) = roots(x);
    new(
        real::atan2(x.re, less.re * more.re - less.im * more.im),
        real::asinh(less.re * more.im - less.im * more.re),
    )
}

pub fn acos(x: T) -> T {
    if !is_finite(x) {
        return acos_beyond(x);
    }
    let (less, more) = roots(x);
    new(2.0 * real::atan2(less.re, more.re), real::asinh(more.re * less.im - more.im * less.re))
}

pub fn atan(x: T) -> T {
    over_i(atanh(times_i(x)))
}

pub fn asinh(x: T) -> T {
    if !is_finite(x) {
        return asinh_beyond(x);
    }
    over_i(asin(times_i(x)))
}

pub fn acosh(x: T) -> T {
    if !is_finite(x) {
        let turned = acos_beyond(x);
        return new(turned.im.abs(), turned.re.copysign(x.im));
    }
    let (less, more) = (sqrt(new(x.re - 1.0, x.im)), sqrt(new(x.re + 1.0, x.im)));
    new(real::asinh(less.re * more.re + less.im * more.im), 2.0 * real::atan2(less.im, more.re))
}

pub fn atanh(x: T) -> T {
    let (a, b) = (x.re.abs(), x.im);
    if b.is_nan() {
        return new(if a == 0.0 || a.is_infinite() { 0f64.copysign(x.re) } else { f64::NAN }, f64::NAN);
    }
    if a.max(b.abs()) > 1e150 {
        return new(0f64.copysign(x.re), FRAC_PI_2.copysign(b));
    }
    let size = 0.25 * real::log1p(4.0 * a / ((1.0 - a) * (1.0 - a) + b * b));
    new(size.copysign(x.re), 0.5 * real::atan2(2.0 * b, (1.0 - a) * (1.0 + a) - b * b))
}

pub fn sigmoid(x: T) -> T {
    recip(1.0 + exp(-x))
}

pub fn silu(x: T) -> T {
    x * sigmoid(x)
}
