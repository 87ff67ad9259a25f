// Trigonometry over f32. Small arguments are reduced by subtracting pi/2 in parts, large ones by an integer
// multiplication with the bits of 2/pi that matter to them: exact either way.
const TWO_OVER_PI = array<u32, 8>(0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu);
// 32 bits of 2/pi; the first of them is bit `at` of the table.
fn pi_bits(at: u32) -> u32 {
  var table = TWO_OVER_PI;
  let word = at >> 5u;
  let shift = at & 31u;
  let first = table[word] << shift;
  return select(first | (table[word + 1u] >> ((32u - shift) & 31u)), first, shift == 0u);
}
// x = r + quadrant * pi/2, |r| <= pi/4, for |x| >= 2: (r, quadrant).
fn reduce_large(x: f32) -> vec2<f32> {
  let bits = bitcast<u32>(abs(x));
  let digits = (bits & 0x7fffffu) | 0x800000u;
  let at = (bits >> 23u) - 150u + 30u;
  let w0 = pi_bits(at);
  let w1 = pi_bits(at + 32u);
  let w2 = pi_bits(at + 64u);
  let low = digits * w1 + mul_high(digits, w2);
  let carry = select(0u, 1u, low < digits * w1);
  let high = digits * w0 + mul_high(digits, w1) + carry;
  var quadrant = high >> 30u;
  var part = (high << 2u) | (low >> 30u);
  var part_low = low << 2u;
  let negative = part >= 0x80000000u;
  if (negative) {
    quadrant += 1u;
    part = ~part + select(0u, 1u, part_low == 0u);
    part_low = ~part_low + 1u;
  }
  let zeros = min(countLeadingZeros(part), 31u);
  let top = (part << zeros) | select(part_low >> ((32u - zeros) & 31u), 0u, zeros == 0u);
  let r = f32(top) * 1.57079633 * power_of_two(-32 - i32(zeros));
  let sign = (x < 0.0) != negative;
  return vec2<f32>(select(r, -r, sign), f32(select(quadrant & 3u, (4u - quadrant) & 3u, x < 0.0)));
}
fn reduce_pi(x: f32) -> vec2<f32> {
  if (abs(x) > 500.0) { return reduce_large(x); }
  let n = round(x * 0.63661977);
  let r = pin(pin(x - n * 1.5703125) - n * 4.837512969970703125e-4) - n * 7.54978995489188216e-8;
  return vec2<f32>(r, f32(i32(n) & 3));
}
fn sin_near(r: f32) -> f32 {
  let z = r * r;
  return ((-1.9515295891e-4 * z + 8.3321608736e-3) * z - 1.6666654611e-1) * z * r + r;
}
fn cos_near(r: f32) -> f32 {
  let z = r * r;
  return ((2.443315711809948e-5 * z - 1.388731625493765e-3) * z + 4.166664568298827e-2) * z * z - 0.5 * z + 1.0;
}
fn sin(x: f32) -> f32 {
  if (!is_finite(x)) { return nan(); }
  if (abs(x) < 1e-4) { return x * (1.0 - x * x * 0.16666667); }
  let p = reduce_pi(x);
  let y = select(sin_near(p.x), cos_near(p.x), p.y == 1.0 || p.y == 3.0);
  return select(y, -y, p.y >= 2.0);
}
fn cos(x: f32) -> f32 {
  if (!is_finite(x)) { return nan(); }
  let p = reduce_pi(x);
  let y = select(cos_near(p.x), sin_near(p.x), p.y == 1.0 || p.y == 3.0);
  return select(y, -y, p.y == 1.0 || p.y == 2.0);
}
fn tan(x: f32) -> f32 {
  if (!is_finite(x)) { return nan(); }
  if (abs(x) < 1e-4) { return x + x * x * x * 0.33333333; }
  let p = reduce_pi(x);
  let s = sin_near(p.x);
  let c = cos_near(p.x);
  return select(s / c, -c / s, p.y == 1.0 || p.y == 3.0);
}
// asin for a in [0, 0.5].
fn asin_near(a: f32) -> f32 {
  let z = a * a;
  return ((((4.2163199048e-2 * z + 2.4181311049e-2) * z + 4.5470025998e-2) * z + 7.4953002686e-2) * z
    + 1.6666752422e-1) * z * a + a;
}
fn asin(x: f32) -> f32 {
  let a = abs(x);
  if (!(a <= 1.0)) { return nan(); }
  if (a > 0.5) { return copysign(1.57079633 - 2.0 * asin_near(sqrt(0.5 * (1.0 - a))), x); }
  return copysign(asin_near(a), x);
}
fn acos(x: f32) -> f32 {
  let a = abs(x);
  if (!(a <= 1.0)) { return nan(); }
  if (a > 0.5) {
    let y = 2.0 * asin_near(sqrt(0.5 * (1.0 - a)));
    return select(y, 3.14159265 - y, x < 0.0);
  }
  return 1.57079633 - copysign(asin_near(a), x);
}
fn atan(x: f32) -> f32 {
  if (is_nan(x)) { return x; }
  let a = abs(x);
  var t = a;
  var y = 0.0;
  if (a > 2.41421356) {
    t = -1.0 / a;
    y = 1.57079633;
  } else if (a > 0.41421356) {
    t = (a - 1.0) / (a + 1.0);
    y = 0.78539816;
  }
  let z = t * t;
  let p = (((8.05374449538e-2 * z - 1.38776856032e-1) * z + 1.99777106478e-1) * z - 3.33329491539e-1) * z * t + t;
  return copysign(y + p, x);
}
fn atan2(y: f32, x: f32) -> f32 {
  if (is_nan(x) || is_nan(y)) { return nan(); }
  let left = (bitcast<u32>(x) >> 31u) == 1u;
  var angle = 0.0;
  if (is_inf(x) && is_inf(y)) {
    angle = 0.78539816;
  } else if (abs(y) > abs(x)) {
    angle = 1.57079633 - atan(abs(x) / abs(y));
  } else if (!(x == 0.0)) {
    angle = atan(abs(y) / abs(x));
  }
  return copysign(select(angle, 3.14159265 - angle, left), y);
}
