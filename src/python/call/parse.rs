//! The argument parser of all operators: converts Python's arguments to those of a row.

use crate::base::{MemoryFormat, Scalar, StridedLayout, try_alloc};
use crate::operator::{Arg, Forms, Kind, Param, Row};
use crate::python::call::signature::{Call, spread};
use crate::python::call::signature_errors::{Mismatch, Reason, only_plausible};
use crate::python::generator::PyGenerator;
use crate::python::numbers::{int_from, ints_from, is_list, scalar_from};
use crate::python::objects::text_of;
use crate::python::sequences;
use crate::python::types::{PyDevice, device_from, dtype_of};
use crate::python::wrapper::class::PyTensor;
use crate::tensor::Tensor;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyString};
use smallvec::SmallVec;
use std::cell::Cell;

pub type Args = SmallVec<[Arg; 8]>;

/// Reads an argument according to its parameter's kind.
fn read(kind: Kind, object: &Bound<'_, PyAny>) -> PyResult<Option<Arg>> {
    if object.is_none() {
        return Ok(Some(Arg::None));
    }
    let tensor = || object.cast::<PyTensor>().ok().map(|t| Arg::Tensor(t.get().tensor.clone()));
    let scalar = || scalar_from(object).map(Arg::from);
    Ok(match kind {
        Kind::Tensor => tensor(),
        Kind::Operand => tensor().or_else(scalar),
        Kind::Scalar | Kind::Float => match object.cast::<PyTensor>() {
            Ok(t) if t.get().tensor.ndim() == 0 && !t.get().tensor.requires_grad() => {
                Some(Arg::from(t.get().tensor.item()?))
            }
            Ok(_) => None,
            Err(_) if kind == Kind::Float && object.is_instance_of::<PyInt>() => {
                scalar().or_else(|| object.extract().ok().map(Arg::Float))
            }
            Err(_) => scalar(),
        },
        Kind::Int => int_from(object).map(Arg::Int),
        Kind::Ints | Kind::Sizes => {
            check_length(object)?;
            ints_from(object).map(Arg::Ints).or_else(|| int_from(object).map(Arg::Int))
        }
        Kind::Bool => object.extract::<bool>().ok().map(Arg::Bool),
        Kind::DType => dtype_of(object)?.map(Arg::DType),
        Kind::Device => match object.cast::<PyDevice>() {
            Ok(d) => Some(Arg::Device(d.get().place())),
            Err(_) if object.is_instance_of::<PyString>() || object.is_instance_of::<PyInt>() => {
                Some(Arg::Device(device_from(object)?))
            }
            Err(_) => None,
        },
        Kind::Generator => object.cast::<PyGenerator>().ok().map(|g| Arg::Generator(g.get().0.clone())),
        Kind::Layout => constant_of(object)?.filter(|name| name == StridedLayout::NAME).map(Arg::Str),
        Kind::MemoryFormat => {
            constant_of(object)?.filter(|name| MemoryFormat::parse(name).is_some()).map(Arg::Str)
        }
        Kind::Str => text_of(object)?.map(Arg::Str),
        Kind::Tensors | Kind::Several => tensors_from(object)?.map(Arg::Tensors),
        Kind::MaybeTensors => maybe_tensors_from(object)?.map(Arg::MaybeTensors),
        Kind::Any => return any_from(object),
    })
}

/// Reads the name of one of PyTorch's constants, which are instances of subclasses of `str`.
fn constant_of(object: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if object.is_exact_instance_of::<PyString>() { Ok(None) } else { text_of(object) }
}

/// Applies `read` to all items of a tuple or list; None if it fails for one.
fn list_of<T>(
    object: &Bound<'_, PyAny>,
    read: impl Fn(&Bound<'_, PyAny>) -> Option<T>,
) -> PyResult<Option<Vec<T>>> {
    let unread = Cell::new(false);
    let item = |item: &Bound<'_, PyAny>| {
        read(item).ok_or_else(|| {
            unread.set(true);
            PyTypeError::new_err("another type")
        })
    };
    match sequences::read_items(object, item) {
        Err(_) if unread.get() => Ok(None),
        read => read,
    }
}

fn tensor_from(object: &Bound<'_, PyAny>) -> Option<Tensor> {
    Some(object.cast::<PyTensor>().ok()?.get().tensor.clone())
}

fn tensors_from(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Tensor>>> {
    list_of(object, tensor_from)
}

fn maybe_tensors_from(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Option<Tensor>>>> {
    list_of(object, |item| if item.is_none() { Some(None) } else { tensor_from(item).map(Some) })
}

fn any_from(object: &Bound<'_, PyAny>) -> PyResult<Option<Arg>> {
    if let Ok(t) = object.cast::<PyTensor>() {
        return Ok(Some(Arg::Tensor(t.get().tensor.clone())));
    }
    if let Some(s) = scalar_from(object) {
        return Ok(Some(Arg::from(s)));
    }
    if let Ok(Some(dtype)) = dtype_of(object) {
        return Ok(Some(Arg::DType(dtype)));
    }
    if let Some(text) = text_of(object)? {
        return Ok(Some(Arg::Str(text)));
    }
    check_length(object)?;
    match ints_from(object) {
        Some(ints) => Ok(Some(Arg::Ints(ints))),
        None => Ok(tensors_from(object)?.map(Arg::Tensors)),
    }
}

/// Refuses a list that is too long for the remaining memory.
fn check_length(object: &Bound<'_, PyAny>) -> PyResult<()> {
    if is_list(object) { Ok(try_alloc::check_list(object.len()?)?) } else { Ok(()) }
}

/// Arguments that every function takes in addition to those of its row.
#[derive(Default)]
pub struct Extra<'py> {
    pub out: Option<Bound<'py, PyAny>>,
    pub alpha: Option<Scalar>,
}

/// Returns true if a call's arguments fit this signature: their number, names and types.
pub fn fits(row: &Row, call: &Call<'_, '_>) -> bool {
    let first = usize::from(call.receiver.is_some());
    let params = &row.params[first.min(row.params.len())..];
    let positional = params.iter().position(|p| p.keyword).unwrap_or(params.len());
    let takes = |param: &Param, object: &Bound<'_, PyAny>| {
        if object.is_none() {
            return param.optional || param.default == Some("None") || param.kind == Kind::Any;
        }
        !is_strict(param, object) && is_of_kind(param.kind, object)
    };
    let given = call.positional;
    let reads = |count: usize| params.iter().zip(&given[..count]).all(|(p, object)| takes(p, object));
    let in_places = given.len() <= positional && reads(given.len());
    let fits = in_places || spread_over(row, call).is_some_and(|(at, _)| reads(at - first));
    let named = |param: &Param| call.keywords.iter().any(|(name, _)| known_as(param, name));
    let filled = if in_places { given.len() } else { positional };
    fits && call.keywords.iter().all(|(name, object)| match params.iter().find(|p| known_as(p, name)) {
        Some(param) => takes(param, object),
        None if name == "out" => row.forms.has(Forms::OUT),
        None => name == "alpha" && row.forms.has(Forms::ALPHA),
    }) && params.iter().enumerate().all(|(at, p)| at < filled || p.default.is_some() || named(p))
}

/// Finds the list parameter that collects the remaining arguments, as in `x.view(2, 3)`, and these
/// arguments, if each is an item for it.
fn spread_over<'a, 'py>(row: &Row, call: &Call<'a, 'py>) -> Option<(usize, &'a [Bound<'py, PyAny>])> {
    let at = spread(row, call.receiver.is_none())?;
    let left = call.positional.get(at - usize::from(call.receiver.is_some())..)?;
    let is_item = |object: &Bound<'_, PyAny>| match row.params[at].kind {
        Kind::Several => object.is_instance_of::<PyTensor>(),
        _ => int_from(object).is_some(),
    };
    (!left.is_empty() && left.iter().all(is_item)).then_some((at, left))
}

fn is_of_kind(kind: Kind, object: &Bound<'_, PyAny>) -> bool {
    let tensor = || object.is_instance_of::<PyTensor>();
    match kind {
        Kind::Tensor => tensor(),
        Kind::Operand => tensor() || scalar_from(object).is_some(),
        Kind::Int | Kind::Ints if object.is_exact_instance_of::<PyInt>() => true,
        // A bool is an instance of int, but does not fit an int parameter.
        Kind::Int => !object.is_instance_of::<PyBool>() && int_from(object).is_some(),
        Kind::Ints => {
            !object.is_instance_of::<PyBool>() && (ints_from(object).is_some() || int_from(object).is_some())
        }
        Kind::Bool => object.is_instance_of::<PyBool>(),
        _ => matches!(read(kind, object), Ok(Some(_))),
    }
}

/// Reads a call's arguments into `args`, by the first signature that fits them. If none fits and the number
/// of arguments leaves only one, the mismatch is that signature's.
pub fn parse<'py>(
    signatures: &'static [&'static Row],
    call: &Call<'_, 'py>,
    args: &mut Args,
) -> Result<(&'static Row, Extra<'py>), Mismatch<'py>> {
    let chosen = match signatures {
        [only] => Some(only),
        _ => signatures.iter().find(|row| fits(row, call)).or_else(|| only_plausible(signatures, call)),
    };
    let Some(row) = chosen else { return Err(Mismatch { signatures, reason: Reason::FitsNone }) };
    match read_all(row, call, args) {
        Ok(extra) => Ok((row, extra)),
        Err(reason) => Err(Mismatch { signatures: std::slice::from_ref(row), reason }),
    }
}

fn read_all<'py>(row: &Row, call: &Call<'_, 'py>, args: &mut Args) -> Result<Extra<'py>, Reason<'py>> {
    let params = row.params;
    args.resize_with(params.len(), || Arg::Missing);
    let mut extra = Extra::default();
    let first = usize::from(call.receiver.is_some());
    if let Some(receiver) = call.receiver {
        args[0] = read(params[0].kind, receiver)?
            .ok_or_else(|| Reason::wrong_type(params[0].name, params[0].kind, None, receiver))?;
    }
    let rest = &params[first.min(params.len())..];
    // Keyword-only parameters take no positional argument.
    let rest = &rest[..rest.iter().position(|p| p.keyword).unwrap_or(rest.len())];
    let spread = spread_over(row, call);
    let in_places = &call.positional[..spread.map_or(call.positional.len(), |(at, _)| at - first)];
    if in_places.len() > rest.len() {
        let least = rest.iter().filter(|p| p.default.is_none()).count();
        return Err(Reason::TooMany { least, most: rest.len() });
    }
    for (i, (param, object)) in rest.iter().zip(in_places).enumerate() {
        args[first + i] = accept(param, Some(i + 1), object)?;
    }
    if let Some((at, left)) = spread {
        args[at] = match params[at].kind {
            Kind::Several => Arg::Tensors(try_alloc::all(left.iter().filter_map(tensor_from))?),
            _ => {
                try_alloc::check_list(left.len())?;
                Arg::Ints(left.iter().filter_map(int_from).collect())
            }
        };
    }
    for (name, object) in call.keywords {
        match params.iter().position(|p| known_as(p, name)) {
            Some(at) if !matches!(args[at], Arg::Missing) => return Err(Reason::Repeated(name.clone())),
            Some(at) => args[at] = accept(&params[at], None, object)?,
            None if name == "out" && row.forms.has(Forms::OUT) => {
                let tensors = object.is_instance_of::<PyTensor>() || tensors_from(object)?.is_some();
                if !tensors && !object.is_none() {
                    return Err(Reason::wrong_type("out", Kind::Tensor, None, object));
                }
                extra.out = (!object.is_none()).then(|| object.clone());
            }
            None if name == "alpha" && row.forms.has(Forms::ALPHA) => {
                let alpha = read(Kind::Scalar, object)?.as_ref().and_then(Arg::number);
                extra.alpha =
                    Some(alpha.ok_or_else(|| Reason::wrong_type("alpha", Kind::Scalar, None, object))?);
            }
            None => return Err(Reason::Unexpected(name.clone())),
        }
    }
    let out = call.keywords.iter().any(|(name, _)| name == "out");
    let needed = row.out.with;
    let given = |(param, arg): (&Param, &Arg)| param.name == needed && !matches!(arg, Arg::Missing);
    if out && !needed.is_empty() && !params.iter().zip(&*args).any(given) {
        // Only the overload with `dim`, or with a selected reduction, has `out`.
        return Err(Reason::Unexpected("out".into()));
    }
    let is_absent = |(param, arg): &(&Param, &Arg)| param.default.is_none() && matches!(arg, Arg::Missing);
    let absent: SmallVec<[&'static str; 4]> =
        params.iter().zip(&*args).filter(is_absent).map(|(param, _)| param.name).collect();
    if absent.is_empty() { Ok(extra) } else { Err(Reason::Missing(absent.into_vec())) }
}

/// NumPy's names for common parameters work as well, as in PyTorch.
fn known_as(param: &Param, given: &str) -> bool {
    param.name == given
        || matches!(
            (param.name, given),
            ("dim", "axis")
                | ("keepdim", "keepdims")
                | ("input", "x" | "a" | "x1")
                | ("other", "x2")
                | ("self_", "self")
        )
}

/// Returns true if a parameter refuses an object that others of its kind take: a number for a list, or a
/// tensor with dimensions for a number.
fn is_strict(param: &Param, object: &Bound<'_, PyAny>) -> bool {
    match param.kind {
        Kind::Sizes => !is_list(object),
        Kind::Ints => param.strict && !is_list(object),
        Kind::Int => param.strict && object.cast::<PyTensor>().is_ok_and(|t| t.get().tensor.ndim() > 0),
        _ => false,
    }
}

fn accept<'py>(
    param: &Param,
    position: Option<usize>,
    object: &Bound<'py, PyAny>,
) -> Result<Arg, Reason<'py>> {
    let refuse = || Reason::wrong_type(param.name, param.kind, position, object);
    if is_strict(param, object) && !object.is_none() {
        return Err(refuse());
    }
    match read(param.kind, object)? {
        Some(Arg::None) if !param.optional && param.default != Some("None") && param.kind != Kind::Any => {
            Err(refuse())
        }
        read => read.ok_or_else(refuse),
    }
}
