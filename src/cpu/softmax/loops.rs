//! The loops of softmax and its derivative, for f32 and f64: over whole lines, and over the rows of a tile of
//! neighbouring lines.

use crate::cpu::float::Float;
use crate::cpu::simd::{fetch, simd_fn};

/// The results of lines that are computed together: `count` lines of `n` elements, `step` apart.
#[derive(Clone, Copy)]
pub(super) struct Lines<T> {
    pub(super) n: usize,
    pub(super) count: usize,
    pub(super) out: *mut T,
    pub(super) step: usize,
}
/// Limits for lines that are computed together: their number, and their number of elements (unless a single line has
/// more).
pub(super) const MAX_LINES: usize = 16;
pub(super) const MAX_ELEMENTS: usize = 4096;

const LANES: usize = 16;

/// Lanes in memory, aligned to a cache line: a store that crosses two lines can be read only tens of cycles later.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct CacheLine<A>(A);

#[inline(always)]
unsafe fn load<T: Float>(x: *const T, i: usize) -> [T; LANES] {
    // SAFETY: the caller's elements.
    unsafe { x.add(i).cast::<[T; LANES]>().read_unaligned() }
}

#[inline(always)]
unsafe fn store<T: Float>(out: *mut T, i: usize, lanes: [T; LANES]) {
    // SAFETY: the caller's elements.
    unsafe { out.add(i).cast::<[T; LANES]>().write_unaligned(lanes) }
}

/// The lanes whose bits are set in `kept`; zeros for the others.
#[inline(always)]
fn keep<T: Float>(mut lanes: [T; LANES], kept: [T; LANES]) -> [T; LANES] {
    for j in 0..LANES {
        lanes[j] = lanes[j].and_bits(kept[j]);
    }
    lanes
}

/// Copies `n` elements: the first `N` and the last `N` of them, which may overlap.
#[inline(always)]
unsafe fn copy_ends<T: Copy, const N: usize>(from: *const T, to: *mut T, n: usize) {
    for at in [0, n - N] {
        // SAFETY: the caller's `n` elements of each.
        unsafe {
            let few = from.add(at).cast::<[T; N]>().read_unaligned();
            to.add(at).cast::<[T; N]>().write_unaligned(few);
        }
    }
}

/// Copies fewer elements than there are lanes.
#[inline(always)]
unsafe fn copy_few<T: Float>(from: *const T, to: *mut T, n: usize) {
    const { assert!(LANES <= 16) }
    // SAFETY: the caller's `n` elements of each.
    unsafe {
        match n {
            0 => (),
            1 => copy_ends::<T, 1>(from, to, n),
            2..4 => copy_ends::<T, 2>(from, to, n),
            4..8 => copy_ends::<T, 4>(from, to, n),
            _ => copy_ends::<T, 8>(from, to, n),
        }
    }
}

/// Loads fewer elements than there are lanes, into the last lanes.
#[inline(always)]
unsafe fn load_few<T: Float>(x: *const T, n: usize, pad: T) -> [T; LANES] {
    let mut lanes = [pad; LANES];
    // SAFETY: the caller's `n` elements.
    unsafe { copy_few(x, lanes.as_mut_ptr().add(LANES - n), n) };
    lanes
}

#[inline(always)]
unsafe fn store_few<T: Float>(out: *mut T, n: usize, lanes: [T; LANES]) {
    // SAFETY: the caller's `n` elements.
    unsafe { copy_few(lanes.as_ptr().add(LANES - n), out, n) }
}

/// The start of a block of a line; the last block may overlap the one before it.
#[inline(always)]
fn start(block: usize, n: usize) -> usize {
    (block * LANES).min(n - LANES)
}

/// A mask of the lanes of a block that are not in the block before it, which are its last.
#[inline(always)]
unsafe fn own_lanes<T: Float>(block: usize, n: usize) -> [T; LANES] {
    static BITS: [u64; 2 * LANES] = {
        let mut bits = [0; 2 * LANES];
        let mut j = LANES;
        while j < 2 * LANES {
            bits[j] = !0;
            j += 1;
        }
        bits
    };
    // SAFETY: the offset is at most `LANES`, which are as many lanes as there are on both sides of the middle.
    unsafe { load(BITS.as_ptr().add(LANES).cast::<T>().sub(LANES), (n - block * LANES).min(LANES)) }
}

/// Groups of a line's blocks, small enough to be summed without much error.
#[inline(always)]
fn chunks(n: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let blocks = n.div_ceil(LANES);
    (0..blocks).step_by(LANES).map(move |first| first..(first + LANES).min(blocks))
}

/// Writes `make` of the elements of two lines, which do not overlap the result.
#[inline(always)]
unsafe fn map<T: Float>(
    n: usize,
    out: *mut T,
    [a, b]: [*const T; 2],
    make: impl Fn([T; LANES], [T; LANES]) -> [T; LANES],
) {
    for block in 0..n.div_ceil(LANES) {
        let at = start(block, n);
        // SAFETY: the caller's `n` elements of each.
        unsafe { store(out, at, make(load(a, at), load(b, at))) };
    }
}

#[inline(always)]
fn larger<T: Float>(a: T, b: T) -> T {
    // NaN need not win: it appears in the sum.
    if b > a { b } else { a }
}

/// Exponentials; lanes in `kept` are added to the sums.
#[inline(always)]
fn exps<T: Float>(mut x: [T; LANES], kept: [T; LANES], largest: T, sums: &mut [T; LANES]) -> [T; LANES] {
    for j in 0..LANES {
        x[j] = (x[j] - largest).exp_below();
    }
    let counted = keep(x, kept);
    for j in 0..LANES {
        sums[j] += counted[j];
    }
    x
}

#[inline(always)]
unsafe fn largest_of<T: Float>(n: usize, x: *const T) -> T {
    // SAFETY: the caller's `n` elements.
    unsafe {
        let mut lanes = CacheLine(load(x, 0));
        for block in 1..n.div_ceil(LANES) {
            let x = load(x, start(block, n));
            for j in 0..LANES {
                lanes.0[j] = larger(lanes.0[j], x[j]);
            }
        }
        T::max_lanes(&lanes.0)
    }
}

/// The sum of exponentials, which are written to `out` if they are `wanted`.
#[inline(always)]
unsafe fn sum_of_exps<T: Float>(n: usize, out: *mut T, x: *const T, largest: T, wanted: bool) -> T {
    let mut sum = 0.0;
    for blocks in chunks(n) {
        let mut sums = CacheLine([T::ZERO; LANES]);
        for block in blocks {
            let at = start(block, n);
            // SAFETY: the caller's `n` elements of each; a prefetch takes any address.
            unsafe {
                let exps = exps(load(x, at), own_lanes(block, n), largest, &mut sums.0);
                if wanted {
                    // Memory is idle here, so prefetch the next line.
                    fetch::<T, LANES>(x.wrapping_add(n + at));
                    fetch::<T, LANES>(out.wrapping_add(n + at));
                    store(out, at, exps);
                }
            }
        }
        sum += T::sum_lanes(&sums.0).to_f64();
    }
    T::from_f64(sum)
}

/// Multiplies a line by a factor.
#[inline(always)]
unsafe fn scale<T: Float>(n: usize, out: *mut T, by: T) {
    for block in 0..n.div_ceil(LANES) {
        let at = start(block, n);
        // SAFETY: the caller's `n` elements.
        unsafe {
            let (own, mut y) = (own_lanes(block, n), load(out, at));
            for j in 0..LANES {
                // Lanes that the block before has multiplied are multiplied by one.
                y[j] *= by.and_bits(own[j]).or_bits(T::ONE.without_bits(own[j]));
            }
            store(out, at, y);
        }
    }
}

simd_fn! {
    /// Lines shorter than the lanes, which are loaded and stored once.
    unsafe fn short_lines<T: Float>(lines: Lines<T>, x: *const T, x_step: usize, log: bool) {
        let Lines { n, count, out, step } = lines;
        let mut rows = [CacheLine([T::ZERO; LANES]); MAX_LINES];
        let (mut largest, mut sums) = ([T::ZERO; MAX_LINES], [T::ONE; MAX_LINES]);
        for i in 0..count {
            rows[i].0 = load_few(x.wrapping_add(i.wrapping_mul(x_step)), n, -T::INFINITY);
        }
        for i in 0..count {
            largest[i] = T::max_lanes(&rows[i].0);
        }
        for i in 0..count {
            let mut exps = CacheLine([T::ZERO; LANES]);
            for j in 0..LANES {
                rows[i].0[j] -= largest[i];
                exps.0[j] = rows[i].0[j].exp_below();
            }
            sums[i] = T::sum_lanes(&exps.0);
            if !log {
                rows[i] = exps;
            }
        }
        for sum in &mut sums {
            *sum = if log { (*sum).ln() } else { T::ONE / *sum };
        }
        for i in 0..count {
            for j in 0..LANES {
                rows[i].0[j] = if log { rows[i].0[j] - sums[i] } else { rows[i].0[j] * sums[i] };
            }
            store_few(out.wrapping_add(i.wrapping_mul(step)), n, rows[i].0);
        }
    }
}

pub unsafe fn forward<T: Float>(lines: Lines<T>, x: *const T, x_step: usize, log: bool) {
    // SAFETY: the caller's contract.
    unsafe {
        if lines.n < LANES { short_lines(lines, x, x_step, log) } else { long_lines(lines, x, x_step, log) }
    }
}

// Each step is done for all lines before the next step, so that lines do not wait for one another.
simd_fn! {
    unsafe fn long_lines<T: Float>(lines: Lines<T>, x: *const T, x_step: usize, log: bool) {
        let Lines { n, count, out, step } = lines;
        let (mut largest, mut sums) = ([T::ZERO; MAX_LINES], [T::ONE; MAX_LINES]);
        let from = |i: usize| x.wrapping_add(i.wrapping_mul(x_step));
        let to = |i: usize| out.wrapping_add(i.wrapping_mul(step));
        for i in 0..count {
            largest[i] = largest_of(n, from(i));
        }
        if log {
            for i in 0..count {
                sums[i] = sum_of_exps(n, to(i), from(i), largest[i], false);
            }
            for sum in &mut sums {
                *sum = (*sum).ln();
            }
            for i in 0..count {
                let (largest, shift) = (largest[i], sums[i]);
                map(n, to(i), [from(i); 2], |mut x, _| {
                    for j in 0..LANES {
                        x[j] = x[j] - largest - shift;
                    }
                    x
                });
            }
        } else {
            for i in 0..count {
                sums[i] = sum_of_exps(n, to(i), from(i), largest[i], true);
            }
            for i in 0..count {
                scale(n, to(i), T::ONE / sums[i]);
            }
        }
    }
}

pub unsafe fn backward<T: Float>(lines: Lines<T>, ins: [*const T; 2], steps: [usize; 2], log: bool) {
    // SAFETY: the caller's contract.
    unsafe {
        if lines.n < LANES {
            short_lines_backward(lines, ins, steps, log)
        } else {
            long_lines_backward(lines, ins, steps, log)
        }
    }
}

simd_fn! {
    unsafe fn short_lines_backward<T: Float>(lines: Lines<T>, ins: [*const T; 2], steps: [usize; 2], log: bool) {
        let Lines { n, count, out, step } = lines;
        let mut grads = [CacheLine([T::ZERO; LANES]); MAX_LINES];
        let mut ys = [CacheLine([T::ZERO; LANES]); MAX_LINES];
        let mut totals = [T::ZERO; MAX_LINES];
        for i in 0..count {
            grads[i].0 = load_few(ins[0].wrapping_add(i.wrapping_mul(steps[0])), n, T::ZERO);
            ys[i].0 = load_few(ins[1].wrapping_add(i.wrapping_mul(steps[1])), n, T::ZERO);
        }
        for i in 0..count {
            let mut terms = grads[i];
            if !log {
                for j in 0..LANES {
                    terms.0[j] *= ys[i].0[j];
                }
            }
            totals[i] = T::sum_lanes(&terms.0);
        }
        for i in 0..count {
            let (grad, y, sum) = (&mut grads[i].0, &ys[i].0, totals[i]);
            if log {
                for j in 0..LANES {
                    grad[j] -= y[j].exp_below() * sum;
                }
            } else {
                for j in 0..LANES {
                    grad[j] = (grad[j] - sum) * y[j];
                }
            }
            store_few(out.wrapping_add(i.wrapping_mul(step)), n, *grad);
        }
    }
}

simd_fn! {
    unsafe fn long_lines_backward<T: Float>(lines: Lines<T>, ins: [*const T; 2], steps: [usize; 2], log: bool) {
        let Lines { n, count, out, step } = lines;
        let mut totals = [T::ZERO; MAX_LINES];
        for i in 0..count {
            let grad = ins[0].wrapping_add(i.wrapping_mul(steps[0]));
            let y = ins[1].wrapping_add(i.wrapping_mul(steps[1]));
            let mut sum = 0.0;
            for blocks in chunks(n) {
                let mut sums = CacheLine([T::ZERO; LANES]);
                // Separate loops, because compilers would not vectorize a branch inside.
                if log {
                    for block in blocks {
                        let g = keep(load(grad, start(block, n)), own_lanes(block, n));
                        for j in 0..LANES {
                            sums.0[j] += g[j];
                        }
                    }
                } else {
                    for block in blocks {
                        let g = keep(load(grad, start(block, n)), own_lanes(block, n));
                        let y = load(y, start(block, n));
                        for j in 0..LANES {
                            sums.0[j] += g[j] * y[j];
                        }
                    }
                }
                sum += T::sum_lanes(&sums.0).to_f64();
            }
            totals[i] = T::from_f64(sum);
        }
        for i in 0..count {
            let grad = ins[0].wrapping_add(i.wrapping_mul(steps[0]));
            let y = ins[1].wrapping_add(i.wrapping_mul(steps[1]));
            let sum = totals[i];
            let to = out.wrapping_add(i.wrapping_mul(step));
            if log {
                map(n, to, [grad, y], |mut g, y| {
                    for j in 0..LANES {
                        g[j] -= y[j].exp_below() * sum;
                    }
                    g
                });
            } else {
                map(n, to, [grad, y], |mut g, y| {
                    for j in 0..LANES {
                        g[j] = (g[j] - sum) * y[j];
                    }
                    g
                });
            }
        }
    }
}

simd_fn! {
    pub unsafe fn rows_max<T: Float>(width: usize, x: *const T, largest: &mut [T]) {
        let largest = &mut largest[..width];
        for i in 0..width {
            largest[i] = larger(largest[i], *x.add(i));
        }
    }
}

simd_fn! {
    pub unsafe fn rows_exp_sum<T: Float>(width: usize, x: *const T, largest: &[T], sums: &mut [T]) {
        let (largest, sums) = (&largest[..width], &mut sums[..width]);
        for i in 0..width {
            sums[i] += (*x.add(i) - largest[i]).exp_below();
        }
    }
}

simd_fn! {
    pub unsafe fn finish_sums<T: Float>(sums: &mut [T], log: bool) {
        for i in 0..sums.len() {
            let sum = sums.get_unchecked_mut(i);
            *sum = if log { (*sum).ln() } else { T::ONE / *sum };
        }
    }
}

simd_fn! {
    pub unsafe fn rows_softmax<T: Float>(
        width: usize, x: *const T, largest: &[T], sums: &[T], log: bool, out: &mut [T],
    ) {
        let (largest, sums, out) = (&largest[..width], &sums[..width], &mut out[..width]);
        if log {
            for i in 0..width {
                out[i] = *x.add(i) - largest[i] - sums[i];
            }
        } else {
            for i in 0..width {
                out[i] = (*x.add(i) - largest[i]).exp_below() * sums[i];
            }
        }
    }
}

simd_fn! {
    pub unsafe fn rows_dot<T: Float>(
        width: usize,
        grad: *const T,
        y: *const T,
        log: bool,
        sums: &mut [T],
    ) {
        let sums = &mut sums[..width];
        for i in 0..width {
            sums[i] += *grad.add(i) * if log { T::ONE } else { *y.add(i) };
        }
    }
}

simd_fn! {
    pub unsafe fn rows_gradient<T: Float>(
        width: usize, grad: *const T, y: *const T, sums: &[T], log: bool, out: &mut [T],
    ) {
        let (sums, out) = (&sums[..width], &mut out[..width]);
        if log {
            for i in 0..width {
                out[i] = *grad.add(i) - (*y.add(i)).exp_below() * sums[i];
            }
        } else {
            for i in 0..width {
                out[i] = (*grad.add(i) - sums[i]) * *y.add(i);
            }
        }
    }
}
