//! Discrete Fourier transforms of rows of any length, by rustfft and realfft. Their plans are cached by length.

use super::element::Element;
use super::float::Float;
use super::par;
use crate::base::{DType, Error, Fault, Result, Strided, lock, try_alloc};
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection, FftNum, FftPlanner};
use std::sync::{Arc, Mutex};

/// Limits of the cache: the number of plans, and the sum of their lengths.
const PLANS: usize = 16;
const ELEMENTS: usize = 1 << 22;
/// While it is made, a plan takes less memory than this many complex numbers per element.
const PLAN_SIZE: usize = 16;
/// Number of elements in a block of rows, which is transformed and then scaled while it lies in the cache.
const BLOCK: usize = 4096;

/// Cached plans of one type with their lengths; the one used last is at the end.
struct Plans<P: ?Sized>(Mutex<Vec<(usize, Arc<P>)>>);

impl<P: ?Sized> Plans<P> {
    const fn new() -> Plans<P> {
        Plans(Mutex::new(Vec::new()))
    }

    fn get(&self, n: usize, element: usize, make: impl FnOnce() -> Arc<P>) -> Result<Arc<P>> {
        let mut known = lock(&self.0);
        if let Some(at) = known.iter().position(|&(length, _)| length == n) {
            known[at..].rotate_left(1);
            return Ok(Arc::clone(&known[known.len() - 1].1));
        }
        drop(known);
        // The libraries abort the process if they find no memory.
        try_alloc::check(n, PLAN_SIZE * element)?;
        let plan = make();
        if n <= ELEMENTS {
            let mut known = lock(&self.0);
            known.push((n, Arc::clone(&plan)));
            while known.len() > PLANS || known.iter().map(|&(length, _)| length).sum::<usize>() > ELEMENTS {
                known.remove(0);
            }
        }
        Ok(plan)
    }
}

/// A float type with its cached plans.
trait Planned: FftNum + Float {
    fn plans(direction: FftDirection) -> &'static Plans<dyn Fft<Self>>;
    fn plans_from_real() -> &'static Plans<dyn RealToComplex<Self>>;
    fn plans_to_real() -> &'static Plans<dyn ComplexToReal<Self>>;
}

macro_rules! planned {
    ($($T:ty),*) => { $(
        impl Planned for $T {
            fn plans(direction: FftDirection) -> &'static Plans<dyn Fft<$T>> {
                static PLANS: [Plans<dyn Fft<$T>>; 2] = [const { Plans::new() }; 2];
                &PLANS[usize::from(direction == FftDirection::Inverse)]
            }
            fn plans_from_real() -> &'static Plans<dyn RealToComplex<$T>> {
                static PLANS: Plans<dyn RealToComplex<$T>> = Plans::new();
                &PLANS
            }
            fn plans_to_real() -> &'static Plans<dyn ComplexToReal<$T>> {
                static PLANS: Plans<dyn ComplexToReal<$T>> = Plans::new();
                &PLANS
            }
        }
    )* };
}
planned!(f32, f64);

/// Calls the function for the precision of a complex dtype.
macro_rules! by_precision {
    ($dtype:expr, $function:ident($($arg:expr),*)) => {
        match $dtype {
            DType::C64 => $function::<f32>($($arg),*),
            DType::C128 => $function::<f64>($($arg),*),
            dtype => Err(Fault::NoKernel { op: "fft", dtype }.into()),
        }
    };
}

/// Transforms rows of complex numbers, and scales them.
///
/// # Safety
/// The views are dense, live, and have the same number of rows and the same precision; nobody else uses `to`, and it
/// does not overlap `from`. This holds for all functions of this module.
pub unsafe fn complex(from: Strided, to: Strided, inverse: bool, scale: f64) -> Result<()> {
    let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
    // SAFETY: the caller's contract.
    unsafe { by_precision!(to.dtype, complex_of(from, to, direction, scale)) }
}

/// The first halves, with the middle element, of the transforms of rows of real numbers. The other halves are their
/// conjugate mirror images.
///
/// # Safety
/// See [`complex`].
pub unsafe fn from_real(from: Strided, to: Strided, scale: f64) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe { by_precision!(to.dtype, from_real_of(from, to, scale)) }
}

/// Rows of real numbers from the first halves, with the middle element, of their transforms.
///
/// # Safety
/// See [`complex`].
pub unsafe fn to_real(from: Strided, to: Strided, scale: f64) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe { by_precision!(from.dtype, to_real_of(from, to, scale)) }
}

unsafe fn complex_of<T: Planned>(
    from: Strided,
    to: Strided,
    direction: FftDirection,
    scale: f64,
) -> Result<()> {
    let n = length(&to);
    let make = || FftPlanner::<T>::new().plan_fft(n, direction);
    let plan = T::plans(direction).get(n, size_of::<Complex<T>>(), make)?;
    let rows = RowPairs::<Complex<T>, Complex<T>>::new(&from, &to);
    let scale: T = Element::from_f64(scale);
    rows.each(|| {
        let mut scratch = try_alloc::filled(zero(), plan.get_immutable_scratch_len())?;
        let plan = &plan;
        Ok(move |from: &[Complex<T>], to: &mut [Complex<T>]| {
            plan.process_immutable_with_scratch(from, to, &mut scratch);
            scale_parts(to, scale);
            Ok(())
        })
    })
}

unsafe fn from_real_of<T: Planned>(from: Strided, to: Strided, scale: f64) -> Result<()> {
    let n = length(&from);
    let make = || RealFftPlanner::<T>::new().plan_fft_forward(n);
    let plan = T::plans_from_real().get(n, size_of::<Complex<T>>(), make)?;
    let rows = RowPairs::<T, Complex<T>>::new(&from, &to);
    let scale: T = Element::from_f64(scale);
    rows.each(|| {
        let mut scratch = try_alloc::filled(zero(), plan.get_scratch_len())?;
        let mut row = try_alloc::filled(T::zero(), n)?;
        let plan = &plan;
        Ok(move |from: &[T], to: &mut [Complex<T>]| {
            for (from, to) in from.chunks_exact(n).zip(to.chunks_exact_mut(n / 2 + 1)) {
                row.copy_from_slice(from);
                plan.process_with_scratch(&mut row, to, &mut scratch).map_err(refused)?;
            }
            scale_parts(to, scale);
            Ok(())
        })
    })
}

unsafe fn to_real_of<T: Planned>(from: Strided, to: Strided, scale: f64) -> Result<()> {
    let n = length(&to);
    let make = || RealFftPlanner::<T>::new().plan_fft_inverse(n);
    let plan = T::plans_to_real().get(n, size_of::<Complex<T>>(), make)?;
    let rows = RowPairs::<Complex<T>, T>::new(&from, &to);
    let scale: T = Element::from_f64(scale);
    rows.each(|| {
        let mut scratch = try_alloc::filled(zero(), plan.get_scratch_len())?;
        let mut row = try_alloc::filled(zero(), n / 2 + 1)?;
        let plan = &plan;
        Ok(move |from: &[Complex<T>], to: &mut [T]| {
            for (from, to) in from.chunks_exact(n / 2 + 1).zip(to.chunks_exact_mut(n)) {
                row.copy_from_slice(from);
                // These elements are their own conjugates, hence read as real.
                row[0].im = T::zero();
                if n.is_multiple_of(2) {
                    row[n / 2].im = T::zero();
                }
                plan.process_with_scratch(&mut row, to, &mut scratch).map_err(refused)?;
            }
            to.iter_mut().for_each(|x| *x *= scale);
            Ok(())
        })
    })
}

fn length(x: &Strided) -> usize {
    x.shape.last().map_or(1, |&n| n)
}

fn zero<T: Planned>() -> Complex<T> {
    Complex::new(T::zero(), T::zero())
}

fn scale_parts<T: Planned>(x: &mut [Complex<T>], scale: T) {
    if scale != T::one() {
        x.iter_mut().for_each(|x| *x = Complex::new(x.re * scale, x.im * scale));
    }
}

fn refused(error: realfft::FftError) -> Error {
    Error::runtime(error.to_string())
}

/// Rows to read, and as many rows to write.
struct RowPairs<F, T> {
    count: usize,
    lengths: [usize; 2],
    from: par::Shared<F>,
    to: par::Shared<T>,
}

impl<F, T> RowPairs<F, T> {
    fn new(from: &Strided, to: &Strided) -> RowPairs<F, T> {
        RowPairs {
            count: to.numel() / length(to).max(1),
            lengths: [length(from), length(to)],
            from: par::Shared::new(from.ptr.cast::<F>().cast_const()),
            to: par::Shared::new(to.ptr.cast::<T>().cast_const()),
        }
    }

    /// `start` makes a function for each thread's part, which is then called with blocks of rows. The blocks do not
    /// depend on the number of threads.
    fn each<B: FnMut(&[F], &mut [T]) -> Result<()>>(&self, start: impl Fn() -> Result<B> + Sync) -> Result<()>
    where
        F: Sync,
        T: Send,
    {
        let [from_length, to_length] = self.lengths;
        let n = from_length.max(to_length);
        let block = (BLOCK / n).max(1);
        let work = block * n * (usize::BITS - n.leading_zeros()) as usize;
        par::try_ranges(self.count.div_ceil(block), (par::GRAIN / work).max(1), |range| {
            let mut transform = start()?;
            for at in range {
                let first = at * block;
                let count = block.min(self.count - first);
                // SAFETY: the rows are live, and no other block has them: the contract of whoever made this struct.
                let (from, to) = unsafe {
                    (
                        std::slice::from_raw_parts(
                            self.from.get().add(first * from_length),
                            count * from_length,
                        ),
                        std::slice::from_raw_parts_mut(
                            self.to.get().add(first * to_length),
                            count * to_length,
                        ),
                    )
                };
                transform(from, to)?;
            }
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::contiguous_strides;
    use std::f64::consts::TAU;

    type C = Complex<f64>;

    fn number(k: usize) -> C {
        C::new((k * k % 11) as f64, (k % 5) as f64 - 2.0)
    }

    fn run(from: &[C], to: &mut [C], shape: &[usize], inverse: bool) -> Result<()> {
        let strides = contiguous_strides(shape);
        let view = |ptr: *mut C| Strided { ptr: ptr.cast(), dtype: DType::C128, shape, strides: &strides };
        // SAFETY: both lists have the same length, and nobody else uses them.
        unsafe { complex(view(from.as_ptr().cast_mut()), view(to.as_mut_ptr()), inverse, 0.5) }
    }

    #[test]
    fn all_lengths_are_the_sum() -> Result<()> {
        for n in (1..40).chain([64, 67, 120, 134, 211]) {
            let x: Vec<C> = (0..n).map(number).collect();
            let mut made = vec![C::default(); n];
            for inverse in [false, true] {
                run(&x, &mut made, &[n], inverse)?;
                let sign = if inverse { TAU } else { -TAU };
                for (q, found) in made.iter().enumerate() {
                    let turn = |k: usize| C::from_polar(0.5, sign * ((q * k) % n) as f64 / n as f64);
                    let sum: C = x.iter().enumerate().map(|(k, x)| x * turn(k)).sum();
                    assert!((found - sum).norm() < 1e-10 * n as f64, "{n} {q}");
                }
            }
        }
        Ok(())
    }

    #[test]
    fn rows_together_are_those_alone() -> Result<()> {
        for (rows, n) in [(1, 12), (3, 1), (3, 60), (8, 16), (700, 7), (130, 67)] {
            let x: Vec<C> = (0..rows * n).map(number).collect();
            let (mut all, mut apart) = (vec![C::default(); rows * n], vec![C::default(); rows * n]);
            run(&x, &mut all, &[rows, n], true)?;
            for (from, to) in x.chunks_exact(n).zip(apart.chunks_exact_mut(n)) {
                run(from, to, &[1, n], true)?;
            }
            assert_eq!(all, apart, "{rows} {n}");
        }
        Ok(())
    }

    #[test]
    fn few_plans_are_kept() -> Result<()> {
        let plans = Plans::<dyn Fft<f64>>::new();
        let lengths = || lock(&plans.0).iter().map(|&(n, _)| n).collect::<Vec<_>>();
        let plan = |n| plans.get(n, 16, || FftPlanner::new().plan_fft_forward(n));
        for n in 1..=20 {
            assert_eq!(plan(n)?.len(), n);
        }
        let first = plan(7)?;
        assert!(Arc::ptr_eq(&first, &plan(7)?));
        assert_eq!((lengths().len(), lengths().last()), (PLANS, Some(&7)));
        plan(ELEMENTS)?;
        plan(2 * ELEMENTS)?;
        assert_eq!(lengths(), [ELEMENTS]);
        assert!(plan(usize::MAX / 2).is_err());
        Ok(())
    }
}
