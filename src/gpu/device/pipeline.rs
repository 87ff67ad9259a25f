//! The cache of compiled kernels. Shapes, strides and scalars are parameters of a launch, never part of a kernel.

use crate::base::lock;
use crate::base::{Error, Result, try_alloc};
use crate::gpu::device::Gpu;
use crate::gpu::device::memory::out_of_memory;
use crate::gpu::shader::code::{GROUP, IMMEDIATE_WORDS, Shader};
use crate::gpu::shader::spirv;
use smallvec::SmallVec;
use std::any::type_name;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex};

/// All that the text of a shader depends on. Every field takes part in the cache's key, since `Hash` is derived.
pub(in crate::gpu) trait ShaderKind: Hash {
    /// The operator's name, for errors and profiles.
    fn name(&self) -> &'static str;

    fn shader(&self) -> Shader;
}

/// The fields of a [`ShaderKind`], byte by byte, and the name of its type.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    kind: &'static str,
    fields: SmallVec<[u8; 192]>,
}

impl Key {
    fn new<K: ShaderKind>(kind: &K) -> Key {
        let mut key = Key { kind: type_name::<K>(), fields: SmallVec::new() };
        kind.hash(&mut key);
        key
    }
}

/// Stores the hashed bytes instead of mixing them, so that two kinds never share a key.
impl Hasher for Key {
    fn write(&mut self, bytes: &[u8]) {
        self.fields.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

/// Host memory in bytes that compiling a kernel may take.
const COMPILING: usize = 24 << 20;

pub(in crate::gpu) struct Kernel {
    pub name: &'static str,
    pub pipeline: wgpu::ComputePipeline,
    pub layout: wgpu::BindGroupLayout,
    /// How many parameter words the shader reads.
    pub words: usize,
    /// True if the kernel may record a fault; its last binding then is the record.
    pub flags: bool,
}

#[derive(Default)]
pub(in crate::gpu) struct Kernels {
    compiled: Mutex<HashMap<Key, Arc<Kernel>>>,
}

impl Gpu {
    /// Returns the kernel of `kind`, compiled on first use.
    pub(in crate::gpu) fn kernel(&self, kind: &impl ShaderKind) -> Result<Arc<Kernel>> {
        let key = Key::new(kind);
        if let Some(kernel) = lock(&self.kernels.compiled).get(&key) {
            return Ok(Arc::clone(kernel));
        }
        let kernel = Arc::new(self.compile(kind.name(), &kind.shader())?);
        lock(&self.kernels.compiled).insert(key, Arc::clone(&kernel));
        Ok(kernel)
    }

    fn compile(&self, name: &'static str, shader: &Shader) -> Result<Kernel> {
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
                "GPU error: the kernel {name} does not compile on this GPU: {error}\n{}",
                shader.text
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
            label: Some(name),
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
            None => Ok(Kernel { name, pipeline, layout, words: shader.words, flags: shader.flags }),
            Some(error) => Err(fails(&error)),
        }
    }
}
