//! The rules of writing in place: who may be written, and whose history changes.

use super::{Edge, Tensor, Viewing, mode};
use crate::base::{Error, Result};

/// Refuses an in-place write that the graph could not describe. `recording` tells whether any operand wants gradients.
pub fn check_inplace(target: &Tensor, recording: bool) -> Result<()> {
    let orphan = target.as_view().is_some_and(|v| v.made == Viewing::NoGrad && v.base.requires_grad());
    if !(recording || orphan) || !mode::grad_enabled() {
        return Ok(());
    }
    if let Some(view) = target.as_view() {
        match view.made {
            Viewing::Plain => {}
            Viewing::NoGrad => {
                return Err(Error::runtime(
                    "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that \
                     this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving \
                     both the view and the inplace either both inside the no_grad block (if you don't want the inplace \
                     to be tracked) or both outside (if you want the inplace to be tracked).",
                ));
            }
            Viewing::Multi => {
                let edge = target.history();
                let (output, name) =
                    edge.map_or((0, "UnbindBackward0".into()), |e| (e.output, e.node.name()));
                let name = name.trim_end_matches(char::is_numeric).trim_end_matches("Backward").to_owned();
                return Err(Error::runtime(format!(
                    "Output {output} of {name} is a view and is being modified inplace. This view is the output of a \
                     function that returns multiple views. Such functions do not allow the output views to be modified \
                     inplace. You should replace the inplace operation by an out-of-place one."
                )));
            }
        }
        if view.base.is_leaf() && view.base.requires_grad() {
            return Err(Error::runtime(
                "a view of a leaf Variable that requires grad is being used in an in-place operation.",
            ));
        }
    }
    if target.requires_grad() && target.is_leaf() {
        return Err(Error::runtime(
            "a leaf Variable that requires grad is being used in an in-place operation.",
        ));
    }
    Ok(())
}

/// Gives `target`, just written, the history `edge` (none when nothing was recorded).
pub fn finish_inplace(target: &Tensor, edge: Option<Edge>) {
    let Some(edge) = edge else { return };
    match target.as_view() {
        Some(view) => view.rewrite_base(&target.body().layout, edge),
        None => target.set_history(Some(edge)),
    }
}
