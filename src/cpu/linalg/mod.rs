//! Factorizations of column-major matrices, one file each, with the signs and pivots of LAPACK.

mod bidiagonal;
mod blocks;
pub mod cholesky;
mod columns;
mod divide;
pub mod eig;
pub mod eigh;
pub mod ldl;
pub mod lu;
mod number;
pub mod qr;
mod quotients;
mod rotations;
pub mod svd;
#[cfg(test)]
mod tests;
pub mod triangular;

use super::par;
use crate::base::{DType, Fault, Result, Strided};
use crate::cpu::math::complex::Complex;
use blocks::Block;
use number::Stored;

/// The items of a batch, each of which is `len` consecutive elements.
struct Items<T> {
    start: par::Shared<T>,
    len: usize,
}

impl<T: Copy> Items<T> {
    /// Items that consist of the last `dims` dimensions.
    fn of(x: &Strided, dims: usize) -> Items<T> {
        let len = x.shape[x.shape.len() - dims..].iter().product();
        Items { start: par::Shared::new(x.ptr.cast::<T>().cast_const()), len }
    }

    /// # Safety
    /// The batch is dense, live and has an item `at`, which nobody else uses at the same time.
    #[allow(clippy::mut_from_ref, reason = "each item is used by one task")]
    unsafe fn item(&self, at: usize) -> &mut [T] {
        // SAFETY: the caller's contract.
        unsafe { std::slice::from_raw_parts_mut(self.start.get().add(at * self.len), self.len) }
    }
}

/// Runs `body` for the index of each matrix; `work` is the approximate cost of one.
fn each(count: usize, work: usize, body: impl Fn(usize) + Sync) {
    let grain = (par::GRAIN / work.max(1)).max(1);
    par::ranges(count, grain, |range| range.for_each(&body));
}

/// Like [`each`], for a `body` that may run out of memory.
fn try_each(count: usize, work: usize, body: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    let grain = (par::GRAIN / work.max(1)).max(1);
    par::try_ranges(count, grain, |mut range| range.try_for_each(&body))
}

/// Number of items: the product of the dimensions before the last `dims`.
fn count(x: &Strided, dims: usize) -> usize {
    x.shape[..x.shape.len() - dims].iter().product()
}

/// The last two sizes.
fn sizes(x: &Strided) -> [usize; 2] {
    let n = x.shape.len();
    [x.shape[n - 2], x.shape[n - 1]]
}

/// Runs the code with `T` as the [`Stored`] type of the dtype: real and complex numbers in two precisions.
macro_rules! numbers {
    ($op:literal, $dtype:expr, $T:ident => $code:expr) => {{
        match $dtype {
            DType::F32 => {
                type $T = f32;
                $code
            }
            DType::F64 => {
                type $T = f64;
                $code
            }
            DType::C64 => {
                type $T = Complex<f32>;
                $code
            }
            DType::C128 => {
                type $T = Complex<f64>;
                $code
            }
            dtype => return Err(Fault::NoKernel { op: $op, dtype }.into()),
        }
    }};
}

/// Replaces the lower triangles of `a` by those of `L`, where `a = L Lᴴ`. `info` becomes 0, or the order of the leading
/// minor that is not positive.
///
/// # Safety
/// The same holds for all functions of this module. The views are live, and nobody else uses those that are written
/// to. Matrices are dense and column-major, other operands are dense, and all have the same number of items.
pub unsafe fn cholesky(a: Strided, info: Strided) -> Result<()> {
    let n = sizes(&a)[0];
    numbers!("cholesky_cpu", a.dtype, T => {
        let (matrices, infos) = (Items::<T>::of(&a, 2), Items::<i32>::of(&info, 0));
        // SAFETY: the caller's contract.
        try_each(count(&a, 2), n * n * n / 3, |i| unsafe {
            infos.item(i)[0] = match T::large(matrices.item(i), n) {
                Some(a) => cholesky::factor(a, n)?,
                None => T::edit(matrices.item(i), |a| cholesky::factor(a, n))?,
            } as i32;
            Ok(())
        })
    })
}

/// Solves `a x = b` for triangles `a`; `x` replaces `b`.
///
/// # Safety
/// See [`cholesky()`].
pub unsafe fn solve_triangular(a: Strided, b: Strided, upper: bool, unit: bool) -> Result<()> {
    let ([n, columns], kind) = (sizes(&b), triangular::Triangle { upper, unit, adjoint: false });
    numbers!("triangular_solve_cpu", b.dtype, T => {
        let (triangles, right) = (Items::<T>::of(&a, 2), Items::<T>::of(&b, 2));
        // SAFETY: the caller's contract.
        try_each(count(&b, 2), n * n * columns, |i| unsafe {
            if let Some(a) = T::large(triangles.item(i), n)
                && let Some(b) = T::large(right.item(i), n)
            {
                return triangular::solve(a, n, b, kind);
            }
            T::apply(triangles.item(i), right.item(i), |a, b| triangular::solve(a, n, b, kind))
        })
    })
}

/// Eigenvalues of complex `a`; with `vectors`, the eigenvectors replace `a`. `info` counts the values that were not
/// found. Matrices that are `real` have no imaginary parts.
///
/// # Safety
/// See [`cholesky()`].
pub unsafe fn eig(a: Strided, values: Strided, info: Strided, real: bool, vectors: bool) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe {
        match a.dtype {
            DType::C64 => eig_of::<Complex<f32>>(a, values, info, real, vectors),
            DType::C128 => eig_of::<Complex<f64>>(a, values, info, real, vectors),
            dtype => Err(Fault::NoKernel { op: "linalg_eig_out_cpu", dtype }.into()),
        }
    }
}

unsafe fn eig_of<T: Stored<Wide = Complex<f64>>>(
    a: Strided,
    values: Strided,
    info: Strided,
    real: bool,
    vectors: bool,
) -> Result<()> {
    let n = sizes(&a)[0];
    let (matrices, found) = (Items::<T>::of(&a, 2), Items::<T>::of(&values, 1));
    let infos = Items::<i32>::of(&info, 0);
    // SAFETY: the caller's contract.
    try_each(count(&a, 2), 25 * n * n * n, |i| unsafe {
        let left = T::edit(matrices.item(i), |a| {
            T::edit(found.item(i), |values| eig::decompose(a, n, values, real, vectors))
        })?;
        infos.item(i)[0] = left as i32;
        Ok(())
    })
}

/// Householder reflectors of `a` below its diagonal, with `r` on and above it; their factors in `tau`.
///
/// # Safety
/// See [`cholesky()`].
pub unsafe fn reflect(a: Strided, tau: Strided) -> Result<()> {
    let [m, n] = sizes(&a);
    numbers!("geqrf_cpu", a.dtype, T => {
        let (matrices, factors) = (Items::<T>::of(&a, 2), Items::<T>::of(&tau, 1));
        // SAFETY: the caller's contract.
        try_each(count(&a, 2), 2 * m * n * m.min(n), |i| unsafe {
            T::edit(matrices.item(i), |a| T::edit(factors.item(i), |tau| qr::reflect(a, m, n, tau)))
        })
    })
}

/// Replaces the reflectors that [`reflect`] made by their product.
///
/// # Safety
/// See [`cholesky()`]; `q` has at most as many columns as rows, and at least as many as `tau` has factors.
pub unsafe fn unreflect(q: Strided, tau: Strided) -> Result<()> {
    let [m, n] = sizes(&q);
    numbers!("orgqr_cpu", q.dtype, T => {
        let (matrices, factors) = (Items::<T>::of(&q, 2), Items::<T>::of(&tau, 1));
        // SAFETY: the caller's contract.
        try_each(count(&q, 2), 2 * m * n * m.min(n), |i| unsafe {
            T::apply(factors.item(i), matrices.item(i), |tau, q| qr::product(q, Block::new(m, n), tau))
        })
    })
}

/// Replaces `a` by `L` and `U`; `pivots` become the rows that were exchanged, counted from 1; `info` the first pivot
/// that is zero, counted from 1, or 0.
///
/// # Safety
/// See [`cholesky()`].
pub unsafe fn lu(a: Strided, pivots: Strided, info: Strided) -> Result<()> {
    let [m, n] = sizes(&a);
    numbers!("lu_cpu", a.dtype, T => {
        let (matrices, rows, infos) = (Items::<T>::of(&a, 2), Items::<i32>::of(&pivots, 1), Items::<i32>::of(&info, 0));
        // SAFETY: the caller's contract.
        try_each(count(&a, 2), m * n * m.min(n), |i| unsafe {
            infos.item(i)[0] = match T::large(matrices.item(i), m.min(n)) {
                Some(a) => lu::factor(a, m, n, rows.item(i))?,
                None => T::edit(matrices.item(i), |a| lu::factor(a, m, n, rows.item(i)))?,
            } as i32;
            Ok(())
        })
    })
}

/// Solves `a x = b`, or `aᴴ x = b`, given the factors that [`lu()`] made; `x` replaces `b`.
///
/// # Safety
/// See [`cholesky()`].
pub unsafe fn lu_solve(lu: Strided, pivots: Strided, b: Strided, adjoint: bool) -> Result<()> {
    let [n, columns] = sizes(&b);
    numbers!("lu_solve_cpu", b.dtype, T => {
        let (factors, right, rows) = (Items::<T>::of(&lu, 2), Items::<T>::of(&b, 2), Items::<i32>::of(&pivots, 1));
        // SAFETY: the caller's contract.
        try_each(count(&b, 2), 2 * n * n * columns, |i| unsafe {
            if let Some(lu) = T::large(factors.item(i), n)
                && let Some(b) = T::large(right.item(i), n)
            {
                return lu::solve(lu, n, rows.item(i), b, adjoint);
            }
            T::apply(factors.item(i), right.item(i), |lu, b| lu::solve(lu, n, rows.item(i), b, adjoint))
        })
    })
}

/// Replaces unit matrices by inverses, given the factors that [`lu()`] made.
///
/// # Safety
/// See [`cholesky()`].
pub unsafe fn lu_invert(lu: Strided, pivots: Strided, units: Strided) -> Result<()> {
    let n = sizes(&units)[0];
    numbers!("inverse_cpu", units.dtype, T => {
        let (factors, right, rows) = (Items::<T>::of(&lu, 2), Items::<T>::of(&units, 2), Items::<i32>::of(&pivots, 1));
        // SAFETY: the caller's contract.
        try_each(count(&units, 2), 2 * n * n * n, |i| unsafe {
            if let Some(lu) = T::large(factors.item(i), n)
                && let Some(x) = T::large(right.item(i), n)
            {
                return lu::invert(lu, n, rows.item(i), x);
            }
            T::apply(factors.item(i), right.item(i), |lu, x| lu::invert(lu, n, rows.item(i), x))
        })
    })
}

/// Replaces symmetric or Hermitian `a`, of which the lower triangle is read, by the factors of its LDL decomposition;
/// `pivots` become the rows that were exchanged, and `info` the first zero on the diagonal of `D`, counted from 1, or
/// 0.
///
/// # Safety
/// See [`cholesky()`].
pub unsafe fn ldl(a: Strided, pivots: Strided, info: Strided, hermitian: bool) -> Result<()> {
    let n = sizes(&a)[0];
    numbers!("ldl_factor_kernel_cpu", a.dtype, T => {
        let (matrices, rows, infos) = (Items::<T>::of(&a, 2), Items::<i32>::of(&pivots, 1), Items::<i32>::of(&info, 0));
        // SAFETY: the caller's contract.
        try_each(count(&a, 2), n * n * n / 3, |i| unsafe {
            let (rows, kind) = (rows.item(i), ldl::LdlKind { hermitian });
            infos.item(i)[0] = T::edit(matrices.item(i), |a| Ok(ldl::factor(a, n, rows, kind)))? as i32;
            Ok(())
        })
    })
}

/// Solves `a x = b` given the factors that [`ldl()`] made; `x` replaces `b`.
///
/// # Safety
/// See [`cholesky()`].
pub unsafe fn ldl_solve(ld: Strided, pivots: Strided, b: Strided, hermitian: bool) -> Result<()> {
    let [n, columns] = sizes(&b);
    numbers!("ldl_solve_kernel_cpu", b.dtype, T => {
        let (factors, right, rows) = (Items::<T>::of(&ld, 2), Items::<T>::of(&b, 2), Items::<i32>::of(&pivots, 1));
        // SAFETY: the caller's contract.
        try_each(count(&b, 2), 2 * n * n * columns, |i| unsafe {
            let kind = ldl::LdlKind { hermitian };
            T::apply(factors.item(i), right.item(i), |ld, b| {
                ldl::solve(ld, n, rows.item(i), b, kind);
                Ok(())
            })
        })
    })
}

/// Determinants, given the factors that [`lu()`] made; if `logarithms` are wanted, `out` becomes the signs, and
/// `logarithms` those of the magnitudes.
///
/// # Safety
/// See [`cholesky()`]; `logarithms` has the real dtype.
pub unsafe fn determinant(
    lu: Strided,
    pivots: Strided,
    out: Strided,
    logarithms: Option<Strided>,
) -> Result<()> {
    let n = sizes(&lu)[0];
    numbers!("lu_cpu", lu.dtype, T => {
        let (factors, rows, found) = (Items::<T>::of(&lu, 2), Items::<i32>::of(&pivots, 1), Items::<T>::of(&out, 0));
        let lines = logarithms.map(|x| Items::<<T as Stored>::Real>::of(&x, 0));
        // SAFETY: the caller's contract.
        try_each(count(&lu, 2), n, |i| unsafe {
            let factors = factors.item(i);
            let (value, size) = T::read(factors, |lu| Ok(lu::determinant(lu, n, rows.item(i), lines.is_some())))?;
            found.item(i)[0] = T::rounded(value);
            if let Some(lines) = &lines {
                lines.item(i)[0] = <T as Stored>::Real::rounded(size);
            }
            Ok(())
        })
    })
}

/// The permutations that pivots stand for.
///
/// # Safety
/// See [`cholesky()`].
pub unsafe fn exchanges(pivots: Strided, from: Strided, to: Strided) -> Result<()> {
    let (rows, starts, ends) =
        (Items::<i32>::of(&pivots, 1), Items::<i64>::of(&from, 1), Items::<i64>::of(&to, 1));
    // SAFETY: the caller's contract.
    each(count(&from, 1), from.shape[from.shape.len() - 1], |i| unsafe {
        lu::exchanges(rows.item(i), starts.item(i), ends.item(i));
    });
    Ok(())
}

/// Ascending eigenvalues of Hermitian matrices, of which the lower triangles are read; with `vectors`, the eigenvectors
/// replace `a`. `info` is nonzero if the iteration did not converge.
///
/// # Safety
/// See [`cholesky()`]; `values` has the real dtype.
pub unsafe fn eigh(a: Strided, values: Strided, info: Strided, vectors: bool) -> Result<()> {
    let n = sizes(&a)[0];
    numbers!("linalg_eigh_cpu", a.dtype, T => {
        let matrices = Items::<T>::of(&a, 2);
        let (lines, infos) = (Items::<<T as Stored>::Real>::of(&values, 1), Items::<i32>::of(&info, 0));
        // SAFETY: the caller's contract.
        try_each(count(&a, 2), 9 * n * n * n, |i| unsafe {
            let left = T::edit(matrices.item(i), |a| Stored::edit(lines.item(i), |values| eigh::decompose(a, n, values, vectors)))?;
            infos.item(i)[0] = left as i32;
            Ok(())
        })
    })
}

/// Descending singular values of the first columns of `a`: as many columns as `values` has elements, and at most as
/// many as `a` has rows. With `v`, the left vectors replace those columns, the columns behind them complete the basis,
/// and the right vectors become the columns of `v`. `info` is nonzero if the iteration did not converge.
///
/// # Safety
/// See [`cholesky()`]; `values` has the real dtype.
pub unsafe fn svd(a: Strided, values: Strided, v: Option<Strided>, info: Strided) -> Result<()> {
    let (m, n) = (sizes(&a)[0], values.shape.last().map_or(0, |&n| n));
    numbers!("linalg_svd_cpu", a.dtype, T => {
        let (matrices, right) = (Items::<T>::of(&a, 2), v.map(|v| Items::<T>::of(&v, 2)));
        let (lines, infos) = (Items::<<T as Stored>::Real>::of(&values, 1), Items::<i32>::of(&info, 0));
        // SAFETY: the caller's contract.
        try_each(count(&a, 2), 8 * m * n * n, |i| unsafe {
            let (a, values) = (matrices.item(i), lines.item(i));
            infos.item(i)[0] = T::edit(a, |a| Stored::edit(values, |values| match &right {
                Some(right) => T::edit(right.item(i), |v| svd::decompose(a, m, n, values, Some(v))),
                None => svd::decompose(a, m, n, values, None),
            }))? as i32;
            Ok(())
        })
    })
}
