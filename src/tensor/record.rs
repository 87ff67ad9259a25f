//! Recording an operator: a node with an edge per input and the values that its derivative will read.

use super::{Body, Derivative, Edge, Kind, Node, Parts, Saved, Tensor, mode};
use smallvec::SmallVec;
use std::any::Any;

/// Whether an operator on these inputs is recorded.
pub fn any_requires_grad<'a>(inputs: impl IntoIterator<Item = &'a Tensor>) -> bool {
    mode::grad_enabled() && inputs.into_iter().any(Tensor::requires_grad)
}

/// A node in the making.
pub struct Recorder {
    derivative: &'static Derivative,
    edges: SmallVec<[Option<Edge>; 3]>,
    saved: SmallVec<[Saved; 2]>,
    /// Which inputs are views.
    views: u64,
    params: Option<Box<dyn Any + Send + Sync>>,
}

impl Recorder {
    pub fn new(derivative: &'static Derivative) -> Recorder {
        Recorder { derivative, edges: SmallVec::new(), saved: SmallVec::new(), views: 0, params: None }
    }

    /// The next input's edge; nothing for scalars and for tensors that want no gradient.
    #[inline]
    pub fn input(&mut self, tensor: Option<&Tensor>) -> &mut Recorder {
        self.views |= tensor.map_or(0, |t| u64::from(t.as_view().is_some())) << (self.edges.len() & 63);
        self.edges.push(tensor.and_then(Tensor::edge));
        self
    }

    /// Which inputs want gradients.
    pub fn wanted(&self) -> u64 {
        self.edges.iter().enumerate().fold(0, |bits, (i, e)| bits | u64::from(e.is_some()) << i)
    }

    #[inline]
    pub fn save_input(&mut self, body: &Body, index: usize) -> &mut Recorder {
        let view = self.views >> (index & 63) & 1 == 1;
        self.saved.push(Saved { view, ..Saved::input(body, index) });
        self
    }

    #[inline]
    pub fn save_output(&mut self, body: &Body, index: usize) -> &mut Recorder {
        self.saved.push(Saved::output(body, index));
        self
    }

    pub fn params(&mut self, params: Box<dyn Any + Send + Sync>) -> &mut Recorder {
        self.params = Some(params);
        self
    }

    /// Publishes the node; `outputs` are the bodies that it made.
    #[inline]
    pub fn publish(self, outputs: &[&Body]) -> super::NodeRef {
        Node::publish(Parts {
            kind: Kind::Op(self.derivative),
            edges: self.edges,
            outputs: outputs.iter().map(|b| b.meta()).collect(),
            saved: self.saved,
            params: self.params,
        })
    }
}
