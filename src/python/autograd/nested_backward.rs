//! Backwards inside of backwards. Beyond some depth the next one runs in another thread, which has a fresh
//! stack and a new recursion count in Python. The waiting thread lends it all its thread-local settings,
//! and checks for Ctrl-C.

use crate::base::Result as CoreResult;
use crate::base::lock;
use crate::python::errors;
use crate::python::transforms::vmap;
use crate::{backward, tensor};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRecursionError, PyRuntimeError};
use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The number of nested backwards in one thread, as in PyTorch.
const MOST: u32 = 60;
/// The total number of nested backwards: a hook that recurses forever ends here.
const MOST_IN_ALL: u32 = 10_000;
const STACK: usize = 16 << 20;
const PATIENCE: Duration = Duration::from_millis(50);

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The number of nested backwards in the threads that wait for this one.
    static OUTSIDE: Cell<u32> = const { Cell::new(0) };
    /// In a thread that continues for another: set if the first thread was interrupted.
    static STOPPED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

type Moved = Box<dyn FnOnce() + Send>;

/// Takes this thread's settings; the returned function restores them in the thread that calls it.
fn hand_over() -> Moved {
    let (tensor, transforms) = (tensor::hand_over(), crate::tensor::levels::func::hand_over());
    let (leaves, rules) = (backward::hand_over(), vmap::hand_over());
    Box::new(move || {
        tensor();
        transforms();
        leaves();
        rules();
    })
}

/// Lets the interpreter handle Ctrl-C.
pub fn poll() -> CoreResult<()> {
    let stopped = STOPPED.with_borrow(|flag| flag.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed)));
    let seen =
        if stopped { Err(PyKeyboardInterrupt::new_err(())) } else { Python::attach(|py| py.check_signals()) };
    seen.map_err(errors::carry)
}

/// Increments this thread's depth until dropped.
struct Deeper(u32);

impl Deeper {
    fn new() -> Deeper {
        Deeper(DEPTH.replace(DEPTH.get() + 1))
    }
}

impl Drop for Deeper {
    fn drop(&mut self) {
        DEPTH.set(self.0);
    }
}

/// Runs a backward without the interpreter, in this thread or, if it is too deep, in a new one.
pub fn run<T: Send>(py: Python<'_>, work: impl FnOnce() -> CoreResult<T> + Send) -> PyResult<T> {
    if DEPTH.get() < MOST { here(py, work) } else { py.detach(|| elsewhere(work)) }
}

#[inline]
fn here<T: Send>(py: Python<'_>, work: impl FnOnce() -> CoreResult<T> + Send) -> PyResult<T> {
    let _deeper = Deeper::new();
    Ok(py.detach(work)?)
}

#[cold]
fn elsewhere<T: Send>(work: impl FnOnce() -> CoreResult<T> + Send) -> PyResult<T> {
    backward::sum_buffers::check()?;
    let outside = OUTSIDE.get() + DEPTH.get();
    if outside >= MOST_IN_ALL {
        let text = "maximum recursion depth exceeded: does a hook start the backward that calls it?";
        return Err(Python::attach(|_| PyRecursionError::new_err(text)));
    }
    // The thread that goes on would capture nothing.
    crate::storage::access::check()?;
    let inherited = STOPPED.with_borrow(Clone::clone);
    let (first, stopped) = (inherited.is_none(), inherited.unwrap_or_default());
    // Outside of the closure, which is lost if no thread can be started.
    let moved = Mutex::new(Some(hand_over()));
    let take = || lock(&moved).take();
    let put = |what| *lock(&moved) = Some(what);
    let (done, over) = sync_channel::<()>(1);
    let flag = stopped.clone();
    let go_on = || {
        STOPPED.set(Some(flag));
        OUTSIDE.set(outside);
        if let Some(modes) = take() {
            modes();
        }
        // The thread stays attached until it ends, so that Python keeps counting its recursion.
        let made =
            catch_unwind(AssertUnwindSafe(|| Python::attach(|py| here(py, || poll().and_then(|()| work())))));
        put(hand_over());
        drop(done);
        made
    };
    let made = thread::scope(|scope| {
        let thread =
            thread::Builder::new().name("backward".into()).stack_size(STACK).spawn_scoped(scope, go_on);
        let thread =
            thread.map_err(|error| PyRuntimeError::new_err(format!("can't start new thread: {error}")))?;
        let mut interrupted = Ok(());
        // Signals reach only the program's first thread: other waiting threads need not check.
        while first && matches!(over.recv_timeout(PATIENCE), Err(RecvTimeoutError::Timeout)) {
            if interrupted.is_ok() && !stopped.load(Ordering::Relaxed) {
                interrupted = Python::attach(|py| py.check_signals());
                stopped.store(interrupted.is_err(), Ordering::Relaxed);
            }
        }
        let made = thread.join().unwrap_or_else(Err);
        interrupted.map(|()| made)
    });
    if let Some(modes) = take() {
        modes();
    }
    made?.unwrap_or_else(|panic| resume_unwind(panic))
}
