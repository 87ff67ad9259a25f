//! Products of f32 and f64 matrices: tiny ones and vectors by hand, the rest through `gemm`.

#![allow(clippy::needless_range_loop, reason = "plain indexed loops over arrays are what vectorises")]

use super::Sizes;
use crate::base::Result;
use crate::cpu::element::scratch;
use crate::cpu::par::{self, Shared};
use crate::cpu::simd::simd_fn;
use gemm::Parallelism;

/// Multiplications above which `gemm` shares a product among threads.
pub const PARALLEL: usize = 1_500_000;
/// It is faster to divide the rows or columns ourselves: sleeping threads need not be waited for. But each thread packs the other
/// matrix. Fewer rows or columns are not worth that, where there are up to so many multiplications and where there are more.
const SHARE: usize = 32;
const SHARED: usize = 100_000_000;
const LARGE_SHARE: usize = 256;
/// Terms that `gemm` sums at a time, more of them where there are very many: long runs are inexact. It would cut sums only
/// from the last of these on, and not always alike.
const RUN: [usize; 2] = [192, 512];
/// Of a transposed left matrix, whose product is a weight's gradient, fewer are summed at a time while there are no more terms than
/// the second number of these: PyTorch sums gradients of recurrent layers step by step.
const TRANSPOSED: [[usize; 2]; 2] = [[32, 384], [64, 1024]];
/// For so few results `gemm` multiplies dense rows and columns in many lanes.
const DOTS: usize = 256;
/// Up to this size in every direction, packing costs more than the product.
const TINY: usize = 8;
/// Elements of a dot product that are summed in the element type before they are added in f64.
const DOT_BLOCK: usize = 16_384;
const LANES: usize = 64;
/// Elements above which it pays to turn a matrix.
const TURNED: usize = 65_536;
/// The side of the squares that a matrix is turned by.
const TURN: usize = 8;
/// Rows that a matrix-vector product accumulates at once.
const ROWS: usize = 512;

/// Whether the columns of a transposed right matrix (a layer's weights) start a multiple of two kilobytes
/// apart: they then share so few cache lines that `gemm` packs them slower than we turn them.
fn crowds<T>(s: &Sizes) -> bool {
    let apart = s.b[1] * size_of::<T>();
    s.b[0] == 1 && s.n >= 32 && s.k * s.n >= TURNED && apart.is_multiple_of(2048)
}

/// Into how many parts the longer side of a product is cut, if each thread that is worth it gets one that is large enough.
fn shares(s: &Sizes) -> Option<usize> {
    let wanted = par::threads().min(s.work().div_ceil(PARALLEL)).max(1);
    let (short, long) = (s.m.min(s.n), s.m.max(s.n));
    // No part may be summed otherwise than the whole.
    let least = if s.work() <= SHARED { SHARE } else { LARGE_SHARE };
    (short > 2 && long / wanted >= least && long / wanted * short > DOTS).then_some(wanted)
}

/// How many terms of a product are summed at a time.
fn run(s: &Sizes) -> usize {
    let dots = s.m * s.n <= DOTS && s.a[1] == 1 && s.b[0] == 1;
    let transposed = TRANSPOSED.iter().find(|[_, most]| s.a[0] == 1 && s.k <= *most);
    let least = transposed.map_or(RUN[0], |[least, _]| *least);
    if s.k <= least || dots {
        return s.k.max(1);
    }
    let pieces = s.k.div_ceil(s.k.isqrt().clamp(least, RUN[1]));
    s.k.div_ceil(pieces).next_multiple_of(16)
}

macro_rules! kernels {
    ($name:ident, $T:ident) => {
        pub mod $name {
            use super::*;

            /// One product. `threads` allows this product to be shared among threads.
            ///
            /// # Safety
            /// The sizes and strides describe live matrices of this type, and `out` overlaps neither operand.
            pub unsafe fn product(
                s: &Sizes,
                out: *mut $T,
                a: *const $T,
                b: *const $T,
                alpha: $T,
                beta: $T,
                threads: bool,
            ) -> Result<()> {
                let [or, oc] = s.out;
                // SAFETY: the caller's promise, handed on.
                unsafe {
                    if s.m <= TINY && s.n <= TINY && s.k <= TINY {
                        tiny(s, out, a, b, alpha, beta);
                    } else if s.n == 1 && (s.a[0] == 1 || s.a[1] == 1 || s.m == 1) {
                        return vector(s.m, s.k, out, or, a, s.a, b, s.b[0], alpha, beta, threads);
                    } else if s.m == 1 && (s.b[0] == 1 || s.b[1] == 1) {
                        let strides = [s.b[1], s.b[0]];
                        return vector(s.n, s.k, out, oc, b, strides, a, s.a[1], alpha, beta, threads);
                    } else if crowds::<$T>(s) {
                        return turned(s, out, a, b, alpha, beta, threads);
                    } else if threads
                        && s.work() > PARALLEL
                        && let Some(shares) = shares(s)
                    {
                        let (out, a, b) = (Shared::new(out), Shared::new(a), Shared::new(b));
                        let (by_rows, long) = (s.m >= s.n, s.m.max(s.n));
                        par::ranges(shares, 1, |part| {
                            let [first, end] = [part.start, part.end].map(|i| i * long / shares);
                            let count = end - first;
                            let (rows, columns) = if by_rows { (first, 0) } else { (0, first) };
                            let out = out.get().add(rows * or + columns * oc);
                            let (a, b) = (a.get().add(rows * s.a[0]), b.get().add(columns * s.b[1]));
                            let part =
                                if by_rows { Sizes { m: count, ..*s } } else { Sizes { n: count, ..*s } };
                            general(&part, out, a, b, alpha, beta, Parallelism::None);
                        });
                    } else if threads && s.work() > PARALLEL {
                        let (out, a, b) = (Shared::new(out), Shared::new(a), Shared::new(b));
                        par::inside(|| {
                            let alone = par::threads() == 1;
                            let how = if alone { Parallelism::None } else { Parallelism::Rayon(0) };
                            general(s, out.get(), a.get(), b.get(), alpha, beta, how);
                        });
                    } else {
                        general(s, out, a, b, alpha, beta, Parallelism::None);
                    }
                }
                Ok(())
            }

            /// The product with a copy of the right matrix that lies row by row.
            unsafe fn turned(
                s: &Sizes,
                out: *mut $T,
                a: *const $T,
                b: *const $T,
                alpha: $T,
                beta: $T,
                threads: bool,
            ) -> Result<()> {
                let rows = scratch(s.k * s.n, 0.0 as $T)?;
                let to = Shared::new(rows.as_ptr());
                let from = Shared::new(b);
                let turn = |range: std::ops::Range<usize>| {
                    // SAFETY: these rows of the copy are this call's alone, and the columns are inside the
                    // matrix.
                    unsafe { turn(range.start, range.end, s.n, from.get(), s.b[1], to.get()) };
                };
                if threads {
                    par::ranges(s.k, 64, turn)
                } else {
                    turn(0..s.k)
                }
                let sizes = Sizes { b: [s.n, 1], ..*s };
                // SAFETY: handed on, with the copy in its place.
                unsafe { product(&sizes, out, a, rows.as_ptr(), alpha, beta, threads) }
            }

            simd_fn! {
                /// Rows `first..end` of `to`, `n` wide, from the columns of `from`, `step` apart; square by
                /// square, so that both sides stay in the first cache.
                ///
                /// # Safety
                /// `from` has these elements, and `to` has room for whole rows.
                pub unsafe fn turn(
                    first: usize,
                    end: usize,
                    n: usize,
                    from: *const $T,
                    step: usize,
                    to: *mut $T,
                ) {
                    for row in (first..end).step_by(TURN) {
                        for column in (0..n).step_by(TURN) {
                            if row + TURN <= end && column + TURN <= n {
                                let mut square = [[0.0 as $T; TURN]; TURN];
                                for j in 0..TURN {
                                    let line = from.add((column + j) * step + row);
                                    let line = line.cast::<[$T; TURN]>().read_unaligned();
                                    for i in 0..TURN {
                                        square[i][j] = line[i];
                                    }
                                }
                                for i in 0..TURN {
                                    let line = to.add((row + i) * n + column);
                                    line.cast::<[$T; TURN]>().write_unaligned(square[i]);
                                }
                            } else {
                                for i in row..end.min(row + TURN) {
                                    for j in column..n.min(column + TURN) {
                                        *to.add(i * n + j) = *from.add(j * step + i);
                                    }
                                }
                            }
                        }
                    }
                }
            }

            unsafe fn general(
                s: &Sizes,
                out: *mut $T,
                a: *const $T,
                b: *const $T,
                alpha: $T,
                beta: $T,
                how: Parallelism,
            ) {
                let run = run(s);
                for first in (0..s.k.max(1)).step_by(run) {
                    let (part, beta) = (run.min(s.k - first), if first == 0 { beta } else { 1.0 });
                    // SAFETY: as `product`.
                    unsafe {
                        let (a, b) = (a.add(first * s.a[1]), b.add(first * s.b[0]));
                        sum(&Sizes { k: part, ..*s }, out, a, b, alpha, beta, how);
                    }
                }
            }

            /// One product without cutting its sums: for few terms.
            ///
            /// # Safety
            /// As [`product`].
            pub unsafe fn sum(
                s: &Sizes,
                out: *mut $T,
                a: *const $T,
                b: *const $T,
                alpha: $T,
                beta: $T,
                how: Parallelism,
            ) {
                let ([or, oc], [ar, ac], [br, bc]) =
                    (s.out.map(usize::cast_signed), s.a.map(usize::cast_signed), s.b.map(usize::cast_signed));
                // SAFETY: as `product`; gemm calls our beta alpha and our alpha beta.
                unsafe {
                    gemm::gemm(
                        s.m,
                        s.n,
                        s.k,
                        out,
                        oc,
                        or,
                        beta != 0.0,
                        a,
                        ac,
                        ar,
                        b,
                        bc,
                        br,
                        beta,
                        alpha,
                        false,
                        false,
                        false,
                        how,
                    );
                }
            }

            #[inline(always)]
            unsafe fn store(out: *mut $T, value: $T, alpha: $T, beta: $T) {
                // SAFETY: the caller's element; it is read only when it counts, for it may be uninitialised.
                unsafe { *out = if beta == 0.0 { alpha * value } else { alpha * value + beta * *out } }
            }

            simd_fn! {
                /// Over a zero-padded copy of the right matrix, so that every row is one short vector.
                unsafe fn tiny(s: &Sizes, out: *mut $T, a: *const $T, b: *const $T, alpha: $T, beta: $T) {
                    let mut right = [[0.0 as $T; TINY]; TINY];
                    for p in 0..s.k {
                        for j in 0..s.n {
                            right[p % TINY][j % TINY] = *b.add(p * s.b[0] + j * s.b[1]);
                        }
                    }
                    for i in 0..s.m {
                        let row = a.add(i * s.a[0]);
                        let mut sums = [0.0 as $T; TINY];
                        for p in 0..s.k {
                            let x = *row.add(p * s.a[1]);
                            for j in 0..TINY {
                                sums[j] += x * right[p % TINY][j];
                            }
                        }
                        let to = out.add(i * s.out[0]);
                        for j in 0..s.n {
                            store(to.add(j * s.out[1]), sums[j % TINY], alpha, beta);
                        }
                    }
                }
            }

            /// `out = alpha * matrix @ x + beta * out`, when a row or a column of `matrix` is contiguous.
            #[allow(clippy::too_many_arguments, reason = "three operands with their strides")]
            unsafe fn vector(
                m: usize,
                k: usize,
                out: *mut $T,
                step: usize,
                matrix: *const $T,
                strides: [usize; 2],
                x: *const $T,
                x_step: usize,
                alpha: $T,
                beta: $T,
                threads: bool,
            ) -> Result<()> {
                // SAFETY: `gather` reads the k elements that the strides name.
                let x_packed = unsafe { gather(k, x, x_step)? };
                let row_packed = match m == 1 && strides[1] != 1 {
                    // SAFETY: as above.
                    true => unsafe { gather(k, matrix, strides[1])? },
                    false => vec![],
                };
                let by_rows = strides[1] == 1 || m == 1;
                let x = Shared::new(if x_packed.is_empty() { x } else { x_packed.as_ptr() });
                let matrix = Shared::new(if row_packed.is_empty() { matrix } else { row_packed.as_ptr() });
                let out = Shared::new(out);
                let body = |range: std::ops::Range<usize>| {
                    let (matrix, x, out) = (matrix.get(), x.get(), out.get());
                    // SAFETY: the rows of this range are inside the matrix, and its outputs are this call's
                    // alone.
                    unsafe {
                        for first in range.clone().step_by(ROWS) {
                            let mut sums = [0.0; ROWS];
                            let rows = ROWS.min(range.end - first);
                            let from = matrix.add(first * strides[0]);
                            if !by_rows {
                                columns(rows, k, from, strides[1], x, &mut sums);
                            } else if k <= DOT_BLOCK {
                                dots(rows, k, from, strides[0], x, &mut sums);
                            } else {
                                for (i, sum) in sums.iter_mut().enumerate().take(rows) {
                                    *sum = dot(k, from.add(i * strides[0]), x, threads && m == 1) as $T;
                                }
                            }
                            for (i, &sum) in sums.iter().enumerate().take(rows) {
                                store(out.add((first + i) * step), sum, alpha, beta);
                            }
                        }
                    }
                };
                let grain = (par::GRAIN / k.max(1)).max(1);
                let grain = if by_rows { grain } else { grain.next_multiple_of(64) };
                if threads && m > 1 {
                    par::ranges(m, grain, body)
                } else {
                    body(0..m)
                }
                Ok(())
            }

            /// A contiguous copy, or nothing when the vector is contiguous already.
            unsafe fn gather(k: usize, x: *const $T, step: usize) -> Result<Vec<$T>> {
                if step == 1 || k < 2 {
                    return Ok(vec![]);
                }
                let mut packed = scratch(k, 0.0 as $T)?;
                // SAFETY: the caller names k elements with this step.
                packed.iter_mut().enumerate().for_each(|(i, to)| unsafe { *to = *x.add(i * step) });
                Ok(packed)
            }

            /// Blocks are summed in the element type, and their sums in f64.
            unsafe fn dot(k: usize, x: *const $T, y: *const $T, threads: bool) -> f64 {
                let (x, y) = (Shared::new(x), Shared::new(y));
                // SAFETY: blocks are inside the two vectors of length k.
                let block = |i: usize| unsafe {
                    let first = i * DOT_BLOCK;
                    f64::from(dot_block(DOT_BLOCK.min(k - first), x.get().add(first), y.get().add(first)))
                };
                let blocks = k.div_ceil(DOT_BLOCK);
                if threads && blocks > 1 {
                    let mut sum = -0.0;
                    par::each(blocks, 2, block, |part| sum += part);
                    sum
                } else {
                    (0..blocks).map(block).sum()
                }
            }

            simd_fn! {
                unsafe fn dot_block(k: usize, x: *const $T, y: *const $T) -> $T {
                    let mut lanes = [0.0 as $T; LANES];
                    let whole = k - k % LANES;
                    for i in (0..whole).step_by(LANES) {
                        (0..LANES).for_each(|j| lanes[j] += *x.add(i + j) * *y.add(i + j));
                    }
                    let mut width = LANES / 2;
                    while width > 0 {
                        (0..width).for_each(|j| lanes[j] += lanes[j + width]);
                        width /= 2;
                    }
                    lanes[0] + short_dot(k - whole, x.add(whole), y.add(whole))
                }
            }

            #[inline(always)]
            unsafe fn short_dot(k: usize, x: *const $T, y: *const $T) -> $T {
                let mut lanes = [0.0 as $T; 8];
                let whole = k - k % 8;
                // SAFETY: both vectors have k elements.
                unsafe {
                    for i in (0..whole).step_by(8) {
                        (0..8).for_each(|j| lanes[j] += *x.add(i + j) * *y.add(i + j));
                    }
                    let rest: $T = (whole..k).map(|i| *x.add(i) * *y.add(i)).sum();
                    let [a, b, c, d, e, f, g, h] = lanes;
                    ((a + e) + (b + f)) + ((c + g) + (d + h)) + rest
                }
            }

            simd_fn! {
                /// The dot products of `rows` contiguous rows with `x`, when they are too short to be shared.
                unsafe fn dots(
                    rows: usize,
                    k: usize,
                    matrix: *const $T,
                    step: usize,
                    x: *const $T,
                    sums: &mut [$T; ROWS],
                ) {
                    for (i, sum) in sums.iter_mut().enumerate().take(rows) {
                        let row = matrix.add(i * step);
                        *sum = if k < LANES { short_dot(k, row, x) } else { dot_block(k, row, x) };
                    }
                }
            }

            simd_fn! {
                /// `sums += matrix @ x` for `rows` rows that are contiguous within each column, four columns
                /// at a time.
                unsafe fn columns(
                    rows: usize,
                    k: usize,
                    matrix: *const $T,
                    step: usize,
                    x: *const $T,
                    sums: &mut [$T; ROWS],
                ) {
                    let whole = k - k % 4;
                    for p in (0..whole).step_by(4) {
                        let c = matrix.add(p * step);
                        let (x0, x1, x2, x3) = (*x.add(p), *x.add(p + 1), *x.add(p + 2), *x.add(p + 3));
                        for (i, sum) in sums.iter_mut().enumerate().take(rows) {
                            *sum += (*c.add(i) * x0 + *c.add(step + i) * x1)
                                + (*c.add(2 * step + i) * x2 + *c.add(3 * step + i) * x3);
                        }
                    }
                    for p in whole..k {
                        let (c, x) = (matrix.add(p * step), *x.add(p));
                        for (i, sum) in sums.iter_mut().enumerate().take(rows) {
                            *sum += *c.add(i) * x;
                        }
                    }
                }
            }
        }
    };
}
kernels!(single, f32);
kernels!(double, f64);
