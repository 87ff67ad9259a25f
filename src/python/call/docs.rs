//! Completes the docstrings of operators from their signatures. A row documents only what is specific to it; this module
//! adds the parameters that mean the same everywhere, the defaults, and the differences between forms.

use crate::operator::{Forms, Kind, Param, Row};
use crate::python::call::signature::{python_default, python_name};

/// How a callable writes its result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Function,
    Method,
    Inplace,
}

/// Returns the meaning of a parameter that no row documents.
fn common_meaning(param: &Param, row: &Row) -> Option<&'static str> {
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
        "layout" => "memory layout of the result; `torch.strided` if not given.",
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
        "check_errors" => "whether to raise `torch.linalg.LinAlgError` where the computation fails.",
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

/// The parts of a row's doc comment. Every line but the first begins with a space, which `inspect.cleandoc` removes.
pub struct RowDoc {
    head: &'static str,
    /// The section `Args:`: names and meanings.
    entries: Vec<(&'static str, &'static str)>,
    /// The sections after `Args:`.
    tail: &'static str,
    /// The sections of `tail` before the examples.
    notes: &'static str,
}

fn parse_doc(row: &'static Row) -> RowDoc {
    let doc = row.doc.trim_ascii();
    let (mut head, mut args, mut tail, mut notes) = (doc.len(), doc.len(), doc.len(), doc.len());
    let mut entries = Vec::with_capacity(4);
    let mut entry = None;
    let mut place = 0;
    for line in doc.split_inclusive('\n') {
        let in_args = args < place && tail > place;
        match line.as_bytes() {
            b" Args:\n" => (head, args) = (place, place),
            b" Examples:\n" | b" Returns:\n" | b" Raises:\n" | b" Shape:\n" => {
                head = head.min(place);
                tail = tail.min(place);
                if line == " Examples:\n" {
                    notes = place;
                    break;
                }
            }
            // After the space that follows `///`, an entry has four more, and goes on in lines that have yet more.
            text if in_args && !text.starts_with(b"      ") => {
                entries.extend(entry.and_then(|from: usize| doc[from..place].trim_ascii().split_once(": ")));
                entry = (text != b"\n").then_some(place);
            }
            _ => {}
        }
        place += line.len();
    }
    entries.extend(entry.and_then(|from| doc[from..tail].trim_ascii().split_once(": ")));
    RowDoc { head: doc[..head].trim_ascii_end(), entries, tail: &doc[tail..], notes: &doc[tail..notes] }
}

/// Adds the entry of a parameter with its default, unless an entry for several names has covered it.
fn describe(text: &mut String, params: &[Param], number: usize, row: &Row, parts: &[RowDoc]) {
    let param = &params[number];
    let holds = |names: &str, name: &str| {
        names == name || (names.contains(',') && names.split(", ").any(|one| one == name))
    };
    let entry = parts.iter().find_map(|doc| doc.entries.iter().find(|(names, _)| holds(names, param.name)));
    let mut default = param.default.filter(|default| *default != "None");
    let meaning = match entry {
        Some((names, _)) if params[..number].iter().any(|before| holds(names, before.name)) => return,
        Some((_, meaning)) => meaning,
        None => match common_meaning(param, row) {
            Some(meaning) => meaning,
            None => return,
        },
    };
    text.push_str("\n     ");
    text.push_str(python_name(param.name));
    for other in
        params[number + 1..].iter().filter(|other| entry.is_some_and(|(names, _)| holds(names, other.name)))
    {
        text.push_str(", ");
        text.push_str(python_name(other.name));
        default = default.filter(|_| other.default == param.default);
    }
    text.push_str(": ");
    text.push_str(meaning);
    if let Some(default) = default.map(python_default).filter(|default| *default != "None")
        && !meaning.contains("Default: ")
    {
        text.push_str(" Default: `");
        text.push_str(&default);
        text.push('`');
    }
}

/// Adds the Python name of the function of a row, or of its method if it has no function.
fn push_path(text: &mut String, row: &Row) {
    let space = match row.space {
        _ if row.forms.has(Forms::NN) => "nn.functional.",
        "" if row.forms.has(Forms::FUNCTION) => "",
        "" => "Tensor.",
        space => space,
    };
    text.push_str("torch.");
    text.push_str(space);
    let own = row.name.strip_prefix(row.space).filter(|_| !row.space.is_empty());
    text.push_str(own.map_or("", |_| "."));
    text.push_str(own.map_or(row.name, |own| own.trim_start_matches('_')));
}

/// Parses the doc comment of a row, and then those of related rows, which supply missing entries.
pub fn collect(row: &'static Row, related: impl Iterator<Item = &'static Row>) -> Vec<RowDoc> {
    let mut rows = vec![row];
    related.for_each(|other| {
        if !rows.iter().any(|known| std::ptr::eq(*known, other)) {
            rows.push(other);
        }
    });
    rows.into_iter().map(parse_doc).collect()
}

/// Adds the docstring of a callable of `row`, whose signatures have these parameters and forms.
pub fn docstring(
    text: &mut String,
    name: &str,
    style: Style,
    row: &Row,
    params: &[Param],
    forms: Forms,
    parts: &[RowDoc],
) {
    let is_function = row.forms.has(Forms::FUNCTION) || row.forms.has(Forms::NN);
    let is_inplace = style == Style::Inplace && row.forms.0 & !Forms::INPLACE != 0;
    let Some(RowDoc { head, tail, notes, .. }) = parts.first() else { return };
    if is_inplace {
        text.push_str("In-place version of `");
        push_path(text, row);
        text.push_str("`: write the result over the tensor itself.");
    } else {
        text.push_str(head);
    }
    let first = usize::from(style != Style::Function);
    let title = text.len();
    text.push_str("\n\n Args:");
    let entries = text.len();
    for number in first..params.len() {
        describe(text, &params[first..], number - first, row, parts);
    }
    if forms.has(Forms::ALPHA) {
        describe(text, &[Param { name: "alpha", default: Some("1"), ..Param::PLAIN }], 0, row, parts);
    }
    if style == Style::Function && forms.has(Forms::OUT) {
        describe(text, &[Param { name: "out", ..Param::PLAIN }], 0, row, parts);
    }
    if text.len() == entries {
        text.truncate(title);
    }
    let rest = match style {
        _ if is_inplace => "",
        Style::Method if is_function => notes.trim_ascii_end(),
        _ => tail,
    };
    if !rest.is_empty() {
        text.push_str("\n\n");
        text.push_str(rest);
    }
    if name != row.name && style == Style::Function {
        text.push_str("\n\n Another name of `");
        push_path(text, row);
        text.push_str("`.");
    } else if style == Style::Method && is_function {
        text.push_str("\n\n Method form of `");
        push_path(text, row);
        text.push_str("`, whose docstring has examples.");
    }
}
