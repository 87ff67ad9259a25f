//! The row: everything that is known of an operator, in one static. Python's methods, signatures, stubs and tests are
//! all read from it.

use crate::base::{DType, Device, Error, MemoryFormat, Result, Scalar, StridedLayout};
use crate::operator::generator::Generator;
use crate::operator::operand::Operand;
use crate::operator::pointwise::Pointwise;
use crate::tensor::facts::{Keep, Shown};
use crate::tensor::{Body, Tensor};
use smallvec::SmallVec;

/// What a parameter takes; calls from Python are parsed by it, and errors name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Tensor,
    /// A tensor or a number.
    Operand,
    Tensors,
    /// Tensors, some of them missing.
    MaybeTensors,
    Int,
    Ints,
    /// Whole numbers as one sequence, or as all the positional arguments that are left.
    Sizes,
    /// Tensors as one sequence, or as all the positional arguments that are left.
    Several,
    Float,
    Bool,
    Scalar,
    DType,
    Device,
    Generator,
    /// Of the layouts of PyTorch the core has one, `strided`.
    Layout,
    MemoryFormat,
    Str,
    /// Whatever fits; the operator looks itself (overloads).
    Any,
}

pub struct Param {
    pub name: &'static str,
    pub kind: Kind,
    pub optional: bool,
    /// The default as it is written; nothing for a required parameter.
    pub default: Option<&'static str>,
    /// Whether it must be named.
    pub keyword: bool,
    /// No tensor with dimensions is taken for its number, no number for its list.
    pub strict: bool,
    /// Whether its tensors may lie on another device than the other operands.
    pub elsewhere: bool,
}

impl Param {
    /// What most parameters do not say.
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

/// The fast path of a method that is called with whole numbers: no argument is converted to [`Arg`]. What does not fit
/// (a dtype, a keyword) takes the ordinary call, which does the same.
pub type IntArgs = fn(&Tensor, &[i64]) -> Option<Result<Tensor>>;

/// A parsed argument.
#[derive(Clone)]
pub enum Arg {
    Missing,
    None,
    Tensor(Tensor),
    Tensors(Vec<Tensor>),
    MaybeTensors(Vec<Option<Tensor>>),
    Bool(bool),
    Int(i64),
    Float(f64),
    Complex(f64, f64),
    Ints(Ints),
    Str(String),
    DType(DType),
    Device(Device),
    Generator(Generator),
}

impl Arg {
    /// What Python calls the type of such an argument.
    pub fn type_name(&self) -> &'static str {
        match self {
            Arg::Missing | Arg::None => "NoneType",
            Arg::Tensor(_) => "Tensor",
            Arg::Tensors(_) | Arg::MaybeTensors(_) | Arg::Ints(_) => "tuple",
            Arg::Bool(_) => "bool",
            Arg::Int(_) => "int",
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
            Scalar::Float(f) => Arg::Float(f),
            Scalar::Complex(re, im) => Arg::Complex(re, im),
        }
    }
}

pub type Ints = SmallVec<[i64; 6]>;

/// Sizes that may come as one sequence or one by one.
#[derive(Clone, Default)]
pub struct Sizes(pub Ints);

/// Tensors that may come as one sequence or one by one.
#[derive(Clone, Default)]
pub struct Several(pub Vec<Tensor>);

/// What an operator returns.
pub enum Out {
    Tensor(Tensor),
    /// A tuple; the names make it a named one (`values`, `indices`).
    Tuple(&'static str, &'static [&'static str], Vec<Tensor>),
    List(Vec<Tensor>),
    Bool(bool),
    Int(i64),
    None,
}

/// In which forms an operator is offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forms(pub u8);

impl Forms {
    pub const FUNCTION: u8 = 1;
    pub const METHOD: u8 = 2;
    pub const INPLACE: u8 = 4;
    pub const OUT: u8 = 8;
    /// In `nn.functional` instead of at the top.
    pub const NN: u8 = 16;
    /// Takes `alpha`, a factor of the second operand.
    pub const ALPHA: u8 = 32;
    /// A pointwise row whose operands are all tensors.
    pub const TENSORS: u8 = 64;
    /// A pointwise row whose first operand may be a number, too.
    pub const NUMBERS: u8 = 128;

    pub const fn has(self, form: u8) -> bool {
        self.0 & form != 0
    }
}

/// What operand `at` of `count` may be in a pointwise row: numbers come last unless its brackets say more or less.
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
    /// Writes the result over the first argument.
    pub call_inplace: Option<CallInplace>,
    /// The module where its function stands, by the first word of its name: `linalg` for `linalg_qr`; at the top where empty.
    pub space: &'static str,
    /// Second names, in all forms.
    pub aliases: &'static [&'static str],
    /// ATen's name of this signature: `dim` of `max.dim`.
    pub aten: &'static str,
    /// The first signature of this name, where this is another.
    pub overloads: Option<&'static Row>,
    /// The operator whose in-place form this is.
    pub inplace_of: Option<&'static Row>,
    /// What it returns, as a stub says it; `(values, indices)`: a tuple with these names.
    pub returns: &'static str,
    /// What `out=` asks.
    pub out: OutFacts,
    /// ATen's names of a signature that stands for two: with a tensor beside the first operand, and with a number.
    pub by_kind: Option<[&'static str; 2]>,
    /// The call whose second operand is taken `alpha` times.
    pub scaled: Option<Scaled>,
    /// The fast path of the method.
    pub int_args: Option<IntArgs>,
    /// Whether PyTorch makes it of other operators: then arguments are looked at first.
    pub composite: bool,
    /// The least and the most arguments of each of PyTorch's overloads, where this signature stands for several; without
    /// the first operand and `out`.
    pub arities: &'static [(usize, usize)],
    /// Whether it goes element by element: single elements may come from the CPU, and what it writes may be what it reads.
    pub elementwise: bool,
    /// Writes in place where one element of the target stands for several, element after element; says whether it did.
    pub expanded: Option<WriteExpanded>,
    /// The one pointwise formula that a call may come to, which then writes straight where its result shall be.
    pub formula: Option<FindFormula>,
    /// What autocast makes of its operands.
    pub autocast: Option<Autocast>,
    /// How many operations a call takes.
    pub flops: Option<CountFlops>,
    /// How tests draw arguments: an expression over `tests/samples.py`.
    pub sample: &'static str,
    /// Where it stands in the source.
    pub at: (&'static str, u32),
}

/// Changes the arguments of a sum or difference so that the second operand is taken `alpha` times; or says which other row
/// takes them now.
pub type Scaled = fn(&mut SmallVec<[Arg; 8]>, Scalar) -> Result<Option<&'static Row>>;

/// The dtype that autocast gives to the operands of an operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Autocast {
    /// The one that was asked for: products.
    Lower,
    /// float32: sums over many, and what is steep.
    Single,
    /// float32 where one of them is, else the one that was asked for: what joins tensors.
    Widest,
}

/// Counts multiplications and additions, by the sizes of the operands (nothing for a number) and the text that comes first,
/// if one does.
pub type CountFlops = fn(&[Vec<usize>], Option<&str>) -> u64;

/// Writes over the first argument, which is expanded.
pub type WriteExpanded = fn(&Body, &[Arg]) -> Result<bool>;

/// The formula for these arguments, where there is one.
pub type FindFormula = for<'a> fn(&'a [Arg]) -> Option<Formula<'a>>;

/// A pointwise row and its operands.
pub type Formula<'a> = (&'static Pointwise, SmallVec<[Operand<'a>; 3]>);

/// What `out=` asks of its target before it is written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutFacts {
    pub rule: OutRule,
    /// Inputs may not share memory with it.
    pub apart: bool,
    /// It gets the new shape before that is asked.
    pub resizes: bool,
    /// It is resized without a warning.
    pub silent: bool,
    /// With as many elements as the result it keeps its own shape.
    pub counted: bool,
    /// It says in which dtype is computed, unless that is asked for.
    pub computes: bool,
    /// The elements of its result are not set: only its sizes are written.
    pub uninitialized: bool,
    /// Nothing is recorded of the operator, whatever wants gradients: truths, places.
    pub unrecorded: bool,
    /// Its dtype is refused before the kernel refuses that of the operands.
    pub early: bool,
    /// The name in the refusal of gradients, where that is another.
    pub called: &'static str,
    /// The parameter without which a call takes no target.
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

/// Which dtypes a result may be written into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutRule {
    /// Those that it can be cast to.
    Cast,
    /// Any: what is drawn is the same number in each.
    Any,
    /// Its own: the operator gives its results' dtypes beforehand.
    Declared,
    /// Its own: the kernel says which one it found.
    Found,
    /// Those of no lower category: the operator promotes.
    Promoted,
    /// Those of no lower category; else it was expected "to be safely castable", after these words, in which `{name}` is
    /// the result's.
    Castable(&'static str),
    /// Its own, in other words: `{result}` and `{target}` are the dtypes, `{name}` is the result's.
    Message(&'static str),
    /// Any floating or complex one; else these words.
    Floating(&'static str),
    /// Truth values, or the bytes that once stood for them; else these words.
    Truths(&'static str),
}

impl Row {
    /// What most rows do not say.
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

/// What an operator may return, and what the stub says of it.
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

/// How a Rust type is read from an argument, or lent by it.
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

/// Arguments that only other operators pass.
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

/// Reads argument `at` of an operator; the default stands in for a missing one.
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
