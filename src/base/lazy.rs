//! What is still to be done to elements when somebody reads them: `x.conj()` and `x.conj().imag` are views, the bytes
//! stay what they are.

use super::Scalar;

/// Conjugated, negated, both or, as nearly always, neither.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lazy(u8);

impl Lazy {
    pub const NOTHING: Lazy = Lazy(0);
    pub const CONJ: Lazy = Lazy(1);
    pub const NEG: Lazy = Lazy(2);

    #[inline]
    pub const fn is_nothing(self) -> bool {
        self.0 == 0
    }

    pub const fn has(self, part: Lazy) -> bool {
        self.0 & part.0 != 0
    }

    /// Both done, of which each undoes itself.
    #[must_use]
    pub const fn then(self, other: Lazy) -> Lazy {
        Lazy(self.0 ^ other.0)
    }

    /// A number as it is read.
    pub fn of(self, number: Scalar) -> Scalar {
        let number = if self.has(Lazy::CONJ) { number.conj() } else { number };
        if self.has(Lazy::NEG) { number.opposite() } else { number }
    }
}
