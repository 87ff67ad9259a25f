//! Integers in their own width, for expressions that give the same numbers there.

use super::common::comparisons;

macro_rules! narrow {
    ($($t:ident),*) => { $(
        pub mod $t {
            use super::comparisons;

            pub type T = $t;

            comparisons!(eq ==, ne !=, lt <, le <=, gt >, ge >=);

            #[inline(always)]
            fn product(a: T, b: T) -> T {
                a.wrapping_mul(b)
            }

            #[inline(always)]
            pub fn maximum(a: T, b: T) -> T {
                a.max(b)
            }

            #[inline(always)]
            pub fn minimum(a: T, b: T) -> T {
                a.min(b)
            }
        }
    )* };
}
narrow!(i32, i16, i8, u8);
