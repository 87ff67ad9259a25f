//! While an operator runs without the interpreter's lock, another thread may replace the memory of its
//! operands (`x.data = y`, `resize_`). The operator goes on with the memory that it saw first, which stays
//! valid and keeps its size.

use crate::tensor::{Body, BodyRef, Replacement, Tensor, WeakTensor};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of times that any tensor's body was replaced.
static CHANGES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static RUN: Cell<Option<Run>> = const { Cell::new(None) };
    /// The bodies that this thread's runs have seen, for tensors whose body was replaced; those of the
    /// innermost run are last. `None` stands for the original body.
    static SEEN: RefCell<Vec<(WeakTensor, Option<Arc<Body>>)>> = const { RefCell::new(Vec::new()) };
}

#[derive(Clone, Copy)]
struct Run {
    /// The value of [`CHANGES`] when the run began.
    since: u64,
    /// The range of [`SEEN`] that belongs to the run, up to `end`.
    first: usize,
    end: usize,
}

/// Ends a run, also on a panic.
struct End(Option<Run>);

impl Drop for End {
    #[inline]
    fn drop(&mut self) {
        if let Some(run) = RUN.replace(self.0)
            && run.first < run.end
        {
            forget(run.first);
        }
    }
}

#[cold]
fn forget(first: usize) {
    let ended = SEEN.with_borrow_mut(|seen| seen.split_off(first));
    // Dropped outside the borrow, because bodies may be freed here.
    drop(ended);
}

/// Runs an operator that sees each tensor's body as it was first seen, except for changes of its own.
#[inline]
pub fn with_snapshot<T>(run: impl FnOnce() -> T) -> T {
    let outer = RUN.get();
    let first = outer.map_or(0, |outer| outer.end);
    RUN.set(Some(Run { since: CHANGES.load(Ordering::Acquire), first, end: first }));
    let _end = End(outer);
    run()
}

impl Run {
    /// Remembers the body that the run sees of a tensor.
    fn see(self, tensor: &Tensor, body: Option<Arc<Body>>) {
        SEEN.with_borrow_mut(|seen| seen.push((tensor.downgrade(), body)));
        RUN.set(Some(Run { end: self.end + 1, ..self }));
    }
}

/// Counts a change. The tensor's flag is already set, so that operators that begin later see the new body.
pub(super) fn changed() -> u64 {
    CHANGES.fetch_add(1, Ordering::AcqRel) + 1
}

impl Tensor {
    /// The body that the current run sees of this tensor, which may have been replaced.
    pub(super) fn replaced_body(&self, replaced: &Replacement) -> BodyRef<'_> {
        let Some(now) = &replaced.body else { return BodyRef::Original(&self.0.body) };
        let shown = RUN.get().map(|run| {
            let known = SEEN.with_borrow(|seen| {
                let own = seen.get(run.first..).unwrap_or_default();
                own.iter().find(|(known, _)| known.is(self)).map(|(_, body)| body.clone())
            });
            known.unwrap_or_else(|| {
                let body = if replaced.since > run.since { None } else { Some(now.clone()) };
                run.see(self, body.clone());
                body
            })
        });
        match shown {
            None => BodyRef::Replaced(now.clone()),
            Some(Some(body)) => BodyRef::Replaced(body),
            Some(None) => BodyRef::Original(&self.0.body),
        }
    }
}

/// Records that the run itself gave `tensor` this body.
pub(super) fn note(tensor: &Tensor, body: &Arc<Body>) {
    let Some(run) = RUN.get() else { return };
    let known = SEEN.with_borrow_mut(|seen| {
        let own = seen.get_mut(run.first..).unwrap_or_default();
        let known = own.iter_mut().find(|(known, _)| known.is(tensor))?;
        Some(known.1.replace(body.clone()))
    });
    // The former body is dropped outside the borrow.
    if known.is_none() {
        run.see(tensor, Some(body.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{DType, Device, Result};

    fn vector(n: usize) -> Result<Tensor> {
        Body::new(&[n], DType::F32, Device::Cpu).map(Tensor::new)
    }

    fn in_another_thread(work: impl FnOnce() + Send) {
        std::thread::scope(|scope| {
            let _ = scope.spawn(work).join();
        });
    }

    #[test]
    fn a_run_sees_one_body() -> Result<()> {
        let (young, old) = (vector(3)?, vector(3)?);
        old.show(vector(4)?.body().clone());
        let others = [vector(5)?, vector(6)?];
        with_snapshot(|| {
            assert_eq!((young.numel(), old.numel()), (3, 4));
            in_another_thread(|| {
                young.show(others[0].body().clone());
                old.show(others[1].body().clone());
                assert_eq!((young.numel(), old.numel()), (5, 6));
            });
            assert_eq!((young.numel(), old.numel()), (3, 4));
            with_snapshot(|| assert_eq!((young.numel(), old.numel()), (5, 6)));
            // A run sees its own changes.
            young.show(others[1].body().clone());
            assert_eq!((young.numel(), old.numel()), (6, 4));
        });
        assert_eq!((young.numel(), old.numel()), (6, 6));
        Ok(())
    }
}
