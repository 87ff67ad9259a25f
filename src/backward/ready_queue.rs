//! A priority queue of nodes that have a gradient, latest first. While few nodes wait, it needs no
//! allocation: the next ones are kept in a small array before the heap.

use super::leaf_counts::LeafCounts;
use super::sparse;
use crate::base::{Result, try_alloc};
use crate::operator::pointwise::apply_inplace;
use crate::operator::primitives::addition;
use crate::tensor::{Edge, Node, NodeRef, Tensor, with_snapshot};
use smallvec::SmallVec;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// A node to run, with the gradients of its outputs.
pub struct ReadyNode {
    pub node: NodeRef,
    pub grads: SmallVec<[Option<Tensor>; 1]>,
}

/// The length of that array: the number of inputs of a typical node.
const FRONT: usize = 4;

pub struct ReadyQueue {
    create_graph: bool,
    /// The next nodes, the very next last; each comes before all nodes in the heap.
    front: SmallVec<[ReadyNode; FRONT]>,
    order: BinaryHeap<(u64, usize)>,
    waiting: HashMap<usize, ReadyNode, BuildHasherDefault<AddressHasher>>,
    /// The number of gradients each leaf still waits for, if they are counted; and the leaves that are
    /// complete.
    uses: Option<LeafCounts>,
    ready: VecDeque<ReadyNode>,
}

/// A hasher for addresses, for which one multiplication suffices.
#[derive(Default)]
pub struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_usize(usize::from(b)));
    }
    fn write_usize(&mut self, n: usize) {
        self.0 = (self.0 ^ n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
    }
}

pub fn key(node: &NodeRef) -> usize {
    std::ptr::from_ref::<Node>(node) as usize
}

impl ReadyNode {
    fn new(edge: &Edge, grad: Option<Tensor>) -> ReadyNode {
        let mut grads = SmallVec::new();
        match edge.node.outputs.len() {
            1 if edge.output == 0 => grads.push(grad),
            outputs => {
                grads.resize(outputs, None);
                if let Some(slot) = grads.get_mut(edge.output as usize) {
                    *slot = grad;
                }
            }
        }
        ReadyNode { node: edge.node.clone(), grads }
    }

    /// The priority: later nodes come first.
    fn place(&self) -> (u64, usize) {
        (self.node.sequence, key(&self.node))
    }

    fn add(&mut self, output: u32, grad: Option<Tensor>, create_graph: bool) -> Result<()> {
        let Some(grad) = grad else { return Ok(()) };
        let Some(slot) = self.grads.get_mut(output as usize) else { return Ok(()) };
        *slot = Some(match slot.take() {
            None => grad,
            Some(sum) => accumulate(sum, grad, create_graph)?,
        });
        Ok(())
    }
}

/// True if no other holder can observe a change of this gradient.
fn is_own(t: &Tensor) -> bool {
    let body = t.body();
    !t.is_special()
        && !t.is_sparse()
        && t.is_unique()
        && !t.requires_grad()
        && body.storage.is_unique()
        && body.layout.is_contiguous()
}

/// The sum of two gradients, in place if that cannot be observed.
fn accumulate(sum: Tensor, grad: Tensor, create_graph: bool) -> Result<Tensor> {
    with_snapshot(|| summed(sum, grad, create_graph))
}

fn summed(sum: Tensor, grad: Tensor, create_graph: bool) -> Result<Tensor> {
    let alike =
        !grad.is_special() && !grad.is_sparse() && sum.dtype() == grad.dtype() && sum.shape() == grad.shape();
    if !create_graph && alike && is_own(&sum) {
        apply_inplace(&addition::add::ROW, &sum, &[(&sum).into(), (&grad).into()])?;
        return Ok(sum);
    }
    sparse::add(&sum, &grad)
}

impl ReadyQueue {
    pub fn new(create_graph: bool) -> ReadyQueue {
        ReadyQueue {
            create_graph,
            front: SmallVec::new(),
            order: BinaryHeap::new(),
            waiting: HashMap::default(),
            uses: None,
            ready: VecDeque::new(),
        }
    }

    /// Makes leaves run as soon as they have all their gradients.
    pub fn count(&mut self, uses: LeafCounts) {
        self.uses = Some(uses);
    }

    /// Delivers a gradient along an edge. A missing gradient counts as zeros, but its node runs: a custom
    /// Function can see it.
    pub fn add(&mut self, edge: &Edge, grad: Option<Tensor>) -> Result<()> {
        if self.uses.is_some() && edge.node.is_leaf() {
            return self.add_to_leaf(edge, grad);
        }
        let create_graph = self.create_graph;
        let own = key(&edge.node);
        if let Some(ready) = self.front.iter_mut().find(|ready| key(&ready.node) == own) {
            return ready.add(edge.output, grad, create_graph);
        }
        if !self.waiting.is_empty()
            && let Some(ready) = self.waiting.get_mut(&own)
        {
            return ready.add(edge.output, grad, create_graph);
        }
        self.put(ReadyNode::new(edge, grad))
    }

    /// Adds a node that does not wait yet.
    pub fn put(&mut self, ready: ReadyNode) -> Result<()> {
        let place = ready.place();
        let later = self.front.iter().rposition(|ready| ready.place() < place);
        let full = self.front.len() == FRONT;
        match later {
            None if full || self.order.peek().is_some_and(|top| place < *top) => return self.wait(ready),
            Some(at) if full => {
                let last = self.front.remove(0);
                self.front.insert(at, ready);
                return self.wait(last);
            }
            at => self.front.insert(at.map_or(0, |at| at + 1), ready),
        }
        Ok(())
    }

    #[inline(never)]
    fn add_to_leaf(&mut self, edge: &Edge, grad: Option<Tensor>) -> Result<()> {
        let key = key(&edge.node);
        match self.waiting.get_mut(&key) {
            Some(ready) => ready.add(edge.output, grad, self.create_graph)?,
            None => {
                self.reserve_one()?;
                self.waiting.insert(key, ReadyNode::new(edge, grad));
            }
        }
        let left = self.uses.as_mut().and_then(|uses| uses.get_mut(&key));
        let more = left.is_some_and(|left| {
            *left = left.saturating_sub(1);
            *left > 0
        });
        if !more {
            self.ready.extend(self.waiting.remove(&key));
        }
        Ok(())
    }

    /// The gradient accumulated so far for an edge, if it may be written in place.
    pub fn waiting_sum(&self, edge: &Edge) -> Option<Tensor> {
        let key = key(&edge.node);
        let next = self.front.iter().find(|ready| self::key(&ready.node) == key);
        let sum = next.or_else(|| self.waiting.get(&key))?.grads.get(edge.output as usize)?.as_ref()?;
        is_own(sum).then(|| sum.clone())
    }

    /// Puts a node back whose run failed.
    pub fn put_back(&mut self, node: NodeRef) {
        // The memory of its former entry suffices.
        let _ = self.wait(ReadyNode { node, grads: SmallVec::new() });
    }

    /// Removes all entries: leaves, and other nodes.
    pub fn take_all(&mut self) -> (Vec<ReadyNode>, Vec<ReadyNode>) {
        self.front
            .drain(..)
            .chain(self.waiting.drain().map(|(_, ready)| ready))
            .partition(|t| t.node.is_leaf())
    }

    #[inline(never)]
    fn wait(&mut self, ready: ReadyNode) -> Result<()> {
        self.reserve_one()?;
        self.order.push(ready.place());
        self.waiting.insert(key(&ready.node), ready);
        Ok(())
    }

    /// Reserves memory for one more entry.
    #[inline]
    fn reserve_one(&mut self) -> Result<()> {
        let made = self.waiting.try_reserve(1).and_then(|()| self.order.try_reserve(1));
        made.map_err(|_| {
            try_alloc::out_of_memory(self.waiting.len().saturating_mul(2 * size_of::<ReadyNode>()))
        })
    }

    /// The node that comes next, leaves that are complete aside.
    pub fn peek(&self) -> Option<&NodeRef> {
        let first = || self.order.peek().and_then(|(_, key)| self.waiting.get(key));
        self.front.last().or_else(first).map(|ready| &ready.node)
    }

    pub fn next(&mut self) -> Option<ReadyNode> {
        if let Some(ready) = self.ready.pop_front() {
            return Some(ready);
        }
        if let Some(ready) = self.front.pop() {
            return Some(ready);
        }
        let (_, key) = self.order.pop()?;
        self.waiting.remove(&key)
    }
}
