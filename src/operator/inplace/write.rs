//! The protocol of in-place writes, which every write follows: it is checked, old values that nodes saved are
//! copied, the values are written, the version is counted, and the target gets its new edge.

use crate::base::{Error, Guidance, Result};
use crate::operator::bodies::preserved;
use crate::operator::inplace::copy_slices;
use crate::storage::UNTRACKED;
use crate::tensor::{Body, Edge, Kept, Saved, Tensor, View, anomaly, mode, saved_hooks};

/// One in-place write: [`begin`](Write::begin) may refuse it, [`put`](Write::put) writes, [`end`](Write::end)
/// sets the edge.
pub struct Write<'a>(&'a Tensor);

impl<'a> Write<'a> {
    /// Returns an error for a write that the graph could not represent. `recording` is true if an operand
    /// requires a gradient.
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

    /// Runs `values` to fill `body`, the target's body, and counts the write. If the write was recorded,
    /// `edge` leads to its node: old values that it saved are copied before the write, and its saved output
    /// is set to the new value.
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

    /// Runs `values` to fill the targets of several unrecorded writes, and counts them.
    pub fn put_all(writes: &[Write], values: impl FnOnce() -> Result<()>) -> Result<()> {
        saved_hooks::pack_inputs()?;
        values()?;
        writes.iter().for_each(|write| count_write(&write.0.body()));
        Ok(())
    }

    /// Returns an error for a write that cannot be counted. [`end`](Write::end) checks this, too; this call
    /// does so before anything is written.
    pub fn check_counted(&self) -> Result<()> {
        check_counted(self.0)
    }

    /// Sets the target's edge if the write was recorded. If the target is a view, the edge goes to its base.
    #[inline]
    pub fn end(self, edge: Option<Edge>) -> Result<()> {
        self.check_counted()?;
        let Some(edge) = edge else { return Ok(()) };
        let Write(target) = self;
        match target.as_view() {
            Some(view) => {
                rewrite_base(view, target, edge);
                // Updates the view's edge now, because unrecorded changes of the base that follow must not
                // affect it.
                target.history();
            }
            None => target.set_history(Some(edge)),
        }
        Ok(())
    }
}

/// Gives the base of `target`, a written view, an edge that includes the write; `value` leads to the node
/// that wrote.
fn rewrite_base(view: &View, target: &Tensor, value: Edge) {
    let old = target.last_history();
    let edge = copy_slices::history(&view.base, &target.body(), value, old.as_ref());
    view.base.set_history(Some(edge));
    view.expire();
}

/// Counts a write to the storage of `body`, so that derivatives that saved the old values refuse to use them.
#[inline]
pub fn count_write(body: &Body) {
    body.storage.bump();
}

/// Copies the target's old value if the derivative needs it (source 0). If the target is also another
/// operand, that saved value becomes invalid, and the backward reports it.
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

/// Sets the saved output of the write's node to the target's new value, even if it was computed elsewhere and
/// copied.
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

/// Returns an error for a recorded write to a leaf, to a view of a leaf, or to a view that cannot follow its
/// base in the graph.
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

/// The error for a recorded write to a leaf: its old value, which the gradient is for, would be lost.
#[cold]
fn refusal(target: &Tensor, message: &str) -> Error {
    let (text, line) = target.describe();
    Guidance::new(message)
        .note("written", text, line)
        .advice("write under no_grad(), as optimizers do, or to a clone()")
        .done()
}

/// Returns an error if writes to `target` cannot be counted: an inference tensor outside inference mode.
#[inline]
fn check_counted(target: &Tensor) -> Result<()> {
    if is_counted(target) { Ok(()) } else { Err(uncounted()) }
}

/// True if a write to `target` is allowed now. A write that is not allowed need not be recorded.
#[inline]
pub fn is_counted(target: &Tensor) -> bool {
    target.version() != UNTRACKED || mode::inference()
}

#[cold]
fn uncounted() -> Error {
    // PyTorch's message has no space between these sentences.
    Error::runtime(
        "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal \
         tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details.",
    )
}
