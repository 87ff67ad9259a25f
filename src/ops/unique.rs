//! Different elements, or different slices: in order, or the first of each run of equals.

use super::index::{index_select, scatter_into};
use super::macros::compose;
use super::record::{begin, end_many};
use super::row::Out;
use super::sort::{argsort, masked_pick};
use super::{arithmetic as a, create, reduce, view};
use crate::base::{DType, Error, Fault, Put, Result, wrap_dim};
use crate::tensor::{Derivative, Tensor};

/// What is picked knows where it comes from, but no gradient goes there.
macro_rules! not_derived {
    ($($derivative:ident = $node:literal, $op:literal;)*) => { $(
        static $derivative: Derivative = Derivative {
            facts: None,
            name: $node,
            apply: |_| Err(Error::not_implemented(concat!("the derivative for '", $op, "' is not implemented."))),
        };
    )* };
}
not_derived! {
    UNIQUE = "Unique2Backward0", "_unique2";
    UNIQUE_DIM = "UniqueDimBackward0", "unique_dim";
    UNIQUE_CONSECUTIVE = "UniqueConsecutiveBackward0", "unique_consecutive";
}

/// Items to tell apart, one a row: elements, or the slices across `dim`.
struct Items {
    rows: Tensor,
    dim: Option<i64>,
}

impl Items {
    fn of(input: &Tensor, dim: Option<i64>) -> Result<Items> {
        let whole = create::shallow(input);
        let Some(dim) = dim else { return Ok(Items { rows: view::reshape(&whole, &[input.numel()])?, dim }) };
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

    /// As many numbers a row as an item has elements.
    fn flat(&self) -> Result<Tensor> {
        let shape = self.rows.shape();
        view::reshape(&self.rows, &[shape[0], crate::base::numel(&shape[1..])])
    }

    /// The order of the items: by their first elements, then by the next ones.
    fn order(&self) -> Result<Tensor> {
        let flat = self.flat()?;
        if self.count() < 2 {
            return Ok(Tensor::new(super::index::numbers(0, 1, self.count(), flat.device())?));
        }
        let column = |i: usize| view::select(&flat, 1, i as i64);
        let last = flat.shape()[1] - 1;
        let first = argsort(column(last)?, 0, false, true)?;
        (0..last).rev().try_fold(first, |order, i| {
            let next = argsort(index_select(&column(i)?, 0, order.clone())?, 0, false, true)?;
            index_select(&order, 0, next)
        })
    }

    fn in_order(self, order: &Tensor) -> Result<Items> {
        Ok(Items { rows: index_select(&self.rows, 0, order.clone())?, ..self })
    }
}

/// The runs of equal neighbours among items.
struct Runs {
    items: Items,
    /// Whether an item starts a run.
    starts: Tensor,
    /// The number of each item's run.
    number: Tensor,
}

impl Runs {
    fn of(items: Items) -> Result<Runs> {
        let n = items.count();
        let starts = create::ones(&[n], DType::Bool, items.rows.device())?;
        if n > 1 {
            let (flat, rest) = (items.flat()?, n as i64 - 1);
            let differs = a::ne(&view::narrow(&flat, 0, 1, rest)?, &view::narrow(&flat, 0, 0, rest)?)?;
            let differs = reduce::any(&differs, Some(smallvec::smallvec![1]), false)?;
            super::kernel::copy(&view::narrow(&starts, 0, 1, rest)?.body(), &differs.body())?;
        }
        let running = super::scan::Cumsum::call(&create::to_dtype(&starts, DType::I64)?, 0)?;
        Ok(Runs { number: a::sub(&running, 1i64)?, starts, items })
    }

    /// The first item of each run, as it lay in `input`.
    fn firsts(&self, derivative: &'static Derivative, input: &Tensor) -> Result<Tensor> {
        let recorder = begin(derivative, &[input], || None);
        let Items { rows, dim } = &self.items;
        let first = match dim {
            None => masked_pick(rows, self.starts.clone())?,
            Some(dim) => {
                let places = super::sort::nonzero_columns(&self.starts)?.swap_remove(0);
                view::transpose(&index_select(rows, 0, places)?, 0, *dim)?
            }
        };
        let body = first.body().clone();
        Ok(end_many(recorder, &[], &[input], vec![body])?.swap_remove(0))
    }

    fn counts(&self, kinds: usize) -> Result<Tensor> {
        let zeros = create::zeros(&[kinds], DType::I64, self.number.device())?;
        let ones = create::ones(&self.number.shape(), DType::I64, self.number.device())?;
        scatter_into(&zeros, &ones, 0, self.number.clone(), Put::Add)
    }

    fn outputs(
        &self,
        derivative: &'static Derivative,
        input: &Tensor,
        inverse: Option<Result<Tensor>>,
        counts: bool,
    ) -> Result<Out> {
        let mut outputs = vec![self.firsts(derivative, input)?];
        if let Some(inverse) = inverse.transpose()? {
            let shape = if self.items.dim.is_none() { input.shape() } else { inverse.shape() };
            outputs.push(create::shallow(&view::reshape(&inverse, &shape)?));
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
        return Err(super::batch::refuse_dynamic(op));
    }
    let kernel = if op == "unique_dim" { op } else { "unique" };
    match input.dtype() {
        dtype if dtype.is_complex() => Err(Fault::NoKernel { op: kernel, dtype }.into()),
        _ => Ok(()),
    }
}

compose! { "sort";
    /// The different elements in order, or the different slices across `dim`; on request where each went, and how often each
    /// occurs.
    fn unique(input: Tensor, sorted: bool = true, return_inverse: bool = false, return_counts: bool = false, dim: Option<i64> = None) -> Out {
        let _ = sorted;
        let (op, derivative) = if dim.is_some() { ("unique_dim", &UNIQUE_DIM) } else { ("_unique2", &UNIQUE) };
        check(op, &input)?;
        let items = Items::of(&input, dim)?;
        let order = items.order()?;
        let runs = Runs::of(items.in_order(&order)?)?;
        let inverse = || {
            let into = create::zeros(&order.shape(), DType::I64, order.device())?;
            scatter_into(&into, &runs.number, 0, order.clone(), Put::Assign)
        };
        runs.outputs(derivative, &input, return_inverse.then(inverse), return_counts)
    }
    /// The first of each run of equal elements, or of equal slices across `dim`; on request which run each is in, and how long
    /// each run is.
    fn unique_consecutive(input: Tensor, return_inverse: bool = false, return_counts: bool = false, dim: Option<i64> = None) -> Out {
        check("unique_consecutive", &input)?;
        let runs = Runs::of(Items::of(&input, dim)?)?;
        let inverse = return_inverse.then(|| Ok(runs.number.clone()));
        runs.outputs(&UNIQUE_CONSECUTIVE, &input, inverse, return_counts)
    }
}
