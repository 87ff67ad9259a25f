//! The operands of a primitive's call.

use crate::tensor::{Edge, Marks, Tensor};
use smallvec::SmallVec;

/// The tensors of one operand.
#[derive(Clone, Copy)]
pub enum Group<'a> {
    One(&'a Tensor),
    Maybe(Option<&'a Tensor>),
    List(&'a [Tensor]),
    Maybes(&'a [Option<Tensor>]),
}
impl<'a> From<&'a Tensor> for Group<'a> {
    #[inline]
    fn from(t: &'a Tensor) -> Self {
        Group::One(t)
    }
}
impl<'a> From<Option<&'a Tensor>> for Group<'a> {
    #[inline]
    fn from(t: Option<&'a Tensor>) -> Self {
        Group::Maybe(t)
    }
}
impl<'a> From<&'a [Tensor]> for Group<'a> {
    #[inline]
    fn from(t: &'a [Tensor]) -> Self {
        Group::List(t)
    }
}
impl<'a> From<&'a [Option<Tensor>]> for Group<'a> {
    #[inline]
    fn from(t: &'a [Option<Tensor>]) -> Self {
        Group::Maybes(t)
    }
}
impl<'a> Group<'a> {
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Group::One(_) | Group::Maybe(_) => 1,
            Group::List(t) => t.len(),
            Group::Maybes(t) => t.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub fn get(&self, i: usize) -> Option<&'a Tensor> {
        match self {
            Group::One(t) => Some(t),
            Group::Maybe(t) => *t,
            Group::List(t) => t.get(i),
            Group::Maybes(t) => t.get(i)?.as_ref(),
        }
    }

    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = &'a Tensor> + use<'a> {
        let own = *self;
        (0..own.len()).filter_map(move |i| own.get(i))
    }
}

/// The union of the flags of all operands.
#[inline]
pub fn flags(groups: &[Group]) -> Marks {
    let mut all = Marks::default();
    for group in groups {
        match group {
            Group::One(t) => all |= t.marks(),
            group => (0..group.len()).filter_map(|i| group.get(i)).for_each(|t| all |= t.marks()),
        }
    }
    all
}

/// Facts about a call's operands that a node keeps besides their values: the number of tensors in each, and
/// the edges of operands to which no gradient flows.
#[derive(Clone)]
pub struct Extent {
    pub lengths: SmallVec<[u32; 4]>,
    pub(crate) histories: Vec<Option<Edge>>,
}

impl Extent {
    /// True if an operand without an edge in the node has a place in the graph.
    pub fn holds_edges(&self) -> bool {
        !self.histories.is_empty()
    }

    pub fn of(groups: &[Group], edges: &[bool]) -> Extent {
        let lengths = groups.iter().map(|group| group.len() as u32).collect();
        let held = || groups.iter().zip(edges).filter(|(_, edge)| !**edge).map(|(group, _)| group);
        let history = |group: &Group, i: usize| group.get(i).and_then(Tensor::edge);
        let any = held().any(|group| (0..group.len()).any(|i| history(group, i).is_some()));
        let all = held().flat_map(|group| (0..group.len()).map(move |i| history(group, i)));
        Extent { lengths, histories: if any { all.collect() } else { Vec::new() } }
    }
}
