//! Some functions are fast for arguments of moderate size, and call a library for others. Compilers do not vectorize a
//! loop that calls anything. Loops over such functions therefore check some hundred operands at a time, and are
//! compiled twice: once with the functions of the modules `near`, which give the same bits for moderate arguments.

/// The condition on operands under which the fast functions may be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Near {
    /// Each operand is small.
    Small,
    /// The last operand is a divisor, and the quotients are small.
    Quotient,
}

/// The condition for an expression, if it calls one of `functions`.
pub const fn required_range(expression: &str, functions: &[(&str, Near)]) -> Option<Near> {
    let text = expression.as_bytes();
    let mut start = 0;
    while start < text.len() {
        let inside_name = start > 0 && (text[start - 1].is_ascii_alphanumeric() || text[start - 1] == b'_');
        let mut k = 0;
        while !inside_name && k < functions.len() {
            let name = functions[k].0.as_bytes();
            let mut i = 0;
            while i < name.len() && start + i < text.len() && text[start + i] == name[i] {
                i += 1;
            }
            if i == name.len() && start + i < text.len() && text[start + i] == b'(' {
                return Some(functions[k].1);
            }
            k += 1;
        }
        start += 1;
    }
    None
}

/// Number of operands that are checked together.
pub const SPAN: usize = 512;

/// Types that have fast functions.
pub trait Ranges: Copy {
    /// The names of the fast functions, and their conditions.
    const FUNCTIONS: &'static [(&'static str, Near)];

    fn is_small(self) -> bool;

    fn is_small_quotient(self, by: Self) -> bool;

    /// Returns true if `n` elements of each operand meet the condition.
    ///
    /// # Safety
    /// The operands have `n` elements.
    #[inline(always)]
    unsafe fn fits(near: Near, n: usize, operands: &[*const Self]) -> bool {
        // SAFETY: the caller's elements.
        let at = |k: usize, i: usize| unsafe { *operands[k].add(i) };
        let mut far = false;
        match near {
            Near::Small => {
                for k in 0..operands.len() {
                    (0..n).for_each(|i| far |= !at(k, i).is_small());
                }
            }
            Near::Quotient => {
                let last = operands.len() - 1;
                for k in 0..last {
                    (0..n).for_each(|i| far |= !at(k, i).is_small_quotient(at(last, i)));
                }
            }
        }
        !far
    }
}

/// Division of floats with small quotients.
macro_rules! near_division {
    () => {
        /// The remainder with the dividend's sign, exactly that of `%`.
        #[inline(always)]
        fn rest(a: T, b: T) -> T {
            let r = (a / b).trunc().mul_add(-b, a);
            // The quotient may have been rounded up to the next integer.
            let r = if (r != 0.0) & ((r < 0.0) != (a < 0.0)) { r + b.abs().copysign(a) } else { r };
            let r = if (b.abs() == T::INFINITY) & (a.abs() < T::INFINITY) { a } else { r };
            r.copysign(a)
        }

        divisions!();
    };
}
pub(super) use near_division;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_whole() {
        const NAMES: &[(&str, Near)] = &[("sin", Near::Small), ("fmod", Near::Quotient)];
        assert_eq!(required_range("g * conj(sin(input))", NAMES), Some(Near::Small));
        assert_eq!(required_range("fmod(a, b)", NAMES), Some(Near::Quotient));
        assert!(
            ["asin(x)", "sinh(x)", "sin + x", "x * s"].iter().all(|e| required_range(e, NAMES).is_none())
        );
    }

    /// The fast functions give the same bits as the others.
    #[test]
    fn remainders_are_exact() {
        macro_rules! check {
            ($t:ident, $bits:ident) => {
                let mut state = 1u64;
                let mut draw = || {
                    state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    state >> 8
                };
                let mut seen = 0;
                for i in 0..400_000 {
                    let mut number = || {
                        let x = $t::from_bits((draw() << 8 ^ draw() >> 20) as $bits);
                        if i % 3 == 0 { (x.to_bits() % 97) as $t * 0.25 - 12.0 } else { x }
                    };
                    let (a, b) = (number(), number());
                    let b = if i % 2 == 0 { a / (1.0 + (b.to_bits() % 1000) as $t) } else { b };
                    // SAFETY: each operand is one element.
                    if unsafe { $t::fits(Near::Quotient, 1, &[&a, &b]) } {
                        seen += 1;
                        for (near, far) in [
                            ($t::near::fmod as fn($t, $t) -> $t, $t::fmod as fn($t, $t) -> $t),
                            ($t::near::remainder, $t::remainder),
                            ($t::near::floor_div, $t::floor_div),
                        ] {
                            let (x, y) = (near(a, b), far(a, b));
                            assert!(
                                x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan(),
                                "{a:e} {b:e}: {x:e} {y:e}"
                            );
                        }
                    }
                }
                assert!(seen > 100_000);
                let (inf, nan) = ($t::INFINITY, $t::NAN);
                for a in [0.0, -0.0, 1.0, -2.5, inf, -inf, nan] {
                    for b in [0.0, -0.0, 1.0, -0.5, inf, -inf, nan] {
                        // SAFETY: each operand is one element.
                        if unsafe { $t::fits(Near::Quotient, 1, &[&a, &b]) } {
                            let (x, y) = ($t::near::fmod(a, b), $t::fmod(a, b));
                            assert!(
                                x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan(),
                                "{a} {b}: {x} {y}"
                            );
                        }
                    }
                }
            };
        }
        use super::super::{f32, f64};
        check!(f32, u32);
        check!(f64, u64);
    }
}
