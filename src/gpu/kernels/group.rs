//! Groups of pointwise instructions: one kernel reads several tensors, computes, and writes several; one or four elements
//! per invocation.

use crate::base::group::{Argument, Group};
use crate::base::{DType, Error, Fault, Result, Scalar};
use crate::gpu::device::gpu;
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::View;
use crate::gpu::kernels::pointwise::Expr;
use crate::gpu::kernels::pointwise::code::{number, push_number};
use crate::gpu::launch::index_space::{Space, Words, check, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::prelude;
use crate::gpu::shader::stored::{Stored, Value, compute as compute_value};
use smallvec::SmallVec;

/// The maximal number of operands: WebGPU guarantees eight buffers, and long parameters take one.
pub const MAX_OPERANDS: usize = 7;

/// Runs `group` over operands of one shape. Outputs overlap nothing else.
pub fn run_group(group: &Group<Expr>, operands: &[View<'_>], numbers: &[Scalar]) -> Result<()> {
    let gpu = gpu()?;
    let [first, ..] = operands else { return Ok(()) };
    if operands.len() > MAX_OPERANDS {
        return Err(Error::runtime(format!(
            "a group on the GPU takes at most {MAX_OPERANDS} tensors, but this one has {}",
            operands.len()
        )));
    }
    operands.iter().try_for_each(check)?;
    if first.numel() == 0 {
        return Ok(());
    }
    for view in operands {
        gpu.supports("group", view.dtype)?;
    }
    let compute = compute_of(group)?;
    let strides: SmallVec<[&[usize]; 8]> = operands.iter().map(|view| view.strides).collect();
    let space = Space::new(first.shape, &strides);
    let written = |k: usize| group.results.iter().any(|&(operand, _)| usize::from(operand) == k);
    let expanded = |k: usize| space.strides[k].iter().all(|&stride| stride == 0);
    let shared = |k: usize| {
        operands.iter().enumerate().any(|(other, view)| {
            other != k && (written(other) || written(k)) && view.buffer.same(operands[k].buffer)
        })
    };
    let even = |k: usize| space.strides[k][0] == 1 && operands[k].offset.is_multiple_of(4);
    let quads = space.rank() == 1 && (0..operands.len()).all(|k| even(k) || (expanded(k) && !written(k)));
    let plan = Plan {
        group,
        compute,
        rank: space.rank(),
        quads,
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
    numbers.iter().for_each(|&x| push_number(plan.compute, x, &mut words));
    let buffers: SmallVec<[&Buffer; 8]> = operands.iter().map(|view| view.buffer).collect();
    let items = if quads { first.numel().div_ceil(4) } else { first.numel() };
    gpu.launch(&plan, &buffers, &words, groups(items, GROUP))
}

/// The type that all instructions of the group compute in: a shader has one.
fn compute_of(group: &Group<Expr>) -> Result<Value> {
    let dtype = group.instructions.first().map_or(DType::F32, |instruction| instruction.compute);
    for instruction in &group.instructions {
        let (op, compute) = (instruction.expr.key, instruction.compute);
        if compute != dtype
            || compute.is_complex()
            || !prelude::knows(compute_value(compute), instruction.expr.wgsl)
        {
            return Err(Fault::NoShader { op, dtype: compute }.into());
        }
    }
    Ok(compute_value(dtype))
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
    group: &'a Group<Expr>,
    compute: Value,
    rank: usize,
    /// True if an invocation computes four elements.
    quads: bool,
    operands: SmallVec<[Operand; 8]>,
}

impl Plan<'_> {
    /// Returns the function for one element: its results from the operands and the numbers.
    fn element(&self) -> String {
        let results = &self.group.results;
        let fields: String = (0..results.len()).map(|at| format!(" r{at}: T,")).collect();
        let mut parameters: Vec<String> = (0..self.operands.len()).map(|k| format!("given{k}: T")).collect();
        parameters.extend((0..self.group.numbers.len()).map(|k| format!("n{k}: T")));
        let mut text = format!("struct Results {{{fields} }}\n");
        let mut body = String::new();
        for k in 0..self.group.registers {
            let first = if k < self.operands.len() { format!("given{k}") } else { "T(0)".to_owned() };
            body += &format!("  var v{k} = {first};\n");
        }
        for (at, instruction) in self.group.instructions.iter().enumerate() {
            let expr = &instruction.expr;
            let names: Vec<String> = expr.inputs.iter().map(|name| format!("{name}_: T")).collect();
            let value = prelude::expression(self.compute, expr.wgsl, expr.inputs);
            let result = if expr.predicate { Value::Bool } else { self.compute };
            text +=
                &format!("fn step{at}({}) -> {} {{ return {value}; }}\n", names.join(", "), result.name());
            let args: Vec<String> = instruction
                .args
                .iter()
                .map(|arg| match arg {
                    Argument::Register(r) => format!("v{r}"),
                    Argument::Number(r) => format!("n{r}"),
                })
                .collect();
            let value = result.convert(self.compute, &format!("step{at}({})", args.join(", ")));
            let value = instruction.rounds.map_or(value.clone(), |dtype| self.round(dtype, &value));
            body += &format!("  v{} = {value};\n", instruction.to);
        }
        let values: Vec<String> = results.iter().map(|(_, from)| format!("v{from}")).collect();
        text + &format!(
            "fn element({}) -> Results {{\n{body}  return Results({});\n}}\n",
            parameters.join(", "),
            values.join(", ")
        )
    }

    /// Rounds a value to a dtype that it would be stored as between operators.
    fn round(&self, dtype: DType, value: &str) -> String {
        match Stored::of(dtype) {
            Stored::F16 => format!("widen_f16(narrow_f16({value}))"),
            Stored::BF16 => format!("bitcast<f32>(narrow_bf16({value}) << 16u)"),
            stored => stored.value().convert(self.compute, &self.compute.convert_to_stored(stored, value)),
        }
    }
}

impl ShaderKind for Plan<'_> {
    fn name(&self) -> &'static str {
        "group"
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
            (0..self.group.numbers.len()).map(|_| number(self.compute, &mut code)).collect();
        for (k, text) in numbers.iter().enumerate() {
            code.push(&format!("  let n{k} = {text};\n"));
        }
        for (lane, list) in arguments.iter_mut().enumerate() {
            list.extend((0..numbers.len()).map(|k| format!("n{k}")));
            code.push(&format!("  let e_{lane} = element({});\n", list.join(", ")));
        }
        for (at, &(k, _)) in self.group.results.iter().enumerate() {
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
    use crate::base::group::{Instruction, Number};
    use smallvec::smallvec;
    let expr = |key, inputs, wgsl, predicate| Expr { key, inputs, wgsl, predicate };
    let exprs = [
        expr("mul", &["input", "other"], "input * other", false),
        expr("div", &["input", "other"], "input / other", false),
        expr("gt", &["input", "other"], "gt(input, other)", true),
        expr("choose", &["yes", "no", "condition"], "select(no, yes, truth(condition))", false),
    ];
    for (dtype, rounds) in [
        (DType::F32, None),
        (DType::F16, Some(DType::F16)),
        (DType::BF16, Some(DType::BF16)),
        (DType::F64, None),
        (DType::I64, None),
        (DType::I16, Some(DType::I16)),
    ] {
        let stored = Stored::of(dtype);
        let compute = match dtype {
            DType::F16 | DType::BF16 => DType::F32,
            DType::I16 => DType::I64,
            other => other,
        };
        let instructions = exprs.iter().enumerate().map(|(at, &expr)| Instruction {
            expr,
            compute,
            rounds: rounds.filter(|_| !expr.predicate),
            to: if at == 0 { 0 } else { 2 },
            args: [Argument::Register(0), Argument::Number(0), Argument::Register(1)][..expr.inputs.len()]
                .into(),
        });
        let group = Group {
            instructions: instructions.collect(),
            operands: 2,
            registers: 3,
            results: vec![(0, 0), (1, 2)],
            numbers: vec![Number { value: 0, compute, rounds: None }],
        };
        let value = compute_value(compute);
        for (rank, quads, expanded) in [(1, true, false), (1, false, true), (4, false, false)] {
            let operand = |written, expanded| Operand { stored, written, shared: true, expanded };
            let operands = smallvec![operand(true, false), operand(!expanded, expanded)];
            let results = if expanded { vec![(0, 0)] } else { group.results.clone() };
            let group = Group { results, ..group.clone() };
            check(&Plan { group: &group, compute: value, rank, quads, operands });
        }
    }
});
