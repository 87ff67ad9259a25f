//! Static facts about an operator's nodes besides the derivative, which points to them. Python reads the
//! attributes of `grad_fn` from here, so that nothing is looked up by an operator's name.

use crate::base::{DType, Device, Dims, Layout, MemoryFormat, Put, Scalar};
use crate::tensor::{Node, Part, Saved};
use smallvec::SmallVec;
use std::any::Any;
use std::ops::Range;

/// The non-tensor arguments that a node keeps.
pub type Kept = dyn Any + Send + Sync;

/// Reads one of a node's arguments in the form that Python shows.
pub type ShowKept = fn(&Kept) -> Option<Shown>;

/// The number of multiplications and additions of a derivative, from the shapes of its inputs and of its
/// results.
pub type DerivativeFlops = fn(&[Vec<usize>], &[Vec<usize>]) -> u64;

pub struct Facts {
    /// Tensors that such a node can save: PyTorch's name for it, and the operand or output that it is.
    pub saved: &'static [(&'static str, SavedAt)],
    /// Arguments that the node keeps: PyTorch's name, and how to show them.
    pub kept: &'static [(&'static str, ShowKept)],
    /// Attributes that PyTorch's node keeps and that gradiron derives from other facts.
    pub shown: &'static [(&'static str, Fact)],
    pub results: &'static [&'static str],
    /// For each operand, true if it has an edge.
    pub edges: &'static [bool],
    /// The number of tensors of each operand, if some operands are lists.
    pub lengths: fn(&Kept) -> Option<&[u32]>,
    /// True if the node keeps edges among its arguments.
    pub holds_edges: fn(&Kept) -> bool,
    /// The name of ATen's kernel, if it differs from the node's.
    pub aten: &'static str,
    /// The derivative of the in-place form of a view operator.
    pub inplace: Option<&'static crate::tensor::Derivative>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SavedAt {
    Operand { at: usize, list: bool },
    Output(usize),
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fact {
    /// The sizes of an operand.
    Sizes(usize),
    /// One size of an operand.
    Size(usize, usize),
    /// The strides of an operand, if it was saved.
    Strides(usize),
    Numel(usize),
    Ndim(usize),
    Int(i64),
    Flag(bool),
    Text(&'static str),
    Nothing,
}

/// A value in the form that Python shows.
#[derive(Clone, PartialEq, Debug)]
pub enum Shown {
    Nothing,
    Bool(bool),
    /// A C++ integer, which PyTorch shows as unsigned.
    Int(i64),
    /// C++ integers.
    Ints(Vec<i64>),
    Float(f64),
    /// A number with the type that the user passed.
    Number(Scalar),
    Text(String),
}

/// The type of an argument that a node can keep and show to Python.
pub trait Keep: Clone + Send + Sync + 'static {
    fn shown(&self) -> Shown;
}

macro_rules! keep {
    ($($ty:ty, |$x:ident| $e:expr;)*) => { $(impl Keep for $ty {
        fn shown(&self) -> Shown {
            let $x = self;
            $e
        }
    })* };
}
keep! {
    bool, |x| Shown::Bool(*x);
    i64, |x| Shown::Int(*x);
    usize, |x| Shown::Int(*x as i64);
    f64, |x| Shown::Float(*x);
    Scalar, |x| Shown::Number(*x);
    String, |x| Shown::Text(x.clone());
    &'static str, |x| Shown::Text((*x).into());
    SmallVec<[i64; 6]>, |x| Shown::Ints(x.to_vec());
    Vec<i64>, |x| Shown::Ints(x.clone());
    Dims, |x| Shown::Ints(x.iter().map(|&n| n as i64).collect());
    Vec<usize>, |x| Shown::Ints(x.iter().map(|&n| n as i64).collect());
    Vec<f64>, |_x| Shown::Nothing;
    Vec<bool>, |_x| Shown::Nothing;
    Vec<Layout>, |_x| Shown::Nothing;
    Layout, |_x| Shown::Nothing;
    DType, |_x| Shown::Nothing;
    Device, |_x| Shown::Nothing;
    MemoryFormat, |_x| Shown::Nothing;
    Put, |_x| Shown::Nothing;
    Part, |_x| Shown::Nothing;
}
impl<T: Keep> Keep for Option<T> {
    fn shown(&self) -> Shown {
        self.as_ref().map_or(Shown::Nothing, T::shown)
    }
}
impl<const N: usize> Keep for [bool; N] {
    fn shown(&self) -> Shown {
        Shown::Nothing
    }
}
impl<const N: usize> Keep for [usize; N] {
    fn shown(&self) -> Shown {
        Shown::Ints(self.iter().map(|&n| n as i64).collect())
    }
}

/// The position of operand `at` among the tensors of its kind (with an edge, or without), and the number of
/// its tensors.
pub fn place(edges: &[bool], lengths: Option<&[u32]>, at: usize) -> (usize, usize) {
    let length = |i: usize| lengths.and_then(|l| l.get(i)).map_or(1, |&n| n as usize);
    let before = (0..at).filter(|&i| edges[i] == edges[at]).map(length).sum();
    (before, length(at))
}

/// The `Saved::source` of the tensor at position `start` of operand `at`.
pub fn source(edges: &[bool], start: usize, at: usize) -> u32 {
    if edges[at] { start as u32 } else { Saved::ARGUMENT + start as u32 }
}

impl Facts {
    /// Facts of a node about which only the edges of its first operands are known.
    pub const NONE: Facts = Facts {
        saved: &[],
        kept: &[],
        shown: &[],
        results: &[],
        edges: &[true; 8],
        lengths: |_| None,
        holds_edges: |_| false,
        aten: "",
        inplace: None,
    };

    /// The sources of one saved value, or of all values of a saved list.
    pub fn sources(&self, node: &Node, saved: SavedAt) -> Range<u32> {
        match saved {
            // A list that is the only operand owns all the edges.
            SavedAt::Operand { list: true, .. } if self.edges == [true] => 0..node.edges.len() as u32,
            SavedAt::Operand { at, .. } => {
                let (start, count) = place(self.edges, node.params.as_deref().and_then(self.lengths), at);
                let source = source(self.edges, start, at);
                source..source + count as u32
            }
            SavedAt::Output(i) => Saved::OUTPUT + i as u32..Saved::OUTPUT + i as u32 + 1,
        }
    }

    fn first_source(&self, node: &Node, operand: usize) -> u32 {
        self.sources(node, SavedAt::Operand { at: operand, list: false }).start
    }

    /// The shape of an operand, read from the node its gradient flows to or from its saved value.
    fn sizes(&self, node: &Node, operand: usize) -> Option<Dims> {
        let source = self.first_source(node, operand);
        if let Some(Some(edge)) = node.edges.get(source as usize) {
            return edge.node.outputs.get(edge.output as usize).map(|meta| meta.shape.clone());
        }
        self.layout(node, operand).map(|layout| layout.shape)
    }

    fn layout(&self, node: &Node, operand: usize) -> Option<Layout> {
        let source = self.first_source(node, operand);
        let saves = node.saves();
        let saved = saves.values.iter().find(|saved| saved.source == source)?;
        saved.body().map(|body| body.layout.clone())
    }

    /// The value of a fact for this node, if it is known.
    pub fn show(&self, node: &Node, fact: Fact) -> Option<Shown> {
        let number = |n: usize| Shown::Number(Scalar::Int(n as i64));
        Some(match fact {
            Fact::Sizes(operand) => self.sizes(node, operand)?.shown(),
            Fact::Size(operand, dim) => number(*self.sizes(node, operand)?.get(dim)?),
            Fact::Strides(operand) => self.layout(node, operand)?.strides.shown(),
            Fact::Numel(operand) => number(self.sizes(node, operand)?.iter().product()),
            Fact::Ndim(operand) => number(self.sizes(node, operand)?.len()),
            Fact::Int(n) => Shown::Number(Scalar::Int(n)),
            Fact::Flag(flag) => Shown::Bool(flag),
            Fact::Text(text) => Shown::Text(text.into()),
            Fact::Nothing => Shown::Nothing,
        })
    }

    /// An attribute of a node other than its saved tensors.
    pub fn attribute(&self, node: &Node, name: &str) -> Option<Shown> {
        if let Some((_, show)) = self.kept.iter().find(|(own, _)| *own == name) {
            return show(node.params.as_deref()?);
        }
        let (_, fact) = self.shown.iter().find(|(own, _)| *own == name)?;
        self.show(node, *fact)
    }

    /// The names that [`Facts::attribute`] knows.
    pub fn attributes<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'static str> + 'a {
        let kept = self.kept.iter().map(|(name, _)| *name);
        kept.chain(self.shown.iter().map(|(name, _)| *name))
            .filter(|name| self.attribute(node, name).is_some())
    }
}

impl Node {
    pub fn facts(&self) -> Option<&'static Facts> {
        match self.kind {
            crate::tensor::Kind::Op(derivative) => derivative.facts,
            _ => None,
        }
    }
}
