//! The machinery of operators, which knows no single one: what a row says ([`row`], facts), and how a call of a primitive runs
//! ([`primitive`]). `docs/rows.md` explains the language that families write.

pub mod addition;
pub mod batch;
pub mod clauses;
pub mod complex_views;
pub mod conj_neg;
pub mod constant;
pub mod copies;
pub mod copy_slices;
pub mod declare;
pub mod derivative;
pub mod detached;
pub mod devices;
pub mod dtype_checks;
pub mod generator;
pub mod grad_expr;
pub mod grad_value;
pub mod index_kernel;
pub mod inplace;
pub mod inplace_view;
pub mod join;
pub mod kernel;
pub mod names;
pub mod nan;
pub mod operand;
pub mod out;
pub mod overlap;
pub mod pointwise;
pub mod primitive;
pub mod program;
mod registry;
pub mod results;
pub mod row;
pub mod strided;
pub mod sums;
pub mod tangent;
pub mod view_part;
pub mod views;
pub mod write;

pub use crate::base::{Error, Result};
pub use crate::tensor::{Body, Derivative, Grads, Meta, Step, Tensor, facts};
pub use grad_expr::IntoGrad;
pub use grad_value::V;
pub(crate) use names::same;
pub use names::{OUTPUTS, always_saved, camel, saved_name, saved_order};
pub use operand::Operand;
pub use pointwise::row::source_bits;
pub use registry::{Registered, rows};
pub use row::{
    Arg, Autocast, Forms, FromArg, IntArgs, Ints, Kind, Out, OutFacts, OutRule, Param, Returned, Row, Scaled,
    Several, Sizes, operand_kind, take,
};
pub use smallvec;

/// What the macros' code calls.
pub use inventory;

/// The family that a source file stands for: `softmax` for `src/ops/reduction/softmax.rs`, `random` for
/// `src/ops/random/mod.rs`.
pub const fn family(file: &'static str) -> &'static str {
    let (folder, name) = last_part(match file.as_bytes().split_last_chunk::<3>() {
        Some((stem, b".rs")) => stem,
        _ => file.as_bytes(),
    });
    let name = if matches!(name, b"mod") { last_part(folder).1 } else { name };
    match std::str::from_utf8(name) {
        Ok(name) => name,
        Err(_) => file,
    }
}

/// A path's folder and what lies in it.
const fn last_part(path: &[u8]) -> (&[u8], &[u8]) {
    let mut at = path.len();
    while at > 0 {
        at -= 1;
        if matches!(path[at], b'/' | b'\\') {
            let (folder, rest) = path.split_at(at);
            return (folder, rest.split_at(1).1);
        }
    }
    (b"", path)
}

/// Shape, dtype and device of the input that a gradient is for.
pub fn meta_of(step: &Step, input: usize) -> Result<Meta> {
    match step.node.edges.get(input) {
        Some(Some(edge)) => Ok(edge.node.outputs[edge.output as usize].clone()),
        _ => Err(Error::runtime(format!("{} has no input {input} that wants a gradient", step.node.name()))),
    }
}

/// The name of a row's node, made at compile time.
macro_rules! node_name {
    ($name:ident $(, $variant:literal)?) => {{
        const MADE: ([u8; 64], usize) = $crate::operator::camel::<64>(concat!(stringify!($name) $(, $variant)?));
        const NAME: &str = match std::str::from_utf8(MADE.0.split_at(MADE.1).0) {
            Ok(name) => name,
            Err(_) => "",
        };
        NAME
    }};
}
pub(crate) use node_name;
