//! Losses, and their reduction to one number.

use crate::base::{LossReduction, numel};
use crate::operator::pointwise::dtype_checks;
use crate::operator::primitives::copies::to_dtype;
use crate::operator::primitives::views::reshape;
use crate::operator::primitives::{sums, views};
use crate::ops::elementwise::arithmetic as a;
use crate::ops::nn::loss_classes::{Classes, NllLoss, NllLoss2D};
use crate::ops::nn::loss_formula::*;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::no_grad;
use crate::ops::reduction::{reduce, softmax};
use crate::ops::shape::view;
use crate::tensor::any_requires_grad;
use crate::tensor::facts::{Keep, Shown};

impl Keep for LossReduction {
    fn shown(&self) -> Shown {
        Shown::Int(match self {
            LossReduction::None => 0,
            LossReduction::Mean => 1,
            LossReduction::Sum => 2,
        })
    }
}

impl LossReduction {
    fn new(name: &str, size_average: Option<bool>, reduce: Option<bool>) -> Result<LossReduction> {
        if size_average.is_some() || reduce.is_some() {
            return Ok(match (size_average.unwrap_or(true), reduce.unwrap_or(true)) {
                (true, true) => LossReduction::Mean,
                (false, true) => LossReduction::Sum,
                (_, false) => LossReduction::None,
            });
        }
        match name {
            "none" => Ok(LossReduction::None),
            "mean" => Ok(LossReduction::Mean),
            "sum" => Ok(LossReduction::Sum),
            other => Err(Error::value(format!("{other} is not a valid value for reduction"))),
        }
    }

    pub fn apply(self, loss: V) -> V {
        match self {
            LossReduction::None => loss,
            LossReduction::Sum => loss.then(|t| sums::Sum::call(&t)),
            LossReduction::Mean => loss.then(|t| reduce::mean(&t, None, false, None)),
        }
    }

    /// The gradient of each element's loss, where `count` elements were averaged if the reduction is a mean.
    fn undo(self, g: V, count: usize) -> V {
        if self == LossReduction::Mean { g / count as f64 } else { g }
    }

    /// The gradient of a loss whose derivative is `factor` times `derivative`. The incoming gradient is saved without a copy, so that
    /// writing over it raises an error, as in PyTorch.
    fn scale(self, derivative: V, factor: f64, g: V) -> V {
        let factor =
            if self == LossReduction::Mean { factor / numel(&derivative.shape()) as f64 } else { factor };
        in_order(if factor == 1.0 { derivative * g } else { derivative * factor * g })
    }
}

/// The number of elements that two operands broadcast to.
fn joint(x: &V, y: &V) -> Result<usize> {
    Ok(numel(&crate::base::broadcast(&x.shape(), &y.shape())?))
}

/// Computes a formula without recording a graph.
fn formula(compute: impl FnOnce() -> V) -> Result<Body> {
    no_grad(|| compute().tensor())
}

/// `input - target` for the gradient of a loss.
fn gap(x: V, y: V) -> V {
    x.with(y, Gap::call)
}

/// `input - target`, whose derivative saves both operands without needing them: writing over one of them raises an error, as in
/// PyTorch.
#[primitive]
impl Gap {
    fn forward(input: &Tensor, target: &Tensor) -> Result<Body> {
        formula(|| difference(input, target))
    }
    fn d_input(g: V, input: Unread, target: Unread) -> V {
        let (Unread, Unread) = (input, target);
        g
    }
    fn d_target(g: V, input: Unread, target: Unread) -> V {
        let (Unread, Unread) = (input, target);
        -g
    }
    fn batch(_b: &Batch, input: &Tensor, target: &Tensor) -> Result<Tensor> {
        difference(input, target).tensor()
    }
}

#[primitive]
impl MseLoss {
    fn forward(input: &Tensor, target: &Tensor, reduction: LossReduction) -> Result<Body> {
        formula(|| square_of(input, target, reduction))
    }
    fn d_input(g: V, input: V, target: V, reduction: LossReduction) -> V {
        reduction.scale(gap(input, target), 2.0, g)
    }
    fn d_target(g: V, input: V, target: V, reduction: LossReduction) -> V {
        reduction.scale(gap(target, input), 2.0, g)
    }
    fn batch(_b: &Batch, input: &Tensor, target: &Tensor, reduction: LossReduction) -> Result<Tensor> {
        square_of(input, target, reduction).tensor()
    }
}

/// Quadratic if the difference is less than `beta`, else linear.
#[primitive]
impl SmoothL1Loss {
    fn forward(input: &Tensor, target: &Tensor, reduction: LossReduction, beta: f64) -> Result<Body> {
        formula(|| smooth_of(input, target, reduction, beta))
    }
    fn d_input(g: V, input: V, target: V, reduction: LossReduction, beta: f64) -> V {
        reduction.scale(clipped(gap(input, target), beta), 1.0 / beta, g)
    }
    fn d_target(g: V, input: V, target: V, reduction: LossReduction, beta: f64) -> V {
        reduction.scale(clipped(gap(target, input), beta), 1.0 / beta, g)
    }
    fn batch(
        _b: &Batch,
        input: &Tensor,
        target: &Tensor,
        reduction: LossReduction,
        beta: f64,
    ) -> Result<Tensor> {
        smooth_of(input, target, reduction, beta).tensor()
    }
}

/// Quadratic if the difference is less than `delta`, else linear with slope `delta`.
#[primitive]
impl HuberLoss {
    fn forward(input: &Tensor, target: &Tensor, reduction: LossReduction, delta: f64) -> Result<Body> {
        formula(|| huber_of(input, target, reduction, delta))
    }
    fn d_input(g: V, input: V, target: V, reduction: LossReduction, delta: f64) -> V {
        reduction.scale(clipped(gap(input, target), delta), 1.0, g)
    }
    fn d_target(g: V, input: V, target: V, reduction: LossReduction, delta: f64) -> V {
        reduction.scale(clipped(gap(target, input), delta), 1.0, g)
    }
    fn batch(
        _b: &Batch,
        input: &Tensor,
        target: &Tensor,
        reduction: LossReduction,
        delta: f64,
    ) -> Result<Tensor> {
        huber_of(input, target, reduction, delta).tensor()
    }
}

/// Binary cross entropy of probabilities.
#[primitive]
impl BinaryCrossEntropy {
    fn forward(
        input: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: LossReduction,
    ) -> Result<Body> {
        formula(|| entropy_of(input, target, weight, reduction))
    }
    fn d_input(g: V, input: V, target: V, weight: Option<Tensor>, reduction: LossReduction) -> Result<V> {
        let g = weighted(reduction.undo(g, joint(&input, &target)?), weight.as_ref());
        let slope = maximum(&input * (1.0 - &input), 1e-12);
        Ok(g * ((input - target) / slope))
    }
    fn d_target(g: V, input: V, target: V, weight: Option<Tensor>, reduction: LossReduction) -> Result<V> {
        let g = weighted(reduction.undo(g, joint(&input, &target)?), weight.as_ref());
        Ok(g * (log(1.0 - &input) - log(input)))
    }
    fn batch(
        _b: &Batch,
        input: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        reduction: LossReduction,
    ) -> Result<Tensor> {
        entropy_of(input, target, weight, reduction).tensor()
    }
}

/// Binary cross entropy of logits.
#[primitive]
impl BinaryCrossEntropyWithLogits {
    fn forward(
        input: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        pos_weight: Option<&Tensor>,
        reduction: LossReduction,
    ) -> Result<Body> {
        formula(|| logit_entropy_of(input, target, weight, pos_weight, reduction))
    }
    fn d_input(
        g: V,
        input: V,
        target: V,
        weight: Option<Tensor>,
        pos_weight: Option<Tensor>,
        reduction: LossReduction,
    ) -> Result<V> {
        let g = weighted(reduction.undo(g, joint(&input, &target)?), weight.as_ref());
        Ok(g * logit_gradient(input, target, pos_weight.as_ref()))
    }
    fn d_target(
        g: V,
        input: V,
        target: V,
        weight: Option<Tensor>,
        pos_weight: Option<V>,
        reduction: LossReduction,
    ) -> Result<V> {
        let g = weighted(reduction.undo(g, joint(&input, &target)?), weight.as_ref());
        Ok(match pos_weight {
            Some(positive) => g * ((1.0 - positive) * log_sigmoid(&input) - input),
            None => -(g * input),
        })
    }
    fn batch(
        _b: &Batch,
        input: &Tensor,
        target: &Tensor,
        weight: Option<&Tensor>,
        pos_weight: Option<&Tensor>,
        reduction: LossReduction,
    ) -> Result<Tensor> {
        logit_entropy_of(input, target, weight, pos_weight, reduction).tensor()
    }
}

fn check_target(input: &Tensor, target: &Tensor, weight: Option<&Tensor>) -> Result<()> {
    let (x, t) = (input.shape(), target.shape());
    let classes = x[if x.len() > 1 { 1 } else { 0 }];
    if x.len() > 1 && (t.is_empty() || x[0] != t[0]) {
        return Err(Error::value(format!(
            "Expected input batch_size ({}) to match target batch_size ({}).",
            x[0],
            t.first().copied().unwrap_or(1)
        )));
    }
    if x.len() == 4 && t.len() != 3 {
        return Err(Error::runtime(format!(
            "only batches of spatial targets supported (3D tensors) but got targets of dimension: {}",
            t.len()
        )));
    }
    if x.len() > 2 && x[2..] != t[1..] {
        let mut wanted = Dims::from_slice(&[x[0]]);
        wanted.extend_from_slice(&x[2..]);
        return Err(Error::runtime(if x.len() == 4 {
            format!("size mismatch (got input: {:?} , target: {:?}", x.as_slice(), t.as_slice())
        } else {
            format!("Expected target size {:?}, got {:?}", wanted.as_slice(), t.as_slice())
        }));
    }
    if x.len() <= 2 && t.len() + 1 != x.len() {
        return Err(Error::runtime("0D or 1D target tensor expected, multi-target not supported"));
    }
    if !matches!(target.dtype(), DType::I64 | DType::U8) {
        return Err(Error::runtime(format!(
            "expected target dtype to be Long or Byte, but got {}",
            target.dtype().scalar_name()
        )));
    }
    match weight.map(Tensor::shape) {
        Some(w) if w.as_slice() != [classes] => Err(Error::runtime(format!(
            "weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of \
             shape: {:?}",
            w.as_slice()
        ))),
        _ => Ok(()),
    }
}

fn negative_log(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    ignored: i64,
    how: LossReduction,
) -> Result<Tensor> {
    if input.ndim() == 0 {
        return Err(Error::value("Expected 1 or more dimensions (got 0)"));
    }
    check_target(input, target, weight)?;
    let shape = input.shape();
    if !input.dtype().is_float() {
        let op = if shape.len() > 2 { "nll_loss2d_forward_out_frame" } else { "nll_loss_out_frame" };
        return Err(Fault::NoKernel { op, dtype: input.dtype() }.into());
    }
    if let Some(weight) = weight.filter(|weight| weight.dtype() != input.dtype()) {
        return Err(Error::runtime(format!(
            "expected scalar type {} but found {}",
            input.dtype().scalar_name(),
            weight.dtype().scalar_name()
        )));
    }
    match shape.len() {
        1 | 2 => NllLoss::call(input, target, weight, ignored, how),
        4 => NllLoss2D::call(input, target, weight, ignored, how),
        // PyTorch's graph shows inputs with other numbers of dimensions as planes.
        _ => {
            let (n, plane) = (shape[0], numel(&shape[2..]));
            let planes = reshape(input, &[n, shape[1], 1, plane])?;
            let loss = NllLoss2D::call(&planes, &reshape(target, &[n, 1, plane])?, weight, ignored, how)?;
            if how == LossReduction::None { reshape(&loss, &target.shape()) } else { Ok(loss) }
        }
    }
}

/// Rejects a promoted dtype that is not floating point, for which there is no kernel.
fn check_types(op: &'static str, input: &Tensor, target: &Tensor) -> Result<()> {
    let dtype = input.dtype().promote(target.dtype());
    if dtype.is_float() { Ok(()) } else { Err(Fault::NoKernel { op, dtype }.into()) }
}

/// Expands both operands to their common shape, as views.
fn expand(input: &Tensor, target: &Tensor) -> Result<(Tensor, Tensor)> {
    let (own, other) = (input.shape(), target.shape());
    if own != other {
        crate::base::warn(&format!(
            "Using a target size (torch.Size({:?})) that is different to the input size (torch.Size({:?})). This will likely \
             lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            other.as_slice(),
            own.as_slice()
        ))?;
    }
    let shape = crate::base::broadcast(&own, &other)?;
    let stretch = |t: &Tensor| {
        if t.shape() == shape { Ok(t.clone()) } else { view::expand(t, views::ints(&shape)) }
    };
    Ok((stretch(input)?, stretch(target)?))
}

fn same_size(input: &Tensor, target: &Tensor, message: impl Fn(String, String) -> String) -> Result<()> {
    if input.shape() == target.shape() {
        return Ok(());
    }
    let size = |t: &Tensor| format!("torch.Size({:?})", t.shape().as_slice());
    Err(Error::value(message(size(target), size(input))))
}

/// Compute the mean squared error: `(input - target)**2`, averaged.
///
/// Args:
///     input: predictions.
///     target: targets, broadcast with `input`.
///     weight: weights of the elements.
///
/// Examples:
///     >>> F.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
///     tensor(2.)
#[operator(nn, elementwise, autocast = single, sample = "loss(name, lambda draw, n, c: values((n, c), draw(SEEDS)))")]
pub fn mse_loss(
    input: &Tensor,
    target: &Tensor,
    size_average: Option<bool>,
    reduce: Option<bool>,
    #[default("mean".into())] reduction: &str,
    weight: Option<&Tensor>,
) -> Result<Tensor> {
    let how = LossReduction::new(reduction, size_average, reduce)?;
    let (input, target) = expand(input, target)?;
    check_types("mse_cpu", &input, &target)?;
    by_weights(weight, how, |how| MseLoss::call(&input, &target, how))
}

/// A loss, multiplied by optional weights. The mean divides by the sum of the weights.
fn by_weights(
    weight: Option<&Tensor>,
    how: LossReduction,
    loss: impl Fn(LossReduction) -> Result<Tensor>,
) -> Result<Tensor> {
    let Some(weight) = weight else { return loss(how) };
    let each = loss(LossReduction::None)?;
    if weight.shape() != each.shape() {
        return Err(Error::value("Weights and input must have the same size."));
    }
    let each = a::mul(&each, weight)?;
    match how {
        LossReduction::Mean => a::div(&sums::Sum::call(&each)?, &sums::Sum::call(weight)?),
        how => how.apply(each.into()).tensor(),
    }
}

/// Compute the mean absolute error: `|input - target|`, averaged.
///
/// Args:
///     input: predictions.
///     target: targets, broadcast with `input`.
///     weight: weights of the elements.
///
/// Examples:
///     >>> F.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
///     tensor(1.)
#[operator(
    nn,
    elementwise,
    autocast = single,
    sample = "loss(name, lambda draw, n, c: values((n, c), draw(SEEDS), (3.0, 4.0)))"
)]
pub fn l1_loss(
    input: &Tensor,
    target: &Tensor,
    size_average: Option<bool>,
    reduce: Option<bool>,
    #[default("mean".into())] reduction: &str,
    weight: Option<&Tensor>,
) -> Result<Tensor> {
    let how = LossReduction::new(reduction, size_average, reduce)?;
    let (input, target) = expand(input, target)?;
    by_weights(weight, how, |how| how.apply(abs(V::from(&input) - V::from(&target))).tensor())
}

/// Compute the smooth L1 loss: squared within `beta` of zero, linear beyond.
///
/// With `d = |input - target|` it is `d**2 / (2 * beta)` if `d < beta`, else `d - beta / 2`.
///
/// Args:
///     input: predictions.
///     target: targets, broadcast with `input`.
///     beta: where the loss becomes linear.
///
/// Examples:
///     >>> F.smooth_l1_loss(torch.tensor([0.5, 2.0]), torch.tensor([0.0, 0.0]), reduction="none")
///     tensor([0.1250, 1.5000])
#[operator(nn, elementwise, autocast = single, sample = "loss(name, lambda draw, n, c: values((n, c), draw(SEEDS)))")]
pub fn smooth_l1_loss(
    input: &Tensor,
    target: &Tensor,
    size_average: Option<bool>,
    reduce: Option<bool>,
    #[default("mean".into())] reduction: &str,
    #[default(1.0)] beta: f64,
) -> Result<Tensor> {
    let how = LossReduction::new(reduction, size_average, reduce)?;
    if beta < 0.0 {
        return Err(Error::runtime("smooth_l1_loss does not support negative values for beta."));
    }
    if beta == 0.0 {
        return l1_loss(input, target, size_average, reduce, reduction, None);
    }
    let (input, target) = expand(input, target)?;
    check_types("smooth_l1_cpu", &input, &target)?;
    SmoothL1Loss::call(&input, &target, how, beta)
}

/// Compute the Huber loss: squared within `delta` of zero, linear with slope `delta` beyond.
///
/// With `d = |input - target|` it is `d**2 / 2` if `d <= delta`, else `delta * (d - delta / 2)`.
///
/// Args:
///     input: predictions.
///     target: targets, broadcast with `input`.
///     delta: where the loss becomes linear.
///     weight: weights of the elements.
///
/// Examples:
///     >>> F.huber_loss(torch.tensor([0.5, 2.0]), torch.tensor([0.0, 0.0]), reduction="none")
///     tensor([0.1250, 1.5000])
#[operator(nn, elementwise, autocast = single, sample = "loss(name, lambda draw, n, c: values((n, c), draw(SEEDS)))")]
pub fn huber_loss(
    input: &Tensor,
    target: &Tensor,
    #[default("mean".into())] reduction: &str,
    #[default(1.0)] delta: f64,
    weight: Option<&Tensor>,
) -> Result<Tensor> {
    let how = LossReduction::new(reduction, None, None)?;
    if delta <= 0.0 {
        return Err(Error::runtime("huber_loss does not support non-positive values for delta."));
    }
    let dtype = input.dtype();
    dtype_checks::check_cast(dtype.promote(target.dtype()), dtype)?;
    let (input, target) = expand(input, target)?;
    check_types("huber_cpu", &input, &target)?;
    let loss = |how| to_dtype(&HuberLoss::call(&input, &target, how, delta)?, dtype);
    match weight {
        None => loss(how),
        // The weighted mean of this loss divides by the number of elements, as in PyTorch.
        Some(_) => how.apply(by_weights(weight, LossReduction::None, loss)?.into()).tensor(),
    }
}

/// Compute the binary cross entropy between probabilities and targets.
///
/// Args:
///     input: probabilities between 0 and 1.
///     target: targets between 0 and 1, of the same shape.
///     weight: weights of the elements, broadcast with `input`.
///
/// Examples:
///     >>> F.binary_cross_entropy(torch.tensor([0.9, 0.2]), torch.tensor([1.0, 0.0]))
///     tensor(0.1643)
#[operator(
    nn,
    autocast = single,
    sample = "fixed([(3, 2), (3, 2)], lambda x, y: [F.binary_cross_entropy(x, y, T.tensor([0.5, 2.0], device=x.device).to(x.dtype), reduction=r) for r in ('mean', 'sum', 'none')], (0.1, 0.9))"
)]
pub fn binary_cross_entropy(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    size_average: Option<bool>,
    reduce: Option<bool>,
    #[default("mean".into())] reduction: &str,
) -> Result<Tensor> {
    let how = LossReduction::new(reduction, size_average, reduce)?;
    same_size(input, target, |t, i| {
        format!(
            "Using a target size ({t}) that is different to the input size ({i}) is deprecated. Please ensure they have \
             the same size."
        )
    })?;
    if target.dtype() != input.dtype() {
        let (found, expected) = (target.dtype().scalar_name(), input.dtype().scalar_name());
        return Err(Error::runtime(format!("Found dtype {found} but expected {expected}")));
    }
    check_types("binary_cross_entropy", input, target)?;
    // Values of batched tensors are not checked.
    for (x, message) in [
        (input, "all elements of input should be between 0 and 1"),
        (target, "all elements of target should be between 0 and 1"),
    ] {
        if !x.is_batched() {
            dtype_checks::improbable("binary_cross_entropy", &x.body(), message)?;
        }
    }
    BinaryCrossEntropy::call(input, target, weight, how)
}

/// Compute the binary cross entropy between logits and targets, without overflow.
///
/// Args:
///     input: logits: the probabilities before the sigmoid.
///     target: targets between 0 and 1, of the same shape.
///     weight: weights of the elements, broadcast with `input`.
///     pos_weight: weights of the positive targets, broadcast with `input`.
///
/// Examples:
///     >>> F.binary_cross_entropy_with_logits(torch.tensor([2.0, -1.0]), torch.tensor([1.0, 0.0]))
///     tensor(0.2201)
#[operator(
    nn,
    elementwise,
    autocast = single,
    sample = "fixed([(3, 2), (3, 2)], lambda x, y: [F.binary_cross_entropy_with_logits(x, y, w, reduction=r, pos_weight=w) for w in [T.tensor([0.5, 2.0], device=x.device).to(x.dtype)] for r in ('mean', 'sum', 'none')])"
)]
pub fn binary_cross_entropy_with_logits(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    size_average: Option<bool>,
    reduce: Option<bool>,
    #[default("mean".into())] reduction: &str,
    pos_weight: Option<&Tensor>,
) -> Result<Tensor> {
    let how = LossReduction::new(reduction, size_average, reduce)?;
    same_size(input, target, |t, i| format!("Target size ({t}) must be the same as input size ({i})"))?;
    if !input.dtype().is_float() {
        return Err(Fault::NoKernel { op: "log_sigmoid_cpu", dtype: input.dtype() }.into());
    }
    // PyTorch computes the loss in the target's memory, so its dtype is that of the target.
    let dtype = target.dtype();
    dtype_checks::booleans(&[target.into(), target.into()])?;
    dtype_checks::check_cast(input.dtype().promote(dtype), dtype)?;
    if dtype.is_complex() && any_requires_grad([input, target]) {
        return Err(Error::not_implemented(
            "binary_cross_entropy_with_logits does not support automatic differentiation for outputs with complex dtype.",
        ));
    }
    to_dtype(&BinaryCrossEntropyWithLogits::call(input, target, weight, pos_weight, how)?, dtype)
}

/// Compute the negative log likelihood loss: minus the log-probability of each target class.
///
/// Args:
///     input: log-probabilities, `(N, C)`, `(C,)` or `(N, C, *)`.
///     target: class numbers, `(N,)`, `()` or `(N, *)`.
///     weight: weight of each class.
///     ignore_index: targets with this number have no loss.
///
/// Examples:
///     >>> log_probs = torch.log_softmax(torch.tensor([[2.0, 1.0], [0.0, 3.0]]), dim=1)
///     >>> F.nll_loss(log_probs, torch.tensor([0, 1]))
///     tensor(0.1809)
#[operator(nn, autocast = single, sample = "loss(name, lambda draw, n, c: integers((n,), draw(SEEDS), 0, c))")]
pub fn nll_loss(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    size_average: Option<bool>,
    #[default(-100)] ignore_index: i64,
    reduce: Option<bool>,
    #[default("mean".into())] reduction: &str,
) -> Result<Tensor> {
    let how = LossReduction::new(reduction, size_average, reduce)?;
    negative_log(input, target, weight, ignore_index, how)
}

/// Compute the cross entropy between logits and target classes or probabilities.
///
/// Args:
///     input: logits: the scores before softmax, `(N, C)`, `(C,)` or `(N, C, *)`.
///     target: class numbers, `(N,)`, `()` or `(N, *)`, or probabilities of the shape of `input`.
///     weight: weight of each class.
///     ignore_index: targets with this number have no loss.
///     label_smoothing: share of the target that is spread evenly over all classes.
///
/// Examples:
///     >>> F.cross_entropy(torch.tensor([[2.0, 1.0], [0.0, 3.0]]), torch.tensor([0, 1]))
///     tensor(0.1809)
#[operator(nn, autocast = single, sample = "loss(name, lambda draw, n, c: integers((n,), draw(SEEDS), 0, c))")]
pub fn cross_entropy(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    size_average: Option<bool>,
    #[default(-100)] ignore_index: i64,
    reduce: Option<bool>,
    #[default("mean".into())] reduction: &str,
    #[default(0.0)] label_smoothing: f64,
) -> Result<Tensor> {
    let how = LossReduction::new(reduction, size_average, reduce)?;
    if !(0.0..=1.0).contains(&label_smoothing) {
        return Err(Error::runtime(format!(
            "label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}"
        )));
    }
    if input.ndim() == 0 {
        return Err(Error::value("Expected 1 or more dimensions (got 0)"));
    }
    if target.shape() == input.shape() && !target.dtype().is_float() {
        return Err(Error::runtime(format!(
            "Expected floating point type for target with class probabilities, got {}",
            target.dtype().scalar_name()
        )));
    }
    if target.shape() == input.shape() && ignore_index >= 0 {
        return Err(Error::runtime("ignore_index is not supported for floating point target"));
    }
    let dim = Classes::dim(input.ndim());
    let logs = softmax::LogSoftmax::call(input, dim)?;
    if target.shape() == input.shape() {
        return against_probabilities(&logs, target, weight, how, label_smoothing);
    }
    let hard = negative_log(&logs, target, weight, ignore_index, how)?;
    if label_smoothing == 0.0 {
        return Ok(hard);
    }
    let classes = input.shape()[dim as usize] as f64;
    let all = Classes { target: target.clone(), weight: weight.cloned(), ignored: ignore_index };
    let soft = smooth_labels(&logs, all, how)?;
    (V::from(hard) * (1.0 - label_smoothing) + soft * (label_smoothing / classes)).tensor()
}

/// Reshapes class weights such that they broadcast along the classes of a tensor.
fn along_classes(weight: &Tensor, ndim: usize) -> Result<V> {
    let mut shape: Dims = smallvec::smallvec![1; ndim];
    shape[Classes::dim(ndim) as usize] = weight.numel();
    reshape(weight, &shape).map(V::from)
}

/// The mean loss over all classes, for label smoothing.
fn smooth_labels(logs: &Tensor, classes: Classes, how: LossReduction) -> Result<V> {
    let (ndim, dim) = (logs.ndim(), Classes::dim(logs.ndim()));
    let all = match &classes.weight {
        Some(weight) => V::from(logs) * along_classes(weight, ndim)?,
        None => V::from(logs),
    };
    let index = classes.index(ndim, false)?;
    let share = classes.share(&index, ndim, logs.dtype())?;
    let counted = ne(V::from(&classes.target), classes.ignored as f64);
    let loss = select(0.0, -all.sum(&[dim], false), counted);
    Ok(match how {
        LossReduction::Mean => loss.then(|t| sums::Sum::call(&t)) / share.then(|t| sums::Sum::call(&t)),
        how => how.apply(loss),
    })
}

fn against_probabilities(
    logs: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    how: LossReduction,
    smoothing: f64,
) -> Result<Tensor> {
    let (ndim, dim) = (logs.ndim(), Classes::dim(logs.ndim()));
    let classes = logs.shape()[dim as usize];
    let mut target = V::from(target);
    if smoothing > 0.0 {
        target = target * (1.0 - smoothing) + V::from(smoothing / classes as f64);
    }
    let mut product = V::from(logs) * target;
    if let Some(weight) = weight {
        product = product * along_classes(weight, ndim)?;
    }
    match how {
        LossReduction::None => -product.sum(&[dim], false),
        LossReduction::Sum => -product.then(|t| sums::Sum::call(&t)),
        LossReduction::Mean => {
            -product.then(|t| sums::Sum::call(&t)) / (logs.numel() / classes.max(1)) as f64
        }
    }
    .tensor()
}
