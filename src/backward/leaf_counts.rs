//! Counts the gradients that each leaf still waits for, so that its `.grad` is complete, and its hooks run,
//! as soon as the last one arrives. Only hooks, custom Functions and callers that catch an error can observe
//! this, so edges are counted only for them.

use super::ready_queue::{AddressHasher, key};
use crate::base::{Result, try_alloc};
use crate::tensor::NodeRef;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;

/// For each leaf, the number of gradients that will still arrive.
pub type LeafCounts = HashMap<usize, usize, BuildHasherDefault<AddressHasher>>;

/// For each leaf, the number of edges to it in the graph behind `starts`. `runs` is true for the nodes that
/// will run.
pub fn count_edges<'a>(
    starts: impl Iterator<Item = &'a NodeRef>,
    runs: impl Fn(&NodeRef) -> bool,
) -> Result<LeafCounts> {
    let mut uses = LeafCounts::default();
    let mut seen: HashSet<usize, BuildHasherDefault<AddressHasher>> = HashSet::default();
    let mut stack: Vec<&NodeRef> = Vec::new();
    for start in starts {
        arrive(start, &mut uses, &mut seen, &mut stack)?;
    }
    while let Some(node) = stack.pop() {
        if runs(node) {
            for edge in node.edges.iter().flatten() {
                arrive(&edge.node, &mut uses, &mut seen, &mut stack)?;
            }
        }
    }
    Ok(uses)
}

fn arrive<'a>(
    node: &'a NodeRef,
    uses: &mut LeafCounts,
    seen: &mut HashSet<usize, BuildHasherDefault<AddressHasher>>,
    stack: &mut Vec<&'a NodeRef>,
) -> Result<()> {
    if node.is_leaf() {
        *try_alloc::entry(uses, key(node))? += 1;
    } else if try_alloc::insert(seen, key(node))? {
        try_alloc::push(stack, node)?;
    }
    Ok(())
}
