//! Further options of a Function and its context: declared dtypes of gradients, gradients in one list,
//! saved tensors that can be read only once, and access to the buffers that its gradients are added to.

use crate::backward::sum_buffers;
use crate::base::DType;
use crate::operator::inplace::write::count_write;
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

/// The bits of a class's style: it defines `setup_context`; `boxed_grads_call`;
/// `clear_saved_tensors_on_access`; the last one is not a bool.
pub const SETUP: u8 = 1;
const BOXED: u8 = 2;
const ONCE: u8 = 4;
const WRONG: u8 = 8;

/// The number of times that `saved_tensors` can still be read.
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
    /// If set, missing gradients of non-differentiable outputs stay None.
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

/// The options of a call for its outputs and their gradients.
pub struct GradOptions {
    pub boxed: bool,
    outputs: SmallVec<[Output; 2]>,
}

struct Output {
    dtype: Option<DType>,
    wanted: GradDType,
    stays_none: bool,
}

/// The dtype in which `backward` gets a gradient.
#[derive(Clone, Copy)]
enum GradDType {
    Own,
    Any,
    This(DType),
}

impl GradOptions {
    /// Declares the dtypes to which the engine casts the gradients.
    pub fn declare(&self, metas: &mut [Meta]) {
        for (output, meta) in self.outputs.iter().zip(metas) {
            if let GradDType::This(dtype) = output.wanted {
                meta.dtype = dtype;
            }
        }
    }

    /// Returns true if a gradient keeps its dtype even if the output has another.
    pub fn takes_any(&self, output: usize) -> bool {
        self.outputs.get(output).is_some_and(|o| matches!(o.wanted, GradDType::Any))
    }

    /// Returns true if a missing gradient stays None.
    pub fn stays_none(&self, output: usize) -> bool {
        self.outputs.get(output).is_some_and(|o| o.stays_none)
    }

    /// Returns the dtype of an output.
    pub fn dtype(&self, output: usize) -> Option<DType> {
        self.outputs.get(output)?.dtype
    }

    /// Converts `(ctx, *grads)` to `(ctx, [*grads])`, so that the user can free gradients by emptying the
    /// list.
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
    /// Returns this call's options, checked against its outputs; None if it has none.
    pub fn grad_options(
        &self,
        py: Python<'_>,
        outputs: &[Option<Tensor>],
        differentiable: impl Fn(&Tensor) -> bool,
    ) -> PyResult<Option<Box<GradOptions>>> {
        let (boxed, plain_stay_none, declared) = {
            let mut state = self.state();
            let options = &mut state.options;
            if !options.boxed && !options.plain_stay_none && options.grad_dtypes.is_none() {
                return Ok(None);
            }
            (options.boxed, options.plain_stay_none, options.grad_dtypes.take())
        };
        let mut wanted: SmallVec<[GradDType; 2]> = smallvec::smallvec![GradDType::Own; outputs.len()];
        if let Some(declared) = &declared {
            wanted = declarations(declared.bind(py), outputs, &differentiable)?;
        }
        let describe = |(t, wanted): (&Option<Tensor>, GradDType)| Output {
            dtype: t.as_ref().map(Tensor::dtype),
            wanted,
            stays_none: plain_stay_none && t.as_ref().is_some_and(|t| !differentiable(t)),
        };
        let outputs = outputs.iter().zip(wanted).map(describe).collect();
        Ok(Some(Box::new(GradOptions { boxed, outputs })))
    }
}

fn declarations(
    declared: &Bound<'_, PyTuple>,
    outputs: &[Option<Tensor>],
    differentiable: &impl Fn(&Tensor) -> bool,
) -> PyResult<SmallVec<[GradDType; 2]>> {
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
            wanted.push(GradDType::Any);
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
        wanted.push(GradDType::This(dtype));
    }
    Ok(wanted)
}

/// Forward's requests about its tensors: which to save, which it wrote in place, and which are not
/// differentiable.
pub struct Requests {
    pub to_save: Option<Py<PyTuple>>,
    pub dirty: Vec<Option<Tensor>>,
    pub plain: Vec<Option<Tensor>>,
}

impl Requests {
    pub fn read(
        py: Python<'_>,
        to_save: Option<Py<PyAny>>,
        dirty: Option<Py<PyAny>>,
        plain: Option<Py<PyAny>>,
    ) -> PyResult<Requests> {
        Ok(Requests {
            to_save: tuple_of(py, "to_save", to_save)?.map(Bound::unbind),
            dirty: tensors_of(
                tuple_of(py, "dirty_tensors", dirty)?,
                // Forward has written the tensor, so the write is counted even if the call fails later.
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

/// Reads a tuple of tensors; raises for anything else.
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

/// Reads an attribute of a context that must be a tuple or None.
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

/// Defines getters and setters of the tuples that a context is given.
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
    /// Declares the dtypes in which `backward` gets the gradients of the outputs; None leaves a gradient
    /// unchanged.
    #[pyo3(signature = (*dtypes))]
    fn set_output_grad_dtype(&self, dtypes: &Bound<'_, PyTuple>) -> PyResult<()> {
        let mut state = self.state();
        if state.options.grad_dtypes.is_some() {
            return Err(PyRuntimeError::new_err("set_output_grad_dtype can only be called once"));
        }
        state.options.grad_dtypes = Some(dtypes.clone().unbind());
        Ok(())
    }
    /// The dtypes given to `set_output_grad_dtype`; None after forward has returned.
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
    /// For each argument of forward the sum of the gradients that reached it so far in this backward, if
    /// that can be added to in place. A `backward` that does so returns None for the argument.
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
    /// Does nothing: saved tensors that can be read only once are released by the first read; others stay.
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
    /// Copies the hooks of an output of this node to the node.
    fn _register_hook_dict(slf: &Bound<'_, Self>, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        hooks::copy_tensor_hooks(Ctx::node(slf).as_ref(), tensor)
    }
}
