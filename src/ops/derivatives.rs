//! The operators that derivatives are written with: on `V` they read like formulas, and are differentiable themselves.

use crate::base::{DType, Device, Scalar};
use crate::operator::V;
use crate::operator::row::Ints;
use crate::ops::complex;
use crate::ops::creation::create;
use crate::ops::elementwise::{arithmetic, unary};
use crate::ops::linalg::matmul;
use crate::ops::reduction::reduce;
use crate::ops::shape::view;
use crate::tensor::Meta;

impl V {
    pub fn sum(self, dims: &[i64], keepdim: bool) -> V {
        self.then(|t| reduce::sum(&t, Some(Ints::from_slice(dims)), keepdim, None))
    }

    pub fn reshape(self, shape: &[usize]) -> V {
        self.then(|t| view::reshape(&t, shape))
    }

    pub fn expand(self, shape: &[usize]) -> V {
        self.then(|t| view::expand(&t, view::ints(shape)))
    }

    pub fn sum_to(self, shape: &[usize]) -> V {
        self.then(|t| reduce::sum_to(&t, shape))
    }

    /// The gradient of a reduction, stretched back over what was reduced.
    pub fn unreduce(self, at: &Meta, dims: &Option<Ints>, keepdim: bool) -> V {
        self.then(|t| reduce::unreduce(&t, &at.shape, dims.as_deref(), keepdim)).cast(at.dtype)
    }

    /// The complex conjugate; real values stay what they are.
    pub fn conj(self) -> V {
        match self {
            V::Scalar(s) => V::Scalar(s.conj()),
            V::Tensor(t) if t.dtype().is_complex() => unary::conj_physical(&t).into(),
            other => other,
        }
    }

    /// The real part.
    pub fn re(self) -> V {
        match self {
            V::Scalar(s) => V::Scalar(if self.is_complex() { Scalar::Float(s.as_f64()) } else { s }),
            V::Tensor(t) if t.dtype().is_complex() => complex::real(&t).into(),
            other => other,
        }
    }

    pub fn cast(self, dtype: DType) -> V {
        self.then(|t| create::to_dtype(&t, dtype))
    }

    pub fn to_device(self, device: Device) -> V {
        self.then(|t| create::to_device(&t, device))
    }

    pub fn transpose(self, a: i64, b: i64) -> V {
        self.then(|t| view::transpose(&t, a, b))
    }

    pub fn matmul(&self, other: impl Into<V>) -> V {
        self.with(other, matmul::product)
    }

    /// The conjugate of the matrix transpose.
    pub fn mh(&self) -> V {
        self.mt().conj()
    }

    /// Matrix transpose of the last two dimensions.
    pub fn mt(&self) -> V {
        self.clone().transpose(-2, -1)
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $row:path) => {
        operator!(@impl $trait, $method, $row; (V, V) (&V, V) (V, &V) (&V, &V) (V, f64) (&V, f64) (f64, V) (f64, &V));
    };
    (@impl $trait:ident, $method:ident, $row:path; $(($a:ty, $b:ty))*) => { $(
        impl std::ops::$trait<$b> for $a {
            type Output = V;
            fn $method(self, other: $b) -> V {
                V::apply(&$row, &[self.into(), other.into()])
            }
        }
    )* };
}
operator!(Add, add, arithmetic::add::ROW);
operator!(Sub, sub, arithmetic::sub::ROW);
operator!(Mul, mul, arithmetic::mul::ROW);
operator!(Div, div, arithmetic::div::ROW);

impl std::ops::Neg for V {
    type Output = V;
    fn neg(self) -> V {
        V::apply(&arithmetic::neg::ROW, &[self])
    }
}
impl std::ops::Neg for &V {
    type Output = V;
    fn neg(self) -> V {
        -self.clone()
    }
}
