//! The one protocol of writing in place, which every write follows: it is checked, what nodes save of the old values is kept,
//! the values are written and the write is counted, and the target gets its new history.

use crate::base::{Error, Guidance, Result};
use crate::operator::copy_slices;
use crate::operator::kernel::preserved;
use crate::storage::UNTRACKED;
use crate::tensor::{Body, Edge, Kept, Saved, Tensor, View, anomaly, mode, saved_hooks};

/// One write in place, from [`begin`](Write::begin), which may refuse it, over [`put`](Write::put) to [`end`](Write::end).
pub struct Write<'a>(&'a Tensor);

impl<'a> Write<'a> {
    /// Refuses a write that the graph could not describe. `recording` tells whether any operand wants gradients.
    #[inline]
    pub fn begin(target: &'a Tensor, recording: bool) -> Result<Write<'a>> {
        saved_hooks::before_write(target)?;
        if anomaly::keeps_lines() {
            anomaly::wrote(&target.body().storage);
        }
        if recording && mode::grad_enabled() {
            check_recorded(target)?;
        }
        Ok(Write(target))
    }

    /// Lets `values` fill `body`, the target's, and counts that. `edge` leads to the node that was recorded of the write, if
    /// any: what it saved of the old values is copied before, and what it saved of the new ones is read from the target.
    #[inline]
    pub fn put(
        &self,
        body: &Body,
        edge: Option<&Edge>,
        values: impl FnOnce(&Body) -> Result<()>,
    ) -> Result<()> {
        if let Some(edge) = edge {
            keep_old(edge, body)?;
        }
        saved_hooks::pack_inputs()?;
        values(body)?;
        count_write(body);
        if let Some(edge) = edge {
            keep_new(edge, body);
        }
        Ok(())
    }

    /// Lets `values` fill the targets of several writes, none of them recorded, and counts them.
    pub fn put_all(writes: &[Write], values: impl FnOnce() -> Result<()>) -> Result<()> {
        saved_hooks::pack_inputs()?;
        values()?;
        writes.iter().for_each(|write| count_write(&write.0.body()));
        Ok(())
    }

    /// Refuses a write that cannot be counted, which [`end`](Write::end) refuses, too: asked before anything is written.
    pub fn check_counted(&self) -> Result<()> {
        check_counted(self.0)
    }

    /// Gives the target the history `edge`: none when nothing was recorded. Of a view, its base gets it.
    #[inline]
    pub fn end(self, edge: Option<Edge>) -> Result<()> {
        self.check_counted()?;
        let Some(edge) = edge else { return Ok(()) };
        let Write(target) = self;
        match target.as_view() {
            Some(view) => {
                rewrite_base(view, target, edge);
                // Renewed now: what is done to the base unrecorded afterwards does not reach it.
                target.history();
            }
            None => target.set_history(Some(edge)),
        }
        Ok(())
    }
}

/// Gives the base of `target`, a view that was written, a history with that write in it; `value` leads to what wrote.
fn rewrite_base(view: &View, target: &Tensor, value: Edge) {
    let old = target.last_history();
    let edge = copy_slices::history(&view.base, &target.body(), value, old.as_ref());
    view.base.set_history(Some(edge));
    view.expire();
}

/// Counts a write to the memory of `body`, so that whoever saved the old values refuses to use them.
#[inline]
pub fn count_write(body: &Body) {
    body.storage.bump();
}

/// A derivative that reads what the write is about to replace keeps a copy of it. (Of the target as the target: where it
/// is another operand, too, the write spoils that, and the backward says so.)
fn keep_old(edge: &Edge, target: &Body) -> Result<()> {
    for saved in edge.node.saves().values.iter_mut() {
        if let Kept::Body(body) = &mut saved.kept
            && saved.source == 0
            && body.storage.same(&target.storage)
        {
            *body = preserved(body)?;
            saved.version = 0;
        }
    }
    Ok(())
}

/// A derivative that reads its result finds it in the target as it is now, also where it was made elsewhere and copied there.
fn keep_new(edge: &Edge, target: &Body) {
    for saved in edge.node.saves().values.iter_mut() {
        if let Kept::Body(body) = &mut saved.kept
            && saved.source == Saved::OUTPUT + edge.output
            && body.dtype == target.dtype
            && body.shape() == target.shape()
        {
            if !body.storage.same(&target.storage) {
                *body = target.clone();
            }
            saved.version = target.storage.version();
        }
    }
}

/// Refuses to record a write to a leaf, to a view of one, or to a view whose history cannot follow its base's.
fn check_recorded(target: &Tensor) -> Result<()> {
    if let Some(view) = target.as_view() {
        if !view.is_plain() {
            return Err(view.refusal(target, "is being"));
        }
        if view.base.is_leaf() && target.requires_grad() {
            return Err(refusal(
                target,
                "a view of a leaf Variable that requires grad is being used in an in-place operation.",
            ));
        }
    }
    if target.is_leaf() && target.requires_grad() {
        return Err(refusal(
            target,
            "a leaf Variable that requires grad is being used in an in-place operation.",
        ));
    }
    Ok(())
}

/// A leaf's values are the user's: recording a write to them would leave nothing to differentiate for.
#[cold]
fn refusal(target: &Tensor, message: &str) -> Error {
    let (text, line) = target.describe();
    Guidance::new(message)
        .note("written", text, line)
        .advice("write under no_grad(), as optimizers do, or to a clone()")
        .done()
}

/// Refuses that `target` was written when its writes cannot be counted: outside of inference mode.
#[inline]
fn check_counted(target: &Tensor) -> Result<()> {
    if is_counted(target) { Ok(()) } else { Err(uncounted()) }
}

/// Whether a write to `target` is allowed now; one that is not need not be recorded.
#[inline]
pub fn is_counted(target: &Tensor) -> bool {
    target.version() != UNTRACKED || mode::inference()
}

#[cold]
fn uncounted() -> Error {
    // PyTorch's sentences have no space between them.
    Error::runtime(
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal \
         tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.",
    )
}
