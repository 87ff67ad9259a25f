//! Random numbers inside a `vmap`: refused, drawn for every sample, or drawn once for all, as its `randomness` says.

use crate::base::{Error, Result};
use crate::ops::shape::view;
use crate::tensor::{Body, Tensor};
use crate::transforms::vmap::level::{Randomness, frames};
use crate::transforms::vmap::{Batch, Frame};

fn refuse() -> Error {
    Error::runtime(
        "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' \
         randomness flags on vmap or perform the randomness operation out of vmap",
    )
}

/// The frames whose samples draw for themselves.
fn different(live: &[Frame]) -> Result<Vec<Frame>> {
    match live.iter().any(|f| f.randomness == Randomness::Error) {
        true => Err(refuse()),
        false => Ok(live.iter().filter(|f| f.randomness == Randomness::Different).copied().collect()),
    }
}

/// A new random tensor: `fill` writes into a body whose shape may have more dimensions in front.
pub fn draw(
    shape: &[usize],
    new: impl FnOnce(&[usize]) -> Result<Body>,
    fill: impl FnOnce(&Body) -> Result<()>,
) -> Result<Tensor> {
    let own = different(&frames())?;
    let batch =
        Batch { levels: own.iter().map(|f| f.level).collect(), sizes: own.iter().map(|f| f.size).collect() };
    let body = new(&batch.shape(shape))?;
    fill(&body)?;
    Ok(batch.wrap(Tensor::new(body)))
}

/// Random numbers over a tensor: `write` fills the whole of it.
pub fn draw_over(target: &Tensor, write: impl FnOnce(&Tensor) -> Result<()>) -> Result<()> {
    let live = frames();
    let own = different(&live)?;
    let has = |f: &Frame| target.as_batched().is_some_and(|b| b.levels.contains(&f.level));
    if own.iter().any(|f| !has(f)) {
        return Err(Error::runtime(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same \
             randomness. If this is necessary for your usage, please file an issue with functorch.",
        ));
    }
    let Some(batched) = target.as_batched() else { return write(target) };
    let shared = |level| live.iter().any(|f| f.level == level && f.randomness == Randomness::Same);
    if !batched.levels.iter().any(|&l| shared(l)) {
        return write(&batched.value);
    }
    // One draw for all samples of a level: into the first of them, then copied to the others.
    let mut one = batched.value.clone();
    for (at, _) in batched.levels.iter().enumerate().filter(|(_, l)| shared(**l)) {
        one = crate::ops::shape::view::narrow(&one, at as i64, 0, 1)?;
    }
    let drawn = crate::ops::creation::create::zeros(&one.shape(), one.dtype(), one.device())?;
    write(&drawn)?;
    crate::operator::inplace::copy_into(&batched.value, &drawn)
}

/// Categories drawn by their weights, a vector or a matrix of them for each sample.
pub fn choose(weights: &Tensor, draw: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    let own = different(&frames())?;
    if own.is_empty() && !weights.is_batched() {
        return draw(weights);
    }
    let mut batch = Batch::of([weights]);
    if batch.levels.iter().any(|l| own.iter().all(|f| f.level != *l)) {
        return Err(Error::runtime(
            "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch",
        ));
    }
    batch.levels = own.iter().map(|f| f.level).collect();
    batch.sizes = own.iter().map(|f| f.size).collect();
    let shape = weights.shape();
    if shape.is_empty() || shape.len() > 2 {
        return Err(Error::runtime("prob_dist must be 1 or 2 dim"));
    }
    let lead = batch.shape(&shape[..shape.len() - 1]);
    let rows: usize = lead.iter().product();
    let drawn = draw(&view::reshape(&batch.full(weights)?, &[rows, shape[shape.len() - 1]])?)?;
    let mut out = lead;
    out.push(drawn.shape()[1]);
    Ok(batch.wrap(view::reshape(&drawn, &out)?))
}
