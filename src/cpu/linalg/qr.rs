//! QR decomposition by Householder reflectors, with LAPACK's signs: a diagonal element of `r` has the opposite sign of
//! the element that it replaces.

use super::blocks::{Block, Factor, add_product};
use super::columns::{add_scaled, adjoint_product};
use super::number::{Number, length};
use crate::base::Result;
use crate::cpu::element::scratch;

/// Number of columns whose reflectors are applied together.
const PANEL: usize = 32;
/// In panels narrower than the first, or matrices up to the second, each reflector is applied by itself.
const NARROW: [usize; 2] = [8, 48];

/// Makes the reflector that zeroes all elements of `x` but the first. The first becomes the length of `x`, up to sign,
/// and the others the elements of the reflector, whose first is 1. Returns the reflector's factor.
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

/// Applies a reflector to the columns of `rest`, which are `lead` elements apart. The reflector is 1 followed by
/// `tail`.
fn reflect_columns<T: Number>(rest: &mut [T], lead: usize, tail: &[T], factor: T) {
    let mut along = [T::zero(); PANEL];
    for columns in rest.chunks_mut(lead * PANEL) {
        let count = columns.len().div_ceil(lead);
        let along = &mut along[..count];
        adjoint_product(along, &columns[1..], lead, tail);
        for (column, along) in columns.chunks_mut(lead).zip(along) {
            let along = (column[0] + along.conj()) * factor;
            column[0] = column[0] - along;
            add_scaled(&mut column[1..=tail.len()], -along, tail);
        }
    }
}

/// Replaces an `m` by `n` matrix by `r`, on and above its diagonal, and the reflectors below it.
pub fn reflect<T: Number>(a: &mut [T], m: usize, n: usize, tau: &mut [T]) -> Result<()> {
    let (whole, count) = (Block::new(m, n), m.min(n));
    if count <= NARROW[1] {
        alone(a, whole, tau);
        return Ok(());
    }
    for first in (0..count).step_by(PANEL) {
        let last = count.min(first + PANEL);
        panel(a, whole.part(first..m, first..last), &mut tau[first..last])?;
        if last < n {
            let panel = Reflectors::of(a, whole.part(first..m, first..last), &tau[first..last])?;
            panel.apply(a, whole.part(first..m, last..n), true)?;
        }
    }
    Ok(())
}

/// Like [`reflect`], for a block with at most as many columns as rows: reflects the left half, applies that to the
/// right half, and reflects that.
fn panel<T: Number>(a: &mut [T], block: Block, tau: &mut [T]) -> Result<()> {
    let (m, n) = (block.rows, block.columns);
    if n <= NARROW[0] {
        alone(a, block, tau);
        return Ok(());
    }
    let half = (n / 2).next_multiple_of(NARROW[0]);
    let (left, right) = (block.part(0..m, 0..half), block.part(half..m, half..n));
    panel(a, left, &mut tau[..half])?;
    Reflectors::of(a, left, &tau[..half])?.apply(a, block.part(0..m, half..n), true)?;
    panel(a, right, &mut tau[half..])
}

/// Like [`reflect`], one reflector after another.
fn alone<T: Number>(a: &mut [T], block: Block, tau: &mut [T]) {
    let (m, n) = (block.rows, block.columns);
    for k in 0..m.min(n) {
        let (left, right) = a[..block.column(n - 1).end].split_at_mut(block.column(k).end);
        let column = &mut left[block.place(k, k)..];
        tau[k] = reflector(column);
        if k + 1 < n {
            let skipped = block.lead - (m - k);
            reflect_columns(&mut right[skipped..], block.lead, &column[1..], tau[k].conj());
        }
    }
}

/// The product of reflectors as one: `1 - v t vᴴ` (compact WY), with a triangle `t`.
pub struct Reflectors<T> {
    v: Vec<T>,
    t: Vec<T>,
    size: Block,
}

impl<T: Number> Reflectors<T> {
    /// The product of the reflectors below the diagonal of a block.
    pub fn of(a: &[T], block: Block, tau: &[T]) -> Result<Reflectors<T>> {
        let (m, n) = (block.rows, block.columns);
        let (mut v, mut t) = (scratch(m * n, T::zero())?, scratch(n * n, T::zero())?);
        for j in 0..n {
            v[j * m + j] = T::one();
            v[j * m + j + 1..(j + 1) * m].copy_from_slice(&a[block.place(j + 1, j)..block.place(m, j)]);
        }
        let (size, square) = (Block::new(m, n), Block::new(n, n));
        let mut products = scratch(n * n, T::zero())?;
        add_product(&mut products, square, 1.0, Factor::of(&v, size).adjoint(), Factor::of(&v, size))?;
        for j in 0..n {
            let (before, column) = t.split_at_mut(j * n);
            let factor = -tau[j];
            for k in 0..j {
                add_scaled(&mut column[..=k], products[j * n + k] * factor, &before[k * n..k * n + k + 1]);
            }
            column[j] = tau[j];
        }
        Ok(Reflectors { v, t, size })
    }

    /// Multiplies a block by the product, or by its adjoint.
    pub fn apply(&self, x: &mut [T], block: Block, adjoint: bool) -> Result<()> {
        let (n, columns) = (self.size.columns, block.columns);
        let small = Block::new(n, columns);
        let (mut w, mut turned) = (scratch(n * columns, T::zero())?, scratch(n * columns, T::zero())?);
        let v = Factor::of(&self.v, self.size);
        let t = Factor::of(&self.t, Block::new(n, n));
        add_product(&mut w, small, 1.0, v.adjoint(), Factor::of(x, block))?;
        add_product(&mut turned, small, 1.0, if adjoint { t.adjoint() } else { t }, Factor::of(&w, small))?;
        add_product(x, block, -1.0, v, Factor::of(&turned, small))
    }
}

/// Replaces the reflectors below the diagonal of a block by the first columns of their product.
pub fn product<T: Number>(q: &mut [T], block: Block, tau: &[T]) -> Result<()> {
    let (m, n, count) = (block.rows, block.columns, tau.len());
    let unit = |q: &mut [T], j: usize| {
        q[block.column(j)].fill(T::zero());
        q[block.place(j, j)] = T::one();
    };
    (count..n).for_each(|j| unit(q, j));
    if n <= NARROW[1] {
        for (k, &factor) in tau.iter().enumerate().rev() {
            let (left, right) = q[..block.column(n - 1).end].split_at_mut(block.column(k).end);
            let column = &mut left[block.column(k)];
            if k + 1 < n {
                reflect_columns(&mut right[block.lead - (m - k)..], block.lead, &column[k + 1..], factor);
            }
            column[..k].fill(T::zero());
            column[k] = T::one() - factor;
            column[k + 1..].iter_mut().for_each(|x| *x = -(factor * *x));
        }
        return Ok(());
    }
    for first in (0..count).step_by(PANEL).rev() {
        let last = count.min(first + PANEL);
        let panel = Reflectors::of(q, block.part(first..m, first..last), &tau[first..last])?;
        (first..last).for_each(|j| unit(q, j));
        panel.apply(q, block.part(first..m, first..n), false)?;
    }
    Ok(())
}

/// Replaces the reflectors of a square matrix, which stand below its first subdiagonal, by their product.
pub fn product_below<T: Number>(a: &mut [T], n: usize, tau: &[T]) -> Result<()> {
    // The reflectors move one column to the right, behind a first unit vector.
    for j in (1..n).rev() {
        let (left, right) = a.split_at_mut(j * n);
        right[1..n].copy_from_slice(&left[(j - 1) * n + 1..j * n]);
        right[0] = T::zero();
    }
    a[..n].fill(T::zero());
    a[0] = T::one();
    product(a, Block::new(n, n).part(1..n, 1..n), tau)
}

/// Multiplies `x` by the product of the reflectors that stand below the first subdiagonal of a square matrix.
pub fn apply_below<T: Number>(a: &[T], n: usize, tau: &[T], x: &mut [T]) -> Result<()> {
    let (block, whole) = (Block::new(n, n).part(1..n, 0..n - 1), Block::new(n, n).part(1..n, 0..n));
    for first in (0..tau.len()).step_by(PANEL).rev() {
        let last = tau.len().min(first + PANEL);
        let panel = Reflectors::of(a, block.part(first..n - 1, first..last), &tau[first..last])?;
        panel.apply(x, whole.part(first..n - 1, 0..n), false)?;
    }
    Ok(())
}
