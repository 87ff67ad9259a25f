//! Code shared by all factorisations: column-major memory, checks and errors.

use crate::operator::bodies::{copy, fill, filled};
use crate::operator::primitives::constant;
use crate::ops::prelude::*;
use crate::ops::shape::{slices, squeeze, triangle};
use crate::tensor::any_requires_grad;
use crate::tensor::facts::{Keep, Shown};

/// The name of the operator that raises an error for a matrix that cannot be factored. `None` returns error codes instead.
#[derive(Clone, Copy)]
pub struct Checked(pub Option<&'static str>);

impl Keep for Checked {
    fn shown(&self) -> Shown {
        Shown::Nothing
    }
}

pub fn columns(shape: &[usize], dtype: DType, device: Device) -> Result<Body> {
    let mut swapped = Dims::from_slice(shape);
    let n = swapped.len();
    swapped.swap(n - 2, n - 1);
    transposed(&Body::new(&swapped, dtype, device)?)
}

pub fn transposed(x: &Body) -> Result<Body> {
    Ok(x.with_layout(x.layout.transpose(-2, -1)?))
}

pub fn by_columns(x: &Body) -> Result<Body> {
    let out = columns(x.shape(), x.dtype, x.device())?;
    copy(&out, x)?;
    Ok(out)
}

/// Identity matrices of this shape.
pub fn units(x: &Body) -> Result<Body> {
    let out = filled(x.shape(), Scalar::Int(0), x.dtype, x.device())?;
    fill(&out.with_layout(out.layout.diagonal(0, -2, -1)?), Scalar::Int(1))?;
    Ok(out)
}

/// The batch dimensions.
pub fn lead(x: &Body) -> &[usize] {
    &x.shape()[..x.layout.ndim() - 2]
}

pub fn rows_and_columns(shape: &[usize]) -> [usize; 2] {
    [shape[shape.len() - 2], shape[shape.len() - 1]]
}

/// The batch dimensions of `x` followed by `rest`.
pub fn batch_of(x: &Body, rest: &[usize]) -> Dims {
    let mut shape = Dims::from_slice(lead(x));
    shape.extend_from_slice(rest);
    shape
}

/// Expands `x` to the batch dimensions `batch`, each with items of shape `rest`.
pub fn over_batch(x: &Body, batch: &[usize], rest: &[usize]) -> Body {
    let mut shape = Dims::from_slice(batch);
    shape.extend_from_slice(rest);
    x.with_layout(x.layout.broadcast_to(&shape))
}

/// A zero, the code for success, for each matrix.
pub fn codes(x: &Body) -> Result<Body> {
    filled(lead(x), Scalar::Int(0), DType::I32, x.device())
}

/// The error for a matrix whose eigenvalues or singular values did not converge.
pub fn not_converged(called: &str, place: &str, values: &str, code: i64) -> Error {
    Error::linalg(format!(
        "{called}: {place}The algorithm failed to converge because the input matrix is ill-conditioned or has too many \
         repeated {values} (error code: {code})."
    ))
}

/// The first matrix that failed, and its code. A single matrix is not numbered in the message.
pub fn first_failure(codes: &Body) -> Result<Option<(String, i64)>> {
    // Devices without kernels have rejected nonempty matrices before.
    if codes.numel() == 0 || !codes.device().is_cpu() {
        return Ok(None);
    }
    let view = codes.host()?;
    // SAFETY: the codes are contiguous and alive, and the kernel that wrote them has returned.
    let all = unsafe { std::slice::from_raw_parts(view.ptr.cast::<i32>(), codes.numel()) };
    let found = all.iter().position(|&code| code != 0);
    let single = codes.layout.ndim() == 0;
    let place = |at: usize| if single { String::new() } else { format!("(Batch element {at}): ") };
    Ok(found.map(|at| (place(at), i64::from(all[at]))))
}

pub fn check_matrix(name: &str, operand: &str, x: &Tensor) -> Result<()> {
    if x.ndim() >= 2 {
        return Ok(());
    }
    Err(Error::runtime(format!("{name}: The input tensor {operand} must have at least 2 dimensions.")))
}

pub fn check_square(name: &str, x: &Tensor) -> Result<()> {
    check_matrix(name, "A", x)?;
    let [rows, columns] = rows_and_columns(&x.shape());
    if rows == columns {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "{name}: A must be batches of square matrices, but they are {rows} by {columns} matrices"
    )))
}

/// Rejects integers; and half precision if `halves` is set, for operators that do so in their own name.
pub fn check_floating(name: &str, x: &Tensor, halves: bool) -> Result<()> {
    let dtype = x.dtype();
    if !dtype.is_differentiable() {
        return Err(Error::not_implemented(format!(
            "{name}: Expected a floating point or complex tensor as input. Got {}",
            dtype.scalar_name()
        )));
    }
    if !halves && dtype.size() == 2 {
        return Err(Error::not_implemented(format!(
            "{name}: Low precision dtypes not supported. Got {}",
            dtype.scalar_name()
        )));
    }
    Ok(())
}

pub fn check_same(name: &str, a: &Tensor, b: &Tensor) -> Result<()> {
    if a.dtype() == b.dtype() {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "{name}: Expected A and B to have the same dtype, but found A of type {} and B of type {} instead",
        a.dtype().scalar_name(),
        b.dtype().scalar_name()
    )))
}

/// Rejects a right-hand side that does not fit the matrix.
pub fn check_sides(name: &str, a: &[usize], b: &[usize], left: bool) -> Result<()> {
    let ([n, _], [rows, columns]) = (rows_and_columns(a), rows_and_columns(b));
    if n == if left { rows } else { columns } {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "{name}: Incompatible shapes of A and B for the equation {} = B ({n}x{} and {rows}x{columns})",
        if left { "AX" } else { "XA" },
        a[a.len() - 1],
    )))
}

/// Two operands of an example with the batch dimensions in front, and the same number of dimensions.
pub fn aligned(b: &Batch, x: &Tensor, y: &Tensor) -> Result<[Tensor; 2]> {
    let (x, y) = (b.full(x)?, b.full(y)?);
    let rank = b.rank(&x).max(b.rank(&y));
    let wide = |mut t: Tensor| -> Result<Tensor> {
        while b.rank(&t) < rank {
            t = squeeze::unsqueeze(&t, b.k() as i64)?;
        }
        Ok(t)
    };
    Ok([wide(x)?, wide(y)?])
}

pub fn tril(x: V, diagonal: i64) -> V {
    x.then(|t| triangle::tril(&t, diagonal))
}

pub fn triu(x: V, diagonal: i64) -> V {
    x.then(|t| triangle::triu(&t, diagonal))
}

/// `x` plus its conjugate transpose, but with the diagonal counted once.
pub fn twice_symmetric(x: V) -> V {
    let n = x.shape().last().copied().unwrap_or(0);
    let sum = &x + x.mh();
    let V::Tensor(like) = &sum else { return sum };
    let once = constant::zeros(&[n], like.dtype().to_real(), like.device()).and_then(|zeros| {
        triangle::diag_embed(&crate::ops::elementwise::arithmetic::add(&zeros, 0.5)?, 0, -2, -1)
    });
    sum * (1.0 - V::from(once))
}

/// Concatenates matrices horizontally.
pub fn cat_columns(parts: &[V]) -> V {
    let parts: Result<Vec<Tensor>> = parts.iter().map(|v| v.clone().tensor()).collect();
    V::from(parts.and_then(|parts| crate::ops::shape::join::cat(&parts, -1)))
}

/// Concatenates matrices vertically.
pub fn cat_rows(parts: &[V]) -> V {
    let parts: Result<Vec<Tensor>> = parts.iter().map(|v| v.clone().tensor()).collect();
    V::from(parts.and_then(|parts| crate::ops::shape::join::cat(&parts, -2)))
}

/// The sum of the operands that are present.
pub fn plus(a: Option<V>, b: Option<V>) -> Option<V> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    }
}

/// Columns `start` to `end`.
pub fn columns_of(x: &V, start: usize, end: usize) -> V {
    x.clone().then(|t| slices::narrow(&t, -1, start as i64, (end - start) as i64))
}

/// Rows `start` to `end`.
pub fn rows_of(x: &V, start: usize, end: usize) -> V {
    x.clone().then(|t| slices::narrow(&t, -2, start as i64, (end - start) as i64))
}

pub fn diagonal_matrix(x: V) -> V {
    x.then(|t| triangle::diag_embed(&t, 0, -2, -1))
}

/// A view of the first `length` rows (`dim` -2) or columns (`dim` -1).
pub fn leading(x: &Body, dim: i64, length: usize) -> Result<Body> {
    Ok(x.with_layout(x.layout.narrow(dim, 0, length as i64)?))
}

/// True if matrices of this dtype can be factored.
pub fn has_kernel(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128)
}

/// True if no gradient can be asked for, so that the eigenvectors or singular vectors need not be computed.
pub fn values_suffice(x: &Tensor) -> bool {
    x.device().is_cpu() && !any_requires_grad([x]) && !x.is_special()
}

/// Rejects GPU tensors in the name of a composition whose parts have no shaders.
pub fn refuse_gpu(op: &'static str, tensors: &[&Tensor]) -> Result<()> {
    match tensors.iter().find(|t| t.device().is_gpu()) {
        Some(t) => no_shader(op, t.dtype()),
        None => Ok(()),
    }
}
