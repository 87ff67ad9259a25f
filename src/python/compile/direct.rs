//! Replays of calls whose arguments are plain tensors, without any code of Python.

use crate::base::{lock, watch};
use crate::capture::Replayed;
use crate::python::compile::guards::PyGuards;
use crate::python::compile::program::{PyCapturedProgram, run};
use crate::python::compile::state::{kinds_of, thread_modes};
use crate::python::objects::{ToObject, number_object, to_list, to_tuple};
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::storage::access;
use crate::tensor::Tensor;
use gradiron_macros::{pyfunction, pymethods};
use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyList, PyString, PyTuple};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

static IS_PERMITTED: AtomicBool = AtomicBool::new(true);

/// Permit direct replays, or refuse them for the whole process.
#[pyfunction]
pub fn permit_direct_replays(on: bool) {
    IS_PERMITTED.store(on, Ordering::Relaxed);
}

/// A result: where its tensors belong.
enum Form {
    Tensor(usize),
    /// The number in a tensor.
    Item(usize),
    Constant(Py<PyAny>),
    List(Vec<Form>),
    Tuple(Vec<Form>),
}

impl Form {
    /// Reads what Python says of a result: the number of a tensor; `("item", number)`, `("constant", value)`,
    /// `("list", [...])` or `("tuple", [...])`.
    fn new(outline: &Bound<'_, PyAny>) -> PyResult<Form> {
        if let Ok(number) = outline.extract() {
            return Ok(Form::Tensor(number));
        }
        let pair = outline.cast::<PyTuple>()?;
        let (kind, value) = (pair.get_item(0)?, pair.get_item(1)?);
        let parts = || -> PyResult<Vec<Form>> {
            value.cast::<PyList>()?.iter().map(|part| Form::new(&part)).collect()
        };
        match kind.cast::<PyString>()?.to_str()? {
            "item" => Ok(Form::Item(value.extract()?)),
            "constant" => Ok(Form::Constant(value.unbind())),
            "list" => Ok(Form::List(parts()?)),
            "tuple" => Ok(Form::Tuple(parts()?)),
            other => Err(PyTypeError::new_err(format!("a result has no part of the kind '{other}'"))),
        }
    }

    fn make<'py>(&self, py: Python<'py>, tensors: &[Tensor]) -> PyResult<Bound<'py, PyAny>> {
        let made = |parts: &[Form]| parts.iter().map(|part| part.make(py, tensors)).collect::<Vec<_>>();
        match self {
            Form::Tensor(number) => wrap(py, tensors[*number].clone()),
            Form::Item(number) => number_object(py, tensors[*number].item()?),
            Form::Constant(value) => Ok(value.bind(py).clone()),
            Form::List(parts) => Ok(to_list(py, parts.len(), made(parts))?.into_any()),
            Form::Tuple(parts) => Ok(to_tuple(py, parts.len(), made(parts))?.into_any()),
        }
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Form::Tensor(_) | Form::Item(_) => Ok(()),
            Form::Constant(value) => visit.call(value),
            Form::List(parts) | Form::Tuple(parts) => parts.iter().try_for_each(|part| part.traverse(visit)),
        }
    }
}

/// A captured call that can be replayed directly.
struct Direct {
    program: Py<PyCapturedProgram>,
    guards: Py<PyGuards>,
    /// Where the live numbers are.
    live: Vec<(Py<PyDict>, Py<PyAny>)>,
    /// The arguments that must be these objects.
    pinned: Vec<(usize, Py<PyAny>)>,
    result: Form,
}

impl Direct {
    fn replay<'py>(&self, args: &Bound<'py, PyTuple>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = args.py();
        for (number, tensor) in &self.pinned {
            if !args.get_borrowed_item(*number)?.is(tensor) {
                return Ok(None);
            }
        }
        if self.guards.bind(py).borrow().first_failed(py)?.is_some() {
            return Ok(None);
        }
        let mut numbers: SmallVec<[f64; 8]> = SmallVec::with_capacity(self.live.len());
        for (owner, key) in &self.live {
            let Some(number) = number_at(owner.bind(py), key.bind(py))? else { return Ok(None) };
            numbers.push(number);
        }
        let program = &self.program.get().0;
        let mut tensors: SmallVec<[Borrowed<'_, 'py, PyTensor>; 16]> = SmallVec::new();
        for &number in program.used() {
            tensors.push(args.get_borrowed_item(number)?.cast()?);
        }
        let tensors: SmallVec<[&Tensor; 16]> = tensors.iter().map(|tensor| &tensor.get().tensor).collect();
        match run(py, program, &tensors, &numbers)? {
            Replayed::Results(made) => self.result.make(py, &made).map(Some),
            Replayed::Refused(_) => Ok(None),
        }
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.program)?;
        visit.call(&self.guards)?;
        for (owner, key) in &self.live {
            visit.call(owner)?;
            visit.call(key)?;
        }
        self.pinned.iter().try_for_each(|(_, tensor)| visit.call(tensor))?;
        self.result.traverse(visit)
    }
}

/// The float under a name; under a name and an index, the part of a tuple such as `betas`. `None` if it is something else.
fn number_at(owner: &Bound<'_, PyDict>, key: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    let found = match key.cast_exact::<PyTuple>() {
        Err(_) => owner.get_item(key)?,
        Ok(place) => match owner.get_item(place.get_item(0)?)? {
            Some(parts) if parts.is_exact_instance_of::<PyTuple>() => {
                parts.cast::<PyTuple>()?.get_item(place.get_item(1)?.extract()?).ok()
            }
            _ => None,
        },
    };
    found.filter(|number| number.is_exact_instance_of::<PyFloat>()).map(|number| number.extract()).transpose()
}

/// The kinds of arguments, and the modes of the thread.
type Key = (SmallVec<[u8; 128]>, u32);
type Captures = SmallVec<[Arc<Direct>; 2]>;

/// The captures of a compiled function that can be replayed directly, by the kinds of arguments and the modes of the thread.
#[pyclass(frozen, name = "DirectReplays", module = "gradiron._core")]
#[derive(Default)]
pub struct PyDirectReplays {
    captures: Mutex<HashMap<Key, Captures>>,
    replays: AtomicUsize,
}

#[pymethods]
impl PyDirectReplays {
    #[new]
    fn new() -> PyDirectReplays {
        PyDirectReplays::default()
    }

    /// Replay the capture that fits, and return its result; NotImplemented if none does.
    ///
    /// Args:
    ///     args: the arguments of the call.
    fn replay<'py>(&self, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let py = args.py();
        let found = self.fitting(args);
        let Some((key, captures)) = found else { return Ok(py.NotImplemented().into_bound(py)) };
        for (at, direct) in captures.iter().enumerate() {
            if let Some(result) = direct.replay(args)? {
                self.replays.fetch_add(1, Ordering::Relaxed);
                if at > 0 {
                    self.prefer(&key, direct);
                }
                return Ok(result);
            }
        }
        Ok(py.NotImplemented().into_bound(py))
    }

    /// Set the captures for a kind of arguments, to be tried in this order.
    ///
    /// Args:
    ///     kinds: the `tensor_kinds` of the arguments.
    ///     modes: the `thread_modes`.
    ///     captures: for each the program, its guards, where its live numbers are, the arguments that must be the same
    ///         objects, and the outline of its result.
    #[allow(clippy::type_complexity, reason = "what Python gives in one list")]
    fn set(
        &self,
        kinds: &[u8],
        modes: u32,
        captures: Vec<(
            Py<PyCapturedProgram>,
            Py<PyGuards>,
            Vec<(Py<PyDict>, Py<PyAny>)>,
            Vec<(usize, Py<PyAny>)>,
            Bound<'_, PyAny>,
        )>,
    ) -> PyResult<()> {
        let mut new = Captures::new();
        for (program, guards, live, pinned, outline) in captures {
            new.push(Arc::new(Direct { program, guards, live, pinned, result: Form::new(&outline)? }));
        }
        let key = (SmallVec::from_slice(kinds), modes);
        let old = match new.is_empty() {
            true => lock(&self.captures).remove(&key),
            false => lock(&self.captures).insert(key, new),
        };
        drop(old);
        Ok(())
    }

    /// Forget all captures.
    fn clear(&self) {
        self.__clear__();
        self.replays.store(0, Ordering::Relaxed);
    }

    /// The number of replays.
    #[getter]
    fn replays(&self) -> ToObject<usize> {
        ToObject(self.replays.load(Ordering::Relaxed))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // The collector must not wait for a lock.
        let Ok(captures) = self.captures.try_lock() else { return Ok(()) };
        captures.values().flatten().try_for_each(|direct| direct.traverse(&visit))
    }

    fn __clear__(&self) {
        let old = std::mem::take(&mut *lock(&self.captures));
        drop(old);
    }
}

impl PyDirectReplays {
    /// The captures for calls like this one.
    fn fitting(&self, args: &Bound<'_, PyTuple>) -> Option<(Key, Captures)> {
        let is_plain = IS_PERMITTED.load(Ordering::Relaxed)
            && !watch::has(watch::DEVICE | watch::CASTS)
            && !access::captures();
        if !is_plain {
            return None;
        }
        let key = (kinds_of(args)?, thread_modes()?);
        let captures = lock(&self.captures).get(&key).cloned()?;
        Some((key, captures))
    }

    /// Lets the next call of this kind try a capture first.
    fn prefer(&self, key: &Key, direct: &Arc<Direct>) {
        if let Some(captures) = lock(&self.captures).get_mut(key)
            && let Some(at) = captures.iter().position(|other| Arc::ptr_eq(other, direct))
        {
            captures[..=at].rotate_right(1);
        }
    }
}
