//! Operands lie on one device: asked of every call from Python before its row runs, so that no kernel has to. Nothing
//! moves by itself.

use super::row::{Arg, Kind, Param, Row};
use crate::base::{Device, Fault, Result};
use crate::tensor::Tensor;

/// Rows made of pointwise ones, which let 0-d tensors on the CPU go along and ask for themselves.
const BY_ELEMENT: &[&str] =
    &["binary_cross_entropy_with_logits", "huber_loss", "l1_loss", "mse_loss", "smooth_l1_loss"];

/// Parameters that may lie elsewhere: they are copied from there, or only a number or a shape of theirs is wanted.
fn may_be_elsewhere(row: &Row, param: &Param) -> bool {
    param.elsewhere
        || param.kind == Kind::Any
        || matches!(
            (row.name, param.name),
            ("copy", "src")
                | ("fill" | "index_fill" | "masked_fill", "value")
                | ("index_put", "indices" | "values")
        )
}

/// Refuses operands that are scattered over devices.
pub fn check(row: &Row, args: &[Arg]) -> Result<()> {
    if !any_elsewhere()
        || row.elementwise
        || matches!(row.family, "pointwise" | "compare")
        || BY_ELEMENT.contains(&row.name)
    {
        return Ok(());
    }
    let mut first: Option<Device> = None;
    for (param, arg) in row.params.iter().zip(args) {
        if may_be_elsewhere(row, param) {
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

/// A value to be put into `target`: a 0-d one is brought along from the CPU.
pub fn beside(value: &Tensor, target: &Tensor) -> Result<Tensor> {
    let (here, there) = (value.device(), target.device());
    if here == there {
        return Ok(value.clone());
    }
    if value.ndim() == 0 && here.is_cpu() {
        return super::create::to_device(value, there);
    }
    Err(Fault::Devices { a: there, b: here }.into())
}
