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
    /// What no elements come to, where that is defined.
    pub const fn of_nothing(self) -> Option<i64> {
        match self {
            Fold::Sum | Fold::SumSq | Fold::SumAbs | Fold::Any => Some(0),
            Fold::Prod | Fold::All => Some(1),
            Fold::Max | Fold::Min | Fold::ArgMax | Fold::ArgMin => None,
        }
    }

    pub const fn is_arg(self) -> bool {
        matches!(self, Fold::ArgMax | Fold::ArgMin)
    }
}
