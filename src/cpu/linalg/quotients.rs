//! Singular values, without vectors, of a bidiagonal matrix, by the differential quotient-difference algorithm with
//! shifts (dqds; Fernando and Parlett). It works on the squares of both diagonals, takes no roots on the way, and keeps
//! the digits of small values.

use crate::base::Result;
use crate::cpu::element::scratch;

/// Relative error of a square below which its root does not change.
const LOST: f64 = 0.25 * f64::EPSILON * f64::EPSILON;
/// Maximum number of steps per value, which always suffices.
const STEPS: usize = 30;
/// The largest element after scaling: small ones still have squares, and sums of large ones do not overflow.
const TOP: f64 = f64::from_bits((1023 + 400) << 52);
/// Below this, the last element dominates an approximate eigenvector.
const NEAR: f64 = 0.6;

/// The squares of both diagonals, minus all shifts so far. At a zero of the second diagonal, which separates two parts,
/// stands the negated sum of the shifts of the first part.
struct Squares {
    on: Vec<f64>,
    above: Vec<f64>,
    /// The result of a step, which is discarded if the shift was too large.
    next: [Vec<f64>; 2],
}

/// The differences that a step computes. All squares are positive if these are, and the smallest is no larger than any
/// of these.
#[derive(Clone, Copy)]
struct StepResult {
    last: f64,
    /// The smallest of the others.
    others: f64,
    /// The smallest square above the diagonal.
    above: f64,
}

/// Finds the singular values of the bidiagonal matrix, in any order. Returns false if they were not found, for example
/// because an element is NaN.
pub fn values(diagonal: &[f64], above: &[f64], found: &mut [f64]) -> Result<bool> {
    let n = diagonal.len();
    let all = || diagonal.iter().chain(above);
    if all().all(|x| *x == 0.0) {
        found.fill(0.0);
        return Ok(true);
    }
    let top = all().fold(0.0, |top: f64, x| top.max(x.abs()));
    // The scale is a power of two.
    let scale = TOP / f64::from_bits(top.to_bits() & (0x7ff << 52));
    let next = [scratch(n, 0.0)?, scratch(n, 0.0)?];
    let mut x = Squares { on: scratch(n, 0.0)?, above: scratch(above.len(), 0.0)?, next };
    x.on.iter_mut().zip(diagonal).for_each(|(to, x)| *to = (x * scale) * (x * scale));
    x.above.iter_mut().zip(above).for_each(|(to, x)| *to = (x * scale) * (x * scale));
    let done = x.find(found);
    found.iter_mut().for_each(|x| *x = x.sqrt() / scale);
    Ok(done && found.iter().all(|x| x.is_finite()))
}

impl Squares {
    /// Finds the squares of all values.
    fn find(&mut self, found: &mut [f64]) -> bool {
        let mut left = STEPS * found.len();
        let (mut start, mut end) = (0, found.len());
        // The sum of all shifts so far, and its rounding error.
        let (mut sum, mut rest) = (0.0, 0.0);
        // `least` is an upper bound of the smallest value; `others` becomes that bound when the last value is found;
        // `share` of it is tried as a shift if nothing better is known.
        let (mut least, mut others, mut share) = (f64::INFINITY, f64::INFINITY, 0.25);
        let (mut split, mut fresh) = (true, true);
        while end > 0 {
            if split {
                // `ready` checks the element above the last one.
                let ends = |x: f64, i: usize| x.is_sign_negative() || (x <= LOST * sum && i + 2 < end);
                let first = (0..end - 1).rev().find(|&i| ends(self.above[i], i));
                if let Some(i) = first.filter(|&i| self.above[i].is_sign_positive()) {
                    self.above[i] = -sum;
                }
                start = first.map_or(0, |i| i + 1);
            }
            let count = self.ready(start, end, sum, found);
            if count > 0 {
                end -= count;
                found[end..end + count].iter_mut().for_each(|x| *x = sum + (rest + *x));
                split = end == start;
                least = if split || count > 1 { f64::INFINITY } else { others };
                if split && start > 0 {
                    (sum, rest) = (-self.above[start - 1], 0.0);
                }
                fresh = true;
                continue;
            }
            // Reverse the part if needed, so that small values are found first.
            if fresh && self.on[start] * 1.5 < self.on[end - 1] {
                self.on[start..end].reverse();
                self.above[start..end - 1].reverse();
            }
            fresh = false;
            let (mut shift, guess) = match self.shift(start, end, sum) {
                Some(shift) if shift <= least => (shift, false),
                _ if least.is_finite() => (share * least, true),
                _ => (0.0, true),
            };
            let mut tries = 0;
            let step = loop {
                if left == 0 {
                    return false;
                }
                left -= 1;
                let step = self.step(start, end, shift);
                if step.last >= 0.0 && step.others >= 0.0 {
                    break step;
                }
                if shift == 0.0 {
                    return false;
                }
                if guess {
                    share *= 0.5;
                }
                tries += 1;
                // If only the last difference is negative, the smallest value is no smaller than this, and hardly
                // larger.
                let less = (shift + step.last) * (1.0 - 4.0 * f64::EPSILON);
                shift = match tries {
                    _ if step.others > 0.0 && less > 0.0 && less < shift => less,
                    1 => self.bound(start, end).max(0.25 * shift),
                    2 => self.bound(start, end),
                    _ => 0.0,
                };
            };
            if guess && tries == 0 {
                share += (1.0 - share) / 3.0;
            }
            self.on[start..end].copy_from_slice(&self.next[0][start..end]);
            self.above[start..end - 1].copy_from_slice(&self.next[1][start..end - 1]);
            let larger = sum + shift;
            rest += if sum > shift { (sum - larger) + shift } else { (shift - larger) + sum };
            sum = larger;
            (least, others) = (step.last.min(step.others), step.others);
            split = step.above <= LOST * sum;
        }
        true
    }

    /// Number of values at the end of a part that have converged. Stores their squares, minus the shifts, in `found`.
    fn ready(&self, start: usize, end: usize, sum: f64, found: &mut [f64]) -> usize {
        let (on, above) = (&self.on[..end], &self.above[..end - 1]);
        if end - start == 1 || above[end - 2] <= LOST * (sum + on[end - 1]) {
            found[end - 1] = on[end - 1];
            return 1;
        }
        if end - start > 2 && above[end - 3] > LOST * sum {
            return 0;
        }
        let (x, y, z) = (on[end - 2], on[end - 1], above[end - 2]);
        let half = 0.5 * ((x - y) + z);
        let larger = 0.5 * ((x + y) + z) + half.hypot(y.sqrt() * z.sqrt());
        found[end - 2..end].copy_from_slice(&[larger, x * (y / larger)]);
        2
    }

    /// One step: `next` becomes the rest after `shift` is subtracted from all squares.
    fn step(&mut self, start: usize, end: usize, shift: f64) -> StepResult {
        let count = end - start - 1;
        let (on, above) = (&self.on[start..=start + count], &self.above[start..start + count]);
        let [next_on, next_above] = &mut self.next;
        let (next_on, next_above) =
            (&mut next_on[start..=start + count], &mut next_above[start..start + count]);
        let mut step = StepResult { last: on[0] - shift, others: f64::INFINITY, above: f64::INFINITY };
        for i in 0..count {
            // A NaN is passed on, and ends as the last difference.
            step.others = if step.last < step.others { step.last } else { step.others };
            let sum = step.last + above[i];
            let part = on[i + 1] / sum;
            next_on[i] = sum;
            next_above[i] = above[i] * part;
            step.above = if next_above[i] < step.above { next_above[i] } else { step.above };
            step.last = step.last * part - shift;
        }
        next_on[count] = step.last;
        step
    }

    /// A shift just below the smallest value, or `None` if the last element is not close to it. The approximate
    /// eigenvector has 1 as its last element, and `tail` is the sum of the squares of the others. Its Rayleigh quotient
    /// is `near`, whose relative error is bounded by the length of those others.
    fn shift(&self, start: usize, end: usize, sum: f64) -> Option<f64> {
        let [before, last] = [self.on[end - 2], self.on[end - 1]];
        if last <= 0.25 * f64::EPSILON * sum {
            return Some(0.0);
        }
        let (mut term, mut tail) = (1.0, 0.0);
        for i in (start..end - 1).rev() {
            term *= self.above[i] / self.on[i];
            tail += term;
            if tail >= NEAR || term < 1e-3 * tail {
                break;
            }
        }
        if tail >= NEAR || tail.is_nan() {
            return None;
        }
        let (near, shift) = quotient(last, tail);
        // The same for the second smallest value; together they bound the gap, which gives a better shift.
        let tail_before = (tail / (self.above[end - 2] / before) - 1.0).max(0.0);
        let gap = quotient(before, tail_before).1 - near;
        if tail_before < NEAR && gap > 0.0 {
            Some(shift.max(near - near * (near / gap) * tail))
        } else {
            Some(shift)
        }
    }

    /// A lower bound of the values (Johnson): the minimum over the rows of the diagonal element minus half of its
    /// neighbours.
    fn bound(&self, start: usize, end: usize) -> f64 {
        let (mut least, mut before) = (f64::INFINITY, 0.0);
        for i in start..end {
            let beside = if i + 1 < end { self.above[i].sqrt() } else { 0.0 };
            least = least.min(self.on[i].sqrt() - 0.5 * (before + beside));
            before = beside;
        }
        let least = least.max(0.0);
        least * least * (1.0 - 8.0 * f64::EPSILON)
    }
}

/// The Rayleigh quotient of a vector whose last square is 1 and whose others sum to `tail`, and that quotient minus its
/// residual.
fn quotient(last: f64, tail: f64) -> (f64, f64) {
    let near = last / (1.0 + tail);
    (near, near * (1.0 - tail.sqrt()))
}
