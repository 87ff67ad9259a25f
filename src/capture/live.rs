//! Tensors that hold a number of the host language which each replay is given anew.

use crate::base::{DType, Device, Result, Scalar};
use crate::capture::recorder::{Recorder, run};
use crate::tensor::{Body, Tensor};

/// A new tensor of one element and no dimensions on the host: the number at this index of those that each replay is given.
pub fn live_tensor(number: f64, index: u32, dtype: DType) -> Result<Tensor> {
    let body = Body::new(&[], dtype, Device::Cpu)?;
    let write = |body: &Body, number: f64| {
        // SAFETY: the body has one element of its own.
        unsafe { Scalar::Float(number).write(body.dtype, body.host_of_any_dtype()?.ptr) };
        Ok(())
    };
    let keep = |recorder: &mut Recorder| {
        let (out, number) = (recorder.stand_in(&body)?, recorder.live_number(index));
        Ok(move || write(&out, number.get()))
    };
    run(keep, || write(&body, number))?;
    Ok(Tensor::new(body))
}
