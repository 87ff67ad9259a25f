//! The rooms below the families, without these: a trait or a method that a family gave to one of their types would not be found.

#[path = "../../src/arena/mod.rs"]
pub mod arena;
#[path = "../../src/backward/mod.rs"]
pub mod backward;
#[path = "../../src/base/mod.rs"]
pub mod base;
#[path = "../../src/capture/mod.rs"]
pub mod capture;
#[path = "../../src/cpu/mod.rs"]
pub mod cpu;
#[path = "../../src/operator/mod.rs"]
pub mod operator;
#[path = "../../src/storage/mod.rs"]
pub mod storage;
#[path = "../../src/tensor/mod.rs"]
pub mod tensor;
