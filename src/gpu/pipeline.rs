//! Compiled kernels, cached by key. Shapes, strides and scalars are parameters of a launch, never part of a
//! kernel.

use super::code::{GROUP, IMMEDIATE_WORDS, Shader};
use super::device::Gpu;
use super::pool::out_of_memory;
use super::spirv;
use crate::base::lock;
use crate::base::{Error, Result, try_alloc};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Distinguishes one kernel from another: its family, its expression, and the choices in its code.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key {
    pub family: &'static str,
    pub name: &'static str,
    pub code: SmallVec<[u8; 24]>,
}

impl Key {
    pub fn new(family: &'static str, name: &'static str) -> Key {
        Key { family, name, code: SmallVec::new() }
    }

    pub fn with(mut self, choice: u8) -> Key {
        self.code.push(choice);
        self
    }
}

/// Host memory in bytes that compiling a kernel may take.
const COMPILING: usize = 24 << 20;

pub(super) struct Kernel {
    pub pipeline: wgpu::ComputePipeline,
    pub layout: wgpu::BindGroupLayout,
}

#[derive(Default)]
pub(super) struct Kernels {
    made: Mutex<HashMap<Key, Arc<Kernel>>>,
}

impl Gpu {
    /// Returns the kernel for `key`; compiles it from `shader` on first use.
    pub fn kernel(&self, key: &Key, shader: impl FnOnce() -> Result<Shader>) -> Result<Arc<Kernel>> {
        if let Some(kernel) = lock(&self.kernels.made).get(key) {
            return Ok(Arc::clone(kernel));
        }
        let kernel = Arc::new(self.compile(key, &shader()?)?);
        lock(&self.kernels.made).insert(key.clone(), Arc::clone(&kernel));
        Ok(kernel)
    }

    fn compile(&self, key: &Key, shader: &Shader) -> Result<Kernel> {
        let checks = if self.checked {
            wgpu::ShaderRuntimeChecks::checked()
        } else {
            wgpu::ShaderRuntimeChecks::unchecked()
        };
        // Check for memory first: a driver that runs out of memory while it compiles ends the process.
        try_alloc::check(1, COMPILING)?;
        let memory = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let fails = |error: &dyn std::fmt::Display| {
            Error::runtime(format!(
                "GPU error: the kernel {} {} does not compile on this GPU: {error}\n{}",
                key.family, key.name, shader.text
            ))
        };
        let module = if self.kept.anything() && !self.checked {
            let words = spirv::compile(&shader.text, self.kept).map_err(|error| fails(&error))?;
            let main = wgpu::PassthroughShaderEntryPoint {
                name: "main".into(),
                workgroup_size: (GROUP as u32, 1, 1),
            };
            // SAFETY: naga generated the code from a module that it validated, and every kernel guards its
            // own indices.
            unsafe {
                self.device.create_shader_module_passthrough(wgpu::ShaderModuleDescriptorPassthrough {
                    entry_points: [main].as_slice().into(),
                    spirv: Some(words.into()),
                    ..Default::default()
                })
            }
        } else {
            let source = wgpu::ShaderSource::Wgsl(shader.text.as_str().into());
            // SAFETY: every kernel guards its own indices, so bounds checks can be omitted.
            unsafe {
                self.device.create_shader_module_trusted(
                    wgpu::ShaderModuleDescriptor { label: None, source },
                    checks,
                )
            }
        };
        let entries: Vec<_> = (0..shader.bindings as u32)
            .map(|binding| wgpu::BindGroupLayoutEntry {
                binding,
                visibility: wgpu::ShaderStages::COMPUTE,
                ty: wgpu::BindingType::Buffer {
                    ty: wgpu::BufferBindingType::Storage { read_only: shader.read_only >> binding & 1 == 1 },
                    has_dynamic_offset: false,
                    min_binding_size: None,
                },
                count: None,
            })
            .collect();
        let layout = self
            .device
            .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries });
        let whole = self.device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: None,
            bind_group_layouts: &[Some(&layout)],
            immediate_size: 4 * IMMEDIATE_WORDS as u32,
        });
        let pipeline = self.device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(key.name),
            layout: Some(&whole),
            module: &module,
            entry_point: Some("main"),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: &[],
                zero_initialize_workgroup_memory: false,
            },
            cache: None,
        });
        let (wrong, short) = (pollster::block_on(scope.pop()), pollster::block_on(memory.pop()));
        if short.is_some() {
            return Err(out_of_memory(shader.text.len(), "It was for the code of a kernel."));
        }
        match wrong {
            None => Ok(Kernel { pipeline, layout }),
            Some(error) => Err(fails(&error)),
        }
    }
}

/// Validates a kernel as wgpu will, without a GPU.
#[cfg(test)]
pub(super) fn validate(shader: &Shader) {
    use wgpu::naga::{front::wgsl, valid};
    let module = wgsl::parse_str(&shader.text)
        .unwrap_or_else(|e| panic!("{}\n{}", e.emit_to_string(&shader.text), shader.text));
    let mut validator = valid::Validator::new(valid::ValidationFlags::all(), valid::Capabilities::all());
    if let Err(error) = validator.validate(&module) {
        panic!("{}\n{}", error.emit_to_string(&shader.text), shader.text);
    }
    for (_, variable) in module.global_variables.iter() {
        if let Some(binding) = &variable.binding {
            assert!((binding.binding as usize) < shader.bindings, "{}", shader.text);
        }
    }
}
