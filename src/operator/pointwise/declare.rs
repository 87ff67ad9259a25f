//! Declaration of operators. `pointwise!` uses an expression three times: as Rust loops for the CPU, as WGSL
//! text for the GPU and, in derivatives, over tensors. There the names are functions of the module `formula`
//! that the rows' file imports, generated from rows (`words`, and `layouts` to compute layouts).
//!
//! The parameters of a derivative's closure are the values to save: inputs, the output, arguments, and `at`,
//! the shape, dtype and device of the input. Parameters after a semicolon are saved only because PyTorch
//! saves them: writing over them, or a second backward, then raises the same error.

use crate::operator::pointwise::Transforms;
use crate::operator::{batch, tangent};

/// The functions by which transforms handle calls of pointwise rows.
pub static TRANSFORMS: Transforms = Transforms {
    batch: batch::rows::apply,
    batch_inplace: batch::rows::apply_inplace,
    tangent: tangent::rows::attach,
    tangent_inplace: tangent::rows::write,
};

/// Declares pointwise operators:
///
/// `/// doc` `[clauses] name(inputs; scalar params) -> output : Class = expression, input: |g, saved…| derivative;`
///
/// The clauses are those of `clauses!`. After an expression, `=> powers { 2.0: expression }` gives faster forms
/// for constant last operands, and `=> words { expression }` computes the same on eight bytes at once.
///
/// `[clauses] name(inputs) like row;` uses the formulas of `row` with its own node and facts. The forms are not
/// taken from `row`: as in any row, all of them exist unless the clauses exclude some.
macro_rules! pointwise {
    ($( $(#[doc = $doc:literal] $(#[doc = $more:literal])*)? $([$($clause:tt)*])? $name:ident ( $($in:ident),+ $(; $($p:ident = $pd:expr),+)? ) $(-> $y:ident)? : $class:ident
        = $f:expr $(=> $quick:ident $way:tt)?
        $(, $wrt:ident : |$($arg:ident),* $(; $($kept:ident),*)?| $d:expr $(=> $quick_d:ident $way_d:tt)?)* ; )*) => {
        $(
            #[allow(non_upper_case_globals, non_camel_case_types, reason = "names of operands become constants and variants")]
            #[allow(dead_code, unused_imports, reason = "no row needs all of this")]
            #[allow(clippy::approx_constant, clippy::excessive_precision, reason = "shaders read the same digits")]
            pub mod $name {
                use super::*;
                use $crate::operator::pointwise::clauses::{Clauses, clauses};
                use $crate::operator::pointwise::{Expr, Gradient, Pointwise, backward, loops, number};
                enum Place { $($in,)+ $($($p,)+)? }
                const CLAUSES: Clauses = {
                    #[allow(unused_mut, reason = "a row may have no clauses")]
                    let mut said = Clauses::NONE;
                    clauses!(said; $($($clause)*)?);
                    said
                };
                const FORMS: $crate::operator::Forms = CLAUSES.forms;
                const COUNT: usize = [$(stringify!($in)),+].len();
                const NODE: &str = if CLAUSES.node.is_empty() { $crate::operator::node_name!($name) } else { CLAUSES.node };
                const BY_NUMBER: &str = if CLAUSES.by_number.is_empty() { NODE } else { CLAUSES.by_number };
                /// The source of each name in a formula.
                mod source {
                    use super::Place;
                    pub const g: u32 = $crate::operator::pointwise::GRAD;
                    $(pub const $in: u32 = Place::$in as u32;)+
                    $($(pub const $p: u32 = Place::$p as u32;)+)?
                    $(pub const $y: u32 = $crate::tensor::Saved::OUTPUT;)?
                }
                /// Comparisons return bool tensors and are not recorded.
                const TRUTHS: bool =
                    matches!($crate::operator::pointwise::Class::$class, $crate::operator::pointwise::Class::Compare);
                fn apply(step: &$crate::tensor::Step) -> $crate::base::Result<$crate::tensor::Grads> {
                    backward(&ROW, step)
                }
                pub static ROW: Pointwise = Pointwise {
                    row: $crate::operator::Row {
                        name: stringify!($name),
                        doc: concat!($($doc $(, "\n", $more)*)?),
                        family: "pointwise",
                        params: &[
                            $($crate::operator::Param {
                                name: stringify!($in),
                                kind: $crate::operator::operand_kind(FORMS, Place::$in as usize, COUNT),
                                ..$crate::operator::Param::PLAIN
                            },)+
                            $($($crate::operator::Param { name: stringify!($p), kind: $crate::operator::Kind::Scalar, default: Some(stringify!($pd)), ..$crate::operator::Param::PLAIN },)+)?
                        ],
                        forms: FORMS,
                        differentiable: $crate::operator::pointwise::declare::any!($($wrt)*)
                            && !TRUTHS,
                        call: |args| $crate::operator::pointwise::call(&ROW, args),
                        call_inplace: Some(|args| $crate::operator::pointwise::call_inplace(&ROW, args)),
                        aliases: CLAUSES.aliases,
                        by_kind: CLAUSES.aten,
                        out: $crate::operator::OutFacts { unrecorded: TRUTHS, ..CLAUSES.out },
                        arities: CLAUSES.arities,
                        scaled: CLAUSES.scaled,
                        flops: CLAUSES.flops,
                        elementwise: true,
                        ..$crate::operator::Row::PLAIN
                    },
                    class: $crate::operator::pointwise::Class::$class,
                    inputs: COUNT,
                    defaults: &[$($(number(stringify!($pd), $pd as f64)),+)?],
                    forward: Expr {
                        key: concat!(stringify!($name), ""),
                        inputs: &[$(stringify!($in),)+ $($(stringify!($p),)+)?],
                        wgsl: stringify!($f),
                        loops: loops!([$($($clause)*)?] $class; ($($in,)+ $($($p,)+)?) $f $(=> $quick $way)?),
                        #[cfg(feature = "gpu")]
                        by_parts: CLAUSES.by_parts,
                        of_parts: CLAUSES.of_parts,
                    },
                    derivative: $crate::tensor::Derivative { facts: None, flops: CLAUSES.derivative_flops, name: NODE, apply },
                    by_number: $crate::tensor::Derivative { facts: None, flops: CLAUSES.derivative_flops, name: BY_NUMBER, apply },
                    clauses: CLAUSES,
                    order: &$crate::operator::saved_order([$(stringify!($in),)+ $($(stringify!($p),)+)?]),
                    always: $crate::operator::always_saved([$($crate::operator::source_bits(&[$(source::$arg,)* $($(source::$kept),*)?])),*]),
                    gradients: &[$(Gradient {
                        of: source::$wrt,
                        sources: &[$(source::$arg),*],
                        saves: $crate::operator::source_bits(&[$(source::$arg,)* $($(source::$kept),*)?]),
                        expr: Expr {
                            key: concat!(stringify!($name), "_d_", stringify!($wrt)),
                            inputs: &[$(stringify!($arg)),*],
                            wgsl: stringify!($d),
                            loops: loops!(Float; ($($arg,)*) $d $(=> $quick_d $way_d)?),
                            #[cfg(feature = "gpu")]
                            by_parts: None,
                            of_parts: None,
                        },
                        formal: |values| {
                            use super::formula::*;
                            let [$($arg),*] = values else { return $crate::operator::V::misuse() };
                            $crate::operator::V::from($d)
                        },
                        layout: |values| {
                            use super::formula::layouts::*;
                            use $crate::operator::pointwise::layout_formula::{LayoutFormula, conj, select, truth};
                            let [$($arg),*] = values else { return LayoutFormula(None) };
                            LayoutFormula::from($d)
                        },
                    }),*],
                    transforms: &$crate::operator::pointwise::declare::TRANSFORMS,
                };
            }
            $(#[doc = $doc])?
            pub fn $name<'a>($($in: impl Into<$crate::operator::Operand<'a>>),+) -> $crate::base::Result<$crate::tensor::Tensor> {
                $crate::operator::pointwise::apply(&$name::ROW, &[$($in.into()),+])
            }
        )*
        /// The rows as functions over values, for formulas.
        pub mod words {
            $($crate::operator::pointwise::declare::word!(value [$($($clause)*)?] $name ($($in),+ $(, $($p),+)?));)*
        }
        /// The rows as functions over layouts, for formulas.
        pub mod layouts {
            $($crate::operator::pointwise::declare::word!(layout [$($($clause)*)?] $name ($($in),+ $(, $($p),+)?));)*
        }
        pub static ROWS: &[&$crate::operator::pointwise::Pointwise] = &[$(&$name::ROW),*];
    };
    ($( $(#[doc = $doc:literal] $(#[doc = $more:literal])*)? [$($clause:tt)*] $name:ident ( $($in:ident),+ ) like $($row:ident)::+; )*) => {
        $(#[allow(non_camel_case_types, reason = "names of operands become variants")]
        #[allow(dead_code, unused_imports, reason = "no row needs all of this")]
        pub mod $name {
            use super::*;
            use $crate::operator::pointwise::clauses::{Clauses, clauses};
            use $crate::operator::{Param, Row, pointwise::Pointwise};
            enum Place { $($in),+ }
            const COUNT: usize = [$(stringify!($in)),+].len();
            const PARAMS: &[Param] = &[$(Param {
                name: stringify!($in),
                kind: $crate::operator::operand_kind(CLAUSES.forms, Place::$in as usize, COUNT),
                ..Param::PLAIN
            }),+];
            const CLAUSES: Clauses = {
                let mut said = Clauses { forms: Clauses::NONE.forms, ..super::$($row)::+::ROW.clauses };
                clauses!(said; $($clause)*);
                said
            };
            pub static ROW: Pointwise = super::$($row)::+::ROW.like(
                Row {
                    name: stringify!($name),
                    doc: concat!($($doc $(, "\n", $more)*)?),
                    params: PARAMS,
                    call: |args| $crate::operator::pointwise::call(&ROW, args),
                    call_inplace: Some(|args| $crate::operator::pointwise::call_inplace(&ROW, args)),
                    ..super::$($row)::+::ROW.row
                },
                CLAUSES,
            );
        }
        $(#[doc = $doc])?
        pub fn $name<'a>($($in: impl Into<$crate::operator::Operand<'a>>),+) -> $crate::base::Result<$crate::tensor::Tensor> {
            $crate::operator::pointwise::apply(&$name::ROW, &[$($in.into()),+])
        })*
        pub static LIKE: &[&$crate::operator::pointwise::Pointwise] = &[$(&$name::ROW),*];
    };
}

/// Declares a row as a function for formulas, named by its clause `word` or else by the row.
macro_rules! word {
    ($of:ident [word = $word:ident $($rest:tt)*] $name:ident $in:tt) => { $crate::operator::pointwise::declare::word!(@$of $word $name $in); };
    ($of:ident [$other:tt $($rest:tt)*] $name:ident $in:tt) => { $crate::operator::pointwise::declare::word!($of [$($rest)*] $name $in); };
    ($of:ident [] $name:ident $in:tt) => { $crate::operator::pointwise::declare::word!(@$of $name $name $in); };
    (@value $word:ident $name:ident ($($in:ident),+)) => {
        pub fn $word($($in: impl Into<$crate::operator::V>),+) -> $crate::operator::V {
            $crate::operator::V::apply(&super::$name::ROW, &[$($in.into()),+])
        }
    };
    (@layout $word:ident $name:ident ($($in:ident),+)) => {
        pub fn $word(
            $($in: impl Into<$crate::operator::pointwise::layout_formula::LayoutFormula>),+
        ) -> $crate::operator::pointwise::layout_formula::LayoutFormula {
            $crate::operator::pointwise::layout_formula::combined(&[$($in.into()),+])
        }
    };
}

/// Implements operators such as `V + V` by a row.
macro_rules! on_values {
    ($trait:ident, $method:ident, $row:path) => {
        $crate::operator::pointwise::declare::on_values!(@impl $trait, $method, $row; (V, V) (&V, V) (V, &V) (&V, &V) (V, f64) (&V, f64) (f64, V) (f64, &V));
    };
    (@impl $trait:ident, $method:ident, $row:path; $(($a:ty, $b:ty))*) => { $(
        impl std::ops::$trait<$b> for $a {
            type Output = V;
            fn $method(self, other: $b) -> V {
                V::apply(&$row, &[self.into(), other.into()])
            }
        }
    )* };
}

macro_rules! any {
    () => {
        false
    };
    ($($some:ident)+) => {
        true
    };
}

pub(crate) use {any, on_values, pointwise, word};
