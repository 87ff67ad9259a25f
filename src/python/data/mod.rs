//! Values from elsewhere, and tensors as other memory: arrays, lists, DLPack, storages.

pub mod arrays;
pub mod dlpack;
pub mod nested_lists;
pub mod optimizer_program;
pub mod set_resize;
pub mod storage;
