//! The triangle whose square is a positive matrix.

use super::number::{Number, add_scaled, columns};

/// `L` over the lower triangle of `a`, zeros above it. The order of the first leading minor that is not positive, or 0.
pub fn factor<T: Number>(a: &mut [T], n: usize) -> usize {
    let mut info = 0;
    for j in 0..n {
        let pivot = a[j * n + j].re();
        if pivot <= 0.0 || pivot.is_nan() {
            info = j + 1;
            break;
        }
        let root = pivot.sqrt();
        a[j * n + j] = T::real(root);
        a[j * n + j + 1..(j + 1) * n].iter_mut().for_each(|x| *x = x.scaled(1.0 / root));
        for k in j + 1..n {
            let (left, right) = columns(a, n, j, k);
            add_scaled(&mut right[k..], -left[k].conj(), &left[k..]);
        }
    }
    for j in 1..n {
        a[j * n..j * n + j].fill(T::zero());
    }
    info
}
