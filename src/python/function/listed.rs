//! Tensors of a Function's call, to find them in: few are looked through, many are sorted by their ids once.

use crate::tensor::Tensor;
use std::cell::OnceCell;

/// So many are looked through.
const FEW: usize = 16;

pub struct Listed<L> {
    pub tensors: L,
    /// Ids, each with its place in the list.
    sorted: OnceCell<Vec<(usize, usize)>>,
}

impl<L: AsRef<[Option<Tensor>]>> Listed<L> {
    pub fn new(tensors: L) -> Listed<L> {
        Listed { tensors, sorted: OnceCell::new() }
    }

    /// The first place of a tensor.
    #[inline]
    pub fn place(&self, t: &Tensor) -> Option<usize> {
        let tensors = self.tensors.as_ref();
        if tensors.len() <= FEW {
            return tensors.iter().position(|listed| listed.as_ref().is_some_and(|listed| listed.same(t)));
        }
        let sorted = self.sorted.get_or_init(|| sorted(tensors));
        let at = sorted.partition_point(|&(id, _)| id < t.id());
        sorted.get(at).filter(|&&(id, _)| id == t.id()).map(|&(_, place)| place)
    }

    #[inline]
    pub fn has(&self, t: &Tensor) -> bool {
        self.place(t).is_some()
    }
}

#[cold]
fn sorted(tensors: &[Option<Tensor>]) -> Vec<(usize, usize)> {
    let placed = tensors.iter().enumerate();
    let mut all: Vec<_> = placed.filter_map(|(i, t)| Some((t.as_ref()?.id(), i))).collect();
    all.sort_unstable();
    all
}
