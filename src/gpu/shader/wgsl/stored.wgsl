// Half-precision numbers as bits of a word: exact, including subnormals and NaN, on every driver.
fn widen_f16(h: u32) -> f32 {
  let magnitude = h & 0x7fffu;
  let sign = (h & 0x8000u) << 16u;
  if (magnitude >= 0x7c00u) { return bitcast<f32>(sign | 0x7f800000u | ((magnitude & 0x3ffu) << 13u)); }
  if (magnitude < 0x0400u) {
    let tiny = f32(magnitude) * 5.9604644775390625e-8;
    return bitcast<f32>(bitcast<u32>(tiny) | sign);
  }
  return bitcast<f32>(sign | ((magnitude << 13u) + 0x38000000u));
}
fn narrow_f16(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  let sign = (bits >> 16u) & 0x8000u;
  let magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) { return sign | 0x7e00u; }
  if (magnitude >= 0x477ff000u) { return sign | 0x7c00u; }
  if (magnitude < 0x38800000u) {
    // Subnormal: units of 2^-24, rounded half to even.
    if (magnitude < 0x33000000u) { return sign; }
    let shift = 126u - (magnitude >> 23u);
    let digits = (magnitude & 0x7fffffu) | 0x800000u;
    let kept = digits >> shift;
    let rest = digits & ((1u << shift) - 1u);
    let half = 1u << (shift - 1u);
    return sign | (kept + select(0u, 1u, rest > half || (rest == half && (kept & 1u) == 1u)));
  }
  let rounded = magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13u) & 1u);
  return sign | (rounded >> 13u);
}
fn narrow_bf16(x: f32) -> u32 {
  let bits = bitcast<u32>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) { return (bits >> 16u) | 0x40u; }
  return (bits + 0x7fffu + ((bits >> 16u) & 1u)) >> 16u;
}
