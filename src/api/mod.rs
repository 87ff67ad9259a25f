//! Tensors as a Rust program uses them: constructors, methods, arithmetic, printing and `backward`. What has no method here is a
//! function in [`ops`](crate::ops).

mod arithmetic;
mod create;
mod display;
mod gradients;
mod methods;
#[cfg(test)]
mod tests;

pub use arithmetic::Term;
pub use create::{Number, manual_seed};
pub use gradients::{grad, no_grad};
