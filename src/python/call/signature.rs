//! Calls from Python, and the signatures of rows in Python's syntax.

use crate::operator::{Forms, Kind, Param, Row};
use pyo3::prelude::*;
use std::borrow::Cow;

/// The arguments of a call from Python.
pub struct Call<'a, 'py> {
    pub py: Python<'py>,
    pub name: &'a str,
    /// The receiver of a method; it fills the first parameter.
    pub receiver: Option<&'a Bound<'py, PyAny>>,
    pub positional: &'a [Bound<'py, PyAny>],
    pub keywords: &'a [(String, Bound<'py, PyAny>)],
}

/// The parameters of all signatures of a name: those that not all of them have are optional.
pub fn merge_params(signatures: &[&'static Row]) -> Vec<Param> {
    if let [only] = signatures {
        return only.params.iter().map(|p| Param { ..*p }).collect();
    }
    let mut params: Vec<Param> = Vec::new();
    for (number, row) in signatures.iter().enumerate() {
        for (at, p) in row.params.iter().enumerate() {
            let everywhere = signatures
                .iter()
                .all(|row| row.params.iter().any(|other| other.name == p.name && other.default.is_none()));
            let default =
                if (number, at) == (0, 0) || everywhere { p.default } else { p.default.or(Some("None")) };
            match params.iter_mut().find(|known| known.name == p.name) {
                Some(known) => known.keyword &= p.keyword,
                None => params.push(Param { default, ..*p }),
            }
        }
    }
    params.sort_by_key(|p| p.keyword);
    params
}

/// Adds one signature for several, as `inspect.signature` reads it; `params` and `forms` are those of all.
pub fn push_merged(
    text: &mut String,
    signatures: &[&'static Row],
    params: &[Param],
    forms: Forms,
    function: bool,
) {
    let spread = signatures.iter().find_map(|row| Some(row.params[spread(row, function)?].name));
    push_params(text, params, forms, function, spread);
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

/// The name of a parameter, where that is no word of Python's.
pub fn python_name(name: &str) -> &str {
    if name == "from" { "from_" } else { name }
}

/// Formats a signature for `inspect.signature`: `(input, other, *, alpha=1, out=None)`.
pub fn signature(row: &Row, function: bool) -> String {
    let mut text = String::new();
    let spread = spread(row, function).map(|at| row.params[at].name);
    push_params(&mut text, row.params, row.forms, function, spread);
    text
}

fn push_params(text: &mut String, params: &[Param], forms: Forms, function: bool, spread: Option<&str>) {
    text.push('(');
    let from = text.len();
    let mut add = |parts: &[&str]| {
        text.push_str(if text.len() > from { ", " } else { "" });
        parts.iter().for_each(|part| text.push_str(part));
    };
    let mut star = false;
    for (i, param) in params.iter().enumerate() {
        if param.keyword && !star {
            add(&["*"]);
            star = true;
        }
        let name = match param.name {
            _ if i == 0 && !function => "$self",
            name => python_name(name),
        };
        star |= spread == Some(param.name);
        match param.default {
            _ if spread == Some(param.name) => add(&["*", name]),
            Some(default) if i > 0 || function => add(&[name, "=", &python_default(default)]),
            _ => add(&[name]),
        }
    }
    if !function && params.is_empty() {
        add(&["$self"]);
    }
    if !star && (forms.has(Forms::ALPHA) || (function && forms.has(Forms::OUT))) {
        add(&["*"]);
    }
    if forms.has(Forms::ALPHA) {
        add(&["alpha=1"]);
    }
    if function && forms.has(Forms::OUT) {
        add(&["out=None"]);
    }
    text.push(')');
}

/// Converts a Rust default to Python's syntax.
pub fn python_default(default: &'static str) -> Cow<'static, str> {
    let mut text = default.trim_end_matches(".into()").trim_end_matches(".to_string()");
    while let Some(inner) = ["Some(", "Operand::Scalar(", "Scalar::Int(", "Scalar::Float("]
        .iter()
        .find_map(|wrapper| text.strip_prefix(wrapper)?.strip_suffix(')'))
    {
        text = inner;
    }
    if let Some(number) = text.strip_prefix("- ") {
        return format!("-{number}").into();
    }
    match text {
        "true" => "True".into(),
        "false" => "False".into(),
        "Ints::new()" => "()".into(),
        _ if !text.contains(['!', ':']) => text.into(),
        // The text of a signature cannot refer to objects.
        _ if text.contains("::") => "None".into(),
        _ => match text.replace("! [", "![").strip_prefix("smallvec![").and_then(|t| t.strip_suffix(']')) {
            Some(items) => format!("[{}]", items.replace("- ", "-")).into(),
            None => text.into(),
        },
    }
}
