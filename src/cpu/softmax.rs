//! Softmax and its logarithm along one dimension, and their derivatives: fused, because the composition of
//! four operators reads and writes memory four times as often. A dimension that is not the innermost is
//! computed for a tile of neighbouring lines at once.

use super::element::scratch;
use super::line::{Line, Room, TILE, compute_type};
use super::math;
use super::par;
use super::simd::{fetch, simd_fn};
use super::walk::Walk;
use crate::base::{DType, Dims, Fault, Result, Strided};
use smallvec::SmallVec;

/// `out = softmax(x)` along `dim`, or its logarithm; for float dtypes.
///
/// # Safety
/// The views describe live memory of one shape; `out` overlaps nothing, or is `x` itself.
pub unsafe fn softmax(out: Strided, x: Strided, dim: usize, log: bool) -> Result<()> {
    // SAFETY: handed on.
    unsafe { run(if log { "log_softmax" } else { "softmax" }, out, [x, x], dim, Kernel::Forward { log }) }
}

/// The gradient of [`softmax`]'s operand, from its result `y` and the result's gradient.
///
/// # Safety
/// As [`softmax`].
pub unsafe fn softmax_backward(out: Strided, grad: Strided, y: Strided, dim: usize, log: bool) -> Result<()> {
    // SAFETY: handed on.
    unsafe { run("softmax_backward", out, [grad, y], dim, Kernel::Backward { log }) }
}

#[derive(Clone, Copy)]
enum Kernel {
    Forward { log: bool },
    Backward { log: bool },
}

unsafe fn run(op: &'static str, out: Strided, ins: [Strided; 2], dim: usize, kernel: Kernel) -> Result<()> {
    let dtype = ins[0].dtype;
    // SAFETY: handed on.
    unsafe {
        match compute_type(dtype) {
            DType::F32 => each_line::<f32>(out, ins, dim, kernel),
            DType::F64 => each_line::<f64>(out, ins, dim, kernel),
            _ => Err(Fault::NoKernel { op, dtype }.into()),
        }
    }
}

/// Cuts the tensor into lines along `dim` (when they are dense), or into tiles of lines.
unsafe fn each_line<T: Real>(out: Strided, ins: [Strided; 2], dim: usize, kernel: Kernel) -> Result<()> {
    let (n, along) = match out.shape.get(dim) {
        Some(&n) => (n, [out.strides[dim], ins[0].strides[dim], ins[1].strides[dim]]),
        None => (1, [1; 3]),
    };
    let mut others: Dims = (0..out.shape.len()).filter(|&d| d != dim).collect();
    others.sort_by_key(|&d| std::cmp::Reverse(out.strides[d]));
    let strides = [out.strides, ins[0].strides, ins[1].strides];
    let mut walk = Walk::over(&others, out.shape, strides);
    if n == 0 || walk.numel() == 0 {
        return Ok(());
    }
    let (neighbours, across) = match along == [1; 3] || n == 1 {
        true => (1, [0; 3]),
        false => walk.pop(),
    };
    let tiles = neighbours.div_ceil(TILE);
    let width = neighbours.min(TILE);
    let step = |i: usize| if neighbours == 1 { along[i] } else { across[i] };
    let lines = [
        Line::reader(&ins[0], step(1), T::DTYPE),
        Line::reader(&ins[1], step(2), T::DTYPE),
        Line::writer(&out, step(0), T::DTYPE),
    ];
    let grain = (par::GRAIN / (n * width)).max(1);
    par::try_ranges(walk.numel() * tiles, grain, |range| {
        if neighbours == 1 && lines.iter().all(Line::is_direct) {
            walk.runs(range, |at, steps, count| {
                let most = (ELEMENTS / n).clamp(1, TOGETHER);
                for first in (0..count).step_by(most) {
                    let count = most.min(count - first);
                    let at = [0, 1, 2].map(|i| at[i].wrapping_add(first.wrapping_mul(steps[i])));
                    // SAFETY: these lines are inside the views, and are this task's own.
                    unsafe { several::<T>(&lines, at, steps, [n, count], kernel) };
                }
            });
            return Ok(());
        }
        let mut buffers = Buffers::<T>::new(&lines, if neighbours == 1 { n } else { 0 })?;
        if neighbours == 1 {
            // SAFETY: these lines are inside the views, and are this task's own.
            walk.each(range, |at| unsafe { one_line(&lines, at, n, kernel, &mut buffers) });
            return Ok(());
        }
        for group in range {
            let at = walk.at(group / tiles);
            let first = group % tiles * TILE;
            let at = [0, 1, 2].map(|i| at[i] + first * across[i]);
            let width = width.min(neighbours - first);
            // SAFETY: as above.
            unsafe { tile(&lines, at, along, n, width, kernel, &mut buffers) };
        }
        Ok(())
    })
}

/// Copies of lines that cannot be used where they lie.
struct Buffers<T> {
    lines: [Vec<T>; 3],
    room: Room,
}

impl<T: Real> Buffers<T> {
    fn new(lines: &[Line; 3], n: usize) -> Result<Buffers<T>> {
        let copy = |line: &Line| scratch(if line.is_direct() { 0 } else { n }, T::ZERO);
        Ok(Buffers { lines: [copy(&lines[0])?, copy(&lines[1])?, copy(&lines[2])?], room: Room::empty() })
    }
}

/// Lines that lie as the loops want them.
unsafe fn several<T: Real>(
    lines: &[Line; 3],
    at: [usize; 3],
    [step, first, second]: [usize; 3],
    [n, count]: [usize; 2],
    kernel: Kernel,
) {
    let out = Lines { n, count, out: lines[2].at(at[0]).cast::<T>(), step };
    let ins = [0, 1].map(|i| lines[i].at(at[i + 1]).cast_const().cast::<T>());
    // SAFETY: the caller's lines.
    unsafe {
        match kernel {
            Kernel::Forward { log } => T::forward(out, ins[0], first, log),
            Kernel::Backward { log } => T::backward(out, ins, [first, second], log),
        }
    }
}

unsafe fn one_line<T: Real>(
    lines: &[Line; 3],
    at: [usize; 3],
    n: usize,
    kernel: Kernel,
    buffers: &mut Buffers<T>,
) {
    let Buffers { lines: copies, room } = buffers;
    let inputs = if matches!(kernel, Kernel::Forward { .. }) { 1 } else { 2 };
    let mut ins = [std::ptr::null::<T>(); 2];
    for i in 0..inputs {
        let (line, offset) = (&lines[i], at[i + 1]);
        ins[i] = line.at(offset).cast_const().cast();
        if !line.is_direct() {
            for first in (0..n).step_by(TILE) {
                let len = TILE.min(n - first);
                // SAFETY: part of the caller's line.
                unsafe {
                    let from = line.read(offset + first * line.step, len, room).cast::<T>();
                    copies[i][first..first + len].as_mut_ptr().copy_from_nonoverlapping(from, len);
                }
            }
            ins[i] = copies[i].as_ptr();
        }
    }
    let line = &lines[2];
    let to = if line.is_direct() { line.at(at[0]).cast::<T>() } else { copies[2].as_mut_ptr() };
    // SAFETY: n elements each, by the caller's promise or because the copies are that long.
    unsafe {
        match kernel {
            Kernel::Forward { log } => T::forward(Lines { n, count: 1, out: to, step: 0 }, ins[0], 0, log),
            Kernel::Backward { log } => {
                T::backward(Lines { n, count: 1, out: to, step: 0 }, ins, [0; 2], log)
            }
        }
        if !line.is_direct() {
            for first in (0..n).step_by(TILE) {
                let len = TILE.min(n - first);
                line.write(to.add(first).cast(), at[0] + first * line.step, len, room);
            }
        }
    }
}

/// `width` neighbouring lines of `n` elements, row by row: a pass for the largest elements, one for the sums,
/// and one for the result.
unsafe fn tile<T: Real>(
    lines: &[Line; 3],
    at: [usize; 3],
    along: [usize; 3],
    n: usize,
    width: usize,
    kernel: Kernel,
    buffers: &mut Buffers<T>,
) {
    let room = &mut buffers.room;
    let mut other = Room::empty();
    let mut largest: SmallVec<[T; TILE]> = SmallVec::from_elem(T::LOWEST, width);
    let mut sums: SmallVec<[T; TILE]> = SmallVec::from_elem(T::ZERO, width);
    let mut result: SmallVec<[T; TILE]> = SmallVec::from_elem(T::ZERO, width);
    // SAFETY: row i of the tile is inside each operand.
    unsafe {
        let row = |input: usize, i: usize, room: &mut Room| {
            lines[input].read(at[input + 1] + i * along[input + 1], width, room).cast::<T>()
        };
        if let Kernel::Forward { log } = kernel {
            (0..n).for_each(|i| T::rows_max(width, row(0, i, room), &mut largest));
            (0..n).for_each(|i| T::rows_exp_sum(width, row(0, i, room), &largest, &mut sums));
            T::finish_sums(&mut sums, log);
        } else if let Kernel::Backward { log } = kernel {
            (0..n).for_each(|i| T::rows_dot(width, row(0, i, room), row(1, i, &mut other), log, &mut sums));
        }
        for i in 0..n {
            match kernel {
                Kernel::Forward { log } => {
                    T::rows_softmax(width, row(0, i, room), &largest, &sums, log, &mut result)
                }
                Kernel::Backward { log } => {
                    T::rows_gradient(width, row(0, i, room), row(1, i, &mut other), &sums, log, &mut result);
                }
            }
            let line = &lines[2];
            let offset = at[0] + i * along[0];
            if line.is_direct() {
                line.at(offset).cast::<T>().copy_from_nonoverlapping(result.as_ptr(), width);
            } else {
                line.write(result.as_ptr().cast(), offset, width, room);
            }
        }
    }
}

/// Where the results of lines that are computed together go: `count` lines of `n` elements, `step` apart.
#[derive(Clone, Copy)]
struct Lines<T> {
    n: usize,
    count: usize,
    out: *mut T,
    step: usize,
}

/// The most of them, and how many elements they have at most unless one alone has more.
const TOGETHER: usize = 16;
const ELEMENTS: usize = 4096;

/// The loops over f32 and f64.
trait Real: Copy + Send + Sync + 'static {
    const DTYPE: DType;
    const ZERO: Self;
    const LOWEST: Self;
    /// Of lines at `x`, `x_step` elements apart.
    unsafe fn forward(lines: Lines<Self>, x: *const Self, x_step: usize, log: bool);
    /// Of the result's gradient, and the result.
    unsafe fn backward(lines: Lines<Self>, ins: [*const Self; 2], steps: [usize; 2], log: bool);
    unsafe fn rows_max(width: usize, x: *const Self, largest: &mut [Self]);
    unsafe fn rows_exp_sum(width: usize, x: *const Self, largest: &[Self], sums: &mut [Self]);
    /// What [`Real::rows_softmax`] needs of the sums: their logarithms or their reciprocals.
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

const LANES: usize = 32;

macro_rules! real {
    ($T:ident, $bits:ident, $dtype:ident, $mod:ident) => {
        mod $mod {
            use super::*;
            use crate::cpu::simd::$T::{most, total};
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

            /// As many of the last lanes as are `left` have all bits set.
            #[inline(always)]
            fn last_lanes(left: usize) -> *const $T {
                static BITS: [$bits; 2 * LANES] = {
                    let mut bits = [0; 2 * LANES];
                    let mut j = LANES;
                    while j < 2 * LANES {
                        bits[j] = !0;
                        j += 1;
                    }
                    bits
                };
                BITS.as_ptr().wrapping_add(left).cast()
            }

            /// Those of the lanes that are kept, and zeros.
            #[inline(always)]
            fn keep(mut lanes: [$T; LANES], kept: [$T; LANES]) -> [$T; LANES] {
                for j in 0..LANES {
                    lanes[j] = $T::from_bits(lanes[j].to_bits() & kept[j].to_bits());
                }
                lanes
            }

            /// The last of `n` elements in the last lanes, of which those that fill no block are the tail. (What stood
            /// before them need not be told apart: it is computed twice, to the same.)
            #[inline(always)]
            unsafe fn load_last(x: *const $T, n: usize, pad: $T) -> [$T; LANES] {
                // SAFETY: the caller's n elements.
                unsafe {
                    if n >= LANES {
                        return load(x, n - LANES);
                    }
                    let mut lanes = [pad; LANES];
                    for j in 0..n {
                        lanes[LANES - n + j] = *x.add(j);
                    }
                    lanes
                }
            }

            #[inline(always)]
            unsafe fn store_last(out: *mut $T, n: usize, lanes: [$T; LANES]) {
                // SAFETY: the caller's n elements.
                unsafe {
                    if n >= LANES {
                        return store(out, n - LANES, lanes);
                    }
                    for j in 0..n {
                        *out.add(j) = lanes[LANES - n + j];
                    }
                }
            }

            /// Writes what `make` makes of the elements of two rows, whose last ones were loaded before. These take the same
            /// way: a copy of the code would be no vectors.
            #[inline(always)]
            unsafe fn map(
                n: usize,
                out: *mut $T,
                [a, b]: [*const $T; 2],
                last: &[[$T; LANES]; 2],
                make: impl Fn([$T; LANES], [$T; LANES]) -> [$T; LANES],
            ) {
                let mut made = [0.0; LANES];
                let whole = n / LANES;
                // SAFETY: the caller's n elements of each.
                unsafe {
                    for block in 0..n.div_ceil(LANES) {
                        let at = block * LANES;
                        let (a, b, to) = match block < whole {
                            true => (a.add(at), b.add(at), out.add(at)),
                            false => (last[0].as_ptr(), last[1].as_ptr(), made.as_mut_ptr()),
                        };
                        store(to, 0, make(load(a, 0), load(b, 0)));
                    }
                    if !n.is_multiple_of(LANES) {
                        store_last(out, n, made);
                    }
                }
            }

            #[inline(always)]
            fn larger(a: $T, b: $T) -> $T {
                // A NaN need not win: it comes back with the sum.
                if b > a { b } else { a }
            }

            /// Exponentials, of which the lanes that are `kept` add to the sums.
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
                // SAFETY: the caller's n elements.
                unsafe {
                    let mut lanes = load_last(x, n, *x);
                    for i in (0..n - n % LANES).step_by(LANES) {
                        let x = load(x, i);
                        for j in 0..LANES {
                            lanes[j] = larger(lanes[j], x[j]);
                        }
                    }
                    most(&lanes)
                }
            }

            /// The sum of exponentials, which are written to `out` if they are `wanted`.
            #[inline(always)]
            unsafe fn sum_of_exps(n: usize, out: *mut $T, x: *const $T, largest: $T, wanted: bool) -> $T {
                let whole = n - n % LANES;
                let (mut sums, mut made) = ([0.0; LANES], [0.0; LANES]);
                // SAFETY: the caller's n elements of each.
                unsafe {
                    let last = load_last(x, n, *x);
                    for block in 0..n.div_ceil(LANES) {
                        let at = block * LANES;
                        let (from, to, left) = match at < whole {
                            true => (x.add(at), out.wrapping_add(at), LANES),
                            false => (last.as_ptr(), made.as_mut_ptr(), n % LANES),
                        };
                        let kept = load(last_lanes(left), 0);
                        let exps = exps(load(from, 0), kept, largest, &mut sums);
                        if wanted {
                            // Here memory has nothing to do: it brings what the next line needs.
                            fetch::<$T, LANES>(from.wrapping_add(n));
                            fetch::<$T, LANES>(to.wrapping_add(n));
                            store(to, 0, exps);
                        }
                    }
                    if wanted && whole < n {
                        store_last(out, n, made);
                    }
                }
                total(&sums)
            }

            simd_fn! {
                /// The softmax of lines shorter than the lanes, which are loaded and stored once.
                unsafe fn shorts(lines: Lines<$T>, x: *const $T, x_step: usize) {
                    let Lines { n, count, out, step } = lines;
                    let mut rows = [[0.0; LANES]; TOGETHER];
                    let (mut largest, mut sums) = ([0.0; TOGETHER], [1.0; TOGETHER]);
                    for i in 0..count {
                        rows[i] = load_last(x.wrapping_add(i.wrapping_mul(x_step)), n, $T::NEG_INFINITY);
                    }
                    for i in 0..count {
                        largest[i] = most(&rows[i]);
                    }
                    for i in 0..count {
                        for j in 0..LANES {
                            rows[i][j] = exp(rows[i][j] - largest[i]);
                        }
                        sums[i] = total(&rows[i]);
                    }
                    for i in 0..count {
                        let scale = 1.0 / sums[i];
                        for j in 0..LANES {
                            rows[i][j] *= scale;
                        }
                        store_last(out.wrapping_add(i.wrapping_mul(step)), n, rows[i]);
                    }
                }
            }

            pub unsafe fn forward(lines: Lines<$T>, x: *const $T, x_step: usize, log: bool) {
                // SAFETY: handed on.
                unsafe {
                    if lines.n < LANES && !log {
                        shorts(lines, x, x_step)
                    } else {
                        longs(lines, x, x_step, log)
                    }
                }
            }

            // A step for all lines before the next one: they do not wait for one another.
            simd_fn! {
                unsafe fn longs(lines: Lines<$T>, x: *const $T, x_step: usize, log: bool) {
                    let Lines { n, count, out, step } = lines;
                    let (mut largest, mut sums) = ([0.0; TOGETHER], [1.0; TOGETHER]);
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
                            let last = [load_last(from(i), n, 0.0); 2];
                            let (largest, shift) = (largest[i], sums[i]);
                            map(n, to(i), [from(i); 2], &last, |mut x, _| {
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
                            let last = [load_last(to(i), n, 0.0); 2];
                            let scale = 1.0 / sums[i];
                            map(n, to(i), [to(i); 2], &last, |mut y, _| {
                                for j in 0..LANES {
                                    y[j] *= scale;
                                }
                                y
                            });
                        }
                    }
                }
            }

            simd_fn! {
                pub unsafe fn backward(lines: Lines<$T>, ins: [*const $T; 2], steps: [usize; 2], log: bool) {
                    let Lines { n, count, out, step } = lines;
                    let mut totals = [0.0; TOGETHER];
                    for i in 0..count {
                        let grad = ins[0].wrapping_add(i.wrapping_mul(steps[0]));
                        let y = ins[1].wrapping_add(i.wrapping_mul(steps[1]));
                        let last = [load_last(grad, n, 0.0), load_last(y, n, 0.0)];
                        let kept = load(last_lanes(n % LANES), 0);
                        let mut sums = last[0];
                        // Apart, since a choice inside would be no vectors.
                        if log {
                            sums = keep(sums, kept);
                            for k in (0..n - n % LANES).step_by(LANES) {
                                let g = load(grad, k);
                                for j in 0..LANES {
                                    sums[j] += g[j];
                                }
                            }
                        } else {
                            for j in 0..LANES {
                                sums[j] *= last[1][j];
                            }
                            sums = keep(sums, kept);
                            for k in (0..n - n % LANES).step_by(LANES) {
                                let (g, y) = (load(grad, k), load(y, k));
                                for j in 0..LANES {
                                    sums[j] += g[j] * y[j];
                                }
                            }
                        }
                        totals[i] = total(&sums);
                    }
                    for i in 0..count {
                        let grad = ins[0].wrapping_add(i.wrapping_mul(steps[0]));
                        let y = ins[1].wrapping_add(i.wrapping_mul(steps[1]));
                        let sum = totals[i];
                        let to = out.wrapping_add(i.wrapping_mul(step));
                        let last = [load_last(grad, n, 0.0), load_last(y, n, 0.0)];
                        if log {
                            map(n, to, [grad, y], &last, |mut g, y| {
                                for j in 0..LANES {
                                    g[j] -= exp(y[j]) * sum;
                                }
                                g
                            });
                        } else {
                            map(n, to, [grad, y], &last, |mut g, y| {
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
                // SAFETY: handed on, here and below.
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
