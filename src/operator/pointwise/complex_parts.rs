//! Complex arithmetic out of real arithmetic, for devices whose shaders know real numbers only: each operator by the
//! formula of its parts. Slower than a kernel of its own would be, but all of it runs where the operands are.

use crate::base::{Result, Scalar};
use crate::operator::grad_expr::V;
use crate::operator::kernel::{copy, parts};
use crate::operator::pointwise::Input;
use crate::ops::elementwise::formula::{
    abs, atan2, both, copysign, cos, cosh, either, eq, exp, gt, is_finite, is_inf, is_nan, le, log, log1p,
    maximum, ne, not, select, sin, sinh, sqrt, tan, tanh,
};
use crate::tensor::{Body, Tensor, mode};

/// A complex number, or a tensor of them, by its parts.
#[derive(Clone)]
struct Complex {
    re: V,
    im: V,
}

/// What an operator makes of complex numbers.
enum Made {
    Complex(Complex),
    Real(V),
}

fn new(re: V, im: V) -> Complex {
    Complex { re, im }
}

fn number(re: f64) -> Complex {
    new(V::from(re), V::from(0.0))
}

fn length(re: &V, im: &V) -> V {
    V::apply(&crate::ops::elementwise::arithmetic::hypot::ROW, &[re.clone(), im.clone()])
}

fn asinh(x: V) -> V {
    V::apply(&crate::ops::elementwise::unary::asinh::ROW, &[x])
}

impl Complex {
    fn read(input: &Input) -> Result<Complex> {
        let real = |body: &Body| V::from(Tensor::new(body.clone()));
        Ok(match input {
            Input::Scalar(s) => new(V::from(s.as_f64()), V::from(s.imaginary())),
            // A number from another device.
            Input::Body(body) if body.device().is_cpu() => {
                let s = Tensor::new((*body).clone()).item()?;
                new(V::from(s.as_f64()), V::from(s.imaginary()))
            }
            Input::Body(body) if body.dtype.is_complex() => {
                let [re, im] = parts(body)?;
                new(real(&re), real(&im))
            }
            Input::Body(body) => new(real(body), V::from(0.0)),
        })
    }

    fn is_real(&self) -> bool {
        matches!(&self.im, V::Scalar(Scalar::Float(im)) if *im == 0.0)
    }

    fn add(&self, other: &Complex) -> Complex {
        new(&self.re + &other.re, &self.im + &other.im)
    }

    fn sub(&self, other: &Complex) -> Complex {
        new(&self.re - &other.re, &self.im - &other.im)
    }

    fn times(&self, factor: f64) -> Complex {
        new(&self.re * factor, &self.im * factor)
    }

    fn mul(&self, other: &Complex) -> Complex {
        if other.is_real() {
            return new(&self.re * &other.re, &self.im * &other.re);
        }
        if self.is_real() {
            return other.mul(self);
        }
        new(&self.re * &other.re - &self.im * &other.im, &self.re * &other.im + &self.im * &other.re)
    }

    /// The divisor is brought near one beforehand, so that its square neither overflows nor vanishes.
    fn div(&self, other: &Complex) -> Complex {
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

    fn conj(&self) -> Complex {
        new(self.re.clone(), -&self.im)
    }

    fn exp(&self) -> Complex {
        let size = exp(&self.re);
        new(&size * cos(&self.im), size * sin(&self.im))
    }

    fn log(&self) -> Complex {
        new(log(length(&self.re, &self.im)), atan2(&self.im, &self.re))
    }

    /// The root whose real part is not negative.
    fn sqrt(&self) -> Complex {
        let half = sqrt((length(&self.re, &self.im) + abs(&self.re)) * 0.5);
        let other = select(&self.im / (&half * 2.0), 0.0, eq(&half, 0.0));
        let left = both(le(&self.re, 0.0), not(eq(&self.re, 0.0)));
        new(select(&half, abs(&other), &left), select(other, copysign(half, &self.im), left))
    }

    fn sinh(&self) -> Complex {
        new(sinh(&self.re) * cos(&self.im), cosh(&self.re) * sin(&self.im))
    }

    fn cosh(&self) -> Complex {
        new(cosh(&self.re) * cos(&self.im), sinh(&self.re) * sin(&self.im))
    }

    fn tanh(&self) -> Complex {
        let (a, b) = (tanh(&self.re), tan(&self.im));
        let square = &b * &b;
        let bottom = &a * &a * &square + 1.0;
        new(&a * (square + 1.0) / &bottom, b * (1.0 - &a * &a) / bottom)
    }

    /// `i` times it.
    fn turned(&self) -> Complex {
        new(-&self.im, self.re.clone())
    }

    fn turned_back(&self) -> Complex {
        new(self.im.clone(), -&self.re)
    }

    /// √(1 - z) and √(1 + z), between which the inverse functions are computed.
    fn roots(&self) -> (Complex, Complex) {
        (new(1.0 - &self.re, -&self.im).sqrt(), new(&self.re + 1.0, self.im.clone()).sqrt())
    }

    fn asin(&self) -> Complex {
        let (less, more) = self.roots();
        new(
            atan2(&self.re, &less.re * &more.re - &less.im * &more.im),
            asinh(&less.re * &more.im - &less.im * &more.re),
        )
    }

    fn acos(&self) -> Complex {
        let (less, more) = self.roots();
        new(atan2(&less.re, &more.re) * 2.0, asinh(&more.re * &less.im - &more.im * &less.re))
    }

    fn acosh(&self) -> Complex {
        let less = new(&self.re - 1.0, self.im.clone()).sqrt();
        let more = new(&self.re + 1.0, self.im.clone()).sqrt();
        new(asinh(&less.re * &more.re + &less.im * &more.im), atan2(&less.im, &more.re) * 2.0)
    }

    fn atanh(&self) -> Complex {
        let (a, b) = (abs(&self.re), &self.im);
        let near = 1.0 - &a;
        let size = log1p(&a * 4.0 / (&near * &near + b * b)) * 0.25;
        let turn = atan2(b * 2.0, near * (&a + 1.0) - b * b) * 0.5;
        // Far out, where squares overflow.
        let far = gt(maximum(a, abs(b)), 1e18);
        let edge = copysign(V::from(std::f64::consts::FRAC_PI_2), b);
        new(copysign(select(size, 0.0, &far), &self.re), select(turn, edge, far))
    }

    fn sigmoid(&self) -> Complex {
        number(1.0).div(&new(-&self.re, -&self.im).exp().add(&number(1.0)))
    }

    /// Whether it is not zero.
    fn truth(&self) -> V {
        not(both(eq(&self.re, 0.0), eq(&self.im, 0.0)))
    }

    fn pow(&self, exponent: &Complex) -> Complex {
        let power = self.log().mul(exponent).exp();
        let to_nothing = not(exponent.truth());
        let base_is_zero = not(self.truth());
        let re = select(power.re, select(V::from(0.0), 1.0, to_nothing), &base_is_zero);
        new(re, select(power.im, 0.0, base_is_zero))
    }

    fn chosen(no: &Complex, yes: &Complex, condition: &V) -> Complex {
        new(select(&no.re, &yes.re, condition), select(&no.im, &yes.im, condition))
    }
}

/// What the operator of this name makes of its operands; nothing where no formula is known.
fn compute(name: &str, x: &[Complex]) -> Option<Made> {
    let (a, b) = (x.first()?, x.get(1));
    let real = match (name, b) {
        ("abs", _) => Some(length(&a.re, &a.im)),
        ("angle", _) => Some(atan2(&a.im, &a.re)),
        ("isnan", _) => Some(either(is_nan(&a.re), is_nan(&a.im))),
        ("isinf", _) => Some(either(is_inf(&a.re), is_inf(&a.im))),
        ("isfinite", _) => Some(both(is_finite(&a.re), is_finite(&a.im))),
        ("logical_not", _) => Some(not(a.truth())),
        ("eq", Some(b)) => Some(both(eq(&a.re, &b.re), eq(&a.im, &b.im))),
        ("ne", Some(b)) => Some(not(both(eq(&a.re, &b.re), eq(&a.im, &b.im)))),
        ("logical_and", Some(b)) => Some(both(a.truth(), b.truth())),
        ("logical_or", Some(b)) => Some(either(a.truth(), b.truth())),
        ("logical_xor", Some(b)) => Some(ne(a.truth(), b.truth())),
        _ => None,
    };
    if let Some(real) = real {
        return Some(Made::Real(real));
    }
    Some(Made::Complex(match (name, x) {
        ("add", [a, b]) => a.add(b),
        ("sub", [a, b]) => a.sub(b),
        ("add_scaled", [a, b, alpha]) => a.add(&b.mul(alpha)),
        ("sub_scaled", [a, b, alpha]) => a.sub(&b.mul(alpha)),
        ("rsub", [a, b]) => b.sub(a),
        ("mul", [a, b]) => a.mul(b),
        ("div", [a, b]) => a.div(b),
        ("pow" | "pow_tensor" | "pow_zero", [a, b]) => a.pow(b),
        ("pow_number", [exponent, base]) => base.pow(exponent),
        ("choose", [yes, no, condition]) => Complex::chosen(no, yes, &condition.truth()),
        ("logaddexp", [a, b]) => {
            let first = le(&b.re, &a.re);
            let (top, low) = (Complex::chosen(b, a, &first), Complex::chosen(a, b, &first));
            let apart = low.sub(&top).exp().add(&number(1.0)).log();
            Complex::chosen(
                &top.add(&apart),
                a,
                &both(eq(&a.re, &b.re), both(eq(&a.im, &b.im), is_inf(&a.re))),
            )
        }
        ("lerp", [a, b, weight]) => a.add(&b.sub(a).mul(weight)),
        ("addcmul", [a, b, c, value]) => a.add(&b.mul(c).mul(value)),
        ("addcdiv", [a, b, c, value]) => a.add(&b.div(c).mul(value)),
        (_, [a]) => unary(name, a)?,
        _ => return None,
    }))
}

fn unary(name: &str, a: &Complex) -> Option<Complex> {
    const LN_2: f64 = std::f64::consts::LN_2;
    const LN_10: f64 = std::f64::consts::LN_10;
    Some(match name {
        "neg" => new(-&a.re, -&a.im),
        "conj_physical" => a.conj(),
        "pow_square" => a.mul(a),
        "pow_one" => a.clone(),
        "reciprocal" => number(1.0).div(a),
        "sgn" => {
            let size = length(&a.re, &a.im);
            let size = select(&size, 1.0, eq(&size, 0.0));
            new(&a.re / &size, &a.im / size)
        }
        "exp" => a.exp(),
        "exp2" => a.times(LN_2).exp(),
        "expm1" => a.exp().sub(&number(1.0)),
        "log" => a.log(),
        "log2" => a.log().times(LN_2.recip()),
        "log10" => a.log().times(LN_10.recip()),
        "log1p" => a.add(&number(1.0)).log(),
        "sqrt" => a.sqrt(),
        "rsqrt" => number(1.0).div(&a.sqrt()),
        "sinc" => {
            let turn = a.times(std::f64::consts::PI);
            let wave = turn.turned().sinh().turned_back().div(&turn);
            Complex::chosen(&number(1.0), &wave, &a.truth())
        }
        "sin" => a.turned().sinh().turned_back(),
        "cos" => a.turned().cosh(),
        "tan" => a.turned().tanh().turned_back(),
        "sinh" => a.sinh(),
        "cosh" => a.cosh(),
        "tanh" => a.tanh(),
        "asin" => a.asin(),
        "acos" => a.acos(),
        "atan" => a.turned().atanh().turned_back(),
        "asinh" => a.turned().asin().turned_back(),
        "acosh" => a.acosh(),
        "atanh" => a.atanh(),
        "sigmoid" => a.sigmoid(),
        "silu" => a.mul(&a.sigmoid()),
        _ => return None,
    })
}

/// Fills `out` with what the operator makes of the inputs; false where there is no formula for it.
pub fn execute(name: &str, out: &Body, inputs: &[Input]) -> Result<bool> {
    mode::with_grad(false, || {
        let operands = inputs.iter().map(Complex::read).collect::<Result<Vec<_>>>()?;
        let Some(made) = compute(name, &operands) else { return Ok(false) };
        let put = |to: &Body, value: V| -> Result<()> {
            let value = value.tensor()?;
            let value = crate::ops::creation::create::to_device(&value, out.device())?;
            let layout = value.body().layout.broadcast_to(out.shape());
            copy(to, &value.body().with_layout(layout))
        };
        match made {
            Made::Real(value) => put(out, value)?,
            Made::Complex(value) => {
                let [re, im] = parts(out)?;
                put(&re, value.re)?;
                put(&im, value.im)?;
            }
        }
        Ok(true)
    })
}
