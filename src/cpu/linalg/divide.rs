//! Divide and conquer for eigenvalues and eigenvectors of tridiagonal matrices (Cuppen): solves both halves, then joins
//! them by a matrix of rank one. The vectors are computed for the values as they were rounded, which keeps them
//! orthogonal (Gu and Eisenstat).

#![allow(clippy::needless_range_loop, reason = "plain indexed loops over arrays are what vectorises")]

use super::blocks::{Block, Factor, add_product};
use super::eigh::diagonalize;
use super::rotations::Rotations;
use crate::base::{Result, try_alloc};
use crate::cpu::element::scratch;
use crate::cpu::par::{self, Shared};
use crate::cpu::simd::simd_fn;
use std::ops::Range;

/// Smaller matrices are left to QR steps.
pub const LEAF: usize = 32;
/// Maximum number of steps to a root, which always suffices: if a step leaves the interval, the interval is halved.
const STEPS: usize = 120;
const LANES: usize = 8;

/// Replaces `d` by the eigenvalues, in any order, and `z`, which holds zeros, by the vectors. Returns the number of
/// values that [`diagonalize`] did not find.
pub fn decompose(d: &mut [f64], e: &[f64], z: &mut [f64]) -> Result<usize> {
    let block = Block::new(d.len(), d.len());
    part(d, e, z, block)
}

/// Like [`decompose`], for a diagonal block of the vectors.
fn part(d: &mut [f64], e: &[f64], z: &mut [f64], block: Block) -> Result<usize> {
    let n = d.len();
    if n <= LEAF {
        let (mut beside, mut vectors) = ([0.0; LEAF], [0.0; LEAF * LEAF]);
        beside[..n - 1].copy_from_slice(&e[..n - 1]);
        let vectors = &mut vectors[..n * n];
        vectors.iter_mut().step_by(n + 1).for_each(|x| *x = 1.0);
        let mut rotations = Rotations::of(Some(&mut *vectors), n, n)?;
        let left = diagonalize(d, &mut beside[..n], &mut rotations)?;
        rotations.finish()?;
        (0..n).for_each(|j| z[block.column(j)].copy_from_slice(&vectors[j * n..(j + 1) * n]));
        return Ok(left);
    }
    let half = n / 2;
    let joint = e[half - 1];
    d[half - 1] -= joint.abs();
    d[half] -= joint.abs();
    let (low, high) = d.split_at_mut(half);
    let left = part(low, e, z, block.part(0..half, 0..half))?;
    let right = part(high, &e[half..], z, block.part(half..n, half..n))?;
    if joint != 0.0 {
        join(d, z, block, half, joint)?;
    }
    Ok(left + right)
}

/// The rows in which a vector has nonzero elements.
#[derive(Clone, Copy, PartialEq)]
enum NonzeroRows {
    Above,
    Both,
    Below,
}

/// An eigenvalue of a half, its weight in the vector of the rank-one matrix, and the column of its eigenvector.
#[derive(Clone, Copy)]
struct Pole {
    value: f64,
    weight: f64,
    column: usize,
    rows: NonzeroRows,
}

/// Rotations the values and vectors of two halves into those of the whole, which is `diag(d) + rho w wᵀ` in the basis of
/// the halves.
fn join(d: &mut [f64], z: &mut [f64], block: Block, half: usize, joint: f64) -> Result<()> {
    let n = d.len();
    let rho = 2.0 * joint.abs();
    let mut poles = try_alloc::all((0..n).map(|column| {
        let above = column < half;
        // The weight comes from the last row of the first half, or the first row of the second; `w` has length one.
        let weight =
            z[block.place(if above { half - 1 } else { half }, column)] * std::f64::consts::FRAC_1_SQRT_2;
        let weight = if above || joint > 0.0 { weight } else { -weight };
        Pole {
            value: d[column],
            weight,
            column,
            rows: if above { NonzeroRows::Above } else { NonzeroRows::Below },
        }
    }))?;
    poles.sort_unstable_by(|a, b| a.value.total_cmp(&b.value));
    deflate(&mut poles, d, z, block, rho);
    let k = poles.len();
    if k == 0 {
        return Ok(());
    }
    let mut u = scratch(k * k, 0.0)?;
    roots(&poles, rho, d, &mut u)?;
    let order =
        try_alloc::all([NonzeroRows::Above, NonzeroRows::Both, NonzeroRows::Below].into_iter().flat_map(
            |rows| poles.iter().enumerate().filter(move |(_, pole)| pole.rows == rows).map(|(i, _)| i),
        ))?;
    vectors(&poles, &order, &mut u)?;
    let count = |rows: NonzeroRows| poles.iter().filter(|pole| pole.rows == rows).count();
    let (above, below) = (k - count(NonzeroRows::Below), k - count(NonzeroRows::Above));
    for (rows, columns) in [(0..half, 0..above), (half..n, k - below..k)] {
        multiply_rows(
            z,
            block,
            rows,
            &poles,
            &order[columns.clone()],
            &u,
            Block::new(k, k).part(columns, 0..k),
        )?;
    }
    Ok(())
}

/// Removes values that the join does not change: those without weight; and of two equal values one, whose weight the
/// other gets.
fn deflate(poles: &mut Vec<Pole>, d: &mut [f64], z: &mut [f64], block: Block, rho: f64) {
    let most = poles.iter().fold(0.0, |top: f64, p| top.max(p.value.abs()).max(rho * p.weight.abs()));
    let tolerance = 4.0 * f64::EPSILON * most;
    let mut kept = 0;
    for i in 0..poles.len() {
        let mut pole = poles[i];
        d[pole.column] = pole.value;
        if rho * pole.weight.abs() <= tolerance {
            continue;
        }
        if kept > 0 {
            let last = poles[kept - 1];
            let weight = last.weight.hypot(pole.weight);
            let (c, s) = (pole.weight / weight, last.weight / weight);
            if ((pole.value - last.value) * c * s).abs() <= tolerance {
                let (x, y) = (block.column(last.column), block.column(pole.column));
                for (x, y) in x.zip(y) {
                    (z[x], z[y]) = (c * z[x] - s * z[y], s * z[x] + c * z[y]);
                }
                d[last.column] = c * c * last.value + s * s * pole.value;
                pole.value = s * s * last.value + c * c * pole.value;
                pole.weight = weight;
                if pole.rows != last.rows {
                    pole.rows = NonzeroRows::Both;
                }
                kept -= 1;
            }
        }
        poles[kept] = pole;
        kept += 1;
    }
    poles.truncate(kept);
}

/// Writes the eigenvalues of the whole to `d`, and the distances of the poles from each to the columns of `u`.
fn roots(poles: &[Pole], rho: f64, d: &mut [f64], u: &mut [f64]) -> Result<()> {
    let k = poles.len();
    let values = try_alloc::all(poles.iter().map(|p| p.value))?;
    let squares = try_alloc::all(poles.iter().map(|p| p.weight * p.weight))?;
    let (to, distances) = (Shared::new(d.as_ptr()), Shared::new(u.as_ptr()));
    par::ranges(k, par::GRAIN / (8 * k) + 1, |range| {
        for i in range {
            // SAFETY: each root has a column and an element of its own.
            unsafe {
                let column = std::slice::from_raw_parts_mut(distances.get().add(i * k), k);
                *to.get().add(poles[i].column) = root(i, &values, &squares, rho, column);
            }
        }
    });
    Ok(())
}

/// The root of `1 / rho + sum(squares / (values - x))` above `values[i]`. Also writes the distances of the values from
/// it, which are exact up to rounding because they are computed from the nearer value.
fn root(i: usize, values: &[f64], squares: &[f64], rho: f64, distances: &mut [f64]) -> f64 {
    let k = values.len();
    let last = i + 1 == k;
    let width = if last { rho * squares.iter().sum::<f64>() } else { values[i + 1] - values[i] };
    let from = |distances: &mut [f64], origin: usize| {
        distances.iter_mut().zip(values).for_each(|(to, x)| *to = x - values[origin]);
    };
    // SAFETY: both lists have `k` elements.
    let sums = |distances: &[f64], range: Range<usize>, at: f64| unsafe {
        let start = range.start;
        sums_at(range.len(), distances.as_ptr().add(start), squares.as_ptr().add(start), at)
    };
    from(distances, i);
    let (mut origin, mut low, mut high, mut at) = (i, 0.0, width, 0.5 * width);
    if !last {
        let middle = 1.0 / rho + sums(distances, 0..i + 1, at)[0] + sums(distances, i + 1..k, at)[0];
        if middle < 0.0 {
            (origin, low, high, at) = (i + 1, -width, 0.0, -0.5 * width);
            from(distances, origin);
        }
    }
    for _ in 0..STEPS {
        let ([below, below_slope], [above, above_slope]) =
            (sums(distances, 0..i + 1, at), sums(distances, i + 1..k, at));
        let value = 1.0 / rho + below + above;
        if value.abs() <= f64::EPSILON * (1.0 / rho + above - below) {
            break;
        }
        if value < 0.0 {
            low = at
        } else {
            high = at
        }
        // Approximate the values on each side by one pole, which matches the sum and its derivative.
        let near = distances[i] - at;
        let step = if last {
            let rest = value - below_slope * near;
            near + below_slope * near * near / rest
        } else {
            let far = distances[i + 1] - at;
            let a = (near + far) * value - near * far * (below_slope + above_slope);
            let (b, c) = (near * far * value, value - below_slope * near - above_slope * far);
            let root = (a * a - 4.0 * b * c).max(0.0).sqrt();
            if a <= 0.0 { (a - root) / (2.0 * c) } else { 2.0 * b / (a + root) }
        };
        let next = at + step;
        let next = if next > low && next < high { next } else { 0.5 * (low + high) };
        if (next - at).abs() <= 0.5 * f64::EPSILON * at.abs() || next == low || next == high {
            at = next;
            break;
        }
        at = next;
    }
    distances.iter_mut().for_each(|x| *x -= at);
    values[origin] + at
}

simd_fn! {
    /// The sums of `squares / (distances - at)`, and their derivatives.
    ///
    /// # Safety
    /// Both have `n` elements.
    unsafe fn sums_at(n: usize, distances: *const f64, squares: *const f64, at: f64) -> [f64; 2] {
        let mut all = [[0.0; LANES]; 2];
        let whole = n - n % LANES;
        for i in (0..whole).step_by(LANES) {
            let x = distances.add(i).cast::<[f64; LANES]>().read_unaligned();
            let square = squares.add(i).cast::<[f64; LANES]>().read_unaligned();
            for l in 0..LANES {
                let gap = 1.0 / (x[l] - at);
                let term = square[l] * gap;
                all[0][l] += term;
                all[1][l] += term * gap;
            }
        }
        for i in whole..n {
            let gap = 1.0 / (*distances.add(i) - at);
            let term = *squares.add(i) * gap;
            all[0][i - whole] += term;
            all[1][i - whole] += term * gap;
        }
        all.map(|[a, b, c, d, e, f, g, h]| ((a + e) + (c + g)) + ((b + f) + (d + h)))
    }
}

/// Rotations the distances in `u` into vectors, whose elements come in the order `order`.
fn vectors(poles: &[Pole], order: &[usize], u: &mut [f64]) -> Result<()> {
    let k = poles.len();
    // The weights for which the rounded values would be exact.
    let mut weights = try_alloc::filled(1.0, k)?;
    for (i, distances) in u.chunks_exact(k).enumerate() {
        for j in 0..k {
            let gap = poles[j].value - poles[i].value;
            weights[j] *= if i == j { distances[j] } else { distances[j] / gap };
        }
    }
    for (weight, pole) in weights.iter_mut().zip(poles) {
        *weight = weight.abs().sqrt().copysign(pole.weight);
    }
    let mut vector = try_alloc::filled(0.0, k)?;
    for column in u.chunks_exact_mut(k) {
        for j in 0..k {
            vector[j] = weights[j] / column[j];
        }
        let scale = 1.0 / super::number::length(&vector);
        column.iter_mut().zip(order).for_each(|(to, &from)| *to = vector[from] * scale);
    }
    Ok(())
}

/// Multiplies these rows of the poles' vectors by a block of `u`. Only the vectors in `order` are nonzero there.
fn multiply_rows(
    z: &mut [f64],
    block: Block,
    rows: Range<usize>,
    poles: &[Pole],
    order: &[usize],
    u: &[f64],
    of_u: Block,
) -> Result<()> {
    let (m, k, inner) = (rows.len(), poles.len(), order.len());
    let (mut old, mut new) = (try_alloc::with_capacity(m * inner)?, scratch(m * k, 0.0)?);
    let place = |column: usize| block.part(rows.clone(), 0..block.columns).column(column);
    order.iter().for_each(|&i| old.extend_from_slice(&z[place(poles[i].column)]));
    add_product(
        &mut new,
        Block::new(m, k),
        1.0,
        Factor::of(&old, Block::new(m, inner)),
        Factor::of(u, of_u),
    )?;
    for (pole, column) in poles.iter().zip(new.chunks_exact(m)) {
        z[place(pole.column)].copy_from_slice(column);
    }
    Ok(())
}
