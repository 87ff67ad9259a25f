//! Calls from Python, and the signatures of rows in Python's syntax.

use crate::operator::{Forms, Kind, Param, Row};
use pyo3::prelude::*;

/// The arguments of a call from Python.
pub struct Call<'a, 'py> {
    pub py: Python<'py>,
    pub name: &'a str,
    /// The receiver of a method; it fills the first parameter.
    pub receiver: Option<&'a Bound<'py, PyAny>>,
    pub positional: &'a [Bound<'py, PyAny>],
    pub keywords: &'a [(String, Bound<'py, PyAny>)],
}

/// Merges several signatures into one for `inspect.signature`: parameters that only some of them have
/// become optional.
pub fn merge(signatures: &[&Row], function: bool) -> String {
    let [first, others @ ..] = signatures else { return String::new() };
    if others.is_empty() {
        return signature(first, function);
    }
    let mut params: Vec<Param> = Vec::new();
    for row in signatures {
        for (at, p) in row.params.iter().enumerate() {
            let everywhere = signatures
                .iter()
                .all(|row| row.params.iter().any(|other| other.name == p.name && other.default.is_none()));
            let default = if at == 0 || everywhere { p.default } else { p.default.or(Some("None")) };
            match params.iter_mut().find(|known| known.name == p.name) {
                Some(known) => known.keyword &= p.keyword,
                None => params.push(Param { default, ..*p }),
            }
        }
    }
    params.sort_by_key(|p| p.keyword);
    let forms = Forms(signatures.iter().fold(0, |forms, row| forms | row.forms.0));
    let spread = signatures.iter().find_map(|row| Some(row.params[spread(row, function)?].name));
    format_params(&params, forms, function, spread)
}

/// Returns the parameter that collects the remaining arguments, if any: `zeros(2, 3)`.
pub fn spread(row: &Row, function: bool) -> Option<usize> {
    let from = usize::from(!function);
    let params = row.params.get(from..)?;
    let placed = &params[..params.iter().position(|p| p.keyword).unwrap_or(params.len())];
    match placed.iter().position(|p| matches!(p.kind, Kind::Sizes | Kind::Several)) {
        Some(at) if at == 0 || placed[at].kind == Kind::Several => Some(from + at),
        None if matches!(params, [only] if only.kind == Kind::Ints) => Some(from),
        _ => None,
    }
}

/// Formats a signature for `inspect.signature`: `(input, other, *, alpha=1, out=None)`.
pub fn signature(row: &Row, function: bool) -> String {
    format_params(row.params, row.forms, function, spread(row, function).map(|at| row.params[at].name))
}

fn format_params(params: &[Param], forms: Forms, function: bool, spread: Option<&str>) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut star = false;
    for (i, param) in params.iter().enumerate() {
        if param.keyword && !star {
            parts.push("*".into());
            star = true;
        }
        let name = match param.name {
            _ if i == 0 && !function => "$self",
            "from" => "from_", // a keyword of Python
            name => name,
        };
        star |= spread == Some(param.name);
        parts.push(match param.default {
            _ if spread == Some(param.name) => format!("*{name}"),
            Some(default) if i > 0 || function => format!("{name}={}", python_default(default)),
            _ => name.into(),
        });
    }
    if !function && params.is_empty() {
        parts.push("$self".into());
    }
    if !star && (forms.has(Forms::ALPHA) || (function && forms.has(Forms::OUT))) {
        parts.push("*".into());
    }
    if forms.has(Forms::ALPHA) {
        parts.push("alpha=1".into());
    }
    if function && forms.has(Forms::OUT) {
        parts.push("out=None".into());
    }
    format!("({})", parts.join(", "))
}

/// Converts a Rust default to Python's syntax.
pub fn python_default(default: &str) -> String {
    let mut text = default.trim_end_matches(".into()").trim_end_matches(".to_string()");
    while let Some(inner) = ["Some(", "Operand::Scalar(", "Scalar::Int(", "Scalar::Float("]
        .iter()
        .find_map(|wrapper| text.strip_prefix(wrapper)?.strip_suffix(')'))
    {
        text = inner;
    }
    match text {
        "true" => "True".into(),
        "false" => "False".into(),
        "Ints::new()" => "()".into(),
        // The text of a signature cannot refer to objects.
        _ if text.contains("::") => "None".into(),
        _ => match text.replace("! [", "![").strip_prefix("smallvec![").and_then(|t| t.strip_suffix(']')) {
            Some(items) => format!("[{items}]"),
            None => text.into(),
        },
    }
}
