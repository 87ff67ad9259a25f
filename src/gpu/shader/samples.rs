//! Samples of each kernel, which a test validates without a GPU.

use crate::gpu::shader::code::Shader;

/// A check of one shader.
pub(in crate::gpu) type ShaderCheck = dyn Fn(&Shader);

/// The samples of one [`ShaderKind`](crate::gpu::device::pipeline::ShaderKind).
pub(in crate::gpu) struct ShaderSamples {
    pub kind: &'static str,
    /// Calls its argument with the shader of each sample.
    pub each: fn(&ShaderCheck),
}

inventory::collect!(ShaderSamples);

/// Registers the samples of a kind: `shader_samples!(Kind, |check| { check(&Kind { .. }); })`.
macro_rules! shader_samples {
    ($kind:ty, |$check:ident| $body:expr) => {
        inventory::submit! {
            $crate::gpu::shader::samples::ShaderSamples {
                kind: stringify!($kind),
                each: |validate| {
                    let $check = |kind: &$kind| validate(&kind.shader());
                    $body
                },
            }
        }
    };
}
pub(in crate::gpu) use shader_samples;
