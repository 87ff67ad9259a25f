//! The table of rules for the rows of `ops!`. A rule has the row's inputs and parameters in scope, and `b`, the levels.
//! Where it says `physical` the inputs are physical tensors with all levels, and so is the result; where it says `seen`
//! they are as the function sees them, for rows that are compositions of others.

use super::{Batch, index, loss};
use crate::base::{Error, Result};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::any::Any;
use std::collections::HashMap;
use std::sync::OnceLock;

pub type Rule = fn(&Batch, &[&Tensor], &dyn Any) -> Result<Tensor>;
pub type Rules = &'static [(&'static str, Rule)];

macro_rules! rules {
    (@rule $kind:ident $b:ident $family:ident $name:ident ($($in:ident),*) ($($p:ident),*) $e:expr) => {{
        #[allow(unused_variables, clippy::needless_borrow, clippy::unsafe_removed_from_name)]
        fn rule($b: &$crate::ops::batch::Batch, inputs: &[&$crate::tensor::Tensor], params: &dyn std::any::Any) -> $crate::base::Result<$crate::tensor::Tensor> {
            use $crate::ops::$family::$name as row;
            let (&[$($in),*], Some(params)) = (inputs, params.downcast_ref::<row::Params>()) else {
                return Err($crate::ops::batch::rules::misuse(stringify!($name)));
            };
            let ($($p,)*) = params.clone();
            rules!(@body $kind $b ($($in),*) $e)
        }
        (stringify!($name), rule as $crate::ops::batch::rules::Rule)
    }};
    (@body physical $b:ident ($($in:ident),*) $e:expr) => {{
        $(let $in = &$b.full($in)?;)*
        $e.map(|made| $b.wrap(made))
    }};
    (@body seen $b:ident ($($in:ident),*) $e:expr) => { $e };
    ($kind:ident $b:ident; $($family:ident::$name:ident($($in:ident),* $(; $($p:ident),*)?) => $e:expr;)*) => {
        &[$($crate::ops::batch::rules::rules!(@rule $kind $b $family $name ($($in),*) ($($($p),*)?) $e)),*]
    };
}
pub(super) use rules;

#[cold]
pub(super) fn misuse(name: &str) -> Error {
    Error::runtime(format!("vmap: the batching rule of {name} does not fit its row"))
}

fn table() -> &'static HashMap<&'static str, Rule> {
    static TABLE: OnceLock<HashMap<&'static str, Rule>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let families = [index::PHYSICAL, index::SEEN, loss::SEEN, super::random::SEEN];
        families.into_iter().flatten().copied().collect()
    })
}

/// A row's call on batched operands: those among its inputs and those among its parameters.
#[cold]
pub fn row(name: &'static str, inputs: &[&Tensor], others: &[&Tensor], params: &dyn Any) -> Result<Tensor> {
    let Some(rule) = table().get(name) else {
        let name = crate::ops::plain_name(name);
        return Err(Error::not_implemented(format!("vmap: {name} has no batching rule")));
    };
    let batch = Batch::of(inputs.iter().chain(others).copied());
    let own = batch.settle_all(inputs)?;
    let chosen: SmallVec<[&Tensor; 4]> =
        own.iter().zip(inputs).map(|(own, t)| own.as_ref().unwrap_or(t)).collect();
    rule(&batch, &chosen, params)
}
