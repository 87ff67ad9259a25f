//! What PyTorch calls the values that a node saved: `_saved_self`, `_saved_other`, `_saved_result`.

use crate::ops::{self, Kind, Row, pointwise::Pointwise};
use crate::tensor::{Node, Saved};
use std::collections::HashMap;
use std::sync::OnceLock;

struct Known {
    row: &'static Row,
    pointwise: Option<&'static Pointwise>,
}

/// Rows by the names of their nodes.
fn known(name: &str) -> Option<&'static Known> {
    static ROWS: OnceLock<HashMap<String, Known>> = OnceLock::new();
    let rows = ROWS.get_or_init(|| {
        let plain = ops::rows().map(|row| Known { row, pointwise: None });
        let pointwise = ops::pointwise_rows().map(|op| Known { row: &op.row, pointwise: Some(op) });
        // The later one stands: a pointwise row is among both.
        plain.chain(pointwise).map(|known| (node_name(known.row.name), known)).collect()
    });
    rows.get(name)
}

/// The operator whose node has this name.
pub fn row_of_node(node: &str) -> Option<&'static Row> {
    known(node).map(|known| known.row)
}

/// Its name.
pub fn row_name(node: &str) -> Option<&'static str> {
    known(node).map(|known| known.row.name)
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
    let known = known(&name);
    let mut found: Vec<(String, u16)> = Vec::new();
    let mut add = |source: u16| {
        let name = source_name(&name, known.map(|k| k.row), source);
        if !found.iter().any(|(n, _)| *n == name) {
            found.push((name, source));
        }
    };
    if let Some(op) = known.and_then(|k| k.pointwise) {
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
    let tensors = row.map(|row| row.params.iter().filter(|p| matches!(p.kind, Kind::Tensor | Kind::Operand)));
    match tensors.and_then(|mut params| params.nth(usize::from(source))).map(|p| p.name) {
        Some("input" | "x" | "a") => "self".into(),
        Some("b") => "other".into(),
        Some("low") => "min".into(),
        Some("high") => "max".into(),
        Some(name) => name.into(),
        None if source == 0 => "self".into(),
        None if source == 1 => "other".into(),
        None => format!("input{source}"),
    }
}
