//! Captured calls, and their replay.

use crate::capture::{BackwardCounts, Failed, Program, Replayed};
use crate::python::compile::guards::PyGuards;
use crate::python::modes::{anomaly, capture};
use crate::python::objects::{ToObject, to_list, to_object};
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::storage::access;
use crate::tensor::Tensor;
use gradiron_macros::{pyfunction, pymethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyString, PyTuple};
use smallvec::SmallVec;

/// Ends this thread's capture, whose kernels ran, and returns its program. `known` are tensors that are older than the
/// captured call: the first `given` of them (all if that is None) may be others in each replay, and the rest are fixed.
/// `results` are those that were made in it and outlive it. Unless `fuses`, its kernels are not joined to groups.
///
/// Raises RuntimeError: if the call cannot be replayed; the message says why.
#[pyfunction]
#[pyo3(signature = (known, results, given = None, fuses = true))]
pub fn end_program(
    py: Python<'_>,
    known: Vec<Bound<'_, PyTensor>>,
    results: Vec<Bound<'_, PyTensor>>,
    given: Option<usize>,
    fuses: bool,
) -> PyResult<PyCapturedProgram> {
    let tensors =
        |all: &[Bound<'_, PyTensor>]| all.iter().map(|t| t.get().tensor.clone()).collect::<Vec<Tensor>>();
    let call = capture::take()?.end_call()?;
    let collect = || {
        // What garbage still holds is reported below.
        let _ = py.import("gc").and_then(|gc| gc.call_method0("collect"));
    };
    let given = given.unwrap_or(known.len());
    Ok(PyCapturedProgram(call.program(&tensors(&known), given, &tensors(&results), collect, fuses)?))
}

/// Returns the reason why this thread's capture cannot be replayed, if there is one so far.
#[pyfunction]
pub fn capture_reason() -> Option<String> {
    access::reason()
}

/// The index that a live number has among those that each replay is given: the attribute `live_index` of a subclass of
/// `float`. Only a capture looks for it.
pub fn live_index(number: &Bound<'_, PyAny>) -> Option<u32> {
    if number.is_exact_instance_of::<PyFloat>() || !access::captures() {
        return None;
    }
    number.getattr(intern!(number.py(), "live_index")).ok()?.extract().ok()
}

/// A captured call that can be replayed.
#[pyclass(frozen, name = "CapturedProgram", module = "gradiron._core")]
pub struct PyCapturedProgram(pub(super) Program);

#[pymethods]
impl PyCapturedProgram {
    /// Run the kernels of the captured call on other tensors, and return new results: a list.
    ///
    /// If a guard fails, nothing runs, and its number is returned. If these tensors differ from those of the captured call in
    /// more than their elements, nothing runs, and a string says why.
    ///
    /// Args:
    ///     known: tensors in place of those that `end_program` was given, in the same order. Those that are not `used`
    ///         may be anything.
    ///     numbers: the live numbers.
    ///     guards: what the call read.
    #[pyo3(signature = (known, numbers, guards = None))]
    fn replay<'py>(
        &self,
        py: Python<'py>,
        known: &Bound<'py, PyTuple>,
        numbers: &Bound<'py, PyTuple>,
        guards: Option<&Bound<'py, PyGuards>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Some(guards) = guards
            && let Some(number) = guards.borrow().first_failed(py)?
        {
            return to_object(py, number);
        }
        let mut tensors: SmallVec<[&Tensor; 32]> = SmallVec::with_capacity(self.0.used().len());
        for &number in self.0.used() {
            let object = known
                .get_borrowed_item(number)
                .map_err(|_| PyValueError::new_err("a replay was given too few tensors"))?;
            let tensor =
                object.cast::<PyTensor>().map_err(|_| PyTypeError::new_err("a replay needs tensors"))?;
            tensors.push(&tensor.get().tensor);
        }
        let numbers = numbers
            .iter_borrowed()
            .map(|number| number.extract())
            .collect::<PyResult<SmallVec<[f64; 8]>>>()?;
        match run(py, &self.0, &tensors, &numbers)? {
            Replayed::Results(results) => {
                let results = results.into_iter().map(|tensor| wrap(py, tensor)).collect::<Vec<_>>();
                Ok(to_list(py, results.len(), results)?.into_any())
            }
            Replayed::Refused(why) => to_object(py, why),
        }
    }

    /// The numbers of the known tensors that a replay needs.
    #[getter]
    fn used<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        crate::python::objects::numbers(py, self.0.used())
    }

    /// The indices of the live numbers that each replay uses anew; others are part of the program.
    #[getter]
    fn numbers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        crate::python::objects::numbers(py, &self.0.numbers().collect::<Vec<_>>())
    }

    /// The number of kernels.
    #[getter]
    fn kernels(&self) -> ToObject<usize> {
        ToObject(self.0.kernels())
    }

    /// The number of kernels and groups that a replay runs.
    #[getter]
    fn units(&self) -> ToObject<usize> {
        ToObject(self.0.units())
    }

    /// The launches on the GPU of the last replay.
    #[getter]
    fn launches(&self) -> ToObject<u64> {
        ToObject(self.0.launches().1)
    }

    /// The launches on the GPU of the captured call.
    #[getter]
    fn launches_apart(&self) -> ToObject<u64> {
        ToObject(self.0.launches().0)
    }

    /// The number of groups.
    #[getter]
    fn groups(&self) -> ToObject<usize> {
        ToObject(self.0.counts().groups)
    }

    /// The number of instructions in all groups.
    #[getter]
    fn instructions(&self) -> ToObject<usize> {
        ToObject(self.0.counts().instructions)
    }

    /// The number of decisions by elements of tensors, which a replay compares.
    #[getter]
    fn decisions(&self) -> ToObject<usize> {
        ToObject(self.0.decisions())
    }

    /// The captured backwards through the results' graph: how many there are, how often one was replayed, the kernels of the
    /// last one, the kernels and groups that its replay runs, the groups, and the bytes that only their kernels reach.
    #[getter]
    fn backward_counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let BackwardCounts { captures, replays, kernels, units, groups, bytes, .. } = self.0.backwards();
        crate::python::objects::numbers(py, &[captures, replays, kernels, units, groups, bytes])
    }

    /// Why a backward through the results' graph cannot be captured, if one cannot.
    #[getter]
    fn backward_reason(&self) -> Option<String> {
        self.0.backwards().reason
    }

    /// The bytes that a replay reads and writes.
    #[getter]
    fn traffic(&self) -> ToObject<usize> {
        ToObject(self.0.counts().bytes)
    }

    /// The bytes that kernels would read and write without groups.
    #[getter]
    fn bytes_apart(&self) -> ToObject<usize> {
        ToObject(self.0.counts().bytes_apart)
    }

    /// The bytes of memory that only these kernels reach.
    #[getter]
    fn bytes(&self) -> ToObject<usize> {
        ToObject(self.0.bytes())
    }
}

/// Replays a program; a long one lets other Python threads run.
pub(super) fn run(
    py: Python<'_>,
    program: &Program,
    known: &[&Tensor],
    numbers: &[f64],
) -> PyResult<Replayed> {
    let run = || program.replay(known, numbers);
    let done = if program.is_long() { py.detach(run) } else { run() };
    done.map_err(|failed| with_line(py, failed))
}

/// The exception of a failed kernel, with a note that names the line which captured it.
#[cold]
fn with_line(py: Python<'_>, failed: Failed) -> PyErr {
    let error = PyErr::from(failed.error);
    if let Some(line) = failed.line {
        let code = anomaly::source(py, &line).map(|code| format!(": {code}")).unwrap_or_default();
        let note = PyString::new(
            py,
            &format!("in a replay of what was captured at {}:{}{code}", line.file, line.number),
        );
        // Python before 3.11 has no notes.
        let _ = error.value(py).call_method1(intern!(py, "add_note"), (note,));
    }
    error
}
