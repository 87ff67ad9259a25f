//! Matrix products, batched and with any strides: `out = alpha * a @ b + beta * out`. The choice of kernel depends on
//! sizes and strides only, so a product has the same bits on any number of threads.

mod float;
mod half;
mod int;
pub mod panels;

use super::float::Float;
use super::par;
use super::walk::Walk;
use crate::base::{DType, Fault, Result, Strided};

/// One product: its sizes, and the strides of rows and columns of its three matrices.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    m: usize,
    n: usize,
    k: usize,
    out: [usize; 2],
    a: [usize; 2],
    b: [usize; 2],
}

impl Sizes {
    fn work(&self) -> usize {
        self.m.saturating_mul(self.n).saturating_mul(self.k)
    }
}

/// Below this many multiplications, splitting a batch over threads costs more than it gains.
const BATCH_GRAIN: usize = 65_536;
/// Above this many multiplications, threads split each product rather than the batch.
const SHARED_WORK: usize = 8_000_000;

/// `[..batch, m, k] x [..batch, k, n] -> [..batch, m, n]`, all of one dtype. `out` is not read if `beta` is 0.
///
/// # Safety
/// The views are live, `out` overlaps neither operand, and the shapes match, with the batch dimensions already
/// broadcast.
pub unsafe fn matmul(out: Strided, a: Strided, b: Strided, alpha: f64, beta: f64) -> Result<()> {
    let batch = out.shape.len() - 2;
    let matrix = |x: &Strided| [x.strides[batch], x.strides[batch + 1]];
    let (m, n, k) = (out.shape[batch], out.shape[batch + 1], a.shape[batch + 1]);
    let mut sizes = Sizes { m, n, k, out: matrix(&out), a: matrix(&a), b: matrix(&b) };
    let mut walk = Walk::new(&out.shape[..batch], [out.strides, a.strides, b.strides]);
    fold_batch(&mut sizes, &mut walk);
    if walk.numel() == 0 || m == 0 || n == 0 {
        return Ok(());
    }
    // SAFETY: the offsets of the walk stay inside the views, which are live by the caller's contract.
    unsafe {
        match out.dtype {
            DType::F32 => each(&sizes, &walk, out, a, b, |s, out, a, b, threads| {
                float::product(s, out, a, b, alpha as f32, beta as f32, threads)
            }),
            DType::F64 => each(&sizes, &walk, out, a, b, |s, out, a, b, threads| {
                float::product(s, out, a, b, alpha, beta, threads)
            }),
            DType::F16 => each(&sizes, &walk, out, a, b, |s, out, a, b, threads| {
                half::product::<::half::f16>(s, out, a, b, alpha as f32, beta as f32, threads)
            }),
            DType::BF16 => each(&sizes, &walk, out, a, b, |s, out, a, b, threads| {
                half::product::<::half::bf16>(s, out, a, b, alpha as f32, beta as f32, threads)
            }),
            DType::U8 => each(&sizes, &walk, out, a, b, |s, out, a, b, threads| {
                int::product::<u8>(s, out, a, b, [alpha as i64, beta as i64], threads, int::tile)
            }),
            DType::I8 => each(&sizes, &walk, out, a, b, |s, out, a, b, threads| {
                int::product::<i8>(s, out, a, b, [alpha as i64, beta as i64], threads, int::tile)
            }),
            DType::I16 => each(&sizes, &walk, out, a, b, |s, out, a, b, threads| {
                int::product::<i16>(s, out, a, b, [alpha as i64, beta as i64], threads, int::tile)
            }),
            DType::I32 => each(&sizes, &walk, out, a, b, |s, out, a, b, threads| {
                int::product::<i32>(s, out, a, b, [alpha as i64, beta as i64], threads, int::tile_i32)
            }),
            DType::I64 => each(&sizes, &walk, out, a, b, |s, out, a, b, threads| {
                int::product::<i64>(s, out, a, b, [alpha as i64, beta as i64], threads, int::tile_i64)
            }),
            // The operator computes complex products as four real ones.
            _ => {
                let op = if batch == 0 { "addmm_impl_cpu_" } else { "bmm" };
                Err(Fault::NoKernel { op, dtype: out.dtype }.into())
            }
        }
    }
}

/// Sizes `[m, n, k]` and strides of rows and columns of a product inside another kernel.
#[derive(Clone, Copy)]
pub struct Product {
    pub sizes: [usize; 3],
    pub out: [usize; 2],
    pub a: [usize; 2],
    pub b: [usize; 2],
    /// True if threads may split the product.
    pub threads: bool,
}

impl Product {
    fn with_strides(&self) -> Sizes {
        let [m, n, k] = self.sizes;
        Sizes { m, n, k, out: self.out, a: self.a, b: self.b }
    }
}

/// `out = alpha * a @ b + beta * out`.
///
/// # Safety
/// The strides describe live matrices, and `out` overlaps neither operand.
pub unsafe fn product<T: Float>(
    p: Product,
    out: *mut T,
    a: *const T,
    b: *const T,
    alpha: T,
    beta: T,
) -> Result<()> {
    let [m, n, _] = p.sizes;
    if m == 0 || n == 0 {
        return Ok(());
    }
    // SAFETY: the caller's contract.
    unsafe { float::product(&p.with_strides(), out, a, b, alpha, beta, p.threads) }
}

/// `out = a @ b + beta * out` on this thread, in one sum: for few terms.
///
/// # Safety
/// See [`product`].
pub unsafe fn sum<T: Float>(p: Product, out: *mut T, a: *const T, b: *const T, beta: T) {
    // SAFETY: the caller's contract.
    unsafe { float::sum(&p.with_strides(), out, a, b, T::ONE, beta, gemm::Parallelism::None) }
}

/// Folds a batch dimension into the rows, if its products share the right matrix and the left matrices follow one
/// another in memory.
fn fold_batch(sizes: &mut Sizes, walk: &mut Walk<3>) {
    while let Some(last) = walk.shape.len().checked_sub(1) {
        let [out, a, b] = [0, 1, 2].map(|i| walk.strides[i][last]);
        if b != 0 {
            return;
        }
        if sizes.m == 1 {
            (sizes.out[0], sizes.a[0]) = (out, a);
        } else if out != sizes.out[0] * sizes.m || a != sizes.a[0] * sizes.m {
            return;
        }
        sizes.m *= walk.pop().0;
    }
}

/// Runs `product` for every matrix of the batch; threads split either the batch or each product.
///
/// # Safety
/// See [`matmul`]; `T` is the element type.
unsafe fn each<T>(
    sizes: &Sizes,
    walk: &Walk<3>,
    out: Strided,
    a: Strided,
    b: Strided,
    product: impl Fn(&Sizes, *mut T, *const T, *const T, bool) -> Result<()> + Sync,
) -> Result<()> {
    let count = walk.numel();
    let run = |range: std::ops::Range<usize>, threads: bool| {
        // Capturing the views whole keeps the closure shareable: they are Sync, raw pointers are not.
        let (out, a, b) = (&out, &a, &b);
        let mut outcome = Ok(());
        walk.each(range, |[o, x, y]| {
            if outcome.is_ok() {
                // SAFETY: the walk's offsets are inside the views.
                let (out, a, b) = unsafe {
                    (out.ptr.cast::<T>().add(o), a.ptr.cast::<T>().add(x), b.ptr.cast::<T>().add(y))
                };
                outcome = product(sizes, out, a, b, threads);
            }
        });
        outcome
    };
    let grain = (BATCH_GRAIN / sizes.work().max(1)).max(1);
    if count < 2 * grain || sizes.work() > SHARED_WORK {
        return run(0..count, true);
    }
    par::try_ranges(count, grain, |range| run(range, false))
}
