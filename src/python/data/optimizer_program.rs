//! Programs of pointwise rows, for Python.

use crate::base::Error;
use crate::operator::group::{Node, Program, Rule, Run, Scalars};
use crate::python::compile::program::live_index;
use crate::python::types::{PyDType, type_name};
use crate::python::wrapper::class::PyTensor;
use crate::tensor::Tensor;
use gradiron_macros::pymethods;
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyTuple};
use smallvec::SmallVec;
use std::sync::Arc;

/// Pointwise arithmetic on several tensors in one pass. A value is a tuple: the name of a pointwise row, the values that
/// are its operands, the scalar to whose dtype numbers are rounded, and optionally the dtype to which operators would
/// promote the operands.
#[pyclass(frozen, name = "Program", module = "gradiron._core")]
pub struct PyProgram(Arc<Rule>);

fn node(tuple: &Bound<'_, PyTuple>) -> PyResult<Node> {
    let word: String = tuple.get_item(0)?.extract()?;
    let index = || tuple.get_item(1)?.extract::<usize>();
    Ok(match word.as_str() {
        "operand" => Node::Operand(index()?),
        "scalar" => Node::Scalar(index()?),
        "number" => Node::Number(index()?),
        "constant" => Node::Constant(tuple.get_item(1)?.extract()?),
        "detached" => Node::Detached(index()?),
        name => {
            let row = crate::ops::pointwise_rows()
                .find(|row| row.row.name == name)
                .ok_or_else(|| Error::runtime(format!("a program has no operation `{name}`")))?;
            let args: SmallVec<[usize; 4]> = tuple.get_item(1)?.extract::<Vec<usize>>()?.into();
            let dtype =
                if tuple.len() > 3 { Some(tuple.get_item(3)?.cast::<PyDType>()?.get().0) } else { None };
            Node::Apply { row, args, dtype, rounded: tuple.get_item(2)?.extract()? }
        }
    })
}

fn tensors(list: &Bound<'_, PyAny>) -> PyResult<Vec<Tensor>> {
    let mut tensors = Vec::with_capacity(list.len().unwrap_or(0));
    for item in list.try_iter()? {
        tensors.push(tensor(&item?)?);
    }
    Ok(tensors)
}

fn tensor(object: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    match object.cast::<PyTensor>() {
        Ok(tensor) if tensor.get().tensor.is_sparse() => {
            Err(PyRuntimeError::new_err("the rules of optimizers do not support sparse gradients"))
        }
        Ok(tensor) => Ok(tensor.get().tensor.clone()),
        Err(_) => Err(PyTypeError::new_err(format!("expected a Tensor, but got {}", type_name(object)))),
    }
}

#[pymethods]
impl PyProgram {
    #[new]
    fn new(
        nodes: Vec<Bound<'_, PyTuple>>,
        operands: usize,
        scalars: usize,
        numbers: usize,
        results: Vec<(usize, usize)>,
        kept: Vec<(usize, usize)>,
    ) -> PyResult<PyProgram> {
        let nodes = nodes.iter().map(node).collect::<PyResult<_>>()?;
        let rule = Rule::new(Program { nodes, operands, scalars, numbers, results, kept })?;
        Ok(PyProgram(Arc::new(rule)))
    }

    /// Runs the program over lists of tensors; a scalar is a list with one per tensor, or a single one for
    /// all. Returns false if it did nothing because these tensors need operators.
    fn run(
        &self,
        py: Python<'_>,
        operands: Vec<Bound<'_, PyAny>>,
        scalars: Vec<Bound<'_, PyAny>>,
        numbers: Vec<Bound<'_, PyAny>>,
        rounds: bool,
    ) -> PyResult<bool> {
        let operands = operands.iter().map(tensors).collect::<PyResult<Vec<_>>>()?;
        let scalar = |list: &Bound<'_, PyAny>| match list.cast::<PyTensor>() {
            Ok(one) => Ok(Scalars::One(one.get().tensor.clone())),
            Err(_) => tensors(list).map(Scalars::Each),
        };
        let scalars = scalars.iter().map(scalar).collect::<PyResult<Vec<_>>>()?;
        let number = |number: &Bound<'_, PyAny>| match number.cast::<PyFloat>() {
            Ok(float) => float.extract(),
            Err(_) => number.call_method0("__float__").and_then(|float| float.extract::<f64>()),
        };
        let live = numbers.iter().enumerate().filter_map(|(at, number)| Some((at, live_index(number)?)));
        let live: SmallVec<[(usize, u32); 4]> = live.collect();
        let numbers = numbers.iter().map(number).collect::<PyResult<Vec<f64>>>()?;
        let run = Run { operands: &operands, scalars: &scalars, numbers: &numbers, live: &live, rounds };
        Ok(py.detach(|| self.0.run(&run))?)
    }
}
