//! Kernels as SPIR-V that preserves subnormal numbers, the sign of zero, infinities and NaN. WGSL cannot
//! express that, and by default a driver may drop all of them; so where Vulkan can preserve them, wgpu gets
//! SPIR-V that requests it.

use wgpu::naga::back::spv;
use wgpu::naga::front::wgsl;
use wgpu::naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use wgpu::naga::{ShaderStage, valid};

/// The float behaviour that the driver can preserve, for 32 and 64 bits.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub(in crate::gpu) struct FloatPromises {
    subnormal: [bool; 2],
    special: [bool; 2],
}

const WIDTHS: [u32; 2] = [32, 64];

// Numbers from the SPIR-V specification.
const OP_EXTENSION: u32 = 10;
const OP_ENTRY_POINT: u32 = 15;
const OP_EXECUTION_MODE: u32 = 16;
const OP_CAPABILITY: u32 = 17;
/// The capability and the execution mode of `DenormPreserve` and of `SignedZeroInfNanPreserve`.
const SUBNORMAL: (u32, u32) = (4464, 4459);
const SPECIAL: (u32, u32) = (4466, 4461);
const EXTENSION: &[u8; 24] = b"SPV_KHR_float_controls\0\0";
/// Words before the first instruction.
const HEADER: usize = 5;

impl FloatPromises {
    /// Queries the driver.
    #[cfg(not(target_vendor = "apple"))]
    pub fn of(adapter: &wgpu::Adapter) -> FloatPromises {
        use ash::vk;
        let mut controls = vk::PhysicalDeviceFloatControlsProperties::default();
        // SAFETY: the handles are only queried for properties, while the adapter is alive.
        unsafe {
            let Some(vulkan) = adapter.as_hal::<wgpu::hal::api::Vulkan>() else {
                return FloatPromises::default();
            };
            // Both the query and the SPIR-V extension are part of Vulkan 1.2.
            if vulkan.physical_device_capabilities().properties().api_version < vk::API_VERSION_1_2 {
                return FloatPromises::default();
            }
            let mut properties = vk::PhysicalDeviceProperties2::default().push_next(&mut controls);
            let instance = vulkan.shared_instance().raw_instance();
            instance.get_physical_device_properties2(vulkan.raw_physical_device(), &mut properties);
        }
        let [mut subnormal, mut special] = [
            [controls.shader_denorm_preserve_float32, controls.shader_denorm_preserve_float64],
            [
                controls.shader_signed_zero_inf_nan_preserve_float32,
                controls.shader_signed_zero_inf_nan_preserve_float64,
            ],
        ]
        .map(|asked| asked.map(|promised| promised == vk::TRUE));
        if controls.denorm_behavior_independence == vk::ShaderFloatControlsIndependence::NONE {
            subnormal = [subnormal[0] && subnormal[1]; 2];
            special = [special[0] && special[1]; 2];
        }
        FloatPromises { subnormal, special }
    }

    #[cfg(target_vendor = "apple")]
    pub fn of(_adapter: &wgpu::Adapter) -> FloatPromises {
        FloatPromises::default()
    }

    pub fn anything(self) -> bool {
        self != FloatPromises::default()
    }

    /// Returns the capabilities to declare and the execution modes to set, for the widths in use.
    fn requests(self, used: [bool; 2]) -> Vec<(u32, u32, u32)> {
        let kinds = [(SUBNORMAL, self.subnormal), (SPECIAL, self.special)];
        let mut asked = Vec::new();
        for ((capability, mode), promised) in kinds {
            for at in 0..2 {
                if promised[at] && used[at] {
                    asked.push((capability, mode, WIDTHS[at]));
                }
            }
        }
        asked
    }
}

/// Compiles WGSL to SPIR-V as wgpu does without checks, and adds the requests of `kept`.
pub(in crate::gpu) fn compile(text: &str, kept: FloatPromises) -> Result<Vec<u32>, String> {
    let module = wgsl::parse_str(text).map_err(|error| error.emit_to_string(text))?;
    let info = valid::Validator::new(valid::ValidationFlags::all(), valid::Capabilities::all())
        .validate(&module)
        .map_err(|error| error.emit_to_string(text))?;
    let unchecked = BoundsCheckPolicy::Unchecked;
    let options = spv::Options {
        lang_version: (1, 5),
        flags: spv::WriterFlags::empty(),
        bounds_check_policies: BoundsCheckPolicies {
            index: unchecked,
            buffer: unchecked,
            image_load: unchecked,
            binding_array: unchecked,
        },
        zero_initialize_workgroup_memory: spv::ZeroInitializeWorkgroupMemoryMode::None,
        force_loop_bounding: false,
        emit_int_div_checks: false,
        ..spv::Options::default()
    };
    let entry = spv::PipelineOptions { shader_stage: ShaderStage::Compute, entry_point: "main".to_owned() };
    let words = spv::write_vec(&module, &info, &options, Some(&entry)).map_err(|error| error.to_string())?;
    let wide = module.types.iter().any(|(_, ty)| {
        ty.inner
            .scalar()
            .is_some_and(|scalar| scalar.kind == wgpu::naga::ScalarKind::Float && scalar.width == 8)
    });
    Ok(ask(&words, &kept.requests([true, wide])))
}

/// Inserts capabilities, the extension and execution modes at their places.
fn ask(words: &[u32], requests: &[(u32, u32, u32)]) -> Vec<u32> {
    let Some((header, mut rest)) = words.split_at_checked(HEADER) else { return words.to_vec() };
    if requests.is_empty() {
        return words.to_vec();
    }
    let mut made = Vec::with_capacity(words.len() + 8 * requests.len() + 8);
    made.extend(header);
    let mut entry = 0;
    let (mut declared, mut set) = (false, false);
    while let Some(&first) = rest.first() {
        let (count, operation) = ((first >> 16) as usize, first & 0xffff);
        let (instruction, after) = rest.split_at(count.clamp(1, rest.len()));
        if !declared && operation != OP_CAPABILITY {
            // Capabilities come first, then extensions.
            declared = true;
            for &(capability, ..) in requests {
                made.extend([2 << 16 | OP_CAPABILITY, capability]);
            }
            made.push((1 + EXTENSION.len() as u32 / 4) << 16 | OP_EXTENSION);
            made.extend(EXTENSION.as_chunks().0.iter().map(|&bytes| u32::from_le_bytes(bytes)));
        }
        if entry != 0 && !set && operation != OP_ENTRY_POINT {
            // Execution modes follow the entry points.
            set = true;
            for &(_, mode, width) in requests {
                made.extend([4 << 16 | OP_EXECUTION_MODE, entry, mode, width]);
            }
        }
        if operation == OP_ENTRY_POINT {
            entry = instruction.get(2).copied().unwrap_or(0);
        }
        made.extend(instruction);
        rest = after;
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: FloatPromises = FloatPromises { subnormal: [true; 2], special: [true; 2] };
    const TEXT: &str = "@group(0) @binding(0) var<storage, read_write> a: array<f32>;\n\
                        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) g: vec3<u32>) { a[g.x] *= 2.0; }";

    fn instructions(words: &[u32]) -> Vec<&[u32]> {
        let mut rest = &words[HEADER..];
        let mut found = Vec::new();
        while let Some(&first) = rest.first() {
            let (one, after) = rest.split_at((first >> 16) as usize);
            found.push(one);
            rest = after;
        }
        found
    }

    #[test]
    fn what_is_kept_is_asked_for_in_its_place() {
        let plain = compile(TEXT, FloatPromises::default()).unwrap();
        let asking = compile(TEXT, ALL).unwrap();
        let (before, after) = (instructions(&plain), instructions(&asking));
        let added: Vec<_> = after.iter().filter(|one| !before.contains(one)).collect();
        let operations: Vec<_> = added.iter().map(|one| one[0] & 0xffff).collect();
        // Only for float32: the kernel has no float64.
        assert_eq!(
            operations,
            [OP_CAPABILITY, OP_CAPABILITY, OP_EXTENSION, OP_EXECUTION_MODE, OP_EXECUTION_MODE]
        );
        let place = |operation| after.iter().position(|one| one[0] & 0xffff == operation).unwrap();
        assert!(place(OP_CAPABILITY) < place(OP_EXTENSION) && place(OP_EXTENSION) < place(OP_ENTRY_POINT));
        assert_eq!(place(OP_EXECUTION_MODE), place(OP_ENTRY_POINT) + 1);
        let entry = after[place(OP_ENTRY_POINT)][2];
        assert_eq!(added[3][1..], [entry, SUBNORMAL.1, 32]);
    }

    #[test]
    fn without_a_promise_nothing_is_asked_for() {
        assert!(!FloatPromises::default().anything() && ALL.anything());
        let text = compile(TEXT, FloatPromises::default()).unwrap();
        assert!(
            instructions(&text)
                .iter()
                .all(|one| one[0] & 0xffff != OP_EXTENSION || !one.contains(&u32::from_le_bytes(*b"SPV_")))
        );
    }

    #[test]
    fn wrong_text_is_an_error() {
        assert!(compile("fn main() -> u32 { return 1.5; }", ALL).is_err());
    }
}
