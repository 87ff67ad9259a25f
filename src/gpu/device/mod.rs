//! The adapter, which is opened on first use and only once. Its error state is here, too, because wgpu
//! reports errors through callbacks of the device.

pub mod fault;
pub mod memory;
pub mod pipeline;
pub mod stream;
pub mod view;

use crate::base::lock;
use crate::base::{DType, Error, Fault, Result};
use crate::gpu::device::memory::MemoryPool;
use crate::gpu::device::pipeline::Kernels;
use crate::gpu::device::stream::Stream;
use crate::gpu::shader::code::IMMEDIATE_WORDS;
use crate::gpu::shader::spirv::FloatPromises;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use wgpu::{Backends, DeviceType, Features};

/// Facts about the adapter.
#[derive(Clone, Debug)]
pub struct Info {
    pub name: String,
    pub backend: String,
    pub driver: String,
    /// True for a software rasterizer, which is used only if the environment allows it.
    pub software: bool,
    pub integrated: bool,
    /// The size of the largest buffer that a kernel can bind, and so of the largest tensor, in bytes.
    pub max_buffer: u64,
    pub max_workgroup_memory: u32,
    /// Bytes of device memory, if the backend reports it.
    pub total_memory: Option<u64>,
    /// How many operands a group can have.
    pub max_operands: usize,
    pub has_i64: bool,
    pub has_f64: bool,
    pub features: Vec<String>,
}

pub(in crate::gpu) struct Gpu {
    pub device: wgpu::Device,
    pub queue: wgpu::Queue,
    pub info: Info,
    /// True if shaders check bounds: only for tests, since our kernels check their own indices.
    pub checked: bool,
    /// The float behaviour that the driver can preserve.
    pub kept: FloatPromises,
    trouble: Arc<Trouble>,
    stream: Mutex<Stream>,
    pool: Mutex<MemoryPool>,
    pub kernels: Kernels,
}

/// The errors that the callbacks reported. The fast path reads only the flag.
#[derive(Default)]
struct Trouble {
    state: AtomicU8,
    message: Mutex<String>,
}

const FINE: u8 = 0;
const SHORT: u8 = 1;
const FAILED: u8 = 2;
const LOST: u8 = 3;

impl Trouble {
    fn report(&self, state: u8, message: String) {
        let mut first = lock(&self.message);
        let before = self.state.load(Ordering::Relaxed);
        if state > before {
            *first = message;
            self.state.store(state, Ordering::Release);
        }
    }

    #[cold]
    fn raise(&self) -> Error {
        let mut message = lock(&self.message);
        match self.state.load(Ordering::Acquire) {
            LOST => Error::runtime(format!("GPU error: the GPU was lost: {message}")),
            state => {
                self.state.store(FINE, Ordering::Release);
                let message = std::mem::take(&mut *message);
                match state {
                    SHORT => Fault::OutOfMemory { message: format!("CUDA out of memory. {message}") }.into(),
                    _ => Error::runtime(format!("GPU error: {message}")),
                }
            }
        }
    }
}

static GPU: OnceLock<std::result::Result<Gpu, String>> = OnceLock::new();
/// More streams of memory at a time are slower than several passes.
const MAX_OPERANDS: usize = 23;

static FORKED: AtomicBool = AtomicBool::new(false);

/// Returns the adapter, opened and healthy, or the reason why there is none.
pub(in crate::gpu) fn gpu() -> Result<&'static Gpu> {
    if forked() {
        return Err(Error::runtime(
            "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the \
             'spawn' start method",
        ));
    }
    // `get_or_init` is also the lock that drivers need while instances are created.
    match GPU.get_or_init(open) {
        Ok(gpu) => gpu.healthy().map(|()| gpu),
        Err(message) => Err(Error::runtime(message.clone())),
    }
}

/// Returns the adapter if it has been opened. Freeing memory must neither open it nor fail.
pub(in crate::gpu) fn opened() -> Option<&'static Gpu> {
    if forked() { None } else { GPU.get()?.as_ref().ok() }
}

pub(in crate::gpu) fn forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// Returns true if the adapter was opened already.
pub fn is_open() -> bool {
    opened().is_some()
}

/// Refuses the index of an adapter that does not exist.
pub fn check_ordinal(index: u8) -> Result<()> {
    gpu()?;
    if usize::from(index) < count() {
        return Ok(());
    }
    Err(Error::runtime(
        "CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?",
    ))
}

/// Returns true if there is a usable adapter. The first call looks for one.
pub fn available() -> bool {
    gpu().is_ok()
}

/// Returns the number of usable adapters.
pub fn count() -> usize {
    usize::from(available())
}

pub fn info() -> Result<Info> {
    Ok(gpu()?.info.clone())
}

impl Gpu {
    #[inline]
    pub fn healthy(&self) -> Result<()> {
        if self.trouble.state.load(Ordering::Relaxed) == FINE { Ok(()) } else { Err(self.trouble.raise()) }
    }

    /// Locks the stream. Lock the pool only after the stream: a fixed order prevents deadlocks.
    pub fn stream(&self) -> MutexGuard<'_, Stream> {
        lock(&self.stream)
    }

    pub fn pool(&self) -> MutexGuard<'_, MemoryPool> {
        lock(&self.pool)
    }

    /// Refuses a dtype that this adapter's shaders cannot compute with.
    pub fn supports(&self, op: &'static str, dtype: DType) -> Result<()> {
        let missing = match dtype {
            DType::I64 => !self.info.has_i64,
            DType::F64 => !self.info.has_f64,
            _ => false,
        };
        if missing { Err(Fault::NoShader { op, dtype }.into()) } else { Ok(()) }
    }
}

/// Calls `look`, which searches for adapters, without Mesa's device selection layer: on a machine without a
/// display that would print an error.
fn without_display<T>(look: impl FnOnce() -> T) -> T {
    const OFF: &str = "NODEVICE_SELECT";
    let silence =
        cfg!(unix) && std::env::var_os("XDG_RUNTIME_DIR").is_none() && std::env::var_os(OFF).is_none();
    if silence {
        // SAFETY: as with Python's `os.environ`, foreign code in another thread that reads the environment
        // at this moment could see it move; Rust's own readers take a lock.
        unsafe { std::env::set_var(OFF, "1") };
    }
    let found = look();
    if silence {
        // SAFETY: as above.
        unsafe { std::env::remove_var(OFF) };
    }
    found
}

fn open() -> std::result::Result<Gpu, String> {
    let software = std::env::var("GRADIRON_SOFTWARE_GPU").is_ok_and(|v| v == "1");
    let mut wanted = wgpu::InstanceDescriptor::new_without_display_handle();
    wanted.backends = Backends::VULKAN | Backends::METAL | Backends::DX12;
    wanted.flags = wgpu::InstanceFlags::empty();
    let backends = wanted.backends;
    let adapters = without_display(|| {
        let instance = wgpu::Instance::new(wanted);
        pollster::block_on(instance.enumerate_adapters(backends))
    });
    let adapter = adapters
        .iter()
        .filter(|a| usable(a) && (software || a.get_info().device_type != DeviceType::Cpu))
        .min_by_key(|a| rank(a.get_info().device_type))
        .ok_or_else(|| none_found(&adapters))?;
    let about = adapter.get_info();
    let features = adapter.features()
        & (Features::IMMEDIATES
            | Features::SHADER_INT64
            | Features::SHADER_F64
            | Features::SUBGROUP
            | Features::PASSTHROUGH_SHADERS);
    let kept = if features.contains(Features::PASSTHROUGH_SHADERS) {
        FloatPromises::of(adapter)
    } else {
        FloatPromises::default()
    };
    let limits = adapter.limits();
    let (device, queue) = pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor {
        label: Some("gradiron"),
        required_features: features,
        required_limits: limits.clone(),
        experimental_features: wgpu::ExperimentalFeatures::disabled(),
        memory_hints: wgpu::MemoryHints::Performance,
        trace: wgpu::Trace::Off,
    }))
    .map_err(|error| format!("GPU error: the GPU \"{}\" could not be opened: {error}", about.name))?;

    let trouble = Arc::new(Trouble::default());
    let seen = Arc::clone(&trouble);
    device.on_uncaptured_error(Arc::new(move |error| {
        let state = if matches!(error, wgpu::Error::OutOfMemory { .. }) { SHORT } else { FAILED };
        seen.report(state, error.to_string());
    }));
    let seen = Arc::clone(&trouble);
    device.set_device_lost_callback(move |reason, message| {
        seen.report(LOST, format!("{message} ({reason:?})"))
    });
    watch_forks();

    let info = Info {
        name: about.name,
        backend: about.backend.to_string(),
        driver: format!("{} {}", about.driver, about.driver_info).trim().to_owned(),
        software: about.device_type == DeviceType::Cpu,
        integrated: about.device_type == DeviceType::IntegratedGpu,
        max_buffer: limits.max_buffer_size.min(limits.max_storage_buffer_binding_size),
        max_workgroup_memory: limits.max_compute_workgroup_storage_size,
        total_memory: total_memory(adapter),
        max_operands: (limits.max_storage_buffers_per_shader_stage as usize - 1).min(MAX_OPERANDS),
        has_i64: features.contains(Features::SHADER_INT64),
        // The float64 functions manipulate bits as 64-bit integers.
        has_f64: features.contains(Features::SHADER_F64 | Features::SHADER_INT64),
        features: features.iter_names().map(|(name, _)| name.to_owned()).collect(),
    };
    Ok(Gpu {
        stream: Mutex::new(Stream::new(&device)),
        pool: Mutex::new(MemoryPool::default()),
        kernels: Kernels::default(),
        checked: std::env::var("GRADIRON_GPU_CHECKED").is_ok_and(|v| v == "1"),
        kept,
        device,
        queue,
        info,
        trouble,
    })
}

/// Explains which adapters were found, why none is used, and what helps.
fn none_found(seen: &[wgpu::Adapter]) -> String {
    let mut text =
        "No CUDA GPUs are available: gradiron looked for a GPU that Vulkan, Metal or DirectX 12 can compute \
                    with and found none. Please check that there is one and that its driver is installed."
            .to_owned();
    for adapter in seen {
        let about = adapter.get_info();
        let why = match about.device_type {
            DeviceType::Cpu => {
                "a software adapter: the environment variable GRADIRON_SOFTWARE_GPU=1 allows it"
            }
            _ => "without what gradiron's kernels need",
        };
        text += &format!(" Seen: {} ({}), {why}.", about.name, about.backend);
    }
    if seen.is_empty() {
        text += " For tests, Mesa's software adapter serves as well, with the environment variable GRADIRON_SOFTWARE_GPU=1.";
    }
    text
}

/// Returns true if the adapter supports what our kernels need: their parameters as immediates, and up to
/// eight buffers.
fn usable(adapter: &wgpu::Adapter) -> bool {
    let limits = adapter.limits();
    adapter.features().contains(Features::IMMEDIATES)
        && limits.max_immediate_size as usize >= 4 * IMMEDIATE_WORDS
        && limits.max_storage_buffers_per_shader_stage >= 8
        && limits.max_compute_invocations_per_workgroup >= 256
}

/// Returns the size of the device's own memory from Vulkan, since wgpu does not report it.
#[cfg(not(target_vendor = "apple"))]
fn total_memory(adapter: &wgpu::Adapter) -> Option<u64> {
    // SAFETY: the handles are only queried for properties, while the adapter is alive.
    unsafe {
        let vulkan = adapter.as_hal::<wgpu::hal::api::Vulkan>()?;
        let instance = vulkan.shared_instance().raw_instance();
        let properties = instance.get_physical_device_memory_properties(vulkan.raw_physical_device());
        let heaps = properties.memory_heaps.iter().take(properties.memory_heap_count as usize);
        // The lowest flag of a heap means that it is local to the device.
        heaps.filter(|heap| heap.flags.as_raw() & 1 == 1).map(|heap| heap.size).max()
    }
}

#[cfg(target_vendor = "apple")]
fn total_memory(_adapter: &wgpu::Adapter) -> Option<u64> {
    None
}

/// Returns true if this adapter's shaders can compute with a dtype.
pub fn computes(dtype: DType) -> bool {
    gpu().is_ok_and(|gpu| gpu.supports("", dtype).is_ok())
}

fn rank(kind: DeviceType) -> u8 {
    match kind {
        DeviceType::DiscreteGpu => 0,
        DeviceType::IntegratedGpu => 1,
        DeviceType::VirtualGpu => 2,
        DeviceType::Other => 3,
        DeviceType::Cpu => 4,
    }
}

/// A forked child inherits a driver without its threads and would hang, so an error is raised instead.
#[cfg(unix)]
fn watch_forks() {
    extern "C" fn in_child() {
        FORKED.store(true, Ordering::Relaxed);
    }
    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> i32;
    }
    // SAFETY: the handler lives as long as the process (extension modules are never unloaded) and only
    // stores a flag.
    unsafe {
        pthread_atfork(None, None, Some(in_child));
    }
}

#[cfg(not(unix))]
fn watch_forks() {}
