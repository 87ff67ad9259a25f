//! `normal(mean, std)`: recorded as PyTorch does it, although no gradient comes through.

use super::draw;
use crate::base::{DType, Device, Error, Fold, Result, Scalar};
use crate::ops::create::default_dtype;
use crate::ops::creation::wanting;
use crate::ops::macros::{compose, ops};
use crate::ops::random::{Generator, normal, room_of};
use crate::ops::row::{Ints, Value};
use crate::ops::view::dims_of;
use crate::ops::{arithmetic as a, kernel};
use crate::tensor::{Body, Tensor, mode};

ops! { "random";
    /// Numbers that were drawn about these means.
    [hidden, still] fn normal_about(mean; made: Tensor) -> y { Ok(made.body().clone()) }
    mean: |g| g * 0.0;
    /// Numbers that were drawn with these standard deviations.
    [hidden, still] fn normal_within(std; made: Tensor) -> y { Ok(made.body().clone()) }
    std: |g| g * 0.0;
    /// Numbers that were drawn with both.
    [hidden, still] fn normal_by(mean, std; made: Tensor) -> y { Ok(made.body().clone()) }
    mean: |g| g * 0.0;
    std: |g| g * 0.0;
}

fn about(mean: &Tensor, std: f64, generator: Option<Generator>) -> Result<Tensor> {
    let new = |shape: &[usize]| room_of(shape, mean, None, None, None);
    let noise = draw(&mean.shape(), new, |body| normal(body, 0.0, std, generator))?;
    a::add(&noise, mean)
}

fn within(mean: &Value, std: &Tensor, generator: Option<Generator>) -> Result<Tensor> {
    let all = std.physical();
    let dims = (0..all.ndim()).collect::<crate::base::Dims>();
    let least = kernel::reduce(Fold::Min, &all.body(), &dims, super::choice::work_type(all));
    if std.numel() > 0 && Tensor::new(least?).item()?.as_f64() < 0.0 {
        return Err(Error::runtime("normal expects all elements of std >= 0.0"));
    }
    let shape = match mean {
        Value::Tensor(mean) => crate::base::broadcast(&mean.shape(), &std.shape())?,
        Value::Scalar(_) => std.shape(),
    };
    let new = |shape: &[usize]| Body::new(shape, std.dtype(), std.device());
    let noise = draw(&shape, new, |body| normal(body, 0.0, 1.0, generator))?;
    a::add(&a::mul(&noise, std)?, mean)
}

compose! { "random";
    /// Normally distributed random numbers with these means and standard deviations.
    [no_method, out] fn normal_(mean: Value = Value::Scalar(Scalar::Float(0.0)), std: Value = Value::Scalar(Scalar::Float(1.0)), size: Option<Ints> = None, generator: Option<Generator> = None, dtype: Option<DType> = None, layout: Option<String> = None, device: Option<Device> = None, pin_memory: Option<bool> = None, requires_grad: bool = false) -> Tensor {
        let _ = (layout, pin_memory);
        let made = mode::with_grad(false, || match (&mean, &std) {
            (Value::Scalar(mean), Value::Scalar(std)) => {
                let size = size.ok_or_else(|| Error::type_error("normal() missing required argument: 'size'"))?;
                let (dtype, device) = (dtype.unwrap_or_else(default_dtype), device.unwrap_or(Device::Cpu));
                let new = |shape: &[usize]| Body::new(shape, dtype, device);
                let made = draw(&dims_of(&size)?, new, |body| normal(body, mean.as_f64(), std.as_f64(), generator))?;
                wanting(made, requires_grad)
            }
            (Value::Tensor(mean), Value::Scalar(std)) => about(mean, std.as_f64(), generator),
            (mean, Value::Tensor(std)) => within(mean, std, generator),
        })?;
        match (mean, std) {
            _ if made.is_batched() => Ok(made),
            (Value::Tensor(mean), Value::Tensor(std)) => normal_by(&mean, &std, made),
            (Value::Tensor(mean), _) => normal_about(&mean, made),
            (_, Value::Tensor(std)) => normal_within(&std, made),
            _ => Ok(made),
        }
    }
}
