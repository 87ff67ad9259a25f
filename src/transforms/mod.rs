//! The transforms as users begin and end them: `vmap`, forward mode, functions that are differentiated. What a call does inside of
//! them is the operators' protocol (`operator/batch`, `operator/tangent`); which are under way stands in `tensor/levels`.

pub mod forward;
pub mod vmap;

pub use crate::tensor::levels::func;
