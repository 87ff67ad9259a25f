//! Quantiles and the mode, which are found by sorting.

use crate::operator::primitives::constant::full;
use crate::operator::primitives::copies::{clone_dense, to_dtype};
use crate::operator::primitives::views;
use crate::ops::elementwise::arithmetic as a;
use crate::ops::indexing::index::{Gather, numbers};
use crate::ops::prelude::*;
use crate::ops::reduction::extrema::{argmax, pick, scatter_gradient};
use crate::ops::reduction::reduce::no_grad;
use crate::ops::reduction::scan::cummax;
use crate::ops::shape::join::cat;
use crate::ops::shape::{slices, squeeze, view};
use crate::ops::sorting::sort::sort;
use smallvec::smallvec;

fn check(input: &Tensor, q: &Tensor, interpolation: &str) -> Result<()> {
    let refuse = |text: String| Err(Error::runtime(format!("quantile() {text}")));
    if input.numel() == 0 {
        return refuse("input tensor must be non-empty".into());
    }
    if q.ndim() > 1 {
        return refuse("q must be a scalar or 1D tensor".into());
    }
    if !matches!(input.dtype(), DType::F32 | DType::F64) {
        return refuse("input tensor must be either float or double dtype".into());
    }
    if q.dtype() != input.dtype() {
        return refuse("q tensor must be same dtype as the input tensor".into());
    }
    if !matches!(interpolation, "linear" | "lower" | "higher" | "midpoint" | "nearest") {
        return refuse(format!(
            "interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        ));
    }
    Ok(())
}

fn quantiles(
    input: &Tensor,
    q: &Tensor,
    dim: Option<i64>,
    keepdim: bool,
    interpolation: &str,
    skips: bool,
) -> Result<Tensor> {
    check(input, q, interpolation)?;
    let rank = input.ndim();
    let axis = match dim {
        Some(dim) if rank > 0 => Some(wrap_dim(dim, rank)? as i64),
        _ => None,
    };
    // Move the reduced dimension to the end and leave a dimension of size 1 in its place, so that the others keep their order.
    let line = match axis {
        None => view::flatten(input, 0, -1)?,
        Some(axis) => view::transpose(&squeeze::unsqueeze(input, -1)?, axis, -1)?,
    };
    let n = *line.shape().last().unwrap_or(&1);
    let [sorted, _] = sort(&line, -1, false, None)?;
    let sorted = V::from(sorted);
    let q_line = V::from(q).reshape(&[q.numel()]);
    let known = not(is_nan(&sorted));
    let ranks = if skips {
        // NaN is sorted last.
        let count = known.sum(&[-1], true).cast(input.dtype());
        maximum((count - 1.0) * q_line, 0.0)
    } else {
        let last = sorted.clone().then(|t| slices::narrow(&t, -1, n as i64 - 1, 1));
        let whole = q_line * (n - 1) as f64;
        select(whole, (n - 1) as f64, is_nan(last))
    };
    let mut wide = line.shape();
    let end = wide.len() - 1;
    wide[end] = q.numel();
    let ranks = ranks.expand(&wide);
    let at = |ranks: V| {
        let index = ranks.cast(DType::I64);
        sorted.with(index, |sorted, index| Gather::call(sorted, -1, index))
    };
    let made = match interpolation {
        "lower" => at(floor(&ranks)),
        "higher" => at(-floor(-&ranks)),
        "nearest" => at(ranks.then(|t| crate::ops::elementwise::power::round(&t, None))),
        _ => {
            let below = floor(&ranks);
            let share = if interpolation == "midpoint" { V::from(0.5) } else { &ranks - &below };
            let (low, high) = (at(below), at(-floor(-&ranks)));
            V::apply(&a::lerp::ROW, &[low.clone(), high, share])
        }
    };
    let mut made = made.tensor()?;
    if axis.is_none() && keepdim {
        made = views::reshape(&made, &[vec![1; rank], vec![q.numel()]].concat())?;
    }
    // The dimension of several quantiles goes to the front. Dimensions of size 1 that are not kept are removed.
    if q.ndim() > 0 {
        made = view::transpose(&squeeze::unsqueeze(&made, 0)?, 0, -1)?;
    }
    made = squeeze::squeeze_one(&made, -1)?;
    match axis {
        Some(axis) if !keepdim => squeeze::squeeze_one(&made, axis + q.ndim() as i64),
        _ => Ok(made),
    }
}

fn as_tensor(name: &str, q: f64, like: &Tensor) -> Result<Tensor> {
    if !(0.0..=1.0).contains(&q) {
        return Err(Error::runtime(format!("{name}() q must be in the range [0, 1] but got {q}")));
    }
    full(&[], Scalar::Float(q), like.dtype(), like.device())
}

fn check_range(name: &str, q: &Tensor) -> Result<()> {
    if q.is_batched() || q.numel() == 0 || !q.dtype().is_differentiable() {
        return Ok(());
    }
    let inside = both(le(0.0, V::from(q)), le(V::from(q), 1.0)).tensor()?;
    if crate::ops::reduction::reduce::all(&inside, None, false)?.item()?.as_bool() {
        return Ok(());
    }
    Err(Error::runtime(format!("{name}() q values must be in the range [0, 1]")))
}

macro_rules! quantile_rows {
    ($($(#[doc = $doc:literal])+ $name:ident, $skips:literal, $sample:tt;)*) => { $(
        $(#[doc = $doc])+
        #[operator(function, method, out(message = "quantile() out tensor must be same dtype as the input tensor"),
            autocast = single, sample = $sample)]
        pub fn $name(
            input: &Tensor,
            q: &Tensor,
            dim: Option<i64>,
            #[default(false)] keepdim: bool,
            #[keyword]
            #[default("linear".to_string())]
            interpolation: String,
        ) -> Result<Tensor> {
            check_range(stringify!($name), q)?;
            quantiles(input, q, dim, keepdim, &interpolation, $skips)
        }
    )* };
}
quantile_rows! {
    /// Compute quantiles of all elements or along a dimension: the values below which given shares of them lie.
    ///
    /// Args:
    ///     q: the shares, between 0 and 1: a number or a vector.
    ///     dim: dimension to reduce; without it, the tensor is flattened.
    ///     interpolation: what to take between two elements: `"linear"`, `"lower"`, `"higher"`, `"nearest"` or
    ///         `"midpoint"`.
    ///
    /// Examples:
    ///     >>> x = torch.tensor([1.0, 2.0, 3.0, 4.0])
    ///     >>> torch.quantile(x, 0.5), torch.quantile(x, torch.tensor([0.0, 0.25]))
    ///     (tensor(2.5000), tensor([1.0000, 1.7500]))
    quantile, false,
        "shaped(lambda draw, shape: widened(lambda x: T.quantile(x, 0.3, 0)), FULL, least=1)";
    /// Compute quantiles of the elements that are not NaN, of all or along a dimension.
    ///
    /// Args:
    ///     q: the shares, between 0 and 1: a number or a vector.
    ///     dim: dimension to reduce; without it, the tensor is flattened.
    ///     interpolation: what to take between two elements: `"linear"`, `"lower"`, `"higher"`, `"nearest"` or
    ///         `"midpoint"`.
    ///
    /// Examples:
    ///     >>> torch.nanquantile(torch.tensor([1.0, float("nan"), 3.0]), 0.5)
    ///     tensor(2.)
    nanquantile, true,
        "shaped(lambda draw, shape: widened(lambda x: T.nanquantile(x, 0.3, 0)), FULL, least=1)";
}

/// Compute one quantile: the value below which the share `q` of the elements lies.
#[overload(quantile.scalar)]
pub fn quantile_at(
    input: &Tensor,
    q: f64,
    dim: Option<i64>,
    #[default(false)] keepdim: bool,
    #[keyword]
    #[default("linear".to_string())]
    interpolation: String,
) -> Result<Tensor> {
    let q = as_tensor("quantile", q, input)?;
    quantiles(input, &q, dim, keepdim, &interpolation, false)
}

/// Compute one quantile of the elements that are not NaN.
#[overload(nanquantile.scalar)]
pub fn nanquantile_at(
    input: &Tensor,
    q: f64,
    dim: Option<i64>,
    #[default(false)] keepdim: bool,
    #[keyword]
    #[default("linear".to_string())]
    interpolation: String,
) -> Result<Tensor> {
    let q = as_tensor("nanquantile", q, input)?;
    quantiles(input, &q, dim, keepdim, &interpolation, true)
}

/// The value of the longest run of sorted elements (the first of equally long ones), and the index of its last element.
fn commonest(input: &Tensor, dim: i64, keepdim: bool) -> Result<[Tensor; 2]> {
    if input.ndim() == 0 {
        return Ok([clone_dense(input)?, full(&[], Scalar::Int(0), DType::I64, input.device())?]);
    }
    let [sorted, places] = sort(input, dim, false, Some(true))?;
    let n = sorted.shape()[dim as usize];
    let part = |start: i64| slices::narrow(&sorted, dim, start, n as i64 - 1);
    // Positions along the line, and for each the start of its run.
    let mut line: Dims = smallvec![1; input.ndim()];
    line[dim as usize] = n;
    let positions =
        V::from(Tensor::new(numbers(0, 1, n, input.device())?)).reshape(&line).expand(&sorted.shape());
    let first = positions.clone().then(|t| slices::narrow(&t, dim, 0, 1)).tensor()?;
    let new = ne(V::from(part(1)?), V::from(part(0)?));
    let later = positions.clone().then(|t| slices::narrow(&t, dim, 1, n as i64 - 1));
    let later = select(V::from(Scalar::Int(0)), later, new).cast(DType::I64).tensor()?;
    let starts = cat(&[first, later], dim)?;
    let [starts, _] = cummax(&starts, dim)?;
    let lengths = (positions - V::from(starts)).tensor()?;
    let best = argmax(&lengths, Some(dim), true)?;
    let mut found = [Gather::call(&sorted, dim, &best)?, Gather::call(&places, dim, &best)?];
    if !keepdim {
        found = [squeeze::squeeze_one(&found[0], dim)?, squeeze::squeeze_one(&found[1], dim)?];
    }
    Ok(found)
}

#[primitive(batch = along(dim, keepdim), tangent = fn, results(values, indices))]
impl Mode {
    fn forward(input: &Tensor, dim: i64, keepdim: bool) -> Result<[Body; 2]> {
        let mut places = None;
        let values = no_grad(|| {
            let [values, indices] = commonest(input, dim, keepdim)?;
            places = Some(indices.body().clone());
            Ok(values)
        })?;
        let places =
            places.ok_or_else(|| Error::runtime("mode(): internal error: no indices were computed"))?;
        Ok([values, to_dtype(&Tensor::new(places), DType::I64)?.body().clone()])
    }
    fn d_input(g: Tensor, indices: Tensor, at: Meta, dim: i64, keepdim: bool) -> Result<Tensor> {
        scatter_gradient(g, indices, &at, dim, keepdim)
    }
    fn tangent(t_input: &Tensor, indices: &Tensor, dim: i64, keepdim: bool) -> Result<Tensor> {
        pick(t_input, indices, dim, keepdim)
    }
}

/// Return the most frequent value along a dimension, the smallest of several, and an index where it occurs.
///
/// Args:
///     dim: dimension to reduce.
///
/// Returns:
///     A named tuple `(values, indices)`.
///
/// Examples:
///     >>> torch.mode(torch.tensor([1, 2, 2, 3])).values
///     tensor(2)
#[operator(
    function,
    method,
    out(message = "expected scalar type '{result}' but got '{target}' for {name} output"),
    returns(values, indices),
    sample = "over_dim(lambda x, dim: T.mode(x, dim)[0])"
)]
pub fn mode(input: &Tensor, #[default(-1)] dim: i64, #[default(false)] keepdim: bool) -> Result<[Tensor; 2]> {
    let at = wrap_dim(dim, input.ndim())?;
    if input.shape().get(at) == Some(&0) {
        return Err(
            Fault::Index(format!("mode(): Expected reduction dim {at} to have non-zero size.")).into()
        );
    }
    if input.dtype().is_complex() {
        return Err(Fault::NoKernel { op: "mode_cpu", dtype: input.dtype() }.into());
    }
    Mode::call(input, at as i64, keepdim)
}
