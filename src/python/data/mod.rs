//! Tensors from and to arrays, lists, DLPack and storages.

pub mod arrays;
pub mod dlpack;
pub mod nested_lists;
pub mod optimizer_program;
pub mod set_resize;
pub mod storage;
