//! `scatter_reduce`: what meets at a place is summed, multiplied, averaged, or the largest or smallest is kept.

use super::arithmetic as a;
use super::create;
use super::index::{gather, scatter_into};
use super::macros::{compose, ops};
use super::reduce::quietly;
use super::row::{Arg, FromArg, Kind};
use super::scatter::{masked_fill_number, scatter_number};
use super::value::V;
use crate::base::{Error, Put, Result, Scalar};
use crate::tensor::facts::{Keep, Shown};
use crate::tensor::{Derivative, Edge, Recorder, Tensor};

/// What becomes of values that meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meeting {
    Sum,
    Prod,
    Mean,
    Max,
    Min,
}

/// Only other operators pass it.
impl FromArg for Meeting {
    const KIND: Kind = Kind::Any;
    fn from_arg(_: &Arg) -> Option<Meeting> {
        None
    }
    super::row::kept_whole!();
}

impl Keep for Meeting {
    fn shown(&self) -> Shown {
        Shown::Text(self.name().into())
    }
}

impl Meeting {
    fn named(name: &str) -> Result<Meeting> {
        let all = [Meeting::Sum, Meeting::Prod, Meeting::Mean, Meeting::Max, Meeting::Min];
        all.into_iter().find(|how| how.name() == name).ok_or_else(|| {
            Error::runtime(format!(
                "reduce argument must be either sum, prod, mean, amax or amin, got {name}"
            ))
        })
    }

    /// PyTorch's name for it.
    pub fn name(self) -> &'static str {
        match self {
            Meeting::Sum => "sum",
            Meeting::Prod => "prod",
            Meeting::Mean => "mean",
            Meeting::Max => "amax",
            Meeting::Min => "amin",
        }
    }

    fn put(self) -> Put {
        match self {
            Meeting::Sum | Meeting::Mean => Put::Add,
            Meeting::Prod => Put::Mul,
            Meeting::Max => Put::Max,
            Meeting::Min => Put::Min,
        }
    }
}

/// Where values of `input` take no part: what the first that is sent there meets.
fn neutral(input: &Tensor, src: &Tensor, dim: i64, index: &Tensor, how: Meeting) -> Result<Tensor> {
    let number = match how {
        // Any of the values sent will do as the first.
        Meeting::Max | Meeting::Min => return scatter_into(input, src, dim, index.clone(), Put::Assign),
        Meeting::Prod => Scalar::Int(1),
        Meeting::Sum | Meeting::Mean => Scalar::Int(0),
    };
    scatter_number(input, dim, index.clone(), number)
}

pub(super) fn reduced(
    input: &Tensor,
    src: &Tensor,
    dim: i64,
    index: &Tensor,
    how: Meeting,
    own: bool,
) -> Result<Tensor> {
    let start = if own { input.clone() } else { neutral(input, src, dim, index, how)? };
    let out = scatter_into(&start, src, dim, index.clone(), how.put())?;
    if how != Meeting::Mean {
        return Ok(out);
    }
    let count = meetings(input, dim, index, own)?;
    if input.dtype().is_differentiable() {
        return a::div(&out, &count);
    }
    a::floor_divide(&out, &create::to_dtype(&count, input.dtype())?)
}

/// How many values meet at each place, 1 where none does.
pub(super) fn meetings(input: &Tensor, dim: i64, index: &Tensor, own: bool) -> Result<Tensor> {
    let start = create::full(&input.shape(), Scalar::Int(i64::from(own)), input.dtype(), input.device())?;
    let ones = create::ones(&index.shape(), input.dtype(), input.device())?;
    let count = scatter_into(&start, &ones, dim, index.clone(), Put::Add)?;
    a::maximum(&crate::ops::complex::real(&count)?, 1.0)
}

/// What a change of the input and of the source does to a product, largest or smallest value.
pub(super) struct Shares {
    pub input: Tensor,
    pub src: Tensor,
}

/// `twice` is the derivative of the source's share where several zeros meet.
#[allow(clippy::too_many_arguments)]
pub(super) fn shares(
    input: &Tensor,
    src: &Tensor,
    y: &Tensor,
    dim: i64,
    index: &Tensor,
    how: Meeting,
    own: bool,
    twice: &'static Derivative,
) -> Result<Shares> {
    let there = |t: &Tensor| gather(t, dim, index.clone());
    if how == Meeting::Prod {
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
        let several = picked.requires_grad()
            && !picked.is_batched()
            && super::reduce::any(&a::gt(&zeros, 1.0)?, None, false)?.item()?.as_bool();
        let src = if several { underivable(&picked, twice) } else { picked };
        return Ok(Shares { input: a::div(&others, &full_input)?, src });
    }
    let hit = |t: &Tensor, y: &Tensor| create::to_dtype(&a::eq(t, y)?, y.dtype());
    let (mut for_input, for_src) = (hit(input, y)?, hit(src, &there(y)?)?);
    if !own {
        for_input = scatter_number(&for_input, dim, index.clone(), Scalar::Int(0))?;
    }
    // Equal ones share.
    let ties = a::maximum(&scatter_into(&for_input, &for_src, dim, index.clone(), Put::Add)?, 1.0)?;
    Ok(Shares { input: a::div(&for_input, &ties)?, src: a::div(&for_src, &there(&ties)?)? })
}

/// A derivative that is an error: where several zeros meet, it is that of none of the formulas above.
macro_rules! no_derivative {
    ($message:literal) => {
        crate::tensor::Derivative {
            facts: None,
            name: "torch::autograd::Error",
            apply: |_| Err(crate::base::Error::runtime($message)),
        }
    };
}
pub(super) use no_derivative;

static SEVERAL_ZEROS: Derivative = no_derivative!(
    "scatter_reduce(): Double backward is unsupported for src when >1 zeros in src are scattered to the same position in self"
);

/// The same values, with this derivative.
fn underivable(shares: &Tensor, twice: &'static Derivative) -> Tensor {
    let body = shares.body().clone();
    let mut recorder = Recorder::new(twice);
    recorder.input(Some(shares));
    let node = recorder.publish(&[&body]);
    let made = Tensor::new(body);
    made.set_history(Some(Edge { node, output: 0 }));
    made
}

mod rows {
    use super::*;
    ops! { "index";
    /// `src` reduced into `input`; `own` tells whether `input` takes part where something is sent.
    [hidden] fn scatter_reduced(input, src; dim: i64, index: Tensor, reduce: Meeting, own: bool) -> y {
        quietly(|| reduced(input, src, dim, &index, reduce, own))
    }
    input: |g, input, src, y, dim, index, reduce, own| {
        let input = input.tensor()?;
        let g = match reduce {
            Meeting::Sum => g,
            Meeting::Mean => g / V::from(meetings(&input, dim, &index, own)?),
            _ => g * V::from(shares(&input, &src.tensor()?, &y.tensor()?, dim, &index, reduce, own, &SEVERAL_ZEROS)?.input),
        };
        if own { g } else { g.then(|t| scatter_number(&t, dim, index, Scalar::Int(0))) }
    };
    src: |g, input, src, y, dim, index, reduce, own| {
        let input = input.tensor()?;
        let sent = |g: V| g.then(|t| gather(&t, dim, index.clone()));
        match reduce {
            Meeting::Sum => sent(g),
            Meeting::Mean => sent(g / V::from(meetings(&input, dim, &index, own)?)),
            _ => sent(g) * V::from(shares(&input, &src.tensor()?, &y.tensor()?, dim, &index, reduce, own, &SEVERAL_ZEROS)?.src),
        }
    };
    }
}
pub use rows::{ROWS, scatter_reduced};

mod more {
    use super::*;
    compose! { "index";
        /// What `src` sends to each place, summed, multiplied, averaged, or the largest or smallest.
        [inplace, out] fn scatter_reduce(input: Tensor, dim: i64, index: Tensor, src: Tensor, reduce: String, include_self: bool = true) -> Tensor {
            let how = Meeting::named(&reduce)?;
            if matches!(how, Meeting::Max | Meeting::Min) {
                crate::ops::refuse::order("scatter_gather_tensor_cpu_reduce_amax", input.dtype())?;
            }
            if input.dtype().is_complex() && crate::tensor::any_requires_grad([&input, &src]) {
                return Err(Error::not_implemented(
                    "scatter_reduce does not support automatic differentiation for outputs with complex dtype.",
                ));
            }
            super::scatter_reduced(&input, &src, dim, index, how, include_self)
        }
    }
}
pub use more::COMPOSED;
