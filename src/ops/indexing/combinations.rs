//! `combinations` and `cartesian_prod`.

use super::advanced::index;
use super::index::from_i64;
use crate::base::try_alloc;
use crate::operator::primitives::constant;
use crate::ops::prelude::*;

/// Return all combinations of `r` elements of a vector, as the rows of a matrix.
///
/// Args:
///     input: a vector.
///     r: number of elements to combine.
///     with_replacement: whether an element may be chosen several times.
///
/// Examples:
///     >>> torch.combinations(torch.tensor([1, 2, 3]))
///     tensor([[1, 2],
///             [1, 3],
///             [2, 3]])
#[operator(
    function,
    sample = "fixed([(4,)], lambda x: [T.combinations(x, r, again) for r in (1, 2, 3) for again in (False, True)])"
)]
pub fn combinations(
    input: &Tensor,
    #[default(2)] r: i64,
    #[default(false)] with_replacement: bool,
) -> Result<Tensor> {
    if input.ndim() != 1 {
        return Err(Error::runtime(format!(
            "Expect a 1D vector, but got shape {:?}",
            input.shape().as_slice()
        )));
    }
    let Ok(r) = usize::try_from(r) else {
        return Err(Error::runtime(format!("Expect a non-negative number, but got {r}")));
    };
    if r == 0 {
        return constant::zeros(&[0], input.dtype(), input.device());
    }
    let n = input.numel();
    let mut all: Vec<i64> = Vec::new();
    let mut choice: Vec<usize> =
        try_alloc::collect((0..r).map(|k| Ok(if with_replacement { 0 } else { k })))?;
    let mut going = n > 0 && (with_replacement || r <= n);
    while going {
        for &i in &choice {
            try_alloc::push(&mut all, i as i64)?;
        }
        // Increase the last position that can be increased, and reset those behind it.
        let highest = |k: usize| if with_replacement { n - 1 } else { n - r + k };
        going = false;
        if let Some(k) = (0..r).rev().find(|&k| choice[k] < highest(k)) {
            let next = choice[k] + 1;
            for (step, i) in choice[k..].iter_mut().enumerate() {
                *i = if with_replacement { next } else { next + step };
            }
            going = true;
        }
    }
    let places = from_i64(&all, &[all.len() / r, r], input.device())?;
    index(input, &[Some(places)])
}
