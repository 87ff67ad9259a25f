//! A backward inside a backward, and so on: from some depth on it continues in another thread, whose stack is fresh, and whose
//! recursion Python counts anew. The thread that waits lends it all that it has set, and looks for Ctrl-C.

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

/// How many of them one thread runs inside each other, as in PyTorch.
const MOST: u32 = 60;
/// How many of them run inside each other at all: a hook that goes on for ever ends here.
const MOST_IN_ALL: u32 = 10_000;
const STACK: usize = 16 << 20;
const PATIENCE: Duration = Duration::from_millis(50);

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// How many run in the threads that wait for this one.
    static OUTSIDE: Cell<u32> = const { Cell::new(0) };
    /// In a thread that goes on for another: whether the first of them was interrupted.
    static STOPPED: RefCell<Option<Arc<AtomicBool>>> = const { RefCell::new(None) };
}

type Moved = Box<dyn FnOnce() + Send>;

/// Takes what this thread has set for the thread that calls what is returned.
fn hand_over() -> Moved {
    let (tensor, transforms) = (tensor::hand_over(), crate::transforms::func::hand_over());
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

/// One level deeper in this thread, until dropped.
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

/// Runs a backward without the interpreter, here or where there is room for it.
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
    let inherited = STOPPED.with_borrow(Clone::clone);
    let (first, stopped) = (inherited.is_none(), inherited.unwrap_or_default());
    // Not in the closure, which is lost where no thread can be had.
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
        // The thread keeps one state of Python's, and so one count of its recursion, until it ends.
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
        // Signals reach the program's first thread only: other waiting threads need no check.
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
