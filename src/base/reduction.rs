//! The reductions that have kernels of their own on both devices.

/// What a reduction computes over the reduced elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reduction {
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

impl Reduction {
    /// What no elements come to, where that is defined.
    pub const fn of_nothing(self) -> Option<i64> {
        match self {
            Reduction::Sum | Reduction::SumSq | Reduction::SumAbs | Reduction::Any => Some(0),
            Reduction::Prod | Reduction::All => Some(1),
            Reduction::Max | Reduction::Min | Reduction::ArgMax | Reduction::ArgMin => None,
        }
    }

    pub const fn is_arg(self) -> bool {
        matches!(self, Reduction::ArgMax | Reduction::ArgMin)
    }
}

/// What becomes of the losses of samples.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Joined {
    No,
    Sum,
    Mean,
}
