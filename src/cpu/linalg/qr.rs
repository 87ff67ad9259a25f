//! Householder's reflectors, with LAPACK's signs: the diagonal of `r` has the sign opposite to what it was made of.

use super::number::{Number, add_scaled, columns, dot, length};

/// Makes the reflector of `x` that leaves only its first element: that becomes the length, the others the reflector's, whose
/// first is 1. Returns its factor.
pub fn reflector<T: Number>(x: &mut [T]) -> T {
    let Some((head, tail)) = x.split_first_mut() else { return T::zero() };
    let rest = length(tail);
    if rest == 0.0 && head.im() == 0.0 {
        return T::zero();
    }
    let (re, im) = (head.re(), head.im());
    let whole = re.hypot(im).hypot(rest);
    let beta = if re.is_sign_negative() { whole } else { -whole };
    let scale = T::one() / T::new(re - beta, im);
    tail.iter_mut().for_each(|x| *x = *x * scale);
    *head = T::real(beta);
    T::new((beta - re) / beta, -im / beta)
}

/// Reflects a column by the reflector `tail`, whose first element is 1, with this factor.
pub fn turn<T: Number>(column: &mut [T], tail: &[T], factor: T) {
    let Some((head, rest)) = column.split_first_mut() else { return };
    let along = (*head + dot(tail, rest)) * factor;
    *head = *head - along;
    add_scaled(rest, -along, tail);
}

/// The reflectors of an `m` by `n` matrix below its diagonal, `r` on and above it.
pub fn reflect<T: Number>(a: &mut [T], m: usize, n: usize, tau: &mut [T]) {
    for k in 0..m.min(n) {
        let factor = reflector(&mut a[k * m + k..(k + 1) * m]);
        tau[k] = factor;
        for j in k + 1..n {
            let (left, right) = columns(a, m, k, j);
            turn(&mut right[k..], &left[k + 1..], factor.conj());
        }
    }
}

/// The first `n` columns of the product of the reflectors, over them.
pub fn product<T: Number>(q: &mut [T], m: usize, n: usize, tau: &[T]) {
    for j in tau.len()..n {
        q[j * m..(j + 1) * m].fill(T::zero());
        q[j * m + j] = T::one();
    }
    for k in (0..tau.len()).rev() {
        let factor = tau[k];
        for j in k + 1..n {
            let (left, right) = columns(q, m, k, j);
            turn(&mut right[k..], &left[k + 1..], factor);
        }
        let column = &mut q[k * m..(k + 1) * m];
        column[..k].fill(T::zero());
        column[k] = T::one() - factor;
        column[k + 1..].iter_mut().for_each(|x| *x = -(factor * *x));
    }
}
