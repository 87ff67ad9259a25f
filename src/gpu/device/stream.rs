//! The stream of launches: they are recorded into one open pass and submitted many at a time, because a
//! submission costs as much as twenty dispatches. The host waits only when it reads.

use crate::base::{Error, Result};
use crate::gpu::device::fault::{self, RECORD};
use crate::gpu::device::memory::{Buffer, out_of_memory};
use crate::gpu::device::pipeline::Kernel;
use crate::gpu::device::{Gpu, gpu, opened};
use crate::gpu::shader::code::{IMMEDIATE_WORDS, INLINE_WORDS};
use smallvec::SmallVec;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// Recorded dispatches are submitted when there are this many.
const BATCH: u32 = 64;
/// Pending submissions after which the host waits for half of them: about a thousand launches, as in CUDA.
const AHEAD: usize = 16;
/// The size of the ring for the parameters of launches that are too long for immediates, per submission.
const RING_WORDS: usize = 16 * 1024;
/// Staging buffers up to this size are kept for the next read.
const STAGING_KEPT: u64 = 4 << 20;

static SUBMITS: AtomicU64 = AtomicU64::new(0);
static DISPATCHES: AtomicU64 = AtomicU64::new(0);
static WAITS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static HERE: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of batches submitted so far.
pub fn submits() -> u64 {
    SUBMITS.load(Ordering::Relaxed)
}

/// Returns the number of kernels dispatched so far.
pub fn dispatches() -> u64 {
    DISPATCHES.load(Ordering::Relaxed)
}

/// Returns the number of kernels dispatched by this thread.
pub fn launches_here() -> u64 {
    HERE.get()
}

/// Returns how often the host has waited for the GPU.
pub fn waits() -> u64 {
    WAITS.load(Ordering::Relaxed)
}

pub(in crate::gpu) struct Stream {
    pass: Option<wgpu::ComputePass<'static>>,
    encoder: Option<wgpu::CommandEncoder>,
    recorded: u32,
    ring: wgpu::Buffer,
    ring_words: Vec<u32>,
    flags: wgpu::Buffer,
    /// True if a kernel that may record a fault ran since the record was last read.
    flags_due: bool,
    /// Submissions that were not waited for, by number.
    ahead: VecDeque<Submitted>,
    staging: Vec<wgpu::Buffer>,
}

/// A pending copy of bytes to the host.
pub(in crate::gpu) struct Fetch {
    staging: wgpu::Buffer,
    at: Submitted,
    flags: bool,
}

/// A submission and its number.
type Submitted = (u64, wgpu::SubmissionIndex);

impl Stream {
    pub fn new(device: &wgpu::Device) -> Stream {
        let buffer = |size| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size,
                usage: wgpu::BufferUsages::STORAGE
                    | wgpu::BufferUsages::COPY_SRC
                    | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        };
        Stream {
            pass: None,
            encoder: None,
            recorded: 0,
            ring: buffer(4 * RING_WORDS as u64),
            ring_words: Vec::new(),
            flags: buffer(RECORD),
            flags_due: false,
            ahead: VecDeque::new(),
            staging: Vec::new(),
        }
    }

    /// Returns the open encoder, after closing its pass.
    fn encoder(&mut self, gpu: &Gpu) -> &mut wgpu::CommandEncoder {
        self.pass = None;
        self.encoder.get_or_insert_with(|| gpu.device.create_command_encoder(&Default::default()))
    }

    fn pass(&mut self, gpu: &Gpu) -> &mut wgpu::ComputePass<'static> {
        let pass = match self.pass.take() {
            Some(pass) => pass,
            None => self.encoder(gpu).begin_compute_pass(&Default::default()).forget_lifetime(),
        };
        self.pass.insert(pass)
    }

    pub fn launch(
        &mut self,
        gpu: &Gpu,
        kernel: &Kernel,
        buffers: &[&Buffer],
        words: &[u32],
        groups: [u32; 3],
    ) -> Result<()> {
        if groups.contains(&0) {
            return Ok(());
        }
        if words.len() != kernel.words {
            let (name, takes, given) = (kernel.name, kernel.words, words.len());
            return Err(Error::runtime(format!(
                "GPU error: {name} takes {takes} parameter words, not {given}"
            )));
        }
        let mut raw: SmallVec<[&wgpu::Buffer; 8]> = SmallVec::new();
        for buffer in buffers {
            raw.push(buffer.raw()?);
        }
        let group = self.bind(gpu, kernel, &raw);
        self.dispatch(gpu, kernel, &group, words, groups);
        Ok(())
    }

    /// Returns a new bind group of the kernel over these buffers.
    pub fn bind(&self, gpu: &Gpu, kernel: &Kernel, buffers: &[&wgpu::Buffer]) -> wgpu::BindGroup {
        let mut bound: SmallVec<[&wgpu::Buffer; 8]> = buffers.into();
        if kernel.words > INLINE_WORDS {
            bound.push(&self.ring);
        }
        if kernel.flags {
            bound.push(&self.flags);
        }
        let entries: SmallVec<[wgpu::BindGroupEntry<'_>; 8]> = bound
            .iter()
            .enumerate()
            .map(|(i, buffer)| wgpu::BindGroupEntry {
                binding: i as u32,
                resource: buffer.as_entire_binding(),
            })
            .collect();
        gpu.device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &kernel.layout,
            entries: &entries,
        })
    }

    /// Records a launch with a bind group of its kernel, and as many parameter words as that takes.
    pub fn dispatch(
        &mut self,
        gpu: &Gpu,
        kernel: &Kernel,
        group: &wgpu::BindGroup,
        words: &[u32],
        groups: [u32; 3],
    ) {
        let ringed = words.len() > INLINE_WORDS;
        if ringed && self.ring_words.len() + words.len() > RING_WORDS {
            self.flush(gpu);
        }
        let mut immediates = [0u32; IMMEDIATE_WORDS];
        if ringed {
            immediates[0] = self.ring_words.len() as u32;
            self.ring_words.extend_from_slice(words);
        } else {
            immediates[..words.len()].copy_from_slice(words);
        }
        self.flags_due |= kernel.flags;
        let pass = self.pass(gpu);
        pass.set_pipeline(&kernel.pipeline);
        pass.set_bind_group(0, group, &[]);
        pass.set_immediates(0, bytemuck::cast_slice(&immediates));
        let [x, y, z] = groups;
        pass.dispatch_workgroups(x, y, z);
        DISPATCHES.fetch_add(1, Ordering::Relaxed);
        HERE.set(HERE.get() + 1);
        self.recorded += 1;
        if self.recorded >= BATCH {
            self.flush(gpu);
        }
    }

    /// Records a copy of bytes between buffers.
    pub fn copy(&mut self, gpu: &Gpu, from: (&wgpu::Buffer, u64), to: (&wgpu::Buffer, u64), bytes: u64) {
        self.encoder(gpu).copy_buffer_to_buffer(from.0, from.1, to.0, to.1, bytes);
        self.recorded += 1;
    }

    /// Submits the recorded work.
    pub fn flush(&mut self, gpu: &Gpu) -> Option<Submitted> {
        self.pass = None;
        let encoder = self.encoder.take()?;
        if !self.ring_words.is_empty() {
            // Written before the commands of this submission, and after those of the last.
            gpu.queue.write_buffer(&self.ring, 0, bytemuck::cast_slice(&self.ring_words));
            self.ring_words.clear();
        }
        let index = gpu.queue.submit([encoder.finish()]);
        let submitted = (SUBMITS.fetch_add(1, Ordering::Relaxed), index);
        self.recorded = 0;
        self.ahead.push_back(submitted.clone());
        if self.ahead.len() > AHEAD
            && let Some((_, half)) = self.ahead.drain(..AHEAD / 2).next_back()
        {
            // A failure is kept in the device's state, which the next call checks.
            let _ = wait(gpu, Some(half));
        }
        Some(submitted)
    }

    /// Notes that the first `count` submissions are done.
    fn done(&mut self, count: u64) {
        while self.ahead.front().is_some_and(|(number, _)| *number < count) {
            self.ahead.pop_front();
        }
    }

    /// Returns memory that the host can read. Without it, the copy would make the whole submission fail.
    fn staging(&mut self, gpu: &Gpu, bytes: u64) -> Result<wgpu::Buffer> {
        if let Some(i) = self.staging.iter().position(|s| s.size() >= bytes) {
            return Ok(self.staging.swap_remove(i));
        }
        let scope = gpu.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let made = gpu.device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size: bytes.next_multiple_of(256),
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        match pollster::block_on(scope.pop()) {
            None => Ok(made),
            Some(_) => Err(out_of_memory(bytes as usize, "The host has no memory for the staging buffer.")),
        }
    }

    /// Submits all recorded work, followed by a copy of `bytes` bytes (and of the fault record, if due) to
    /// the host.
    pub fn fetch(
        &mut self,
        gpu: &Gpu,
        from: Option<(&wgpu::Buffer, u64)>,
        bytes: u64,
    ) -> Result<Option<Fetch>> {
        let staging = self.staging(gpu, bytes + RECORD)?;
        let flags = std::mem::take(&mut self.flags_due);
        if let Some(from) = from {
            self.copy(gpu, from, (&staging, RECORD), bytes);
        }
        if flags {
            let record = self.flags.clone();
            self.copy(gpu, (&record, 0), (&staging, 0), RECORD);
            self.encoder(gpu).clear_buffer(&record, 0, None);
        }
        Ok(self.flush(gpu).map(|at| Fetch { staging, at, flags }))
    }
}

/// Waits until the GPU has finished the submission `until`, or all submissions.
pub(in crate::gpu) fn wait(gpu: &Gpu, until: Option<wgpu::SubmissionIndex>) -> Result<()> {
    WAITS.fetch_add(1, Ordering::Relaxed);
    let wait = wgpu::PollType::Wait { submission_index: until, timeout: None };
    if let Err(error) = gpu.device.poll(wait) {
        gpu.healthy()?;
        return Err(Error::runtime(format!("GPU error: {error}")));
    }
    gpu.healthy()
}

/// Waits for the bytes, passes them to `read`, and raises the recorded fault, if any.
pub(in crate::gpu) fn arrive(gpu: &Gpu, fetch: Fetch, bytes: u64, read: impl FnOnce(&[u8])) -> Result<()> {
    let Fetch { staging, at: (number, at), flags } = fetch;
    let end = RECORD + bytes;
    staging.slice(..end).map_async(wgpu::MapMode::Read, |_| ());
    wait(gpu, Some(at))?;
    let bad = {
        let view = staging
            .slice(..end)
            .get_mapped_range()
            .map_err(|error| Error::runtime(format!("GPU error: memory could not be read: {error}")))?;
        let (head, body) = view.split_at(RECORD as usize);
        read(body);
        if flags { fault::error(head) } else { None }
    };
    staging.unmap();
    let mut stream = gpu.stream();
    stream.done(number + 1);
    if staging.size() <= STAGING_KEPT {
        stream.staging.push(staging);
    }
    drop(stream);
    bad.map_or(Ok(()), Err)
}

/// Waits for all work of the GPU; does nothing if it was never used.
pub fn synchronize() -> Result<()> {
    if opened().is_none() {
        return Ok(());
    }
    let gpu = gpu()?;
    let mut stream = gpu.stream();
    if stream.flags_due {
        let fetch = stream.fetch(gpu, None, 0)?;
        drop(stream);
        return fetch.map_or(Ok(()), |fetch| arrive(gpu, fetch, 0, |_| ()));
    }
    stream.flush(gpu);
    let submitted = submits();
    drop(stream);
    wait(gpu, None)?;
    gpu.stream().done(submitted);
    Ok(())
}

/// At exit: raises a fault that was not reported yet.
pub fn report_faults() -> Result<()> {
    let untold = opened().is_some_and(|gpu| gpu.stream().flags_due);
    if untold { synchronize() } else { Ok(()) }
}
