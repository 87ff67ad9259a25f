//! `torch.compile`: captured calls, and what they read of Python's objects.

pub mod calls;
mod constants;
pub mod direct;
pub mod guards;
pub mod program;
pub mod state;
