//! `masked_fill`, `masked_scatter` and `masked_select`.

use crate::base::views::dense_like;
use crate::base::{broadcast, numel};
use crate::operator::batch;
use crate::operator::bodies::overlap::check_writable;
use crate::operator::bodies::{copy, filled, holds};
use crate::operator::inplace;
use crate::operator::inplace::warn_expanded;
use crate::operator::primitives::sums::Sum;
use crate::operator::primitives::views::reshape;
use crate::operator::primitives::{constant, copies, views};
use crate::ops::creation::create;
use crate::ops::elementwise::arithmetic as a;
use crate::ops::indexing::index;
use crate::ops::indexing::index::expand_masks;
use crate::ops::indexing::index_put::{self, IndexPut};
use crate::ops::indexing::nonzero::{nonzero_columns, select_masked, shape_with_mask};
use crate::ops::indexing::scatter::{dense, number, number_like};
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::no_grad;
use crate::ops::shape::view::expand;
use crate::ops::shape::{slices, view};
use crate::tensor::mode;

fn check_mask(op: &str, mask: &Tensor) -> Result<()> {
    if mask.dtype() == DType::Bool {
        return Ok(());
    }
    let dtype = mask.dtype();
    let name = if op == "masked_scatter_" { dtype.scalar_name() } else { dtype.c_name() };
    Err(Error::runtime(format!("{op} only supports boolean masks, but got mask with dtype {name}")))
}

/// `value` where the mask is true, else `input`, in the dtype of `input`.
fn fill_masked(input: &Tensor, mask: &Tensor, value: Operand) -> Result<Body> {
    check_mask("masked_fill_", mask)?;
    broadcast(&mask.shape(), &input.shape())?;
    let made = mode::with_grad(false, || {
        let chosen = crate::operator::pointwise::apply(&a::choose::ROW, &[value, input.into(), mask.into()])?;
        dense(copies::to_dtype(&chosen, input.dtype())?)
    })?;
    let body = made.body();
    Ok(body.with_layout(Layout::contiguous(body.shape())))
}

/// A copy of `input`, with consecutive elements of `values` where the mask is true.
fn put_masked(input: &Tensor, mask: &Tensor, values: &Tensor) -> Result<Tensor> {
    if mask.ndim() == 0 {
        return reshape(&put_masked(&reshape(input, &[1])?, &reshape(mask, &[1])?, values)?, &[]);
    }
    let places: Vec<_> = nonzero_columns(mask)?.into_iter().map(Some).collect();
    let count = places[0].as_ref().map_or(0, Tensor::numel) as i64;
    let first = slices::narrow(&reshape(values, &[values.numel()])?, 0, 0, count)?;
    // PyTorch writes into a contiguous copy.
    IndexPut::call(&crate::ops::shape::rearrange::contiguous(input, None)?, &places, &first, false)
}

/// The batching rule: `value` where the mask is true, else `x`, in the dtype of `x`.
pub(super) fn fill_samples(x: &Tensor, mask: &Tensor, value: Operand) -> Result<Tensor> {
    broadcast(&mask.shape(), &x.shape())?;
    let chosen = crate::operator::pointwise::apply(&a::choose::ROW, &[value, x.into(), mask.into()])?;
    copies::to_dtype(&chosen, x.dtype())
}

/// Warns about `x[mask] = number` if elements of `x` share memory.
pub fn warn_fill(target: &Tensor) -> Result<()> {
    warn_expanded(target, "masked_fill", "tensor[mask] = scalar")
}

/// `input` with a number where the mask is true.
#[primitive]
impl MaskedFill0 {
    fn forward(input: &Tensor, mask: &Tensor, value: Scalar) -> Result<Body> {
        holds(input.dtype(), value)?;
        fill_masked(input, mask, value.into())
    }
    fn d_input(g: &Tensor, mask: &Tensor) -> Result<Tensor> {
        MaskedFill0::call(g, mask, Scalar::Int(0))
    }
    fn batch(_b: &Batch, input: &Tensor, mask: &Tensor, value: Scalar) -> Result<Tensor> {
        fill_samples(input, mask, value.into())
    }
}

/// `input` with the value of a 0-d tensor where the mask is true.
#[primitive]
impl MaskedFill1 {
    fn forward(input: &Tensor, mask: &Tensor, value: &Tensor) -> Result<Body> {
        fill_masked(input, mask, value.into())
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
        fill_samples(input, mask, value.into())
    }
}

/// Return a copy of `input` with one value wherever the mask is True.
///
/// Args:
///     mask: boolean tensor, broadcast with `input`.
///     value: a number, or a tensor that holds one.
///
/// Examples:
///     >>> torch.masked_fill(torch.tensor([1.0, 2.0]), torch.tensor([True, False]), 0.0)
///     tensor([0., 2.])
#[operator(
    function,
    method,
    overloads((2, 2), (2, 2)),
    sample = "masked(lambda x, m: x.masked_fill(m, 1.5))"
)]
pub fn masked_fill(input: &Tensor, mask: &Tensor, #[elsewhere] value: Operand) -> Result<Tensor> {
    match value {
        Operand::Scalar(value) => {
            check_mask("masked_fill_", mask)?;
            MaskedFill0::call(input, mask, value)
        }
        Operand::Tensor(value) if value.ndim() > 0 => Err(Error::runtime(format!(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
            value.ndim()
        ))),
        Operand::Tensor(value) => {
            if value.device().is_cpu() && !value.is_batched() {
                holds(input.dtype(), value.item()?)?;
            } else if value.dtype().is_complex() && !input.dtype().is_complex() {
                holds(input.dtype(), Scalar::Complex(0.0, 1.0))?; // The GPU's value is not waited for.
            }
            MaskedFill1::call(input, mask, &create::on_device_of(value, input)?)
        }
    }
}

/// Fill the places of the tensor itself with one value wherever the mask is True.
#[inplace(masked_fill, aten(Tensor, Scalar), overloads((2, 2), (2, 2)))]
pub fn masked_fill_(input: &Tensor, mask: &Tensor, #[elsewhere] value: Operand) -> Result<()> {
    warn_fill(input)?;
    let given: Vec<&Tensor> = [mask].into_iter().chain(value.tensor()).collect();
    inplace::by_result(
        input,
        &given,
        |input| masked_fill(input, mask, value),
        |body, made| {
            if !body.layout.is_expanded() {
                return copy(body, made);
            }
            // The elements overlap, so write one after the other.
            let value = constant::full(&[], number("masked_fill_", value)?, body.dtype, body.device())?;
            let mask = expand(mask, views::ints(body.shape()))?;
            let places: Vec<_> =
                expand_masks(&Tensor::new(body.clone()), 0, mask)?.into_iter().map(Some).collect();
            index_put::write(body, &places, &value, false)
        },
    )
}

/// The batching rule of `masked_scatter`: consecutive elements of `source` where the mask of each example is true.
fn scatter_samples(x: &Tensor, mask: &Tensor, source: &Tensor) -> Result<Tensor> {
    let (n, most) = (mask.numel(), source.numel() as i64 - 1);
    let hits = copies::to_dtype(&reshape(mask, &[n])?, DType::I64)?;
    let order = a::sub(&crate::ops::reduction::scan::Cumsum::call(&hits, 0)?, 1i64)?;
    let order = a::minimum(&a::maximum(&order, 0i64)?, most)?;
    let values = crate::ops::indexing::index::Gather::call(&reshape(source, &[source.numel()])?, 0, &order)?;
    select(V::from(x), reshape(&values, &mask.shape())?, V::from(mask)).tensor()
}

#[primitive(tangent = linear, batch = none, shows(source_sym_sizes = sizes(source)))]
impl MaskedScatter {
    fn forward(input: &Tensor, mask: &Tensor, source: &Tensor) -> Result<Body> {
        no_grad(|| put_masked(input, mask, source))
    }
    fn d_input(g: &Tensor, mask: &Tensor) -> Result<Tensor> {
        MaskedFill0::call(g, mask, Scalar::Int(0))
    }
    fn d_source(g: &Tensor, at: Meta, mask: &Tensor) -> Result<Tensor> {
        let picked = MaskedSelect::call(g, mask)?;
        let zeros = constant::zeros(&[numel(&at.shape) - picked.numel()], at.dtype, at.device)?;
        reshape(&crate::ops::shape::join::cat(&[picked, zeros], 0)?, &at.shape)
    }
}

/// Return a copy of `input` with the elements of `source`, one after the other, wherever the mask is True.
///
/// Args:
///     mask: boolean tensor, broadcast with `input`.
///     source: at least as many elements as the mask has True ones.
///
/// Examples:
///     >>> torch.masked_scatter(torch.zeros(3), torch.tensor([True, False, True]), torch.tensor([1.0, 2.0]))
///     tensor([1., 0., 2.])
#[operator(
    function,
    method,
    sample = "fixed([(2, 3), (4,)], lambda x, y: T.masked_scatter(x, T.tensor([True, False, True], device=x.device), y))"
)]
pub fn masked_scatter(input: &Tensor, mask: &Tensor, source: &Tensor) -> Result<Tensor> {
    check_mask("masked_scatter_", mask)?;
    let shape = broadcast(&input.shape(), &mask.shape())?;
    if shape.is_empty() && batch::any(&[input, mask, source]) {
        return reshape(&masked_scatter(&reshape(input, &[1])?, &reshape(mask, &[1])?, source)?, &[]);
    }
    let sizes = views::ints(&shape);
    let wide = |t: &Tensor| if t.shape() == shape { Ok(t.clone()) } else { expand(t, sizes.clone()) };
    let (input, mask) = (wide(input)?, wide(mask)?);
    if mask.is_batched() {
        return scatter_samples(&input, &mask, source);
    }
    if source.dtype() != input.dtype() {
        return Err(Error::runtime(format!(
            "masked_scatter: expected self and source to have same dtypes but got{} and {}",
            input.dtype().scalar_name(),
            source.dtype().scalar_name()
        )));
    }
    if !mask.device().is_meta() && source.numel() < Sum::call(&mask)?.item()?.as_i64() as usize {
        return Err(Error::runtime("Number of elements of source < number of ones in mask"));
    }
    if batch::any(&[&input, source]) {
        return put_masked(&input, &mask, source);
    }
    MaskedScatter::call(&input, &mask, source)
}

/// Write the elements of `source`, one after the other, wherever the mask is True.
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

/// True if `masked_scatter_` reads consecutive elements of the memory that it writes. (It copies a source that is not
/// contiguous.)
fn reads_itself(target: &Tensor, source: &Tensor) -> bool {
    if target.is_special() || !target.device().is_cpu() {
        return false;
    }
    let (to, from) = (target.body(), source.body());
    from.layout.is_contiguous()
        && from.conj_neg == to.conj_neg
        && (to.storage.same(&from.storage))
        && to.layout.offset < from.layout.end()
        && from.layout.offset < to.layout.end()
}

/// `masked_scatter_`, one element after the other.
fn scatter_live(out: &Body, mask: &Tensor, source: &Tensor) -> Result<()> {
    let (mask, source, out) = (mask.body(), source.body(), out.as_bits());
    let mask = mask.with_layout(mask.layout.broadcast_to(out.shape()));
    let next = source.host_of_any_dtype()?.ptr;
    // SAFETY: the out-of-place result was computed before, so the shapes fit, and the source has enough elements.
    unsafe { crate::cpu::index::put_masked(out.host()?, mask.host()?, next) };
    Ok(())
}

#[primitive(tangent = linear)]
impl MaskedSelect {
    fn forward(input: &Tensor, #[constant] mask: &Tensor) -> Result<Body> {
        let (x, mask) = (input.body(), mask.body());
        let shape = shape_with_mask(x.shape(), mask.shape())?;
        let wide = |body: &Body| body.with_layout(body.layout.broadcast_to(&shape));
        select_masked(&wide(&x), &wide(&mask))
    }
    fn d_input(g: &Tensor, at: Meta, input: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let shape = shape_with_mask(&at.shape, &mask.shape())?;
        let mask = view::expand(mask, views::ints(&shape))?;
        let places: Vec<Option<Tensor>> = nonzero_columns(&mask)?.into_iter().map(Some).collect();
        let mut zeros = filled(&shape, Scalar::Int(0), at.dtype, at.device)?;
        // An unbatched gradient has the layout of the input.
        if !input.is_batched() {
            zeros.layout = dense_like(&input.body().layout.broadcast_to(&shape));
        }
        IndexPut::call(&Tensor::new(zeros), &places, g, false)
    }
    /// Supports only a mask that all examples share.
    fn batch(b: &Batch, input: &Tensor, mask: &Tensor) -> Result<Tensor> {
        if mask.is_batched() {
            return Err(Error::runtime(
                "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for \
                 each batch this would return a differently shaped Tensor.",
            ));
        }
        let n = mask.numel();
        let places = nonzero_columns(&views::reshape(mask, &[n])?)?.swap_remove(0);
        let lines = views::reshape(&b.full(input)?, &b.shape(&[n]))?;
        Ok(b.wrap(index::index_select(&lines, b.k() as i64, &places)?))
    }
}

/// Return the elements where the mask is True, as a vector.
///
/// Args:
///     mask: boolean tensor, broadcast with `input`.
///
/// Examples:
///     >>> torch.masked_select(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]))
///     tensor([1, 3])
#[operator(
    function,
    method,
    out(message = "masked_select(): self and result must have the same scalar type", apart),
    sample = "masked(named(name))"
)]
pub fn masked_select(input: &Tensor, mask: &Tensor) -> Result<Tensor> {
    if mask.dtype() != DType::Bool {
        return Err(Error::runtime("masked_select: expected BoolTensor for mask"));
    }
    if !crate::operator::batch::any(&[input, mask]) {
        return MaskedSelect::call(input, mask);
    }
    let shape = shape_with_mask(&input.shape(), &mask.shape())?;
    let wide =
        |t: &Tensor| if t.shape() == shape { Ok(t.clone()) } else { view::expand(t, views::ints(&shape)) };
    MaskedSelect::call(&wide(input)?, &wide(mask)?)
}

/// The batching rule of `target[mask] = value` for a single value, if the mask is batched.
pub fn fill_where(target: &Tensor, mask: &Tensor, value: &Tensor) -> Result<()> {
    let (to, have) = (target.shape(), mask.shape());
    if have.len() > to.len() || have.as_slice() != &to[..have.len()] {
        return Err(Error::index(format!(
            "The shape of the mask {:?} does not match the shape of the indexed tensor {:?}",
            have.as_slice(),
            to.as_slice()
        )));
    }
    let mut wide = have;
    wide.resize(to.len(), 1);
    let (mask, value) = (reshape(mask, &wide)?, reshape(value, &[])?);
    crate::operator::inplace::overwrite(target, &masked_fill(target, &mask, (&value).into())?)
}
