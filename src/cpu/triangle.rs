//! Sets the elements outside a triangle of a matrix to zero.

use super::par;
use crate::base::Strided;

/// Sets the elements above (`lower`) or below the `diagonal` of each matrix of `x` to zero.
///
/// # Safety
/// `x` is contiguous, live, has at least two dimensions, and nobody else uses it.
pub unsafe fn keep_triangle(x: Strided, diagonal: i64, lower: bool) {
    let [.., rows, columns] = *x.shape else { return };
    if x.numel() == 0 {
        return;
    }
    let size = x.dtype.size();
    par::ranges(x.numel() / columns, (par::GRAIN / columns).max(1), |range| {
        let whole = &x;
        for line in range {
            let row = (line % rows) as i64;
            let edge = row.saturating_add(diagonal);
            let zeros = if lower {
                edge.saturating_add(1).clamp(0, columns as i64) as usize..columns
            } else {
                0..edge.clamp(0, columns as i64) as usize
            };
            // SAFETY: the run lies inside this row, which no other range contains.
            unsafe {
                whole.ptr.add((line * columns + zeros.start) * size).write_bytes(0, zeros.len() * size)
            };
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::DType;

    #[test]
    fn both_triangles() {
        let run = |diagonal, lower| {
            let mut x = [1u8; 6];
            let view = Strided { ptr: x.as_mut_ptr(), dtype: DType::U8, shape: &[2, 3], strides: &[3, 1] };
            // SAFETY: the view covers the array.
            unsafe { keep_triangle(view, diagonal, lower) };
            x
        };
        assert_eq!(run(0, true), [1, 0, 0, 1, 1, 0]);
        assert_eq!(run(1, false), [0, 1, 1, 0, 0, 1]);
        assert_eq!(run(-9, true), [0; 6]);
        assert_eq!(run(i64::MAX, true), [1; 6]);
    }
}
