//! Lowers a program to groups: chooses the values that are computed for each element, and their registers.

use super::{Node, Program};
use crate::base::group::{Argument, Group, Instruction, Number};
use crate::base::{DType, Error, Fault, Result};
use crate::operator::pointwise::{Pointwise, compute_type};
use smallvec::SmallVec;

/// What lowering depends on.
pub struct Types<'a> {
    /// The dtypes of the operands.
    pub operands: &'a [DType],
    /// For each scalar, true if the kernel reads it from memory.
    pub on_gpu: &'a [bool],
    /// True if results are rounded to their dtype although they are computed in a wider one.
    pub rounds: bool,
}

impl Types<'_> {
    /// The dtype of values that name none: that of the first operand.
    fn lead(&self) -> DType {
        self.operands.first().copied().unwrap_or(DType::F32)
    }
}

/// The dtype of a register that holds elements of `dtype`.
pub fn register_type(dtype: DType) -> DType {
    if dtype == DType::Bool { DType::Bool } else { compute_type(dtype) }
}

impl Program {
    /// The group over the elements of the operands.
    pub fn lower(&self, types: &Types) -> Result<Group<&'static Pointwise>> {
        self.group(types, self.operands, &self.results)
    }

    /// The group that computes the new values of the scalars that the kernel reads from memory.
    pub fn lower_scalars(&self, types: &Types) -> Result<Option<Group<&'static Pointwise>>> {
        let kept = self.kept.iter().filter(|&&(k, _)| types.on_gpu[k]);
        let results: Vec<_> = kept.map(|&(k, value)| (place(types.on_gpu, k), value)).collect();
        if results.is_empty() { Ok(None) } else { self.group(types, 0, &results).map(Some) }
    }

    /// For each value, true if it depends on elements.
    fn over_elements(&self, types: &Types) -> Vec<bool> {
        let mut over: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            over.push(match node {
                Node::Operand(_) => true,
                Node::Scalar(k) => types.on_gpu[*k],
                Node::Number(_) | Node::Constant(_) | Node::Detached(_) => false,
                Node::Apply { args, .. } => args.iter().any(|&arg| over[arg]),
            });
        }
        over
    }

    /// The group that computes `results`. Its operands are the first `tensors` of the program's, then the scalars that
    /// the kernel reads from memory.
    fn group(
        &self,
        types: &Types,
        tensors: usize,
        results: &[(usize, usize)],
    ) -> Result<Group<&'static Pointwise>> {
        let over = self.over_elements(types);
        let mut registers = Registers::new(self, types, tensors, results, &over);
        let mut group = Group {
            instructions: Vec::new(),
            operands: registers.operands,
            registers: 0,
            results: Vec::new(),
            numbers: Vec::new(),
        };
        // True for values of scalars alone.
        let mut single: Vec<bool> = self.nodes.iter().map(|node| matches!(node, Node::Scalar(_))).collect();
        for (at, node) in self.nodes.iter().enumerate() {
            let &Node::Apply { row, args: ref values, dtype, .. } = node else { continue };
            if !over[at] || registers.last_use[at] == 0 {
                continue;
            }
            let dtype = dtype.unwrap_or(types.lead());
            let compute = compute_type(dtype);
            // Functions of the parts of complex numbers have kernels of their own.
            let by_parts = compute.is_complex() && row.forward.of_parts.is_some();
            let Some(element_loop) = row.forward.loops.of(compute).filter(|_| !by_parts) else {
                return Err(Fault::NoKernel { op: row.row.name, dtype: compute }.into());
            };
            single[at] = values.iter().all(|&value| !over[value] || single[value]);
            // Numbers are not rounded, and neither are values of scalars, which stand for numbers.
            let rounds = (types.rounds && !single[at] && dtype != compute).then_some(dtype);
            let mut args: SmallVec<[Argument; 4]> = SmallVec::new();
            for (k, &value) in values.iter().enumerate() {
                args.push(match over[value] {
                    true => Argument::Register(registers.of(value)?),
                    false => {
                        let rounds = rounds.filter(|_| row.rounds_number(k));
                        number(&mut group.numbers, Number { value, compute, rounds })
                    }
                });
            }
            let result = if row.forward.loops.predicate { DType::Bool } else { compute };
            let overlap = match row.forward.loops.fused.and_then(|fused| fused.of(compute)) {
                _ if element_loop.over.is_some() => Overlap::Any,
                Some(_) => Overlap::First,
                None => Overlap::No,
            };
            let to = registers.assign(at, result, &args, overlap);
            let rounds = rounds.filter(|_| result == compute);
            group.instructions.push(Instruction { expr: row, compute, rounds, to, args });
        }
        group.registers = registers.count;
        for &(k, value) in results {
            if !over[value] {
                return Err(Error::runtime(
                    "invalid program: a result does not depend on the elements of a tensor",
                ));
            }
            group.results.push((k as u8, registers.of(value)?));
        }
        order_writes(&mut group)?;
        Ok(group)
    }
}

/// The index of a number; one that is not there yet is added.
fn number(numbers: &mut Vec<Number>, wanted: Number) -> Argument {
    let at = numbers.iter().position(|number| *number == wanted).unwrap_or_else(|| {
        numbers.push(wanted);
        numbers.len() - 1
    });
    Argument::Number(at as u8)
}

/// Puts copies of operands before the writes that would overwrite them.
fn order_writes<E>(group: &mut Group<E>) -> Result<()> {
    let mut ordered = Vec::with_capacity(group.results.len());
    let mut left = std::mem::take(&mut group.results);
    while !left.is_empty() {
        let is_read = |k: u8| left.iter().any(|&(other, from)| other != k && from == k);
        let Some(next) = left.iter().position(|&(k, _)| !is_read(k)) else {
            return Err(Error::runtime("invalid program: tensors are copied to each other in a circle"));
        };
        ordered.push(left.remove(next));
    }
    group.results = ordered;
    Ok(())
}

/// The index of scalar `k` among those that the kernel reads from memory.
fn place(on_gpu: &[bool], k: usize) -> usize {
    on_gpu[..k].iter().filter(|&&on_gpu| on_gpu).count()
}

/// The arguments whose memory a loop may write its result to.
#[derive(Clone, Copy)]
enum Overlap {
    No,
    First,
    Any,
}

/// The registers of values. A register is used again after the last use of its value.
struct Registers<'a> {
    /// The number of registers with operands, and of all registers.
    operands: usize,
    count: usize,
    of: Vec<Option<u8>>,
    types: Vec<DType>,
    /// For each value, the last one that reads it: `usize::MAX` for results, 0 for values that nobody needs.
    last_use: Vec<usize>,
    free: Vec<u8>,
    results: &'a [(usize, usize)],
}

impl<'a> Registers<'a> {
    fn new(
        program: &Program,
        types: &Types,
        tensors: usize,
        results: &'a [(usize, usize)],
        over: &[bool],
    ) -> Registers<'a> {
        let operands = tensors + place(types.on_gpu, types.on_gpu.len());
        let mut register_types: Vec<DType> =
            types.operands[..tensors].iter().map(|&dtype| register_type(dtype)).collect();
        register_types.resize(operands, compute_type(types.lead()));
        let of = |node: &Node| match node {
            Node::Operand(k) if *k < tensors => Some(*k as u8),
            Node::Scalar(k) if types.on_gpu[*k] => Some((tensors + place(types.on_gpu, *k)) as u8),
            _ => None,
        };
        let mut last_use = vec![0; program.nodes.len()];
        results.iter().for_each(|&(_, value)| last_use[value] = usize::MAX);
        for (at, node) in program.nodes.iter().enumerate().rev() {
            if let (Node::Apply { args, .. }, true) = (node, last_use[at] > 0 && over[at]) {
                args.iter().for_each(|&arg| last_use[arg] = last_use[arg].max(at));
            }
        }
        Registers {
            operands,
            count: operands,
            of: program.nodes.iter().map(of).collect(),
            types: register_types,
            last_use,
            free: Vec::new(),
            results,
        }
    }

    fn of(&self, value: usize) -> Result<u8> {
        self.of[value].ok_or_else(|| {
            Error::runtime("invalid program: the new value of a scalar depends on the elements of a tensor")
        })
    }

    /// True if a value that is used after `at` is in the register.
    fn is_read_later(&self, register: u8, at: usize) -> bool {
        self.of.iter().zip(&self.last_use).any(|(&own, &last)| own == Some(register) && last > at)
    }

    /// Chooses the register for value `at`, which has type `result`: the operand that it is written to, a free one, or
    /// a new one. It can be the register of an argument of the same type if the loop may `overlap` that.
    fn assign(&mut self, at: usize, result: DType, args: &[Argument], overlap: Overlap) -> u8 {
        for before in 0..at {
            if let Some(own) = self.of[before]
                && usize::from(own) >= self.operands
                && self.last_use[before] == at
                && !self.free.contains(&own)
            {
                self.free.push(own);
            }
        }
        let fits = |to: u8| {
            let is_read = |args: &[Argument]| args.contains(&Argument::Register(to));
            let may_overlap = match overlap {
                Overlap::Any => true,
                Overlap::First => !is_read(&args[1..]),
                Overlap::No => false,
            };
            !is_read(args) || may_overlap && self.types[usize::from(to)] == result
        };
        let target = self.results.iter().find(|&&(k, value)| {
            value == at && self.types[k] == result && !self.is_read_later(k as u8, at) && fits(k as u8)
        });
        let to = match (target, self.free.iter().rposition(|&to| fits(to))) {
            (Some(&(operand, _)), _) => operand as u8,
            (None, Some(spare)) => self.free.swap_remove(spare),
            (None, None) => {
                self.count += 1;
                self.types.push(result);
                (self.count - 1) as u8
            }
        };
        self.types[usize::from(to)] = result;
        self.of[at] = Some(to);
        to
    }
}
