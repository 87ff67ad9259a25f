//! The conj and neg bits: `x.conj()` and `x.conj().imag` are views of the same bytes whose elements are
//! conjugated or negated when they are read.

use super::Scalar;

/// The bits of a tensor, usually none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConjNeg(u8);

impl ConjNeg {
    pub const NONE: ConjNeg = ConjNeg(0);
    pub const CONJ: ConjNeg = ConjNeg(1);
    pub const NEG: ConjNeg = ConjNeg(2);

    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    pub const fn has(self, part: ConjNeg) -> bool {
        self.0 & part.0 != 0
    }

    /// Applies one after the other; a bit that is set in both cancels.
    #[must_use]
    pub const fn then(self, other: ConjNeg) -> ConjNeg {
        ConjNeg(self.0 ^ other.0)
    }

    /// The value of an element whose bytes hold `number`.
    pub fn of(self, number: Scalar) -> Scalar {
        let number = if self.has(ConjNeg::CONJ) { number.conj() } else { number };
        if self.has(ConjNeg::NEG) { number.opposite() } else { number }
    }
}
