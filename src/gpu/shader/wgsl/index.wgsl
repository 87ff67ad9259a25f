// An index as two words, low first.
fn widen(v: i32) -> vec2<u32> { return vec2<u32>(bitcast<u32>(v), bitcast<u32>(v >> 31u)); }
// The wrapped index. For one that is out of bounds: `size`, after recording the first such index.
fn place(v: vec2<u32>, size: u32, dim: u32, negative: bool, ticket: u32) -> u32 {
  if (v.y == 0u && v.x < size) { return v.x; }
  if (negative && v.y == 0xffffffffu && v.x != 0u && (0u - v.x) <= size) { return v.x + size; }
  if (atomicExchange(&flags[0], 1u) == 0u) {
    atomicStore(&flags[1], ticket);
    atomicStore(&flags[2], v.x);
    atomicStore(&flags[3], v.y);
    atomicStore(&flags[4], dim);
    atomicStore(&flags[5], size);
  }
  return size;
}
