//! Programs of optimizers: one kernel reads several tensors, computes, and writes several; one or four
//! elements per invocation.

use crate::base::program::{self, Op, Source};
use crate::base::{DType, Error, Result, Scalar};
use crate::gpu::device::gpu;
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::View;
use crate::gpu::kernels::pointwise::code::{number, push_number};
use crate::gpu::launch::index_space::{Space, Words, check, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::stored::{Stored, Value};
use smallvec::SmallVec;

/// The maximal number of operands: WebGPU guarantees eight buffers, and long parameters take one.
pub const MAX_OPERANDS: usize = 7;

/// Runs `code` over operands of one shape; an operand of one element is broadcast. Outputs overlap nothing
/// else. If `rounds`, each instruction rounds to the dtype of the first operand, as separate operators
/// would.
pub fn program(code: &program::Code, operands: &[View<'_>], numbers: &[f64], rounds: bool) -> Result<()> {
    let gpu = gpu()?;
    let [first, ..] = operands else { return Ok(()) };
    if operands.len() > MAX_OPERANDS {
        return Err(Error::runtime(format!(
            "an optimizer program on the GPU takes at most {MAX_OPERANDS} tensors"
        )));
    }
    operands.iter().try_for_each(check)?;
    if first.numel() == 0 {
        return Ok(());
    }
    for view in operands {
        gpu.supports("step", view.dtype)?;
    }
    let strides: SmallVec<[&[usize]; 8]> = operands.iter().map(|view| view.strides).collect();
    let space = Space::new(first.shape, &strides);
    let written = |k: usize| code.results.iter().any(|&(operand, _)| usize::from(operand) == k);
    let expanded = |k: usize| space.strides[k].iter().all(|&stride| stride == 0);
    let shared = |k: usize| {
        operands.iter().enumerate().any(|(other, view)| {
            other != k && (written(other) || written(k)) && view.buffer.same(operands[k].buffer)
        })
    };
    let even = |k: usize| space.strides[k][0] == 1 && operands[k].offset.is_multiple_of(4);
    let quads = space.rank() == 1 && (0..operands.len()).all(|k| even(k) || (expanded(k) && !written(k)));
    let plan = Plan {
        code,
        compute: if first.dtype == DType::F64 { Value::F64 } else { Value::F32 },
        rank: space.rank(),
        quads,
        rounds: if rounds { Stored::of(first.dtype) } else { Stored::F32 },
        operands: (0..operands.len())
            .map(|k| Operand {
                stored: Stored::of(operands[k].dtype),
                written: written(k),
                shared: shared(k),
                expanded: expanded(k),
            })
            .collect(),
    };
    let mut words = Words::new();
    words.push(first.numel() as u32);
    space.push_dims(&mut words);
    for (k, view) in operands.iter().enumerate() {
        words.push(view.offset as u32);
        if !quads {
            space.push_strides(k, &mut words);
        }
    }
    numbers.iter().for_each(|&x| push_number(plan.compute, Scalar::Float(x), &mut words));
    let buffers: SmallVec<[&Buffer; 8]> = operands.iter().map(|view| view.buffer).collect();
    let items = if quads { first.numel().div_ceil(4) } else { first.numel() };
    gpu.launch(&plan, &buffers, &words, groups(items, GROUP))
}

#[derive(Hash)]
struct Operand {
    stored: Stored,
    written: bool,
    /// True if its memory is bound twice, and written.
    shared: bool,
    /// True if it has one element for all.
    expanded: bool,
}

#[derive(Hash)]
struct Plan<'a> {
    code: &'a program::Code,
    compute: Value,
    rank: usize,
    /// True if an invocation computes four elements.
    quads: bool,
    rounds: Stored,
    operands: SmallVec<[Operand; 8]>,
}

impl Plan<'_> {
    /// Returns the function for one element: its results from the operands and the numbers.
    fn element(&self) -> String {
        let results = &self.code.results;
        let fields: String = (0..results.len()).map(|at| format!(" r{at}: T,")).collect();
        let mut parameters: Vec<String> = (0..self.operands.len()).map(|k| format!("given{k}: T")).collect();
        parameters.extend((0..self.code.numbers.len()).map(|k| format!("n{k}: T")));
        let mut text =
            format!("struct Results {{{fields} }}\nfn element({}) -> Results {{\n", parameters.join(", "));
        for k in 0..self.code.registers {
            let first = if k < self.operands.len() { format!("given{k}") } else { "T(0)".to_owned() };
            text += &format!("  var v{k} = {first};\n");
        }
        for instruction in &self.code.instructions {
            let args: Vec<String> = instruction
                .args
                .iter()
                .map(|arg| match arg {
                    Source::Register(r) => format!("v{r}"),
                    Source::Number(r) => format!("n{r}"),
                })
                .collect();
            // Scalars are passed as numbers, and are not rounded to the dtype.
            let value = Plan::expression(instruction.op, &args);
            let value = if instruction.single { value } else { self.rounded(&value) };
            text += &format!("  v{} = {value};\n", instruction.to);
        }
        let values: Vec<String> = results.iter().map(|(_, from)| format!("v{from}")).collect();
        text + &format!("  return Results({});\n}}\n", values.join(", "))
    }

    fn rounded(&self, value: &str) -> String {
        match self.rounds {
            Stored::F16 => format!("widen_f16(narrow_f16({value}))"),
            Stored::BF16 => format!("bitcast<f32>(narrow_bf16({value}) << 16u)"),
            _ => value.to_owned(),
        }
    }

    fn expression(op: Op, args: &[String]) -> String {
        let at = |k: usize| args.get(k).map_or("", String::as_str);
        let (a, b, c, d) = (at(0), at(1), at(2), at(3));
        match op {
            Op::Copy => a.to_owned(),
            Op::Neg => format!("-{a}"),
            Op::Abs => format!("abs({a})"),
            Op::Sign => format!("sign({a})"),
            Op::Sqrt => format!("sqrt({a})"),
            Op::Add => format!("{a} + {b}"),
            Op::Sub => format!("{a} - {b}"),
            Op::Mul => format!("{a} * {b}"),
            Op::Div => format!("quotient({a}, {b})"),
            Op::Pow => format!("pow({a}, {b})"),
            Op::Maximum => format!("maximum({a}, {b})"),
            Op::Minimum => format!("minimum({a}, {b})"),
            Op::Gt => format!("num({a} > {b})"),
            Op::Lt => format!("num({a} < {b})"),
            Op::Eq => format!("num({a} == {b})"),
            Op::Where => format!("select({c}, {b}, !({a} == T(0)))"),
            Op::AddScaled => format!("{a} + {c} * {b}"),
            Op::Lerp => {
                format!(
                    "select({b} + ({c} - T(1)) * ({b} - {a}), {a} + {c} * ({b} - {a}), abs({c}) < T(0.5))"
                )
            }
            Op::AddCMul => format!("{a} + {d} * {b} * {c}"),
            Op::AddCDiv => format!("{a} + quotient({d} * {b}, {c})"),
        }
    }
}

impl ShaderKind for Plan<'_> {
    fn name(&self) -> &'static str {
        "step"
    }

    fn shader(&self) -> Shader {
        let element = self.element();
        let mut code = Code::new(self.compute);
        let is_quad = |operand: &Operand| self.quads && !operand.expanded;
        for (k, operand) in self.operands.iter().enumerate() {
            let (name, stored) = (format!("x{k}"), operand.stored);
            if is_quad(operand) {
                code.bind(&name, stored.quad(), operand.written || operand.shared);
            } else {
                code.operand(&name, stored, operand.written, operand.shared);
            }
        }
        code.push(&element);
        code.main_by_item();
        code.enter(self.rank, self.quads);
        let lanes = if self.quads { 4 } else { 1 };
        let mut arguments: Vec<Vec<String>> = vec![Vec::new(); lanes];
        for (k, operand) in self.operands.iter().enumerate() {
            let (name, stored) = (format!("x{k}"), operand.stored);
            let offset = code.word();
            let value = |text: &str| stored.value().convert(self.compute, text);
            if is_quad(operand) {
                code.push(&format!("  let {name}_quad = {offset} / 4u + i;\n"));
                code.push(&stored.quad_load(&name, "n - 4u * i - 1u"));
                for (lane, list) in arguments.iter_mut().enumerate() {
                    list.push(value(&format!("{name}_{lane}")));
                }
                continue;
            }
            let strides = if self.quads { Vec::new() } else { code.words(self.rank) };
            let at =
                if strides.is_empty() { offset } else { format!("{offset} + {}", Code::dot("c", &strides)) };
            code.push(&format!(
                "  let {name}_at = {at};\n  let {name}_n = {};\n",
                value(&format!("{name}_get({name}_at)"))
            ));
            arguments.iter_mut().for_each(|list| list.push(format!("{name}_n")));
        }
        let numbers: Vec<String> =
            (0..self.code.numbers.len()).map(|_| number(self.compute, &mut code)).collect();
        for (k, text) in numbers.iter().enumerate() {
            code.push(&format!("  let n{k} = {text};\n"));
        }
        for (lane, list) in arguments.iter_mut().enumerate() {
            list.extend((0..numbers.len()).map(|k| format!("n{k}")));
            code.push(&format!("  let e_{lane} = element({});\n", list.join(", ")));
        }
        for (at, &(k, _)) in self.code.results.iter().enumerate() {
            let stored = self.operands[usize::from(k)].stored;
            code.push("  {\n");
            for lane in 0..lanes {
                let value = self.compute.convert_to_stored(stored, &format!("e_{lane}.r{at}"));
                code.push(&format!("  let r_{lane} = {value};\n"));
            }
            if self.quads {
                code.push(&stored.quad_store(&format!("x{k}")));
            } else {
                code.push(&format!("  x{k}_set(x{k}_at, r_0);\n"));
            }
            code.push("  }\n");
        }
        code.push("}\n");
        code.finish()
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(Plan<'_>, |check| {
    use smallvec::smallvec;
    let every = [
        Op::Copy,
        Op::Neg,
        Op::Abs,
        Op::Sign,
        Op::Sqrt,
        Op::Add,
        Op::Sub,
        Op::Mul,
        Op::Div,
        Op::Maximum,
        Op::Minimum,
        Op::Gt,
        Op::Lt,
        Op::Eq,
        Op::Where,
        Op::AddScaled,
        Op::Lerp,
        Op::AddCMul,
        Op::AddCDiv,
    ];
    let instruction = |op: Op, to| program::Instruction {
        op,
        to,
        args: [Source::Register(0), Source::Register(1), Source::Number(0), Source::Number(1)][..op.arity()]
            .into(),
        single: false,
    };
    for (stored, compute) in [
        (Stored::F32, Value::F32),
        (Stored::F16, Value::F32),
        (Stored::BF16, Value::F32),
        (Stored::F64, Value::F64),
    ] {
        let mut instructions: Vec<_> = every.iter().map(|&op| instruction(op, 2)).collect();
        instructions.push(instruction(Op::Pow, 0));
        let code = program::Code {
            instructions,
            operands: 2,
            registers: 3,
            results: vec![(0, 0), (1, 2)],
            numbers: vec![0, 1],
        };
        for (rank, quads, expanded) in [(1, true, false), (1, false, true), (4, false, false)] {
            let operand = |written, expanded| Operand { stored, written, shared: true, expanded };
            let operands = smallvec![operand(true, false), operand(!expanded, expanded)];
            let results = if expanded { vec![(0, 0)] } else { code.results.clone() };
            let code = program::Code { results, ..code.clone() };
            let plan = Plan { code: &code, compute, rank, quads, rounds: stored, operands };
            check(&plan);
        }
    }
});
