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

    /// `cuda`, `cpu`: the type without the index.
    pub const fn kind(self) -> &'static str {
        match self {
            Device::Cpu => "cpu",
            Device::Gpu(GpuName::Cuda, _) => "cuda",
            Device::Gpu(GpuName::Mps, _) => "mps",
            Device::Gpu(GpuName::Gpu, _) => "gpu",
            Device::Gpu(GpuName::Wgpu, _) => "wgpu",
        }
    }

    /// Which GPU it is, if it is one.
    const fn number(self) -> Option<u8> {
        match self {
            Device::Cpu => None,
            Device::Gpu(_, number) => Some(number),
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
            Device::Cpu => f.write_str("cpu"),
            Device::Gpu(_, index) => write!(f, "{}:{index}", self.kind()),
        }
    }
}
