//! `out=`: writes results into tensors of the caller.

use crate::base::{DType, Error, Fault, Result, warn};
use crate::operator::inplace::OutTarget;
use crate::operator::pointwise::Pointwise;
use crate::operator::primitives::copies::to_dtype;
use crate::operator::primitives::views::reshape;
use crate::operator::{Arg, Kind, Out, OutRule, Row};
use crate::python::call::run::{LONG, running};
use crate::python::call::signature_errors::wrong_type;
use crate::python::objects::tuple;
use crate::python::transforms::forward;
use crate::python::types::NAMED;
use crate::python::wrapper::class::PyTensor;
use crate::tensor::{Body, Tensor, any_requires_grad};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// Factories and sums compute in the target's dtype, unless the call gives one.
pub fn prepare(row: &Row, target: &Bound<'_, PyAny>, args: &mut [Arg]) {
    if let (true, Ok(target)) = (row.out.computes, target.cast::<PyTensor>())
        && let Some(at) = row.params.iter().position(|p| p.name == "dtype")
        && matches!(args.get(at), Some(Arg::Missing | Arg::None))
    {
        args[at] = Arg::DType(target.get().tensor.dtype());
    }
}

/// Computes a pointwise row directly into `target` if nothing prevents that; returns true if it did.
pub fn compute_directly(
    py: Python<'_>,
    op: &'static Pointwise,
    args: &[Arg],
    target: &Bound<'_, PyAny>,
) -> bool {
    let Ok(target) = target.cast::<PyTensor>() else { return false };
    let target = &target.get().tensor;
    running(py, target.numel() >= LONG, || crate::operator::inplace::out::compute_into(op, target, args))
}

/// Writes the results of a row into `target`: one tensor, or a tuple with one per result.
pub fn write<'py>(
    py: Python<'py>,
    (row, called): (&Row, &str),
    args: &[Arg],
    made: Out,
    target: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let several = !matches!(made, Out::Tensor(_));
    if !several && target.cast::<PyTensor>().is_err() {
        return Err(wrong_type(called, "out", Kind::Tensor, None, &target));
    }
    let targets: Vec<Bound<'py, PyAny>> = match (target.cast::<PyTuple>(), target.cast::<PyList>()) {
        (Ok(tuple), _) => tuple.iter().collect(),
        (_, Ok(list)) => list.iter().collect(),
        _ => vec![target.clone()],
    };
    let (name, fields, mut results) = match made {
        Out::Tensor(t) => ("", &[][..], vec![t]),
        Out::Tuple(name, fields, ts) => (name, fields, ts),
        Out::List(ts) => ("", &[][..], ts),
        _ => return Err(PyRuntimeError::new_err(format!("{} does not take out=", row.name))),
    };
    let tensors = || args.iter().filter_map(|a| if let Arg::Tensor(t) = a { Some(t) } else { None });
    if let (true, Ok(target)) = (row.elementwise, target.cast::<PyTensor>()) {
        crate::operator::inplace::check_out(&target.get().tensor, &results[0], tensors())?;
    }
    forward::refuse_out(row.name, args, &targets)?;
    let places = targets.iter().map(|object| Ok(object.cast::<PyTensor>()?.get().tensor.clone()));
    let places: Vec<Tensor> = places.collect::<PyResult<_>>()?;
    refuse(row, args, &places)?;
    if targets.len() != results.len() {
        return Err(wrong_type(called, "out", Kind::Tensors, None, &target));
    }
    if let (true, [value], [place]) = (row.out.counted, &mut results[..], &places[..])
        && value.numel() == place.numel()
    {
        *value = reshape(value, &place.shape())?;
    }
    if let (OutRule::Any, [value], [place]) = (row.out.rule, &mut results[..], &places[..]) {
        *value = to_dtype(value, place.dtype())?;
    }
    // All targets are checked before any is written.
    let said = |i: usize| fields.get(i).copied().unwrap_or("result");
    let pairs = places.iter().zip(&results).enumerate();
    let checked = pairs.map(|(i, (place, value))| checked(row, said(i), args, place, value));
    let checked: Vec<OutTarget> = checked.collect::<PyResult<_>>()?;
    check_targets_apart(row, said, &checked)?;
    // If the user turned warnings into errors, the error is raised after all targets are written.
    let warned =
        places.iter().zip(&results).try_for_each(|(place, value)| warn_of_resizing(row, place, value));
    checked.iter().try_for_each(OutTarget::make_room)?;
    for (place, value) in checked.into_iter().zip(&results) {
        // Uninitialized results (`empty(out=…)`) are not copied.
        let values = !row.out.uninitialized || place.target.shape() != value.shape();
        place.write(values)?;
    }
    warned?;
    match NAMED.get(py) {
        Some(make) if !fields.is_empty() => {
            make.bind(py).call1((format!("{name}_out"), PyTuple::new(py, fields)?, tuple(py, targets)?))
        }
        _ => Ok(target),
    }
}

/// Checks that a result may be written to its target, and prepares the write.
fn checked<'a>(
    row: &Row,
    name: &str,
    args: &[Arg],
    target: &'a Tensor,
    value: &'a Tensor,
) -> PyResult<OutTarget<'a>> {
    // The real result of a complex operand (`abs`) may be written to a real target of any dtype, or to a
    // complex target that the operand's dtype can be cast to.
    let of = inputs(args).find(|t| t.dtype().is_complex()).filter(|_| !value.dtype().is_complex());
    match of {
        Some(of) if row.out.rule == OutRule::Found => {
            let (from, to) = (of.dtype(), target.dtype());
            crate::operator::inplace::out::check_dtype(
                row,
                name,
                if to.is_complex() { from } else { to },
                to,
            )?;
        }
        _ => crate::operator::inplace::out::check_dtype(row, name, value.dtype(), target.dtype())?,
    }
    // Vectors without elements overlap nothing.
    let meets = |lies: &Body, t: &Tensor| match t.shape()[..] {
        [0] => Ok(()),
        _ if target.same(t) => crate::operator::bodies::overlap::check_disjoint(target, t),
        _ => crate::operator::bodies::overlap::check_apart(lies, &t.body()),
    };
    let keeps_apart = crate::operator::inplace::out::keeps_apart(row);
    if keeps_apart && !row.out.resizes {
        inputs(args).try_for_each(|t| meets(&target.body(), t))?;
    }
    let place = OutTarget::of(target, value)?;
    if keeps_apart {
        inputs(args).try_for_each(|t| meets(&place.body, t))?;
    }
    place.check()?;
    Ok(place)
}

/// Refuses targets that share memory with each other.
fn check_targets_apart<'a>(row: &Row, name: impl Fn(usize) -> &'a str, places: &[OutTarget]) -> PyResult<()> {
    for (j, second) in places.iter().enumerate() {
        for (i, first) in places[..j].iter().enumerate() {
            if first.target.same(second.target)
                || crate::operator::bodies::overlap::check_apart(&first.body, &second.body).is_err()
            {
                return Err(PyValueError::new_err(format!(
                    "{}(): the `{}` and `{}` out= tensors must not overlap.",
                    row.name,
                    name(i),
                    name(j)
                )));
            }
        }
    }
    Ok(())
}

/// Refuses `out=` if a gradient would have to flow through it.
fn refuse(row: &Row, args: &[Arg], places: &[Tensor]) -> Result<()> {
    let recorded = !row.out.unrecorded && any_requires_grad(inputs(args).chain(places));
    if recorded { Err(Error::runtime(crate::operator::inplace::out::refusal(row))) } else { Ok(()) }
}

/// Chooses the error of a failed call: that `out=` cannot be recorded takes precedence.
#[cold]
pub fn refused(row: &Row, args: &[Arg], target: &Bound<'_, PyAny>, error: Error) -> Error {
    // Except over errors of arguments.
    if matches!(error.fault(), Fault::Type(_)) {
        return error;
    }
    let place = target.cast::<PyTensor>().map(|place| place.get().tensor.clone());
    let place = Vec::from_iter(place);
    let unfit = || match (inputs(args).next(), place.first()) {
        // Products report a missing kernel last.
        (Some(input), Some(place)) if row.out.early && input.dtype() == DType::Bool => {
            crate::operator::inplace::out::check_dtype(row, "result", DType::Bool, place.dtype())
        }
        _ => Ok(()),
    };
    refuse(row, args, &place).and_then(|()| unfit()).err().unwrap_or(error)
}

fn inputs(args: &[Arg]) -> impl Iterator<Item = &Tensor> {
    args.iter().flat_map(|arg| match arg {
        Arg::Tensor(t) => std::slice::from_ref(t),
        Arg::Tensors(list) => list.as_slice(),
        _ => &[],
    })
}

/// Warns if a target with elements must be resized.
fn warn_of_resizing(row: &Row, place: &Tensor, value: &Tensor) -> PyResult<()> {
    let (have, want) = (place.shape(), value.shape());
    if have == want || place.numel() == 0 || row.out.silent {
        return Ok(());
    }
    if row.out.counted {
        let count = value.numel();
        return Ok(warn(&format!(
            "The number of elements in the out tensor of shape {:?} is {} which does not match the computed number of elements \
             {count}. Note that this may occur as a result of rounding error. The out tensor will be resized to a tensor of \
             shape ({count},).",
            have.as_slice(),
            place.numel()
        ))?);
    }
    Ok(warn(&format!(
        "An output with one or more elements was resized since it had shape {:?}, which does not match the required output \
         shape {:?}. This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless they have \
         zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).",
        have.as_slice(),
        want.as_slice()
    ))?)
}
