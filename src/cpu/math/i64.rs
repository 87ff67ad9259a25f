//! Integer functions; most integer dtypes are computed in i64. Arithmetic wraps, and nothing panics.

pub use super::common::integers::*;
use super::common::typed;
pub use super::common::{
    both, conj, constant_zero, differ, either, eq, first_power, ge, gt, le, lt, ne, not, square, truth,
    zero_of, zeroth_power,
};

pub type T = i64;

typed!();

#[inline(always)]
pub fn abs(x: T) -> T {
    x.wrapping_abs()
}

#[inline(always)]
pub fn neg(x: T) -> T {
    x.wrapping_neg()
}

#[inline(always)]
pub fn sign(x: T) -> T {
    i64::from(x > 0) - i64::from(x < 0)
}

#[inline(always)]
pub fn fmax(a: T, b: T) -> T {
    a.max(b)
}

#[inline(always)]
pub fn fmin(a: T, b: T) -> T {
    a.min(b)
}

/// `a` to the power `b`; a negative exponent gives the truncated reciprocal.
#[inline(always)]
pub fn pow(a: T, b: T) -> T {
    let (mut base, mut rest, mut result) = (a, b, 1i64);
    if b < 0 {
        let odd = if b & 1 == 0 { 1 } else { -1 };
        return if a == 1 {
            1
        } else if a == -1 {
            odd
        } else {
            0
        };
    }
    while rest > 0 {
        result = if rest & 1 == 1 { result.wrapping_mul(base) } else { result };
        base = base.wrapping_mul(base);
        rest >>= 1;
    }
    result
}

/// The quotient rounded towards zero; 0 for a divisor of 0, which operators refuse.
#[inline(always)]
pub fn trunc_div(a: T, b: T) -> T {
    if b == 0 { 0 } else { a.wrapping_div(b) }
}

/// The quotient rounded down.
#[inline(always)]
pub fn floor_div(a: T, b: T) -> T {
    let q = trunc_div(a, b);
    let r = a.wrapping_sub(q.wrapping_mul(b));
    q - num(b != 0 && r != 0 && (r < 0) != (b < 0))
}

/// The remainder with the dividend's sign.
#[inline(always)]
pub fn fmod(a: T, b: T) -> T {
    if b == 0 { 0 } else { a.wrapping_rem(b) }
}

/// The remainder with the divisor's sign.
#[inline(always)]
pub fn remainder(a: T, b: T) -> T {
    let r = fmod(a, b);
    if r != 0 && (r < 0) != (b < 0) { r + b } else { r }
}

/// The fast functions, computed with floats: see [`super::fast_ranges`].
pub mod near {
    use super::super::fast_ranges::{Near, Ranges};
    use super::T;

    impl Ranges for T {
        const FUNCTIONS: &'static [(&'static str, Near)] = &[
            ("fmod", Near::Small),
            ("remainder", Near::Small),
            ("floor_div", Near::Small),
            ("trunc_div", Near::Small),
        ];

        /// Such integers convert to floats exactly, and rounding does not move their quotients across an integer.
        #[inline(always)]
        fn is_small(self) -> bool {
            self.unsigned_abs() <= 1 << 50
        }

        #[inline(always)]
        fn is_small_quotient(self, _: T) -> bool {
            false
        }
    }

    /// The bits of [`MAGIC`]: adding a small integer to them gives the bits of the sum of [`MAGIC`] and that integer.
    const MAGIC_BITS: i64 = 0x4338_0000_0000_0000;
    const MAGIC: f64 = 6755399441055744.0;

    #[inline(always)]
    fn float(x: T) -> f64 {
        f64::from_bits(x.wrapping_add(MAGIC_BITS) as u64) - MAGIC
    }

    #[inline(always)]
    fn integer(x: f64) -> T {
        ((x + MAGIC).to_bits() as i64).wrapping_sub(MAGIC_BITS)
    }

    /// The quotient rounded towards zero, the remainder with the dividend's sign, and the divisor; zeros if that is 0.
    #[inline(always)]
    fn divided(a: T, b: T) -> (f64, f64, f64) {
        let (a, b) = (float(a), float(b));
        let q = (a / b).trunc();
        let q = if b == 0.0 { 0.0 } else { q };
        (q, if b == 0.0 { 0.0 } else { a - q * b }, b)
    }

    #[inline(always)]
    pub fn trunc_div(a: T, b: T) -> T {
        integer(divided(a, b).0)
    }

    #[inline(always)]
    pub fn floor_div(a: T, b: T) -> T {
        let (q, r, b) = divided(a, b);
        integer(if (r != 0.0) & ((r < 0.0) != (b < 0.0)) { q - 1.0 } else { q })
    }

    #[inline(always)]
    pub fn fmod(a: T, b: T) -> T {
        integer(divided(a, b).1)
    }

    #[inline(always)]
    pub fn remainder(a: T, b: T) -> T {
        let (_, r, b) = divided(a, b);
        integer(if (r != 0.0) & ((r < 0.0) != (b < 0.0)) { r + b } else { r })
    }
}

#[inline(always)]
pub fn heaviside(x: T, at_zero: T) -> T {
    if x == 0 { at_zero } else { num(x > 0) }
}

#[inline(always)]
pub fn bit_and(a: T, b: T) -> T {
    a & b
}

#[inline(always)]
pub fn bit_or(a: T, b: T) -> T {
    a | b
}

#[inline(always)]
pub fn bit_xor(a: T, b: T) -> T {
    a ^ b
}

#[inline(always)]
pub fn bit_not(a: T) -> T {
    !a
}

/// Shifts left; a shift by 64 or more, or by a negative number, gives 0.
#[inline(always)]
pub fn shl(a: T, b: T) -> T {
    if (0..64).contains(&b) { a << b } else { 0 }
}

/// Shifts right with the sign; a shift by 64 or more, or by a negative number, leaves only the sign.
#[inline(always)]
pub fn shr(a: T, b: T) -> T {
    a >> (if (0..64).contains(&b) { b } else { 63 })
}

#[inline(always)]
pub fn floor(x: T) -> T {
    x
}

#[inline(always)]
pub fn ceil(x: T) -> T {
    x
}

#[inline(always)]
pub fn round(x: T) -> T {
    x
}

#[inline(always)]
pub fn trunc(x: T) -> T {
    x
}

#[inline(always)]
pub fn is_nan(_: T) -> bool {
    false
}

#[inline(always)]
pub fn is_inf(_: T) -> bool {
    false
}

#[inline(always)]
pub fn is_finite(_: T) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_as_in_python() {
        for (a, b) in [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, -3), (i64::MIN, -1), (i64::MIN, 3)] {
            let q = (a as i128).div_euclid(b as i128);
            let floor = if b < 0 && q * b as i128 != a as i128 { q - 1 } else { q };
            assert_eq!(floor_div(a, b), floor as i64, "{a} // {b}");
            assert_eq!(remainder(a, b), (a as i128 - floor * b as i128) as i64, "{a} % {b}");
        }
        assert_eq!([trunc_div(1, 0), floor_div(1, 0), remainder(1, 0), fmod(1, 0)], [0; 4]);
    }

    /// The fast functions give the same numbers.
    #[test]
    fn quick_division() {
        let mut numbers: Vec<i64> = (-9..10).collect();
        for k in [20, 31, 49, 50] {
            numbers.extend([-1, 0, 1].map(|d| (1i64 << k) - d.max(if k == 50 { 0 } else { -1 })));
            numbers.extend([0, 1].map(|d| -(1i64 << k) + d));
        }
        for &a in &numbers {
            for &b in &numbers {
                assert_eq!(near::floor_div(a, b), floor_div(a, b), "{a} // {b}");
                assert_eq!(near::trunc_div(a, b), trunc_div(a, b), "{a} / {b}");
                assert_eq!(near::remainder(a, b), remainder(a, b), "{a} % {b}");
                assert_eq!(near::fmod(a, b), fmod(a, b), "fmod({a}, {b})");
            }
        }
    }

    #[test]
    fn powers_and_shifts() {
        assert_eq!([pow(3, 4), pow(-2, 63), pow(2, 64), pow(5, 0), pow(0, 0)], [81, i64::MIN, 0, 1, 1]);
        assert_eq!([pow(2, -1), pow(1, -5), pow(-1, -3), pow(-1, -2), pow(0, -1)], [0, 1, -1, 1, 0]);
        assert_eq!([shl(1, 63), shl(1, 64), shl(1, -1), shr(-1, 70), shr(5, -1)], [i64::MIN, 0, 0, -1, 0]);
    }
}
