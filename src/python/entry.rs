//! Wraps PyO3 for our `pyfunction` and `pymethods` macros: each entry point runs inside a guard that
//! catches panics. PyO3 panics when Python has no memory left, even while it turns an error into an
//! exception, where nothing else would catch the panic.

use crate::base::try_alloc;
use crate::python::errors::out_of_memory;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
pub use pyo3::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The paths that PyO3's macros expand to.
pub mod impl_ {
    pub use pyo3::impl_::*;

    pub mod trampoline {
        macro_rules! get_trampoline_function {
            ($kind:ident, $entry:path) => {{
                struct Def;
                impl pyo3::impl_::trampoline::MethodDef<pyo3::impl_::trampoline::$kind::Func> for Def {
                    const METH: pyo3::impl_::trampoline::$kind::Func =
                        $crate::python::entry::impl_::trampoline::with_guard!($kind, $entry);
                }
                pyo3::impl_::trampoline::$kind::<Def>
            }};
        }
        /// Wraps an entry point in `guard`, with the arguments of its calling convention.
        macro_rules! with_guard {
            (fastcall_kw, $entry:path) => { $crate::python::entry::impl_::trampoline::with_guard!([a b c] [names] $entry) };
            (cfunc_kw, $entry:path) => { $crate::python::entry::impl_::trampoline::with_guard!([a b] [names] $entry) };
            (newfunc, $entry:path) => { $crate::python::entry::impl_::trampoline::with_guard!([a b] [names] $entry) };
            (initproc, $entry:path) => { $crate::python::entry::impl_::trampoline::with_guard!([a b] [names] $entry) };
            (ternaryfunc, $entry:path) => { $crate::python::entry::impl_::trampoline::with_guard!([a b] [names] $entry) };
            (richcmpfunc, $entry:path) => { $crate::python::entry::impl_::trampoline::with_guard!([a b c] [] $entry) };
            (binaryfunc, $entry:path) => { $crate::python::entry::impl_::trampoline::with_guard!([a b] [] $entry) };
            ($one:ident, $entry:path) => { $crate::python::entry::impl_::trampoline::with_guard!([a] [] $entry) };
            ([$($argument:ident)*] [$($names:ident)?] $entry:path) => {
                |py, $($argument,)* $($names)?| {
                    // SAFETY: Python calls PyO3 with valid arguments for this entry, and PyO3 passes them
                    // on; the last may be keyword names.
                    $crate::python::entry::guard(|| unsafe {
                        $(if !$names.is_null() { $crate::python::entry::check_names(py, $names)?; })?
                        $entry(py, $($argument,)* $($names)?)
                    })
                }
            };
        }
        pub(crate) use get_trampoline_function;
        pub(crate) use with_guard;
    }
}

/// Runs an entry point; a panic becomes an exception.
#[inline]
pub fn guard<T>(entry: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(|| entry().map_err(normalize)))
        .unwrap_or_else(|panic| Err(panic_error(&*panic)))
}

/// Refuses a keyword that is too long for the remaining memory: PyO3 repeats keywords in its messages.
///
/// # Safety
/// `names` is a valid object: a tuple of names, a dictionary with names as keys, or neither (`pow`'s third
/// operand).
pub unsafe fn check_names(py: Python<'_>, names: *mut ffi::PyObject) -> PyResult<()> {
    // SAFETY: the caller guarantees it.
    let names = unsafe { Bound::from_borrowed_ptr(py, names) };
    if let Ok(names) = names.cast::<PyTuple>() {
        names.iter_borrowed().try_for_each(|name| check_name(&name))
    } else if let Ok(names) = names.cast::<PyDict>() {
        names.iter().try_for_each(|(name, _)| check_name(&name))
    } else {
        Ok(())
    }
}

fn check_name(name: &Bound<'_, PyAny>) -> PyResult<()> {
    let length = name.cast::<PyString>().map_or(Ok(0), |name| name.len())?;
    Ok(try_alloc::check_text(length)?)
}

/// Creates the exception object now, inside the guard, rather than lazily.
#[cold]
fn normalize(error: PyErr) -> PyErr {
    Python::attach(|py| {
        error.restore(py);
        PyErr::fetch(py)
    })
}

#[cold]
fn panic_error(panic: &(dyn Any + Send)) -> PyErr {
    let no_memory = || out_of_memory("DefaultCPUAllocator: can't allocate memory: there is none left");
    if is_out_of_memory(panic) {
        return no_memory();
    }
    let error =
        || normalize(PyRuntimeError::new_err("an internal check of gradiron failed; please report it"));
    catch_unwind(error).unwrap_or_else(|_| no_memory())
}

/// Returns true if PyO3 panicked because Python had no memory for an object.
fn is_out_of_memory(panic: &(dyn Any + Send)) -> bool {
    let text = panic.downcast_ref::<String>().map(|text| &**text);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
    text.starts_with("PyObject pointer is null") || text.starts_with("Converting PyErr arguments failed")
}

/// Silences panics for missing memory, which become errors. The reserve is freed so that Python can make
/// the exception.
pub fn silence_memory_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if is_out_of_memory(info.payload()) {
            crate::storage::reserve::spend();
        } else {
            usual(info);
        }
    }));
}
