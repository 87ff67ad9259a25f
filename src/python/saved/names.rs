//! What PyTorch calls the values that a node saved: `_saved_self`, `_saved_other`, `_saved_result`.

use crate::operator::pointwise::{Numbers, Pointwise};
pub use crate::operator::saved_name as torch_name;
use crate::operator::{Kind as Takes, Row};
use crate::ops;
use crate::tensor::{Derivative, Kind, Node, Saved};
use std::collections::HashMap;
use std::sync::OnceLock;

/// The row of an operator that is pointwise.
fn pointwise(derivative: &'static Derivative) -> Option<&'static Pointwise> {
    static ROWS: OnceLock<HashMap<usize, &'static Pointwise>> = OnceLock::new();
    let place = |derivative: &'static Derivative| std::ptr::from_ref(derivative) as usize;
    let rows = ROWS.get_or_init(|| {
        let both = |op: &'static Pointwise| [(place(&op.derivative), op), (place(&op.by_number), op)];
        ops::pointwise_rows().flat_map(both).collect()
    });
    rows.get(&place(derivative)).copied()
}

/// The operator whose nodes have this name.
fn named(name: &str) -> Option<&'static Row> {
    static ROWS: OnceLock<HashMap<String, &'static Row>> = OnceLock::new();
    // Of those with one name, the row that has the derivative.
    let all = |differentiable| ops::rows().filter(move |row| row.differentiable == differentiable);
    let rows =
        ROWS.get_or_init(|| all(false).chain(all(true)).map(|row| (node_name(row.name), row)).collect());
    rows.get(name).copied()
}

/// The operator that made a node.
pub fn row_of_node(node: &Node) -> Option<&'static Row> {
    let Kind::Op(derivative) = node.kind else { return None };
    pointwise(derivative).map(|op| &op.row).or_else(|| named(derivative.name))
}

/// Whether a node's formula tells the names of what it can save, also when nothing is left of it.
pub fn is_pointwise(node: &Node) -> bool {
    matches!(node.kind, Kind::Op(derivative) if pointwise(derivative).is_some())
}

/// Whether numbers among this node's operands count as tensors.
pub fn wraps_numbers(node: &Node) -> bool {
    matches!(node.kind, Kind::Op(derivative) if pointwise(derivative).is_some_and(|op| op.clauses.wraps))
}

fn node_name(row: &'static str) -> String {
    let (bytes, length) = crate::operator::camel::<64>(row);
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// Nodes with several outputs pick values.
const PICKERS: [&str; 2] = ["values", "indices"];

/// Names of the values that a node of this kind can save, with the source of each.
pub fn names(node: &Node) -> Vec<(String, u16)> {
    let row = row_of_node(node);
    let mut found: Vec<(String, u16)> = Vec::new();
    let mut add = |source: u16| {
        let name = source_name(node, row, source);
        if !found.iter().any(|(n, _)| *n == name) {
            found.push((name, source));
        }
    };
    if let Kind::Op(derivative) = node.kind
        && let Some(op) = pointwise(derivative)
    {
        let possible = op.gradients.iter().filter(|gradient| usize::from(gradient.of) < node.edges.len());
        let bits = possible.fold(0, |bits, gradient| bits | gradient.saves);
        let inputs = (0..op.row.params.len() as u16).filter(|source| bits >> source & 1 == 1);
        let sources = inputs.chain((bits & crate::operator::OUTPUTS != 0).then_some(Saved::OUTPUT));
        let operands = op.inputs as u16;
        let numbers = node.params.as_ref().and_then(|params| params.downcast_ref::<Numbers>());
        let number = |s: u16| numbers.is_some_and(|n| n.get(usize::from(s)).is_some_and(Option::is_some));
        let tensor = |s: &u16| *s < operands && (op.clauses.wraps || !number(*s)) || *s == Saved::OUTPUT;
        sources.filter(tensor).for_each(&mut add);
    }
    node.saves().values.iter().for_each(|saved| add(saved.source));
    // Tensors among the arguments are there even when this call had none to save.
    let arguments =
        row.filter(|row| row.differentiable && row.family != "pointwise").map_or(&[][..], |row| row.params);
    let arguments = arguments.iter().skip(node.edges.len()).zip(Saved::ARGUMENT..);
    arguments.filter(|(p, _)| matches!(p.kind, Takes::Tensor)).for_each(|(_, source)| add(source));
    found.sort();
    found
}

fn source_name(node: &Node, row: Option<&Row>, source: u16) -> String {
    if source >= Saved::OUTPUT {
        let output = usize::from(source - Saved::OUTPUT);
        return if output == 0 {
            "result".into()
        } else {
            PICKERS.get(output).copied().unwrap_or("result").into()
        };
    }
    if (Saved::ARGUMENT..Saved::DETACHED).contains(&source) {
        let at = node.edges.len() + usize::from(source - Saved::ARGUMENT);
        return row.and_then(|row| row.params.get(at)).map_or("indices", |p| torch_name(p.name)).into();
    }
    let tensors =
        row.map(|row| row.params.iter().filter(|p| matches!(p.kind, Takes::Tensor | Takes::Operand)));
    match tensors.and_then(|mut params| params.nth(usize::from(source))).map(|p| p.name) {
        Some(name) => torch_name(name).into(),
        None if source == 0 => "self".into(),
        None if source == 1 => "other".into(),
        None => format!("input{source}"),
    }
}
