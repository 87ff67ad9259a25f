//! The innermost loops of convolutions: a block of results stays in registers while everything that adds to it streams by.

use crate::base::Result;
use crate::cpu::matmul::Product;
use crate::cpu::simd::{Level, level, simd_fn};

/// Terms that one register sums before its sum is put aside, so that long sums stay exact.
pub const DEPTH: usize = 512;

/// Products of weights and positions: `acc[i][j] += sum over k of a[k][i] * b[offsets[k] + j]`.
///
/// # Safety
/// `a` has `k` times `rows` elements, `offsets` has `k`, each of which leaves `width` elements of `b`; `acc` has `rows` times `width`.
pub type Products<T> = unsafe fn(k: usize, a: *const T, b: *const T, offsets: *const usize, acc: *mut T);

/// Products over positions: `acc[i][j] += sum over p of a[offsets[i] + p] * b[p][j]`.
///
/// # Safety
/// Each of `rows` offsets leaves `k` elements of `a`; `b` has `k` times `width`, `acc` `rows` times `width`.
pub type Outer<T> = unsafe fn(k: usize, a: *const T, offsets: *const usize, b: *const T, acc: *mut T);

/// Sums over positions: `acc[j] += sum over q of a[q] * b[offsets[j] + q]`, for [`COLUMNS`] `j`.
///
/// # Safety
/// `q` is a multiple of [`LANES`]; all rows have that many elements; `acc` has a place for each.
pub type Dots<T> = unsafe fn(q: usize, a: *const T, b: *const T, offsets: *const usize, acc: *mut T);

pub const LANES: usize = 64;
pub const COLUMNS: usize = 3;

/// A block of products: how many rows and columns it has, and its loop.
#[derive(Clone, Copy)]
pub struct Block<T> {
    pub rows: usize,
    pub width: usize,
    pub run: Products<T>,
}

/// A block of products over positions.
#[derive(Clone, Copy)]
pub struct OuterBlock<T> {
    pub rows: usize,
    pub width: usize,
    pub run: Outer<T>,
}

/// A block of products with channels in the lanes, `acc[p][c] += sum over k of a[k][c] * b[offsets[k] + p]`: how many
/// positions and channels it has, and its loop.
#[derive(Clone, Copy)]
pub struct Turned<T> {
    pub positions: usize,
    pub channels: usize,
    pub run: Products<T>,
}

/// The most positions and channels of any such block.
pub const POSITIONS: usize = 11;
pub const CHANNELS: usize = 16;

/// The element types that convolutions are computed in.
pub trait Real: Copy + Send + Sync + 'static + std::ops::AddAssign {
    const ZERO: Self;
    /// The block for so many rows on this machine.
    fn block(rows: usize) -> Block<Self>;
    /// The block of products over positions for so many results of each.
    fn outer(width: usize) -> OuterBlock<Self>;
    fn dots() -> Dots<Self>;
    /// The block for so many positions, or the largest one; nothing on machines of few registers.
    fn turned(positions: usize) -> Option<Turned<Self>>;
    /// Adds a product of matrices to `out`, on this thread.
    ///
    /// # Safety
    /// The strides describe live matrices, and `out` overlaps neither operand.
    unsafe fn product(p: Product, out: *mut Self, a: *const Self, b: *const Self) -> Result<()>;
}

/// The widest block: room for its results, and for reading past the last position.
pub const WIDEST: usize = 128;
pub const LARGEST: usize = 384;

// (Loops over fewer than 32 elements are unrolled before they could be made vectors of.)
macro_rules! kernels {
    ($T:ident, $name:ident, $product:path, $wide:literal, $widest:literal, $low:literal x $narrow:literal, $long:literal, $rows:literal, $lanes:literal, $one:literal) => {
        mod $name {
            use crate::cpu::conv::kernel::*;

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

            /// (Of other numbers of positions compilers make no such loop.)
            #[inline(always)]
            unsafe fn turned<const POSITIONS: usize>(
                k: usize,
                a: *const $T,
                b: *const $T,
                offsets: *const usize,
                acc: *mut $T,
            ) {
                let mut sums = [[0.0 as $T; $one]; POSITIONS];
                // SAFETY: the contract of `Turned`.
                unsafe {
                    for p in 0..k {
                        let w = &*a.add(p * $one).cast::<[$T; $one]>();
                        let x = &*b.add(*offsets.add(p)).cast::<[$T; POSITIONS]>();
                        for i in 0..POSITIONS {
                            for j in 0..$one {
                                sums[i][j] = x[i].mul_add(w[j], sums[i][j]);
                            }
                        }
                    }
                    let acc = &mut *acc.cast::<[[$T; $one]; POSITIONS]>();
                    for i in 0..POSITIONS {
                        for j in 0..$one {
                            acc[i][j] += sums[i][j];
                        }
                    }
                }
            }
            simd_fn! {
                unsafe fn turned_4(k: usize, a: *const $T, b: *const $T, offsets: *const usize, acc: *mut $T) {
                    turned::<4>(k, a, b, offsets, acc)
                }
            }
            simd_fn! {
                unsafe fn turned_6(k: usize, a: *const $T, b: *const $T, offsets: *const usize, acc: *mut $T) {
                    turned::<6>(k, a, b, offsets, acc)
                }
            }
            simd_fn! {
                unsafe fn turned_10(k: usize, a: *const $T, b: *const $T, offsets: *const usize, acc: *mut $T) {
                    turned::<10>(k, a, b, offsets, acc)
                }
            }
            simd_fn! {
                unsafe fn turned_11(k: usize, a: *const $T, b: *const $T, offsets: *const usize, acc: *mut $T) {
                    turned::<11>(k, a, b, offsets, acc)
                }
            }

            #[inline(always)]
            unsafe fn outer<const ROWS: usize, const WIDTH: usize, const FUSED: bool>(
                k: usize,
                a: *const $T,
                offsets: *const usize,
                b: *const $T,
                acc: *mut $T,
            ) {
                let mut sums = [[0.0 as $T; WIDTH]; ROWS];
                // SAFETY: the contract of `Outer`.
                unsafe {
                    let at: [*const $T; ROWS] = std::array::from_fn(|i| a.add(*offsets.add(i)));
                    for p in 0..k {
                        let y = &*b.add(p * WIDTH).cast::<[$T; WIDTH]>();
                        for i in 0..ROWS {
                            let x = *at[i].add(p);
                            for j in 0..WIDTH {
                                sums[i][j] =
                                    if FUSED { x.mul_add(y[j], sums[i][j]) } else { x * y[j] + sums[i][j] };
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
            unsafe fn dots<const WIDTH: usize, const FUSED: bool>(
                q: usize,
                a: *const $T,
                b: *const $T,
                offsets: *const usize,
                acc: *mut $T,
            ) {
                let mut sums = [[0.0 as $T; WIDTH]; COLUMNS];
                // SAFETY: the contract of `Dots`.
                unsafe {
                    let at: [*const $T; COLUMNS] = std::array::from_fn(|j| b.add(*offsets.add(j)));
                    for p in (0..q).step_by(WIDTH) {
                        let x = &*a.add(p).cast::<[$T; WIDTH]>();
                        for j in 0..COLUMNS {
                            let y = &*at[j].add(p).cast::<[$T; WIDTH]>();
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
                    products::<$low, $narrow, true>(k, a, b, offsets, acc)
                }
            }
            simd_fn! {
                [Level::V3]
                unsafe fn long(k: usize, a: *const $T, b: *const $T, offsets: *const usize, acc: *mut $T) {
                    products::<1, $long, true>(k, a, b, offsets, acc)
                }
            }
            simd_fn! {
                unsafe fn outer_wide(k: usize, a: *const $T, offsets: *const usize, b: *const $T, acc: *mut $T) {
                    outer::<6, $wide, true>(k, a, offsets, b, acc)
                }
            }
            simd_fn! {
                unsafe fn outer_slim(k: usize, a: *const $T, offsets: *const usize, b: *const $T, acc: *mut $T) {
                    outer::<$rows, 32, true>(k, a, offsets, b, acc)
                }
            }
            simd_fn! {
                [Level::V3]
                unsafe fn outer_narrow(k: usize, a: *const $T, offsets: *const usize, b: *const $T, acc: *mut $T) {
                    outer::<$low, $narrow, true>(k, a, offsets, b, acc)
                }
            }
            simd_fn! {
                unsafe fn dots_wide(q: usize, a: *const $T, b: *const $T, offsets: *const usize, acc: *mut $T) {
                    dots::<$lanes, true>(q, a, b, offsets, acc)
                }
            }
            simd_fn! {
                [Level::V3]
                unsafe fn dots_narrow(q: usize, a: *const $T, b: *const $T, offsets: *const usize, acc: *mut $T) {
                    dots::<32, true>(q, a, b, offsets, acc)
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
                            (products::<1, $long, FUSED>, products::<$low, $narrow, FUSED>, [$long, $narrow])
                        }
                    };
                    match rows {
                        1 => Block { rows: 1, width: widths[0], run: one },
                        _ => Block { rows: if level() == Level::V4 { 6 } else { $low }, width: widths[1], run: all },
                    }
                }
                fn outer(width: usize) -> OuterBlock<$T> {
                    match level() {
                        Level::V4 if width > 32 => OuterBlock { rows: 6, width: $wide, run: outer_wide },
                        Level::V4 => OuterBlock { rows: $rows, width: 32, run: outer_slim },
                        Level::V3 => OuterBlock { rows: $low, width: $narrow, run: outer_narrow },
                        Level::Baseline => {
                            OuterBlock { rows: $low, width: $narrow, run: outer::<$low, $narrow, FUSED> }
                        }
                    }
                }
                unsafe fn product(p: Product, out: *mut $T, a: *const $T, b: *const $T) -> Result<()> {
                    // SAFETY: handed on.
                    unsafe { $product(p, out, a, b, 1.0, 1.0) }
                }
                fn turned(positions: usize) -> Option<Turned<$T>> {
                    let (positions, run): (usize, Products<$T>) = match positions {
                        ..=4 => (4, turned_4),
                        5..=6 => (6, turned_6),
                        7..=10 => (10, turned_10),
                        _ => (11, turned_11),
                    };
                    (level() == Level::V4).then_some(Turned { positions, channels: $one, run })
                }
                fn dots() -> Dots<$T> {
                    match level() {
                        Level::V4 => dots_wide,
                        Level::V3 => dots_narrow,
                        Level::Baseline => dots::<32, FUSED>,
                    }
                }
            }
        }
    };
}
kernels!(f32, single, crate::cpu::matmul::product_f32, 64, 128, 3 x 32, 64, 8, 64, 16);
kernels!(f64, double, crate::cpu::matmul::product_f64, 32, 64, 1 x 32, 32, 6, 32, 8);
