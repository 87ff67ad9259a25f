//! The conj and neg bits of lazily conjugated or negated tensors. Kernels ignore them, so operands are
//! resolved here before a kernel runs. Views, shapes and the graph do not read elements and need no
//! resolving.

use crate::base::views::dense_like;
use crate::base::{ConjNeg, DType, Fault, Result};
use crate::operator::bodies::{carry as copy_bytes, parts};
use crate::operator::pointwise::{Expr, Input, compute_type, loops};
use crate::tensor::Body;
use smallvec::SmallVec;

/// The body itself if no bit is set, otherwise a resolved copy.
pub fn values(of: &Body) -> Result<Body> {
    if of.conj_neg.is_none() {
        return Ok(of.clone());
    }
    let mut out = Body::new(of.shape(), of.dtype, of.device())?;
    out.layout = dense_like(&of.layout);
    copy_bytes(&out, &of.bare())?;
    finish(&out, of.conj_neg)?;
    Ok(out)
}

/// Conjugates and negates the bytes in place.
pub fn finish(out: &Body, conj_neg: ConjNeg) -> Result<()> {
    if conj_neg.has(ConjNeg::CONJ) {
        if !out.dtype.is_complex() {
            // Real and imaginary parts of a conjugate differ in sign, so it must be resolved before it is
            // viewed as real.
            return Err(Fault::ConjNeg.into());
        }
        let [_, im] = parts(out)?;
        negate(&im)?;
    }
    match conj_neg.has(ConjNeg::NEG) {
        true if out.dtype.is_complex() => negate(&out.as_parts()),
        true => negate(out),
        false => Ok(()),
    }
}

/// Negation of real numbers.
static OPPOSITE: Expr = Expr {
    key: "opposite",
    inputs: &["x"],
    wgsl: "-x",
    loops: loops!(Plain; (x,) -x),
    #[cfg(feature = "gpu")]
    by_parts: None,
    of_parts: None,
};

fn negate(out: &Body) -> Result<()> {
    let compute = compute_type(out.dtype);
    crate::operator::pointwise::execute(OPPOSITE.key, &OPPOSITE, compute, out, &[Input::Body(out)])
}

/// Copies values between bodies of which either may be lazily conjugated or negated.
#[cold]
pub fn copy(out: &Body, src: &Body) -> Result<()> {
    if out.conj_neg == src.conj_neg && out.dtype == src.dtype {
        return copy_bytes(&out.bare(), &src.bare());
    }
    let source = values(src)?;
    if out.conj_neg.is_none() {
        return copy_bytes(out, &source);
    }
    let converted = Body::new(src.shape(), out.dtype, out.device())?;
    copy_bytes(&converted, &source)?;
    finish(&converted, out.conj_neg)?;
    copy_bytes(&out.bare(), &converted)
}

/// Runs `write` on the values of `out`. If `out` is lazily conjugated or negated, that is a resolved copy,
/// which is then copied back.
pub fn write(out: &Body, write: impl FnOnce(&Body) -> Result<()>) -> Result<()> {
    if out.conj_neg.is_none() {
        return write(out);
    }
    let written = values(out)?;
    write(&written)?;
    copy(out, &written)
}

/// Runs a pointwise kernel on resolved operands and a resolved target.
#[cold]
pub fn execute(
    name: &'static str,
    expr: &'static Expr,
    compute: DType,
    out: &Body,
    inputs: &[Input],
) -> Result<()> {
    let plain = |input: &Input| match input {
        Input::Body(body) => values(body).map(Some),
        Input::Scalar(_) => Ok(None),
    };
    let plain = inputs.iter().map(plain).collect::<Result<SmallVec<[Option<Body>; 4]>>>()?;
    let given = |(input, plain)| match (input, plain) {
        (_, Some(body)) => Input::Body(body),
        (&Input::Scalar(number), _) => Input::Scalar(number),
        (&Input::Body(body), _) => Input::Body(body),
    };
    let inputs: SmallVec<[Input; 4]> =
        inputs.iter().zip(plain.iter().map(Option::as_ref)).map(given).collect();
    write(out, |out| crate::operator::pointwise::execute(name, expr, compute, out, &inputs))
}

/// The conjugation and negation that turns elements of `base` into those of `view`.
pub fn conj_neg_over(base: &Body, view: &Body) -> ConjNeg {
    match base.dtype == view.dtype || !base.conj_neg.has(ConjNeg::CONJ) {
        true => base.conj_neg.then(view.conj_neg),
        // A real view of a lazy conjugate is a view of the base's stored parts.
        false => ConjNeg::NONE,
    }
}
