//! How operators are declared. `pointwise!` reads one expression three times: as Rust loops for the CPU, as WGSL text for
//! the GPU and, in derivatives, over tensors. `ops!` takes a body per operator, `compose!` builds on other operators.
//! A derivative's parameter list is the list of what is saved: inputs, the output, arguments, and `at`, the shape, dtype
//! and device of the input it is for. What follows a semicolon there is saved as PyTorch saves it, though the formula has
//! no use for it: who writes over it, or runs the node twice, gets the same error.

/// `/// doc` `name(inputs; scalar params) -> output : Class = expression, input: |g, saved…| derivative;`
/// After an expression, `=> powers { 2.0: expression }` has quicker ones for constant last operands, and `=> words { expression }`
/// says the same of eight bytes at once.
macro_rules! pointwise {
    ($( $(#[doc = $doc:literal])* $([$($form:ident),*])? $name:ident ( $($in:ident),+ $(; $($p:ident = $pd:expr),+)? ) $(-> $y:ident)? : $class:ident
        = $f:expr $(=> $quick:ident $way:tt)?
        $(, $wrt:ident : |$($arg:ident),* $(; $($kept:ident),*)?| $d:expr $(=> $quick_d:ident $way_d:tt)?)* ; )*) => {
        $(
            #[allow(non_upper_case_globals, non_camel_case_types, dead_code, unused_imports, clippy::approx_constant, clippy::excessive_precision)]
            pub mod $name {
                use super::*;
                use $crate::ops::pointwise::{Expr, Gradient, Pointwise, backward, loops};
                enum Place { $($in,)+ $($($p,)+)? }
                const FORMS: $crate::ops::Forms = $crate::ops::macros::forms!(15 $(; $($form),*)?);
                const COUNT: usize = [$(stringify!($in)),+].len();
                /// Where each name of a formula comes from.
                mod source {
                    use super::Place;
                    pub const g: u16 = $crate::ops::pointwise::GRAD;
                    $(pub const $in: u16 = Place::$in as u16;)+
                    $($(pub const $p: u16 = Place::$p as u16;)+)?
                    $(pub const $y: u16 = $crate::tensor::Saved::OUTPUT;)?
                }
                fn apply(step: &$crate::tensor::Step) -> $crate::base::Result<$crate::tensor::Grads> {
                    backward(&ROW, step)
                }
                pub static ROW: Pointwise = Pointwise {
                    row: $crate::ops::Row {
                        name: $crate::ops::plain_name(stringify!($name)),
                        doc: concat!($($doc, "\n"),*),
                        family: "pointwise",
                        params: &[
                            $($crate::ops::Param {
                                name: stringify!($in),
                                kind: $crate::ops::operand_kind(FORMS, Place::$in as usize, COUNT),
                                optional: false,
                                default: None,
                                keyword: false,
                                elsewhere: false,
                            },)+
                            $($($crate::ops::Param { name: stringify!($p), kind: $crate::ops::Kind::Scalar, optional: false, default: Some(stringify!($pd)), keyword: false, elsewhere: false },)+)?
                        ],
                        forms: FORMS,
                        differentiable: $crate::ops::macros::any!($($wrt)*)
                            && !matches!($crate::ops::pointwise::Class::$class, $crate::ops::pointwise::Class::Compare),
                        call: |args| $crate::ops::pointwise::call(&ROW, args),
                        call_inplace: Some(|args| $crate::ops::pointwise::call_inplace(&ROW, args)),
                        ..$crate::ops::Row::OLD
                    },
                    class: $crate::ops::pointwise::Class::$class,
                    inputs: COUNT,
                    defaults: &[$($($pd as f64),+)?],
                    forward: Expr {
                        key: concat!(stringify!($name), ""),
                        inputs: &[$(stringify!($in),)+ $($(stringify!($p),)+)?],
                        wgsl: stringify!($f),
                        loops: loops!([$($($form),*)?] $class; ($($in,)+ $($($p,)+)?) $f $(=> $quick $way)?),
                    },
                    derivative: $crate::tensor::Derivative { facts: None, name: $crate::ops::node_name!($name), apply },
                    by_number: $crate::tensor::Derivative { facts: None, name: $crate::ops::node_name!($name, "_by_number"), apply },
                    wraps: $crate::ops::wraps_numbers(stringify!($name)),
                    order: &$crate::ops::saved_order([$(stringify!($in),)+ $($(stringify!($p),)+)?]),
                    always: $crate::ops::always_saved([$($crate::ops::source_bits(&[$(source::$arg,)* $($(source::$kept),*)?])),*]),
                    gradients: &[$(Gradient {
                        of: source::$wrt,
                        sources: &[$(source::$arg),*],
                        saves: $crate::ops::source_bits(&[$(source::$arg,)* $($(source::$kept),*)?]),
                        expr: Expr {
                            key: concat!(stringify!($name), "_d_", stringify!($wrt)),
                            inputs: &[$(stringify!($arg)),*],
                            wgsl: stringify!($d),
                            loops: loops!(Float; ($($arg,)*) $d $(=> $quick_d $way_d)?),
                        },
                        formal: |values| {
                            use $crate::ops::formal::*;
                            let [$($arg),*] = values else { return $crate::ops::V::misuse() };
                            $crate::ops::V::from($d)
                        },
                        layout: |values| {
                            use $crate::ops::layout_formula::*;
                            let [$($arg),*] = values else { return LayoutFormula(None) };
                            LayoutFormula::from($d)
                        },
                    }),*],
                };
            }
            $(#[doc = $doc])*
            pub fn $name<'a>($($in: impl Into<$crate::ops::Operand<'a>>),+) -> $crate::base::Result<$crate::tensor::Tensor> {
                $crate::ops::pointwise::apply(&$name::ROW, &[$($in.into()),+])
            }
        )*
        pub static ROWS: &[&$crate::ops::pointwise::Pointwise] = &[$(&$name::ROW),*];
    };
}

/// `name(inputs) = row;` the pointwise formulas of `row` under another name, that of another node.
macro_rules! renamed {
    ($( $name:ident ( $($in:ident),+ ) = $row:ident; )*) => {
        $(pub mod $name {
            use $crate::ops::{Kind, Param, node_name, pointwise::Pointwise};
            const PARAMS: &[Param] =
                &[$(Param { name: stringify!($in), kind: Kind::Operand, optional: false, default: None, keyword: false, elsewhere: false }),+];
            pub static ROW: Pointwise = super::$row::ROW.renamed(
                stringify!($name),
                PARAMS,
                [node_name!($name), node_name!($name, "_by_number")],
            );
        })*
        pub static RENAMED: &[&$crate::ops::pointwise::Pointwise] = &[$(&$name::ROW),*];
    };
}

/// `/// doc` `fn name(tensors; arguments) -> y { body giving a Body }  input: |g, …| derivative;`
macro_rules! ops {
    ($family:literal; $( $(#[doc = $doc:literal])* $([$($form:ident),*])? fn $name:ident ( $($in:ident),* $(; $($p:ident : $pt:ty $(= $pd:expr)?),*)? ) -> $y:ident $body:block
        $($wrt:ident : |$($arg:ident),* $(; $($kept:ident),*)?| $d:expr ;)* )*) => {
        $(
            #[allow(non_camel_case_types, dead_code, unused_imports, unused_mut, unused_variables, non_upper_case_globals)]
            pub mod $name {
                use super::*;
                pub type Params = ($($($pt,)*)?);
                pub type Kept = ($($(<$pt as $crate::ops::FromArg>::Kept,)*)?);
                pub enum Place { $($in,)* }
                pub enum ArgumentPlace { $($($p,)*)? }
                pub const HOLDS_TENSORS: bool = false $($(|| <$pt as $crate::ops::FromArg>::HOLDS_TENSOR)*)?;
                pub const RULE: $crate::ops::tangent::Rule = $crate::ops::tangent::rule(&[$($(stringify!($form)),*)?]);
                mod bit {
                    use super::{ArgumentPlace, Place};
                    use $crate::ops::record::ARGUMENTS;
                    pub const g: u64 = 0;
                    pub const at: u64 = 0;
                    $(pub const $in: u64 = 1 << Place::$in as u8;)*
                    $($(pub const $p: u64 = 1 << (ARGUMENTS + ArgumentPlace::$p as usize);)*)?
                    pub const $y: u64 = 1 << 63;
                }
                /// Which names of a derivative are arguments: none of them, and the node need not keep any.
                mod argument {
                    pub const g: bool = false;
                    pub const at: bool = false;
                    $(pub const $in: bool = false;)*
                    $($(pub const $p: bool = true;)*)?
                    pub const $y: bool = false;
                }
                pub const KEEPS_ARGUMENTS: bool = false $($(|| argument::$arg)* $($(|| argument::$kept)*)?)*;
                mod fetch {
                    use super::*;
                    use $crate::ops::V;
                    use $crate::tensor::{Meta, Step};
                    pub fn g(step: &Step, _: usize) -> $crate::base::Result<V> { V::grad(step, 0) }
                    pub fn at(step: &Step, input: usize) -> $crate::base::Result<Meta> { $crate::ops::meta_of(step, input) }
                    $(pub fn $in(step: &Step, _: usize) -> $crate::base::Result<V> { step.tensor(Place::$in as u16).map(V::from) })*
                    pub fn $y(step: &Step, _: usize) -> $crate::base::Result<V> { step.tensor($crate::tensor::Saved::OUTPUT).map(V::from) }
                    $($crate::ops::macros::fetch_params!(Kept; (); $($p: $pt,)*);)?
                }
                fn apply(step: &$crate::tensor::Step) -> $crate::base::Result<$crate::tensor::Grads> {
                    let mut grads: $crate::tensor::Grads = smallvec::smallvec![None; step.node.edges.len()];
                    if step.grad(0).is_none() {
                        return Ok(grads);
                    }
                    $(if step.wants(Place::$wrt as usize) {
                        $(let $arg = fetch::$arg(step, Place::$wrt as usize)?;)*
                        grads[Place::$wrt as usize] = $crate::ops::IntoGrad::into_grad($d)?;
                    })*
                    Ok(grads)
                }
                pub static DERIVATIVE: $crate::tensor::Derivative =
                    $crate::tensor::Derivative { facts: None, name: $crate::ops::node_name!($name), apply };
                /// What is saved when input `i` wants a gradient.
                pub const SAVES: &[(usize, u64)] = &[$((Place::$wrt as usize, 0 $(| bit::$arg)* $($(| bit::$kept)*)?)),*];
                pub const ALWAYS: u64 = $crate::ops::always_saved([$(0 $(| bit::$arg)* $($(| bit::$kept)*)?),*]);
                pub const ORDER: &[u8] = &$crate::ops::saved_order([$(stringify!($in),)* $($(stringify!($p),)*)?]);
                static PARAMS: &[$crate::ops::Param] = &[
                    $($crate::ops::Param { name: stringify!($in), kind: $crate::ops::Kind::Tensor, optional: false, default: None, keyword: false, elsewhere: false },)*
                    $($($crate::ops::Param {
                        name: stringify!($p),
                        kind: <$pt as $crate::ops::FromArg>::KIND,
                        optional: <$pt as $crate::ops::FromArg>::OPTIONAL,
                        default: $crate::ops::macros::text!($($pd)?),
                        keyword: false,
                        elsewhere: false,
                    },)*)?
                ];
                fn call(args: &[$crate::ops::Arg]) -> $crate::base::Result<$crate::ops::Out> {
                    let mut next = 0..;
                    $(let $in: $crate::tensor::Tensor = $crate::ops::take(stringify!($name), PARAMS, args, next.next().unwrap_or(0), None)?;)*
                    $($(let $p: $pt = $crate::ops::take(stringify!($name), PARAMS, args, next.next().unwrap_or(0), $crate::ops::macros::default!($($pd)?))?;)*)?
                    super::$name($(&$in,)* $($($p,)*)?).map($crate::ops::Out::from)
                }
                pub static ROW: $crate::ops::Row = $crate::ops::Row {
                    name: $crate::ops::plain_name(stringify!($name)),
                    doc: concat!($($doc, "\n"),*),
                    family: $family,
                    params: PARAMS,
                    forms: $crate::ops::macros::forms!(3 $(; $($form),*)?),
                    differentiable: $crate::ops::macros::any!($($wrt)*),
                    call,
                    ..$crate::ops::Row::OLD
                };
            }
            $(#[doc = $doc])*
            #[allow(clippy::too_many_arguments)]
            pub fn $name($($in: &$crate::tensor::Tensor,)* $($($p: $pt,)*)?) -> $crate::base::Result<$crate::tensor::Tensor> {
                if $crate::ops::batch::any(&[$($in),*]) $($(|| <$pt as $crate::ops::FromArg>::as_tensor(&$p).is_some_and($crate::tensor::Tensor::is_batched))*)? {
                    let others: &[Option<&$crate::tensor::Tensor>] = &[$($(<$pt as $crate::ops::FromArg>::as_tensor(&$p)),*)?];
                    let others: smallvec::SmallVec<[&$crate::tensor::Tensor; 2]> = others.iter().copied().flatten().collect();
                    return $crate::ops::batch::row(stringify!($name), &[$($in),*], &others, &($($($p.clone(),)*)?) as &$name::Params);
                }
                let params = || -> Option<Box<dyn std::any::Any + Send + Sync>> {
                    if $name::KEEPS_ARGUMENTS { Some(Box::new(($($(<$pt as $crate::ops::FromArg>::keep(&$p),)*)?))) } else { None }
                };
                let differentiable = $crate::ops::macros::any!($($wrt)*);
                let mut recorder =
                    if differentiable { $crate::ops::record::begin(&$name::DERIVATIVE, &[$($in),*], params) } else { None };
                let inputs: &[&$crate::tensor::Tensor] = &[$($in),*];
                let made = if let Some(made) = $crate::ops::record::supplied(recorder.as_mut())? {
                    Ok(made)
                } else {
                    $($(#[allow(unused_variables)] let $p = $p.clone();)*)?
                    #[allow(clippy::redundant_closure_call)]
                    (|| -> $crate::base::Result<_> { $body })().map($crate::ops::record::Made::from)
                };
                let arguments: &[Option<&$crate::tensor::Tensor>] =
                    if $name::HOLDS_TENSORS { &[$($(<$pt as $crate::ops::FromArg>::as_tensor(&$p)),*)?] } else { &[] };
                let saves: $crate::ops::record::Saves = ($name::SAVES, $name::ALWAYS, $name::ORDER);
                let made = match made {
                    Ok(made) => made,
                    Err(error) => {
                        let error = $crate::ops::record::refused(error, &mut recorder, saves, inputs, arguments);
                        $crate::ops::lazy::again(error, inputs, &|xs| {
                            $name($(&xs[$name::Place::$in as usize],)* $($($p.clone(),)*)?)
                        })?
                    }
                };
                let made = $crate::ops::record::end(recorder, saves, inputs, arguments, made)?;
                if $name::ROW.differentiable && inputs.iter().any(|t| t.is_dual()) {
                    $crate::ops::tangent::attach_one(&made, inputs, $name::RULE, &|xs| {
                        $name($(&xs[$name::Place::$in as usize],)* $($($p.clone(),)*)?)
                    })?;
                }
                Ok(made)
            }
        )*
        pub static ROWS: &[&$crate::ops::Row] = &[$(&$name::ROW),*];
    };
}

/// `/// doc` `fn name(typed arguments) -> Result<…> { composition of other operators }`
macro_rules! compose {
    ($family:literal; $( $(#[doc = $doc:literal])* $([$($form:ident),*])? fn $name:ident ( $($p:ident : $pt:ty $(= $pd:expr)?),* $(,)? ) -> $ret:ty $body:block )*) => {
        $(
            #[allow(unused_imports, dead_code)]
            pub mod $name {
                use super::*;
                static PARAMS: &[$crate::ops::Param] = &[
                    $($crate::ops::Param {
                        name: stringify!($p),
                        kind: <$pt as $crate::ops::FromArg>::KIND,
                        optional: <$pt as $crate::ops::FromArg>::OPTIONAL,
                        default: $crate::ops::macros::text!($($pd)?),
                        keyword: false,
                        elsewhere: false,
                    },)*
                ];
                fn call(args: &[$crate::ops::Arg]) -> $crate::base::Result<$crate::ops::Out> {
                    let mut next = 0..;
                    $(let $p: $pt = $crate::ops::take(stringify!($name), PARAMS, args, next.next().unwrap_or(0), $crate::ops::macros::default!($($pd)?))?;)*
                    super::$name($($p),*).map($crate::ops::Out::from)
                }
                pub static ROW: $crate::ops::Row = $crate::ops::Row {
                    name: $crate::ops::plain_name(stringify!($name)),
                    doc: concat!($($doc, "\n"),*),
                    family: $family,
                    params: PARAMS,
                    forms: $crate::ops::macros::forms!(3 $(; $($form),*)?),
                    differentiable: false,
                    call,
                    ..$crate::ops::Row::OLD
                };
            }
            $(#[doc = $doc])*
            #[allow(clippy::too_many_arguments)]
            pub fn $name($($p: $pt),*) -> $crate::base::Result<$ret> $body
        )*
        pub static COMPOSED: &[&$crate::ops::Row] = &[$(&$name::ROW),*];
    };
}

/// The fields of an operator's argument tuple, each as a function of its name.
macro_rules! fetch_params {
    ($tuple:ty; ($($before:ident)*); ) => {};
    ($tuple:ty; ($($before:ident)*); $p:ident : $pt:ty, $($rest:tt)*) => {
        pub fn $p(step: &Step, _: usize) -> $crate::base::Result<$pt> {
            #[allow(non_snake_case)]
            let ($($before,)* found, ..) = step.params::<$tuple>()?;
            $(let _ = $before;)*
            <$pt as $crate::ops::FromArg>::found(found, |history| step.argument(ArgumentPlace::$p as usize, history))
        }
        $crate::ops::macros::fetch_params!($tuple; ($($before)* $p); $($rest)*);
    };
}

macro_rules! forms {
    ($base:literal) => { $crate::ops::Forms($base) };
    ($base:literal; $($form:ident),*) => { $crate::ops::Forms($crate::ops::forms($base, &[$(stringify!($form)),*])) };
}

macro_rules! any {
    () => {
        false
    };
    ($($some:ident)+) => {
        true
    };
}

macro_rules! text {
    () => {
        None
    };
    ($default:expr) => {
        Some(stringify!($default))
    };
}

macro_rules! default {
    () => {
        None
    };
    ($default:expr) => {
        Some(|| $default)
    };
}

pub(crate) use {any, compose, default, fetch_params, forms, ops, pointwise, renamed, text};
