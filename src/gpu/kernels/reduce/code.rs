//! The code of the kernels of [`super`], and the choices that distinguish them. The code reads its
//! parameters in the order in which a launch pushes them.

use crate::base::Reduction;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::kernels::pointwise::code::number;
use crate::gpu::kernels::reduce::name;
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::stored::{Stored, Value};

/// The operation on the result of the last stage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::gpu) enum ReduceFinish {
    Plain,
    Scale,
    ScaleAndRoot,
}

/// Distinguishes one kernel from another.
#[derive(Clone, Copy, Hash)]
pub(in crate::gpu) struct ReduceKind {
    pub fold: Reduction,
    pub sum: Value,
    pub x: Stored,
    pub out: Stored,
    pub row_rank: usize,
    pub rank: usize,
    /// The number of invocations that share a row.
    pub lanes: usize,
    pub parted: bool,
    pub candidates: bool,
    pub center: bool,
    pub shared: bool,
    pub finish: ReduceFinish,
}

impl ReduceKind {
    /// Returns the WGSL of `Acc`, `nothing()` and `join(a, b)`, which combines two partial results.
    fn algebra(&self) -> String {
        let t = self.sum.name();
        let (start, join) = match self.fold {
            Reduction::ArgMax => return self.indexed_algebra(">"),
            Reduction::ArgMin => return self.indexed_algebra("<"),
            Reduction::Prod => ("T(1)".to_owned(), "a * b"),
            Reduction::Max => (self.least(), "maximum(a, b)"),
            Reduction::Min => (self.most(), "minimum(a, b)"),
            Reduction::All => ("1".to_owned(), "min(a, b)"),
            Reduction::Any => ("0".to_owned(), "max(a, b)"),
            Reduction::Sum | Reduction::SumSq | Reduction::SumAbs => ("T(0)".to_owned(), "a + b"),
        };
        format!(
            "alias Acc = {t};\nfn nothing() -> Acc {{ return {start}; }}\n\
             fn join(a: Acc, b: Acc) -> Acc {{ return {join}; }}\n"
        )
    }

    /// The same where a partial result holds the index of its element.
    fn indexed_algebra(&self, better: &str) -> String {
        let t = self.sum.name();
        let nan = if matches!(self.sum, Value::F32 | Value::F64) {
            "if (is_nan(a.v) != is_nan(b.v)) { if (is_nan(a.v)) { return a; } return b; }\n  \
             if (!is_nan(a.v) && !(a.v == b.v)) {"
        } else {
            "if (a.v != b.v) {"
        };
        format!(
            "struct Acc {{ v: {t}, i: u32 }}\n\
             fn nothing() -> Acc {{ return Acc(T(0), 0xffffffffu); }}\n\
             fn join(a: Acc, b: Acc) -> Acc {{\n  if (a.i == 0xffffffffu) {{ return b; }}\n  \
             if (b.i == 0xffffffffu) {{ return a; }}\n  {nan}\n    \
             if (a.v {better} b.v) {{ return a; }}\n    return b;\n  }}\n  \
             if (a.i < b.i) {{ return a; }}\n  return b;\n}}\n"
        )
    }

    fn least(&self) -> String {
        match self.sum {
            Value::F32 | Value::F64 => "-inf()".to_owned(),
            Value::I64 => "i64(0x8000000000000000lu)".to_owned(),
            _ => "bitcast<i32>(0x80000000u)".to_owned(),
        }
    }

    fn most(&self) -> String {
        match self.sum {
            Value::F32 | Value::F64 => "inf()".to_owned(),
            Value::I64 => "0x7fffffffffffffffli".to_owned(),
            _ => "0x7fffffff".to_owned(),
        }
    }

    /// Returns the partial result of a single element, which is read as `x` at position `k`.
    fn lift(&self) -> String {
        let value = self.x.value();
        let x = value.convert(self.sum, "x");
        match self.fold {
            Reduction::All | Reduction::Any => {
                Value::Bool.convert(Value::I32, &value.convert(Value::Bool, "x"))
            }
            Reduction::ArgMax | Reduction::ArgMin => format!("Acc({x}, k)"),
            Reduction::SumSq if self.center => format!("square({x} - middle)"),
            Reduction::SumSq => format!("square({x})"),
            Reduction::SumAbs => format!("abs({x})"),
            Reduction::Sum | Reduction::Prod | Reduction::Max | Reduction::Min => x,
        }
    }

    fn main(&self, code: &mut Code) {
        let [rows, count, parts, chunk] = [code.word(), code.word(), code.word(), code.word()];
        // Every invocation must reach the barriers; those beyond the last row do no work before them.
        // Neighbouring invocations take neighbouring rows, so that they read neighbouring memory.
        code.push(&format!(
            "  let there = job < {rows} * {parts};\n  let m = job % {rows};\n  let part = job / {rows};\n  \
             let low = part * {chunk};\n  let high = select(low, min(low + {chunk}, {count}), there);\n"
        ));
        let dims = code.words(self.row_rank - 1);
        code.push(&Code::split("m", "r", &dims));
        let offset = code.word();
        let strides = code.words(self.row_rank);
        code.push(&format!("  let x_row = {offset} + {};\n", Code::dot("r", &strides)));
        let out = code.word();
        let out_at = if self.parted {
            format!("{out} + part * {rows} + m")
        } else {
            let strides = code.words(self.row_rank);
            format!("{out} + {}", Code::dot("r", &strides))
        };
        let dims = code.words(self.rank - 1);
        let strides = code.words(self.rank);
        let find = format!(
            "{}    let x = x_get(x_row + {});\n",
            Code::split("k", "c", &dims).replace("\n  ", "\n    "),
            Code::dot("c", &strides)
        );
        let position = if self.candidates {
            format!("    let k = u32(chosen[q * {} + m]);\n", code.word())
        } else {
            "    let k = q;\n".to_owned()
        };
        if self.center {
            code.push("  let middle = centers[m];\n");
        }
        let step = self.lanes;
        code.push(&format!(
            "  var acc = nothing();\n  for (var q = low + lane; q < high; q += {step}u) {{\n{position}{find}    \
             acc = join(acc, {});\n  }}\n",
            self.lift()
        ));
        code.push("  acc = join_all(acc, me);\n  if (lane > 0u || !there) { return; }\n");
        let (result, from) = match self.finish {
            _ if self.fold.is_arg() => ("i32(acc.i)".to_owned(), Value::I32),
            ReduceFinish::Scale => (format!("acc * {}", number(self.sum, code)), self.sum),
            ReduceFinish::ScaleAndRoot => (format!("sqrt(acc * {})", number(self.sum, code)), self.sum),
            ReduceFinish::Plain => ("acc".to_owned(), self.sum),
        };
        code.push(&format!("  let result = {result};\n"));
        code.push(&format!("  o_set({out_at}, {});\n}}\n", from.convert_to_stored(self.out, "result")));
    }
}

impl ShaderKind for ReduceKind {
    fn name(&self) -> &'static str {
        name(self.fold)
    }

    fn shader(&self) -> Shader {
        let mut code = Code::new(self.sum);
        code.operand("o", self.out, true, false);
        code.operand("x", self.x, false, self.shared);
        if self.candidates {
            code.bind("chosen", "i32", false);
        }
        if self.center {
            code.bind("centers", self.sum.name(), false);
        }
        code.push(&self.algebra());
        match self.lanes {
            GROUP => code.group_join("join_all", "Acc", "join(acc, next)", false),
            lanes => code.lanes_join("join_all", "Acc", "join(acc, next)", lanes),
        }
        code.main_by_lanes(self.lanes);
        self.main(&mut code);
        code.finish()
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(ReduceKind, |check| {
    use crate::base::DType;
    use crate::gpu::kernels::reduce::accumulator;
    use Reduction::{All, Any, ArgMax, ArgMin, Max, Min, Prod, Sum, SumAbs, SumSq};
    for fold in [Sum, Prod, Max, Min, ArgMax, ArgMin, All, Any, SumSq, SumAbs] {
        for dtype in [DType::Bool, DType::F16, DType::I32, DType::F32, DType::I64, DType::F64] {
            let sum = accumulator(fold, dtype);
            let finishes = match sum {
                Value::F32 | Value::F64 if !fold.is_arg() => {
                    [ReduceFinish::Plain, ReduceFinish::Scale, ReduceFinish::ScaleAndRoot]
                }
                _ => [ReduceFinish::Plain; 3],
            };
            for bits in 0..8 {
                let kind = ReduceKind {
                    fold,
                    sum,
                    x: Stored::of(dtype),
                    out: if fold.is_arg() { Stored::I64 } else { Stored::Bool },
                    row_rank: 1 + bits,
                    rank: 1 + 2 * bits,
                    lanes: [1, 32, GROUP][bits % 3],
                    parted: bits & 2 > 0,
                    candidates: fold.is_arg() && bits & 4 > 0,
                    center: fold == SumSq && bits & 4 > 0,
                    shared: bits & 4 > 0,
                    finish: finishes[bits % 3],
                };
                check(&kind);
            }
        }
    }
});
