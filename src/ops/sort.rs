//! Order and position: sorting, the largest few, medians.

use super::extrema::{SAVE_INDICES, check_not_empty, put_back, shared_by_all};
use super::kernel::{at_least_vector, filled, fork, with_shape};
use super::macros::{compose, ops};
use super::positions::{by_columns, positions, select_masked, shape_with_mask};
pub use super::positions::{nonzero_columns, nonzero_vectors};
use super::record::{begin, end_many};
use super::row::Out;
use super::value::V;
use super::{arithmetic as a, create, index, unary, view};
use crate::base::views::dense_like;
use crate::base::{DType, Dims, Error, Fault, Result, Scalar, wrap_dim};
use crate::tensor::{Body, Derivative, Tensor, packing};

/// Values picked along a dimension, and where they were.
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

    fn outputs(self) -> Vec<Body> {
        vec![self.values, self.indices]
    }

    fn map(self, change: impl Fn(Body) -> Body) -> Picked {
        Picked { values: change(self.values), indices: change(self.indices) }
    }

    /// Elements `start` to `start + length` along `dim`.
    fn part(self, dim: usize, start: usize, length: usize) -> Result<Picked> {
        let cut = |body: &Body| -> Result<Body> {
            super::kernel::duplicate(&body.with_layout(body.layout.narrow(
                dim as i64,
                start as i64,
                length as i64,
            )?))
        };
        Ok(Picked { values: cut(&self.values)?, indices: cut(&self.indices)? })
    }
}

fn sorted(x: &Body, dim: usize, descending: bool) -> Result<Picked> {
    super::refuse::order("sort", x.dtype)?;
    let mut out = Picked::new(x, dim, x.shape()[dim])?;
    if x.device().is_cpu() {
        let layout = crate::base::views::dense_like(&x.layout);
        (out.values.layout, out.indices.layout) = (layout.clone(), layout);
    }
    if x.numel() > 0 {
        let (values, indices) = (&out.values, &out.indices);
        fork!([values, x], cpu: crate::cpu::sort::sort(values.host()?, indices.host()?, x.host()?, dim, descending),
            gpu: crate::gpu::sort(values.gpu()?, indices.gpu()?, x.gpu()?, dim, descending))?;
    }
    Ok(out)
}

/// The `k` largest or smallest; on the GPU the head of all, sorted.
fn top(x: &Body, k: usize, dim: usize, largest: bool) -> Result<Picked> {
    super::refuse::order("topk", x.dtype)?;
    if !x.device().is_cpu() {
        return sorted(x, dim, largest)?.part(dim, 0, k);
    }
    let out = Picked::new(x, dim, k)?;
    if out.values.numel() > 0 {
        let (values, indices) = (out.values.host()?, out.indices.host()?);
        // SAFETY: the outputs are new and have size k along the dimension.
        unsafe { crate::cpu::sort::topk(values, indices, x.host()?, k, dim, largest)? };
    }
    Ok(out)
}

/// The `k`-th smallest, counted from 1.
fn kth(x: &Body, k: usize, dim: usize) -> Result<Picked> {
    super::refuse::order("kthvalue_cpu", x.dtype)?;
    if !x.device().is_cpu() {
        return sorted(x, dim, false)?.part(dim, k - 1, 1);
    }
    let out = Picked::new(x, dim, 1)?;
    if out.values.numel() > 0 {
        let (values, indices) = (out.values.host()?, out.indices.host()?);
        // SAFETY: the outputs are new and have size 1 along the dimension.
        unsafe { crate::cpu::sort::kthvalue(values, indices, x.host()?, k, dim)? };
    }
    Ok(out)
}

/// The lower median; a line with a NaN has NaN.
fn middle(x: &Body, dim: usize) -> Result<Picked> {
    super::refuse::order("median_cpu", x.dtype)?;
    let found = kth(x, x.shape()[dim].div_ceil(2), dim)?;
    if !x.dtype.is_float() || found.values.numel() == 0 {
        return Ok(found);
    }
    // NaN is the largest of its line, if it is there.
    let top = top(x, 1, dim, true)?;
    let nan = super::reduce::quietly(|| unary::isnan(&Tensor::new(top.values.clone())))?;
    let nan = Tensor::new(nan);
    let choose = |no: Body, yes: Body| -> Result<Body> {
        let (no, yes) = (Tensor::new(no), Tensor::new(yes));
        super::reduce::quietly(|| {
            super::pointwise::apply(&a::choose::ROW, &[(&yes).into(), (&no).into(), (&nan).into()])
        })
    };
    Ok(Picked { values: choose(found.values, top.values)?, indices: choose(found.indices, top.indices)? })
}

/// The lower median of the elements that are not NaN.
fn middle_number(x: &Body, dim: usize) -> Result<Picked> {
    if !x.dtype.is_float() {
        return middle(x, dim);
    }
    let all = sorted(x, dim, false)?;
    let numbers = unary::logical_not(&unary::isnan(&Tensor::new(x.clone()))?)?;
    let count = super::reduce::sum(&numbers, Some(smallvec::smallvec![dim as i64]), true, None)?;
    let place = a::clamp_min_number(&a::floor_divide(&a::sub(&count, 1i64)?, 2i64)?, 0i64)?;
    let pick = |from: Body| -> Result<Body> {
        let body = index::gather(&Tensor::new(from), dim as i64, place.clone())?;
        Ok(body.body().clone())
    };
    Ok(Picked { values: pick(all.values)?, indices: pick(all.indices)? })
}

/// Records an operator that picks values: the gradient goes back to where they were.
fn picking(
    derivative: &'static Derivative,
    input: &Tensor,
    dim: i64,
    keepdim: bool,
    pick: impl FnOnce(&Body, usize) -> Result<Picked>,
) -> Result<Vec<Tensor>> {
    if input.is_batched() {
        return super::batch::picked(input, dim, |value, at| picking(derivative, value, at, keepdim, pick));
    }
    let x = at_least_vector(&input.body());
    let at = wrap_dim(dim, x.layout.ndim())?;
    let recorder = begin(derivative, &[input], || Some(Box::new((dim, keepdim))));
    let picked = crate::tensor::mode::with_grad(false, || pick(&x, at))?;
    let picked = match (input.ndim(), keepdim) {
        (0, _) => picked.map(|body| with_shape(body, &[])),
        (_, true) => picked,
        _ => picked.map(|body| super::kernel::drop_dims(body, &[at])),
    };
    let made = end_many(recorder, SAVE_INDICES, &[input], picked.outputs())?;
    super::tangent::picked(made, input, dim, keepdim)
}

static SORT: Derivative = Derivative { facts: None, name: "SortBackward0", apply: put_back };
static STABLE_SORT: Derivative = Derivative { facts: None, name: "SortBackward1", apply: put_back };
static TOPK: Derivative = Derivative { facts: None, name: "TopkBackward0", apply: put_back };
static KTHVALUE: Derivative = Derivative { facts: None, name: "KthvalueBackward0", apply: put_back };
static MEDIAN: Derivative = Derivative { facts: None, name: "MedianBackward1", apply: put_back };
static NANMEDIAN: Derivative = Derivative { facts: None, name: "NanmedianBackward1", apply: put_back };

/// The lower medians along a dimension.
pub fn middle_along(x: &Tensor, dim: i64, numbers: bool) -> Result<Tensor> {
    let (derivative, pick) =
        if numbers { (&NANMEDIAN, middle_number as Pick) } else { (&MEDIAN, middle as Pick) };
    picking(derivative, x, dim, false, pick).map(|mut outputs| outputs.swap_remove(0))
}

type Pick = fn(&Body, usize) -> Result<Picked>;

/// The median of all elements, as one line; of none it is NaN.
fn middle_of_all(input: &Tensor, numbers: bool) -> Result<Body> {
    let x = input.body();
    if x.numel() == 0 {
        let nan = create::full(&[], Scalar::Float(f64::NAN), DType::F32, x.device())?;
        return super::reduce::quietly(|| create::to_dtype(&nan, x.dtype));
    }
    if x.dtype == DType::Bool || x.dtype.is_complex() {
        return Err(Fault::NoKernel { op: "median_cpu", dtype: x.dtype }.into());
    }
    crate::tensor::mode::with_grad(false, || {
        let line = view::reshape(input, &[x.numel()])?;
        let line = line.body();
        let picked = if numbers { middle_number(&line, 0)? } else { middle(&line, 0)? };
        Ok(with_shape(picked.values, &[]))
    })
}

ops! { "sort";
    /// The lower median of all elements.
    [hidden] fn median_all(input) -> y { middle_of_all(input, false) }
    input: |g, input, y, at| shared_by_all(g, input, y, &at);
    /// The lower median of all elements that are not NaN.
    [hidden] fn nanmedian_all(input) -> y { middle_of_all(input, true) }
    input: |g, input, y, at| shared_by_all(g, input, y, &at);
    /// The elements where `mask` is true.
    [hidden, linear] fn masked_pick(input; mask: Tensor) -> y {
        let (x, mask) = (input.body(), mask.body());
        let shape = shape_with_mask(x.shape(), mask.shape())?;
        let wide = |body: &Body| body.with_layout(body.layout.broadcast_to(&shape));
        select_masked(&wide(&x), &wide(&mask))
    }
    input: |g, at, input, mask| {
        let shape = shape_with_mask(&at.shape, &mask.shape())?;
        let mask = view::expand(&mask, view::ints(&shape))?;
        let places: Vec<Option<Tensor>> = nonzero_columns(&mask)?.into_iter().map(Some).collect();
        let mut zeros = filled(&shape, Scalar::Int(0), at.dtype, at.device)?;
        // They lie as the input does; a batch of samples may lie in any way.
        if let (V::Tensor(x), false) = (&input, input.is_batched()) {
            zeros.layout = dense_like(&x.body().layout.broadcast_to(&shape));
        }
        let zeros = Tensor::new(zeros);
        g.then(|t| index::index_put(&zeros, &places, &t, false))
    };
}

mod more {
    use super::*;

    fn pair(name: &'static str, outputs: Vec<Tensor>) -> Result<Out> {
        Ok(Out::Tuple(name, &["values", "indices"], outputs))
    }

    fn checked(op: &'static str, input: &Tensor, dim: i64) -> Result<()> {
        wrap_dim(dim, input.ndim())?;
        check_not_empty(op, &input.body(), Some(&[dim]))
    }

    fn median_over(op: &'static str, input: &Tensor, dim: i64, keepdim: bool) -> Result<Out> {
        checked(op, input, dim)?;
        if input.dtype() == DType::Bool {
            return Err(Fault::NoKernel { op: "median_out", dtype: DType::Bool }.into());
        }
        let outputs = match op {
            "median" => picking(&MEDIAN, input, dim, keepdim, middle),
            _ => picking(&NANMEDIAN, input, dim, keepdim, middle_number),
        };
        pair(op, outputs?)
    }

    compose! { "sort";
        /// The elements in order along `dim`, and where they were.
        [out] fn sort(input: Tensor, dim: i64 = -1, descending: bool = false, stable: Option<bool> = None) -> Out {
            let derivative = if stable.is_some() { &STABLE_SORT } else { &SORT };
            pair("sort", picking(derivative, &input, dim, true, |x, at| sorted(x, at, descending))?)
        }
        /// The indices that sort `input` along `dim`.
        fn argsort(input: Tensor, dim: i64 = -1, descending: bool = false, stable: bool = false) -> Tensor {
            let _ = stable;
            // Hooks get the indices that the values' gradient would need.
            if input.is_batched() || packing::active() {
                let pick = |x: &Body, at: usize| sorted(x, at, descending);
                return Ok(picking(&SORT, &input, dim, true, pick)?.swap_remove(1));
            }
            // As if the values were wanted, too: a view that must not be used any more is refused.
            crate::tensor::records([&input])?;
            let x = at_least_vector(&input.body());
            let indices = sorted(&x, wrap_dim(dim, x.layout.ndim())?, descending)?.indices;
            Ok(Tensor::new(if input.ndim() == 0 { with_shape(indices, &[]) } else { indices }))
        }
        /// The elements in order along the first dimension.
        [out] fn msort(input: Tensor) -> Tensor {
            let mut outputs = picking(&SORT, &input, 0, true, |x, at| sorted(x, at, false))?;
            Ok(outputs.swap_remove(0))
        }
        /// The `k` largest (or smallest) elements along `dim`, best first, and where they were.
        [out] fn topk(input: Tensor, k: i64, dim: i64 = -1, largest: bool = true, sorted: bool = true) -> Out {
            let _ = sorted;
            let at = wrap_dim(dim, input.ndim())?;
            let most = input.shape().get(at).copied().unwrap_or(1);
            let k = usize::try_from(k).ok().filter(|&k| k <= most);
            let k = k.ok_or_else(|| Error::runtime("selected index k out of range"))?;
            if input.dtype() == DType::Bool {
                return Err(Error::not_implemented("topk does not support bool dtypes on CPU"));
            }
            pair("topk", picking(&TOPK, &input, dim, true, |x, at| top(x, k, at, largest))?)
        }
        /// The `k`-th smallest element along `dim`, counted from 1, and where it was.
        [out] fn kthvalue(input: Tensor, k: i64, dim: i64 = -1, keepdim: bool = false) -> Out {
            let at = wrap_dim(dim, input.ndim())?;
            checked("kthvalue", &input, dim)?;
            let most = input.shape().get(at).copied().unwrap_or(1);
            let k = usize::try_from(k).ok().filter(|&k| k >= 1 && k <= most).ok_or_else(|| {
                Error::runtime(format!("kthvalue(): selected number k out of range for dimension {at}"))
            })?;
            if input.dtype() == DType::Bool && input.ndim() > 0 {
                return Err(Fault::NoKernel { op: "kthvalue_cpu", dtype: DType::Bool }.into());
            }
            pair("kthvalue", picking(&KTHVALUE, &input, dim, keepdim, |x, at| kth(x, k, at))?)
        }
        /// The lower median of all elements; along `dim` also where it was.
        fn median(input: Tensor, dim: Option<i64> = None, keepdim: bool = false) -> Out {
            match dim {
                None => median_all(&input).map(Out::Tensor),
                Some(dim) => median_over("median", &input, dim, keepdim),
            }
        }
        /// The lower median of the elements that are not NaN; along `dim` also where it was.
        fn nanmedian(input: Tensor, dim: Option<i64> = None, keepdim: bool = false) -> Out {
            match dim {
                None => nanmedian_all(&input).map(Out::Tensor),
                Some(dim) => median_over("nanmedian", &input, dim, keepdim),
            }
        }
        /// Where elements are not zero: one row each, or with `as_tuple` one vector per dimension.
        [out] fn nonzero(input: Tensor, as_tuple: bool = false) -> Out {
            if as_tuple {
                if input.is_batched() {
                    return Err(crate::ops::batch::refuse_rule("nonzero_numpy"));
                }
                let vector = if input.ndim() > 0 { input } else { view::reshape(&input, &[1])? };
                return nonzero_vectors(&vector).map(Out::from);
            }
            Ok(Out::Tensor(argwhere(input)?))
        }
        /// Where elements are not zero: one row each.
        fn argwhere(input: Tensor) -> Tensor { by_columns(positions(&input.body())?).map(Tensor::new) }
        /// The elements where `mask` is true, as a vector.
        [out] fn masked_select(input: Tensor, mask: Tensor) -> Tensor {
            if mask.dtype() != DType::Bool {
                return Err(Error::runtime("masked_select: expected BoolTensor for mask"));
            }
            if !crate::ops::batch::any(&[&input, &mask]) {
                return masked_pick(&input, mask);
            }
            let shape = shape_with_mask(&input.shape(), &mask.shape())?;
            let wide = |t: &Tensor| if t.shape() == shape { Ok(t.clone()) } else { view::expand(t, view::ints(&shape)) };
            masked_pick(&wide(&input)?, wide(&mask)?)
        }
    }
}
pub use more::{COMPOSED, argsort, masked_select, msort};
