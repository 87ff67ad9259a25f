// Counter-based random numbers: Philox 4x32 with ten rounds, the same on every adapter.
// The high word of a 32-bit product.
fn mul_high(a: u32, b: u32) -> u32 {
  let al = a & 0xffffu;
  let ah = a >> 16u;
  let bl = b & 0xffffu;
  let bh = b >> 16u;
  let low = al * bl;
  let mid = ah * bl + (low >> 16u);
  let cross = al * bh + (mid & 0xffffu);
  return ah * bh + (mid >> 16u) + (cross >> 16u);
}
fn philox(counter: vec2<u32>, seed: vec2<u32>) -> vec4<u32> {
  var key = seed;
  var x = vec4<u32>(counter, 0u, 0u);
  for (var round = 0; round < 10; round++) {
    let a = vec2<u32>(mul_high(0xd2511f53u, x.x), 0xd2511f53u * x.x);
    let b = vec2<u32>(mul_high(0xcd9e8d57u, x.z), 0xcd9e8d57u * x.z);
    x = vec4<u32>(b.x ^ x.y ^ key.x, b.y, a.x ^ x.w ^ key.y, a.y);
    key += vec2<u32>(0x9e3779b9u, 0xbb67ae85u);
  }
  return x;
}
// The four words that element `at` shares with its neighbours, `offset` blocks into the stream of the seed.
fn draw(at: u32, seed: vec2<u32>, offset: vec2<u32>) -> vec4<u32> {
  let low = offset.x + (at >> 2u);
  return philox(vec2<u32>(low, offset.y + select(0u, 1u, low < offset.x)), seed);
}
