//! The two formats of floats in one byte, and their conversion from and to `f32`. The loops have no branches.

/// Four bits of exponent and three of fraction, without infinities: 448 is the largest number, NaN is `0x7f`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct E4M3(pub u8);

/// Five bits of exponent and two of fraction: the upper half of a half.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct E5M2(pub u8);

const NAN: u32 = 0x7f;

/// A positive float rounded to a format with `FRACTION` bits of fraction and an exponent of bias `BIAS`, as bits. It may
/// exceed the format's largest number.
#[inline(always)]
fn rounded<const FRACTION: u32, const BIAS: u32>(magnitude: u32) -> u32 {
    let dropped = 23 - FRACTION;
    // Changes the bias, and adds half an ulp (minus a bit if the result is even) before truncation.
    let odd = (magnitude >> dropped) & 1;
    let half = (1 << (dropped - 1)) - 1 + odd;
    let normal = magnitude.wrapping_sub((127 - BIAS) << 23).wrapping_add(half) >> dropped;
    // Subnormal results: the sum with a number of the same ulp makes the hardware round at the right bit.
    let same_ulp = (128 - BIAS - FRACTION + 23) << 23;
    let subnormal = (f32::from_bits(magnitude) + f32::from_bits(same_ulp)).to_bits().wrapping_sub(same_ulp);
    if magnitude < (128 - BIAS) << 23 { subnormal } else { normal }
}

impl E4M3 {
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        let magnitude = u32::from(self.0) & NAN;
        // A product changes the bias of the exponent, which is also right for subnormal numbers.
        let finite = f32::from_bits(magnitude << 20) * f32::from_bits((254 - 7) << 23);
        let value = if magnitude == NAN { 0x7fc0_0000 } else { finite.to_bits() };
        f32::from_bits(value | (u32::from(self.0) & 0x80) << 24)
    }

    /// Rounds to even; numbers that are too large, infinity included, become the largest number, as in PyTorch.
    #[inline(always)]
    pub fn from_f32(x: f32) -> E4M3 {
        let (sign, magnitude) = (x.to_bits() >> 24 & 0x80, x.to_bits() & 0x7fff_ffff);
        let value = rounded::<3, 7>(magnitude).min(0x7e);
        E4M3((sign | if magnitude > 0x7f80_0000 { NAN } else { value }) as u8)
    }
}

impl E5M2 {
    #[inline(always)]
    pub fn to_f32(self) -> f32 {
        let magnitude = u32::from(self.0) & 0x7f;
        let finite = f32::from_bits(magnitude << 21) * f32::from_bits((254 - 15) << 23);
        let special = magnitude << 21 | 0x7f80_0000;
        let value = if magnitude >= 0x7c { special } else { finite.to_bits() };
        f32::from_bits(value | (u32::from(self.0) & 0x80) << 24)
    }

    /// Rounds to even; numbers that are too large become infinite.
    #[inline(always)]
    pub fn from_f32(x: f32) -> E5M2 {
        let (sign, magnitude) = (x.to_bits() >> 24 & 0x80, x.to_bits() & 0x7fff_ffff);
        let value = rounded::<2, 15>(magnitude).min(0x7c);
        E5M2((sign | if magnitude > 0x7f80_0000 { NAN } else { value }) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The nearest of the finite numbers, the even one of two.
    fn nearest(x: f32, numbers: &[f32]) -> u8 {
        let apart = |i: usize| (f64::from(numbers[i]) - f64::from(x)).abs();
        let best =
            (0..numbers.len()).min_by(|&a, &b| apart(a).total_cmp(&apart(b)).then((a & 1).cmp(&(b & 1))));
        best.map_or(0, |i| i as u8)
    }

    #[test]
    fn every_number_survives_and_others_are_rounded_to_the_nearest() {
        let e4m3: Vec<f32> = (0..0x7f).map(|bits| E4M3(bits).to_f32()).collect();
        let e5m2: Vec<f32> = (0..0x7c).map(|bits| E5M2(bits).to_f32()).collect();
        assert_eq!(
            (e4m3[0x7e], e4m3[1], e5m2[0x7b], e5m2[1]),
            (448.0, 2f32.powi(-9), 57344.0, 2f32.powi(-16))
        );
        for bits in (0..0x4780_0000u32).step_by(0x3_ffff) {
            let x = f32::from_bits(bits);
            assert_eq!(E4M3::from_f32(x).0, nearest(x, &e4m3), "{x}");
            assert_eq!(E4M3::from_f32(-x).0, nearest(x, &e4m3) | 0x80, "{x}");
            let expected = if x >= 61440.0 { 0x7c } else { nearest(x, &e5m2) };
            assert_eq!(E5M2::from_f32(x).0, expected, "{x}");
        }
        for (numbers, from) in
            [(&e4m3, (|x| E4M3::from_f32(x).0) as fn(f32) -> u8), (&e5m2, |x| E5M2::from_f32(x).0)]
        {
            for (i, pair) in numbers.windows(2).enumerate() {
                let middle = f32::midpoint(pair[0], pair[1]);
                assert_eq!(usize::from(from(pair[0])), i);
                assert_eq!(usize::from(from(middle)), i + (i & 1), "{middle}");
                assert_eq!(usize::from(from(middle.next_up())), i + 1, "{middle}");
                assert_eq!(usize::from(from(middle.next_down())), i, "{middle}");
            }
        }
    }

    #[test]
    fn what_is_no_number_and_what_is_too_large() {
        let (nan, infinity) = (f32::NAN, f32::INFINITY);
        assert_eq!(
            [nan, -nan, infinity, -infinity, 1e9].map(|x| E4M3::from_f32(x).0),
            [0x7f, 0xff, 0x7e, 0xfe, 0x7e]
        );
        assert_eq!(
            [nan, -nan, infinity, -infinity, 1e9].map(|x| E5M2::from_f32(x).0),
            [0x7f, 0xff, 0x7c, 0xfc, 0x7c]
        );
        assert!(E4M3(0x7f).to_f32().is_nan() && E4M3(0xff).to_f32().is_nan() && E5M2(0x7d).to_f32().is_nan());
        assert_eq!((E5M2(0x7c).to_f32(), E5M2(0xfc).to_f32()), (infinity, -infinity));
        assert!(E4M3(0x80).to_f32().is_sign_negative());
    }
}
