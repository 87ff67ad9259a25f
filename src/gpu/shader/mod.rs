//! Shaders: `code` writes WGSL, `stored` knows how dtypes lie in storage buffers, `prelude` holds the scalar functions,
//! `index_space` and `row_walk` turn shapes into parameters, `pipeline` compiles each kind once.

pub mod code;
pub mod index_space;
pub mod pipeline;
pub mod prelude;
pub mod row_walk;
pub mod spirv;
pub mod stored;
