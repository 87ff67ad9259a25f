//! Standardization and its gradient as formulas of tensors. They serve where no kernel does: for derivatives of derivatives,
//! under `vmap`, and for very large sets of elements.

use crate::base::numel;
use crate::ops::elementwise::formula::rsqrt;
use crate::ops::prelude::*;
use smallvec::smallvec;

/// The sets of elements that share a mean and a variance, and the elements that share a weight and a bias.
pub(super) struct NormShape {
    /// The shape of the input in which the dimensions `over` make a set.
    sets: Dims,
    over: Ints,
    /// The shape of the input in which a weight of shape `weight` broadcasts over the dimensions `shared`.
    planes: Dims,
    weight: Dims,
    shared: Ints,
    /// The shape of the weight's gradient.
    parameter: Dims,
}

/// The standardized sets, their means, the factors `1 / sqrt(variance + eps)`, and the variances if they were computed.
pub(super) struct Standardized {
    pub y: V,
    pub mean: V,
    pub scale: V,
    pub variance: Option<V>,
}

/// The statistics that depend on the input.
#[derive(Clone, Copy)]
pub(super) enum Statistics {
    MeanAndVariance,
    MeanSquare,
    Nothing,
}

impl NormShape {
    /// Sets are the last dimensions, of shape `parameter`; each of their elements has a weight.
    pub fn rows(shape: &[usize], normalized: usize) -> NormShape {
        let (lead, parameter) = shape.split_at(shape.len() - normalized);
        let rows: Dims = smallvec![numel(lead), numel(parameter)];
        NormShape {
            weight: [rows[1]].as_slice().into(),
            over: smallvec![1],
            shared: smallvec![0],
            parameter: parameter.into(),
            planes: rows.clone(),
            sets: rows,
        }
    }

    /// Sets are groups of the channels of a sample, whose input has the shape `[n, channels, run]`.
    pub fn groups([n, channels, run]: [usize; 3], groups: usize) -> NormShape {
        NormShape {
            sets: smallvec![n * groups, channels / groups.max(1) * run],
            over: smallvec![1],
            planes: smallvec![n, channels, run],
            weight: smallvec![channels, 1],
            shared: smallvec![0, 2],
            parameter: smallvec![channels],
        }
    }

    /// Sets are the channels of a batch.
    pub fn channels(shape: &[usize]) -> NormShape {
        let mut weight = Dims::from_elem(1, shape.len());
        weight[1] = shape[1];
        let others: Ints = (0..shape.len() as i64).filter(|&d| d != 1).collect();
        NormShape {
            sets: shape.into(),
            over: others.clone(),
            planes: shape.into(),
            weight,
            shared: others,
            parameter: [shape[1]].as_slice().into(),
        }
    }

    fn mean(&self, x: V) -> V {
        let count: usize = self.over.iter().map(|&d| self.sets[d as usize]).product();
        x.sum(&self.over, true) / count as f64
    }

    pub fn standardize(&self, x: V, eps: f64) -> Standardized {
        let x = x.reshape(&self.sets);
        let mean = self.mean(x.clone());
        let centred = x - &mean;
        let variance = self.mean(&centred * &centred);
        let scale = rsqrt(&variance + eps);
        Standardized { y: centred * &scale, mean, scale, variance: Some(variance) }
    }

    /// Standardizes by statistics that were computed before.
    pub fn standardize_by(&self, x: V, mean: V, scale: V) -> Standardized {
        let (mean, scale) = (self.per_set(mean), self.per_set(scale));
        let y = (x.reshape(&self.sets) - &mean) * &scale;
        Standardized { y, mean, scale, variance: None }
    }

    /// Divides the sets by their root mean square. Also returns the reciprocal of the root.
    pub fn divide_by_root(&self, x: V, eps: f64) -> [V; 2] {
        let x = x.reshape(&self.sets);
        let scale = rsqrt(self.mean(&x * &x) + eps);
        [x * &scale, scale]
    }

    /// Divides by roots that were computed before.
    pub fn divide_by(&self, x: V, scale: V) -> [V; 2] {
        let scale = self.per_set(scale);
        [x.reshape(&self.sets) * &scale, scale]
    }

    /// One number for each set, in a shape that broadcasts with the sets.
    fn per_set(&self, x: V) -> V {
        let mut shape = self.sets.clone();
        self.over.iter().for_each(|&d| shape[d as usize] = 1);
        x.reshape(&shape)
    }

    /// Multiplies by the weight and adds the bias, in the shape and dtype of `like`.
    pub fn scale_and_shift(&self, y: V, weight: Option<V>, bias: Option<V>, like: &Tensor) -> Result<Tensor> {
        let mut y = y.reshape(&self.planes);
        if let Some(weight) = weight {
            y = y * weight.reshape(&self.weight);
        }
        if let Some(bias) = bias {
            y = y + bias.reshape(&self.weight);
        }
        y.reshape(&like.shape()).cast(like.dtype()).tensor()
    }

    /// The gradients of input, weight and bias, from the standardized sets and their factors.
    pub fn gradients(
        &self,
        g: &Tensor,
        [y, scale]: [V; 2],
        weight: Option<V>,
        statistics: Statistics,
        wants: [bool; 3],
    ) -> [Option<V>; 3] {
        let (shape, dtype) = (g.shape(), g.dtype());
        let g = V::from(g).reshape(&self.planes);
        let of_input = || {
            let weight = weight.map(|weight| weight.reshape(&self.weight));
            let (g, factor) = match weight {
                None => (g.clone(), scale),
                // If a set has one weight, only the factors are multiplied by it.
                Some(weight) if self.over == self.shared => (g.clone(), scale * weight),
                Some(weight) => (&g * weight, scale),
            };
            let g = g.reshape(&self.sets);
            let inner = match statistics {
                Statistics::MeanAndVariance => &g - self.mean(g.clone()) - &y * self.mean(&g * &y),
                Statistics::MeanSquare => &g - &y * self.mean(&g * &y),
                Statistics::Nothing => g,
            };
            (inner * factor).reshape(&shape).cast(dtype)
        };
        let of_parameter = |g: V| g.sum(&self.shared, false).reshape(&self.parameter);
        [
            wants[0].then(of_input),
            wants[1].then(|| of_parameter(&g * y.clone().reshape(&self.planes))),
            wants[2].then(|| of_parameter(g.clone())),
        ]
    }
}
