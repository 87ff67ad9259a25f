//! Methods of `V` for formulas of derivatives, which are differentiable themselves. (Addition is in `operator/primitives/addition.rs`,
//! because `operator` itself needs it.)

use crate::base::{Error, Result, Scalar};
use crate::operator::V;
use crate::operator::pointwise::declare::on_values;
use crate::ops::complex;
use crate::ops::elementwise::{arithmetic, unary};
use crate::ops::shape::view;

impl V {
    /// The complex conjugate. Real values are returned unchanged.
    pub fn conj(self) -> V {
        match self {
            V::Scalar(s) => V::Scalar(s.conj()),
            V::Tensor(t) if t.dtype().is_complex() => unary::conj_physical(&t).into(),
            other => other,
        }
    }

    pub fn re(self) -> V {
        match self {
            V::Scalar(s) => V::Scalar(if self.is_complex() { Scalar::Float(s.as_f64()) } else { s }),
            V::Tensor(t) if t.dtype().is_complex() => complex::real(&t).into(),
            other => other,
        }
    }

    pub fn transpose(self, a: i64, b: i64) -> V {
        self.then(|t| view::transpose(&t, a, b))
    }

    /// The conjugate transpose.
    pub fn mh(&self) -> V {
        self.mt().conj()
    }

    /// The transpose of the last two dimensions.
    pub fn mt(&self) -> V {
        self.clone().transpose(-2, -1)
    }
}

on_values!(Sub, sub, arithmetic::sub::ROW);
on_values!(Mul, mul, arithmetic::mul::ROW);
on_values!(Div, div, arithmetic::div::ROW);

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

/// The error for an operator whose results have a node without a derivative.
#[cold]
pub fn underived<T>(op: &str) -> Result<T> {
    Err(Error::not_implemented(format!("the derivative for '{op}' is not implemented.")))
}

/// The error for an operator that PyTorch's autograd does not know.
#[cold]
pub fn not_in_autograd<T>(op: &str) -> Result<T> {
    Err(Error::runtime(format!("derivative for aten::{op} is not implemented")))
}
