//! Connectionist temporal classification: the log-probability of a labelling, summed over all its alignments, and its
//! gradient. Each example of the batch is one task.

use super::element::scratch;
use super::float::{Float, by_float};
use super::par::{self, Shared};
use super::simd::simd_fn;
use crate::base::{Alignments, Result, Strided};

/// Labels with blanks between and around them.
#[derive(Clone, Copy)]
struct Labels<'a> {
    own: &'a [i64],
    blank: usize,
}

impl Labels<'_> {
    fn at(&self, place: usize) -> usize {
        if place.is_multiple_of(2) { self.blank } else { self.own[place / 2] as usize }
    }

    fn places(&self) -> usize {
        2 * self.own.len() + 1
    }

    /// Returns true if an alignment may skip the blank between this label and the one before.
    fn skips(&self, place: usize) -> bool {
        place >= 2 && self.at(place) != self.at(place - 2)
    }
}

/// Number of examples in a task.
fn grain(of: &Alignments) -> usize {
    (par::GRAIN / (of.steps * of.places * 4).max(1)).max(1)
}

/// Places in front of the first that nothing leads to, because a step goes back by up to two places.
const MARGIN: usize = 2;

/// For each place of an example, the log-weight of reaching it by a skip: `may` if the skip is allowed, else `must`.
fn places<T: Copy>(labels: &Labels, [may, must]: [T; 2], room: &mut Vec<T>) {
    room.clear();
    room.extend((0..labels.places()).map(|s| if labels.skips(s) { may } else { must }));
}

/// log(exp a + exp b + exp c).
#[inline(always)]
fn together<T: Float>(a: T, b: T, c: T) -> T {
    let top = if a > b { a } else { b };
    let top = if c > top { c } else { top };
    // If all are -inf, subtract nothing: -inf - -inf would be NaN.
    let from = if top == T::NEG_INFINITY { T::ZERO } else { top };
    ((a - from).exp() + (b - from).exp() + (c - from).exp()).ln() + from
}

simd_fn! {
    /// One step of the recursion, for `n` places: the log-probability of reaching each place from the same
    /// place, the one before, and, if `skip` is 0, the one before that; times the probability of the place.
    unsafe fn step<T: Float>(n: usize, now: *mut T, before: [*const T; 3], skip: *const T, p: *const T) {
        let [same, one, two] = before;
        for s in 0..n {
            let two = if *skip.add(s) == T::ZERO { *two.add(s) } else { T::NEG_INFINITY };
            *now.add(s) = together(*same.add(s), *one.add(s), two) + *p.add(s);
        }
    }
}

simd_fn! {
    /// The probability that an alignment passes each place, given that it spells the targets.
    unsafe fn shares<T: Float>(n: usize, out: *mut T, alpha: *const T, beta: *const T, p: *const T, loss: T) {
        for s in 0..n {
            *out.add(s) = (*alpha.add(s) + *beta.add(s) + loss - *p.add(s)).exp();
        }
    }
}

simd_fn! {
    /// The gradient of a step: each class's probability, minus that of passing its places, which `out` holds.
    unsafe fn differences<T: Float>(n: usize, out: *mut T, p: *const T, g: T) {
        for i in 0..n {
            *out.add(i) = ((*p.add(i)).exp() - *out.add(i)) * g;
        }
    }
}

unsafe fn forward_of<T: Float>(
    of: &Alignments,
    [loss, alpha]: [*mut u8; 2],
    log_probs: *const u8,
    targets: *const i64,
) -> Result<()> {
    let (loss, alpha) =
        (Shared::new(loss.cast::<T>().cast_const()), Shared::new(alpha.cast::<T>().cast_const()));
    let (log_probs, targets) = (Shared::new(log_probs.cast::<T>()), Shared::new(targets));
    par::try_ranges(of.samples, grain(of), |range| {
        let line = || scratch(of.places, T::NEG_INFINITY);
        let (mut skip, mut p, mut before) = (line()?, line()?, scratch(MARGIN + of.places, T::NEG_INFINITY)?);
        for b in range {
            let (steps, length) = (of.input_lengths[b], of.target_lengths[b]);
            // SAFETY: the tensors are dense and have the sizes in `of`; this example belongs to this task
            // alone.
            unsafe {
                let own = std::slice::from_raw_parts(targets.get().add(of.starts[b]).cast_const(), length);
                let labels = Labels { own, blank: of.blank };
                let size = of.steps * of.places;
                let table = std::slice::from_raw_parts_mut(alpha.get().add(b * size), size);
                let row = |t: usize| log_probs.get().add((t * of.samples + b) * of.classes).cast_const();
                let to = loss.get().add(b);
                let end = labels.places();
                places(&labels, [T::ZERO, T::NEG_INFINITY], &mut skip);
                for t in 0..steps {
                    let now = &mut table[t * of.places..][..of.places];
                    (0..end).for_each(|s| p[s] = *row(t).add(labels.at(s)));
                    if t == 0 {
                        now.fill(T::NEG_INFINITY);
                        now[..end.min(2)].copy_from_slice(&p[..end.min(2)]);
                    } else {
                        let ways = [2, 1, 0].map(|back| before.as_ptr().add(back));
                        step(end, now.as_mut_ptr(), ways, skip.as_ptr(), p.as_ptr());
                        now[end..].fill(T::NEG_INFINITY);
                    }
                    before[MARGIN..].copy_from_slice(now);
                }
                table[steps * of.places..].fill(T::NEG_INFINITY);
                *to = if steps > 0 {
                    let last = &table[(steps - 1) * of.places..];
                    -together(
                        last[end - 1],
                        if length > 0 { last[end - 2] } else { T::NEG_INFINITY },
                        T::NEG_INFINITY,
                    )
                } else if length == 0 {
                    T::ZERO
                } else {
                    T::INFINITY
                };
            }
        }
        Ok(())
    })
}

unsafe fn backward_of<T: Float>(
    of: &Alignments,
    out: *mut u8,
    [g, loss, alpha, log_probs]: [*const u8; 4],
    targets: *const i64,
) -> Result<()> {
    let to = Shared::new(out.cast::<T>().cast_const());
    let [g, loss, alpha, log_probs] = [g, loss, alpha, log_probs].map(|from| Shared::new(from.cast::<T>()));
    let targets = Shared::new(targets);
    par::try_ranges(of.samples, grain(of), |range| {
        let line = || scratch(MARGIN + of.places, T::NEG_INFINITY);
        let (mut skip, mut p, mut share) = (line()?, line()?, line()?);
        let (mut now, mut next) = (line()?, line()?);
        for b in range {
            let (steps, length) = (of.input_lengths[b], of.target_lengths[b]);
            // SAFETY: as above.
            unsafe {
                let own = std::slice::from_raw_parts(targets.get().add(of.starts[b]).cast_const(), length);
                let labels = Labels { own, blank: of.blank };
                let place = |t: usize| (t * of.samples + b) * of.classes;
                let (g, loss) = (*g.get().add(b), *loss.get().add(b));
                let row = |t: usize| std::slice::from_raw_parts_mut(to.get().add(place(t)), of.classes);
                (steps..of.steps).for_each(|t| row(t).fill(T::ZERO));
                if of.zero_infinity && loss == T::INFINITY {
                    (0..steps).for_each(|t| row(t).fill(T::ZERO));
                    continue;
                }
                let end = labels.places();
                // The recursion runs backwards, so a skip goes to the place two behind.
                places(&labels, [T::ZERO, T::NEG_INFINITY], &mut skip);
                skip.drain(..MARGIN.min(end));
                skip.resize(of.places, T::NEG_INFINITY);
                now.fill(T::NEG_INFINITY);
                next.fill(T::NEG_INFINITY);
                for t in (0..steps).rev() {
                    let (from, made) = (log_probs.get().add(place(t)).cast_const(), row(t));
                    (0..end).for_each(|s| p[s] = *from.add(labels.at(s)));
                    if t + 1 == steps {
                        let last = end.saturating_sub(2)..end;
                        now[last.clone()].copy_from_slice(&p[last]);
                    } else {
                        let ways = [0, 1, 2].map(|on| next.as_ptr().add(on));
                        step(end, now.as_mut_ptr(), ways, skip.as_ptr(), p.as_ptr());
                    }
                    let alpha = alpha.get().add((b * of.steps + t) * of.places);
                    shares(end, share.as_mut_ptr(), alpha, now.as_ptr(), p.as_ptr(), loss);
                    // If the loss or a log-probability is not finite, the gradient is NaN for every class.
                    (0..of.classes).for_each(|i| made[i] = (loss - *from.add(i)) * T::ZERO);
                    (0..end).for_each(|s| made[labels.at(s)] += share[s]);
                    differences(of.classes, made.as_mut_ptr(), from, g);
                    std::mem::swap(&mut now, &mut next);
                }
            }
        }
        Ok(())
    })
}

/// Computes minus the log-probability of each example, and the table `alpha` of log-probabilities of reaching each
/// place: `[example, step, place]`.
///
/// # Safety
/// The views are dense, live and have the sizes in `of`; `targets` holds int64 labels below `classes`; the results
/// overlap nothing.
pub unsafe fn forward(
    of: &Alignments,
    loss: Strided,
    alpha: Strided,
    log_probs: Strided,
    targets: Strided,
) -> Result<()> {
    let (to, labels) = ([loss.ptr, alpha.ptr], targets.ptr.cast::<i64>().cast_const());
    // SAFETY: the caller's contract.
    unsafe { by_float!("ctc_loss_cpu", log_probs.dtype, T => forward_of::<T>(of, to, log_probs.ptr, labels)) }
}

/// The gradient for the log-probabilities. `ins` are the gradient of the losses, the losses, `alpha` and the
/// log-probabilities.
///
/// # Safety
/// See [`forward`].
pub unsafe fn backward(of: &Alignments, out: Strided, ins: [Strided; 4], targets: Strided) -> Result<()> {
    let from = ins.map(|x| x.ptr.cast_const());
    let labels = targets.ptr.cast::<i64>().cast_const();
    // SAFETY: the caller's contract.
    unsafe { by_float!("ctc_loss_backward_cpu", out.dtype, T => backward_of::<T>(of, out.ptr, from, labels)) }
}
