//! Anomaly mode, and the lines of the user's program that its messages name.

use crate::base::{SourceLine, try_alloc};
use crate::python::objects::truncate;
use crate::storage::reserve;
use crate::tensor::anomaly::{self, Stack};
use gradiron_macros::pyfunction;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};
use pyo3::{ffi, intern};
use std::any::Any;

/// Lets the core ask for lines of the user's program.
pub fn install() {
    anomaly::set_host(anomaly::Host { line, here, tell, note });
}

/// Switches anomaly mode.
#[pyfunction]
pub fn set_anomaly(on: bool, check_nan: bool) {
    install();
    anomaly::set(on, check_nan);
}

/// Tell whether anomaly detection is on; see `torch.autograd.set_detect_anomaly`.
///
/// Examples:
///     >>> torch.is_anomaly_enabled()
///     False
#[pyfunction]
pub fn is_anomaly_enabled() -> bool {
    anomaly::enabled()
}

/// Tell whether anomaly detection, where it is on, looks for NaN in gradients.
///
/// Examples:
///     >>> torch.is_anomaly_check_nan_enabled()
///     True
#[pyfunction]
pub fn is_anomaly_check_nan_enabled() -> bool {
    anomaly::would_check_nan()
}

/// Sets whether nodes record the user's source line; returns the old setting.
#[pyfunction]
pub fn swap_source_lines(on: bool) -> bool {
    install();
    anomaly::set_lines(on)
}

/// Returns the folder of the Python package: frames in it are not the user's.
fn package(py: Python<'_>) -> &str {
    static PACKAGE: PyOnceLock<String> = PyOnceLock::new();
    PACKAGE.get_or_init(py, || {
        let file = py.import("gradiron").and_then(|module| module.getattr("__file__")?.extract::<String>());
        file.map_or_else(|_| "gradiron/".into(), |f| f.trim_end_matches("__init__.py").to_owned())
    })
}

/// Iterates over Python's frames, innermost first.
pub fn frames(py: Python<'_>) -> impl Iterator<Item = Bound<'_, PyAny>> {
    // SAFETY: this thread is attached; the frame is borrowed, and null outside of Python code.
    let innermost = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) };
    std::iter::successors(innermost, move |frame| {
        frame.getattr(intern!(py, "f_back")).ok().filter(|f| !f.is_none())
    })
}

/// Returns the innermost line outside of gradiron's package.
fn line() -> Option<SourceLine> {
    Python::attach(|py| {
        for frame in frames(py) {
            let code = frame.getattr(intern!(py, "f_code")).ok()?;
            let file = truncate(code.getattr(intern!(py, "co_filename")).ok()?.cast().ok()?).ok()?;
            if !file.starts_with(package(py)) {
                let number = frame.getattr(intern!(py, "f_lineno")).and_then(|n| n.extract()).ok()?;
                return Some(SourceLine { file: file.into(), number });
            }
        }
        None
    })
}

/// Adds a note to an exception, whose text stays unchanged. Python before 3.11 has no notes.
fn note(exception: &(dyn Any + Send + Sync), text: &str, line: &SourceLine) {
    let Some(error) = exception.downcast_ref::<PyErr>() else { return };
    Python::attach(|py| {
        let code = source(py, line).map(|code| format!(": {code}")).unwrap_or_default();
        let note = format!("{text} at {}:{}{code}", line.file, line.number);
        let _ = error.value(py).call_method1("add_note", (note,));
    });
}

/// Reads a line of a source file; None if it cannot be read.
pub fn source(py: Python<'_>, line: &SourceLine) -> Option<String> {
    let text =
        py.import("linecache").and_then(|m| m.call_method1("getline", (&*line.file, line.number))).ok()?;
    let text = truncate(text.cast().ok()?).ok()?;
    Some(text.trim().to_owned()).filter(|t| !t.is_empty())
}

/// A recorded stack, innermost frame first.
struct Frames(Vec<Frame>);

struct Frame {
    code: Py<PyAny>,
    line: Option<i32>,
    instruction: usize,
}

/// Records Python's stack.
fn here() -> Option<Box<dyn Stack>> {
    // One call may create many nodes: without memory they get no traceback.
    if reserve::is_spent() {
        return None;
    }
    Python::attach(|py| {
        let own = format!("{}autograd/function.py", package(py));
        let mut kept = Vec::new();
        for frame in frames(py) {
            let code = frame.getattr(intern!(py, "f_code")).ok()?;
            let file = code.getattr(intern!(py, "co_filename")).ok()?;
            // Skips the frame of `Function.apply`.
            if kept.is_empty() && truncate(file.cast().ok()?).ok()? == own {
                continue;
            }
            let line = frame.getattr(intern!(py, "f_lineno")).and_then(|n| n.extract()).ok()?;
            let instruction = frame.getattr(intern!(py, "f_lasti")).and_then(|n| n.extract()).unwrap_or(0);
            kept.try_reserve(1).ok()?;
            kept.push(Frame { code: code.unbind(), line, instruction });
        }
        Some(Box::new(Frames(kept)) as Box<dyn Stack>)
    })
}

impl Stack for Frames {
    fn text(&self) -> Option<String> {
        Python::attach(|py| self.lines(py).ok())
    }
}

impl Frames {
    fn lines(&self, py: Python<'_>) -> PyResult<String> {
        let (traceback, summaries) = (py.import("traceback")?, PyList::empty(py));
        for frame in self.0.iter().rev() {
            let (code, more) = (frame.code.bind(py), PyDict::new(py));
            // Since Python 3.11 a frame also knows the columns.
            if let Ok(mut places) = code.call_method0("co_positions").and_then(|p| p.try_iter())
                && let Some(place) = places.nth(frame.instruction / 2)
            {
                for (i, name) in ["end_lineno", "colno", "end_colno"].into_iter().enumerate() {
                    more.set_item(name, place.as_ref().map_err(|e| e.clone_ref(py))?.get_item(i + 1)?)?;
                }
            }
            let seen = (code.getattr("co_filename")?, frame.line, code.getattr("co_name")?);
            summaries.append(traceback.call_method("FrameSummary", seen, Some(&more))?)?;
        }
        let lines = traceback.getattr("StackSummary")?.call_method1("from_list", (summaries,))?;
        let lines = lines.call_method0("format")?.cast_into::<PyList>()?;
        try_alloc::check_text(lines.len() * size_of::<String>())?;
        let lines = lines.iter().map(|line| truncate(line.cast()?)).collect::<PyResult<Vec<String>>>()?;
        try_alloc::check_text(lines.iter().map(String::len).sum())?;
        Ok(lines.concat())
    }
}

fn tell(text: &str) {
    Python::attach(|py| {
        let category = py.get_type::<pyo3::exceptions::PyUserWarning>();
        let message = std::ffi::CString::new(text).unwrap_or_default();
        // If the user turned warnings into errors, the error in flight has precedence, and the warning is
        // printed.
        if let Err(warning) = PyErr::warn(py, &category, &message, 1) {
            warning.print(py);
        }
    });
}
