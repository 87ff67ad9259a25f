//! Writing in place: who may be written, what is counted, and whose history changes. Every write goes through [`Write`].

use crate::base::{Error, Guidance, Result};
use crate::storage::UNTRACKED;
use crate::tensor::{Body, Edge, Tensor, anomaly, mode, saved_hooks};

/// One write in place, from its beginning, which may be refused, to its end, which gives the target its new history.
pub struct Write<'a>(&'a Tensor);

impl<'a> Write<'a> {
    /// Refuses what [`check_inplace`] refuses.
    #[inline]
    pub fn begin(target: &'a Tensor, recording: bool) -> Result<Write<'a>> {
        check_inplace(target, recording)?;
        Ok(Write(target))
    }

    /// Lets `values` fill `body`, which is the target's, and counts that. What nodes saved of the old values their hooks
    /// get before.
    #[inline]
    pub fn put(&self, body: &Body, values: impl FnOnce(&Body) -> Result<()>) -> Result<()> {
        saved_hooks::pack_inputs()?;
        values(body)?;
        body.storage.bump();
        Ok(())
    }

    /// Gives the target the history `edge`: none when nothing was recorded.
    #[inline]
    pub fn end(self, edge: Option<Edge>) -> Result<()> {
        finish_inplace(self.0, edge)
    }
}

/// Refuses an in-place write that the graph could not describe. `recording` tells whether any operand wants gradients.
pub fn check_inplace(target: &Tensor, recording: bool) -> Result<()> {
    saved_hooks::before_write(target)?;
    anomaly::wrote(&target.body().storage);
    if !recording || !mode::grad_enabled() {
        return Ok(());
    }
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
pub fn check_counted(target: &Tensor) -> Result<()> {
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

fn finish_inplace(target: &Tensor, edge: Option<Edge>) -> Result<()> {
    check_counted(target)?;
    let Some(edge) = edge else { return Ok(()) };
    match target.as_view() {
        Some(view) => {
            view.rewrite_base(target, edge);
            // Renewed now: what is done to the base unrecorded afterwards does not reach it.
            target.history();
        }
        None => target.set_history(Some(edge)),
    }
    Ok(())
}
