//! `V`, a value in a derivative: a tensor, a number, or the error of an earlier step.

use crate::base::{Error, Result, Scalar};
use crate::tensor::Tensor;
use std::sync::Arc;

#[derive(Clone)]
pub enum V {
    Tensor(Tensor),
    Scalar(Scalar),
    Failed(Arc<Error>),
}

impl From<Tensor> for V {
    fn from(t: Tensor) -> V {
        V::Tensor(t)
    }
}
impl From<&Tensor> for V {
    fn from(t: &Tensor) -> V {
        V::Tensor(t.clone())
    }
}
impl From<f64> for V {
    fn from(x: f64) -> V {
        V::Scalar(Scalar::Float(x))
    }
}
impl From<Scalar> for V {
    fn from(x: Scalar) -> V {
        V::Scalar(x)
    }
}
impl From<&V> for V {
    fn from(v: &V) -> V {
        v.clone()
    }
}
impl From<Result<Tensor>> for V {
    fn from(r: Result<Tensor>) -> V {
        match r {
            Ok(t) => V::Tensor(t),
            Err(e) => V::Failed(Arc::new(e)),
        }
    }
}
