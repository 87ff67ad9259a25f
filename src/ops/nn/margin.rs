//! Margin losses that have nodes of their own.

use crate::base::{broadcast, default_dtype, numel, warn};
use crate::operator::primitives::constant;
use crate::operator::primitives::views::reshape;
use crate::ops::indexing::index;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce;
use crate::ops::reduction::reduce::no_grad;
use crate::ops::reduction::scan;
use crate::ops::shape::squeeze::unsqueeze;
use crate::tensor::mode;

const NONE: i64 = 0;
const MEAN: i64 = 1;

/// The code of a reduction, from its name or from the legacy flags `size_average` and `reduce`.
pub fn reduction_of(name: &str, size_average: Option<bool>, reduce: Option<bool>) -> Result<i64> {
    let number = |name: &str| match name {
        "none" => Ok(NONE),
        "mean" => Ok(MEAN),
        "sum" => Ok(2),
        other => Err(Error::value(format!("{other} is not a valid value for reduction"))),
    };
    if size_average.is_none() && reduce.is_none() {
        return number(name);
    }
    let name = match (size_average.unwrap_or(true), reduce.unwrap_or(true)) {
        (_, false) => "none",
        (true, _) => "mean",
        (false, _) => "sum",
    };
    warn(&format!(
        "size_average and reduce args will be deprecated, please use reduction='{name}' instead."
    ))?;
    number(name)
}

fn reduce_losses(loss: V, reduction: i64) -> V {
    match reduction {
        NONE => loss,
        MEAN => loss.then(|t| reduce::mean(&t, None, false, None)),
        _ => loss.then(|t| reduce::sum(&t, None, false, None)),
    }
}

/// `0, 1, …` as a vector.
fn counting(n: usize, like: &Tensor) -> Result<V> {
    let ones = constant::ones(&[n], DType::I64, like.device())?;
    Ok(V::from(scan::cumsum(&ones, 0, None)?) - 1.0)
}

/// True if the values of a tensor can be read without waiting for a GPU.
fn is_seen(t: &Tensor) -> bool {
    t.device().is_cpu() && !t.is_batched()
}

fn any(condition: V) -> Result<bool> {
    reduce::all(&not(condition).tensor()?, None, false)?.item().map(|all| !all.as_bool())
}

/// The numbers of examples and classes of a matrix. A vector is a single example.
fn samples(input: &Tensor) -> Result<[usize; 2]> {
    let shape = input.shape();
    let sizes = rows(&shape);
    if shape.len() > 2 || sizes[1] == 0 {
        return Err(Error::runtime(format!(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: {:?}",
            shape.as_slice()
        )));
    }
    Ok(sizes)
}

/// Rejects operands that require a gradient, if the derivative by them is not implemented.
fn need_constant(op: &str, name: &str, operand: Option<&Tensor>) -> Result<()> {
    if operand.is_some_and(Tensor::requires_grad) && mode::grad_enabled() {
        return Err(Error::runtime(format!(
            "The function '{op}' is not differentiable with respect to argument '{name}'. This input cannot have \
             requires_grad True."
        )));
    }
    Ok(())
}

fn need_long(target: &Tensor) -> Result<()> {
    if target.dtype() == DType::I64 {
        return Ok(());
    }
    Err(Error::runtime(format!("expected scalar type Long but found {}", target.dtype().scalar_name())))
}

fn need_wide(kernel: &'static str, input: &Tensor) -> Result<()> {
    if matches!(input.dtype(), DType::F32 | DType::F64) {
        return Ok(());
    }
    Err(Fault::NoKernel { op: kernel, dtype: input.dtype() }.into())
}

#[primitive]
impl SoftMarginLoss {
    fn forward(input: &Tensor, #[constant] target: &Tensor, reduction: i64) -> Result<Body> {
        no_grad(|| soft(input, target, reduction).tensor())
    }
    fn d_input(g: V, input: V, target: V, reduction: i64) -> Result<Tensor> {
        let shape = broadcast(&input.shape(), &target.shape())?;
        let slope = -&target * sigmoid(-(&target * &input));
        let slope = if reduction == MEAN { slope / numel(&shape) as f64 } else { slope };
        (g * slope).tensor()
    }
    fn batch(_b: &Batch, input: &Tensor, target: &Tensor, reduction: i64) -> Result<Tensor> {
        soft(input, target, reduction).tensor()
    }
}

fn soft(input: &Tensor, target: &Tensor, reduction: i64) -> V {
    let loss = log1p(exp(-(V::from(input) * V::from(target))));
    reduce_losses(loss, reduction).cast(input.dtype())
}

/// Compute the soft margin loss, `log(1 + exp(-target * input))`, averaged.
///
/// Args:
///     input: scores.
///     target: 1 or -1 for each element.
///
/// Examples:
///     >>> F.soft_margin_loss(torch.tensor([2.0, -1.0]), torch.tensor([1.0, -1.0]))
///     tensor(0.2201)
#[operator(nn, autocast = single, sample = "softly()")]
pub fn soft_margin_loss(
    input: &Tensor,
    target: &Tensor,
    size_average: Option<bool>,
    reduce: Option<bool>,
    #[default("mean".to_string())] reduction: String,
) -> Result<Tensor> {
    need_constant("soft_margin_loss", "target", Some(target))?;
    let found = input.dtype().promote(target.dtype());
    let found = if found.is_differentiable() { found } else { default_dtype() };
    if !input.dtype().is_differentiable() || found.is_complex() != input.dtype().is_complex() {
        let (found, wanted) = (found.scalar_name(), input.dtype().scalar_name());
        return Err(Error::runtime(format!(
            "result type {found} can't be cast to the desired output type {wanted}"
        )));
    }
    SoftMarginLoss::call(input, target, reduction_of(&reduction, size_average, reduce)?)
}

/// The amount by which each class violates the margin to the target class.
struct Violations {
    /// 0 for the target class itself.
    violation: V,
    own: V,
    weight: Option<V>,
}

fn violations(
    x: &V,
    target: &Tensor,
    margin: f64,
    weight: Option<&Tensor>,
    sizes: [usize; 2],
) -> Result<Violations> {
    let x = x.clone().reshape(&sizes);
    let target = reshape(target, &[sizes[0], 1])?;
    let x = x.tensor()?;
    let near = V::from(index::Gather::call(&x, 1, &target)?);
    let own = eq(counting(sizes[1], &x)?, V::from(&target));
    let violation = select(maximum(V::from(&x) - near + margin, 0.0), 0.0, &own);
    let weight = weight.map(|w| index::index_select(w, 0, &reshape(&target, &[sizes[0]])?)).transpose()?;
    let weight = weight.map(|w| V::from(w).reshape(&[sizes[0], 1]));
    Ok(Violations { violation, own, weight })
}

fn multi_margin(
    input: &Tensor,
    target: &Tensor,
    p: i64,
    margin: f64,
    weight: Option<&Tensor>,
    reduction: i64,
) -> Result<Tensor> {
    let sizes = rows(&input.shape());
    let Violations { violation, weight, .. } = violations(&input.into(), target, margin, weight, sizes)?;
    let violation = if p == 1 { violation } else { &violation * &violation };
    let violation = match weight {
        Some(weight) => violation * weight,
        None => violation,
    };
    let loss = violation.sum(&[1], false) / sizes[1] as f64;
    let loss = if reduction == NONE { loss.reshape(&target.shape()) } else { loss };
    reduce_losses(loss, reduction).tensor()
}

fn rows(shape: &[usize]) -> [usize; 2] {
    match shape {
        [] => [1, 1],
        [classes] => [1, *classes],
        [samples, classes, ..] => [*samples, *classes],
    }
}

#[primitive]
impl MultiMarginLoss {
    fn forward(
        input: &Tensor,
        #[constant] target: &Tensor,
        p: i64,
        margin: f64,
        #[constant] weight: Option<&Tensor>,
        reduction: i64,
    ) -> Result<Body> {
        no_grad(|| multi_margin(input, target, p, margin, weight, reduction))
    }
    fn d_input(
        g: V,
        input: V,
        target: Tensor,
        p: i64,
        margin: f64,
        weight: Option<Tensor>,
        reduction: i64,
    ) -> Result<Tensor> {
        let sizes = rows(&input.shape());
        let Violations { violation, own, weight } =
            violations(&input, &target, margin, weight.as_ref(), sizes)?;
        let counts = gt(&violation, 0.0);
        let slope = if p == 1 { select(zero_of(&violation), 1.0, counts) } else { violation * 2.0 };
        let slope = match weight {
            Some(weight) => slope * weight,
            None => slope,
        };
        let parts = if reduction == MEAN { numel(&sizes) } else { sizes[1] };
        let g = if reduction == NONE { g.reshape(&[sizes[0], 1]) } else { g };
        let slope = g * slope / parts as f64;
        let back = slope.clone().sum(&[1], true);
        select(slope, -back, own).reshape(&input.shape()).tensor()
    }
    fn batch(
        _b: &Batch,
        input: &Tensor,
        target: &Tensor,
        p: i64,
        margin: f64,
        weight: Option<&Tensor>,
        reduction: i64,
    ) -> Result<Tensor> {
        multi_margin(input, target, p, margin, weight, reduction)
    }
}

/// Compute the multi-class margin (hinge) loss: `max(0, margin - input[y] + input[i])**p`, summed over `i != y`.
///
/// The sum is divided by the number of classes.
///
/// Args:
///     input: scores of the classes, `(N, C)` or `(C,)`.
///     target: class numbers `y`.
///     p: exponent, 1 or 2.
///     margin: by how much the score of the target is to exceed the others.
///     weight: weight of each class.
///
/// Examples:
///     >>> F.multi_margin_loss(torch.tensor([[0.1, 0.2, 0.9]]), torch.tensor([2]))
///     tensor(0.1667)
#[operator(
    nn,
    autocast = single,
    sample = "of_wide(loss('multi_margin_loss', lambda draw, n, c: integers((n,), draw(SEEDS), 0, c)))"
)]
pub fn multi_margin_loss(
    input: &Tensor,
    target: &Tensor,
    #[default(1)] p: i64,
    #[default(1.0)] margin: f64,
    weight: Option<&Tensor>,
    size_average: Option<bool>,
    reduce: Option<bool>,
    #[default("mean".to_string())] reduction: String,
) -> Result<Tensor> {
    let how = reduction_of(&reduction, size_average, reduce)?;
    if p != 1 && p != 2 {
        return Err(Error::value("only p == 1 and p == 2 supported"));
    }
    if weight.is_some_and(|w| w.ndim() != 1) {
        return Err(Error::value("weight must be one-dimensional"));
    }
    need_constant("multi_margin_loss", "weight", weight)?;
    let [count, classes] = samples(input)?;
    if target.ndim() > 1 || target.numel() != count {
        return Err(Error::runtime(format!(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). \
             Expected target size [{count}], but got {:?}. Input has shape {:?}.",
            target.shape().as_slice(),
            input.shape().as_slice()
        )));
    }
    if let Some(weight) = weight.filter(|w| w.numel() != classes) {
        return Err(Error::runtime(format!(
            "inconsistent weight size, expected {classes} but got {:?}",
            weight.shape().as_slice()
        )));
    }
    need_wide("multi_margin_loss_cpu_kernel", input)?;
    need_long(target)?;
    if is_seen(target) {
        let t = V::from(target);
        if any(either(lt(&t, 0.0), ge(&t, classes as f64)))? {
            return Err(Error::runtime("target out of range"));
        }
    }
    MultiMarginLoss::call(input, target, p, margin, weight, how)
}

/// Target classes of each example, up to the first negative number, compared with the scores.
struct TargetLists {
    /// The amount by which class `i` violates the margin to target `j`: `[example, j, i]`; 0 where it does not count.
    violation: V,
    /// 1 if target `j` is class `i`.
    member: V,
    /// 1 if class `i` is among the targets: `[example, 1, i]`.
    chosen: V,
}

fn target_lists(x: &V, target: &Tensor, sizes: [usize; 2]) -> Result<TargetLists> {
    let x = x.clone().reshape(&sizes).tensor()?;
    let target = reshape(target, &sizes)?;
    let there = V::from(&target).then(|t| ge(V::from(t), 0.0).cast(DType::I64).tensor());
    let listed = there.then(|t| scan::cumprod(&t, 1, None));
    let place = maximum(V::from(&target), 0.0).cast(DType::I64).tensor()?;
    let near = V::from(index::Gather::call(&x, 1, &place)?).then(|t| unsqueeze(&t, 2));
    let listed = listed.then(|t| unsqueeze(&t, 2));
    let place = V::from(unsqueeze(&place, 2)?);
    let member = both(eq(counting(sizes[1], &x)?, place), &listed);
    let chosen = gt(member.clone().cast(DType::I64).sum(&[1], true), 0.0);
    let violation = maximum(V::from(unsqueeze(&x, 1)?) - near + 1.0, 0.0);
    let violation = select(0.0, violation, both(listed, not(&chosen)));
    Ok(TargetLists { violation, member, chosen })
}

fn multilabel(input: &Tensor, target: &Tensor, reduction: i64) -> Result<[Tensor; 2]> {
    let sizes = rows(&input.shape());
    let TargetLists { violation, chosen, .. } = target_lists(&input.into(), target, sizes)?;
    let loss = violation.sum(&[1, 2], false) / sizes[1] as f64;
    let loss = if reduction == NONE && input.ndim() < 2 { loss.reshape(&[]) } else { loss };
    let chosen = chosen.cast(input.dtype()).reshape(&target.shape()).tensor()?;
    Ok([reduce_losses(loss, reduction).tensor()?, chosen])
}

#[primitive(results(result, is_target), scratch(is_target))]
impl MultilabelMarginLoss {
    fn forward(input: &Tensor, #[constant] target: &Tensor, reduction: i64) -> Result<[Body; 2]> {
        let made = mode::with_grad(false, || multilabel(input, target, reduction))?;
        Ok(made.map(|t| t.body().clone()))
    }
    fn d_input(g: V, input: V, target: Tensor, is_target: Unread, reduction: i64) -> Result<Tensor> {
        let Unread = is_target;
        let sizes = rows(&input.shape());
        let TargetLists { violation, member, .. } = target_lists(&input, &target, sizes)?;
        let parts = if reduction == MEAN { numel(&sizes) } else { sizes[1] };
        let g = if reduction == NONE { g.reshape(&[sizes[0], 1, 1]) } else { g };
        let slope = g * select(zero_of(&violation), 1.0, gt(&violation, 0.0)) / parts as f64;
        let back = select(0.0, slope.clone().sum(&[2], true), member).sum(&[1], false);
        (slope.sum(&[1], false) - back).reshape(&input.shape()).tensor()
    }
    fn batch(_b: &Batch, input: &Tensor, target: &Tensor, reduction: i64) -> Result<Tensor> {
        multilabel(input, target, reduction).map(|[loss, _]| loss)
    }
}

/// Compute the multi-label margin (hinge) loss between scores and sets of target classes.
///
/// It is the sum of `max(0, 1 - input[y] + input[i])` over the targets `y` and the other classes `i`,
/// divided by the number of classes.
///
/// Args:
///     input: scores of the classes, `(N, C)` or `(C,)`.
///     target: class numbers of the same shape; a negative one ends the list of a sample.
///
/// Examples:
///     >>> F.multilabel_margin_loss(torch.tensor([[0.1, 0.2, 0.9]]), torch.tensor([[2, -1, 0]]))
///     tensor(0.1667)
#[operator(
    nn,
    autocast = single,
    sample = "of_wide(loss('multilabel_margin_loss', lambda draw, n, c: integers((n, c), draw(SEEDS), -1, c)))"
)]
pub fn multilabel_margin_loss(
    input: &Tensor,
    target: &Tensor,
    size_average: Option<bool>,
    reduce: Option<bool>,
    #[default("mean".to_string())] reduction: String,
) -> Result<Tensor> {
    let how = reduction_of(&reduction, size_average, reduce)?;
    let [_, classes] = samples(input)?;
    if target.shape() != input.shape() {
        return Err(Error::runtime(format!(
            "inconsistent target size: {:?} for input of size: {:?}",
            target.shape().as_slice(),
            input.shape().as_slice()
        )));
    }
    need_wide("multilabel_margin_loss_forward_out_frame", input)?;
    need_long(target)?;
    if is_seen(target) {
        let t = V::from(target);
        if any(either(lt(&t, -1.0), ge(&t, classes as f64)))? {
            return Err(Error::runtime("argument #2 'target' is out of range"));
        }
    }
    MultilabelMarginLoss::call(input, target, how)
}
