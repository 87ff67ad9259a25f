//! The clauses in the brackets of a `pointwise!` row.

use crate::base::{DType, Result};
use crate::operator::V;
use crate::operator::pointwise::Pointwise;
use crate::operator::row::operand::Operand;
use crate::operator::row::{CountFlops, Forms, OutFacts, Scaled};
use crate::tensor::facts::{DerivativeFlops, Fact};
use crate::tensor::levels::tangents::DualLevel;

/// The error of a row for complex operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoComplex {
    NoKernel,
    /// Refuses as the named operator, of which this one is a special case.
    Of(&'static str),
    /// A NotImplementedError with this text.
    Words(&'static str),
    /// A TypeError with this text.
    Type(&'static str),
}

/// The rule for the memory format of the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultLayout {
    /// The order of the operands' dimensions in memory; a number counts as a 0-d tensor.
    Operands,
    /// Like `Operands`, but numbers do not count.
    Tensors,
    /// The format of a dense copy of the first operand.
    First,
    RowMajor,
}

/// The operands that are rounded to half precision when the result is of half precision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounds {
    Nothing,
    /// Wider tensors, but not numbers.
    Tensors,
    /// Wider tensors and numbers, but not a second operand of one element.
    First,
    /// Wider tensors and numbers.
    All,
}

/// The error of the in-place form under `vmap`, if the target is not batched and another operand is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unbatched {
    /// There is no rule; the error names the operator.
    NoRule,
    Refused,
    /// Reported as a shape mismatch if the sizes do not fit.
    Misfit,
}

/// Checks operands beyond their dtypes.
pub type Check = fn(&[Operand]) -> Result<()>;

/// A custom jvp: the tangent of the result at a level.
pub type CustomTangent = fn(&[Operand], DualLevel) -> Option<V>;

/// The fields are the clauses; docs/rows.md explains them.
#[derive(Clone, Copy)]
pub struct Clauses {
    pub forms: Forms,
    pub aliases: &'static [&'static str],
    pub aten: Option<[&'static str; 2]>,
    /// The name of PyTorch's kernel, if it differs from the node's.
    pub aten_name: &'static str,
    pub node: &'static str,
    pub by_number: &'static str,
    pub shows: &'static [(&'static str, Fact)],
    pub kernel: &'static str,
    pub no_complex: NoComplex,
    pub check: Option<Check>,
    /// Numbers outside the range of the operands' dtype are refused rather than wrapped.
    pub no_wrap: bool,
    pub rounds: Rounds,
    /// The operands that are the lower and the upper bound of the result.
    pub bounds: [Option<u32>; 2],
    pub wraps: bool,
    /// The widest of the dtypes `U16`, `U32` and `U64` that the row takes.
    pub unsigned: Option<DType>,
    /// The row takes all dtypes that are only stored.
    pub any_dtype: bool,
    pub underived: bool,
    pub out: OutFacts,
    pub arities: &'static [(usize, usize)],
    pub scaled: Option<Scaled>,
    pub layout: ResultLayout,
    /// One kernel computes the gradient from the incoming gradient and the operand.
    pub one_pass: bool,
    pub unbatched: Unbatched,
    pub flops: Option<CountFlops>,
    pub derivative_flops: Option<DerivativeFlops>,
    pub tangent: Option<CustomTangent>,
    /// The formula for complex numbers in terms of real and imaginary parts, for shaders.
    #[cfg(feature = "gpu")]
    pub by_parts: Option<crate::operator::pointwise::complex_formula::Formula>,
    /// A row that can be applied to the real and imaginary parts separately instead.
    pub of_parts: Option<fn() -> &'static Pointwise>,
}

impl Clauses {
    /// The clauses of a row without brackets.
    pub const NONE: Clauses = Clauses {
        forms: Forms(Forms::FUNCTION | Forms::METHOD | Forms::INPLACE | Forms::OUT),
        aliases: &[],
        aten: None,
        aten_name: "",
        node: "",
        by_number: "",
        shows: &[],
        kernel: "",
        no_complex: NoComplex::NoKernel,
        check: None,
        no_wrap: false,
        rounds: Rounds::Nothing,
        bounds: [None, None],
        wraps: false,
        unsigned: None,
        any_dtype: false,
        underived: false,
        out: OutFacts::NONE,
        arities: &[],
        scaled: None,
        layout: ResultLayout::Operands,
        one_pass: false,
        unbatched: Unbatched::NoRule,
        flops: None,
        derivative_flops: None,
        tangent: None,
        #[cfg(feature = "gpu")]
        by_parts: None,
        of_parts: None,
    };

    /// Applies a clause of one word that selects forms.
    pub const fn form(mut self, word: &str) -> Clauses {
        use crate::operator::same;
        let forms = self.forms.0;
        self.forms = Forms(if same(word, "hidden") {
            0
        } else if same(word, "nn") {
            Forms::NN
        } else if same(word, "no_method") {
            forms & !Forms::METHOD & !Forms::INPLACE
        } else if same(word, "no_function") {
            forms & !Forms::FUNCTION & !Forms::OUT
        } else if same(word, "no_inplace") {
            forms & !Forms::INPLACE
        } else if same(word, "no_out") {
            forms & !Forms::OUT
        } else if same(word, "out") {
            forms | Forms::OUT
        } else if same(word, "tensors") {
            forms | Forms::TENSORS
        } else if same(word, "numbers") {
            forms | Forms::NUMBERS
        } else {
            panic!("no clause of `pointwise!` is called so: docs/rows.md lists them")
        });
        self
    }
}

/// Parses the clauses of a row into `$c`.
macro_rules! clauses {
    ($c:ident;) => {};
    // The macro `loops!` handles these.
    ($c:ident; complex $(, $($rest:tt)*)?) => { clauses!($c; $($($rest)*)?); };
    ($c:ident; complex = |$($x:ident),+| $formula:expr $(, $($rest:tt)*)?) => {
        #[cfg(feature = "gpu")]
        {
            $c.by_parts = Some(|operands| {
                let [$($x),+] = operands else { return None };
                Some($crate::operator::pointwise::complex_formula::FormulaResult::from($formula))
            });
        }
        clauses!($c; $($($rest)*)?);
    };
    // The macro `word!` handles this.
    ($c:ident; word = $word:ident $(, $($rest:tt)*)?) => { clauses!($c; $($($rest)*)?); };
    ($c:ident; fused $(, $($rest:tt)*)?) => { clauses!($c; $($($rest)*)?); };
    ($c:ident; narrow $(, $($rest:tt)*)?) => { clauses!($c; $($($rest)*)?); };
    ($c:ident; unsigned = $widest:ident $(, $($rest:tt)*)?) => {
        $c.unsigned = Some($crate::base::DType::$widest);
        clauses!($c; $($($rest)*)?);
    };
    ($c:ident; any_dtype $(, $($rest:tt)*)?) => { $c.any_dtype = true; clauses!($c; $($($rest)*)?); };
    ($c:ident; wraps $(, $($rest:tt)*)?) => { $c.wraps = true; clauses!($c; $($($rest)*)?); };
    ($c:ident; underived $(, $($rest:tt)*)?) => { $c.underived = true; clauses!($c; $($($rest)*)?); };
    ($c:ident; no_wrap $(, $($rest:tt)*)?) => { $c.no_wrap = true; clauses!($c; $($($rest)*)?); };
    ($c:ident; rounds $(, $($rest:tt)*)?) => { clauses!($c; rounds = All $(, $($rest)*)?); };
    ($c:ident; rounds = $what:ident $(, $($rest:tt)*)?) => {
        $c.rounds = $crate::operator::pointwise::clauses::Rounds::$what;
        clauses!($c; $($($rest)*)?);
    };
    ($c:ident; one_pass $(, $($rest:tt)*)?) => { $c.one_pass = true; clauses!($c; $($($rest)*)?); };
    ($c:ident; alias = $text:literal $(, $($rest:tt)*)?) => { $c.aliases = &[$text]; clauses!($c; $($($rest)*)?); };
    ($c:ident; node = $text:literal $(, $($rest:tt)*)?) => { $c.node = $text; clauses!($c; $($($rest)*)?); };
    ($c:ident; by_number = $text:literal $(, $($rest:tt)*)?) => { $c.by_number = $text; clauses!($c; $($($rest)*)?); };
    ($c:ident; aten = $text:literal $(, $($rest:tt)*)?) => { $c.aten_name = $text; clauses!($c; $($($rest)*)?); };
    ($c:ident; kernel = $text:literal $(, $($rest:tt)*)?) => { $c.kernel = $text; clauses!($c; $($($rest)*)?); };
    ($c:ident; check = $check:ident $(, $($rest:tt)*)?) => { $c.check = Some($check); clauses!($c; $($($rest)*)?); };
    ($c:ident; tangent = $rule:ident $(, $($rest:tt)*)?) => { $c.tangent = Some($rule); clauses!($c; $($($rest)*)?); };
    ($c:ident; flops($call:ident $(, $derivative:ident)?) $(, $($rest:tt)*)?) => {
        $c.flops = Some($call);
        $($c.derivative_flops = Some($derivative);)?
        clauses!($c; $($($rest)*)?);
    };
    ($c:ident; of_parts = $row:ident $(, $($rest:tt)*)?) => {
        $c.of_parts = Some(|| &$row::ROW);
        clauses!($c; $($($rest)*)?);
    };
    ($c:ident; alpha = $scaled:ident $(, $($rest:tt)*)?) => {
        $c.forms.0 |= $crate::operator::Forms::ALPHA;
        $c.scaled = Some($scaled);
        clauses!($c; $($($rest)*)?);
    };
    ($c:ident; min = $operand:ident $(, $($rest:tt)*)?) => {
        $c.bounds[0] = Some(source::$operand);
        clauses!($c; $($($rest)*)?);
    };
    ($c:ident; max = $operand:ident $(, $($rest:tt)*)?) => {
        $c.bounds[1] = Some(source::$operand);
        clauses!($c; $($($rest)*)?);
    };
    ($c:ident; layout = $how:ident $(, $($rest:tt)*)?) => {
        $c.layout = $crate::operator::pointwise::clauses::ResultLayout::$how;
        clauses!($c; $($($rest)*)?);
    };
    ($c:ident; unbatched = $how:ident $(, $($rest:tt)*)?) => {
        $c.unbatched = $crate::operator::pointwise::clauses::Unbatched::$how;
        clauses!($c; $($($rest)*)?);
    };
    ($c:ident; no_complex = $how:ident($text:literal) $(, $($rest:tt)*)?) => {
        $c.no_complex = $crate::operator::pointwise::clauses::NoComplex::$how($text);
        clauses!($c; $($($rest)*)?);
    };
    ($c:ident; aten($tensor:ident, $number:ident) $(, $($rest:tt)*)?) => {
        $c.aten = Some([stringify!($tensor), stringify!($number)]);
        clauses!($c; $($($rest)*)?);
    };
    ($c:ident; overloads($($arity:tt),*) $(, $($rest:tt)*)?) => {
        $c.arities = &[$($arity),*];
        clauses!($c; $($($rest)*)?);
    };
    ($c:ident; shows($($name:ident = $fact:tt),*) $(, $($rest:tt)*)?) => {
        $c.shows = &[$((stringify!($name), clauses!(@fact $fact))),*];
        clauses!($c; $($($rest)*)?);
    };
    ($c:ident; out($($rule:tt)*) $(, $($rest:tt)*)?) => {
        $c.forms.0 |= $crate::operator::Forms::OUT;
        clauses!(@out $c; $($rule)*);
        clauses!($c; $($($rest)*)?);
    };
    ($c:ident; $word:ident $(, $($rest:tt)*)?) => { $c = $c.form(stringify!($word)); clauses!($c; $($($rest)*)?); };
    (@out $c:ident;) => {};
    (@out $c:ident; found $(, $($rest:tt)*)?) => {
        $c.out.rule = $crate::operator::OutRule::Found;
        clauses!(@out $c; $($($rest)*)?);
    };
    (@out $c:ident; message = $text:literal $(, $($rest:tt)*)?) => {
        $c.out.rule = $crate::operator::OutRule::Message($text);
        clauses!(@out $c; $($($rest)*)?);
    };
    (@out $c:ident; called = $text:literal $(, $($rest:tt)*)?) => {
        $c.out.called = $text;
        clauses!(@out $c; $($($rest)*)?);
    };
    (@out $c:ident; silent $(, $($rest:tt)*)?) => { $c.out.silent = true; clauses!(@out $c; $($($rest)*)?); };
    (@fact none) => { $crate::tensor::facts::Fact::Nothing };
    (@fact $number:tt) => { $crate::operator::pointwise::clauses::Literal($number).fact() };
}
pub(crate) use clauses;

/// A literal in the clause `shows`.
pub struct Literal<T>(pub T);
impl Literal<i64> {
    pub const fn fact(self) -> Fact {
        Fact::Int(self.0)
    }
}
impl Literal<&'static str> {
    pub const fn fact(self) -> Fact {
        Fact::Text(self.0)
    }
}
