//! Negative log likelihood: minus the log-probability of each target class, and its gradient.

use super::float::{Float, by_float};
use super::par::{self, Shared};
use crate::base::{LossReduction as Joined, Result, Strided};

/// The targets, the weights of the classes, and the target that is ignored.
#[derive(Clone, Copy)]
pub struct Nll<'a> {
    pub target: Strided<'a>,
    pub weight: Option<Strided<'a>>,
    pub ignored: i64,
    /// Batch size, number of classes, number of elements per class.
    pub planes: [usize; 3],
}

/// Number of targets in a task; fixed, so that results do not depend on the number of threads.
const BLOCK: usize = 4096;

/// The sums of losses and of weights; `None` if a target is not a class.
type Part = Option<[f64; 2]>;

impl Nll<'_> {
    fn targets(&self) -> usize {
        self.planes[0] * self.planes[2]
    }

    /// Calls `take` with each target of a block that is not ignored: its index, the index of the element it picks, and
    /// its weight. Returns `None` if a target is not a class.
    unsafe fn each<T: Float>(&self, block: usize, mut take: impl FnMut(usize, usize, f64)) -> Option<()> {
        let [_, classes, run] = self.planes;
        let first = block * BLOCK;
        let (mut sample, mut at) = (first / run.max(1), first % run.max(1));
        for i in first..self.targets().min(first + BLOCK) {
            // SAFETY: the caller's targets, and one weight per class.
            unsafe {
                let target = *self.target.ptr.cast::<i64>().add(i);
                if target != self.ignored {
                    let class = usize::try_from(target).ok().filter(|&class| class < classes)?;
                    let share =
                        self.weight.map_or(1.0, |weight| (*weight.ptr.cast::<T>().add(class)).to_f64());
                    // A weight of zero gives zero even if the log-probability is infinite.
                    if share != 0.0 {
                        take(i, (sample * classes + class) * run + at, share);
                    }
                }
            }
            at += 1;
            if at == run {
                (sample, at) = (sample + 1, 0);
            }
        }
        Some(())
    }

    fn blocks(&self, part: impl Fn(usize) -> Part + Sync) -> Result<Part> {
        let parts = par::map(self.targets().div_ceil(BLOCK), par::GRAIN / BLOCK, part)?;
        Ok(parts
            .into_iter()
            .try_fold([0.0; 2], |[sum, all], part| part.map(|part| [sum + part[0], all + part[1]])))
    }

    unsafe fn forward<T: Float>(&self, out: Strided, x: Strided, joined: Joined) -> Result<bool> {
        let (to, x) =
            (Shared::new(out.ptr.cast::<T>().cast_const()), Shared::new(x.ptr.cast::<T>().cast_const()));
        let part = |block: usize| {
            // Four independent sums, because each addition waits for the one before.
            let mut sums = [[0.0; 2]; 4];
            // SAFETY: the indices are inside the input; the results belong to this block alone.
            unsafe {
                if joined == Joined::None {
                    let first = block * BLOCK;
                    (first..self.targets().min(first + BLOCK))
                        .for_each(|i| *to.get().add(i) = T::from_f64(0.0));
                }
                self.each::<T>(block, |i, place, share| {
                    let loss = -(*x.get().add(place)).to_f64() * share;
                    match joined {
                        Joined::None => *to.get().add(i) = T::from_f64(loss),
                        _ => {
                            let [sum, all] = &mut sums[i % 4];
                            *sum += loss;
                            *all += share;
                        }
                    }
                })?;
            }
            Some([0, 1].map(|j| (sums[0][j] + sums[1][j]) + (sums[2][j] + sums[3][j])))
        };
        let Some([sum, all]) = self.blocks(part)? else { return Ok(false) };
        if joined != Joined::None {
            // SAFETY: the only element of the result.
            unsafe { *to.get() = T::from_f64(if joined == Joined::Mean { sum / all } else { sum }) };
        }
        Ok(true)
    }

    unsafe fn backward<T: Float>(&self, out: Strided, g: Strided, joined: Joined) -> Result<bool> {
        let (to, g) =
            (Shared::new(out.ptr.cast::<T>().cast_const()), Shared::new(g.ptr.cast::<T>().cast_const()));
        let count = |block: usize| {
            let mut all = 0.0;
            // SAFETY: the caller's targets and weights.
            unsafe { self.each::<T>(block, |_, _, share| all += share)? };
            Some([0.0, all])
        };
        let all = if joined == Joined::Mean { self.blocks(count)? } else { Some([1.0; 2]) };
        let Some([_, all]) = all else { return Ok(false) };
        let part = |block: usize| {
            // SAFETY: as above; no two targets pick the same element.
            unsafe {
                self.each::<T>(block, |i, place, share| {
                    let g = (*g.get().add(if joined == Joined::None { i } else { 0 })).to_f64();
                    *to.get().add(place) = T::from_f64(-g * share / all);
                })?;
            }
            Some([0.0; 2])
        };
        Ok(self.blocks(part)?.is_some())
    }
}

/// Computes the losses, or their sum or mean. Returns false if a target is not a class.
///
/// # Safety
/// The views are dense, live and have the sizes in `of`; targets are int64, the others have one dtype; `out` overlaps
/// nothing.
pub unsafe fn forward(of: Nll, out: Strided, x: Strided, joined: Joined) -> Result<bool> {
    // SAFETY: the caller's contract.
    unsafe { by_float!("nll_loss_out_frame", x.dtype, T => of.forward::<T>(out, x, joined)) }
}

/// Computes the gradient for the log-probabilities, in memory that is zero. Returns false if a target is not a class.
///
/// # Safety
/// See [`forward`].
pub unsafe fn backward(of: Nll, out: Strided, g: Strided, joined: Joined) -> Result<bool> {
    // SAFETY: the caller's contract.
    unsafe { by_float!("nll_loss_backward_out_frame", out.dtype, T => of.backward::<T>(out, g, joined)) }
}
