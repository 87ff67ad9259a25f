//! The nodes of a replay, run together by a backward of their own that was captured: where nothing can tell that from running
//! them one by one, and no derivative is recorded.

use super::match_gradient::fit;
use super::ready_queue::{ReadyNode, ReadyQueue};
use super::{BackwardPlan, BackwardRun, derive, failed, wanted};
use crate::base::{Result, profile, watch};
use crate::storage::access;
use crate::tensor::levels::{func, tangents, vmap};
use crate::tensor::{EnteringGrad, LeavingGrad, Node, NodeRef, Replayed, Start, anomaly, mode};
use smallvec::SmallVec;
use std::sync::Arc;

type Nodes<'a> = SmallVec<[Option<&'a NodeRef>; 16]>;

/// True if no mode of this thread looks at single nodes or changes what they do.
fn is_plain() -> bool {
    !(access::captures()
        || profile::on()
        || anomaly::enabled()
        || watch::has(watch::PROFILE | watch::CASTS | watch::DEVICE)
        || mode::inference()
        || tangents::any_level()
        || func::any()
        || vmap::is_under_way())
}

impl BackwardRun {
    /// Runs all nodes of a replay of which one is next, or returns that one because it must run alone.
    pub(super) fn run_together(&mut self, next: ReadyNode) -> Result<Option<ReadyNode>> {
        let Some((replayed, _)) = &next.node.replayed else { return Ok(Some(next)) };
        let address = Arc::as_ptr(replayed) as usize;
        if self.create_graph || self.apart == address || !is_plain() {
            return Ok(Some(next));
        }
        let replayed = replayed.clone();
        let mut starts: SmallVec<[ReadyNode; 2]> = smallvec::smallvec![next];
        while self.ready_queue.peek().is_some_and(|node| replayed.number(node).is_some()) {
            starts.extend(self.ready_queue.next());
        }
        // A node between them could lead to one of them.
        let are_next = self.ready_queue.peek().is_none_or(|node| node.sequence < replayed.lowest());
        let done = if are_next { self.run_all(&replayed, &starts) } else { Ok(false) };
        if let Ok(true) = done {
            return Ok(None);
        }
        self.apart = address;
        let first = starts.remove(0);
        starts.into_iter().try_for_each(|start| self.ready_queue.put(start))?;
        match done {
            Ok(_) => Ok(Some(first)),
            Err(error) => {
                let error = failed(error, &first.node);
                self.ready_queue.put_back(first.node);
                Err(error)
            }
        }
    }

    /// Runs the nodes of a replay; false if they must run one by one.
    fn run_all(&mut self, replayed: &Arc<Replayed>, starts: &[ReadyNode]) -> Result<bool> {
        let Some(nodes) = reached(self.plan.as_ref(), replayed, starts) else { return Ok(false) };
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
        let start = Start { nodes: &nodes, grads: &entering };
        let Some(leaving) = replayed.backward.run(&start, &mut || one_by_one(replayed, starts))? else {
            return Ok(false);
        };
        if !self.retain_graph {
            nodes.iter().flatten().for_each(|node| node.release());
        }
        for LeavingGrad { node, edge: at, grad } in leaving {
            if let Some(node) = nodes[node]
                && let Some(Some(edge)) = node.edges.get(at)
            {
                let grad = grad.map(|grad| fit(node, at, edge, grad)).transpose()?;
                self.ready_queue.add(edge, grad)?;
            }
        }
        Ok(true)
    }
}

/// The nodes of a replay that will run, at their numbers. `None` if one of them is watched or changed, or if not all of them are
/// needed.
fn reached<'a>(
    plan: Option<&BackwardPlan>,
    replayed: &Arc<Replayed>,
    starts: &'a [ReadyNode],
) -> Option<Nodes<'a>> {
    let mut nodes = Nodes::from_elem(None, replayed.count);
    let mut waiting: SmallVec<[&NodeRef; 16]> = starts.iter().map(|start| &start.node).collect();
    while let Some(node) = waiting.pop() {
        let place = &mut nodes[replayed.number(node)?];
        if place.is_some() {
            continue;
        }
        *place = Some(node);
        if !Node::is_as_made(node) || plan.is_some_and(|plan| !plan.passes(node) || plan.wants(node)) {
            return None;
        }
        for edge in node.edges.iter().flatten() {
            if replayed.number(&edge.node).is_some() {
                waiting.push(&edge.node);
            } else if edge.node.is_particular() || plan.is_some_and(|plan| !plan.leads(&edge.node)) {
                return None;
            }
        }
    }
    Some(nodes)
}

/// Runs the nodes of a replay one by one, and returns the gradients that leave them.
fn one_by_one(replayed: &Arc<Replayed>, starts: &[ReadyNode]) -> Result<Vec<LeavingGrad>> {
    let (mut queue, mut leaving) = (ReadyQueue::new(false), Vec::new());
    for start in starts {
        queue.put(ReadyNode { node: start.node.clone(), grads: start.grads.clone() })?;
    }
    while let Some(ReadyNode { node, grads }) = queue.next() {
        mode::set_grad_enabled(false);
        let results = derive(&node, &grads, wanted(&node, |_| true), true, false)?;
        drop(grads);
        for (at, (edge, grad)) in node.edges.iter().zip(results).enumerate() {
            let Some(edge) = edge else { continue };
            let grad = grad.map(|grad| fit(&node, at, edge, grad)).transpose()?;
            match (replayed.number(&edge.node), replayed.number(&node)) {
                (None, Some(number)) => leaving.push(LeavingGrad { node: number, edge: at, grad }),
                _ => queue.add(edge, grad)?,
            }
        }
    }
    Ok(leaving)
}
