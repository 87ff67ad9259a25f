//! Attention in tiles, as in FlashAttention: the scores of a block of queries with a block of keys, never all of them.
//! The backward recomputes them from the log-sum-exp of each row.

use super::element::scratch;
use super::matmul::{self, Product};
use super::par;
use super::simd::simd_fn;
use crate::base::{DType, Fault, Result, Strided};

/// Queries and keys of a tile.
const QUERIES: usize = 64;
const KEYS: usize = 256;
const LANES: usize = 32;

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
    unsafe {
        match of.query.dtype {
            DType::F32 => single::attention(out, sums, of),
            DType::F64 => double::attention(out, sums, of),
            dtype => Err(Fault::NoKernel { op: "flash_attention", dtype }.into()),
        }
    }
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
        match of.query.dtype {
            DType::F32 => single::attention_backward(to, g, out, sums, of),
            DType::F64 => double::attention_backward(to, g, out, sums, of),
            dtype => Err(Fault::NoKernel { op: "flash_attention_backward", dtype }.into()),
        }
    }
}

macro_rules! kernels {
    ($T:ident, $name:ident, $product:path) => {
        mod $name {
            use super::*;
            use crate::cpu::math::$T::exp;

            fn at(view: &Strided, offset: usize) -> *mut $T {
                view.ptr.cast::<$T>().wrapping_add(offset)
            }

            simd_fn! {
                /// The maximum of a row. It ignores NaN, which then appears in the sums.
                unsafe fn largest(n: usize, x: *const $T) -> $T {
                    let mut most = <$T>::NEG_INFINITY;
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
                /// Replaces a row by `exp(x * by - shift)`, and returns the sum.
                unsafe fn exponentials(n: usize, x: *mut $T, by: $T, shift: $T) -> $T {
                    let mut lanes = [0.0 as $T; LANES];
                    let whole = n - n % LANES;
                    for i in (0..whole).step_by(LANES) {
                        for j in 0..LANES {
                            let v = exp((*x.add(i + j)).mul_add(by, -shift));
                            *x.add(i + j) = v;
                            lanes[j] += v;
                        }
                    }
                    let mut sum = 0.0;
                    for i in whole..n {
                        let v = exp((*x.add(i)).mul_add(by, -shift));
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
                unsafe fn add_row(n: usize, x: *mut $T, by: $T, y: *const $T, step: usize) {
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
                unsafe fn divide_row(n: usize, to: *mut $T, from: *const $T, by: $T) {
                    for i in 0..n {
                        *to.add(i) = *from.add(i) / by;
                    }
                }
            }

            simd_fn! {
                unsafe fn scale_row(n: usize, x: *mut $T, by: $T) {
                    for i in 0..n {
                        *x.add(i) *= by;
                    }
                }
            }

            simd_fn! {
                unsafe fn dot(n: usize, x: *const $T, y: *const $T) -> $T {
                    let mut lanes = [0.0 as $T; LANES];
                    let whole = n - n % LANES;
                    for i in (0..whole).step_by(LANES) {
                        for j in 0..LANES {
                            lanes[j] += *x.add(i + j) * *y.add(i + j);
                        }
                    }
                    let mut sum = 0.0;
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
                unsafe fn score_row(n: usize, x: *mut $T, p: *const $T, less: $T) {
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
                unsafe fn scores(&self, of: &Operands, scores: *mut $T) -> Result<$T> {
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
                    let scale = of.scale as $T;
                    let (before, by) = if scale > 0.0 && scale <= 1.0 { (1.0, scale) } else { (scale, 1.0) };
                    // SAFETY: rows and columns are inside the operands, and the caller's buffer holds a tile.
                    unsafe {
                        $product(p, scores, query, key, before, 0.0)?;
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
                                    *scores.add(row * self.columns + i) = <$T>::NEG_INFINITY;
                                }
                            }
                        }
                    }
                    Ok(if of.mask.is_some() { 1.0 } else { by })
                }
            }

            pub unsafe fn attention(out: Strided, sums: Strided, of: Operands) -> Result<()> {
                let Head { queries, keys, width } = of.head();
                let blocks = queries.div_ceil(QUERIES);
                let work = QUERIES.min(queries) * keys * width;
                let grain = (par::GRAIN * 4 / work.max(1)).max(1);
                par::try_ranges(of.heads() * blocks, grain, |range| {
                    let mut scores = scratch(QUERIES * KEYS.min(keys), 0.0 as $T)?;
                    let mut made = scratch(QUERIES * width, 0.0 as $T)?;
                    for block in range {
                        let (head, first_query) = (block / blocks, block % blocks * QUERIES);
                        let rows = QUERIES.min(queries - first_query);
                        let (mut top, mut total) = ([<$T>::NEG_INFINITY; QUERIES], [0.0 as $T; QUERIES]);
                        made.fill(0.0);
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
                                    let shift = if most == <$T>::NEG_INFINITY { 0.0 } else { most };
                                    let sum = exponentials(columns, line, by, shift);
                                    let kept = if top[row] == <$T>::NEG_INFINITY {
                                        0.0
                                    } else {
                                        (top[row] - most).exp()
                                    };
                                    if kept != 1.0 {
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
                                $product(p, made.as_mut_ptr(), scores.as_ptr(), value, 1.0, 1.0)?;
                            }
                        }
                        for row in 0..rows {
                            let none = total[row] == 0.0;
                            let by = if none { 1.0 } else { total[row] };
                            // SAFETY: this task alone writes this query's result.
                            unsafe {
                                let to =
                                    at(&out, of.start(&out, head) + (first_query + row) * out.strides[2]);
                                divide_row(width, to, made.as_ptr().add(row * width), by);
                                let sum = if none { <$T>::NEG_INFINITY } else { top[row] + total[row].ln() };
                                *at(&sums, head * queries + first_query + row) = sum;
                            }
                        }
                    }
                    Ok(())
                })
            }

            pub unsafe fn attention_backward(
                to: Grads,
                g: Strided,
                out: Strided,
                sums: Strided,
                of: Operands,
            ) -> Result<()> {
                let Head { queries, keys, width } = of.head();
                let grain = (par::GRAIN * 4 / (queries * keys * width).max(1)).max(1);
                par::try_ranges(of.heads(), grain, |range| {
                    let mut p = scratch(QUERIES * KEYS.min(keys), 0.0 as $T)?;
                    let mut slopes = scratch(QUERIES * KEYS.min(keys), 0.0 as $T)?;
                    let mut less = scratch(queries, 0.0 as $T)?;
                    for head in range {
                        let line =
                            |of_: &Strided, row: usize| at(of_, of.start(of_, head) + row * of_.strides[2]);
                        // SAFETY: the rows belong to this head, here and below; this task alone writes its gradients.
                        unsafe {
                            for row in 0..queries {
                                less[row] = dot(width, line(&g, row), line(&out, row));
                                std::slice::from_raw_parts_mut(line(&to.query, row), width).fill(0.0);
                            }
                            for row in 0..keys {
                                std::slice::from_raw_parts_mut(line(&to.key, row), width).fill(0.0);
                                std::slice::from_raw_parts_mut(line(&to.value, row), width).fill(0.0);
                            }
                        }
                        for first_query in (0..queries).step_by(QUERIES) {
                            let rows = QUERIES.min(queries - first_query);
                            for first_key in (0..of.seen(first_query + rows)).step_by(KEYS) {
                                let columns = KEYS.min(keys - first_key);
                                let tile = Tile { head, first_query, rows, first_key, columns };
                                let product = |sizes, out, a, b| Product { sizes, out, a, b, threads: false };
                                // SAFETY: as above; the buffers have room for a tile.
                                unsafe {
                                    let by = tile.scores(&of, p.as_mut_ptr())?;
                                    for row in 0..rows {
                                        let sum = *at(&sums, head * queries + first_query + row);
                                        // A query that sees no key has weights of zero.
                                        let shift = if sum == <$T>::NEG_INFINITY { 0.0 } else { sum };
                                        exponentials(columns, p.as_mut_ptr().add(row * columns), by, shift);
                                    }
                                    let (grad, query) = (line(&g, first_query), line(&of.query, first_query));
                                    let (key, value) = (line(&of.key, first_key), line(&of.value, first_key));
                                    let of_value = product(
                                        [columns, width, rows],
                                        [to.value.strides[2], 1],
                                        [1, columns],
                                        [g.strides[2], 1],
                                    );
                                    $product(
                                        of_value,
                                        line(&to.value, first_key),
                                        p.as_ptr(),
                                        grad,
                                        1.0,
                                        1.0,
                                    )?;
                                    let of_p = product(
                                        [rows, columns, width],
                                        [columns, 1],
                                        [g.strides[2], 1],
                                        [1, of.value.strides[2]],
                                    );
                                    $product(of_p, slopes.as_mut_ptr(), grad, value, 1.0, 0.0)?;
                                    for row in 0..rows {
                                        let at = row * columns;
                                        let (slope, p) = (slopes.as_mut_ptr().add(at), p.as_ptr().add(at));
                                        score_row(columns, slope, p, less[first_query + row]);
                                    }
                                    let scale = of.scale as $T;
                                    let of_key = product(
                                        [columns, width, rows],
                                        [to.key.strides[2], 1],
                                        [1, columns],
                                        [of.query.strides[2], 1],
                                    );
                                    $product(
                                        of_key,
                                        line(&to.key, first_key),
                                        slopes.as_ptr(),
                                        query,
                                        scale,
                                        1.0,
                                    )?;
                                    let of_query = product(
                                        [rows, width, columns],
                                        [to.query.strides[2], 1],
                                        [columns, 1],
                                        [of.key.strides[2], 1],
                                    );
                                    $product(
                                        of_query,
                                        line(&to.query, first_query),
                                        slopes.as_ptr(),
                                        key,
                                        scale,
                                        1.0,
                                    )?;
                                }
                            }
                        }
                    }
                    Ok(())
                })
            }
        }
    };
}
kernels!(f32, single, matmul::product_f32);
kernels!(f64, double, matmul::product_f64);
