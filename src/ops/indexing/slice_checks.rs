//! The checks of `index_add` and `index_copy`, in PyTorch's order.

use crate::base::{DType, Dims, Error, Result, wrap_dim};
use crate::operator::Row;
use crate::tensor::{Body, Tensor};

/// Rejects an index whose dtype is not int32 or int64.
pub(crate) fn check_index(op: &str, index: &Tensor) -> Result<()> {
    if matches!(index.dtype(), DType::I64 | DType::I32) || index.numel() == 0 {
        return Ok(());
    }
    Err(Error::runtime(format!("{op}(): Expected dtype int32/int64 for index")))
}

/// The shape without dimension `dim`.
fn across(body: &Body, dim: usize) -> Dims {
    body.shape().iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, &n)| n).collect()
}

/// Checks that the shapes of `index_copy`'s source and target fit.
fn check_copied(out: &Body, source: &Body, count: usize) -> Result<()> {
    let (from, to) = (source.layout.ndim(), out.layout.ndim());
    if from != to && from > 0 && to > 0 {
        return Err(Error::index(format!(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source dimensionality \
             ({from}), destination dimensionality ({to})"
        )));
    }
    if from == 0 && count != 1 {
        return Err(Error::index(format!(
            "index_copy_(): When source is scalar, index should have one element (got {count})"
        )));
    }
    Ok(())
}

/// The shape rule of `index_copy`: checks the slices' shape first, then their number.
fn check_copies(out: &Body, source: &Body, at: usize, count: usize) -> Result<()> {
    let (to, from) = (across(out, at), across(source, at));
    if to != from {
        return Err(Error::runtime(format!(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: {} at dimension \
             {at} and source slice shape: {} at dimension {}.",
            join_sizes(&to),
            join_sizes(&from),
            if source.layout.ndim() == 0 { 0 } else { at }
        )));
    }
    match source.shape().get(at) {
        Some(&picked) if picked != count => Err(Error::index(format!(
            "index_copy_(): Number of indices ({count}) should be equal to source.size(dim) ({picked})"
        ))),
        _ => Ok(()),
    }
}

fn join_sizes(sizes: &[usize]) -> String {
    sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(" ")
}

/// The shape rule of `index_add`: checks the number of slices first, then their shape.
fn check_added(out: &Body, source: &Body, at: usize, count: usize) -> Result<()> {
    if at > 0 && at >= source.layout.ndim() {
        return Err(Error::runtime(format!(
            "index_add_(): Indexing dim {at} is out of bounds of the source tensor with dim {}",
            source.layout.ndim()
        )));
    }
    match source.shape().get(at) {
        None if count != 1 => {
            return Err(Error::index(format!("Dimension specified as {at} but tensor has no dimensions")));
        }
        Some(&picked) if picked != count => {
            return Err(Error::runtime(format!(
                "index_add_(): Number of indices ({count}) should be equal to source.size(dim): ({picked}), for dim: {at}"
            )));
        }
        _ => {}
    }
    let alike = out.layout.ndim() == source.layout.ndim()
        && (out.layout.ndim() == 0 || across(out, at) == across(source, at));
    if alike {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = {:?} \
         source.shape = {:?}",
        out.shape(),
        source.shape()
    )))
}

/// The checks of the in-place form of `row`, whose slices are copied (`copies`) or added.
pub fn check_slices(
    row: &Row,
    copies: bool,
    out: &Body,
    source: &Body,
    dim: i64,
    index: &Tensor,
) -> Result<usize> {
    let op = || format!("{}_", row.name);
    let at = wrap_dim(dim, out.layout.ndim())?;
    let whole = matches!(index.dtype(), DType::I64 | DType::I32) || index.numel() == 0;
    let found = index.dtype().scalar_name();
    if index.ndim() > 1 {
        let (op, ndim, shape) = (op(), index.ndim(), index.shape());
        return Err(Error::index(if copies {
            format!("{op}(): Index should have dimension 1 or 0 (got {ndim})")
        } else {
            format!(
                "{op}(): Index is supposed to be a vector, but got dim: {ndim} with type: {found} and size: {:?}",
                shape.as_slice()
            )
        }));
    }
    if copies {
        check_copied(out, source, index.numel())?;
    }
    if !whole {
        let expected =
            if copies { "a long tensor for index, but got" } else { "dtype int32/int64 for index but got:" };
        return Err(Error::runtime(format!("{}(): Expected {expected} {found}", op())));
    }
    if source.dtype != out.dtype {
        let (own, other) = (out.dtype.scalar_name(), source.dtype.scalar_name());
        let (op, words) = (op(), "self and source expected to have the same dtype, but got");
        return Err(Error::runtime(match copies {
            true => format!("{op}(): {words} (self) {own} and (source) {other}"),
            false => format!("{op}(): self ({own}) and source ({other}) must have the same scalar type"),
        }));
    }
    let check = if copies { check_copies } else { check_added };
    check(out, source, at, index.numel())?;
    Ok(at)
}
