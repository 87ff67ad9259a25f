//! Random numbers: PyTorch's own, draw by draw, so that a seed means the same in both libraries.

mod counts;
mod engine;
mod gamma;
mod normal;

use super::element::{Element, by_dtype};
use super::walk::Walk;
use crate::base::{DType, Dims, Scalar, Strided};
use half::{bf16, f16};

pub use engine::{DEFAULT_SEED, Generator};
pub use normal::normal;

/// Uniform numbers in `[low, high)`, for float dtypes.
///
/// # Safety
/// `out` describes live memory; so for every function here.
pub unsafe fn uniform(generator: &mut Generator, out: Strided, low: f64, high: f64) {
    // SAFETY: handed on.
    unsafe {
        match out.dtype {
            DType::F64 => each::<f64>(&out, &mut || unit(generator).mul_add(high - low, low)),
            _ => {
                let (low, high) = (low as f32, high as f32);
                let mut next = || fraction(generator).mul_add(high - low, low);
                match out.dtype {
                    DType::F16 => each::<f16>(&out, &mut || below(next(), low, high)),
                    DType::BF16 => each::<bf16>(&out, &mut || below(next(), low, high)),
                    _ => each::<f32>(&out, &mut next),
                }
            }
        }
    }
}

/// A half of a number in `[low, high)`; one that rounds up to `high` becomes `low`.
fn below<T: Element + PartialEq>(value: f32, low: f32, high: f32) -> T {
    let rounded = T::from_f32(value);
    if rounded == T::from_f32(high) { T::from_f32(low) } else { rounded }
}

/// Integers in `[low, high)`, in any dtype.
///
/// # Safety
/// As [`uniform`]; `low <= last`.
pub unsafe fn randint(generator: &mut Generator, out: Strided, low: i64, last: i64) {
    // All numbers of 64 bits are more than they can count.
    let range = (last.wrapping_sub(low) as u64).checked_add(1);
    let mut next = || {
        // Where 32 bits would favour some numbers noticeably, PyTorch draws 64.
        let draw = match range {
            Some(range) if range < 1 << 28 => u64::from(generator.random()) % range,
            Some(range) => generator.random64() % range,
            None => return generator.random64() as i64,
        };
        draw.wrapping_add(low as u64) as i64
    };
    // SAFETY: handed on.
    unsafe { by_dtype!(out.dtype, T => each::<T>(&out, &mut || T::from_i64(next()))) }
}

/// Integers over the whole non-negative range of the dtype; for floats, over the integers that they hold
/// exactly.
///
/// # Safety
/// As [`uniform`].
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
    };
    let wide = out.dtype.size() == 8;
    let mut next =
        || if wide { generator.random64() % bound } else { u64::from(generator.random()) % bound } as i64;
    // SAFETY: handed on.
    unsafe { by_dtype!(out.dtype, T => each::<T>(&out, &mut || T::from_i64(next()))) }
}

/// Ones with probability `p`, zeros otherwise, in any dtype.
///
/// # Safety
/// As [`uniform`].
pub unsafe fn bernoulli(generator: &mut Generator, out: Strided, p: f64) {
    let mut next = || i64::from(unit(generator) < p);
    // SAFETY: handed on.
    unsafe { by_dtype!(out.dtype, T => each::<T>(&out, &mut || T::from_i64(next()))) }
}

/// Ones with probabilities of their own: `p` has `out`'s shape and a float dtype.
///
/// # Safety
/// As [`uniform`], for both views.
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

/// A random order of `0..n`, into a one-dimensional `out` of any dtype that holds these numbers.
///
/// # Safety
/// As [`uniform`].
pub unsafe fn randperm(generator: &mut Generator, out: Strided) {
    let n = out.numel();
    let step = out.strides.first().map_or(1, |&s| s);
    // SAFETY: handed on; all indices are below n.
    unsafe {
        by_dtype!(out.dtype, T => {
            let at = |i: usize| out.ptr.cast::<T>().add(i * step);
            (0..n).for_each(|i| *at(i) = T::from_i64(i as i64));
            for i in 0..n.saturating_sub(1) {
                let left = (n - i) as u64;
                // Beyond this 32 bits would be noticeably uneven.
                let draw =
                    if n < u32::MAX as usize / 20 { generator.random().into() } else { generator.random64() };
                std::ptr::swap(at(i), at(i + (draw % left) as usize));
            }
        })
    }
}

/// Samples of the exponential distribution, for float dtypes.
///
/// # Safety
/// As [`uniform`].
pub unsafe fn exponential(generator: &mut Generator, out: Strided, rate: f64) {
    // SAFETY: handed on.
    unsafe { floats(&out, &mut || -1.0 / rate * (-unit(generator)).ln_1p()) }
}

/// How many trials of probability `p` it takes until the first success, in any dtype but bool.
///
/// # Safety
/// As [`uniform`].
pub unsafe fn geometric(generator: &mut Generator, out: Strided, p: f64) {
    let mut next = || (unit(generator).ln() / (-p).ln_1p()).ceil();
    // SAFETY: handed on.
    unsafe { by_dtype!(out.dtype, T => each::<T>(&out, &mut || T::from_f64(next()))) }
}

/// Samples of the Cauchy distribution, for float dtypes.
///
/// # Safety
/// As [`uniform`].
pub unsafe fn cauchy(generator: &mut Generator, out: Strided, median: f64, sigma: f64) {
    let mut next = || median + sigma * (std::f64::consts::PI * (unit(generator) - 0.5)).tan();
    // SAFETY: handed on.
    unsafe { floats(&out, &mut next) }
}

/// Samples whose logarithm is normal, for float dtypes.
///
/// # Safety
/// As [`uniform`].
pub unsafe fn log_normal(generator: &mut Generator, out: Strided, mean: f64, std: f64) {
    // SAFETY: handed on.
    unsafe { floats(&out, &mut || (normal::one(generator).mul_add(std, mean)).exp()) }
}

/// Writes samples that are made in double precision.
unsafe fn floats(out: &Strided, next: &mut dyn FnMut() -> f64) {
    // SAFETY: handed on.
    unsafe { by_dtype!(out.dtype, T => each::<T>(out, &mut || T::from_f64(next()))) }
}

/// A number drawn for each element of `from`, in row-major order, or computed from elements.
///
/// # Safety
/// As [`uniform`], for all views; they have one shape and float dtypes.
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

/// How PyTorch rounds what it computes for this dtype.
fn precision(dtype: DType) -> fn(f64) -> f64 {
    if dtype == DType::F64 { |x| x } else { |x| f64::from(x as f32) }
}

/// Samples of the Poisson distribution with the rates `rate`.
///
/// # Safety
/// As [`of_each`]; so for the rest.
pub unsafe fn poisson(generator: &mut Generator, out: Strided, rate: Strided) {
    // SAFETY: handed on.
    unsafe { of_each(out, [rate], |[rate]| counts::poisson(generator, rate)) }
}

/// How many of `count` trials of probability `p` succeed.
///
/// # Safety
/// As [`of_each`].
pub unsafe fn binomial(generator: &mut Generator, out: Strided, count: Strided, p: Strided) {
    let round = precision(out.dtype);
    // SAFETY: handed on.
    unsafe { of_each(out, [count, p], |[count, p]| counts::binomial(generator, count, p, round)) }
}

/// Samples of the gamma distribution with rate 1, never zero.
///
/// # Safety
/// As [`of_each`].
pub unsafe fn gamma(generator: &mut Generator, out: Strided, alpha: Strided) {
    let (round, least) = (
        precision(alpha.dtype),
        if out.dtype == DType::F64 { f64::MIN_POSITIVE } else { f32::MIN_POSITIVE.into() },
    );
    // SAFETY: handed on.
    unsafe { of_each(out, [alpha], |[alpha]| gamma::gamma(generator, alpha, round).max(least)) }
}

/// The derivatives of gamma samples by their shapes.
///
/// # Safety
/// As [`of_each`].
pub unsafe fn gamma_slope(out: Strided, alpha: Strided, sample: Strided) {
    // SAFETY: handed on.
    unsafe { of_each(out, [alpha, sample], |[alpha, x]| gamma::gamma_slope(alpha, x)) }
}

/// The derivatives of beta samples by their first shape.
///
/// # Safety
/// As [`of_each`].
pub unsafe fn dirichlet_slope(out: Strided, x: Strided, alpha: Strided, total: Strided) {
    // SAFETY: handed on.
    unsafe { of_each(out, [x, alpha, total], |[x, alpha, total]| gamma::dirichlet_slope(x, alpha, total)) }
}

/// Dimensions as they lie in memory: the order in which PyTorch fills a tensor.
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

/// A number in [0, 1) of 53 random bits.
fn unit(generator: &mut Generator) -> f64 {
    (generator.random64() & ((1 << 53) - 1)) as f64 * 2f64.powi(-53)
}

/// A number in [0, 1) of 24 random bits.
fn fraction(generator: &mut Generator) -> f32 {
    (generator.random() & ((1 << 24) - 1)) as f32 * 2f32.powi(-24)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view<T: Element>(data: &mut [T], shape: &'static [usize]) -> Strided<'static> {
        assert_eq!(shape, [data.len()]);
        Strided { ptr: data.as_mut_ptr().cast(), dtype: T::DTYPE, shape, strides: &[1] }
    }

    /// What PyTorch 2.15 gives after `manual_seed(0)`, in this order.
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
