//! What a pointwise row is: its formula and its derivatives, in all their readings.

use crate::base::{DType, Result, Scalar};
use crate::cpu::pointwise::{Loop, Loops, powers};
use crate::operator::clauses::{Clauses, Rounds};
use crate::operator::grad_value::V;
use crate::operator::operand::Operand;
use crate::operator::pointwise::layout_formula::LayoutFormula;
use crate::operator::row::{OutFacts, Row};
use crate::tensor::{Derivative, Tensor};

/// A default as a row writes it: whole numbers stay so.
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

/// The source that is the incoming gradient.
pub const GRAD: u32 = u32::MAX;

/// How a row's dtypes follow from its operands'.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Floating point; integers become the default dtype.
    Float,
    /// The promoted type, whatever it is.
    Arith,
    /// As `Arith`, but bool is refused.
    Number,
    /// As `Arith`, but bool has no kernel.
    Plain,
    /// Floating point only.
    Real,
    /// As `Plain`, but an integer divisor must not be zero.
    Divide,
    /// As `Arith`, where operands are not promoted: a clause `check` says to what.
    Alike,
    /// As `Alike`, floating point only.
    FloatAlike,
    /// Compared in the promoted type; gives bool.
    Compare,
    /// Integers and bool.
    Bits,
    /// Integers.
    Shift,
    /// The last operand is a condition, which does not count in promotion.
    Choose,
    /// Floating point only, keeps the type, gives bool.
    Test,
    /// As `Plain`; of complex numbers the result is real.
    Modulus,
    /// As `Float`; of complex numbers the result is real.
    Angle,
}

/// One expression in its readings for kernels.
#[derive(Clone, Copy)]
pub struct Expr {
    pub key: &'static str,
    pub inputs: &'static [&'static str],
    pub wgsl: &'static str,
    pub loops: Loops,
    /// What it makes of complex numbers where shaders know real ones only.
    #[cfg(feature = "gpu")]
    pub by_parts: Option<crate::operator::pointwise::complex_formula::Formula>,
    /// The row that computes it of the imaginary and the real part of complex numbers.
    pub of_parts: Option<fn() -> &'static Pointwise>,
}

impl Expr {
    /// The loop for a number as the last operand, of an expression that has some.
    #[inline(always)]
    pub fn loop_for_number(
        &self,
        last: impl FnOnce() -> Option<Scalar>,
        compute: DType,
    ) -> Option<&'static Loop> {
        if self.loops.powers.is_empty() { None } else { powers::choose(&self.loops, last()?, compute) }
    }

    /// Whether the formula is just one of its names.
    pub fn is_identity(&self) -> bool {
        self.inputs.len() == 1 && self.inputs[0] == self.wgsl
    }
}

pub struct Gradient {
    /// Which operand it is for.
    pub of: u32,
    /// Where the formula's names come from; the first is usually the gradient.
    pub sources: &'static [u32],
    /// What is saved, a bit each: the sources, and what PyTorch saves beside them.
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
    /// Operands; what follows them in `row.params` are scalar arguments.
    pub inputs: usize,
    pub defaults: &'static [Scalar],
    pub forward: Expr,
    pub derivative: Derivative,
    /// `derivative` under the name that PyTorch has for a number as the last operand.
    pub by_number: Derivative,
    /// What the row says beside its formula.
    pub clauses: Clauses,
    /// In which order operands are saved.
    pub order: &'static [u8],
    /// What is saved whichever gradients are wanted.
    pub always: u64,
    pub gradients: &'static [Gradient],
    pub transforms: &'static Transforms,
}

/// How transforms run a row's calls, which the row is given: they are themselves calls of rows.
pub struct Transforms {
    /// A call with samples of a `vmap`.
    pub batch: fn(&'static Pointwise, &[Operand]) -> Result<Tensor>,
    pub batch_inplace: fn(&'static Pointwise, &Tensor, &[Operand]) -> Result<()>,
    /// Gives a result its tangents.
    pub tangent: fn(&'static Pointwise, &[Operand], &Tensor) -> Result<()>,
    pub tangent_inplace: fn(&'static Pointwise, &Tensor, &[Operand]) -> Result<()>,
}

impl Pointwise {
    /// What a call's node runs, and how many of the operands have edges: conditions have none, nor have numbers at the end.
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

    /// A number beside elements of `dtype`, as the row takes it.
    #[inline]
    pub fn beside(&self, at: usize, number: Scalar, dtype: DType) -> Scalar {
        if dtype.is_half() && self.rounds_number(at) { number.rounded(dtype) } else { number }
    }

    fn rounds_number(&self, at: usize) -> bool {
        match self.clauses.rounds {
            Rounds::Nothing | Rounds::Tensors => false,
            Rounds::First => at == 0,
            Rounds::All => true,
        }
    }

    /// Whether a tensor is rounded to `half` before this row's kernel takes it.
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

    /// A row with these formulas, and with parameters and nodes of its own.
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

    /// Whether calls of this row are recorded.
    #[inline]
    pub fn is_recorded(&self) -> bool {
        !self.gradients.is_empty() || self.refuses()
    }

    /// Whether PyTorch records calls of this row although it has no derivative for them.
    pub fn refuses(&self) -> bool {
        self.clauses.underived
    }
}

/// The bits of a pointwise formula's sources.
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
