//! From a capture whose kernels ran to a program: what outlived the call, and where a replay finds what it needs.

use crate::base::{Error, Result};
use crate::capture::effects::{self, GradEffect, VersionEffect};
use crate::capture::origins::{Known, Memory, Origins};
use crate::capture::program::{Kernels, Place};
use crate::capture::recorder::{Capture, Ended, Original, Recorder, Slot};
use crate::capture::replay::Program;
use crate::capture::results::Recipes;
use crate::storage::Storage;
use crate::tensor::Tensor;

/// A capture that ended and can be replayed, if the tensors that outlive it can be found.
pub struct Call(Ended);

impl Capture {
    /// Ends a capture whose kernels ran; an error says why it cannot be replayed.
    pub fn end_call(self) -> Result<Call> {
        self.finish().map(Call).map_err(Error::runtime)
    }
}

/// What a replay does beside running kernels.
pub(super) struct Plan {
    pub known: Vec<Known>,
    pub memories: Vec<Memory>,
    pub recipes: Recipes,
    /// What stands for each new storage in kernels, if they reach it.
    pub fresh_slots: Vec<Option<Storage>>,
    pub results: Vec<usize>,
    pub grads: Vec<GradEffect>,
    pub versions: Vec<VersionEffect>,
    /// For each slot of the capture, true if only kernels reach it.
    is_inside: Vec<bool>,
    /// The shape of a tensor that the call made and that outlives it although it is no result.
    survivor: Option<String>,
}

impl Call {
    /// The program of this call. `known` are tensors that are older than the call; the first `given` of them may be others in
    /// each replay, and the rest are fixed. `results` are tensors that were made in the call and outlive it. An error says why
    /// the call cannot be replayed.
    ///
    /// Where a tensor outlives the call and is no result, garbage may still hold it: `collect` is called to free it. Unless
    /// `fuses`, no kernels are joined to groups.
    pub fn program(
        self,
        known: &[Tensor],
        given: usize,
        results: &[Tensor],
        collect: impl FnOnce(),
        fuses: bool,
    ) -> Result<Program> {
        let mut plan = self.plan(known, results)?;
        if plan.survivor.is_some() {
            drop(plan);
            collect();
            plan = self.plan(known, results)?;
        }
        if let Some(shape) = &plan.survivor {
            return Err(Error::runtime(format!(
                "a tensor of shape {shape} that the call made outlives it, and is neither a result nor the .grad of a tensor \
                 that the call was given or read"
            )));
        }
        // From here on, tensors have their numbers among those that are used.
        let mut used: Vec<usize> = plan.known.iter().map(|known| known.number).collect();
        let mut fixed: Vec<Tensor> = used.iter().map(|&number| known[number].clone()).collect();
        let mut plan = self.plan(&fixed, results)?;
        plan.recipes.fuse_backwards(fuses);
        used.retain(|&number| number < given);
        fixed.drain(..used.len());
        let launches = self.0.recorder.launches();
        let Recorder { units, numbers, slots, draws, .. } = self.0.recorder;
        let place = |(slot, &is_inside): (Slot, &bool)| Place {
            is_made: matches!(slot.original, Original::Made(_)),
            stand_in: slot.stand_in,
            is_inside,
            bytes: slot.bytes,
            span: None,
        };
        let places: Vec<Place> = slots.into_iter().zip(&plan.is_inside).map(place).collect();
        let numbers = numbers.into_iter().map(|(at, number)| (at as usize, number)).collect();
        let kernels = Kernels::new(units, &places, launches, fuses)?.with_draws(draws);
        Ok(Program::new(kernels, plan, used, fixed, numbers))
    }

    fn plan(&self, known: &[Tensor], results: &[Tensor]) -> Result<Plan> {
        let Ended { recorder, changes, grad_changes } = &self.0;
        let mut origins = Origins::new(known, changes, grad_changes, recorder.number)?;
        let mut recipes = Recipes::default();
        let results =
            results.iter().map(|result| recipes.add(result, &mut origins)).collect::<Result<Vec<_>>>()?;
        let mut grads = effects::grads(&mut origins, &mut recipes)?;
        recipes.finish(&mut origins)?;
        let mut fresh_slots: Vec<Option<Storage>> = recipes.storages.fresh.iter().map(|_| None).collect();
        let (mut is_inside, mut survivor) = (Vec::with_capacity(recorder.slots.len()), None);
        for slot in &recorder.slots {
            let (original, is_made) = match &slot.original {
                Original::Made(original) => (original, true),
                Original::Older(original) => (original, false),
                Original::Held(_) => return Err(Error::runtime("the capture is that of a graph")),
            };
            let (memory, fresh) = (origins.memory(original.id()), recipes.storages.fresh_of(original.id()));
            is_inside.push(memory.is_none() && fresh.is_none());
            if let Some(memory) = memory {
                origins.memories[memory].slot = Some((slot.stand_in.clone(), slot.reached));
            } else if let Some(fresh) = fresh {
                fresh_slots[fresh] = Some(slot.stand_in.clone());
            } else if !is_made {
                return Err(Error::runtime(format!(
                    "a kernel reaches a tensor of shape {} that is older than the call, and that the call neither was given \
                     nor read",
                    slot.shape
                )));
            } else if original.upgrade().is_some() {
                survivor = Some(slot.shape.clone());
            }
        }
        let decides = recorder.units.iter().any(|unit| unit.decision.is_some());
        effects::need_grads(&mut grads, &mut origins, &recipes, &results, decides);
        let versions = effects::versions(&origins, &recorder.versions);
        let known = origins.used();
        let memories = origins.memories;
        Ok(Plan { known, memories, recipes, fresh_slots, results, grads, versions, is_inside, survivor })
    }
}
