//! Which Python object stands for a Rust value: the same one while it lives. The value knows its address and does not keep it.
//!
//! Under the interpreter's lock whoever looks is alone. Without that lock (free-threaded Python) another thread may drop
//! the object's last reference meanwhile, so that a bit of the address says that somebody looks or changes it.

use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_void;
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// In place of the address: the object is gone, but left its dictionary or class.
const LEFT: usize = 1;

/// The bit of an address that somebody looks at or changes.
const BUSY: usize = 2;

/// Where the Rust value lies in an object of our classes, found on the first tensor.
pub static VALUE_OFFSET: AtomicUsize = AtomicUsize::new(0);

/// Why no object stands for a value.
#[derive(Clone, Copy, PartialEq)]
pub enum Gone {
    /// There was none, or it left nothing.
    Entirely,
    Leaving,
    Left,
}

impl Gone {
    fn of(known: *mut c_void) -> Gone {
        match known.addr() {
            0 => Gone::Entirely,
            LEFT => Gone::Left,
            _ => Gone::Leaving,
        }
    }
}

/// The object at an address, unless there is none or it is about to go.
///
/// # Safety
/// The address is one of these numbers, or that of an object whose memory nobody frees during the call.
unsafe fn alive<'py>(py: Python<'py>, known: *mut c_void) -> Option<Bound<'py, PyAny>> {
    let object = known.cast::<ffi::PyObject>();
    if known.addr() <= LEFT {
        return None;
    }
    // SAFETY: by contract; what is counted already stays, and becomes ours with one count more.
    unsafe {
        #[cfg(Py_GIL_DISABLED)]
        return (ffi::PyUnstable_TryIncRef(object) == 1).then(|| Bound::from_owned_ptr(py, object));
        #[cfg(not(Py_GIL_DISABLED))]
        return (ffi::Py_REFCNT(object) > 0).then(|| Bound::from_borrowed_ptr(py, object));
    }
}

/// Calls `change` with the address while no other thread sees it; stores what that returns.
#[inline]
fn exclusive<T>(place: &AtomicPtr<c_void>, change: impl FnOnce(*mut c_void) -> (*mut c_void, T)) -> T {
    #[cfg(Py_GIL_DISABLED)]
    let known = {
        loop {
            let seen = place.load(Ordering::Relaxed);
            let busy = seen.map_addr(|address| address | BUSY);
            if seen != busy
                && place.compare_exchange_weak(seen, busy, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                break seen;
            }
            std::hint::spin_loop();
        }
    };
    #[cfg(not(Py_GIL_DISABLED))]
    let known = place.load(Ordering::Acquire);
    let (next, outcome) = change(known);
    place.store(next, Ordering::Release);
    outcome
}

/// The living object, or why there is none.
#[inline]
pub fn find<'py>(py: Python<'py>, place: &AtomicPtr<c_void>) -> Result<Bound<'py, PyAny>, Gone> {
    let known = place.load(Ordering::Acquire);
    if known.is_null() {
        return Err(Gone::Entirely);
    }
    #[cfg(Py_GIL_DISABLED)]
    // SAFETY: `forget` waits for us before it lets the object's memory go.
    let (known, found) = exclusive(place, |known| (known, (known, unsafe { alive(py, known) })));
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: `forget` comes before the object's memory goes, and we hold the interpreter.
    let found = unsafe { alive(py, known) };
    found.ok_or_else(|| Gone::of(known))
}

/// Whether the object at this address stands for the value, alive or about to go.
pub fn stands(place: &AtomicPtr<c_void>, own: *mut c_void) -> bool {
    place.load(Ordering::Acquire).map_addr(|address| address & !BUSY) == own
}

/// Makes an object known; the one that stands for its value from now on, which is another if a thread was faster.
#[inline]
pub fn register<'py, T>(
    object: Bound<'py, T>,
    place: impl for<'a> Fn(&'a Bound<'py, T>) -> &'a AtomicPtr<c_void>,
) -> Bound<'py, PyAny> {
    #[cfg(Py_GIL_DISABLED)]
    {
        // SAFETY: a living object.
        unsafe { ffi::PyUnstable_EnableTryIncRef(object.as_ptr()) };
        // SAFETY: as in `find`.
        let other = exclusive(place(&object), |known| match unsafe { alive(object.py(), known) } {
            Some(other) => (known, Some(other)),
            None => (object.as_ptr().cast(), None),
        });
        if let Some(other) = other {
            return other;
        }
    }
    #[cfg(not(Py_GIL_DISABLED))]
    place(&object).store(object.as_ptr().cast(), Ordering::Release);
    object.into_any()
}

/// Forgets an object that is about to go, unless another stands for the value by now.
#[inline]
pub fn forget(place: &AtomicPtr<c_void>, own: *mut c_void, left: bool) {
    let mark = without_provenance_mut(if left { LEFT } else { 0 });
    exclusive(place, |known| (if known == own { mark } else { known }, ()));
}
