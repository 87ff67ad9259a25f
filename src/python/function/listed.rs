//! A list of a Function's tensors with a fast lookup: linear for few, binary search by id for many.

use crate::tensor::Tensor;
use std::cell::OnceCell;

/// Up to this many tensors are searched linearly.
const FEW: usize = 16;

pub struct TensorList<L> {
    pub tensors: L,
    /// Pairs of an id and its index in the list, sorted.
    sorted: OnceCell<Vec<(usize, usize)>>,
}

impl<L: AsRef<[Option<Tensor>]>> TensorList<L> {
    pub fn new(tensors: L) -> TensorList<L> {
        TensorList { tensors, sorted: OnceCell::new() }
    }

    /// Returns the first index of a tensor.
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
