//! The arena's room without the house.

#[path = "../../src/arena/mod.rs"]
pub mod arena;
