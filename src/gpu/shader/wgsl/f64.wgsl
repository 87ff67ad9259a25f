// Exact functions over f64. Drivers return garbage for f64 transcendental functions; ours are in the other
// f64 files.
// The optimizer cannot know that these are infinity and NaN: the last word of the immediates is always
// zero.
fn quotient(a: f64, b: f64) -> f64 { return a / b; }
fn inf() -> f64 { return bitcast<f64>(0x7ff0000000000000lu | u64(given[7].w)); }
fn nan() -> f64 { return bitcast<f64>(0x7ff8000000000000lu | u64(given[7].w)); }
fn is_nan(x: f64) -> bool { return (bitcast<u64>(x) & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu; }
fn is_inf(x: f64) -> bool { return (bitcast<u64>(x) & 0x7ffffffffffffffflu) == 0x7ff0000000000000lu; }
fn is_finite(x: f64) -> bool { return (bitcast<u64>(x) & 0x7ffffffffffffffflu) < 0x7ff0000000000000lu; }
fn copysign(x: f64, y: f64) -> f64 {
  return bitcast<f64>((bitcast<u64>(x) & 0x7ffffffffffffffflu) | (bitcast<u64>(y) & 0x8000000000000000lu));
}
fn maximum(a: f64, b: f64) -> f64 { return select(select(select(b, a, a >= b), b, is_nan(b)), a, is_nan(a)); }
fn minimum(a: f64, b: f64) -> f64 { return select(select(select(b, a, a <= b), b, is_nan(b)), a, is_nan(a)); }
fn fmax(a: f64, b: f64) -> f64 { return select(select(select(b, a, a >= b), a, is_nan(b)), b, is_nan(a)); }
fn fmin(a: f64, b: f64) -> f64 { return select(select(select(b, a, a <= b), a, is_nan(b)), b, is_nan(a)); }
fn sign(x: f64) -> f64 { return select(T(0), T(1), x > T(0)) - select(T(0), T(1), x < T(0)); }
fn recip(x: f64) -> f64 { return T(1) / x; }
fn rsqrt(x: f64) -> f64 { return T(1) / sqrt(x); }
// Some drivers return large arguments of these two functions unchanged.
fn trunc(x: f64) -> f64 { return copysign(floor(abs(x)), x); }
fn round(x: f64) -> f64 {
  let a = abs(x);
  let down = floor(a);
  let is_odd = !(down * 0.5 == floor(down * 0.5));
  let goes_up = a - down > 0.5 || (a - down == 0.5 && is_odd);
  return copysign(down + select(T(0), T(1), goes_up), x);
}
fn frac(x: f64) -> f64 { return x - trunc(x); }
fn heaviside(x: f64, at_zero: f64) -> f64 { return select(select(T(0), T(1), x > T(0)), at_zero, x == T(0)); }
fn digits(bits: u64) -> u64 { return (bits & 0xffffffffffffflu) | select(0x10000000000000lu, 0lu, (bits >> 52u) == 0lu); }
// Exact: long division of the mantissas, eight bits per step.
fn fmod(x: f64, y: f64) -> f64 {
  let sign = bitcast<u64>(x) & 0x8000000000000000lu;
  let a = bitcast<u64>(x) & 0x7ffffffffffffffflu;
  let b = bitcast<u64>(y) & 0x7ffffffffffffffflu;
  if (a >= 0x7ff0000000000000lu || b > 0x7ff0000000000000lu || b == 0lu) { return nan(); }
  if (a < b) { return x; }
  let q = digits(b);
  let low = max(u32(b >> 52u), 1u);
  var left = max(u32(a >> 52u), 1u) - low;
  var r = digits(a) % q;
  while (left > 0u && r != 0lu) {
    let step = min(left, 8u);
    r = (r << step) % q;
    left -= step;
  }
  if (r == 0lu) { return bitcast<f64>(sign); }
  // Convert the mantissa back to a float of exponent `low`, shifted by its leading zeros.
  var e = low;
  while (r < 0x10000000000000lu && e > 1u) {
    r = r << 1u;
    e -= 1u;
  }
  let exponent = select(0lu, u64(e), r >= 0x10000000000000lu);
  return bitcast<f64>(sign | (exponent << 52u) | (r & 0xffffffffffffflu));
}
fn remainder(a: f64, b: f64) -> f64 {
  let r = fmod(a, b);
  let flips = !(r == T(0)) && ((r < T(0)) != (b < T(0)));
  return select(r, r + b, flips && is_finite(r));
}
fn trunc_div(a: f64, b: f64) -> f64 { return trunc(a / b); }
fn floor_div(a: f64, b: f64) -> f64 {
  if (b == T(0)) { return a / b; }
  let r = fmod(a, b);
  if (is_nan(r)) { return r; }
  let q = (a - r) / b - select(T(0), T(1), !(r == T(0)) && ((b < T(0)) != (r < T(0))));
  let down = floor(q);
  return select(down + select(T(0), T(1), q - down > T(0.5)), copysign(T(0), a / b), q == T(0));
}
fn angle(x: f64) -> f64 { return select(select(T(0), T(3.141592653589793), x < T(0)), x, is_nan(x)); }
// Uniform in [0, 1), and in (0, 1], from 53 bits of two words.
fn unit(word: vec2<u32>) -> f64 {
  return f64(word.x) * 2.3283064365386963e-10 + f64(word.y >> 11u) * 1.1102230246251565e-16;
}
fn unit_above(word: vec2<u32>) -> f64 { return unit(word) + 1.1102230246251565e-16; }
