// Trigonometry over f64, within about an ulp, with the formulas and coefficients of `cpu::math`. Multiples
// of pi/2 are subtracted from small angles in parts; large angles are multiplied with the bits of 2/pi that
// matter to them.
const TWO_OVER_PI = array<u32, 40>(0u, 0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u,
  0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u,
  0x2ebb4484u, 0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu, 0xde05980fu,
  0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu, 0x3d0739f7u,
  0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u, 0xfc7b6babu);
// 32 bits of 2/pi; the first of them is bit `at` of the table.
fn pi_bits(at: u32) -> u64 {
  var table = TWO_OVER_PI;
  let word = at >> 5u;
  let pair = (u64(table[word]) << 32u) | u64(table[min(word + 1u, 40u - 1u)]);
  return (pair >> (32u - (at & 31u))) & 0xfffffffflu;
}
// An integer below 2^53.
fn whole_of(bits: u64) -> f64 { return f64(u32(bits >> 32u)) * 4294967296.0 + f64(u32(bits & 0xfffffffflu)); }
// x = r + low + quadrant * pi/2 with |r| <= pi/4, for |x| > 2^20: (r, low, quadrant). Multiplies the
// mantissa of x with 192 bits of 2/pi, modulo 4, in words of 32 bits.
fn reduce_large(x: f64) -> vec3<f64> {
  let bits = bitcast<u64>(x) & 0x7ffffffffffffffflu;
  let digits = (bits & 0xffffffffffffflu) | 0x10000000000000lu;
  let d0 = digits & 0xfffffffflu;
  let d1 = digits >> 32u;
  let at = u32(bits >> 52u) - 1075u + 62u;
  var words = array<u64, 6>();
  var below = 0lu;
  var carry = 0lu;
  for (var k = 6u; k > 0u; k--) {
    let w = pi_bits(at + 32u * (k - 1u));
    let one = d0 * w + carry;
    let two = (one & 0xfffffffflu) + below;
    words[k - 1u] = two & 0xfffffffflu;
    carry = (one >> 32u) + (two >> 32u);
    // The upper half of the mantissa counts one word further up.
    below = d1 * w;
  }
  var n = T(0) + f64(u32(words[0] >> 30u));
  // The first 128 bits of the fraction.
  var a = (words[0] << 34u) | (words[1] << 2u) | (words[2] >> 30u);
  var b = (words[2] << 34u) | (words[3] << 2u) | (words[4] >> 30u);
  let turned = (a >> 63u) == 1lu;
  if (turned) {
    n += 1.0;
    a = ~a;
    b = ~b;
  }
  var zeros = 0u;
  while (zeros < 90u && (a >> 63u) == 0lu) {
    a = (a << 1u) | (b >> 63u);
    b = b << 1u;
    zeros += 1u;
  }
  let scale = power_of_two(T(-53) - f64(zeros));
  let high = whole_of(a >> 11u) * scale;
  let low = whole_of(((a & 0x7fflu) << 42u) | (b >> 22u)) * scale * 1.1102230246251565e-16;
  let r = product_two(high, T(1.5707963267948966));
  let rest = r.y + (high * 6.123233995736766e-17 + low * 1.5707963267948966);
  let back = turned != (x < 0.0);
  let sum = sum_two(select(r.x, -r.x, back), select(rest, -rest, back));
  let q = select(n, 8.0 - n, x < 0.0);
  return vec3<f64>(sum.x, sum.y, q - 4.0 * floor(q * 0.25));
}
// a - b, and its rounding error.
fn difference(a: f64, b: f64) -> vec2<f64> {
  let d = pin(a - b);
  let back = pin(d - a);
  return vec2<f64>(d, (a - pin(d - back)) - (b + back));
}
// The same for angles up to 2^20: parts of pi/2 with 33 bits, whose multiples by integers of 20 bits are
// exact, and the rest.
fn reduce_small(x: f64) -> vec3<f64> {
  let n = round(x * 0.6366197723675814);
  let first = difference(pin(x - n * 1.5707963267341256), n * 6.077100506303966e-11);
  let second = difference(first.x, n * 2.0222662487111665e-21);
  let sum = sum_two(second.x, (first.y + second.y) - n * 8.4784276603689e-32);
  return vec3<f64>(sum.x, sum.y, n - 4.0 * floor(n * 0.25));
}
fn reduce_pi(x: f64) -> vec3<f64> {
  if (abs(x) > 1048576.0) { return reduce_large(x); }
  return reduce_small(x);
}
// The sine of r + low as a sum of two.
fn sin_near(r: f64, low: f64) -> vec2<f64> {
  let z = r * r;
  let p = (-0.16666666666666632 + z * (0.00833333333332241 + z * (-0.00019841269829805268 + z * (2.755731369116283e-6 +
    z * (-2.505075801097014e-8 + z * 1.5896790214306746e-10)))));
  return vec2<f64>(r, r * z * p + low * (1.0 - 0.5 * z));
}
// The cosine of r + low as a sum of two.
fn cos_near(r: f64, low: f64) -> vec2<f64> {
  let z = r * r;
  let p = (0.0416666666666666 + z * (-0.0013888888888874116 + z * (2.4801587289477312e-5 + z * (-2.7557314351059415e-7 +
    z * (2.0875723114425982e-9 + z * -1.1359640178976075e-11)))));
  let half = 0.5 * z;
  let high = pin(1.0 - half);
  return vec2<f64>(high, ((1.0 - high) - half) + (z * z * p - r * low));
}
fn is_odd(quadrant: f64) -> bool { return quadrant == 1.0 || quadrant == 3.0; }
fn sin(x: f64) -> f64 {
  if (!is_finite(x)) { return nan(); }
  if (abs(x) < 1e-8) { return x; }
  let p = reduce_pi(x);
  let y = select(sin_near(p.x, p.y), cos_near(p.x, p.y), is_odd(p.z));
  return select(y.x + y.y, -(y.x + y.y), p.z >= 2.0);
}
fn cos(x: f64) -> f64 {
  if (!is_finite(x)) { return nan(); }
  let p = reduce_pi(x);
  let y = select(cos_near(p.x, p.y), sin_near(p.x, p.y), is_odd(p.z));
  return select(y.x + y.y, -(y.x + y.y), p.z == 1.0 || p.z == 2.0);
}
fn tan(x: f64) -> f64 {
  if (!is_finite(x)) { return nan(); }
  if (abs(x) < 1e-8) { return x; }
  let p = reduce_pi(x);
  let s = sin_near(p.x, p.y);
  let c = cos_near(p.x, p.y);
  let over = select(s, c, is_odd(p.z));
  let under = select(c, -s, is_odd(p.z));
  let a = sum_two(over.x, over.y);
  let b = sum_two(under.x, under.y);
  let y = pin(a.x / b.x);
  return y + (a.y - y * b.y) / b.x;
}
// asin s - s for |s| <= 1/2, of s and z = s^2.
fn asin_core(s: f64, z: f64) -> f64 {
  return s * z * (0.16666666666666485 + z * (0.07500000000137742 + z * (0.044642856964264795 + z * (0.0303819543419666 +
    z * (0.022371858782849217 + z * (0.017358350188809005 + z * (0.013897328767231633 + z * (0.012096668957965143 + z *
    (0.006817130945318373 + z * (0.018793639822327166 + z * (-0.015147501180892326 + z * 0.03121928450824052)))))))))));
}
fn asin(x: f64) -> f64 {
  let a = abs(x);
  if (!(a <= 1.0)) { return nan(); }
  if (a <= 0.5) { return copysign(a + asin_core(a, a * a), x); }
  let z = (1.0 - a) * 0.5;
  let s = sqrt(z);
  return copysign(pin(1.5707963267948966 - 2.0 * s) - pin(2.0 * asin_core(s, z) - 6.123233995736766e-17), x);
}
fn acos(x: f64) -> f64 {
  let a = abs(x);
  if (!(a <= 1.0)) { return nan(); }
  if (a <= 0.5) { return 1.5707963267948966 - pin(x - pin(6.123233995736766e-17 - asin_core(x, x * x))); }
  let z = (1.0 - a) * 0.5;
  let s = sqrt(z);
  let y = 2.0 * (s + asin_core(s, z));
  return select(3.141592653589793 - pin(y - 1.2246467991473532e-16), y, x > 0.0);
}
// atan t - t for |t| <= tan(pi/8).
fn atan_core(t: f64) -> f64 {
  let z = t * t;
  return t * z * (-0.3333333333333288 + z * (0.19999999999630294 + z * (-0.14285714233787164 + z * (0.111111080360403 +
    z * (-0.09090811022248076 + z * (0.07690430864024095 + z * (-0.06643980741035899 + z * (0.05706234018604403 + z *
    (-0.04395556023795743 + z * 0.02167381440884255)))))))));
}
fn atan(x: f64) -> f64 {
  if (is_nan(x)) { return x; }
  let a = abs(x);
  var t = a;
  var base = vec2<f64>(0.0, 0.0);
  if (a > 2.414213562373095) {
    t = -1.0 / a;
    base = vec2<f64>(1.5707963267948966, 6.123233995736766e-17);
  } else if (a > 0.41421356237309503) {
    t = (a - 1.0) / (a + 1.0);
    base = vec2<f64>(0.7853981633974483, 3.061616997868383e-17);
  }
  return copysign(base.x + (t + (atan_core(t) + base.y)), x);
}
fn atan2(y: f64, x: f64) -> f64 {
  if (is_nan(x) || is_nan(y)) { return nan(); }
  let a = abs(y);
  let b = abs(x);
  let steep = a > b;
  let low = select(a, b, steep);
  let high = select(b, a, steep);
  var q = T(0);
  if (low == high && high > 0.0) { q = T(1); } else if (high > 0.0) { q = low / high; }
  let middle = q > 0.41421356237309503;
  let t = select(q, (q - 1.0) / (q + 1.0), middle);
  let base = select(vec2<f64>(0.0, 0.0), vec2<f64>(0.7853981633974483, 3.061616997868383e-17), middle);
  var angle = base.x + (t + (atan_core(t) + base.y));
  if (steep) { angle = 1.5707963267948966 - pin(angle - 6.123233995736766e-17); }
  if ((bitcast<u64>(x) >> 63u) == 1lu) { angle = 3.141592653589793 - pin(angle - 1.2246467991473532e-16); }
  return copysign(angle, y);
}
