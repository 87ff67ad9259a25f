//! How an indexed write combines values.

/// The operation by which a scatter combines a new element with the existing one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Put {
    Assign,
    Add,
    Mul,
    Max,
    Min,
}
