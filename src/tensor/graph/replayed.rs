//! Nodes that a replay made: a backward can run them together.

use crate::base::Result;
use crate::tensor::node::{Node, NodeRef};
use crate::tensor::{GradType, Kind, Tensor};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The nodes of one replay.
pub struct Replayed {
    /// The lowest of their sequence numbers. No other node with edges of its own has a number between theirs.
    lowest: AtomicU64,
    pub count: usize,
    pub backward: Arc<dyn Together>,
}

/// What runs the nodes of a replay together.
pub trait Together: Send + Sync {
    /// Returns the gradients that leave the nodes, in the order in which they would if the nodes ran one by one; `None` if the
    /// nodes must do that. `one_by_one` runs them, and frees nothing.
    fn run(
        &self,
        start: &Start,
        one_by_one: &mut dyn FnMut() -> Result<Vec<LeavingGrad>>,
    ) -> Result<Option<Vec<LeavingGrad>>>;
}

/// Where a backward enters the nodes of a replay.
pub struct Start<'a> {
    /// The nodes that will run, at their numbers.
    pub nodes: &'a [Option<&'a NodeRef>],
    pub grads: &'a [EnteringGrad<'a>],
}

/// The gradient of an output of the node of this number.
pub struct EnteringGrad<'a> {
    pub node: usize,
    pub output: usize,
    pub grad: Option<&'a Tensor>,
}

/// A gradient that the node of this number delivers along this edge, which leads out of the replay.
pub struct LeavingGrad {
    pub node: usize,
    pub edge: usize,
    pub grad: Option<Tensor>,
}

impl Replayed {
    pub fn new(count: usize, backward: Arc<dyn Together>) -> Arc<Replayed> {
        Arc::new(Replayed { lowest: AtomicU64::new(u64::MAX), count, backward })
    }

    /// Notes a node of this replay.
    pub fn note(&self, node: &Node) {
        self.lowest.fetch_min(node.sequence, Ordering::Relaxed);
    }

    pub fn lowest(&self) -> u64 {
        self.lowest.load(Ordering::Relaxed)
    }

    /// The number of a node among those of this replay.
    pub fn number(self: &Arc<Replayed>, node: &Node) -> Option<usize> {
        let (replayed, number) = node.replayed.as_ref()?;
        Arc::ptr_eq(self, replayed).then_some(*number as usize)
    }
}

impl Node {
    /// True if this is an operator's node that nobody watches, and its derivative would get all values as they were saved.
    pub fn is_as_made(node: &NodeRef) -> bool {
        if !matches!(node.kind, Kind::Op(_)) || node.has_hooks() {
            return false;
        }
        let saves = node.saves();
        !saves.freed && saves.values.iter().all(|saved| saved.is_as_saved(node))
    }

    /// True if code of the user's can tell when a gradient arrives here, or says what it must be.
    pub fn is_particular(&self) -> bool {
        match &self.kind {
            Kind::Leaf(leaf) => self.has_hooks() || leaf.grad_type() != GradType::Own,
            _ => false,
        }
    }
}
