//! The beginning and end of transforms: `vmap`, forward mode, `func`. What an operator does inside them is in
//! `operator/batch` and `operator/tangent`; the active ones are listed in `tensor/levels`.

pub mod forward;
pub mod vmap;

pub use crate::tensor::levels::func;
