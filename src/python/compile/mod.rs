//! `torch.compile`: captured calls, and what they read of Python's objects.

mod constants;
pub mod guards;
pub mod program;
pub mod state;
