//! What a Function and its context may ask for beside saving and marking: gradients of declared dtypes or in one list,
//! saved tensors that are read once, and a look at the sums that its results are added to.

use crate::backward::sum_buffers;
use crate::base::DType;
use crate::operator::write::count_write;
use crate::python::function::context::Ctx;
use crate::python::graph::hooks;
use crate::python::objects::{ClassName, list, to_tuple, tuple};
use crate::python::types::PyDType;
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::tensor::{Meta, Tensor};
use gradiron_macros::pymethods;
use pyo3::exceptions::{PyAttributeError, PyRuntimeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};
use smallvec::SmallVec;

/// The bits of a class's style: it has its own `setup_context`; `boxed_grads_call`; `clear_saved_tensors_on_access`; the last
/// one is no bool.
pub const SETUP: u8 = 1;
const BOXED: u8 = 2;
const ONCE: u8 = 4;
const WRONG: u8 = 8;

/// How often `saved_tensors` may be read.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Read {
    #[default]
    Often,
    Once,
    Done,
}

impl Read {
    pub fn check(self) -> PyResult<()> {
        if self != Read::Done {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(
            "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the autograd.Function. \
             Either access saved_tensors only once, or set clear_saved_tensors_on_access=False.",
        ))
    }
}

#[derive(Default)]
pub struct Options {
    pub read: Read,
    boxed: bool,
    /// Whether missing gradients of outputs that are not differentiable stay None.
    plain_stay_none: bool,
    grad_dtypes: Option<Py<PyTuple>>,
}

impl Options {
    #[cold]
    pub fn of(class: &Bound<'_, PyAny>, style: u8) -> PyResult<Options> {
        if style & WRONG != 0 {
            let given = class.getattr(intern!(class.py(), "clear_saved_tensors_on_access"))?;
            return Err(PyRuntimeError::new_err(format!(
                "clear_saved_tensors_on_access must be a bool, got {}",
                given.class_name()?
            )));
        }
        let read = if style & ONCE != 0 { Read::Once } else { Read::Often };
        Ok(Options { read, boxed: style & BOXED != 0, ..Options::default() })
    }
}

/// A call's options for its outputs' gradients.
pub struct Asked {
    pub boxed: bool,
    outputs: SmallVec<[Output; 2]>,
}

struct Output {
    dtype: Option<DType>,
    wanted: Wanted,
    stays_none: bool,
}

/// The dtype of a gradient as `backward` gets it.
#[derive(Clone, Copy)]
enum Wanted {
    Own,
    Any,
    This(DType),
}

impl Asked {
    /// Lets the engine bring the gradients to what was declared.
    pub fn declare(&self, metas: &mut [Meta]) {
        for (output, meta) in self.outputs.iter().zip(metas) {
            if let Wanted::This(dtype) = output.wanted {
                meta.dtype = dtype;
            }
        }
    }

    /// Whether a gradient of another dtype than the output's is left as it is.
    pub fn takes_any(&self, output: usize) -> bool {
        self.outputs.get(output).is_some_and(|o| matches!(o.wanted, Wanted::Any))
    }

    /// Whether a missing gradient stays None.
    pub fn stays_none(&self, output: usize) -> bool {
        self.outputs.get(output).is_some_and(|o| o.stays_none)
    }

    /// The dtype of an output itself.
    pub fn dtype(&self, output: usize) -> Option<DType> {
        self.outputs.get(output)?.dtype
    }

    /// `(ctx, *grads)` as `(ctx, [*grads])`: who empties the list frees them.
    pub fn in_a_list<'py>(
        &self,
        py: Python<'py>,
        arguments: SmallVec<[Bound<'py, PyAny>; 4]>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let mut all = arguments.into_iter();
        let ctx = all.next();
        let grads = list(py, all)?.into_any();
        tuple(py, ctx.into_iter().chain([grads]).collect::<Vec<_>>())
    }
}

impl Ctx {
    /// This call's options, checked against its outputs; None where it has none.
    pub fn asked(
        &self,
        py: Python<'_>,
        outputs: &[Option<Tensor>],
        differentiable: impl Fn(&Tensor) -> bool,
    ) -> PyResult<Option<Box<Asked>>> {
        let (boxed, plain_stay_none, declared) = {
            let mut state = self.state();
            let options = &mut state.options;
            if !options.boxed && !options.plain_stay_none && options.grad_dtypes.is_none() {
                return Ok(None);
            }
            (options.boxed, options.plain_stay_none, options.grad_dtypes.take())
        };
        let mut wanted: SmallVec<[Wanted; 2]> = smallvec::smallvec![Wanted::Own; outputs.len()];
        if let Some(declared) = &declared {
            wanted = declarations(declared.bind(py), outputs, &differentiable)?;
        }
        let describe = |(t, wanted): (&Option<Tensor>, Wanted)| Output {
            dtype: t.as_ref().map(Tensor::dtype),
            wanted,
            stays_none: plain_stay_none && t.as_ref().is_some_and(|t| !differentiable(t)),
        };
        let outputs = outputs.iter().zip(wanted).map(describe).collect();
        Ok(Some(Box::new(Asked { boxed, outputs })))
    }
}

fn declarations(
    declared: &Bound<'_, PyTuple>,
    outputs: &[Option<Tensor>],
    differentiable: &impl Fn(&Tensor) -> bool,
) -> PyResult<SmallVec<[Wanted; 2]>> {
    if declared.len() != outputs.len() {
        return Err(PyRuntimeError::new_err(format!(
            "set_output_grad_dtype expected the number of declarations to match the number of outputs: the Function returned \
             {} values but {} declarations were provided",
            outputs.len(),
            declared.len()
        )));
    }
    let mut wanted = SmallVec::new();
    for (i, (object, output)) in declared.iter().zip(outputs).enumerate() {
        if object.is_none() {
            wanted.push(Wanted::Any);
            continue;
        }
        let Ok(dtype) = object.cast::<PyDType>() else {
            return Err(PyRuntimeError::new_err(format!(
                "set_output_grad_dtype expects each declaration to be a torch.dtype or None, but got {}",
                object.class_name()?
            )));
        };
        if !output.as_ref().is_some_and(differentiable) {
            return Err(PyRuntimeError::new_err(format!(
                "set_output_grad_dtype: got a concrete dtype for output {i}, but that output is not a differentiable tensor (it \
                 is a non-tensor, was marked non-differentiable, or has a non-differentiable dtype). Pass None for output {i} \
                 instead."
            )));
        }
        let dtype = dtype.get().0;
        if !dtype.is_differentiable() {
            return Err(PyRuntimeError::new_err(format!(
                "set_output_grad_dtype: got torch.{} for output {i}, but gradients are floating point or complex",
                dtype.name()
            )));
        }
        wanted.push(Wanted::This(dtype));
    }
    Ok(wanted)
}

/// What forward said of its tensors: which to save, which it wrote in place, and which are not differentiable.
pub struct Said {
    pub to_save: Option<Py<PyTuple>>,
    pub dirty: Vec<Option<Tensor>>,
    pub plain: Vec<Option<Tensor>>,
}

impl Said {
    pub fn read(
        py: Python<'_>,
        to_save: Option<Py<PyAny>>,
        dirty: Option<Py<PyAny>>,
        plain: Option<Py<PyAny>>,
    ) -> PyResult<Said> {
        Ok(Said {
            to_save: tuple_of(py, "to_save", to_save)?.map(Bound::unbind),
            dirty: tensors_of(
                tuple_of(py, "dirty_tensors", dirty)?,
                // Forward wrote it, whatever becomes of the others.
                |written| count_write(&written.body()),
                |i, kind| format!("mark_dirty can only accept variables, but argument {i} is of type {kind}"),
            )?,
            plain: tensors_of(
                tuple_of(py, "non_differentiable", plain)?,
                |_| {},
                |_, kind| format!("mark_non_differentiable only accepts variable arguments, but got {kind}"),
            )?,
        })
    }
}

/// The tensors in a tuple of nothing else.
fn tensors_of(
    tuple: Option<Bound<'_, PyTuple>>,
    found: impl Fn(&Tensor),
    wrong: impl Fn(usize, &str) -> String,
) -> PyResult<Vec<Option<Tensor>>> {
    let one = |(i, a): (usize, Bound<'_, PyAny>)| match a.cast_into::<PyTensor>() {
        Ok(t) => {
            let t = &t.get().tensor;
            found(t);
            Ok(Some(t.clone()))
        }
        Err(e) => {
            let kind = e.into_inner().class_name()?;
            Err(PyRuntimeError::new_err(wrong(i, &kind)))
        }
    };
    tuple.iter().flatten().enumerate().map(one).collect()
}

/// A tuple of a context's, or None.
pub fn tuple_of<'py>(
    py: Python<'py>,
    name: &str,
    value: Option<Py<PyAny>>,
) -> PyResult<Option<Bound<'py, PyTuple>>> {
    let Some(value) = value.map(|value| value.into_bound(py)).filter(|value| !value.is_none()) else {
        return Ok(None);
    };
    value.cast_into::<PyTuple>().map(Some).map_err(|other| {
        let kind = other.into_inner().class_name().unwrap_or_else(|_| "?".into());
        PyRuntimeError::new_err(format!(
            "autograd internal error: {name} attribute is expected to be a tuple but is {kind}"
        ))
    })
}

/// The getter and the setter of what a context was told.
macro_rules! told {
    ($($field:ident, $name:ident, $set:ident;)*) => {
        #[pymethods]
        impl Ctx {
            $(
                #[getter]
                fn $name(&self, py: Python<'_>) -> Option<Py<PyAny>> {
                    self.state().$field.as_ref().map(|said| said.clone_ref(py))
                }
                #[setter($name)]
                pub fn $set(&self, value: &Bound<'_, PyAny>) {
                    let old = self.state().$field.replace(value.clone().unbind());
                    drop(old);
                }
            )*
        }
    };
}

told! {
    to_save, to_save, set_to_save;
    dirty, dirty_tensors, set_dirty;
    non_differentiable, non_differentiable, set_non_differentiable;
    for_forward, saved_for_forward, set_saved_for_forward;
    needs_input_grad, needs_input_grad, set_needs_input_grad;
}

fn flag(name: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.cast::<PyBool>().map(|value| value.is_true()).map_err(|_| {
        PyTypeError::new_err(format!(
            "{name} received an invalid combination of arguments - got (), but expected (bool)"
        ))
    })
}

fn unreadable(name: &str) -> PyErr {
    PyAttributeError::new_err(format!(
        "attribute '{name}' of 'torch._C._FunctionBase' objects is not readable"
    ))
}

#[pymethods]
impl Ctx {
    /// The dtypes in which `backward` gets the gradients of the outputs: None leaves one as it comes.
    #[pyo3(signature = (*dtypes))]
    fn set_output_grad_dtype(&self, dtypes: &Bound<'_, PyTuple>) -> PyResult<()> {
        let mut state = self.state();
        if state.options.grad_dtypes.is_some() {
            return Err(PyRuntimeError::new_err("set_output_grad_dtype can only be called once"));
        }
        state.options.grad_dtypes = Some(dtypes.clone().unbind());
        Ok(())
    }
    /// What `set_output_grad_dtype` was given; None once forward is done.
    #[getter]
    fn output_grad_dtypes(&self, py: Python<'_>) -> Option<Py<PyTuple>> {
        self.state().options.grad_dtypes.as_ref().map(|dtypes| dtypes.clone_ref(py))
    }
    #[setter(output_grad_dtypes)]
    fn set_grad_dtypes(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let dtypes = match value.cast::<PyTuple>() {
            Ok(tuple) => Some(tuple.clone().unbind()),
            Err(_) if value.is_none() => None,
            Err(_) => {
                return Err(PyRuntimeError::new_err(format!(
                    "set_output_grad_dtype expects the declarations to be a tuple, but got: {}",
                    value.class_name()?
                )));
            }
        };
        self.state().options.grad_dtypes = dtypes;
        Ok(())
    }
    /// For each of forward's arguments the sum of the gradients that came for it so far in this backward, where writing into it
    /// adds to it: a `backward` that does so returns None there.
    #[getter]
    fn input_grad_buffers<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        Ctx::_input_grad_buffers(slf)
    }
    #[getter]
    fn _input_grad_buffers<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let (py, node) = (slf.py(), Ctx::node(slf));
        let found = sum_buffers::of(node.as_ref())?;
        let object = |buffer: Option<Tensor>| match buffer {
            Some(tensor) => wrap(py, tensor),
            None => Ok(py.None().into_bound(py)),
        };
        to_tuple(py, found.len(), found.into_iter().map(object))
    }
    /// Saved tensors that may be read once are released by the first read; others stay.
    fn maybe_clear_saved_tensors(&self) {}
    #[getter]
    fn materialize_grads(&self) -> PyResult<bool> {
        Err(unreadable("materialize_grads"))
    }
    #[setter(materialize_grads)]
    fn set_materialize(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.state().keep_none = !flag("set_materialize_grads", value)?;
        Ok(())
    }
    #[getter]
    fn _materialize_non_diff_grads(&self) -> bool {
        !self.state().options.plain_stay_none
    }
    #[setter(_materialize_non_diff_grads)]
    fn set_materialize_plain(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.state().options.plain_stay_none = !flag("set_materialize_non_diff_grads", value)?;
        Ok(())
    }
    /// Lets the hooks of a tensor see what comes to this node for that tensor's place among its outputs.
    fn _register_hook_dict(slf: &Bound<'_, Self>, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        hooks::copy_tensor_hooks(Ctx::node(slf).as_ref(), tensor)
    }
}
