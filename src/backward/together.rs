//! The nodes of a replay, run together by a backward of their own that was captured: where nothing can tell that from running
//! them one by one, and no derivative is recorded.

use super::accumulate::laid_out;
use super::match_gradient::fit;
use super::ready_queue::{ReadyNode, ReadyQueue};
use crate::base::{Result, profile};
use crate::storage::access;
use crate::tensor::levels::{func, tangents, vmap};
use crate::tensor::{
    EnteringGrad, Grads, Kind, LeavingGrad, Node, NodeRef, ReplayedNodes, Start, Tensor, anomaly, mode,
};
use smallvec::SmallVec;
use std::sync::Arc;

type Nodes<'a> = SmallVec<[Option<&'a NodeRef>; 16]>;
type Starts = SmallVec<[ReadyNode; 2]>;

/// Calls the derivative of a node with the gradients of its outputs.
pub type Derive<'a> = dyn Fn(&NodeRef, &[Option<Tensor>]) -> Result<Grads> + 'a;

/// The backward of which this is a part.
pub struct Around<'a> {
    /// True if a node's derivative is needed, and its own gradient is not asked for.
    pub runs: &'a dyn Fn(&NodeRef) -> bool,
    /// True if a node's gradient is needed.
    pub leads: &'a dyn Fn(&NodeRef) -> bool,
    /// Calls a derivative, for all edges of the node, and frees nothing.
    pub derive: &'a Derive<'a>,
    pub retain_graph: bool,
    /// True if leaves take over their first gradients.
    pub is_for_leaves: bool,
}

/// True if no mode of this thread looks at single nodes or changes what they do. (Autocast and the default device concern calls
/// from Python.)
pub fn is_possible() -> bool {
    !(access::captures()
        || profile::on()
        || anomaly::enabled()
        || mode::inference()
        || tangents::any_level()
        || func::any()
        || vmap::is_under_way())
}

/// Runs all nodes of a replay of which one is next, or returns that one because they must run one by one.
pub fn run(
    queue: &mut ReadyQueue,
    replayed: &Arc<ReplayedNodes>,
    next: ReadyNode,
    around: &Around,
) -> Result<Option<ReadyNode>> {
    let mut starts: Starts = smallvec::smallvec![next];
    while queue.peek().is_some_and(|node| replayed.number(node).is_some()) {
        starts.extend(queue.next());
    }
    // A node between them could lead to one of them.
    let are_next = queue.peek().is_none_or(|node| node.sequence < replayed.lowest());
    let done = if are_next { run_all(queue, replayed, &starts, around) } else { Ok(false) };
    if let Ok(true) = done {
        return Ok(None);
    }
    let first = starts.remove(0);
    starts.into_iter().try_for_each(|start| queue.put(start))?;
    match done {
        Ok(_) => Ok(Some(first)),
        Err(error) => {
            queue.put_back(first.node);
            Err(error)
        }
    }
}

/// Runs the nodes of a replay; false if they must run one by one.
fn run_all(
    queue: &mut ReadyQueue,
    replayed: &Arc<ReplayedNodes>,
    starts: &Starts,
    around: &Around,
) -> Result<bool> {
    let Some(nodes) = reached(replayed, starts, around) else { return Ok(false) };
    let mut entering: SmallVec<[EnteringGrad; 4]> = SmallVec::new();
    for start in starts {
        let Some(node) = replayed.number(&start.node) else { return Ok(false) };
        let grads = start.grads.iter().enumerate();
        entering.extend(grads.map(|(output, grad)| EnteringGrad { node, output, grad: grad.as_ref() }));
    }
    let mut given = entering.iter().filter_map(|entering| entering.grad).peekable();
    if given.peek().is_none()
        || given.any(|grad| grad.is_special() || grad.is_sparse() || grad.requires_grad())
    {
        return Ok(false);
    }
    let start = Start { nodes: &nodes, grads: &entering, is_for_leaves: around.is_for_leaves };
    let mut one_by_one = || one_by_one(replayed, starts, around);
    let Some(leaving) = replayed.backward.run(&start, &mut one_by_one)? else { return Ok(false) };
    if !around.retain_graph {
        nodes.iter().flatten().for_each(|node| node.release());
    }
    for LeavingGrad { node, edge: at, grad } in leaving {
        if let Some(node) = nodes[node]
            && let Some(Some(edge)) = node.edges.get(at)
        {
            let grad = grad.map(|grad| fit(node, at, edge, grad)).transpose()?;
            queue.add(edge, grad)?;
        }
    }
    Ok(true)
}

/// The nodes of a replay that will run, at their numbers. `None` if one of them is watched or changed, or if not all of them are
/// needed.
fn reached<'a>(replayed: &Arc<ReplayedNodes>, starts: &'a Starts, around: &Around) -> Option<Nodes<'a>> {
    let mut nodes = Nodes::from_elem(None, replayed.count);
    let mut waiting: SmallVec<[&NodeRef; 16]> = starts.iter().map(|start| &start.node).collect();
    while let Some(node) = waiting.pop() {
        let place = &mut nodes[replayed.number(node)?];
        if place.is_some() {
            continue;
        }
        *place = Some(node);
        if !Node::is_as_made(node) || !(around.runs)(node) {
            return None;
        }
        for edge in node.edges.iter().flatten() {
            if replayed.number(&edge.node).is_some() {
                waiting.push(&edge.node);
            } else if edge.node.is_particular() || !(around.leads)(&edge.node) {
                return None;
            }
        }
    }
    Some(nodes)
}

/// Runs the nodes of a replay one by one, and returns the gradients that leave them.
fn one_by_one(replayed: &Arc<ReplayedNodes>, starts: &Starts, around: &Around) -> Result<Vec<LeavingGrad>> {
    let (mut queue, mut leaving) = (ReadyQueue::new(false), Vec::new());
    for start in starts {
        queue.put(ReadyNode { node: start.node.clone(), grads: start.grads.clone() })?;
    }
    while let Some(ReadyNode { node, grads }) = queue.next() {
        mode::set_grad_enabled(false);
        let results = (around.derive)(&node, &grads)?;
        drop(grads);
        for (at, (edge, grad)) in node.edges.iter().zip(results).enumerate() {
            let Some(edge) = edge else { continue };
            let mut grad = grad.map(|grad| fit(&node, at, edge, grad)).transpose()?;
            if let (Kind::Leaf(leaf), true) = (&edge.node.kind, around.is_for_leaves) {
                grad = grad.map(|grad| laid_out(grad, &leaf.body().layout)).transpose()?;
            }
            match (replayed.number(&edge.node), replayed.number(&node)) {
                (None, Some(number)) => leaving.push(LeavingGrad { node: number, edge: at, grad }),
                _ => queue.add(edge, grad)?,
            }
        }
    }
    Ok(leaving)
}
