//! The tiles of [`super`]: 16 by 16 invocations, each with `size / 16` rows and as many columns of
//! results in registers, over strips of both operands in shared memory. Strips are stored with the depth
//! outermost, so that a column of `a` and a row of `b` can be read in quads.

use crate::gpu::kernels::matmul::MatmulKind;
use crate::gpu::shader::code::{Code, GROUP};
use crate::gpu::shader::stored::Value;
use std::fmt::Write as _;

/// The number of elements of the inner dimension that a tile loads at a time.
pub(in crate::gpu) const DEPTH: usize = 16;

impl MatmulKind {
    /// Writes the body of a tile kernel. `store` writes `acc` to row `r`, column `c`; `tiles_n` tiles lie
    /// side by side.
    pub fn tile(&self, code: &mut Code, store: &str, size: usize, tiles_n: &str) {
        let (side, quads) = (size / 16, size / 64);
        let mut text = format!(
            "  let top = (part / {tiles_n}) * {size}u;\n  let left = (part % {tiles_n}) * {size}u;\n  \
             let tx = me % 16u;\n  let ty = me / 16u;\n"
        );
        for r in 0..side {
            for q in 0..quads {
                let _ = writeln!(text, "  var sum{r}_{q} = vec4<T>();");
            }
        }
        if self.whole {
            self.strips_ahead(&mut text, size);
        } else {
            self.strips(&mut text, size);
        }
        for r in 0..side {
            for q in 0..quads {
                let (row, column) =
                    (format!("top + ty * {side}u + {r}u"), format!("left + {}u + tx * 4u", 64 * q));
                let _ = if self.whole {
                    writeln!(text, "  {{ let r = {row}; let c = {column}; let acc = sum{r}_{q}; {store} }}")
                } else {
                    writeln!(
                        text,
                        "  for (var lane = 0u; lane < 4u; lane++) {{\n    let r = {row};\n    let c = {column} + lane;\n    \
                         if (r < m && c < n) {{ let acc = sum{r}_{q}[lane]; {store} }}\n  }}"
                    )
                };
            }
        }
        code.push(&text);
    }

    /// Loads strips one element at a time, with checks at the edges; neighbouring invocations load
    /// neighbouring memory.
    fn strips(&self, text: &mut String, size: usize) {
        let _ = writeln!(text, "  for (var first = 0u; first < depth; first += {DEPTH}u) {{");
        for (name, along, bound, at) in [
            ("a", !self.a_by_row, "top + s < m", "a_at + (top + s) * a_down + (first + d) * a_right"),
            ("b", self.b_by_row, "left + s < n", "b_at + (first + d) * b_down + (left + s) * b_right"),
        ] {
            // `s` is the position along the strip (a row of a, a column of b), `d` the depth.
            let split = if along {
                format!("let s = e % {size}u; let d = e / {size}u;")
            } else {
                format!("let s = e / {DEPTH}u; let d = e % {DEPTH}u;")
            };
            let _ = writeln!(
                text,
                "    for (var j = 0u; j < {}u; j++) {{\n      let e = me + j * {GROUP}u;\n      {split}\n      \
                 var v = T(0);\n      if ({bound} && first + d < depth) {{ v = {}; }}\n      \
                 strip_{name}[d * {}u + s / 4u][s % 4u] = v;\n    }}",
                size / 16,
                self.get(name, at),
                size / 4
            );
        }
        *text += "    workgroupBarrier();\n";
        self.multiply(text, size);
        *text += "    workgroupBarrier();\n  }\n";
    }

    /// Loads strips in quads without edge checks; the next pair is loaded into registers while the current
    /// one is multiplied.
    fn strips_ahead(&self, text: &mut String, size: usize) {
        let row = size / 4;
        let mut load = String::new();
        let mut keep = String::new();
        for (name, along, start, (step, far)) in [
            ("a", !self.a_by_row, "top", ("a_down", "a_right")),
            ("b", self.b_by_row, "left", ("b_right", "b_down")),
        ] {
            for j in 0..size / 64 {
                let e = format!("(me + {}u)", j * GROUP);
                let _ = writeln!(text, "  var {name}{j}_next = vec4<T>();");
                let _ = if along {
                    // Quads along the strip are stored unchanged.
                    let _ = writeln!(keep, "    strip_{name}[{e}] = {name}{j}_next;");
                    writeln!(
                        load,
                        "{name}{j}_next = {name}[({name}_at + (next + {e} / {row}u) * {far} + {start} + 4u * ({e} % {row}u)) / 4u];"
                    )
                } else {
                    // Quads along the depth are transposed.
                    for lane in 0..4 {
                        let _ = writeln!(
                            keep,
                            "    strip_{name}[(4u * ({e} % 4u) + {lane}u) * {row}u + {e} / 16u][({e} / 4u) % 4u] = {name}{j}_next[{lane}];"
                        );
                    }
                    writeln!(
                        load,
                        "{name}{j}_next = {name}[({name}_at + ({start} + {e} / 4u) * {step} + next + 4u * ({e} % 4u)) / 4u];"
                    )
                };
            }
        }
        let _ = writeln!(
            text,
            "  var next = 0u;\n  {load}  for (var first = 0u; first < depth; first += {DEPTH}u) {{\n{keep}"
        );
        let _ = writeln!(
            text,
            "    workgroupBarrier();\n    next = first + {DEPTH}u;\n    if (next < depth) {{\n{load}    }}"
        );
        self.multiply(text, size);
        *text += "    workgroupBarrier();\n  }\n";
    }

    /// Adds the product of both strips to the results.
    fn multiply(&self, text: &mut String, size: usize) {
        let (side, quads, row) = (size / 16, size / 64, size / 4);
        let _ = writeln!(text, "    for (var d = 0u; d < {DEPTH}u; d++) {{");
        for q in 0..quads {
            let _ = writeln!(text, "      let a{q} = strip_a[d * {row}u + ty * {quads}u + {q}u];");
            let _ = writeln!(text, "      let b{q} = strip_b[d * {row}u + tx + {}u];", 16 * q);
        }
        for r in 0..side {
            for q in 0..quads {
                let (sum, factor) =
                    (format!("sum{r}_{q}"), format!("a{}.{}", r / 4, ["x", "y", "z", "w"][r % 4]));
                let _ = if self.compute == Value::F32 {
                    writeln!(text, "      {sum} = fma(vec4<T>({factor}), b{q}, {sum});")
                } else {
                    writeln!(text, "      {sum} += vec4<T>({factor}) * b{q};")
                };
            }
        }
        *text += "    }\n";
    }
}
