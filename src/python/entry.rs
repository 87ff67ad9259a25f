//! PyO3 as our `pyfunction` and `pymethods` show it to PyO3's macros: with a guard in every entry. Where Python has no memory
//! left PyO3 panics, also where it turns an error into an exception, and there nobody catches it.

use crate::base::try_alloc;
use crate::python::errors::out_of_memory;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
pub use pyo3::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What PyO3's macros name.
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
        /// The entry in a guard, with as many arguments as its kind has.
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
                    // SAFETY: Python calls PyO3, and PyO3 this, with what the entry takes; the last may name keywords.
                    $crate::python::entry::guarded(|| unsafe {
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

/// The result of an entry, or the exception for a panic in it.
#[inline]
pub fn guarded<T>(entry: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(|| entry().map_err(normalized)))
        .unwrap_or_else(|panic| Err(panic_error(&*panic)))
}

/// Refuses a keyword too long for the memory that is left: PyO3's messages repeat it.
///
/// # Safety
/// `names` is an object: a tuple of names, a dictionary with them as keys, or none of either (`pow`'s third operand).
pub unsafe fn check_names(py: Python<'_>, names: *mut ffi::PyObject) -> PyResult<()> {
    // SAFETY: as the caller promises.
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

/// The error with its exception object made.
#[cold]
fn normalized(error: PyErr) -> PyErr {
    Python::attach(|py| {
        error.restore(py);
        PyErr::fetch(py)
    })
}

#[cold]
fn panic_error(panic: &(dyn Any + Send)) -> PyErr {
    let no_memory = || out_of_memory("DefaultCPUAllocator: can't allocate memory: there is none left");
    if is_for_memory(panic) {
        return no_memory();
    }
    let error =
        || normalized(PyRuntimeError::new_err("an internal check of gradiron failed; please report it"));
    catch_unwind(error).unwrap_or_else(|_| no_memory())
}

/// Whether PyO3 panicked since an object of Python's could not be made: Python had no memory for it.
fn is_for_memory(panic: &(dyn Any + Send)) -> bool {
    let text = panic.downcast_ref::<String>().map(|text| &**text);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default();
    text.starts_with("PyObject pointer is null") || text.starts_with("Converting PyErr arguments failed")
}

/// Panics for memory become errors and say nothing by themselves. Python gets the reserve, to make that error of.
pub fn quiet_panics_for_memory() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if is_for_memory(info.payload()) {
            crate::storage::reserve::spend();
        } else {
            usual(info);
        }
    }));
}
