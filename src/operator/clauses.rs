//! What a row of `pointwise!` says in its brackets: words and clauses beside its formula.

use crate::base::Result;
use crate::operator::V;
use crate::operator::operand::Operand;
use crate::operator::pointwise::Pointwise;
use crate::operator::row::{CountFlops, Forms, OutFacts, Scaled};
use crate::tensor::facts::{DerivativeFlops, Fact};
use crate::tensor::tangents::DualLevel;

/// Which words refuse complex numbers, where there are others than those of a kernel that is not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoComplex {
    NoKernel,
    /// The operator that this one is a case of knows none.
    Of(&'static str),
    /// A NotImplementedError with these words.
    Words(&'static str),
    /// A TypeError with these words.
    Type(&'static str),
}

/// The memory format of a result, by its operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultLayout {
    /// In the order of the operands' dimensions; a number counts as a tensor without any.
    Operands,
    /// Numbers do not count.
    Tensors,
    /// That of a dense copy of the first operand.
    First,
    /// Row-major, whatever the operands are.
    RowMajor,
}

/// What is rounded to half precision before a kernel takes it beside elements of that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounds {
    Nothing,
    /// Wider tensors, not numbers.
    Tensors,
    /// Wider tensors and numbers, but no single value that comes second.
    First,
    /// Wider tensors and numbers.
    All,
}

/// What `vmap` makes of the in-place form, where the target has no samples and another operand has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unbatched {
    /// There is no rule: the refusal names the operator.
    NoRule,
    Refused,
    /// Refused, but told as a shape that does not fit where the sizes say so.
    Misfit,
}

/// What is wrong with operands beyond their classes.
pub type Check = fn(&[Operand]) -> Result<()>;

/// The tangent of a result at a level, by a rule of its own.
pub type OwnTangent = fn(&[Operand], DualLevel) -> Option<V>;

/// Each field is a clause; docs/rows.md says what they mean.
#[derive(Clone, Copy)]
pub struct Clauses {
    pub forms: Forms,
    pub aliases: &'static [&'static str],
    pub aten: Option<[&'static str; 2]>,
    /// The name of PyTorch's kernel, where it is not the node's.
    pub aten_name: &'static str,
    pub node: &'static str,
    pub by_number: &'static str,
    pub shows: &'static [(&'static str, Fact)],
    pub kernel: &'static str,
    pub no_complex: NoComplex,
    pub check: Option<Check>,
    /// Numbers beyond the elements' type are refused, which others wrap into it.
    pub no_wrap: bool,
    pub rounds: Rounds,
    /// The operands that bound the result from below and from above.
    pub bounds: [Option<u32>; 2],
    pub wraps: bool,
    pub underived: bool,
    pub out: OutFacts,
    pub arities: &'static [(usize, usize)],
    pub scaled: Option<Scaled>,
    pub layout: ResultLayout,
    /// The gradient is made in one pass over the incoming gradient and the value.
    pub one_pass: bool,
    pub unbatched: Unbatched,
    pub flops: Option<CountFlops>,
    pub derivative_flops: Option<DerivativeFlops>,
    pub tangent: Option<OwnTangent>,
    /// What it makes of complex numbers where shaders know real ones only.
    #[cfg(feature = "gpu")]
    pub by_parts: Option<crate::operator::pointwise::complex_formula::Formula>,
    /// The row that computes the same of the imaginary and the real part of complex numbers.
    pub of_parts: Option<fn() -> &'static Pointwise>,
}

impl Clauses {
    /// What a row says without brackets.
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

    /// A form, by its word.
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

/// Reads the brackets of a row into `$c`, clause by clause.
macro_rules! clauses {
    ($c:ident;) => {};
    // `loops!` reads these.
    ($c:ident; complex $(, $($rest:tt)*)?) => { clauses!($c; $($($rest)*)?); };
    ($c:ident; complex = |$($x:ident),+| $formula:expr $(, $($rest:tt)*)?) => {
        #[cfg(feature = "gpu")]
        {
            $c.by_parts = Some(|operands| {
                let [$($x),+] = operands else { return None };
                Some($crate::operator::pointwise::complex_formula::Made::from($formula))
            });
        }
        clauses!($c; $($($rest)*)?);
    };
    // What formulas call a row is the matter of `word!`.
    ($c:ident; word = $word:ident $(, $($rest:tt)*)?) => { clauses!($c; $($($rest)*)?); };
    ($c:ident; narrow $(, $($rest:tt)*)?) => { clauses!($c; $($($rest)*)?); };
    ($c:ident; wraps $(, $($rest:tt)*)?) => { $c.wraps = true; clauses!($c; $($($rest)*)?); };
    ($c:ident; underived $(, $($rest:tt)*)?) => { $c.underived = true; clauses!($c; $($($rest)*)?); };
    ($c:ident; no_wrap $(, $($rest:tt)*)?) => { $c.no_wrap = true; clauses!($c; $($($rest)*)?); };
    ($c:ident; rounds $(, $($rest:tt)*)?) => { clauses!($c; rounds = All $(, $($rest)*)?); };
    ($c:ident; rounds = $what:ident $(, $($rest:tt)*)?) => {
        $c.rounds = $crate::operator::clauses::Rounds::$what;
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
        $c.layout = $crate::operator::clauses::ResultLayout::$how;
        clauses!($c; $($($rest)*)?);
    };
    ($c:ident; unbatched = $how:ident $(, $($rest:tt)*)?) => {
        $c.unbatched = $crate::operator::clauses::Unbatched::$how;
        clauses!($c; $($($rest)*)?);
    };
    ($c:ident; no_complex = $how:ident($text:literal) $(, $($rest:tt)*)?) => {
        $c.no_complex = $crate::operator::clauses::NoComplex::$how($text);
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
    (@fact $number:tt) => { $crate::operator::clauses::Literal($number).fact() };
}
pub(crate) use clauses;

/// A literal in a clause `shows`.
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
