//! Functions that are the same in every compute type: comparisons, logic and trivial powers.

use crate::cpu::element::Element;

macro_rules! comparisons {
    ($($name:ident $op:tt),*) => {
        $(#[inline(always)]
        pub fn $name<T: PartialOrd>(a: T, b: T) -> bool {
            a $op b
        })*
    };
}
comparisons!(eq ==, ne !=, lt <, le <=, gt >, ge >=);

#[inline(always)]
pub fn both(a: bool, b: bool) -> bool {
    a & b
}

#[inline(always)]
pub fn either(a: bool, b: bool) -> bool {
    a | b
}

#[inline(always)]
pub fn differ(a: bool, b: bool) -> bool {
    a ^ b
}

#[inline(always)]
pub fn not(a: bool) -> bool {
    !a
}

#[inline(always)]
pub fn truth<T: Element + PartialEq>(x: T) -> bool {
    x != T::from_i64(0)
}

/// A real number is its own conjugate.
#[inline(always)]
pub fn conj<T: Element>(x: T) -> T {
    x
}

/// Zero; in derivatives it has an edge to the operand.
#[inline(always)]
pub fn zero_of<T: Element>(_: T) -> T {
    T::from_i64(0)
}

/// Zero; in derivatives it has no edge.
#[inline(always)]
pub fn constant_zero<T: Element>(_: T) -> T {
    T::from_i64(0)
}

/// x¹.
#[inline(always)]
pub fn first_power<T: Element>(x: T) -> T {
    x
}

/// x⁰.
#[inline(always)]
pub fn zeroth_power<T: Element>(_: T) -> T {
    T::from_i64(1)
}

#[inline(always)]
pub fn square<T: Element>(x: T) -> T {
    x.times(x)
}

/// Functions whose operands do not say in which type a formula is computed, so that each type has its own.
macro_rules! typed {
    () => {
        /// `if_true` if the condition holds, else `if_false`; both are computed.
        #[inline(always)]
        pub fn select(if_false: T, if_true: T, condition: bool) -> T {
            if condition { if_true } else { if_false }
        }

        #[inline(always)]
        pub fn num(b: bool) -> T {
            b as u8 as T
        }
    };
}
pub(super) use typed;

/// Functions of integers of any width.
pub mod integers {
    use crate::cpu::element::Element;

    #[inline(always)]
    pub fn multiply_add<T: Element>(a: T, b: T, c: T) -> T {
        a.times(b).plus(c)
    }

    #[inline(always)]
    pub fn maximum<T: Ord>(a: T, b: T) -> T {
        a.max(b)
    }

    #[inline(always)]
    pub fn minimum<T: Ord>(a: T, b: T) -> T {
        a.min(b)
    }
}

/// Division of floats by way of their exact remainder, `rest`.
macro_rules! divisions {
    () => {
        /// The remainder with the dividend's sign.
        #[inline(always)]
        pub fn fmod(a: T, b: T) -> T {
            rest(a, b)
        }

        /// The remainder with the divisor's sign, as in Python.
        #[inline(always)]
        pub fn remainder(a: T, b: T) -> T {
            let r = rest(a, b);
            if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r }
        }

        /// The quotient rounded down, from the exact remainder, so that it agrees with `remainder`.
        #[inline(always)]
        pub fn floor_div(a: T, b: T) -> T {
            if b == 0.0 {
                return a / b;
            }
            let r = rest(a, b);
            let q = (a - r) / b - num(r != 0.0 && (r < 0.0) != (b < 0.0));
            let whole = q.floor() + num(q - q.floor() > 0.5);
            if q == 0.0 { (0.0 as T).copysign(a / b) } else { whole }
        }
    };
}
pub(super) use divisions;

/// A polynomial, lowest coefficient first, by Horner's rule.
macro_rules! poly {
    ($x:expr; $c:expr) => { $c };
    ($x:expr; $c:expr, $($rest:expr),+) => { $c + $x * poly!($x; $($rest),+) };
}
pub(super) use poly;

/// A polynomial, lowest coefficient first, by groups of four terms that can be computed in parallel: for long ones.
macro_rules! long_poly {
    ($x:expr; $($c:expr),+) => {{
        let square = $x * $x;
        long_poly!(@ $x, square, square * square; $($c),+)
    }};
    (@ $x:expr, $x2:expr, $x4:expr; $a:expr, $b:expr) => { $a + $x * $b };
    (@ $x:expr, $x2:expr, $x4:expr; $a:expr, $b:expr, $c:expr, $d:expr) => { ($a + $x * $b) + $x2 * ($c + $x * $d) };
    (@ $x:expr, $x2:expr, $x4:expr; $a:expr, $b:expr, $c:expr, $d:expr, $($rest:expr),+) => {
        (($a + $x * $b) + $x2 * ($c + $x * $d)) + $x4 * long_poly!(@ $x, $x2, $x4; $($rest),+)
    };
}
pub(super) use long_poly;
