//! The operators that most programs call, as methods.

use crate::base::Result;
use crate::operator::Ints;
use crate::ops::elementwise::{power, unary};
use crate::ops::linalg::matmul;
use crate::ops::nn::loss;
use crate::ops::reduction::{extrema, reduce, softmax};
use crate::ops::shape::view;
use crate::tensor::Tensor;

macro_rules! of_each_element {
    ($($what:literal $name:ident = $function:path;)*) => {
        impl Tensor { $(
            #[doc = concat!($what, " of each element.")]
            pub fn $name(&self) -> Result<Tensor> {
                $function(self)
            }
        )* }
    };
}

of_each_element! {
    "The absolute value" abs = unary::abs;
    "The exponential" exp = unary::exp;
    "The natural logarithm" log = unary::log;
    "The square root" sqrt = unary::sqrt;
    "The sine" sin = unary::sin;
    "The cosine" cos = unary::cos;
    "The hyperbolic tangent" tanh = unary::tanh;
    "The logistic function `1 / (1 + exp(-x))`" sigmoid = unary::sigmoid;
    "The maximum with 0" relu = power::relu;
    "The square" square = power::square;
}

impl Tensor {
    /// Each element to the power of `exponent`.
    pub fn pow(&self, exponent: f64) -> Result<Tensor> {
        power::pow(self.into(), exponent.into())
    }

    /// The product of matrices, of vectors, or of batches of them.
    pub fn matmul(&self, other: &Tensor) -> Result<Tensor> {
        matmul::matmul(self, other)
    }

    /// The sum of all elements.
    pub fn sum(&self) -> Result<Tensor> {
        reduce::sum(self, None, false, None)
    }

    /// The sums along `dims`, which stay as dimensions of size 1 with `keepdim`.
    pub fn sum_dims(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        reduce::sum(self, Some(Ints::from_slice(dims)), keepdim, None)
    }

    /// The mean of all elements.
    pub fn mean(&self) -> Result<Tensor> {
        reduce::mean(self, None, false, None)
    }

    /// The means along `dims`, which stay as dimensions of size 1 with `keepdim`.
    pub fn mean_dims(&self, dims: &[i64], keepdim: bool) -> Result<Tensor> {
        reduce::mean(self, Some(Ints::from_slice(dims)), keepdim, None)
    }

    /// The places of the largest elements along `dim`.
    pub fn argmax(&self, dim: i64) -> Result<Tensor> {
        extrema::argmax(self, Some(dim), false)
    }

    pub fn softmax(&self, dim: i64) -> Result<Tensor> {
        softmax::softmax(self, dim, None)
    }

    pub fn log_softmax(&self, dim: i64) -> Result<Tensor> {
        softmax::log_softmax(self, dim, None)
    }

    /// The same elements in another shape, in which -1 stands for what is left: a view where that can be.
    pub fn reshape(&self, shape: &[i64]) -> Result<Tensor> {
        view::reshape_to(self, shape)
    }

    /// A view with two dimensions swapped.
    pub fn transpose(&self, dim0: i64, dim1: i64) -> Result<Tensor> {
        view::transpose(self, dim0, dim1)
    }

    /// A view of a matrix with rows and columns swapped.
    pub fn t(&self) -> Result<Tensor> {
        view::t(self)
    }

    /// The mean of the squared differences from `target`.
    pub fn mse_loss(&self, target: &Tensor) -> Result<Tensor> {
        loss::mse_loss(self, target, None, None, "mean", None)
    }

    /// The mean loss of rows of scores, for the numbers of their classes.
    pub fn cross_entropy(&self, classes: &Tensor) -> Result<Tensor> {
        loss::cross_entropy(self, classes, None, None, -100, None, "mean", 0.0)
    }
}
