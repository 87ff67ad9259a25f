//! The Python side of the profiler: spans around operator calls, the user's marks, and starting and
//! stopping a session.

use crate::base::lock;
use crate::base::profile::{self, Event, EventFacts, EventKind, ProfileOptions, Shapes, Span};
use crate::operator::{Forms, Operand, Row};
use crate::python::modes::anomaly::frames;
use crate::python::objects::{name_of, text_of, to_list};
use crate::python::wrapper::class::PyTensor;
use crate::tensor::mode;
use gradiron_macros::{pyfunction, pymethods};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use std::borrow::Cow;
use std::sync::Mutex;

/// The span of a running operator call.
pub struct Call {
    span: Span,
    sequence: u64,
}

impl Drop for Call {
    fn drop(&mut self) {
        let latest = mode::latest_sequence();
        self.span.facts.sequence = (latest != self.sequence).then_some(latest);
    }
}

impl Call {
    /// Records the FLOPs; like PyTorch, not those of in-place forms.
    fn count(&mut self, row: &Row, inplace: bool, text: Option<&str>) {
        let facts = &mut self.span.facts;
        if let (Some(flops), Some(shapes), false) = (row.flops, &facts.shapes, inplace) {
            facts.flops = flops(shapes, text);
        }
    }
}

/// Opens a span for a call of a row with Python arguments, if the profiler is on.
#[inline]
pub fn call<'a, 'py: 'a>(
    row: &'static Row,
    inplace: bool,
    arguments: impl IntoIterator<Item = &'a Bound<'py, PyAny>>,
) -> Option<Box<Call>> {
    if profile::on() { begin(row, inplace, arguments) } else { None }
}

#[cold]
fn begin<'a, 'py: 'a>(
    row: &'static Row,
    inplace: bool,
    arguments: impl IntoIterator<Item = &'a Bound<'py, PyAny>>,
) -> Option<Box<Call>> {
    let (mut text, first) = (None, row.params.first().is_some_and(|p| p.kind == crate::operator::Kind::Str));
    let mut call = open(operator(inplace), row.name.into(), || {
        let mut shapes: Shapes = Vec::new();
        for argument in arguments {
            if first && text.is_none() {
                text = text_of(argument).ok().flatten();
            }
            shapes.push(shape_of(argument));
        }
        // PyTorch lists every parameter, given or not.
        let count = row.params.len() + usize::from(row.forms.has(Forms::ALPHA));
        shapes.resize(count.max(shapes.len()), Vec::new());
        shapes
    })?;
    call.count(row, inplace, text.as_deref());
    Some(call)
}

/// Opens a span for an operator with parsed operands, if the profiler is on.
#[inline]
pub fn operands(row: &'static Row, inplace: bool, operands: &[Operand]) -> Option<Box<Call>> {
    if profile::on() { begin_operands(row, inplace, operands) } else { None }
}

#[cold]
fn begin_operands(row: &'static Row, inplace: bool, operands: &[Operand]) -> Option<Box<Call>> {
    let shape = |o: &Operand| match o {
        Operand::Tensor(t) => t.shape().to_vec(),
        Operand::Scalar(_) => Vec::new(),
    };
    let mut call = open(operator(inplace), row.name.into(), || {
        let mut shapes: Shapes = operands.iter().map(shape).collect();
        shapes.extend(row.forms.has(Forms::ALPHA).then(Vec::new));
        shapes
    })?;
    call.count(row, inplace, None);
    Some(call)
}

/// Opens a span for a call that has no row.
#[inline]
pub fn named<'a, 'py: 'a>(
    name: impl FnOnce() -> &'static str,
    arguments: impl IntoIterator<Item = &'a Bound<'py, PyAny>>,
) -> Option<Box<Call>> {
    if profile::on() {
        open(EventKind::Operator, name().into(), || arguments.into_iter().map(shape_of).collect())
    } else {
        None
    }
}

/// Opens a span for a custom Function, named after its class.
#[inline]
pub fn function(class: &Bound<'_, PyAny>, arguments: &Bound<'_, PyTuple>) -> Option<Box<Call>> {
    if profile::on() { begin_function(class, arguments) } else { None }
}

#[cold]
fn begin_function(class: &Bound<'_, PyAny>, arguments: &Bound<'_, PyTuple>) -> Option<Box<Call>> {
    let name = name_of(class, "Function");
    open(EventKind::Function, name.into(), || arguments.iter().map(|a| shape_of(&a)).collect())
}

fn operator(inplace: bool) -> EventKind {
    if inplace { EventKind::Inplace } else { EventKind::Operator }
}

#[cold]
fn open(kind: EventKind, name: Cow<'static, str>, shapes: impl FnOnce() -> Shapes) -> Option<Box<Call>> {
    let shapes = profile::wants_shapes().then(shapes);
    let stack = if profile::wants_stacks() { stack() } else { Vec::new() };
    let mut span = profile::open(kind, name)?;
    span.facts = EventFacts { shapes, stack, ..EventFacts::default() };
    Some(Box::new(Call { span, sequence: mode::latest_sequence() }))
}

fn shape_of(object: &Bound<'_, PyAny>) -> Vec<usize> {
    object.cast::<PyTensor>().map_or_else(|_| Vec::new(), |t| t.get().tensor.shape().to_vec())
}

/// Returns the lines of Python's stack, innermost first: `file(line): function`.
fn stack() -> Vec<String> {
    const DEEPEST: usize = 64;
    Python::attach(|py| {
        let read = |at: Bound<'_, PyAny>| -> PyResult<String> {
            let code = at.getattr("f_code")?;
            let (file, name) = (code.getattr("co_filename")?, code.getattr("co_name")?);
            Ok(format!("{file}({}): {name}", at.getattr("f_lineno")?))
        };
        frames(py).filter_map(|at| read(at).ok()).take(DEEPEST).collect()
    })
}

/// A span that the user opened; `end` closes it.
#[pyclass(frozen, name = "ProfilerMark")]
pub struct Mark(Mutex<Option<Span>>);

#[pymethods]
impl Mark {
    fn end(&self) {
        let span = lock(&self.0).take();
        drop(span);
    }
}

/// Opens a mark if the profiler is on.
#[pyfunction]
pub fn profiler_mark(name: &Bound<'_, PyString>) -> PyResult<Option<Mark>> {
    if !profile::on() {
        return Ok(None);
    }
    let name = text_of(name)?.unwrap_or_default();
    let Some(mut span) = profile::span(EventKind::Mark, || name.into()) else { return Ok(None) };
    if profile::wants_stacks() {
        span.facts.stack = stack();
    }
    Ok(Some(Mark(Mutex::new(Some(span)))))
}

/// Returns true if a profiling session is running.
#[pyfunction]
pub fn profiler_enabled() -> bool {
    profile::on()
}

/// Starts a session; returns false if one is already running.
#[pyfunction]
pub fn profiler_start(shapes: bool, memory: bool, stacks: bool) -> bool {
    profile::start(ProfileOptions { shapes, memory, stacks })
}

/// Returns the start of the events' clock, in nanoseconds since 1970.
#[pyfunction]
pub fn profiler_clock() -> u64 {
    profile::clock_start()
}

/// Ends the session. Returns for each event its name, kind, thread, start, end, depth, bytes on the host
/// and on the GPU, and its facts: sequence number of its node, input shapes, FLOPs, stack.
#[pyfunction]
pub fn profiler_stop(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let events = profile::stop()?;
    to_list(py, events.len(), events.into_iter().map(|event| as_tuple(py, event)))
}

fn as_tuple(py: Python<'_>, event: Event) -> PyResult<Bound<'_, PyTuple>> {
    let (name, kind) = (event.full_name(), kind_name(event.kind));
    let Event { thread, start, end, depth, bytes: [here, there], facts, .. } = event;
    let EventFacts { sequence, shapes, flops, stack } = facts;
    let facts = (sequence, shapes, flops, stack);
    (name, kind, thread, start, end, depth, here, there, facts).into_pyobject(py)
}

fn kind_name(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Operator | EventKind::Inplace => "operator",
        EventKind::Function => "function",
        EventKind::Turn => "turn",
        EventKind::Derivative => "derivative",
        EventKind::Mark => "mark",
        EventKind::Memory => "memory",
    }
}
