//! PyTorch's names for the values that a pointwise node saves: `_saved_self`, `_saved_other`,
//! `_saved_result`. (The rows of primitives declare the names of their nodes.)

use crate::operator::pointwise::{Numbers, Pointwise};
use crate::operator::saved_name;
use crate::ops;
use crate::tensor::{Derivative, Kind, Node, Saved};
use std::collections::HashMap;
use std::sync::OnceLock;

/// Finds the pointwise operator that recorded a node.
pub fn pointwise(node: &Node) -> Option<&'static Pointwise> {
    static ROWS: OnceLock<HashMap<usize, &'static Pointwise>> = OnceLock::new();
    let Kind::Op(derivative) = node.kind else { return None };
    let place = |derivative: &'static Derivative| std::ptr::from_ref(derivative) as usize;
    let rows = ROWS.get_or_init(|| {
        let both = |op: &'static Pointwise| [(place(&op.derivative), op), (place(&op.by_number), op)];
        ops::pointwise_rows().flat_map(both).collect()
    });
    rows.get(&place(derivative)).copied()
}

/// Returns the names of the values that a node can save, each with its source.
pub fn names(node: &Node) -> Vec<(&'static str, u32)> {
    let op = pointwise(node);
    let mut found: Vec<(&'static str, u32)> = Vec::new();
    let mut add = |source: u32| {
        let name = source_name(op, source);
        if !found.iter().any(|(n, _)| *n == name) {
            found.push((name, source));
        }
    };
    if let Some(op) = op {
        let possible = op.gradients.iter().filter(|gradient| (gradient.of as usize) < node.edges.len());
        let bits = possible.fold(0, |bits, gradient| bits | gradient.saves);
        let inputs = (0..op.row.params.len() as u32).filter(|source| bits >> source & 1 == 1);
        let sources = inputs.chain((bits & crate::operator::OUTPUTS != 0).then_some(Saved::OUTPUT));
        let operands = op.inputs as u32;
        let numbers = node.params.as_ref().and_then(|params| params.downcast_ref::<Numbers>());
        let number = |s: u32| numbers.is_some_and(|n| n.get(s as usize).is_some_and(Option::is_some));
        let tensor = |s: &u32| *s < operands && (op.clauses.wraps || !number(*s)) || *s == Saved::OUTPUT;
        sources.filter(tensor).for_each(&mut add);
    }
    node.saves().values.iter().for_each(|saved| add(saved.source));
    found.sort_unstable();
    found
}

fn source_name(op: Option<&Pointwise>, source: u32) -> &'static str {
    if source >= Saved::OUTPUT {
        return "result";
    }
    match op.and_then(|op| op.row.params.get(source as usize)) {
        Some(param) => saved_name(param.name),
        None if source == 0 => "self",
        None => "other",
    }
}
