//! While an operator runs without the interpreter's lock, another thread may give its operands other memory (`x.data = y`,
//! `resize_`). The operator goes on with the memory that it saw first, which stays valid and keeps its size.

use crate::tensor::{Body, BodyRef, Replacement, Tensor, WeakTensor};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often any tensor was given other memory.
static CHANGES: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static RUN: RefCell<Option<Run>> = const { RefCell::new(None) };
}

struct Run {
    /// What [`CHANGES`] was when it began.
    since: u64,
    /// What was seen of tensors that are not what they were made as; nothing stands for that.
    seen: SmallVec<[(WeakTensor, Option<Arc<Body>>); 4]>,
}

/// Ends a run, also when it panics.
struct End(Option<Run>);

impl Drop for End {
    fn drop(&mut self) {
        let outer = self.0.take();
        let ended = RUN.with(|run| std::mem::replace(&mut *run.borrow_mut(), outer));
        // Outside of the borrow: bodies may be freed here.
        drop(ended);
    }
}

/// Runs an operator, for which no tensor changes but those that it changes itself.
pub fn with_snapshot<T>(run: impl FnOnce() -> T) -> T {
    let begun = Run { since: CHANGES.load(Ordering::Acquire), seen: SmallVec::new() };
    let _end = End(RUN.replace(Some(begun)));
    run()
}

/// Counts a change. The tensor is already marked as changed: an operator that begins later looks at that mark.
pub(super) fn changed() -> u64 {
    CHANGES.fetch_add(1, Ordering::AcqRel) + 1
}

impl Tensor {
    /// What this tensor shows, which may have changed.
    pub(super) fn replaced_body(&self, replaced: &Replacement) -> BodyRef<'_> {
        let Some(now) = &replaced.body else { return BodyRef::Original(&self.0.body) };
        let shown = RUN.with(|run| {
            let mut run = run.borrow_mut();
            let run = run.as_mut()?;
            if let Some((_, seen)) = run.seen.iter().find(|(known, _)| known.is(self)) {
                return Some(seen.clone());
            }
            let seen = if replaced.since > run.since { None } else { Some(now.clone()) };
            run.seen.push((self.downgrade(), seen.clone()));
            Some(seen)
        });
        match shown {
            None => BodyRef::Replaced(now.clone()),
            Some(Some(body)) => BodyRef::Replaced(body),
            Some(None) => BodyRef::Original(&self.0.body),
        }
    }
}

/// Notes that the run itself gave `tensor` this body.
pub(super) fn note(tensor: &Tensor, body: &Arc<Body>) {
    RUN.with(|run| {
        if let Some(run) = &mut *run.borrow_mut() {
            run.seen.retain(|(known, _)| !known.is(tensor));
            run.seen.push((tensor.downgrade(), Some(body.clone())));
        }
    });
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
            // What it changes itself it sees.
            young.show(others[1].body().clone());
            assert_eq!((young.numel(), old.numel()), (6, 4));
        });
        assert_eq!((young.numel(), old.numel()), (6, 6));
        Ok(())
    }
}
