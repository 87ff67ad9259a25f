//! The order of a pointwise result's dimensions in memory.

use crate::base::views::dense_like;
use crate::base::{DType, Layout};
use crate::operator::pointwise::clauses::ResultLayout;
use crate::operator::pointwise::layout_formula::{LayoutFormula, ordered};
use crate::operator::pointwise::{Class, Gradient, Input, Plan, Pointwise, compute_type};
use crate::tensor::{Body, BodyRef};
use smallvec::SmallVec;
use std::borrow::Cow;

/// The layout of a result: it keeps its operands' order of dimensions (in `where` the condition has
/// precedence), unless the row says otherwise. `None` means contiguous.
pub fn preserved(op: &Pointwise, plan: &Plan, bodies: &[Option<BodyRef>]) -> Option<Layout> {
    let contiguous = bodies.iter().flatten().all(|b| b.layout.is_contiguous());
    // Only the strides of dimensions of size 1 could still differ from contiguous ones.
    if contiguous && !plan.shape.contains(&1) && !plan.shape.contains(&0) {
        return None;
    }
    let mut found: SmallVec<[Cow<Layout>; 4]> =
        bodies.iter().enumerate().filter_map(|(at, body)| Some(read(op, plan, at, body.as_ref()?))).collect();
    let contiguous = contiguous || found.iter().all(|l| l.is_contiguous());
    match op.clauses.layout {
        ResultLayout::RowMajor => return None,
        ResultLayout::First => return found.first().map(|first| dense_like(first)),
        ResultLayout::Operands | ResultLayout::Tensors => {}
    }
    if op.class == Class::Choose {
        found.rotate_right(1);
    }
    // A number that is an operand of its own counts as a 0-d tensor.
    let number = bodies.iter().take(op.inputs).any(Option::is_none)
        && (op.class == Class::Choose || op.inputs == 2)
        && op.clauses.layout == ResultLayout::Operands;
    let alike = found.iter().all(|l| l.shape == plan.shape) && (!number || plan.shape.is_empty());
    if alike && contiguous {
        return None;
    }
    if alike && found.iter().all(|l| l.is_dense() && l.strides == found[0].strides) {
        return Some(Layout { offset: 0, ..found[0].clone().into_owned() });
    }
    Some(ordered(&plan.shape, found.iter().map(AsRef::as_ref)))
}

/// The layout in which an operand is read: on the CPU, that of its dense copy if it must be converted.
fn read<'a>(op: &Pointwise, plan: &Plan, at: usize, body: &'a Body) -> Cow<'a, Layout> {
    let condition = op.class == Class::Choose && at == 2;
    let same = if plan.result == DType::Bool {
        compute_type(body.dtype) == plan.compute
    } else {
        body.dtype == plan.result
    };
    if same || condition || !plan.device.is_cpu() {
        Cow::Borrowed(&body.layout)
    } else {
        Cow::Owned(dense_like(&body.layout))
    }
}

/// The layout of a gradient, derived from the steps of its formula.
pub fn of_gradient(op: &Pointwise, gradient: &Gradient, shape: &[usize], inputs: &[Input]) -> Option<Layout> {
    let layout = |input: &Input| if let Input::Body(body) = input { Some(body.layout.clone()) } else { None };
    let on_host = |input: &Input| !matches!(input, Input::Body(body) if !body.device().is_cpu());
    let all: SmallVec<[Option<Layout>; 4]> = inputs.iter().map(layout).collect();
    if all.iter().flatten().all(Layout::is_contiguous) || !inputs.iter().all(on_host) {
        return None;
    }
    if !op.clauses.one_pass {
        let values: SmallVec<[LayoutFormula; 4]> = all.into_iter().map(LayoutFormula).collect();
        return (gradient.layout)(&values).0.filter(|layout| layout.shape.as_slice() == shape);
    }
    let found: SmallVec<[Layout; 4]> = all.into_iter().flatten().filter(|l| l.ndim() > 0).collect();
    if found.iter().all(|l| l.shape.as_slice() == shape && l.is_dense() && l.strides == found[0].strides) {
        return Some(Layout { offset: 0, ..found[0].clone() });
    }
    Some(ordered(shape, found.iter()))
}
