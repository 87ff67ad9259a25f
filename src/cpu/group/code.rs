//! The code of a captured group: which value is computed from which, and what is stored. It is compiled to steps over
//! tiles, or to steps over one element.

use crate::base::group::{Argument, Group};
use crate::base::{DType, Dims, Scalar};
use crate::cpu::cast::convert::Conversion;
use crate::cpu::cast::tile::Tile;
use crate::cpu::pointwise::narrow::Typed;
use crate::cpu::pointwise::{Loop, Loops, MAX_IN, powers, splat_scalar};
use crate::cpu::reduce::RowFold;
use smallvec::SmallVec;
use std::ptr::null;

/// One element of a dtype, as bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(align(16))]
pub struct Element {
    bytes: [u8; 16],
    pub dtype: DType,
}

impl Element {
    /// A number as an element of a tensor.
    pub fn new(number: Scalar, dtype: DType) -> Element {
        let mut element = Element { bytes: [0; 16], dtype };
        // SAFETY: no element has more than sixteen bytes.
        unsafe { number.write(dtype, element.bytes.as_mut_ptr()) };
        element
    }

    /// Copies an element from memory.
    ///
    /// # Safety
    /// `at` points to an element of `dtype`.
    pub unsafe fn read(dtype: DType, at: *const u8) -> Element {
        let mut element = Element { bytes: [0; 16], dtype };
        // SAFETY: the caller's contract; no element has more than sixteen bytes.
        unsafe { element.bytes.as_mut_ptr().copy_from_nonoverlapping(at, dtype.size()) };
        element
    }

    pub fn bytes(&self) -> &[u8; 16] {
        &self.bytes
    }

    /// The element as a number.
    pub fn number(&self) -> Scalar {
        // SAFETY: the bytes are an element of this dtype.
        unsafe { Scalar::read(self.dtype, self.bytes.as_ptr()) }
    }

    /// The element in another dtype, converted as elements of tensors are.
    pub fn converted(&self, dtype: DType) -> Element {
        if self.dtype == dtype {
            return *self;
        }
        let mut to = Element { bytes: [0; 16], dtype };
        // SAFETY: both have room for one element of any dtype.
        unsafe {
            Conversion::new(self.dtype, dtype).run(
                1,
                self.bytes.as_ptr(),
                to.bytes.as_mut_ptr(),
                &mut Tile::empty(),
            );
        }
        to
    }

    /// The element as an argument of a loop over `compute`. Kernels read an operand of one value as a number, which is
    /// not always the same as a conversion.
    pub fn argument(&self, compute: DType, one_value: bool) -> Element {
        match self.dtype == compute {
            true => *self,
            false if one_value => Element::of_number(self.number(), compute),
            false => self.converted(compute),
        }
    }

    /// A number as an argument of a loop over `compute`.
    pub fn of_number(number: Scalar, compute: DType) -> Element {
        let mut element = Element { bytes: [0; 16], dtype: compute };
        // SAFETY: there is aligned room for one element of any dtype.
        unsafe { splat_scalar(number, compute, 1, element.bytes.as_mut_ptr()) };
        element
    }
}

/// Where an instruction finds an argument.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Arg {
    /// The result of an earlier instruction.
    Value(usize),
    /// The elements of an operand, as they were before the group.
    Memory(usize),
    Number(Scalar),
    /// A number that each run is given.
    Parameter(usize),
    /// A tensor of elements that are all the same.
    Constant(Element),
}

/// What an instruction computes.
#[derive(Clone, Copy)]
pub enum Formula {
    /// An expression over elements of type `compute`.
    Row { loops: &'static Loops, compute: DType },
    /// The argument itself, in the dtype of the result.
    Copy,
    /// One value for each row of the argument's elements, which is stored, and which no instruction reads.
    Fold(RowFold),
}

/// An instruction, and the dtype of the tensor that an operator would have stored its result in.
#[derive(Clone)]
pub struct Instruction {
    pub formula: Formula,
    pub args: SmallVec<[Arg; 4]>,
    pub dtype: DType,
}

/// The elements of an operand in the order of the group's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reach {
    /// One after another.
    Dense,
    /// One for all.
    Single,
    /// By these strides, in elements; rows are dense, or one element each.
    Rows(Dims),
}

/// An operand in memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operand {
    pub dtype: DType,
    pub reach: Reach,
}

/// The code of a group.
pub struct Code {
    /// The sizes of the dimensions that elements are counted by.
    pub shape: Dims,
    pub operands: Vec<Operand>,
    pub instructions: Vec<Instruction>,
    /// Instructions, and the operands that keep their results at the end: dense ones, unless it is a fold.
    pub stores: Vec<(usize, usize)>,
}

impl Code {
    pub fn numel(&self) -> usize {
        self.shape.iter().product()
    }

    /// The dtype of an argument; `None` for a number.
    pub fn dtype_of(&self, arg: &Arg) -> Option<DType> {
        match *arg {
            Arg::Value(at) => Some(self.instructions[at].dtype),
            Arg::Memory(k) => Some(self.operands[k].dtype),
            Arg::Number(_) | Arg::Parameter(_) => None,
            Arg::Constant(element) => Some(element.dtype),
        }
    }

    /// The loop of an instruction and the dtype that it computes in: the same that a kernel takes.
    pub fn choose_loop(&self, instruction: &Instruction) -> Option<(DType, &'static Loop)> {
        let Formula::Row { loops, compute } = instruction.formula else { return None };
        if compute == DType::I64
            && let Some(narrow) = loops.narrow
        {
            let typed = |arg: &Arg| match (self.dtype_of(arg), arg) {
                (Some(dtype), _) => Typed::Elements(dtype),
                (None, &Arg::Number(number)) => Typed::Number(number),
                (None, _) => Typed::Number(Scalar::Float(f64::NAN)),
            };
            let args: SmallVec<[Typed; 4]> = instruction.args.iter().map(typed).collect();
            if let Some(own) = narrow.for_types(loops.predicate, instruction.dtype, &args) {
                return Some(own);
            }
        }
        let power = match instruction.args.last() {
            Some(&Arg::Number(number)) if !loops.powers.is_empty() => powers::choose(loops, number, compute),
            _ => None,
        };
        power.or_else(|| loops.of(compute)).map(|own| (compute, own))
    }
}

impl Code {
    /// The code of an optimizer's group over dense operands of these dtypes; `None` if the choice of a loop would depend
    /// on a number.
    pub fn of_group(group: &Group<&'static Loops>, dtypes: &[DType], n: usize) -> Option<Code> {
        let dense = |&dtype: &DType| Operand { dtype, reach: Reach::Dense };
        let mut code = Code {
            shape: smallvec::smallvec![n],
            operands: dtypes.iter().map(dense).collect(),
            instructions: Vec::new(),
            stores: Vec::new(),
        };
        let mut registers: Vec<Arg> = (0..group.registers).map(Arg::Memory).collect();
        for instruction in &group.instructions {
            let (loops, compute) = (instruction.expr, instruction.compute);
            let arg = |arg: &Argument| match *arg {
                Argument::Register(at) => registers[usize::from(at)],
                Argument::Number(at) => Arg::Parameter(at.into()),
            };
            let args: SmallVec<[Arg; 4]> = instruction.args.iter().map(arg).collect();
            let chooses = !loops.powers.is_empty() && matches!(args.last(), Some(Arg::Parameter(_)));
            if chooses || compute == DType::I64 {
                return None;
            }
            let result = if loops.predicate { DType::Bool } else { compute };
            let dtype = instruction.rounds.unwrap_or(result);
            registers[usize::from(instruction.to)] = Arg::Value(code.instructions.len());
            code.instructions.push(Instruction { formula: Formula::Row { loops, compute }, args, dtype });
        }
        for &(k, from) in &group.results {
            let (k, arg) = (usize::from(k), registers[usize::from(from)]);
            let value = match arg {
                Arg::Value(value) if code.instructions[value].dtype == dtypes[k] => value,
                _ => {
                    let args = smallvec::smallvec![arg];
                    code.instructions.push(Instruction { formula: Formula::Copy, args, dtype: dtypes[k] });
                    code.instructions.len() - 1
                }
            };
            code.stores.push((value, k));
        }
        Some(code)
    }
}

/// Computes an instruction over constants, as over tensors of one element; `None` if it has other arguments.
pub fn fold(instruction: &Instruction) -> Option<Element> {
    let known = |arg: &Arg| matches!(arg, Arg::Number(_) | Arg::Constant(_));
    if !instruction.args.iter().all(known) {
        return None;
    }
    if let (Formula::Copy, Some(Arg::Constant(element))) = (instruction.formula, instruction.args.first()) {
        return Some(element.converted(instruction.dtype));
    }
    let Formula::Row { loops, .. } = instruction.formula else { return None };
    let code =
        Code { shape: Dims::new(), operands: Vec::new(), instructions: Vec::new(), stores: Vec::new() };
    let (compute, own) = code.choose_loop(instruction)?;
    let argument = |arg: &Arg| match arg {
        Arg::Constant(element) => element.argument(compute, true),
        Arg::Number(number) => Element::of_number(*number, compute),
        _ => Element { bytes: [0; 16], dtype: compute },
    };
    let args: SmallVec<[Element; 4]> = instruction.args.iter().map(argument).collect();
    let mut ins = [null(); MAX_IN];
    ins.iter_mut().zip(&args).for_each(|(to, arg)| *to = arg.bytes.as_ptr());
    let result = if loops.predicate { DType::Bool } else { compute };
    let mut to = Element { bytes: [0; 16], dtype: result };
    // SAFETY: each argument and the result is one aligned element of the loop's types.
    unsafe { (own.each)(1, to.bytes.as_mut_ptr(), &ins) };
    Some(to.converted(instruction.dtype))
}
