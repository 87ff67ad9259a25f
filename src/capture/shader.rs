//! Groups on the GPU: which kernels one shader can compute together, and the group as a shader.

#[cfg(feature = "gpu")]
use crate::base::group::{Argument as Register, Group, Instruction, Number};
use crate::base::{DType, Reduction};
#[cfg(feature = "gpu")]
use crate::base::{Dims, Result, Scalar, contiguous_strides};
use crate::capture::pointwise::{Argument, Counted, Rows};
use crate::cpu::group::code::Formula;
#[cfg(feature = "gpu")]
use crate::cpu::group::code::{Arg, Code, Reach};
#[cfg(feature = "gpu")]
use crate::gpu::{self, Expr, View};
#[cfg(feature = "gpu")]
use crate::storage::Storage;
#[cfg(feature = "gpu")]
use smallvec::SmallVec;

/// An expression of a shader, and the dtype that it computes in.
#[derive(Clone, Copy)]
pub struct Shader {
    #[cfg(feature = "gpu")]
    pub expr: Expr,
    pub compute: DType,
}

/// More instructions than this take long to compile. Registers and numbers are counted in bytes.
pub(super) const MAX_MEMBERS: usize = 60;

/// How many operands a group can have.
pub(super) fn max_operands() -> usize {
    #[cfg(feature = "gpu")]
    return gpu::info().map_or(0, |info| info.max_operands);
    #[cfg(not(feature = "gpu"))]
    0
}

/// What shaders need to know of a group's instructions.
#[cfg_attr(not(feature = "gpu"), allow(dead_code, reason = "only shaders read it"))]
pub(super) struct Shaders {
    pub of: Vec<Option<Shader>>,
    pub levels: Vec<Level>,
    pub rows: Option<Rows>,
}

/// What an instruction computes.
#[cfg_attr(not(feature = "gpu"), allow(dead_code, reason = "only shaders read it"))]
#[derive(Clone, Copy)]
pub(super) enum Level {
    /// One value for each element.
    Element,
    /// One value for each row.
    Row,
    /// The fold of each row.
    Fold(Reduction),
}

/// What a shader needs to know of numbers: it computes in one type, in which it has all elements.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Language {
    /// The dtype that expressions ask for; copies ask for none.
    compute: Option<DType>,
    /// The dtypes of elements, one bit each.
    elements: u32,
}

/// The types of shaders, the simplest first.
const TYPES: [DType; 4] = [DType::F32, DType::I32, DType::I64, DType::F64];

impl Language {
    /// What a kernel needs; `None` if it is not for shaders of groups.
    pub fn of(counted: &Counted) -> Option<Language> {
        let compute = match counted.formula {
            // The sum of halves is one of singles.
            Formula::Copy if counted.fold.is_some() => Some(match counted.out.dtype {
                DType::F64 => DType::F64,
                _ => DType::F32,
            }),
            Formula::Copy => None,
            Formula::Fold(_) => return None,
            Formula::Row { .. } => {
                let shader = counted.shader.as_ref()?;
                #[cfg(feature = "gpu")]
                if !gpu::has_shader(&shader.expr, shader.compute) {
                    return None;
                }
                Some(shader.compute)
            }
        };
        let dtype = |arg: &Argument| match arg {
            Argument::Memory(access) => Some(access.dtype),
            Argument::Constant(element) => Some(element.dtype),
            Argument::Number(_) => None,
        };
        let dtypes = counted.args.iter().filter_map(dtype).chain([counted.out.dtype]);
        let language = Language { compute, elements: dtypes.fold(0, |bits, dtype| bits | 1 << dtype as u8) };
        language.dtype().map(|_| language)
    }

    /// What both need; `None` if one shader cannot compute both.
    pub fn joined(&self, other: &Language) -> Option<Language> {
        if self.compute.is_some() && other.compute.is_some() && self.compute != other.compute {
            return None;
        }
        let compute = self.compute.or(other.compute);
        let language = Language { compute, elements: self.elements | other.elements };
        language.dtype().map(|_| language)
    }

    /// The type that the shader computes in.
    pub fn dtype(&self) -> Option<DType> {
        let suits = |&dtype: &DType| {
            let is_exact = |element: DType| self.elements >> element as u8 & 1 == 0 || holds(dtype, element);
            self.compute.is_none_or(|compute| compute == dtype)
                && DType::ALL.iter().all(|&element| is_exact(element))
                && is_known(dtype)
        };
        TYPES.into_iter().find(suits)
    }
}

/// True if the shaders of this adapter compute in a dtype.
fn is_known(dtype: DType) -> bool {
    #[cfg(feature = "gpu")]
    return gpu::computes(dtype);
    #[cfg(not(feature = "gpu"))]
    matches!(dtype, DType::F32)
}

/// True if each element of a dtype is a value of this type of shaders.
fn holds(own: DType, element: DType) -> bool {
    use DType::{BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8};
    match own {
        F32 => matches!(element, Bool | U8 | I8 | I16 | F16 | BF16 | F32),
        I32 => matches!(element, Bool | U8 | I8 | I16 | I32),
        I64 => matches!(element, Bool | U8 | I8 | I16 | I32 | I64),
        F64 => matches!(element, Bool | U8 | I8 | I16 | I32 | F16 | BF16 | F32 | F64),
        _ => false,
    }
}

/// The argument itself.
#[cfg(feature = "gpu")]
const COPY: Expr = Expr { key: "same", inputs: &["x"], wgsl: "x", predicate: false };

/// A group as one launch over the memory of `places`: storages, and bytes from their start.
#[cfg(feature = "gpu")]
pub(super) fn compile(
    code: &Code,
    shaders: &Shaders,
    language: &Language,
    places: Vec<(Storage, usize)>,
) -> Option<impl Fn() -> Result<()> + Send + Sync + use<>> {
    let compute = language.dtype()?;
    let register = |at: usize| u8::try_from(at).ok();
    let operands = code.operands.len();
    let (mut numbers, mut values): (Vec<Number>, Vec<Scalar>) = (Vec::new(), Vec::new());
    let mut instructions = Vec::with_capacity(code.instructions.len());
    for (at, (own, shader)) in code.instructions.iter().zip(&shaders.of).enumerate() {
        let expr = match own.formula {
            Formula::Copy => COPY,
            Formula::Row { .. } => shader.as_ref()?.expr,
            Formula::Fold(_) => return None,
        };
        let mut args: SmallVec<[Register; 4]> = SmallVec::new();
        for arg in &own.args {
            let number = match *arg {
                Arg::Value(value) => {
                    args.push(Register::Register(register(operands + value)?));
                    continue;
                }
                Arg::Memory(k) => {
                    args.push(Register::Register(register(k)?));
                    continue;
                }
                Arg::Number(number) => number,
                Arg::Constant(element) => element.converted(compute).number(),
                Arg::Parameter(_) => return None,
            };
            args.push(Register::Number(register(values.len())?));
            numbers.push(Number { value: values.len(), compute, rounds: None });
            values.push(number);
        }
        let rounds = (!expr.predicate && own.dtype != compute).then_some(own.dtype);
        instructions.push(Instruction { expr, compute, rounds, to: register(operands + at)?, args });
    }
    let mut results = Vec::with_capacity(code.stores.len());
    for &(value, k) in &code.stores {
        results.push((register(k)?, register(operands + value)?));
    }
    let registers = operands + instructions.len();
    let group = Group { instructions, operands, registers, results, numbers };
    let shape = code.shape.clone();
    let strides = |reach: &Reach| -> Dims {
        match reach {
            Reach::Dense => contiguous_strides(&shape),
            Reach::Single => smallvec::smallvec![0; shape.len()],
            Reach::Rows(strides) => strides.clone(),
        }
    };
    let layouts =
        code.operands.iter().zip(&places).map(|(operand, (_, start))| {
            (operand.dtype, strides(&operand.reach), start / operand.dtype.size())
        });
    let layouts: Vec<(DType, Dims, usize)> = layouts.collect();
    let levels = shaders.levels.iter().map(|level| match *level {
        Level::Element => gpu::Level::Element,
        Level::Row => gpu::Level::Row,
        Level::Fold(fold) => gpu::Level::Fold(fold),
    });
    let levels: Vec<gpu::Level> = levels.collect();
    let within = |split: &usize, rows: &Rows| shape[*split..].iter().product::<usize>() == rows.length;
    let split = match &shaders.rows {
        Some(rows) => Some((0..shape.len()).find(|split| within(split, rows))?),
        None => None,
    };
    // Without folds and values of rows, rows are dimensions like others.
    let split = split.filter(|_| levels.iter().any(|level| *level != gpu::Level::Element));
    Some(move || {
        let mut views: SmallVec<[View; 8]> = SmallVec::with_capacity(layouts.len());
        for ((dtype, strides, offset), (storage, _)) in layouts.iter().zip(&places) {
            let buffer = storage
                .gpu()
                .ok_or_else(|| crate::base::Error::runtime("a captured tensor has left the GPU"))?;
            views.push(View { buffer, dtype: *dtype, shape: &shape, strides, offset: *offset });
        }
        match split {
            Some(split) => gpu::run_row_group(&group, &levels, &views, split, &values),
            None => gpu::run_group(&group, &views, &values),
        }
    })
}
