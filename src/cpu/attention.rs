//! Attention in tiles, as in FlashAttention: the scores of a block of queries with a block of keys, never all of them.
//! The backward recomputes them from the log-sum-exp of each row.

use super::element::{at, scratch};
use super::float::{Float, by_float};
use super::lanes::LANES;
use super::matmul::{Product, product};
use super::par;
use super::simd::simd_fn;
use crate::base::{Result, Strided};

/// Queries and keys of a tile.
const QUERIES: usize = 64;
const KEYS: usize = 256;

/// `[batch, heads, length, width]` tensors whose last dimension is dense, and a mask to add, expanded to `[batch,
/// heads, queries, keys]`.
#[derive(Clone, Copy)]
pub struct Operands<'a> {
    pub query: Strided<'a>,
    pub key: Strided<'a>,
    pub value: Strided<'a>,
    pub mask: Option<Strided<'a>>,
    pub causal: bool,
    pub scale: f64,
}

/// The gradients to write, laid out like the operands.
#[derive(Clone, Copy)]
pub struct Grads<'a> {
    pub query: Strided<'a>,
    pub key: Strided<'a>,
    pub value: Strided<'a>,
}

/// The sizes of one head.
#[derive(Clone, Copy)]
struct Head {
    queries: usize,
    keys: usize,
    width: usize,
}

impl Operands<'_> {
    fn head(&self) -> Head {
        Head { queries: self.query.shape[2], keys: self.key.shape[2], width: self.query.shape[3] }
    }

    fn heads(&self) -> usize {
        self.query.shape[0] * self.query.shape[1]
    }

    /// The offset of a head's matrix.
    fn start(&self, of: &Strided, head: usize) -> usize {
        let per = self.query.shape[1];
        head / per * of.strides[0] + head % per * of.strides[1]
    }

    /// Number of keys that the queries before `last` see.
    fn seen(&self, last: usize) -> usize {
        let keys = self.key.shape[2];
        if self.causal { keys.min(last) } else { keys }
    }
}

/// `out = softmax(scale * query @ keyᵀ + mask) @ value`; `sums` becomes the log-sum-exp of each row, `[batch, heads,
/// queries]`. The result is zero for queries that see no key.
///
/// # Safety
/// The views are live, of one float dtype, and have matching shapes; `sums` is dense, and the outputs overlap nothing.
pub unsafe fn attention(out: Strided, sums: Strided, of: Operands) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe { by_float!("flash_attention", of.query.dtype, T => attention_of::<T>(out, sums, of)) }
}

/// The gradients of [`attention`], from its results.
///
/// # Safety
/// See [`attention`]; the gradients have their operands' shapes and are dense in their last dimension.
pub unsafe fn attention_backward(
    to: Grads,
    g: Strided,
    out: Strided,
    sums: Strided,
    of: Operands,
) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe {
        by_float!("flash_attention_backward", of.query.dtype, T => attention_backward_of::<T>(to, g, out, sums, of))
    }
}

simd_fn! {
    /// The maximum of a row. It ignores NaN, which then appears in the sums.
    unsafe fn largest<T: Float>(n: usize, x: *const T) -> T {
        let mut most = T::NEG_INFINITY;
        let mut lanes = [most; LANES];
        let whole = n - n % LANES;
        for i in (0..whole).step_by(LANES) {
            for j in 0..LANES {
                let v = *x.add(i + j);
                lanes[j] = if v > lanes[j] { v } else { lanes[j] };
            }
        }
        for i in whole..n {
            most = if *x.add(i) > most { *x.add(i) } else { most };
        }
        for j in 0..LANES {
            most = if lanes[j] > most { lanes[j] } else { most };
        }
        most
    }
}

simd_fn! {
    /// Replaces a row by `(x * by - shift).exp()`, and returns the sum.
    unsafe fn exponentials<T: Float>(n: usize, x: *mut T, by: T, shift: T) -> T {
        let mut lanes = [T::ZERO; LANES];
        let whole = n - n % LANES;
        for i in (0..whole).step_by(LANES) {
            for j in 0..LANES {
                let v = (*x.add(i + j)).mul_add(by, -shift).exp();
                *x.add(i + j) = v;
                lanes[j] += v;
            }
        }
        let mut sum = T::ZERO;
        for i in whole..n {
            let v = (*x.add(i)).mul_add(by, -shift).exp();
            *x.add(i) = v;
            sum += v;
        }
        for j in 0..LANES {
            sum += lanes[j];
        }
        sum
    }
}

simd_fn! {
    /// `x = x * by + y`; the elements of `y` are `step` apart.
    unsafe fn add_row<T: Float>(n: usize, x: *mut T, by: T, y: *const T, step: usize) {
        if step == 1 {
            for i in 0..n {
                *x.add(i) = (*x.add(i)).mul_add(by, *y.add(i));
            }
        } else {
            for i in 0..n {
                *x.add(i) = (*x.add(i)).mul_add(by, *y.add(i * step));
            }
        }
    }
}

simd_fn! {
    unsafe fn divide_row<T: Float>(n: usize, to: *mut T, from: *const T, by: T) {
        for i in 0..n {
            *to.add(i) = *from.add(i) / by;
        }
    }
}

simd_fn! {
    unsafe fn scale_row<T: Float>(n: usize, x: *mut T, by: T) {
        for i in 0..n {
            *x.add(i) *= by;
        }
    }
}

simd_fn! {
    unsafe fn dot<T: Float>(n: usize, x: *const T, y: *const T) -> T {
        let mut lanes = [T::ZERO; LANES];
        let whole = n - n % LANES;
        for i in (0..whole).step_by(LANES) {
            for j in 0..LANES {
                lanes[j] += *x.add(i + j) * *y.add(i + j);
            }
        }
        let mut sum = T::ZERO;
        for i in whole..n {
            sum += *x.add(i) * *y.add(i);
        }
        for j in 0..LANES {
            sum += lanes[j];
        }
        sum
    }
}

simd_fn! {
    /// `x = p * (x - less)`: the gradient of a row of scores.
    unsafe fn score_row<T: Float>(n: usize, x: *mut T, p: *const T, less: T) {
        for i in 0..n {
            *x.add(i) = *p.add(i) * (*x.add(i) - less);
        }
    }
}

/// A tile of scores: `rows` queries from `first_query` on, with `columns` keys from `first_key` on.
#[derive(Clone, Copy)]
struct Tile {
    head: usize,
    first_query: usize,
    rows: usize,
    first_key: usize,
    columns: usize,
}

impl Tile {
    /// Writes the scores in rows of length `columns`; those of keys that a query does not see are minus
    /// infinity. Returns the factor that is still to be applied: together with the shift of the exponential
    /// it costs no rounding.
    unsafe fn scores<T: Float>(&self, of: &Operands, scores: *mut T) -> Result<T> {
        let (q, k) = (of.query, of.key);
        let p = Product {
            sizes: [self.rows, self.columns, q.shape[3]],
            out: [self.columns, 1],
            a: [q.strides[2], 1],
            b: [1, k.strides[2]],
            threads: false,
        };
        let query = at(&q, of.start(&q, self.head) + self.first_query * q.strides[2]);
        let key = at(&k, of.start(&k, self.head) + self.first_key * k.strides[2]);
        // A factor up to 1 keeps the order, and makes no score infinite, so it can wait.
        let scale = T::from_f64(of.scale);
        let (before, by) = if scale > T::ZERO && scale <= T::ONE { (T::ONE, scale) } else { (scale, T::ONE) };
        // SAFETY: rows and columns are inside the operands, and the caller's buffer holds a tile.
        unsafe {
            product::<T>(p, scores, query, key, before, T::ZERO)?;
            if let Some(mask) = of.mask {
                let [row_step, step] = [mask.strides[2], mask.strides[3]];
                let first = of.start(&mask, self.head) + self.first_query * row_step;
                for row in 0..self.rows {
                    let from = at(&mask, first + row * row_step + self.first_key * step);
                    add_row(self.columns, scores.add(row * self.columns), by, from, step);
                }
            }
            if of.causal {
                for row in 0..self.rows {
                    let seen = (self.first_query + row + 1).saturating_sub(self.first_key);
                    for i in seen..self.columns {
                        *scores.add(row * self.columns + i) = T::NEG_INFINITY;
                    }
                }
            }
        }
        Ok(if of.mask.is_some() { T::ONE } else { by })
    }
}

unsafe fn attention_of<T: Float>(out: Strided, sums: Strided, of: Operands) -> Result<()> {
    let Head { queries, keys, width } = of.head();
    let blocks = queries.div_ceil(QUERIES);
    let work = QUERIES.min(queries) * keys * width;
    let grain = (par::GRAIN * 4 / work.max(1)).max(1);
    par::try_ranges(of.heads() * blocks, grain, |range| {
        let mut scores = scratch(QUERIES * KEYS.min(keys), T::ZERO)?;
        let mut made = scratch(QUERIES * width, T::ZERO)?;
        for block in range {
            let (head, first_query) = (block / blocks, block % blocks * QUERIES);
            let rows = QUERIES.min(queries - first_query);
            let (mut top, mut total) = ([T::NEG_INFINITY; QUERIES], [T::ZERO; QUERIES]);
            made.fill(T::ZERO);
            for first_key in (0..of.seen(first_query + rows)).step_by(KEYS) {
                let columns = KEYS.min(keys - first_key);
                let tile = Tile { head, first_query, rows, first_key, columns };
                // SAFETY: the buffers have room for a tile; rows and columns are inside the operands.
                unsafe {
                    let by = tile.scores(&of, scores.as_mut_ptr())?;
                    for row in 0..rows {
                        let line = scores.as_mut_ptr().add(row * columns);
                        let most = largest(columns, line) * by;
                        let most = if most > top[row] { most } else { top[row] };
                        // For rows that have seen no key yet: minus infinity minus itself would be NaN.
                        let shift = if most == T::NEG_INFINITY { T::ZERO } else { most };
                        let sum = exponentials(columns, line, by, shift);
                        let kept =
                            if top[row] == T::NEG_INFINITY { T::ZERO } else { (top[row] - most).std_exp() };
                        if kept != T::ONE {
                            scale_row(width, made.as_mut_ptr().add(row * width), kept);
                        }
                        total[row] = total[row] * kept + sum;
                        top[row] = most;
                    }
                    let v = of.value;
                    let value = at(&v, of.start(&v, head) + first_key * v.strides[2]);
                    let p = Product {
                        sizes: [rows, width, columns],
                        out: [width, 1],
                        a: [columns, 1],
                        b: [v.strides[2], 1],
                        threads: false,
                    };
                    product::<T>(p, made.as_mut_ptr(), scores.as_ptr(), value, T::ONE, T::ONE)?;
                }
            }
            for row in 0..rows {
                let none = total[row] == T::ZERO;
                let by = if none { T::ONE } else { total[row] };
                // SAFETY: this task alone writes this query's result.
                unsafe {
                    let to = at(&out, of.start(&out, head) + (first_query + row) * out.strides[2]);
                    divide_row(width, to, made.as_ptr().add(row * width), by);
                    let sum = if none { T::NEG_INFINITY } else { top[row] + total[row].std_ln() };
                    *at(&sums, head * queries + first_query + row) = sum;
                }
            }
        }
        Ok(())
    })
}

unsafe fn attention_backward_of<T: Float>(
    to: Grads,
    g: Strided,
    out: Strided,
    sums: Strided,
    of: Operands,
) -> Result<()> {
    let Head { queries, keys, width } = of.head();
    let grain = (par::GRAIN * 4 / (queries * keys * width).max(1)).max(1);
    par::try_ranges(of.heads(), grain, |range| {
        let mut p = scratch(QUERIES * KEYS.min(keys), T::ZERO)?;
        let mut slopes = scratch(QUERIES * KEYS.min(keys), T::ZERO)?;
        let mut less = scratch(queries, T::ZERO)?;
        for head in range {
            let line = |of_: &Strided, row: usize| at(of_, of.start(of_, head) + row * of_.strides[2]);
            // SAFETY: the rows belong to this head, here and below; this task alone writes its gradients.
            unsafe {
                for row in 0..queries {
                    less[row] = dot(width, line(&g, row), line(&out, row));
                    std::slice::from_raw_parts_mut(line(&to.query, row), width).fill(T::ZERO);
                }
                for row in 0..keys {
                    std::slice::from_raw_parts_mut(line(&to.key, row), width).fill(T::ZERO);
                    std::slice::from_raw_parts_mut(line(&to.value, row), width).fill(T::ZERO);
                }
            }
            for first_query in (0..queries).step_by(QUERIES) {
                let rows = QUERIES.min(queries - first_query);
                for first_key in (0..of.seen(first_query + rows)).step_by(KEYS) {
                    let columns = KEYS.min(keys - first_key);
                    let tile = Tile { head, first_query, rows, first_key, columns };
                    let sizes = |sizes, out, a, b| Product { sizes, out, a, b, threads: false };
                    // SAFETY: as above; the buffers have room for a tile.
                    unsafe {
                        let by = tile.scores(&of, p.as_mut_ptr())?;
                        for row in 0..rows {
                            let sum = *at(&sums, head * queries + first_query + row);
                            // A query that sees no key has weights of zero.
                            let shift = if sum == T::NEG_INFINITY { T::ZERO } else { sum };
                            exponentials(columns, p.as_mut_ptr().add(row * columns), by, shift);
                        }
                        let (grad, query) = (line(&g, first_query), line(&of.query, first_query));
                        let (key, value) = (line(&of.key, first_key), line(&of.value, first_key));
                        let of_value = sizes(
                            [columns, width, rows],
                            [to.value.strides[2], 1],
                            [1, columns],
                            [g.strides[2], 1],
                        );
                        product::<T>(of_value, line(&to.value, first_key), p.as_ptr(), grad, T::ONE, T::ONE)?;
                        let of_p = sizes(
                            [rows, columns, width],
                            [columns, 1],
                            [g.strides[2], 1],
                            [1, of.value.strides[2]],
                        );
                        product::<T>(of_p, slopes.as_mut_ptr(), grad, value, T::ONE, T::ZERO)?;
                        for row in 0..rows {
                            let at = row * columns;
                            let (slope, p) = (slopes.as_mut_ptr().add(at), p.as_ptr().add(at));
                            score_row(columns, slope, p, less[first_query + row]);
                        }
                        let scale = T::from_f64(of.scale);
                        let of_key = sizes(
                            [columns, width, rows],
                            [to.key.strides[2], 1],
                            [1, columns],
                            [of.query.strides[2], 1],
                        );
                        product::<T>(
                            of_key,
                            line(&to.key, first_key),
                            slopes.as_ptr(),
                            query,
                            scale,
                            T::ONE,
                        )?;
                        let of_query = sizes(
                            [rows, width, columns],
                            [to.query.strides[2], 1],
                            [columns, 1],
                            [of.key.strides[2], 1],
                        );
                        product::<T>(
                            of_query,
                            line(&to.query, first_query),
                            slopes.as_ptr(),
                            key,
                            scale,
                            T::ONE,
                        )?;
                    }
                }
            }
        }
        Ok(())
    })
}
