//! Checks of values by a kernel; a violation is reported when the host next waits.

use super::View;
use super::code::{Code, GROUP, Shader};
use super::device::gpu;
use super::fault::{self, Origin};
use super::index_space::{Space, Words, check, groups};
use super::pipeline::Key;
use super::stored::Stored;
use super::stream::Launch;
use crate::base::Result;

/// Records a fault of `origin` if the WGSL condition `holds` is false for any value `x`.
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
    let key = Key::new("expect", holds).with(stored as u8).with(rank as u8);
    let kernel = gpu.kernel(&key, || Ok(shader(stored, rank, holds)))?;
    let launch = Launch {
        kernel: &kernel,
        buffers: &[values.buffer],
        words: &words,
        groups: groups(n, GROUP),
        flags: true,
    };
    gpu.stream().launch(gpu, &launch)
}

fn shader(stored: Stored, rank: usize, holds: &str) -> Shader {
    let mut code = Code::new(2 + 2 * rank + 1, stored.value());
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

#[cfg(test)]
mod tests {
    use super::super::pipeline::validate;
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for stored in [Stored::F16, Stored::F32, Stored::F64] {
            for rank in [1, 4] {
                validate(&shader(stored, rank, "x >= T(0) && x <= T(1)"));
            }
        }
    }
}
