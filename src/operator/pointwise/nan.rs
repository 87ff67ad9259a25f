//! The search for NaN in gradients, for anomaly mode.

use crate::base::{DType, Dims, Reduction, Result};
use crate::operator::bodies::conj_neg::values;
use crate::operator::bodies::reduce;
use crate::operator::pointwise::{Expr, Input, compute_type, execute, loops};
use crate::tensor::{Body, Tensor};

static IS_NAN: Expr = Expr {
    key: "is_nan",
    inputs: &["x"],
    wgsl: "is_nan(x)",
    loops: loops!(Test; (x,) is_nan(x)),
    #[cfg(feature = "gpu")]
    by_parts: None,
    of_parts: None,
};

/// True if an element, or a part of a complex element, is NaN.
pub fn has_nan(t: &Tensor) -> Result<bool> {
    if t.is_batched() {
        // Under `vmap` there is no single answer: `item` returns the error.
        return t.item().map(|number| number.as_bool());
    }
    let x = values(&t.body())?;
    let x = if x.dtype.is_complex() { x.as_parts() } else { x };
    let found = Body::new(x.shape(), DType::Bool, x.device())?;
    execute(IS_NAN.key, &IS_NAN, compute_type(x.dtype), &found, &[Input::Body(&x)])?;
    let all: Dims = (0..x.layout.ndim()).collect();
    Ok(Tensor::new(reduce(Reduction::Any, &found, &all, DType::Bool)?).item()?.as_bool())
}
