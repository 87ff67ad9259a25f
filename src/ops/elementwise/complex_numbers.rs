//! Complex functions composed of real functions of the parts, for GPUs, whose shaders have real numbers only.

use crate::base::Scalar;
use crate::operator::V;
use crate::operator::pointwise::complex_formula::Complex;
use crate::ops::elementwise::formula::{
    abs, atan2, both, copysign, cos, cosh, either, eq, exp, gt, is_inf, le, log, log1p, maximum, not, select,
    sin, sinh, sqrt, tan, tanh,
};

fn new(re: V, im: V) -> Complex {
    Complex::new(re, im)
}

fn length(re: &V, im: &V) -> V {
    V::apply(&crate::ops::elementwise::arithmetic::hypot::ROW, &[re.clone(), im.clone()])
}

fn asinh(x: V) -> V {
    V::apply(&crate::ops::elementwise::unary::asinh::ROW, &[x])
}

impl Complex {
    pub fn one() -> Complex {
        new(V::from(1.0), V::from(0.0))
    }

    pub fn is_real(&self) -> bool {
        matches!(&self.im, V::Scalar(Scalar::Float(im)) if *im == 0.0)
    }

    pub fn add(&self, other: &Complex) -> Complex {
        new(&self.re + &other.re, &self.im + &other.im)
    }

    pub fn sub(&self, other: &Complex) -> Complex {
        new(&self.re - &other.re, &self.im - &other.im)
    }

    pub fn times(&self, factor: f64) -> Complex {
        new(&self.re * factor, &self.im * factor)
    }

    pub fn mul(&self, other: &Complex) -> Complex {
        if other.is_real() {
            return new(&self.re * &other.re, &self.im * &other.re);
        }
        if self.is_real() {
            return other.mul(self);
        }
        new(&self.re * &other.re - &self.im * &other.im, &self.re * &other.im + &self.im * &other.re)
    }

    /// Scales the divisor to near 1, so that its square neither overflows nor underflows.
    pub fn div(&self, other: &Complex) -> Complex {
        if other.is_real() {
            return new(&self.re / &other.re, &self.im / &other.re);
        }
        let size = maximum(abs(&other.re), abs(&other.im));
        let size = select(&size, 1.0, either(eq(&size, 0.0), is_inf(&size)));
        let (re, im) = (&other.re / &size, &other.im / &size);
        let square = (&re * &re + &im * &im) * &size;
        let top = self.mul(&new(re, -im));
        new(top.re / &square, top.im / square)
    }

    pub fn abs(&self) -> V {
        length(&self.re, &self.im)
    }

    /// The number divided by its magnitude, or zero.
    pub fn sgn(&self) -> Complex {
        let size = self.abs();
        let size = select(&size, 1.0, eq(&size, 0.0));
        new(&self.re / &size, &self.im / size)
    }

    pub fn sinc(&self) -> Complex {
        let turn = self.times(std::f64::consts::PI);
        let wave = turn.times_i().sinh().over_i().div(&turn);
        Complex::chosen(&Complex::one(), &wave, &self.truth())
    }

    pub fn logaddexp(&self, other: &Complex) -> Complex {
        let first = le(&other.re, &self.re);
        let (top, low) = (Complex::chosen(other, self, &first), Complex::chosen(self, other, &first));
        let apart = low.sub(&top).exp().add(&Complex::one()).log();
        let alike = both(eq(&self.re, &other.re), both(eq(&self.im, &other.im), is_inf(&self.re)));
        Complex::chosen(&top.add(&apart), self, &alike)
    }

    pub fn conj(&self) -> Complex {
        new(self.re.clone(), -&self.im)
    }

    pub fn exp(&self) -> Complex {
        let size = exp(&self.re);
        new(&size * cos(&self.im), size * sin(&self.im))
    }

    pub fn log(&self) -> Complex {
        new(log(length(&self.re, &self.im)), atan2(&self.im, &self.re))
    }

    /// The square root with nonnegative real part.
    pub fn sqrt(&self) -> Complex {
        let half = sqrt((length(&self.re, &self.im) + abs(&self.re)) * 0.5);
        let other = select(&self.im / (&half * 2.0), 0.0, eq(&half, 0.0));
        let left = both(le(&self.re, 0.0), not(eq(&self.re, 0.0)));
        new(select(&half, abs(&other), &left), select(other, copysign(half, &self.im), left))
    }

    pub fn sinh(&self) -> Complex {
        new(sinh(&self.re) * cos(&self.im), cosh(&self.re) * sin(&self.im))
    }

    pub fn cosh(&self) -> Complex {
        new(cosh(&self.re) * cos(&self.im), sinh(&self.re) * sin(&self.im))
    }

    pub fn tanh(&self) -> Complex {
        let (a, b) = (tanh(&self.re), tan(&self.im));
        let square = &b * &b;
        let bottom = &a * &a * &square + 1.0;
        new(&a * (square + 1.0) / &bottom, b * (1.0 - &a * &a) / bottom)
    }

    pub fn times_i(&self) -> Complex {
        new(-&self.im, self.re.clone())
    }

    pub fn over_i(&self) -> Complex {
        new(self.im.clone(), -&self.re)
    }

    /// √(1 - z) and √(1 + z), from which the inverse functions are computed.
    pub fn roots(&self) -> (Complex, Complex) {
        (new(1.0 - &self.re, -&self.im).sqrt(), new(&self.re + 1.0, self.im.clone()).sqrt())
    }

    pub fn asin(&self) -> Complex {
        let (less, more) = self.roots();
        new(
            atan2(&self.re, &less.re * &more.re - &less.im * &more.im),
            asinh(&less.re * &more.im - &less.im * &more.re),
        )
    }

    pub fn acos(&self) -> Complex {
        let (less, more) = self.roots();
        new(atan2(&less.re, &more.re) * 2.0, asinh(&more.re * &less.im - &more.im * &less.re))
    }

    pub fn acosh(&self) -> Complex {
        let less = new(&self.re - 1.0, self.im.clone()).sqrt();
        let more = new(&self.re + 1.0, self.im.clone()).sqrt();
        new(asinh(&less.re * &more.re + &less.im * &more.im), atan2(&less.im, &more.re) * 2.0)
    }

    pub fn atanh(&self) -> Complex {
        let (a, b) = (abs(&self.re), &self.im);
        let near = 1.0 - &a;
        let size = log1p(&a * 4.0 / (&near * &near + b * b)) * 0.25;
        let turn = atan2(b * 2.0, near * (&a + 1.0) - b * b) * 0.5;
        // The squares of large numbers overflow.
        let far = gt(maximum(a, abs(b)), 1e18);
        let edge = copysign(V::from(std::f64::consts::FRAC_PI_2), b);
        new(copysign(select(size, 0.0, &far), &self.re), select(turn, edge, far))
    }

    pub fn sigmoid(&self) -> Complex {
        Complex::one().div(&new(-&self.re, -&self.im).exp().add(&Complex::one()))
    }

    /// True if the number is not zero.
    pub fn truth(&self) -> V {
        not(both(eq(&self.re, 0.0), eq(&self.im, 0.0)))
    }

    pub fn pow(&self, exponent: &Complex) -> Complex {
        let power = self.log().mul(exponent).exp();
        let to_nothing = not(exponent.truth());
        let base_is_zero = not(self.truth());
        let re = select(power.re, select(V::from(0.0), 1.0, to_nothing), &base_is_zero);
        new(re, select(power.im, 0.0, base_is_zero))
    }

    pub fn chosen(no: &Complex, yes: &Complex, condition: &V) -> Complex {
        new(select(&no.re, &yes.re, condition), select(&no.im, &yes.im, condition))
    }
}
