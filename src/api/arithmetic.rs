//! `+ - * /` on tensors and numbers. They return a [`Result`], since shapes may not fit, and take one as the other side.

use crate::base::Result;
use crate::operator::Operand;
use crate::operator::pointwise::apply_inplace;
use crate::ops::elementwise::arithmetic;
use crate::tensor::Tensor;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// What may stand beside a tensor: another tensor, a number, or what an operator returned.
pub trait Term {
    /// Calls `operator` with this operand, unless it is an error already.
    fn with<R>(self, operator: impl FnOnce(Operand) -> Result<R>) -> Result<R>;
}

impl Term for &Tensor {
    fn with<R>(self, operator: impl FnOnce(Operand) -> Result<R>) -> Result<R> {
        operator(self.into())
    }
}

impl Term for Tensor {
    fn with<R>(self, operator: impl FnOnce(Operand) -> Result<R>) -> Result<R> {
        operator((&self).into())
    }
}

impl Term for Result<Tensor> {
    fn with<R>(self, operator: impl FnOnce(Operand) -> Result<R>) -> Result<R> {
        operator((&self?).into())
    }
}

impl Term for f64 {
    fn with<R>(self, operator: impl FnOnce(Operand) -> Result<R>) -> Result<R> {
        operator(self.into())
    }
}

impl Term for i64 {
    fn with<R>(self, operator: impl FnOnce(Operand) -> Result<R>) -> Result<R> {
        operator(self.into())
    }
}

macro_rules! operators {
    ($($Trait:ident $name:ident $in_place:ident;)*) => { $(
        impl<T: Term> $Trait<T> for &Tensor {
            type Output = Result<Tensor>;
            fn $name(self, other: T) -> Result<Tensor> {
                other.with(|other| arithmetic::$name(self, other))
            }
        }

        impl<T: Term> $Trait<T> for Tensor {
            type Output = Result<Tensor>;
            fn $name(self, other: T) -> Result<Tensor> {
                other.with(|other| arithmetic::$name(&self, other))
            }
        }

        operators!(@left $Trait $name, f64, &Tensor);
        operators!(@left $Trait $name, f64, Tensor);
        operators!(@left $Trait $name, Result<Tensor>, &Tensor);
        operators!(@left $Trait $name, Result<Tensor>, Tensor);

        impl Tensor {
            #[doc = concat!("The operator `", stringify!($name), "`, written over this tensor.")]
            pub fn $in_place(&self, other: impl Term) -> Result<&Tensor> {
                other.with(|other| apply_inplace(&arithmetic::$name::ROW, self, &[self.into(), other]))?;
                Ok(self)
            }
        }
    )* };
    (@left $Trait:ident $name:ident, $left:ty, $right:ty) => {
        impl $Trait<$right> for $left {
            type Output = Result<Tensor>;
            fn $name(self, other: $right) -> Result<Tensor> {
                self.with(|own| other.with(|other| arithmetic::$name(own, other)))
            }
        }
    };
}

operators! {
    Add add add_;
    Sub sub sub_;
    Mul mul mul_;
    Div div div_;
}

impl Neg for &Tensor {
    type Output = Result<Tensor>;
    fn neg(self) -> Result<Tensor> {
        arithmetic::neg(self)
    }
}

impl Neg for Tensor {
    type Output = Result<Tensor>;
    fn neg(self) -> Result<Tensor> {
        -&self
    }
}
