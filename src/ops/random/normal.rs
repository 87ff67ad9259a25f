//! `normal(mean, std)`. It is recorded as in PyTorch, although its gradient is zero.

use crate::base::Reduction;
use crate::operator::bodies;
use crate::operator::bodies::conj_neg;
use crate::operator::primitives::views::dims_of;
use crate::operator::row::generator::Generator;
use crate::ops::elementwise::arithmetic as a;
use crate::ops::prelude::*;
use crate::ops::random::fill::fill_normal;
use crate::ops::random::{categorical, draw, empty_body_of, new_filled_by};
use crate::tensor::mode;

/// Primitives that draw normal numbers with means per element, standard deviations per element, or both.
macro_rules! drawn {
    ($($Name:ident($($x:ident $d:ident),+);)*) => { $(
        #[primitive(tangent = still, batch = none, devices = any)]
        impl $Name {
            fn forward($($x: &Tensor,)+ drawn: &Body) -> Result<Body> {
                let _ = ($($x,)+);
                Ok(drawn.clone())
            }
            $(fn $d(g: V) -> V {
                constant_zero(g)
            })+
        }
    )* };
}
drawn! {
    Normal1(mean d_mean);
    Normal2(std d_std);
    Normal3(mean d_mean, std d_std);
}

fn about(mean: &Tensor, std: f64, generator: Option<Generator>) -> Result<Tensor> {
    let new = |shape: &[usize]| empty_body_of(shape, mean, TensorOptions::default(), None);
    let noise = draw(&mean.shape(), new, |body| fill_normal(body, 0.0, std, generator))?;
    a::add(&noise, mean)
}

fn within(mean: Operand, std: &Tensor, generator: Option<Generator>) -> Result<Tensor> {
    let all = std.physical();
    let dims = (0..all.ndim()).collect::<crate::base::Dims>();
    let numbers = conj_neg::values(&all.body())?;
    let once = numbers.with_layout(numbers.layout.unexpanded());
    let least = bodies::reduce(Reduction::Min, &once, &dims, categorical::work_type(all));
    if std.numel() > 0 && Tensor::new(least?).item()?.as_f64() < 0.0 {
        return Err(Error::runtime("normal expects all elements of std >= 0.0"));
    }
    let shape = match mean {
        Operand::Tensor(mean) => crate::base::broadcast(&mean.shape(), &std.shape())?,
        Operand::Scalar(_) => std.shape(),
    };
    let new = |shape: &[usize]| Body::new(shape, std.dtype(), std.device());
    let noise = draw(&shape, new, |body| fill_normal(body, 0.0, 1.0, generator))?;
    a::add(&a::mul(&noise, std)?, mean)
}

/// Draw from normal distributions.
///
/// Args:
///     mean: the means, a number or a tensor. Default: `0.0`
///     std: the standard deviations, a number or a tensor. Default: `1.0`
///     size: shape of the result, if `mean` and `std` are numbers.
///     dtype: data type of the result, if `size` is given.
///
/// Examples:
///     >>> torch.normal(torch.zeros(3), 1.0).shape
///     torch.Size([3])
///     >>> torch.normal(5.0, 0.1, (2, 3)).shape
///     torch.Size([2, 3])
#[operator(function, out, overloads((1, 2), (0, 2), (1, 2), (2, 8)), sample = "random")]
pub fn normal(
    #[default(Operand::Scalar(Scalar::Float(0.0)))] mean: Operand,
    #[default(Operand::Scalar(Scalar::Float(1.0)))] std: Operand,
    #[strict] size: Option<Ints>,
    #[keyword] generator: Option<Generator>,
    options: TensorOptions,
) -> Result<Tensor> {
    if let Operand::Tensor(mean) = mean
        && !mean.dtype().is_differentiable()
    {
        return Err(Fault::NoKernel { op: "normal_kernel_cpu", dtype: mean.dtype() }.into());
    }
    let drawn = mode::with_grad(false, || match (mean, std) {
        (Operand::Scalar(mean), Operand::Scalar(std)) => {
            let size = size.ok_or_else(|| Error::type_error("normal() missing required argument: 'size'"))?;
            let fill = |body: &Body| fill_normal(body, mean.as_f64(), std.as_f64(), generator);
            new_filled_by(&dims_of(&size)?, options, fill)
        }
        (Operand::Tensor(mean), Operand::Scalar(std)) => about(mean, std.as_f64(), generator),
        (mean, Operand::Tensor(std)) => within(mean, std, generator),
    })?;
    if drawn.is_batched() {
        return Ok(drawn);
    }
    let body = drawn.body().clone();
    match (mean, std) {
        (Operand::Tensor(mean), Operand::Tensor(std)) => Normal3::call(mean, std, &body),
        (Operand::Tensor(mean), _) => Normal1::call(mean, &body),
        (_, Operand::Tensor(std)) => Normal2::call(std, &body),
        _ => Ok(drawn),
    }
}
