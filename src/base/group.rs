//! A group: pointwise instructions over the elements of several tensors, which run in one pass over memory. The CPU
//! interprets a group, the GPU compiles it to one shader.

use super::DType;
use smallvec::SmallVec;

/// An argument of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Argument {
    Register(u8),
    Number(u8),
}

/// An expression, in the form `E` that a backend reads, and where its arguments and its result are.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Instruction<E> {
    pub expr: E,
    /// The dtype of the computation. Arguments are converted to it.
    pub compute: DType,
    /// The dtype to which the result is rounded, if it is narrower than `compute`.
    pub rounds: Option<DType>,
    /// The result's register.
    pub to: u8,
    pub args: SmallVec<[Argument; 4]>,
}

/// A number that instructions read: a value of the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Number {
    pub value: usize,
    /// The dtype of the instructions that read it.
    pub compute: DType,
    /// The dtype to which it is rounded first.
    pub rounds: Option<DType>,
}

/// Instructions without branches. The operands are in the first registers.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Group<E> {
    pub instructions: Vec<Instruction<E>>,
    /// The number of registers with operands, and of all registers.
    pub operands: usize,
    pub registers: usize,
    /// The operands that are overwritten, and the registers with their new values, in the order of the writes.
    pub results: Vec<(u8, u8)>,
    pub numbers: Vec<Number>,
}

impl<E> Group<E> {
    /// The same instructions with their expressions in another form.
    pub fn map<F>(&self, of: impl Fn(&E) -> F) -> Group<F> {
        let convert = |instruction: &Instruction<E>| Instruction {
            expr: of(&instruction.expr),
            compute: instruction.compute,
            rounds: instruction.rounds,
            to: instruction.to,
            args: instruction.args.clone(),
        };
        Group {
            instructions: self.instructions.iter().map(convert).collect(),
            operands: self.operands,
            registers: self.registers,
            results: self.results.clone(),
            numbers: self.numbers.clone(),
        }
    }
}
