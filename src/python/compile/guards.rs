//! Guards: what a captured call read of Python's objects, compared before each replay.

use crate::capture::Kind;
use crate::python::compile::constants::matches;
use crate::python::wrapper::class::PyTensor;
use crate::storage::epoch;
use crate::tensor::Tensor;
use crate::tensor::leaf::grad_epoch;
use gradiron_macros::{pyfunction, pymethods};
use pyo3::exceptions::{PyAttributeError, PyValueError};
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple, PyType};
use std::sync::atomic::{AtomicU64, Ordering};

/// What decides which kernels operators run on a tensor: its class, data type, shape, strides, place in the graph, hooks, and
/// whether it has a `.grad` of which kind.
#[pyclass(frozen, name = "TensorKind", module = "gradiron._core")]
pub struct PyTensorKind {
    kind: Kind,
    grad: Option<Kind>,
    class: Py<PyType>,
}

/// Returns what decides which kernels operators run on a tensor, as it is now.
#[pyfunction]
pub fn tensor_kind(tensor: &Bound<'_, PyTensor>) -> PyTensorKind {
    let own = &tensor.get().tensor;
    let grad = own.grad().map(|grad| Kind::of(&grad));
    PyTensorKind { kind: Kind::of(own), grad, class: tensor.get_type().unbind() }
}

impl PyTensorKind {
    /// True if the tensor is of this kind; what `unchanged` says is not compared.
    fn matches(&self, tensor: &Py<PyTensor>, unchanged: Unchanged) -> bool {
        let own = &tensor.get().tensor;
        let same_grad = |grad: Option<&Tensor>| match (&self.grad, grad) {
            (None, None) => true,
            (Some(kind), Some(grad)) => kind.matches(grad),
            _ => false,
        };
        is_of(tensor.as_any(), self.class.as_any())
            && (unchanged.kinds || self.kind.matches(own))
            && (unchanged.grads || own.try_see_grad(same_grad) == Some(true))
    }
}

/// True if this is the class of an object.
fn is_of(object: &Py<PyAny>, class: &Py<PyAny>) -> bool {
    // SAFETY: the object is held, and its class is only compared.
    let own = unsafe { ffi::Py_TYPE(object.as_ptr()) };
    own.cast() == class.as_ptr()
}

/// What no tensor of the process has changed since all guards held.
#[derive(Clone, Copy)]
struct Unchanged {
    kinds: bool,
    /// The `.grad`s, with their kinds.
    grads: bool,
}

/// One read, with the objects that it needs and what it gave; `None` is nothing.
enum Read {
    Type { object: Py<PyAny>, class: Py<PyAny> },
    Vars { object: Py<PyAny>, dict: Py<PyAny> },
    Item { dict: Py<PyDict>, key: Py<PyAny>, value: Option<Py<PyAny>> },
    Element { list: Py<PyList>, at: usize, value: Py<PyAny> },
    Cell { cell: Py<PyAny>, value: Option<Py<PyAny>> },
    Attribute { object: Py<PyAny>, name: Py<PyString>, value: Option<Py<PyAny>> },
    Len { object: Py<PyAny>, len: usize },
    List { list: Py<PyList>, values: Py<PyTuple> },
    Set { set: Py<PyAny>, values: Py<PyTuple> },
    Keys { dict: Py<PyDict>, keys: Py<PyTuple> },
    Dict { dict: Py<PyDict>, keys: Py<PyTuple>, values: Py<PyTuple> },
    Tensor { tensor: Py<PyTensor>, kind: Py<PyTensorKind> },
}

/// True if a value is what was expected; `None` is nothing.
#[inline]
fn is_expected(value: Option<&Bound<'_, PyAny>>, expected: Option<&Py<PyAny>>) -> PyResult<bool> {
    match (value, expected) {
        (None, None) => Ok(true),
        (Some(value), Some(expected)) => Ok(value.is(expected) || matches(value, expected.bind(value.py()))?),
        _ => Ok(false),
    }
}

/// True if a list holds the very objects of a tuple of its length.
fn are_same(list: &Bound<'_, PyList>, values: &Bound<'_, PyTuple>) -> bool {
    // SAFETY: both are held, and what they give is only compared; nothing between the two calls runs other code.
    (0..list.len() as isize).all(|at| unsafe {
        ffi::PyList_GetItem(list.as_ptr(), at) == ffi::PyTuple_GetItem(values.as_ptr(), at)
    })
}

/// True if there are as many values as expected, each as expected.
fn are_expected<'py>(
    values: impl Iterator<Item = PyResult<Bound<'py, PyAny>>>,
    expected: &Bound<'py, PyTuple>,
) -> PyResult<bool> {
    let mut expected = expected.iter();
    for value in values {
        let (value, Some(expected)) = (value?, expected.next()) else { return Ok(false) };
        if !(value.is(&expected) || matches(&value, &expected)?) {
            return Ok(false);
        }
    }
    Ok(expected.next().is_none())
}

/// The value of an attribute; `None` if there is none.
fn attribute<'py>(
    object: &Bound<'py, PyAny>,
    name: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    match object.getattr(name) {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_instance_of::<PyAttributeError>(object.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

impl Read {
    /// Reads a tuple of Python: the kind of read, the object, the key, and what was read.
    fn new(read: &Bound<'_, PyTuple>, missing: &Bound<'_, PyAny>) -> PyResult<Read> {
        let kind: String = read.get_item(0)?.extract()?;
        let (owner, key, expected) = (read.get_item(1)?, read.get_item(2)?, read.get_item(3)?);
        let value = || if expected.is(missing) { None } else { Some(expected.clone().unbind()) };
        let tuple = |object: &Bound<'_, PyAny>| Ok::<_, PyErr>(object.cast::<PyTuple>()?.clone().unbind());
        let dict = || Ok::<_, PyErr>(owner.cast::<PyDict>()?.clone().unbind());
        let list = || Ok::<_, PyErr>(owner.cast::<PyList>()?.clone().unbind());
        let object = owner.clone().unbind();
        Ok(match kind.as_str() {
            "type" => Read::Type { object, class: expected.unbind() },
            "vars" => Read::Vars { object, dict: expected.unbind() },
            "item" => Read::Item { dict: dict()?, key: key.unbind(), value: value() },
            "element" => Read::Element { list: list()?, at: key.extract()?, value: expected.unbind() },
            "cell" => Read::Cell { cell: object, value: value() },
            "attr" => {
                Read::Attribute { object, name: key.cast::<PyString>()?.clone().unbind(), value: value() }
            }
            "len" => Read::Len { object, len: expected.extract()? },
            "list" => Read::List { list: list()?, values: tuple(&expected)? },
            "set" => Read::Set { set: object, values: tuple(&expected)? },
            "keys" => Read::Keys { dict: dict()?, keys: tuple(&expected)? },
            "dict" => {
                let pair = expected.cast::<PyTuple>()?;
                let (keys, values) = (pair.get_item(0)?, pair.get_item(1)?);
                Read::Dict { dict: dict()?, keys: tuple(&keys)?, values: tuple(&values)? }
            }
            "tensor" => Read::Tensor {
                tensor: owner.cast::<PyTensor>()?.clone().unbind(),
                kind: expected.cast::<PyTensorKind>()?.clone().unbind(),
            },
            other => return Err(PyValueError::new_err(format!("there is no read of the kind '{other}'"))),
        })
    }

    /// True if the read gives now what it gave then.
    fn holds(&self, py: Python<'_>, unchanged: Unchanged) -> PyResult<bool> {
        match self {
            Read::Type { object, class } => Ok(is_of(object, class)),
            Read::Vars { object, dict } => {
                let own = attribute(object.bind(py), intern!(py, "__dict__"))?;
                Ok(own.is_some_and(|own| own.is(dict)))
            }
            #[cfg(not(Py_GIL_DISABLED))]
            Read::Item { dict, key, value } => {
                // SAFETY: this thread holds the interpreter's lock, and the dict holds what it returns; a comparison of plain
                // constants changes no dict.
                let found = unsafe { ffi::PyDict_GetItemWithError(dict.as_ptr(), key.as_ptr()) };
                let expected = value.as_ref().map_or(std::ptr::null_mut(), Py::as_ptr);
                if found == expected && !found.is_null() {
                    return Ok(true);
                }
                if found.is_null() {
                    return PyErr::take(py).map_or(Ok(value.is_none()), Err);
                }
                // SAFETY: as above.
                is_expected(Some(&unsafe { Bound::from_borrowed_ptr(py, found) }), value.as_ref())
            }
            #[cfg(Py_GIL_DISABLED)]
            Read::Item { dict, key, value } => {
                is_expected(dict.bind(py).get_item(key.bind(py))?.as_ref(), value.as_ref())
            }
            Read::Element { list, at, value } => {
                let list = list.bind(py);
                Ok(*at < list.len() && is_expected(Some(&list.get_item(*at)?), Some(value))?)
            }
            Read::Cell { cell, value } => match cell.bind(py).getattr(intern!(py, "cell_contents")) {
                Ok(found) => is_expected(Some(&found), value.as_ref()),
                Err(error) if error.is_instance_of::<PyValueError>(py) => Ok(value.is_none()),
                Err(error) => Err(error),
            },
            Read::Attribute { object, name, value } => {
                is_expected(attribute(object.bind(py), name.bind(py))?.as_ref(), value.as_ref())
            }
            Read::Len { object, len } => Ok(object.bind(py).len()? == *len),
            Read::List { list, values } => {
                let (list, values) = (list.bind(py), values.bind(py));
                Ok(list.len() == values.len()
                    && (are_same(list, values) || are_expected(list.iter().map(Ok), values)?))
            }
            Read::Set { set, values } => are_expected(set.bind(py).try_iter()?, values.bind(py)),
            Read::Keys { dict, keys } => {
                let (dict, keys) = (dict.bind(py), keys.bind(py));
                Ok(dict.len() == keys.len() && are_expected(dict.as_any().try_iter()?, keys)?)
            }
            Read::Dict { dict, keys, values } => {
                let (dict, keys) = (dict.bind(py), keys.bind(py));
                Ok(dict.len() == keys.len()
                    && are_expected(dict.as_any().try_iter()?, keys)?
                    && are_expected(dict.call_method0(intern!(py, "values"))?.try_iter()?, values.bind(py))?)
            }
            Read::Tensor { tensor, kind } => Ok(kind.get().matches(tensor, unchanged)),
        }
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        match self {
            Read::Type { object: a, class: b } | Read::Vars { object: a, dict: b } => {
                visit.call(a)?;
                visit.call(b)
            }
            Read::Item { dict, key, value } => {
                visit.call(dict)?;
                visit.call(key)?;
                visit.call(value)
            }
            Read::Element { list, value, .. } => {
                visit.call(list)?;
                visit.call(value)
            }
            Read::Cell { cell: object, value } | Read::Attribute { object, value, .. } => {
                visit.call(object)?;
                visit.call(value)
            }
            Read::Len { object, .. } => visit.call(object),
            Read::List { list, values } => {
                visit.call(list)?;
                visit.call(values)
            }
            Read::Set { set, values } => {
                visit.call(set)?;
                visit.call(values)
            }
            Read::Keys { dict, keys } => {
                visit.call(dict)?;
                visit.call(keys)
            }
            Read::Dict { dict, keys, values } => {
                visit.call(dict)?;
                visit.call(keys)?;
                visit.call(values)
            }
            Read::Tensor { tensor, kind } => {
                visit.call(tensor)?;
                visit.call(kind)
            }
        }
    }
}

/// The reads of a captured call.
///
/// Args:
///     reads: tuples of the kind of read, the object, the key, and what was read.
///     missing: what stands for nothing in them.
#[pyclass(name = "Guards", module = "gradiron._core")]
pub struct PyGuards {
    reads: Vec<Read>,
    /// The epochs in which the kinds of all tensors and of their `.grad`s were compared.
    epoch: AtomicU64,
    grad_epoch: AtomicU64,
}

impl PyGuards {
    pub fn first_failed(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        let (now, grads_now) = (epoch::now(), grad_epoch::now());
        let kinds = self.epoch.load(Ordering::Relaxed) == now;
        // The kind of a `.grad` may change without another epoch of `.grad`s.
        let unchanged =
            Unchanged { kinds, grads: kinds && self.grad_epoch.load(Ordering::Relaxed) == grads_now };
        for (number, read) in self.reads.iter().enumerate() {
            if !read.holds(py, unchanged)? {
                return Ok(Some(number));
            }
        }
        self.epoch.store(now, Ordering::Relaxed);
        self.grad_epoch.store(grads_now, Ordering::Relaxed);
        Ok(None)
    }
}

#[pymethods]
impl PyGuards {
    #[new]
    fn new(reads: Vec<Bound<'_, PyTuple>>, missing: &Bound<'_, PyAny>) -> PyResult<PyGuards> {
        let reads = reads.iter().map(|read| Read::new(read, missing)).collect::<PyResult<_>>()?;
        Ok(PyGuards { reads, epoch: AtomicU64::new(0), grad_epoch: AtomicU64::new(0) })
    }

    /// Return the number of the first read that gives something else now; None if there is none.
    fn failed(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        self.first_failed(py)
    }

    fn __len__(&self) -> usize {
        self.reads.len()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.reads.iter().try_for_each(|read| read.traverse(&visit))
    }

    fn __clear__(&mut self) {
        self.reads.clear();
    }
}
