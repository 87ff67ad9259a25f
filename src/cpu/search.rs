//! Binary search: the places where values would be inserted into sorted lines.

use super::element::{Bit, Element, by_dtype};
use super::math::complex::Complex;
use super::par;
use crate::base::{DType, Fault, Result, Strided};

/// For each element of `x`: the number of elements of its line of `sorted` that come before it, which are those that
/// are less, or, with `right`, not greater. `sorted` has as many lines as `x`, or one for all. `sorter`, if given,
/// holds the order of each line.
///
/// # Safety
/// The views are live and contiguous. `out` (int32 or int64) overlaps nothing and has the shape of `x`; `sorter`
/// (int64) has that of `sorted`, and its elements are indices into a line.
pub unsafe fn search(
    out: Strided,
    sorted: Strided,
    x: Strided,
    sorter: Option<Strided>,
    right: bool,
) -> Result<()> {
    if matches!(x.dtype, DType::Bool) || x.dtype.is_complex() {
        return Err(Fault::NoKernel { op: "searchsorted_out_cpu", dtype: x.dtype }.into());
    }
    let length = sorted.shape.last().copied().unwrap_or(0);
    let own = x.shape.last().copied().unwrap_or(1);
    let stride = if sorted.shape.len() > 1 { length } else { 0 };
    let lines = Lines { length, own, stride, right };
    // SAFETY: the caller's contract.
    unsafe { by_dtype!(x.dtype, T => lines.run::<T>(out, sorted, x, sorter)) }
    Ok(())
}

struct Lines {
    /// Number of sorted elements in a line, and of values sought in it.
    length: usize,
    own: usize,
    /// Distance from one sorted line to the next; 0 if there is only one.
    stride: usize,
    right: bool,
}

impl Lines {
    unsafe fn run<T: Sought>(&self, out: Strided, sorted: Strided, x: Strided, sorter: Option<Strided>) {
        let (n, wide) = (x.numel(), out.dtype == DType::I64);
        let (out, sorted, x) = (Shared(out.ptr), Shared(sorted.ptr), Shared(x.ptr));
        let sorter = sorter.map(|s| Shared(s.ptr));
        let grain = par::GRAIN / (usize::BITS - self.length.leading_zeros()).max(1) as usize;
        par::ranges(n, grain, |range| {
            for i in range {
                let line = i / self.own.max(1) * self.stride;
                // SAFETY: `i` is an index of `x` and `out`, and `line` begins a line of `sorted`; the caller vouches
                // for `sorter`.
                unsafe {
                    let value = x.get().cast::<T>().add(i).read();
                    let at = |k: usize| match &sorter {
                        Some(sorter) => line + sorter.get().cast::<i64>().add(line + k).read() as usize,
                        None => line + k,
                    };
                    let (mut low, mut high) = (0, self.length);
                    while low < high {
                        let middle = low + (high - low) / 2;
                        let seen = sorted.get().cast::<T>().add(at(middle)).read();
                        if T::passes(seen, value, self.right) { low = middle + 1 } else { high = middle }
                    }
                    if wide {
                        out.get().cast::<i64>().add(i).write(low as i64);
                    } else {
                        out.get().cast::<i32>().add(i).write(low as i32);
                    }
                }
            }
        });
    }
}

/// A pointer that threads share, each of which uses its own elements.
#[derive(Clone, Copy)]
struct Shared(*mut u8);
// SAFETY: see above.
unsafe impl Send for Shared {}
// SAFETY: see above.
unsafe impl Sync for Shared {}
impl Shared {
    fn get(&self) -> *mut u8 {
        self.0
    }
}

trait Sought: Element {
    /// Returns true if the place sought lies behind the element `seen`. Every comparison with NaN does.
    fn passes(seen: Self, value: Self, right: bool) -> bool;
}

macro_rules! sought {
    ($($ty:ty),*) => { $(impl Sought for $ty {
        #[inline(always)]
        #[allow(clippy::neg_cmp_op_on_partial_ord, reason = "NaN passes")]
        fn passes(seen: $ty, value: $ty, right: bool) -> bool {
            if right { !(seen > value) } else { !(seen >= value) }
        }
    })* };
}
sought!(Bit, u8, i8, i16, i32, i64, f32, f64, half::f16, half::bf16);

/// Complex numbers have no order; the operator refuses them.
macro_rules! unordered {
    ($($ty:ty),*) => { $(impl Sought for $ty {
        fn passes(_: $ty, _: $ty, _: bool) -> bool {
            false
        }
    })* };
}
unordered!(Complex<f32>, Complex<f64>);

#[cfg(test)]
mod tests {
    use super::*;

    fn run(sorted: &mut [f32], x: &mut [f32], sorter: Option<&mut [i64]>, right: bool) -> Vec<i64> {
        let mut out = vec![0i64; x.len()];
        let (n, m) = ([sorted.len()], [x.len()]);
        let view = |ptr: *mut u8, dtype, shape| Strided { ptr, dtype, shape, strides: &[1] };
        // SAFETY: the views cover the slices.
        let done = unsafe {
            search(
                view(out.as_mut_ptr().cast(), DType::I64, &m),
                view(sorted.as_mut_ptr().cast(), DType::F32, &n),
                view(x.as_mut_ptr().cast(), DType::F32, &m),
                sorter.map(|s| view(s.as_mut_ptr().cast(), DType::I64, &n)),
                right,
            )
        };
        assert!(done.is_ok());
        out
    }

    #[test]
    fn left_and_right() {
        let mut sorted = [1.0, 3.0, 3.0, 7.0];
        let mut x = [0.0, 1.0, 3.0, 5.0, 9.0, f32::NAN];
        assert_eq!(run(&mut sorted, &mut x, None, false), [0, 0, 1, 3, 4, 4]);
        assert_eq!(run(&mut sorted, &mut x, None, true), [0, 1, 3, 3, 4, 4]);
        assert_eq!(run(&mut [], &mut x, None, true), [0; 6]);
    }

    #[test]
    fn in_the_order_of_a_sorter() {
        let mut unsorted = [7.0, 1.0, 3.0];
        assert_eq!(run(&mut unsorted, &mut [2.0, 7.0], Some(&mut [1, 2, 0]), false), [1, 2]);
    }
}
