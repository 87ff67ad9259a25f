//! The row: all facts about an operator, in one static. Python's methods, signatures, stubs and tests are
//! generated from it.

pub mod generator;
pub mod grad_value;
pub mod names;
pub mod operand;
pub mod options;
pub mod registry;

use crate::base::{DType, Device, Error, MemoryFormat, Result, Scalar, StridedLayout};
use crate::operator::pointwise::Pointwise;
use crate::operator::row::generator::Generator;
use crate::operator::row::operand::Operand;
use crate::tensor::facts::{Keep, Shown};
use crate::tensor::{Body, Tensor};
use smallvec::SmallVec;

/// The type of a parameter: the argument parser and its errors use it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Tensor,
    /// A tensor or a number.
    Operand,
    Tensors,
    /// A list of tensors, some of them missing.
    MaybeTensors,
    Int,
    Ints,
    /// Integers as one sequence, or as all remaining positional arguments.
    Sizes,
    /// Tensors as one sequence, or as all remaining positional arguments.
    Several,
    Float,
    Bool,
    Scalar,
    DType,
    Device,
    Generator,
    /// A layout in PyTorch's sense; only `strided` exists.
    Layout,
    MemoryFormat,
    Str,
    /// Any argument; the operator itself checks it (overloads).
    Any,
}

pub struct Param {
    pub name: &'static str,
    pub kind: Kind,
    pub optional: bool,
    /// The default as it is written; `None` for a required parameter.
    pub default: Option<&'static str>,
    /// True if it is keyword-only.
    pub keyword: bool,
    /// A tensor with dimensions is not converted to a number, nor a number to a list.
    pub strict: bool,
    /// True if its tensors may be on another device than the other operands.
    pub elsewhere: bool,
}

impl Param {
    /// The values of most parameters.
    pub const PLAIN: Param = Param {
        name: "",
        kind: Kind::Any,
        optional: false,
        default: None,
        keyword: false,
        strict: false,
        elsewhere: false,
    };
}

/// The fast path of a method that is called with integers: no argument is converted to [`Arg`]. If it does
/// not apply (a dtype, a keyword), the ordinary call does the same.
pub type IntArgs = fn(&Tensor, &[i64]) -> Option<Result<Tensor>>;

#[derive(Clone)]
pub enum Arg {
    Missing,
    None,
    Tensor(Tensor),
    Tensors(Vec<Tensor>),
    MaybeTensors(Vec<Option<Tensor>>),
    Bool(bool),
    Int(i64),
    /// An integer that exceeds an `i64`.
    Unsigned(u64),
    Float(f64),
    Complex(f64, f64),
    Ints(Ints),
    Str(String),
    DType(DType),
    Device(Device),
    Generator(Generator),
}

impl Arg {
    /// Python's name of the argument's type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Arg::Missing | Arg::None => "NoneType",
            Arg::Tensor(_) => "Tensor",
            Arg::Tensors(_) | Arg::MaybeTensors(_) | Arg::Ints(_) => "tuple",
            Arg::Bool(_) => "bool",
            Arg::Int(_) | Arg::Unsigned(_) => "int",
            Arg::Float(_) => "float",
            Arg::Complex(..) => "complex",
            Arg::Str(_) => "str",
            Arg::DType(_) => "torch.dtype",
            Arg::Device(_) => "torch.device",
            Arg::Generator(_) => "torch.Generator",
        }
    }
}

impl From<Scalar> for Arg {
    fn from(s: Scalar) -> Arg {
        match s {
            Scalar::Bool(b) => Arg::Bool(b),
            Scalar::Int(i) => Arg::Int(i),
            Scalar::Unsigned(u) => Arg::Unsigned(u),
            Scalar::Float(f) => Arg::Float(f),
            Scalar::Complex(re, im) => Arg::Complex(re, im),
        }
    }
}

pub type Ints = SmallVec<[i64; 6]>;

/// Sizes, passed as one sequence or one by one.
#[derive(Clone, Default)]
pub struct Sizes(pub Ints);

/// Tensors, passed as one sequence or one by one.
#[derive(Clone, Default)]
pub struct Several(pub Vec<Tensor>);

pub enum Out {
    Tensor(Tensor),
    /// A tuple; if there are names (`values`, `indices`), a named one.
    Tuple(&'static str, &'static [&'static str], Vec<Tensor>),
    List(Vec<Tensor>),
    Bool(bool),
    Int(i64),
    None,
}

/// The forms in which an operator is available.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forms(pub u8);

impl Forms {
    pub const FUNCTION: u8 = 1;
    pub const METHOD: u8 = 2;
    pub const INPLACE: u8 = 4;
    pub const OUT: u8 = 8;
    /// In `nn.functional` instead of the top module.
    pub const NN: u8 = 16;
    /// Takes `alpha`, a factor of the second operand.
    pub const ALPHA: u8 = 32;
    /// A pointwise row whose operands must all be tensors.
    pub const TENSORS: u8 = 64;
    /// A pointwise row whose first operand may also be a number.
    pub const NUMBERS: u8 = 128;

    pub const fn has(self, form: u8) -> bool {
        self.0 & form != 0
    }
}

/// The kind of operand `at` of `count` in a pointwise row: the last may be a number unless the clauses say
/// otherwise.
pub const fn operand_kind(forms: Forms, at: usize, count: usize) -> Kind {
    let number = forms.has(Forms::NUMBERS) || (count > 1 && at == count - 1 && !forms.has(Forms::TENSORS));
    if number { Kind::Operand } else { Kind::Tensor }
}

pub struct Row {
    pub name: &'static str,
    pub doc: &'static str,
    pub family: &'static str,
    pub params: &'static [Param],
    pub forms: Forms,
    pub differentiable: bool,
    pub call: fn(&[Arg]) -> Result<Out>,
    pub call_inplace: Option<CallInplace>,
    /// The module of the function, if the name begins with it: `linalg` for `linalg_qr`. Empty for the top
    /// module.
    pub space: &'static str,
    /// Other names, in all forms.
    pub aliases: &'static [&'static str],
    /// ATen's name of this overload: `dim` for `max.dim`.
    pub aten: &'static str,
    /// The first overload of this name, if this is a later one.
    pub overloads: Option<&'static Row>,
    /// The operator of which this is the in-place form.
    pub inplace_of: Option<&'static Row>,
    /// The return type in the stub. `(values, indices)` is a tuple with these names.
    pub returns: &'static str,
    pub out: OutFacts,
    /// ATen's names of the two overloads that this signature stands for: with a tensor beside the first
    /// operand, and with a number.
    pub by_kind: Option<[&'static str; 2]>,
    /// Applies `alpha` to the second operand.
    pub scaled: Option<Scaled>,
    pub int_args: Option<IntArgs>,
    /// True if PyTorch composes it of other operators: then the arguments are checked first.
    pub composite: bool,
    /// For each of PyTorch's overloads that this signature stands for, the least and the greatest number of
    /// arguments, without the first operand and `out`.
    pub arities: &'static [(usize, usize)],
    /// True if it is elementwise: 0-d operands may be on the CPU, and the target may be an operand.
    pub elementwise: bool,
    /// Writes in place into an expanded target, element after element. Returns true if it did.
    pub expanded: Option<WriteExpanded>,
    /// Finds the pointwise row to which a call is equivalent; that row then writes directly into the target.
    pub formula: Option<FindFormula>,
    pub autocast: Option<Autocast>,
    /// Counts the floating point operations of a call.
    pub flops: Option<CountFlops>,
    /// The arguments in tests: an expression over `tests/samples.py`.
    pub sample: &'static str,
    /// The position in the source: file and line.
    pub at: (&'static str, u32),
}

/// Changes the arguments of a sum or difference so that the second operand is multiplied by `alpha`, or
/// returns another row for them.
pub type Scaled = fn(&mut SmallVec<[Arg; 8]>, Scalar) -> Result<Option<&'static Row>>;

/// The dtype that autocast gives to an operator's operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Autocast {
    /// The autocast dtype: for matrix products.
    Lower,
    /// float32: for sums over many elements and for steep functions.
    Single,
    /// float32 if an operand has it, otherwise the autocast dtype: for operators that join tensors.
    Widest,
}

/// Counts multiplications and additions, from the shapes of the operands (empty for a number) and the first
/// argument if it is a string.
pub type CountFlops = fn(&[Vec<usize>], Option<&str>) -> u64;

/// Writes into the first argument, which is expanded.
pub type WriteExpanded = fn(&Body, &[Arg]) -> Result<bool>;

/// Finds the formula for these arguments, if there is one.
pub type FindFormula = for<'a> fn(&'a [Arg]) -> Option<Formula<'a>>;

pub type Formula<'a> = (&'static Pointwise, SmallVec<[Operand<'a>; 3]>);

/// The requirements on an `out=` tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutFacts {
    pub rule: OutRule,
    /// Inputs may not overlap the target.
    pub apart: bool,
    /// The target is resized before the overlap is checked.
    pub resizes: bool,
    /// Resizing gives no warning.
    pub silent: bool,
    /// A target with the same number of elements keeps its shape.
    pub counted: bool,
    /// The target's dtype is the dtype of the computation, unless the call has one.
    pub computes: bool,
    /// The elements of the result are uninitialized: only the target's size is set.
    pub uninitialized: bool,
    /// The operator is never recorded, because its results are bools or indices.
    pub unrecorded: bool,
    /// The target's dtype is checked before the operands' dtype.
    pub early: bool,
    /// The name in the error about gradients, if it is another.
    pub called: &'static str,
    /// The parameter without which the call has no `out=`.
    pub with: &'static str,
}

impl OutFacts {
    pub const NONE: OutFacts = OutFacts {
        rule: OutRule::Cast,
        apart: false,
        resizes: false,
        silent: false,
        counted: false,
        computes: false,
        uninitialized: false,
        unrecorded: false,
        early: false,
        called: "",
        with: "",
    };
}

/// The dtypes into which a result may be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutRule {
    /// Those to which it can be cast.
    Cast,
    /// Any: random numbers are the same in each dtype.
    Any,
    /// The result's own; the error names it in PyTorch's form "Expected out tensor to have dtype".
    Declared,
    /// The result's own; the error has the form "Found dtype".
    Found,
    /// Those of the same or a higher category, because the operator promotes.
    Promoted,
    /// Those of the same or a higher category. The error begins with this text and continues "to be safely
    /// castable"; `{name}` is the result's name.
    Castable(&'static str),
    /// The result's own, with this error text: `{result}` and `{target}` are the dtypes, `{name}` is the
    /// result's name.
    Message(&'static str),
    /// Any floating point or complex dtype; otherwise this error text.
    Floating(&'static str),
    /// Bool, or uint8, which once stood for it; otherwise this error text.
    Truths(&'static str),
}

impl Row {
    /// The values of most rows.
    pub const PLAIN: Row = Row {
        name: "",
        doc: "",
        family: "",
        params: &[],
        forms: Forms(0),
        differentiable: false,
        call: |_| Ok(Out::None),
        call_inplace: None,
        space: "",
        aliases: &[],
        aten: "",
        overloads: None,
        inplace_of: None,
        returns: "Tensor",
        out: OutFacts::NONE,
        by_kind: None,
        scaled: None,
        int_args: None,
        composite: false,
        arities: &[],
        elementwise: false,
        expanded: None,
        formula: None,
        autocast: None,
        flops: None,
        sample: "",
        at: ("", 0),
    };
}

/// A possible return type of an operator, and its name in the stub.
pub trait Returned {
    const STUB: &'static str;
    fn out(self, name: &'static str, fields: &'static [&'static str]) -> Out;
}
impl Returned for Tensor {
    const STUB: &'static str = "Tensor";
    fn out(self, _: &'static str, _: &'static [&'static str]) -> Out {
        Out::Tensor(self)
    }
}
macro_rules! returned_array {
    ($($n:literal $stub:literal;)*) => { $(impl Returned for [Tensor; $n] {
        const STUB: &'static str = $stub;
        fn out(self, name: &'static str, fields: &'static [&'static str]) -> Out {
            Out::Tuple(name, fields, self.into())
        }
    })* };
}
returned_array! {
    2 "tuple[Tensor, Tensor]";
    3 "tuple[Tensor, Tensor, Tensor]";
    4 "tuple[Tensor, Tensor, Tensor, Tensor]";
    5 "tuple[Tensor, Tensor, Tensor, Tensor, Tensor]";
}
impl Returned for Vec<Tensor> {
    const STUB: &'static str = "tuple[Tensor, ...]";
    fn out(self, name: &'static str, fields: &'static [&'static str]) -> Out {
        Out::Tuple(name, fields, self)
    }
}
impl Returned for bool {
    const STUB: &'static str = "_bool";
    fn out(self, _: &'static str, _: &'static [&'static str]) -> Out {
        Out::Bool(self)
    }
}
impl Returned for i64 {
    const STUB: &'static str = "_int";
    fn out(self, _: &'static str, _: &'static [&'static str]) -> Out {
        Out::Int(self)
    }
}
impl Returned for () {
    const STUB: &'static str = "None";
    fn out(self, _: &'static str, _: &'static [&'static str]) -> Out {
        Out::None
    }
}
impl Returned for Out {
    const STUB: &'static str = "Any";
    fn out(self, _: &'static str, _: &'static [&'static str]) -> Out {
        self
    }
}

pub type CallInplace = fn(&[Arg]) -> Result<Tensor>;

/// A Rust type that can be read or borrowed from an argument.
pub trait FromArg<'a>: Sized {
    const KIND: Kind;
    const OPTIONAL: bool = false;
    fn from_arg(arg: &'a Arg) -> Option<Self>;
}

macro_rules! from_arg {
    ($($ty:ty, $kind:ident, |$arg:ident| $get:expr;)*) => { $(
        impl<'a> FromArg<'a> for $ty {
            const KIND: Kind = Kind::$kind;
            fn from_arg($arg: &'a Arg) -> Option<$ty> { $get }
        }
    )* };
}
from_arg! {
    &'a Tensor, Tensor, |arg| if let Arg::Tensor(t) = arg { Some(t) } else { None };
    &'a [Tensor], Tensors, |arg| if let Arg::Tensors(t) = arg { Some(t) } else { None };
    Vec<Option<Tensor>>, MaybeTensors, |arg| match arg {
        Arg::MaybeTensors(t) => Some(t.clone()),
        Arg::Tensors(t) => Some(t.iter().cloned().map(Some).collect()),
        _ => None,
    };
    bool, Bool, |arg| match arg { Arg::Bool(b) => Some(*b), Arg::Int(i) => Some(*i != 0), _ => None };
    i64, Int, |arg| match arg { Arg::Int(i) => Some(*i), Arg::Bool(b) => Some(i64::from(*b)), _ => None };
    Ints, Ints, |arg| match arg { Arg::Ints(i) => Some(i.clone()), Arg::Int(i) => Some(smallvec::smallvec![*i]), _ => None };
    Sizes, Sizes, |arg| Ints::from_arg(arg).map(Sizes);
    Several, Several, |arg| if let Arg::Tensors(t) = arg { Some(Several(t.clone())) } else { None };
    f64, Float, |arg| arg.number().filter(|n| !matches!(n, Scalar::Complex(..))).map(Scalar::as_f64);
    Scalar, Scalar, |arg| arg.number();
    DType, DType, |arg| if let Arg::DType(d) = arg { Some(*d) } else { None };
    Device, Device, |arg| if let Arg::Device(d) = arg { Some(*d) } else { None };
    Generator, Generator, |arg| if let Arg::Generator(g) = arg { Some(g.clone()) } else { None };
    String, Str, |arg| if let Arg::Str(s) = arg { Some(s.clone()) } else { None };
    StridedLayout, Layout, |arg| if let Arg::Str(_) = arg { Some(StridedLayout) } else { None };
    MemoryFormat, MemoryFormat, |arg| if let Arg::Str(s) = arg { MemoryFormat::parse(s) } else { None };
    Arg, Any, |arg| Some(arg.clone());
}

/// Types of arguments that only other operators pass.
macro_rules! internal {
    ($($ty:ty),*) => { $(impl FromArg<'_> for $ty {
        const KIND: Kind = Kind::Any;
        fn from_arg(_: &Arg) -> Option<$ty> { None }
    })* };
}
internal!(crate::base::Dims, crate::base::Layout, crate::base::Put, crate::tensor::Part);

impl<'a, T: FromArg<'a>> FromArg<'a> for Option<T> {
    const KIND: Kind = T::KIND;
    const OPTIONAL: bool = true;
    fn from_arg(arg: &'a Arg) -> Option<Option<T>> {
        match arg {
            Arg::None | Arg::Missing => Some(None),
            other => T::from_arg(other).map(Some),
        }
    }
}

impl Arg {
    pub fn number(&self) -> Option<Scalar> {
        match self {
            Arg::Bool(b) => Some(Scalar::Bool(*b)),
            Arg::Int(i) => Some(Scalar::Int(*i)),
            Arg::Unsigned(u) => Some(Scalar::Unsigned(*u)),
            Arg::Float(f) => Some(Scalar::Float(*f)),
            Arg::Complex(re, im) => Some(Scalar::Complex(*re, *im)),
            _ => None,
        }
    }
}

impl Keep for Sizes {
    fn shown(&self) -> Shown {
        self.0.shown()
    }
}
impl Keep for Generator {
    fn shown(&self) -> Shown {
        Shown::Nothing
    }
}

/// Reads argument `at` of an operator, or its default if it is missing.
pub fn take<'a, T: FromArg<'a>>(
    row: &str,
    params: &[Param],
    args: &'a [Arg],
    at: usize,
    default: Option<fn() -> T>,
) -> Result<T> {
    let arg = args.get(at).unwrap_or(&Arg::Missing);
    if let (Arg::Missing, Some(default)) = (arg, default) {
        return Ok(default());
    }
    T::from_arg(arg).ok_or_else(|| {
        let name = params.get(at).map_or("?", |p| p.name);
        Error::type_error(match arg {
            Arg::Missing => format!("{row}() missing 1 required positional arguments: \"{name}\""),
            _ => format!("{row}(): argument '{name}' (position {}) has the wrong type", at + 1),
        })
    })
}

impl From<Tensor> for Out {
    fn from(t: Tensor) -> Out {
        Out::Tensor(t)
    }
}
impl From<Vec<Tensor>> for Out {
    fn from(t: Vec<Tensor>) -> Out {
        Out::Tuple("", &[], t)
    }
}
impl From<i64> for Out {
    fn from(i: i64) -> Out {
        Out::Int(i)
    }
}
impl From<bool> for Out {
    fn from(b: bool) -> Out {
        Out::Bool(b)
    }
}
