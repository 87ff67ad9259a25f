//! Functions of integers in their own width, for expressions that give the same result there as in i64.

use super::common::typed;

macro_rules! narrow {
    ($($t:ident),*) => { $(
        pub mod $t {
            use super::typed;
            pub use crate::cpu::math::common::integers::*;
            pub use crate::cpu::math::common::{both, conj, constant_zero, differ, either, eq, first_power, ge, gt, le, lt, ne, not, square, truth, zero_of, zeroth_power};

            pub type T = $t;

            typed!();
        }
    )* };
}
narrow!(i32, i16, i8, u8);
