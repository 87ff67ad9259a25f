//! DLPack, both ways: memory shared with other libraries without a copy.

use crate::base::views::checked_numel;
use crate::base::{ConjNeg, DType, Device, Dims, Layout};
use crate::python::transforms::vmap;
use crate::python::wrapper::class::{PyTensor, wrap};
use crate::storage::{Exported, Storage};
use crate::tensor::{Body, Tensor};
use gradiron_macros::pyfunction;
use pyo3::exceptions::{PyBufferError, PyRuntimeError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, c_void};

const FRESH: &CStr = c"dltensor";
const USED: &CStr = c"used_dltensor";
const CPU: i32 = 1;

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: i32,
    device_id: i32,
    ndim: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Managed {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// What an exported tensor keeps alive.
struct Export {
    _tensor: Tensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
    managed: Managed,
}

const CODES: [(DType, u8); 12] = [
    (DType::Bool, 6),
    (DType::U8, 1),
    (DType::I8, 0),
    (DType::I16, 0),
    (DType::I32, 0),
    (DType::I64, 0),
    (DType::F16, 2),
    (DType::BF16, 4),
    (DType::F32, 2),
    (DType::F64, 2),
    (DType::C64, 5),
    (DType::C128, 5),
];

unsafe extern "C" fn drop_export(managed: *mut Managed) {
    // SAFETY: the context is the Box that `export` leaked; consumers call this once.
    unsafe {
        if let Some(managed) = managed.as_mut() {
            drop(Box::from_raw(managed.context.cast::<Export>()));
        }
    }
}

/// Frees a capsule that was not consumed.
unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: Python passes the capsule that is going away; its pointer is ours while it has the fresh name.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, FRESH.as_ptr()) == 1 {
            let managed = ffi::PyCapsule_GetPointer(capsule, FRESH.as_ptr()).cast::<Managed>();
            if let Some(delete) = managed.as_ref().and_then(|m| m.deleter) {
                delete(managed);
            }
        }
    }
}

/// A capsule over the memory of a CPU tensor.
#[pyfunction]
pub fn to_dlpack<'py>(tensor: &Bound<'py, PyTensor>) -> PyResult<Bound<'py, PyAny>> {
    let py = tensor.py();
    let t = &tensor.get().tensor;
    if t.requires_grad() {
        return Err(PyBufferError::new_err(
            "Can't export tensors that require gradient, use tensor.detach()",
        ));
    }
    vmap::need_storage(t)?;
    let body = t.body();
    for (conj_neg, bit) in [(ConjNeg::CONJ, "conjugate"), (ConjNeg::NEG, "negative")] {
        if body.conj_neg.has(conj_neg) {
            return Err(PyBufferError::new_err(format!("Can't export tensors with the {bit} bit set")));
        }
    }
    let Some(base) = body.storage.host() else {
        return Err(PyBufferError::new_err(format!(
            "Can't export a tensor on {} through DLPack: copy it with .cpu()",
            body.device()
        )));
    };
    body.storage.export(Exported::Kept);
    let code = CODES.iter().find(|c| c.0 == body.dtype).map_or(2, |c| c.1);
    let longs = |dims: &Dims| dims.iter().map(|&d| d as i64).collect::<Vec<i64>>();
    let tensor = DlTensor {
        data: base.wrapping_add(body.layout.offset * body.dtype.size()).cast(),
        device: CPU,
        device_id: 0,
        ndim: body.layout.ndim() as i32,
        code,
        bits: 8 * body.dtype.size() as u8,
        lanes: 1,
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let managed = Managed { tensor, context: std::ptr::null_mut(), deleter: Some(drop_export) };
    let (shape, strides) = (longs(&body.layout.shape), longs(&body.layout.strides));
    let mut export = Box::new(Export { _tensor: t.clone(), shape, strides, managed });
    export.managed.tensor.shape = export.shape.as_mut_ptr();
    export.managed.tensor.strides = export.strides.as_mut_ptr();
    let raw = Box::into_raw(export);
    // SAFETY: `raw` was leaked just now; whoever consumes the capsule, or its destructor, frees it.
    unsafe {
        (*raw).managed.context = raw.cast();
        let capsule =
            ffi::PyCapsule_New((&raw mut (*raw).managed).cast(), FRESH.as_ptr(), Some(drop_capsule));
        if capsule.is_null() {
            drop(Box::from_raw(raw));
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// A consumed capsule's memory, given back when the storage goes.
struct Import(*mut Managed);

// SAFETY: DLPack's deleter may be called from any thread.
unsafe impl Send for Import {}
// SAFETY: nothing but the drop uses the pointer.
unsafe impl Sync for Import {}

impl Drop for Import {
    fn drop(&mut self) {
        // SAFETY: the capsule's producer gave us this pointer to delete once.
        unsafe {
            if let Some(delete) = self.0.as_ref().and_then(|m| m.deleter) {
                delete(self.0);
            }
        }
    }
}

/// More dimensions than any library allows: the capsule is damaged.
const MOST_DIMENSIONS: usize = 64;

/// A capsule's memory: address, number of bytes, layout and dtype.
fn read_tensor(dl: &DlTensor) -> PyResult<(*mut u8, usize, Layout, DType)> {
    let wrong = |what: &str| PyBufferError::new_err(format!("a DLPack tensor {what}"));
    if dl.device != CPU {
        return Err(PyBufferError::new_err("gradiron takes DLPack memory of the CPU only"));
    }
    let dtype =
        CODES.iter().find(|c| c.1 == dl.code && 8 * c.0.size() == usize::from(dl.bits) && dl.lanes == 1);
    let Some(&(dtype, _)) = dtype else {
        return Err(PyBufferError::new_err(format!(
            "Unsupported DLPack type: code {}, {} bits",
            dl.code, dl.bits
        )));
    };
    let ndim = usize::try_from(dl.ndim).map_err(|_| wrong("of negative dimension"))?;
    if ndim > MOST_DIMENSIONS {
        return Err(wrong(&format!("of {ndim} dimensions")));
    }
    if ndim > 0 && dl.shape.is_null() {
        return Err(wrong("without a shape"));
    }
    let list = |at: *const i64| -> PyResult<Dims> {
        // SAFETY: shape and strides have `ndim` elements, by the protocol.
        (0..ndim)
            .map(|i| usize::try_from(unsafe { *at.add(i) }))
            .collect::<Result<Dims, _>>()
            .map_err(|_| PyBufferError::new_err("negative sizes or strides are not supported"))
    };
    let shape = list(dl.shape)?;
    checked_numel(&shape)?;
    let mut layout = Layout::contiguous(&shape);
    if !dl.strides.is_null() {
        layout.strides = list(dl.strides)?;
    }
    let end = |bytes: &usize| {
        (dl.data as usize).checked_add(usize::try_from(dl.byte_offset).ok()?)?.checked_add(*bytes)
    };
    let bytes = layout.bytes(dtype).filter(|bytes| end(bytes).is_some());
    let bytes = bytes.ok_or_else(|| wrong("that reaches beyond any memory"))?;
    if bytes > 0 && dl.data.is_null() {
        return Err(wrong("without memory"));
    }
    Ok((dl.data.cast::<u8>().wrapping_add(dl.byte_offset as usize), bytes, layout, dtype))
}

/// A tensor over the memory of another library's, or of a capsule.
#[pyfunction]
pub fn from_dlpack<'py>(source: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = source.py();
    let capsule =
        if source.hasattr("__dlpack__")? { source.call_method0("__dlpack__")? } else { source.clone() };
    // SAFETY: both calls take any object; the pointer is used only when the name says what it is.
    let managed = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), FRESH.as_ptr()) == 0 {
            return Err(PyRuntimeError::new_err(
                "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might \
                 have already constructed a tensor from it once.",
            ));
        }
        ffi::PyCapsule_GetPointer(capsule.as_ptr(), FRESH.as_ptr()).cast::<Managed>()
    };
    // SAFETY: a valid capsule holds a pointer to a managed tensor, which lives until its deleter is called.
    let (start, bytes, layout, dtype) = read_tensor(unsafe { &(*managed).tensor })?;
    // SAFETY: the capsule lives, and the name for ever.
    unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), USED.as_ptr()) };
    // SAFETY: the producer vouches for the memory that the layout reaches; the owner gives it back.
    let storage = unsafe { Storage::borrowed(start, bytes, Box::new(Import(managed))) };
    wrap(py, Tensor::new(Body::plain(storage, layout, dtype)))
}

/// Where DLPack finds the tensor: its kind of device and number.
#[pyfunction]
pub fn dlpack_device(tensor: &Bound<'_, PyTensor>) -> PyResult<(i32, i32)> {
    match tensor.get().tensor.device() {
        Device::Cpu => Ok((CPU, 0)),
        other => Err(PyBufferError::new_err(format!(
            "memory on {other} is not shared through DLPack: copy it with .cpu()"
        ))),
    }
}
