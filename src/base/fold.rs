//! The reductions that have kernels of their own on both devices.

/// What a reduction computes over the reduced elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fold {
    Sum,
    Prod,
    Max,
    Min,
    /// Index of the (first) largest element; NaN counts as largest.
    ArgMax,
    ArgMin,
    All,
    Any,
    /// Sum of squares.
    SumSq,
    /// Sum of absolute values.
    SumAbs,
}

impl Fold {
    /// Whether the reduction of no elements is defined.
    pub const fn has_identity(self) -> bool {
        !matches!(self, Fold::Max | Fold::Min | Fold::ArgMax | Fold::ArgMin)
    }

    pub const fn is_arg(self) -> bool {
        matches!(self, Fold::ArgMax | Fold::ArgMin)
    }
}
