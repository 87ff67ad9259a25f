// Distributions over either float type.
// The standard normal distribution: neighbours share a Box-Muller pair.
fn gauss(words: vec4<u32>, more: vec4<u32>, at: u32) -> T {
  let first = (at & 2u) == 0u;
  let pair = select(words.zw, words.xy, first);
  let rest = select(more.zw, more.xy, first);
  let turn = T(6.283185307179586) * unit(vec2<u32>(pair.y, rest.y));
  let radius = sqrt(T(-2) * log(unit_above(vec2<u32>(pair.x, rest.x))));
  return radius * select(sin(turn), cos(turn), (at & 1u) == 0u);
}
