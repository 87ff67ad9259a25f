//! All errors, as one enum; `python/errors.rs` turns it into Python exceptions.

use super::{DType, Device, Guidance};
use std::any::Any;

pub type Result<T> = std::result::Result<T, Error>;

/// A boxed [`Fault`], so that a `Result` is small.
#[derive(Debug)]
pub struct Error(Box<Fault>);

/// The kinds of errors, with PyTorch's messages.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error(
        "The size of tensor a ({a}) must match the size of tensor b ({b}) at non-singleton dimension {dim}"
    )]
    Broadcast { a: usize, b: usize, dim: usize },
    #[error("Dimension out of range (expected to be in range of [{low}, {high}], but got {dim})")]
    DimRange { dim: i64, low: i64, high: i64 },
    #[error("shape '{shape}' is invalid for input of size {numel}")]
    InvalidShape { shape: String, numel: usize },
    #[error("\"{op}\" not implemented for '{}'", dtype.scalar_name())]
    NoKernel { op: &'static str, dtype: DType },
    /// No kernel for a dtype, if the kernel has the name of its operator.
    #[error("\"{op}_cpu\" not implemented for '{}'", dtype.scalar_name())]
    NoKernelOf { op: &'static str, dtype: DType },
    /// Two dtypes without a common one.
    #[error("{}", unpromoted(*.a, *.b))]
    Promotion { a: DType, b: DType },
    /// An operator that does not support complex numbers.
    #[error("{0} is not supported for complex types")]
    NoComplex(&'static str),
    /// A TypeError of an operator that compares its operands, for complex numbers.
    #[error("{0}")]
    Unordered(String),
    /// The operator has no GPU kernel for this dtype; nothing is moved to the CPU implicitly.
    #[error(
        "\"{}\" is not implemented on the GPU for '{}': move the operands with .cpu() to compute it there",
        op.trim_end_matches("_cpu"),
        dtype.scalar_name()
    )]
    NoShader { op: &'static str, dtype: DType },
    #[error("{}", scattered(*.a, *.b))]
    Devices { a: Device, b: Device },
    #[error("{}", apart(name, *here, *others, op))]
    Elsewhere { name: &'static str, here: Device, others: Device, op: &'static str },
    /// A kernel got a lazily conjugated or negated body, which its caller should have resolved.
    #[error(
        "a kernel got a lazily conjugated or negated tensor: call resolve_conj() and resolve_neg() first"
    )]
    ConjNeg,
    #[error("{message}")]
    OutOfMemory { message: String },
    #[error("{0}")]
    Runtime(String),
    /// A RuntimeError with notes and advice.
    #[error("{0}")]
    Guided(Guidance),
    #[error("{0}")]
    Index(String),
    /// An index out of bounds (with its value and dimension, if known). A RuntimeError in operators along a
    /// dimension.
    #[error("{}", beyond(*index, *size))]
    Beyond { index: Option<(i64, usize)>, size: usize, along: bool },
    /// A factorization or a linear system without a solution.
    #[error("{0}")]
    LinAlg(String),
    #[error("{0}")]
    Value(String),
    #[error("{0}")]
    Type(String),
    #[error("{0}")]
    NotImplemented(String),
    /// An exception raised by user code (a hook, a Function), which is passed on unchanged.
    #[error("an exception of the host language")]
    Foreign(Box<dyn Any + Send + Sync>),
}

fn beyond(index: Option<(i64, usize)>, size: usize) -> String {
    match index {
        Some((index, dim)) => format!("index {index} is out of bounds for dimension {dim} with size {size}"),
        None => format!("index is out of bounds for dimension with size {size}"),
    }
}

fn apart(name: &str, here: Device, others: Device, op: &str) -> String {
    if here.is_meta() || others.is_meta() {
        return scattered(others, here);
    }
    format!(
        "Expected all tensors to be on the same device, but got {name} is on {here}, different from other tensors on \
         {others} (when checking argument in method wrapper_CUDA_{op})"
    )
}

fn scattered(a: Device, b: Device) -> String {
    if a.is_meta() || b.is_meta() {
        return format!("Tensor on device {b} is not on the expected device {a}!");
    }
    format!("Expected all tensors to be on the same device, but found at least two devices, {a} and {b}!")
}

fn unpromoted(a: DType, b: DType) -> String {
    let kinds = if a.is_float8() || b.is_float8() { "Float8 Types" } else { "uint16, uint32, uint64 types" };
    format!(
        "Promotion for {kinds} is not supported, attempted to promote {} and {}",
        a.scalar_name(),
        b.scalar_name()
    )
}

/// The name that a kernel has in errors of a place that does not know the operator.
pub const SOME_KERNEL: &str = "kernel";

impl Error {
    /// This error with an operator's name where it names just some kernel.
    #[cold]
    pub fn of_operator(mut self, name: &'static str) -> Error {
        if let Fault::NoKernel { op, .. } | Fault::NoShader { op, .. } = &mut *self.0
            && *op == SOME_KERNEL
        {
            *op = name;
        }
        self
    }

    /// An error with the same words, and of the same kind if that tells of a missing kernel.
    pub fn again(&self) -> Error {
        match *self.fault() {
            Fault::NoKernel { op, dtype } => Fault::NoKernel { op, dtype }.into(),
            Fault::NoKernelOf { op, dtype } => Fault::NoKernelOf { op, dtype }.into(),
            Fault::NoShader { op, dtype } => Fault::NoShader { op, dtype }.into(),
            _ => Error::runtime(self.to_string()),
        }
    }

    pub fn fault(&self) -> &Fault {
        &self.0
    }

    pub fn into_fault(self) -> Fault {
        *self.0
    }
}

impl From<Fault> for Error {
    #[cold]
    fn from(fault: Fault) -> Error {
        Error(Box::new(fault))
    }
}

impl From<Guidance> for Error {
    #[cold]
    fn from(guidance: Guidance) -> Error {
        Fault::Guided(guidance).into()
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}

macro_rules! shorthand {
    ($($name:ident => $variant:ident),*) => { impl Error { $(
        #[cold]
        pub fn $name(message: impl Into<String>) -> Error { Fault::$variant(message.into()).into() }
    )* } };
}
shorthand!(runtime => Runtime, linalg => LinAlg, index => Index, value => Value, type_error => Type, unordered => Unordered, not_implemented => NotImplemented);
