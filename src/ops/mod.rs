//! The operators: one row each, in one file a family.

pub(crate) mod macros;

pub mod advanced;
pub mod areas;
pub mod arithmetic;
pub mod batch;
pub mod compare;
pub mod complex;
#[cfg(feature = "gpu")]
mod complex_parts;
pub mod contract;
pub mod copies;
pub mod copy_slices;
pub mod create;
pub mod creation;
pub mod devices;
pub mod differences;
pub mod einsum;
#[cfg(test)]
mod example;
pub mod extrema;
pub mod formal;
mod fused;
pub mod index;
mod index_reduce;
pub mod inplace;
pub mod join;
pub mod kernel;
mod layout_formula;
pub mod lazy;
pub mod linalg;
pub mod loops;
pub mod loss;
pub mod loss_classes;
pub mod loss_formula;
mod names;
pub mod nn;
mod operand;
mod order;
pub mod out;
pub mod pad;
pub mod pointwise;
mod pointwise_inplace;
mod positions;
pub mod power;
pub mod product;
pub mod program;
pub mod quick;
pub mod random;
pub mod record;
pub mod reduce;
mod refuse;
pub mod scan;
pub mod scatter;
pub mod scatter_reduce;
mod search;
pub mod shape;
mod slice_rules;
pub mod softmax;
pub mod sort;
pub mod split;
pub mod stats;
pub mod stretched;
pub mod tangent;
pub mod transform;
pub mod triangle;
pub mod unary;
pub mod unique;
pub mod view;
pub mod view_part;
pub mod view_scatter;
pub mod write;

mod row;
mod value;

pub use names::{OUTPUTS, always_saved, camel, saved_name, saved_order, source_bits, wraps_numbers};
pub use pointwise::Operand;
pub use row::{
    Arg, Forms, FromArg, History, Ints, Kind, Out, OutFacts, OutRule, Param, Returned, Row, Several, Short,
    Sizes, Value, operand_kind, take,
};
pub use value::{IntoGrad, V};

use crate::base::{Error, Result};
use crate::tensor::{Meta, Step};

pub fn pointwise_rows() -> impl Iterator<Item = &'static pointwise::Pointwise> {
    [
        arithmetic::ROWS,
        arithmetic::RENAMED,
        unary::ROWS,
        compare::ROWS,
        differences::ROWS,
        nn::activation_formulas::ROWS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// Every row, by family.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    pointwise_rows().map(|p| &p.row).chain(crate::operator::rows().iter().copied())
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
        const MADE: ([u8; 64], usize) = $crate::ops::camel::<64>(concat!(stringify!($name) $(, $variant)?));
        const NAME: &str = match std::str::from_utf8(MADE.0.split_at(MADE.1).0) {
            Ok(name) => name,
            Err(_) => "",
        };
        NAME
    }};
}
pub(crate) use node_name;

/// A row's public name: Rust's keywords and taken names end in an underscore there.
pub const fn plain_name(name: &'static str) -> &'static str {
    let bytes = name.as_bytes();
    if bytes[bytes.len() - 1] != b'_' {
        return name;
    }
    match std::str::from_utf8(bytes.split_at(bytes.len() - 1).0) {
        Ok(plain) => plain,
        Err(_) => name,
    }
}

use names::same;

/// The forms of a row from the words in its brackets.
pub const fn forms(base: u8, words: &[&str]) -> u8 {
    let (mut forms, mut i) = (base, 0);
    while i < words.len() {
        let word = words[i];
        forms = if same(word, "complex") || same(word, "narrow") {
            forms
        } else if same(word, "hidden") {
            0
        } else if same(word, "nn") {
            Forms::NN
        } else if same(word, "no_method") {
            forms & !Forms::METHOD & !Forms::INPLACE
        } else if same(word, "no_function") {
            forms & !Forms::FUNCTION & !Forms::OUT
        } else if same(word, "no_inplace") {
            forms & !Forms::INPLACE
        } else if same(word, "no_out") {
            forms & !Forms::OUT
        } else if same(word, "inplace") {
            forms | Forms::INPLACE
        } else if same(word, "out") {
            forms | Forms::OUT
        } else if same(word, "alpha") {
            forms | Forms::ALPHA
        } else if same(word, "tensors") {
            forms | Forms::TENSORS
        } else if same(word, "numbers") {
            forms | Forms::NUMBERS
        } else if same(word, "linear")
            || same(word, "multilinear")
            || same(word, "still")
            || same(word, "added")
        {
            forms
        } else {
            panic!("unknown word in a row's brackets")
        };
        i += 1;
    }
    forms
}
