//! DLPack in both directions: shares memory with other libraries without a copy.

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

/// `DLManagedTensorVersioned` of DLPack 1.x, with its version and flags.
#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DlTensor,
}

const VERSION: (u32, u32) = (1, 0);
const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;

/// The struct in a capsule: that of DLPack 0.x or of 1.x.
trait Capsuled {
    const FRESH: &'static CStr;
    const USED: &'static CStr;
    fn new(tensor: DlTensor, flags: u64) -> Self;
    fn tensor(&mut self) -> &mut DlTensor;
    fn set_context(&mut self, context: *mut c_void);
    /// Releases the memory.
    ///
    /// # Safety
    /// `managed` came from a capsule's producer, and is not used afterwards.
    unsafe fn delete(managed: *mut Self);
}

impl Capsuled for Managed {
    const FRESH: &'static CStr = c"dltensor";
    const USED: &'static CStr = c"used_dltensor";
    fn new(tensor: DlTensor, _: u64) -> Managed {
        Managed { tensor, context: std::ptr::null_mut(), deleter: Some(drop_managed) }
    }
    fn tensor(&mut self) -> &mut DlTensor {
        &mut self.tensor
    }
    fn set_context(&mut self, context: *mut c_void) {
        self.context = context;
    }
    unsafe fn delete(managed: *mut Managed) {
        // SAFETY: the caller guarantees it.
        unsafe {
            if let Some(delete) = managed.as_ref().and_then(|m| m.deleter) {
                delete(managed);
            }
        }
    }
}

impl Capsuled for Versioned {
    const FRESH: &'static CStr = c"dltensor_versioned";
    const USED: &'static CStr = c"used_dltensor_versioned";
    fn new(tensor: DlTensor, flags: u64) -> Versioned {
        let (major, minor) = VERSION;
        Versioned {
            major,
            minor,
            context: std::ptr::null_mut(),
            deleter: Some(drop_versioned),
            flags,
            tensor,
        }
    }
    fn tensor(&mut self) -> &mut DlTensor {
        &mut self.tensor
    }
    fn set_context(&mut self, context: *mut c_void) {
        self.context = context;
    }
    unsafe fn delete(managed: *mut Versioned) {
        // SAFETY: the caller guarantees it.
        unsafe {
            if let Some(delete) = managed.as_ref().and_then(|m| m.deleter) {
                delete(managed);
            }
        }
    }
}

/// Keeps an exported tensor alive.
struct Export<M> {
    _tensor: Tensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
    managed: M,
}

const CODES: [(DType, u8); 18] = [
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
    (DType::U16, 1),
    (DType::U32, 1),
    (DType::U64, 1),
    (DType::F8E4M3, 10),
    (DType::F8E5M2, 12),
    (DType::C32, 5),
];

unsafe extern "C" fn drop_managed(managed: *mut Managed) {
    // SAFETY: the context is the Box that `export` leaked; consumers call this once.
    unsafe {
        if let Some(managed) = managed.as_mut() {
            drop(Box::from_raw(managed.context.cast::<Export<Managed>>()));
        }
    }
}

unsafe extern "C" fn drop_versioned(managed: *mut Versioned) {
    // SAFETY: the context is the Box that `export` leaked; consumers call this once.
    unsafe {
        if let Some(managed) = managed.as_mut() {
            drop(Box::from_raw(managed.context.cast::<Export<Versioned>>()));
        }
    }
}

/// Frees a capsule that was not consumed.
unsafe extern "C" fn drop_capsule<M: Capsuled>(capsule: *mut ffi::PyObject) {
    // SAFETY: Python passes the capsule that it destroys; while it has the unused name its pointer is ours.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, M::FRESH.as_ptr()) == 1 {
            M::delete(ffi::PyCapsule_GetPointer(capsule, M::FRESH.as_ptr()).cast::<M>());
        }
    }
}

/// Return a DLPack capsule that shares the memory of a CPU tensor.
///
/// Args:
///     tensor: the tensor.
///     versioned: whether to make a capsule of DLPack 1.0, which tells the following two. Default: `False`
///     copied: whether the memory is a copy. Default: `False`
///     read_only: whether the memory may not be written. Default: `False`
///
/// Examples:
///     >>> capsule = torch.to_dlpack(torch.tensor([1, 2]))
///     >>> torch.from_dlpack(capsule)
///     tensor([1, 2])
#[pyfunction]
#[pyo3(signature = (tensor, versioned = false, copied = false, read_only = false))]
pub fn to_dlpack<'py>(
    tensor: &Bound<'py, PyTensor>,
    versioned: bool,
    copied: bool,
    read_only: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let flags = if copied { IS_COPIED } else { 0 } | if read_only { READ_ONLY } else { 0 };
    if versioned { export::<Versioned>(tensor, flags) } else { export::<Managed>(tensor, flags) }
}

fn export<'py, M: Capsuled>(tensor: &Bound<'py, PyTensor>, flags: u64) -> PyResult<Bound<'py, PyAny>> {
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
    crate::storage::access::check()?;
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
    let managed = M::new(tensor, flags);
    let (shape, strides) = (longs(&body.layout.shape), longs(&body.layout.strides));
    let mut export = Box::new(Export { _tensor: t.clone(), shape, strides, managed });
    let (shape, strides) = (export.shape.as_mut_ptr(), export.strides.as_mut_ptr());
    let dl = export.managed.tensor();
    (dl.shape, dl.strides) = (shape, strides);
    let raw = Box::into_raw(export);
    // SAFETY: `raw` was just leaked; the consumer or the capsule's destructor frees it.
    unsafe {
        (*raw).managed.set_context(raw.cast());
        let capsule =
            ffi::PyCapsule_New((&raw mut (*raw).managed).cast(), M::FRESH.as_ptr(), Some(drop_capsule::<M>));
        if capsule.is_null() {
            drop(Box::from_raw(raw));
        }
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

/// The memory of a consumed capsule, released together with the storage.
struct Import<M: Capsuled>(*mut M);

// SAFETY: DLPack's deleter may be called from any thread.
unsafe impl<M: Capsuled> Send for Import<M> {}
// SAFETY: only the drop uses the pointer.
unsafe impl<M: Capsuled> Sync for Import<M> {}

impl<M: Capsuled> Drop for Import<M> {
    fn drop(&mut self) {
        // SAFETY: the capsule's producer gave us this pointer to delete once.
        unsafe { M::delete(self.0) }
    }
}

/// No library allows more dimensions than this: such a capsule is damaged.
const MOST_DIMENSIONS: usize = 64;

/// Reads a capsule's memory: address, number of bytes, layout and dtype.
fn read_tensor(dl: &DlTensor) -> PyResult<(*mut u8, usize, Layout, DType)> {
    let wrong = |what: &str| PyBufferError::new_err(format!("a DLPack tensor {what}"));
    if dl.device != CPU {
        return Err(PyBufferError::new_err(
            "from_dlpack() supports only CPU memory: copy the tensor to the CPU first",
        ));
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
    let bytes = bytes.ok_or_else(|| wrong("whose sizes and strides exceed the address space"))?;
    if bytes > 0 && dl.data.is_null() {
        return Err(wrong("without memory"));
    }
    Ok((dl.data.cast::<u8>().wrapping_add(dl.byte_offset as usize), bytes, layout, dtype))
}

/// Return a tensor that shares the memory of a DLPack capsule.
///
/// Args:
///     capsule: the capsule, which can be used once.
#[pyfunction]
pub fn from_dlpack<'py>(capsule: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    // SAFETY: the call accepts any object.
    if unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), Versioned::FRESH.as_ptr()) } == 1 {
        return import::<Versioned>(capsule);
    }
    import::<Managed>(capsule)
}

fn import<'py, M: Capsuled + 'static>(capsule: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = capsule.py();
    // SAFETY: both calls accept any object; the pointer is used only if the name identifies it.
    let managed = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), M::FRESH.as_ptr()) == 0 {
            return Err(PyRuntimeError::new_err(
                "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might \
                 have already constructed a tensor from it once.",
            ));
        }
        ffi::PyCapsule_GetPointer(capsule.as_ptr(), M::FRESH.as_ptr()).cast::<M>()
    };
    // SAFETY: a valid capsule holds a pointer to a managed tensor, which lives until its deleter is called.
    let (start, bytes, layout, dtype) = read_tensor(unsafe { (*managed).tensor() })?;
    // SAFETY: the capsule is alive, and the name is static.
    unsafe { ffi::PyCapsule_SetName(capsule.as_ptr(), M::USED.as_ptr()) };
    // SAFETY: the producer guarantees the memory that the layout covers; the owner releases it.
    let storage = unsafe { Storage::borrowed(start, bytes, Box::new(Import(managed))) };
    wrap(py, Tensor::new(Body::plain(storage, layout, dtype)))
}

/// Returns DLPack's device type and index for a tensor.
#[pyfunction]
pub fn dlpack_device(tensor: &Bound<'_, PyTensor>) -> PyResult<(i32, i32)> {
    match tensor.get().tensor.device() {
        Device::Cpu => Ok((CPU, 0)),
        other => Err(PyBufferError::new_err(format!(
            "DLPack supports only CPU tensors, but this one is on {other}: copy it with .cpu()"
        ))),
    }
}
