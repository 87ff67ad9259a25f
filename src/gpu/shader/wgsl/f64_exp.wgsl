// Exponentials, logarithms and powers over f64, within an ulp or two, with the formulas and coefficients of
// `cpu::math`.
// Drivers rewrite sums as if they were exact: `pin` marks where the rounding error is needed.
fn pin(x: f64) -> f64 { return bitcast<f64>(bitcast<u64>(x) ^ u64(given[7].w)); }
// ln 2 in two parts; multiples of the first by exponents are exact.
const LN2_HIGH: f64 = 0.6931471804855391;
const LN2_LOW: f64 = 7.440617110012397e-11;
const LN_2: f64 = 0.6931471805599453;
// 2^n for an integer -1023 < n <= 1024 (where it is infinite).
fn power_of_two(n: f64) -> f64 { return bitcast<f64>(bitcast<u64>(n + 6755399441056767.0) << 52u); }
// a + b + small, where a is 0 or |a| >= |b|; the rounding error of a + b is added to `small`.
fn add_small(a: f64, b: f64, small: f64) -> f64 {
  let sum = pin(a + b);
  return sum + (((a - sum) + b) + small);
}
// p * 2^n for |n| <= 2000.
fn scaled(p: f64, n: f64) -> f64 {
  let half = round(n * 0.5);
  return p * power_of_two(half) * power_of_two(n - half);
}
// exp(r) - 1 - r for |r| <= ln(sqrt(2)).
fn expm1_rest(r: f64) -> f64 {
  return r * r * (0.5000000000000007 + r * (0.16666666666666688 + r * (0.04166666666656598 + r * (0.008333333333313124 +
    r * (0.0013888888935032202 + r * (0.000198412699067105 + r * (2.4801501108576206e-5 + r * (2.7557224322115463e-6 + r
    * (2.7627703042639613e-7 + r * 2.5115710301313927e-8)))))))));
}
fn expm1_core(r: f64) -> f64 { return r + expm1_rest(r); }
fn clamped(x: f64, low: f64, high: f64) -> f64 { return select(select(x, low, x < low), high, x > high); }
// x = n ln 2 + r, as (n, r).
fn split_exponent(x: f64) -> vec2<f64> {
  let n = round(x * 1.4426950408889634);
  return vec2<f64>(n, pin(x - n * LN2_HIGH) - n * LN2_LOW);
}
// exp(x + small) as (p, n), which means p * 2^n.
fn exp_parts(x: f64, small: f64) -> vec2<f64> {
  let n = round(x * 1.4426950408889634);
  let high = pin(x - n * LN2_HIGH);
  let low = n * LN2_LOW - small;
  return vec2<f64>(add_small(T(1), high, expm1_rest(high - low) - low), n);
}
// exp(x) * 2^k for a small k.
fn exp_times(x: f64, k: f64) -> f64 {
  let e = exp_parts(clamped(x, T(-800), T(800)), T(0));
  return select(scaled(e.x, e.y + k), x, is_nan(x));
}
fn exp(x: f64) -> f64 { return exp_times(x, T(0)); }
fn exp2(x: f64) -> f64 {
  let a = clamped(x, T(-1200), T(1200));
  let n = round(a);
  return select(scaled(1.0 + expm1_core((a - n) * LN_2), n), x, is_nan(x));
}
fn expm1(x: f64) -> f64 {
  let s = split_exponent(clamped(x, T(-60), T(709.9)));
  let half = power_of_two(s.x - 1.0);
  return select(copysign(2.0 * (expm1_core(s.y) * half + (half - 0.5)), x), x, is_nan(x));
}
// x = (1 + f) * 2^k with 1 + f in [sqrt(1/2), sqrt(2)), as (k, f), for x > 0. A subnormal is scaled as an integer, since
// adapters may flush it.
fn split_power(x: f64) -> vec2<f64> {
  var bits = bitcast<u64>(x);
  var e = T(0);
  if (bits < 0x10000000000000lu) {
    bits = bitcast<u64>(f64(u32(bits >> 32u)) * 4294967296.0 + f64(u32(bits & 0xfffffffflu)));
    e = T(-1074);
  }
  let biased = (bits - 0x3fe6a09e667f3bcdlu + 0x3ff0000000000000lu) >> 52u;
  let m = bitcast<f64>(bits - (biased << 52u) + 0x3ff0000000000000lu);
  return vec2<f64>(e + (f64(u32(biased & 0xffflu)) - 1023.0), m - 1.0);
}
// R with s = f / (2 + f) and ln(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + R)).
fn log_core(s: f64) -> f64 {
  let z = s * s;
  return z * (0.6666666666666666 + z * (0.400000000000009 + z * (0.2857142857079088 + z * (0.22222222394481655 + z *
    (0.18181795354765554 + z * (0.15386254752140285 + z * (0.1326838084857783 + z * 0.13090631973202976)))))));
}
// The logarithm of zero, negative numbers, infinity and NaN.
fn log_edge(x: f64, y: f64) -> f64 {
  let bits = bitcast<u64>(x);
  let edge = select(select(nan(), x, is_nan(x) || bits == 0x7ff0000000000000lu), -inf(), (bits & 0x7ffffffffffffffflu)
    == 0lu);
  return select(edge, y, bits > 0lu && bits < 0x7ff0000000000000lu);
}
fn log_of(k: f64, f: f64, lost: f64) -> f64 {
  let s = f / (2.0 + f);
  let half = 0.5 * f * f;
  return add_small(k * LN2_HIGH, f, s * (half + log_core(s)) + (k * LN2_LOW + lost) - half);
}
fn log(x: f64) -> f64 {
  let p = split_power(x);
  return log_edge(x, log_of(p.x, p.y, T(0)));
}
fn log_of_base(x: f64, y: f64) -> f64 { return log(x); }
fn xlogy(a: f64, b: f64) -> f64 {
  return select(select(a * log(b), T(0), a == T(0)), b, is_nan(b));
}
fn log1p(x: f64) -> f64 {
  let u = pin(1.0 + x);
  // The rounding error of the sum, to first order.
  let lost = select(x - pin(u - 1.0), 1.0 - pin(u - x), x > 1.0) / u;
  let p = split_power(u);
  return copysign(log_edge(u, log_of(p.x, p.y, lost)), x);
}
// The logarithm to another base: `per` is 1 / ln base, and `two` the logarithm of 2 to that base, each in
// two parts.
fn log_base(x: f64, per: vec2<f64>, two: vec2<f64>) -> f64 {
  let p = split_power(x);
  let s = p.y / (2.0 + p.y);
  let half = 0.5 * p.y * p.y;
  let high = bitcast<f64>(bitcast<u64>(p.y - half) & 0xffffffff00000000lu);
  let low = (pin(p.y - high) - half) + s * (half + log_core(s));
  let main = p.x * two.x;
  let term = high * per.x;
  let sum = pin(main + term);
  return log_edge(x, sum + ((main - sum) + term + (low + high) * per.y + low * per.x + p.x * two.y));
}
fn log2(x: f64) -> f64 {
  return log_base(x, vec2<f64>(1.4426950407214463, 1.6751713164886512e-10), vec2<f64>(1.0, 0.0));
}
fn log10(x: f64) -> f64 {
  let two = vec2<f64>(0.30102999560767785, 5.630334806675098e-11);
  return log_base(x, vec2<f64>(0.4342944818781689, 2.5082946711645275e-11), two);
}
fn sigmoid(x: f64) -> f64 {
  let e = exp(-abs(x));
  let y = e / (1.0 + e);
  return select(1.0 - y, y, x < 0.0);
}
fn silu(x: f64) -> f64 {
  return x * sigmoid(x);
}
// From exp(-2x) - 1 near 0, and from exp(-2x) where that would lose bits.
fn tanh(x: f64) -> f64 {
  let a = abs(x);
  let p = split_exponent(clamped(-2.0 * a, T(-60), T(0)));
  let q = expm1_core(p.y);
  let scale = power_of_two(p.x);
  let less = q * scale + (scale - 1.0);
  let e = q * scale + scale;
  let y = select(1.0 - 2.0 * (e / (1.0 + e)), -less / (less + 2.0), a < 0.5);
  return select(copysign(y, x), x, is_nan(x));
}
fn sinh(x: f64) -> f64 {
  let a = abs(x);
  let e = expm1(a);
  return copysign(select(0.5 * (e + e / (e + 1.0)), exp_times(a, T(-1)), a > 22.0), x);
}
fn cosh(x: f64) -> f64 {
  let a = abs(x);
  return exp_times(a, T(-1)) + exp_times(-a, T(-1));
}
fn asinh(x: f64) -> f64 {
  let a = abs(x);
  if (a > 1e150) { return copysign(log(a) + LN_2, x); }
  return copysign(log1p(a + a * a / (1.0 + sqrt(a * a + 1.0))), x);
}
fn acosh(x: f64) -> f64 {
  if (x > 1e150) { return log(x) + LN_2; }
  let t = x - 1.0;
  return select(log1p(t + sqrt(t * (t + 2.0))), nan(), !(x >= 1.0));
}
fn acosh_slope(x: f64) -> f64 { return rsqrt(x * x - 1.0); }
fn atanh(x: f64) -> f64 {
  let a = abs(x);
  return copysign(0.5 * log1p(2.0 * a / (1.0 - a)), x);
}
fn hypot(a: f64, b: f64) -> f64 {
  let x = abs(a);
  let y = abs(b);
  let high = fmax(x, y);
  if (is_inf(high)) { return high; }
  // A power of two that keeps both squares in range.
  let up = select(T(0), T(600), high < 1e-140);
  let scale = power_of_two(select(up, T(-600), high > 1e150));
  let u = x * scale;
  let v = y * scale;
  return sqrt(u * u + v * v) / scale;
}
// The upper half of a float's mantissa.
fn head(x: f64) -> f64 { return bitcast<f64>(bitcast<u64>(x) & 0xfffffffff8000000lu); }
// a * b, and its rounding error.
fn product_two(a: f64, b: f64) -> vec2<f64> {
  let p = pin(a * b);
  let a_high = head(a);
  let b_high = head(b);
  let a_low = a - a_high;
  let b_low = b - b_high;
  return vec2<f64>(p, ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low);
}
// a + b, and its rounding error, for |a| >= |b|.
fn sum_two(a: f64, b: f64) -> vec2<f64> {
  let s = pin(a + b);
  return vec2<f64>(s, (a - s) + b);
}
// ln x as a sum of two, to about 66 bits, for 0 < x < inf: with s = (m - 1) / (m + 1), it is 2s + 2/3 s^3 +
// s^5 ...
fn log_two(x: f64) -> vec2<f64> {
  let p = split_power(x);
  let below = sum_two(T(2), p.y);
  let s = p.y / below.x;
  let back = product_two(s, below.x);
  let s_low = (pin(p.y - back.x) - back.y - s * below.y) / below.x;
  let square = product_two(s, s);
  let z = square.x;
  let z_low = square.y + 2.0 * s * s_low;
  let rest = z * (0.40000000000002256 + z * (0.28571428570098456 + z * (0.22222222520099966 + z * (0.18181784353119623 +
    z * (0.15386757921943436 + z * (0.1325680501990414 + z * 0.1319643890786093))))));
  let q = sum_two(T(0.6666666666666666), rest);
  let q_low = q.y + 3.700743415417188e-17;
  let cube = product_two(z, s);
  let cube_low = cube.y + z * s_low + z_low * s;
  let t = product_two(cube.x, q.x);
  let t_low = t.y + cube.x * q_low + cube_low * q.x;
  let l = sum_two(2.0 * s, t.x);
  let whole = sum_two(p.x * LN2_HIGH, l.x);
  return sum_two(whole.x, whole.y + (l.y + t_low + 2.0 * s_low) + p.x * LN2_LOW);
}
fn pow(a: f64, b: f64) -> f64 {
  if (b == 0.0 || a == 1.0) { return T(1); }
  if (is_nan(a) || is_nan(b)) { return nan(); }
  if (a == -1.0 && is_inf(b)) { return T(1); }
  let x = abs(a);
  let ln = log_two(x);
  let p = product_two(b, log_edge(x, ln.x));
  let near = abs(p.x) < 800.0;
  let e = exp_parts(clamped(p.x, T(-800), T(800)), select(T(0), p.y + b * ln.y, near));
  let y = scaled(e.x, e.y);
  let whole = b == trunc(b);
  let odd = whole && abs(b) < 9007199254740992.0 && !(b * 0.5 == trunc(b * 0.5));
  return select(select(y, copysign(y, a), odd), nan(), a < 0.0 && !whole && !is_inf(a));
}
