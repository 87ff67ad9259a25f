//! Programs: arithmetic on the elements of several tensors in one pass, and on numbers. Optimizers are
//! written as programs; the CPU interprets them and the GPU compiles them.

use super::{Error, Result};
use smallvec::SmallVec;

/// An operation on elements or numbers. The last four round only once, like the operators of the same name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Op {
    Copy,
    Neg,
    Abs,
    Sign,
    Sqrt,
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Maximum,
    Minimum,
    /// Comparisons return 1 or 0.
    Gt,
    Lt,
    Eq,
    /// `where(condition, a, b)`
    Where,
    /// `a + scale * b`
    AddScaled,
    /// `a.lerp(b, weight)`
    Lerp,
    /// `a + scale * b * c`
    AddCMul,
    /// `a + scale * b / c`
    AddCDiv,
}

/// The greatest number of arguments of an operation.
const ARGS: usize = 4;

impl Op {
    /// The operation with this Python name.
    pub fn named(name: &str) -> Option<Op> {
        use Op::*;
        Some(match name {
            // Programs are not recorded, so there is nothing to detach.
            "copy" | "detach" => Copy,
            "neg" => Neg,
            "abs" => Abs,
            "sign" => Sign,
            "sqrt" => Sqrt,
            "add" => Add,
            "sub" => Sub,
            "mul" => Mul,
            "div" => Div,
            "pow" => Pow,
            "maximum" => Maximum,
            "minimum" => Minimum,
            "gt" => Gt,
            "lt" => Lt,
            "eq" => Eq,
            "where" => Where,
            "add_scaled" => AddScaled,
            "lerp" => Lerp,
            "addcmul" => AddCMul,
            "addcdiv" => AddCDiv,
            _ => return None,
        })
    }

    pub const fn arity(self) -> usize {
        use Op::*;
        match self {
            Copy | Neg | Abs | Sign | Sqrt => 1,
            Add | Sub | Mul | Div | Pow | Maximum | Minimum | Gt | Lt | Eq => 2,
            Where | AddScaled | Lerp => 3,
            AddCMul | AddCDiv => 4,
        }
    }

    /// Applies the operation to numbers.
    pub fn of(self, x: [f64; ARGS]) -> f64 {
        let truth = |yes: bool| f64::from(u8::from(yes));
        let [a, b, c, d] = x;
        match self {
            Op::Copy => a,
            Op::Neg => -a,
            Op::Abs => a.abs(),
            Op::Sign => truth(a > 0.0) - truth(a < 0.0),
            Op::Sqrt => a.sqrt(),
            Op::Add => a + b,
            Op::Sub => a - b,
            Op::Mul => a * b,
            Op::Div => a / b,
            Op::Pow => a.powf(b),
            Op::Maximum => {
                if a.is_nan() || a > b {
                    a
                } else {
                    b
                }
            }
            Op::Minimum => {
                if a.is_nan() || a < b {
                    a
                } else {
                    b
                }
            }
            Op::Gt => truth(a > b),
            Op::Lt => truth(a < b),
            Op::Eq => truth(a == b),
            Op::Where => {
                if a != 0.0 {
                    b
                } else {
                    c
                }
            }
            Op::AddScaled => a + c * b,
            Op::Lerp => {
                if c.abs() < 0.5 {
                    a + c * (b - a)
                } else {
                    b + (c - 1.0) * (b - a)
                }
            }
            Op::AddCMul => a + d * b * c,
            Op::AddCDiv => a + d * b / c,
        }
    }
}

/// A value of a program. Values are numbered in the order in which they are computed.
#[derive(Clone, Debug)]
pub enum Node {
    /// The elements of a tensor.
    Operand(usize),
    /// The only element of a one-element tensor.
    Scalar(usize),
    /// A number that is passed to each run.
    Number(usize),
    Constant(f64),
    /// With `rounded`, numbers are rounded to this scalar's dtype, before and after the operation.
    Apply {
        op: Op,
        args: SmallVec<[usize; ARGS]>,
        rounded: Option<usize>,
    },
}

/// A list of values without branches, and the destinations of some of them.
#[derive(Debug)]
pub struct Program {
    pub nodes: Vec<Node>,
    /// The number of operands, scalars and numbers.
    pub operands: usize,
    pub scalars: usize,
    pub numbers: usize,
    /// Operands that are overwritten, and the new values.
    pub results: Vec<(usize, usize)>,
    /// Scalars that are overwritten, and the new values.
    pub kept: Vec<(usize, usize)>,
}

/// An argument of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    Register(u8),
    Number(u8),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Instruction {
    pub op: Op,
    /// The result's register; of the arguments, only the first may have the same.
    pub to: u8,
    pub args: SmallVec<[Source; ARGS]>,
    /// True if all its elements are equal: it depends on scalars only, not on operands.
    pub single: bool,
}

/// The part of a program that runs over elements. The operands are in the first registers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Code {
    pub instructions: Vec<Instruction>,
    /// The number of registers with operands, and of all registers.
    pub operands: usize,
    pub registers: usize,
    /// The operands that are overwritten, and the registers with their new values.
    pub results: Vec<(u8, u8)>,
    /// The values that are the code's numbers.
    pub numbers: Vec<usize>,
}

impl Code {
    /// True if the fused operations have arguments that the interpreter supports: elements, and a number to
    /// scale them.
    pub fn is_plain(&self) -> bool {
        let is_number = |arg: &Source| matches!(arg, Source::Number(_));
        self.instructions.iter().all(|instruction| match instruction.args.split_last() {
            Some((scale, elements)) if instruction.op as u8 >= Op::AddScaled as u8 => {
                is_number(scale) && !elements.iter().any(is_number)
            }
            _ => true,
        })
    }
}

impl Program {
    /// Checks that values use earlier ones only, and that all indices exist.
    pub fn checked(self) -> Result<Program> {
        let known = |at: usize, node: &Node| match node {
            Node::Operand(k) => *k < self.operands,
            Node::Scalar(k) => *k < self.scalars,
            Node::Number(k) => *k < self.numbers,
            Node::Constant(_) => true,
            Node::Apply { op, args, rounded } => {
                args.len() == op.arity()
                    && args.iter().all(|&arg| arg < at)
                    && rounded.is_none_or(|k| k < self.scalars)
            }
        };
        let written = self.results.iter().all(|&(k, value)| k < self.operands && value < self.nodes.len());
        let kept = self.kept.iter().all(|&(k, value)| k < self.scalars && value < self.nodes.len());
        let sound = self.nodes.iter().enumerate().all(|(at, node)| known(at, node));
        // Registers and numbers are stored as bytes.
        if sound && written && kept && self.nodes.len() <= 200 {
            return Ok(self);
        }
        Err(Error::runtime(
            "invalid program: it uses a value, tensor or number that does not exist, or has more than 200 values",
        ))
    }

    /// For each value, true if it depends on elements. `on_gpu` is true for the scalars that the kernel reads
    /// from memory.
    fn over_elements(&self, on_gpu: &[bool]) -> Vec<bool> {
        let mut over = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            over.push(match node {
                Node::Operand(_) => true,
                Node::Scalar(k) => on_gpu[*k],
                Node::Number(_) | Node::Constant(_) => false,
                Node::Apply { args, .. } => args.iter().any(|&arg| over[arg]),
            });
        }
        over
    }

    /// The code that computes `results`. Its operands are the first `tensors` of the program's, then the
    /// scalars that the kernel reads from memory.
    fn code(&self, on_gpu: &[bool], tensors: usize, results: &[(usize, usize)]) -> Result<Code> {
        const NOWHERE: u8 = u8::MAX;
        let over = self.over_elements(on_gpu);
        let mut operand = vec![NOWHERE; self.nodes.len()];
        let operands = tensors + place(on_gpu, on_gpu.len());
        let mut last_use = vec![0; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            match node {
                Node::Operand(k) if *k < tensors => operand[at] = *k as u8,
                Node::Scalar(k) if over[at] => operand[at] = (tensors + place(on_gpu, *k)) as u8,
                _ => {}
            }
        }
        // Only values that lead to a result are computed.
        let mut wanted = vec![false; self.nodes.len()];
        results.iter().for_each(|&(_, value)| wanted[value] = true);
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if let (Node::Apply { args, .. }, true) = (node, wanted[at]) {
                args.iter().for_each(|&arg| {
                    wanted[arg] = true;
                    last_use[arg] = last_use[arg].max(at);
                });
            }
        }
        results.iter().for_each(|&(_, value)| last_use[value] = usize::MAX);
        // An operand is still read if any of the values that stand for it is.
        let still_read = |register: u8, at: usize| {
            operand.iter().zip(&last_use).any(|(&own, &last)| own == register && last > at)
        };

        let mut code = Code {
            instructions: Vec::new(),
            operands,
            registers: operands,
            results: Vec::new(),
            numbers: Vec::new(),
        };
        let mut register = operand.clone();
        let mut single: Vec<bool> = self.nodes.iter().map(|node| matches!(node, Node::Scalar(_))).collect();
        let mut free: Vec<u8> = Vec::new();
        let lost = |arg: &Source| matches!(arg, Source::Register(NOWHERE));
        for (at, node) in self.nodes.iter().enumerate() {
            let (Node::Apply { op, args: inputs, .. }, true, true) = (node, over[at], wanted[at]) else {
                continue;
            };
            let args: SmallVec<[Source; ARGS]> =
                inputs.iter().map(|&arg| source(&mut code, &over, &register, arg)).collect();
            if args.iter().any(lost) {
                return Err(Error::runtime(
                    "invalid program: the new value of a scalar depends on the elements of a tensor",
                ));
            }
            for (before, own) in register.iter().enumerate().take(at) {
                if *own != NOWHERE && usize::from(*own) >= operands && last_use[before] == at {
                    free.push(*own);
                }
            }
            // Loops can write over their first argument, but not over another one.
            let read = |to: u8| args.iter().skip(1).any(|arg| *arg == Source::Register(to));
            let target = results.iter().map(|&(k, value)| (k as u8, value));
            let target = target.filter(|&(k, value)| value == at && !still_read(k, at) && !read(k));
            let spare = free.iter().rposition(|&to| !read(to));
            let to = match (target.map(|(k, _)| k).next(), spare) {
                (Some(operand), _) => operand,
                (None, Some(spare)) => free.swap_remove(spare),
                (None, None) => {
                    code.registers += 1;
                    (code.registers - 1) as u8
                }
            };
            register[at] = to;
            single[at] = inputs.iter().all(|&arg| !over[arg] || single[arg]);
            code.instructions.push(Instruction { op: *op, to, args, single: single[at] });
        }
        for &(k, value) in results {
            if !matches!(self.nodes[value], Node::Apply { .. }) || !over[value] {
                return Err(Error::runtime(
                    "invalid program: a result does not depend on the elements of a tensor",
                ));
            }
            code.results.push((k as u8, register[value]));
        }
        Ok(code)
    }

    /// The code over the elements of the operands.
    pub fn lower(&self, on_gpu: &[bool]) -> Result<Code> {
        self.code(on_gpu, self.operands, &self.results)
    }

    /// The code that computes the new values of the scalars that the kernel reads from memory.
    pub fn lower_scalars(&self, on_gpu: &[bool]) -> Result<Option<Code>> {
        let kept = self.kept.iter().filter(|&&(k, _)| on_gpu[k]);
        let results: Vec<_> = kept.map(|&(k, value)| (place(on_gpu, k), value)).collect();
        if results.is_empty() { Ok(None) } else { self.code(on_gpu, 0, &results).map(Some) }
    }

    /// Computes all values that are numbers; other entries of `values` are meaningless. `scalars(k)` is the
    /// value of scalar `k`, and `round(k, x)` rounds `x` to its dtype.
    pub fn numbers(
        &self,
        on_gpu: &[bool],
        given: &[f64],
        scalars: impl Fn(usize) -> f64,
        round: impl Fn(usize, f64) -> f64,
        values: &mut Vec<f64>,
    ) {
        values.clear();
        for node in &self.nodes {
            let value = match node {
                Node::Operand(_) => f64::NAN,
                Node::Scalar(k) => {
                    if on_gpu[*k] {
                        f64::NAN
                    } else {
                        scalars(*k)
                    }
                }
                Node::Number(k) => given[*k],
                Node::Constant(value) => *value,
                Node::Apply { op, args, rounded } => {
                    let mut x = [0.0; ARGS];
                    let fit = |x| rounded.map_or(x, |k| round(k, x));
                    args.iter().zip(&mut x).for_each(|(&arg, x)| *x = fit(values[arg]));
                    fit(op.of(x))
                }
            };
            values.push(value);
        }
    }
}

/// The index of scalar `k` among those that the kernel reads from memory.
fn place(on_gpu: &[bool], k: usize) -> usize {
    on_gpu[..k].iter().filter(|&&on_gpu| on_gpu).count()
}

/// The source of an argument; a new number is added to the code's numbers.
fn source(code: &mut Code, over: &[bool], register: &[u8], arg: usize) -> Source {
    if over[arg] {
        return Source::Register(register[arg]);
    }
    let at = code.numbers.iter().position(|&number| number == arg).unwrap_or_else(|| {
        code.numbers.push(arg);
        code.numbers.len() - 1
    });
    Source::Number(at as u8)
}
