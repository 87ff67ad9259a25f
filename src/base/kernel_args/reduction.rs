//! The reductions that have kernels on both devices.

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reduction {
    Sum,
    Prod,
    Max,
    Min,
    /// Index of the first largest element; NaN counts as the largest.
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
    /// The result for no elements, if it is defined.
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

/// The `reduction` argument of losses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LossReduction {
    None,
    Sum,
    Mean,
}
