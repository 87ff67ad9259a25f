//! Sorting, `topk`, `kthvalue` and medians.

use crate::base::Dims;
use crate::base::views::dense_like;
use crate::operator::batch;
use crate::operator::bodies::conj_neg;
use crate::operator::pointwise::dtype_checks;
use crate::operator::primitives::{constant, copies, views};
use crate::ops::elementwise::{arithmetic as a, unary};
use crate::ops::indexing::index;
use crate::ops::prelude::*;
use crate::ops::reduction::extrema::{check_not_empty, pick, scatter_gradient, shared_by_all};
use crate::ops::reduction::reduce::{no_grad, sum};
use crate::tensor::{mode, records, saved_hooks};

/// Values picked along a dimension, and their indices.
struct Picked {
    values: Body,
    indices: Body,
}

impl Picked {
    fn new(x: &Body, dim: usize, size: usize) -> Result<Picked> {
        let mut shape = Dims::from_slice(x.shape());
        shape[dim] = size;
        Ok(Picked {
            values: Body::new(&shape, x.dtype, x.device())?,
            indices: Body::new(&shape, DType::I64, x.device())?,
        })
    }

    fn map(self, change: impl Fn(Body) -> Body) -> Picked {
        Picked { values: change(self.values), indices: change(self.indices) }
    }

    /// Elements `start` to `start + length` along `dim`.
    fn part(self, dim: usize, start: usize, length: usize) -> Result<Picked> {
        let cut = |body: &Body| -> Result<Body> {
            crate::operator::bodies::duplicate(&body.with_layout(body.layout.narrow(
                dim as i64,
                start as i64,
                length as i64,
            )?))
        };
        Ok(Picked { values: cut(&self.values)?, indices: cut(&self.indices)? })
    }
}

fn sort_body(x: &Body, dim: usize, descending: bool) -> Result<Picked> {
    if x.dtype.is_complex() {
        return Err(Error::unordered(" Sort does not support complex dtypes on CPU"));
    }
    if x.dtype.is_stored_only() && !x.dtype.is_wide_unsigned() {
        return Err(Fault::NoKernel { op: "sorting_kernel_method_name", dtype: x.dtype }.into());
    }
    let mut out = Picked::new(x, dim, x.shape()[dim])?;
    if x.device().is_cpu() {
        let layout = dense_like(&x.layout);
        (out.values.layout, out.indices.layout) = (layout.clone(), layout);
    }
    if x.numel() > 0 {
        let (values, indices) = (&out.values, &out.indices);
        fork!(over [values, x], with [indices, dim, descending], cpu: crate::cpu::sort::sort(values.host_of_any_dtype()?, indices.host()?, x.host_of_any_dtype()?, dim, descending),
            gpu: crate::gpu::sort(values.gpu()?, indices.gpu()?, x.gpu()?, dim, descending))?;
    }
    Ok(out)
}

/// The `k` largest or smallest elements. The GPU sorts all elements and takes the first `k`.
fn top(x: &Body, k: usize, dim: usize, largest: bool) -> Result<Picked> {
    if x.dtype.is_complex() {
        return Err(Error::unordered(" topk does not support complex dtypes on CPU"));
    }
    if !x.device().is_cpu() {
        return sort_body(x, dim, largest)?.part(dim, 0, k);
    }
    let out = Picked::new(x, dim, k)?;
    if out.values.numel() > 0 {
        let (values, indices) = (&out.values, &out.indices);
        fork!(over [values, x], with [indices, k, dim, largest],
            cpu: crate::cpu::sort::topk(values.host()?, indices.host()?, x.host()?, k, dim, largest),
            gpu: no_shader("topk", x.dtype))?;
    }
    Ok(out)
}

/// The `k`-th smallest element, counted from 1.
fn kth(x: &Body, k: usize, dim: usize) -> Result<Picked> {
    dtype_checks::order("kthvalue_cpu", x.dtype)?;
    if !x.device().is_cpu() {
        return sort_body(x, dim, false)?.part(dim, k - 1, 1);
    }
    let out = Picked::new(x, dim, 1)?;
    if out.values.numel() > 0 {
        let (values, indices) = (&out.values, &out.indices);
        fork!(over [values, x], with [indices, k, dim],
            cpu: crate::cpu::sort::kthvalue(values.host()?, indices.host()?, x.host()?, k, dim),
            gpu: no_shader("kthvalue", x.dtype))?;
    }
    Ok(out)
}

/// The lower median, or NaN if there is one.
fn middle(x: &Body, dim: usize) -> Result<Picked> {
    dtype_checks::order("median_cpu", x.dtype)?;
    let found = kth(x, x.shape()[dim].div_ceil(2), dim)?;
    if !x.dtype.is_float() || found.values.numel() == 0 {
        return Ok(found);
    }
    // NaN counts as the largest element, so it is found by the maximum.
    let top = top(x, 1, dim, true)?;
    let nan = no_grad(|| unary::isnan(&Tensor::new(top.values.clone())))?;
    let nan = Tensor::new(nan);
    let choose = |no: Body, yes: Body| -> Result<Body> {
        let (no, yes) = (Tensor::new(no), Tensor::new(yes));
        no_grad(|| {
            crate::operator::pointwise::apply(&a::choose::ROW, &[(&yes).into(), (&no).into(), (&nan).into()])
        })
    };
    Ok(Picked { values: choose(found.values, top.values)?, indices: choose(found.indices, top.indices)? })
}

/// The lower median of the elements that are not NaN.
fn middle_number(x: &Body, dim: usize) -> Result<Picked> {
    if !x.dtype.is_float() {
        return middle(x, dim);
    }
    let all = sort_body(x, dim, false)?;
    let numbers = unary::logical_not(&unary::isnan(&Tensor::new(x.clone()))?)?;
    let count = sum(&numbers, Some(smallvec::smallvec![dim as i64]), true, None)?;
    let place = a::clamp_min_number(&a::floor_divide(&a::sub(&count, 1i64)?, 2i64)?, 0i64)?;
    let pick = |from: Body| -> Result<Body> {
        let body = index::Gather::call(&Tensor::new(from), dim as i64, &place)?;
        Ok(body.body().clone())
    };
    Ok(Picked { values: pick(all.values)?, indices: pick(all.indices)? })
}

/// The values and indices that `pick` finds along a dimension.
fn along(
    input: &Tensor,
    dim: i64,
    keepdim: bool,
    pick: impl FnOnce(&Body, usize) -> Result<Picked>,
) -> Result<[Body; 2]> {
    let x = at_least_vector(&input.body());
    let at = wrap_dim(dim, x.layout.ndim())?;
    let picked = mode::with_grad(false, || pick(&x, at))?;
    let Picked { values, indices } = match (input.ndim(), keepdim) {
        (0, _) => picked.map(|body| with_shape(body, &[])),
        (_, true) => picked,
        _ => picked.map(|body| drop_dims(body, &[at])),
    };
    Ok([values, indices])
}

#[primitive(batch = along(dim), tangent = fn, results(values, indices), shows(self_sym_sizes = sizes(input)))]
impl Sort {
    fn forward(input: &Tensor, dim: i64, descending: bool) -> Result<[Body; 2]> {
        along(input, dim, true, |x, at| sort_body(x, at, descending))
    }
    fn d_input(g: Tensor, indices: Tensor, at: Meta, dim: i64) -> Result<Tensor> {
        scatter_gradient(g, indices, &at, dim, true)
    }
    fn tangent(t_input: &Tensor, indices: &Tensor, dim: i64) -> Result<Tensor> {
        pick(t_input, indices, dim, true)
    }
}

/// `sort` with the argument `stable`. All sorts are stable.
#[primitive(batch = along(dim), tangent = fn, results(values, indices), shows(self_sym_sizes = sizes(input)))]
impl Sort1 {
    fn forward(input: &Tensor, dim: i64, descending: bool) -> Result<[Body; 2]> {
        along(input, dim, true, |x, at| sort_body(x, at, descending))
    }
    fn d_input(g: Tensor, indices: Tensor, at: Meta, dim: i64) -> Result<Tensor> {
        scatter_gradient(g, indices, &at, dim, true)
    }
    fn tangent(t_input: &Tensor, indices: &Tensor, dim: i64) -> Result<Tensor> {
        pick(t_input, indices, dim, true)
    }
}

#[primitive(batch = along(dim), tangent = fn, results(values, indices), shows(self_sym_sizes = sizes(input)))]
impl Topk {
    fn forward(input: &Tensor, k: usize, dim: i64, largest: bool) -> Result<[Body; 2]> {
        along(input, dim, true, |x, at| top(x, k, at, largest))
    }
    fn d_input(g: Tensor, indices: Tensor, at: Meta, dim: i64) -> Result<Tensor> {
        scatter_gradient(g, indices, &at, dim, true)
    }
    fn tangent(t_input: &Tensor, indices: &Tensor, dim: i64) -> Result<Tensor> {
        pick(t_input, indices, dim, true)
    }
}

#[primitive(
    batch = along(dim, keepdim),
    tangent = fn,
    results(values, indices),
    shows(self_sym_sizes = sizes(input))
)]
impl Kthvalue {
    fn forward(input: &Tensor, k: usize, dim: i64, keepdim: bool) -> Result<[Body; 2]> {
        along(input, dim, keepdim, |x, at| kth(x, k, at))
    }
    fn d_input(g: Tensor, indices: Tensor, at: Meta, dim: i64, keepdim: bool) -> Result<Tensor> {
        scatter_gradient(g, indices, &at, dim, keepdim)
    }
    fn tangent(t_input: &Tensor, indices: &Tensor, dim: i64, keepdim: bool) -> Result<Tensor> {
        pick(t_input, indices, dim, keepdim)
    }
}

#[primitive(
    batch = along(dim, keepdim),
    tangent = fn,
    results(values, indices),
    shows(self_sym_sizes = sizes(input))
)]
impl Median1 {
    fn forward(input: &Tensor, dim: i64, keepdim: bool) -> Result<[Body; 2]> {
        along(input, dim, keepdim, middle)
    }
    fn d_input(g: Tensor, indices: Tensor, at: Meta, dim: i64, keepdim: bool) -> Result<Tensor> {
        scatter_gradient(g, indices, &at, dim, keepdim)
    }
    fn tangent(t_input: &Tensor, indices: &Tensor, dim: i64, keepdim: bool) -> Result<Tensor> {
        pick(t_input, indices, dim, keepdim)
    }
}

#[primitive(
    batch = along(dim, keepdim),
    tangent = fn,
    results(values, indices),
    shows(self_sym_sizes = sizes(input))
)]
impl Nanmedian1 {
    fn forward(input: &Tensor, dim: i64, keepdim: bool) -> Result<[Body; 2]> {
        along(input, dim, keepdim, middle_number)
    }
    fn d_input(g: Tensor, indices: Tensor, at: Meta, dim: i64, keepdim: bool) -> Result<Tensor> {
        scatter_gradient(g, indices, &at, dim, keepdim)
    }
    fn tangent(t_input: &Tensor, indices: &Tensor, dim: i64, keepdim: bool) -> Result<Tensor> {
        pick(t_input, indices, dim, keepdim)
    }
}

/// The median of all elements; NaN if there are none.
fn middle_of_all(input: &Tensor, numbers: bool) -> Result<Body> {
    let x = input.body();
    if x.numel() == 0 {
        let nan = constant::full(&[], Scalar::Float(f64::NAN), DType::F32, x.device())?;
        return no_grad(|| copies::to_dtype(&nan, x.dtype));
    }
    if x.dtype == DType::Bool || x.dtype.is_complex() {
        return Err(Fault::NoKernel { op: "median_cpu", dtype: x.dtype }.into());
    }
    mode::with_grad(false, || {
        let line = views::reshape(input, &[x.numel()])?;
        let line = line.body();
        let picked = if numbers { middle_number(&line, 0)? } else { middle(&line, 0)? };
        Ok(with_shape(picked.values, &[]))
    })
}

#[primitive]
impl Median {
    fn forward(input: &Tensor) -> Result<Body> {
        middle_of_all(input, false)
    }
    fn d_input(g: V, input: V, result: V, at: Meta) -> V {
        shared_by_all(g, input, result, &at)
    }
    fn batch(b: &Batch, input: &Tensor) -> Result<Tensor> {
        let [middle, _] = Median1::call(&batch::line(b, &b.full(input)?)?, -1, false)?;
        Ok(b.wrap(middle))
    }
}

#[primitive]
impl Nanmedian {
    fn forward(input: &Tensor) -> Result<Body> {
        middle_of_all(input, true)
    }
    fn d_input(g: V, input: V, result: V, at: Meta) -> V {
        shared_by_all(g, input, result, &at)
    }
    fn batch(b: &Batch, input: &Tensor) -> Result<Tensor> {
        let [middle, _] = Nanmedian1::call(&batch::line(b, &b.full(input)?)?, -1, false)?;
        Ok(b.wrap(middle))
    }
}

fn check(op: &'static str, input: &Tensor, dim: i64) -> Result<()> {
    wrap_dim(dim, input.ndim())?;
    check_not_empty(op, &input.body(), Some(&[dim]))
}

/// Sort the elements along a dimension.
///
/// Args:
///     dim: dimension along which to sort.
///     descending: whether the largest element comes first.
///     stable: whether equal elements keep their order.
///
/// Returns:
///     A named tuple `(values, indices)`: the sorted elements, and where they were.
///
/// Examples:
///     >>> values, indices = torch.sort(torch.tensor([3, 1, 2]))
///     >>> values, indices
///     (tensor([1, 2, 3]), tensor([1, 2, 0]))
#[operator(
    function,
    method,
    out(declared),
    returns(values, indices),
    sample = "over_dim(name, result=first)"
)]
pub fn sort(
    input: &Tensor,
    #[default(-1)] dim: i64,
    #[default(false)] descending: bool,
    stable: Option<bool>,
) -> Result<[Tensor; 2]> {
    if stable.is_some() {
        return Sort1::call(input, dim, descending);
    }
    Sort::call(input, dim, descending)
}

/// Return the indices that sort a tensor along a dimension.
///
/// Args:
///     dim: dimension along which to sort.
///     descending: whether the largest element comes first.
///     stable: whether equal elements keep their order.
///
/// Examples:
///     >>> torch.argsort(torch.tensor([3, 1, 2]))
///     tensor([1, 2, 0])
#[operator(function, method, unrecorded)]
pub fn argsort(
    input: &Tensor,
    #[default(-1)] dim: i64,
    #[default(false)] descending: bool,
    #[default(false)] stable: bool,
) -> Result<Tensor> {
    let _ = stable;
    // Saved tensor hooks must be called with the indices that the values' gradient would save.
    if input.is_batched() || saved_hooks::active() {
        return Sort::call(input, dim, descending).map(|[_, indices]| indices);
    }
    // The node of `sort` is skipped, but its check that a view is not outdated is not.
    records([input])?;
    let values = Tensor::new(conj_neg::values(&input.body())?);
    let [_, indices] = along(&values, dim, true, |x, at| sort_body(x, at, descending))?;
    Ok(Tensor::new(indices))
}

/// Sort the elements along the first dimension.
///
/// Examples:
///     >>> torch.msort(torch.tensor([[3, 1], [2, 4]]))
///     tensor([[2, 1],
///             [3, 4]])
#[operator(function, method, out(declared, called = "sort"), sample = "elements(name)")]
pub fn msort(input: &Tensor) -> Result<Tensor> {
    Sort::call(input, 0, false).map(|[values, _]| values)
}

/// Return the `k` largest or smallest elements along a dimension, and their indices.
///
/// Args:
///     k: number of elements.
///     dim: dimension along which to search.
///     largest: whether to return the largest elements, else the smallest.
///     sorted: whether the elements have to be in order; they are in any case.
///
/// Returns:
///     A named tuple `(values, indices)`.
///
/// Examples:
///     >>> values, indices = torch.topk(torch.tensor([1.0, 4.0, 2.0, 3.0]), 2)
///     >>> values, indices
///     (tensor([4., 3.]), tensor([1, 3]))
#[operator(
    function,
    method,
    out(declared),
    returns(values, indices),
    sample = "shaped(lambda draw, shape: lambda x: x.topk(2, -1)[0], st.sampled_from([(4,), (2, 3)]))"
)]
pub fn topk(
    input: &Tensor,
    k: i64,
    #[default(-1)] dim: i64,
    #[default(true)] largest: bool,
    #[default(true)] sorted: bool,
) -> Result<[Tensor; 2]> {
    let _ = sorted;
    let at = wrap_dim(dim, input.ndim())?;
    let most = input.shape().get(at).copied().unwrap_or(1);
    let k = usize::try_from(k).ok().filter(|&k| k <= most);
    let k = k.ok_or_else(|| Error::runtime("selected index k out of range"))?;
    if input.dtype() == DType::Bool {
        return Err(Error::not_implemented("topk does not support bool dtypes on CPU"));
    }
    Topk::call(input, k, dim, largest)
}

/// Return the `k`-th smallest element along a dimension, and its index.
///
/// Args:
///     k: which element, counted from 1.
///     dim: dimension to reduce.
///
/// Returns:
///     A named tuple `(values, indices)`.
///
/// Examples:
///     >>> torch.kthvalue(torch.tensor([5, 3, 4]), 2).values
///     tensor(4)
#[operator(
    function,
    method,
    out(message = "output values must be of same type as input", apart),
    returns(values, indices),
    sample = "shaped(lambda draw, shape: lambda x: x.kthvalue(2, -1)[0], st.sampled_from([(4,), (2, 3)]))"
)]
pub fn kthvalue(
    input: &Tensor,
    k: i64,
    #[default(-1)] dim: i64,
    #[default(false)] keepdim: bool,
) -> Result<[Tensor; 2]> {
    let at = wrap_dim(dim, input.ndim())?;
    check("kthvalue", input, dim)?;
    let most = input.shape().get(at).copied().unwrap_or(1);
    let k = usize::try_from(k).ok().filter(|&k| k >= 1 && k <= most).ok_or_else(|| {
        Error::runtime(format!("kthvalue(): selected number k out of range for dimension {at}"))
    })?;
    if input.dtype() == DType::Bool && input.ndim() > 0 {
        return Err(Fault::NoKernel { op: "kthvalue_cpu", dtype: DType::Bool }.into());
    }
    Kthvalue::call(input, k, dim, keepdim)
}

fn check_median(op: &'static str, input: &Tensor, dim: i64) -> Result<()> {
    check(op, input, dim)?;
    match input.dtype() {
        DType::Bool => Err(Fault::NoKernel { op: "median_out", dtype: DType::Bool }.into()),
        _ => Ok(()),
    }
}

/// Return the median of all elements, or with `dim` the medians along it and their indices.
///
/// Of two middle elements the lower one is taken. The median is NaN where an element is.
///
/// Args:
///     dim: dimension to reduce.
///     keepdim: whether the reduced dimension stays in the result, with size 1. Default: `False`
///     out: with `dim`, two tensors to write values and indices into.
///
/// Returns:
///     A tensor, or with `dim` a named tuple `(values, indices)`.
///
/// Examples:
///     >>> torch.median(torch.tensor([3.0, 1.0, 2.0, 4.0]))
///     tensor(2.)
///     >>> torch.median(torch.tensor([[3, 1, 2]]), dim=1).indices
///     tensor([2])
#[operator(function, method, sample = "extreme(name)")]
pub fn median(input: &Tensor) -> Result<Tensor> {
    Median::call(input)
}

/// Return the medians along `dim` and their indices.
#[overload(median.dim, out(declared), returns(values, indices))]
pub fn median_along(input: &Tensor, dim: i64, #[default(false)] keepdim: bool) -> Result<[Tensor; 2]> {
    check_median("median", input, dim)?;
    Median1::call(input, dim, keepdim)
}

/// Return the median of the elements that are not NaN, of all or along a dimension.
///
/// Of two middle elements the lower one is taken.
///
/// Args:
///     dim: dimension to reduce.
///     keepdim: whether the reduced dimension stays in the result, with size 1. Default: `False`
///     out: with `dim`, two tensors to write values and indices into.
///
/// Returns:
///     A tensor, or with `dim` a named tuple `(values, indices)`.
///
/// Examples:
///     >>> torch.nanmedian(torch.tensor([3.0, float("nan"), 1.0, 2.0]))
///     tensor(2.)
#[operator(function, method, sample = "extreme(name)")]
pub fn nanmedian(input: &Tensor) -> Result<Tensor> {
    Nanmedian::call(input)
}

/// Return the medians along `dim` of the elements that are not NaN, and their indices.
#[overload(nanmedian.dim, out(declared), returns(values, indices))]
pub fn nanmedian_along(input: &Tensor, dim: i64, #[default(false)] keepdim: bool) -> Result<[Tensor; 2]> {
    check_median("nanmedian", input, dim)?;
    Nanmedian1::call(input, dim, keepdim)
}
