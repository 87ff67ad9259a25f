//! A pool of GPU memory: creating a buffer is slow, and the driver clears each new one. One queue runs
//! everything in order, so a freed buffer can be reused at once. A request accepts a buffer of up to twice
//! its size, and idle buffers are released to the driver before more than twice the peak would be reserved.

use crate::base::{Error, Fault, Result};
use crate::gpu::device::stream::wait;
use crate::gpu::device::{forked, gpu, opened};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A piece of GPU memory. Clones share it; the last one returns it to the pool.
#[derive(Clone)]
pub struct Buffer(Arc<MemoryBlock>);

struct MemoryBlock {
    raw: Option<wgpu::Buffer>,
    bytes: usize,
}

/// The figures of `torch.cuda.memory_stats`.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes in use, now and at peak.
    pub allocated: u64,
    pub max_allocated: u64,
    /// Bytes reserved, in use or idle.
    pub reserved: u64,
    pub max_reserved: u64,
    /// The number of requests to the pool, and of buffers that the driver created.
    pub requests: u64,
    pub creations: u64,
}

#[derive(Default)]
pub(in crate::gpu) struct MemoryPool {
    /// Idle buffers by size; no list is empty.
    free: BTreeMap<u64, Vec<wgpu::Buffer>>,
    memory: Memory,
    /// The peak in use since the cache was last emptied.
    peak: u64,
    cap: Option<u64>,
    cap_known: bool,
}

const MIB: u64 = 1 << 20;

/// Up to this much idle memory is kept whatever the peak was.
const KEPT: u64 = 16 * MIB;

/// Returns the bytes that a request counts in the figures.
fn counted(bytes: usize) -> u64 {
    (bytes as u64).max(1).next_multiple_of(16)
}

/// Returns the size of a new buffer for a request: one of eight sizes per power of two.
fn class(bytes: usize) -> u64 {
    let counted = counted(bytes);
    counted.next_multiple_of((counted.next_power_of_two() / 16).max(16))
}

impl Buffer {
    /// Returns the bytes that were requested; at least as many exist.
    pub fn len(&self) -> usize {
        self.0.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A buffer without memory, which stands for one of `bytes` bytes.
    pub fn nothing(bytes: usize) -> Buffer {
        Buffer(Arc::new(MemoryBlock { raw: None, bytes }))
    }

    /// A number that identifies the memory while it lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Returns true if both handles share the memory.
    pub fn same(&self, other: &Buffer) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(in crate::gpu) fn raw(&self) -> Result<&wgpu::Buffer> {
        self.0.raw.as_ref().ok_or_else(|| Error::runtime("GPU error: the memory was already released"))
    }

    /// Refuses a byte range outside of the buffer.
    pub(in crate::gpu) fn check(&self, offset: usize, bytes: usize) -> Result<()> {
        if offset.checked_add(bytes).is_none_or(|end| end > self.len()) {
            return Err(Error::runtime(format!(
                "GPU error: {bytes} bytes at {offset} are out of bounds for GPU memory of {} bytes",
                self.len()
            )));
        }
        Ok(())
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} bytes)", self.len())
    }
}

impl Drop for MemoryBlock {
    fn drop(&mut self) {
        let Some(raw) = self.raw.take() else { return };
        if forked() {
            // After a fork the driver belongs to the parent and must not be called.
            std::mem::forget(raw);
        } else if let Some(gpu) = opened() {
            gpu.pool().put(raw, self.bytes);
        }
    }
}

impl MemoryPool {
    /// Takes the idle buffer that fits best.
    fn take(&mut self, class: u64, bytes: usize) -> Option<wgpu::Buffer> {
        let size = *self.free.range(class..=class.max(2 * counted(bytes))).next()?.0;
        let found = self.pick(size)?;
        self.count_allocated(bytes);
        Some(found)
    }

    fn pick(&mut self, size: u64) -> Option<wgpu::Buffer> {
        let list = self.free.get_mut(&size)?;
        let found = list.pop();
        if list.is_empty() {
            self.free.remove(&size);
        }
        found
    }

    fn count_allocated(&mut self, bytes: usize) {
        let m = &mut self.memory;
        m.allocated += counted(bytes);
        m.max_allocated = m.max_allocated.max(m.allocated);
        self.peak = self.peak.max(m.allocated);
    }

    fn put(&mut self, raw: wgpu::Buffer, bytes: usize) {
        self.memory.allocated -= counted(bytes);
        self.free.entry(raw.size()).or_default().push(raw);
    }

    fn clear(&mut self) {
        let idle: u64 =
            std::mem::take(&mut self.free).iter().map(|(size, list)| size * list.len() as u64).sum();
        self.memory.reserved -= idle;
        self.peak = self.memory.allocated;
    }

    /// Releases idle buffers until one of `class` can be created without reserving too much. Takes sizes in
    /// turn: any rule by size or age would make some programs create the same buffers in each iteration.
    fn make_room(&mut self, class: u64, bytes: usize) {
        let peak = self.peak.max(self.memory.allocated + counted(bytes));
        let most = (2 * peak).max(KEPT);
        while self.memory.reserved + class > most && !self.free.is_empty() {
            let turn = self.memory.creations.wrapping_mul(7919) as usize % self.free.len();
            let Some(&size) = self.free.keys().nth(turn) else { return };
            self.memory.reserved -= self.pick(size).map_or(0, |raw| raw.size());
        }
    }

    fn cap(&mut self) -> Option<u64> {
        if !self.cap_known {
            self.cap_known = true;
            self.cap = std::env::var("GRADIRON_GPU_MEMORY_CAP").ok().and_then(|v| v.parse().ok());
        }
        self.cap
    }

    /// Creates a buffer; None if the driver or the cap refuses.
    fn create(&mut self, device: &wgpu::Device, class: u64, bytes: usize) -> Option<wgpu::Buffer> {
        self.make_room(class, bytes);
        if self.cap().is_some_and(|cap| self.memory.reserved + class > cap) {
            return None;
        }
        let scope = device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let raw = device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: class,
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        if pollster::block_on(scope.pop()).is_some() {
            return None;
        }
        self.memory.creations += 1;
        self.memory.reserved += class;
        self.memory.max_reserved = self.memory.max_reserved.max(self.memory.reserved);
        self.count_allocated(bytes);
        Some(raw)
    }
}

/// Allocates `bytes` bytes, uninitialized.
pub fn alloc(bytes: usize) -> Result<Buffer> {
    let gpu = gpu()?;
    let most = gpu.info.max_buffer;
    if bytes as u64 > most {
        return Err(out_of_memory(
            bytes,
            &format!("One tensor may take at most {} on this GPU.", human(most)),
        ));
    }
    let class = class(bytes).min(most & !15);
    let wrap = |raw| Ok(Buffer(Arc::new(MemoryBlock { raw: Some(raw), bytes })));
    {
        let mut pool = gpu.pool();
        pool.memory.requests += 1;
        if let Some(raw) = pool.take(class, bytes).or_else(|| pool.create(&gpu.device, class, bytes)) {
            return wrap(raw);
        }
    }
    // Out of memory: wait until the GPU has finished what still holds buffers, drop the idle ones, and try
    // again.
    gpu.stream().flush(gpu);
    wait(gpu, None)?;
    let mut pool = gpu.pool();
    pool.clear();
    if let Some(raw) = pool.create(&gpu.device, class, bytes) {
        return wrap(raw);
    }
    let m = pool.memory;
    Err(out_of_memory(
        bytes,
        &format!("GPU 0 holds {}, of which {} is in use.", human(m.reserved), human(m.allocated)),
    ))
}

#[cold]
pub(in crate::gpu) fn out_of_memory(bytes: usize, why: &str) -> Error {
    Fault::OutOfMemory {
        message: format!("CUDA out of memory. Tried to allocate {}. {why}", human(bytes as u64)),
    }
    .into()
}

/// Formats a size as PyTorch does: `2.00 MiB`.
fn human(bytes: u64) -> String {
    const GIB: f64 = (1u64 << 30) as f64;
    match bytes {
        0..=1024 => format!("{bytes} bytes"),
        1025..=0xf_ffff => format!("{:.2} KiB", bytes as f64 / 1024.0),
        0x10_0000..=0x3fff_ffff => format!("{:.2} MiB", bytes as f64 / MIB as f64),
        _ => format!("{:.2} GiB", bytes as f64 / GIB),
    }
}

/// Returns the memory figures; all zero before the GPU is used.
pub fn memory() -> Memory {
    opened().map_or_else(Memory::default, |gpu| gpu.pool().memory)
}

/// Releases all idle memory to the driver.
pub fn empty_cache() {
    if let Some(gpu) = opened() {
        gpu.pool().clear();
    }
}

/// Resets the peak figures.
pub fn reset_peak() {
    if let Some(gpu) = opened() {
        let mut pool = gpu.pool();
        pool.memory.max_allocated = pool.memory.allocated;
        pool.memory.max_reserved = pool.memory.reserved;
    }
}

/// Limits the reserved bytes, to test running out of memory; the environment variable
/// GRADIRON_GPU_MEMORY_CAP does the same.
pub fn set_cap(bytes: Option<usize>) {
    if let Ok(gpu) = gpu() {
        let mut pool = gpu.pool();
        pool.cap_known = true;
        pool.cap = bytes.map(|b| b as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_waste_little_and_align() {
        for bytes in (1..4096).chain((0..200).map(|i| i * 104_729)) {
            let class = class(bytes);
            assert!(class >= bytes as u64 && class.is_multiple_of(16));
            assert!(class <= bytes as u64 + bytes as u64 / 8 + 16);
            assert!(!bytes.is_power_of_two() || bytes < 16 || class == bytes as u64);
        }
    }

    #[test]
    fn sizes_read_as_pytorch_writes_them() {
        assert_eq!(human(12), "12 bytes");
        assert_eq!(human(20 << 30), "20.00 GiB");
        assert_eq!(human(5 << 19), "2.50 MiB");
    }
}
