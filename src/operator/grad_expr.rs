//! What derivatives do with `V`: operators read like formulas, are differentiable themselves, and carry the first error
//! to the end.

use crate::base::{DType, Error, Result, Scalar};
use crate::operator::grad_value::V;
use crate::operator::pointwise::Operand;
use crate::operator::row::Ints;
use crate::tensor::{Meta, Step, Tensor};
use std::sync::Arc;

/// What a derivative may end in.
pub trait IntoGrad {
    fn into_grad(self) -> Result<Option<Tensor>>;
}

impl IntoGrad for V {
    fn into_grad(self) -> Result<Option<Tensor>> {
        self.tensor().map(Some)
    }
}
impl IntoGrad for Result<Tensor> {
    fn into_grad(self) -> Result<Option<Tensor>> {
        self.map(Some)
    }
}
impl IntoGrad for Result<Option<Tensor>> {
    fn into_grad(self) -> Result<Option<Tensor>> {
        self
    }
}

impl V {
    #[cold]
    pub fn misuse() -> V {
        V::Failed(Arc::new(Error::runtime("a derivative was called with the wrong number of values")))
    }

    /// The gradient of output `i`.
    pub fn grad(step: &Step, i: usize) -> Result<V> {
        step.grad(i)
            .map(V::from)
            .ok_or_else(|| Error::runtime(format!("{} got no gradient", step.node.name())))
    }

    /// Whether forward mode or `vmap` has a say: then only operators will do, no bare kernels.
    pub fn is_batched(&self) -> bool {
        matches!(self, V::Tensor(t) if t.is_batched())
    }

    pub fn is_special(&self) -> bool {
        matches!(self, V::Tensor(t) if t.is_special())
    }

    pub fn tensor(self) -> Result<Tensor> {
        match self {
            V::Tensor(t) => Ok(t),
            V::Scalar(s) => crate::ops::creation::create::scalar_tensor(s, None),
            V::Failed(e) => {
                Err(Arc::try_unwrap(e).unwrap_or_else(|shared| Error::runtime(shared.to_string())))
            }
        }
    }

    /// Applies an operator on tensors, unless something failed before.
    pub fn then(self, f: impl FnOnce(Tensor) -> Result<Tensor>) -> V {
        match self {
            failed @ V::Failed(_) => failed,
            other => other.tensor().and_then(f).into(),
        }
    }

    pub fn with(&self, other: impl Into<V>, f: impl FnOnce(&Tensor, &Tensor) -> Result<Tensor>) -> V {
        let other = other.into();
        match (self, &other) {
            (V::Failed(e), _) | (_, V::Failed(e)) => V::Failed(e.clone()),
            _ => self.clone().tensor().and_then(|a| f(&a, &other.tensor()?)).into(),
        }
    }

    /// Applies a pointwise operator to values.
    pub fn apply(row: &'static crate::operator::pointwise::Pointwise, values: &[V]) -> V {
        let mut operands: smallvec::SmallVec<[Operand; 4]> = smallvec::SmallVec::new();
        for value in values {
            match value {
                V::Tensor(t) => operands.push(Operand::Tensor(t)),
                V::Scalar(s) => operands.push(Operand::Scalar(*s)),
                V::Failed(e) => return V::Failed(e.clone()),
            }
        }
        if !operands.iter().any(|o| matches!(o, Operand::Tensor(_))) {
            return V::number(row, &operands);
        }
        crate::operator::pointwise::apply(row, &operands).into()
    }

    /// A function of numbers is a number, as exact as they are.
    fn number(row: &'static crate::operator::pointwise::Pointwise, operands: &[Operand]) -> V {
        let wide = |o: &Operand| match o {
            Operand::Scalar(s @ Scalar::Complex(..)) => {
                crate::ops::creation::create::scalar_tensor(*s, Some(DType::C128))
            }
            Operand::Scalar(s) => {
                crate::ops::creation::create::scalar_tensor(Scalar::Float(s.as_f64()), Some(DType::F64))
            }
            Operand::Tensor(t) => Ok((*t).clone()),
        };
        let compute = || {
            let tensors = operands.iter().map(wide).collect::<Result<Vec<Tensor>>>()?;
            let operands: Vec<Operand> = tensors.iter().map(Operand::from).collect();
            crate::operator::pointwise::apply(row, &operands)?.item()
        };
        match compute() {
            Ok(number) => V::Scalar(number),
            Err(e) => V::Failed(Arc::new(e)),
        }
    }

    pub fn shape(&self) -> crate::base::Dims {
        if let V::Tensor(t) = self { t.shape() } else { crate::base::Dims::new() }
    }

    pub fn sum(self, dims: &[i64], keepdim: bool) -> V {
        self.then(|t| crate::ops::reduction::reduce::sum(&t, Some(Ints::from_slice(dims)), keepdim, None))
    }

    pub fn reshape(self, shape: &[usize]) -> V {
        self.then(|t| crate::ops::shape::view::reshape(&t, shape))
    }

    pub fn expand(self, shape: &[usize]) -> V {
        self.then(|t| crate::ops::shape::view::expand(&t, crate::ops::shape::view::ints(shape)))
    }

    pub fn sum_to(self, shape: &[usize]) -> V {
        self.then(|t| crate::ops::reduction::reduce::sum_to(&t, shape))
    }

    /// The gradient of a reduction, stretched back over what was reduced.
    pub fn unreduce(self, at: &Meta, dims: &Option<Ints>, keepdim: bool) -> V {
        self.then(|t| crate::ops::reduction::reduce::unreduce(&t, &at.shape, dims.as_deref(), keepdim))
            .cast(at.dtype)
    }

    pub fn is_complex(&self) -> bool {
        match self {
            V::Tensor(t) => t.dtype().is_complex(),
            V::Scalar(s) => matches!(s, Scalar::Complex(..)),
            V::Failed(_) => false,
        }
    }

    /// The complex conjugate; real values stay what they are.
    pub fn conj(self) -> V {
        match self {
            V::Scalar(s) => V::Scalar(s.conj()),
            V::Tensor(t) if t.dtype().is_complex() => {
                crate::ops::elementwise::unary::conj_physical(&t).into()
            }
            other => other,
        }
    }

    /// The real part.
    pub fn re(self) -> V {
        match self {
            V::Scalar(s) => V::Scalar(if self.is_complex() { Scalar::Float(s.as_f64()) } else { s }),
            V::Tensor(t) if t.dtype().is_complex() => crate::ops::complex::real(&t).into(),
            other => other,
        }
    }

    pub fn cast(self, dtype: DType) -> V {
        self.then(|t| crate::ops::creation::create::to_dtype(&t, dtype))
    }

    pub fn transpose(self, a: i64, b: i64) -> V {
        self.then(|t| crate::ops::shape::view::transpose(&t, a, b))
    }

    pub fn matmul(&self, other: impl Into<V>) -> V {
        self.with(other, crate::ops::linalg::matmul::product)
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
operator!(Add, add, crate::ops::elementwise::arithmetic::add::ROW);
operator!(Sub, sub, crate::ops::elementwise::arithmetic::sub::ROW);
operator!(Mul, mul, crate::ops::elementwise::arithmetic::mul::ROW);
operator!(Div, div, crate::ops::elementwise::arithmetic::div::ROW);

impl std::ops::Neg for V {
    type Output = V;
    fn neg(self) -> V {
        V::apply(&crate::ops::elementwise::arithmetic::neg::ROW, &[self])
    }
}
impl std::ops::Neg for &V {
    type Output = V;
    fn neg(self) -> V {
        -self.clone()
    }
}
