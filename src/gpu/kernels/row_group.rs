//! Groups over rows: instructions over the elements of rows, over one value a row, and folds of rows to one value each, which
//! later instructions read. Several invocations share a row. Elements are computed again after each fold rather than kept.

use crate::base::group::{Argument, Group};
use crate::base::{Error, Reduction, Result, Scalar};
use crate::gpu::device::gpu;
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::View;
use crate::gpu::kernels::group::{Operand, compute_of, is_read, rounded};
use crate::gpu::kernels::pointwise::Expr;
use crate::gpu::kernels::pointwise::code::{number, push_number};
use crate::gpu::launch::index_space::{Words, check, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader, lanes};
use crate::gpu::shader::prelude;
use crate::gpu::shader::stored::{Stored, Value};
use smallvec::SmallVec;

/// What an instruction of a group over rows computes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Level {
    /// One value for each element.
    Element,
    /// One value for each row.
    Row,
    /// The fold of its first argument over a row, times the second argument if there is one.
    Fold(Reduction),
}

/// Runs `group` over operands of one shape, whose dimensions from `split` on are those within a row. `levels` are those of
/// the instructions. Outputs overlap nothing else; those of one value a row have strides of 0 within it.
pub fn run_row_group(
    group: &Group<Expr>,
    levels: &[Level],
    operands: &[View<'_>],
    split: usize,
    numbers: &[Scalar],
) -> Result<()> {
    let gpu = gpu()?;
    let [first, ..] = operands else { return Ok(()) };
    if operands.len() > gpu.info.max_operands {
        return Err(Error::runtime("a group over rows has more tensors than a kernel on this GPU can take"));
    }
    operands.iter().try_for_each(check)?;
    if first.numel() == 0 {
        return Ok(());
    }
    for view in operands {
        gpu.supports("group", view.dtype)?;
    }
    let compute = compute_of(group)?;
    let count = |dims: &[usize]| dims.iter().product::<usize>();
    let (outer, inner) = first.shape.split_at(split);
    let (rows, length) = (count(outer), count(inner));
    let written = |k: usize| group.results.iter().any(|&(operand, _)| usize::from(operand) == k);
    let shared = |k: usize| {
        operands.iter().enumerate().any(|(other, view)| {
            other != k && (written(other) || written(k)) && view.buffer.same(operands[k].buffer)
        })
    };
    let lanes = match lanes(length) {
        // There are too few rows to fill the GPU with a few invocations each.
        32 if rows < 256 => GROUP,
        lanes => lanes,
    };
    let plan = RowPlan {
        group,
        levels,
        compute,
        outer: outer.len(),
        inner: inner.len(),
        lanes,
        operands: (0..operands.len())
            .map(|k| Operand {
                stored: Stored::of(operands[k].dtype),
                written: written(k),
                shared: shared(k),
                still: operands[k].strides[split..].iter().all(|&stride| stride == 0),
            })
            .collect(),
    };
    let mut words = Words::new();
    words.extend([rows as u32, length as u32]);
    let but_first = |dims: &[usize]| dims.iter().skip(1).map(|&n| n as u32).collect::<Words>();
    words.extend(but_first(outer));
    words.extend(but_first(inner));
    for (view, operand) in operands.iter().zip(&plan.operands) {
        words.push(view.offset as u32);
        words.extend(view.strides[..split].iter().map(|&stride| stride as u32));
        if !operand.still {
            words.extend(view.strides[split..].iter().map(|&stride| stride as u32));
        }
    }
    numbers.iter().for_each(|&x| push_number(compute, x, &mut words));
    let buffers: SmallVec<[&Buffer; 8]> = operands.iter().map(|view| view.buffer).collect();
    gpu.launch(&plan, &buffers, &words, groups(rows, GROUP / lanes))
}

#[derive(Hash)]
struct RowPlan<'a> {
    group: &'a Group<Expr>,
    levels: &'a [Level],
    compute: Value,
    /// The numbers of dimensions that count rows, and elements within a row.
    outer: usize,
    inner: usize,
    /// The number of invocations that share a row.
    lanes: usize,
    operands: SmallVec<[Operand; 8]>,
}

impl RowPlan<'_> {
    /// For each register, how many folds one after another its value needs.
    fn phases(&self) -> Vec<usize> {
        let mut phases = vec![0; self.group.registers];
        for (instruction, level) in self.group.instructions.iter().zip(self.levels) {
            let of = |arg: &Argument| match arg {
                Argument::Register(r) => phases[usize::from(*r)],
                Argument::Number(_) => 0,
            };
            let before = instruction.args.iter().map(of).max().unwrap_or(0);
            phases[usize::from(instruction.to)] = before + usize::from(matches!(level, Level::Fold(_)));
        }
        phases
    }

    /// Marks the elements' instructions that these registers need, and the operands.
    fn needed(&self, of: impl Iterator<Item = u8>) -> Vec<bool> {
        let mut needed = vec![false; self.group.registers];
        of.for_each(|r| needed[usize::from(r)] = true);
        for (instruction, level) in self.group.instructions.iter().zip(self.levels).rev() {
            if needed[usize::from(instruction.to)] && *level == Level::Element {
                for arg in &instruction.args {
                    if let Argument::Register(r) = arg {
                        needed[usize::from(*r)] = true;
                    }
                }
            }
        }
        needed
    }

    /// The functions of the instructions.
    fn steps(&self) -> String {
        let mut text = String::new();
        for (at, (instruction, level)) in self.group.instructions.iter().zip(self.levels).enumerate() {
            if let Level::Fold(_) = level {
                continue;
            }
            let expr = &instruction.expr;
            let names: Vec<String> = expr.inputs.iter().map(|name| format!("{name}_: T")).collect();
            let value = prelude::expression(self.compute, expr.wgsl, expr.inputs);
            let result = if expr.predicate { Value::Bool } else { self.compute };
            text +=
                &format!("fn step{at}({}) -> {} {{ return {value}; }}\n", names.join(", "), result.name());
        }
        text
    }

    /// The statement that computes an instruction which is no fold.
    fn statement(&self, at: usize) -> String {
        let instruction = &self.group.instructions[at];
        let args: Vec<String> = instruction.args.iter().map(argument).collect();
        let result = if instruction.expr.predicate { Value::Bool } else { self.compute };
        let value = result.convert(self.compute, &format!("step{at}({})", args.join(", ")));
        let value = instruction.rounds.map_or(value.clone(), |dtype| rounded(self.compute, dtype, &value));
        format!("let v{} = {value};\n", instruction.to)
    }

    /// The statements that compute the `needed` elements at position `j` of the row.
    fn elements(&self, needed: &[bool], places: &[(String, Option<String>)]) -> String {
        let mut text = String::new();
        for (k, operand) in self.operands.iter().enumerate() {
            if let (true, (row, Some(within))) = (needed[k] && is_read(self.group, k), &places[k]) {
                let value =
                    operand.stored.value().convert(self.compute, &format!("x{k}_get({row} + {within})"));
                text += &format!("    let v{k} = {value};\n");
            }
        }
        for (at, (instruction, level)) in self.group.instructions.iter().zip(self.levels).enumerate() {
            if needed[usize::from(instruction.to)] && *level == Level::Element {
                text += "    ";
                text += &self.statement(at);
            }
        }
        text
    }

    /// The value that changes nothing in a fold, and the expression that combines `acc` and `next`.
    fn algebra(&self, fold: Reduction) -> (&'static str, &'static str) {
        match fold {
            Reduction::Max => ("-inf()", "maximum(acc, next)"),
            Reduction::Min => ("inf()", "minimum(acc, next)"),
            _ => ("T(0)", "acc + next"),
        }
    }
}

fn argument(arg: &Argument) -> String {
    match arg {
        Argument::Register(r) => format!("v{r}"),
        Argument::Number(r) => format!("n{r}"),
    }
}

fn joiner(fold: Reduction) -> &'static str {
    match fold {
        Reduction::Max => "join_most",
        Reduction::Min => "join_least",
        _ => "join_sum",
    }
}

impl ShaderKind for RowPlan<'_> {
    fn name(&self) -> &'static str {
        "row_group"
    }

    fn shader(&self) -> Shader {
        let mut code = Code::new(self.compute);
        for (k, operand) in self.operands.iter().enumerate() {
            code.operand(&format!("x{k}"), operand.stored, operand.written, operand.shared);
        }
        code.push(&self.steps());
        let mut joiners: Vec<&str> = Vec::new();
        for level in self.levels {
            if let Level::Fold(fold) = level
                && !joiners.contains(&joiner(*fold))
            {
                joiners.push(joiner(*fold));
                code.lanes_join(joiner(*fold), self.compute.name(), self.algebra(*fold).1, self.lanes);
            }
        }
        code.main_by_lanes(self.lanes);
        let (rows, length) = (code.word(), code.word());
        // All invocations reach the barriers; one without a row computes another's and writes nothing.
        code.push(&format!(
            "  let rows = {rows};\n  let length = {length};\n  let there = job < rows;\n  let m = job % rows;\n"
        ));
        let outer = code.words(self.outer.max(1) - 1);
        let inner = code.words(self.inner - 1);
        if self.outer > 0 {
            code.push(&Code::split("m", "r", &outer));
        }
        let within = Code::split("j", "c", &inner).replace("\n  ", "\n    ");
        let mut places: Vec<(String, Option<String>)> = Vec::new();
        for (k, operand) in self.operands.iter().enumerate() {
            let offset = code.word();
            let strides = code.words(self.outer);
            let at =
                if strides.is_empty() { offset } else { format!("{offset} + {}", Code::dot("r", &strides)) };
            code.push(&format!("  let x{k}_row = {at};\n"));
            let steps = if operand.still { None } else { Some(code.words(self.inner)) };
            places.push((format!("x{k}_row"), steps.map(|steps| Code::dot("c", &steps))));
        }
        for k in 0..self.group.numbers.len() {
            let text = number(self.compute, &mut code);
            code.push(&format!("  let n{k} = {text};\n"));
        }
        // What rows share is read before anything is written.
        for (k, operand) in self.operands.iter().enumerate() {
            if places[k].1.is_none() && is_read(self.group, k) {
                let value = operand.stored.value().convert(self.compute, &format!("x{k}_get(x{k}_row)"));
                code.push(&format!("  let v{k} = {value};\n"));
            }
        }
        let phases = self.phases();
        let all = || self.group.instructions.iter().zip(self.levels).enumerate();
        let last = phases.iter().copied().max().unwrap_or(0);
        for phase in 0..=last {
            for (at, (instruction, level)) in all() {
                if *level == Level::Row && phases[usize::from(instruction.to)] == phase {
                    code.push("  ");
                    code.push(&self.statement(at));
                }
            }
            // Folds of this phase.
            let folds: Vec<_> = all()
                .filter_map(|(_, (instruction, level))| match level {
                    Level::Fold(fold) if phases[usize::from(instruction.to)] == phase + 1 => {
                        Some((instruction, *fold))
                    }
                    _ => None,
                })
                .collect();
            if folds.is_empty() {
                continue;
            }
            for (instruction, fold) in &folds {
                code.push(&format!("  var acc{} = {};\n", instruction.to, self.algebra(*fold).0));
            }
            let sources = folds.iter().filter_map(|(instruction, _)| match instruction.args.first() {
                Some(Argument::Register(r)) => Some(*r),
                _ => None,
            });
            let needed = self.needed(sources);
            code.push(&format!(
                "  for (var j = lane; j < length; j += {}u) {{\n  {within}{}",
                self.lanes,
                self.elements(&needed, &places)
            ));
            for (instruction, fold) in &folds {
                let (acc, next) = (format!("acc{}", instruction.to), argument(&instruction.args[0]));
                let joined = self.algebra(*fold).1.replace("acc", &acc).replace("next", &next);
                code.push(&format!("    {acc} = {joined};\n"));
            }
            code.push("  }\n");
            for (instruction, fold) in &folds {
                let to = instruction.to;
                let value = format!("{}(acc{to}, me)", joiner(*fold));
                let value = match instruction.args.get(1) {
                    Some(scale) => format!("{value} * {}", argument(scale)),
                    None => value,
                };
                let value =
                    instruction.rounds.map_or(value.clone(), |dtype| rounded(self.compute, dtype, &value));
                code.push(&format!("  let v{to} = {value};\n"));
            }
        }
        // What is written below is read above.
        code.push("  storageBarrier();\n  if (!there) { return; }\n");
        let stored = |k: u8| &self.operands[usize::from(k)];
        let elements: Vec<(u8, u8)> =
            self.group.results.iter().copied().filter(|&(k, _)| !stored(k).still).collect();
        let store = |&(k, from): &(u8, u8), at: &str| {
            let value = self.compute.convert_to_stored(stored(k).stored, &format!("v{from}"));
            format!("    x{k}_set({at}, {value});\n")
        };
        if !elements.is_empty() {
            let needed = self.needed(elements.iter().map(|&(_, from)| from));
            code.push(&format!(
                "  for (var j = lane; j < length; j += {}u) {{\n  {within}{}",
                self.lanes,
                self.elements(&needed, &places)
            ));
            for result in &elements {
                let (row, within) = &places[usize::from(result.0)];
                let within = within.as_deref().unwrap_or("0u");
                code.push(&store(result, &format!("{row} + {within}")));
            }
            code.push("  }\n");
        }
        code.push("  if (lane == 0u) {\n");
        for result in self.group.results.iter().filter(|&&(k, _)| stored(k).still) {
            code.push(&store(result, &places[usize::from(result.0)].0));
        }
        code.push("  }\n}\n");
        code.finish()
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(RowPlan<'_>, |check| {
    use crate::base::DType;
    use crate::base::group::{Instruction, Number};
    use smallvec::smallvec;
    let sub = Expr { key: "sub", inputs: &["input", "other"], wgsl: "input - other", predicate: false };
    let same = Expr { key: "same", inputs: &["x"], wgsl: "x", predicate: false };
    let register = Argument::Register;
    for dtype in [DType::F32, DType::F16, DType::F64] {
        let (stored, compute) =
            (Stored::of(dtype), if dtype == DType::F64 { DType::F64 } else { DType::F32 });
        let rounds = (dtype != compute).then_some(dtype);
        let of = |expr, to, args: &[Argument]| Instruction { expr, compute, rounds, to, args: args.into() };
        // Operands: a matrix, one value a row, the result, the fold.
        let instructions = vec![
            of(same, 4, &[register(0), Argument::Number(0)]),
            of(sub, 5, &[register(4), register(1)]),
            of(sub, 6, &[register(0), register(5)]),
            of(same, 7, &[register(6)]),
        ];
        let group = Group {
            instructions,
            operands: 4,
            registers: 8,
            results: vec![(2, 6), (3, 7)],
            numbers: vec![Number { value: 0, compute, rounds: None }],
        };
        let value = crate::gpu::shader::stored::compute(compute);
        for (fold, lanes, outer, inner) in
            [(Reduction::Sum, 1, 0, 1), (Reduction::Max, 32, 1, 2), (Reduction::Min, GROUP, 3, 1)]
        {
            let levels = [Level::Fold(fold), Level::Row, Level::Element, Level::Fold(Reduction::Sum)];
            let operand = |written, still| Operand { stored, written, shared: false, still };
            let operands = smallvec![
                operand(false, false),
                operand(false, true),
                operand(true, false),
                operand(true, true)
            ];
            check(&RowPlan { group: &group, levels: &levels, compute: value, outer, inner, lanes, operands });
        }
    }
});
