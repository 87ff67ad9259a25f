//! Tensors that hold each other through `.grad`: `a.grad, b.grad = b, a`, or a gradient that is a view of
//! its tensor. Python's collector cannot find such a cycle because it contains no Python object. We
//! remember the tensor whose `.grad` closed the cycle, and each collection checks whether anything outside
//! of the cycle still holds a member.

use crate::base::lock;
use crate::base::try_alloc;
use crate::python::wrapper::collector;
use crate::tensor::{Tensor, WeakTensor};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::Mutex;

static CLOSED: Mutex<Vec<WeakTensor>> = Mutex::new(Vec::new());

/// A tensor on the path, and the ids of the tensors that it holds.
struct Member {
    tensor: Tensor,
    holds: Vec<usize>,
}

/// Remembers a tensor whose `.grad` was just set, if that closed a cycle.
pub fn note(py: Python<'_>, tensor: &Tensor, grad: &Tensor) -> PyResult<()> {
    if grad.as_view().is_none() && !grad.is_special() && matches!(grad.try_grad(), Some(None)) {
        return Ok(());
    }
    let id = tensor.id();
    if reached(tensor).values().any(|member| member.holds.contains(&id)) {
        collector::follow(py)?;
        let mut closed = lock(&CLOSED);
        try_alloc::push(&mut closed, tensor.downgrade())?;
    }
    Ok(())
}

/// Breaks the cycles that nothing else holds.
pub fn collect() {
    let mut closed = std::mem::take(&mut *lock(&CLOSED));
    closed.retain(|tensor| {
        tensor.upgrade().is_some_and(|tensor| {
            let garbage = is_garbage(&tensor);
            if garbage {
                tensor.set_grad(None);
            }
            !garbage
        })
    });
    // Keeps the tensors that were added meanwhile; they are few.
    let mut now = lock(&CLOSED);
    closed.append(&mut now);
    *now = closed;
}

/// Finds everything that a tensor holds through gradients, views, batched tensors and tangents, including
/// itself.
fn reached(start: &Tensor) -> HashMap<usize, Member> {
    let mut found: HashMap<usize, Member> = HashMap::new();
    let mut waiting = vec![start.clone()];
    while let Some(tensor) = waiting.pop() {
        if found.contains_key(&tensor.id()) {
            continue;
        }
        let held = tensor.referents();
        let mut next: Vec<Tensor> = held.grad.into_iter().chain(held.beside).collect();
        next.extend(tensor.as_view().map(|view| view.base.clone()));
        if let Some(batched) = tensor.as_batched() {
            next.extend(std::iter::once(&batched.value).chain(&batched.given).cloned());
        }
        let holds = next.iter().map(Tensor::id).collect();
        waiting.extend(next);
        found.insert(tensor.id(), Member { tensor, holds });
    }
    found
}

/// Returns true if only the members of the cycle hold one another. `tensor` is a member; the caller holds
/// it, too.
fn is_garbage(tensor: &Tensor) -> bool {
    let found = reached(tensor);
    // A tensor from which `tensor` cannot be reached is not a member.
    let mut cycle = vec![tensor.id()];
    let mut at = 0;
    while let Some(&id) = cycle.get(at) {
        let before: Vec<usize> =
            found.iter().filter(|(_, m)| m.holds.contains(&id)).map(|(id, _)| *id).collect();
        cycle.extend(before.into_iter().filter(|id| !cycle.contains(id)).collect::<Vec<_>>());
        at += 1;
    }
    cycle.iter().all(|id| {
        let inside: usize = found.values().map(|m| m.holds.iter().filter(|held| *held == id).count()).sum();
        let ours = 1 + usize::from(*id == tensor.id());
        found.get(id).is_some_and(|member| member.tensor.handles() == inside + ours)
    })
}
