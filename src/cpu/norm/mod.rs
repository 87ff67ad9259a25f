//! Normalization of dense f32 and f64 tensors: means and variances, the standardized results, and the gradients. Layer
//! norm normalizes each row; batch norm normalizes each set of `[n, sets, run]` elements, which consists of `n` runs of
//! consecutive elements.

pub mod sets;

use crate::base::{Result, Strided, try_alloc};
use crate::cpu::element::{at, scratch};
use crate::cpu::float::{Float, by_float};
use crate::cpu::lanes::{self, LANES};
use crate::cpu::par::{self, Shared};
use crate::cpu::simd::simd_fn;

/// Shorter runs are treated as columns: many sets at once.
const SHORT: usize = 32;
/// Number of elements of a run that are summed in their own type before they are added in f64.
const BLOCK: usize = 4096;
/// Number of rows whose columns one task sums; fixed, so that results do not depend on the number of threads.
const ROWS: usize = 64;
/// Number of parts that rows are cut into for sums over them; fixed for the same reason.
const PARTS: usize = 32;

/// The sizes of `[n, sets, run]` elements.
#[derive(Clone, Copy, Debug)]
pub struct Sets {
    pub n: usize,
    pub sets: usize,
    pub run: usize,
}

impl Sets {
    fn numel(&self) -> usize {
        self.n * self.sets * self.run
    }

    /// Number of elements in a set.
    pub fn each(&self) -> usize {
        self.n * self.run
    }

    fn as_columns(&self) -> bool {
        self.n > 1 && self.run < SHORT
    }
}

/// Means (none, for RMS norm) and reciprocal standard deviations of the rows; weights and biases of the columns.
#[derive(Clone, Copy)]
pub struct Layer<'a> {
    pub mean: Option<Strided<'a>>,
    pub rstd: Strided<'a>,
    pub weight: Option<Strided<'a>>,
    pub bias: Option<Strided<'a>>,
}

/// The gradients to write, if they are wanted.
#[derive(Clone, Copy)]
pub struct LayerGrads<'a> {
    pub input: Option<Strided<'a>>,
    pub weight: Option<Strided<'a>>,
    pub bias: Option<Strided<'a>>,
}

/// Standardizes rows of `n` elements, and applies the weight and the bias. Also writes `with.mean` and `with.rstd`.
///
/// # Safety
/// The views are dense, live, of one dtype, and have matching sizes; the outputs overlap nothing.
pub unsafe fn layer(out: Strided, x: Strided, with: Layer, n: usize, eps: f64) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe { by_float!("layer_norm", x.dtype, T => layer_of::<T>(out, x, with, n, eps)) }
}

/// The gradients of [`layer`], given the means and factors that it wrote.
///
/// # Safety
/// See [`layer`].
pub unsafe fn layer_backward(to: LayerGrads, g: Strided, x: Strided, with: Layer, n: usize) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe { by_float!("layer_norm_backward", x.dtype, T => layer_backward_of::<T>(to, g, x, with, n)) }
}

/// The mean and the variance of each set.
///
/// # Safety
/// `x` is dense, live, and has the size of `sets`.
unsafe fn moments(x: Strided, sets: Sets) -> Result<Vec<[f64; 2]>> {
    // SAFETY: the caller's contract.
    unsafe { by_float!("batch_norm", x.dtype, T => moments_of::<T>(x, sets)) }
}

/// For each set, the sums of `g` and of `g * (x - mean)`.
///
/// # Safety
/// Both are dense, live, of one dtype and have the size of `sets`; `mean` has an element per set.
unsafe fn gradient_sums(g: Strided, x: Strided, mean: &[f64], sets: Sets) -> Result<Vec<[f64; 2]>> {
    // SAFETY: the caller's contract.
    unsafe { by_float!("batch_norm", x.dtype, T => gradient_sums_of::<T>(g, x, mean, sets)) }
}

/// `out = (x - mean) * scale + shift`; `by` holds `[mean, scale, shift]` for each set.
///
/// # Safety
/// Both are dense, live, of one dtype and have the size of `sets`; `by` has an element per set.
unsafe fn affine(out: Strided, x: Strided, by: &[[f64; 3]], sets: Sets) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe { by_float!("batch_norm", x.dtype, T => affine_of::<T>(out, x, by, sets)) }
}

/// Normalizes contiguous sets by their own moments, and returns those. `by(set, part, moments)` gives the mean, scale
/// and shift of each of a set's `parts`. A set stays in the cache from its sum to its result.
///
/// # Safety
/// Both are dense, live, of one dtype and have the size of `sets`.
unsafe fn normalize_by_own(
    out: Strided,
    x: Strided,
    sets: Sets,
    parts: usize,
    by: impl Fn(usize, usize, [f64; 2]) -> [f64; 3] + Sync,
) -> Result<Vec<[f64; 2]>> {
    // SAFETY: the caller's contract.
    unsafe { by_float!("batch_norm", x.dtype, T => normalize_by_own_of::<T>(out, x, sets, parts, by)) }
}

/// `out = g * scale + (x - mean) * slope + shift`; `by` holds `[mean, scale, slope, shift]` for each set.
///
/// # Safety
/// All are dense, live, of one dtype and have the size of `sets`; `by` has an element per set.
unsafe fn affine_backward(out: Strided, g: Strided, x: Strided, by: &[[f64; 4]], sets: Sets) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe { by_float!("batch_norm", x.dtype, T => affine_backward_of::<T>(out, g, x, by, sets)) }
}

/// The sum of `term(i)` over a block.
#[inline(always)]
fn block_total<T: Float>(block: std::ops::Range<usize>, term: &impl Fn(usize) -> T) -> f64 {
    let mut lanes = [T::ZERO; LANES];
    lanes::add_terms(&mut lanes, block, term);
    lanes::add_wide(&lanes)
}

/// The sum of `term(i)` over `0..n`. It is a plain loop, because the closures of iterators may be compiled apart, without
/// the instruction set of the loop.
#[inline(always)]
fn total<T: Float>(n: usize, term: impl Fn(usize) -> T) -> f64 {
    let mut sum = 0.0;
    for first in (0..n).step_by(BLOCK) {
        sum += block_total(first..n.min(first + BLOCK), &term);
    }
    sum
}

/// The sums of two terms over a block.
#[inline(always)]
fn block_totals<T: Float>(block: std::ops::Range<usize>, term: &impl Fn(usize) -> [T; 2]) -> [f64; 2] {
    let whole = block.end - block.len() % LANES;
    let (mut a, mut b) = ([T::ZERO; LANES], [T::ZERO; LANES]);
    for i in (block.start..whole).step_by(LANES) {
        for j in 0..LANES {
            let [x, y] = term(i + j);
            a[j] += x;
            b[j] += y;
        }
    }
    for i in whole..block.end {
        let [x, y] = term(i);
        a[(i - whole) % LANES] += x;
        b[(i - whole) % LANES] += y;
    }
    [lanes::add_wide(&a), lanes::add_wide(&b)]
}

/// The sums of two terms over `0..n`.
#[inline(always)]
fn totals<T: Float>(n: usize, term: impl Fn(usize) -> [T; 2]) -> [f64; 2] {
    let mut sums = [0.0; 2];
    for first in (0..n).step_by(BLOCK) {
        let [a, b] = block_totals(first..n.min(first + BLOCK), &term);
        sums[0] += a;
        sums[1] += b;
    }
    sums
}

simd_fn! {
    /// Normalizes a row; returns its mean and its reciprocal standard deviation.
    unsafe fn layer_row<T: Float>(
        n: usize, out: *mut T, x: *const T, weight: *const T, bias: *const T, centred: bool, eps: f64,
    ) -> [T; 2] {
        let mean = if centred { T::from_f64(total(n, |i| *x.add(i)) / n as f64) } else { T::ZERO };
        let squares = total(n, |i| {
            let d = *x.add(i) - mean;
            d * d
        });
        let scale = T::from_f64(1.0 / (squares / n as f64 + eps).sqrt());
        if weight.is_null() {
            for i in 0..n {
                *out.add(i) = (*x.add(i) - mean) * scale;
            }
        } else if bias.is_null() {
            for i in 0..n {
                *out.add(i) = (*x.add(i) - mean) * scale * *weight.add(i);
            }
        } else {
            for i in 0..n {
                *out.add(i) = ((*x.add(i) - mean) * scale).mul_add(*weight.add(i), *bias.add(i));
            }
        }
        if !bias.is_null() && weight.is_null() {
            for i in 0..n {
                *out.add(i) += *bias.add(i);
            }
        }
        [mean, scale]
    }
}

simd_fn! {
    /// The gradient of a row.
    unsafe fn layer_row_backward<T: Float>(
        n: usize, out: *mut T, g: *const T, x: *const T, weight: *const T, mean: T, scale: T, centred: bool,
    ) {
        let one = weight.is_null();
        let [plain, along] = if one {
            totals(n, |i| [*g.add(i), *g.add(i) * (*x.add(i) - mean)])
        } else {
            totals(n, |i| {
                let weighted = *g.add(i) * *weight.add(i);
                [weighted, weighted * (*x.add(i) - mean)]
            })
        };
        let wide = scale.to_f64();
        let slope = T::from_f64(along * wide * wide / n as f64);
        let shift = if centred { T::from_f64(plain / n as f64) } else { T::ZERO };
        if one {
            for i in 0..n {
                *out.add(i) = (mean - *x.add(i)).mul_add(slope, *g.add(i) - shift) * scale;
            }
        } else {
            for i in 0..n {
                let weighted = (*g.add(i)).mul_add(*weight.add(i), -shift);
                *out.add(i) = (mean - *x.add(i)).mul_add(slope, weighted) * scale;
            }
        }
    }
}

simd_fn! {
    /// Adds the contributions of a row to the gradients of weight and bias.
    unsafe fn layer_row_sums<T: Float>(
        n: usize, weight: *mut T, bias: *mut T, g: *const T, x: *const T, mean: T, scale: T,
    ) {
        for i in 0..n {
            *weight.add(i) += *g.add(i) * ((*x.add(i) - mean) * scale);
        }
        for i in 0..n {
            *bias.add(i) += *g.add(i);
        }
    }
}

simd_fn! {
    unsafe fn add_to<T: Float>(n: usize, to: *mut f64, from: *const T) {
        for i in 0..n {
            *to.add(i) += (*from.add(i)).to_f64();
        }
    }
}

fn start<T: Float>(view: Option<Strided>) -> Shared<T> {
    Shared::new(view.map_or(std::ptr::null(), |v| v.ptr.cast::<T>().cast_const()))
}

unsafe fn layer_of<T: Float>(out: Strided, x: Strided, with: Layer, n: usize, eps: f64) -> Result<()> {
    let rows = x.numel() / n.max(1);
    let (weight, bias) = (start(with.weight), start(with.bias));
    let (mean, rstd) = (start::<T>(with.mean), start::<T>(Some(with.rstd)));
    par::ranges(rows, (par::GRAIN / n.max(1)).max(1), |range| {
        for row in range {
            // SAFETY: the row is inside the views, and belongs to this task alone.
            unsafe {
                let (out, x) = (at(&out, row * n), at(&x, row * n));
                let centred = with.mean.is_some();
                let [m, scale] = layer_row(n, out, x, weight.get(), bias.get(), centred, eps);
                if centred {
                    *mean.get().add(row) = m;
                }
                *rstd.get().add(row) = scale;
            }
        }
    });
    Ok(())
}

unsafe fn layer_backward_of<T: Float>(
    to: LayerGrads,
    g: Strided,
    x: Strided,
    with: Layer,
    n: usize,
) -> Result<()> {
    let rows = x.numel() / n.max(1);
    let part = rows.div_ceil(PARTS).max((par::GRAIN / 4 / n.max(1)).max(1));
    let parts = rows.div_ceil(part.max(1));
    let sums = to.weight.is_some() || to.bias.is_some();
    let partial = scratch(if sums { parts * 2 * n } else { 0 }, T::ZERO)?;
    let partial_at = Shared::new(partial.as_ptr());
    let (weight, mean, rstd) = (start::<T>(with.weight), start::<T>(with.mean), start::<T>(Some(with.rstd)));
    let input = start::<T>(to.input);
    par::ranges(parts, 1, |range| {
        for which in range {
            for row in which * part..((which + 1) * part).min(rows) {
                // SAFETY: the rows and sums are inside the views, and belong to this task alone.
                unsafe {
                    let (g, x) = (at(&g, row * n), at(&x, row * n));
                    let centred = with.mean.is_some();
                    let m = if centred { *mean.get().add(row) } else { T::ZERO };
                    let scale = *rstd.get().add(row);
                    if to.input.is_some() {
                        let out = input.get().add(row * n);
                        layer_row_backward(n, out, g, x, weight.get(), m, scale, centred);
                    }
                    if sums {
                        let to = partial_at.get().add(which * 2 * n);
                        layer_row_sums(n, to, to.add(n), g, x, m, scale);
                    }
                }
            }
        }
    });
    for (half, to) in [to.weight, to.bias].into_iter().enumerate() {
        let Some(to) = to else { continue };
        let mut all = scratch(n, 0.0f64)?;
        for at in 0..parts {
            // SAFETY: the part's sums.
            unsafe { add_to(n, all.as_mut_ptr(), partial.as_ptr().add((2 * at + half) * n)) };
        }
        for (i, sum) in all.into_iter().enumerate() {
            // SAFETY: the view has an element per column.
            unsafe { *to.ptr.cast::<T>().add(i) = T::from_f64(sum) };
        }
    }
    Ok(())
}

simd_fn! {
    unsafe fn run_sum<T: Float>(n: usize, x: *const T) -> f64 {
        total(n, |i| *x.add(i))
    }
}

simd_fn! {
    unsafe fn run_square_sum<T: Float>(n: usize, x: *const T, mean: T) -> f64 {
        total(n, |i| {
            let d = *x.add(i) - mean;
            d * d
        })
    }
}

simd_fn! {
    unsafe fn run_gradient_sums<T: Float>(n: usize, g: *const T, x: *const T, mean: T) -> [f64; 2] {
        totals(n, |i| [*g.add(i), *g.add(i) * (*x.add(i) - mean)])
    }
}

simd_fn! {
    unsafe fn run_affine<T: Float>(n: usize, out: *mut T, x: *const T, mean: T, scale: T, shift: T) {
        for i in 0..n {
            *out.add(i) = (*x.add(i) - mean).mul_add(scale, shift);
        }
    }
}

simd_fn! {
    unsafe fn run_affine_backward<T: Float>(
        n: usize, out: *mut T, g: *const T, x: *const T, mean: T, scale: T, slope: T, shift: T,
    ) {
        for i in 0..n {
            let rest = (*x.add(i) - mean).mul_add(slope, shift);
            *out.add(i) = (*g.add(i)).mul_add(scale, rest);
        }
    }
}

simd_fn! {
    unsafe fn columns_sum<T: Float>(w: usize, sums: *mut f64, x: *const T) {
        for i in 0..w {
            *sums.add(i) += (*x.add(i)).to_f64();
        }
    }
}

simd_fn! {
    unsafe fn columns_square_sum<T: Float>(w: usize, sums: *mut f64, x: *const T, mean: *const T) {
        for i in 0..w {
            let d = *x.add(i) - *mean.add(i);
            *sums.add(i) += (d * d).to_f64();
        }
    }
}

simd_fn! {
    unsafe fn columns_gradient_sums<T: Float>(w: usize, sums: *mut f64, g: *const T, x: *const T, mean: *const T) {
        for i in 0..w {
            *sums.add(i) += (*g.add(i)).to_f64();
            *sums.add(w + i) += (*g.add(i) * (*x.add(i) - *mean.add(i))).to_f64();
        }
    }
}

simd_fn! {
    /// One row of columns; `by` holds rows of means, of scales and of shifts.
    unsafe fn columns_affine<T: Float>(w: usize, out: *mut T, x: *const T, by: *const T) {
        for i in 0..w {
            *out.add(i) = (*x.add(i) - *by.add(i)).mul_add(*by.add(w + i), *by.add(2 * w + i));
        }
    }
}

simd_fn! {
    unsafe fn columns_affine_backward<T: Float>(w: usize, out: *mut T, g: *const T, x: *const T, by: *const T) {
        for i in 0..w {
            let rest = (*x.add(i) - *by.add(i)).mul_add(*by.add(2 * w + i), *by.add(3 * w + i));
            *out.add(i) = (*g.add(i)).mul_add(*by.add(w + i), rest);
        }
    }
}

/// Sums over the rows of columns, `lines` sums for each column, then added up for each set.
fn column_sums(sets: Sets, lines: usize, add: impl Fn(usize, *mut f64) + Sync) -> Result<Vec<Vec<f64>>> {
    let w = sets.sets * sets.run;
    let parts = sets.n.div_ceil(ROWS);
    let made = par::map(parts, (par::GRAIN / (ROWS * w).max(1)).max(1), |part| {
        let mut sums = scratch(lines * w, 0.0f64)?;
        for row in part * ROWS..((part + 1) * ROWS).min(sets.n) {
            add(row * w, sums.as_mut_ptr());
        }
        Result::Ok(sums)
    })?;
    let mut all = scratch(lines * w, 0.0f64)?;
    for part in made {
        all.iter_mut().zip(part?).for_each(|(to, sum)| *to += sum);
    }
    let set = |line: &[f64]| try_alloc::all(line.chunks_exact(sets.run).map(|run| run.iter().sum()));
    try_alloc::collect(all.chunks_exact(w.max(1)).map(set))
}

/// Expands numbers of sets to rows with an element per column.
fn expand_to_columns<T: Float, const N: usize>(by: &[[f64; N]], run: usize) -> Result<Vec<T>> {
    let w = by.len() * run;
    let mut lines = scratch(N * w, T::ZERO)?;
    for (set, numbers) in by.iter().enumerate() {
        for (line, &number) in numbers.iter().enumerate() {
            lines[line * w + set * run..][..run].fill(T::from_f64(number));
        }
    }
    Ok(lines)
}

/// The sums of a term over the runs of each set.
fn set_sums<const N: usize>(
    sets: Sets,
    term: impl Fn(usize, usize) -> [f64; N] + Sync,
) -> Result<Vec<[f64; N]>> {
    let grain = (par::GRAIN / sets.each().max(1)).max(1);
    par::map(sets.sets, grain, |set| {
        let mut sums = [0.0; N];
        for i in 0..sets.n {
            let more = term(set, (i * sets.sets + set) * sets.run);
            (0..N).for_each(|k| sums[k] += more[k]);
        }
        sums
    })
}

unsafe fn moments_of<T: Float>(x: Strided, sets: Sets) -> Result<Vec<[f64; 2]>> {
    let count = sets.each() as f64;
    if sets.as_columns() {
        let w = sets.sets * sets.run;
        // SAFETY: rows have `w` elements, here and below.
        let sums = column_sums(sets, 1, |row, to| unsafe { columns_sum::<T>(w, to, at(&x, row)) })?;
        let mean: Vec<[f64; 1]> = try_alloc::all(sums[0].iter().map(|sum| [sum / count]))?;
        let wide = expand_to_columns::<T, _>(&mean, sets.run)?;
        // SAFETY: rows have `w` elements, and so has `wide`.
        let squares =
            column_sums(sets, 1, |row, to| unsafe { columns_square_sum(w, to, at(&x, row), wide.as_ptr()) })?;
        return try_alloc::all(mean.iter().zip(&squares[0]).map(|(mean, sum)| [mean[0], sum / count]));
    }
    // SAFETY: runs are inside the view.
    let sums = set_sums(sets, |_, offset| unsafe { [run_sum::<T>(sets.run, at(&x, offset))] })?;
    // SAFETY: runs are inside the view.
    let squares = set_sums(sets, |set, offset| unsafe {
        [run_square_sum(sets.run, at(&x, offset), T::from_f64(sums[set][0] / count))]
    })?;
    try_alloc::all(sums.iter().zip(&squares).map(|(sum, squares)| [sum[0] / count, squares[0] / count]))
}

unsafe fn gradient_sums_of<T: Float>(
    g: Strided,
    x: Strided,
    mean: &[f64],
    sets: Sets,
) -> Result<Vec<[f64; 2]>> {
    if sets.as_columns() {
        let mean: Vec<[f64; 1]> = try_alloc::all(mean.iter().map(|&mean| [mean]))?;
        let (w, wide) = (sets.sets * sets.run, expand_to_columns::<T, _>(&mean, sets.run)?);
        // SAFETY: rows have `w` elements.
        let sums = column_sums(sets, 2, |row, to| unsafe {
            columns_gradient_sums(w, to, at(&g, row), at(&x, row), wide.as_ptr())
        })?;
        return try_alloc::all(sums[0].iter().zip(&sums[1]).map(|(a, b)| [*a, *b]));
    }
    // SAFETY: runs are inside the views.
    set_sums(sets, |set, offset| unsafe {
        run_gradient_sums(sets.run, at(&g, offset), at(&x, offset), T::from_f64(mean[set]))
    })
}

/// Calls `run` with the set and the offset of each run, or `row` with the offset of each row of columns.
fn each(sets: Sets, run: impl Fn(usize, usize) + Sync, row: impl Fn(usize) + Sync) {
    if sets.as_columns() {
        let w = sets.sets * sets.run;
        par::ranges(sets.n, (par::GRAIN / w.max(1)).max(1), |range| range.for_each(|i| row(i * w)));
    } else {
        let grain = (par::GRAIN / sets.run.max(1)).max(1);
        par::ranges(sets.n * sets.sets, grain, |range| {
            range.for_each(|i| run(i % sets.sets, i * sets.run));
        });
    }
}

/// Rounds the numbers such that the result loses least. If the mean is small, the shift includes it, which
/// saves rounding the difference; if not, the shift corrects the rounding of the mean.
fn round<T: Float>(&[mean, scale, shift]: &[f64; 3]) -> [f64; 3] {
    let moved = mean * T::from_f64(scale).to_f64();
    if moved.abs() < 0.5 {
        return [0.0, scale, shift - moved];
    }
    let near = T::from_f64(mean).to_f64();
    [near, scale, if near == mean { shift } else { shift + (near - mean) * scale }]
}

unsafe fn normalize_by_own_of<T: Float>(
    out: Strided,
    x: Strided,
    sets: Sets,
    parts: usize,
    by: impl Fn(usize, usize, [f64; 2]) -> [f64; 3] + Sync,
) -> Result<Vec<[f64; 2]>> {
    let (count, run) = (sets.run as f64, sets.run / parts.max(1));
    par::map(sets.sets, (par::GRAIN / 2 / sets.run.max(1)).max(1), |set| {
        let first = set * sets.run;
        // SAFETY: the set is inside the views, and belongs to this task alone.
        unsafe {
            let mean = run_sum::<T>(sets.run, at(&x, first)) / count;
            let var = run_square_sum(sets.run, at(&x, first), T::from_f64(mean)) / count;
            for part in 0..parts {
                let by = round::<T>(&by(set, part, [mean, var]));
                let ([mean, scale, shift], start) =
                    (by.map(|number| T::from_f64(number)), first + part * run);
                run_affine(run, at(&out, start), at(&x, start), mean, scale, shift);
            }
            [mean, var]
        }
    })
}

unsafe fn affine_of<T: Float>(out: Strided, x: Strided, by: &[[f64; 3]], sets: Sets) -> Result<()> {
    debug_assert_eq!(sets.numel(), x.numel());
    let w = sets.sets * sets.run;
    let by: Vec<[f64; 3]> = try_alloc::all(by.iter().map(round::<T>))?;
    let lines = if sets.as_columns() { expand_to_columns::<T, _>(&by, sets.run)? } else { Vec::new() };
    each(
        sets,
        // SAFETY: runs, or rows, are inside the views, and belong to one task each.
        |set, offset| unsafe {
            let [mean, scale, shift] = by[set].map(|number| T::from_f64(number));
            run_affine(sets.run, at(&out, offset), at(&x, offset), mean, scale, shift);
        },
        // SAFETY: as above.
        |row| unsafe { columns_affine(w, at(&out, row), at(&x, row), lines.as_ptr()) },
    );
    Ok(())
}

unsafe fn affine_backward_of<T: Float>(
    out: Strided,
    g: Strided,
    x: Strided,
    by: &[[f64; 4]],
    sets: Sets,
) -> Result<()> {
    debug_assert_eq!(sets.numel(), x.numel());
    let w = sets.sets * sets.run;
    let lines = if sets.as_columns() { expand_to_columns::<T, _>(by, sets.run)? } else { Vec::new() };
    each(
        sets,
        // SAFETY: as above.
        |set, offset| unsafe {
            let [mean, scale, slope, shift] = by[set].map(|number| T::from_f64(number));
            let (out, g, x) = (at(&out, offset), at(&g, offset), at(&x, offset));
            run_affine_backward(sets.run, out, g, x, mean, scale, slope, shift);
        },
        // SAFETY: as above.
        |row| unsafe {
            columns_affine_backward(w, at(&out, row), at(&g, row), at(&x, row), lines.as_ptr());
        },
    );
    Ok(())
}
