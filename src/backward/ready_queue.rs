//! The nodes that have a gradient and wait for their turn, latest first. A chain never touches the heap: the newest
//! arrival is kept aside.

use super::leaf_counts::Uses;
use crate::base::{Result, try_alloc};
use crate::operator::addition;
use crate::operator::pointwise::{apply_inplace, small};
use crate::tensor::{Edge, Node, NodeRef, Tensor, steady};
use smallvec::SmallVec;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// A node whose turn it is, with the gradients of its outputs.
pub struct Turn {
    pub node: NodeRef,
    pub grads: SmallVec<[Option<Tensor>; 1]>,
}

pub struct ReadyQueue {
    create_graph: bool,
    /// The latest arrival, when it comes before everything in the heap.
    aside: Option<Turn>,
    order: BinaryHeap<(u64, usize)>,
    waiting: HashMap<usize, Turn, BuildHasherDefault<Address>>,
    /// How many gradients each leaf still waits for, when that is counted; and the leaves that wait no more.
    uses: Option<Uses>,
    ready: VecDeque<Turn>,
}

/// Hashes addresses: they are spread well enough by one multiplication.
#[derive(Default)]
pub struct Address(u64);

impl Hasher for Address {
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

impl Turn {
    fn new(edge: &Edge, grad: Option<Tensor>) -> Turn {
        let mut turn =
            Turn { node: edge.node.clone(), grads: smallvec::smallvec![None; edge.node.outputs.len()] };
        if let Some(slot) = turn.grads.get_mut(edge.output as usize) {
            *slot = grad;
        }
        turn
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

/// Whether no one else can see a gradient.
fn is_own(t: &Tensor) -> bool {
    let body = t.body();
    !t.is_special()
        && t.is_unique()
        && !t.requires_grad()
        && body.storage.is_unique()
        && body.layout.is_contiguous()
}

/// The sum of two gradients; in place where nobody else can see it.
fn accumulate(sum: Tensor, grad: Tensor, create_graph: bool) -> Result<Tensor> {
    steady(|| summed(sum, grad, create_graph))
}

fn summed(sum: Tensor, grad: Tensor, create_graph: bool) -> Result<Tensor> {
    let alike = !grad.is_special() && sum.dtype() == grad.dtype() && sum.shape() == grad.shape();
    if !create_graph && alike && is_own(&sum) {
        if !small::add_into(&addition::add::ROW.forward.loops, &sum, &grad)? {
            let operands = [(&sum).into(), (&grad).into()];
            apply_inplace(&addition::add::ROW, &sum, &operands)?;
        }
        return Ok(sum);
    }
    addition::add(&sum, &grad)
}

impl ReadyQueue {
    pub fn new(create_graph: bool) -> ReadyQueue {
        ReadyQueue {
            create_graph,
            aside: None,
            order: BinaryHeap::new(),
            waiting: HashMap::default(),
            uses: None,
            ready: VecDeque::new(),
        }
    }

    /// From now on leaves get their turn as soon as they have all their gradients.
    pub fn count(&mut self, uses: Uses) {
        self.uses = Some(uses);
    }

    /// Delivers a gradient along an edge. A missing one counts as zeros, but its node gets a turn: a custom Function sees it.
    pub fn add(&mut self, edge: &Edge, grad: Option<Tensor>) -> Result<()> {
        if self.uses.is_some() && edge.node.is_leaf() {
            return self.add_to_leaf(edge, grad);
        }
        let create_graph = self.create_graph;
        if let Some(aside) = &mut self.aside
            && key(&aside.node) == key(&edge.node)
        {
            return aside.add(edge.output, grad, create_graph);
        }
        if let Some(turn) = self.waiting.get_mut(&key(&edge.node)) {
            return turn.add(edge.output, grad, create_graph);
        }
        let turn = Turn::new(edge, grad);
        let place = (turn.node.sequence, key(&turn.node));
        let ahead = match (&self.aside, self.order.peek()) {
            (Some(aside), _) => place > (aside.node.sequence, key(&aside.node)),
            (None, Some(top)) => place > *top,
            (None, None) => true,
        };
        if !ahead {
            self.wait(turn)
        } else if let Some(old) = self.aside.replace(turn) {
            self.wait(old)
        } else {
            Ok(())
        }
    }

    fn add_to_leaf(&mut self, edge: &Edge, grad: Option<Tensor>) -> Result<()> {
        let key = key(&edge.node);
        match self.waiting.get_mut(&key) {
            Some(turn) => turn.add(edge.output, grad, self.create_graph)?,
            None => {
                self.make_room()?;
                self.waiting.insert(key, Turn::new(edge, grad));
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

    /// What has come along an edge so far, where it may be written into.
    pub fn waiting_sum(&self, edge: &Edge) -> Option<Tensor> {
        let key = key(&edge.node);
        let aside = self.aside.as_ref().filter(|turn| self::key(&turn.node) == key);
        let sum = aside.or_else(|| self.waiting.get(&key))?.grads.get(edge.output as usize)?.as_ref()?;
        is_own(sum).then(|| sum.clone())
    }

    /// A node whose turn failed waits again.
    pub fn put_back(&mut self, node: NodeRef) {
        // There is room: that of its turn.
        let _ = self.wait(Turn { node, grads: SmallVec::new() });
    }

    /// Everybody who still waits: leaves, and the others.
    pub fn take_all(&mut self) -> (Vec<Turn>, Vec<Turn>) {
        self.aside
            .take()
            .into_iter()
            .chain(self.waiting.drain().map(|(_, turn)| turn))
            .partition(|t| t.node.is_leaf())
    }

    fn wait(&mut self, turn: Turn) -> Result<()> {
        self.make_room()?;
        self.order.push((turn.node.sequence, key(&turn.node)));
        self.waiting.insert(key(&turn.node), turn);
        Ok(())
    }

    /// For one more who waits.
    #[inline]
    fn make_room(&mut self) -> Result<()> {
        let made = self.waiting.try_reserve(1).and_then(|()| self.order.try_reserve(1));
        made.map_err(|_| try_alloc::out_of_memory(self.waiting.len().saturating_mul(2 * size_of::<Turn>())))
    }

    pub fn next(&mut self) -> Option<Turn> {
        if let Some(turn) = self.ready.pop_front() {
            return Some(turn);
        }
        if let Some(turn) = self.aside.take() {
            return Some(turn);
        }
        let (_, key) = self.order.pop()?;
        self.waiting.remove(&key)
    }
}
