//! In-place view operators, such as `squeeze_`: the tensor gets another layout.

use crate::base::Result;
use crate::operator::inplace::write::{Write, count_write};
use crate::tensor::{Tensor, mode, saved_hooks};

/// Turns `target` into the view of itself that `view` returns.
pub fn become_view(target: &Tensor, view: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<()> {
    let recording = mode::grad_enabled() && target.requires_grad();
    let over = Write::begin(target, recording)?;
    let made = saved_hooks::inplace(|| view(target))?;
    let (place, made) = (target.physical(), made.physical());
    // Read before the write is counted: afterwards the view would rebuild its edge from the base's new
    // layout.
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
        // A retained gradient keeps the old shape.
        target.keep_view_history();
    }
    over.end(None)
}
