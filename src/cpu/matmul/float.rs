//! Products of f32 and f64 matrices: tiny ones and vectors by own loops, the rest by `gemm`.

#![allow(clippy::needless_range_loop, reason = "plain indexed loops over arrays are what vectorises")]

use super::Sizes;
use crate::base::Result;
use crate::cpu::element::scratch;
use crate::cpu::float::Float;
use crate::cpu::lanes::combine_eight;
use crate::cpu::par::{self, Shared};
use crate::cpu::simd::simd_fn;
use gemm::Parallelism;

/// Above this many multiplications, `gemm` splits a product over threads.
pub const PARALLEL: usize = 1_500_000;
/// Splitting the rows or columns here is faster than in `gemm`, because it need not wait for sleeping threads. But each
/// thread packs the other matrix, so a part needs a minimum of rows or columns: `SHARE` up to `SHARED` multiplications,
/// `LARGE_SHARE` above.
const SHARE: usize = 32;
const SHARED: usize = 100_000_000;
const LARGE_SHARE: usize = 256;
/// Limits of the number of terms that `gemm` sums at a time, because long sums are inexact. By itself, `gemm` would cut
/// sums only from the second number on, and not always alike.
const RUN: [usize; 2] = [192, 512];
/// `[terms, k]`: a transposed left matrix, whose product is the gradient of a weight, sums fewer terms at a time for up
/// to `k` terms in total. PyTorch sums the gradients of recurrent layers step by step.
const TRANSPOSED: [[usize; 2]; 2] = [[32, 384], [64, 1024]];
/// Up to this many results, `gemm` multiplies dense rows and columns as dot products in many lanes.
const DOTS: usize = 256;
/// Up to this many multiplications, and this many terms, planning and packing in `gemm` cost more than the product.
const SMALL_WORK: usize = 8192;
const SMALL_SUM: usize = 32;
/// Number of terms of a dot product that are summed in the element type before they are added in f64.
const DOT_BLOCK: usize = 16_384;
const LANES: usize = 64;
/// From this many elements on, transposing a matrix pays.
const TRANSPOSE_FROM: usize = 65_536;
/// Side of the squares by which a matrix is transposed.
const SQUARE: usize = 8;
/// Number of rows that a matrix-vector product accumulates at once.
const ROWS: usize = 512;

/// Returns true if the columns of a transposed right matrix (the weights of a layer) are a multiple of two kilobytes
/// apart. They share so few cache lines then that packing them in `gemm` is slower than transposing them here.
fn has_cache_conflicts<T>(s: &Sizes) -> bool {
    let apart = s.b[1] * size_of::<T>();
    s.b[0] == 1 && s.n >= 32 && s.k * s.n >= TRANSPOSE_FROM && apart.is_multiple_of(2048)
}

/// Number of parts that the longer side of a product is cut into, if the parts are large enough for splitting to pay.
fn parts(s: &Sizes) -> Option<usize> {
    let wanted = par::threads().min(s.work().div_ceil(PARALLEL)).max(1);
    let (short, long) = (s.m.min(s.n), s.m.max(s.n));
    // Parts must be large enough to be summed in the same order as the whole.
    let least = if s.work() <= SHARED { SHARE } else { LARGE_SHARE };
    (short > 2 && long / wanted >= least && long / wanted * short > DOTS).then_some(wanted)
}

/// Number of terms of a product that are summed at a time.
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

/// One product. `threads` allows it to be split over threads.
///
/// # Safety
/// The sizes and strides describe live matrices of this type, and `out` overlaps neither operand.
pub unsafe fn product<T: Float>(
    s: &Sizes,
    out: *mut T,
    a: *const T,
    b: *const T,
    alpha: T,
    beta: T,
    threads: bool,
) -> Result<()> {
    let [or, oc] = s.out;
    // SAFETY: the caller's contract.
    unsafe {
        let is_small = s.work() <= SMALL_WORK && s.k <= SMALL_SUM && s.m > 1 && s.n > 1;
        if is_small && s.n > 8 {
            small::<T, 16>(s, out, a, b, alpha, beta);
        } else if is_small || s.m.max(s.n).max(s.k) <= 8 {
            small::<T, 8>(s, out, a, b, alpha, beta);
        } else if s.n == 1 && (s.a[0] == 1 || s.a[1] == 1 || s.m == 1) {
            return vector(s.m, s.k, out, or, a, s.a, b, s.b[0], alpha, beta, threads);
        } else if s.m == 1 && (s.b[0] == 1 || s.b[1] == 1) {
            let strides = [s.b[1], s.b[0]];
            return vector(s.n, s.k, out, oc, b, strides, a, s.a[1], alpha, beta, threads);
        } else if has_cache_conflicts::<T>(s) {
            return by_transposed_copy(s, out, a, b, alpha, beta, threads);
        } else if threads
            && s.work() > PARALLEL
            && let Some(shares) = parts(s)
        {
            let (out, a, b) = (Shared::new(out), Shared::new(a), Shared::new(b));
            let (by_rows, long) = (s.m >= s.n, s.m.max(s.n));
            par::ranges(shares, 1, |part| {
                let [first, end] = [part.start, part.end].map(|i| i * long / shares);
                let count = end - first;
                let (rows, columns) = if by_rows { (first, 0) } else { (0, first) };
                let out = out.get().add(rows * or + columns * oc);
                let (a, b) = (a.get().add(rows * s.a[0]), b.get().add(columns * s.b[1]));
                let part = if by_rows { Sizes { m: count, ..*s } } else { Sizes { n: count, ..*s } };
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

/// The product with a row-major copy of the right matrix.
unsafe fn by_transposed_copy<T: Float>(
    s: &Sizes,
    out: *mut T,
    a: *const T,
    b: *const T,
    alpha: T,
    beta: T,
    threads: bool,
) -> Result<()> {
    let rows = scratch(s.k * s.n, T::ZERO)?;
    let to = Shared::new(rows.as_ptr());
    let from = Shared::new(b);
    let transpose = |range: std::ops::Range<usize>| {
        // SAFETY: these rows of the copy belong to this call alone, and the columns are inside the matrix.
        unsafe { transpose(range.start, range.end, s.n, from.get(), s.b[1], to.get()) };
    };
    if threads {
        par::ranges(s.k, 64, transpose)
    } else {
        transpose(0..s.k)
    }
    let sizes = Sizes { b: [s.n, 1], ..*s };
    // SAFETY: the caller's contract, with the copy in place of the matrix.
    unsafe { product(&sizes, out, a, rows.as_ptr(), alpha, beta, threads) }
}

simd_fn! {
    /// Transposes: writes the rows `first..end` of `to`, `n` wide, from the columns of `from`, `step`
    /// apart. Square by square, so that both sides stay in the first cache.
    ///
    /// # Safety
    /// `from` has these elements, and `to` has room for whole rows.
    pub unsafe fn transpose<T: Float>(
        first: usize,
        end: usize,
        n: usize,
        from: *const T,
        step: usize,
        to: *mut T,
    ) {
        for row in (first..end).step_by(SQUARE) {
            for column in (0..n).step_by(SQUARE) {
                if row + SQUARE <= end && column + SQUARE <= n {
                    let mut square = [[T::ZERO; SQUARE]; SQUARE];
                    for j in 0..SQUARE {
                        let line = from.add((column + j) * step + row);
                        let line = line.cast::<[T; SQUARE]>().read_unaligned();
                        for i in 0..SQUARE {
                            square[i][j] = line[i];
                        }
                    }
                    for i in 0..SQUARE {
                        let line = to.add((row + i) * n + column);
                        line.cast::<[T; SQUARE]>().write_unaligned(square[i]);
                    }
                } else {
                    for i in row..end.min(row + SQUARE) {
                        for j in column..n.min(column + SQUARE) {
                            *to.add(i * n + j) = *from.add(j * step + i);
                        }
                    }
                }
            }
        }
    }
}

unsafe fn general<T: Float>(
    s: &Sizes,
    out: *mut T,
    a: *const T,
    b: *const T,
    alpha: T,
    beta: T,
    how: Parallelism,
) {
    let run = run(s);
    for first in (0..s.k.max(1)).step_by(run) {
        let (part, beta) = (run.min(s.k - first), if first == 0 { beta } else { T::ONE });
        // SAFETY: see [`product`].
        unsafe {
            let (a, b) = (a.add(first * s.a[1]), b.add(first * s.b[0]));
            sum(&Sizes { k: part, ..*s }, out, a, b, alpha, beta, how);
        }
    }
}

/// One product in one sum: for few terms.
///
/// # Safety
/// See [`product`].
pub unsafe fn sum<T: Float>(
    s: &Sizes,
    out: *mut T,
    a: *const T,
    b: *const T,
    alpha: T,
    beta: T,
    how: Parallelism,
) {
    let ([or, oc], [ar, ac], [br, bc]) =
        (s.out.map(usize::cast_signed), s.a.map(usize::cast_signed), s.b.map(usize::cast_signed));
    // SAFETY: see [`product`]; `gemm` calls our beta alpha and our alpha beta.
    unsafe {
        gemm::gemm(
            s.m,
            s.n,
            s.k,
            out,
            oc,
            or,
            beta != T::ZERO,
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
unsafe fn store<T: Float>(out: *mut T, value: T, alpha: T, beta: T) {
    // SAFETY: the caller's element; it is read only if it counts, because it may be uninitialized.
    unsafe { *out = if beta == T::ZERO { alpha * value } else { alpha * value + beta * *out } }
}

simd_fn! {
    /// A small product, `WIDTH` columns at a time, by a zero-padded copy of these columns of the right matrix.
    unsafe fn small<T: Float; WIDTH>(
        s: &Sizes,
        out: *mut T,
        a: *const T,
        b: *const T,
        alpha: T,
        beta: T,
    ) {
        for first in (0..s.n).step_by(WIDTH) {
            let width = WIDTH.min(s.n - first);
            let mut right = [[T::ZERO; WIDTH]; SMALL_SUM];
            for p in 0..s.k.min(SMALL_SUM) {
                let from = b.add(p * s.b[0] + first * s.b[1]);
                if width == WIDTH && s.b[1] == 1 {
                    right[p] = from.cast::<[T; WIDTH]>().read_unaligned();
                } else {
                    for j in 0..width {
                        right[p][j] = *from.add(j * s.b[1]);
                    }
                }
            }
            let mut i = 0;
            while i + 4 <= s.m {
                rows::<T, WIDTH, 4>(s, i, first, width, &right, out, a, alpha, beta);
                i += 4;
            }
            while i < s.m {
                rows::<T, WIDTH, 1>(s, i, first, width, &right, out, a, alpha, beta);
                i += 1;
            }
        }
    }
}

/// `ROWS` rows of a small product, from row `i` on, in the columns from `first` on.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "a part of the loops of `small`")]
unsafe fn rows<T: Float, const WIDTH: usize, const COUNT: usize>(
    s: &Sizes,
    i: usize,
    first: usize,
    width: usize,
    right: &[[T; WIDTH]; SMALL_SUM],
    out: *mut T,
    a: *const T,
    alpha: T,
    beta: T,
) {
    // SAFETY: the caller's rows and columns are inside the matrices.
    unsafe {
        let mut sums = [[T::ZERO; WIDTH]; COUNT];
        for p in 0..s.k.min(SMALL_SUM) {
            for r in 0..COUNT {
                let x = *a.add((i + r) * s.a[0] + p * s.a[1]);
                for j in 0..WIDTH {
                    sums[r][j] += x * right[p][j];
                }
            }
        }
        for r in 0..COUNT {
            let to = out.add((i + r) * s.out[0] + first * s.out[1]);
            if width == WIDTH && s.out[1] == 1 {
                for j in 0..WIDTH {
                    store(to.add(j), sums[r][j], alpha, beta);
                }
            } else {
                for j in 0..width.min(WIDTH) {
                    store(to.add(j * s.out[1]), sums[r][j], alpha, beta);
                }
            }
        }
    }
}

/// `out = alpha * matrix @ x + beta * out`, if the rows or the columns of `matrix` are contiguous.
#[allow(clippy::too_many_arguments, reason = "three operands with their strides")]
unsafe fn vector<T: Float>(
    m: usize,
    k: usize,
    out: *mut T,
    step: usize,
    matrix: *const T,
    strides: [usize; 2],
    x: *const T,
    x_step: usize,
    alpha: T,
    beta: T,
    threads: bool,
) -> Result<()> {
    // SAFETY: `gather` reads the `k` elements that the strides give.
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
        // SAFETY: the rows of this range are inside the matrix, and its outputs belong to this call alone.
        unsafe {
            for first in range.clone().step_by(ROWS) {
                let mut sums = [T::ZERO; ROWS];
                let rows = ROWS.min(range.end - first);
                let from = matrix.add(first * strides[0]);
                if !by_rows {
                    columns(rows, k, from, strides[1], x, &mut sums);
                } else if k <= DOT_BLOCK {
                    dots(rows, k, from, strides[0], x, &mut sums);
                } else {
                    for (i, sum) in sums.iter_mut().enumerate().take(rows) {
                        *sum = T::from_f64(dot(k, from.add(i * strides[0]), x, threads && m == 1));
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

/// A contiguous copy, or an empty list if the vector is already contiguous.
unsafe fn gather<T: Float>(k: usize, x: *const T, step: usize) -> Result<Vec<T>> {
    if step == 1 || k < 2 {
        return Ok(vec![]);
    }
    let mut packed = scratch(k, T::ZERO)?;
    // SAFETY: the caller's `k` elements with this step.
    packed.iter_mut().enumerate().for_each(|(i, to)| unsafe { *to = *x.add(i * step) });
    Ok(packed)
}

/// A dot product. Blocks are summed in the element type, and their sums in f64.
unsafe fn dot<T: Float>(k: usize, x: *const T, y: *const T, threads: bool) -> f64 {
    let (x, y) = (Shared::new(x), Shared::new(y));
    // SAFETY: blocks are inside the two vectors of length `k`.
    let block = |i: usize| unsafe {
        let first = i * DOT_BLOCK;
        dot_block(DOT_BLOCK.min(k - first), x.get().add(first), y.get().add(first)).to_f64()
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
    unsafe fn dot_block<T: Float>(k: usize, x: *const T, y: *const T) -> T {
        let mut lanes = [T::ZERO; LANES];
        let whole = k - k % LANES;
        for i in (0..whole).step_by(LANES) {
            for j in 0..LANES {
                lanes[j] += *x.add(i + j) * *y.add(i + j);
            }
        }
        let mut width = LANES / 2;
        while width > 0 {
            for j in 0..width {
                lanes[j] += lanes[j + width];
            }
            width /= 2;
        }
        lanes[0] + short_dot(k - whole, x.add(whole), y.add(whole))
    }
}

#[inline(always)]
unsafe fn short_dot<T: Float>(k: usize, x: *const T, y: *const T) -> T {
    let mut lanes = [T::ZERO; 8];
    let whole = k - k % 8;
    // SAFETY: both vectors have `k` elements.
    unsafe {
        for i in (0..whole).step_by(8) {
            for j in 0..8 {
                lanes[j] += *x.add(i + j) * *y.add(i + j);
            }
        }
        let mut rest = T::ZERO;
        for i in whole..k {
            rest += *x.add(i) * *y.add(i);
        }
        combine_eight(lanes, |a, b| a + b) + rest
    }
}

simd_fn! {
    /// The dot products of `rows` contiguous rows with `x`, for rows that are too short to be split.
    unsafe fn dots<T: Float>(
        rows: usize,
        k: usize,
        matrix: *const T,
        step: usize,
        x: *const T,
        sums: &mut [T; ROWS],
    ) {
        for (i, sum) in sums.iter_mut().enumerate().take(rows) {
            let row = matrix.add(i * step);
            *sum = if k < LANES { short_dot(k, row, x) } else { dot_block(k, row, x) };
        }
    }
}

simd_fn! {
    /// `sums += matrix @ x` for `rows` rows that are contiguous within each column, four columns at a time.
    unsafe fn columns<T: Float>(
        rows: usize,
        k: usize,
        matrix: *const T,
        step: usize,
        x: *const T,
        sums: &mut [T; ROWS],
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
