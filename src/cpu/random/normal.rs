//! Normal samples. PyTorch makes them in one of two ways: sixteen at a time, from uniform numbers that are already in
//! the output, or one by one in double precision, keeping every second one for the next call. Both are reproduced
//! operation by operation, so the bits are PyTorch's.

use super::{Generator, fraction, unit};
use crate::base::{DType, Strided};
use crate::cpu::element::Element;
use crate::cpu::simd::simd_fn;
use half::{bf16, f16};
use std::f64::consts::TAU;

/// Fills `out` with samples of the normal distribution, for float dtypes.
///
/// # Safety
/// `out` is live.
pub unsafe fn normal(generator: &mut Generator, out: Strided, mean: f64, std: f64) {
    let blocks = out.is_contiguous() && out.numel() >= 16;
    // SAFETY: the caller's contract; the memory is contiguous if blocks are filled.
    unsafe {
        match out.dtype {
            _ if !blocks => super::floats(&out, &mut || one(generator).mul_add(std, mean)),
            DType::F16 => fill_half::<f16>(generator, &out, mean as f32, std as f32),
            DType::BF16 => fill_half::<bf16>(generator, &out, mean as f32, std as f32),
            DType::F64 => fill::<f64>(generator, &out, unit, |block| pairs_f64(block, mean, std)),
            _ => fill::<f32>(generator, &out, fraction, |block| pairs_f32(block, mean as f32, std as f32)),
        }
    }
}

/// One sample in double precision: the spare one, or half of a new pair.
pub(super) fn one(generator: &mut Generator) -> f64 {
    if let Some(spare) = generator.spare_normal.take() {
        return spare;
    }
    let (angle, length) = (unit(generator), unit(generator));
    let radius = (-2.0 * (-length).ln_1p()).sqrt();
    let theta = TAU * angle;
    generator.spare_normal = Some(radius * theta.sin());
    radius * theta.cos()
}

/// Fills the output with uniform numbers, then turns them into pairs of samples in blocks of sixteen. If the length is
/// not a multiple of sixteen, the last sixteen are drawn again.
unsafe fn fill<T: Element>(
    generator: &mut Generator,
    out: &Strided,
    draw: fn(&mut Generator) -> T,
    pairs: impl Fn(&mut [T]),
) {
    let n = out.numel();
    // SAFETY: the caller's contiguous memory, of which every element is written before it is read.
    let data = unsafe {
        super::uniform(generator, *out, 0.0, 1.0);
        std::slice::from_raw_parts_mut(out.ptr.cast::<T>(), n)
    };
    pairs(&mut data[..n - n % 16]);
    if !n.is_multiple_of(16) {
        let last = &mut data[n - 16..];
        last.iter_mut().for_each(|to| *to = draw(generator));
        pairs(last);
    }
}

/// Normal samples in single precision, rounded to half precision. Blocks are drawn one by one; the last one may overlap
/// the one before.
unsafe fn fill_half<T: Element>(generator: &mut Generator, out: &Strided, mean: f32, std: f32) {
    let n = out.numel();
    for block in 0..n.div_ceil(16) {
        let first = (16 * block).min(n - 16);
        let mut samples = [0f32; 16];
        samples.iter_mut().for_each(|to| *to = fraction(generator));
        pairs_f32(&mut samples, mean, std);
        for (i, &sample) in samples.iter().enumerate() {
            // SAFETY: the caller's contiguous memory.
            unsafe { *out.ptr.cast::<T>().add(first + i) = T::from_f32(sample) };
        }
    }
}

fn pairs_f64(data: &mut [f64], mean: f64, std: f64) {
    for block in data.chunks_exact_mut(16) {
        for i in 0..8 {
            let radius = (-2.0 * (1.0 - block[i]).ln()).sqrt();
            let theta = TAU * block[i + 8];
            block[i] = (radius * theta.cos()).mul_add(std, mean);
            block[i + 8] = (radius * theta.sin()).mul_add(std, mean);
        }
    }
}

fn pairs_f32(data: &mut [f32], mean: f32, std: f32) {
    // SAFETY: whole blocks of sixteen.
    unsafe { blocks_f32(data.len() / 16, data.as_mut_ptr(), mean, std) }
}

simd_fn! {
    /// The multiply-adds are fused, because PyTorch's are; a machine without the instruction gets the same bits from
    /// the library.
    unsafe fn blocks_f32(blocks: usize, data: *mut f32, mean: f32, std: f32) {
        for block in 0..blocks {
            let (first, second) = (data.add(16 * block), data.add(16 * block + 8));
            for i in 0..8 {
                let radius = (-2.0 * log(1.0 - *first.add(i))).sqrt();
                let (sin, cos) = sin_cos(TAU as f32 * *second.add(i));
                *first.add(i) = (radius * cos).mul_add(std, mean);
                *second.add(i) = (radius * sin).mul_add(std, mean);
            }
        }
    }
}

/// The Cephes polynomial for the logarithm of a number in (0, 1].
#[inline(always)]
fn log(x: f32) -> f32 {
    let bits = x.max(f32::MIN_POSITIVE).to_bits();
    let exponent = ((bits >> 23) as i32 - 126) as f32;
    let mantissa = f32::from_bits((bits & 0x007f_ffff) | 0x3f00_0000);
    let small = mantissa < std::f32::consts::FRAC_1_SQRT_2;
    let exponent = exponent - if small { 1.0 } else { 0.0 };
    let x = (mantissa - 1.0) + if small { mantissa } else { 0.0 };
    let square = x * x;
    let mut y = 7.037_683_6e-2f32;
    y = y.mul_add(x, -1.151_461e-1);
    y = y.mul_add(x, 1.167_699_84e-1);
    y = y.mul_add(x, -1.242_014_1e-1);
    y = y.mul_add(x, 1.424_932_3e-1);
    y = y.mul_add(x, -1.666_805_7e-1);
    y = y.mul_add(x, 0.200_007_14);
    y = y.mul_add(x, -2.499_999_4e-1);
    y = y.mul_add(x, 0.333_333_3);
    y *= x;
    y = y.mul_add(square, exponent * -2.121_944_4e-4);
    y = square.mul_add(-0.5, y);
    exponent.mul_add(0.693_359_4, x + y)
}

/// The Cephes polynomials for an angle in [0, 2 pi).
#[inline(always)]
fn sin_cos(x: f32) -> (f32, f32) {
    // SAFETY: there are at most 8 octants.
    let octant = (unsafe { (x * 1.273_239_5).to_int_unchecked::<i32>() } + 1) & !1;
    let y = octant as f32;
    let x = y.mul_add(-0.785_156_25, x);
    let x = y.mul_add(-2.418_756_5e-4, x);
    let x = y.mul_add(-3.774_895e-8, x);
    let square = x * x;
    let mut even = 2.443_315_7e-5f32;
    even = even.mul_add(square, -1.388_731_6e-3);
    even = even.mul_add(square, 4.166_664_6e-2);
    even *= square;
    even = even.mul_add(square, -(square * 0.5)) + 1.0;
    let mut odd = -1.951_529_6e-4f32;
    odd = odd.mul_add(square, 8.332_161e-3);
    odd = odd.mul_add(square, -1.666_665_5e-1);
    odd *= square;
    odd = odd.mul_add(x, x);
    let straight = octant & 2 == 0;
    let (sin, cos) = if straight { (odd, even) } else { (even, odd) };
    let (sin_flips, cos_flips) = (octant & 4 != 0, !(octant - 2) & 4 != 0);
    (if sin_flips { -sin } else { sin }, if cos_flips { -cos } else { cos })
}
