//! `scatter_reduce`: what meets at a place is summed, multiplied, averaged, or the largest or smallest is kept.

use super::arithmetic as a;
use super::create;
use super::index::{gather, scatter_into};
use super::macros::{compose, ops};
use super::scatter::{masked_fill_number, number_like};
use crate::base::{Error, Put, Result, Scalar};
use crate::tensor::{Tensor, mode};

/// What a change of the input and of the source does to a product, largest or smallest value.
struct Shares {
    input: Tensor,
    src: Tensor,
}

fn shares(
    input: &Tensor,
    src: &Tensor,
    y: &Tensor,
    dim: i64,
    index: &Tensor,
    how: Put,
    own: bool,
) -> Result<Shares> {
    let there = |t: &Tensor| gather(t, dim, index.clone());
    if how == Put::Add {
        let one = |t: &Tensor| create::ones(&t.shape(), t.dtype(), t.device());
        return Ok(Shares { input: one(input)?, src: one(src)? });
    }
    if how == Put::Mul {
        let without_zeros = |t: &Tensor| masked_fill_number(t, a::eq(t, 0.0)?, Scalar::Int(1));
        let (full_input, full_src) = (without_zeros(input)?, without_zeros(src)?);
        let others = scatter_reduced(&full_input, src, dim, index.clone(), how, own)?;
        // A single zero among the values sent: the product of the others is its share.
        let zero = a::eq(src, 0.0)?;
        let none = create::zeros(&y.shape(), src.dtype(), src.device())?;
        let zeros = there(&scatter_into(
            &none,
            &create::to_dtype(&zero, src.dtype())?,
            dim,
            index.clone(),
            Put::Add,
        )?)?;
        let single = a::logical_and(&zero, &a::eq(&zeros, 1.0)?)?;
        let beside = there(&scatter_reduced(input, &full_src, dim, index.clone(), how, own)?)?;
        let usual = a::div(&there(y)?, &full_src)?;
        let picked =
            super::pointwise::apply(&a::choose::ROW, &[(&beside).into(), (&usual).into(), (&single).into()])?;
        return Ok(Shares { input: a::div(&others, &full_input)?, src: picked });
    }
    let hit = |t: &Tensor, y: &Tensor| create::to_dtype(&a::eq(t, y)?, y.dtype());
    let (mut for_input, for_src) = (hit(input, y)?, hit(src, &there(y)?)?);
    if !own {
        let none = create::zeros(&index.shape(), y.dtype(), y.device())?;
        for_input = scatter_into(&for_input, &none, dim, index.clone(), Put::Assign)?;
    }
    // Equal ones share.
    let ties = a::maximum(&scatter_into(&for_input, &for_src, dim, index.clone(), Put::Add)?, 1.0)?;
    Ok(Shares { input: a::div(&for_input, &ties)?, src: a::div(&for_src, &there(&ties)?)? })
}

mod reduced {
    use super::*;
    use crate::ops::V;
    ops! { "index";
    /// `src` summed, multiplied or compared into `input`; `own` tells whether `input` takes part where something is sent.
    [hidden] fn scatter_reduced(input, src; dim: i64, index: Tensor, how: Put, own: bool) -> y {
        let made = mode::with_grad(false, || scatter_into(input, src, dim, index.clone(), how))?;
        let body = made.body().clone();
        Ok(body)
    }
    input: |g, input, src, y, dim, index, how, own| {
        g * super::V::from(shares(&input.tensor()?, &src.tensor()?, &y.tensor()?, dim, &index, how, own)?.input)
    };
    src: |g, input, src, y, dim, index, how, own| {
        let share = shares(&input.tensor()?, &src.tensor()?, &y.tensor()?, dim, &index, how, own)?.src;
        g.then(|t| gather(&t, dim, index)) * super::V::from(share)
    };
    }
}
pub use reduced::scatter_reduced;

/// How values meet what is there, by PyTorch's names for it.
fn manner(reduce: &str) -> Result<Put> {
    Ok(match reduce {
        "add" | "sum" => Put::Add,
        "multiply" | "prod" => Put::Mul,
        "amax" => Put::Max,
        "amin" => Put::Min,
        other => {
            return Err(Error::runtime(format!(
                "reduce argument must be either sum, prod, mean, amax or amin, got {other}"
            )));
        }
    })
}

/// How many values meet at each place.
fn meetings(input: &Tensor, dim: i64, index: &Tensor, include_self: bool) -> Result<Tensor> {
    let start =
        create::full(&input.shape(), Scalar::Int(i64::from(include_self)), input.dtype(), input.device())?;
    let ones = create::ones(&index.shape(), input.dtype(), input.device())?;
    scatter_into(&start, &ones, dim, index.clone(), Put::Add)
}

mod more {
    use super::reduced::scatter_reduced;
    use super::*;
    compose! { "index";
        /// What `src` sends to each place, summed, multiplied, averaged, or the largest or smallest.
        [inplace, out] fn scatter_reduce(input: Tensor, dim: i64, index: Tensor, src: Tensor, reduce: String, include_self: bool = true) -> Tensor {
            let mean = reduce == "mean";
            let how = manner(if mean { "sum" } else { &reduce })?;
            if matches!(how, Put::Max | Put::Min) {
                crate::ops::refuse::order("scatter_gather_tensor_cpu_reduce_amax", input.dtype())?;
            }
            if input.dtype().is_complex() && crate::tensor::any_requires_grad([&input, &src]) {
                return Err(Error::runtime(
                    "scatter_reduce does not support automatic differentiation for outputs with complex dtype.",
                ));
            }
            let start = if include_self { input.clone() } else {
                // Places that nothing is sent to keep what they have; the others start neutral.
                let neutral = match how {
                    Put::Mul => Scalar::Int(1),
                    // Any of the values sent will do as the first.
                    Put::Max | Put::Min => {
                        let start = scatter_into(&input, &create::shallow(&src), dim, index.clone(), Put::Assign)?;
                        return scatter_reduced(&start, &src, dim, index, how, false);
                    }
                    _ => Scalar::Int(0),
                };
                let none = crate::ops::view::expand(&number_like(&input, neutral)?, crate::ops::view::ints(&index.shape()))?;
                scatter_into(&input, &none, dim, index.clone(), Put::Assign)?
            };
            let out = scatter_reduced(&start, &src, dim, index.clone(), how, true)?;
            if !mean {
                return Ok(out);
            }
            let count = meetings(&input, dim, &index, include_self)?;
            let count = a::maximum(&crate::ops::complex::real(count)?, 1.0)?;
            if input.dtype().is_differentiable() { a::div(&out, &count) } else { a::floor_divide(&out, &create::to_dtype(&count, input.dtype())?) }
        }
    }
}
pub use more::COMPOSED;
pub use reduced::ROWS;
