// Exponentials, logarithms and comparisons over f32, correct for NaN, infinities and subnormals even on
// drivers that fold expressions carelessly: signs and NaN are tested as bits, and `pin` hides a value from
// the optimizer. The last word of the immediates is always zero, which no compiler can know.
fn pin(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ given[7].w); }
fn nan() -> f32 { return bitcast<f32>(0x7fc00000u | given[7].w); }
fn inf() -> f32 { return bitcast<f32>(0x7f800000u | given[7].w); }
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }
fn is_inf(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u; }
fn is_finite(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) < 0x7f800000u; }
fn copysign(x: f32, y: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(x) & 0x7fffffffu) | (bitcast<u32>(y) & 0x80000000u));
}
// Of equal operands, including zeros of different sign, the first is returned.
fn maximum(a: f32, b: f32) -> f32 {
  return select(select(select(b, a, a >= b), b, is_nan(b)), a, is_nan(a));
}
fn minimum(a: f32, b: f32) -> f32 {
  return select(select(select(b, a, a <= b), b, is_nan(b)), a, is_nan(a));
}
fn fmax(a: f32, b: f32) -> f32 { return select(select(select(b, a, a >= b), a, is_nan(b)), b, is_nan(a)); }
fn fmin(a: f32, b: f32) -> f32 { return select(select(select(b, a, a <= b), a, is_nan(b)), b, is_nan(a)); }
fn sign(x: f32) -> f32 { return select(0.0, 1.0, x > 0.0) - select(0.0, 1.0, x < 0.0); }
// Division as IEEE rounds it. A driver's own division may be off by two units in the last place, so that x
// / x is less than 1, and may compute the reciprocal of a large number as zero.
fn quotient(a: f32, b: f32) -> f32 {
  let small = select(1.0, 2.3283064e-10, abs(b) > 4.2e37);
  let x = a * small;
  let y = b * small;
  let near = x / y;
  // The remainder x - near * y, from halves whose products are exact: not every driver's fma rounds only
  // once.
  let product = pin(near * y);
  let high = bitcast<f32>(bitcast<u32>(near) & 0xfffff000u);
  let low = near - high;
  let y_high = bitcast<f32>(bitcast<u32>(y) & 0xfffff000u);
  let y_low = y - y_high;
  let rounded = ((high * y_high - product) + high * y_low + low * y_high) + low * y_low;
  let better = near + ((x - product) - rounded) / y;
  return select(near, better, is_finite(better) && !(near == 0.0));
}
fn recip(x: f32) -> f32 { return quotient(1.0, x); }
fn rsqrt(x: f32) -> f32 { return 1.0 / sqrt(x); }
fn acosh_slope(x: f32) -> f32 { return rsqrt(x * x - 1.0); }
fn angle(x: f32) -> f32 { return select(select(0.0, 3.14159265, x < 0.0), x, is_nan(x)); }
fn frac(x: f32) -> f32 { return x - trunc(x); }
fn heaviside(x: f32, at_zero: f32) -> f32 { return select(select(0.0, 1.0, x > 0.0), at_zero, x == 0.0); }
fn hypot(a: f32, b: f32) -> f32 {
  let x = abs(a);
  let y = abs(b);
  if (is_inf(x) || is_inf(y)) { return inf(); }
  let large = select(y, x, x > y);
  let ratio = select(x, y, x > y) / large;
  return select(large * sqrt(1.0 + ratio * ratio), x + y, large == 0.0 || is_nan(a) || is_nan(b));
}
// 2^n for n in [-126, 127].
fn power_of_two(n: i32) -> f32 { return bitcast<f32>(u32(n + 127) << 23u); }
// y * 2^n for n in [-252, 254]: in two steps, so that no factor overflows before the product does.
fn scale(y: f32, n: i32) -> f32 {
  let half = n >> 1u;
  return y * power_of_two(half) * power_of_two(n - half);
}
// (exp(r) - 1 - r) / r^2 for |r| <= 0.35.
fn exp_tail(r: f32) -> f32 {
  return ((((1.9875691500e-4 * r + 1.3981999507e-3) * r + 8.3334519073e-3) * r + 4.1665795894e-2) * r
    + 1.6666665459e-1) * r + 5.0000001201e-1;
}
fn exp(x: f32) -> f32 {
  let n = round(min(max(x, -150.0), 129.0) * 1.44269504);
  let r = pin(x - n * 0.693359375) + n * 2.12194440e-4;
  let y = scale((exp_tail(r) * r * r + r) + 1.0, i32(n));
  return select(select(select(y, 0.0, x < -104.0), inf(), x > 89.0), x, is_nan(x));
}
fn exp2(x: f32) -> f32 {
  let n = round(min(max(x, -151.0), 129.0));
  let r = (x - n) * 0.69314718;
  let y = scale((exp_tail(r) * r * r + r) + 1.0, i32(n));
  return select(select(select(y, 0.0, x < -150.5), inf(), x >= 128.0), x, is_nan(x));
}
fn expm1(x: f32) -> f32 {
  if (is_nan(x) || abs(x) < 1e-7) { return x; }
  if (x > 30.0) { return exp(x); }
  if (x < -18.0) { return -1.0; }
  let n = round(x * 1.44269504);
  let r = pin(x - n * 0.693359375) + n * 2.12194440e-4;
  let p = exp_tail(r) * r * r + r;
  let two_n = power_of_two(i32(n));
  return select(p * two_n + (two_n - 1.0), p, n == 0.0);
}
// log(1 + f) for f in [-0.3, 0.42].
fn log_near_one(f: f32) -> f32 {
  let p = (((((((7.0376836292e-2 * f - 1.1514610310e-1) * f + 1.1676998740e-1) * f - 1.2420140846e-1) * f
    + 1.4249322787e-1) * f - 1.6668057665e-1) * f + 2.0000714765e-1) * f - 2.4999993993e-1) * f + 3.3333331174e-1;
  let z = f * f;
  return f + (f * z * p - 0.5 * z);
}
// x = (1 + f) * 2^e for positive finite x, with 1 + f between sqrt(1/2) and sqrt(2). A subnormal is scaled as an
// integer, since adapters may flush it.
fn split_power(x: f32) -> vec2<f32> {
  var bits = bitcast<i32>(x);
  var e = 0;
  if (bits < 0x00800000) {
    bits = bitcast<i32>(f32(bits));
    e = -149;
  }
  let k = (bits - 0x3f3504f3) >> 23u;
  return vec2<f32>(bitcast<f32>(bits - (k << 23u)) - 1.0, f32(e + k));
}
// The logarithm of zero, negative numbers, infinity and NaN.
fn log_edge(x: f32, y: f32) -> f32 {
  let bits = bitcast<u32>(x);
  let edge = select(select(nan(), x, is_nan(x) || bits == 0x7f800000u), -inf(), (bits & 0x7fffffffu) == 0u);
  return select(edge, y, bits > 0u && bits < 0x7f800000u);
}
fn log(x: f32) -> f32 {
  let s = split_power(x);
  return log_edge(x, s.y * 0.693359375 + (log_near_one(s.x) - s.y * 2.12194440e-4));
}
fn log_of_base(x: f32, y: f32) -> f32 { return log(x); }
fn xlogy(a: f32, b: f32) -> f32 {
  return select(select(a * log(b), 0.0, a == 0.0), b, is_nan(b));
}
fn log2(x: f32) -> f32 {
  let s = split_power(x);
  return log_edge(x, s.y + log_near_one(s.x) * 1.44269504);
}
fn log10(x: f32) -> f32 {
  let s = split_power(x);
  return log_edge(x, s.y * 0.30102539 + (log_near_one(s.x) * 0.43429448 + s.y * 4.60503906e-6));
}
fn log1p(x: f32) -> f32 {
  if (x > -0.29 && x < 0.41) { return select(log_near_one(x), x, abs(x) < 1e-7); }
  return log(1.0 + x);
}
fn sigmoid(x: f32) -> f32 {
  let e = exp(-abs(x));
  let y = e / (1.0 + e);
  return select(1.0 - y, y, x < 0.0);
}
fn silu(x: f32) -> f32 {
  return x / (1.0 + exp(-x));
}
fn sinh(x: f32) -> f32 {
  let a = abs(x);
  if (a > 85.0) {
    let h = exp(0.5 * a);
    return copysign(0.5 * h * h, x);
  }
  let t = expm1(a);
  return copysign(0.5 * (t + t / (t + 1.0)), x);
}
fn cosh(x: f32) -> f32 {
  let h = exp(0.5 * abs(x));
  if (abs(x) > 85.0) { return 0.5 * h * h; }
  let e = exp(abs(x));
  return 0.5 * e + 0.5 / e;
}
fn tanh(x: f32) -> f32 {
  let t = expm1(-2.0 * abs(x));
  return copysign(-t / (2.0 + t), x);
}
fn asinh(x: f32) -> f32 {
  let a = abs(x);
  if (a > 1e9) { return copysign(log(a) + 0.69314718, x); }
  let z = a * a;
  return copysign(log1p(a + z / (1.0 + sqrt(z + 1.0))), x);
}
fn acosh(x: f32) -> f32 {
  if (x > 1e9) { return log(x) + 0.69314718; }
  let t = x - 1.0;
  return select(log1p(t + sqrt(t * (x + 1.0))), nan(), !(x >= 1.0));
}
fn atanh(x: f32) -> f32 {
  let a = abs(x);
  return copysign(0.5 * log1p(2.0 * a / (1.0 - a)), x);
}
// The leading 12 bits: products of two such numbers are exact.
fn head(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) & 0xfffff000u); }
// 2^(y * log2(x)) for positive finite x, the logarithm carried in two parts.
fn pow_positive(x: f32, y: f32) -> f32 {
  let parts = split_power(x);
  let f = parts.x;
  let d = pin(2.0 + f);
  let d_low = f - (d - 2.0);
  let s = f / d;
  let s_high = head(s);
  let d_high = head(d);
  let s_low = (pin(f - s_high * d_high) - s_high * ((d - d_high) + d_low)) / d;
  let z = s * s;
  let tail = s * z * (0.33333333 + z * (0.2 + z * (0.14285714 + z * (0.11111111 + z * 0.0909))));
  let l_high = 2.884765625 * s_high;
  let l_low = 6.24457324e-4 * s_high + 2.88539008 * (s_low + tail);
  let total = parts.y + (l_high + l_low);
  let t_high = head(total);
  let t_low = (pin(parts.y - t_high) + l_high) + l_low;
  let power = y * total;
  let y_high = head(y);
  let main = y_high * t_high;
  let rest = y_high * t_low + (y - y_high) * (t_high + t_low);
  let n = round(min(max(main + rest, -160.0), 160.0));
  let r = (pin(main - n) + rest) * 0.69314718;
  let result = scale((exp_tail(r) * r * r + r) + 1.0, i32(n));
  return select(select(result, inf(), power > 129.0), 0.0, power < -151.0);
}
fn pow(x: f32, y: f32) -> f32 {
  if (y == 0.0 || x == 1.0) { return 1.0; }
  if (is_nan(x) || is_nan(y)) { return nan(); }
  let a = abs(x);
  if (is_inf(y)) {
    if (a == 1.0) { return 1.0; }
    return select(0.0, inf(), (a > 1.0) == (y > 0.0));
  }
  let whole = trunc(y) == y;
  let odd = whole && abs(y) < 16777216.0 && (i32(y) & 1) == 1;
  let sign = select(0u, 0x80000000u, odd && (bitcast<u32>(x) >> 31u) == 1u);
  if ((bitcast<u32>(a) == 0u) || is_inf(a)) {
    return bitcast<f32>(select(0x7f800000u, 0u, is_inf(a) == (y < 0.0)) | sign);
  }
  if (x < 0.0 && !whole) { return nan(); }
  return bitcast<f32>(bitcast<u32>(pow_positive(a, y)) | sign);
}
// Mantissa and exponent of a positive finite number: x = d * 2^(e - 150), e at least 1.
fn digits(bits: u32) -> vec2<u32> {
  let e = bits >> 23u;
  return vec2<u32>((bits & 0x7fffffu) | select(0x800000u, 0u, e == 0u), max(e, 1u));
}
// Exact: long division of the mantissas, eight bits per step.
fn fmod(x: f32, y: f32) -> f32 {
  let a = bitcast<u32>(x) & 0x7fffffffu;
  let b = bitcast<u32>(y) & 0x7fffffffu;
  if (a >= 0x7f800000u || b > 0x7f800000u || b == 0u) { return nan(); }
  if (a < b) { return x; }
  let p = digits(a);
  let q = digits(b);
  var left = p.y - q.y;
  var r = p.x % q.x;
  while (left > 0u && r != 0u) {
    let step = min(left, 8u);
    r = (r << step) % q.x;
    left -= step;
  }
  if (r == 0u) { return bitcast<f32>(bitcast<u32>(x) & 0x80000000u); }
  // Convert the mantissa back to a float of exponent q.y, shifted by its leading zeros.
  let up = min(countLeadingZeros(r) - 8u, q.y - 1u);
  r = r << up;
  let e = select(0u, q.y - up, r >= 0x800000u);
  return bitcast<f32>((bitcast<u32>(x) & 0x80000000u) | (e << 23u) | (r & 0x7fffffu));
}
fn remainder(a: f32, b: f32) -> f32 {
  let r = fmod(a, b);
  let flips = !(r == 0.0) && ((r < 0.0) != (b < 0.0));
  return select(r, r + b, flips && is_finite(r));
}
fn trunc_div(a: f32, b: f32) -> f32 { return trunc(quotient(a, b)); }
fn floor_div(a: f32, b: f32) -> f32 {
  if (b == 0.0) { return a / b; }
  let r = fmod(a, b);
  if (is_nan(r)) { return r; }
  let q = pin(a - r) / b - select(0.0, 1.0, !(r == 0.0) && ((b < 0.0) != (r < 0.0)));
  let down = floor(q);
  return select(down + select(0.0, 1.0, q - down > 0.5), copysign(0.0, a / b), q == 0.0);
}
// Uniform in [0, 1), and in (0, 1], from the bits of the first word.
fn unit(word: vec2<u32>) -> f32 { return f32(word.x >> 8u) * 5.9604644775390625e-8; }
fn unit_above(word: vec2<u32>) -> f32 { return f32((word.x >> 8u) + 1u) * 5.9604644775390625e-8; }
