//! Random numbers that equal PyTorch's, draw by draw, so that a seed means the same in both libraries.

mod counts;
mod engine;
mod gamma;
mod normal;

use super::element::{Element, at, by_dtype, no_element};
use super::simd::simd_fn;
use super::walk::Walk;
use crate::base::{DType, Dims, Scalar, Strided};
use half::{bf16, f16};
use std::mem::MaybeUninit;

pub use engine::{DEFAULT_SEED, Generator};
pub use normal::normal;

/// Fills `out` with uniform numbers in `[low, high)`, for float dtypes.
///
/// # Safety
/// `out` is live; this holds for all functions of this module.
pub unsafe fn uniform(generator: &mut Generator, out: Strided, low: f64, high: f64) {
    let single = (high as f32 - low as f32, low as f32);
    let (mut words, mut doubles) = ([0; BLOCK], [0; 2 * BLOCK]);
    // SAFETY: the caller's contract; there are as many draws as a block needs.
    unsafe {
        match out.dtype {
            DType::F64 => in_blocks::<f64>(&out, |to, n| {
                generator.draw(&mut doubles[..2 * n]);
                scaled_units(n, doubles.as_ptr(), to, high - low, low);
            }),
            DType::F16 => in_blocks::<f16>(&out, |to, n| {
                halves(generator, &mut words[..n], to, low as f32, high as f32);
            }),
            DType::BF16 => in_blocks::<bf16>(&out, |to, n| {
                halves(generator, &mut words[..n], to, low as f32, high as f32);
            }),
            _ => in_blocks::<f32>(&out, |to, n| {
                generator.draw(&mut words[..n]);
                scaled_fractions(n, words.as_ptr(), to, single.0, single.1);
            }),
        }
    }
}

simd_fn! {
    /// Converts each word by [`fraction_of`], and scales the result.
    ///
    /// # Safety
    /// There are `n` words, and room for as many numbers.
    unsafe fn scaled_fractions(n: usize, words: *const u32, to: *mut f32, by: f32, from: f32) {
        for i in 0..n {
            *to.add(i) = fraction_of(*words.add(i)).mul_add(by, from);
        }
    }
}

simd_fn! {
    /// Converts each pair of words by [`unit_of`], and scales the result.
    ///
    /// # Safety
    /// There are `n` pairs, and room for as many numbers.
    unsafe fn scaled_units(n: usize, words: *const u32, to: *mut f64, by: f64, from: f64) {
        for i in 0..n {
            *to.add(i) = unit_of([*words.add(2 * i), *words.add(2 * i + 1)]).mul_add(by, from);
        }
    }
}

/// Draws half-precision numbers in `[low, high)`.
///
/// # Safety
/// There is room for as many numbers as there are words.
unsafe fn halves<T: Element + PartialEq>(
    generator: &mut Generator,
    words: &mut [u32],
    to: *mut T,
    low: f32,
    high: f32,
) {
    generator.draw(words);
    for (i, &mut word) in words.iter_mut().enumerate() {
        // SAFETY: the caller's contract.
        unsafe { *to.add(i) = below(fraction_of(word).mul_add(high - low, low), low, high) };
    }
}

/// Rounds a number in `[low, high)` to half precision; one that is rounded up to `high` becomes `low`.
fn below<T: Element + PartialEq>(value: f32, low: f32, high: f32) -> T {
    let rounded = T::from_f32(value);
    if rounded == T::from_f32(high) { T::from_f32(low) } else { rounded }
}

/// Fills `out` with integers from `low` to `last`, both included, in any dtype.
///
/// # Safety
/// See [`uniform`]; `low <= last`.
pub unsafe fn randint(generator: &mut Generator, out: Strided, low: i64, last: i64) {
    // `None` for the full range of 64 bits, whose size does not fit into 64 bits.
    let range = (last.wrapping_sub(low) as u64).checked_add(1);
    // PyTorch draws 64 bits if 32 bits would be noticeably uneven.
    if let Some(range) = range.filter(|&range| range < 1 << 28) {
        // SAFETY: the caller's contract.
        return unsafe { whole(&out, low, |to| below_limit(generator, to, range as u32)) };
    }
    let mut next = || {
        let draw = generator.random64();
        range.map_or(draw, |range| (draw % range).wrapping_add(low as u64)) as i64
    };
    // SAFETY: the caller's contract.
    unsafe { by_dtype!(out.dtype, T => each::<T>(&out, &mut || T::from_i64(next()))) }
}

/// Fills `out` with integers over the whole non-negative range of the dtype; for floats, over the integers that they
/// hold exactly.
///
/// # Safety
/// See [`uniform`].
pub unsafe fn random(generator: &mut Generator, out: Strided) {
    let bound: u64 = match out.dtype {
        DType::Bool => 2,
        DType::U8 => 1 << 8,
        DType::I8 => 1 << 7,
        DType::I16 => 1 << 15,
        DType::I32 => 1 << 31,
        DType::I64 => 1 << 63,
        DType::F16 => (1 << 11) + 1,
        DType::BF16 => (1 << 8) + 1,
        DType::F32 => (1 << 24) + 1,
        DType::F64 | DType::C64 | DType::C128 => (1 << 53) + 1,
        other => no_element(other),
    };
    if out.dtype.size() != 8 && bound <= 1 << 31 {
        // SAFETY: the caller's contract.
        return unsafe { whole(&out, 0, |to| below_limit(generator, to, bound as u32)) };
    }
    let wide = out.dtype.size() == 8;
    let mut next =
        || if wide { generator.random64() % bound } else { u64::from(generator.random()) % bound } as i64;
    // SAFETY: the caller's contract.
    unsafe { by_dtype!(out.dtype, T => each::<T>(&out, &mut || T::from_i64(next()))) }
}

/// Draws numbers below a limit, one draw for each.
fn below_limit(generator: &mut Generator, to: &mut [u32], limit: u32) {
    generator.draw(to);
    if limit < 2 {
        return to.fill(0);
    }
    // SAFETY: the list has that length, and the divisor is at least 2.
    unsafe { remainders(to.len(), to.as_mut_ptr(), limit, 0) };
}

simd_fn! {
    /// Replaces numbers by their remainders; the divisor starts at `first` and falls by `step` for each number.
    ///
    /// # Safety
    /// There are `n` numbers, and no divisor is less than 2.
    unsafe fn remainders(n: usize, x: *mut u32, first: u32, step: u32) {
        for i in 0..n {
            let (number, divisor) = (*x.add(i), first - step * i as u32);
            // The quotient of two such numbers in double precision is never rounded up to the next integer.
            let quotient = (f64::from(number) / f64::from(divisor)).to_int_unchecked::<i32>() as u32;
            *x.add(i) = number.wrapping_sub(quotient.wrapping_mul(divisor));
        }
    }
}

/// Fills `out` with ones with probability `p`, else zeros, in any dtype.
///
/// # Safety
/// See [`uniform`].
pub unsafe fn bernoulli(generator: &mut Generator, out: Strided, p: f64) {
    let mut doubles = [0; 2 * BLOCK];
    // SAFETY: the caller's contract; there are as many draws as a block needs.
    unsafe {
        whole(&out, 0, |to| {
            generator.draw(&mut doubles[..2 * to.len()]);
            coins(to.len(), doubles.as_ptr(), to.as_mut_ptr(), p);
        });
    }
}

simd_fn! {
    /// Ones where [`unit_of`] a pair of words is less than `p`, else zeros.
    ///
    /// # Safety
    /// There are `n` pairs, and room for as many numbers.
    unsafe fn coins(n: usize, words: *const u32, to: *mut u32, p: f64) {
        for i in 0..n {
            *to.add(i) = u32::from(unit_of([*words.add(2 * i), *words.add(2 * i + 1)]) < p);
        }
    }
}

/// Like [`bernoulli`], with a probability for each element: `p` has the shape of `out` and a float dtype.
///
/// # Safety
/// See [`uniform`]; the same holds for both views.
pub unsafe fn bernoulli_tensor(generator: &mut Generator, out: Strided, p: Strided) {
    let walk = Walk::over(&memory_order(&out), out.shape, [out.strides, p.strides]);
    walk.each(0..walk.numel(), |[to, from]| {
        // SAFETY: the walk stays inside both views.
        unsafe {
            let p_value = Scalar::read(p.dtype, p.ptr.add(from * p.dtype.size())).as_f64();
            let draw = if p.dtype == DType::F64 { unit(generator) } else { f64::from(fraction(generator)) };
            Scalar::Int(i64::from(draw < p_value)).write(out.dtype, out.ptr.add(to * out.dtype.size()));
        }
    });
}

/// Fills `out`, which is one-dimensional and of any dtype that holds these numbers, with a random permutation of
/// `0..n`.
///
/// # Safety
/// See [`uniform`].
pub unsafe fn randperm(generator: &mut Generator, out: Strided) {
    let n = out.numel();
    let step = out.strides.first().map_or(1, |&s| s);
    // SAFETY: the caller's contract; all indices are below n.
    unsafe {
        by_dtype!(out.dtype, T => {
            let at = |i: usize| out.ptr.cast::<T>().add(i * step);
            (0..n).for_each(|i| *at(i) = T::from_i64(i as i64));
            let mut draws = [0; BLOCK];
            for first in (0..n.saturating_sub(1)).step_by(BLOCK) {
                let count = BLOCK.min(n - 1 - first);
                // Beyond this, 32 bits would be noticeably uneven.
                if n < u32::MAX as usize / 20 {
                    generator.draw(&mut draws[..count]);
                    remainders(count, draws.as_mut_ptr(), (n - first) as u32, 1);
                    (0..count).for_each(|i| std::ptr::swap(at(first + i), at(first + i + draws[i] as usize)));
                } else {
                    for i in first..first + count {
                        std::ptr::swap(at(i), at(i + (generator.random64() % (n - i) as u64) as usize));
                    }
                }
            }
        })
    }
}

/// Fills `out` with samples of the exponential distribution, for float dtypes.
///
/// # Safety
/// See [`uniform`].
pub unsafe fn exponential(generator: &mut Generator, out: Strided, rate: f64) {
    // SAFETY: the caller's contract.
    unsafe { floats(&out, &mut || -1.0 / rate * (-unit(generator)).ln_1p()) }
}

/// Fills `out` with the number of trials of probability `p` up to the first success, in any dtype but bool.
///
/// # Safety
/// See [`uniform`].
pub unsafe fn geometric(generator: &mut Generator, out: Strided, p: f64) {
    let mut next = || (unit(generator).ln() / (-p).ln_1p()).ceil();
    // SAFETY: the caller's contract.
    unsafe { by_dtype!(out.dtype, T => each::<T>(&out, &mut || T::from_f64(next()))) }
}

/// Fills `out` with samples of the Cauchy distribution, for float dtypes.
///
/// # Safety
/// See [`uniform`].
pub unsafe fn cauchy(generator: &mut Generator, out: Strided, median: f64, sigma: f64) {
    let mut next = || median + sigma * (std::f64::consts::PI * (unit(generator) - 0.5)).tan();
    // SAFETY: the caller's contract.
    unsafe { floats(&out, &mut next) }
}

/// Fills `out` with samples of the log-normal distribution, for float dtypes.
///
/// # Safety
/// See [`uniform`].
pub unsafe fn log_normal(generator: &mut Generator, out: Strided, mean: f64, std: f64) {
    // SAFETY: the caller's contract.
    unsafe { floats(&out, &mut || (normal::one(generator).mul_add(std, mean)).exp()) }
}

/// Writes samples that are computed in double precision.
unsafe fn floats(out: &Strided, next: &mut dyn FnMut() -> f64) {
    // SAFETY: the caller's contract.
    unsafe { by_dtype!(out.dtype, T => each::<T>(out, &mut || T::from_f64(next()))) }
}

/// Fills `out`, in row-major order, with `draw` of the elements of `from`.
///
/// # Safety
/// See [`uniform`]; the same holds for all views, which share a shape and have float dtypes.
pub unsafe fn of_each<const N: usize>(
    out: Strided,
    from: [Strided; N],
    mut draw: impl FnMut([f64; N]) -> f64,
) {
    let walk = Walk::new(out.shape, [out.strides]);
    let sources = Walk::new(out.shape, from.each_ref().map(|f| f.strides));
    for i in 0..walk.numel() {
        let places = sources.at(i);
        // SAFETY: the walks stay inside the views.
        unsafe {
            let read = |j: usize| {
                Scalar::read(from[j].dtype, from[j].ptr.add(places[j] * from[j].dtype.size())).as_f64()
            };
            let value = draw(std::array::from_fn(read));
            Scalar::Float(value).write(out.dtype, out.ptr.add(walk.at(i)[0] * out.dtype.size()));
        }
    }
}

/// Rounds as PyTorch rounds intermediate results for this dtype.
fn precision(dtype: DType) -> fn(f64) -> f64 {
    if dtype == DType::F64 { |x| x } else { |x| f64::from(x as f32) }
}

/// Samples of the Poisson distribution with the rates `rate`.
///
/// # Safety
/// See [`of_each`]; this holds for the functions below, too.
pub unsafe fn poisson(generator: &mut Generator, out: Strided, rate: Strided) {
    // SAFETY: the caller's contract.
    unsafe { of_each(out, [rate], |[rate]| counts::poisson(generator, rate)) }
}

/// Numbers of successes in `count` trials of probability `p`.
///
/// # Safety
/// See [`of_each`].
pub unsafe fn binomial(generator: &mut Generator, out: Strided, count: Strided, p: Strided) {
    let round = precision(out.dtype);
    // SAFETY: the caller's contract.
    unsafe { of_each(out, [count, p], |[count, p]| counts::binomial(generator, count, p, round)) }
}

/// Samples of the gamma distribution with rate 1, never zero.
///
/// # Safety
/// See [`of_each`].
pub unsafe fn gamma(generator: &mut Generator, out: Strided, alpha: Strided) {
    let (round, least) = (
        precision(alpha.dtype),
        if out.dtype == DType::F64 { f64::MIN_POSITIVE } else { f32::MIN_POSITIVE.into() },
    );
    // SAFETY: the caller's contract.
    unsafe { of_each(out, [alpha], |[alpha]| gamma::gamma(generator, alpha, round).max(least)) }
}

/// The derivatives of gamma samples with respect to their shapes.
///
/// # Safety
/// See [`of_each`].
pub unsafe fn gamma_slope(out: Strided, alpha: Strided, sample: Strided) {
    // SAFETY: the caller's contract.
    unsafe { of_each(out, [alpha, sample], |[alpha, x]| gamma::gamma_slope(alpha, x)) }
}

/// The derivatives of beta samples with respect to their first shape.
///
/// # Safety
/// See [`of_each`].
pub unsafe fn dirichlet_slope(out: Strided, x: Strided, alpha: Strided, total: Strided) {
    // SAFETY: the caller's contract.
    unsafe { of_each(out, [x, alpha, total], |[x, alpha, total]| gamma::dirichlet_slope(x, alpha, total)) }
}

/// The dimensions in memory order, in which PyTorch fills a tensor.
fn memory_order(out: &Strided) -> Dims {
    let mut dims: Dims = (0..out.shape.len()).collect();
    dims.sort_by_key(|&d| std::cmp::Reverse(out.strides[d]));
    dims
}

unsafe fn each<T: Element>(out: &Strided, next: &mut dyn FnMut() -> T) {
    let walk = Walk::over(&memory_order(out), out.shape, [out.strides]);
    // SAFETY: the walk stays inside the caller's view.
    walk.each(0..walk.numel(), |[at]| unsafe { *out.ptr.cast::<T>().add(at) = next() });
}

/// Number of elements that are drawn at a time.
const BLOCK: usize = 256;

/// Calls `make` with room for at most a block of elements, in the order of [`each`].
unsafe fn in_blocks<T: Element>(out: &Strided, mut make: impl FnMut(*mut T, usize)) {
    let walk = Walk::over(&memory_order(out), out.shape, [out.strides]);
    walk.runs(0..walk.numel(), |[start], [step], n| {
        for first in (0..n).step_by(BLOCK) {
            let count = BLOCK.min(n - first);
            // SAFETY: the walk stays inside the caller's view, and `make` writes as many elements as it is asked for.
            unsafe {
                let to = out.ptr.cast::<T>().add(start + first * step);
                if step == 1 {
                    make(to, count);
                    continue;
                }
                let mut block = [const { MaybeUninit::<T>::uninit() }; BLOCK];
                make(block.as_mut_ptr().cast(), count);
                block[..count].iter().enumerate().for_each(|(i, x)| *to.add(i * step) = x.assume_init());
            }
        }
    });
}

/// Writes integers in any dtype: `low` plus the numbers that `draw` writes.
unsafe fn whole(out: &Strided, low: i64, mut draw: impl FnMut(&mut [u32])) {
    let mut drawn = [0; BLOCK];
    // SAFETY: the caller's contract; there is room for `n` elements.
    unsafe {
        by_dtype!(out.dtype, T => in_blocks::<T>(out, |to, n| {
            draw(&mut drawn[..n]);
            for (i, &number) in drawn[..n].iter().enumerate() {
                *to.add(i) = T::from_i64(low.wrapping_add(i64::from(number)));
            }
        }))
    }
}

/// A number in [0, 1) with 53 random bits.
fn unit(generator: &mut Generator) -> f64 {
    unit_of([generator.random(), generator.random()])
}

/// The same, from two draws, of which the first gives the high bits.
#[inline(always)]
fn unit_of([high, low]: [u32; 2]) -> f64 {
    (f64::from(high & ((1 << 21) - 1)) * 2f64.powi(32) + f64::from(low)) * 2f64.powi(-53)
}

/// A number in [0, 1) with 24 random bits.
fn fraction(generator: &mut Generator) -> f32 {
    fraction_of(generator.random())
}

#[inline(always)]
fn fraction_of(word: u32) -> f32 {
    // By way of a signed integer, because SIMD instructions convert no others.
    (word & ((1 << 24) - 1)) as i32 as f32 * 2f32.powi(-24)
}

/// The least and the largest weight, and the least sum of a row. NaN is both the least and the largest.
///
/// # Safety
/// `weights` is live, has elements, and has one or two dimensions.
pub unsafe fn extremes(weights: Strided) -> [f64; 3] {
    // SAFETY: the caller's contract, and the weights have this dtype.
    unsafe { by_dtype!(weights.dtype, T => extremes_of::<T>(&weights)) }
}

/// # Safety
/// The same as for [`extremes`]; the elements are of type `T`.
unsafe fn extremes_of<T: Element>(weights: &Strided) -> [f64; 3] {
    let columns = weights.shape[weights.shape.len() - 1];
    let (down, across) = (weights.strides[0], weights.strides[weights.strides.len() - 1]);
    let [mut least, mut most, mut least_sum] = [f64::INFINITY, f64::NEG_INFINITY, f64::INFINITY];
    for row in 0..weights.numel() / columns {
        let mut sum = 0.0;
        for column in 0..columns {
            // SAFETY: an element of the live weights. Those of one dimension have one row.
            let weight = unsafe { *at::<T>(weights, row * down + column * across) }.to_f64();
            sum += weight;
            least = if weight < least || weight.is_nan() { weight } else { least };
            most = if weight > most || weight.is_nan() { weight } else { most };
        }
        least_sum = least_sum.min(sum);
    }
    [least, most, least_sum]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view<T: Element>(data: &mut [T], shape: &'static [usize]) -> Strided<'static> {
        assert_eq!(shape, [data.len()]);
        Strided { ptr: data.as_mut_ptr().cast(), dtype: T::DTYPE, shape, strides: &[1] }
    }

    /// The numbers that PyTorch 2.15 gives after `manual_seed(0)`, in this order.
    #[test]
    fn numbers_are_pytorchs() {
        let generator = &mut Generator::new(0);
        let (mut two, mut three, mut many) = ([0f32; 2], [0f32; 3], [0f32; 17]);
        let (mut ints, mut order, mut doubles) = ([0i64; 3], [0i64; 5], [0f64; 2]);
        // SAFETY: the views cover the arrays above.
        unsafe {
            uniform(generator, view(&mut two, &[2]), 0.0, 1.0);
            normal(generator, view(&mut three, &[3]), 0.0, 1.0);
            normal(generator, view(&mut many, &[17]), 0.0, 1.0);
            randint(generator, view(&mut ints, &[3]), 0, 99);
            randperm(generator, view(&mut order, &[5]));
            normal(generator, view(&mut doubles, &[2]), 0.0, 1.0);
        }
        assert_eq!(two, [0.496_256_6, 0.768_221_8]);
        assert_eq!(three, [-0.290_509_25, -1.070_370_3, 1.264_458_7]);
        assert_eq!(many[16], -0.289_667_7);
        assert_eq!((ints, order), ([89, 71, 57], [3, 4, 1, 2, 0]));
        assert_eq!(doubles, [-0.687_426_391_732_018_5, -1.242_731_694_904_364_7]);
    }

    #[test]
    fn sixteen_normals_at_a_time() {
        let generator = &mut Generator::new(1);
        let (mut single, mut double, mut half) = ([0f32; 16], [0f64; 16], [f16::ZERO; 16]);
        // SAFETY: the views cover the arrays above.
        unsafe {
            normal(generator, view(&mut single, &[16]), 0.0, 1.0);
            normal(generator, view(&mut double, &[16]), 0.0, 1.0);
            normal(generator, view(&mut half, &[16]), 0.0, 1.0);
        }
        assert_eq!([single[0], single[7], single[15]], [-1.525_595_9, -1.609_096_3, 0.467_635_5]);
        assert_eq!([double[0], double[15]], [-0.837_826_078_892_223_2, -0.349_637_774_207_507_6]);
        assert_eq!(half[0].to_f32(), -0.927_246_1);
    }
}
