//! Writes a computed result into a tensor: `copy_`, `out=`, and the in-place form of rows that have no
//! special one.

pub mod copy_slices;
pub mod out;
pub mod row;
pub mod view;
pub mod write;

use crate::base::{Error, Fault, Layout, Result, broadcast, warn};
use crate::operator::bodies::overlap::{check_aligned, check_writable, overlaps};
use crate::operator::bodies::{carry, copy, duplicate};
use crate::operator::inplace::write::{Write, is_counted};
use crate::operator::pointwise::dtype_checks::check_cast;
use crate::operator::row::grad_value::V;
use crate::operator::{batch, tangent};
use crate::tensor::levels::func;
use crate::tensor::{Body, Derivative, Edge, Grads, Recorder, Step, Tensor, any_requires_grad, mode};

/// Writes `result` over `target`, and gives it the edge of `result`.
pub fn overwrite(target: &Tensor, result: &Tensor) -> Result<()> {
    if batch::any(&[target, result]) {
        return batch::overwrite(target, result);
    }
    let over = Write::begin(target, target.requires_grad() || result.requires_grad())?;
    rewrite(over, target, result, replace)
}

/// Copies the values of `made` into `body`.
pub fn replace(body: &Body, made: &Body) -> Result<()> {
    check_writable(body)?;
    copy(body, made)
}

/// Completes a write that has begun: `write` copies the values of `result` into `target`.
pub fn rewrite(
    over: Write,
    target: &Tensor,
    result: &Tensor,
    write: impl FnOnce(&Body, &Body) -> Result<()>,
) -> Result<()> {
    if batch::any(&[target, result]) {
        return batch::overwrite(target, result);
    }
    let recording = mode::grad_enabled() && (target.requires_grad() || result.requires_grad());
    let (body, new) = (target.body(), result.body());
    if body.shape() != new.shape() {
        return Err(shape_error(body.shape(), new.shape()));
    }
    check_cast(new.dtype, body.dtype)?;
    let made_by = if recording { result.history() } else { None };
    over.put(&body, made_by.as_ref(), |body| write(body, &new))?;
    let edge = if recording { V::from(result).cast(body.dtype).tensor()?.history() } else { None };
    over.end(edge)?;
    rewrite_tangents(target, result)
}

/// Updates the tangents of `target` after `value` was written over it.
fn rewrite_tangents(target: &Tensor, value: &Tensor) -> Result<()> {
    if target.is_dual() || value.is_dual() { tangent::rewrite(target, value) } else { Ok(()) }
}

/// The gradient of the written value: converted and moved. The engine undoes the broadcast.
pub fn value_grads(step: &Step) -> Result<Grads> {
    let mut grads = zero_grads(step)?;
    if step.wants(1)
        && let Some(grad) = step.grad(0)
    {
        let at = crate::operator::meta_of(step, 1)?;
        grads[1] = Some(V::from(grad).cast(at.dtype).to_device(at.device).tensor()?);
    }
    Ok(grads)
}

static COPY: Derivative = Derivative { facts: None, flops: None, name: "CopyBackwards", apply: value_grads };

/// The new edge of `target` after its elements were replaced by `value`.
fn replaced(target: &Tensor, value: &Tensor) -> Result<Edge> {
    let mut recorder = Recorder::new(&COPY);
    recorder.input(Some(target)).input(Some(value));
    recorder.check([target, value].into_iter(), func::is_recorded_outside)?;
    Ok(Edge { node: recorder.publish(&[&target.body()]), output: 0 })
}

/// `target.copy_(source)`: converts and broadcasts. The gradient goes to the source.
pub fn copy_into(target: &Tensor, source: &Tensor) -> Result<()> {
    if batch::any(&[target, source]) {
        return batch::copy_into(target, source);
    }
    let over = Write::begin(target, recorded(target, source))?;
    // Copying a tensor to itself changes nothing.
    if !same_place(target, source) {
        check_writable(&target.body())?;
        check_aligned(&target.body(), &source.body())?;
    }
    assign(over, target, source)
}

/// True if the copy is recorded; integers have no gradient.
fn recorded(target: &Tensor, source: &Tensor) -> bool {
    target.dtype().is_differentiable() && any_requires_grad([target, source])
}

fn same_place(target: &Tensor, source: &Tensor) -> bool {
    let (to, from) = (target.body(), source.body());
    to.storage.same(&from.storage)
        && (&to.layout, to.dtype, to.conj_neg) == (&from.layout, from.dtype, from.conj_neg)
}

/// `target[...] = source` for a 0-d source: like `fill_`, which reads the value first.
pub fn put_value(target: &Tensor, source: &Tensor) -> Result<()> {
    if batch::any(&[target]) {
        return batch::copy_into(target, source);
    }
    let over = Write::begin(target, any_requires_grad([target, source]))?;
    check_writable(&target.body())?;
    if batch::any(&[source]) {
        return batch::copy_into(target, source);
    }
    assign(over, target, source)
}

fn assign(over: Write, target: &Tensor, source: &Tensor) -> Result<()> {
    let recording = recorded(target, source);
    if recording {
        source.check_view()?;
    }
    let body = target.body();
    let from = source.body();
    let fits = broadcast(from.shape(), body.shape()).is_ok_and(|s| s.as_slice() == body.shape());
    if !fits {
        return Err(match broadcast(body.shape(), from.shape()) {
            Err(e) => e,
            Ok(shape) => shape_error(body.shape(), &shape),
        });
    }
    // Made before the write: if the source is a view of the target, it could not follow the write in the
    // graph.
    let edge = if recording { Some(replaced(target, source)?) } else { None };
    let wide = from.with_layout(from.layout.broadcast_to(body.shape()));
    // If the source overlaps the target, it is copied before the write.
    let read = if overlaps(&wide, &body) { duplicate(&wide)? } else { wide };
    over.put(&body, edge.as_ref(), |body| carry(body, &read))?;
    over.end(edge)?;
    rewrite_tangents(target, source)
}

/// A checked `out=` target that is not yet written.
pub struct OutTarget<'a> {
    pub target: &'a Tensor,
    result: &'a Tensor,
    over: Write<'a>,
    /// The body with its final layout; the storage may still be too short.
    pub body: Body,
}

impl<'a> OutTarget<'a> {
    /// Checks the target and computes its new layout if its shape differs from the result's.
    pub fn of(target: &'a Tensor, result: &'a Tensor) -> Result<OutTarget<'a>> {
        let (new, body) = (result.body(), target.body());
        if body.device() != new.device() {
            return Err(Fault::Devices { a: body.device(), b: new.device() }.into());
        }
        let over = Write::begin(target, false)?;
        check_cast(new.dtype, body.dtype)?;
        if body.shape() == new.shape() {
            return Ok(OutTarget { target, result, over, body: body.clone() });
        }
        let like = if new.layout.is_dense() { new.layout.clone() } else { Layout::contiguous(new.shape()) };
        let place = body.with_layout(Layout { offset: body.layout.offset, ..like });
        if place.storage.len() < OutTarget::need(&place)? {
            place.storage.check_resizable()?;
        }
        Ok(OutTarget { target, result, over, body: place })
    }

    fn need(body: &Body) -> Result<usize> {
        let need = body.layout.bytes(body.dtype);
        need.ok_or_else(|| {
            Error::runtime(format!("Storage size calculation overflowed with sizes={:?}", body.shape()))
        })
    }

    /// Returns an error if the target cannot be written. Called last, after all other checks of the call.
    pub fn check(&self) -> Result<()> {
        check_writable(&self.body)
    }

    /// Enlarges the storage if it is too short.
    pub fn make_room(&self) -> Result<()> {
        let need = OutTarget::need(&self.body)?;
        if self.body.storage.len() < need {
            crate::operator::bodies::resize_storage(&self.body, need)
        } else {
            Ok(())
        }
    }

    /// Resizes the target, and writes the values of the result unless only the size is wanted.
    pub fn write(self, values: bool) -> Result<()> {
        if self.body.shape() != self.target.body().shape() {
            self.target.set_body(self.body.clone());
        }
        if !values {
            return Ok(());
        }
        self.over.put(&self.body, None, |body| copy(body, &self.result.body()))?;
        self.over.end(None)
    }
}

/// Returns an error if a pointwise `out=` overlaps itself or an operand, or is an operand of another shape.
pub fn check_out<'a>(
    target: &Tensor,
    result: &Tensor,
    operands: impl Iterator<Item = &'a Tensor>,
) -> Result<()> {
    let (body, shape) = (target.body(), result.shape());
    check_writable(&body)?;
    for operand in operands {
        if operand.same(target) && target.shape() != shape {
            return Err(shape_error(&target.shape(), &shape));
        }
        check_aligned(&body, &operand.body())?;
    }
    Ok(())
}

/// Zeros: the gradient of overwritten values.
fn zero_grads(step: &Step) -> Result<Grads> {
    let mut grads: Grads = smallvec::smallvec![None; step.node.edges.len()];
    if step.wants(0) {
        let (at, batch) = (crate::operator::meta_of(step, 0)?, batch::Batch::of(step.grad(0)));
        let zeros =
            crate::operator::primitives::constant::zeros(&batch.shape(&at.shape), at.dtype, at.device)?;
        grads[0] = Some(batch.wrap(zeros));
    }
    Ok(grads)
}

fn shape_error(to: &[usize], from: &[usize]) -> Error {
    Error::runtime(format!("output with shape {to:?} doesn't match the broadcast shape {from:?}"))
}

/// An error about the target takes precedence over that of a missing kernel.
#[cold]
fn prefer_target_error(target: &Body, error: Error) -> Error {
    match error.fault() {
        Fault::NoKernel { .. } | Fault::NoKernelOf { .. } => check_writable(target).err().unwrap_or(error),
        _ => error,
    }
}

/// Begins a write to `target` that reads these operands.
pub fn begin<'a>(target: &'a Tensor, others: impl IntoIterator<Item = &'a Tensor>) -> Result<Write<'a>> {
    Write::begin(target, any_requires_grad([target].into_iter().chain(others)))
}

/// Warns about a write to an expanded tensor; `form` is the equivalent indexing expression.
pub fn warn_expanded(target: &Tensor, operator: &str, form: &str) -> Result<()> {
    if !target.body().layout.is_expanded() {
        return Ok(());
    }
    warn(&format!(
        "Use of {operator}_ on expanded tensors is deprecated. Please clone() the tensor before performing this operation. \
         This also applies to advanced indexing e.g. {form}"
    ))
}

/// The in-place form of an operator that computes its result first: `make` computes it from the old target,
/// `write` copies it there.
pub fn by_result(
    target: &Tensor,
    others: &[&Tensor],
    make: impl FnOnce(&Tensor) -> Result<Tensor>,
    write: impl FnOnce(&Body, &Body) -> Result<()>,
) -> Result<()> {
    let over = begin(target, others.iter().copied())?;
    let seen = target.physical().is_dual().then(|| tangent::before_write(target)).transpose()?;
    let recording = mode::grad_enabled() && is_counted(target);
    let made = mode::with_grad(recording, || make(seen.as_ref().unwrap_or(target)));
    rewrite(over, target, &made.map_err(|error| prefer_target_error(&target.body(), error))?, write)
}
