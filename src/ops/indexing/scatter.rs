//! Operators that put values where an index or a mask points.

use crate::base::{Put, broadcast, caution_once, numel};
use crate::operator::devices;
use crate::operator::inplace;
use crate::operator::inplace::warn_stretched;
use crate::operator::kernel::{copy, duplicate, holds};
use crate::operator::pointwise::{Operand, check_writable};
use crate::operator::prelude::*;
use crate::ops::creation::create;
use crate::ops::elementwise::arithmetic as a;
use crate::ops::indexing::advanced;
use crate::ops::indexing::index::{
    By, IndexAdd, IndexSelect, Scatter, ScatterAdd, along, check_vector, down, expand_masks, from_lines,
    gather, get, on_lines, placed, put as put_by, size_and_stride, spread_positions,
};
use crate::ops::indexing::slice_checks::check_slices;
use crate::ops::reduction::reduce::{Sum, quietly};
use crate::ops::shape::view;
use crate::ops::shape::view::{View, expand, reshape};
use crate::tensor::mode;
use crate::transforms::vmap;
use smallvec::smallvec;
use std::sync::atomic::AtomicBool;

/// A tensor of one number, of the dtype and on the device of another.
fn number_like(t: &Tensor, value: Scalar) -> Result<Tensor> {
    create::full(&[], value, t.dtype(), t.device())
}

/// The value of a 0-d tensor or number.
fn number(op: &str, value: &Value) -> Result<Scalar> {
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
    broadcast(&mask.shape(), &input.shape())?;
    let made = mode::with_grad(false, || {
        let chosen = crate::operator::pointwise::apply(&a::choose::ROW, &[value, input.into(), mask.into()])?;
        dense(create::to_dtype(&chosen, input.dtype())?)
    })?;
    let body = made.body();
    Ok(body.with_layout(Layout::contiguous(body.shape())))
}

/// `out` with one number in the slices across `dim` that the vector `index` names.
fn fill_slices(out: &Body, dim: i64, index: &Tensor, value: Scalar) -> Result<()> {
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
    put_by(
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

fn check_fill_index(index: &Tensor) -> Result<()> {
    if index.dtype() == DType::I64 {
        Ok(())
    } else {
        Err(Error::index("index_fill_(): Expected dtype int64 for index."))
    }
}

/// The slices of `from` put across `dim` of `out` where `index` points.
fn copy_slices(out: &Body, from: &Body, dim: i64, index: &Tensor) -> Result<()> {
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
    put_by(
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
    let Fault::Beyond { index: Some((index, _)), .. } = error.fault() else { return error };
    Error::index(format!("out of range: tried to access index {index} on a tensor of {size} elements."))
}

/// The line that `put_` sees, with `values` put where the index points.
fn put_line(out: &Body, index: &Tensor, values: &Tensor, accumulate: bool) -> Result<()> {
    let whole = line(out)?;
    let values = reshape(values, &index.shape())?;
    advanced::write(&whole, &[Some(index.clone())], &values, accumulate)?;
    if whole.storage.same(&out.storage) { Ok(()) } else { copy(out, &with_shape(whole, out.shape())) }
}

/// A copy of `input` with the first values where the mask is true.
fn put_masked(input: &Tensor, mask: &Tensor, values: &Tensor) -> Result<Tensor> {
    if mask.ndim() == 0 {
        return reshape(&put_masked(&reshape(input, &[1])?, &reshape(mask, &[1])?, values)?, &[]);
    }
    let places: Vec<_> = crate::ops::sorting::sort::nonzero_columns(mask)?.into_iter().map(Some).collect();
    let count = places[0].as_ref().map_or(0, Tensor::numel) as i64;
    let first = view::narrow(&reshape(values, &[values.numel()])?, 0, 0, count)?;
    // PyTorch copies what it fills into a dense tensor.
    advanced::index_put(&crate::ops::shape::rearrange::contiguous(input, None)?, &places, &first, false)
}

/// `x` where the mask is false, `value` where it is true, in the dtype of `x`: for samples.
fn masked(x: &Tensor, mask: &Tensor, value: Operand) -> Result<Tensor> {
    broadcast(&mask.shape(), &x.shape())?;
    let chosen = crate::operator::pointwise::apply(&a::choose::ROW, &[value, x.into(), mask.into()])?;
    create::to_dtype(&chosen, x.dtype())
}

#[primitive(tangent = linear)]
impl Take {
    fn forward(input: &Tensor, index: &Tensor) -> Result<Body> {
        let body = input.body();
        check_line("take", index, &body)?;
        let (from, by) = (line(&body)?, index.body());
        let out = Body::new(by.shape(), body.dtype, body.device())?;
        if out.numel() > 0 {
            let still = Layout {
                shape: Dims::from_slice(by.shape()),
                strides: smallvec![0; by.layout.ndim()],
                offset: from.layout.offset,
            };
            let by = By { index: &by, size: from.numel(), stride: 1, dim: 0 };
            get("take", &out, &from.with_layout(still), &[by], true)
                .map_err(|error| beyond(error, from.numel()))?;
        }
        Ok(out)
    }
    fn d_input(g: &Tensor, at: Meta, index: &Tensor, input: Unread) -> Result<Tensor> {
        let Unread = input;
        let zeros = create::zeros(&at.shape, at.dtype, at.device)?;
        PutAt::call(&zeros, index, g, true)
    }
    fn batch(b: &Batch, input: &Tensor, index: &Tensor) -> Result<Tensor> {
        let line = b.k() as i64;
        let flat = reshape(&b.full(input)?, &b.shape(&[input.numel()]))?;
        let n = input.numel().max(1) as i64;
        let made = if index.is_batched() {
            let by = reshape(&b.full(index)?, &b.shape(&[index.numel()]))?;
            gather(&flat, line, &a::remainder(&by, n)?)?
        } else {
            IndexSelect::call(&flat, line, &a::remainder(&reshape(index, &[index.numel()])?, n)?)?
        };
        Ok(b.wrap(reshape(&made, &b.shape(&index.shape()))?))
    }
}

/// Elements picked by number, as if `input` were one line.
#[operator(
    function,
    method,
    out(
        message = "take(): self and out expected to have the same dtype, but got self.dtype = {result} and out.dtype = {target}",
        apart
    ),
    sample = "fixed([(2, 3)], lambda x: x.take(T.tensor([5, 0, 0], device=x.device)))"
)]
pub fn take(input: &Tensor, index: &Tensor) -> Result<Tensor> {
    Take::call(input, index)
}

/// Elements picked along a dimension; without one, from the flattened tensor.
#[operator(
    function,
    method,
    composite,
    out(declared, called = "gather"),
    sample = "indexed(lambda x, dim, i: x.gather(dim, i))"
)]
pub fn take_along_dim(input: &Tensor, indices: &Tensor, dim: Option<i64>) -> Result<Tensor> {
    let Some(dim) = dim else {
        let n = (input.numel(), indices.numel());
        return gather(&reshape(input, &[n.0])?, 0, &reshape(indices, &[n.1])?);
    };
    if indices.dtype() != DType::I64 {
        return Err(Error::runtime(format!(
            "torch.take_along_dim(): dtype of indices should be Long but got {}",
            indices.dtype().scalar_name()
        )));
    }
    if input.ndim() == 0 {
        return Err(Error::index(format!(
            "Dimension specified as {} but tensor has no dimensions",
            dim.max(0)
        )));
    }
    let at = wrap_dim(dim, input.ndim())?;
    if input.ndim() != indices.ndim() {
        return Err(Error::runtime(format!(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} \
             dimensions for input, and {} dimensions for indices",
            input.ndim(),
            indices.ndim()
        )));
    }
    // Each has its own size along the dimension, and both have one shape beside it.
    let stretched = |t: &Tensor, other: &Tensor| {
        let (mut own, mut beside) = (t.shape(), other.shape());
        let size = std::mem::replace(&mut own[at], 1);
        beside[at] = 1;
        let mut wide = broadcast(&own, &beside)?;
        wide[at] = size;
        expand(t, view::ints(&wide))
    };
    let (from, by) = (stretched(input, indices)?, stretched(indices, input)?);
    // Counted from the end too, and around.
    let by = a::remainder(&by, input.shape()[at].max(1) as i64)?;
    gather(&from, at as i64, &by)
}

/// `input` with one number along a dimension where `index` points.
#[primitive(dense)]
impl Scatter1 {
    fn check(input: &Body, dim: i64, index: &Tensor, value: Scalar) -> Result<()> {
        let src = stretched_number(input, index, value)?;
        Scatter::check(input, dim, index, &src, Put::Assign)
    }
    fn write(input: &Body, dim: i64, index: &Tensor, value: Scalar) -> Result<()> {
        Scatter::write(input, dim, index, &stretched_number(input, index, value)?, Put::Assign)
    }
    fn d_input(g: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
        Scatter1::call(g, dim, index, Scalar::Int(0))
    }
    fn batch(b: &Batch, input: &Tensor, dim: i64, index: &Tensor, value: Scalar) -> Result<Tensor> {
        let made = on_lines(b, input, &[index], dim, |x, by, at| Scatter1::call(x, at, &by[0], value))?;
        from_lines(b, made, input)
    }
}

/// One number for every index.
fn stretched_number(like: &Body, index: &Tensor, value: Scalar) -> Result<Tensor> {
    let number = create::full(&[], value, like.dtype, like.device())?;
    let body = number.body();
    Ok(Tensor::new(body.with_layout(body.layout.broadcast_to(&index.shape()))))
}

/// What `scatter` is to put, and how.
fn scattered(
    input: &Tensor,
    index: &Tensor,
    (src, value): (Option<Value>, Option<Scalar>),
    reduce: Option<&str>,
) -> Result<(Value, Put)> {
    let Some(given) = src.or(value.map(Value::Scalar)) else {
        return Err(Error::type_error("scatter() missing required argument: 'src'"));
    };
    let how = match reduce {
        None => return Ok((given, Put::Assign)),
        Some("add") => Put::Add,
        Some("multiply") => Put::Mul,
        Some(_) => return Err(Error::runtime("reduce argument must be either add or multiply.")),
    };
    Ok(match given {
        Value::Scalar(number) => (Value::Tensor(stretched_number(&input.body(), index, number)?), how),
        Value::Tensor(src) => {
            static TOLD: AtomicBool = AtomicBool::new(false);
            caution_once(
                &TOLD,
                "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future PyTorch \
                 release. Use torch.scatter_reduce instead for more reduction options.",
            )?;
            (Value::Tensor(src), how)
        }
    })
}

/// `src` (or one number) put along a dimension where `index` points.
#[operator(
    function,
    method,
    out(declared, called = "aten::scatter"),
    overloads((3, 3), (4, 4), (3, 3), (4, 4)),
    sample = "scattered()"
)]
pub fn scatter(
    input: &Tensor,
    dim: i64,
    index: &Tensor,
    src: Option<Value>,
    value: Option<Scalar>,
    reduce: Option<String>,
) -> Result<Tensor> {
    match scattered(input, index, (src, value), reduce.as_deref())? {
        (Value::Scalar(number), _) => Scatter1::call(input, dim, index, number),
        (Value::Tensor(src), how) => Scatter::call(input, dim, index, &src, how),
    }
}

/// The same, written over `input`.
#[inplace(scatter, aten(src, value), overloads((3, 3), (4, 4), (3, 3), (4, 4)))]
pub fn scatter_(
    input: &Tensor,
    dim: i64,
    index: &Tensor,
    src: Option<Value>,
    value: Option<Scalar>,
    reduce: Option<String>,
) -> Result<()> {
    match scattered(input, index, (src, value), reduce.as_deref())? {
        (Value::Scalar(number), _) => Scatter1::over(input, dim, index, number),
        (Value::Tensor(src), how) => Scatter::over(input, dim, index, &src, how),
    }
}

/// `src` added along a dimension where `index` points.
#[operator(
    function,
    method,
    out(declared),
    sample = "indexed(named(name), lambda draw, where: [values(where, draw(SEEDS))])"
)]
pub fn scatter_add(input: &Tensor, dim: i64, index: &Tensor, src: &Tensor) -> Result<Tensor> {
    ScatterAdd::call(input, dim, index, src)
}

/// The same, written over `input`.
#[inplace(scatter_add)]
pub fn scatter_add_(input: &Tensor, dim: i64, index: &Tensor, src: &Tensor) -> Result<()> {
    ScatterAdd::over(input, dim, index, src)
}

/// The slices of `source`, times `alpha`, added where `index` points.
#[operator(
    function,
    method,
    out(declared),
    sample = "listed(named(name), lambda draw, shape, dim, n: [values(replaced(shape, dim, n), draw(SEEDS))])"
)]
pub fn index_add(
    input: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
    #[default(Scalar::Int(1))] alpha: Scalar,
) -> Result<Tensor> {
    check_slices("index_add_", &input.body(), &source.body(), dim, index)?;
    IndexAdd::call(input, dim, index, source, alpha)
}

/// The same, written over `input`.
#[inplace(index_add)]
pub fn index_add_(
    input: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
    #[default(Scalar::Int(1))] alpha: Scalar,
) -> Result<()> {
    IndexAdd::over(input, dim, index, source, alpha)
}

#[primitive(tangent = linear, dense, shows(source_dim = ndim(source)))]
impl IndexCopy {
    /// Before the numbers of indices are compared, it is asked what may be written.
    fn check(input: &Body, dim: i64, _: &Tensor, _: &Tensor) -> Result<()> {
        wrap_dim(dim, input.layout.ndim())?;
        check_writable(input)
    }
    fn write(input: &Body, dim: i64, index: &Tensor, source: &Tensor) -> Result<()> {
        copy_slices(input, &source.body(), dim, index)
    }
    fn d_input(g: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
        IndexFill0::call(g, dim, index, Scalar::Int(0))
    }
    fn d_source(g: &Tensor, at: Meta, dim: i64, index: &Tensor, source: Unread) -> Result<Tensor> {
        let Unread = source;
        reshape(&IndexSelect::call(g, dim, index)?, &at.shape)
    }
    fn batch(b: &Batch, input: &Tensor, dim: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        placed(b, input, dim, index, source, Put::Assign)
    }
}

/// `input` with the slices of `source` where `index` points.
#[operator(
    function,
    method,
    out(declared),
    sample = "fixed([(3, 2), (2, 2)], lambda x, y: T.index_copy(x, 0, T.tensor([2, 0], device=x.device), y))"
)]
pub fn index_copy(input: &Tensor, dim: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
    IndexCopy::call(input, dim, index, source)
}

/// The same, written over `input`.
#[inplace(index_copy)]
pub fn index_copy_(input: &Tensor, dim: i64, index: &Tensor, source: &Tensor) -> Result<()> {
    IndexCopy::over(input, dim, index, source)
}

/// Warns of `x[indices] = tensor` where elements of `x` share memory.
pub fn warn_put(target: &Tensor) -> Result<()> {
    warn_stretched(target, "index_put", "tensor[indices] = tensor")
}

/// Warns of `x[mask] = number` where elements of `x` share memory.
pub fn warn_fill(target: &Tensor) -> Result<()> {
    warn_stretched(target, "masked_fill", "tensor[mask] = scalar")
}

/// `input` with one number in the slices that `index` names.
#[primitive]
impl IndexFill0 {
    fn check(_: &Body, _: i64, index: &Tensor, _: Scalar) -> Result<()> {
        check_fill_index(index)
    }
    fn write(input: &Body, dim: i64, index: &Tensor, value: Scalar) -> Result<()> {
        fill_slices(input, dim, index, value)
    }
    fn d_input(g: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
        IndexFill0::call(g, dim, index, Scalar::Int(0))
    }
    fn batch(b: &Batch, input: &Tensor, dim: i64, index: &Tensor, value: Scalar) -> Result<Tensor> {
        check_vector("index_fill", index)?;
        let made = on_lines(b, input, &[], dim, |x, _, at| {
            if !index.is_batched() {
                return IndexFill0::call(x, at, index, value);
            }
            // Negative positions count from the end.
            let by = spread_positions(b, index, at, &x.shape())?;
            Scatter1::call(x, at, &a::remainder(&by, x.shape()[at as usize] as i64)?, value)
        })?;
        from_lines(b, made, input)
    }
}

/// `input` with a 0-d tensor's value in the slices that `index` names.
#[primitive(devices = any)]
impl IndexFill1 {
    fn check(_: &Body, _: i64, index: &Tensor, _: &Tensor) -> Result<()> {
        check_fill_index(index)
    }
    fn write(input: &Body, dim: i64, index: &Tensor, #[overlaps] value: &Tensor) -> Result<()> {
        fill_slices(input, dim, index, value.item()?)
    }
    fn d_input(g: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
        IndexFill0::call(g, dim, index, Scalar::Int(0))
    }
    fn d_value(g: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
        // Once for each place, however often the index names it.
        Sum::call(&a::sub(g, &IndexFill0::call(g, dim, index, Scalar::Int(0))?)?)
    }
    fn batch(_b: &Batch, input: &Tensor, dim: i64, index: &Tensor, value: &Tensor) -> Result<Tensor> {
        let zeros = create::zeros(&input.shape(), DType::F32, input.device())?;
        let hit = IndexFill0::call(&zeros, dim, index, Scalar::Int(1))?;
        masked(input, &a::ne(&hit, 0i64)?, value.into())
    }
}

/// `input` with one number in the slices that `index` names.
#[operator(
    function,
    method,
    overloads((3, 3), (3, 3)),
    sample = "listed(lambda x, dim, i: T.index_fill(x, dim, i, 2.0))"
)]
pub fn index_fill(input: &Tensor, dim: i64, index: &Tensor, #[elsewhere] value: Value) -> Result<Tensor> {
    match as_recorded("index_fill_", value)? {
        Value::Tensor(value) => IndexFill1::call(input, dim, index, &value),
        Value::Scalar(value) => IndexFill0::call(input, dim, index, value),
    }
}

/// The same, written over `input`.
#[inplace(index_fill, aten(int_Tensor, int_Scalar), overloads((3, 3), (3, 3)))]
pub fn index_fill_(input: &Tensor, dim: i64, index: &Tensor, #[elsewhere] value: Value) -> Result<()> {
    warn_stretched(input, "index_fill", "tensor[mask] = scalar")?;
    match as_recorded("index_fill_", value)? {
        Value::Tensor(value) => IndexFill1::over(input, dim, index, &value),
        Value::Scalar(value) => IndexFill0::over(input, dim, index, value),
    }
}

/// A 0-d tensor that is no more than its number becomes that.
fn as_recorded(op: &str, value: Value) -> Result<Value> {
    match value {
        Value::Tensor(t) if t.ndim() == 0 && (t.is_special() || t.requires_grad()) => Ok(Value::Tensor(t)),
        value => number(op, &value).map(Value::Scalar),
    }
}

fn too_many(input: &Tensor, count: usize) -> Error {
    Error::index(format!("too many indices for tensor of dimension {} (got {count})", input.ndim()))
}

/// The places that index tensors and masks name, which have to go with `input` and `values`.
fn places(input: &Tensor, indices: &[Tensor], values: &Tensor) -> Result<(Vec<Option<Tensor>>, Tensor)> {
    if indices.is_empty() {
        return Err(Error::index("At least one index should be provided"));
    }
    if indices.len() > input.ndim() {
        return Err(too_many(input, indices.len()));
    }
    let mut by = Vec::new();
    for index in indices {
        by.extend(expand_masks(input, by.len(), index.clone())?.into_iter().map(Some));
    }
    if by.len() > input.ndim() {
        return Err(too_many(input, by.len()));
    }
    if by.is_empty() {
        return Err(Error::index("index_put: masks without dimensions name no elements"));
    }
    advanced::check_places(input, &by)?;
    if values.dtype() != input.dtype() {
        return Err(Error::runtime(format!(
            "Index put requires the source and destination dtypes match, got {} for the destination and {} for the source.",
            input.dtype().scalar_name(),
            values.dtype().scalar_name()
        )));
    }
    Ok((by, devices::beside(values, input)?))
}

/// `input` with `values` where the index tensors point.
#[operator(
    function,
    method,
    sample = "fixed([(3, 2), (2,)], lambda x, v: x.index_put((T.tensor([2, 0], device=x.device),), v))"
)]
pub fn index_put(
    input: &Tensor,
    #[elsewhere] indices: &[Tensor],
    #[elsewhere] values: &Tensor,
    #[default(false)] accumulate: bool,
) -> Result<Tensor> {
    let (by, values) = places(input, indices, values)?;
    advanced::index_put(input, &by, &values, accumulate)
}

/// The same, written over `input`.
#[inplace(index_put)]
pub fn index_put_(
    input: &Tensor,
    #[elsewhere] indices: &[Tensor],
    #[elsewhere] values: &Tensor,
    #[default(false)] accumulate: bool,
) -> Result<()> {
    warn_put(input)?;
    inplace::check(input, [values])?;
    let (by, values) = places(input, indices, values)?;
    advanced::index_put_into(input, input, &by, &values, accumulate)
}

/// `input` with one number where the mask is true.
#[primitive]
impl MaskedFill0 {
    fn forward(input: &Tensor, mask: &Tensor, value: Scalar) -> Result<Body> {
        holds(input.dtype(), value)?;
        filled_at(input, mask, value.into())
    }
    fn d_input(g: &Tensor, mask: &Tensor) -> Result<Tensor> {
        MaskedFill0::call(g, mask, Scalar::Int(0))
    }
    fn batch(_b: &Batch, input: &Tensor, mask: &Tensor, value: Scalar) -> Result<Tensor> {
        masked(input, mask, value.into())
    }
}

/// `input` with a 0-d tensor's value where the mask is true.
#[primitive]
impl MaskedFill1 {
    fn forward(input: &Tensor, mask: &Tensor, value: &Tensor) -> Result<Body> {
        filled_at(input, mask, value.into())
    }
    fn d_input(g: &Tensor, mask: &Tensor) -> Result<Tensor> {
        MaskedFill0::call(g, mask, Scalar::Int(0))
    }
    fn d_value(g: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let zero = number_like(g, Scalar::Int(0))?;
        let hit =
            crate::operator::pointwise::apply(&a::choose::ROW, &[g.into(), (&zero).into(), mask.into()])?;
        Sum::call(&hit)
    }
    fn batch(_b: &Batch, input: &Tensor, mask: &Tensor, value: &Tensor) -> Result<Tensor> {
        masked(input, mask, value.into())
    }
}

/// `input` with `value` where the mask is true.
#[operator(
    function,
    method,
    overloads((2, 2), (2, 2)),
    sample = "masked(lambda x, m: x.masked_fill(m, 1.5))"
)]
pub fn masked_fill(input: &Tensor, mask: &Tensor, #[elsewhere] value: Value) -> Result<Tensor> {
    match value {
        Value::Scalar(value) => {
            check_mask("masked_fill_", mask)?;
            MaskedFill0::call(input, mask, value)
        }
        Value::Tensor(value) if value.ndim() > 0 => Err(Error::runtime(format!(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
            value.ndim()
        ))),
        Value::Tensor(value) => {
            if value.device().is_cpu() && !value.is_batched() {
                holds(input.dtype(), value.item()?)?;
            }
            MaskedFill1::call(input, mask, &devices::beside(&value, input)?)
        }
    }
}

/// The same, written over `input`.
#[inplace(masked_fill, aten(Tensor, Scalar), overloads((2, 2), (2, 2)))]
pub fn masked_fill_(input: &Tensor, mask: &Tensor, #[elsewhere] value: Value) -> Result<()> {
    warn_fill(input)?;
    let given: Vec<&Tensor> =
        [mask].into_iter().chain(if let Value::Tensor(t) = &value { Some(t) } else { None }).collect();
    inplace::by_result(
        input,
        &given,
        |input| masked_fill(input, mask, value.clone()),
        |body, made| {
            if !body.layout.is_stretched() {
                return copy(body, made);
            }
            // Element after element.
            let value = create::full(&[], number("masked_fill_", &value)?, body.dtype, body.device())?;
            let mask = expand(mask, view::ints(body.shape()))?;
            let places: Vec<_> =
                expand_masks(&Tensor::new(body.clone()), 0, mask)?.into_iter().map(Some).collect();
            advanced::write(body, &places, &value, false)
        },
    )
}

#[primitive(tangent = linear, batch = none, shows(source_sym_sizes = sizes(source)))]
impl MaskedScatter {
    fn forward(input: &Tensor, mask: &Tensor, source: &Tensor) -> Result<Body> {
        quietly(|| put_masked(input, mask, source))
    }
    fn d_input(g: &Tensor, mask: &Tensor) -> Result<Tensor> {
        MaskedFill0::call(g, mask, Scalar::Int(0))
    }
    fn d_source(g: &Tensor, at: Meta, mask: &Tensor) -> Result<Tensor> {
        let picked = crate::ops::sorting::sort::MaskedSelect::call(g, mask)?;
        let zeros = create::zeros(&[numel(&at.shape) - picked.numel()], at.dtype, at.device)?;
        reshape(&crate::ops::shape::join::cat(&[picked, zeros], 0)?, &at.shape)
    }
}

/// `input` with the elements of `source`, in order, where the mask is true.
#[operator(
    function,
    method,
    sample = "fixed([(2, 3), (4,)], lambda x, y: T.masked_scatter(x, T.tensor([True, False, True], device=x.device), y))"
)]
pub fn masked_scatter(input: &Tensor, mask: &Tensor, source: &Tensor) -> Result<Tensor> {
    check_mask("masked_scatter_", mask)?;
    let shape = broadcast(&input.shape(), &mask.shape())?;
    if shape.is_empty() && vmap::any(&[input, mask, source]) {
        return reshape(&masked_scatter(&reshape(input, &[1])?, &reshape(mask, &[1])?, source)?, &[]);
    }
    let sizes = view::ints(&shape);
    let wide = |t: &Tensor| if t.shape() == shape { Ok(t.clone()) } else { expand(t, sizes.clone()) };
    let (input, mask) = (wide(input)?, wide(mask)?);
    if mask.is_batched() {
        return vmap::masked_scatter(&input, &mask, source);
    }
    if source.dtype() != input.dtype() {
        return Err(Error::runtime(format!(
            "masked_scatter: expected self and source to have same dtypes but got{} and {}",
            input.dtype().scalar_name(),
            source.dtype().scalar_name()
        )));
    }
    let count = Sum::call(&mask)?.item()?.as_i64() as usize;
    if source.numel() < count {
        return Err(Error::runtime("Number of elements of source < number of ones in mask"));
    }
    if vmap::any(&[&input, source]) {
        return put_masked(&input, &mask, source);
    }
    MaskedScatter::call(&input, &mask, source)
}

/// The same, written over `input`.
#[inplace(masked_scatter)]
pub fn masked_scatter_(input: &Tensor, mask: &Tensor, source: &Tensor) -> Result<()> {
    let live = reads_itself(input, source);
    inplace::by_result(
        input,
        &[mask, source],
        |input| masked_scatter(input, mask, source),
        |body, made| {
            check_writable(body)?;
            if live { scatter_live(body, mask, source) } else { copy(body, made) }
        },
    )
}

/// Whether `masked_scatter_` takes its elements, in order, from the memory that it writes. (It copies what is not in order.)
fn reads_itself(target: &Tensor, source: &Tensor) -> bool {
    if target.is_special() || !target.device().is_cpu() {
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
fn scatter_live(out: &Body, mask: &Tensor, source: &Tensor) -> Result<()> {
    let (mask, source) = (mask.body(), source.body());
    let mask = mask.with_layout(mask.layout.broadcast_to(out.shape()));
    let next = source.host()?.ptr;
    // SAFETY: the result was computed: the shapes fit, and the source has elements enough.
    unsafe { crate::cpu::index::put_masked(out.host()?, mask.host()?, next) };
    Ok(())
}

/// `input` as one line with the elements of `source` where `index` points.
#[primitive(node = "PutBackward0", tangent = linear, dense)]
impl PutAt {
    fn check(input: &Body, index: &Tensor, source: &Tensor, _: bool) -> Result<()> {
        check_line("put_", index, input)?;
        if index.numel() != source.numel() {
            return Err(Error::runtime(format!(
                "put_(): Expected source and index to have the same number of elements, but got source.numel() = {}, \
                 index.numel() = {}",
                source.numel(),
                index.numel()
            )));
        }
        check_writable(input)
    }
    fn write(input: &Body, index: &Tensor, source: &Tensor, accumulate: bool) -> Result<()> {
        put_line(input, index, source, accumulate)
    }
    fn d_input(g: &Tensor, index: &Tensor, accumulate: bool) -> Result<Tensor> {
        if accumulate {
            return Ok(g.clone());
        }
        let zeros = create::zeros(&index.shape(), g.dtype(), g.device())?;
        PutAt::call(g, index, &zeros, false)
    }
    fn d_source(g: &Tensor, at: Meta, index: &Tensor, source: Unread) -> Result<Tensor> {
        let Unread = source;
        reshape(&Take::call(g, index)?, &at.shape)
    }
    fn batch(b: &Batch, input: &Tensor, index: &Tensor, source: &Tensor, accumulate: bool) -> Result<Tensor> {
        let (shape, n) = (input.shape(), input.numel());
        let flat = b.wrap(reshape(&b.full(input)?, &b.shape(&[n]))?);
        let line = a::remainder(&reshape(index, &[index.numel()])?, n.max(1) as i64)?;
        let source = reshape(source, &[index.numel()])?;
        let how = if accumulate { Put::Add } else { Put::Assign };
        View::call(&placed(b, &flat, 0, &line, &source, how)?, shape)
    }
}

/// `input` as one line with the elements of `source` where `index` points.
#[operator(
    function,
    method,
    sample = "fixed([(2, 3), (2,)], lambda x, y: T.put(x, T.tensor([5, 1], device=x.device), y))"
)]
pub fn put(
    input: &Tensor,
    index: &Tensor,
    source: &Tensor,
    #[default(false)] accumulate: bool,
) -> Result<Tensor> {
    PutAt::call(input, index, source, accumulate)
}

/// The same, written over `input`.
#[inplace(put)]
pub fn put_(
    input: &Tensor,
    index: &Tensor,
    source: &Tensor,
    #[default(false)] accumulate: bool,
) -> Result<()> {
    PutAt::over(input, index, source, accumulate)
}
