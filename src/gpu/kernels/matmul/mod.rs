//! Matrix products. Large ones in tiles: a workgroup loads a strip of both operands into shared memory, and
//! every invocation keeps a block of results in registers. Small ones with one invocation per element; long
//! dot products with one workgroup per result.

pub mod code;

use crate::base::{DType, Dims, Error, Fault, Reduction, Result, Scalar, contiguous_strides, numel};
use crate::gpu::device::gpu;
use crate::gpu::device::memory::{Buffer, alloc};
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::{Source, View};
use crate::gpu::kernels::matmul::code::DEPTH;
use crate::gpu::kernels::pointwise::code::{number, push_number};
use crate::gpu::kernels::pointwise::{Expr, copy, pointwise};
use crate::gpu::kernels::reduce::reduce;
use crate::gpu::launch::index_space::{Space, Words, check, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::stored::{Stored, Value};
use smallvec::SmallVec;

/// The division of the work among invocations.
#[derive(Clone, Copy, Hash, PartialEq, Eq, Debug)]
pub(in crate::gpu) enum Shape {
    /// One invocation per result.
    Plain,
    /// One workgroup per result.
    Dot,
    /// One workgroup per tile of 64 by 64, or 128 by 128.
    Tile(usize),
}

/// `out = alpha * a @ b + beta * out` over `[..., m, k]` and `[..., k, n]`. The batch dimensions are
/// already broadcast to those of `out`. If `beta` is zero, `out` is not read.
pub fn matmul(out: View<'_>, a: View<'_>, b: View<'_>, alpha: f64, beta: f64) -> Result<()> {
    multiply(out, None, a, b, (alpha, beta))
}

/// `out = alpha * a @ b + beta * start`, where `start` has the shape of `out`, and other memory.
pub fn add_matmul(
    out: View<'_>,
    start: View<'_>,
    a: View<'_>,
    b: View<'_>,
    alpha: f64,
    beta: f64,
) -> Result<()> {
    multiply(out, Some(start), a, b, (alpha, beta))
}

fn multiply(
    out: View<'_>,
    start: Option<View<'_>>,
    a: View<'_>,
    b: View<'_>,
    (alpha, beta): (f64, f64),
) -> Result<()> {
    let gpu = gpu()?;
    for view in [&out, &a, &b].into_iter().chain(&start) {
        check(view)?;
        gpu.supports("matmul", view.dtype)?;
    }
    if out.dtype == DType::Bool {
        return Err(Fault::NoShader { op: "matmul", dtype: DType::Bool }.into());
    }
    let rank = out.shape.len();
    let fits = rank >= 2
        && a.shape.len() == rank
        && b.shape.len() == rank
        && a.shape[..rank - 1] == out.shape[..rank - 1]
        && b.shape[..rank - 2] == out.shape[..rank - 2]
        && b.shape[rank - 1] == out.shape[rank - 1]
        && start.is_none_or(|start| start.shape == out.shape && !start.buffer.same(out.buffer))
        && a.shape[rank - 1] == b.shape[rank - 2];
    if !fits {
        return Err(Error::runtime(format!(
            "matmul: shapes {:?} and {:?} do not make {:?}",
            a.shape, b.shape, out.shape
        )));
    }
    if out.numel() == 0 {
        return Ok(());
    }
    let lead = rank - 2;
    let (m, n, k) = (out.shape[lead], out.shape[lead + 1], a.shape[lead + 1]);
    let views: SmallVec<[View<'_>; 4]> = [out, a, b].into_iter().chain(start).collect();
    let strides: SmallVec<[&[usize]; 4]> = views.iter().map(|view| &view.strides[..lead]).collect();
    let batches = Space::new(&out.shape[..lead], &strides);
    let batch: usize = out.shape[..lead].iter().product();
    let shape = choose(m, n, k, batch, a.strides[lead + 1] == 1 && b.strides[lead] == 1);
    let parts = parts(shape, m, n, k, batch);
    if parts > 1 {
        if let Some(start) = start {
            copy(out, start)?;
        }
        return in_parts(out, a, b, (alpha, beta), parts);
    }
    let (tiles_n, tiles) = match shape {
        Shape::Plain => (0, 0),
        Shape::Dot => (n, m * n),
        Shape::Tile(size) => (n.div_ceil(size), m.div_ceil(size) * n.div_ceil(size)),
    };

    let compute = Stored::of(out.dtype).value();
    let mut words = Words::new();
    words.extend([m, n, k, tiles_n, tiles, batch].map(|x| x as u32));
    batches.push_dims(&mut words);
    for (operand, view) in views.iter().enumerate() {
        words.push(view.offset as u32);
        batches.push_strides(operand, &mut words);
        words.extend([view.strides[lead] as u32, view.strides[lead + 1] as u32]);
    }
    let scaled = alpha != 1.0 || beta != 0.0 || start.is_some();
    if scaled {
        for factor in [alpha, beta] {
            push_number(compute, Scalar::Float(factor), &mut words);
        }
    }
    let kind = MatmulKind {
        shape,
        compute,
        out: Stored::of(out.dtype),
        a: Stored::of(a.dtype),
        b: Stored::of(b.dtype),
        start: start.map(|start| Stored::of(start.dtype)),
        rank: batches.rank(),
        a_by_row: by_row(&a),
        b_by_row: by_row(&b),
        whole: matches!(shape, Shape::Tile(size) if whole(size, k, [&out, &a, &b])),
        scaled,
        shared: [out.buffer.same(a.buffer), out.buffer.same(b.buffer)],
    };
    let groups = match shape {
        Shape::Plain => groups(m * n * batch, GROUP),
        _ => groups(tiles * batch, 1),
    };
    let buffers: SmallVec<[&Buffer; 4]> = views.iter().map(|view| view.buffer).collect();
    gpu.launch(&kind, &buffers, &words, groups)
}

fn choose(m: usize, n: usize, k: usize, batch: usize, side_by_side: bool) -> Shape {
    let results = m * n * batch;
    if k >= 256 && results <= 65_536 && (results <= 512 || (side_by_side && m.min(n) <= 8)) {
        return Shape::Dot;
    }
    // A mostly empty tile is still better than reading a large operand once for each row of the other.
    let narrow = m.min(n) < 24 && !(m.min(n) >= 8 && m.max(n) >= 512 && k >= 256);
    if narrow || m * n * k < 64 * 64 * 64 {
        return Shape::Plain;
    }
    // The large tile pays off if there are enough of them to fill a large GPU, and little of them is
    // padding.
    let padded = |size: usize| m.next_multiple_of(size) * n.next_multiple_of(size);
    let many = m.div_ceil(128) * n.div_ceil(128) * batch >= 128;
    if many && padded(128) * 4 <= padded(64) * 5 { Shape::Tile(128) } else { Shape::Tile(64) }
}

/// Chooses into how many parts the inner dimension is split, to be summed in parallel: enough to fill a
/// large GPU when there are few results, and no part too long for one invocation.
fn parts(shape: Shape, m: usize, n: usize, k: usize, batch: usize) -> usize {
    let (jobs, least, most) = match shape {
        // Another launch costs as much as a loop of a few hundred iterations.
        Shape::Plain if k < 1 << 10 => (usize::MAX, 1, 1 << 15),
        Shape::Plain => ((m * n * batch).div_ceil(GROUP), 1 << 8, 1 << 15),
        Shape::Dot => (m * n * batch, 1 << 13, 1 << 20),
        Shape::Tile(size) => (m.div_ceil(size) * n.div_ceil(size) * batch, 1 << 11, 1 << 18),
    };
    (256 / jobs.clamp(1, 257)).min(k / least).max(k.div_ceil(most))
}

/// Multiplies parts of the inner dimension, then adds the partial products.
fn in_parts(out: View<'_>, a: View<'_>, b: View<'_>, (alpha, beta): (f64, f64), parts: usize) -> Result<()> {
    let rank = out.shape.len();
    let k = a.shape[rank - 1];
    let chunk = k.div_ceil(parts);
    let (whole, rest) = (k / chunk, k % chunk);
    let count = whole + usize::from(rest > 0);
    let dtype = match Stored::of(out.dtype).value() {
        Value::F32 => DType::F32,
        _ => out.dtype,
    };
    let raised =
        |first: usize, of: &[usize]| -> Dims { std::iter::once(first).chain(of.iter().copied()).collect() };
    let shape = raised(count, out.shape);
    let strides = contiguous_strides(&shape);
    let buffer = alloc(numel(&shape) * dtype.size())?;
    // Multiplies `many` parts with `size` elements of the inner dimension each, beginning at part `first`.
    let multiply = |first: usize, many: usize, size: usize| {
        let operand = |view: View<'_>, inner: usize| -> (Dims, Dims, usize) {
            let mut shape = raised(many, view.shape);
            shape[1 + inner] = size;
            let step = view.strides[inner];
            (shape, raised(chunk * step, view.strides), view.offset + first * chunk * step)
        };
        let (a_shape, a_strides, a_offset) = operand(a, rank - 1);
        let (b_shape, b_strides, b_offset) = operand(b, rank - 2);
        let to = raised(many, out.shape);
        let to = View { buffer: &buffer, dtype, shape: &to, strides: &strides, offset: first * strides[0] };
        let a = View { shape: &a_shape, strides: &a_strides, offset: a_offset, ..a };
        let b = View { shape: &b_shape, strides: &b_strides, offset: b_offset, ..b };
        matmul(to, a, b, 1.0, 0.0)
    };
    multiply(0, whole, chunk)?;
    if rest > 0 {
        multiply(whole, 1, rest)?;
    }
    let products = View { buffer: &buffer, dtype, shape: &shape, strides: &strides, offset: 0 };
    let (one, one_strides) = (raised(1, out.shape), raised(0, out.strides));
    if alpha == 1.0 && beta == 0.0 {
        return reduce(Reduction::Sum, View { shape: &one, strides: &one_strides, ..out }, products, &[0]);
    }
    let sum = alloc(out.numel() * dtype.size())?;
    let sum = View { buffer: &sum, dtype, shape: &one, strides: &strides, offset: 0 };
    reduce(Reduction::Sum, sum, products, &[0])?;
    let sum = View { shape: out.shape, strides: &strides[1..], ..sum };
    let factors = [alpha, beta].map(|factor| Source::Scalar(Scalar::Float(factor)));
    let (inputs, wgsl): (&[&str], _) = match beta == 0.0 {
        true => (&["sum", "alpha"], "sum * alpha"),
        false => (&["sum", "alpha", "beta", "old"], "sum * alpha + beta * old"),
    };
    let sources = [Source::View(sum), factors[0], factors[1], Source::View(out)];
    let expr = Expr { key: wgsl, inputs, wgsl, predicate: false };
    pointwise(&expr, dtype, out, &sources[..inputs.len()])
}

/// Returns true if neighbours within a row are closer than those within a column; always true for a
/// contiguous row.
fn by_row(view: &View<'_>) -> bool {
    let [.., down, right] = *view.strides else { return true };
    right == 1 || (down != 1 && right <= down)
}

/// Returns true if tiles of `size` evenly divide float32 matrices in which every quad can be loaded at
/// once.
fn whole(size: usize, k: usize, views: [&View<'_>; 3]) -> bool {
    let rank = views[0].shape.len();
    let quads = |v: &View<'_>, by_column_too: bool| {
        let (down, right) = (v.strides[rank - 2], v.strides[rank - 1]);
        let steps =
            (right == 1 && down.is_multiple_of(4)) || (by_column_too && down == 1 && right.is_multiple_of(4));
        let batches = v.strides[..rank - 2].iter().all(|s| s.is_multiple_of(4));
        steps && batches && v.offset.is_multiple_of(4) && v.dtype == DType::F32
    };
    let [out, a, b] = views;
    let sizes = out.shape[rank - 2].is_multiple_of(size) && out.shape[rank - 1].is_multiple_of(size);
    sizes && k.is_multiple_of(DEPTH) && quads(out, false) && quads(a, true) && quads(b, true)
}

/// Distinguishes one kernel from another.
#[derive(Clone, Copy, Hash, Debug)]
pub(in crate::gpu) struct MatmulKind {
    pub shape: Shape,
    pub compute: Value,
    pub out: Stored,
    pub a: Stored,
    pub b: Stored,
    /// The elements to which the product is added, if they are not those of `out`.
    pub start: Option<Stored>,
    /// The number of batch dimensions.
    pub rank: usize,
    pub a_by_row: bool,
    pub b_by_row: bool,
    /// True if tiles have no partial edges, and all memory can be accessed in quads.
    pub whole: bool,
    pub scaled: bool,
    pub shared: [bool; 2],
}

impl MatmulKind {
    /// Element `at` of an operand, in the type computed in.
    pub fn get(&self, name: &str, at: &str) -> String {
        let stored = if name == "a" { self.a } else { self.b };
        stored.value().convert(self.compute, &format!("{name}_get({at})"))
    }

    /// Statements that write `acc` (a number, or a quad of them) to row `r`, column `c`.
    fn store(&self, code: &mut Code) -> String {
        let mut text = "let at = o_at + r * o_down + c * o_right; var value = acc;".to_owned();
        let start = |stored: Stored, lane: &str| {
            let at = format!("start_at + r * start_down + (c{lane}) * start_right");
            stored.value().convert(self.compute, &format!("start_get({at})"))
        };
        let old = if let Some(stored) = self.start {
            match self.whole {
                true => format!(
                    "vec4<T>({})",
                    ["", " + 1u", " + 2u", " + 3u"].map(|lane| start(stored, lane)).join(", ")
                ),
                false => start(stored, ""),
            }
        } else if self.whole {
            "o[at / 4u]".to_owned()
        } else {
            self.out.value().convert(self.compute, "o_get(at)")
        };
        if self.scaled {
            let (alpha, beta) = (number(self.compute, code), number(self.compute, code));
            code.push(&format!("  let alpha = {alpha};\n  let beta = {beta};\n"));
            text += &format!(" value *= alpha; if (!(beta == T(0))) {{ value += beta * {old}; }}");
        }
        if self.whole {
            return text + " o[at / 4u] = value;";
        }
        text + &format!(" o_set(at, {});", self.compute.convert_to_stored(self.out, "value"))
    }

    fn plain(&self, code: &mut Code, store: &str) {
        let (a, b) = (self.get("a", "from_a"), self.get("b", "from_b"));
        code.push(&format!(
            "  let r = part / n;\n  let c = part - r * n;\n  var acc = T(0);\n  var from_a = a_at + r * a_down;\n  \
             var from_b = b_at + c * b_right;\n  for (var k = 0u; k < depth; k++) {{\n    acc += {a} * {b};\n    \
             from_a += a_right;\n    from_b += b_down;\n  }}\n  {store}\n"
        ));
    }

    fn dot(&self, code: &mut Code, store: &str) {
        let a = self.get("a", "a_at + r * a_down + k * a_right");
        let b = self.get("b", "b_at + k * b_down + c * b_right");
        code.push(&format!(
            "  let r = part / n;\n  let c = part - r * n;\n  var mine = T(0);\n  \
             for (var k = me; k < depth; k += {GROUP}u) {{ mine += {a} * {b}; }}\n  \
             let acc = sum_all(mine, me);\n  if (me > 0u) {{ return; }}\n  {store}\n"
        ));
    }
}

impl ShaderKind for MatmulKind {
    fn name(&self) -> &'static str {
        "matmul"
    }

    fn shader(&self) -> Shader {
        let mut code = Code::new(self.compute);
        if self.whole {
            code.bind("o", "vec4<f32>", true);
            code.bind("a", "vec4<f32>", self.shared[0]);
            code.bind("b", "vec4<f32>", self.shared[1]);
        } else {
            code.operand("o", self.out, true, false);
            code.operand("a", self.a, false, self.shared[0]);
            code.operand("b", self.b, false, self.shared[1]);
        }
        if let Some(start) = self.start {
            code.operand("start", start, false, false);
        }
        match self.shape {
            Shape::Plain => code.main_by_item(),
            Shape::Dot => {
                code.group_join("sum_all", "T", "acc + next", false);
                code.main_by_group();
            }
            Shape::Tile(size) => {
                let quads = DEPTH * size / 4;
                code.push(&format!(
                    "var<workgroup> strip_a: array<vec4<T>, {quads}>;\nvar<workgroup> strip_b: array<vec4<T>, {quads}>;\n"
                ));
                code.main_by_group();
            }
        }
        let [m, n, k, tiles_n, tiles, batch] = [(); 6].map(|()| code.word());
        code.push(&format!("  let m = {m};\n  let n = {n};\n  let depth = {k};\n"));
        let (job, each) = if self.shape == Shape::Plain { ("i", "m * n") } else { ("row", tiles.as_str()) };
        code.push(&format!(
            "  if ({job} >= {each} * {batch}) {{ return; }}\n  let which = {job} / ({each});\n"
        ));
        code.push(&format!("  let part = {job} - which * ({each});\n"));
        let dims = code.words(self.rank - 1);
        code.push(&Code::split("which", "g", &dims));
        for name in ["o", "a", "b"].into_iter().chain(self.start.map(|_| "start")) {
            let offset = code.word();
            let strides = code.words(self.rank);
            let [down, right] = [code.word(), code.word()];
            code.push(&format!(
                "  let {name}_at = {offset} + {};\n  let {name}_down = {down};\n  let {name}_right = {right};\n",
                Code::dot("g", &strides)
            ));
        }
        let store = self.store(&mut code);
        match self.shape {
            Shape::Plain => self.plain(&mut code, &store),
            Shape::Dot => self.dot(&mut code, &store),
            Shape::Tile(size) => self.tile(&mut code, &store, size, &tiles_n),
        }
        code.push("}\n");
        code.finish()
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(MatmulKind, |check| {
    for stored in [Stored::F32, Stored::F16, Stored::I32, Stored::I64, Stored::F64, Stored::U8] {
        for shape in [Shape::Plain, Shape::Dot, Shape::Tile(64), Shape::Tile(128)] {
            for bits in 0..8 {
                let kind = MatmulKind {
                    shape,
                    compute: stored.value(),
                    out: stored,
                    a: stored,
                    b: stored,
                    start: (bits & 4 > 0 && bits & 1 > 0).then_some(stored),
                    rank: 1 + 2 * (bits & 1),
                    a_by_row: bits & 1 > 0,
                    b_by_row: bits & 2 > 0,
                    whole: false,
                    scaled: bits & 4 > 0,
                    shared: [false; 2],
                };
                check(&kind);
                if stored == Stored::F32 && matches!(shape, Shape::Tile(_)) {
                    check(&MatmulKind { whole: true, ..kind });
                }
            }
        }
    }
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_sums_go_in_parts() {
        assert_eq!(parts(Shape::Dot, 1, 1, 1 << 21, 1), 256);
        assert_eq!(parts(Shape::Dot, 1, 1, 8192, 1), 1);
        assert_eq!(parts(Shape::Dot, 16, 32, 1 << 21, 1), 2);
        assert_eq!(parts(Shape::Plain, 1000, 4, 1 << 17, 1), 16);
        assert_eq!(parts(Shape::Plain, 1, 4096, 4096, 1), 16);
        assert_eq!(parts(Shape::Plain, 16, 128, 512, 1), 1);
        assert_eq!(parts(Shape::Tile(64), 64, 64, 1 << 16, 1), 32);
        assert_eq!(parts(Shape::Tile(128), 4096, 4096, 4096, 1), 1);
    }

    #[test]
    fn shapes_are_chosen_by_size() {
        assert_eq!(choose(1, 1, 100_000, 1, true), Shape::Dot);
        assert_eq!(choose(8, 8, 8, 1, true), Shape::Plain);
        assert_eq!(choose(128, 128, 128, 1, false), Shape::Tile(64));
        assert_eq!(choose(4096, 4096, 4096, 1, false), Shape::Tile(128));
        assert_eq!(choose(1, 4096, 4096, 1, false), Shape::Plain);
        assert_eq!(choose(16, 4096, 4096, 1, false), Shape::Tile(64));
        assert_eq!(choose(64, 3136, 576, 32, false), Shape::Tile(64));
    }
}
