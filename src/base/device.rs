//! Where a tensor's bytes live.

use std::fmt;

/// The name under which the user asked for the GPU; all of them mean the wgpu adapter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum GpuName {
    Cuda,
    Mps,
    Gpu,
    Wgpu,
}

/// Equal where they are the same memory, whatever they are called.
#[derive(Clone, Copy, Debug)]
pub enum Device {
    Cpu,
    Gpu(GpuName, u8),
    /// Nowhere: sizes and types without elements.
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

    /// `cuda`, `cpu`: the type without the index.
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

    /// Which memory it is: the GPU's number, or one below them.
    const fn number(self) -> i16 {
        match self {
            Device::Cpu => -1,
            Device::Meta => -2,
            Device::Gpu(_, number) => number as i16,
        }
    }

    /// The device of what is made from both, which are one: where they have two names for it, PyTorch's own.
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
