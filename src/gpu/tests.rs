//! Tests that compare the GPU with plain Rust. They need an adapter; Mesa's software adapter suffices.

use super::*;
use crate::base::{DType, Dims, Put, Scalar, contiguous_strides, numel};

/// Without an adapter the numeric tests fail rather than pass silently.
fn ready() {
    // SAFETY: every test sets the same value, before the GPU is first used.
    unsafe { std::env::set_var("GRADIRON_SOFTWARE_GPU", "1") };
    assert!(available(), "these tests need a Vulkan adapter, for instance Mesa's lavapipe");
}

/// Runs the test of this name in its own process; returns true in that process.
fn alone(name: &str) -> bool {
    if std::env::var_os("GRADIRON_TEST_ALONE").is_some() {
        return true;
    }
    let me = std::env::current_exe().unwrap();
    let out = std::process::Command::new(me)
        .args([name, "--exact", "--test-threads=1", "--nocapture"])
        .env("GRADIRON_TEST_ALONE", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(
        out.status.success() && text.contains("1 passed"),
        "{text}\n{}",
        String::from_utf8_lossy(&out.stderr)
    );
    false
}

pub(super) struct Array {
    pub buffer: Buffer,
    pub dtype: DType,
    pub shape: Dims,
    pub strides: Dims,
    pub offset: usize,
}

impl Array {
    pub fn new<E: bytemuck::Pod>(dtype: DType, shape: &[usize], data: &[E]) -> Array {
        ready();
        let bytes: &[u8] = bytemuck::cast_slice(data);
        assert_eq!(bytes.len(), numel(shape) * dtype.size());
        let buffer = alloc(bytes.len()).unwrap();
        upload(&buffer, 0, bytes).unwrap();
        Array { buffer, dtype, shape: Dims::from_slice(shape), strides: contiguous_strides(shape), offset: 0 }
    }

    pub fn f32(shape: &[usize], data: &[f32]) -> Array {
        Array::new(DType::F32, shape, data)
    }

    pub fn empty(dtype: DType, shape: &[usize]) -> Array {
        Array::new(dtype, shape, &vec![0xaau8; numel(shape) * dtype.size()])
    }

    pub fn view(&self) -> View<'_> {
        let Array { buffer, dtype, shape, strides, offset } = self;
        View { buffer, dtype: *dtype, shape, strides, offset: *offset }
    }

    pub fn source(&self) -> Source<'_> {
        Source::View(self.view())
    }

    /// The same memory with two dimensions swapped.
    pub fn swap(&self, a: usize, b: usize) -> Array {
        let mut other = Array {
            buffer: self.buffer.clone(),
            shape: self.shape.clone(),
            strides: self.strides.clone(),
            ..*self
        };
        other.shape.swap(a, b);
        other.strides.swap(a, b);
        other
    }

    pub fn reshaped(&self, shape: &[usize], strides: &[usize], offset: usize) -> Array {
        Array {
            buffer: self.buffer.clone(),
            dtype: self.dtype,
            shape: Dims::from_slice(shape),
            strides: Dims::from_slice(strides),
            offset,
        }
    }

    /// Reads all bytes of the memory, as numbers.
    pub fn read<E: bytemuck::Pod>(&self) -> Vec<E> {
        let mut bytes = vec![0u8; self.buffer.len()];
        download(&self.buffer, 0, &mut bytes).unwrap();
        bytemuck::pod_collect_to_vec(&bytes)
    }
}

/// Pseudo-random numbers.
pub(super) fn noise(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state >> 8) as f32 / (1 << 23) as f32 - 1.0
        })
        .collect()
}

mod basics;
mod creation;
mod functions;
mod groups;
mod indexing;
mod kernels;
mod products;
mod reductions;
mod robust;
mod rowwise;
