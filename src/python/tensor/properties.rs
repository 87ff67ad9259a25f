//! Properties of a tensor: sizes, device, graph, gradient, data.
#![allow(unsafe_op_in_unsafe_fn, reason = "PyO3's expansion counts as our code")]

use crate::base::{Error, Guidance, MemoryFormat, watch};
use crate::operator::Kind;
use crate::operator::primitives::detached;
use crate::ops;
use crate::python::call::overrides::OverrideCall;
use crate::python::call::signature_errors::wrong_type;
use crate::python::graph::hooks;
use crate::python::graph::node::node_object;
use crate::python::modes::profile;
use crate::python::numbers::int_from;
use crate::python::objects::{ClassName, ToObject, number_object, numbers, to_object};
use crate::python::size::size_object;
use crate::python::transforms::func;
use crate::python::transforms::vmap;
use crate::python::types;
use crate::python::types::{PyDType, device_object, dtype_object};
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::python::wrapper::grad_cycles;
use crate::storage::{UNTRACKED, access};
use crate::tensor::GradType;
use crate::tensor::levels::func::{self as transform, is_sample};
use gradiron_macros::pymethods;
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyUserWarning};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

const NON_LEAF_GRAD: &std::ffi::CStr = c"The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its \
    .grad attribute won't be populated during autograd.backward(). If you indeed want the .grad field to be populated for \
    a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure \
    you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more informations.";

/// Reads the `dim` argument of a method that has no row.
fn dim_argument(function: &str, object: &Bound<'_, PyAny>) -> PyResult<i64> {
    int_from(object).ok_or_else(|| wrong_type(function, "dim", Kind::Int, Some(1), object))
}

fn shape_attribute<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
    size_object(slf.py(), &slf.get().tensor.body().layout.shape)
}

impl PyTensor {
    /// Sets `.grad`; other threads may run while this waits for a backward.
    fn put_grad(&self, py: Python<'_>, grad: Option<&crate::tensor::Tensor>) {
        if !self.tensor.try_set_grad(grad) {
            py.detach(|| self.tensor.set_grad(grad.cloned()));
        }
    }
}

/// An optional argument, for which None differs from a missing one.
struct OptionalArg<'py>(Option<Bound<'py, PyAny>>);

impl<'a, 'py> FromPyObject<'a, 'py> for OptionalArg<'py> {
    type Error = PyErr;
    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<OptionalArg<'py>> {
        Ok(OptionalArg(Some(object.to_owned())))
    }
}

#[pymethods]
impl PyTensor {
    /// The size of each dimension.
    #[getter]
    fn shape<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        shape_attribute(slf)
    }
    /// Return the size of each dimension, or of one.
    ///
    /// Args:
    ///     dim: which dimension; all if not given.
    #[pyo3(signature = (dim = None))]
    fn size<'py>(slf: &Bound<'py, PyTensor>, dim: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        match dim.map(|d| dim_argument("size", d)).transpose()? {
            None => shape_attribute(slf),
            Some(dim) => {
                let shape = slf.get().tensor.shape();
                let n = shape.get(crate::base::wrap_dim(dim, shape.len())?).copied();
                let n =
                    n.ok_or_else(|| Error::index("Dimension specified as 0 but tensor has no dimensions"))?;
                to_object(slf.py(), n)
            }
        }
    }
    /// Return the step in memory between neighboring elements of each dimension, in elements, or of one.
    ///
    /// Args:
    ///     dim: which dimension; all if not given.
    #[pyo3(signature = (dim = None))]
    fn stride<'py>(
        slf: &Bound<'py, PyTensor>,
        dim: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let strides = slf.get().tensor.body().layout.strides.clone();
        match dim.map(|d| dim_argument("stride", d)).transpose()? {
            None => Ok(numbers(slf.py(), &strides)?.into_any()),
            Some(dim) => {
                let n = strides.get(crate::base::wrap_dim(dim, strides.len())?).copied();
                let n =
                    n.ok_or_else(|| Error::index("Dimension specified as 0 but tensor has no dimensions"))?;
                to_object(slf.py(), n)
            }
        }
    }
    /// Return the place of the first element in the storage, in elements.
    fn storage_offset(&self) -> ToObject<usize> {
        ToObject(self.tensor.body().layout.offset)
    }
    /// Return the number of elements.
    fn numel(&self) -> ToObject<usize> {
        ToObject(self.tensor.numel())
    }
    /// Return the number of elements; the same as `numel`.
    fn nelement(&self) -> ToObject<usize> {
        ToObject(self.tensor.numel())
    }
    /// Return the number of bytes of one element.
    fn element_size(&self) -> ToObject<usize> {
        ToObject(self.tensor.dtype().size())
    }
    /// The number of bytes of one element.
    #[getter]
    fn itemsize(&self) -> ToObject<usize> {
        ToObject(self.tensor.dtype().size())
    }
    /// The number of bytes of all elements.
    #[getter]
    fn nbytes(&self) -> ToObject<usize> {
        ToObject(self.tensor.numel() * self.tensor.dtype().size())
    }
    /// Return the number of dimensions.
    fn dim(&self) -> ToObject<usize> {
        ToObject(self.tensor.ndim())
    }
    /// The number of dimensions.
    #[getter]
    fn ndim(&self) -> ToObject<usize> {
        ToObject(self.tensor.ndim())
    }
    /// Tell whether the elements lie in order in memory, without gaps.
    ///
    /// Args:
    ///     memory_format: the order that is asked about; `torch.contiguous_format` if not given.
    #[pyo3(signature = (*args, memory_format = None))]
    fn is_contiguous(&self, args: &Bound<'_, PyTuple>, memory_format: Option<&str>) -> PyResult<bool> {
        let format = memory_format.map_or(Ok(MemoryFormat::Contiguous), types::memory_format)?;
        match args.len() {
            0 => Ok(format.holds(&self.tensor.body().layout)),
            n => Err(PyTypeError::new_err(format!(
                "is_contiguous() takes 0 positional arguments but {n} {} given",
                if n == 1 { "was" } else { "were" }
            ))),
        }
    }
    /// Tell whether the data type is a floating point one.
    fn is_floating_point(&self) -> bool {
        self.tensor.dtype().is_float()
    }
    /// Return the address of the first element.
    fn data_ptr(&self) -> PyResult<ToObject<usize>> {
        vmap::need_storage(&self.tensor)?;
        let body = self.tensor.body();
        let start = body.storage.address().unwrap_or_else(|| body.storage.id());
        let nowhere = body.numel() == 0 || body.device().is_meta();
        Ok(ToObject(if nowhere { 0 } else { start + body.layout.offset * body.dtype.size() }))
    }
    /// Returns the id of the storage: equal for tensors that share memory.
    fn _storage_id(&self) -> ToObject<usize> {
        ToObject(self.tensor.body().storage.id())
    }
    fn _storage_bytes(&self) -> ToObject<usize> {
        ToObject(self.tensor.body().storage.len())
    }
    /// The data type of the elements.
    #[getter]
    fn dtype(slf: &Bound<'_, PyTensor>) -> PyResult<Py<PyDType>> {
        dtype_object(slf.py(), slf.get().tensor.dtype())
    }
    /// The device on which the elements lie.
    #[getter(device)]
    fn place<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Py<types::PyDevice>> {
        device_object(slf.py(), slf.get().tensor.device())
    }
    /// Whether the elements lie on a GPU.
    #[getter]
    fn is_cuda(&self) -> bool {
        self.tensor.device().is_gpu()
    }
    /// Whether the elements lie in the memory of the CPU.
    #[getter]
    fn is_cpu(&self) -> bool {
        self.tensor.device().is_cpu()
    }
    /// Whether the tensor has a shape and a data type, but no elements.
    #[getter]
    fn is_meta(&self) -> bool {
        self.tensor.device().is_meta()
    }
    /// Return the index of the GPU; -1 for the CPU.
    #[pyo3(name = "get_device")]
    fn device_index(&self) -> i64 {
        match self.tensor.device() {
            crate::base::Device::Cpu | crate::base::Device::Meta => -1,
            crate::base::Device::Gpu(_, index) => i64::from(index),
        }
    }
    /// Whether the tensor is a leaf of the graph: no recorded operation computed it.
    #[getter]
    fn is_leaf(&self) -> PyResult<bool> {
        self.tensor.check_view()?;
        Ok(transform::is_leaf(&self.tensor))
    }
    /// Whether autograd records operations on this tensor.
    #[getter]
    fn requires_grad(&self) -> bool {
        transform::requires_grad(&self.tensor)
    }
    #[setter]
    fn set_requires_grad(&self, on: &Bound<'_, PyAny>) -> PyResult<()> {
        let on = on.extract().map_err(|_| PyRuntimeError::new_err("requires_grad must be a bool"))?;
        if on && !self.tensor.dtype().is_differentiable() {
            return Err(PyRuntimeError::new_err(
                "only Tensors of floating point and complex dtype can require gradients",
            ));
        }
        if !self.tensor.is_leaf() {
            let (text, line) = self.tensor.describe();
            let guidance = Guidance::new(if on {
                "you can only change requires_grad flags of leaf variables."
            } else {
                "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a \
                 subgraph that doesn't require differentiation use var_no_grad = var.detach()."
            });
            return Err(guidance.note("tensor", text, line).done().into());
        }
        Ok(self.tensor.set_requires_grad(on)?)
    }
    #[deleter]
    fn delete_requires_grad(&self) -> PyResult<()> {
        Err(PyRuntimeError::new_err("requires_grad must be a bool"))
    }
    /// Set whether autograd records operations on this tensor, and return it.
    ///
    /// Args:
    ///     requires_grad: whether to record them. Default: `True`
    #[pyo3(signature = (requires_grad = OptionalArg(None)), text_signature = "($self, requires_grad=True)")]
    fn requires_grad_<'py>(
        slf: &Bound<'py, PyTensor>,
        requires_grad: OptionalArg<'py>,
    ) -> PyResult<Bound<'py, PyTensor>> {
        let on = requires_grad.0.map(|on| hooks::flag("requires_grad_", "requires_grad", &on));
        vmap::refuse_leaves()?;
        slf.get().tensor.set_requires_grad(on.transpose()?.unwrap_or(true))?;
        Ok(slf.clone())
    }
    /// The gradient that `backward` has accumulated, or None.
    #[getter]
    fn grad<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = slf.py();
        let t = &slf.get().tensor;
        let grad = t.try_grad().unwrap_or_else(|| py.detach(|| t.grad()));
        if grad.is_none() && !t.is_leaf() && !t.retains_grad() {
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), NON_LEAF_GRAD, 1)?;
        }
        grad.map(|g| wrap(py, g)).transpose()
    }
    #[setter]
    fn set_grad(&self, py: Python<'_>, value: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let Some(value) = value.filter(|v| !v.is_none()) else {
            self.put_grad(py, None);
            return Ok(());
        };
        let Ok(grad) = value.cast::<PyTensor>() else {
            return Err(PyTypeError::new_err(format!(
                "assigned grad expected to be a Tensor or None but got grad of type {}",
                value.class_name()?
            )));
        };
        let (own, new) = (self.tensor.body(), grad.get().tensor.body());
        if grad.get().tensor.same(&self.tensor) {
            return Err(PyRuntimeError::new_err("can't assign Variable as its own grad"));
        }
        if let Some(dtype) = self.tensor.grad_dtype().filter(|dtype| *dtype != new.dtype) {
            return Err(PyRuntimeError::new_err(format!(
                "attempting to assign a gradient with dtype '{}' to a tensor with grad_dtype '{}'. The gradient must match \
                 the tensor's grad_dtype, which is its own dtype unless it was set to another one, or to None for any.",
                new.dtype.c_name(),
                dtype.scalar_name()
            )));
        }
        if own.device() != grad.get().tensor.device_of_values() {
            return Err(PyRuntimeError::new_err("assigned grad has data located on a different device"));
        }
        if own.shape() != new.shape() {
            return Err(PyRuntimeError::new_err(format!(
                "attempting to assign a gradient of size '{:?}' to a tensor of size '{:?}'. Please ensure that the gradient \
                 and the tensor are the same size",
                new.shape(),
                own.shape()
            )));
        }
        drop((own, new));
        self.tensor.check_view()?;
        if grad.get().tensor.is_sparse() && access::captures() {
            access::note(|| "a .grad is set to a sparse tensor".into());
        }
        self.put_grad(py, Some(&grad.get().tensor));
        grad_cycles::note(py, &self.tensor, &grad.get().tensor)
    }
    #[deleter]
    fn delete_grad(&self, py: Python<'_>) {
        self.put_grad(py, None);
    }
    /// The data type of this tensor's gradients, or None for any; can be set on leaves.
    #[getter]
    fn grad_dtype(&self, py: Python<'_>) -> PyResult<Option<Py<PyDType>>> {
        self.tensor.grad_dtype().map(|dtype| dtype_object(py, dtype)).transpose()
    }
    #[setter]
    fn set_grad_dtype(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let fault = |text: String| Err(PyRuntimeError::new_err(text));
        let kind = match value.cast::<PyDType>() {
            Ok(dtype) => GradType::Other(dtype.get().0),
            Err(_) if value.is_none() => GradType::Any,
            Err(_) => {
                let name = value.class_name()?;
                return fault(format!("grad_dtype must be a torch.dtype or None, but got {name}"));
            }
        };
        if !self.tensor.is_leaf() {
            return fault("grad_dtype can only be set on leaf tensors.".into());
        }
        if let GradType::Other(dtype) = kind {
            if self.tensor.dtype().is_differentiable() && !dtype.is_differentiable() {
                return fault(format!("gradients are floating point or complex, not {}", dtype.name()));
            }
            if let Some(grad) = value.py().detach(|| self.tensor.grad()).filter(|g| g.dtype() != dtype) {
                return fault(format!(
                    "Cannot set grad_dtype to '{}' because there is already a gradient with dtype '{}'. Please clear the \
                     gradient (.grad = None) before changing grad_dtype, or ensure the new grad_dtype matches the existing \
                     gradient's dtype.",
                    dtype.scalar_name(),
                    grad.dtype().c_name()
                ));
            }
        }
        self.tensor.set_grad_type(kind);
        Ok(())
    }
    /// The node of the graph that computed this tensor; None for leaves.
    #[getter]
    fn grad_fn<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let t = &slf.get().tensor;
        t.check_view()?;
        transform::history(t).map(|edge| node_object(slf.py(), edge.node)).transpose()
    }
    /// The index of this tensor among the outputs of `grad_fn`.
    #[getter]
    fn output_nr(&self) -> ToObject<u32> {
        ToObject(transform::history(&self.tensor).map_or(0, |edge| edge.output))
    }
    /// Whether this tensor is not a leaf and keeps its gradient in `grad`.
    #[getter]
    fn retains_grad(&self) -> bool {
        self.tensor.retains_grad()
    }
    /// Make a tensor that is not a leaf keep its gradient in `grad`.
    fn retain_grad(&self) -> PyResult<()> {
        if self.tensor.requires_grad() {
            vmap::refuse_in_transform("retain_grad", "")?;
        }
        if self.tensor.is_leaf() && self.tensor.requires_grad() {
            return Ok(());
        }
        Ok(self.tensor.retain_grad()?)
    }
    /// How often the elements were changed in place.
    #[getter]
    fn _version(&self) -> PyResult<ToObject<u32>> {
        if self.tensor.version() == UNTRACKED {
            return Err(PyRuntimeError::new_err("Inference tensors do not track version counter."));
        }
        Ok(ToObject(if is_sample(&self.tensor) { 0 } else { self.tensor.version() }))
    }
    /// Tell whether the tensor was made in inference mode.
    fn is_inference(&self) -> bool {
        self.tensor.is_inference()
    }
    /// Tell whether the tensor is a view of another one.
    fn _is_view(&self) -> bool {
        self.tensor.as_view().is_some()
    }
    /// The tensor that this one is a view of, or None.
    #[getter]
    fn _base<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Option<Bound<'py, PyAny>>> {
        slf.get().tensor.as_view().map(|view| wrap(slf.py(), view.base.clone())).transpose()
    }
    /// The same elements without history; autograd does not see what is written through it.
    #[getter]
    fn data<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        if slf.get().tensor.is_batched() {
            return Err(PyRuntimeError::new_err("accessing `data` under vmap transform is not allowed"));
        }
        wrap(slf.py(), detached::data(&slf.get().tensor))
    }
    #[setter]
    fn set_data(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let Ok(other) = value.cast::<PyTensor>() else {
            return Err(PyTypeError::new_err(format!(
                "Variable data has to be a tensor, but got {}",
                value.class_name()?
            )));
        };
        let body = other.get().tensor.body().clone();
        if body.device().is_meta() != self.tensor.device().is_meta() {
            return Err(PyRuntimeError::new_err(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type.",
            ));
        }
        if !body.dtype.is_differentiable() && self.tensor.requires_grad() {
            return Err(PyRuntimeError::new_err(
                "data set to a tensor that requires gradients must be floating point or complex dtype",
            ));
        }
        // The tensor takes over the other's memory, and keeps its own version counter.
        self.tensor.show(body);
        if let Some(parts) = other.get().tensor.coo_parts() {
            self.tensor.set_coo_parts(parts);
        }
        Ok(())
    }
    #[deleter]
    fn delete_data(&self) -> PyResult<()> {
        Err(PyRuntimeError::new_err("Deleting tensor data is not allowed. Delete tensor instead!"))
    }
    /// Return a view of the same elements that is detached from the graph.
    fn detach<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        let name = ops::creation::factories::DETACH.name;
        let mut _span = None;
        if watch::any() {
            if let Some(taken) = OverrideCall::of_method(name, slf, &[]) {
                return taken;
            }
            _span = profile::named(|| name, [slf.as_any()]);
        }
        wrap(slf.py(), detached::shallow(&slf.get().tensor))
    }
    /// Detach the tensor itself from the graph.
    fn detach_<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyTensor>> {
        let t = &slf.get().tensor;
        func::check_write(t, &[], || format!("aten::{}_", ops::creation::factories::DETACH.name))?;
        if crate::tensor::mode::inference() {
            return Ok(slf.clone());
        }
        if t.as_view().is_some() {
            let (text, line) = t.describe();
            let guidance = Guidance::new(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for \
                 training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence \
                 detach_() cannot be called on these gradients. To fix this error, please refer to the \
                 Optimizer.zero_grad() function in torch/optim/optimizer.py as a solution.",
            );
            return Err(guidance.note("view", text, line).done().into());
        }
        if !t.is_leaf() {
            t.detach_history();
        }
        t.drop_tangents();
        t.set_requires_grad(false)?;
        Ok(slf.clone())
    }
    /// Return the only element as a number of Python's.
    fn item<'py>(slf: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
        number_object(slf.py(), slf.get().tensor.item()?)
    }
}
