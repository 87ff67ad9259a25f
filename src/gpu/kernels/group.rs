//! Groups of pointwise instructions: one kernel reads several tensors, computes, and writes several; one or four elements
//! per invocation.

use crate::base::group::{Argument, Group};
use crate::base::{DType, Error, Fault, Result, Scalar, contiguous_strides};
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::View;
use crate::gpu::device::{Gpu, gpu};
use crate::gpu::kernels::pointwise::Expr;
use crate::gpu::kernels::pointwise::code::{number, plan_strides, push_number};
use crate::gpu::launch::index_space::{Space, Words, check, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::prelude;
use crate::gpu::shader::stored::{Stored, Value, compute as compute_value};
use smallvec::SmallVec;

/// Returns true if there is a shader for an expression over elements of type `compute`.
pub fn has_shader(expr: &Expr, compute: DType) -> bool {
    !compute.is_complex() && prelude::knows(compute_value(compute), expr.wgsl)
}

/// Runs `group` over operands of one shape. Outputs overlap nothing else.
pub fn run_group(group: &Group<Expr>, operands: &[View<'_>], numbers: &[Scalar]) -> Result<()> {
    let gpu = gpu()?;
    let [first, ..] = operands else { return Ok(()) };
    let most = gpu.info.max_operands;
    if operands.len() > most {
        return Err(Error::runtime(format!(
            "a group on this GPU takes at most {most} tensors, but this one has {}",
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
    let (rank, last) = (space.rank(), space.rank() - 1);
    let still = |k: usize| space.strides[k][last] == 0;
    let shared = |k: usize| {
        operands.iter().enumerate().any(|(other, view)| {
            other != k && (written(other) || written(k)) && view.buffer.same(operands[k].buffer)
        })
    };
    let even = |k: usize| {
        let outer = space.strides[k][..last].iter().all(|stride| stride.is_multiple_of(4));
        space.strides[k][last] == 1 && outer && operands[k].offset.is_multiple_of(4)
    };
    let quads = (last == 0 || space.dims[last].is_multiple_of(4))
        && (0..operands.len()).all(|k| even(k) || (still(k) && !written(k)));
    let plan = Plan {
        group,
        compute,
        rank,
        quads,
        items: 1,
        operands: (0..operands.len())
            .map(|k| Operand {
                stored: Stored::of(operands[k].dtype),
                written: written(k),
                shared: shared(k),
                still: still(k),
            })
            .collect(),
    };
    let mut words = Words::new();
    numbers.iter().for_each(|&x| push_number(plan.compute, x, &mut words));
    let start = words.len();
    words.push(first.numel() as u32);
    space.push_dims(&mut words);
    if quads && rank > 1 {
        // The last dimension is counted in quads.
        words[start + last] /= 4;
    }
    for (k, view) in operands.iter().enumerate() {
        words.push(view.offset as u32);
        words.extend(space.strides[k][..plan_strides(rank, quads)].iter().map(|&stride| stride as u32));
    }
    let buffers: SmallVec<[&Buffer; 8]> = operands.iter().map(|view| view.buffer).collect();
    let items = if quads { first.numel().div_ceil(4) } else { first.numel() };
    gpu.launch(&plan, &buffers, &words, groups(items, GROUP))
}

/// Runs `group` over several items with the same numbers, in as few launches as their operands allow. Each item has as many
/// operands, and items may overlap only if they run one after another.
pub fn run_group_over(
    group: &Group<Expr>,
    items: &[SmallVec<[View<'_>; 8]>],
    numbers: &[Scalar],
) -> Result<()> {
    let gpu = gpu()?;
    let mut rest = items;
    while let Some(first) = rest.first() {
        let most = (gpu.info.max_operands / first.len().max(1)).min(MAX_ITEMS);
        let mut count = 0;
        while count < rest.len().min(most) && joins(group, &rest[..count], &rest[count]) {
            count += 1;
        }
        if count < 2 {
            run_group(group, first, numbers)?;
            rest = &rest[1..];
        } else {
            run_items(gpu, group, &rest[..count], numbers)?;
            rest = &rest[count..];
        }
    }
    Ok(())
}

/// More items take long to compile.
const MAX_ITEMS: usize = 16;

/// True if an item is dense and of the dtypes of the others, and has memory of its own.
fn joins(group: &Group<Expr>, others: &[SmallVec<[View<'_>; 8]>], item: &[View<'_>]) -> bool {
    let is_dense =
        |view: &View<'_>| view.offset.is_multiple_of(4) && *view.strides == *contiguous_strides(view.shape);
    let is_large = item.first().is_some_and(|view| view.numel() > MAX_TOGETHER);
    let written = |k: usize| group.results.iter().any(|&(operand, _)| usize::from(operand) == k);
    let meets = |(k, view): (usize, &View<'_>)| {
        let in_items = others.iter().flat_map(|other| other.iter().enumerate());
        let beside = item.iter().enumerate().filter(|(other, _)| *other != k);
        in_items
            .chain(beside)
            .any(|(other, own)| (written(k) || written(other)) && own.buffer.same(view.buffer))
    };
    let is_like = |other: &SmallVec<[View<'_>; 8]>| {
        other.len() == item.len() && other.iter().zip(item).all(|(a, b)| a.dtype == b.dtype)
    };
    item.iter().all(is_dense)
        && item.iter().all(|view| view.numel() > 0 && view.shape == item[0].shape)
        && !is_large
        && others.first().is_none_or(is_like)
        && !item.iter().enumerate().any(meets)
}

/// Items of more elements keep a GPU busy by themselves.
const MAX_TOGETHER: usize = 1 << 22;

fn run_items(
    gpu: &Gpu,
    group: &Group<Expr>,
    items: &[SmallVec<[View<'_>; 8]>],
    numbers: &[Scalar],
) -> Result<()> {
    let compute = compute_of(group)?;
    let written = |k: usize| group.results.iter().any(|&(operand, _)| usize::from(operand) == k);
    let kind = |(k, view): (usize, &View<'_>)| Operand {
        stored: Stored::of(view.dtype),
        written: written(k),
        shared: false,
        still: false,
    };
    let operands = items[0].iter().enumerate().map(kind).collect();
    let plan = Plan { group, compute, rank: 1, quads: true, operands, items: items.len() };
    let mut words = Words::new();
    numbers.iter().for_each(|&x| push_number(compute, x, &mut words));
    let (mut buffers, mut quads): (SmallVec<[&Buffer; 24]>, usize) = (SmallVec::new(), 0);
    for item in items {
        words.push(item[0].numel() as u32);
        quads += item[0].numel().div_ceil(4);
        for view in item {
            check(view)?;
            gpu.supports("group", view.dtype)?;
            words.push(view.offset as u32);
            buffers.push(view.buffer);
        }
    }
    gpu.launch(&plan, &buffers, &words, groups(quads, GROUP))
}

/// The type that all instructions of the group compute in: a shader has one.
pub(in crate::gpu) fn compute_of(group: &Group<Expr>) -> Result<Value> {
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
pub(in crate::gpu) struct Operand {
    pub stored: Stored,
    pub written: bool,
    /// True if its memory is bound twice, and written.
    pub shared: bool,
    /// True if all elements along the last dimension are the same one.
    pub still: bool,
}

#[derive(Hash)]
struct Plan<'a> {
    group: &'a Group<Expr>,
    compute: Value,
    rank: usize,
    /// True if an invocation computes four elements.
    quads: bool,
    /// The operands of an item.
    operands: SmallVec<[Operand; 8]>,
    /// The number of items, which are dense if there are several.
    items: usize,
}

impl Plan<'_> {
    /// Returns the function for one element: its results from the operands and the numbers.
    fn element(&self) -> String {
        let results = &self.group.results;
        let fields: String = (0..results.len()).map(|at| format!(" r{at}: T,")).collect();
        let read = (0..self.operands.len()).filter(|&k| is_read(self.group, k));
        let mut parameters: Vec<String> = read.map(|k| format!("given{k}: T")).collect();
        parameters.extend((0..self.group.numbers.len()).map(|k| format!("n{k}: T")));
        let mut text = format!("struct Results {{{fields} }}\n");
        let mut body = String::new();
        for k in 0..self.group.registers {
            let first = if is_read(self.group, k) { format!("given{k}") } else { "T(0)".to_owned() };
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
            let value =
                instruction.rounds.map_or(value.clone(), |dtype| rounded(self.compute, dtype, &value));
            body += &format!("  v{} = {value};\n", instruction.to);
        }
        let values: Vec<String> = results.iter().map(|(_, from)| format!("v{from}")).collect();
        text + &format!(
            "fn element({}) -> Results {{\n{body}  return Results({});\n}}\n",
            parameters.join(", "),
            values.join(", ")
        )
    }
}

/// Rounds a value to a dtype that it would be stored as between operators.
pub(in crate::gpu) fn rounded(compute: Value, dtype: DType, value: &str) -> String {
    match Stored::of(dtype) {
        Stored::F16 => format!("widen_f16(narrow_f16({value}))"),
        Stored::BF16 => format!("bitcast<f32>(narrow_bf16({value}) << 16u)"),
        stored => {
            let whole = compute.convert_to_stored(stored, value);
            let kept = match stored {
                Stored::U8 => format!("({whole} & 0xff)"),
                Stored::I8 => format!("extractBits({whole}, 0u, 8u)"),
                Stored::I16 => format!("extractBits({whole}, 0u, 16u)"),
                _ => whole,
            };
            stored.value().convert(compute, &kept)
        }
    }
}

impl Plan<'_> {
    fn is_quad(&self, operand: &Operand) -> bool {
        self.quads && !operand.still
    }

    /// Adds the statements that compute element or quad `i` of an item, whose operands are called `PREFIX0`, `PREFIX1`...
    fn compute_item(&self, code: &mut Code, prefix: &str) {
        let lanes = if self.quads { 4 } else { 1 };
        let mut arguments: Vec<Vec<String>> = vec![Vec::new(); lanes];
        for (k, operand) in self.operands.iter().enumerate() {
            let (name, stored) = (format!("{prefix}{k}"), operand.stored);
            let offset = code.word();
            let strides = code.words(plan_strides(self.rank, self.quads));
            let at =
                if strides.is_empty() { offset } else { format!("{offset} + {}", Code::dot("c", &strides)) };
            let value = |text: &str| stored.value().convert(self.compute, text);
            let read = is_read(self.group, k);
            if self.is_quad(operand) {
                let last = self.rank - 1;
                code.push(&format!("  let {name}_quad = ({at}) / 4u + c{last};\n"));
                if read {
                    code.push(&stored.quad_load(&name, if last == 0 { "n - 4u * i - 1u" } else { "3u" }));
                    for (lane, list) in arguments.iter_mut().enumerate() {
                        list.push(value(&format!("{name}_{lane}")));
                    }
                }
                continue;
            }
            code.push(&format!("  let {name}_at = {at};\n"));
            if read {
                let one = value(&format!("{name}_get({name}_at)"));
                code.push(&format!("  let {name}_n = {one};\n"));
                arguments.iter_mut().for_each(|list| list.push(format!("{name}_n")));
            }
        }
        for (lane, list) in arguments.iter_mut().enumerate() {
            list.extend((0..self.group.numbers.len()).map(|k| format!("n{k}")));
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
                code.push(&stored.quad_store(&format!("{prefix}{k}")));
            } else {
                code.push(&format!("  {prefix}{k}_set({prefix}{k}_at, r_0);\n"));
            }
            code.push("  }\n");
        }
    }
}

/// True if an instruction or a result reads this register as it is at first.
pub(in crate::gpu) fn is_read(group: &Group<Expr>, k: usize) -> bool {
    let reads = |arg: &Argument| matches!(arg, Argument::Register(r) if usize::from(*r) == k);
    k < group.operands
        && (group.instructions.iter().any(|instruction| instruction.args.iter().any(reads))
            || group.results.iter().any(|&(_, from)| usize::from(from) == k))
}

impl ShaderKind for Plan<'_> {
    fn name(&self) -> &'static str {
        "group"
    }

    fn shader(&self) -> Shader {
        let element = self.element();
        let mut code = Code::new(self.compute);
        let prefix = |item: usize| if self.items == 1 { "x".to_owned() } else { format!("x{item}_") };
        for item in 0..self.items {
            for (k, operand) in self.operands.iter().enumerate() {
                let (name, stored) = (format!("{}{k}", prefix(item)), operand.stored);
                if self.is_quad(operand) {
                    code.bind(&name, stored.quad(), operand.written || operand.shared);
                } else {
                    code.operand(&name, stored, operand.written, operand.shared);
                }
            }
        }
        code.push(&element);
        code.main_by_item();
        for k in 0..self.group.numbers.len() {
            let text = number(self.compute, &mut code);
            code.push(&format!("  let n{k} = {text};\n"));
        }
        if self.items == 1 {
            code.enter(self.rank, self.quads);
            self.compute_item(&mut code, "x");
        } else {
            code.push("  var rest = i;\n");
            for item in 0..self.items {
                let n = code.word();
                code.push(&format!(
                    "  {{\n  let n = {n};\n  if (rest < (n + 3u) / 4u) {{\n  let i = rest;\n  let c0 = i;\n  \
                     let left = n - 4u * i;\n"
                ));
                self.compute_item(&mut code, &prefix(item));
                code.push("  return;\n  }\n  rest -= (n + 3u) / 4u;\n  }\n");
            }
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
        for (rank, quads, still) in
            [(1, true, false), (1, false, true), (4, false, false), (3, true, false), (2, true, true)]
        {
            let operand = |written, still| Operand { stored, written, shared: true, still };
            let operands = smallvec![operand(true, false), operand(!still, still)];
            let results = if still { vec![(0, 0)] } else { group.results.clone() };
            let group = Group { results, ..group.clone() };
            check(&Plan { group: &group, compute: value, rank, quads, operands, items: 1 });
        }
        for items in [2, 5] {
            let operand = || Operand { stored, written: true, shared: false, still: false };
            let operands = smallvec![operand(), operand()];
            check(&Plan { group: &group, compute: value, rank: 1, quads: true, operands, items });
        }
    }
});
