//! Synchronization primitives, from the standard library or, under `cfg(loom)`, from the model checker.

#[cfg(loom)]
pub use loom::{
    cell::Cell,
    sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Mutex, MutexGuard},
    thread::LocalKey,
};
#[cfg(not(loom))]
pub use std::{
    cell::Cell,
    sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Mutex, MutexGuard},
    thread::LocalKey,
};

/// Locks a mutex. A panic leaves these structures consistent, so poisoning is ignored.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
