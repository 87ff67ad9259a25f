//! Leaves finish early: a leaf's `.grad` is complete, and its hooks run, as soon as nothing more can reach it. Only a
//! hook, a Function or who catches an error can tell, so edges are counted for those alone.

use super::ready_queue::{Address, key};
use crate::tensor::NodeRef;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;

/// For each leaf, how many gradients will still arrive.
pub type Uses = HashMap<usize, usize, BuildHasherDefault<Address>>;

/// How many edges of the graph behind `starts` end in each leaf; `runs` tells which nodes get a turn.
pub fn uses<'a>(starts: impl Iterator<Item = &'a NodeRef>, runs: impl Fn(&NodeRef) -> bool) -> Uses {
    let mut uses = Uses::default();
    let mut seen: HashSet<usize, BuildHasherDefault<Address>> = HashSet::default();
    let mut stack: Vec<&NodeRef> = Vec::new();
    for start in starts {
        arrive(start, &mut uses, &mut seen, &mut stack);
    }
    while let Some(node) = stack.pop() {
        if runs(node) {
            for edge in node.edges.iter().flatten() {
                arrive(&edge.node, &mut uses, &mut seen, &mut stack);
            }
        }
    }
    uses
}

fn arrive<'a>(
    node: &'a NodeRef,
    uses: &mut Uses,
    seen: &mut HashSet<usize, BuildHasherDefault<Address>>,
    stack: &mut Vec<&'a NodeRef>,
) {
    if node.is_leaf() {
        *uses.entry(key(node)).or_default() += 1;
    } else if seen.insert(key(node)) {
        stack.push(node);
    }
}
