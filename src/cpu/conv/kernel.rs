//! The innermost loops of convolutions: a block of results stays in registers while the terms of their sums stream by.

use crate::cpu::float::Float;
use crate::cpu::simd::{Level, level, simd_fn};

/// Number of terms that are multiplied at a time: their weights, one or four registers wide, stay in the first or the
/// second cache.
const DEPTH: usize = 256;
const WIDE_DEPTH: usize = 512;

/// Number of terms, of a `piece` of the `k` terms, that a register sums before its sum is stored: long sums stay exact
/// that way. If `k` is small, sums are shorter: that costs little time, and may be more exact still.
pub fn terms_per_sum(k: usize, piece: usize) -> usize {
    let most = if k <= 256 { 24 } else { 48 };
    piece.div_ceil(piece.div_ceil(most).max(1)).max(1)
}

/// Products of weights and positions: `acc[i][j] += sum over k of a[k][i] * b[offsets[k] + j]`.
///
/// # Safety
/// `a` has `k * rows` elements, `offsets` has `k`, each of which has `width` elements of `b` behind it; `acc` has `rows
/// * width`.
pub type Products<T> = unsafe fn(k: usize, a: *const T, b: *const T, offsets: *const usize, acc: *mut T);

/// Products with channels in the lanes: `acc[i][j] = sum over p of a[rows[i] + steps[p]] * b[p][j]`, plus the old value
/// if `add` is set. `k` holds the number of terms, and of those that a register sums at a time.
///
/// # Safety
/// Every sum of a row and a step is an offset inside `a`; `steps` has `k` elements, `b` has `k * width`; `rows` and
/// `acc` match the block.
pub type Lanes<T> = unsafe fn(
    k: [usize; 2],
    a: *const T,
    rows: *const usize,
    steps: *const usize,
    b: *const T,
    acc: *mut T,
    add: bool,
);

/// Dot products over positions: `acc[j] += sum over q of a[q] * b[offsets[j] + q]`, for [`COLUMNS`] values of `j`.
///
/// # Safety
/// `q` is a multiple of [`LANES`]; `a`, and `b` from each offset on, have `q` elements; `acc` has [`COLUMNS`].
pub type Dots<T> = unsafe fn(q: usize, a: *const T, b: *const T, offsets: *const usize, acc: *mut T);

pub const LANES: usize = 64;
pub const COLUMNS: usize = 3;

/// A block of products: its numbers of rows and columns, and its loop.
#[derive(Clone, Copy)]
pub struct ProductBlock<T> {
    pub rows: usize,
    pub width: usize,
    pub run: Products<T>,
}

/// A block of products with channels in the lanes.
#[derive(Clone, Copy)]
pub struct LanesBlock<T> {
    pub rows: usize,
    pub width: usize,
    /// Number of terms that are multiplied at a time.
    pub depth: usize,
    pub run: Lanes<T>,
}

/// The width of the widest block, which kernels may read past the last position; the number of results of the largest.
pub const WIDEST: usize = 128;
pub const LARGEST: usize = 384;

#[inline(always)]
unsafe fn products<T: Float, const ROWS: usize, const WIDTH: usize, const FUSED: bool>(
    k: usize,
    a: *const T,
    b: *const T,
    offsets: *const usize,
    acc: *mut T,
) {
    let mut sums = [[T::ZERO; WIDTH]; ROWS];
    // SAFETY: the contract of `Products`.
    unsafe {
        for p in 0..k {
            let x = &*a.add(p * ROWS).cast::<[T; ROWS]>();
            let y = &*b.add(*offsets.add(p)).cast::<[T; WIDTH]>();
            for i in 0..ROWS {
                for j in 0..WIDTH {
                    sums[i][j] =
                        if FUSED { x[i].mul_add(y[j], sums[i][j]) } else { x[i] * y[j] + sums[i][j] };
                }
            }
        }
        let acc = &mut *acc.cast::<[[T; WIDTH]; ROWS]>();
        for i in 0..ROWS {
            for j in 0..WIDTH {
                acc[i][j] += sums[i][j];
            }
        }
    }
}

#[inline(always)]
unsafe fn lanes<T: Float, const ROWS: usize, const WIDTH: usize, const FUSED: bool>(
    [k, short]: [usize; 2],
    a: *const T,
    rows: *const usize,
    steps: *const usize,
    b: *const T,
    acc: *mut T,
    add: bool,
) {
    // SAFETY: the contract of `Lanes`.
    unsafe {
        let at: [*const T; ROWS] = std::array::from_fn(|i| a.add(*rows.add(i)));
        for first in (0..k).step_by(short) {
            let mut sums = [[T::ZERO; WIDTH]; ROWS];
            for p in first..k.min(first + short) {
                let y = &*b.add(p * WIDTH).cast::<[T; WIDTH]>();
                let step = *steps.add(p);
                for i in 0..ROWS {
                    let x = *at[i].add(step);
                    for j in 0..WIDTH {
                        sums[i][j] = if FUSED { x.mul_add(y[j], sums[i][j]) } else { x * y[j] + sums[i][j] };
                    }
                }
            }
            let acc = &mut *acc.cast::<[[T; WIDTH]; ROWS]>();
            if !add && first == 0 {
                *acc = sums;
                continue;
            }
            for i in 0..ROWS {
                for j in 0..WIDTH {
                    acc[i][j] += sums[i][j];
                }
            }
        }
    }
}

#[inline(always)]
unsafe fn dots<T: Float, const WIDTH: usize, const FUSED: bool>(
    q: usize,
    a: *const T,
    b: *const T,
    offsets: *const usize,
    acc: *mut T,
) {
    let mut sums = [[T::ZERO; WIDTH]; COLUMNS];
    // SAFETY: the contract of `Dots`.
    unsafe {
        let at: [*const T; COLUMNS] = std::array::from_fn(|j| b.add(*offsets.add(j)));
        for p in (0..q).step_by(WIDTH) {
            let x = &*a.add(p).cast::<[T; WIDTH]>();
            for j in 0..COLUMNS {
                let y = &*at[j].add(p).cast::<[T; WIDTH]>();
                for l in 0..WIDTH {
                    let sum = sums[j][l];
                    sums[j][l] = if FUSED { x[l].mul_add(y[l], sum) } else { x[l] * y[l] + sum };
                }
            }
        }
        for j in 0..COLUMNS {
            let mut lanes = sums[j];
            let mut width = WIDTH / 2;
            while width > 0 {
                for l in 0..width {
                    lanes[l] += lanes[l + width];
                }
                width /= 2;
            }
            *acc.add(j) += lanes[0];
        }
    }
}

simd_fn! {
    unsafe fn products_v4<T: Float; ROWS, WIDTH>(
        k: usize, a: *const T, b: *const T, offsets: *const usize, acc: *mut T,
    ) {
        products::<T, ROWS, WIDTH, true>(k, a, b, offsets, acc)
    }
}

simd_fn! {
    [Level::V3]
    unsafe fn products_v3<T: Float; ROWS, WIDTH>(
        k: usize, a: *const T, b: *const T, offsets: *const usize, acc: *mut T,
    ) {
        products::<T, ROWS, WIDTH, true>(k, a, b, offsets, acc)
    }
}

simd_fn! {
    unsafe fn lanes_v4<T: Float; ROWS, WIDTH>(
        k: [usize; 2], a: *const T, rows: *const usize, steps: *const usize, b: *const T, acc: *mut T, add: bool,
    ) {
        lanes::<T, ROWS, WIDTH, true>(k, a, rows, steps, b, acc, add)
    }
}

simd_fn! {
    [Level::V3]
    unsafe fn lanes_v3<T: Float; ROWS, WIDTH>(
        k: [usize; 2], a: *const T, rows: *const usize, steps: *const usize, b: *const T, acc: *mut T, add: bool,
    ) {
        lanes::<T, ROWS, WIDTH, true>(k, a, rows, steps, b, acc, add)
    }
}

simd_fn! {
    unsafe fn dots_v4<T: Float; WIDTH>(q: usize, a: *const T, b: *const T, offsets: *const usize, acc: *mut T) {
        dots::<T, WIDTH, true>(q, a, b, offsets, acc)
    }
}

simd_fn! {
    [Level::V3]
    unsafe fn dots_v3<T: Float; WIDTH>(q: usize, a: *const T, b: *const T, offsets: *const usize, acc: *mut T) {
        dots::<T, WIDTH, true>(q, a, b, offsets, acc)
    }
}

simd_fn! {
    /// Adds `n` elements to others.
    ///
    /// # Safety
    /// Both have `n` elements, and do not overlap.
    pub unsafe fn add_up<T: Float>(n: usize, from: *const T, to: *mut T) {
        (0..n).for_each(|i| *to.add(i) += *from.add(i));
    }
}

/// On x86-64 the baseline has no fused multiply-add; elsewhere it is used.
const FUSED: bool = cfg!(not(target_arch = "x86_64"));

// Numbers of lanes of f32 and f64 in one register, two, four and eight registers of AVX-512. The baseline has `LOW` rows
// of 32: compilers unroll loops over fewer than 32 elements before they could vectorize them.
const NARROW: usize = 32;

/// The best block for `rows` rows on this machine.
pub fn products_block<T: Float>(rows: usize) -> ProductBlock<T> {
    match const { size_of::<T>() } {
        4 => products_of::<T, 16, 64, 128, 3>(rows),
        _ => products_of::<T, 8, 32, 64, 1>(rows),
    }
}

fn products_of<T: Float, const ONE: usize, const FOUR: usize, const EIGHT: usize, const LOW: usize>(
    rows: usize,
) -> ProductBlock<T> {
    let of = |rows, width, run: Products<T>| ProductBlock { rows, width, run };
    match (level(), rows) {
        (Level::V4, 1) => of(1, EIGHT, products_v4::<T, 1, EIGHT>),
        (Level::V4, 2) => of(2, FOUR, products_v4::<T, 2, FOUR>),
        (Level::V4, 3) => of(3, FOUR, products_v4::<T, 3, FOUR>),
        (Level::V4, 4 | 7 | 8) => of(4, FOUR, products_v4::<T, 4, FOUR>),
        (Level::V4, _) => of(6, FOUR, products_v4::<T, 6, FOUR>),
        (Level::V3, 1) => of(1, FOUR, products_v3::<T, 1, FOUR>),
        (Level::V3, 2..=4 | 7 | 8) => of(4, ONE, products_v3::<T, 4, ONE>),
        (Level::V3, _) => of(6, ONE, products_v3::<T, 6, ONE>),
        (Level::Baseline, 1) => of(1, FOUR, products::<T, 1, FOUR, FUSED>),
        (Level::Baseline, _) => of(LOW, NARROW, products::<T, LOW, NARROW, FUSED>),
    }
}

/// The block for `channels` channels, or for all lanes if there are more.
pub fn lanes_block<T: Float>(channels: usize) -> LanesBlock<T> {
    match const { size_of::<T>() } {
        4 => lanes_of::<T, 16, 32, 64, 3>(channels),
        _ => lanes_of::<T, 8, 16, 32, 1>(channels),
    }
}

fn lanes_of<T: Float, const ONE: usize, const TWO: usize, const FOUR: usize, const LOW: usize>(
    channels: usize,
) -> LanesBlock<T> {
    let of = |rows, width, depth, run: Lanes<T>| LanesBlock { rows, width, depth, run };
    match level() {
        Level::V4 if channels > TWO => of(6, FOUR, WIDE_DEPTH, lanes_v4::<T, 6, FOUR>),
        Level::V4 if channels > ONE => of(10, TWO, WIDE_DEPTH, lanes_v4::<T, 10, TWO>),
        Level::V4 => of(10, ONE, WIDE_DEPTH, lanes_v4::<T, 10, ONE>),
        Level::V3 => of(6, ONE, DEPTH, lanes_v3::<T, 6, ONE>),
        Level::Baseline => of(LOW, NARROW, DEPTH, lanes::<T, LOW, NARROW, FUSED>),
    }
}

/// The loop for dot products on this machine.
pub fn dots_loop<T: Float>() -> Dots<T> {
    match const { size_of::<T>() } {
        4 => dots_of::<T, 64>(),
        _ => dots_of::<T, 32>(),
    }
}

fn dots_of<T: Float, const WIDTH: usize>() -> Dots<T> {
    match level() {
        Level::V4 => dots_v4::<T, WIDTH>,
        Level::V3 => dots_v3::<T, WIDTH>,
        Level::Baseline => dots::<T, WIDTH, FUSED>,
    }
}
