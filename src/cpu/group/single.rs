//! Groups over one element: 0-d tensors. Values are in cells of the group's own, and each step knows their addresses.

use super::code::{Arg, Code, Element, Formula};
use crate::base::{DType, Scalar};
use crate::cpu::cast::convert::{Conversion, Convert};
use crate::cpu::pointwise::{Each, MAX_IN, splat_scalar};
use std::cell::UnsafeCell;
use std::ptr::null;

/// Room for one element of any dtype.
#[repr(align(16))]
struct Cell(UnsafeCell<[u8; 16]>);

enum Step {
    Loop {
        each: Each,
        to: *mut u8,
        args: [*const u8; MAX_IN],
    },
    Convert {
        convert: Convert,
        from: *const u8,
        to: *mut u8,
    },
    /// Reads a number, and writes it as an argument of a loop.
    Number {
        dtype: DType,
        compute: DType,
        from: *const u8,
        to: *mut u8,
    },
}

/// A transfer between a cell and an operand's memory.
struct Transfer {
    operand: usize,
    size: usize,
    cell: *mut u8,
}

/// A group over one element.
pub struct Single {
    _cells: Box<[Cell]>,
    loads: Vec<Transfer>,
    steps: Vec<Step>,
    stores: Vec<Transfer>,
}

// SAFETY: the pointers are to the group's own cells, which only `run` reaches; its caller sees to it that one thread
// runs at a time.
unsafe impl Send for Single {}
// SAFETY: as above.
unsafe impl Sync for Single {}

impl Single {
    /// Compiles the code of a group; `None` if an expression has no loop.
    pub fn new(code: &Code) -> Option<Single> {
        // Arguments and results of other dtypes are converted in up to two steps.
        let args: usize = code.instructions.iter().map(|instruction| instruction.args.len() + 3).sum();
        let mut maker = Maker { code, free: Vec::new(), steps: Vec::new() };
        let mut cells: Vec<Cell> = Vec::new();
        cells.resize_with(code.operands.len() + args, || Cell(UnsafeCell::new([0; 16])));
        let cells = cells.into_boxed_slice();
        maker.free.extend(cells.iter().rev().map(|cell| cell.0.get().cast::<u8>()));
        let loads: Vec<Transfer> = (code.operands.iter().enumerate())
            .map(|(operand, own)| Some(Transfer { operand, size: own.dtype.size(), cell: maker.cell()? }))
            .collect::<Option<_>>()?;
        let mut values: Vec<*mut u8> = Vec::with_capacity(code.instructions.len());
        for instruction in &code.instructions {
            let place = |arg: &Arg| match *arg {
                Arg::Value(at) => Some(values[at]),
                Arg::Memory(k) => Some(loads[k].cell),
                _ => None,
            };
            let value = match instruction.formula {
                Formula::Copy => {
                    maker.copy(&instruction.args[0], place(&instruction.args[0]), instruction.dtype)?
                }
                Formula::Row { loops, .. } => {
                    let (compute, own) = code.choose_loop(instruction)?;
                    let mut ins = [null(); MAX_IN];
                    for (to, arg) in ins.iter_mut().zip(&instruction.args) {
                        *to = maker.argument(arg, place(arg), compute)?;
                    }
                    let to = maker.cell()?;
                    maker.steps.push(Step::Loop { each: own.each, to, args: ins });
                    let result = if loops.predicate { DType::Bool } else { compute };
                    maker.convert(to, result, instruction.dtype)?
                }
                Formula::Fold(_) => return None,
            };
            values.push(value);
        }
        let stored = |&(value, operand): &(usize, usize)| Transfer {
            operand,
            size: code.operands[operand].dtype.size(),
            cell: values[value],
        };
        let is_read =
            |k: usize| code.instructions.iter().any(|instruction| instruction.args.contains(&Arg::Memory(k)));
        let stores = code.stores.iter().map(stored).collect();
        let loads = loads.into_iter().filter(|load| is_read(load.operand)).collect();
        Some(Single { loads, steps: maker.steps, stores, _cells: cells })
    }

    /// Runs the group over operands at these addresses.
    ///
    /// # Safety
    /// Each address is valid for one element of its operand, and no other thread runs this group.
    pub unsafe fn run(&self, operands: impl Fn(usize) -> *mut u8) {
        // SAFETY: the caller's contract; all other pointers are to cells.
        unsafe {
            for load in &self.loads {
                copy_element(load.size, operands(load.operand), load.cell);
            }
            for step in &self.steps {
                match *step {
                    Step::Loop { each, to, ref args } => each(1, to, args),
                    Step::Convert { convert, from, to } => convert(1, from, to),
                    Step::Number { dtype, compute, from, to } => {
                        splat_scalar(Scalar::read(dtype, from), compute, 1, to);
                    }
                }
            }
            for store in &self.stores {
                copy_element(store.size, store.cell, operands(store.operand));
            }
        }
    }
}

#[inline(always)]
unsafe fn copy_element(size: usize, from: *const u8, to: *mut u8) {
    // SAFETY: the caller's contract. A length that is known is copied by one instruction.
    unsafe {
        match size {
            4 => from.copy_to_nonoverlapping(to, 4),
            8 => from.copy_to_nonoverlapping(to, 8),
            _ => from.copy_to_nonoverlapping(to, size),
        }
    }
}

struct Maker<'a> {
    code: &'a Code,
    free: Vec<*mut u8>,
    steps: Vec<Step>,
}

impl Maker<'_> {
    fn cell(&mut self) -> Option<*mut u8> {
        self.free.pop()
    }

    fn constant(&mut self, element: &Element) -> Option<*mut u8> {
        let cell = self.cell()?;
        // SAFETY: a cell has sixteen bytes.
        unsafe { element.bytes().as_ptr().copy_to_nonoverlapping(cell, 16) };
        Some(cell)
    }

    /// The cell of an argument in the dtype of a loop.
    fn argument(&mut self, arg: &Arg, place: Option<*mut u8>, compute: DType) -> Option<*mut u8> {
        let dtype = match arg {
            Arg::Number(number) => return self.constant(&Element::of_number(*number, compute)),
            Arg::Constant(element) => return self.constant(&element.argument(compute, true)),
            arg => self.code.dtype_of(arg)?,
        };
        let from = place?;
        if dtype == compute {
            return Some(from);
        }
        let to = self.cell()?;
        self.steps.push(Step::Number { dtype, compute, from, to });
        Some(to)
    }

    fn copy(&mut self, arg: &Arg, place: Option<*mut u8>, dtype: DType) -> Option<*mut u8> {
        match arg {
            Arg::Number(number) => self.constant(&Element::new(*number, dtype)),
            Arg::Constant(element) => self.constant(&element.converted(dtype)),
            arg => self.convert(place?, self.code.dtype_of(arg)?, dtype),
        }
    }

    fn convert(&mut self, from: *mut u8, dtype: DType, to_dtype: DType) -> Option<*mut u8> {
        if dtype == to_dtype {
            return Some(from);
        }
        let (first, second) = Conversion::new(dtype, to_dtype).steps();
        let mut at = from;
        for convert in [Some(first), second].into_iter().flatten() {
            let to = self.cell()?;
            self.steps.push(Step::Convert { convert, from: at, to });
            at = to;
        }
        Some(at)
    }
}
