//! The default dtype of floats.

use crate::base::DType;
use std::sync::atomic::{AtomicU8, Ordering};

static DEFAULT: AtomicU8 = AtomicU8::new(DType::F32 as u8);

pub fn default_dtype() -> DType {
    let code = DEFAULT.load(Ordering::Relaxed);
    DType::ALL[usize::from(code)]
}

pub fn set_default_dtype(dtype: DType) {
    DEFAULT.store(dtype as u8, Ordering::Relaxed);
}
