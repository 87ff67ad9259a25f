//! Searching in sorted sequences, and testing for membership.

use crate::base::warn_once;
use crate::operator::bodies::duplicate;
use crate::operator::pointwise::result_type;
use crate::operator::primitives::copies::{to_device, to_dtype};
use crate::operator::primitives::views::reshape;
use crate::operator::primitives::{constant, detached};
use crate::ops::elementwise::{arithmetic as a, unary};
use crate::ops::indexing::index;
use crate::ops::indexing::masked::MaskedFill0;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce;
use crate::ops::shape::squeeze::unsqueeze;
use crate::ops::sorting::sort;
use std::sync::atomic::AtomicBool;

fn in_order(body: &Body) -> Result<Body> {
    if body.layout.is_contiguous() { Ok(body.clone()) } else { duplicate(body) }
}

#[primitive]
impl Searchsorted {
    fn forward(
        sorted_sequence: &Tensor,
        input: &Tensor,
        sorter: Option<&Tensor>,
        right: bool,
        out_int32: bool,
    ) -> Result<Body> {
        let dtype = if out_int32 { DType::I32 } else { DType::I64 };
        let out = Body::new(&input.shape(), dtype, input.device())?;
        if out.numel() == 0 {
            return Ok(out);
        }
        let (sorted, x) = (in_order(&sorted_sequence.body())?, in_order(&input.body())?);
        let sorter = sorter.map(|t| in_order(&t.body())).transpose()?;
        fork!(over [out, sorted, x], with [sorter, right],
            cpu: crate::cpu::search::search(out.host()?, sorted.host()?, x.host()?, sorter.as_ref().map(Body::host).transpose()?, right),
            gpu: crate::gpu::search(out.gpu()?, sorted.gpu()?, x.gpu()?, sorter.as_ref().map(Body::gpu).transpose()?, right))?;
        Ok(out)
    }
    fn batch(
        b: &Batch,
        sorted_sequence: &Tensor,
        input: &Tensor,
        sorter: Option<&Tensor>,
        right: bool,
        out_int32: bool,
    ) -> Result<Tensor> {
        let lines = |t: &Tensor| t.is_batched() || t.ndim() > 1;
        let (all, shape) = (b.full(input)?, input.shape());
        if !lines(sorted_sequence) && !sorter.is_some_and(lines) {
            // All examples share one sequence.
            return Ok(b.wrap(Searchsorted::call(sorted_sequence, &all, sorter, right, out_int32)?));
        }
        let sorted = b.full(sorted_sequence)?;
        let sorter = sorter.map(|t| b.full(t)).transpose()?;
        // Values that share a sequence must be contiguous.
        let mut own = b.sizes.clone();
        if sorted_sequence.ndim() > 1 {
            own.extend_from_slice(&shape);
        } else {
            own.push(input.numel());
        }
        let made = Searchsorted::call(&sorted, &reshape(&all, &own)?, sorter.as_ref(), right, out_int32)?;
        Ok(b.wrap(reshape(&made, &b.shape(&shape))?))
    }
}

fn value_error(message: String) -> Error {
    Error::runtime(format!("torch.searchsorted(): {message}"))
}

/// Warns once about operands that are copied because they are not contiguous.
fn warn_of_copies(sorted: &Tensor, input: &Tensor, sorter: Option<&Tensor>) -> Result<()> {
    static TOLD: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];
    let operands = [(Some(input), "input value"), (Some(sorted), "boundary"), (sorter, "sorter")];
    for ((t, what), told) in operands.into_iter().zip(&TOLD) {
        if t.is_some_and(|t| !t.body().layout.is_contiguous()) {
            warn_once(
                told,
                &format!(
                    "torch.searchsorted(): {what} tensor is non-contiguous, this will lower the performance due to extra data \
                     copy when converting non-contiguous tensor to contiguous, please use contiguous {what} tensor if \
                     possible. This message will only appear once per program."
                ),
            )?;
        }
    }
    Ok(())
}

fn check_sorter(sorted: &Tensor, sorter: &Tensor) -> Result<()> {
    if sorter.shape() != sorted.shape() {
        return Err(value_error(format!(
            "boundary and sorter must have the same size, but got boundary tensor {:?}and got sorter tensor {:?}",
            sorted.shape().as_slice(),
            sorter.shape().as_slice()
        )));
    }
    if sorter.dtype() != DType::I64 {
        return Err(value_error(format!(
            "sorter must be a tensor of long dtype but got dtype {}",
            sorter.dtype().scalar_name()
        )));
    }
    if sorter.numel() == 0 || sorter.is_batched() {
        return Ok(());
    }
    let last = sorted.shape().last().copied().unwrap_or(0) as i64;
    let fits = a::logical_and(&a::ge(sorter, 0i64)?, &a::lt(sorter, last)?)?;
    if reduce::all(&fits, None, false)?.item()?.as_bool() {
        return Ok(());
    }
    Err(value_error("sorter index out of range".into()))
}

/// Checks that the operands fit together, with PyTorch's errors.
fn check(sorted: &Tensor, input: &Tensor, sorter: Option<&Tensor>) -> Result<()> {
    if let Some(sorter) = sorter {
        check_sorter(sorted, sorter)?;
    }
    let (lines, values) = (sorted.shape(), input.shape());
    if values.is_empty() && lines.len() != 1 {
        return Err(value_error(format!(
            "input value can be a scalar only when boundaries tensor dimension is 1, but we got boundaries tensor dim({}) and \
             input value's dim(0) numel(1)",
            lines.len()
        )));
    }
    if lines.is_empty() {
        return Err(value_error(
            "boundaries tensor should have positive dimension, but got 0 dimension".into(),
        ));
    }
    let n = lines.len() - 1;
    if n > 0 && (values.len() != lines.len() || lines[..n] != values[..n]) {
        return Err(value_error(format!(
            "boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor and input value tensor \
             must match, but we got boundaries tensor {:?} and input value tensor {:?}",
            lines.as_slice(),
            values.as_slice()
        )));
    }
    Ok(())
}

fn search(
    sorted: &Tensor,
    input: &Tensor,
    out_int32: bool,
    right: bool,
    sorter: Option<&Tensor>,
) -> Result<Tensor> {
    check(sorted, input, sorter)?;
    warn_of_copies(sorted, input, sorter)?;
    let dtype = result_type([Operand::Tensor(sorted), Operand::Tensor(input)])?;
    let (sorted, input) = (detached::shallow(sorted), detached::shallow(input));
    if input.numel() > 0 && (dtype == DType::Bool || dtype.is_complex()) {
        return Err(Fault::NoKernel { op: "searchsorted_out_cpu", dtype }.into());
    }
    Searchsorted::call(&to_dtype(&sorted, dtype)?, &to_dtype(&input, dtype)?, sorter, right, out_int32)
}

/// A number as a tensor in the dtype of the comparison.
fn number(beside: &Tensor, value: Scalar) -> Result<Tensor> {
    let dtype = result_type([Operand::Tensor(beside), Operand::Scalar(value)])?;
    to_device(&constant::scalar_tensor(value, Some(dtype))?, beside.device())
}

/// True if a value goes behind elements equal to it.
fn goes_right(side: Option<&str>, right: bool) -> Result<bool> {
    match side {
        Some("left") if right => Err(value_error(
            "side and right can't be set to opposites, got side of left while right was True".into(),
        )),
        None | Some("left") => Ok(right),
        Some("right") => Ok(true),
        Some(other) => Err(value_error(format!("side can only be 'left' or 'right' but got {other}"))),
    }
}

/// Find where values would be inserted into a sorted sequence so that it stays sorted.
///
/// For a result `i`: `seq[i - 1] < value <= seq[i]`, or with `right=True` `seq[i - 1] <= value < seq[i]`.
///
/// Args:
///     sorted_sequence: sequences that are sorted along their last dimension.
///     input: the values to insert; the dimensions before the last are those of the sequences, unless there is one only.
///     self_: a number to insert, instead of `input`.
///     out_int32: whether the indices are int32, else int64.
///     right: whether to insert after equal elements, else before them.
///     side: `"left"` or `"right"`; another way to give `right`.
///     sorter: indices that sort `sorted_sequence`, if it is not sorted itself.
///
/// Examples:
///     >>> torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 6]))
///     tensor([1, 3])
///     >>> torch.searchsorted(torch.tensor([1, 3, 5]), 3, right=True)
///     tensor(2)
#[operator(
    function,
    out(
        message = "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on whether out_int32 flag is True, but we got output tensor's dtype {target} where {result} was asked for"
    ),
    unrecorded
)]
pub fn searchsorted(
    sorted_sequence: &Tensor,
    input: &Tensor,
    #[keyword]
    #[default(false)]
    out_int32: bool,
    #[default(false)] right: bool,
    side: Option<String>,
    sorter: Option<&Tensor>,
) -> Result<Tensor> {
    let right = goes_right(side.as_deref(), right)?;
    search(sorted_sequence, input, out_int32, right, sorter)
}

/// Find where a number would be inserted into a sorted sequence.
#[overload(searchsorted.Scalar)]
pub fn searchsorted_number(
    sorted_sequence: &Tensor,
    self_: Scalar,
    #[keyword]
    #[default(false)]
    out_int32: bool,
    #[default(false)] right: bool,
    side: Option<String>,
    sorter: Option<&Tensor>,
) -> Result<Tensor> {
    let right = goes_right(side.as_deref(), right)?;
    search(sorted_sequence, &number(sorted_sequence, self_)?, out_int32, right, sorter)
}

fn check_boundaries(boundaries: &Tensor) -> Result<()> {
    if boundaries.ndim() == 1 {
        return Ok(());
    }
    Err(Error::runtime(format!("boundaries tensor must be 1 dimension, but got dim({})", boundaries.ndim())))
}

/// Find the index of the bucket, between sorted boundaries, that each value belongs to.
///
/// For a result `i`: `boundaries[i - 1] < value <= boundaries[i]`, or with `right=True`
/// `boundaries[i - 1] <= value < boundaries[i]`.
///
/// Args:
///     input: the values.
///     self_: a number, instead of `input`.
///     boundaries: sorted vector of the boundaries.
///     out_int32: whether the indices are int32, else int64.
///     right: whether a value that equals a boundary belongs to the bucket above it.
///
/// Examples:
///     >>> torch.bucketize(torch.tensor([0, 3, 9]), torch.tensor([1, 3, 5]))
///     tensor([0, 1, 3])
#[operator(
    function,
    out(
        message = "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on whether out_int32 flag is True, but we got output tensor's dtype {target} where {result} was asked for"
    ),
    unrecorded
)]
pub fn bucketize(
    input: &Tensor,
    boundaries: &Tensor,
    #[keyword]
    #[default(false)]
    out_int32: bool,
    #[default(false)] right: bool,
) -> Result<Tensor> {
    check_boundaries(boundaries)?;
    search(boundaries, input, out_int32, right, None)
}

/// Find the index of the bucket that a number belongs to.
#[overload(bucketize.Scalar)]
pub fn bucketize_number(
    self_: Scalar,
    boundaries: &Tensor,
    #[keyword]
    #[default(false)]
    out_int32: bool,
    #[default(false)] right: bool,
) -> Result<Tensor> {
    check_boundaries(boundaries)?;
    search(boundaries, &number(boundaries, self_)?, out_int32, right, None)
}

/// True if comparing all pairs is faster than sorting and searching; PyTorch uses the same bound.
fn is_few(elements: usize, among: usize) -> bool {
    (among as f64) < 10.0 * (elements as f64).powf(0.145)
}

fn among(elements: &Tensor, test_elements: &Tensor, invert: bool) -> Result<Tensor> {
    for t in [elements, test_elements] {
        if t.dtype() == DType::Bool || t.dtype().is_complex() {
            return Err(Error::not_implemented(format!(
                "Unsupported input type encountered for isin(): {}",
                t.dtype().scalar_name()
            )));
        }
    }
    let dtype = result_type([Operand::Tensor(elements), Operand::Tensor(test_elements)])?;
    let elements = to_dtype(&detached::shallow(elements), dtype)?;
    let line = reshape(&to_dtype(&detached::shallow(test_elements), dtype)?, &[test_elements.numel()])?;
    let found = if line.numel() == 0 || is_few(elements.numel(), line.numel()) {
        reduce::any(&a::eq(&unsqueeze(&elements, -1)?, &line)?, Some(smallvec::smallvec![-1]), false)?
    } else {
        let sorted = sort::msort(&line)?;
        // NaN is sorted last, so it is replaced by infinity for the search.
        let keys = match dtype.is_float() {
            true => MaskedFill0::call(&sorted, &unary::isnan(&sorted)?, Scalar::Float(f64::INFINITY))?,
            false => sorted.clone(),
        };
        let place = search(&keys, &elements, false, false, None)?;
        let place = a::clamp_max_number(&place, line.numel() as i64 - 1)?;
        let there = index::index_select(&sorted, 0, &reshape(&place, &[elements.numel()])?)?;
        a::eq(&reshape(&there, &elements.shape())?, &elements)?
    };
    if invert { unary::logical_not(&found) } else { Ok(found) }
}

/// Tell for each of `elements` whether it is among `test_elements`.
///
/// Args:
///     elements, element: the values that are asked about; a tensor or a number.
///     test_elements, test_element: the values to compare with; a tensor or a number.
///     assume_unique: whether both hold no value twice; of no use here.
///     invert: whether to tell which are not among them.
///
/// Examples:
///     >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 3, 4]))
///     tensor([False,  True,  True])
#[operator(function, out(declared), unrecorded)]
pub fn isin(
    elements: &Tensor,
    test_elements: &Tensor,
    #[keyword]
    #[default(false)]
    assume_unique: bool,
    #[default(false)] invert: bool,
) -> Result<Tensor> {
    let _ = assume_unique;
    among(elements, test_elements, invert)
}

/// Tell for each of `elements` whether it equals a number.
#[overload(isin.Tensor_Scalar)]
pub fn isin_number(
    elements: &Tensor,
    test_element: Scalar,
    #[keyword]
    #[default(false)]
    assume_unique: bool,
    #[default(false)] invert: bool,
) -> Result<Tensor> {
    let _ = assume_unique;
    among(elements, &to_tensor(elements, test_element)?, invert)
}

/// Tell whether a number is among `test_elements`.
#[overload(isin.Scalar_Tensor)]
pub fn number_isin(
    element: Scalar,
    test_elements: &Tensor,
    #[keyword]
    #[default(false)]
    assume_unique: bool,
    #[default(false)] invert: bool,
) -> Result<Tensor> {
    let _ = assume_unique;
    among(&to_tensor(test_elements, element)?, test_elements, invert)
}

/// A number as a tensor. Booleans and complex numbers keep their dtype, so that they are rejected.
fn to_tensor(beside: &Tensor, value: Scalar) -> Result<Tensor> {
    let own = match value {
        Scalar::Bool(_) => Some(DType::Bool),
        Scalar::Complex(..) => Some(DType::C128),
        _ => None,
    };
    match own {
        Some(dtype) => constant::scalar_tensor(value, Some(dtype)),
        None => number(beside, value),
    }
}
