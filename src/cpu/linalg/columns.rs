//! Products of a matrix with a vector, four columns at a time, so that the vector is read once for all of them.

#![allow(clippy::needless_range_loop, reason = "plain indexed loops over arrays are what vectorises")]

use super::number::Number;
use crate::cpu::par::{self, Shared};
use crate::cpu::simd::{Level, simd_fn};

const LANES: usize = 8;
/// From this length on, choosing an instruction set pays.
const LONG: usize = 24;
const HALF: usize = 4;
const TOGETHER: usize = 4;

/// `y += a * x`
#[inline]
pub fn add_scaled<T: Number>(y: &mut [T], a: T, x: &[T]) {
    let n = y.len().min(x.len());
    if n >= LONG {
        // SAFETY: both have `n` elements.
        return unsafe { add::<T, 1>(n, y.as_mut_ptr(), x.as_ptr(), n, &a) };
    }
    for (y, &x) in y.iter_mut().zip(x) {
        *y = *y + a * x;
    }
}

/// The sum of `conj(x) * y`.
#[inline]
pub fn dot<T: Number>(x: &[T], y: &[T]) -> T {
    let mut sum = T::zero();
    let y = &y[..x.len()];
    if x.len() >= LONG {
        // SAFETY: both have as many elements.
        unsafe { sums::<T, 1>(x.len(), &mut sum, x.as_ptr(), x.len(), y.as_ptr()) };
        return sum;
    }
    x.iter().zip(y).fold(sum, |sum, (&x, &y)| sum + x.conj() * y)
}

/// `y += a x`, where the columns of `a` are `lead` elements apart.
pub fn add_columns<T: Number>(y: &mut [T], a: &[T], lead: usize, x: &[T]) {
    let (m, n) = (y.len(), x.len());
    if m == 0 || n == 0 {
        return;
    }
    assert!((n - 1) * lead + m <= a.len());
    let (to, from, factors) = (Shared::new(y.as_ptr()), Shared::new(a.as_ptr()), Shared::new(x.as_ptr()));
    // Cut between whole lanes, so that results do not depend on the number of threads.
    par::ranges(m, (par::GRAIN / n).max(1).next_multiple_of(LANES), |rows| {
        // SAFETY: no other range has these rows, and the assertion checked the columns.
        unsafe {
            let (to, from, x) = (to.get().add(rows.start), from.get().add(rows.start), factors.get());
            let whole = n - n % TOGETHER;
            for j in (0..whole).step_by(TOGETHER) {
                add::<T, TOGETHER>(rows.len(), to, from.add(j * lead), lead, x.add(j));
            }
            for j in whole..n {
                add::<T, 1>(rows.len(), to, from.add(j * lead), lead, x.add(j));
            }
        }
    });
}

/// `y -= a x`; negates `x`.
pub fn subtract_columns<T: Number>(y: &mut [T], a: &[T], lead: usize, x: &mut [T]) {
    x.iter_mut().for_each(|x| *x = -*x);
    add_columns(y, a, lead, x);
}

/// The products of columns of `a`, which are `lead` elements apart, with `x`: `out = aᴴ x`.
pub fn adjoint_product<T: Number>(out: &mut [T], a: &[T], lead: usize, x: &[T]) {
    let (m, n) = (x.len(), out.len());
    if n == 0 {
        return;
    }
    if m == 0 {
        return out.fill(T::zero());
    }
    assert!((n - 1) * lead + m <= a.len());
    let (to, from, x) = (Shared::new(out.as_ptr()), Shared::new(a.as_ptr()), Shared::new(x.as_ptr()));
    par::ranges(n, (par::GRAIN / m).max(1).next_multiple_of(TOGETHER), |columns| {
        let whole = columns.end - columns.len() % TOGETHER;
        // SAFETY: no other range has these results, and the assertion checked the columns.
        unsafe {
            for j in (columns.start..whole).step_by(TOGETHER) {
                sums::<T, TOGETHER>(m, to.get().add(j), from.get().add(j * lead), lead, x.get());
            }
            for j in whole..columns.end {
                sums::<T, 1>(m, to.get().add(j), from.get().add(j * lead), lead, x.get());
            }
        }
    });
}

/// The product of a Hermitian matrix, of which the lower triangle is read, with `x`. Each element is read once, for
/// both of its places.
pub fn hermitian_product<T: Number>(out: &mut [T], a: &[T], lead: usize, x: &[T]) {
    let n = x.len();
    out.fill(T::zero());
    for first in (0..n).step_by(TOGETHER) {
        let last = n.min(first + TOGETHER);
        for j in first..last {
            let column = &a[j * lead..j * lead + last];
            out[j] = out[j] + x[j].scaled(column[j].re());
            for i in j + 1..last {
                out[i] = out[i] + column[i] * x[j];
                out[j] = out[j] + column[i].conj() * x[i];
            }
        }
        if last < n {
            assert!((last - 1) * lead + n <= a.len() && out.len() == n);
            let (to, from) = (out.as_mut_ptr(), a.as_ptr());
            // SAFETY: all of these columns have the rows below.
            unsafe {
                let from = from.add(first * lead + last);
                both::<T, TOGETHER>(n - last, to.add(last), to.add(first), from, lead, x.as_ptr().add(first));
            }
        }
    }
}

simd_fn! {
    /// Adds the product of `N` columns with the first `N` elements of `x` to `y`, and that of their adjoint with the
    /// elements that follow to `sums`.
    ///
    /// # Safety
    /// The columns, `y` and `sums` have the sizes that follow from `m` and `N`; `x` has `N + m` elements.
    unsafe fn both<T; N>(m: usize, y: *mut T, sums: *mut T, a: *const T, lead: usize, x: *const T) where [T: Number] {
        let head = x.cast::<[T; N]>().read_unaligned();
        let x = x.add(N);
        let mut all = [[T::zero(); HALF]; N];
        let whole = m - m % HALF;
        for i in (0..whole).step_by(HALF) {
            let x = x.add(i).cast::<[T; HALF]>().read_unaligned();
            let mut to = y.add(i).cast::<[T; HALF]>().read_unaligned();
            for j in 0..N {
                let column = a.add(j * lead + i).cast::<[T; HALF]>().read_unaligned();
                for l in 0..HALF {
                    to[l] = to[l] + column[l] * head[j];
                    all[j][l] = all[j][l] + column[l].conj() * x[l];
                }
            }
            y.add(i).cast::<[T; HALF]>().write_unaligned(to);
        }
        for j in 0..N {
            for i in whole..m {
                let element = *a.add(j * lead + i);
                *y.add(i) = *y.add(i) + element * head[j];
                all[j][i - whole] = all[j][i - whole] + element.conj() * *x.add(i);
            }
            let [a, b, c, d] = all[j];
            *sums.add(j) = *sums.add(j) + ((a + c) + (b + d));
        }
    }
}

// With wider registers, the compiler would gather complex numbers one by one.
simd_fn! {
    [Level::V3]
    unsafe fn add<T; N>(m: usize, y: *mut T, a: *const T, lead: usize, x: *const T) where [T: Number] {
        let x = x.cast::<[T; N]>().read_unaligned();
        let whole = m - m % LANES;
        for i in (0..whole).step_by(LANES) {
            let mut sums = y.add(i).cast::<[T; LANES]>().read_unaligned();
            for j in 0..N {
                let column = a.add(j * lead + i).cast::<[T; LANES]>().read_unaligned();
                for l in 0..LANES {
                    sums[l] = sums[l] + column[l] * x[j];
                }
            }
            y.add(i).cast::<[T; LANES]>().write_unaligned(sums);
        }
        for i in whole..m {
            for j in 0..N {
                *y.add(i) = *y.add(i) + *a.add(j * lead + i) * x[j];
            }
        }
    }
}

simd_fn! {
    unsafe fn sums<T; N>(m: usize, out: *mut T, a: *const T, lead: usize, x: *const T) where [T: Number] {
        let mut sums = [[T::zero(); LANES]; N];
        let whole = m - m % LANES;
        for i in (0..whole).step_by(LANES) {
            let x = x.add(i).cast::<[T; LANES]>().read_unaligned();
            for j in 0..N {
                let column = a.add(j * lead + i).cast::<[T; LANES]>().read_unaligned();
                for l in 0..LANES {
                    sums[j][l] = sums[j][l] + column[l].conj() * x[l];
                }
            }
        }
        for j in 0..N {
            for i in whole..m {
                sums[j][i - whole] = sums[j][i - whole] + (*a.add(j * lead + i)).conj() * *x.add(i);
            }
            let [a, b, c, d, e, f, g, h] = sums[j];
            *out.add(j) = ((a + e) + (c + g)) + ((b + f) + (d + h));
        }
    }
}
