//! Maps a Rust value to its Python object. The value stores the object's address but does not keep the
//! object alive.
//!
//! The interpreter's lock makes a lookup safe. In free-threaded Python another thread may meanwhile drop
//! the object's last reference; there, a bit of the stored address serves as a lock.

use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::c_void;
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Stored instead of an address: the object is freed, but left its dictionary or class.
const LEFT: usize = 1;

/// The bit of the address that is set while a thread reads or changes it.
const BUSY: usize = 2;

/// The offset of the Rust value in a `Tensor` object, measured on the first one.
pub static VALUE_OFFSET: AtomicUsize = AtomicUsize::new(0);

/// The reasons why a value has no object.
#[derive(Clone, Copy, PartialEq)]
pub enum Gone {
    /// There was none, or it left no state.
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

/// Returns the object at an address, unless there is none or it is being freed.
///
/// # Safety
/// The address is null, `LEFT`, or that of an object whose memory is not freed during the call.
unsafe fn alive<'py>(py: Python<'py>, known: *mut c_void) -> Option<Bound<'py, PyAny>> {
    let object = known.cast::<ffi::PyObject>();
    if known.addr() <= LEFT {
        return None;
    }
    // SAFETY: the caller guarantees it; a count above zero cannot drop to zero during the call.
    unsafe {
        #[cfg(Py_GIL_DISABLED)]
        return (ffi::PyUnstable_TryIncRef(object) == 1).then(|| Bound::from_owned_ptr(py, object));
        #[cfg(not(Py_GIL_DISABLED))]
        return (ffi::Py_REFCNT(object) > 0).then(|| Bound::from_borrowed_ptr(py, object));
    }
}

/// Calls `change` with the address while no other thread can read it, and stores the address that it
/// returns.
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

/// Returns the living object, or the reason why there is none.
#[inline]
pub fn find<'py>(py: Python<'py>, place: &AtomicPtr<c_void>) -> Result<Bound<'py, PyAny>, Gone> {
    let known = place.load(Ordering::Acquire);
    if known.is_null() {
        return Err(Gone::Entirely);
    }
    #[cfg(Py_GIL_DISABLED)]
    // SAFETY: `forget` waits for us before the object's memory is freed.
    let (known, found) = exclusive(place, |known| (known, (known, unsafe { alive(py, known) })));
    #[cfg(not(Py_GIL_DISABLED))]
    // SAFETY: `forget` is called before the object's memory is freed, and this thread holds the
    // interpreter's lock.
    let found = unsafe { alive(py, known) };
    found.ok_or_else(|| Gone::of(known))
}

/// Returns true if the object at this address is that of the value, alive or being freed.
pub fn stands(place: &AtomicPtr<c_void>, own: *mut c_void) -> bool {
    place.load(Ordering::Acquire).map_addr(|address| address & !BUSY) == own
}

/// Registers an object as that of its value. If another thread was faster, returns that thread's object.
#[inline]
pub fn register<'py, T>(
    object: Bound<'py, T>,
    place: impl for<'a> Fn(&'a Bound<'py, T>) -> &'a AtomicPtr<c_void>,
) -> Bound<'py, PyAny> {
    #[cfg(Py_GIL_DISABLED)]
    {
        // SAFETY: `object` is alive.
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

/// Unregisters an object that is about to be freed, unless the value has a newer one.
#[inline]
pub fn forget(place: &AtomicPtr<c_void>, own: *mut c_void, left: bool) {
    let mark = without_provenance_mut(if left { LEFT } else { 0 });
    exclusive(place, |known| (if known == own { mark } else { known }, ()));
}
