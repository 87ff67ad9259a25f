//! `ctx.input_grad_buffers`: gives a custom Function's `backward` the sums to which its results will be
//! added, so that it can add to them itself.

use super::ready_queue::{ReadyQueue, key};
use crate::base::{Error, Result};
use crate::tensor::{Kind, Node, NodeRef, Tensor, When, anomaly};
use std::cell::Cell;
use std::marker::PhantomData;

/// The custom Function that runs in this thread, and the queue with the sums.
#[derive(Clone, Copy)]
struct CurrentFunction {
    node: usize,
    ready_queue: *const ReadyQueue,
    wanted: u64,
    create_graph: bool,
    /// True if a sum was handed out: no other backward may start while it can be written.
    exposed: bool,
}

thread_local! {
    static NOW: Cell<Option<CurrentFunction>> = const { Cell::new(None) };
}

/// Ends the access that [`show`] began.
pub struct SumAccess<'a> {
    before: Option<CurrentFunction>,
    _frontier: PhantomData<&'a ReadyQueue>,
}

impl Drop for SumAccess<'_> {
    fn drop(&mut self) {
        NOW.set(self.before);
    }
}

/// Makes the sums accessible while a custom Function's derivative runs.
#[inline]
pub fn show<'a>(
    node: &Node,
    wanted: u64,
    ready_queue: &'a ReadyQueue,
    create_graph: bool,
) -> Option<SumAccess<'a>> {
    if !matches!(node.kind, Kind::Custom(_)) {
        return None;
    }
    let now = CurrentFunction {
        node: std::ptr::from_ref(node) as usize,
        ready_queue,
        wanted,
        create_graph,
        exposed: false,
    };
    Some(SumAccess { before: NOW.replace(Some(now)), _frontier: PhantomData })
}

/// Returns an error if a sum has been handed out, because another backward must not start then.
#[inline]
pub fn check() -> Result<()> {
    match NOW.get() {
        Some(now) if now.exposed => Err(Error::runtime(
            "Calling backward or grad reentrantly after accessing a non-None ctx.input_grad_buffers entry is not supported",
        )),
        _ => Ok(()),
    }
}

/// For each edge of the running node, the accumulated sum, if it may be written in place.
pub fn of(node: Option<&NodeRef>) -> Result<Vec<Option<Tensor>>> {
    let asked = node.map(|node| (node, NOW.get()));
    let (node, mut now) = match asked {
        Some((node, Some(now))) if now.node == key(node) => (node, now),
        _ => {
            return Err(Error::runtime(
                "input_grad_buffers can only be accessed while autograd is executing backward()",
            ));
        }
    };
    if now.create_graph {
        return Err(Error::runtime("input_grad_buffers does not support create_graph=True"));
    }
    if anomaly::enabled() {
        return Err(Error::runtime("input_grad_buffers does not support anomaly detection"));
    }
    if !node.hooks_at(|when| when == When::After)?.is_empty() {
        return Err(Error::runtime(
            "input_grad_buffers does not support post-hooks on the producing autograd node because directly accumulated \
             gradients are returned as None and cannot be observed or replaced by those hooks",
        ));
    }
    // SAFETY: `SumAccess` borrows the queue for as long as NOW points to it, and this thread is inside that
    // scope.
    let ready_queue = unsafe { &*now.ready_queue };
    let sum = |(i, edge): (usize, &Option<_>)| {
        edge.as_ref()
            .filter(|_| now.wanted >> i.min(63) & 1 == 1)
            .and_then(|edge| ready_queue.waiting_sum(edge))
    };
    let found: Vec<Option<Tensor>> = node.edges.iter().enumerate().map(sum).collect();
    now.exposed |= found.iter().any(Option::is_some);
    NOW.set(Some(now));
    Ok(found)
}
