//! What PyTorch calls the values that a node saved: `_saved_self`, `_saved_other`, `_saved_result`.

use crate::ops::{self, Kind as Takes, Row, pointwise::Pointwise};
use crate::tensor::{Derivative, Kind, Node, Saved};
use std::collections::HashMap;
use std::sync::OnceLock;

/// The row of an operator that is pointwise.
fn pointwise(derivative: &'static Derivative) -> Option<&'static Pointwise> {
    static ROWS: OnceLock<HashMap<usize, &'static Pointwise>> = OnceLock::new();
    let place = |derivative: &'static Derivative| std::ptr::from_ref(derivative) as usize;
    let rows = ROWS.get_or_init(|| ops::pointwise_rows().map(|op| (place(&op.derivative), op)).collect());
    rows.get(&place(derivative)).copied()
}

/// The operator whose nodes have this name.
fn named(name: &str) -> Option<&'static Row> {
    static ROWS: OnceLock<HashMap<String, &'static Row>> = OnceLock::new();
    let rows = ROWS.get_or_init(|| ops::rows().map(|row| (node_name(row.name), row)).collect());
    rows.get(name).copied()
}

/// The operator that made a node.
pub fn row_of_node(node: &Node) -> Option<&'static Row> {
    let Kind::Op(derivative) = node.kind else { return None };
    pointwise(derivative).map(|op| &op.row).or_else(|| named(derivative.name))
}

/// What PyTorch calls a row's parameter.
pub fn torch_name(parameter: &'static str) -> &'static str {
    match parameter {
        "input" | "x" | "a" => "self",
        "b" => "other",
        "low" => "min",
        "high" => "max",
        other => other,
    }
}

fn node_name(row: &'static str) -> String {
    let (bytes, length) = ops::camel::<64>(row);
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

/// Nodes with several outputs, or whose inputs PyTorch calls otherwise than their rows do.
const OUTPUTS: &[(&str, &[&str])] = &[
    ("AminmaxBackward0", &["min", "max"]),
    ("StdMeanBackward0", &["result0", "result1"]),
    ("VarMeanBackward0", &["result0", "result1"]),
];
const PICKERS: [&str; 2] = ["values", "indices"];

/// Names of the values that a node of this kind can save, with the source of each.
pub fn names(node: &Node) -> Vec<(String, u16)> {
    let name = node.name();
    let row = row_of_node(node);
    let mut found: Vec<(String, u16)> = Vec::new();
    let mut add = |source: u16| {
        let name = source_name(&name, row, source);
        if !found.iter().any(|(n, _)| *n == name) {
            found.push((name, source));
        }
    };
    if let Kind::Op(derivative) = node.kind
        && let Some(op) = pointwise(derivative)
    {
        let sources = op.gradients.iter().flat_map(|gradient| gradient.sources).copied();
        let operands = op.inputs as u16;
        sources.filter(|s| *s < operands || *s == Saved::OUTPUT).for_each(&mut add);
    }
    node.saves().values.iter().for_each(|saved| add(saved.source));
    found.sort();
    found
}

fn source_name(node: &str, row: Option<&Row>, source: u16) -> String {
    if source >= Saved::OUTPUT {
        let output = usize::from(source - Saved::OUTPUT);
        if let Some((_, names)) = OUTPUTS.iter().find(|(name, _)| *name == node) {
            return names.get(output).copied().unwrap_or("result").into();
        }
        return if output == 0 {
            "result".into()
        } else {
            PICKERS.get(output).copied().unwrap_or("result").into()
        };
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
