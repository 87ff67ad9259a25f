//! Calls that fit no signature, and their errors. PyTorch's text depends on how many overloads take that number of
//! arguments; a row that stands for several overloads lists their counts.

use crate::base::{DType, Error};
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

/// Why a call's arguments cannot be read. Only [`Mismatch::error`] puts it into words: after all signatures,
/// deprecated ones too, have failed.
pub struct Mismatch<'py> {
    /// The signature that was read, or all that there are.
    pub signatures: &'static [&'static Row],
    pub reason: Reason<'py>,
}

pub enum Reason<'py> {
    /// The types fit none of several signatures.
    FitsNone,
    WrongType {
        parameter: &'static str,
        kind: Kind,
        /// Counted from 1; `None` for a keyword.
        position: Option<usize>,
        object: Bound<'py, PyAny>,
    },
    TooMany {
        least: usize,
        most: usize,
    },
    /// The keyword names a parameter that has a value already.
    Repeated(String),
    /// No parameter has the keyword's name.
    Unexpected(String),
    /// These parameters got no value.
    Missing(Vec<&'static str>),
    /// Python code of an argument raised.
    Raised(PyErr),
}

impl From<PyErr> for Reason<'_> {
    fn from(error: PyErr) -> Self {
        Reason::Raised(error)
    }
}

impl From<Error> for Reason<'_> {
    fn from(error: Error) -> Self {
        Reason::Raised(error.into())
    }
}

impl<'py> Reason<'py> {
    #[cold]
    pub fn wrong_type(
        parameter: &'static str,
        kind: Kind,
        position: Option<usize>,
        object: &Bound<'py, PyAny>,
    ) -> Self {
        Reason::WrongType { parameter, kind, position, object: object.clone() }
    }

    fn error(self, call: &Call<'_, 'py>) -> PyErr {
        let name = call.name;
        PyTypeError::new_err(match self {
            Reason::WrongType { parameter, kind, position, object } => {
                return wrong_type(name, parameter, kind, position, &object);
            }
            Reason::TooMany { least, most } => return too_many(call, least, most),
            Reason::Raised(error) => return error,
            Reason::Repeated(keyword) => format!("{name}() got multiple values for argument '{keyword}'"),
            Reason::Unexpected(keyword) => format!("{name}() got an unexpected keyword argument '{keyword}'"),
            Reason::FitsNone => format!("{name}() received an invalid combination of arguments"),
            Reason::Missing(parameters) => {
                // PyTorch's message has the plural reversed.
                let plural = if parameters.len() == 1 { "s" } else { "" };
                let names: Vec<String> = parameters.iter().map(|p| format!("\"{p}\"")).collect();
                format!(
                    "{name}() missing {} required positional argument{plural}: {}",
                    names.len(),
                    names.join(", ")
                )
            }
        })
    }
}

impl<'py> Mismatch<'py> {
    /// The error to raise. A signature that stands for several of PyTorch's overloads is explained in detail
    /// only if the number of arguments leaves one of them.
    #[cold]
    pub fn error(self, call: &Call<'_, 'py>) -> PyErr {
        let method = call.receiver.is_some();
        let [row] = self.signatures else {
            let line = |row: &&'static Row| format!(" * {}\n", signature(row, !method));
            let lines: String = self.signatures.iter().map(line).collect();
            return combination(call, &format!("one of:\n{lines}"));
        };
        let error = self.reason.error(call);
        if !error.is_instance_of::<PyTypeError>(call.py) {
            return error;
        }
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
        let signature = signature(row, !method);
        let expected = if overloads.len() > 1 { format!("one of:\n * {signature}\n") } else { signature };
        combination(call, &expected)
    }
}

/// The only signature that takes this many arguments, if there is just one.
#[cold]
pub fn only_plausible(
    signatures: &'static [&'static Row],
    call: &Call<'_, '_>,
) -> Option<&'static &'static Row> {
    let given = call.positional.len() + call.keywords.len();
    let method = usize::from(call.receiver.is_some());
    let could = |row: &&&'static Row| {
        let params = &row.params[method..];
        let out = usize::from(method == 0 && row.forms.has(Forms::OUT));
        let least = params.iter().filter(|p| p.default.is_none()).count();
        (least..=params.len() + out).contains(&given)
    };
    let mut plausible = signatures.iter().filter(could);
    plausible.next().filter(|_| plausible.next().is_none())
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
fn too_many(call: &Call<'_, '_>, least: usize, most: usize) -> PyErr {
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
pub fn wrong_type(
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
    dtype_of(object)?.ok_or_else(|| wrong_type(function, parameter, Kind::DType, position, object))
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
