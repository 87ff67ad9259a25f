//! What a captured call changes beside elements: versions of older storages, and `.grad`s of known tensors.

use crate::base::{Error, Result};
use crate::capture::kind::Form;
use crate::capture::origins::{FirstGrad, Origins, Source};
use crate::capture::results::Recipes;
use crate::storage::WeakStorage;
use crate::tensor::Tensor;
use std::collections::{HashMap, HashSet};

/// What a replay needs of a `.grad` when it begins.
pub(super) enum Needed {
    /// Nothing: the call drops it before it looks at it.
    Nothing,
    Absent,
    /// A tensor of this form; over this memory, if the call reaches its elements.
    Present(Form, Option<usize>),
}

/// What a `.grad` is at the end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    Absent,
    /// The tensor that was there when the call began.
    Same,
    /// The tensor that this recipe makes.
    New(usize),
}

pub(super) struct GradEffect {
    /// The number of the known tensor.
    pub number: usize,
    pub needed: Needed,
    pub left: Left,
    /// The new storage of the tensor that is left, if the memory of the former one can be used again for it.
    pub again: Option<usize>,
}

/// The changes of the known tensors' `.grad`s.
pub(super) fn grads(origins: &mut Origins, recipes: &mut Recipes) -> Result<Vec<GradEffect>> {
    let mut effects = Vec::new();
    for (number, tensor) in origins.known.iter().enumerate() {
        let Some(change) = origins.grad_changes.get(&tensor.id()) else { continue };
        if origins.number(tensor) != Some(number) {
            continue;
        }
        origins.need(number);
        let needed = match &change.former {
            _ if change.is_replaced => Needed::Nothing,
            None => Needed::Absent,
            Some(former) => Needed::Present(FirstGrad::Former(former).form(), None),
        };
        let left = match (tensor.grad(), &change.former) {
            (None, _) => Left::Absent,
            (Some(grad), Some(former)) if former.is(&grad) => Left::Same,
            (Some(grad), _) => Left::New(recipes.add(&grad, origins)?),
        };
        effects.push(GradEffect { number, needed, left, again: None });
    }
    for change in origins.grad_changes.values() {
        if let Some(leaf) = change.leaf.upgrade()
            && origins.number(&leaf).is_none()
            && !recipes.has(&leaf)
        {
            return Err(Error::runtime(format!(
                "the .grad of a tensor of shape {:?} changes that the call neither was given nor read",
                leaf.shape().as_slice()
            )));
        }
    }
    Ok(effects)
}

/// Adds what a replay needs of the `.grad`s that kernels reach or results are, and finds those whose memory can be used
/// again.
pub(super) fn need_grads(
    effects: &mut Vec<GradEffect>,
    origins: &mut Origins,
    recipes: &Recipes,
    results: &[usize],
    decides: bool,
) {
    for number in 0..origins.known.len() {
        let Some(first) = origins.first_grad(number) else { continue };
        let Some(memory) = origins.known_memory(first.storage_id()) else { continue };
        origins.need(number);
        let needed = Needed::Present(first.form(), Some(memory));
        match effects.iter_mut().find(|effect| effect.number == number) {
            Some(effect) => effect.needed = needed,
            None => effects.push(GradEffect { number, needed, left: Left::Same, again: None }),
        }
    }
    for effect in effects {
        if let (Left::New(recipe), Needed::Nothing) = (effect.left, &effect.needed)
            && !results.contains(&recipe)
            // A replay that gives up must not have written to it.
            && !decides
        {
            effect.again = recipes.sole_fresh(recipe);
        }
    }
}

/// Writes to an older storage that are counted.
pub(super) struct VersionEffect {
    pub source: Source,
    pub writes: u32,
}

/// The versions of older storages that the call changed; `first` are those from before its first kernel.
pub(super) fn versions(origins: &Origins, first: &HashMap<usize, (WeakStorage, u32)>) -> Vec<VersionEffect> {
    let (mut seen, mut effects) = (HashSet::new(), Vec::new());
    let mut add = |source: Source, tensor: &Tensor| {
        let storage = &tensor.body().storage;
        let Some((_, version)) = first.get(&storage.alias_id()) else { return };
        let writes = storage.version().wrapping_sub(*version);
        if writes > 0 && seen.insert(storage.alias_id()) {
            effects.push(VersionEffect { source, writes });
        }
    };
    for (number, tensor) in origins.known.iter().enumerate() {
        add(Source::Known(number), tensor);
        match origins.first_grad(number) {
            Some(FirstGrad::Now(grad)) => add(Source::Grad(number), &grad),
            Some(FirstGrad::Former(former)) => {
                if let Some(grad) = tensor.grad().filter(|grad| former.is(grad)) {
                    add(Source::Grad(number), &grad);
                }
            }
            None => {}
        }
    }
    effects
}
