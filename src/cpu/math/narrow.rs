//! Functions of integers in their own width, for expressions that give the same result there as in i64.

use super::common::{comparisons, integers};

macro_rules! narrow {
    ($($t:ident),*) => { $(
        pub mod $t {
            use super::{comparisons, integers};

            pub type T = $t;

            integers!();
        }
    )* };
}
narrow!(i32, i16, i8, u8);
