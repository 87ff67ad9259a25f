//! View operators in place: the tensor itself shows its elements otherwise.

use crate::base::Result;
use crate::operator::write::{Write, count_write};
use crate::tensor::{Tensor, mode, saved_hooks};

/// `target` becomes the view of itself that `view` makes.
pub fn become_view(target: &Tensor, view: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<()> {
    let recording = mode::grad_enabled() && target.requires_grad();
    let over = Write::begin(target, recording)?;
    let made = saved_hooks::inplace(|| view(target))?;
    let (place, made) = (target.physical(), made.physical());
    // Asked before the write is counted: afterwards the view would tell its history anew, over the base's new layout.
    let history = made.history();
    let body = made.body().clone();
    count_write(&body);
    place.set_body(body);
    if recording {
        place.put_history(history);
    }
    for level in made.dual_levels() {
        if let Some(tangent) = made.tangent(level) {
            place.set_tangent(level, tangent)?;
        }
    }
    if target.is_batched() {
        target.refresh_batched();
    } else if recording {
        // What keeps its gradient goes on keeping that of the old shape.
        target.keep_view_history();
    }
    over.end(None)
}
