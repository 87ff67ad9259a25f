//! Writing into expanded tensors, where one element stands for several: a few operators do it, element after element.

use super::advanced;
use super::index::expand_masks;
use super::kernel::fill;
use super::row::{Arg, Row, Value};
use super::scatter::{copy_slices, fill_slices, number};
use super::view::{expand, ints};
use crate::base::{Result, Scalar, wrap_dim};
use crate::tensor::{Body, Tensor};

/// Operators that PyTorch warns of, by the method's name.
const DEPRECATED: [&str; 3] = ["index_fill", "index_put", "masked_fill"];

/// The operator that should no longer write into this target, when the row's in-place form is one.
pub fn deprecated(row: &Row, args: &[Arg]) -> Option<&'static str> {
    let name = row.name.trim_end_matches('_');
    let name = DEPRECATED.into_iter().find(|&known| known == name)?;
    matches!(args.first(), Some(Arg::Tensor(target)) if target.body().layout.is_stretched()).then_some(name)
}

/// Writes the values of the row's in-place form into a stretched target; false when the row does not write there.
pub fn write(row: &Row, target: &Body, args: &[Arg]) -> Result<bool> {
    let whole = Tensor::new(target.clone());
    match (row.name.trim_end_matches('_'), args) {
        ("tril", [_, rest @ ..]) if lies_in_batches(target) => triangle(target, rest, true)?,
        ("triu", [_, rest @ ..]) if lies_in_batches(target) => triangle(target, rest, false)?,
        ("index_fill", [_, Arg::Int(dim), Arg::Tensor(index), value]) => {
            fill_slices(target, *dim, index, number("index_fill_", &operand(value))?)?;
        }
        ("masked_fill", [_, Arg::Tensor(mask), value]) => {
            let value = match operand(value) {
                Value::Tensor(t) => t.item()?,
                Value::Scalar(s) => s,
            };
            let value = super::create::full(&[], value, target.dtype, target.device())?;
            let mask = expand(mask, ints(target.shape()))?;
            let places: Vec<_> = expand_masks(&whole, 0, mask)?.into_iter().map(Some).collect();
            advanced::write(target, &places, &value, false)?;
        }
        ("index_put", [_, Arg::Tensors(indices), Arg::Tensor(values), rest @ ..]) => {
            let mut places = Vec::new();
            for index in indices {
                places.extend(expand_masks(&whole, places.len(), index.clone())?.into_iter().map(Some));
            }
            let accumulate = matches!(rest, [Arg::Bool(true), ..]);
            advanced::write(target, &places, values, accumulate)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// What an operator says of indices into an empty target depends on the target's own storage, which a copy has not.
pub fn check_empty(row: &Row, target: &Body, args: &[Arg]) -> Result<()> {
    match (row.name, args) {
        ("index_fill", [_, Arg::Int(dim), Arg::Tensor(index), value]) => {
            fill_slices(target, *dim, index, number("index_fill_", &operand(value))?)
        }
        ("index_copy", [_, Arg::Int(dim), Arg::Tensor(index), Arg::Tensor(source)]) => {
            copy_slices(target, &source.body(), *dim, index)
        }
        _ => Ok(()),
    }
}

fn operand(arg: &Arg) -> Value {
    match arg {
        Arg::Tensor(t) => Value::Tensor(t.clone()),
        other => Value::Scalar(other.number().unwrap_or(Scalar::Int(0))),
    }
}

/// Whether the matrices of a batch follow each other in memory; what the first dimension does does not count, nor how
/// few batches lie.
fn lies_in_batches(target: &Body) -> bool {
    let layout = &target.layout;
    let n = layout.ndim();
    let mut expected: usize = layout.shape[n.saturating_sub(2)..].iter().product();
    n <= 3
        || (0..n - 2).rev().all(|i| {
            let fits =
                layout.strides[i] == expected || (i == 0 && (layout.strides[i] == 0 || layout.shape[i] == 1));
            expected *= layout.shape[i];
            fits
        })
}

/// Zeros beyond the diagonal, line by line: those of one line are seen by all that share its memory.
fn triangle(target: &Body, rest: &[Arg], lower: bool) -> Result<()> {
    let diagonal = if let [Arg::Int(diagonal), ..] = rest { *diagonal } else { 0 };
    let [rows, columns] = [wrap_dim(-2, target.layout.ndim())?, wrap_dim(-1, target.layout.ndim())?];
    let (rows, columns) = (target.shape()[rows] as i64, target.shape()[columns] as i64);
    for row in 0..rows {
        let edge = row.saturating_add(diagonal);
        let zeros =
            if lower { edge.saturating_add(1).clamp(0, columns)..columns } else { 0..edge.clamp(0, columns) };
        let line = target.layout.select(-2, row)?.narrow(-1, zeros.start, zeros.end - zeros.start)?;
        fill(&target.with_layout(line), Scalar::Int(0))?;
    }
    Ok(())
}
