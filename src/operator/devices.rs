//! Operands lie on one device: asked of every call from Python before its row runs, so that no kernel has to. Nothing
//! moves by itself.

use crate::base::{Device, Fault, Result};
use crate::operator::row::{Arg, Kind, Row};
use crate::tensor::Tensor;

/// Refuses operands that are scattered over devices.
pub fn check(row: &Row, args: &[Arg]) -> Result<()> {
    if !any_elsewhere() || row.elementwise {
        return Ok(());
    }
    let mut first: Option<Device> = None;
    for (param, arg) in row.params.iter().zip(args) {
        if param.elsewhere || param.kind == Kind::Any {
            continue;
        }
        for t in tensors(arg) {
            let here = t.device();
            match first {
                None => first = Some(here),
                Some(others) if others == here => {}
                Some(others) => {
                    return Err(Fault::Elsewhere { name: param.name, here, others, op: row.name }.into());
                }
            }
        }
    }
    Ok(())
}

/// Whether any tensor can be elsewhere than on the CPU.
pub fn any_elsewhere() -> bool {
    #[cfg(feature = "gpu")]
    return crate::gpu::is_open();
    #[cfg(not(feature = "gpu"))]
    false
}

fn tensors(arg: &Arg) -> &[Tensor] {
    match arg {
        Arg::Tensor(t) => std::slice::from_ref(t),
        Arg::Tensors(list) => list,
        _ => &[],
    }
}
