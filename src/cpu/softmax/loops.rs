//! The loops of softmax and its derivative, for f32 and f64: over whole lines, and over the rows of a tile of
//! neighbouring lines.

use crate::base::DType;
use crate::cpu::math;
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
pub(super) trait Real: Copy + Send + Sync + 'static {
    const DTYPE: DType;
    const ZERO: Self;
    const LOWEST: Self;
    /// Reads lines at `x`, which are `x_step` elements apart.
    unsafe fn forward(lines: Lines<Self>, x: *const Self, x_step: usize, log: bool);
    /// `ins` are the gradient of the result, and the result.
    unsafe fn backward(lines: Lines<Self>, ins: [*const Self; 2], steps: [usize; 2], log: bool);
    unsafe fn rows_max(width: usize, x: *const Self, largest: &mut [Self]);
    unsafe fn rows_exp_sum(width: usize, x: *const Self, largest: &[Self], sums: &mut [Self]);
    /// Turns the sums into their logarithms, or into their reciprocals, as [`Real::rows_softmax`] needs them.
    unsafe fn finish_sums(sums: &mut [Self], log: bool);
    unsafe fn rows_softmax(
        width: usize,
        x: *const Self,
        largest: &[Self],
        sums: &[Self],
        log: bool,
        out: &mut [Self],
    );
    unsafe fn rows_dot(width: usize, grad: *const Self, y: *const Self, log: bool, sums: &mut [Self]);
    unsafe fn rows_gradient(
        width: usize,
        grad: *const Self,
        y: *const Self,
        sums: &[Self],
        log: bool,
        out: &mut [Self],
    );
}

const LANES: usize = 16;

/// Lanes in memory, aligned to a cache line: a store that crosses two lines can be read only tens of cycles later.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct CacheLine<A>(A);

macro_rules! real {
    ($T:ident, $bits:ident, $dtype:ident, $mod:ident) => {
        mod $mod {
            use super::*;
            use crate::cpu::lanes::$T::{most, total};
            use math::$T::{exp_below as exp, log as ln};

            #[inline(always)]
            unsafe fn load(x: *const $T, i: usize) -> [$T; LANES] {
                // SAFETY: the caller's elements.
                unsafe { x.add(i).cast::<[$T; LANES]>().read_unaligned() }
            }

            #[inline(always)]
            unsafe fn store(out: *mut $T, i: usize, lanes: [$T; LANES]) {
                // SAFETY: the caller's elements.
                unsafe { out.add(i).cast::<[$T; LANES]>().write_unaligned(lanes) }
            }

            /// The lanes whose bits are set in `kept`; zeros for the others.
            #[inline(always)]
            fn keep(mut lanes: [$T; LANES], kept: [$T; LANES]) -> [$T; LANES] {
                for j in 0..LANES {
                    lanes[j] = $T::from_bits(lanes[j].to_bits() & kept[j].to_bits());
                }
                lanes
            }

            /// Copies fewer elements than there are lanes: the first and the last ones, which may overlap.
            #[inline(always)]
            unsafe fn copy_few(from: *const $T, to: *mut $T, n: usize) {
                macro_rules! ends {
                    ($few:literal) => {
                        for at in [0, n - $few] {
                            let few = from.add(at).cast::<[$T; $few]>().read_unaligned();
                            to.add(at).cast::<[$T; $few]>().write_unaligned(few);
                        }
                    };
                }
                const { assert!(LANES <= 16) }
                // SAFETY: the caller's `n` elements of each.
                unsafe {
                    match n {
                        0 => (),
                        1 => ends!(1),
                        2..4 => ends!(2),
                        4..8 => ends!(4),
                        _ => ends!(8),
                    }
                }
            }

            /// Loads fewer elements than there are lanes, into the last lanes.
            #[inline(always)]
            unsafe fn load_few(x: *const $T, n: usize, pad: $T) -> [$T; LANES] {
                let mut lanes = [pad; LANES];
                // SAFETY: the caller's `n` elements.
                unsafe { copy_few(x, lanes.as_mut_ptr().add(LANES - n), n) };
                lanes
            }

            #[inline(always)]
            unsafe fn store_few(out: *mut $T, n: usize, lanes: [$T; LANES]) {
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
            unsafe fn own_lanes(block: usize, n: usize) -> [$T; LANES] {
                static BITS: [$bits; 2 * LANES] = {
                    let mut bits = [0; 2 * LANES];
                    let mut j = LANES;
                    while j < 2 * LANES {
                        bits[j] = !0;
                        j += 1;
                    }
                    bits
                };
                // SAFETY: the offset is at most `LANES`.
                unsafe { load(BITS.as_ptr().cast(), (n - block * LANES).min(LANES)) }
            }

            /// Groups of a line's blocks, small enough to be summed without much error.
            #[inline(always)]
            fn chunks(n: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
                let blocks = n.div_ceil(LANES);
                (0..blocks).step_by(LANES).map(move |first| first..(first + LANES).min(blocks))
            }

            /// Writes `make` of the elements of two lines, which do not overlap the result.
            #[inline(always)]
            unsafe fn map(
                n: usize,
                out: *mut $T,
                [a, b]: [*const $T; 2],
                make: impl Fn([$T; LANES], [$T; LANES]) -> [$T; LANES],
            ) {
                for block in 0..n.div_ceil(LANES) {
                    let at = start(block, n);
                    // SAFETY: the caller's `n` elements of each.
                    unsafe { store(out, at, make(load(a, at), load(b, at))) };
                }
            }

            #[inline(always)]
            fn larger(a: $T, b: $T) -> $T {
                // NaN need not win: it appears in the sum.
                if b > a { b } else { a }
            }

            /// Exponentials; lanes in `kept` are added to the sums.
            #[inline(always)]
            fn exps(
                mut x: [$T; LANES],
                kept: [$T; LANES],
                largest: $T,
                sums: &mut [$T; LANES],
            ) -> [$T; LANES] {
                for j in 0..LANES {
                    x[j] = exp(x[j] - largest);
                }
                let counted = keep(x, kept);
                for j in 0..LANES {
                    sums[j] += counted[j];
                }
                x
            }

            #[inline(always)]
            unsafe fn largest_of(n: usize, x: *const $T) -> $T {
                // SAFETY: the caller's `n` elements.
                unsafe {
                    let mut lanes = CacheLine(load(x, 0));
                    for block in 1..n.div_ceil(LANES) {
                        let x = load(x, start(block, n));
                        for j in 0..LANES {
                            lanes.0[j] = larger(lanes.0[j], x[j]);
                        }
                    }
                    most(&lanes.0)
                }
            }

            /// The sum of exponentials, which are written to `out` if they are `wanted`.
            #[inline(always)]
            unsafe fn sum_of_exps(n: usize, out: *mut $T, x: *const $T, largest: $T, wanted: bool) -> $T {
                let mut sum = 0.0;
                for blocks in chunks(n) {
                    let mut sums = CacheLine([0.0; LANES]);
                    for block in blocks {
                        let at = start(block, n);
                        // SAFETY: the caller's `n` elements of each; a prefetch takes any address.
                        unsafe {
                            let exps = exps(load(x, at), own_lanes(block, n), largest, &mut sums.0);
                            if wanted {
                                // Memory is idle here, so prefetch the next line.
                                fetch::<$T, LANES>(x.wrapping_add(n + at));
                                fetch::<$T, LANES>(out.wrapping_add(n + at));
                                store(out, at, exps);
                            }
                        }
                    }
                    sum += total(&sums.0) as f64;
                }
                sum as $T
            }

            /// Multiplies a line by a factor.
            #[inline(always)]
            unsafe fn scale(n: usize, out: *mut $T, by: $T) {
                for block in 0..n.div_ceil(LANES) {
                    let at = start(block, n);
                    // SAFETY: the caller's `n` elements.
                    unsafe {
                        let (own, mut y) = (own_lanes(block, n), load(out, at));
                        for j in 0..LANES {
                            // Lanes that the block before has multiplied are multiplied by one.
                            let own = own[j].to_bits();
                            y[j] *= $T::from_bits(by.to_bits() & own | (1.0 as $T).to_bits() & !own);
                        }
                        store(out, at, y);
                    }
                }
            }

            simd_fn! {
                /// Lines shorter than the lanes, which are loaded and stored once.
                unsafe fn short_lines(lines: Lines<$T>, x: *const $T, x_step: usize, log: bool) {
                    let Lines { n, count, out, step } = lines;
                    let mut rows = [CacheLine([0.0; LANES]); MAX_LINES];
                    let (mut largest, mut sums) = ([0.0; MAX_LINES], [1.0; MAX_LINES]);
                    for i in 0..count {
                        rows[i].0 = load_few(x.wrapping_add(i.wrapping_mul(x_step)), n, $T::NEG_INFINITY);
                    }
                    for i in 0..count {
                        largest[i] = most(&rows[i].0);
                    }
                    for i in 0..count {
                        let mut exps = CacheLine([0.0; LANES]);
                        for j in 0..LANES {
                            rows[i].0[j] -= largest[i];
                            exps.0[j] = exp(rows[i].0[j]);
                        }
                        sums[i] = total(&exps.0);
                        if !log {
                            rows[i] = exps;
                        }
                    }
                    for sum in &mut sums {
                        *sum = if log { ln(*sum) } else { 1.0 / *sum };
                    }
                    for i in 0..count {
                        for j in 0..LANES {
                            rows[i].0[j] = if log { rows[i].0[j] - sums[i] } else { rows[i].0[j] * sums[i] };
                        }
                        store_few(out.wrapping_add(i.wrapping_mul(step)), n, rows[i].0);
                    }
                }
            }

            pub unsafe fn forward(lines: Lines<$T>, x: *const $T, x_step: usize, log: bool) {
                // SAFETY: the caller's contract.
                unsafe {
                    if lines.n < LANES { short_lines(lines, x, x_step, log) } else { long_lines(lines, x, x_step, log) }
                }
            }

            // Each step is done for all lines before the next step, so that lines do not wait for one another.
            simd_fn! {
                unsafe fn long_lines(lines: Lines<$T>, x: *const $T, x_step: usize, log: bool) {
                    let Lines { n, count, out, step } = lines;
                    let (mut largest, mut sums) = ([0.0; MAX_LINES], [1.0; MAX_LINES]);
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
                            *sum = ln(*sum);
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
                            scale(n, to(i), 1.0 / sums[i]);
                        }
                    }
                }
            }

            pub unsafe fn backward(lines: Lines<$T>, ins: [*const $T; 2], steps: [usize; 2], log: bool) {
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
                unsafe fn short_lines_backward(lines: Lines<$T>, ins: [*const $T; 2], steps: [usize; 2], log: bool) {
                    let Lines { n, count, out, step } = lines;
                    let mut grads = [CacheLine([0.0; LANES]); MAX_LINES];
                    let mut ys = [CacheLine([0.0; LANES]); MAX_LINES];
                    let mut totals = [0.0; MAX_LINES];
                    for i in 0..count {
                        grads[i].0 = load_few(ins[0].wrapping_add(i.wrapping_mul(steps[0])), n, 0.0);
                        ys[i].0 = load_few(ins[1].wrapping_add(i.wrapping_mul(steps[1])), n, 0.0);
                    }
                    for i in 0..count {
                        let mut terms = grads[i];
                        if !log {
                            for j in 0..LANES {
                                terms.0[j] *= ys[i].0[j];
                            }
                        }
                        totals[i] = total(&terms.0);
                    }
                    for i in 0..count {
                        let (grad, y, sum) = (&mut grads[i].0, &ys[i].0, totals[i]);
                        if log {
                            for j in 0..LANES {
                                grad[j] -= exp(y[j]) * sum;
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
                unsafe fn long_lines_backward(lines: Lines<$T>, ins: [*const $T; 2], steps: [usize; 2], log: bool) {
                    let Lines { n, count, out, step } = lines;
                    let mut totals = [0.0; MAX_LINES];
                    for i in 0..count {
                        let grad = ins[0].wrapping_add(i.wrapping_mul(steps[0]));
                        let y = ins[1].wrapping_add(i.wrapping_mul(steps[1]));
                        let mut sum = 0.0;
                        for blocks in chunks(n) {
                            let mut sums = CacheLine([0.0; LANES]);
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
                            sum += total(&sums.0) as f64;
                        }
                        totals[i] = sum as $T;
                    }
                    for i in 0..count {
                        let grad = ins[0].wrapping_add(i.wrapping_mul(steps[0]));
                        let y = ins[1].wrapping_add(i.wrapping_mul(steps[1]));
                        let sum = totals[i];
                        let to = out.wrapping_add(i.wrapping_mul(step));
                        if log {
                            map(n, to, [grad, y], |mut g, y| {
                                for j in 0..LANES {
                                    g[j] -= exp(y[j]) * sum;
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
                pub unsafe fn rows_max(width: usize, x: *const $T, largest: &mut [$T]) {
                    let largest = &mut largest[..width];
                    for i in 0..width {
                        largest[i] = larger(largest[i], *x.add(i));
                    }
                }
            }

            simd_fn! {
                pub unsafe fn rows_exp_sum(width: usize, x: *const $T, largest: &[$T], sums: &mut [$T]) {
                    let (largest, sums) = (&largest[..width], &mut sums[..width]);
                    for i in 0..width {
                        sums[i] += exp(*x.add(i) - largest[i]);
                    }
                }
            }

            simd_fn! {
                pub unsafe fn finish_sums(sums: &mut [$T], log: bool) {
                    for i in 0..sums.len() {
                        let sum = sums.get_unchecked_mut(i);
                        *sum = if log { ln(*sum) } else { 1.0 / *sum };
                    }
                }
            }

            simd_fn! {
                pub unsafe fn rows_softmax(
                    width: usize, x: *const $T, largest: &[$T], sums: &[$T], log: bool, out: &mut [$T],
                ) {
                    let (largest, sums, out) = (&largest[..width], &sums[..width], &mut out[..width]);
                    if log {
                        for i in 0..width {
                            out[i] = *x.add(i) - largest[i] - sums[i];
                        }
                    } else {
                        for i in 0..width {
                            out[i] = exp(*x.add(i) - largest[i]) * sums[i];
                        }
                    }
                }
            }

            simd_fn! {
                pub unsafe fn rows_dot(
                    width: usize,
                    grad: *const $T,
                    y: *const $T,
                    log: bool,
                    sums: &mut [$T],
                ) {
                    let sums = &mut sums[..width];
                    for i in 0..width {
                        sums[i] += *grad.add(i) * if log { 1.0 } else { *y.add(i) };
                    }
                }
            }

            simd_fn! {
                pub unsafe fn rows_gradient(
                    width: usize, grad: *const $T, y: *const $T, sums: &[$T], log: bool, out: &mut [$T],
                ) {
                    let (sums, out) = (&sums[..width], &mut out[..width]);
                    if log {
                        for i in 0..width {
                            out[i] = *grad.add(i) - exp(*y.add(i)) * sums[i];
                        }
                    } else {
                        for i in 0..width {
                            out[i] = (*grad.add(i) - sums[i]) * *y.add(i);
                        }
                    }
                }
            }
        }

        impl Real for $T {
            const DTYPE: DType = DType::$dtype;
            const ZERO: $T = 0.0;
            const LOWEST: $T = $T::NEG_INFINITY;
            unsafe fn forward(lines: Lines<$T>, x: *const $T, x_step: usize, log: bool) {
                // SAFETY: the caller's contract, here and below.
                unsafe { $mod::forward(lines, x, x_step, log) }
            }
            unsafe fn backward(lines: Lines<$T>, ins: [*const $T; 2], steps: [usize; 2], log: bool) {
                // SAFETY: as above.
                unsafe { $mod::backward(lines, ins, steps, log) }
            }
            unsafe fn rows_max(width: usize, x: *const $T, largest: &mut [$T]) {
                // SAFETY: as above.
                unsafe { $mod::rows_max(width, x, largest) }
            }
            unsafe fn rows_exp_sum(width: usize, x: *const $T, largest: &[$T], sums: &mut [$T]) {
                // SAFETY: as above.
                unsafe { $mod::rows_exp_sum(width, x, largest, sums) }
            }
            unsafe fn finish_sums(sums: &mut [$T], log: bool) {
                // SAFETY: as above.
                unsafe { $mod::finish_sums(sums, log) }
            }
            unsafe fn rows_softmax(
                width: usize,
                x: *const $T,
                largest: &[$T],
                sums: &[$T],
                log: bool,
                out: &mut [$T],
            ) {
                // SAFETY: as above.
                unsafe { $mod::rows_softmax(width, x, largest, sums, log, out) }
            }
            unsafe fn rows_dot(width: usize, grad: *const $T, y: *const $T, log: bool, sums: &mut [$T]) {
                // SAFETY: as above.
                unsafe { $mod::rows_dot(width, grad, y, log, sums) }
            }
            unsafe fn rows_gradient(
                width: usize,
                grad: *const $T,
                y: *const $T,
                sums: &[$T],
                log: bool,
                out: &mut [$T],
            ) {
                // SAFETY: as above.
                unsafe { $mod::rows_gradient(width, grad, y, sums, log, out) }
            }
        }
    };
}
real!(f32, u32, F32, single);
real!(f64, u64, F64, double);
