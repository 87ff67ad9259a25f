//! What all factorisations share: column-major memory, and refusals.

use crate::operator::constant;
use crate::operator::kernel::{copy, fill, filled};
use crate::ops::prelude::*;
use crate::ops::shape::{slices, squeeze, triangle};
use crate::tensor::any_requires_grad;
use crate::tensor::facts::{Keep, Shown};

/// The operator in whose name a kernel refuses matrices; none asks for codes instead.
#[derive(Clone, Copy)]
pub struct Checked(pub Option<&'static str>);

impl Keep for Checked {
    fn shown(&self) -> Shown {
        Shown::Nothing
    }
}

/// New column-major matrices.
pub fn columns(shape: &[usize], dtype: DType, device: Device) -> Result<Body> {
    let mut swapped = Dims::from_slice(shape);
    let n = swapped.len();
    swapped.swap(n - 2, n - 1);
    transposed(&Body::new(&swapped, dtype, device)?)
}

pub fn transposed(x: &Body) -> Result<Body> {
    Ok(x.with_layout(x.layout.transpose(-2, -1)?))
}

/// A column-major copy.
pub fn by_columns(x: &Body) -> Result<Body> {
    let out = columns(x.shape(), x.dtype, x.device())?;
    copy(&out, x)?;
    Ok(out)
}

/// Unit matrices of this shape.
pub fn units(x: &Body) -> Result<Body> {
    let out = filled(x.shape(), Scalar::Int(0), x.dtype, x.device())?;
    fill(&out.with_layout(out.layout.diagonal(0, -2, -1)?), Scalar::Int(1))?;
    Ok(out)
}

/// The dimensions before the matrices'.
pub fn lead(x: &Body) -> &[usize] {
    &x.shape()[..x.layout.ndim() - 2]
}

pub fn rows_and_columns(shape: &[usize]) -> [usize; 2] {
    [shape[shape.len() - 2], shape[shape.len() - 1]]
}

/// A shape of the same batch.
pub fn batch_of(x: &Body, rest: &[usize]) -> Dims {
    let mut shape = Dims::from_slice(lead(x));
    shape.extend_from_slice(rest);
    shape
}

/// The same items for each of a wider batch.
pub fn over_batch(x: &Body, batch: &[usize], rest: &[usize]) -> Body {
    let mut shape = Dims::from_slice(batch);
    shape.extend_from_slice(rest);
    x.with_layout(x.layout.broadcast_to(&shape))
}

/// A code of success for each matrix.
pub fn codes(x: &Body) -> Result<Body> {
    filled(lead(x), Scalar::Int(0), DType::I32, x.device())
}

/// What is said of a matrix whose eigenvalues, or singular values, were not all found.
pub fn not_converged(called: &str, place: &str, values: &str, code: i64) -> Error {
    Error::linalg(format!(
        "{called}: {place}The algorithm failed to converge because the input matrix is ill-conditioned or has too many \
         repeated {values} (error code: {code})."
    ))
}

/// The first matrix without success, and its code; the batch's number is left out of a single matrix.
pub fn first_failure(codes: &Body) -> Result<Option<(String, i64)>> {
    // Where there are no kernels, matrices with elements were refused before.
    if codes.numel() == 0 || !codes.device().is_cpu() {
        return Ok(None);
    }
    let view = codes.host()?;
    // SAFETY: the codes are dense and alive, and the kernel that wrote them is done.
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

/// Refuses whole numbers; halves too, where the operator says so itself.
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

/// Refuses two operands of different dtypes.
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

/// Refuses a right side that does not fit its matrix.
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

/// Two operands of a sample with the samples in front and equally many dimensions.
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

/// `x` plus its conjugate transpose, with the diagonal added only once.
pub fn twice_symmetric(x: V) -> V {
    let n = x.shape().last().copied().unwrap_or(0);
    let sum = &x + x.mh();
    let V::Tensor(like) = &sum else { return sum };
    let once = constant::zeros(&[n], like.dtype().to_real(), like.device()).and_then(|zeros| {
        triangle::diag_embed(&crate::ops::elementwise::arithmetic::add(&zeros, 0.5)?, 0, -2, -1)
    });
    sum * (1.0 - V::from(once))
}

/// Matrices side by side.
pub fn cat_columns(parts: &[V]) -> V {
    let parts: Result<Vec<Tensor>> = parts.iter().map(|v| v.clone().tensor()).collect();
    V::from(parts.and_then(|parts| crate::ops::shape::join::cat(&parts, -1)))
}

/// Matrices joined from top to bottom.
pub fn cat_rows(parts: &[V]) -> V {
    let parts: Result<Vec<Tensor>> = parts.iter().map(|v| v.clone().tensor()).collect();
    V::from(parts.and_then(|parts| crate::ops::shape::join::cat(&parts, -2)))
}

/// The sum of those that are present.
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

/// A vector as the diagonal of a matrix.
pub fn diagonal_matrix(x: V) -> V {
    x.then(|t| triangle::diag_embed(&t, 0, -2, -1))
}

/// The first `length` rows (-2) or columns (-1).
pub fn leading(x: &Body, dim: i64, length: usize) -> Result<Body> {
    Ok(x.with_layout(x.layout.narrow(dim, 0, length as i64)?))
}

/// Whether matrices of this dtype can be factored.
pub fn has_kernel(dtype: DType) -> bool {
    matches!(dtype, DType::F32 | DType::F64 | DType::C64 | DType::C128)
}

/// Whether nobody will ask for the vectors of a matrix: they are for gradients.
pub fn values_suffice(x: &Tensor) -> bool {
    x.device().is_cpu() && !any_requires_grad([x]) && !x.is_special()
}

/// Refuses GPU tensors to a composition of operators without shaders, in its own name.
pub fn refuse_gpu(op: &'static str, tensors: &[&Tensor]) -> Result<()> {
    match tensors.iter().find(|t| t.device().is_gpu()) {
        Some(t) => no_shader(op, t.dtype()),
        None => Ok(()),
    }
}
