//! `tril`, `triu` and diagonals of matrices.

use crate::capture;
use crate::operator::bodies::{copy, duplicate, fill, filled, part_by_part};
use crate::operator::primitives::view_part::put_back;
use crate::operator::primitives::views::reshaped;
use crate::operator::primitives::{copies, sums};
use crate::ops::prelude::*;
use crate::ops::shape::slices::diagonal as diagonal_view;

/// A contiguous copy of `x` with zeros outside the triangle.
fn triangle(name: &str, x: &Body, diagonal: i64, lower: bool) -> Result<Body> {
    if x.layout.ndim() < 2 {
        return Err(Error::runtime(format!("{name}: input tensor must have at least 2 dimensions")));
    }
    if x.dtype.is_stored_only() {
        return x.moved(|x| triangle(name, x, diagonal, lower));
    }
    if x.device().is_cpu() {
        let out = duplicate(x)?;
        fork!(over [out], with [diagonal, lower], cpu: done(crate::cpu::triangle::keep_triangle(out.host()?, diagonal, lower)), gpu: Ok(()))?;
        return Ok(out);
    }
    let out = Body::new(x.shape(), x.dtype, x.device())?;
    if out.numel() > 0 {
        part_by_part(
            &out,
            x,
            |out, x| fork!(over [out, x], with [diagonal, lower], cpu: Ok(()), gpu: crate::gpu::triangle(out.gpu()?, x.gpu()?, diagonal, lower)),
        )?;
    }
    Ok(out)
}

/// The shape of `diag_embed`'s result, and the layout of its diagonal.
fn embedding(shape: &[usize], offset: i64, dim1: i64, dim2: i64) -> Result<(Dims, Layout)> {
    let ndim = shape.len() + 1;
    let (a, b) = (wrap_dim(dim1, ndim)?, wrap_dim(dim2, ndim)?);
    if a == b {
        return Err(Error::runtime(format!("diagonal dimensions cannot be identical {dim1}, {dim2}")));
    }
    let n = shape[shape.len() - 1] + offset.unsigned_abs() as usize;
    let mut whole = Dims::from_slice(&shape[..shape.len() - 1]);
    whole.insert(a.min(b), n);
    whole.insert(a.max(b), n);
    let place = Layout::contiguous(&whole).diagonal(offset, a as i64, b as i64)?;
    Ok((whole, place))
}

/// Checks that the examples of a triangle are matrices.
fn of_matrices(b: &Batch, input: &Tensor, name: &str) -> Result<Tensor> {
    let x = b.full(input)?;
    if b.rank(&x) < 2 {
        return Err(Error::runtime(format!("{name}: input tensor must have at least 2 dimensions")));
    }
    Ok(x)
}

#[primitive(tangent = linear)]
impl Tril {
    fn forward(input: &Tensor, diagonal: i64) -> Result<Body> {
        triangle("tril", &input.body(), diagonal, true)
    }
    fn d_input(g: &Tensor, diagonal: i64) -> Result<Tensor> {
        tril(g, diagonal)
    }
    fn batch(b: &Batch, input: &Tensor, diagonal: i64) -> Result<Tensor> {
        tril(&of_matrices(b, input, "tril")?, diagonal).map(|t| b.wrap(t))
    }
}

#[primitive(tangent = linear)]
impl Triu {
    fn forward(input: &Tensor, diagonal: i64) -> Result<Body> {
        triangle("triu", &input.body(), diagonal, false)
    }
    fn d_input(g: &Tensor, diagonal: i64) -> Result<Tensor> {
        triu(g, diagonal)
    }
    fn batch(b: &Batch, input: &Tensor, diagonal: i64) -> Result<Tensor> {
        triu(&of_matrices(b, input, "triu")?, diagonal).map(|t| b.wrap(t))
    }
}

#[primitive(tangent = linear)]
impl DiagEmbed {
    fn forward(input: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Body> {
        let body = input.body();
        if body.layout.ndim() == 0 {
            return Err(Error::runtime("diag_embed: the input must have at least one dimension"));
        }
        let (shape, place) = embedding(body.shape(), offset, dim1, dim2)?;
        let out = filled(&shape, Scalar::Int(0), body.dtype, body.device())?;
        copy(&out.with_layout(place), &body)?;
        Ok(out)
    }
    fn d_input(g: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        diagonal_view(g, offset, dim1, dim2)
    }
    fn batch(b: &Batch, input: &Tensor, offset: i64, dim1: i64, dim2: i64) -> Result<Tensor> {
        let x = b.full(input)?;
        let rank = b.rank(&x) + 1;
        diag_embed(&x, offset, b.dim(dim1, rank)?, b.dim(dim2, rank)?).map(|t| b.wrap(t))
    }
}

#[primitive(tangent = linear, shows(self_sym_sizes = sizes(input)))]
impl Trace {
    fn forward(input: &Tensor) -> Result<Body> {
        let body = input.body();
        if body.layout.ndim() != 2 {
            return Err(Error::runtime(format!(
                "trace: expected a matrix, but got tensor with dim {}",
                body.layout.ndim()
            )));
        }
        if body.dtype == DType::Bool {
            return Err(Fault::NoKernel { op: "trace", dtype: body.dtype }.into());
        }
        let line = body.with_layout(body.layout.diagonal(0, 0, 1)?);
        // Accumulate in double precision, which costs little, as a diagonal is short.
        let wide = match body.dtype {
            DType::F32 if body.device().is_cpu() => DType::F64,
            DType::C64 if body.device().is_cpu() => DType::C128,
            _ => return Ok(sums::Sum::call(&Tensor::new(line))?.body().clone()),
        };
        let sum = sums::Sum::call(&Tensor::new(converted(&line, wide)?))?;
        converted(&sum.body(), body.dtype)
    }
    fn d_input(g: V, at: Meta) -> Result<V> {
        let length = Layout::contiguous(&at.shape).diagonal(0, 0, 1)?.shape;
        Ok(g.expand(&length).then(|g| put_back(&g, at, |l| l.diagonal(0, 0, 1))))
    }
    fn batch(_: &Batch, input: &Tensor) -> Result<Tensor> {
        sums::Sum::call(&diagonal_view(input, 0, 0, 1)?)
    }
}

/// The rows and columns of a triangle's elements, as a matrix with two rows.
fn places(rows: i64, columns: i64, offset: i64, lower: bool, dtype: DType, device: Device) -> Result<Tensor> {
    if rows < 0 || columns < 0 {
        let (what, n) = if rows < 0 { ("row", rows) } else { ("col", columns) };
        return Err(Error::runtime(format!("{what} must be non-negative, got{n}")));
    }
    if !matches!(dtype, DType::I32 | DType::I64) {
        let op = if lower { "tril_indices" } else { "triu_indices" };
        return Err(Fault::NoKernel { op, dtype }.into());
    }
    let count = places_below(rows, columns, i128::from(offset) + i128::from(lower));
    let count = if lower { count } else { i128::from(rows) * i128::from(columns) - count };
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let body = Body::new(&[2, count], DType::I64, Device::Cpu)?;
    // The other rows have no elements in the triangle.
    let first = if lower { offset.saturating_neg().clamp(0, rows) } else { 0 };
    let last = if lower { rows } else { columns.saturating_sub(offset).clamp(0, rows) };
    capture::constant(&body, |start| {
        let (mut at, start) = (0, start.cast::<i64>());
        for row in if count > 0 { first..last } else { 0..0 } {
            let edge = row.saturating_add(offset);
            let range = if lower {
                0..edge.saturating_add(1).clamp(0, columns)
            } else {
                edge.clamp(0, columns)..columns
            };
            for column in range {
                // SAFETY: the body has `2 * count` elements, and the loops visit `count` positions.
                unsafe {
                    start.add(at).write(row);
                    start.add(count + at).write(column);
                }
                at += 1;
            }
        }
        debug_assert_eq!(at, count);
        Ok::<(), Error>(())
    })?;
    copies::to_device(&copies::to_dtype(&Tensor::new(body), dtype)?, device)
}

/// The number of elements of a matrix below a diagonal. Row `i` has `i + offset` of them, within the size of the row.
fn places_below(rows: i64, columns: i64, offset: i128) -> i128 {
    let (rows, columns) = (i128::from(rows), i128::from(columns));
    // Rows from `some` to `all` have elements on both sides of the diagonal.
    let (some, all) = ((-offset).clamp(0, rows), (columns - offset).clamp(0, rows));
    let growing = (some + offset + all - 1 + offset) * (all - some) / 2;
    growing + (rows - all) * columns
}

/// True if the matrices of a batch are contiguous in memory. A single batch dimension may have any stride, and the first of
/// several may be expanded.
fn is_batch_contiguous(target: &Body) -> bool {
    let layout = &target.layout;
    let n = layout.ndim();
    let mut expected: usize = layout.shape[n.saturating_sub(2)..].iter().product();
    n <= 3
        || (0..n - 2).rev().all(|i| {
            let fits =
                layout.strides[i] == expected || (i == 0 && (layout.strides[i] == 0 || layout.shape[i] == 1));
            expected *= layout.shape[i];
            fits
        })
}

/// Writes zeros beyond the diagonal of an expanded tensor row by row. Rows that share memory get each other's zeros.
fn write_expanded(target: &Body, args: &[Arg], lower: bool) -> Result<bool> {
    if !is_batch_contiguous(target) {
        return Ok(false);
    }
    let diagonal = if let [_, Arg::Int(diagonal), ..] = args { *diagonal } else { 0 };
    let [rows, columns] = [wrap_dim(-2, target.layout.ndim())?, wrap_dim(-1, target.layout.ndim())?];
    let (rows, columns) = (target.shape()[rows] as i64, target.shape()[columns] as i64);
    for row in 0..rows {
        let edge = row.saturating_add(diagonal);
        let zeros =
            if lower { edge.saturating_add(1).clamp(0, columns)..columns } else { 0..edge.clamp(0, columns) };
        let line = target.layout.select(-2, row)?.narrow(-1, zeros.start, zeros.end - zeros.start)?;
        fill(&target.with_layout(line), Scalar::Int(0))?;
    }
    Ok(true)
}

fn write_tril(target: &Body, args: &[Arg]) -> Result<bool> {
    write_expanded(target, args, true)
}

fn write_triu(target: &Body, args: &[Arg]) -> Result<bool> {
    write_expanded(target, args, false)
}

/// Return the lower triangular part of matrices, with zeros above the given diagonal.
///
/// Args:
///     input: matrix or batch of matrices.
///     diagonal: which diagonal to keep up to: 0 the main one, positive ones above it, negative ones below.
///
/// Examples:
///     >>> torch.tril(torch.ones(3, 3, dtype=torch.int64))
///     tensor([[1, 0, 0],
///             [1, 1, 0],
///             [1, 1, 1]])
#[operator(
    function,
    method,
    inplace,
    out(declared),
    expanded = write_tril,
    sample = "view(lambda draw, shape: (lambda k: lambda x: x.tril(k))(draw(st.integers(-2, 2))), 2)"
)]
pub fn tril(input: &Tensor, #[default(0)] diagonal: i64) -> Result<Tensor> {
    Tril::call(input, diagonal)
}

/// Return the upper triangular part of matrices, with zeros below the given diagonal.
///
/// Args:
///     input: matrix or batch of matrices.
///     diagonal: which diagonal to keep from: 0 the main one, positive ones above it, negative ones below.
///
/// Examples:
///     >>> torch.triu(torch.ones(3, 3, dtype=torch.int64))
///     tensor([[1, 1, 1],
///             [0, 1, 1],
///             [0, 0, 1]])
#[operator(
    function,
    method,
    inplace,
    out(declared),
    expanded = write_triu,
    sample = "view(lambda draw, shape: (lambda k: lambda x: x.triu(k))(draw(st.integers(-2, 2))), 2)"
)]
pub fn triu(input: &Tensor, #[default(0)] diagonal: i64) -> Result<Tensor> {
    Triu::call(input, diagonal)
}

/// Build matrices with the last dimension of `input` on a diagonal, and zeros elsewhere.
///
/// Args:
///     offset: which diagonal: 0 the main one, positive ones above it, negative ones below.
///     dim1, dim2: dimensions of the matrices in the result. Default: `-2` and `-1`
///
/// Examples:
///     >>> torch.diag_embed(torch.tensor([1, 2]))
///     tensor([[1, 0],
///             [0, 2]])
#[operator(
    function,
    method,
    sample = "view(lambda draw, shape: (lambda k: lambda x: x.diag_embed(k))(draw(st.integers(-1, 1))), 1)"
)]
pub fn diag_embed(
    input: &Tensor,
    #[default(0)]
    #[strict]
    offset: i64,
    #[default(-2)] dim1: i64,
    #[default(-1)] dim2: i64,
) -> Result<Tensor> {
    DiagEmbed::call(input, offset, dim1, dim2)
}

/// Sum the main diagonal of a matrix.
///
/// Examples:
///     >>> torch.trace(torch.tensor([[1, 2], [3, 4]]))
///     tensor(5)
#[operator(
    function,
    method,
    autocast = single,
    sample = "view(lambda draw, shape: lambda x: x.trace(), shapes=st.sampled_from([(3, 3), (2, 4), (0, 2)]))"
)]
pub fn trace(input: &Tensor) -> Result<Tensor> {
    Trace::call(input)
}

/// Build a diagonal matrix from a vector, or extract a diagonal of a matrix.
///
/// Args:
///     input: a vector or a matrix.
///     diagonal: which diagonal: 0 the main one, positive ones above it, negative ones below.
///
/// Examples:
///     >>> torch.diag(torch.tensor([1, 2]))
///     tensor([[1, 0],
///             [0, 2]])
///     >>> torch.diag(torch.tensor([[1, 2], [3, 4]]))
///     tensor([1, 4])
#[operator(
    function,
    method,
    out(declared, called = "aten::diag_embed"),
    sample = "view(lambda draw, shape: (lambda k: lambda x: x.diag(k))(draw(st.integers(-1, 1))), shapes=st.sampled_from([(3,), (2, 3), (3, 3)]))"
)]
pub fn diag(input: &Tensor, #[default(0)] diagonal: i64) -> Result<Tensor> {
    match input.ndim() {
        1 => diag_embed(input, diagonal, -2, -1),
        2 => crate::ops::shape::view_copies::diagonal_copy(input, diagonal, 0, 1),
        n => Err(Error::runtime(format!("diag(): Supports 1D or 2D tensors. Got {n}D"))),
    }
}

/// Build a diagonal matrix from the flattened elements of a tensor.
///
/// Args:
///     offset: which diagonal: 0 the main one, positive ones above it, negative ones below.
///
/// Examples:
///     >>> torch.diagflat(torch.tensor([[1], [2]]))
///     tensor([[1, 0],
///             [0, 2]])
#[operator(function, method, sample = "view(lambda draw, shape: lambda x: x.diagflat(1))")]
pub fn diagflat(
    input: &Tensor,
    #[default(0)]
    #[strict]
    offset: i64,
) -> Result<Tensor> {
    diag_embed(&reshaped(input, &[input.numel()])?, offset, -2, -1)
}

/// Return the row and column indices of the lower triangle of a matrix.
///
/// Args:
///     row: number of rows of the matrix.
///     col: number of columns of the matrix.
///     offset: which diagonal to include up to: 0 the main one, positive ones above it.
///     dtype: data type of the indices; int64 if not given.
///
/// Examples:
///     >>> torch.tril_indices(2, 2)
///     tensor([[0, 1, 1],
///             [0, 0, 1]])
#[operator(function)]
pub fn tril_indices(
    row: i64,
    col: i64,
    #[default(0)]
    #[strict]
    offset: i64,
    #[keyword]
    #[default(DType::I64)]
    dtype: DType,
    #[default(Device::Cpu)] device: Device,
    layout: Option<StridedLayout>,
) -> Result<Tensor> {
    let _ = layout;
    places(row, col, offset, true, dtype, device)
}

/// Return the row and column indices of the upper triangle of a matrix.
///
/// Args:
///     row: number of rows of the matrix.
///     col: number of columns of the matrix.
///     offset: which diagonal to include from: 0 the main one, positive ones above it.
///     dtype: data type of the indices; int64 if not given.
///
/// Examples:
///     >>> torch.triu_indices(2, 2)
///     tensor([[0, 0, 1],
///             [0, 1, 1]])
#[operator(function)]
pub fn triu_indices(
    row: i64,
    col: i64,
    #[default(0)]
    #[strict]
    offset: i64,
    #[keyword]
    #[default(DType::I64)]
    dtype: DType,
    #[default(Device::Cpu)] device: Device,
    layout: Option<StridedLayout>,
) -> Result<Tensor> {
    let _ = layout;
    places(row, col, offset, false, dtype, device)
}
