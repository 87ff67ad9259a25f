//! Scans along one dimension: running sums, products and extrema. Each line is sequential; threads and SIMD lanes work
//! on many lines side by side.

use super::element::{Bit, Element, by_dtype};
use super::math::complex::{self as math, Complex};
use super::par;
use super::walk::Walk;
use crate::base::{DType, Dims, Fault, Result, Strided};
use half::{bf16, f16};

/// `out[i] = x[0] + ... + x[i]` along `dim`. Both have one dtype; floats are summed in double precision and rounded
/// once.
///
/// # Safety
/// The views are live and share a shape; `out` overlaps nothing.
pub unsafe fn cumsum(out: Strided, x: Strided, dim: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        if out.dtype.is_float() {
            floats(out, x, dim, 0.0, |a, b| a + b);
        } else if out.dtype.is_complex() {
            complex(out, x, dim, Complex { re: 0.0, im: 0.0 }, |a, b| a + b);
        } else {
            integers(out, x, dim, 0, i64::wrapping_add);
        }
    }
}

/// `out[i] = x[0] * ... * x[i]` along `dim`.
///
/// # Safety
/// See [`cumsum`].
pub unsafe fn cumprod(out: Strided, x: Strided, dim: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        if out.dtype.is_float() {
            floats(out, x, dim, 1.0, |a, b| a * b);
        } else if out.dtype.is_complex() {
            complex(out, x, dim, Complex { re: 1.0, im: 0.0 }, |a, b| a * b);
        } else {
            integers(out, x, dim, 1, i64::wrapping_mul);
        }
    }
}

/// The logarithm of the running sum of exponentials, for floating-point and complex dtypes.
///
/// # Safety
/// See [`cumsum`].
pub unsafe fn logcumsumexp(out: Strided, x: Strided, dim: usize) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe {
        if x.dtype.is_float() {
            floats(out, x, dim, f64::NEG_INFINITY, log_add_exp);
        } else if x.dtype.is_complex() {
            complex(out, x, dim, f64::NEG_INFINITY.into(), complex_log_add_exp);
        } else {
            return Err(Fault::NoKernel { op: "logcumsumexp_out_cpu", dtype: x.dtype }.into());
        }
    }
    Ok(())
}

fn complex_log_add_exp(a: Complex<f64>, b: Complex<f64>) -> Complex<f64> {
    let (low, high) = if a.re < b.re || b.re.is_nan() { (a, b) } else { (b, a) };
    // The difference of two equal infinities is NaN.
    match low.re == high.re && low.re.is_infinite() {
        true if low.re < 0.0 => low,
        true => math::log(math::exp(low) + math::exp(high)),
        false => high + math::log1p(math::exp(low - high)),
    }
}

fn log_add_exp(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b || b.is_nan() { (a, b) } else { (b, a) };
    // The difference of two equal infinities is NaN.
    if low == high && low.is_infinite() { high } else { high + (low - high).exp().ln_1p() }
}

/// The maximum of the elements so far, and the index of its last occurrence; NaN counts as larger than all numbers.
///
/// # Safety
/// See [`cumsum`]; the same holds for both outputs.
pub unsafe fn cummax(values: Strided, indices: Strided, x: Strided, dim: usize) {
    // SAFETY: the caller's contract.
    unsafe { by_dtype!(x.dtype, T => extremes::<T>(values, indices, x, dim, |new, best| !new.less(best))) }
}

/// The minimum of the elements so far, and the index of its last occurrence; NaN counts as smaller than all numbers.
///
/// # Safety
/// See [`cummax`].
pub unsafe fn cummin(values: Strided, indices: Strided, x: Strided, dim: usize) {
    // NaN sorts above all numbers, but must win here, too.
    // SAFETY: the caller's contract.
    unsafe {
        by_dtype!(x.dtype, T => extremes::<T>(values, indices, x, dim, |new, best| {
            let nan = |v: T| v.to_f64().is_nan();
            if nan(best) { nan(new) } else { nan(new) || !best.less(new) }
        }))
    }
}

/// Lines along one dimension: where they start, the strides of their elements, their length.
struct Lines<const N: usize> {
    starts: Walk<N>,
    steps: [usize; N],
    length: usize,
    grain: usize,
}

impl<const N: usize> Lines<N> {
    fn new(shape: &[usize], strides: [&[usize]; N], dim: usize) -> Lines<N> {
        let mut others: Dims = (0..shape.len()).filter(|&d| d != dim).collect();
        // Neighbouring lines share cache lines, so they come one after another.
        others.sort_by_key(|&d| std::cmp::Reverse(strides[0][d]));
        let length = shape.get(dim).map_or(1, |&n| n);
        let steps = std::array::from_fn(|i| strides[i].get(dim).map_or(1, |&s| s));
        Lines {
            starts: Walk::over(&others, shape, strides),
            steps,
            length,
            grain: (par::GRAIN / length.max(1)).max(1),
        }
    }
}

/// The type of a running value, to which elements are converted and from which results are.
trait Running: Copy + Send + Sync {
    fn read<T: Element>(x: T) -> Self;
    fn written<T: Element>(self) -> T;
}

impl Running for f64 {
    #[inline(always)]
    fn read<T: Element>(x: T) -> f64 {
        x.to_f64()
    }
    #[inline(always)]
    fn written<T: Element>(self) -> T {
        T::from_f64(self)
    }
}

impl Running for i64 {
    #[inline(always)]
    fn read<T: Element>(x: T) -> i64 {
        x.to_i64()
    }
    #[inline(always)]
    fn written<T: Element>(self) -> T {
        T::from_i64(self)
    }
}

/// Calls [`scan`] with the element type of `$out`, which must be one of the list.
macro_rules! along {
    ($out:ident, $x:ident, $dim:ident, $first:ident, $step:ident, [$($name:ident: $ty:ty),*]) => {{
        debug_assert!($x.dtype == $out.dtype);
        let lines = Lines::new($out.shape, [$out.strides, $x.strides], $dim);
        match $out.dtype {
            // SAFETY: the lines are inside both views.
            $(DType::$name => unsafe { scan::<_, $ty>(&lines, $out, $x, $first, $step) },)*
            _ => debug_assert!(false, "no running values of this dtype"),
        }
    }};
}

unsafe fn floats(out: Strided, x: Strided, dim: usize, first: f64, step: impl Fn(f64, f64) -> f64 + Sync) {
    along!(out, x, dim, first, step, [F16: f16, BF16: bf16, F32: f32, F64: f64]);
}

unsafe fn integers(out: Strided, x: Strided, dim: usize, first: i64, step: impl Fn(i64, i64) -> i64 + Sync) {
    along!(out, x, dim, first, step, [Bool: Bit, U8: u8, I8: i8, I16: i16, I32: i32, I64: i64]);
}

impl Running for Complex<f64> {
    #[inline(always)]
    fn read<T: Element>(x: T) -> Complex<f64> {
        x.to_complex()
    }
    #[inline(always)]
    fn written<T: Element>(self) -> T {
        T::from_complex(self)
    }
}

unsafe fn complex(
    out: Strided,
    x: Strided,
    dim: usize,
    first: Complex<f64>,
    step: impl Fn(Complex<f64>, Complex<f64>) -> Complex<f64> + Sync,
) {
    along!(out, x, dim, first, step, [C64: Complex<f32>, C128: Complex<f64>]);
}

unsafe fn scan<A: Running, T: Element>(
    lines: &Lines<2>,
    out: Strided,
    x: Strided,
    first_value: A,
    step: impl Fn(A, A) -> A + Sync,
) {
    let (out_step, x_step) = (lines.steps[0], lines.steps[1]);
    // SAFETY: the lines are inside the views, here and below.
    let load = |x: &Strided, at: usize| A::read(unsafe { *x.ptr.cast::<T>().add(at) });
    // SAFETY: as above; this task alone writes the lines.
    let store = |out: &Strided, at: usize, sum: A| unsafe { *out.ptr.cast::<T>().add(at) = sum.written() };
    let along = out_step == 1 && x_step == 1;
    let together = if along { ABREAST } else { TOGETHER };
    let count = lines.starts.numel();
    // Fewer pieces mean longer rows of lines that advance together.
    let grain = if along { lines.grain } else { lines.grain.max(count / (4 * par::threads())) };
    par::ranges(count, grain, |range| {
        let (out, x) = (&out, &x);
        lines.starts.runs(range, |[to, from], across, count| {
            for first in (0..count).step_by(together) {
                let width = together.min(count - first);
                let (to, from) = (to + first * across[0], from + first * across[1]);
                if along && width == ABREAST {
                    let mut sums = [first_value; ABREAST];
                    for i in 0..lines.length {
                        for (line, sum) in sums.iter_mut().enumerate() {
                            *sum = step(*sum, load(x, from + line * across[1] + i));
                            store(out, to + line * across[0] + i, *sum);
                        }
                    }
                    continue;
                }
                if width == 1 || along {
                    for line in 0..width {
                        let (to, from, mut sum) =
                            (to + line * across[0], from + line * across[1], first_value);
                        for i in 0..lines.length {
                            sum = step(sum, load(x, from + i * x_step));
                            store(out, to + i * out_step, sum);
                        }
                    }
                    continue;
                }
                let mut sums = [first_value; TOGETHER];
                for i in 0..lines.length {
                    let (to, from) = (to + i * out_step, from + i * x_step);
                    if across == [1, 1] {
                        for (line, sum) in sums[..width].iter_mut().enumerate() {
                            *sum = step(*sum, load(x, from + line));
                            store(out, to + line, *sum);
                        }
                        continue;
                    }
                    for (line, sum) in sums[..width].iter_mut().enumerate() {
                        *sum = step(*sum, load(x, from + line * across[1]));
                        store(out, to + line * across[0], *sum);
                    }
                }
            }
        });
    });
}

/// Number of contiguous lines that advance together, since none waits for another's sum.
const ABREAST: usize = 4;
/// Number of neighbouring lines that advance together, so that memory is read in order.
const TOGETHER: usize = 256;

unsafe fn extremes<T: Element>(
    values: Strided,
    indices: Strided,
    x: Strided,
    dim: usize,
    wins: impl Fn(T, T) -> bool + Sync,
) {
    let lines = Lines::new(x.shape, [values.strides, indices.strides, x.strides], dim);
    if lines.length == 0 {
        return;
    }
    debug_assert!(indices.dtype == DType::I64);
    par::ranges(lines.starts.numel(), lines.grain, |range| {
        let (values, indices, x) = (&values, &indices, &x);
        lines.starts.each(range, |[v, p, from]| {
            // SAFETY: the lines are inside the views, and this task alone writes them.
            unsafe {
                let load = |i: usize| *x.ptr.cast::<T>().add(from + i * lines.steps[2]);
                let (mut best, mut place) = (load(0), 0);
                for i in 0..lines.length {
                    let new = load(i);
                    if wins(new, best) {
                        (best, place) = (new, i);
                    }
                    *values.ptr.cast::<T>().add(v + i * lines.steps[0]) = best;
                    *indices.ptr.cast::<i64>().add(p + i * lines.steps[1]) = place as i64;
                }
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_run_and_nan_stays() {
        let x = [1.0f32, 3.0, 3.0, f32::NAN, 5.0];
        let (mut values, mut indices) = ([0f32; 5], [0i64; 5]);
        let view = |ptr: *const f32| Strided {
            ptr: ptr.cast_mut().cast(),
            dtype: DType::F32,
            shape: &[5],
            strides: &[1],
        };
        let places =
            Strided { ptr: indices.as_mut_ptr().cast(), dtype: DType::I64, shape: &[5], strides: &[1] };
        // SAFETY: the views cover the arrays above.
        unsafe {
            cumsum(view(values.as_mut_ptr()), view(x.as_ptr()), 0);
            assert_eq!(values[..3], [1.0, 4.0, 7.0]);
            cummax(view(values.as_mut_ptr()), places, view(x.as_ptr()), 0);
        }
        assert_eq!(indices, [0, 1, 2, 3, 3]);
        assert!(values[4].is_nan());
        assert_eq!(log_add_exp(f64::NEG_INFINITY, 2.0), 2.0);
        assert_eq!(log_add_exp(f64::NEG_INFINITY, f64::NEG_INFINITY), f64::NEG_INFINITY);
    }
}
