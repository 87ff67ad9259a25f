//! The innermost loops of convolutions: a block of results stays in registers while everything that adds to it streams by.

use crate::cpu::simd::{Level, level, simd_fn};

/// Terms that one register sums before its sum is put aside, so that long sums stay exact.
pub const DEPTH: usize = 512;

/// Products of weights and positions: `acc[i][j] += sum over k of a[k][i] * b[offsets[k] + j]`.
///
/// # Safety
/// `a` has `k` times `rows` elements, `offsets` has `k`, each of which leaves `width` elements of `b`; `acc` has `rows` times `width`.
pub type Products<T> = unsafe fn(k: usize, a: *const T, b: *const T, offsets: *const usize, acc: *mut T);

/// Sums over positions: `acc[i][j] += sum over q of a[i * step + q] * b[offsets[j] + q]`, for [`ROWS`] or one `i` and [`COLUMNS`] `j`.
///
/// # Safety
/// `q` is a multiple of [`LANES`]; all rows have that many elements; `acc` has a place for each pair.
pub type Sums<T> =
    unsafe fn(q: usize, a: *const T, step: usize, b: *const T, offsets: *const usize, acc: *mut T);

pub const LANES: usize = 16;
pub const ROWS: usize = 4;
pub const COLUMNS: usize = 6;

/// A block of products: how many rows and columns it has, and its loop.
#[derive(Clone, Copy)]
pub struct Block<T> {
    pub rows: usize,
    pub width: usize,
    pub run: Products<T>,
}

/// The element types that convolutions are computed in.
pub trait Real: Copy + Send + Sync + 'static + std::ops::AddAssign {
    const ZERO: Self;
    /// The block for so many rows on this machine.
    fn block(rows: usize) -> Block<Self>;
    /// The loop over positions for one row, or for [`ROWS`].
    fn sums(rows: usize) -> Sums<Self>;
}

/// The widest block: room for its results, and for reading past the last position.
pub const WIDEST: usize = 128;
pub const LARGEST: usize = 384;

macro_rules! kernels {
    ($T:ident, $name:ident, $wide:literal, $widest:literal, $narrow:literal, $long:literal) => {
        mod $name {
            use super::*;

            #[inline(always)]
            unsafe fn products<const ROWS: usize, const WIDTH: usize, const FUSED: bool>(
                k: usize,
                a: *const $T,
                b: *const $T,
                offsets: *const usize,
                acc: *mut $T,
            ) {
                let mut sums = [[0.0 as $T; WIDTH]; ROWS];
                // SAFETY: the contract of `Products`.
                unsafe {
                    for p in 0..k {
                        let x = &*a.add(p * ROWS).cast::<[$T; ROWS]>();
                        let y = &*b.add(*offsets.add(p)).cast::<[$T; WIDTH]>();
                        for i in 0..ROWS {
                            for j in 0..WIDTH {
                                sums[i][j] = if FUSED {
                                    x[i].mul_add(y[j], sums[i][j])
                                } else {
                                    x[i] * y[j] + sums[i][j]
                                };
                            }
                        }
                    }
                    let acc = &mut *acc.cast::<[[$T; WIDTH]; ROWS]>();
                    for i in 0..ROWS {
                        for j in 0..WIDTH {
                            acc[i][j] += sums[i][j];
                        }
                    }
                }
            }

            #[inline(always)]
            unsafe fn sums<const ROWS: usize, const COLUMNS: usize, const FUSED: bool>(
                q: usize,
                a: *const $T,
                step: usize,
                b: *const $T,
                offsets: *const usize,
                acc: *mut $T,
            ) {
                let mut sums = [[[0.0 as $T; LANES]; COLUMNS]; ROWS];
                // SAFETY: the contract of `Sums`.
                unsafe {
                    let at: [usize; COLUMNS] = std::array::from_fn(|j| *offsets.add(j));
                    for p in (0..q).step_by(LANES) {
                        for i in 0..ROWS {
                            let x = &*a.add(i * step + p).cast::<[$T; LANES]>();
                            for j in 0..COLUMNS {
                                let y = &*b.add(at[j] + p).cast::<[$T; LANES]>();
                                for l in 0..LANES {
                                    let sum = &mut sums[i][j][l];
                                    *sum = if FUSED { x[l].mul_add(y[l], *sum) } else { x[l] * y[l] + *sum };
                                }
                            }
                        }
                    }
                    for i in 0..ROWS {
                        for j in 0..COLUMNS {
                            let mut lanes = sums[i][j];
                            let mut width = LANES / 2;
                            while width > 0 {
                                for l in 0..width {
                                    lanes[l] += lanes[l + width];
                                }
                                width /= 2;
                            }
                            *acc.add(i * COLUMNS + j) += lanes[0];
                        }
                    }
                }
            }

            simd_fn! {
                unsafe fn wide(k: usize, a: *const $T, b: *const $T, offsets: *const usize, acc: *mut $T) {
                    products::<6, $wide, true>(k, a, b, offsets, acc)
                }
            }
            simd_fn! {
                unsafe fn widest(k: usize, a: *const $T, b: *const $T, offsets: *const usize, acc: *mut $T) {
                    products::<1, $widest, true>(k, a, b, offsets, acc)
                }
            }
            simd_fn! {
                [Level::V3]
                unsafe fn narrow(k: usize, a: *const $T, b: *const $T, offsets: *const usize, acc: *mut $T) {
                    products::<6, $narrow, true>(k, a, b, offsets, acc)
                }
            }
            simd_fn! {
                [Level::V3]
                unsafe fn long(k: usize, a: *const $T, b: *const $T, offsets: *const usize, acc: *mut $T) {
                    products::<1, $long, true>(k, a, b, offsets, acc)
                }
            }
            simd_fn! {
                unsafe fn sum_rows(
                    q: usize,
                    a: *const $T,
                    step: usize,
                    b: *const $T,
                    offsets: *const usize,
                    acc: *mut $T,
                ) {
                    sums::<ROWS, COLUMNS, true>(q, a, step, b, offsets, acc)
                }
            }
            simd_fn! {
                unsafe fn sum_row(
                    q: usize,
                    a: *const $T,
                    step: usize,
                    b: *const $T,
                    offsets: *const usize,
                    acc: *mut $T,
                ) {
                    sums::<1, COLUMNS, true>(q, a, step, b, offsets, acc)
                }
            }
            /// Machines without a fused multiply-add, or whose baseline has it.
            const FUSED: bool = cfg!(not(target_arch = "x86_64"));

            impl Real for $T {
                const ZERO: $T = 0.0;
                fn block(rows: usize) -> Block<$T> {
                    let (one, all, widths): (Products<$T>, Products<$T>, [usize; 2]) = match level() {
                        Level::V4 => (widest, wide, [$widest, $wide]),
                        Level::V3 => (long, narrow, [$long, $narrow]),
                        Level::Baseline => {
                            (products::<1, $long, FUSED>, products::<6, $narrow, FUSED>, [$long, $narrow])
                        }
                    };
                    match rows {
                        1 => Block { rows: 1, width: widths[0], run: one },
                        _ => Block { rows: 6, width: widths[1], run: all },
                    }
                }
                fn sums(rows: usize) -> Sums<$T> {
                    match (level(), rows) {
                        (Level::Baseline, 1) => sums::<1, COLUMNS, FUSED>,
                        (Level::Baseline, _) => sums::<ROWS, COLUMNS, FUSED>,
                        (_, 1) => sum_row,
                        _ => sum_rows,
                    }
                }
            }
        }
    };
}
kernels!(f32, single, 64, 128, 16, 64);
kernels!(f64, double, 32, 64, 8, 32);
