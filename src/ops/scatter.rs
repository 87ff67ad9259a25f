//! Operators that put values where an index or a mask points.

use super::index::{
    By, along, down, gather, get, index_put, index_select, put, scatter_into, size_and_stride,
};
use super::kernel::duplicate;
use super::macros::{compose, ops};
use super::pointwise::Operand;
use super::reduce::quietly;
use super::row::{Arg, Row, Value};
use super::slice_rules::check_slices;
use super::view::{View, reshape};
use super::{arithmetic as a, create};
use crate::base::{DType, Dims, Error, Layout, Put, Result, Scalar, wrap_dim};
use crate::tensor::{Body, Tensor, mode};
use smallvec::smallvec;

/// A tensor of one number, of the dtype and on the device of another.
pub(super) fn number_like(t: &Tensor, value: Scalar) -> Result<Tensor> {
    create::full(&[], value, t.dtype(), t.device())
}

/// The value of a 0-d tensor or number.
pub(super) fn number(op: &str, value: &Value) -> Result<Scalar> {
    match value {
        Value::Scalar(s) => Ok(*s),
        Value::Tensor(t) if t.ndim() == 0 => t.item(),
        Value::Tensor(t) => Err(Error::runtime(format!(
            "{op} only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
            t.ndim()
        ))),
    }
}

fn check_mask(op: &str, mask: &Tensor) -> Result<()> {
    if mask.dtype() == DType::Bool {
        return Ok(());
    }
    let dtype = mask.dtype();
    let name = if op == "masked_scatter_" { dtype.scalar_name() } else { dtype.c_name() };
    Err(Error::runtime(format!("{op} only supports boolean masks, but got mask with dtype {name}")))
}

/// As it is when row-major, else a row-major copy.
fn dense(t: Tensor) -> Result<Tensor> {
    if t.body().layout.is_contiguous() { Ok(t) } else { create::clone_dense(&t) }
}

/// `input` where the mask is false, `value` where it is true, in `input`'s dtype.
fn filled_at(input: &Tensor, mask: &Tensor, value: Operand) -> Result<Body> {
    check_mask("masked_fill_", mask)?;
    crate::base::broadcast(&mask.shape(), &input.shape())?;
    let made = mode::with_grad(false, || {
        let chosen = super::pointwise::apply(&a::choose::ROW, &[value, input.into(), mask.into()])?;
        dense(create::to_dtype(&chosen, input.dtype())?)
    })?;
    let body = made.body();
    Ok(body.with_layout(Layout::contiguous(body.shape())))
}

/// `out` with one number in the slices across `dim` that the vector `index` names.
pub(super) fn fill_slices(out: &Body, dim: i64, index: &Tensor, value: Scalar) -> Result<()> {
    if index.ndim() > 1 {
        return Err(Error::runtime("Index has to be a vector/scalar"));
    }
    let dim = wrap_dim(dim, out.layout.ndim())?;
    let mut shape = Dims::from_slice(out.shape());
    if let Some(n) = shape.get_mut(dim) {
        *n = index.numel();
    }
    let number = create::full(&[], value, out.dtype, out.device())?;
    let number = number.body();
    let source = number.with_layout(number.layout.broadcast_to(&shape));
    if source.numel() == 0 {
        return Ok(());
    }
    let by = index.body();
    let (size, stride) = size_and_stride(out, dim);
    let index = by.with_layout(down(&by, dim, &shape));
    check_room(out, &along(out, dim, &shape))?;
    put(
        "index_fill",
        &out.with_layout(along(out, dim, &shape)),
        &source,
        &[By { index: &index, size, stride, dim }],
        Put::Assign,
        true,
    )
}

/// Slices of an empty dimension lie nowhere; PyTorch notices that by the storage, where that has no room for them.
fn check_room(out: &Body, slices: &Layout) -> Result<()> {
    if out.numel() > 0 { Ok(()) } else { within(slices, out.dtype.size(), out.storage.len()) }
}

/// Refuses a layout of elements of `size` bytes that reaches beyond `have` of them.
pub fn within(layout: &Layout, size: usize, have: usize) -> Result<()> {
    let need = layout.end() * size;
    if need <= have {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "setStorage: sizes {:?}, strides {:?}, storage offset {}, and itemsize {} requiring a storage size of {need} are out of \
         bounds for storage of size {have}",
        layout.shape.as_slice(),
        layout.strides.as_slice(),
        layout.offset,
        size
    )))
}

pub(super) fn check_fill_index(index: &Tensor) -> Result<()> {
    if index.dtype() == DType::I64 {
        Ok(())
    } else {
        Err(Error::index("index_fill_(): Expected dtype int64 for index."))
    }
}

/// The slices of `from` put across `dim` of `out` where `index` points.
pub(super) fn copy_slices(out: &Body, from: &Body, dim: i64, index: &Tensor) -> Result<()> {
    let at = check_slices("index_copy_", out, from, dim, index)?;
    if from.numel() == 0 {
        return Ok(());
    }
    let by = index.body();
    let (size, stride) = size_and_stride(out, at);
    let mut shape = Dims::from_slice(out.shape());
    if let Some(n) = shape.get_mut(at) {
        *n = by.numel();
    }
    let index = by.with_layout(down(&by, at, &shape));
    let part = from.with_layout(from.layout.view(&shape).unwrap_or(from.layout.clone()));
    let slices = along(out, at, &shape);
    check_room(out, &slices)?;
    put(
        "index_copy",
        &out.with_layout(slices),
        &part,
        &[By { index: &index, size, stride, dim: at }],
        Put::Assign,
        false,
    )
}

/// `take` and `put` see a tensor as one line.
fn line(body: &Body) -> Result<Body> {
    let dense = if body.layout.is_contiguous() { body.clone() } else { duplicate(body)? };
    let layout = Layout { offset: dense.layout.offset, ..Layout::contiguous(&[dense.numel()]) };
    Ok(dense.with_layout(layout))
}

fn check_line(op: &str, index: &Tensor, body: &Body) -> Result<()> {
    if index.dtype() != DType::I64 {
        return Err(Error::runtime(format!(
            "{op}(): Expected a long tensor for index, but got {}",
            index.dtype().scalar_name()
        )));
    }
    if body.numel() == 0 && index.numel() > 0 {
        return Err(Error::index(format!("{op}(): tried to take from an empty tensor")));
    }
    Ok(())
}

/// The words of `take` for an index beyond the last element.
fn beyond(error: Error, size: usize) -> Error {
    let index = match error.fault() {
        crate::base::Fault::Index(message) => message.split(' ').nth(1).unwrap_or_default().to_owned(),
        _ => return error,
    };
    Error::index(format!("out of range: tried to access index {index} on a tensor of {size} elements."))
}

/// A copy of `input` seen as a line, with `values` put where the index points.
fn put_line(input: &Tensor, index: &Tensor, values: &Tensor, accumulate: bool) -> Result<Tensor> {
    let shape = input.shape();
    let flat = reshape(input, &[input.numel()])?;
    let out = index_put(&flat, &[Some(index.clone())], &reshape(values, &index.shape())?, accumulate)?;
    View::call(&out, shape)
}

/// Whether `masked_scatter_` takes its elements, in order, from the memory that it writes. (It copies what is not in order.)
pub fn reads_itself(row: &Row, target: &Tensor, args: &[Arg]) -> bool {
    let [_, _, Arg::Tensor(source)] = args else { return false };
    if row.name != "masked_scatter" || target.is_special() || !target.device().is_cpu() {
        return false;
    }
    let (to, from) = (target.body(), source.body());
    from.layout.is_contiguous()
        && from.lazy == to.lazy
        && (to.storage.same(&from.storage))
        && to.layout.offset < from.layout.end()
        && from.layout.offset < to.layout.end()
}

/// `masked_scatter_`, one element after the other.
pub fn scatter_live(out: &Body, args: &[Arg]) -> Result<()> {
    let [_, Arg::Tensor(mask), Arg::Tensor(source)] = args else {
        return Err(Error::runtime("masked_scatter_ takes a mask and a source"));
    };
    super::pointwise::check_writable(out)?;
    let (mask, source) = (mask.body(), source.body());
    let mask = mask.with_layout(mask.layout.broadcast_to(out.shape()));
    let next = source.host()?.ptr;
    // SAFETY: the row has computed its result: the shapes fit, and the source has elements enough.
    unsafe { crate::cpu::index::put_masked(out.host()?, mask.host()?, next) };
    Ok(())
}

/// A copy of `input` with the first values where the mask is true.
fn put_masked(input: &Tensor, mask: &Tensor, values: &Tensor) -> Result<Tensor> {
    if mask.ndim() == 0 {
        return reshape(&put_masked(&reshape(input, &[1])?, &reshape(mask, &[1])?, values)?, &[]);
    }
    let places: Vec<_> = crate::ops::sort::nonzero_columns(mask)?.into_iter().map(Some).collect();
    let count = places[0].as_ref().map_or(0, Tensor::numel) as i64;
    let first = crate::ops::view::narrow(&reshape(values, &[values.numel()])?, 0, 0, count)?;
    // PyTorch copies what it fills into a dense tensor.
    index_put(&crate::ops::shape::contiguous(input, None)?, &places, &first, false)
}

ops! { "index";
    /// Elements picked by number, as if `input` were one line.
    [out, linear] fn take(input; index: Tensor) -> y {
        let body = input.body();
        check_line("take", &index, &body)?;
        let (from, by) = (line(&body)?, index.body());
        let out = Body::new(by.shape(), body.dtype, body.device())?;
        if out.numel() > 0 {
            let still = Layout { shape: Dims::from_slice(by.shape()), strides: smallvec![0; by.layout.ndim()], offset: from.layout.offset };
            get("take", &out, &from.with_layout(still), &[By { index: &by, size: from.numel(), stride: 1, dim: 0 }], true)
                .map_err(|error| beyond(error, from.numel()))?;
        }
        Ok(out)
    }
    input: |g, at, index; input| {
        let zeros = create::zeros(&at.shape, at.dtype, at.device)?;
        g.then(|t| put_line(&zeros, &index, &t, true))
    };
    /// `input` as one line with the elements of `source` where `index` points.
    [hidden, linear] fn put_in(input, source; index: Tensor, accumulate: bool) -> y {
        quietly(|| put_line(input, &index, source, accumulate))
    }
    input: |g, index, accumulate| if accumulate { g } else {
        g.then(|t| put_in(&t, &create::zeros(&index.shape(), t.dtype(), t.device())?, index, false))
    };
    source: |g, at, index; source| g.then(|t| take(&t, index)).reshape(&at.shape);
    /// `input` with the elements of `source`, in order, where the mask is true.
    [hidden, linear] fn masked_scattered(input, source; mask: Tensor) -> y { quietly(|| put_masked(input, &mask, source)) }
    input: |g, mask| g.then(|t| masked_fill_number(&t, mask, Scalar::Int(0)));
    source: |g, at, mask| g.then(|t| {
        let picked = crate::ops::sort::MaskedSelect::call(&t, &mask)?;
        let left = crate::base::numel(&at.shape) - picked.numel();
        let zeros = create::zeros(&[left], at.dtype, at.device)?;
        reshape(&crate::ops::join::cat(&[picked, zeros], 0)?, &at.shape)
    });
    /// `input` with one number where the mask is true.
    [hidden] fn masked_fill_number(input; mask: Tensor, value: Scalar) -> y {
        super::kernel::holds(input.dtype(), value)?;
        filled_at(input, &mask, value.into())
    }
    input: |g, mask| g.then(|t| masked_fill_number(&t, mask, Scalar::Int(0)));
    /// `input` with a 0-d tensor's value where the mask is true.
    [hidden] fn masked_fill_tensor(input, value; mask: Tensor) -> y { filled_at(input, &mask, value.into()) }
    input: |g, mask| g.then(|t| masked_fill_number(&t, mask, Scalar::Int(0)));
    value: |g, mask| g.then(|t| {
        let zero = number_like(&t, Scalar::Int(0))?;
        let hit = crate::ops::pointwise::apply(&a::choose::ROW, &[(&t).into(), (&zero).into(), (&mask).into()])?;
        crate::ops::reduce::Sum::call(&hit)
    });
    /// `input` with one number in the slices that `index` names.
    [hidden] fn index_fill_number(input; dim: i64, index: Tensor, value: Scalar) -> y {
        check_fill_index(&index)?;
        let out = crate::ops::shape::preserved(&input.body())?;
        fill_slices(&out, dim, &index, value)?;
        Ok(out)
    }
    input: |g, dim, index| g.then(|t| index_fill_number(&t, dim, index, Scalar::Int(0)));
    /// `input` with a 0-d tensor's value in the slices that `index` names.
    [hidden] fn index_fill_tensor(input, value; dim: i64, index: Tensor) -> y {
        check_fill_index(&index)?;
        let out = crate::ops::shape::preserved(&input.body())?;
        fill_slices(&out, dim, &index, value.item()?)?;
        Ok(out)
    }
    input: |g, dim, index| g.then(|t| index_fill_number(&t, dim, index, Scalar::Int(0)));
    value: |g, dim, index| g.then(|t| {
        // Once for each place, however often the index names it.
        let rest = index_fill_number(&t, dim, index, Scalar::Int(0))?;
        crate::ops::reduce::Sum::call(&a::sub(&t, &rest)?)
    });
    /// `input` with one number along a dimension where `index` points.
    [hidden] fn scatter_number(input; dim: i64, index: Tensor, value: Scalar) -> y {
        let made = mode::with_grad(false, || {
            let number = number_like(input, value)?;
            let src = crate::ops::view::expand(&number, crate::ops::view::ints(&index.shape()))?;
            scatter_into(input, &src, dim, index.clone(), Put::Assign)
        })?;
        let body = made.body().clone();
        Ok(body)
    }
    input: |g, dim, index| g.then(|t| scatter_number(&t, dim, index, Scalar::Int(0)));
    /// `input` with `src` added along a dimension where `index` points.
    [hidden, linear] fn scatter_added(input, src; dim: i64, index: Tensor) -> y {
        let made = mode::with_grad(false, || scatter_into(input, src, dim, index.clone(), Put::Add))?;
        let body = made.body().clone();
        Ok(body)
    }
    input: |g| g;
    src: |g, dim, index| g.then(|t| gather(&t, dim, index));
    /// `input` with the slices of `source` where `index` points.
    [hidden, linear] fn index_copied(input, source; dim: i64, index: Tensor) -> y {
        let out = duplicate(&input.body())?;
        copy_slices(&out, &source.body(), dim, &index)?;
        Ok(out)
    }
    input: |g, dim, index| g.then(|t| index_fill_number(&t, dim, index, Scalar::Int(0)));
    source: |g, at, dim, index; source| g.then(|t| reshape(&index_select(&t, dim, index)?, &at.shape));
}

mod more {
    use super::*;

    /// `src` as a tensor: a number is stretched over the index.
    fn source(input: &Tensor, index: &Tensor, src: Value) -> Result<Tensor> {
        match src {
            Value::Tensor(t) => Ok(t),
            Value::Scalar(s) => {
                crate::ops::view::expand(&number_like(input, s)?, crate::ops::view::ints(&index.shape()))
            }
        }
    }

    compose! { "index";
        /// Elements picked along a dimension; without one, from the flattened tensor.
        [out] fn take_along_dim(input: Tensor, indices: Tensor, dim: Option<i64> = None) -> Tensor {
            let Some(dim) = dim else {
                let n = (input.numel(), indices.numel());
                return gather(&reshape(&input, &[n.0])?, 0, reshape(&indices, &[n.1])?);
            };
            if indices.dtype() != DType::I64 {
                return Err(Error::runtime(format!(
                    "torch.take_along_dim(): dtype of indices should be Long but got {}", indices.dtype().scalar_name()
                )));
            }
            if input.ndim() == 0 {
                return Err(Error::index(format!("Dimension specified as {} but tensor has no dimensions", dim.max(0))));
            }
            let at = wrap_dim(dim, input.ndim())?;
            if input.ndim() != indices.ndim() {
                return Err(Error::runtime(format!(
                    "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} \
                     dimensions for input, and {} dimensions for indices", input.ndim(), indices.ndim()
                )));
            }
            let both = |mut own: Dims, other: Dims| -> Result<Dims> {
                let mut other = other;
                if let Some(n) = other.get_mut(at) {
                    *n = 1;
                    let keep = std::mem::replace(&mut own[at], 1);
                    let mut wide = crate::base::broadcast(&own, &other)?;
                    wide[at] = keep;
                    return Ok(wide);
                }
                Ok(own)
            };
            let from = crate::ops::view::expand(&input, crate::ops::view::ints(&both(input.shape(), indices.shape())?))?;
            let by = crate::ops::view::expand(&indices, crate::ops::view::ints(&both(indices.shape(), input.shape())?))?;
            // Counted from the end too, and around.
            let by = a::remainder(&by, input.shape()[at].max(1) as i64)?;
            gather(&from, at as i64, by)
        }
        /// `src` (or one number) put along a dimension where `index` points.
        [inplace, out] fn scatter(input: Tensor, dim: i64, index: Tensor, src: Option<Value> = None, value: Option<Scalar> = None, reduce: Option<String> = None) -> Tensor {
            let Some(given) = src.or(value.map(Value::Scalar)) else {
                return Err(Error::type_error("scatter() missing required argument: 'src'"));
            };
            let how = match reduce.as_deref() {
                None => {
                    return match given {
                        Value::Scalar(s) => scatter_number(&input, dim, index, s),
                        Value::Tensor(src) => scatter_into(&input, &src, dim, index, Put::Assign),
                    };
                }
                Some("add") => Put::Add,
                Some("multiply") => Put::Mul,
                Some(_) => return Err(Error::runtime("reduce argument must be either add or multiply.")),
            };
            if matches!(given, Value::Tensor(_)) {
                static TOLD: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
                crate::base::caution_once(
                    &TOLD,
                    "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future PyTorch \
                     release. Use torch.scatter_reduce instead for more reduction options.",
                )?;
            }
            let src = source(&input, &index, given)?;
            scatter_into(&input, &src, dim, index, how)
        }
        /// `src` added along a dimension where `index` points.
        [inplace, out] fn scatter_add(input: Tensor, dim: i64, index: Tensor, src: Tensor) -> Tensor {
            scatter_added(&input, &src, dim, index)
        }
        /// The slices of `source`, times `alpha`, added where `index` points.
        [inplace, out] fn index_add(input: Tensor, dim: i64, index: Tensor, source: Tensor, alpha: Scalar = Scalar::Int(1)) -> Tensor {
            check_slices("index_add_", &input.body(), &source.body(), dim, &index)?;
            crate::ops::index::index_add_scaled(&input, &source, dim, index, alpha)
        }
        /// `input` with the slices of `source` where `index` points.
        [inplace, out] fn index_copy(input: Tensor, dim: i64, index: Tensor, source: Tensor) -> Tensor {
            index_copied(&input, &source, dim, index)
        }
        /// `input` with one number in the slices that `index` names.
        [inplace] fn index_fill(input: Tensor, dim: i64, index: Tensor, value: Value) -> Tensor {
            match value {
                Value::Tensor(t) if t.is_batched() && t.ndim() == 0 => return index_fill_tensor(&input, &t, dim, index),
                _ => {}
            }
            let given = number("index_fill_", &value)?;
            match value {
                Value::Tensor(t) if t.requires_grad() || t.is_special() => index_fill_tensor(&input, &t, dim, index),
                _ => index_fill_number(&input, dim, index, given),
            }
        }
        /// `input` with `values` where the index tensors point.
        [inplace] fn index_put_(input: Tensor, indices: Vec<Tensor>, values: Tensor, accumulate: bool = false) -> Tensor {
            if indices.is_empty() {
                return Err(Error::index("At least one index should be provided"));
            }
            let mut by = Vec::new();
            for index in indices {
                let dim = by.len();
                by.extend(crate::ops::index::expand_masks(&input, dim, index)?.into_iter().map(Some));
            }
            if by.len() > input.ndim() {
                return Err(Error::index(format!("too many indices for tensor of dimension {} (got {})", input.ndim(), by.len())));
            }
            crate::ops::advanced::check_places(&input, &by)?;
            if values.dtype() != input.dtype() {
                return Err(Error::runtime(format!(
                    "Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
                    input.dtype().scalar_name(), values.dtype().scalar_name()
                )));
            }
            index_put(&input, &by, &crate::ops::devices::beside(&values, &input)?, accumulate)
        }
        /// `input` with `value` where the mask is true.
        [inplace] fn masked_fill(input: Tensor, mask: Tensor, value: Value) -> Tensor {
            match value {
                Value::Scalar(s) => {
                    check_mask("masked_fill_", &mask)?;
                    crate::ops::kernel::holds(input.dtype(), s)?;
                    masked_fill_number(&input, mask, s)
                }
                Value::Tensor(t) if t.ndim() > 0 => Err(Error::runtime(format!(
                    "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).", t.ndim()
                ))),
                Value::Tensor(t) => {
                    if t.device().is_cpu() && !t.is_batched() {
                        crate::ops::kernel::holds(input.dtype(), t.item()?)?;
                    }
                    masked_fill_tensor(&input, &crate::ops::devices::beside(&t, &input)?, mask)
                }
            }
        }
        /// `input` with the elements of `source`, in order, where the mask is true.
        [inplace] fn masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor {
            check_mask("masked_scatter_", &mask)?;
            let shape = crate::base::broadcast(&input.shape(), &mask.shape())?;
            if shape.is_empty() && crate::ops::batch::any(&[&input, &mask, &source]) {
                let line = masked_scatter(reshape(&input, &[1])?, reshape(&mask, &[1])?, source)?;
                return reshape(&line, &[]);
            }
            let sizes = crate::ops::view::ints(&shape);
            let wide = |t: Tensor| if t.shape() == shape { Ok(t) } else { crate::ops::view::expand(&t, sizes.clone()) };
            let (input, mask) = (wide(input)?, wide(mask)?);
            if mask.is_batched() {
                return crate::ops::batch::masked_scatter(&input, &mask, &source);
            }
            if source.dtype() != input.dtype() {
                return Err(Error::runtime(format!(
                    "masked_scatter: expected self and source to have same dtypes but got{} and {}",
                    input.dtype().scalar_name(), source.dtype().scalar_name()
                )));
            }
            let count = crate::ops::reduce::Sum::call(&mask)?.item()?.as_i64() as usize;
            if source.numel() < count {
                return Err(Error::runtime("Number of elements of source < number of ones in mask"));
            }
            if crate::ops::batch::any(&[&input, &source]) {
                return put_masked(&input, &mask, &source);
            }
            masked_scattered(&input, &source, mask)
        }
        /// `input` as one line with the elements of `source` where `index` points.
        [inplace] fn put_(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = false) -> Tensor {
            check_line("put_", &index, &input.body())?;
            if index.numel() != source.numel() {
                return Err(Error::runtime(format!(
                    "put_(): Expected source and index to have the same number of elements, but got source.numel() = {}, \
                     index.numel() = {}", source.numel(), index.numel()
                )));
            }
            if crate::ops::batch::any(&[&input, &index, &source]) {
                return put_line(&input, &index, &source, accumulate);
            }
            put_in(&input, &source, index, accumulate)
        }
    }
}
pub use more::{COMPOSED, index_fill, masked_fill};
