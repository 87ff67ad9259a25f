//! Shaders: `code` writes WGSL, `stored` knows how dtypes lie in storage buffers, `prelude` holds the scalar functions,
//! `spirv` compiles.

pub mod code;
pub mod prelude;
#[cfg(test)]
pub mod samples;
pub mod spirv;
pub mod stored;
