//! Products of f16 and bf16 matrices: computed in f32, rounded once.

use super::{Sizes, float};
use crate::base::Result;
use crate::cpu::element::{Element, scratch};

/// # Safety
/// The same as for the f32 product; `T` is the element type.
pub unsafe fn product<T: Element>(
    s: &Sizes,
    out: *mut T,
    a: *const T,
    b: *const T,
    alpha: f32,
    beta: f32,
    threads: bool,
) -> Result<()> {
    // SAFETY: the matrices are live and have these sizes.
    let ((a, a_strides), (b, b_strides)) = unsafe { (widen(s.m, s.k, a, s.a)?, widen(s.k, s.n, b, s.b)?) };
    let mut wide = scratch(s.m * s.n, 0.0f32)?;
    let sizes = Sizes { out: [s.n, 1], a: a_strides, b: b_strides, ..*s };
    // SAFETY: the copies have the sizes and strides just computed.
    unsafe { float::product(&sizes, wide.as_mut_ptr(), a.as_ptr(), b.as_ptr(), alpha, 0.0, threads)? };
    for (i, row) in wide.chunks_exact(s.n).enumerate() {
        for (j, &value) in row.iter().enumerate() {
            // SAFETY: (i, j) is inside `out`, which is read only if it counts.
            unsafe {
                let to = out.add(i * s.out[0] + j * s.out[1]);
                *to = T::from_f32(if beta == 0.0 { value } else { value + beta * (*to).to_f32() });
            }
        }
    }
    Ok(())
}

/// A contiguous f32 copy, and its strides: the dimension with the smaller stride gets stride 1.
unsafe fn widen<T: Element>(
    rows: usize,
    cols: usize,
    x: *const T,
    strides: [usize; 2],
) -> Result<(Vec<f32>, [usize; 2])> {
    let by_rows = strides[1] <= strides[0];
    let (outer, inner, step) =
        if by_rows { (rows, cols, strides) } else { (cols, rows, [strides[1], strides[0]]) };
    let mut wide = scratch(rows * cols, 0.0f32)?;
    for (i, line) in wide.chunks_exact_mut(inner.max(1)).enumerate().take(outer) {
        for (j, to) in line.iter_mut().enumerate() {
            // SAFETY: (i, j) is inside the matrix.
            *to = unsafe { (*x.add(i * step[0] + j * step[1])).to_f32() };
        }
    }
    Ok((wide, if by_rows { [inner, 1] } else { [1, inner] }))
}
