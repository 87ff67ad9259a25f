//! Reverses the order of elements.

use super::par::{self, Shared};
use super::simd::simd_fn;
use super::walk::Walk;
use crate::base::{Dims, Strided};

/// Copies `src` to `out` with the dimensions in `flipped` reversed.
///
/// # Safety
/// The views are live, have elements, and share shape and dtype; `out` overlaps nothing.
pub unsafe fn flip(out: Strided, src: Strided, flipped: &[usize]) {
    let mut last = 0;
    let mut back = Dims::from_slice(src.strides);
    for &d in flipped {
        last += (src.shape[d] - 1) * src.strides[d];
        back[d] = back[d].wrapping_neg();
    }
    let mut dims: Dims = (0..out.shape.len()).collect();
    dims.sort_by_key(|&d| std::cmp::Reverse(out.strides[d]));
    let mut walk = Walk::over(&dims, out.shape, [out.strides, &back]);
    let (n, steps) = walk.pop();
    let size = out.dtype.size();
    let line = match size {
        1 => line::<u8>,
        2 => line::<u16>,
        4 => line::<u32>,
        8 => line::<u64>,
        _ => line::<[u64; 2]>,
    };
    let (to, from) = (Shared::new(out.ptr), Shared::new(src.ptr.wrapping_add(last * size)));
    let at = |[t, f]: [usize; 2]| {
        (to.get().wrapping_add(t.wrapping_mul(size)), from.get().wrapping_add(f.wrapping_mul(size)))
    };
    let lines = walk.numel();
    if lines == 1 {
        par::ranges(n, par::GRAIN, |range| {
            let (to, from) = at(steps.map(|step| step.wrapping_mul(range.start)));
            // SAFETY: both lines have `n` elements, and no other task has this range.
            unsafe { line(range.len(), to, from, steps) };
        });
    } else {
        par::ranges(lines, (par::GRAIN / n).max(1), |range| {
            walk.each(range, |offsets| {
                let (to, from) = at(offsets);
                // SAFETY: the lines are inside both views, and no other task has them.
                unsafe { line(n, to, from, steps) };
            });
        });
    }
}

/// Copies `n` elements between places with fixed steps.
unsafe fn line<T: Copy>(n: usize, to: *mut u8, from: *const u8, [to_step, from_step]: [usize; 2]) {
    const BACK: usize = 1usize.wrapping_neg();
    let (to, from) = (to.cast::<T>(), from.cast::<T>());
    // SAFETY: the caller's elements, which do not overlap.
    unsafe {
        match (to_step, from_step) {
            (1, 1) => to.copy_from_nonoverlapping(from, n),
            (1, BACK) => match size_of::<T>() {
                1 => backwards_u8(n, to.cast(), from.wrapping_sub(n - 1).cast()),
                4 => backwards_u32(n, to.cast(), from.wrapping_sub(n - 1).cast()),
                8 => backwards_u64(n, to.cast(), from.wrapping_sub(n - 1).cast()),
                _ => backwards(n, to, from.wrapping_sub(n - 1)),
            },
            _ => (0..n).for_each(|i| {
                *to.wrapping_add(i.wrapping_mul(to_step)) = *from.wrapping_add(i.wrapping_mul(from_step));
            }),
        }
    }
}

#[inline(always)]
unsafe fn backwards<T: Copy>(n: usize, to: *mut T, first: *const T) {
    // SAFETY: the caller's elements.
    (0..n).for_each(|i| unsafe { *to.add(i) = *first.add(n - 1 - i) });
}

simd_fn! { unsafe fn backwards_u8(n: usize, to: *mut u8, first: *const u8) { backwards(n, to, first) } }
simd_fn! { unsafe fn backwards_u32(n: usize, to: *mut u32, first: *const u32) { backwards(n, to, first) } }
simd_fn! { unsafe fn backwards_u64(n: usize, to: *mut u64, first: *const u64) { backwards(n, to, first) } }

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::DType;

    #[test]
    fn any_dimensions_any_strides() {
        let data: Vec<u16> = (0..24).collect();
        let shape = [2, 3, 4];
        for strides in [[12, 4, 1], [1, 2, 6], [4, 8, 1]] {
            for flipped in [&[][..], &[0], &[1], &[2], &[0, 2], &[0, 1, 2]] {
                let mut out = [99u16; 24];
                let view = |ptr: *const u16, strides| Strided {
                    ptr: ptr.cast_mut().cast(),
                    dtype: DType::I16,
                    shape: &shape,
                    strides,
                };
                // SAFETY: the views cover the arrays above.
                unsafe { flip(view(out.as_mut_ptr(), &[12, 4, 1]), view(data.as_ptr(), &strides), flipped) };
                for (i, &found) in out.iter().enumerate() {
                    let mut place = [i / 12, i / 4 % 3, i % 4];
                    flipped.iter().for_each(|&d| place[d] = shape[d] - 1 - place[d]);
                    let at: usize = place.iter().zip(strides).map(|(p, s)| p * s).sum();
                    assert_eq!(found, data[at], "{strides:?} {flipped:?} {i}");
                }
            }
        }
    }
}
