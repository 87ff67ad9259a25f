//! Index writes that nobody keeps a history of: straight into the target, which is not copied first. Every index is checked
//! before the first element is written.

use super::index::{add_slices, scaled, scatter_over};
use super::inplace::check_disjoint;
use super::pointwise::check_writable;
use super::row::{Arg, Row};
use super::scatter::{check_fill_index, copy_slices, fill_slices, number_like};
use super::slice_rules::check_slices;
use super::view::{expand, ints};
use crate::base::{Put, Result};
use crate::tensor::{Tensor, any_requires_grad};

/// Whether nothing but the elements changes, and no operand shares the target's memory.
fn is_plain(target: &Tensor, args: &[Arg]) -> bool {
    let tensors = || args.iter().filter_map(|a| if let Arg::Tensor(t) = a { Some(t) } else { None });
    let body = target.body();
    !any_requires_grad(tensors())
        && !tensors().any(Tensor::is_special)
        && body.numel() > 0
        && check_writable(&body).is_ok()
        && tensors().skip(1).all(|t| check_disjoint(target, t).is_ok())
}

/// Writes what the row's in-place form writes; false when that takes more than a write.
pub fn write(row: &Row, target: &Tensor, args: &[Arg]) -> Result<bool> {
    if row.family != "index" || !is_plain(target, args) {
        return Ok(false);
    }
    let out = &target.body();
    match (row.name, args) {
        ("scatter_add", [_, Arg::Int(dim), Arg::Tensor(index), Arg::Tensor(src)]) => {
            scatter_over(out, &src.body(), *dim, index, Put::Add)?;
        }
        (
            "scatter",
            [_, Arg::Int(dim), Arg::Tensor(index), src, Arg::Missing | Arg::None, Arg::Missing | Arg::None],
        ) => {
            let src = match (src, src.number()) {
                (Arg::Tensor(src), _) => src.clone(),
                (_, Some(number)) => expand(&number_like(target, number)?, ints(&index.shape()))?,
                _ => return Ok(false),
            };
            scatter_over(out, &src.body(), *dim, index, Put::Assign)?;
        }
        ("index_add", [_, Arg::Int(dim), Arg::Tensor(index), Arg::Tensor(source), alpha]) => {
            check_slices("index_add_", out, &source.body(), *dim, index)?;
            let source = match alpha.number() {
                Some(alpha) if !alpha.is_one() => scaled(source, alpha)?,
                _ => source.clone(),
            };
            add_slices(out, &source.body(), *dim, index)?;
        }
        ("index_copy", [_, Arg::Int(dim), Arg::Tensor(index), Arg::Tensor(source)]) => {
            copy_slices(out, &source.body(), *dim, index)?;
        }
        ("index_fill", [_, Arg::Int(dim), Arg::Tensor(index), value]) => {
            let Some(value) = value.number() else { return Ok(false) };
            check_fill_index(index)?;
            fill_slices(out, *dim, index, value)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}
