//! Dispatch by device: each function calls the CPU's kernel or the GPU's, on bodies. Only `carry` moves data
//! between devices.

pub mod conj_neg;
pub mod index;
pub mod overlap;

use crate::base::views::dense_like;
use crate::base::{ConjNeg, DType, Device, Dims, Error, Fault, Layout, Reduction, Result, Scalar};
use crate::capture;
use crate::cpu;
use crate::cpu::group::code::Formula;
use crate::storage::{Storage, access};
use crate::tensor::Body;

/// The device of these bodies; an error if they are on different ones.
pub fn place_of(bodies: &[&Body]) -> Result<Device> {
    let first = bodies[0].device();
    match bodies.iter().find(|b| b.device() != first) {
        Some(other) => Err(Fault::Devices { a: first, b: other.device() }.into()),
        None => Ok(first),
    }
}

/// The result of a kernel on device `meta`, where no kernel runs.
pub trait NotRun: Sized {
    fn not_run() -> Result<Self> {
        Err(Error::not_implemented("this operator reads elements, and a meta tensor has none"))
    }
}

/// The kernel would only have filled its output.
impl NotRun for () {
    fn not_run() -> Result<()> {
        Ok(())
    }
}

/// The result depends on elements, so it is an error.
impl NotRun for bool {}
impl NotRun for usize {}
impl NotRun for Body {}
impl<T> NotRun for Option<T> {}
impl<T> NotRun for Vec<T> {}
impl<T, const N: usize> NotRun for [T; N] {}
impl<A, B> NotRun for (A, B) {}

/// Calls the CPU kernel or the GPU kernel, by the device of the bodies; on device `meta` none. The form with `over` and
/// `with` names all that the kernel uses, its bodies and other arguments, so that it can be captured; other kernels are
/// refused during a capture. What it only `reads` others can read meanwhile.
macro_rules! fork {
    ($(over [$($body:ident),+],)? $(reads [$($read:ident),+],)? with [$($other:ident),*], cpu: $cpu:expr, gpu: $gpu:expr) => {
        $crate::capture::run(
            |recorder: &mut $crate::capture::Recorder| {
                $crate::operator::bodies::place_of(
                    &[$($(std::borrow::Borrow::borrow(&$body),)+)? $($(std::borrow::Borrow::borrow(&$read),)+)?]
                )?;
                $($(let $body = $crate::capture::Retain::retain(&$body, recorder)?;)+)?
                $($(let $read = recorder.reading(|recorder| $crate::capture::Retain::retain(&$read, recorder))?;)+)?
                $(let $other = $crate::capture::Retain::retain(&$other, recorder)?;)*
                #[allow(unused_variables, reason = "some are the shader's alone")]
                #[allow(clippy::needless_borrow, reason = "the kernel is shown what it otherwise owns")]
                let run = move || -> $crate::base::Result<()> {
                    use $crate::capture::See;
                    $($(let $body = $body.see();)+)?
                    $($(let $read = $read.see();)+)?
                    $(let $other = $other.see();)*
                    $crate::operator::bodies::fork!([$($($body,)+)? $($($read,)+)?], cpu: $cpu, gpu: $gpu)
                };
                Ok(run)
            },
            || $crate::operator::bodies::fork!(
                [$($(std::borrow::Borrow::borrow(&$body),)+)? $($(std::borrow::Borrow::borrow(&$read),)+)?],
                cpu: $cpu,
                gpu: $gpu
            ),
        )
    };
    ([$($body:expr),+ $(,)?], cpu: $cpu:expr, gpu: $gpu:expr) => {
        match $crate::operator::bodies::place_of(&[$($body),+])? {
            // SAFETY: the views lie inside live storages, have the shapes that the kernel asks for, and no other
            // thread writes to the output.
            #[allow(unused_unsafe, reason = "some kernels are safe")]
            $crate::base::Device::Cpu => unsafe { $cpu },
            $crate::base::Device::Meta => $crate::operator::bodies::NotRun::not_run(),
            #[cfg(feature = "gpu")]
            _ => { $gpu }
            #[cfg(not(feature = "gpu"))]
            _ => Err($crate::base::Error::runtime("this build of gradiron has no GPU support")),
        }
    };
}
pub(crate) use fork;

/// Wraps the result of a CPU kernel that cannot fail.
pub(crate) fn done((): ()) -> Result<()> {
    Ok(())
}

/// The error for an operator without a GPU kernel for `dtype`.
#[cold]
pub(crate) fn no_shader<T>(op: &'static str, dtype: DType) -> Result<T> {
    Err(Fault::NoShader { op, dtype }.into())
}

/// Copies values within one device, converting the dtype.
pub fn copy(out: &Body, src: &Body) -> Result<()> {
    place_of(&[out, src])?;
    carry(out, src)
}

/// Copies values between any devices, converting the dtype.
pub fn carry(out: &Body, src: &Body) -> Result<()> {
    let (to, from) = (out.device(), src.device());
    if out.numel() == 0 || to.is_meta() {
        return Ok(());
    }
    if from.is_meta() {
        return Err(Error::not_implemented("Cannot copy out of meta tensor; no data!"));
    }
    if !(out.conj_neg.is_none() && src.conj_neg.is_none()) {
        return crate::operator::bodies::conj_neg::copy(out, src);
    }
    if out.dtype == src.dtype && out.dtype.is_stored_only() {
        return carry(&out.as_bits(), &src.as_bits());
    }
    let on_host = to.is_cpu() && from.is_cpu();
    if !on_host && out.dtype == src.dtype && out.dtype.is_complex() {
        return carry(&out.as_parts(), &src.as_parts());
    }
    if !on_host && out.dtype.is_complex() != src.dtype.is_complex() {
        return copy_part(out, src);
    }
    if !on_host && to == from && (out.dtype.is_stored_only() || src.dtype.is_stored_only()) {
        return no_shader("copy", if src.dtype.is_stored_only() { src.dtype } else { out.dtype });
    }
    if to == from {
        if access::is_captured() && !(out.dtype.is_stored_only() || src.dtype.is_stored_only()) {
            capture::describe(Formula::Copy, None, out, &[capture::Input::Body(src)])?;
        }
        return fork!(over [out], reads [src], with [], cpu: done(cpu::cast::copy(out.host_of_any_dtype()?, src.host_of_any_dtype()?)), gpu: crate::gpu::copy(out.gpu()?, src.gpu()?));
    }
    #[cfg(feature = "gpu")]
    {
        let keep = |recorder: &mut capture::Recorder| {
            let (out, src) = (recorder.stand_in(out)?, recorder.stand_in(src)?);
            Ok(move || transfer(&out, &src))
        };
        capture::run(keep, || transfer(out, src))
    }
    #[cfg(not(feature = "gpu"))]
    Err(Error::runtime("this build of gradiron has no GPU support"))
}

/// Converts between real and complex numbers on the GPU: through the real parts.
fn copy_part(out: &Body, src: &Body) -> Result<()> {
    if out.dtype.is_complex() {
        let [re, im] = parts(out)?;
        carry(&re, src)?;
        return fill(&im, Scalar::Int(0));
    }
    if out.dtype == DType::Bool {
        let last = src.layout.ndim();
        let truth = reduce(Reduction::Any, &src.as_parts(), &[last], DType::Bool)?;
        return carry(out, &drop_dims(truth, &[last]));
    }
    let [re, _] = parts(src)?;
    carry(out, &re)
}

/// Runs `run` on the bodies, or on the real and imaginary parts separately where GPU kernels know real
/// numbers only.
pub fn part_by_part(out: &Body, src: &Body, run: impl Fn(&Body, &Body) -> Result<()>) -> Result<()> {
    if !out.dtype.is_complex() || out.device().is_cpu() {
        return run(out, src);
    }
    let (out, src) = (parts(out)?, parts(src)?);
    out.iter().zip(&src).try_for_each(|(out, src)| run(out, src))
}

/// Copies between host and GPU: contiguous bytes in the source's dtype are transferred.
#[cfg(feature = "gpu")]
fn transfer(out: &Body, src: &Body) -> Result<()> {
    use crate::gpu;
    let dense = |body: &Body| body.layout.is_contiguous();
    let bytes = src.numel() * src.dtype.size();
    // Elements that are only stored are converted on the host, where they lie or go.
    if out.dtype != src.dtype && (out.dtype.is_stored_only() || src.dtype.is_stored_only()) {
        if src.device().is_cpu() {
            return carry(out, &converted(src, out.dtype)?);
        }
        let landing = Body::new(src.shape(), src.dtype, out.device())?;
        carry(&landing, src)?;
        return carry(out, &landing);
    }
    if src.device().is_cpu() {
        let host = if dense(src) { src.clone() } else { duplicate(src)? };
        let landing = if dense(out) && out.dtype == src.dtype {
            out.clone()
        } else {
            Body::new(src.shape(), src.dtype, out.device())?
        };
        let view = host.host()?;
        // SAFETY: the body is dense, so its elements fill `bytes` bytes from the first on.
        let slice = unsafe { std::slice::from_raw_parts(view.ptr, bytes) };
        gpu::upload(landing.gpu()?.buffer, landing.layout.offset * landing.dtype.size(), slice)?;
        return if landing.storage.same(&out.storage) {
            Ok(())
        } else {
            gpu::copy(out.gpu()?, landing.gpu()?)
        };
    }
    let device = if dense(src) { src.clone() } else { duplicate(src)? };
    let landing = if dense(out) && out.dtype == src.dtype {
        out.clone()
    } else {
        Body::new(src.shape(), src.dtype, out.device())?
    };
    let view = landing.host()?;
    // SAFETY: as above, and no other code writes to it meanwhile.
    let slice = unsafe { std::slice::from_raw_parts_mut(view.ptr, bytes) };
    gpu::download(device.gpu()?.buffer, device.layout.offset * device.dtype.size(), slice)?;
    if landing.storage.same(&out.storage) { Ok(()) } else { carry(out, &landing) }
}

/// Resizes the storage of a body, for all that share it. Added bytes are not initialised.
pub fn resize_storage(body: &Body, bytes: usize) -> Result<()> {
    body.storage.resize(bytes, |more| {
        let count = body.storage.len().min(bytes) / body.dtype.size();
        let all = |storage: &Storage| Body::plain(storage.clone(), Layout::contiguous(&[count]), body.dtype);
        copy(&all(more), &all(&body.storage))
    })
}

/// A contiguous copy on the same device.
pub fn duplicate(src: &Body) -> Result<Body> {
    converted(src, src.dtype)
}

/// A contiguous copy with another dtype, on the same device.
pub fn converted(src: &Body, dtype: DType) -> Result<Body> {
    let out = Body::new(src.shape(), dtype, src.device())?;
    copy(&out, src)?;
    Ok(out)
}

/// The body itself if it has that dtype, otherwise a contiguous copy.
pub fn in_dtype(body: Body, dtype: DType) -> Result<Body> {
    if body.dtype == dtype { Ok(body) } else { converted(&body, dtype) }
}

/// A copy that keeps a dense layout, also a transposed one.
pub fn preserved(body: &Body) -> Result<Body> {
    preserved_as(body, body.dtype)
}

/// A copy with another dtype that keeps a dense layout.
pub fn preserved_as(body: &Body, dtype: DType) -> Result<Body> {
    let mut out = Body::new(body.shape(), dtype, body.device())?;
    if out.layout.strides != body.layout.strides {
        out.layout = dense_like(&body.layout);
    }
    copy(&out, body)?;
    Ok(out)
}

/// Returns an error if elements of this dtype cannot hold the number.
pub fn holds(dtype: DType, value: Scalar) -> Result<()> {
    if value.fits(dtype) { Ok(()) } else { Err(overflow(dtype.fixed_name())) }
}

/// The error for a number that a C type cannot hold.
#[cold]
pub fn overflow(c_type: &str) -> Error {
    Error::runtime(format!("value cannot be converted to type {c_type} without overflow"))
}

pub fn fill(out: &Body, value: Scalar) -> Result<()> {
    // A single half may become infinite; PyTorch refuses more than one.
    let single = out.numel() == 1 && (out.dtype.is_half() || out.dtype.is_float8());
    if !single || value.imaginary() != 0.0 {
        holds(out.dtype, value)?;
    }
    if out.numel() == 0 {
        return Ok(());
    }
    if !out.conj_neg.is_none() {
        return fill(&out.bare(), out.conj_neg.of(value));
    }
    if out.dtype.is_stored_only() {
        return fill(&out.as_bits(), value.to_bits(out.dtype));
    }
    if out.dtype.is_complex() && !out.device().is_cpu() {
        let [re, im] = parts(out)?;
        fill(&re, Scalar::Float(value.as_f64()))?;
        return fill(&im, Scalar::Float(value.imaginary()));
    }
    if access::is_captured() {
        capture::describe(Formula::Copy, None, out, &[capture::Input::Number(value)])?;
    }
    fork!(over [out], with [value], cpu: done(cpu::cast::fill(out.host()?, value)), gpu: crate::gpu::fill(out.gpu()?, value))
}

pub fn filled(shape: &[usize], value: Scalar, dtype: DType, device: Device) -> Result<Body> {
    let out = Body::new(shape, dtype, device)?;
    fill(&out, value)?;
    Ok(out)
}

/// `start, start + step, …`, computed on the given device.
pub fn arange(start: Scalar, step: Scalar, count: usize, dtype: DType, device: Device) -> Result<Body> {
    let out = Body::new(&[count], dtype, device)?;
    if count > 0 {
        fork!(over [out], with [start, step], cpu: done(cpu::sequence::arange(out.host()?, start, step)), gpu: crate::gpu::arange(out.gpu()?, start, step))?;
    }
    Ok(out)
}

/// The shape with the reduced dimensions kept as 1.
pub fn kept_shape(shape: &[usize], dims: &[usize]) -> Dims {
    let mut kept = Dims::from_slice(shape);
    dims.iter().for_each(|&d| kept[d] = 1);
    kept
}

/// The real parts and the imaginary parts of a complex body.
pub fn parts(body: &Body) -> Result<[Body; 2]> {
    let parts = body.as_parts();
    let last = parts.layout.ndim() - 1;
    let part = |i, conj_neg| {
        let layout = parts.layout.narrow(last as i64, i, 1);
        layout.map(|layout| drop_dims(Body { conj_neg, ..parts.with_layout(layout) }, &[last]))
    };
    let conjugate = body.conj_neg.has(ConjNeg::CONJ);
    let re = if conjugate { body.conj_neg.then(ConjNeg::CONJ) } else { body.conj_neg };
    Ok([part(0, re)?, part(1, if conjugate { re.then(ConjNeg::NEG) } else { re })?])
}

/// A contiguous body of shape `[.., 2]` as complex numbers.
pub fn of_pairs(parts: Body) -> Body {
    let mut shape = Dims::from_slice(parts.shape());
    shape.pop();
    let dtype = parts.dtype.of_parts();
    Body { layout: Layout::contiguous(&shape), dtype, ..parts }
}

/// Reduces real numbers over `dims`, which are kept as 1.
pub fn reduce(fold: Reduction, x: &Body, dims: &[usize], dtype: DType) -> Result<Body> {
    let kept = kept_shape(x.shape(), dims);
    if let (0, Some(nothing)) = (x.numel(), fold.of_nothing()) {
        return filled(&kept, Scalar::Int(nothing), dtype, x.device());
    }
    if x.dtype.is_stored_only() && matches!(fold, Reduction::Any | Reduction::All) {
        return reduce(fold, &converted(x, DType::Bool)?, dims, dtype);
    }
    // Sums and products of unsigned integers have the bits of those of signed ones.
    if x.dtype.is_wide_unsigned() && dtype == DType::I64 && matches!(fold, Reduction::Sum | Reduction::Prod) {
        return reduce(fold, &converted(x, dtype)?, dims, dtype);
    }
    let out = Body::new(&kept, dtype, x.device())?;
    if out.numel() > 0 {
        if access::is_captured() {
            capture::describe_fold(fold, dims, None, &out, x)?;
        }
        fork!(over [out], reads [x], with [fold, dims], cpu: done(cpu::reduce::reduce(fold, out.host()?, x.host()?, dims)),
            gpu: crate::gpu::reduce(fold, out.gpu()?, x.gpu()?, dims))?;
    }
    Ok(out)
}

/// Removes the dimensions of size 1 that a reduction kept.
pub fn drop_dims(body: Body, dims: &[usize]) -> Body {
    let mut layout = Layout { shape: Dims::new(), strides: Dims::new(), offset: body.layout.offset };
    for i in (0..body.layout.ndim()).filter(|i| !dims.contains(i)) {
        layout.shape.push(body.layout.shape[i]);
        layout.strides.push(body.layout.strides[i]);
    }
    body.with_layout(layout)
}

/// A 0-d body as a vector of length 1, for kernels along a dimension.
pub fn at_least_vector(body: &Body) -> Body {
    if body.layout.ndim() > 0 {
        return body.clone();
    }
    body.with_layout(Layout { offset: body.layout.offset, ..Layout::contiguous(&[1]) })
}

/// A contiguous body with another shape.
pub fn with_shape(body: Body, shape: &[usize]) -> Body {
    body.with_layout(Layout { offset: body.layout.offset, ..Layout::contiguous(shape) })
}

/// Returns an error if a layout of elements of `size` bytes exceeds a storage of `have` bytes.
pub fn within(layout: &Layout, size: usize, have: usize) -> Result<()> {
    let need = layout.end() * size;
    if need <= have {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "setStorage: sizes {:?}, strides {:?}, storage offset {}, and itemsize {} requiring a storage size of {need} are out of \
         bounds for storage of size {have}",
        layout.shape.as_slice(),
        layout.strides.as_slice(),
        layout.offset,
        size
    )))
}
