//! Transfers between host and GPU.

use crate::base::{DType, Error, Result, try_alloc};
use crate::gpu::device::gpu;
use crate::gpu::device::memory::{Buffer, alloc};
use crate::gpu::device::stream::{arrive, synchronize};
use crate::gpu::device::view::View;
use crate::gpu::kernels::pointwise::copy;
use crate::gpu::launch::kept::note_other;

/// Larger transfers are split into pieces of this size, so that staging memory stays small. A multiple of
/// four.
const PIECE: usize = 64 << 20;

/// From this many bytes on we check for host memory first: if wgpu finds none for staging, the device is
/// lost.
const STAGED: usize = 64 << 10;
/// wgpu takes staging memory in blocks of this size.
const HELD: usize = 64 << 20;

/// Copies bytes from the host; `data` can be reused at once.
pub fn upload(buffer: &Buffer, offset: usize, data: &[u8]) -> Result<()> {
    let gpu = gpu()?;
    buffer.check(offset, data.len())?;
    if data.is_empty() {
        return Ok(());
    }
    note_other();
    let end = offset + data.len();
    // wgpu writes whole words: bytes past the end of a buffer may be overwritten, others must not.
    if !offset.is_multiple_of(4) || !(end.is_multiple_of(4) || end == buffer.len()) {
        return upload_between(buffer, offset, data);
    }
    if data.len() >= STAGED {
        try_alloc::check(1, 2 * data.len().min(PIECE) + HELD)?;
    }
    let mut stream = gpu.stream();
    stream.flush(gpu);
    let whole = data.len() & !3;
    let raw = buffer.raw()?;
    for (i, piece) in data[..whole].chunks(PIECE).enumerate() {
        if i > 0 {
            // Only a submission releases the staging memory of the last piece.
            gpu.queue.submit([]);
        }
        gpu.queue.write_buffer(raw, (offset + i * PIECE) as u64, piece);
    }
    if whole < data.len() {
        let mut last = [0; 4];
        last[..data.len() - whole].copy_from_slice(&data[whole..]);
        gpu.queue.write_buffer(raw, (offset + whole) as u64, &last);
    }
    drop(stream);
    gpu.healthy()
}

/// Uploads bytes that begin or end inside a word whose other bytes must stay unchanged, with a kernel.
fn upload_between(buffer: &Buffer, offset: usize, data: &[u8]) -> Result<()> {
    let aside = alloc(data.len())?;
    upload(&aside, 0, data)?;
    let shape = [data.len()];
    let view = |buffer, offset| View { buffer, dtype: DType::U8, shape: &shape, strides: &[1], offset };
    copy(view(buffer, offset), view(&aside, 0))
}

/// Copies bytes to the host after waiting for the kernels that write them. Raises faults of earlier
/// kernels.
pub fn download(buffer: &Buffer, offset: usize, out: &mut [u8]) -> Result<()> {
    let gpu = gpu()?;
    note_other();
    buffer.check(offset, out.len())?;
    if out.is_empty() {
        return synchronize();
    }
    for (i, piece) in out.chunks_mut(PIECE).enumerate() {
        let offset = offset + i * PIECE;
        let start = offset & !3;
        let bytes = ((offset + piece.len()).next_multiple_of(4) - start) as u64;
        let fetch = gpu.stream().fetch(gpu, Some((buffer.raw()?, start as u64)), bytes)?;
        let Some(fetch) = fetch else { return Err(Error::runtime("GPU error: nothing was submitted")) };
        let skip = offset - start;
        arrive(gpu, fetch, bytes, |body| piece.copy_from_slice(&body[skip..skip + piece.len()]))?;
    }
    Ok(())
}
