//! Flags of a tensor, one bit each; a plain tensor has none set.

use crate::tensor::dual_levels::any_level;

/// The tensor is a leaf that requires a gradient.
pub const REQUIRES: u8 = 1;
/// The body or the edge was replaced after the tensor was made: the current one is in `Extra`.
pub const REPLACED: u8 = 2;
pub const RETAINS: u8 = 4;
/// The tensor has tangents of forward mode.
pub const DUAL: u8 = 8;
/// The tensor is batched by `vmap`; its values are in another, physical tensor.
pub const BATCHED: u8 = 16;
/// The tensor is a view. Its base may have received tangents after the view was made.
pub const VIEW: u8 = 32;
/// The view has tangents of its own, not those of its base.
pub const OWN_TANGENTS: u8 = 64;
/// The values are the conjugate or the negative of the bytes.
pub const CONJ_NEG: u8 = 128;

/// The union of the flags of a call's operands.
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

    /// The same flags, for an operator that does not read the elements of its operands.
    pub fn unread(self) -> Marks {
        Marks(self.0 & !CONJ_NEG)
    }

    /// True if there may be tangents; for a view the tensor itself must be asked.
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
