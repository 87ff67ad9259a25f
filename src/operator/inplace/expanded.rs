//! Writing into expanded tensors, where one element stands for several: a few operators do it, element after element.

use crate::base::{Result, Scalar, wrap_dim};
use crate::operator::kernel::fill;
use crate::operator::row::{Arg, Row};
use crate::tensor::Body;

/// Writes the values of the row's in-place form into a stretched target; false when the row does not write there.
pub fn write(row: &Row, target: &Body, args: &[Arg]) -> Result<bool> {
    match (row.name.trim_end_matches('_'), args) {
        ("tril", [_, rest @ ..]) if lies_in_batches(target) => triangle(target, rest, true)?,
        ("triu", [_, rest @ ..]) if lies_in_batches(target) => triangle(target, rest, false)?,
        _ => return Ok(false),
    }
    Ok(true)
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
