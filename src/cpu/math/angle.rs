//! Sine, cosine and tangent of f64 for angles that are not huge, within an ulp and without branches.

use super::common::poly;
use std::f64::consts::FRAC_2_PI;

/// Up to this angle, multiples of π/2 are subtracted exactly.
pub const LARGEST: f64 = 1048576.0;

/// Adding and subtracting it rounds to an integer; after the addition, the low bits hold that integer.
const MAGIC: f64 = 6755399441055744.0;

/// π/2 in parts of 33 bits, whose products with integers of 20 bits are exact, and the rest.
const PI_2: [f64; 4] =
    [1.5707963267341256, 6.077100506303966e-11, 2.0222662487111665e-21, 8.4784276603689e-32];

/// `a - b`, and its rounding error.
#[inline(always)]
fn difference(a: f64, b: f64) -> (f64, f64) {
    let d = a - b;
    let back = d - a;
    (d, (a - (d - back)) - (b + back))
}

/// Returns (r, low, q) such that x = (4m + q) π/2 + r + low with |r| ≤ π/4.
#[inline(always)]
fn reduced(x: f64) -> (f64, f64, u64) {
    let turns = x * FRAC_2_PI + MAGIC;
    let n = turns - MAGIC;
    let (r, first) = difference(x - n * PI_2[0], n * PI_2[1]);
    let (r, second) = difference(r, n * PI_2[2]);
    let low = (first + second) - n * PI_2[3];
    let sum = r + low;
    (sum, (r - sum) + low, turns.to_bits())
}

/// The sine of r + low as a sum of two.
#[inline(always)]
fn sine(r: f64, low: f64) -> (f64, f64) {
    let z = r * r;
    let p = poly!(z; -0.16666666666666632, 0.00833333333332241, -0.00019841269829805268, 2.755731369116283e-06,
        -2.505075801097014e-08, 1.5896790214306746e-10);
    (r, r * z * p + low * (1.0 - 0.5 * z))
}

/// The cosine of r + low as a sum of two.
#[inline(always)]
fn cosine(r: f64, low: f64) -> (f64, f64) {
    let z = r * r;
    let p = poly!(z; 0.0416666666666666, -0.0013888888888874116, 2.4801587289477312e-05, -2.7557314351059415e-07,
        2.0875723114425982e-09, -1.1359640178976075e-11);
    let (half, high) = (0.5 * z, 1.0 - 0.5 * z);
    (high, ((1.0 - high) - half) + (z * z * p - r * low))
}

#[inline(always)]
pub fn sin(x: f64) -> f64 {
    let (r, low, q) = reduced(x);
    let (s, c) = (sine(r, low), cosine(r, low));
    let y = if q & 1 == 0 { s.0 + s.1 } else { c.0 + c.1 };
    let y = if q & 2 == 0 { y } else { -y };
    if x == 0.0 { x } else { y }
}

#[inline(always)]
pub fn cos(x: f64) -> f64 {
    let (r, low, q) = reduced(x);
    let (s, c) = (sine(r, low), cosine(r, low));
    let y = if q & 1 == 0 { c.0 + c.1 } else { s.0 + s.1 };
    if q.wrapping_add(1) & 2 == 0 { y } else { -y }
}

#[inline(always)]
pub fn tan(x: f64) -> f64 {
    let (r, low, q) = reduced(x);
    let (s, c) = (sine(r, low), cosine(r, low));
    let (over, under) = if q & 1 == 0 { (s, c) } else { (c, (-s.0, -s.1)) };
    let (a, b) = (over.0 + over.1, under.0 + under.1);
    let (a_low, b_low) = ((over.0 - a) + over.1, (under.0 - b) + under.1);
    let y = a / b;
    let y = y + (a_low - y * b_low) / b;
    if x == 0.0 { x } else { y }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sine, cosine and tangent from 60-digit arithmetic, including those of the floats nearest to multiples of π/2.
    #[test]
    #[allow(clippy::approx_constant, reason = "the numbers are what is tested")]
    fn known_values() {
        let table: &[[f64; 4]] = &[
            [1.5707963267948966, 1.0, 6.123233995736766e-17, 1.633123935319537e+16],
            [3.141592653589793, 1.2246467991473532e-16, -1.0, -1.2246467991473532e-16],
            [4.71238898038469, -1.0, -1.8369701987210297e-16, 5443746451065123.0],
            [9.42477796076938, 3.6739403974420594e-16, -1.0, -3.6739403974420594e-16],
            [29.845130209103036, -1.0, 6.12942380210265e-16, -1631474723051387.0],
            [45.553093477052, 1.0, -6.189806365883577e-19, -1.6155594228467482e+18],
            [91.106186954104, -1.2379612731767154e-18, -1.0, 1.2379612731767154e-18],
            [182.212373908208, 2.475922546353431e-18, 1.0, 2.475922546353431e-18],
            [364.424747816416, 4.951845092706862e-18, 1.0, 4.951845092706862e-18],
            [728.849495632832, 9.903690185413723e-18, 1.0, 9.903690185413723e-18],
            [1457.698991265664, 1.9807380370827447e-17, 1.0, 1.9807380370827447e-17],
            [2915.397982531328, 3.9614760741654893e-17, 1.0, 3.9614760741654893e-17],
            [5830.795965062656, 7.922952148330979e-17, 1.0, 7.922952148330979e-17],
            [11661.591930125313, 1.5845904296661957e-16, 1.0, 1.5845904296661957e-16],
            [22743.560015663308, -1.0, -1.8098738200135078e-16, 5525247058342093.0],
            [46066.74387591393, -1.0, 1.3593070393188837e-16, -7356689629894628.0],
            [91553.86390724055, 1.0, 2.260440600708132e-16, 4423916291747407.0],
            [229174.47169039503, 1.0, 3.1615741620973803e-16, 3162981314778340.0],
            [321307.9594422229, -1.0, -4.429600834596129e-17, 2.2575397588644696e+16],
            [642615.9188844458, 8.859201669192259e-17, -1.0, -8.859201669192259e-17],
            [1e-300, 1e-300, 1.0, 1e-300],
            [1e-09, 1e-09, 1.0, 1e-09],
            [0.3, 0.29552020666133955, 0.955336489125606, 0.30933624960962325],
            [0.7853981633974483, 0.7071067811865475, 0.7071067811865476, 0.9999999999999999],
            [0.78, 0.7032794192004101, 0.7109135380122773, 0.989261536876605],
            [1.0, 0.8414709848078965, 0.5403023058681398, 1.5574077246549023],
            [2.5, 0.5984721441039565, -0.8011436155469337, -0.7470222972386603],
            [-3.0, -0.1411200080598672, -0.9899924966004454, 0.1425465430742778],
            [100.25, -0.2772828564548513, 0.9607883312760612, -0.2885993172779075],
            [-12345.678, 0.7040813137533816, 0.7101193587160628, 0.9914971407432149],
            [333333.3333, -0.8004083809933449, -0.5994551056047587, 1.3352265641075074],
            [1048575.9, 0.2346184343169496, 0.9720875424974148, 0.24135525254668463],
        ];
        for &[x, s, c, t] in table {
            for (got, want) in [(sin(x), s), (cos(x), c), (tan(x), t)] {
                let ulp = want.abs().next_up() - want.abs();
                assert!((got - want).abs() <= ulp, "{x:e}: {got:e}, not {want:e}");
            }
        }
    }

    #[test]
    fn as_the_library_says() {
        for i in 0..200_000 {
            let x = (i as f64 * 0.37 - 1e4) * (1.0 + (i % 101) as f64 / 7.0);
            for (got, want) in [(sin(x), x.sin()), (cos(x), x.cos()), (tan(x), x.tan())] {
                let ulp = want.abs().next_up() - want.abs();
                assert!((got - want).abs() <= 1.5 * ulp, "{x:e}: {got:e}, not {want:e}");
            }
        }
        assert!([sin(f64::NAN), cos(f64::NAN), tan(f64::NAN)].iter().all(|y| y.is_nan()));
        assert_eq!(sin(-0.0).to_bits(), (-0.0f64).to_bits());
    }
}
