//! The short way of view methods called with whole numbers (`x.view(2, 3)`): no argument is put in a box on its way. What
//! does not fit (a dtype, a keyword, a tuple) takes the row's ordinary call, which does the same.

use super::row::Ints;
use super::view;
use crate::base::Result;
use crate::base::views::infer_shape;
use crate::tensor::{Tensor, any_requires_grad};

pub type Short = fn(&Tensor, &[i64]) -> Option<Result<Tensor>>;

/// Whether a method that takes numbers takes them in a tuple, too.
pub fn takes_a_list(name: &str) -> bool {
    matches!(name, "view" | "reshape" | "expand" | "permute")
}

/// The short way of a method, by its public name.
pub fn of(name: &str) -> Option<Short> {
    Some(match name {
        "view" => |x, sizes| (!sizes.is_empty()).then(|| as_shape(x, sizes)),
        "contiguous" => |x, none| (none.is_empty() && x.body().layout.is_contiguous()).then(|| Ok(x.clone())),
        "reshape" => |x, sizes| (!sizes.is_empty()).then(|| view::reshape_to(x, sizes)),
        "expand" => |x, sizes| (!sizes.is_empty()).then(|| view::expand(x, Ints::from_slice(sizes))),
        "permute" => |x, dims| (!dims.is_empty()).then(|| view::permute(x, Ints::from_slice(dims))),
        "transpose" => |x, dims| match *dims {
            [a, b] => Some(view::transpose(x, a, b)),
            _ => None,
        },
        "t" => |x, none| none.is_empty().then(|| view::t(x)),
        "squeeze" => |x, dims| match *dims {
            [] => Some(view::squeeze_all(x)),
            [dim] => Some(view::squeeze_one(x, dim)),
            _ => None,
        },
        "unsqueeze" => |x, dims| match *dims {
            [dim] => Some(view::unsqueeze(x, dim)),
            _ => None,
        },
        "select" => |x, at| match *at {
            [dim, index] => Some(view::select(x, dim, index)),
            _ => None,
        },
        "narrow" => |x, part| match *part {
            [dim, start, length] => Some(super::shape::part(x, dim, start, length)),
            _ => None,
        },
        _ => return None,
    })
}

/// A view is the most frequent of these, and mostly of dense rows: no history, no plan, one pass over the sizes.
fn as_shape(input: &Tensor, sizes: &[i64]) -> Result<Tensor> {
    match input.birth_body().and_then(|body| body.layout.view_rows(sizes)) {
        Some(layout) if !any_requires_grad([input]) => Ok(view::seen(input, layout)),
        Some(layout) => view::view_as_shape(input, layout.shape),
        None => view::view_as_shape(input, infer_shape(sizes, input.numel())?),
    }
}
