//! Connectionist temporal classification: the probability of a labelling over all its alignments, by logarithms, and its
//! derivatives. A sample is one task.

use super::element::scratch;
use super::par;
use crate::base::{Alignments, DType, Fault, Result, Strided};

/// Labels with blanks between them and around them.
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

    /// Whether the blank between this label and the one before may be left out.
    fn skips(&self, place: usize) -> bool {
        place >= 2 && self.at(place) != self.at(place - 2)
    }
}

macro_rules! kernels {
    ($($T:ident, $forward:ident, $backward:ident, $together:ident;)*) => { $(
        /// The logarithm of a sum of exponentials.
        fn $together(all: [$T; 3]) -> $T {
            let top = all.iter().copied().fold($T::NEG_INFINITY, $T::max);
            if top == $T::NEG_INFINITY {
                return top;
            }
            all.iter().map(|x| (x - top).exp()).sum::<$T>().ln() + top
        }

        unsafe fn $forward(of: &Alignments, [loss, alpha]: [*mut u8; 2], log_probs: *const u8, targets: *const i64) {
            let (loss, alpha) = (par::Shared::new(loss.cast::<$T>().cast_const()), par::Shared::new(alpha.cast::<$T>().cast_const()));
            let (log_probs, targets) = (par::Shared::new(log_probs.cast::<$T>()), par::Shared::new(targets));
            let sample = |b: usize| {
                const NONE: $T = $T::NEG_INFINITY;
                let (steps, length) = (of.input_lengths[b], of.target_lengths[b]);
                // SAFETY: the tensors are dense and have the sizes that `of` says; this sample's part is this task's own.
                unsafe {
                    let own = std::slice::from_raw_parts(targets.get().add(of.starts[b]).cast_const(), length);
                    let labels = Labels { own, blank: of.blank };
                    let size = of.steps * of.places;
                    let table = std::slice::from_raw_parts_mut(alpha.get().add(b * size), size);
                    table.fill(NONE);
                    let p = |t: usize, label: usize| *log_probs.get().add((t * of.samples + b) * of.classes + label);
                    let to = loss.get().add(b);
                    if steps == 0 {
                        *to = if length == 0 { 0.0 } else { $T::INFINITY };
                        return;
                    }
                    table[0] = p(0, of.blank);
                    if length > 0 {
                        table[1] = p(0, labels.at(1));
                    }
                    for t in 1..steps {
                        let (before, now) = table.split_at_mut(t * of.places);
                        let before = &before[(t - 1) * of.places..];
                        for s in 0..labels.places() {
                            let one = if s >= 1 { before[s - 1] } else { NONE };
                            let two = if labels.skips(s) { before[s - 2] } else { NONE };
                            now[s] = $together([before[s], one, two]) + p(t, labels.at(s));
                        }
                    }
                    let last = &table[(steps - 1) * of.places..];
                    let end = labels.places();
                    *to = -$together([last[end - 1], if length > 0 { last[end - 2] } else { NONE }, NONE]);
                }
            };
            par::ranges(of.samples, (par::GRAIN / (of.steps * of.places * 16).max(1)).max(1), |range| range.for_each(sample));
        }

        unsafe fn $backward(
            of: &Alignments,
            out: *mut u8,
            [g, loss, alpha, log_probs]: [*const u8; 4],
            [targets]: [*const i64; 1],
        ) -> Result<()> {
            let to = par::Shared::new(out.cast::<$T>().cast_const());
            let [g, loss, alpha, log_probs] = [g, loss, alpha, log_probs].map(|from| par::Shared::new(from.cast::<$T>()));
            let targets = par::Shared::new(targets);
            let grain = (par::GRAIN / (of.steps * of.places * 16).max(1)).max(1);
            par::try_ranges(of.samples, grain, |range| {
                const NONE: $T = $T::NEG_INFINITY;
                let mut beta = scratch(2 * of.places, NONE)?;
                let mut by_label = scratch(of.classes, NONE)?;
                for b in range {
                    let (steps, length) = (of.input_lengths[b], of.target_lengths[b]);
                    // SAFETY: as above.
                    unsafe {
                        let own = std::slice::from_raw_parts(targets.get().add(of.starts[b]).cast_const(), length);
                        let labels = Labels { own, blank: of.blank };
                        let size = of.steps * of.places;
                        let table = std::slice::from_raw_parts(alpha.get().add(b * size).cast_const(), size);
                        let place = |t: usize, label: usize| (t * of.samples + b) * of.classes + label;
                        let p = |t: usize, label: usize| *log_probs.get().add(place(t, label));
                        let (g, loss) = (*g.get().add(b), *loss.get().add(b));
                        let row = |t: usize| std::slice::from_raw_parts_mut(to.get().add(place(t, 0)), of.classes);
                        (steps..of.steps).for_each(|t| row(t).fill(0.0));
                        if of.zero_infinity && loss == $T::INFINITY {
                            (0..steps).for_each(|t| row(t).fill(0.0));
                            continue;
                        }
                        let end = labels.places();
                        for t in (0..steps).rev() {
                            let (now, next) = beta.split_at_mut(of.places);
                            by_label.fill(NONE);
                            for s in 0..end {
                                let all = if t + 1 == steps {
                                    [if s + 2 >= end { 0.0 } else { NONE }, NONE, NONE]
                                } else {
                                    let one = if s + 1 < end { next[s + 1] } else { NONE };
                                    let two = if s + 2 < end && labels.skips(s + 2) { next[s + 2] } else { NONE };
                                    [next[s], one, two]
                                };
                                now[s] = $together(all) + p(t, labels.at(s));
                                let met = &mut by_label[labels.at(s)];
                                *met = $together([*met, table[t * of.places + s] + now[s], NONE]);
                            }
                            next[..end].copy_from_slice(&now[..end]);
                            for (label, to) in row(t).iter_mut().enumerate() {
                                let own = p(t, label);
                                *to = (own.exp() - (by_label[label] + loss - own).exp()) * g;
                            }
                        }
                    }
                }
                Ok(())
            })
        }
    )* };
}
kernels! {
    f32, forward_f32, backward_f32, together_f32;
    f64, forward_f64, backward_f64, together_f64;
}

/// Minus the logarithm of each sample's probability, and the logarithms of what leads to each place: `[sample, step, place]`.
///
/// # Safety
/// The views are dense, live and of the sizes that `of` says; `targets` holds int64 labels below `classes`; the results overlap nothing.
pub unsafe fn forward(
    of: &Alignments,
    loss: Strided,
    alpha: Strided,
    log_probs: Strided,
    targets: Strided,
) -> Result<()> {
    let (to, labels) = ([loss.ptr, alpha.ptr], targets.ptr.cast::<i64>().cast_const());
    // SAFETY: handed on.
    unsafe {
        match log_probs.dtype {
            DType::F32 => forward_f32(of, to, log_probs.ptr, labels),
            DType::F64 => forward_f64(of, to, log_probs.ptr, labels),
            dtype => return Err(Fault::NoKernel { op: "ctc_loss_cpu", dtype }.into()),
        }
    }
    Ok(())
}

/// The gradient for the logarithms of probabilities, `ins` being that of the losses, the losses, the table and the logarithms.
///
/// # Safety
/// As [`forward`].
pub unsafe fn backward(of: &Alignments, out: Strided, ins: [Strided; 4], targets: Strided) -> Result<()> {
    let from = ins.map(|x| x.ptr.cast_const());
    let labels = [targets.ptr.cast::<i64>().cast_const()];
    // SAFETY: handed on.
    unsafe {
        match out.dtype {
            DType::F32 => backward_f32(of, out.ptr, from, labels),
            DType::F64 => backward_f64(of, out.ptr, from, labels),
            dtype => Err(Fault::NoKernel { op: "ctc_loss_backward_cpu", dtype }.into()),
        }
    }
}
