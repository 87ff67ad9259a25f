//! The negative log likelihood loss, which picks the element of the target class from each row.

use crate::base::{LossReduction, Put};
use crate::capture::{Recorder, Retain, Whole};
use crate::cpu::nll as host;
#[cfg(feature = "gpu")]
use crate::gpu::nll;
use crate::operator::primitives::constant;
use crate::operator::primitives::copies::to_dtype;
use crate::operator::primitives::sums;
use crate::operator::primitives::views::reshape;
use crate::ops::indexing::index::Gather;
use crate::ops::indexing::scatter::{Scatter, into_zeros};
use crate::ops::nn::norm::dense;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::no_grad;
use crate::ops::shape::slices;
use crate::ops::shape::squeeze::{self, unsqueeze};
use crate::storage::access;

fn sum(all: V) -> V {
    all.then(|t| sums::Sum::call(&t))
}

fn loss(
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    ignored: i64,
    how: LossReduction,
) -> Result<Tensor> {
    Classes { target: target.clone(), weight: weight.cloned(), ignored }.loss(input, how).tensor()
}

/// The gradient of the loss. The input is an operand for the sake of the graph, though its values have no influence.
fn loss_gradient(
    grad: &Tensor,
    input: &Tensor,
    target: &Tensor,
    weight: Option<&Tensor>,
    ignored: i64,
    how: LossReduction,
) -> Result<Tensor> {
    let classes = Classes { target: target.clone(), weight: weight.cloned(), ignored };
    let at = Meta { shape: input.shape(), dtype: input.dtype(), device: input.device() };
    classes.gradient(V::from(grad), &at, how)
}

/// `nll_loss` and `nll_loss2d`, which PyTorch's graph tells apart: classes are the last of one or two dimensions, or the second
/// of four. The gradient is a primitive as well.
macro_rules! nll_loss {
    ($($Loss:ident, $Backward:ident;)*) => { $(
        #[primitive]
        impl $Loss {
            fn forward(
                input: &Tensor,
                target: &Tensor,
                weight: Option<&Tensor>,
                ignore_index: i64,
                reduction: LossReduction,
            ) -> Result<Body> {
                let classes = Classes { target: target.clone(), weight: weight.cloned(), ignored: ignore_index };
                match classes.loss_by_kernel(input, reduction)? {
                    Some(loss) => Ok(loss),
                    None => no_grad(|| classes.loss(input, reduction).tensor()),
                }
            }
            fn d_input(
                g: &Tensor,
                input: &Tensor,
                target: &Tensor,
                weight: Option<Tensor>,
                ignore_index: i64,
                reduction: LossReduction,
            ) -> Result<Tensor> {
                $Backward::call(g, input, target, weight.as_ref(), ignore_index, reduction)
            }
            fn batch(
                _b: &Batch,
                input: &Tensor,
                target: &Tensor,
                weight: Option<&Tensor>,
                ignore_index: i64,
                reduction: LossReduction,
            ) -> Result<Tensor> {
                loss(input, target, weight, ignore_index, reduction)
            }
        }

        #[primitive(tangent = fn)]
        impl $Backward {
            fn forward(
                grad: &Tensor,
                input: &Tensor,
                target: &Tensor,
                weight: Option<&Tensor>,
                ignore_index: i64,
                reduction: LossReduction,
            ) -> Result<Body> {
                let classes = Classes { target: target.clone(), weight: weight.cloned(), ignored: ignore_index };
                match classes.gradient_by_kernel(grad, input, reduction)? {
                    Some(gradient) => Ok(gradient),
                    None => no_grad(|| loss_gradient(grad, input, target, weight, ignore_index, reduction)),
                }
            }
            fn d_grad(
                g: &Tensor,
                target: &Tensor,
                weight: Option<Tensor>,
                ignore_index: i64,
                reduction: LossReduction,
            ) -> Result<Tensor> {
                $Loss::call(g, target, weight.as_ref(), ignore_index, reduction)
            }
            fn d_input(g: V) -> V {
                constant_zero(g)
            }
            fn tangent(
                t_grad: &Tensor,
                input: &Tensor,
                target: &Tensor,
                weight: Option<Tensor>,
                ignore_index: i64,
                reduction: LossReduction,
            ) -> Result<Tensor> {
                $Backward::call(t_grad, input, target, weight.as_ref(), ignore_index, reduction)
            }
            fn batch(
                _b: &Batch,
                grad: &Tensor,
                input: &Tensor,
                target: &Tensor,
                weight: Option<&Tensor>,
                ignore_index: i64,
                reduction: LossReduction,
            ) -> Result<Tensor> {
                loss_gradient(grad, input, target, weight, ignore_index, reduction)
            }
        }
    )* };
}
nll_loss! {
    NllLoss, NllLossBackward;
    NllLoss2D, NllLoss2DBackward;
}

/// The operands in the dtype and layout that the kernels expect.
struct NllOperands {
    target: Body,
    weight: Option<Body>,
    ignored: i64,
    planes: [usize; 3],
}

impl NllOperands {
    fn host(&self) -> Result<host::Nll<'_>> {
        Ok(host::Nll {
            target: self.target.host()?,
            weight: self.weight.as_ref().map(Body::host).transpose()?,
            ignored: self.ignored,
            planes: self.planes,
        })
    }

    #[cfg(feature = "gpu")]
    fn view(&self) -> Result<nll::Nll<'_>> {
        Ok(nll::Nll {
            target: self.target.gpu()?,
            weight: self.weight.as_ref().map(Body::gpu).transpose()?,
            ignored: self.ignored,
            planes: self.planes,
        })
    }
}

impl Retain for NllOperands {
    type Retained = Whole<NllOperands>;
    fn retain(&self, recorder: &mut Recorder) -> Result<Self::Retained> {
        Ok(Whole(NllOperands {
            target: recorder.stand_in(&self.target)?,
            weight: self.weight.as_ref().map(|weight| recorder.stand_in(weight)).transpose()?,
            ..*self
        }))
    }
}

/// Returns an error if a kernel in a replay has met a target out of range.
fn in_range(done: bool, own: &NllOperands) -> Result<()> {
    let beyond = Fault::Beyond { index: None, size: own.planes[1], along: false };
    if done { Ok(()) } else { Err(beyond.into()) }
}

/// Target classes, the classes' weights, and the class that is ignored.
pub struct Classes {
    pub target: Tensor,
    pub weight: Option<Tensor>,
    pub ignored: i64,
}

impl Classes {
    /// The dimension of the classes.
    pub fn dim(ndim: usize) -> i64 {
        i64::from(ndim > 1)
    }

    /// True if every target counts equally, which saves two thirds of the steps.
    fn all_count(&self) -> Result<bool> {
        let target = &self.target;
        if self.weight.is_some()
            || target.is_batched()
            || target.dtype() != DType::I64
            || !target.device().is_cpu()
        {
            return Ok(false);
        }
        // SAFETY: the view describes the target's memory.
        Ok(unsafe { !crate::cpu::index::holds(target.body().host()?, self.ignored) })
    }

    /// Targets as an index into the input. Ignored ones become class 0.
    pub fn index(&self, ndim: usize, all_count: bool) -> Result<Tensor> {
        if all_count {
            return unsqueeze(&self.target, Self::dim(ndim));
        }
        let target = to_dtype(&self.target, DType::I64)?;
        let counted = select(
            0.0,
            V::from(&target),
            crate::ops::elementwise::formula::ne(V::from(&target), self.ignored as f64),
        );
        unsqueeze(&counted.cast(DType::I64).tensor()?, Self::dim(ndim))
    }

    /// The weight of each target: that of its class, or 0 if it is ignored.
    pub fn share(&self, index: &Tensor, ndim: usize, dtype: DType) -> Result<V> {
        let target = V::from(&to_dtype(&self.target, DType::I64)?);
        let counted = crate::ops::elementwise::formula::ne(target, self.ignored as f64);
        let Some(weight) = &self.weight else { return Ok(counted.cast(dtype)) };
        let dim = Self::dim(ndim) as usize;
        let flat = reshape(index, &[index.numel()])?;
        let picked = crate::ops::indexing::index::index_select(weight, 0, &flat)?;
        let mut shape = index.shape();
        shape.remove(dim);
        Ok(select(0.0, V::from(reshape(&picked, &shape)?), counted))
    }

    /// The loss by one kernel; on a GPU only of few examples. `None` if there is no kernel, or if a target on the CPU is out of
    /// range.
    fn loss_by_kernel(&self, input: &Tensor, how: LossReduction) -> Result<Option<Body>> {
        let x = input.body();
        if x.layout.is_contiguous()
            && x.conj_neg.is_none()
            && let Some(own) = self.on_host(&x)?
        {
            let shape = if how == LossReduction::None { self.target.shape() } else { Dims::new() };
            let out = Body::new(&shape, x.dtype, x.device())?;
            if access::is_captured() {
                fork!(over [out, x], with [own, how],
                    cpu: in_range(host::forward(own.host()?, out.host()?, x.host()?, how)?, &own),
                    gpu: no_shader("nll", x.dtype))?;
                return Ok(Some(out));
            }
            // SAFETY: contiguous tensors with the sizes that were checked; `out` is new.
            let done = unsafe { host::forward(own.host()?, out.host()?, x.host()?, how)? };
            return Ok(done.then_some(out));
        }
        #[cfg(feature = "gpu")]
        if let Some(own) = self.of_few(&input.body())? {
            let (x, line) = (dense(&input.body(), input.dtype())?, crate::tensor::anomaly::line());
            let shape = if how == LossReduction::None { self.target.shape() } else { Dims::new() };
            let out = Body::new(&shape, x.dtype, x.device())?;
            let keep = |recorder: &mut Recorder| {
                let out = recorder.stand_in(&out)?;
                let (x, own) =
                    recorder.reading(|recorder| Ok((recorder.stand_in(&x)?, own.retain(recorder)?)))?;
                let line = line.clone();
                Ok(move || nll::nll(line.clone(), out.gpu()?, x.gpu()?, own.0.view()?, how))
            };
            let run = || nll::nll(line.clone(), out.gpu()?, x.gpu()?, own.view()?, how);
            crate::capture::run(keep, run)?;
            return Ok(Some(out));
        }
        Ok(None)
    }

    /// The gradient of the input by a kernel; `None` if there is none.
    fn gradient_by_kernel(&self, grad: &Tensor, input: &Tensor, how: LossReduction) -> Result<Option<Body>> {
        let each = how == LossReduction::None;
        if grad.numel() != if each { self.target.numel() } else { 1 } {
            return Ok(None);
        }
        if let Some(own) = self.on_host(&input.body())? {
            let g = dense(&grad.body(), input.dtype())?;
            let out = constant::zeros(&input.shape(), input.dtype(), input.device())?.body().clone();
            if access::is_captured() {
                fork!(over [out, g], with [own, how],
                    cpu: in_range(host::backward(own.host()?, out.host()?, g.host()?, how)?, &own),
                    gpu: no_shader("nll", g.dtype))?;
                return Ok(Some(out));
            }
            // SAFETY: contiguous tensors with the sizes that were checked; `out` is new.
            let done = unsafe { host::backward(own.host()?, out.host()?, g.host()?, how)? };
            return Ok(done.then_some(out));
        }
        #[cfg(feature = "gpu")]
        if let Some(own) = self.of_few(&input.body())? {
            let g = dense(&grad.body(), input.dtype())?;
            let new = |shape: &[usize]| Body::new(shape, input.dtype(), input.device());
            let total = (how == LossReduction::Mean).then(|| new(&[])).transpose()?;
            let out = new(&input.shape())?;
            let run = move |out: &Body, total: Option<&Body>, g: &Body, own: &NllOperands| {
                if let Some(total) = total {
                    nll::nll_total(total.gpu()?, own.view()?)?;
                }
                nll::nll_backward(out.gpu()?, g.gpu()?, total.map(Body::gpu).transpose()?, own.view()?, each)
            };
            let keep = |recorder: &mut Recorder| {
                let out = recorder.stand_in(&out)?;
                let total = total.as_ref().map(|total| recorder.stand_in(total)).transpose()?;
                let (g, own) =
                    recorder.reading(|recorder| Ok((recorder.stand_in(&g)?, own.retain(recorder)?)))?;
                Ok(move || run(&out, total.as_ref(), &g, &own.0))
            };
            crate::capture::run(keep, || run(&out, total.as_ref(), &g, &own))?;
            return Ok(Some(out));
        }
        Ok(None)
    }

    /// The operands for the GPU's kernels, or `None`.
    #[cfg(feature = "gpu")]
    fn of_few(&self, input: &Body) -> Result<Option<NllOperands>> {
        if !input.device().is_gpu() || !input.dtype.is_float() {
            return Ok(None);
        }
        let own = self.own(input, self.target.dtype())?;
        Ok(own.filter(|own| (1..=nll::MOST).contains(&(own.planes[0] * own.planes[2]))))
    }

    /// The operands for the CPU's kernels, or `None`.
    fn on_host(&self, input: &Body) -> Result<Option<NllOperands>> {
        let fits = input.device().is_cpu() && matches!(input.dtype, DType::F32 | DType::F64);
        if fits { self.own(input, DType::I64) } else { Ok(None) }
    }

    fn own(&self, input: &Body, of_targets: DType) -> Result<Option<NllOperands>> {
        let target = self.target.body();
        let planes = match *input.shape() {
            [classes] => [1, classes, 1],
            [n, classes, ref run @ ..] => [n, classes, crate::base::numel(run)],
            [] => return Ok(None),
        };
        let alike = |t: &Tensor| t.dtype() == input.dtype && t.device() == input.device();
        if target.device() != input.device()
            || !self.weight.as_ref().is_none_or(|weight| alike(weight) && weight.numel() == planes[1])
            || planes[0] * planes[2] != target.numel()
            || planes[1] == 0
        {
            return Ok(None);
        }
        let weight = self.weight.as_ref().map(|t| dense(&t.body(), input.dtype)).transpose()?;
        Ok(Some(NllOperands { target: dense(&target, of_targets)?, weight, ignored: self.ignored, planes }))
    }

    pub fn loss(&self, input: &Tensor, how: LossReduction) -> V {
        self.reduce_losses(input, how).unwrap_or_else(|e| V::from(Err(e)))
    }

    fn reduce_losses(&self, input: &Tensor, how: LossReduction) -> Result<V> {
        let (ndim, all_count) = (input.ndim(), self.all_count()?);
        let index = self.index(ndim, all_count)?;
        let picked =
            Gather::call(input, Self::dim(ndim), &index).map_err(|e| self.out_of_bounds(e, input))?;
        let picked = V::from(squeeze::squeeze(&picked, Some(smallvec::smallvec![Self::dim(ndim)]))?);
        let (loss, total) = if all_count {
            (-picked, V::from(self.target.numel() as f64))
        } else {
            let share = self.share(&index, ndim, input.dtype())?;
            // An ignored element contributes 0 even if its loss is infinite.
            let loss = -(select(picked * &share, 0.0, eq(&share, 0.0)));
            (loss, if how == LossReduction::Mean { sum(share) } else { share })
        };
        Ok(match how {
            LossReduction::None => loss,
            LossReduction::Sum => sum(loss),
            LossReduction::Mean => sum(loss) / total,
        })
    }

    pub fn gradient(&self, g: V, at: &Meta, how: LossReduction) -> Result<Tensor> {
        let (ndim, all_count) = (at.shape.len(), self.all_count()?);
        let index = self.index(ndim, all_count)?;
        let mut shape = index.shape();
        shape.remove(Self::dim(ndim) as usize);
        let shares = if all_count {
            -(if how == LossReduction::Mean { g / self.target.numel() as f64 } else { g })
        } else {
            let share = self.share(&index, ndim, at.dtype)?;
            let g = if how == LossReduction::Mean { g / sum(share.clone()) } else { g };
            select(-g * &share, 0.0, eq(share, 0.0))
        };
        let dim = Self::dim(ndim);
        let src = unsqueeze(&shares.expand(&shape).tensor()?, dim)?;
        into_zeros!(at, [&src, &index], Scatter(dim, &index, &src, Put::Assign))
    }

    /// Replaces the error by one that names the class that is out of range.
    fn out_of_bounds(&self, error: Error, input: &Tensor) -> Error {
        if !matches!(error.fault(), Fault::Beyond { .. }) {
            return error;
        }
        let classes = input.shape()[Self::dim(input.ndim()) as usize] as i64;
        let wrong = || -> Result<i64> {
            let t = V::from(&to_dtype(&self.target, DType::I64)?);
            let outside = crate::ops::elementwise::formula::either(
                lt(&t, 0.0),
                crate::ops::elementwise::formula::ge(&t, classes as f64),
            );
            let outside = crate::ops::elementwise::formula::both(
                outside,
                crate::ops::elementwise::formula::ne(&t, self.ignored as f64),
            )
            .tensor()?;
            let first = crate::ops::indexing::masked::masked_select(
                &reshape(&self.target, &[self.target.numel()])?,
                &reshape(&outside, &[outside.numel()])?,
            )?;
            slices::select(&first, 0, 0)?.item().map(Scalar::as_i64)
        };
        match wrong() {
            Ok(target) => Error::index(format!("Target {target} is out of bounds.")),
            Err(_) => error,
        }
    }
}
