//! The connectionist temporal classification (CTC) loss.

use crate::base::{Alignments, try_alloc};
use crate::cpu::ctc as kernel;
use crate::operator::bodies::duplicate;
use crate::operator::primitives::copies::to_dtype;
use crate::ops::indexing::index;
use crate::ops::nn::margin::reduction_of;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce;
use crate::ops::shape::squeeze::{squeeze_one, unsqueeze};

fn dense(t: &Tensor) -> Result<Body> {
    let body = t.body();
    if body.layout.is_contiguous() { Ok(body.clone()) } else { duplicate(&body) }
}

/// The sizes of a call. Labels are in rows, or those of all examples are concatenated.
fn sizes(
    log_probs: &[usize],
    targets: &[usize],
    inputs: &[i64],
    labels: &[i64],
    blank: i64,
    zero_infinity: bool,
) -> Result<Alignments> {
    const WHERE: &str = "(while checking arguments for ctc_loss_allocate_outputs)";
    let [steps, samples, classes] = *log_probs else {
        return Err(Error::runtime(format!(
            "Expected 3-dimensional tensor, but got {}-dimensional tensor for argument #1 'log_probs' {WHERE}",
            log_probs.len()
        )));
    };
    if blank < 0 || blank >= classes as i64 {
        return Err(Error::runtime("blank must be in label range"));
    }
    if inputs.len() != samples {
        return Err(Error::runtime("input_lengths must be of size batch_size"));
    }
    if labels.len() != samples {
        return Err(Error::runtime("target_lengths must be of size batch_size"));
    }
    if let Some(length) = labels.iter().find(|n| **n < 0) {
        return Err(Error::runtime(format!(
            "Expected target_lengths to have value at least 0, but got value {length} {WHERE}"
        )));
    }
    if let Some(length) = inputs.iter().find(|n| **n < 0) {
        return Err(Error::runtime(format!(
            "Expected input_lengths to have value at least 0, but got value {length} {WHERE}"
        )));
    }
    let longest = labels.iter().copied().max().unwrap_or(0);
    let total: i64 = labels.iter().fold(0, |sum: i64, n| sum.saturating_add(*n));
    let starts = match targets {
        [all] if *all as i64 == total => {
            let mut end = 0;
            try_alloc::all(labels.iter().map(|n| {
                end += *n as usize;
                end - *n as usize
            }))?
        }
        [all] => {
            return Err(Error::runtime(format!(
                "Expected tensor to have size {total} at dimension 0, but got size {all} for argument #2 'targets' {WHERE}"
            )));
        }
        [rows, _] if *rows != samples => {
            return Err(Error::runtime(format!(
                "Expected tensor to have size {samples} at dimension 0, but got size {rows} for argument #2 'targets' {WHERE}"
            )));
        }
        [_, row] if (*row as i64) < longest => {
            return Err(Error::runtime(format!(
                "Expected tensor to have size at least {longest} at dimension 1, but got size {row} for argument #2 'targets' \
                 {WHERE}"
            )));
        }
        [_, row] => try_alloc::all((0..samples).map(|b| b * row))?,
        _ => {
            return Err(Error::runtime(format!(
                "Expected 1 to 2 dimensions, but got {}-dimensional tensor for argument #2 'targets' {WHERE}",
                targets.len()
            )));
        }
    };
    if let Some(length) = inputs.iter().find(|n| **n > steps as i64) {
        return Err(Error::runtime(format!(
            "Expected input_lengths to have value at most {steps}, but got value {length} {WHERE}"
        )));
    }
    let plain = |list: &[i64]| try_alloc::all(list.iter().map(|n| *n as usize));
    Ok(Alignments {
        steps,
        samples,
        classes,
        places: 2 * longest as usize + 1,
        blank: blank as usize,
        input_lengths: plain(inputs)?,
        target_lengths: plain(labels)?,
        starts,
        zero_infinity,
    })
}

/// Labels as int64, all of them valid classes. (PyTorch reads out of bounds for labels that are too large; we raise an error.)
fn labels(targets: &Tensor, classes: usize) -> Result<Body> {
    let targets = to_dtype(targets, DType::I64)?;
    let t = V::from(&targets);
    let inside = both(ge(&t, 0.0), lt(&t, classes as f64)).tensor()?;
    if targets.numel() > 0 && !reduce::all(&inside, None, false)?.item()?.as_bool() {
        return Err(Error::index(format!("ctc_loss: a target is not one of the {classes} classes")));
    }
    dense(&targets)
}

#[primitive(batch = none, results(result0, result1), scratch(result1))]
impl CtcLoss {
    fn forward(
        log_probs: &Tensor,
        #[constant] targets: &Tensor,
        input_lengths: Ints,
        target_lengths: Ints,
        blank: i64,
        zero_infinity: bool,
    ) -> Result<[Body; 2]> {
        let dtype = log_probs.dtype();
        if !matches!(dtype, DType::F32 | DType::F64) {
            if !log_probs.device().is_cpu() {
                return no_shader("ctc_loss", dtype);
            }
            return Err(Fault::NoKernel { op: "ctc_loss_cpu", dtype }.into());
        }
        let of = sizes(
            &log_probs.shape(),
            &targets.shape(),
            &input_lengths,
            &target_lengths,
            blank,
            zero_infinity,
        )?;
        let (targets, probabilities) = (labels(targets, of.classes)?, dense(log_probs)?);
        let loss = Body::new(&[of.samples], dtype, log_probs.device())?;
        let alpha = Body::new(&[of.samples, of.steps, of.places], dtype, log_probs.device())?;
        if of.samples > 0 {
            fork!(over [loss, probabilities], with [of, alpha, targets],
                cpu: kernel::forward(&of, loss.host()?, alpha.host()?, probabilities.host()?, targets.host()?),
                gpu: crate::gpu::ctc(&of, loss.gpu()?, alpha.gpu()?, probabilities.gpu()?, targets.gpu()?))?;
        }
        Ok([loss, alpha])
    }
    fn d_log_probs(
        g: &Tensor,
        log_probs: &Tensor,
        targets: Tensor,
        input_lengths: Ints,
        target_lengths: Ints,
        blank: i64,
        zero_infinity: bool,
        result0: Tensor,
        result1: Tensor,
    ) -> Result<Tensor> {
        CtcLossBackward::call(
            g,
            log_probs,
            &targets,
            &result0,
            &result1,
            input_lengths,
            target_lengths,
            blank,
            zero_infinity,
        )
    }
}

const TWICE: &str = "derivative for aten::_ctc_loss_backward is not implemented";

/// The gradient, which cannot be differentiated again.
#[primitive(node = "NotImplemented", batch = none)]
impl CtcLossBackward {
    fn forward(
        grad: &Tensor,
        log_probs: &Tensor,
        #[constant] targets: &Tensor,
        #[constant] loss: &Tensor,
        #[constant] alpha: &Tensor,
        input_lengths: Ints,
        target_lengths: Ints,
        blank: i64,
        zero_infinity: bool,
    ) -> Result<Body> {
        let shape = log_probs.shape();
        let of = sizes(&shape, &targets.shape(), &input_lengths, &target_lengths, blank, zero_infinity)?;
        let (targets, out) =
            (labels(targets, of.classes)?, Body::new(&shape, log_probs.dtype(), log_probs.device())?);
        let [grad, loss, alpha, log_probs] =
            [dense(&to_dtype(grad, log_probs.dtype())?)?, dense(loss)?, dense(alpha)?, dense(log_probs)?];
        if out.numel() > 0 {
            fork!(over [out, log_probs], with [of, grad, loss, alpha, targets],
            cpu: kernel::backward(
                &of,
                out.host()?,
                [grad.host()?, loss.host()?, alpha.host()?, log_probs.host()?],
                targets.host()?
            ),
            gpu: crate::gpu::ctc_backward(
                &of,
                out.gpu()?,
                [grad.gpu()?, loss.gpu()?, alpha.gpu()?, log_probs.gpu()?],
                targets.gpu()?
            ))?;
        }
        Ok(out)
    }
    fn d_grad() -> Result<Tensor> {
        Err(Error::runtime(TWICE))
    }
    fn d_log_probs() -> Result<Tensor> {
        Err(Error::runtime(TWICE))
    }
}

/// Lengths as integers.
fn lengths(name: &str, given: &Tensor) -> Result<Ints> {
    if given.dtype().is_differentiable() || given.dtype() == DType::Bool {
        return Err(Error::runtime(format!("{name} must be integral")));
    }
    index::to_i64(given).map(Ints::from_vec)
}

fn loss(
    log_probs: &Tensor,
    targets: &Tensor,
    [inputs, labels]: [Ints; 2],
    blank: i64,
    reduction: &str,
    zero_infinity: bool,
) -> Result<Tensor> {
    let how = reduction_of(reduction, None, None)?;
    // Both lists have one length per example.
    try_alloc::check(inputs.len().max(labels.len()), 128)?;
    if log_probs.numel() == 0 {
        return Err(Error::runtime("log_probs tensor must not be empty"));
    }
    let batched = log_probs.ndim() == 3;
    let whole = if batched { log_probs.clone() } else { unsqueeze(log_probs, 1)? };
    let made = CtcLoss::call(&whole, targets, inputs, labels.clone(), blank, zero_infinity)?;
    let made = V::from(made);
    let made = if zero_infinity { select(&made, 0.0, eq(&made, f64::INFINITY)) } else { made };
    match how {
        0 if batched => made.tensor(),
        0 => made.then(|t| squeeze_one(&t, 0)).tensor(),
        1 => {
            let counts: Vec<i64> = try_alloc::all(labels.iter().map(|n| (*n).max(1)))?;
            let counts = index::from_i64(&counts, &[counts.len()], whole.device())?;
            (made / V::from(to_dtype(&counts, whole.dtype())?))
                .then(|t| reduce::mean(&t, None, false, None))
                .tensor()
        }
        _ => made.then(|t| reduce::sum(&t, None, false, None)).tensor(),
    }
}

/// Compute the connectionist temporal classification (CTC) loss between sequences and unaligned targets.
///
/// Args:
///     log_probs: log-probabilities of the classes at each step, `(T, N, C)` or `(T, C)`.
///     targets: class numbers, `(N, S)`, or all targets one after the other.
///     input_lengths: number of steps of each sample.
///     target_lengths: length of each target.
///     blank: number of the blank class.
///     zero_infinity: whether infinite losses become zero, as where a target is too long for its input.
///
/// Examples:
///     >>> log_probs = torch.zeros(4, 1, 3).log_softmax(2)
///     >>> F.ctc_loss(log_probs, torch.tensor([[1, 2]]), [4], [2])
///     tensor(0.8432)
// `sample = "random"`, because the generated tests would expect forward mode, which needs the second derivative that this
// operator lacks.
#[operator(nn, autocast = single, sample = "random")]
pub fn ctc_loss(
    log_probs: &Tensor,
    targets: &Tensor,
    input_lengths: Ints,
    target_lengths: Ints,
    #[default(0)] blank: i64,
    #[default("mean".to_string())] reduction: String,
    #[default(false)] zero_infinity: bool,
) -> Result<Tensor> {
    loss(log_probs, targets, [input_lengths, target_lengths], blank, &reduction, zero_infinity)
}

/// Compute the CTC loss with lengths in tensors.
#[overload(ctc_loss.Tensor)]
pub fn ctc_loss_by_tensors(
    log_probs: &Tensor,
    targets: &Tensor,
    #[elsewhere] input_lengths: &Tensor,
    #[elsewhere] target_lengths: &Tensor,
    #[default(0)] blank: i64,
    #[default("mean".to_string())] reduction: String,
    #[default(false)] zero_infinity: bool,
) -> Result<Tensor> {
    let both = [lengths("input_lengths", input_lengths)?, lengths("target_lengths", target_lengths)?];
    loss(log_probs, targets, both, blank, &reduction, zero_infinity)
}
