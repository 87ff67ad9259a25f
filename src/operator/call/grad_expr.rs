//! Operations on `V`, the values in derivatives: pointwise rows apply to it, and the first error is carried
//! to the end. (The operators used in formulas are declared in their families.)

use crate::base::{DType, Error, Result, Scalar};
use crate::operator::pointwise::Operand;
use crate::operator::row::grad_value::V;
use crate::tensor::{Step, Tensor};
use std::sync::Arc;

/// The result types of a derivative.
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

    pub fn is_batched(&self) -> bool {
        matches!(self, V::Tensor(t) if t.is_batched())
    }

    /// True if forward mode or `vmap` is active for it: then operators must be called, not kernels.
    pub fn is_special(&self) -> bool {
        matches!(self, V::Tensor(t) if t.is_special())
    }

    pub fn tensor(self) -> Result<Tensor> {
        match self {
            V::Tensor(t) => Ok(t),
            V::Scalar(s) => crate::operator::primitives::constant::scalar_tensor(s, None),
            V::Failed(e) => Err(Arc::try_unwrap(e).unwrap_or_else(|shared| shared.again())),
        }
    }

    /// Applies a function of tensors, unless an earlier step failed.
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

    /// Applies a pointwise operator.
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

    /// A function of numbers only is computed in double precision and gives a number.
    fn number(row: &'static crate::operator::pointwise::Pointwise, operands: &[Operand]) -> V {
        let wide = |o: &Operand| match o {
            Operand::Scalar(s @ Scalar::Complex(..)) => {
                crate::operator::primitives::constant::scalar_tensor(*s, Some(DType::C128))
            }
            Operand::Scalar(s) => crate::operator::primitives::constant::scalar_tensor(
                Scalar::Float(s.as_f64()),
                Some(DType::F64),
            ),
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

    pub fn is_complex(&self) -> bool {
        match self {
            V::Tensor(t) => t.dtype().is_complex(),
            V::Scalar(s) => matches!(s, Scalar::Complex(..)),
            V::Failed(_) => false,
        }
    }
}
