//! `unique` and `unique_consecutive`: of elements, or of slices along a dimension.

use crate::base::Put;
use crate::operator::primitives::{constant, copies, detached, views};
use crate::operator::row::Out;
use crate::ops::derivatives::underived;
use crate::ops::elementwise::arithmetic as a;
use crate::ops::indexing::index::index_select;
use crate::ops::indexing::masked::MaskedSelect;
use crate::ops::indexing::scatter::scatter_into;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce;
use crate::ops::shape::{slices, view};
use crate::ops::sorting::sort::argsort;

fn without_tangent<T>(op: &str) -> Result<T> {
    Err(Error::not_implemented(format!(
        "Trying to use forward AD with {op} that does not support it because it has not been implemented yet."
    )))
}

#[primitive(node = "Unique2Backward0", batch = none, tangent = fn)]
impl Unique2 {
    fn forward(input: &Tensor, #[hidden] first: Body) -> Result<Body> {
        let _ = input;
        Ok(first)
    }
    fn d_input() -> Result<V> {
        underived("_unique2")
    }
    fn tangent() -> Result<Tensor> {
        without_tangent("_unique2")
    }
}

#[primitive(batch = none, tangent = fn)]
impl UniqueDim {
    fn forward(input: &Tensor, #[hidden] first: Body) -> Result<Body> {
        let _ = input;
        Ok(first)
    }
    fn d_input() -> Result<V> {
        underived("unique_dim")
    }
    fn tangent() -> Result<Tensor> {
        without_tangent("unique_dim")
    }
}

#[primitive(batch = none, tangent = fn)]
impl UniqueConsecutive {
    fn forward(input: &Tensor, #[hidden] first: Body) -> Result<Body> {
        let _ = input;
        Ok(first)
    }
    fn d_input() -> Result<V> {
        underived("unique_consecutive")
    }
    fn tangent() -> Result<Tensor> {
        without_tangent("unique_consecutive")
    }
}

type Recorded = fn(&Tensor, Body) -> Result<Tensor>;

/// The items to compare, one per row: elements, or the slices along `dim`.
struct Items {
    rows: Tensor,
    dim: Option<i64>,
}

impl Items {
    fn of(input: &Tensor, dim: Option<i64>) -> Result<Items> {
        let whole = detached::shallow(input);
        let Some(dim) = dim else {
            return Ok(Items { rows: views::reshape(&whole, &[input.numel()])?, dim });
        };
        if input.ndim() == 0 {
            return Err(Error::index(format!("Dimension specified as {dim} but tensor has no dimensions")));
        }
        let at = wrap_dim(dim, input.ndim())?;
        let shape = input.shape();
        if shape[at] > 0 && input.numel() == 0 || (0..shape.len()).any(|d| d != at && shape[d] == 0) {
            return Err(Error::runtime(
                "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied",
            ));
        }
        Ok(Items { rows: view::transpose(&whole, at as i64, 0)?, dim: Some(at as i64) })
    }

    fn count(&self) -> usize {
        self.rows.shape()[0]
    }

    /// Flattens each item, so that there is a matrix with one row per item.
    fn flat(&self) -> Result<Tensor> {
        let shape = self.rows.shape();
        views::reshape(&self.rows, &[shape[0], crate::base::numel(&shape[1..])])
    }

    /// The indices that sort the items lexicographically.
    fn order(&self) -> Result<Tensor> {
        let flat = self.flat()?;
        if self.count() < 2 {
            return Ok(Tensor::new(crate::ops::indexing::index::numbers(0, 1, self.count(), flat.device())?));
        }
        let column = |i: usize| slices::select(&flat, 1, i as i64);
        let last = flat.shape()[1] - 1;
        let first = argsort(&column(last)?, 0, false, true)?;
        (0..last).rev().try_fold(first, |order, i| {
            let next = argsort(&index_select(&column(i)?, 0, &order)?, 0, false, true)?;
            index_select(&order, 0, &next)
        })
    }

    fn in_order(self, order: &Tensor) -> Result<Items> {
        Ok(Items { rows: index_select(&self.rows, 0, order)?, ..self })
    }
}

/// The runs of equal neighbours among items.
struct Runs {
    items: Items,
    /// True where an item starts a run.
    starts: Tensor,
    /// The number of the run that each item is in.
    number: Tensor,
}

impl Runs {
    fn of(items: Items) -> Result<Runs> {
        let n = items.count();
        let starts = constant::ones(&[n], DType::Bool, items.rows.device())?;
        if n > 1 {
            let (flat, rest) = (items.flat()?, n as i64 - 1);
            let differs = a::ne(&slices::narrow(&flat, 0, 1, rest)?, &slices::narrow(&flat, 0, 0, rest)?)?;
            let differs = reduce::any(&differs, Some(smallvec::smallvec![1]), false)?;
            crate::operator::bodies::copy(&slices::narrow(&starts, 0, 1, rest)?.body(), &differs.body())?;
        }
        let running = crate::ops::reduction::scan::Cumsum::call(&copies::to_dtype(&starts, DType::I64)?, 0)?;
        Ok(Runs { number: a::sub(&running, 1i64)?, starts, items })
    }

    /// The first item of each run, in the shape it had in the input.
    fn firsts(&self) -> Result<Body> {
        let Items { rows, dim } = &self.items;
        let first = match dim {
            None => MaskedSelect::call(rows, &self.starts)?,
            Some(dim) => {
                let places = crate::ops::indexing::nonzero::nonzero_columns(&self.starts)?.swap_remove(0);
                view::transpose(&index_select(rows, 0, &places)?, 0, *dim)?
            }
        };
        Ok(first.body().clone())
    }

    fn counts(&self, kinds: usize) -> Result<Tensor> {
        let zeros = constant::zeros(&[kinds], DType::I64, self.number.device())?;
        let ones = constant::ones(&self.number.shape(), DType::I64, self.number.device())?;
        scatter_into(&zeros, &ones, 0, &self.number, Put::Add)
    }

    fn outputs(
        &self,
        recorded: Recorded,
        input: &Tensor,
        inverse: Option<Result<Tensor>>,
        counts: bool,
    ) -> Result<Out> {
        let mut outputs = vec![recorded(input, self.firsts()?)?];
        if let Some(inverse) = inverse.transpose()? {
            let shape = if self.items.dim.is_none() { input.shape() } else { inverse.shape() };
            outputs.push(detached::shallow(&views::reshape(&inverse, &shape)?));
        }
        if counts {
            let kinds = outputs[0].shape();
            outputs.push(self.counts(kinds[self.items.dim.unwrap_or(0) as usize])?);
        }
        Ok(if outputs.len() == 1 {
            Out::Tensor(outputs.swap_remove(0))
        } else {
            Out::Tuple("", &[], outputs)
        })
    }
}

fn check(op: &'static str, input: &Tensor) -> Result<()> {
    if input.is_batched() {
        return Err(crate::operator::batch::refuse::refuse_dynamic(op));
    }
    let kernel = if op == "unique_dim" { op } else { "unique" };
    match input.dtype() {
        dtype if dtype.is_complex() => Err(Fault::NoKernel { op: kernel, dtype }.into()),
        _ => Ok(()),
    }
}

/// Return the different elements of a tensor, or the different slices along a dimension.
///
/// Args:
///     sorted: whether the result has to be sorted; it is in any case.
///     return_inverse: whether to return, for each element, its index in the result.
///     return_counts: whether to return how often each result occurs.
///     dim: dimension along which slices are compared; without it, the tensor is flattened.
///
/// Returns:
///     A tensor, or a tuple of it with the inverse indices and the counts that are asked for.
///
/// Examples:
///     >>> torch.unique(torch.tensor([2, 1, 2]))
///     tensor([1, 2])
///     >>> torch.unique(torch.tensor([2, 1, 2]), return_counts=True)
///     (tensor([1, 2]), tensor([1, 2]))
#[operator(function, method, sample = "underived")]
pub fn unique(
    input: &Tensor,
    #[default(true)] sorted: bool,
    #[default(false)] return_inverse: bool,
    #[default(false)] return_counts: bool,
    dim: Option<i64>,
) -> Result<Out> {
    let _ = sorted;
    let (op, recorded) = if dim.is_some() {
        ("unique_dim", UniqueDim::call as Recorded)
    } else {
        ("_unique2", Unique2::call as _)
    };
    check(op, input)?;
    let items = Items::of(input, dim)?;
    let order = items.order()?;
    let runs = Runs::of(items.in_order(&order)?)?;
    let inverse = || {
        let into = constant::zeros(&order.shape(), DType::I64, order.device())?;
        scatter_into(&into, &runs.number, 0, &order, Put::Assign)
    };
    runs.outputs(recorded, input, return_inverse.then(inverse), return_counts)
}

/// Remove repeated elements, or slices along a dimension, that directly follow an equal one.
///
/// Args:
///     return_inverse: whether to return, for each element, its index in the result.
///     return_counts: whether to return how long each run of equal elements is.
///     dim: dimension along which slices are compared; without it, the tensor is flattened.
///
/// Returns:
///     A tensor, or a tuple of it with the inverse indices and the counts that are asked for.
///
/// Examples:
///     >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]), return_counts=True)
///     (tensor([1, 2, 1]), tensor([2, 1, 1]))
#[operator(function, method, sample = "underived")]
pub fn unique_consecutive(
    input: &Tensor,
    #[default(false)] return_inverse: bool,
    #[default(false)] return_counts: bool,
    dim: Option<i64>,
) -> Result<Out> {
    check("unique_consecutive", input)?;
    let runs = Runs::of(Items::of(input, dim)?)?;
    let inverse = return_inverse.then(|| Ok(runs.number.clone()));
    runs.outputs(UniqueConsecutive::call, input, inverse, return_counts)
}
