//! A pointwise row: its formula and its derivatives, in all the forms into which they are compiled.

use crate::base::{DType, Result, Scalar};
use crate::cpu::pointwise::{Loop, Loops, powers};
use crate::operator::pointwise::clauses::{Clauses, Rounds};
use crate::operator::pointwise::layout_formula::LayoutFormula;
use crate::operator::row::grad_value::V;
use crate::operator::row::operand::Operand;
use crate::operator::row::{OutFacts, Row};
use crate::tensor::{Derivative, Tensor};

/// A default value as it is written: an integer stays an integer.
pub const fn number(written: &str, value: f64) -> Scalar {
    let (digits, mut i) = (written.as_bytes(), 0);
    while i < digits.len() {
        if digits[i] == b'.' || digits[i] == b'e' {
            return Scalar::Float(value);
        }
        i += 1;
    }
    Scalar::Int(value as i64)
}

/// The source number of the incoming gradient.
pub const GRAD: u32 = u32::MAX;

/// The rule for the dtypes of a row's computation and result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Floating point; integers become the default dtype.
    Float,
    /// The promoted dtype.
    Arith,
    /// Like `Arith`, but bool is refused.
    Number,
    /// Like `Arith`, but there is no kernel for bool.
    Plain,
    /// Floating point only.
    Real,
    /// Like `Plain`, but an integer divisor must not be zero.
    Divide,
    /// Like `Arith`, but operands are not promoted: a clause `check` tests their dtypes.
    Alike,
    /// Like `Alike`, floating point only.
    FloatAlike,
    /// Compares in the promoted dtype; the result is bool.
    Compare,
    /// Integers and bool.
    Bits,
    /// Integers.
    Shift,
    /// The last operand is a condition, which does not count in promotion.
    Choose,
    /// Floating point without promotion; the result is bool.
    Test,
    /// Like `Plain`; the result for complex numbers is real.
    Modulus,
    /// Like `Float`; the result for complex numbers is real.
    Angle,
}

/// One expression, compiled for kernels.
#[derive(Clone, Copy)]
pub struct Expr {
    pub key: &'static str,
    pub inputs: &'static [&'static str],
    pub wgsl: &'static str,
    pub loops: Loops,
    /// The formula for complex numbers in terms of real and imaginary parts, for shaders.
    #[cfg(feature = "gpu")]
    pub by_parts: Option<crate::operator::pointwise::complex_formula::Formula>,
    /// A row that can be applied to the imaginary and real parts of complex numbers instead.
    pub of_parts: Option<fn() -> &'static Pointwise>,
}

impl Expr {
    /// The special loop for a known number as the last operand, if there is one.
    #[inline(always)]
    pub fn loop_for_number(
        &self,
        last: impl FnOnce() -> Option<Scalar>,
        compute: DType,
    ) -> Option<&'static Loop> {
        if self.loops.powers.is_empty() { None } else { powers::choose(&self.loops, last()?, compute) }
    }

    /// True if the formula is just its only input.
    pub fn is_identity(&self) -> bool {
        self.inputs.len() == 1 && self.inputs[0] == self.wgsl
    }
}

pub struct Gradient {
    /// The operand that it is the gradient of.
    pub of: u32,
    /// The sources of the formula's names; the first is usually the incoming gradient.
    pub sources: &'static [u32],
    /// The values saved, one bit each: the sources, and what PyTorch also saves.
    pub saves: u64,
    pub expr: Expr,
    /// The formula over differentiable values.
    pub formal: fn(&[V]) -> V,
    /// The formula over layouts.
    pub layout: fn(&[LayoutFormula]) -> LayoutFormula,
}

pub struct Pointwise {
    pub row: Row,
    pub class: Class,
    /// The number of operands; further entries of `row.params` are scalar parameters.
    pub inputs: usize,
    pub defaults: &'static [Scalar],
    pub forward: Expr,
    pub derivative: Derivative,
    /// The derivative under PyTorch's node name for a call whose last operand is a number.
    pub by_number: Derivative,
    pub clauses: Clauses,
    /// The order in which operands are saved.
    pub order: &'static [u8],
    /// The values saved whichever gradients are needed, one bit each.
    pub always: u64,
    pub gradients: &'static [Gradient],
    pub transforms: &'static Transforms,
}

/// Functions by which transforms run a row's calls. They are passed to the row, because they call rows
/// themselves.
pub struct Transforms {
    /// Runs a call with batched operands.
    pub batch: fn(&'static Pointwise, &[Operand]) -> Result<Tensor>,
    pub batch_inplace: fn(&'static Pointwise, &Tensor, &[Operand]) -> Result<()>,
    /// Sets the tangents of a result.
    pub tangent: fn(&'static Pointwise, &[Operand], &Tensor) -> Result<()>,
    pub tangent_inplace: fn(&'static Pointwise, &Tensor, &[Operand]) -> Result<()>,
}

impl Pointwise {
    /// The derivative of a call's node, and the number of operands with edges: conditions and trailing
    /// numbers have none.
    #[inline]
    pub fn node_of(&'static self, operands: &[Operand]) -> (&'static Derivative, usize) {
        match operands.last() {
            Some(Operand::Scalar(_)) if !self.clauses.wraps => {
                let numbers = operands.iter().rev().take_while(|o| matches!(o, Operand::Scalar(_))).count();
                (&self.by_number, operands.len() - numbers)
            }
            _ if self.class == Class::Choose => (&self.derivative, 2),
            _ => (&self.derivative, operands.len()),
        }
    }

    /// True if this row takes operands of a dtype that is only stored. Integers become floats where the class says so.
    pub fn takes_stored(&self, dtype: DType) -> bool {
        match self.class {
            Class::Float | Class::Angle => dtype.is_int(),
            Class::Test => true,
            _ => {
                self.clauses.any_dtype
                    || dtype.is_wide_unsigned() && self.clauses.unsigned.is_some_and(|widest| dtype <= widest)
            }
        }
    }

    /// Rounds a number next to operands of `dtype`, if this row does so.
    #[inline]
    pub fn beside(&self, at: usize, number: Scalar, dtype: DType) -> Scalar {
        if (dtype.is_half() || dtype.is_float8()) && self.rounds_number(at) {
            number.rounded(dtype)
        } else {
            number
        }
    }

    /// True if this row rounds a number at this place to the half dtype of its tensors.
    pub fn rounds_number(&self, at: usize) -> bool {
        match self.clauses.rounds {
            Rounds::Nothing | Rounds::Tensors => false,
            Rounds::First => at == 0,
            Rounds::All => true,
        }
    }

    /// True if this row rounds a tensor to `half` before its kernel runs.
    pub fn rounds(&self, at: usize, tensor: &Tensor, half: DType) -> bool {
        let dtype = tensor.dtype();
        dtype != half
            && dtype.size() > 1
            && match self.clauses.rounds {
                Rounds::Nothing => false,
                Rounds::First => at == 0 || tensor.body().numel() != 1,
                Rounds::Tensors | Rounds::All => true,
            }
    }

    /// A row with the same formulas, but its own parameters and nodes.
    pub const fn like(&self, row: Row, clauses: Clauses) -> Pointwise {
        let node = if clauses.node.is_empty() { self.derivative.name } else { clauses.node };
        let by_number = if clauses.by_number.is_empty() { node } else { clauses.by_number };
        Pointwise {
            row: Row {
                forms: clauses.forms,
                aliases: clauses.aliases,
                by_kind: clauses.aten,
                out: OutFacts { unrecorded: self.row.out.unrecorded, ..clauses.out },
                arities: clauses.arities,
                scaled: clauses.scaled,
                flops: clauses.flops,
                ..row
            },
            derivative: Derivative { name: node, flops: clauses.derivative_flops, ..self.derivative },
            by_number: Derivative { name: by_number, flops: clauses.derivative_flops, ..self.by_number },
            clauses,
            ..*self
        }
    }

    /// True if calls of this row are recorded.
    #[inline]
    pub fn is_recorded(&self) -> bool {
        !self.gradients.is_empty() || self.refuses()
    }

    /// True if PyTorch records calls of this row although it has no derivative.
    pub fn refuses(&self) -> bool {
        self.clauses.underived
    }
}

/// The bits of a formula's sources.
pub const fn source_bits(sources: &[u32]) -> u64 {
    let (mut bits, mut i) = (0, 0);
    while i < sources.len() {
        bits |= match sources[i] {
            GRAD => 0,
            crate::tensor::Saved::OUTPUT => 1 << 63,
            input => 1 << input,
        };
        i += 1;
    }
    bits
}
