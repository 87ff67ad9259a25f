//! Errors of calls that fit no signature. PyTorch's text depends on how many overloads take that number of
//! arguments; a row that stands for several overloads lists their counts.

use crate::base::DType;
use crate::operator::{Forms, Kind, Row};
use crate::python::call::signature::Call;
use crate::python::call::signature::signature;
use crate::python::sequences;
use crate::python::types::dtype_of;
use crate::python::types::type_name;
use crate::python::wrapper::class::PyTensor;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;

/// Returns the error to raise for `error`, which arose while arguments were read: itself if exactly one
/// overload could have been meant.
#[cold]
pub fn explain(error: PyErr, row: &Row, call: &Call<'_, '_>, signature: &str) -> PyErr {
    let py = call.py;
    if !error.is_instance_of::<PyTypeError>(py) {
        return error;
    }
    let method = call.receiver.is_some();
    let given = call.positional.len() + call.keywords.len();
    if method && row.params.len() == 1 && !row.forms.has(Forms::ALPHA) && given > 0 {
        return PyTypeError::new_err(if call.keywords.is_empty() {
            format!("Tensor.{}() takes no arguments ({given} given)", call.name)
        } else {
            format!("Tensor.{}() takes no keyword arguments", call.name)
        });
    }
    let overloads = row.arities;
    if overloads.is_empty() {
        return error;
    }
    let (first, out) = if method { (0, 0) } else { (1, usize::from(row.forms.has(Forms::OUT))) };
    let could = |(least, most): &&(usize, usize)| (least + first..=most + first + out).contains(&given);
    let plausible: Vec<_> = overloads.iter().filter(could).collect();
    if let [(least, _)] = plausible[..] {
        let most = row.params.len() + first - 1;
        return if call.positional.len() > most { too_many(call, least + first, most) } else { error };
    }
    // Overloads have a line each; a row has one signature for all of them.
    let expected = if overloads.len() > 1 { format!("one of:\n * {signature}\n") } else { signature.into() };
    combination(call, &expected)
}

/// Returns the only signature that takes this many arguments, so that its parser explains the error;
/// otherwise raises an error that lists all signatures.
#[cold]
pub fn no_signature(signatures: &'static [&'static Row], call: &Call<'_, '_>) -> PyResult<&'static Row> {
    let given = call.positional.len() + call.keywords.len();
    let method = usize::from(call.receiver.is_some());
    let could = |row: &&&'static Row| {
        let params = &row.params[method..];
        let out = usize::from(method == 0 && row.forms.has(Forms::OUT));
        let least = params.iter().filter(|p| p.default.is_none()).count();
        (least..=params.len() + out).contains(&given)
    };
    let plausible: Vec<_> = signatures.iter().filter(could).collect();
    if let [row] = plausible[..] {
        return Ok(row);
    }
    let lines: Vec<String> =
        signatures.iter().map(|row| format!(" * {}\n", signature(row, method == 0))).collect();
    Err(combination(call, &format!("one of:\n{}", lines.concat())))
}

/// The error for arguments whose types fit no signature.
fn combination(call: &Call<'_, '_>, expected: &str) -> PyErr {
    let mut types: Vec<String> = call.positional.iter().map(type_name).collect();
    let mut list = types.join(", ");
    if !call.keywords.is_empty() {
        types = call.keywords.iter().map(|(name, value)| format!("{name}={}", type_name(value))).collect();
        types.sort_unstable();
        // PyTorch's message ends with a comma if all arguments are keywords.
        list = match list.as_str() {
            "" => format!("{}, ", types.join(", ")),
            _ => format!("{list}, {}", types.join(", ")),
        };
    }
    PyTypeError::new_err(format!(
        "{}() received an invalid combination of arguments - got ({list}), but expected {expected}",
        call.name
    ))
}

/// The error for too many positional arguments.
#[cold]
pub fn too_many(call: &Call<'_, '_>, least: usize, most: usize) -> PyErr {
    let given = call.positional.len();
    let range = match most {
        1 if least == 1 => "1 positional argument".into(),
        _ if least == most => format!("{most} positional arguments"),
        _ => format!("from {least} to {most} positional arguments"),
    };
    let were = if given > 1 { "were" } else { "was" };
    PyTypeError::new_err(format!("{}() takes {range} but {given} {were} given", call.name))
}

/// The error for an int of more than 64 bits.
#[cold]
pub fn too_big() -> PyErr {
    PyOverflowError::new_err("int too big to convert")
}

/// The error for more than 64 bits in a parameter that takes only ints.
#[cold]
pub fn too_long() -> PyErr {
    PyValueError::new_err("Overflow when unpacking long long")
}

/// The error for an argument of a wrong type.
#[cold]
pub fn mismatch(
    name: &str,
    parameter: &str,
    kind: Kind,
    position: Option<usize>,
    object: &Bound<'_, PyAny>,
) -> PyErr {
    if object.is_instance_of::<PyInt>() && object.extract::<i64>().is_err() {
        match kind {
            Kind::Operand | Kind::Scalar => return too_big(),
            Kind::Int | Kind::Ints | Kind::Any => return too_long(),
            _ => {}
        }
    }
    let place = position.map_or_else(String::new, |p| format!(" (position {p})"));
    let items = match sequences::read_items(object, |item| Ok(item.clone())) {
        Ok(items) => items.unwrap_or_default(),
        Err(error) => return error,
    };
    let odd = match kind {
        Kind::Ints | Kind::Sizes => {
            items.iter().position(|i| i.extract::<i64>().is_err()).filter(|&at| at > 0)
        }
        Kind::Tensors | Kind::Several => items.iter().position(|i| i.cast::<PyTensor>().is_err()),
        _ => None,
    };
    PyTypeError::new_err(match (kind, odd) {
        (Kind::Ints | Kind::Sizes, Some(at)) => format!(
            "{name}(): argument '{parameter}' failed to unpack the object at pos {} with error \"type must be tuple of ints,but got {}\"",
            at + 1,
            type_name(&items[at])
        ),
        (_, Some(at)) => format!(
            "expected Tensor as element {at} in argument {}, but got {}",
            position.map_or(0, |p| p - 1),
            type_name(&items[at])
        ),
        (Kind::Ints | Kind::Sizes, None) if items.first().is_some_and(|i| i.extract::<i64>().is_err()) => {
            format!(
                "{name}(): argument '{parameter}'{place} must be tuple of ints, but found element of type {} at pos 0",
                type_name(&items[0])
            )
        }
        _ => format!(
            "{name}(): argument '{parameter}'{place} must be {}, not {}",
            wanted(kind),
            type_name(object)
        ),
    })
}

/// Reads a dtype argument of a function that has no row.
pub fn dtype_argument(
    function: &str,
    parameter: &str,
    position: Option<usize>,
    object: &Bound<'_, PyAny>,
) -> PyResult<DType> {
    dtype_of(object)?.ok_or_else(|| mismatch(function, parameter, Kind::DType, position, object))
}

/// Returns PyTorch's name for a parameter's type.
fn wanted(kind: Kind) -> &'static str {
    match kind {
        Kind::Tensor | Kind::Operand => "Tensor",
        Kind::Tensors | Kind::MaybeTensors | Kind::Several => "tuple of Tensors",
        Kind::Int => "int",
        Kind::Ints | Kind::Sizes => "tuple of ints",
        Kind::Float => "float",
        Kind::Bool => "bool",
        Kind::Scalar => "Number",
        Kind::DType => "torch.dtype",
        Kind::Device => "torch.device",
        Kind::Generator => "torch.Generator",
        Kind::Layout => "torch.layout",
        Kind::MemoryFormat => "torch.memory_format",
        Kind::Str => "str",
        Kind::Any => "a valid argument",
    }
}
