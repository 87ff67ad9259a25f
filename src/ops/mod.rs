//! The operators: one row each, in one file a family.

pub(crate) mod macros;

pub mod advanced;
pub mod arithmetic;
pub mod batch;
pub mod compare;
pub mod complex;
pub mod create;
pub mod creation;
pub mod cut;
pub mod einsum;
#[cfg(test)]
mod example;
pub mod extrema;
pub mod formal;
mod fused;
pub mod index;
pub mod inplace;
pub mod join;
pub mod kernel;
pub mod linalg;
pub mod loops;
pub mod loss;
pub mod loss_formula;
pub mod nn;
mod order;
pub mod pointwise;
mod pointwise_inplace;
pub mod power;
pub mod product;
pub mod quick;
pub mod random;
pub mod record;
pub mod reduce;
mod refuse;
pub mod relayout;
pub mod scan;
pub mod scatter;
pub mod scatter_reduce;
pub mod shape;
pub mod short;
mod slice_rules;
pub mod softmax;
pub mod sort;
pub mod stats;
pub mod tangent;
pub mod triangle;
pub mod unary;
pub mod view;
pub mod write;

mod row;
mod value;

pub use pointwise::Operand;
pub use row::{
    Arg, Forms, FromArg, History, Ints, Kind, Out, Param, Row, Several, Sizes, Value, operand_kind, take,
};
pub use value::{IntoGrad, V};

use crate::base::{Error, Result};
use crate::tensor::{Meta, Step};

pub fn pointwise_rows() -> impl Iterator<Item = &'static pointwise::Pointwise> {
    [arithmetic::ROWS, unary::ROWS, compare::ROWS].into_iter().flatten().copied()
}

/// Every row, by family.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    pointwise_rows().map(|p| &p.row).chain(FAMILIES.iter().copied().flatten().copied())
}

static FAMILIES: &[&[&Row]] = &[
    create::ROWS,
    index::ROWS,
    view::ROWS,
    view::COMPOSED,
    power::COMPOSED,
    power::methods::COMPOSED,
    reduce::ROWS,
    reduce::COMPOSED,
    linalg::ROWS,
    linalg::COMPOSED,
    join::COMPOSED,
    shape::ROWS,
    shape::COMPOSED,
    triangle::ROWS,
    triangle::COMPOSED,
    reduce::LOGICAL,
    extrema::ROWS,
    extrema::COMPOSED,
    scan::ROWS,
    scan::COMPOSED,
    scan::INPLACE,
    softmax::ROWS,
    softmax::COMPOSED,
    stats::ROWS,
    stats::COMPOSED,
    sort::ROWS,
    sort::COMPOSED,
    compare::COMPOSED,
    loss::ROWS,
    loss::COMPOSED,
    nn::ROWS,
    nn::COMPOSED,
    nn::PLAIN,
    creation::COMPOSED,
    random::ROWS,
    random::WRITES,
    random::COMPOSED,
    write::WRITES,
    write::FILLS,
    scatter::ROWS,
    scatter::COMPOSED,
    product::ROWS,
    product::COMPOSED,
    einsum::COMPOSED,
    relayout::RELAYOUTS,
    scatter_reduce::ROWS,
    scatter_reduce::COMPOSED,
    complex::ROWS,
    complex::COMPOSED,
];

/// Shape, dtype and device of the input that a gradient is for.
pub fn meta_of(step: &Step, input: usize) -> Result<Meta> {
    match step.node.edges.get(input) {
        Some(Some(edge)) => Ok(edge.node.outputs[edge.output as usize].clone()),
        _ => Err(Error::runtime(format!("{} has no input {input} that wants a gradient", step.node.name()))),
    }
}

/// Rows whose nodes PyTorch numbers or names otherwise.
const NODE_NAMES: &[(&str, &str)] = &[
    ("pow_tensor", "PowBackward1"),
    ("pow_zero", "PowBackward0"),
    ("pow_square", "PowBackward0"),
    ("pow_number", "PowBackward2"),
    ("rsub", "RsubBackward1"),
    ("clamp_low", "ClampBackward1"),
    ("clamp_high", "ClampBackward1"),
    ("choose", "WhereBackward0"),
    ("clamp_both", "ClampBackward1"),
    ("clamp_tensors", "ClampBackward0"),
    ("clamp_above", "ClampMinBackward1"),
    ("clamp_below", "ClampMaxBackward1"),
    ("floor_quotient", "DivBackward2"),
    ("trunc_quotient", "DivBackward2"),
    ("sum_all", "SumBackward0"),
    ("sum_dims", "SumBackward1"),
    ("prod_all", "ProdBackward0"),
    ("prod_dim", "ProdBackward1"),
    ("max_all", "MaxBackward1"),
    ("min_all", "MinBackward1"),
    ("deviation", "StdBackward0"),
    ("replace_special", "NanToNumBackward0"),
    ("mean_square", "MseLossBackward0"),
    ("smooth_absolute", "SmoothL1LossBackward0"),
    ("huber", "HuberLossBackward0"),
    ("bit_entropy", "BinaryCrossEntropyBackward0"),
    ("logit_entropy", "BinaryCrossEntropyWithLogitsBackward0"),
    ("picked_log", "NllLossBackward0"),
    ("picked_log2d", "NllLoss2DBackward0"),
    ("variance", "VarBackward0"),
    ("sum_numbers", "NansumBackward0"),
    ("softmax_along", "SoftmaxBackward0"),
    ("log_softmax_along", "LogSoftmaxBackward0"),
    ("logsumexp_over", "LogsumexpBackward0"),
    ("cumsum_along", "CumsumBackward0"),
    ("cumprod_along", "CumprodBackward0"),
    ("median_all", "MedianBackward0"),
    ("nanmedian_all", "NanmedianBackward0"),
    ("masked_pick", "MaskedSelectBackward0"),
    ("log_cum_sum_exp", "LogcumsumexpBackward0"),
    ("mean_all", "MeanBackward0"),
    ("mean_dims", "MeanBackward1"),
    ("gelu_erf", "GeluBackward0"),
    ("gelu_tanh", "GeluBackward0"),
    ("view_as_shape", "ViewBackward0"),
    ("convert", "ToCopyBackward0"),
    ("transfer", "ToCopyBackward0"),
    ("copied", "CopyBackwards"),
    ("clone_dense", "CloneBackward0"),
    ("clone_as_it_lies", "CloneBackward0"),
    ("masked_fill_number", "MaskedFillBackward0"),
    ("masked_fill_tensor", "MaskedFillBackward1"),
    ("index_fill_number", "IndexFillBackward0"),
    ("index_fill_tensor", "IndexFillBackward1"),
    ("index_copied", "IndexCopyBackward0"),
    ("index_add_scaled", "IndexAddBackward0"),
    ("scatter_into", "ScatterBackward0"),
    ("scatter_reduced", "ScatterReduceBackward0"),
    ("strided_over", "AsStridedBackward0"),
    ("squeeze_all", "SqueezeBackward0"),
    ("squeeze_one", "SqueezeBackward1"),
    ("squeeze_many", "SqueezeBackward2"),
    ("scatter_added", "ScatterAddBackward0"),
    ("scatter_number", "ScatterBackward1"),
    ("inner_product", "DotBackward0"),
    ("diagonal_copy", "DiagonalBackward0_copy"),
    ("conjugate", "ConjBackward0"),
    ("conjugate_product", "VdotBackward0"),
    ("logsigmoid", "LogSigmoidBackward0"),
];

/// `log_softmax` becomes `LogSoftmaxBackward0`; the result's length comes along.
pub const fn camel<const N: usize>(name: &str) -> ([u8; N], usize) {
    let mut out = [0; N];
    let mut i = 0;
    while i < NODE_NAMES.len() {
        let (row, node) = NODE_NAMES[i];
        if same(row, name) {
            let bytes = node.as_bytes();
            let mut k = 0;
            while k < bytes.len() {
                out[k] = bytes[k];
                k += 1;
            }
            return (out, k);
        }
        i += 1;
    }
    let (bytes, mut k, mut upper) = (name.as_bytes(), 0, true);
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] == b'_' {
            upper = true;
        } else {
            out[k] = if upper { bytes[i].to_ascii_uppercase() } else { bytes[i] };
            upper = false;
            k += 1;
        }
        i += 1;
    }
    let tail = b"Backward0";
    let mut i = 0;
    while i < tail.len() {
        out[k] = tail[i];
        k += 1;
        i += 1;
    }
    (out, k)
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// The name of a row's node, made at compile time.
macro_rules! node_name {
    ($name:ident) => {{
        const MADE: ([u8; 64], usize) = $crate::ops::camel::<64>(stringify!($name));
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

/// The forms of a row from the words in its brackets.
pub const fn forms(base: u8, words: &[&str]) -> u8 {
    let (mut forms, mut i) = (base, 0);
    while i < words.len() {
        let word = words[i];
        forms = if same(word, "complex") {
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
