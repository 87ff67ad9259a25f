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

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Device {
    Cpu,
    Gpu(GpuName, u8),
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

    /// Whether both name the same memory, whatever they are called.
    pub fn same_place(self, other: Device) -> bool {
        match (self, other) {
            (Device::Cpu, Device::Cpu) => true,
            (Device::Gpu(_, a), Device::Gpu(_, b)) => a == b,
            _ => false,
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
