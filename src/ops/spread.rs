//! One tensor stretched over the samples of a `vmap`. A transform that began inside of it differentiates for each sample
//! alone: the gradient stays a batch of gradients. For everybody else it is the sum over the samples.

use super::batch;
use super::macros::ops;

ops! { "spread";
    /// The dimension `dim`, of size 1, stretched over the `size` samples of a level (a view).
    [hidden, linear] fn spread_out(input; dim: i64, size: i64, level: i64) -> y {
        let mut sizes = super::view::ints(&input.shape());
        sizes[dim as usize] = size;
        input.body().layout.expand(&sizes)
    }
    input: |g, dim, level| g.then(|t| batch::collected(&t, dim as usize, level as batch::Level));
}
