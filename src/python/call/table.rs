//! Makes Python's methods and functions from the rows: one entry point for all, and one static stub per
//! callable that passes its number. (400 `#[pymethods]` would cost a megabyte and minutes of compiling.)

use crate::base::{try_alloc, watch};
use crate::operator::pointwise::Pointwise;
use crate::operator::{Arg, Forms, IntArgs, Kind, Operand, Param, Row};
use crate::ops;
use crate::python::call::deprecated_signatures;
use crate::python::call::docs::{self, Style};
use crate::python::call::out;
use crate::python::call::overrides::OverrideCall;
use crate::python::call::parse::{Args, parse};
use crate::python::call::run::{LONG, result, run, run_or, running, stale_or};
use crate::python::call::signature::Call;
use crate::python::call::signature::{merge_params, push_merged};
use crate::python::call::signature_errors::Mismatch;
use crate::python::entry::guard;
use crate::python::errors::out_of_memory;
use crate::python::modes::autocast;
use crate::python::modes::default_device;
use crate::python::modes::profile;
use crate::python::numbers::scalar_from;
use crate::python::objects::text_of;
use crate::python::transforms::func;
use crate::python::types;
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::storage::reserve;
use crate::tensor::mode;
use gradiron_macros::pyfunction;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};
use pyo3::{PyTypeInfo, ffi};
use std::ffi::CStr;
use std::sync::OnceLock;

struct Entry {
    row: &'static Row,
    /// All signatures in the order in which they are tried.
    signatures: &'static [&'static Row],
    pointwise: Option<&'static Pointwise>,
    int_args: Option<IntArgs>,
    style: Style,
    name: &'static str,
    c_name: &'static CStr,
    doc: &'static CStr,
}

type Stub = unsafe extern "C" fn(
    *mut ffi::PyObject,
    *const *mut ffi::PyObject,
    ffi::Py_ssize_t,
    *mut ffi::PyObject,
) -> *mut ffi::PyObject;

static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();

const STUBS: usize = 1280;

seq_macro::seq!(N in 0..1280 {
    static TABLE: [Stub; STUBS] = [#(stub::<N>,)*];
});

unsafe extern "C" fn stub<const N: usize>(
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: Python calls this attached, with valid vectorcall arguments.
    unsafe { enter(N, slf, args, nargs, names) }
}

/// # Safety
/// Called by Python with the vectorcall arguments of a callable of this table.
unsafe fn enter(
    number: usize,
    slf: *mut ffi::PyObject,
    args: *const *mut ffi::PyObject,
    nargs: ffi::Py_ssize_t,
    names: *mut ffi::PyObject,
) -> *mut ffi::PyObject {
    // SAFETY: this thread is attached while Python calls us.
    let py = unsafe { Python::assume_attached() };
    if reserve::is_spent() {
        out_of_memory("DefaultCPUAllocator: can't allocate memory: there is none left").restore(py);
        return std::ptr::null_mut();
    }
    let outcome = guard(|| {
        let entries =
            ENTRIES.get().ok_or_else(|| PyRuntimeError::new_err("the operator table is not ready"))?;
        let entry = &entries[number];
        // SAFETY: Python passes this many pointers, all of them valid during the call.
        unsafe {
            let given = std::slice::from_raw_parts(args.cast::<Bound<'_, PyAny>>(), nargs as usize);
            let receiver = (entry.style != Style::Function)
                .then(|| &*std::ptr::from_ref(&slf).cast::<Bound<'_, PyAny>>());
            let keywords = keywords(py, args.add(nargs as usize), names)?;
            if watch::any() {
                return watched(py, entry, receiver, given, keywords);
            }
            call(py, entry, receiver, given, &keywords)
                .or_else(|error| asked(py, entry, receiver, given, &keywords, |asked| asked.or_taken(error)))
        }
    });
    match outcome {
        Ok(object) => object.into_ptr(),
        Err(error) => {
            error.restore(py);
            std::ptr::null_mut()
        }
    }
}

/// Handles a call while overrides, a default device, autocast or the profiler are active. Overrides come
/// first, as in PyTorch.
#[cold]
fn watched<'py>(
    py: Python<'py>,
    entry: &'static Entry,
    receiver: Option<&Bound<'py, PyAny>>,
    given: &[Bound<'py, PyAny>],
    mut keywords: Vec<(String, Bound<'py, PyAny>)>,
) -> PyResult<Bound<'py, PyAny>> {
    if watch::has(watch::OVERRIDES)
        && let Some(taken) = asked(py, entry, receiver, given, &keywords, |asked| asked.taken())
    {
        return taken;
    }
    if let Some(device) = default_device::chosen()
        && is_factory(entry, given)
    {
        keywords.retain(|(name, value)| name != "device" || !value.is_none());
        if keywords.iter().all(|(name, _)| name != "device") {
            let device = types::device_object(py, device)?.into_bound(py).into_any();
            keywords.push(("device".into(), device));
        }
    }
    let mut all: Vec<Bound<'py, PyAny>> = receiver.into_iter().chain(given).cloned().collect();
    let written =
        entry.style == Style::Inplace || keywords.iter().any(|(name, out)| name == "out" && !out.is_none());
    if watch::has(watch::CASTS) && !written {
        let values: Vec<_> = all.iter().chain(keywords.iter().map(|(_, value)| value)).collect();
        if let Some(mut made) = autocast::converted(entry.row.autocast, &values)? {
            let named = made.split_off(all.len());
            all = made;
            keywords.iter_mut().zip(named).for_each(|(keyword, value)| keyword.1 = value);
        }
    }
    let (receiver, given) = match receiver {
        Some(_) => (all.first(), all.get(1..).unwrap_or_default()),
        None => (None, &all[..]),
    };
    let arguments = all.iter().chain(keywords.iter().map(|(_, value)| value));
    let _span = profile::call(entry.row, entry.style == Style::Inplace, arguments);
    call(py, entry, receiver, given, &keywords)
        .or_else(|error| asked(py, entry, receiver, given, &keywords, |asked| asked.or_taken(error)))
}

/// Returns true if a function creates a tensor on a device that no operand determines.
fn is_factory(entry: &Entry, given: &[Bound<'_, PyAny>]) -> bool {
    let tensors = [Kind::Tensor, Kind::Tensors, Kind::Several, Kind::MaybeTensors];
    entry.style == Style::Function
        && !given.iter().any(|object| object.is_instance_of::<PyTensor>())
        && entry.row.params.iter().any(|p| p.name == "device" && p.kind == Kind::Device)
        && !entry.row.params.iter().any(|p| tensors.contains(&p.kind) && p.default.is_none())
}

/// Offers a call to overrides.
#[cold]
fn asked<'py, R>(
    py: Python<'py>,
    entry: &Entry,
    receiver: Option<&Bound<'py, PyAny>>,
    given: &[Bound<'py, PyAny>],
    keywords: &[(String, Bound<'py, PyAny>)],
    then: impl FnOnce(&OverrideCall<'_, 'py>) -> R,
) -> R {
    let function = || {
        if entry.style != Style::Function {
            return PyTensor::type_object(py).getattr(entry.name);
        }
        let core = py.import(intern!(py, "gradiron._core"))?;
        match entry.row.forms.has(Forms::NN) {
            true => core.getattr("_nn")?.getattr(entry.name),
            false => core.getattr(entry.name),
        }
    };
    then(&OverrideCall { py, function: &function, receiver, given, keywords })
}

/// Returns the names of the tensor methods that are operators.
#[pyfunction]
pub fn method_names() -> Vec<&'static str> {
    let entries = ENTRIES.get().map_or(&[][..], |entries| &entries[..]);
    entries.iter().filter(|entry| entry.style != Style::Function).map(|entry| entry.name).collect()
}

/// Reads the keyword arguments, which follow the positional ones.
///
/// # Safety
/// `values` and `names` follow Python's vectorcall protocol.
unsafe fn keywords<'py>(
    py: Python<'py>,
    values: *const *mut ffi::PyObject,
    names: *mut ffi::PyObject,
) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    if names.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: Python passes a tuple of strings, and one value for each.
    unsafe {
        let names = Bound::from_borrowed_ptr(py, names).cast_into_unchecked::<PyTuple>();
        let pair = |(i, name): (usize, Bound<'py, PyAny>)| -> PyResult<_> {
            let name = text_of(&name)?.ok_or_else(|| PyTypeError::new_err("keywords must be strings"))?;
            Ok((name, Bound::from_borrowed_ptr(py, *values.add(i))))
        };
        names.iter().enumerate().map(pair).collect()
    }
}

fn call<'py>(
    py: Python<'py>,
    entry: &'static Entry,
    receiver: Option<&Bound<'py, PyAny>>,
    given: &[Bound<'py, PyAny>],
    keywords: &[(String, Bound<'py, PyAny>)],
) -> PyResult<Bound<'py, PyAny>> {
    if let (Some(op), true) = (entry.pointwise, keywords.is_empty() && given.len() <= 64)
        && let Some(done) = fast_call(py, entry, op, receiver, given)
    {
        return done;
    }
    if let (Some(int_args), Some(receiver), true) = (entry.int_args, receiver, keywords.is_empty())
        && let Some(done) = call_with_ints(py, entry.row, int_args, receiver, given)
    {
        return done;
    }
    try_alloc::check_list(given.len())?;
    let mut args = Args::new();
    let call = Call { py, name: entry.name, receiver, positional: given, keywords };
    let (own, extra) = match parse(entry.signatures, &call, &mut args) {
        Ok(read) => read,
        Err(mismatch) => return retry_deprecated(py, entry, &call, mismatch),
    };
    let mut row = own;
    if let Some(alpha) = extra.alpha {
        check_alpha(&args, alpha)?;
        if let (Some(scaled), false) = (row.scaled, alpha.is_one()) {
            row = scaled(&mut args, alpha)?.unwrap_or(row);
        }
    }
    match entry.style {
        Style::Inplace => {
            inplace(py, row, &args)?;
            receiver.cloned().ok_or_else(|| PyRuntimeError::new_err("an in-place method without a tensor"))
        }
        _ => {
            if let Some(target) = extra.out {
                let same = std::ptr::eq(row, own);
                if same && entry.pointwise.is_some_and(|op| out::compute_directly(py, op, &args, &target)) {
                    return Ok(target);
                }
                out::prepare(own, &target, &mut args);
                let refused = |error, row: &Row, given: &[Arg]| {
                    out::refused(own, &args, &target, stale_or(error, row, given))
                };
                // Writes to `out=` are neither recorded nor reported to hooks.
                let unrecorded = |args: &[Arg]| mode::with_grad(false, || (row.call)(args));
                let made = run_or(py, row, &args, &refused, unrecorded)?;
                return out::write(py, (own, entry.name), &args, made, target);
            }
            result(py, run(py, row, &args, row.call)?)
        }
    }
}

/// Retries a call that fits no signature with the deprecated ones.
#[cold]
fn retry_deprecated<'py>(
    py: Python<'py>,
    entry: &'static Entry,
    old: &Call<'_, 'py>,
    mismatch: Mismatch<'py>,
) -> PyResult<Bound<'py, PyAny>> {
    match deprecated_signatures::reorder(entry.row, old)? {
        Some(new) => call(py, entry, old.receiver, &new.positional, &new.keywords),
        None => Err(mismatch.error(old)),
    }
}

/// Returns true if a method also takes its ints in a tuple.
fn takes_a_list(row: &Row) -> bool {
    matches!(row.params, [_, Param { kind: Kind::Ints | Kind::Sizes, .. }])
}

/// Calls a method whose arguments are all ints.
fn call_with_ints<'py>(
    py: Python<'py>,
    row: &Row,
    int_args: IntArgs,
    receiver: &Bound<'py, PyAny>,
    given: &[Bound<'py, PyAny>],
) -> Option<PyResult<Bound<'py, PyAny>>> {
    let tensor = &receiver.cast::<PyTensor>().ok()?.get().tensor;
    let mut ints = crate::operator::Ints::new();
    let mut read = |object: &Bound<'py, PyAny>| {
        ints.push(object.is_exact_instance_of::<PyInt>().then(|| object.extract().ok()).flatten()?);
        Some(())
    };
    match given {
        _ if given.len() > 64 => return None,
        [list] if list.is_instance_of::<PyTuple>() && takes_a_list(row) => {
            list.cast::<PyTuple>()
                .ok()
                .filter(|list| list.len() <= 64)?
                .iter()
                .try_for_each(|object| read(&object))?;
        }
        _ => given.iter().try_for_each(read)?,
    }
    let refused = |error| PyErr::from(stale_or(error, row, &[Arg::Tensor(tensor.clone())]));
    Some(int_args(tensor, &ints)?.map_err(refused).and_then(|t| wrap(py, t)))
}

fn check_alpha(args: &[Arg], alpha: crate::base::Scalar) -> PyResult<()> {
    use crate::base::Scalar;
    let dtypes: Vec<_> =
        args.iter().filter_map(|a| if let Arg::Tensor(t) = a { Some(t.dtype()) } else { None }).collect();
    let number = args.iter().any(|a| matches!(a, Arg::Float(_)));
    if matches!(alpha, Scalar::Float(_)) && !number && !dtypes.iter().any(|d| d.is_differentiable()) {
        return Err(PyRuntimeError::new_err(
            "For integral input tensors, argument alpha must not be a floating point number.",
        ));
    }
    if matches!(alpha, Scalar::Complex(..)) && !dtypes.iter().any(|d| d.is_complex()) {
        return Err(PyRuntimeError::new_err(
            "For non-complex input tensors, argument alpha must not be a complex number.",
        ));
    }
    if matches!(alpha, Scalar::Bool(_)) && dtypes.iter().any(|&d| d != crate::base::DType::Bool) {
        return Err(PyRuntimeError::new_err("Boolean alpha only supported for Boolean results."));
    }
    Ok(())
}

fn inplace(py: Python<'_>, row: &'static Row, args: &[Arg]) -> PyResult<()> {
    crate::tensor::saved_hooks::after(|| write(py, row, args))
}

fn write(py: Python<'_>, row: &'static Row, args: &[Arg]) -> PyResult<()> {
    func::check_arguments(row, args)?;
    // The order of errors: of the operands, then that the view may not be written, then that it is stale.
    let blame = |error, row: &Row, args: &[Arg]| stale_or(error, row, args.get(1..).unwrap_or_default());
    if let Some(own) = row.call_inplace {
        return run_or(py, row, args, &blame, own).map(drop);
    }
    run_or(py, row, args, &blame, |args| crate::operator::inplace::row::apply(row, args))
}

/// Calls a pointwise operator with plain positional operands, without the parser and without copies.
fn fast_call<'py>(
    py: Python<'py>,
    entry: &Entry,
    op: &'static Pointwise,
    receiver: Option<&Bound<'py, PyAny>>,
    given: &[Bound<'py, PyAny>],
) -> Option<PyResult<Bound<'py, PyAny>>> {
    let mut operands: smallvec::SmallVec<[Operand; 4]> = smallvec::SmallVec::new();
    let mut any_tensor = false;
    for object in receiver.into_iter().chain(given) {
        operands.push(match object.cast::<PyTensor>() {
            Ok(t) => {
                any_tensor = true;
                Operand::Tensor(&t.get().tensor)
            }
            Err(_) if op.row.params.get(operands.len())?.kind != Kind::Operand => return None,
            Err(_) => Operand::Scalar(scalar_from(object)?),
        });
    }
    if operands.len() != op.inputs || op.row.params.len() != op.inputs || !any_tensor {
        return None;
    }
    let long = operands.iter().any(|o| matches!(o, Operand::Tensor(t) if t.numel() >= LONG));
    if entry.style == Style::Inplace {
        let Operand::Tensor(target) = operands[0] else { return None };
        if let Err(refused) = func::check_operands(op, &operands) {
            return Some(Err(refused.into()));
        }
        let write = || crate::operator::pointwise::apply_inplace(op, target, &operands);
        let done = running(py, long, write);
        return done.map_err(PyErr::from).map(|()| receiver.cloned()).transpose();
    }
    let compute = || crate::operator::pointwise::apply(op, &operands);
    let made = running(py, long, compute);
    Some(made.map_err(PyErr::from).and_then(|t| wrap(py, t)))
}

/// Adds the rows' methods to the tensor class, and their functions to the module.
pub fn install(py: Python<'_>, module: &Bound<'_, PyModule>) -> PyResult<()> {
    let entries = ENTRIES.get_or_init(collect);
    if entries.len() > STUBS {
        return Err(PyRuntimeError::new_err("more operators than stubs"));
    }
    let class = PyTensor::type_object(py);
    // Messages show `__name__`: `Tensor`, without its module.
    class.setattr("__name__", "Tensor")?;
    let nn = PyModule::new(py, "_nn")?;
    for (number, entry) in entries.iter().enumerate() {
        let def = Box::leak(Box::new(ffi::PyMethodDef {
            ml_name: entry.c_name.as_ptr(),
            ml_meth: ffi::PyMethodDefPointer { PyCFunctionFastWithKeywords: TABLE[number] },
            ml_flags: ffi::METH_FASTCALL | ffi::METH_KEYWORDS,
            ml_doc: entry.doc.as_ptr(),
        }));
        // SAFETY: the definition is leaked, so lives forever; the type and the module are alive.
        let made = unsafe {
            match entry.style {
                Style::Function => Bound::from_owned_ptr_or_err(
                    py,
                    ffi::PyCFunction_NewEx(def, std::ptr::null_mut(), std::ptr::null_mut()),
                )?,
                _ => Bound::from_owned_ptr_or_err(py, ffi::PyDescr_NewMethod(class.as_ptr().cast(), def))?,
            }
        };
        match entry.style {
            Style::Function if entry.row.forms.has(Forms::NN) => nn.setattr(entry.name, made)?,
            // Functions of a namespace (`linalg`, …) are hidden here; their Python modules export them.
            Style::Function if !entry.row.space.is_empty() => module.setattr(entry.name, made)?,
            Style::Function => module.add(entry.name, made)?,
            _ => class.setattr(entry.name, made)?,
        }
    }
    module.setattr("_nn", nn)
}

fn collect() -> Vec<Entry> {
    let pointwise: std::collections::HashMap<*const Row, &'static Pointwise> =
        ops::pointwise_rows().map(|p| (std::ptr::from_ref(&p.row), p)).collect();
    // The texts lie one after the other, each with a zero at its end: so loading them takes no time.
    let mut texts = String::with_capacity(1 << 19);
    let mut places = Vec::with_capacity(STUBS);
    let mut entries = Vec::with_capacity(STUBS);
    let others: Vec<&'static Row> = ops::rows().filter(|row| row.overloads.is_some()).collect();
    let mut named = std::collections::HashMap::<&str, Vec<&'static Row>>::new();
    for row in ops::rows().filter(|row| row.forms.0 != 0) {
        named.entry(row.name).or_default().push(row);
    }
    for row in ops::rows().filter(|row| row.overloads.is_none()) {
        let more =
            others.iter().copied().filter(|other| other.overloads.is_some_and(|of| std::ptr::eq(of, row)));
        let mut signatures: Vec<&'static Row> = std::iter::once(row).chain(more).collect();
        // They are tried in the order of the source.
        signatures.sort_by_key(|row| row.at);
        let signatures: &'static [&'static Row] = Box::leak(signatures.into_boxed_slice());
        let params = merge_params(signatures);
        let forms = Forms(signatures.iter().fold(0, |forms, row| forms | row.forms.0));
        // Docstrings take entries of other signatures and forms, and of the view whose copy it is.
        let alike = [Some(row.name), row.name.strip_suffix("_copy")];
        let others = alike.into_iter().flatten().filter_map(|name| named.get(name)).flatten();
        let row_docs = docs::collect(row, signatures.iter().chain(others).copied());
        let mut add = |style: Style, name: &'static str| {
            let end = if style == Style::Inplace { "_" } else { "" };
            let from = texts.len();
            texts.extend([name, end, "\0"]);
            places.push([from, texts.len()]);
            texts.extend([name, end]);
            push_merged(&mut texts, signatures, &params, forms, style == Style::Function);
            texts.push_str("\n--\n\n");
            docs::docstring(&mut texts, name, style, row, &params, forms, &row_docs);
            texts.push('\0');
            entries.push(Entry {
                row,
                signatures,
                pointwise: pointwise.get(&std::ptr::from_ref(row)).copied(),
                int_args: row.int_args.filter(|_| style == Style::Method),
                style,
                c_name: c"",
                doc: c"",
                name,
            });
        };
        for name in std::iter::once(row.name).chain(row.aliases.iter().copied()) {
            if row.forms.has(Forms::FUNCTION) || row.forms.has(Forms::NN) {
                add(Style::Function, name);
            }
            if row.forms.has(Forms::METHOD) {
                add(Style::Method, name);
            }
            if row.forms.has(Forms::INPLACE) {
                add(Style::Inplace, name);
            }
        }
    }
    let texts: &'static str = texts.leak();
    let text = |from: usize| CStr::from_bytes_until_nul(&texts.as_bytes()[from..]).unwrap_or_default();
    for (entry, [name, doc]) in entries.iter_mut().zip(places) {
        (entry.c_name, entry.doc) = (text(name), text(doc));
        entry.name = entry.c_name.to_str().unwrap_or_default();
    }
    entries
}
