//! Operators that write, add or fill at indices along a dimension: `scatter`, `index_add`, `index_copy`, `index_fill`.

use crate::base::{Put, warn_once};
use crate::operator::bodies::index::{Bounds, By, put as put_by};
use crate::operator::bodies::overlap::check_writable;
use crate::operator::bodies::within;
use crate::operator::inplace::warn_expanded;
use crate::operator::primitives::sums::Sum;
use crate::operator::primitives::views::reshape;
use crate::operator::primitives::{constant, copies};
use crate::ops::elementwise::arithmetic as a;
use crate::ops::indexing::index::{
    Gather, IndexSelect, along, as_line, as_runtime, check_vector, down, from_lines, on_lines,
    size_and_stride, spread_positions,
};
use crate::ops::indexing::masked::fill_samples;
use crate::ops::indexing::slice_checks::{check_index, check_slices};
use crate::ops::prelude::*;
use std::sync::atomic::AtomicBool;

fn check_scattered(out: &Body, src: &Body, dim: i64, index: &Tensor) -> Result<()> {
    check_index(SCATTER.name, index)?;
    let dim = wrap_dim(dim, out.layout.ndim())?;
    if src.dtype != out.dtype {
        return Err(Error::runtime("scatter(): Expected self.dtype to be equal to src.dtype"));
    }
    let (to, from, by) = (as_line(out), as_line(src), as_line(&index.body()));
    if by.numel() == 0 {
        return Ok(());
    }
    let ndim = to.layout.ndim();
    if by.layout.ndim() != ndim {
        return Err(Error::runtime("Index tensor must have the same number of dimensions as self tensor"));
    }
    let mut wrong = (0..ndim).any(|d| d != dim && by.shape()[d] > to.shape()[d]);
    for d in 0..if wrong { 0 } else { ndim } {
        let most =
            if src.layout.ndim() == 0 { 1 } else { from.shape()[wrap_dim(d as i64, src.layout.ndim())?] };
        if by.shape()[d] > most {
            wrong = true;
            break;
        }
    }
    if from.layout.ndim() != ndim {
        return Err(Error::runtime("Index tensor must have the same number of dimensions as src tensor"));
    }
    if wrong {
        return Err(Error::runtime(format!(
            "Expected index {:?} to be no larger than self {:?} apart from dimension {dim} and to be no larger \
             size than src {:?}",
            by.shape(),
            out.shape(),
            from.shape()
        )));
    }
    Ok(())
}

/// Applies a primitive to zeros: in place, unless batched tensors or tangents need new memory.
macro_rules! into_zeros {
    ($at:expr, [$($given:expr),*], $primitive:ident($($argument:expr),*)) => {{
        let zeros = $crate::operator::primitives::constant::zeros(&$at.shape, $at.dtype, $at.device)?;
        if [$($given),*].iter().any(|t| t.is_special()) {
            $primitive::call(&zeros, $($argument),*)
        } else {
            $primitive::over(&zeros, $($argument),*)?;
            Ok(zeros)
        }
    }};
}
pub(crate) use into_zeros;

/// Writes (or adds, …) `src` into `out` along a dimension at `index`.
pub(crate) fn scatter_over(out: &Body, src: &Body, dim: i64, index: &Tensor, how: Put) -> Result<()> {
    let (to, from, by) = (as_line(out), as_line(src), as_line(&index.body()));
    if by.numel() == 0 {
        return Ok(());
    }
    let dim = wrap_dim(dim, out.layout.ndim())?;
    let (size, stride) = size_and_stride(&to, dim);
    let target = to.with_layout(along(&to, dim, by.shape()));
    let mut part = from.layout.clone();
    part.shape = Dims::from_slice(by.shape());
    put_by(
        SCATTER.name,
        &target,
        &from.with_layout(part),
        &[By { index: &by, size, stride, dim }],
        how,
        Bounds::OfElements,
    )
    .map_err(as_runtime)
}

/// Adds slices of `source` to `out` at `index` along a dimension.
pub(crate) fn add_slices(out: &Body, source: &Body, dim: i64, index: &Tensor) -> Result<()> {
    let (to, from, by) = (as_line(out), as_line(source), index.body());
    let dim = wrap_dim(dim, out.layout.ndim())?;
    if from.numel() > 0 && (out.numel() > 0 || out.layout.ndim() < 2) {
        let (size, stride) = size_and_stride(&to, dim);
        let index = by.with_layout(down(&by, dim, from.shape()));
        put_by(
            INDEX_ADD.name,
            &to.with_layout(along(&to, dim, from.shape())),
            &from,
            &[By { index: &index, size, stride, dim }],
            Put::Add,
            Bounds::OfElements,
        )
        .map_err(|error| match error.fault() {
            Fault::Beyond { .. } if out.layout.ndim() < 2 => Error::index("index out of range in self"),
            _ => as_runtime(error),
        })?;
    }
    Ok(())
}

/// The batching rule for writing or adding slices of `source` at a vector of positions.
pub(crate) fn place(
    b: &Batch,
    x: &Tensor,
    dim: i64,
    index: &Tensor,
    source: &Tensor,
    how: Put,
) -> Result<Tensor> {
    check_vector(INDEX_ADD.name, index)?;
    let made = on_lines(b, x, &[source], dim, |x, source, at| {
        if !index.is_batched() && how == Put::Add {
            return IndexAdd::call(x, at, index, &source[0], Scalar::Int(1));
        }
        let by = spread_positions(b, index, at, &x.shape())?;
        Scatter::call(x, at, &by, &reshape(&source[0], &by.shape())?, how)
    })?;
    from_lines(b, made, x)
}

/// `input` with `src` written (or added, …) along a dimension at `index`.
#[primitive(dense)]
impl Scatter {
    pub(crate) fn check(input: &Body, dim: i64, index: &Tensor, src: &Tensor, _: Put) -> Result<()> {
        check_scattered(input, &src.body(), dim, index)?;
        check_writable(input)
    }
    pub(crate) fn write(
        input: &Body,
        dim: i64,
        index: &Tensor,
        src: &Tensor,
        #[hidden] how: Put,
    ) -> Result<()> {
        scatter_over(input, &src.body(), dim, index, how)
    }
    fn d_input(g: &Tensor, dim: i64, index: &Tensor, how: Put) -> Result<Tensor> {
        if how == Put::Add {
            return Ok(g.clone());
        }
        let zeros = constant::zeros(&index.shape(), g.dtype(), index.device())?;
        Scatter::call(g, dim, index, &zeros, Put::Assign)
    }
    fn d_src(g: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
        Gather::call(g, dim, index)
    }
    fn batch(b: &Batch, input: &Tensor, dim: i64, index: &Tensor, src: &Tensor, how: Put) -> Result<Tensor> {
        let made = on_lines(b, input, &[index, src], dim, |x, rest, at| {
            Scatter::call(x, at, &rest[0], &rest[1], how)
        })?;
        from_lines(b, made, input)
    }
}

/// `input` with `src` written (or added, …) along a dimension at `index`.
pub fn scatter_into(input: &Tensor, src: &Tensor, dim: i64, index: &Tensor, how: Put) -> Result<Tensor> {
    Scatter::call(input, dim, index, src, how)
}

#[primitive(tangent = linear, dense)]
impl ScatterAdd {
    fn check(input: &Body, dim: i64, index: &Tensor, src: &Tensor) -> Result<()> {
        check_scattered(input, &src.body(), dim, index)?;
        check_writable(input)
    }
    fn write(input: &Body, dim: i64, index: &Tensor, src: &Tensor) -> Result<()> {
        scatter_over(input, &src.body(), dim, index, Put::Add)
    }
    fn d_input(g: V) -> V {
        g
    }
    fn d_src(g: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
        Gather::call(g, dim, index)
    }
    fn batch(b: &Batch, input: &Tensor, dim: i64, index: &Tensor, src: &Tensor) -> Result<Tensor> {
        Scatter::batch(b, input, dim, index, src, Put::Add)
    }
}

/// `source` times `alpha`, in the dtype of `source`.
fn scale(source: &Tensor, alpha: Scalar) -> Result<Tensor> {
    let number = constant::full(&[], alpha, source.dtype(), source.device());
    crate::ops::reduction::reduce::no_grad(|| crate::ops::elementwise::arithmetic::mul(source, &number?))
        .map(Tensor::new)
}

/// `input` plus the slices of `source`, times `alpha`, at `index`.
#[primitive(tangent = linear, dense, shows(source_dim = ndim(source)))]
impl IndexAdd {
    fn check(input: &Body, dim: i64, index: &Tensor, source: &Tensor, _: Scalar) -> Result<()> {
        check_slices(&INDEX_ADD, false, input, &source.body(), dim, index)?;
        check_writable(input)
    }
    fn write(input: &Body, dim: i64, index: &Tensor, source: &Tensor, alpha: Scalar) -> Result<()> {
        if alpha.is_one() {
            return add_slices(input, &source.body(), dim, index);
        }
        add_slices(input, &scale(source, alpha)?.body(), dim, index)
    }
    fn d_input(g: V) -> V {
        g
    }
    fn d_source(g: V, dim: i64, index: &Tensor, alpha: Scalar, source: Unread) -> V {
        let Unread = source;
        let g = g.then(|g| IndexSelect::call(&g, dim, index));
        if alpha.is_one() { g } else { g * V::from(alpha).conj() }
    }
    fn batch(
        b: &Batch,
        input: &Tensor,
        dim: i64,
        index: &Tensor,
        source: &Tensor,
        alpha: Scalar,
    ) -> Result<Tensor> {
        if alpha.is_one() {
            return place(b, input, dim, index, source, Put::Add);
        }
        place(b, input, dim, index, &crate::ops::elementwise::arithmetic::mul(source, alpha)?, Put::Add)
    }
}

/// A 0-d tensor with the dtype and device of `t`.
pub(super) fn number_like(t: &Tensor, value: Scalar) -> Result<Tensor> {
    constant::full(&[], value, t.dtype(), t.device())
}

/// The value of a number or 0-d tensor.
pub(super) fn number(op: &str, value: Operand) -> Result<Scalar> {
    match value {
        Operand::Scalar(s) => Ok(s),
        Operand::Tensor(t) if t.ndim() == 0 => t.item(),
        Operand::Tensor(t) => Err(Error::runtime(format!(
            "{op} only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
            t.ndim()
        ))),
    }
}

/// The tensor itself if it is contiguous, else a contiguous copy.
pub(super) fn dense(t: Tensor) -> Result<Tensor> {
    if t.body().layout.is_contiguous() { Ok(t) } else { copies::clone_dense(&t) }
}

/// Fills the slices of `out` at `index` along `dim` with a number.
fn fill_slices(out: &Body, dim: i64, index: &Tensor, value: Scalar) -> Result<()> {
    if index.ndim() > 1 {
        return Err(Error::runtime("Index has to be a vector/scalar"));
    }
    let dim = wrap_dim(dim, out.layout.ndim())?;
    let mut shape = Dims::from_slice(out.shape());
    if let Some(n) = shape.get_mut(dim) {
        *n = index.numel();
    }
    let number = constant::full(&[], value, out.dtype, out.device())?;
    let number = number.body();
    let source = number.with_layout(number.layout.broadcast_to(&shape));
    if source.numel() == 0 {
        return Ok(());
    }
    let by = index.body();
    let (size, stride) = size_and_stride(out, dim);
    let index = by.with_layout(down(&by, dim, &shape));
    check_in_storage(out, &along(out, dim, &shape))?;
    put_by(
        "index_fill",
        &out.with_layout(along(out, dim, &shape)),
        &source,
        &[By { index: &index, size, stride, dim }],
        Put::Assign,
        Bounds::Wrapped,
    )
}

/// An index into an empty dimension is out of bounds. PyTorch notices this by the size of the storage.
fn check_in_storage(out: &Body, slices: &Layout) -> Result<()> {
    if out.numel() > 0 { Ok(()) } else { within(slices, out.dtype.size(), out.storage.len()) }
}

fn check_fill_index(index: &Tensor) -> Result<()> {
    if index.dtype() == DType::I64 {
        Ok(())
    } else {
        Err(Error::index("index_fill_(): Expected dtype int64 for index."))
    }
}

/// Copies the slices of `from` into `out` at `index` along `dim`.
fn copy_slices(out: &Body, from: &Body, dim: i64, index: &Tensor) -> Result<()> {
    let at = check_slices(&INDEX_COPY, true, out, from, dim, index)?;
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
    check_in_storage(out, &slices)?;
    put_by(
        "index_copy",
        &out.with_layout(slices),
        &part,
        &[By { index: &index, size, stride, dim: at }],
        Put::Assign,
        Bounds::Strict,
    )
}

/// `input` with a number written along a dimension at `index`.
#[primitive(dense)]
impl Scatter1 {
    fn check(input: &Body, dim: i64, index: &Tensor, value: Scalar) -> Result<()> {
        let src = expand_number(input, index, value)?;
        Scatter::check(input, dim, index, &src, Put::Assign)
    }
    fn write(input: &Body, dim: i64, index: &Tensor, value: Scalar) -> Result<()> {
        Scatter::write(input, dim, index, &expand_number(input, index, value)?, Put::Assign)
    }
    fn d_input(g: &Tensor, dim: i64, index: &Tensor) -> Result<Tensor> {
        Scatter1::call(g, dim, index, Scalar::Int(0))
    }
    fn batch(b: &Batch, input: &Tensor, dim: i64, index: &Tensor, value: Scalar) -> Result<Tensor> {
        let made = on_lines(b, input, &[index], dim, |x, by, at| Scatter1::call(x, at, &by[0], value))?;
        from_lines(b, made, input)
    }
}

/// Expands a number to the shape of the index.
fn expand_number(like: &Body, index: &Tensor, value: Scalar) -> Result<Tensor> {
    let number = constant::full(&[], value, like.dtype, like.device())?;
    let body = number.body();
    Ok(Tensor::new(body.with_layout(body.layout.broadcast_to(&index.shape()))))
}

/// Calls `put` with the tensor or number that `scatter` writes, and the reduce operation.
fn dispatch<T>(
    input: &Tensor,
    index: &Tensor,
    (src, value): (Option<Operand>, Option<Scalar>),
    reduce: Option<&str>,
    put: impl FnOnce(Operand, Put) -> Result<T>,
) -> Result<T> {
    let Some(given) = src.or(value.map(Operand::Scalar)) else {
        return Err(Error::type_error("scatter() missing required argument: 'src'"));
    };
    let how = match reduce {
        None => return put(given, Put::Assign),
        Some("add") => Put::Add,
        Some("multiply") => Put::Mul,
        Some(_) => return Err(Error::runtime("reduce argument must be either add or multiply.")),
    };
    match given {
        Operand::Scalar(number) => put((&expand_number(&input.body(), index, number)?).into(), how),
        Operand::Tensor(_) => {
            static TOLD: AtomicBool = AtomicBool::new(false);
            warn_once(
                &TOLD,
                "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future PyTorch \
                 release. Use torch.scatter_reduce instead for more reduction options.",
            )?;
            put(given, how)
        }
    }
}

/// Write values into a copy of `input` by index: for `dim=0`, `out[index[i][j]][j] = src[i][j]`.
///
/// Args:
///     index: where each element of `src` goes along `dim`.
///     src: the elements to write; a tensor, or a number.
///     value: a number to write, instead of `src`.
///     reduce: `"add"` or `"multiply"` to combine with what is there; `scatter_reduce` can do more.
///
/// Examples:
///     >>> torch.scatter(torch.zeros(3), 0, torch.tensor([2, 0]), torch.tensor([1.0, 5.0]))
///     tensor([5., 0., 1.])
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
    src: Option<Operand>,
    value: Option<Scalar>,
    reduce: Option<String>,
) -> Result<Tensor> {
    dispatch(input, index, (src, value), reduce.as_deref(), |src, how| match src {
        Operand::Scalar(number) => Scatter1::call(input, dim, index, number),
        Operand::Tensor(src) => Scatter::call(input, dim, index, src, how),
    })
}

/// Write values into the tensor itself by index along a dimension.
#[inplace(scatter, aten(src, value), overloads((3, 3), (4, 4), (3, 3), (4, 4)))]
pub fn scatter_(
    input: &Tensor,
    dim: i64,
    index: &Tensor,
    src: Option<Operand>,
    value: Option<Scalar>,
    reduce: Option<String>,
) -> Result<()> {
    dispatch(input, index, (src, value), reduce.as_deref(), |src, how| match src {
        Operand::Scalar(number) => Scatter1::over(input, dim, index, number),
        Operand::Tensor(src) => Scatter::over(input, dim, index, src, how),
    })
}

/// Add values to a copy of `input` by index: for `dim=0`, `out[index[i][j]][j] += src[i][j]`.
///
/// Args:
///     index: where each element of `src` goes along `dim`.
///     src: the elements to add.
///
/// Examples:
///     >>> torch.scatter_add(torch.zeros(3), 0, torch.tensor([0, 0, 2]), torch.tensor([1.0, 2.0, 3.0]))
///     tensor([3., 0., 3.])
#[operator(
    function,
    method,
    out(declared),
    sample = "indexed(named(name), lambda draw, where: [values(where, draw(SEEDS))])"
)]
pub fn scatter_add(input: &Tensor, dim: i64, index: &Tensor, src: &Tensor) -> Result<Tensor> {
    ScatterAdd::call(input, dim, index, src)
}

/// Add values to the tensor itself by index along a dimension.
#[inplace(scatter_add)]
pub fn scatter_add_(input: &Tensor, dim: i64, index: &Tensor, src: &Tensor) -> Result<()> {
    ScatterAdd::over(input, dim, index, src)
}

/// Add the slices of `source`, scaled by `alpha`, to a copy of `input`, at indices along a dimension.
///
/// Args:
///     index: vector with the place in `input` of each slice of `source`.
///     source: the slices to add.
///     alpha: factor of `source`.
///
/// Examples:
///     >>> torch.index_add(torch.zeros(3), 0, torch.tensor([0, 0, 2]), torch.tensor([1.0, 2.0, 3.0]))
///     tensor([3., 0., 3.])
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
    #[keyword]
    #[default(Scalar::Int(1))]
    alpha: Scalar,
) -> Result<Tensor> {
    check_slices(&INDEX_ADD, false, &input.body(), &source.body(), dim, index)?;
    IndexAdd::call(input, dim, index, source, alpha)
}

/// Add the slices of `source`, scaled by `alpha`, to the tensor itself, at indices along a dimension.
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
    /// PyTorch checks that the target is writable before it checks the sizes of the index.
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
        place(b, input, dim, index, source, Put::Assign)
    }
}

/// Return a copy of `input` whose slices at the given indices are replaced by those of `source`.
///
/// Args:
///     index: vector with the place in `input` of each slice of `source`.
///     source: the slices to write.
///
/// Examples:
///     >>> torch.index_copy(torch.zeros(3), 0, torch.tensor([2, 0]), torch.tensor([1.0, 5.0]))
///     tensor([5., 0., 1.])
#[operator(
    function,
    method,
    out(declared),
    autocast = widest,
    sample = "fixed([(3, 2), (2, 2)], lambda x, y: T.index_copy(x, 0, T.tensor([2, 0], device=x.device), y))"
)]
pub fn index_copy(input: &Tensor, dim: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
    IndexCopy::call(input, dim, index, source)
}

/// Replace slices of the tensor itself, at the given indices, by those of `source`.
#[inplace(index_copy)]
pub fn index_copy_(input: &Tensor, dim: i64, index: &Tensor, source: &Tensor) -> Result<()> {
    IndexCopy::over(input, dim, index, source)
}

/// `input` with a number in the slices at `index`.
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

/// `input` with the value of a 0-d tensor in the slices at `index`.
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
        // Each slice counts once, even if the index names it several times.
        Sum::call(&a::sub(g, &IndexFill0::call(g, dim, index, Scalar::Int(0))?)?)
    }
    fn batch(_b: &Batch, input: &Tensor, dim: i64, index: &Tensor, value: &Tensor) -> Result<Tensor> {
        let zeros = constant::zeros(&input.shape(), DType::F32, input.device())?;
        let hit = IndexFill0::call(&zeros, dim, index, Scalar::Int(1))?;
        fill_samples(input, &a::ne(&hit, 0i64)?, value.into())
    }
}

/// Return a copy of `input` with one value in the slices at the given indices.
///
/// Args:
///     index: vector of indices along `dim`.
///     value: a number, or a tensor that holds one.
///
/// Examples:
///     >>> torch.index_fill(torch.zeros(3), 0, torch.tensor([0, 2]), 7.0)
///     tensor([7., 0., 7.])
#[operator(
    function,
    method,
    overloads((3, 3), (3, 3)),
    sample = "listed(lambda x, dim, i: T.index_fill(x, dim, i, 2.0))"
)]
pub fn index_fill(input: &Tensor, dim: i64, index: &Tensor, #[elsewhere] value: Operand) -> Result<Tensor> {
    match filling(input, value)? {
        Operand::Tensor(value) => IndexFill1::call(input, dim, index, value),
        Operand::Scalar(value) => IndexFill0::call(input, dim, index, value),
    }
}

/// Fill the slices of the tensor itself at the given indices with one value.
#[inplace(index_fill, aten(int_Tensor, int_Scalar), overloads((3, 3), (3, 3)))]
pub fn index_fill_(input: &Tensor, dim: i64, index: &Tensor, #[elsewhere] value: Operand) -> Result<()> {
    warn_expanded(input, "index_fill", "tensor[mask] = scalar")?;
    match filling(input, value)? {
        Operand::Tensor(value) => IndexFill1::over(input, dim, index, value),
        Operand::Scalar(value) => IndexFill0::over(input, dim, index, value),
    }
}

/// Checks the value of `index_fill` against the dtype of `input`.
fn filling<'a>(input: &Tensor, value: Operand<'a>) -> Result<Operand<'a>> {
    if value.is_complex() && !input.dtype().is_complex() {
        return Err(Error::runtime(
            "index_fill_(): Converting complex Scalar to non-complex type is not supported",
        ));
    }
    read_number("index_fill_", value)
}

/// Reads a 0-d tensor as a number, unless it requires a gradient or a transform is active.
fn read_number<'a>(op: &str, value: Operand<'a>) -> Result<Operand<'a>> {
    match value {
        Operand::Tensor(t) if t.ndim() == 0 && (t.is_special() || t.requires_grad()) => Ok(value),
        value => number(op, value).map(Operand::Scalar),
    }
}
