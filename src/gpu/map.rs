//! Kernels that compute each element of the output on its own: pointwise expressions, copies, fills, and whatever
//! is a function of the element's number. Where all operands lie densely an invocation does four elements;
//! otherwise one, found through strides.

use super::cell::{Cell, Value, compute as compute_value};
use super::code::{Code, GROUP};
use super::device::{Gpu, gpu};
use super::pipeline::{Key, Shader};
use super::pool::Buffer;
use super::prelude;
use super::space::{Space, Words, check, groups};
use super::stream::Launch;
use super::{Source, View, alloc};
use crate::base::{DType, Fault, Result, Scalar, contiguous_strides};
use smallvec::SmallVec;

/// A pointwise expression in WGSL over the names of its inputs. Its key names it among all expressions.
#[derive(Clone, Copy, Debug)]
pub struct Expr {
    pub key: &'static str,
    pub inputs: &'static [&'static str],
    pub wgsl: &'static str,
    /// Whether the expression is a bool.
    pub predicate: bool,
}

/// What a kernel computes per element: a function body over its inputs (`a` is called `a_`), the element's number `at` (in row-major
/// order of the output) and the parameter words `p0`, `p1`...
pub(super) struct Map<'a> {
    pub family: &'static str,
    pub name: &'static str,
    pub inputs: &'a [&'a str],
    pub body: &'a dyn Fn() -> String,
    /// The type of the inputs: `T`.
    pub compute: Value,
    /// The type of the body's value.
    pub result: Value,
    pub words: &'a [u32],
    /// Whether operands of the output's dtype are moved as bits, not read as numbers.
    pub bits: bool,
}

/// How an operand is read: a number among the parameters, four at a time, one for all, or through strides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Access {
    Number,
    Quad(Cell),
    Same(Cell),
    Strided(Cell),
}

struct Plan<'a> {
    map: &'a Map<'a>,
    out: Cell,
    /// Dimensions walked, or none for four elements at a time.
    rank: usize,
    inputs: SmallVec<[(Access, bool); 6]>,
}

/// Computes `expr` over `ins`, which are broadcast to the shape of `out` already. Operands are converted to
/// `compute` as they are read, and the result to the dtype of `out`.
pub fn pointwise(expr: &Expr, compute: DType, out: View<'_>, ins: &[Source<'_>]) -> Result<()> {
    let gpu = gpu()?;
    let value = compute_value(compute);
    gpu.supports(expr.key, compute)?;
    let result = if expr.predicate { Value::Bool } else { value };
    let body = || format!("return {};", prelude::rename(expr.wgsl, expr.inputs));
    let map = Map {
        family: "pointwise",
        name: expr.key,
        inputs: expr.inputs,
        body: &body,
        compute: value,
        result,
        words: &[],
        bits: false,
    };
    if !matches!(value, Value::F32) && !prelude::knows(value, expr.wgsl) {
        return Err(Fault::NoShader { op: expr.key, dtype: compute }.into());
    }
    run(gpu, &map, out, Cell::of(out.dtype), ins)
}

/// Copies with conversion; `out` and `src` have the same shape.
pub fn copy(out: View<'_>, src: View<'_>) -> Result<()> {
    let gpu = gpu()?;
    let body = || "return x_;".to_owned();
    let (cell, value) = if out.dtype == src.dtype {
        (Cell::bits(out.dtype), Cell::bits(out.dtype).value())
    } else {
        gpu.supports("copy_", src.dtype)?;
        gpu.supports("copy_", out.dtype)?;
        (Cell::of(out.dtype), Cell::of(src.dtype).value())
    };
    let map = Map {
        family: "copy",
        name: "copy_",
        inputs: &["x"],
        body: &body,
        compute: value,
        result: value,
        words: &[],
        bits: true,
    };
    run(gpu, &map, out, cell, &[Source::View(src)])
}

/// Sets every element.
pub fn fill(out: View<'_>, value: Scalar) -> Result<()> {
    let gpu = gpu()?;
    let mut bytes = [0u8; 8];
    // SAFETY: no dtype is larger than eight bytes.
    unsafe { value.write(out.dtype, bytes.as_mut_ptr()) };
    let words: [u32; 2] = bytemuck::cast(bytes);
    let cell = Cell::bits(out.dtype);
    let (body, words): (&dyn Fn() -> String, &[u32]) = if cell == Cell::Bits64 {
        (&|| "return vec2<u32>(p0, p1);".to_owned(), &words)
    } else {
        (&|| "return bitcast<i32>(p0);".to_owned(), &words[..1])
    };
    let map = Map {
        family: "fill",
        name: "fill_",
        inputs: &[],
        body,
        compute: cell.value(),
        result: cell.value(),
        words,
        bits: true,
    };
    run(gpu, &map, out, cell, &[])
}

/// Writes `map` to `out`, whose elements are read and written as `cell`.
pub(super) fn run(gpu: &Gpu, map: &Map<'_>, out: View<'_>, cell: Cell, ins: &[Source<'_>]) -> Result<()> {
    check(&out)?;
    if out.numel() == 0 {
        return Ok(());
    }
    gpu.supports(map.name, out.dtype)
        .or_else(|error| if cell == Cell::Bits64 { Ok(()) } else { Err(error) })?;
    let mut aside: SmallVec<[Buffer; 2]> = SmallVec::new();
    for source in ins {
        if let Source::View(view) = source {
            check(view)?;
            if clashes(&out, view) {
                let whole = alloc(view.numel() * view.dtype.size())?;
                let strides = contiguous_strides(view.shape);
                copy(View { buffer: &whole, strides: &strides, offset: 0, ..*view }, *view)?;
                aside.push(whole);
            }
        }
    }
    let shape = out.shape;
    let dense = contiguous_strides(shape);
    let mut moved = aside.iter();
    let ins: SmallVec<[Source<'_>; 6]> = ins
        .iter()
        .map(|&source| match source {
            Source::View(view) if clashes(&out, &view) => match moved.next() {
                Some(buffer) => Source::View(View { buffer, strides: &dense, offset: 0, ..view }),
                None => source,
            },
            _ => source,
        })
        .collect();
    launch(gpu, map, out, cell, &ins)
}

/// Whether an input would be overwritten before it is read: the same memory, laid out differently.
fn clashes(out: &View<'_>, input: &View<'_>) -> bool {
    if !out.buffer.same(input.buffer) {
        return false;
    }
    let same_layout =
        out.offset == input.offset && out.strides == input.strides && out.dtype.size() == input.dtype.size();
    let range = |v: &View<'_>| {
        let last: usize = v.shape.iter().zip(v.strides).map(|(n, s)| (n - 1) * s).sum();
        (v.offset * v.dtype.size(), (v.offset + last + 1) * v.dtype.size())
    };
    let ((a, b), (c, d)) = (range(out), range(input));
    !same_layout && a < d && c < b
}

fn launch(gpu: &Gpu, map: &Map<'_>, out: View<'_>, cell: Cell, ins: &[Source<'_>]) -> Result<()> {
    let mut operands: SmallVec<[&[usize]; 8]> = SmallVec::new();
    operands.push(out.strides);
    for source in ins {
        if let Source::View(view) = source {
            operands.push(view.strides);
        }
    }
    let space = Space::new(out.shape, &operands);
    let dense = |k: usize, offset: usize| space.strides[k][0] == 1 && offset.is_multiple_of(4);
    let mut quads = space.rank() == 1 && dense(0, out.offset);
    let mut at = 0;
    for source in ins {
        if let Source::View(view) = source {
            at += 1;
            quads = quads && (dense(at, view.offset) || space.strides[at][0] == 0);
        }
    }

    let mut plan =
        Plan { map, out: cell, rank: if quads { 0 } else { space.rank() }, inputs: SmallVec::new() };
    let mut buffers: SmallVec<[&Buffer; 8]> = SmallVec::new();
    let mut words = Words::new();
    buffers.push(out.buffer);
    words.push(out.numel() as u32);
    if !quads {
        space.push_dims(&mut words);
    }
    words.push(out.offset as u32);
    if !quads {
        space.push_strides(0, &mut words);
    }
    at = 0;
    for source in ins {
        match source {
            Source::Scalar(scalar) => {
                push_number(map.compute, *scalar, &mut words);
                plan.inputs.push((Access::Number, false));
            }
            Source::View(view) => {
                at += 1;
                gpu.supports(map.name, view.dtype)
                    .or_else(|e| if cell == Cell::Bits64 { Ok(()) } else { Err(e) })?;
                let from = if map.bits && view.dtype == out.dtype { cell } else { Cell::of(view.dtype) };
                words.push(view.offset as u32);
                let access = match space.strides[at][0] {
                    0 if space.rank() == 1 => Access::Same(from),
                    _ if quads => Access::Quad(from),
                    _ => {
                        space.push_strides(at, &mut words);
                        Access::Strided(from)
                    }
                };
                plan.inputs.push((access, view.buffer.same(out.buffer)));
                buffers.push(view.buffer);
            }
        }
    }
    words.extend_from_slice(map.words);
    let kernel = gpu.kernel(&plan.key(), || Ok(plan.shader()))?;
    debug_assert_eq!(words.len(), plan.words());
    let items = if quads { out.numel().div_ceil(4) } else { out.numel() };
    gpu.stream().launch(
        gpu,
        &Launch {
            kernel: &kernel,
            buffers: &buffers,
            words: &words,
            groups: groups(items, GROUP),
            flags: false,
        },
    )
}

/// A scalar as parameter words: one, or two (low first) for eight-byte types.
pub(super) fn push_number(value: Value, scalar: Scalar, words: &mut Words) {
    let wide = match value {
        Value::F32 => return words.push((scalar.as_f64() as f32).to_bits()),
        Value::I64 => scalar.as_i64() as u64,
        Value::F64 => scalar.as_f64().to_bits(),
        _ => return words.push(scalar.as_i64() as u32),
    };
    words.extend([wide as u32, (wide >> 32) as u32]);
}

/// The expression that reads a scalar back.
pub(super) fn number(value: Value, code: &mut Code) -> String {
    let low = code.word();
    match value {
        Value::F32 => format!("bitcast<f32>({low})"),
        Value::I64 => format!("i64((u64({}) << 32u) | u64({low}))", code.word()),
        Value::F64 => format!("bitcast<f64>((u64({}) << 32u) | u64({low}))", code.word()),
        _ => format!("bitcast<i32>({low})"),
    }
}

impl Plan<'_> {
    fn key(&self) -> Key {
        let mut key = Key::new(self.map.family, self.map.name)
            .with(self.map.compute as u8)
            .with(self.map.result as u8)
            .with(self.out as u8)
            .with(self.rank as u8);
        for (access, shared) in &self.inputs {
            let (kind, cell) = match access {
                Access::Number => (0, 0),
                Access::Quad(cell) => (1, *cell as u8),
                Access::Same(cell) => (2, *cell as u8),
                Access::Strided(cell) => (3, *cell as u8),
            };
            key = key.with(kind | u8::from(*shared) << 7).with(cell);
        }
        key
    }

    /// How many parameters `launch` pushes.
    fn words(&self) -> usize {
        let inputs: usize = self
            .inputs
            .iter()
            .map(|(access, _)| match access {
                Access::Number => 1 + usize::from(matches!(self.map.compute, Value::I64 | Value::F64)),
                Access::Quad(_) | Access::Same(_) => 1,
                Access::Strided(_) => 1 + self.rank,
            })
            .sum();
        2 + self.rank + self.rank.saturating_sub(1) + inputs + self.map.words.len()
    }

    fn shader(&self) -> Shader {
        let map = self.map;
        let mut code = Code::new(self.words(), map.compute);
        if self.rank == 0 {
            code.bind("o", self.out.quad(), true);
        } else {
            code.operand("o", self.out, true, false);
        }
        let names: Vec<String> = (0..self.inputs.len()).map(|k| format!("in{k}")).collect();
        for (name, (access, shared)) in names.iter().zip(&self.inputs) {
            match access {
                Access::Number => {}
                Access::Quad(cell) => code.bind(name, cell.quad(), *shared),
                Access::Same(cell) | Access::Strided(cell) => code.operand(name, *cell, false, *shared),
            }
        }
        code.push(&self.function());
        code.main_by_item();
        self.main(&mut code, &names);
        code.finish()
    }

    /// The function computed per element.
    fn function(&self) -> String {
        let map = self.map;
        let mut parameters = String::from("at: u32");
        for k in 0..map.words.len() {
            parameters += &format!(", p{k}: u32");
        }
        for name in map.inputs {
            parameters += &format!(", {name}_: T");
        }
        format!("fn element({parameters}) -> {} {{ {} }}\n", map.result.name(), (map.body)())
    }

    /// The body of `main`; it names the parameters in the order in which `launch` pushes them.
    fn main(&self, code: &mut Code, names: &[String]) {
        let map = self.map;
        let n = code.word();
        if self.rank == 0 {
            code.push(&format!(
                "  let n = {n};\n  if (i >= (n + 3u) / 4u) {{ return; }}\n  let left = n - 4u * i;\n"
            ));
        } else {
            code.push(&format!("  let n = {n};\n  if (i >= n) {{ return; }}\n"));
            let dims = code.words(self.rank - 1);
            code.push(&Code::split("i", "c", &dims));
        }
        let out_offset = code.word();
        let out_strides = code.words(self.rank);
        // What `element` is called with, per lane.
        let lanes = if self.rank == 0 { 4 } else { 1 };
        let mut arguments: Vec<Vec<String>> = vec![Vec::new(); lanes];
        for (name, (access, _)) in names.iter().zip(&self.inputs) {
            match access {
                Access::Number => {
                    let text = number(map.compute, code);
                    code.push(&format!("  let {name}_n = {text};\n"));
                    arguments.iter_mut().for_each(|list| list.push(format!("{name}_n")));
                }
                Access::Quad(cell) => {
                    let offset = code.word();
                    code.push(&cell.quad_load(name, &offset));
                    for (k, list) in arguments.iter_mut().enumerate() {
                        list.push(cell.value().convert(map.compute, &format!("{name}_{k}")));
                    }
                }
                Access::Same(cell) => {
                    let offset = code.word();
                    let value = cell.value().convert(map.compute, &format!("{name}_get({offset})"));
                    code.push(&format!("  let {name}_n = {value};\n"));
                    arguments.iter_mut().for_each(|list| list.push(format!("{name}_n")));
                }
                Access::Strided(cell) => {
                    let offset = code.word();
                    let strides = code.words(self.rank);
                    let at = format!("{offset} + {}", Code::dot("c", &strides));
                    code.push(&format!(
                        "  let {name}_n = {};\n",
                        cell.value().convert(map.compute, &format!("{name}_get({at})"))
                    ));
                    arguments.iter_mut().for_each(|list| list.push(format!("{name}_n")));
                }
            }
        }
        let given = code.words(map.words.len());
        for (k, list) in arguments.iter().enumerate() {
            let at = if self.rank == 0 { format!("4u * i + {k}u") } else { "i".to_owned() };
            let all: Vec<&str> =
                [at.as_str()].into_iter().chain(given.iter().chain(list).map(String::as_str)).collect();
            let value = map.result.convert_to_cell(self.out, &format!("e_{k}"));
            code.push(&format!("  let e_{k} = element({});\n  let r_{k} = {value};\n", all.join(", ")));
        }
        if self.rank == 0 {
            code.push(&self.out.quad_store("o", &out_offset));
        } else {
            code.push(&format!("  o_set({out_offset} + {}, r_0);\n", Code::dot("c", &out_strides)));
        }
        code.push("}\n");
    }
}

/// Checks, without a GPU, that the kernels of an expression are valid over every kind of operand. False: the
/// expression has no shader for `dtype`, and `pointwise` would refuse it.
#[cfg(test)]
pub(crate) fn validate_expression(expr: &Expr, dtype: DType) -> bool {
    let compute = compute_value(dtype);
    if !prelude::knows(compute, expr.wgsl) {
        return false;
    }
    let body = || format!("return {};", prelude::rename(expr.wgsl, expr.inputs));
    let result = if expr.predicate { Value::Bool } else { compute };
    let (name, inputs) = (expr.key, expr.inputs);
    let map = Map { family: "test", name, inputs, body: &body, compute, result, words: &[], bits: false };
    for cell in [DType::Bool, DType::F16, DType::I32, DType::F32, DType::I64, DType::F64].map(Cell::of) {
        for (rank, access) in [
            (0, Access::Quad(cell)),
            (0, Access::Same(cell)),
            (1, Access::Strided(cell)),
            (5, Access::Strided(cell)),
            (8, Access::Number),
        ] {
            let inputs = inputs.iter().enumerate().map(|(k, _)| (access, k == 1)).collect();
            super::pipeline::validate(&Plan { map: &map, out: cell, rank, inputs }.shader());
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::pipeline::validate;
    use super::*;
    use smallvec::smallvec;

    const CELLS: [Cell; 11] = [
        Cell::Bool,
        Cell::U8,
        Cell::I8,
        Cell::I16,
        Cell::F16,
        Cell::BF16,
        Cell::I32,
        Cell::F32,
        Cell::I64,
        Cell::F64,
        Cell::Bits64,
    ];

    fn check_expression(
        inputs: &'static [&'static str],
        wgsl: &'static str,
        compute: DType,
        predicate: bool,
    ) {
        assert!(validate_expression(&Expr { key: "test", inputs, wgsl, predicate }, compute));
    }

    #[test]
    fn kernels_are_valid() {
        check_expression(&["a", "b"], "select(exp(a), pow(a, b) * 0.5, lt(a, b))", DType::F32, false);
        check_expression(&["a", "b"], "either(eq(a, b), truth(a))", DType::I64, true);
        check_expression(&["a"], "maximum(a, sqrt(a)) * 2.0", DType::F64, false);
        check_expression(&["a", "b", "c"], "num(ge(a, b)) + shl(a, c)", DType::I32, false);
    }

    #[test]
    fn copies_and_fills_are_valid() {
        for from in CELLS {
            for to in CELLS.into_iter().filter(|&to| (to == Cell::Bits64) == (from == Cell::Bits64)) {
                let body = || "return x_;".to_owned();
                let value = from.value();
                let map = Map {
                    family: "copy",
                    name: "copy_",
                    inputs: &["x"],
                    body: &body,
                    compute: value,
                    result: value,
                    words: &[],
                    bits: true,
                };
                for (rank, access) in [(0, Access::Quad(from)), (3, Access::Strided(from))] {
                    validate(&Plan { map: &map, out: to, rank, inputs: smallvec![(access, true)] }.shader());
                }
            }
        }
    }
}
