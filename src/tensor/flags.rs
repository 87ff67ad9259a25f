//! What sets a tensor apart from plain bytes, one bit each.

use crate::tensor::dual_levels::any_level;

/// A leaf that wants a gradient.
pub const REQUIRES: u8 = 1;
/// Body or edge were replaced: look in `Extra`.
pub const REPLACED: u8 = 2;
pub const RETAINS: u8 = 4;
/// Carries tangents of forward mode.
pub const DUAL: u8 = 8;
/// One sample of a batch that `vmap` runs over; its values lie in another tensor.
pub const BATCHED: u8 = 16;
/// A view. Its base may have got tangents after it was made.
pub const VIEW: u8 = 32;
/// A view whose tangents are its own, not those of its base.
pub const OWN_TANGENTS: u8 = 64;
/// Its values are its bytes conjugated or negated.
pub const CONJ_NEG: u8 = 128;

/// What the operands of a call are beside bytes with a history, in one word.
#[derive(Clone, Copy, Default)]
pub struct Marks(pub(super) u8);

impl Marks {
    #[inline]
    pub fn is_batched(self) -> bool {
        self.0 & BATCHED != 0
    }

    #[inline]
    pub fn is_conj_or_neg(self) -> bool {
        self.0 & CONJ_NEG != 0
    }

    /// These marks for an operator that does not read the elements of its operands.
    pub fn unread(self) -> Marks {
        Marks(self.0 & !CONJ_NEG)
    }

    /// Whether there may be tangents: views are to be asked.
    #[inline]
    pub fn may_be_dual(self) -> bool {
        self.0 & DUAL != 0 || (self.0 & VIEW != 0 && any_level())
    }
}

impl std::ops::BitOrAssign for Marks {
    #[inline]
    fn bitor_assign(&mut self, other: Marks) {
        self.0 |= other.0;
    }
}
