//! Random numbers inside `vmap`, as its `randomness` says: an error, different ones for each example, or the
//! same for all.

use crate::base::{Error, Result};
use crate::operator::batch::Batch;
use crate::tensor::levels::vmap::{Frame, Randomness, frames};
use crate::tensor::{Body, Tensor};

fn refuse() -> Error {
    Error::runtime(
        "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' \
         randomness flags on vmap or perform the randomness operation out of vmap",
    )
}

/// The frames whose examples get different random numbers.
fn different(live: &[Frame]) -> Result<Vec<Frame>> {
    match live.iter().any(|f| f.randomness == Randomness::Error) {
        true => Err(refuse()),
        false => Ok(live.iter().filter(|f| f.randomness == Randomness::Different).copied().collect()),
    }
}

/// A new random tensor. `fill` writes into a body whose shape may have more dimensions in front.
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

/// Draws random numbers into a tensor: `write` fills the whole physical tensor.
pub fn draw_over(target: &Tensor, write: impl FnOnce(&Tensor) -> Result<()>) -> Result<()> {
    let live = frames();
    let own = different(&live)?;
    let has = |f: &Frame| target.as_batched().is_some_and(|b| b.levels.contains(&f.level));
    if own.iter().any(|f| !has(f)) {
        return Err(Error::runtime(
            "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same \
             randomness.",
        ));
    }
    let Some(batched) = target.as_batched() else { return write(target) };
    let shared = |level| live.iter().any(|f| f.level == level && f.randomness == Randomness::Same);
    if !batched.levels.iter().any(|&l| shared(l)) {
        return write(&batched.value);
    }
    // A level with the same numbers for all examples: draw once, then copy to all of them.
    let mut one = batched.value.shape();
    for (at, _) in batched.levels.iter().enumerate().filter(|(_, l)| shared(**l)) {
        one[at] = 1;
    }
    let drawn =
        crate::operator::primitives::constant::zeros(&one, batched.value.dtype(), batched.value.device())?;
    write(&drawn)?;
    crate::operator::inplace::copy_into(&batched.value, &drawn)
}

/// The batch of `t` for operators that draw separate random numbers for each example; `None` outside of it.
pub fn own_draws(t: &Tensor) -> Result<Option<Batch>> {
    let own = different(&frames())?;
    if own.is_empty() && !t.is_batched() {
        return Ok(None);
    }
    let mut batch = Batch::of([t]);
    if batch.levels.iter().any(|l| own.iter().all(|f| f.level != *l)) {
        return Err(Error::runtime(
            "Vmap does not currently support same randomness with a batched tensor input.",
        ));
    }
    batch.levels = own.iter().map(|f| f.level).collect();
    batch.sizes = own.iter().map(|f| f.size).collect();
    Ok(Some(batch))
}
