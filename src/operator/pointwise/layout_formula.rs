//! The formula of a gradient over layouts: it computes the order of dimensions in memory that the result
//! would have if each step were an operator of its own. The function names are those of rows; here are the
//! operators and the functions that are no rows.

use crate::base::views::{dense_like, ordered_strides};
use crate::base::{Dims, Layout, broadcast};
use smallvec::SmallVec;

/// The layout of a value; a number has none.
#[derive(Clone)]
pub struct LayoutFormula(pub Option<Layout>);

impl From<f64> for LayoutFormula {
    fn from(_: f64) -> LayoutFormula {
        LayoutFormula(None)
    }
}

impl From<&LayoutFormula> for LayoutFormula {
    fn from(other: &LayoutFormula) -> LayoutFormula {
        other.clone()
    }
}

/// The layout of an operator's result; the first operand has precedence.
pub fn combined(operands: &[LayoutFormula]) -> LayoutFormula {
    let found: SmallVec<[&Layout; 4]> = operands.iter().filter_map(|formula| formula.0.as_ref()).collect();
    let Some((first, others)) = found.split_first() else { return LayoutFormula(None) };
    if operands.len() == 1 {
        return LayoutFormula(Some(dense_like(first)));
    }
    let alike = |other: &&Layout| other.shape == first.shape && other.strides == first.strides;
    if found.len() == operands.len() && first.is_dense() && others.iter().all(alike) {
        return LayoutFormula(Some(Layout { offset: 0, ..(*first).clone() }));
    }
    let shape = others
        .iter()
        .try_fold(first.shape.clone(), |shape, other| broadcast(&shape, &other.shape))
        .unwrap_or_else(|_| first.shape.clone());
    LayoutFormula(Some(ordered(&shape, found.into_iter())))
}

/// For `select`, the condition has precedence.
pub fn select(
    no: impl Into<LayoutFormula>,
    yes: impl Into<LayoutFormula>,
    condition: impl Into<LayoutFormula>,
) -> LayoutFormula {
    combined(&[condition.into(), yes.into(), no.into()])
}

/// The conjugate of real values is the identity.
pub fn conj(x: impl Into<LayoutFormula>) -> LayoutFormula {
    x.into()
}

/// A condition keeps its layout.
pub fn truth(x: impl Into<LayoutFormula>) -> LayoutFormula {
    x.into()
}

macro_rules! operator {
    ($($trait:ident $method:ident;)*) => { $(
        operator!(@impl $trait $method; (LayoutFormula, LayoutFormula) (&LayoutFormula, LayoutFormula) (LayoutFormula, &LayoutFormula) (&LayoutFormula, &LayoutFormula) (LayoutFormula, f64) (&LayoutFormula, f64) (f64, LayoutFormula) (f64, &LayoutFormula));
    )* };
    (@impl $trait:ident $method:ident; $(($a:ty, $b:ty))*) => { $(
        impl std::ops::$trait<$b> for $a {
            type Output = LayoutFormula;
            fn $method(self, other: $b) -> LayoutFormula {
                combined(&[self.into(), other.into()])
            }
        }
    )* };
}

operator! {
    Add add;
    Sub sub;
    Mul mul;
    Div div;
}

impl std::ops::Neg for LayoutFormula {
    type Output = LayoutFormula;
    fn neg(self) -> LayoutFormula {
        combined(&[self])
    }
}

impl std::ops::Neg for &LayoutFormula {
    type Output = LayoutFormula;
    fn neg(self) -> LayoutFormula {
        -self.clone()
    }
}

/// A layout whose dimensions are in the order of `layouts`; the first has precedence.
pub fn ordered<'a>(shape: &[usize], layouts: impl Iterator<Item = &'a Layout>) -> Layout {
    let wide: SmallVec<[Layout; 4]> = layouts.map(|l| l.broadcast_to(shape)).collect();
    let strides: SmallVec<[&[usize]; 4]> = wide.iter().map(|l| l.strides.as_slice()).collect();
    Layout { shape: Dims::from_slice(shape), strides: ordered_strides(shape, &strides), offset: 0 }
}
