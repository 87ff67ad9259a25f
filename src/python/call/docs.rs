//! The docstrings of operators: what the `///` lines of their rows say, completed from their signatures. So a row describes
//! only what is its own: parameters that mean the same everywhere, defaults, and how a form differs are told here.

use crate::operator::{Forms, Kind, Param, Row};
use crate::python::call::signature::{python_default, shown};

/// How a callable writes its result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Function,
    Method,
    Inplace,
}

/// What a parameter means where no row says it.
fn common(param: &Param, row: &Row) -> Option<&'static str> {
    let fft = row.space == "fft";
    let several = row.returns.starts_with('(') || row.returns.starts_with("tuple");
    let number = param.kind == Kind::Operand;
    Some(match param.name {
        "input" if number => "first operand, a tensor or a number.",
        "input" | "self" => "the input tensor.",
        "other" if number => "second operand, a tensor or a number, broadcast with the first.",
        "other" => "second operand, broadcast with the first.",
        "out" if several => "tensors to write the results into.",
        "out" => "tensor to write the result into.",
        "alpha" => "factor of `other`.",
        "n" if fft => "length of the transformed dimension; the input is cut, or padded with zeros, to fit.",
        "s" if fft => {
            "lengths of the transformed dimensions; the input is cut, or padded with zeros, to fit."
        }
        "norm" if fft => {
            "`\"backward\"` (divide the inverse transform by the length), `\"ortho\"` (both by its root) or `\"forward\"`."
        }
        "dim" if fft && param.kind == Kind::Int => "dimension to transform.",
        "dim" if fft && param.default == Some("None") => {
            "dimensions to transform; the last ones that `s` tells, or all, if not given."
        }
        "dim" if fft => "dimensions to transform.",
        "dim" if param.kind == Kind::Ints => "dimension or dimensions to reduce; all if not given.",
        "dim" => "dimension to work along; negative numbers count from the last one.",
        "dim0" | "axis0" => "first of the two dimensions.",
        "dim1" | "axis1" => "second of the two dimensions.",
        "keepdim" => "whether reduced dimensions stay in the result, with size 1.",
        "dtype" => "data type of the result.",
        "layout" => "memory layout of the result; only `torch.strided` is known.",
        "device" => "device of the result.",
        "pin_memory" => "whether the result lies in page-locked memory.",
        "requires_grad" => "whether autograd records operations on the result.",
        "generator" => "generator of the random numbers; the device's default one if not given.",
        "memory_format" => "memory format of the result.",
        "inplace" => "whether to write the result over `input`.",
        "reduction" => {
            "`\"mean\"` or `\"sum\"` of the losses, or `\"none\"` for one loss per element or sample."
        }
        "size_average" | "reduce" => "deprecated, see `reduction`.",
        "size" => "shape of the result: a sequence, or the sizes one by one.",
        "tensors" => "the tensors: a sequence, or one by one.",
        "A" => "matrix, or batch of matrices.",
        "check_errors" => "whether to raise an error where the factorization fails, as codes do not.",
        "kernel_size" => "size of the window, one number or one for each dimension.",
        "stride" => "step between neighboring windows, one number or one for each dimension.",
        "padding" => "amount of padding on both sides of each dimension.",
        "dilation" => "step between the elements of a window.",
        "output_padding" => "additional size of the output, on one side of each dimension.",
        "groups" => "number of groups that the channels are split into; each has filters of its own.",
        "ceil_mode" => "whether the output size is rounded up rather than down.",
        "_stacklevel" => "not used.",
        "eps" => "small number added to the denominator, for numerical stability.",
        _ => return None,
    })
}

/// What a row says: the text before `Args:`, the entries, and what follows them.
pub struct Said {
    head: &'static str,
    entries: Vec<(&'static str, &'static str)>,
    tail: &'static str,
}

const SECTIONS: [&str; 4] = ["\n\n Examples:", "\n\n Returns:", "\n\n Raises:", "\n\n Shape:"];

fn said(row: &'static Row) -> Said {
    let doc = row.doc.trim();
    let Some((head, rest)) = doc.split_once("\n Args:\n") else {
        let end = SECTIONS.iter().filter_map(|section| doc.find(section)).min();
        let (head, tail) = doc.split_at(end.unwrap_or(doc.len()));
        return Said { head, entries: Vec::new(), tail };
    };
    let (section, tail) = rest.split_at(rest.find("\n\n").unwrap_or(rest.len()));
    let mut entries = Vec::new();
    let mut from = 0;
    // An entry has four spaces before it, and goes on in lines that have more; `///` has one after it.
    let begins = |line: &str| line.strip_prefix("     ").is_some_and(|line| !line.starts_with(' '));
    let mut place = 0;
    for line in section.split_inclusive('\n') {
        if begins(line) && place > from {
            entries.extend(section[from..place].trim().split_once(": "));
            from = place;
        }
        place += line.len();
    }
    entries.extend(section[from..].trim().split_once(": "));
    Said { head: head.trim_end(), entries, tail }
}

/// Adds lines without the space that follows `///`.
fn push(text: &mut String, lines: &str) {
    for (number, line) in lines.split('\n').enumerate() {
        if number > 0 {
            text.push('\n');
        }
        text.push_str(line.strip_prefix(' ').unwrap_or(line));
    }
}

/// The entry of a parameter, with its default; `kin` are the rows that may describe it. Nothing where an entry for
/// several names is there already.
fn describe(text: &mut String, params: &[Param], number: usize, row: &Row, kin: &[Said]) {
    let param = &params[number];
    let holds = |names: &str| names.split(", ").any(|name| name == param.name);
    let entry = kin.iter().find_map(|said| said.entries.iter().find(|(names, _)| holds(names)));
    let listed: Vec<&Param> = match entry {
        Some((names, _)) => params.iter().filter(|p| names.split(", ").any(|name| name == p.name)).collect(),
        None => vec![param],
    };
    let Some(meaning) = entry.map(|(_, meaning)| *meaning).or_else(|| common(param, row)) else { return };
    if listed.first().is_none_or(|first| !std::ptr::eq(*first, param)) {
        return;
    }
    text.push_str("    ");
    for (at, one) in listed.iter().enumerate() {
        text.push_str(if at > 0 { ", " } else { "" });
        text.push_str(shown(one.name));
    }
    text.push_str(": ");
    push(text, meaning);
    if let Some(default) = param.default
        && default != "None"
        && listed.iter().all(|one| one.default == param.default)
        && !meaning.contains("Default: ")
    {
        let default = python_default(default);
        if default != "None" {
            text.push_str(" Default: `");
            text.push_str(&default);
            text.push('`');
        }
    }
    text.push('\n');
}

/// How Python calls the function of a row.
fn path(row: &Row) -> String {
    let name = row.name;
    if row.forms.has(Forms::NN) {
        format!("torch.nn.functional.{name}")
    } else if let Some(name) = name.strip_prefix(row.space).filter(|_| !row.space.is_empty()) {
        format!("torch.{}.{}", row.space, name.trim_start_matches('_'))
    } else if row.forms.has(Forms::FUNCTION) {
        format!("torch.{name}")
    } else {
        format!("torch.Tensor.{name}")
    }
}

/// What the docstrings of a row are made of: itself first, then those of which entries may come.
pub fn parts(row: &'static Row, kin: impl Iterator<Item = &'static Row>) -> Vec<Said> {
    let mut rows = vec![row];
    kin.for_each(|other| {
        if !rows.iter().any(|known| std::ptr::eq(*known, other)) {
            rows.push(other);
        }
    });
    rows.into_iter().map(said).collect()
}

/// Adds the docstring of a callable of `row`, whose signatures have these parameters and forms.
pub fn docstring(
    text: &mut String,
    name: &str,
    style: Style,
    row: &Row,
    params: &[Param],
    forms: Forms,
    parts: &[Said],
) {
    let is_function = row.forms.has(Forms::FUNCTION) || row.forms.has(Forms::NN);
    let is_inplace = style == Style::Inplace && row.forms.0 & !Forms::INPLACE != 0;
    let Some(Said { head, tail, .. }) = parts.first() else { return };
    if is_inplace {
        text.push_str("In-place version of `");
        text.push_str(&path(row));
        text.push_str("`: write the result over the tensor itself.");
    } else {
        push(text, head);
    }
    let first = usize::from(style != Style::Function);
    let written = style == Style::Function && forms.has(Forms::OUT);
    let alpha = forms.has(Forms::ALPHA);
    if params.len() > first || written || alpha {
        text.push_str("\n\nArgs:\n");
        let start = text.len();
        for number in first..params.len() {
            describe(text, &params[first..], number - first, row, parts);
        }
        if alpha {
            describe(text, &[Param { name: "alpha", default: Some("1"), ..Param::PLAIN }], 0, row, parts);
        }
        if written {
            describe(text, &[Param { name: "out", ..Param::PLAIN }], 0, row, parts);
        }
        text.truncate(if text.len() > start { text.len() - 1 } else { start - "\n\nArgs:\n".len() });
    }
    let is_own = style == Style::Function || !is_function;
    if !is_inplace {
        let tail = if is_own { *tail } else { tail.split_once(SECTIONS[0]).map_or(*tail, |(tail, _)| tail) };
        push(text, tail);
    }
    if name != row.name && style == Style::Function {
        text.push_str("\n\nAnother name of `");
        text.push_str(&path(row));
        text.push_str("`.");
    } else if style == Style::Method && is_function {
        text.push_str("\n\nMethod form of `");
        text.push_str(&path(row));
        text.push_str("`, whose docstring has examples.");
    }
}
