//! Where a replay finds the storages that captured kernels reach and that are older than the call: through a tensor that
//! the call was given or read, or through its `.grad`.

use crate::base::{ConjNeg, Error, Result};
use crate::capture::kind::{Form, Kind};
use crate::storage::Storage;
use crate::tensor::Tensor;
use crate::tensor::changes::Changes;
use crate::tensor::leaf::grad_changes::{FormerGrad, GradChanges};
use std::collections::HashMap;

/// A tensor that leads to a storage: the known tensor of this number, or its `.grad` when the call begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Source {
    Known(usize),
    Grad(usize),
}

/// A known tensor that a replay needs.
pub(super) struct Known {
    pub number: usize,
    /// The number of its storage among the [`Memory`]s.
    pub memory: usize,
    pub kind: Kind,
}

/// A storage that is older than the call.
pub(super) struct Memory {
    pub source: Source,
    /// The first byte of the tensor that leads to it.
    pub start: usize,
    /// What stands for it in kernels, and the first byte that they reach with the one after the last.
    pub slot: Option<(Storage, (usize, usize))>,
}

/// The `.grad` of a known tensor when the call began.
pub(super) enum FirstGrad<'a> {
    Former(&'a FormerGrad),
    /// It is the same tensor now.
    Now(Tensor),
}

impl FirstGrad<'_> {
    pub fn storage_id(&self) -> usize {
        match self {
            FirstGrad::Former(former) => former.storage.id(),
            FirstGrad::Now(grad) => grad.body().storage.id(),
        }
    }

    pub fn form(&self) -> Form {
        match self {
            FirstGrad::Former(grad) => {
                let FormerGrad { dtype, device, .. } = **grad;
                Form { layout: grad.layout.clone(), dtype, device, conj_neg: ConjNeg::NONE }
            }
            FirstGrad::Now(grad) => Form::of(&grad.body()),
        }
    }
}

/// The older storages of a captured call, by how a replay finds them.
pub(super) struct Origins<'a> {
    pub known: &'a [Tensor],
    pub grad_changes: &'a GradChanges,
    /// The number of the capture.
    pub capture: u32,
    number_of: HashMap<usize, usize>,
    /// By the ids of storages.
    sources: HashMap<usize, Source>,
    pub memories: Vec<Memory>,
    memory_of: HashMap<Source, usize>,
    /// The known tensors that a replay needs.
    is_used: Vec<bool>,
}

impl<'a> Origins<'a> {
    pub fn new(
        known: &'a [Tensor],
        changes: &Changes,
        grad_changes: &'a GradChanges,
        capture: u32,
    ) -> Result<Origins<'a>> {
        let (mut number_of, mut sources) = (HashMap::new(), HashMap::new());
        for (number, tensor) in known.iter().enumerate() {
            if let Some(what) = changes.get(&tensor.id()) {
                let shape = tensor.shape();
                return Err(Error::runtime(format!(
                    "a tensor of shape {:?} that is older than the call {what}",
                    shape.as_slice()
                )));
            }
            number_of.entry(tensor.id()).or_insert(number);
            sources.entry(tensor.body().storage.id()).or_insert(Source::Known(number));
        }
        let (memories, memory_of) = (Vec::new(), HashMap::new());
        let is_used = vec![false; known.len()];
        let mut origins =
            Origins { known, grad_changes, capture, number_of, sources, memories, memory_of, is_used };
        for number in 0..known.len() {
            if let Some(grad) = origins.first_grad(number) {
                origins.sources.entry(grad.storage_id()).or_insert(Source::Grad(number));
            }
        }
        Ok(origins)
    }

    /// The `.grad` of a known tensor when the call began.
    pub fn first_grad(&self, number: usize) -> Option<FirstGrad<'a>> {
        match self.grad_changes.get(&self.known[number].id()) {
            Some(change) => change.former.as_ref().map(FirstGrad::Former),
            None => self.known[number].grad().map(FirstGrad::Now),
        }
    }

    /// The number of a known tensor.
    pub fn number(&self, tensor: &Tensor) -> Option<usize> {
        self.number_of.get(&tensor.id()).copied()
    }

    /// The known tensor whose `.grad` this tensor was when the call began.
    pub fn number_of_grad(&self, tensor: &Tensor) -> Option<usize> {
        let is_grad = |grad: FirstGrad| match grad {
            FirstGrad::Former(former) => former.is(tensor),
            FirstGrad::Now(grad) => grad.same(tensor),
        };
        (0..self.known.len()).find(|&number| self.first_grad(number).is_some_and(is_grad))
    }

    /// Notes that a replay needs this known tensor.
    pub fn need(&mut self, number: usize) {
        self.is_used[number] = true;
    }

    /// The number of an older storage among the memories; `None` if no known tensor leads to it.
    pub fn memory(&mut self, storage_id: usize) -> Option<usize> {
        let source = *self.sources.get(&storage_id)?;
        if let Some(&found) = self.memory_of.get(&source) {
            return Some(found);
        }
        let start = match source {
            Source::Known(number) => Form::of(&self.known[number].body()).start(),
            Source::Grad(number) => self.first_grad(number).map_or(0, |grad| grad.form().start()),
        };
        self.memory_of.insert(source, self.memories.len());
        self.memories.push(Memory { source, start, slot: None });
        Some(self.memories.len() - 1)
    }

    /// The number of an older storage among the memories so far.
    pub fn known_memory(&self, storage_id: usize) -> Option<usize> {
        self.memory_of.get(self.sources.get(&storage_id)?).copied()
    }

    /// The known tensors that a replay needs: those that lead to memories, all that share these, and those that were
    /// noted.
    pub fn used(&mut self) -> Vec<Known> {
        let mut used = Vec::new();
        for (number, tensor) in self.known.iter().enumerate() {
            let body = tensor.body();
            let source = self.sources.get(&body.storage.id());
            let is_reached = source.is_some_and(|source| self.memory_of.contains_key(source));
            if self.is_used[number] || is_reached {
                // A known tensor leads to its own storage at least.
                let Some(memory) = self.memory(body.storage.id()) else { continue };
                used.push(Known { number, memory, kind: Kind::of(tensor) });
            }
        }
        used
    }
}
