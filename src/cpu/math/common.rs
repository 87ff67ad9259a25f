//! Functions that are the same in every compute type: comparisons, logic, selection, and exact float functions.

/// Comparisons, selection and logic.
macro_rules! comparisons {
    ($($name:ident $op:tt),*) => {
        $(#[inline(always)]
        pub fn $name(a: T, b: T) -> bool {
            a $op b
        })*

        /// `if_true` if the condition holds, else `if_false`; both are computed.
        #[inline(always)]
        pub fn select(if_false: T, if_true: T, condition: bool) -> T {
            if condition { if_true } else { if_false }
        }

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
        pub fn truth(x: T) -> bool {
            x != 0 as T
        }

        #[inline(always)]
        pub fn num(b: bool) -> T {
            b as u8 as T
        }

        /// A real number is its own conjugate.
        #[inline(always)]
        pub fn conj(x: T) -> T {
            x
        }

        /// Zero; in derivatives it has an edge to the operand.
        #[inline(always)]
        pub fn zero_of(_: T) -> T {
            0 as T
        }

        /// Zero; in derivatives it has no edge.
        #[inline(always)]
        pub fn constant_zero(_: T) -> T {
            0 as T
        }

        /// x¹.
        #[inline(always)]
        pub fn first_power(x: T) -> T {
            x
        }

        /// x⁰.
        #[inline(always)]
        pub fn zeroth_power(_: T) -> T {
            1 as T
        }

        #[inline(always)]
        pub fn square(x: T) -> T {
            product(x, x)
        }
    };
}
pub(super) use comparisons;

/// Functions of integers of any width.
macro_rules! integers {
    () => {
        comparisons!(eq ==, ne !=, lt <, le <=, gt >, ge >=);

        #[inline(always)]
        fn product(a: T, b: T) -> T {
            a.wrapping_mul(b)
        }

        #[inline(always)]
        pub fn multiply_add(a: T, b: T, c: T) -> T {
            product(a, b).wrapping_add(c)
        }

        #[inline(always)]
        pub fn maximum(a: T, b: T) -> T {
            a.max(b)
        }

        #[inline(always)]
        pub fn minimum(a: T, b: T) -> T {
            a.min(b)
        }
    };
}
pub(super) use integers;

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

/// Float functions that are exact, or rounded once, or consist only of such.
macro_rules! exact_float {
    () => {
        comparisons!(eq ==, ne !=, lt <, le <=, gt >, ge >=);

        #[inline(always)]
        fn product(a: T, b: T) -> T {
            a * b
        }

        #[inline(always)]
        pub fn abs(x: T) -> T {
            x.abs()
        }

        #[inline(always)]
        pub fn neg(x: T) -> T {
            -x
        }

        /// -1, 0 or 1; NaN gives 0, as in PyTorch.
        #[inline(always)]
        pub fn sign(x: T) -> T {
            num(x > 0.0) - num(x < 0.0)
        }

        /// 0, or π for negative numbers.
        #[inline(always)]
        pub fn angle(x: T) -> T {
            const PI: T = std::f64::consts::PI as T;
            if x.is_nan() { x } else if x < 0.0 { PI } else { 0.0 }
        }

        /// The derivative of acosh.
        #[inline(always)]
        pub fn acosh_slope(x: T) -> T {
            rsqrt(x * x - 1.0)
        }

        /// The gradients of [`angle`] and of `sgn`: 0, because a real number's direction does not change.
        #[inline(always)]
        pub fn angle_gradient(_g: T, _x: T) -> T {
            0.0
        }

        /// The logarithm of a base, which is real for real powers.
        #[inline(always)]
        pub fn log_of_base(x: T, _y: T) -> T {
            log(x)
        }

        #[inline(always)]
        pub fn sgn_gradient(_g: T, _x: T, _y: T) -> T {
            0.0
        }

        #[inline(always)]
        pub fn sqrt(x: T) -> T {
            x.sqrt()
        }

        #[inline(always)]
        pub fn rsqrt(x: T) -> T {
            1.0 / x.sqrt()
        }

        #[inline(always)]
        pub fn recip(x: T) -> T {
            1.0 / x
        }

        #[inline(always)]
        pub fn floor(x: T) -> T {
            x.floor()
        }

        #[inline(always)]
        pub fn ceil(x: T) -> T {
            x.ceil()
        }

        /// Rounds to the nearest integer, and to the even one if there are two.
        #[inline(always)]
        pub fn round(x: T) -> T {
            x.round_ties_even()
        }

        #[inline(always)]
        pub fn trunc(x: T) -> T {
            x.trunc()
        }

        #[inline(always)]
        pub fn frac(x: T) -> T {
            x - x.trunc()
        }

        #[inline(always)]
        pub fn copysign(a: T, b: T) -> T {
            a.copysign(b)
        }

        #[inline(always)]
        fn rest(a: T, b: T) -> T {
            a % b
        }

        divisions!();

        #[inline(always)]
        pub fn trunc_div(a: T, b: T) -> T {
            trunc(a / b)
        }

        /// The larger; NaN if either is.
        #[inline(always)]
        pub fn maximum(a: T, b: T) -> T {
            let larger = if a >= b { a } else { b };
            if a.is_nan() { a } else { larger }
        }

        #[inline(always)]
        pub fn minimum(a: T, b: T) -> T {
            let smaller = if a <= b { a } else { b };
            if a.is_nan() { a } else { smaller }
        }

        /// The larger; the other one if one is NaN.
        #[inline(always)]
        pub fn fmax(a: T, b: T) -> T {
            if (a >= b) | b.is_nan() { a } else { b }
        }

        #[inline(always)]
        pub fn fmin(a: T, b: T) -> T {
            if (a <= b) | b.is_nan() { a } else { b }
        }

        /// The step function with the value `at_zero` at 0; NaN gives 0, as in PyTorch.
        #[inline(always)]
        pub fn heaviside(x: T, at_zero: T) -> T {
            if x == 0.0 { at_zero } else { num(x > 0.0) }
        }

        #[inline(always)]
        pub fn is_nan(x: T) -> bool {
            x.is_nan()
        }

        #[inline(always)]
        pub fn is_inf(x: T) -> bool {
            x.abs() == T::INFINITY
        }

        #[inline(always)]
        pub fn is_finite(x: T) -> bool {
            x.abs() < T::INFINITY
        }
    };
}
pub(super) use exact_float;

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
