//! Devices.

use std::fmt;

/// The name by which the user asked for the GPU. All names mean the wgpu adapter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GpuName {
    Cuda,
    Mps,
    Gpu,
    Wgpu,
}

/// A device. Two devices are equal if they have the same memory, whatever their names.
#[derive(Clone, Copy, Debug)]
pub enum Device {
    Cpu,
    Gpu(GpuName, u8),
    /// Tensors with shape and dtype, but without elements.
    Meta,
}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        self.number() == other.number()
    }
}

impl Eq for Device {}

impl std::hash::Hash for Device {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.number().hash(state);
    }
}

impl Device {
    pub const fn is_cpu(self) -> bool {
        matches!(self, Device::Cpu)
    }

    pub const fn is_gpu(self) -> bool {
        matches!(self, Device::Gpu(..))
    }

    pub const fn is_meta(self) -> bool {
        matches!(self, Device::Meta)
    }

    /// The device type without the index: `cuda`, `cpu`.
    pub const fn kind(self) -> &'static str {
        match self {
            Device::Cpu => "cpu",
            Device::Meta => "meta",
            Device::Gpu(GpuName::Cuda, _) => "cuda",
            Device::Gpu(GpuName::Mps, _) => "mps",
            Device::Gpu(GpuName::Gpu, _) => "gpu",
            Device::Gpu(GpuName::Wgpu, _) => "wgpu",
        }
    }

    /// A number for the memory: the GPU's index, or negative.
    const fn number(self) -> i16 {
        match self {
            Device::Cpu => -1,
            Device::Meta => -2,
            Device::Gpu(_, number) => number as i16,
        }
    }

    /// The device of a result made from both operands. If their names differ, it is PyTorch's own name,
    /// `cuda`.
    pub fn joined(self, other: Device) -> Device {
        match (self, other) {
            (Device::Gpu(a, number), Device::Gpu(b, _)) if a != b => Device::Gpu(GpuName::Cuda, number),
            _ => self,
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Cpu | Device::Meta => f.write_str(self.kind()),
            Device::Gpu(_, index) => write!(f, "{}:{index}", self.kind()),
        }
    }
}
