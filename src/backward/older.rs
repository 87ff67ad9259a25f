//! A backward that a captured call runs: its nodes must have been made in the call, because a replay runs the same kernels
//! whatever graph its tensors have.

use super::ready_queue::key;
use crate::base::{Result, try_alloc};
use crate::storage::access;
use crate::tensor::{Edge, NodeRef, Tensor, changes};
use std::collections::HashSet;

/// Notes the reason if a node that `executes` is older than this thread's capture, or a leaf has hooks.
#[cold]
pub fn note(roots: &[(Edge, Tensor)], executes: impl Fn(&NodeRef) -> bool) -> Result<()> {
    if !changes::are_noted() {
        return Ok(());
    }
    let (mut seen, mut waiting) = (HashSet::new(), Vec::new());
    for (edge, _) in roots {
        try_alloc::push(&mut waiting, &edge.node)?;
    }
    while let Some(node) = waiting.pop() {
        if node.is_leaf() && !node.hooks_at(|_| true)?.is_empty() {
            access::note(|| "a backward that it runs reaches a tensor that has hooks".into());
            return Ok(());
        }
        if node.is_leaf() || !executes(node) || !try_alloc::insert(&mut seen, key(node))? {
            continue;
        }
        if changes::is_older(node.sequence) {
            access::note(|| {
                format!("it runs a backward through {}, which is older than the call", node.name())
            });
            return Ok(());
        }
        for edge in node.edges.iter().flatten() {
            try_alloc::push(&mut waiting, &edge.node)?;
        }
    }
    Ok(())
}
