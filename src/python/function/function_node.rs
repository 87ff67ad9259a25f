//! The node of a custom Function, which calls the class's `backward` with the context.

use crate::base::lock;
use crate::base::{DType, Guidance};
use crate::operator::primitives::constant;
use crate::python::errors;
use crate::python::function::context::{Ctx, Flags};
use crate::python::function::options::GradOptions;
use crate::python::graph::node;
use crate::python::objects::{ClassName, tuple};
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::tensor::{Custom, Edge, Grads, Kind, Node, NodeRef, Step};
use gradiron_macros::pyfunction;
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;
use smallvec::SmallVec;
use std::any::Any;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The class whose `backward` is called, and its context.
pub struct PyFunction {
    pub class: Py<PyAny>,
    /// None while the context keeps the node alive.
    pub ctx: Mutex<Option<Py<Ctx>>>,
    /// Flags for forward's arguments and for its outputs: true for a tensor.
    pub variables: Flags,
    pub tensors: Flags,
    /// Edges for the gradients of saved tensors that are neither inputs nor outputs.
    pub others: Vec<Edge>,
    /// Options for the outputs and their gradients, if the call set any.
    pub grad_options: Option<Box<GradOptions>>,
}

impl Custom for PyFunction {
    fn name(&self) -> String {
        let named = |py: Python<'_>| self.context(py)?.class_name().ok();
        Python::attach(named).unwrap_or_else(|| "Function".into())
    }
    fn apply(&self, step: &Step) -> crate::base::Result<Grads> {
        Python::attach(|py| self.backward(py, step)).map_err(errors::carry)
    }
    fn is_tensor(&self, input: usize) -> bool {
        self.variables.get(input).copied().unwrap_or(false)
    }
    fn dtype(&self, output: usize) -> Option<DType> {
        self.grad_options.as_ref()?.dtype(output)
    }
    fn others(&self) -> &[Edge] {
        &self.others
    }
    fn takes_any(&self, output: usize) -> bool {
        self.grad_options.as_ref().is_some_and(|grad_options| grad_options.takes_any(output))
    }
    fn host(&self) -> *mut c_void {
        self.held().as_ref().map_or(std::ptr::null_mut(), |ctx| ctx.as_ptr().cast())
    }
    fn is_shown(&mut self) -> bool {
        let held = self.ctx.get_mut().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().is_some_and(node::has_others)
    }
    fn give_to_host(&self, node: &NodeRef) {
        let held = self.held().take();
        if let Some(ctx) = &held {
            ctx.get().keep_node(node.clone());
        }
    }
    fn visit_hosts(&self, see: &mut dyn FnMut(*mut c_void)) {
        // Whoever holds the lock now is outside of the cycle.
        if let Ok(held) = self.ctx.try_lock() {
            held.iter().for_each(|ctx| see(ctx.as_ptr().cast()));
        }
        see(self.class.as_ptr().cast());
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The placeholder for `backward` and `vjp` that the Python side registers; a class that has it implements
/// neither.
static NONE_OWN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

#[pyfunction]
pub fn register_function(py: Python<'_>, none_own: Py<PyAny>) {
    let _ = NONE_OWN.set(py, none_own);
}

impl PyFunction {
    pub fn of(node: &Node) -> Option<&PyFunction> {
        if let Kind::Custom(custom) = &node.kind { custom.as_any().downcast_ref() } else { None }
    }

    fn held(&self) -> MutexGuard<'_, Option<Py<Ctx>>> {
        lock(&self.ctx)
    }

    /// Keeps the context alive, which has kept the node alive so far.
    pub fn keep(&self, ctx: &Bound<'_, Ctx>) {
        *self.held() = Some(ctx.clone().unbind());
    }

    fn context<'py>(&self, py: Python<'py>) -> Option<Bound<'py, Ctx>> {
        self.held().as_ref().map(|ctx| ctx.bind(py).clone())
    }

    /// Returns the class's `backward`, or its alias `vjp`.
    fn method<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let class = self.class.bind(py);
        let (backward, vjp) = (class.getattr(intern!(py, "backward"))?, class.getattr(intern!(py, "vjp"))?);
        let own = |method: &Bound<'_, PyAny>| NONE_OWN.get(py).is_none_or(|none| !method.is(none));
        match (own(&backward), own(&vjp)) {
            (true, true) => Err(PyRuntimeError::new_err(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one \
                 of them.",
            )),
            (_, true) => Ok(vjp),
            _ => Ok(backward),
        }
    }

    /// An error about the result of `backward`.
    #[cold]
    fn guided(&self, node: &Node, what: String, advice: &str) -> PyErr {
        let message = format!("function {} returned {what}", self.name());
        Guidance::new(message).node("operator", node).advice(advice).done().into()
    }

    fn backward(&self, py: Python<'_>, step: &Step) -> PyResult<Grads> {
        let Some(ctx) = self.context(py) else {
            return Err(PyRuntimeError::new_err("the context of this Function has been freed"));
        };
        let keep_none = ctx.get().state().keep_none;
        let mut arguments: SmallVec<[Bound<'_, PyAny>; 4]> = smallvec::smallvec![ctx.into_any()];
        for (i, (grad, meta)) in step.grads.iter().zip(&step.node.outputs).enumerate() {
            let grad_options = self.grad_options.as_deref();
            arguments.push(match grad {
                Some(g) => wrap(py, g.clone())?,
                None if keep_none || !self.tensors[i] => py.None().into_bound(py),
                None if grad_options.is_some_and(|grad_options| grad_options.stays_none(i)) => {
                    py.None().into_bound(py)
                }
                None => {
                    let dtype =
                        grad_options.and_then(|grad_options| grad_options.dtype(i)).unwrap_or(meta.dtype);
                    wrap(py, constant::zeros(&meta.shape, dtype, meta.device)?)?
                }
            });
        }
        let method = self.method(py)?;
        let arguments = match &self.grad_options {
            Some(grad_options) if grad_options.boxed => grad_options.in_a_list(py, arguments)?,
            _ => tuple(py, arguments)?,
        };
        let returned = method.call1(arguments)?;
        let mut values: SmallVec<[Bound<'_, PyAny>; 4]> = match returned.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().collect(),
            Err(_) => smallvec::smallvec![returned],
        };
        if values.len() > self.variables.len() && values[self.variables.len()..].iter().all(|v| v.is_none()) {
            values.truncate(self.variables.len());
        }
        if values.len() != self.variables.len() {
            return Err(self.guided(
                step.node,
                format!(
                    "an incorrect number of gradients (expected {}, got {})",
                    self.variables.len(),
                    values.len()
                ),
                "return one gradient for each argument of forward after ctx, None for those that have none",
            ));
        }
        let mut out = Grads::new();
        for (i, value) in values.iter().enumerate() {
            out.push(match value.cast::<PyTensor>() {
                _ if value.is_none() => None,
                _ if !self.variables[i] => {
                    return Err(self.guided(
                        step.node,
                        format!(
                            "a gradient different than None at position {}, but the corresponding forward input was not a \
                             Variable",
                            i + 1
                        ),
                        "return None there",
                    ));
                }
                Ok(t) => Some(t.get().tensor.clone()),
                Err(_) => {
                    let message = format!("expected Variable or None (got {})", value.class_name()?);
                    let advice = "let backward return tensors, None where there is no gradient";
                    return Err(Guidance::new(message).node("operator", step.node).advice(advice).done().into());
                }
            });
        }
        Ok(out)
    }
}
