//! The code of the kernels of [`super`], and the choices that distinguish them. The code reads its
//! parameters in the order in which a launch pushes them.

use crate::base::Scalar;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::kernels::pointwise::PointwiseMap;
use crate::gpu::launch::index_space::Words;
use crate::gpu::shader::code::{Code, Shader};
use crate::gpu::shader::stored::{Stored, Value};
use smallvec::SmallVec;

/// The way in which a kernel reads an operand: as a number among the parameters, four elements at a time, one element
/// for all four, or one element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::gpu) enum Access {
    Number,
    Quad(Stored),
    Same(Stored),
    Strided(Stored),
}

/// A kernel of a map.
#[derive(Hash)]
pub(in crate::gpu) struct PointwisePlan<'a> {
    pub map: &'a PointwiseMap<'a>,
    pub out: Stored,
    /// The number of dimensions walked.
    pub rank: usize,
    /// True if an invocation computes four elements.
    pub quads: bool,
    /// The access to each input, and true if it shares the output's memory.
    pub inputs: SmallVec<[(Access, bool); 6]>,
}

/// Returns the number of strides that a kernel needs for each operand: within a quad they are known.
pub(in crate::gpu) const fn plan_strides(rank: usize, quads: bool) -> usize {
    if quads { rank - 1 } else { rank }
}

/// Pushes a scalar as parameter words: one, or two (low first) for eight-byte types.
pub(in crate::gpu) fn push_number(value: Value, scalar: Scalar, words: &mut Words) {
    let wide = match value {
        Value::F32 => return words.push((scalar.as_f64() as f32).to_bits()),
        Value::I64 => scalar.as_i64() as u64,
        Value::F64 => scalar.as_f64().to_bits(),
        _ => return words.push(scalar.as_i64() as u32),
    };
    words.extend([wide as u32, (wide >> 32) as u32]);
}

/// Returns the expression that reads a scalar back.
pub(in crate::gpu) fn number(value: Value, code: &mut Code) -> String {
    let low = code.word();
    match value {
        Value::F32 => format!("bitcast<f32>({low})"),
        Value::I64 => format!("i64((u64({}) << 32u) | u64({low}))", code.word()),
        Value::F64 => format!("bitcast<f64>((u64({}) << 32u) | u64({low}))", code.word()),
        _ => format!("bitcast<i32>({low})"),
    }
}

impl PointwisePlan<'_> {
    /// Returns the function that is computed for each element.
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

    fn main(&self, code: &mut Code, names: &[String]) {
        let map = self.map;
        code.enter(self.rank, self.quads);
        self.place("o", code);
        // The arguments of `element`, for each lane.
        let lanes = if self.quads { 4 } else { 1 };
        let mut arguments: Vec<Vec<String>> = vec![Vec::new(); lanes];
        for (name, (access, _)) in names.iter().zip(&self.inputs) {
            let one = match access {
                Access::Number => number(map.compute, code),
                Access::Quad(stored) => {
                    self.place(name, code);
                    code.push(&stored.quad_load(name, if self.rank == 1 { "n - 4u * i - 1u" } else { "3u" }));
                    for (k, list) in arguments.iter_mut().enumerate() {
                        list.push(stored.value().convert(map.compute, &format!("{name}_{k}")));
                    }
                    continue;
                }
                Access::Same(stored) | Access::Strided(stored) => {
                    self.place(name, code);
                    stored.value().convert(map.compute, &format!("{name}_get({name}_at)"))
                }
            };
            code.push(&format!("  let {name}_n = {one};\n"));
            arguments.iter_mut().for_each(|list| list.push(format!("{name}_n")));
        }
        let given = code.words(map.words.len());
        for (k, list) in arguments.iter().enumerate() {
            let at = if self.quads { format!("4u * i + {k}u") } else { "i".to_owned() };
            let all: Vec<&str> =
                [at.as_str()].into_iter().chain(given.iter().chain(list).map(String::as_str)).collect();
            let value = map.result.convert_to_stored(self.out, &format!("e_{k}"));
            code.push(&format!("  let e_{k} = element({});\n  let r_{k} = {value};\n", all.join(", ")));
        }
        if self.quads {
            code.push(&self.out.quad_store("o"));
        } else {
            code.push("  o_set(o_at, r_0);\n");
        }
        code.push("}\n");
    }

    /// Defines `NAME_at`, the position of the operand's element (or of the first of its quad), and
    /// `NAME_quad`, that of the quad.
    fn place(&self, name: &str, code: &mut Code) {
        let offset = code.word();
        let strides = code.words(plan_strides(self.rank, self.quads));
        let at = if strides.is_empty() { offset } else { format!("{offset} + {}", Code::dot("c", &strides)) };
        if !self.quads {
            return code.push(&format!("  let {name}_at = {at};\n"));
        }
        let last = self.rank - 1;
        code.push(&format!("  let {name}_at = {at};\n  let {name}_quad = {name}_at / 4u + c{last};\n"));
    }
}

impl ShaderKind for PointwisePlan<'_> {
    fn name(&self) -> &'static str {
        self.map.name
    }

    fn shader(&self) -> Shader {
        let map = self.map;
        let mut code = Code::new(map.compute);
        if self.quads {
            code.bind("o", self.out.quad(), true);
        } else {
            code.operand("o", self.out, true, false);
        }
        let names: Vec<String> = (0..self.inputs.len()).map(|k| format!("in{k}")).collect();
        for (name, (access, shared)) in names.iter().zip(&self.inputs) {
            match access {
                Access::Number => {}
                Access::Quad(stored) => code.bind(name, stored.quad(), *shared),
                Access::Same(stored) | Access::Strided(stored) => code.operand(name, *stored, false, *shared),
            }
        }
        code.push(&self.function());
        code.main_by_item();
        self.main(&mut code, &names);
        code.finish()
    }
}

/// Checks, without a GPU, that the kernels of an expression are valid for every kind of operand. Returns
/// false if the expression has no shader for `dtype`, so that `pointwise` would refuse it.
#[cfg(test)]
pub(crate) fn validate_expression(expr: &crate::gpu::Expr, dtype: crate::base::DType) -> bool {
    use crate::base::DType;
    use crate::gpu::shader::prelude;
    let compute = crate::gpu::shader::stored::compute(dtype);
    if !prelude::knows(compute, expr.wgsl) {
        return false;
    }
    let body = || format!("return {};", prelude::expression(compute, expr.wgsl, expr.inputs));
    let result = if expr.predicate { Value::Bool } else { compute };
    let (name, inputs) = (expr.key, expr.inputs);
    let map =
        PointwiseMap { family: "test", name, inputs, body: &body, compute, result, words: &[], bits: false };
    for stored in [DType::Bool, DType::F16, DType::I32, DType::F32, DType::I64, DType::F64].map(Stored::of) {
        for (rank, quads, access) in [
            (1, true, Access::Quad(stored)),
            (1, true, Access::Same(stored)),
            (2, true, Access::Quad(stored)),
            (5, true, Access::Same(stored)),
            (1, false, Access::Strided(stored)),
            (8, false, Access::Strided(stored)),
            (3, false, Access::Number),
        ] {
            let inputs = inputs.iter().enumerate().map(|(k, _)| (access, k == 1)).collect();
            crate::gpu::shader::code::validate(
                &PointwisePlan { map: &map, out: stored, rank, quads, inputs }.shader(),
            );
        }
    }
    true
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(PointwisePlan<'_>, |check| {
    use crate::base::DType::{F32, F64, I32, I64};
    use crate::gpu::Expr;
    let expressions: [(&'static [&'static str], _, _, _); 4] = [
        (&["a", "b"], "select(exp(a), pow(a, b) * 0.5, lt(a, b))", F32, false),
        (&["a", "b"], "either(eq(a, b), truth(a))", I64, true),
        (&["a"], "maximum(a, sqrt(a)) * 2.0", F64, false),
        (&["a", "b", "c"], "num(ge(a, b)) + shl(a, c)", I32, false),
    ];
    for (inputs, wgsl, compute, predicate) in expressions {
        assert!(validate_expression(&Expr { key: "test", inputs, wgsl, predicate }, compute));
    }
    let stored = [
        Stored::Bool,
        Stored::U8,
        Stored::I8,
        Stored::I16,
        Stored::F16,
        Stored::BF16,
        Stored::I32,
        Stored::F32,
        Stored::I64,
        Stored::F64,
        Stored::Bits64,
    ];
    for from in stored {
        let map = PointwiseMap::copy(from.value());
        for out in stored.into_iter().filter(|&to| (to == Stored::Bits64) == (from == Stored::Bits64)) {
            for (rank, quads, access) in [(1, true, Access::Quad(from)), (3, false, Access::Strided(from))] {
                check(&PointwisePlan {
                    map: &map,
                    out,
                    rank,
                    quads,
                    inputs: SmallVec::from_elem((access, true), 1),
                });
            }
        }
    }
});
