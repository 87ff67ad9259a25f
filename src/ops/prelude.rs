//! The imports of every file with operators.
#![allow(unused_imports, reason = "it is for rows to come, too")]

pub use crate::base::{
    ConjNeg, DType, Device, Dims, Error, Fault, Layout, Result, Scalar, StridedLayout, wrap_dim,
};
pub use crate::operator::batch::Batch;
pub use crate::operator::bodies::{at_least_vector, converted, drop_dims, in_dtype, kept_shape, with_shape};
pub(crate) use crate::operator::bodies::{done, fork, no_shader};
pub use crate::operator::call::derivative::Unread;
pub use crate::operator::{Arg, Ints, Operand, Several, Sizes, TensorOptions, V};
pub use crate::ops::elementwise::formula;
pub use crate::ops::elementwise::formula::*;
pub use crate::tensor::{Body, Meta, Tensor};
pub use gradiron_macros::{inplace, operator, overload, primitive};
