//! Values that must be what an operator expects: looked at by a kernel, told of when the host next waits.

use crate::base::Result;
use crate::gpu::device::fault::{self, Origin};
use crate::gpu::device::gpu;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::View;
use crate::gpu::launch::index_space::{Space, Words, check, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::stored::Stored;

/// Leaves a fault of `origin` where the WGSL condition `holds` is false of a value `x`.
pub fn expect(origin: Origin, values: View<'_>, holds: &'static str) -> Result<()> {
    let gpu = gpu()?;
    gpu.supports(origin.op, values.dtype)?;
    check(&values)?;
    let n = values.numel();
    if n == 0 {
        return Ok(());
    }
    let space = Space::new(values.shape, &[values.strides]);
    let (stored, rank) = (Stored::of(values.dtype), space.rank());
    let mut words = Words::new();
    words.extend([n as u32, fault::ticket(origin), values.offset as u32]);
    space.push_dims(&mut words);
    space.push_strides(0, &mut words);
    gpu.launch(&Expect { stored, rank, holds }, &[values.buffer], &words, groups(n, GROUP))
}

/// Records a fault where the condition `holds` is false.
#[derive(Hash)]
struct Expect {
    stored: Stored,
    rank: usize,
    holds: &'static str,
}

impl ShaderKind for Expect {
    fn name(&self) -> &'static str {
        "expect"
    }

    fn shader(&self) -> Shader {
        let Expect { stored, rank, holds } = *self;
        let mut code = Code::new(stored.value());
        code.flags();
        code.operand("x", stored, false, false);
        code.main_by_item();
        let [n, ticket, offset] = [code.word(), code.word(), code.word()];
        code.push(&format!("  if (i >= {n}) {{ return; }}\n"));
        let dims = code.words(rank - 1);
        code.push(&Code::split("i", "c", &dims));
        let strides = code.words(rank);
        code.push(&format!(
            "  let x = x_get({offset} + {});\n  if (!({holds}) && atomicExchange(&flags[0], 1u) == 0u) {{ \
         atomicStore(&flags[1], {ticket}); }}\n}}\n",
            Code::dot("c", &strides)
        ));
        code.finish()
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(Expect, |check| {
    for stored in [Stored::F16, Stored::F32, Stored::F64] {
        for rank in [1, 4] {
            check(&Expect { stored, rank, holds: "x >= T(0) && x <= T(1)" });
        }
    }
});
