//! All operands of a call must be on one device. Every call from Python is checked before its row runs, so
//! kernels need not check. No tensor is moved implicitly.

use crate::base::{Device, Fault, Result};
use crate::operator::row::{Arg, Kind, Row};
use crate::tensor::Tensor;

/// Returns an error if the operands are on different devices.
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

/// True if a tensor can be on another device than the CPU.
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
