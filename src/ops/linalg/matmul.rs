//! Products of matrices and vectors.

use crate::base::{Dims, broadcast, numel};
use crate::operator::primitives::sums;
use crate::operator::primitives::views::{ints, reshape, reshaped, unsafe_view};
use crate::ops::elementwise::arithmetic;
use crate::ops::linalg::gemm::multiply;
use crate::ops::prelude::*;
use crate::ops::shape::rearrange::contiguous;
use crate::ops::shape::squeeze::{first_row, squeeze_one, unsqueeze};
use crate::ops::shape::view::{expand, t, transpose};
use crate::tensor::any_requires_grad;
use crate::tensor::facts::{Keep, Shown};

pub(crate) fn same_dtype(a: &Tensor, b: &Tensor) -> Result<()> {
    if a.dtype() == b.dtype() {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "expected m1 and m2 to have the same dtype, but got: {} != {}",
        a.dtype().c_name(),
        b.dtype().c_name()
    )))
}

/// The floating point operations of multiplying operand `FIRST` with the next one: two per term. Products of vectors are not
/// counted.
pub(super) fn product_flops<const FIRST: usize>(operands: &[Vec<usize>], _: Option<&str>) -> u64 {
    let (Some(left), Some(right)) = (operands.get(FIRST), operands.get(FIRST + 1)) else { return 0 };
    let ([batch @ .., rows, terms], [others @ .., _, columns]) = (&left[..], &right[..]) else { return 0 };
    (2 * numel(batch).max(numel(others)) * rows * terms * columns) as u64
}

/// The floating point operations of the derivative. The gradient of each operand takes as many as the product itself.
pub(super) fn gradient_flops(given: &[Vec<usize>], made: &[Vec<usize>], first: usize) -> u64 {
    let sizes = |at: usize| made.get(at).filter(|shape| !shape.is_empty());
    let (left, right) = (sizes(first), sizes(first + 1));
    let terms = match (left, right) {
        (Some(left), _) => left.last(),
        (None, Some(right)) => right.iter().rev().nth(1),
        (None, None) => None,
    };
    let (Some(terms), Some(given)) = (terms, given.first()) else { return 0 };
    (2 * numel(given) * terms * (usize::from(left.is_some()) + usize::from(right.is_some()))) as u64
}

/// The batched product of operands with at least two dimensions. Batch dimensions broadcast.
fn multiply_batches(a: &Body, b: &Body, dtype: DType) -> Result<Body> {
    let (na, nb) = (a.layout.ndim(), b.layout.ndim());
    let (m, k) = (a.shape()[na - 2], a.shape()[na - 1]);
    let n = b.shape()[nb - 1];
    let batch = broadcast(&a.shape()[..na - 2], &b.shape()[..nb - 2])?;
    let shaped = |rows: usize, columns: usize| {
        let mut shape = batch.clone();
        shape.extend([rows, columns]);
        shape
    };
    let a = a.with_layout(a.layout.broadcast_to(&shaped(m, k)));
    let b = b.with_layout(b.layout.broadcast_to(&shaped(k, n)));
    let out = Body::new(&shaped(m, n), dtype, a.device().joined(b.device()))?;
    multiply(&out, &a, &b, 1.0, 0.0)?;
    Ok(out)
}

/// Records which of two matrices are column-major, so that their gradients are, too.
#[derive(Clone, Copy)]
pub struct Columns {
    left: bool,
    right: bool,
}

impl Keep for Columns {
    fn shown(&self) -> Shown {
        Shown::Nothing
    }
}

impl Columns {
    pub fn of(left: &Tensor, right: &Tensor) -> Columns {
        let by_columns = |t: &Tensor| {
            let body = t.body();
            let layout = &body.layout;
            layout.ndim() == 2 && layout.strides[0] == 1 && layout.strides[1] == layout.shape[0]
        };
        Columns { left: by_columns(left), right: by_columns(right) }
    }

    /// The gradient of the left operand of `left @ right`.
    pub fn left_gradient(self, g: &V, right: &V) -> V {
        if self.left {
            swap_last(&right.clone().conj().matmul(swap_last(g)))
        } else {
            g.matmul(swap_last(right).conj())
        }
    }

    /// The gradient of the right operand of `left @ right`.
    pub fn right_gradient(self, g: &V, left: &V) -> V {
        if self.right {
            swap_last(&swap_last(g).matmul(left.clone().conj()))
        } else {
            swap_last(left).conj().matmul(g)
        }
    }
}

fn swap_last(matrix: &V) -> V {
    matrix.clone().then(|m| t(&m))
}

/// Rejects dtypes for which batched products have no kernel. Empty products need none.
pub(crate) fn check_batch_dtypes(name: &'static str, a: &Body, b: &Body) -> Result<()> {
    match a.dtype {
        _ if is_nothing(a, b) => Ok(()),
        dtype if dtype == DType::Bool || dtype.is_wide_unsigned() || dtype.is_float8() => {
            Err(Fault::NoKernel { op: name, dtype }.into())
        }
        _ if a.dtype == b.dtype => Ok(()),
        _ => Err(Error::runtime(format!(
            "expected scalar type {} but found {}",
            a.dtype.scalar_name(),
            b.dtype.scalar_name()
        ))),
    }
}

/// True if the product is empty, or a sum without terms.
pub(crate) fn is_nothing(a: &Body, b: &Body) -> bool {
    a.numel() == 0 || b.numel() == 0
}

/// With at most this many columns, batched right operands are computed as rows of one product with the shared matrix.
const COLUMNS: usize = 4;

fn check_matrices(a: &[usize], b: &[usize]) -> Result<()> {
    for (shape, which) in [(a, "self"), (b, "mat2")] {
        if shape.len() != 2 {
            return Err(Error::runtime(format!(
                "mm: {which} must be a matrix, got {}-D tensor",
                shape.len()
            )));
        }
    }
    if a[1] != b[0] {
        return Err(Error::runtime(format!(
            "mm: mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
            a[0], a[1], b[0], b[1]
        )));
    }
    Ok(())
}

#[primitive(
    tangent = multilinear,
    shows(
        self_sym_sizes = sizes(input),
        mat2_sym_sizes = sizes(mat2),
        self_sym_strides = strides(input),
        mat2_sym_strides = strides(mat2)
    )
)]
impl Mm {
    fn forward(input: &Tensor, mat2: &Tensor, #[hidden] columns: Columns) -> Result<Body> {
        let _ = columns;
        let (a, b) = (input.body(), mat2.body());
        check_matrices(a.shape(), b.shape())?;
        same_dtype(input, mat2)?;
        multiply_batches(&a, &b, a.dtype)
    }
    fn d_input(g: V, mat2: V, columns: Columns) -> V {
        columns.left_gradient(&g, &mat2)
    }
    fn d_mat2(g: V, input: V, columns: Columns) -> V {
        columns.right_gradient(&g, &input)
    }
    /// A batched product if both operands are batched; one product with a tall matrix if only one is.
    fn flops(given: &[Vec<usize>], made: &[Vec<usize>]) -> u64 {
        gradient_flops(given, made, 0)
    }
    fn batch(b: &Batch, input: &Tensor, mat2: &Tensor, _columns: Columns) -> Result<Tensor> {
        let (x, y) = (input, mat2);
        check_matrices(&x.shape(), &y.shape())?;
        let made = match (x.is_batched(), y.is_batched()) {
            (true, false) => matmul(x.physical(), y),
            // With few columns, the transposed product has a tall matrix.
            (false, true) if y.shape()[1] <= COLUMNS => {
                let swap = |t: &Tensor| transpose(t, -2, -1);
                matmul(&swap(y.physical())?, &swap(x)?).and_then(|t| swap(&t))
            }
            (false, true) => product(x, y.physical()),
            _ => product(&b.full(x)?, &b.full(y)?),
        };
        made.map(|t| b.wrap(t))
    }
}

pub(crate) fn check_batches(a: &[usize], b: &[usize]) -> Result<()> {
    for (shape, which) in [(a, "batch1"), (b, "batch2")] {
        if shape.len() != 3 {
            return Err(Error::runtime(format!("{which} must be a 3D tensor")));
        }
    }
    if a[0] != b[0] || a[2] != b[1] {
        return Err(Error::runtime(format!(
            "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
            a[0], a[2], b[0], b[1]
        )));
    }
    Ok(())
}

#[primitive(tangent = multilinear)]
impl Bmm {
    fn forward(input: &Tensor, mat2: &Tensor) -> Result<Body> {
        let (a, b) = (input.body(), mat2.body());
        check_batches(a.shape(), b.shape())?;
        check_batch_dtypes("bmm", &a, &b)?;
        // The result has the dtype of the second operand if the two may differ.
        multiply_batches(&a, &b, b.dtype)
    }
    fn d_input(g: V, mat2: V) -> V {
        g.matmul(mat2.mh())
    }
    fn d_mat2(g: V, input: V) -> V {
        input.mh().matmul(g)
    }
    fn flops(given: &[Vec<usize>], made: &[Vec<usize>]) -> u64 {
        gradient_flops(given, made, 0)
    }
    fn batch(b: &Batch, input: &Tensor, mat2: &Tensor) -> Result<Tensor> {
        check_batches(&input.shape(), &mat2.shape())?;
        product(&b.full(input)?, &b.full(mat2)?).map(|t| b.wrap(t))
    }
}

#[primitive(tangent = multilinear)]
impl Dot {
    fn forward(input: &Tensor, tensor: &Tensor) -> Result<Body> {
        let (a, b) = (input.body(), tensor.body());
        let row = a.with_layout(a.layout.unsqueeze(0)?);
        let column = b.with_layout(b.layout.unsqueeze(1)?);
        Ok(drop_dims(multiply_batches(&row, &column, a.dtype)?, &[0, 1]))
    }
    fn d_input(g: V, tensor: V) -> V {
        g * tensor.conj()
    }
    fn d_tensor(g: V, input: V) -> V {
        g * input.conj()
    }
    fn batch(b: &Batch, input: &Tensor, tensor: &Tensor) -> Result<Tensor> {
        let products = arithmetic::mul(&b.full(input)?, &b.full(tensor)?)?;
        sums::Sum1::call(&products, smallvec::smallvec![-1], false).map(|t| b.wrap(t))
    }
}

/// The product of two matrices, or of two batches of matrices.
pub fn product(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    match (a.ndim(), b.ndim()) {
        (2, 2) => mm(a, b),
        (3, 3) if a.shape()[0] == b.shape()[0] => bmm(a, b),
        (x, y) if x >= 2 && y >= 2 => {
            let (sa, sb) = (a.shape(), b.shape());
            let batch = broadcast(&sa[..x - 2], &sb[..y - 2])?;
            let flat = |t: &Tensor, s: &Dims| -> Result<Tensor> {
                let mut full = ints(&batch);
                full.extend(ints(&s[s.len() - 2..]));
                let wide = expand(t, full)?;
                reshape(&wide, &[batch.iter().product(), s[s.len() - 2], s[s.len() - 1]])
            };
            let out = bmm(&flat(a, &sa)?, &flat(b, &sb)?)?;
            let mut shape = batch.clone();
            shape.extend([sa[x - 2], sb[y - 1]]);
            unsafe_view(&out, shape)
        }
        _ => Err(Fault::Runtime("both arguments to matmul need to be at least 1D".into()).into()),
    }
}

/// True if the product of a batch with a matrix or vector can be computed as that of one tall matrix.
fn folds(a: &Tensor, b: &Tensor) -> bool {
    let (large, small) = if a.ndim() >= b.ndim() { (a, b) } else { (b, a) };
    let n = large.ndim();
    if n < 3 || small.ndim() > 2 {
        return false;
    }
    if small.requires_grad() || small.is_batched() {
        return true;
    }
    if a.ndim() == 2 {
        return false;
    }
    let body = large.body();
    let (mut shape, mut strides) = (body.layout.shape.clone(), body.layout.strides.clone());
    if a.ndim() < b.ndim() {
        shape.swap(n - 2, n - 1);
        strides.swap(n - 2, n - 1);
    }
    shape.contains(&0) || (0..n - 2).all(|i| strides[i] == strides[i + 1] * shape[i + 1])
}

/// Computes the product as that of one tall matrix.
fn multiply_as_tall(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let transposed = a.ndim() < b.ndim();
    let large = if transposed { transpose(b, -2, -1)? } else { a.clone() };
    let small = if !transposed {
        b.clone()
    } else if a.ndim() == 2 {
        t(a)?
    } else {
        a.clone()
    };
    let mut shape = large.shape();
    let columns = shape.pop().unwrap_or(1);
    let tall = reshaped(&large, &[shape.iter().product(), columns])?;
    if small.ndim() == 1 {
        return unsafe_view(&mv(&tall, &small)?, shape);
    }
    shape.push(small.shape()[1]);
    let out = unsafe_view(&mm(&tall, &small)?, shape)?;
    if transposed { contiguous(&transpose(&out, -2, -1)?, None) } else { Ok(out) }
}

/// Computes the product with `bmm`, after expanding the batch dimensions.
fn of_batches(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (sa, sb) = (a.shape(), b.shape());
    let (x, y) = (sa.len(), sb.len());
    if (x, y) == (3, 3) && sa[0] != sb[0] {
        let wants = |t: &Tensor| t.requires_grad() || t.is_batched();
        if sa[0] == 1 && wants(a) {
            return matmul(&squeeze_one(a, 0)?, b);
        }
        if sb[0] == 1 && wants(b) {
            return matmul(a, &squeeze_one(b, 0)?);
        }
    }
    let (rows, inner) = if x > 1 { (sa[x - 2], sa[x - 1]) } else { (1, sa[0]) };
    let (inner2, columns) = if y > 1 { (sb[y - 2], sb[y - 1]) } else { (sb[0], 1) };
    let mut shape = broadcast(&sa[..x.max(2) - 2], &sb[..y.max(2) - 2])?;
    let count = shape.iter().product();
    let recorded = any_requires_grad([a, b]);
    let flat = |t: &Tensor, m: usize, n: usize| {
        let mut full = ints(&shape);
        full.extend([m as i64, n as i64]);
        if !recorded && t.ndim() == 3 && full == ints(&t.shape()) {
            return Ok(t.clone());
        }
        reshaped(&expand(t, full)?, &[count, m, n])
    };
    let left = flat(a, rows, inner)?;
    let right = flat(&if y == 1 { unsqueeze(b, 1)? } else { b.clone() }, inner2, columns)?;
    let out = bmm(&left, &right)?;
    if x > 1 {
        shape.push(rows);
    }
    if y > 1 {
        shape.push(columns);
    }
    unsafe_view(&out, shape)
}

/// Multiply two matrices; neither is broadcast.
///
/// Args:
///     input: first matrix, `(n, m)`.
///     mat2: second matrix, `(m, p)`.
///
/// Examples:
///     >>> torch.mm(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0], [4.0]]))
///     tensor([[11.]])
#[operator(
    function,
    method,
    out(declared, early),
    overloads((1, 1), (2, 2)),
    autocast = lower, flops = product_flops::<0>,
    sample = "product(name, lambda i, j, k, b: [(i, j), (j, k)])"
)]
pub fn mm(input: &Tensor, mat2: &Tensor) -> Result<Tensor> {
    Mm::call(input, mat2, Columns::of(input, mat2))
}

/// Multiply two batches of matrices, pair by pair; neither is broadcast.
///
/// Args:
///     input: first batch, `(b, n, m)`.
///     mat2: second batch, `(b, m, p)`.
///
/// Examples:
///     >>> torch.bmm(torch.ones(5, 2, 3), torch.ones(5, 3, 4)).shape
///     torch.Size([5, 2, 4])
#[operator(
    function,
    method,
    out(declared, early),
    overloads((1, 1), (2, 2)),
    autocast = lower, flops = product_flops::<0>,
    sample = "product(name, lambda i, j, k, b: [(b, i, j), (b, j, k)])"
)]
pub fn bmm(input: &Tensor, mat2: &Tensor) -> Result<Tensor> {
    Bmm::call(input, mat2)
}

/// Compute the dot product of two vectors.
///
/// Args:
///     input: first vector.
///     tensor: second vector, of the same length.
///
/// Examples:
///     >>> torch.dot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
///     tensor(11.)
#[operator(
    function,
    method,
    out(message = "result dtype {target} does not match input dtype {result}", early),
    sample = "product(name, lambda i, j, k, b: [(i,), (i,)])"
)]
pub fn dot(input: &Tensor, tensor: &Tensor) -> Result<Tensor> {
    if input.ndim() != 1 || tensor.ndim() != 1 {
        return Err(Error::runtime(format!(
            "1D tensors expected, but got {}D and {}D tensors",
            input.ndim(),
            tensor.ndim()
        )));
    }
    if input.dtype() != tensor.dtype() {
        return Err(Error::runtime(format!(
            "dot : expected both vectors to have same dtype, but found {} and {}",
            input.dtype().scalar_name(),
            tensor.dtype().scalar_name()
        )));
    }
    let (n, m) = (input.numel(), tensor.numel());
    if n != m {
        return Err(Error::runtime(format!(
            "inconsistent tensor size, expected tensor [{n}] and src [{m}] to have the same number of elements, but got {n} and \
             {m} elements respectively"
        )));
    }
    if input.dtype() == DType::Bool {
        return Err(Fault::NoKernel { op: "dot", dtype: DType::Bool }.into());
    }
    Dot::call(input, tensor)
}

/// Multiply two tensors as matrices: vectors give dot products, batches of matrices are broadcast.
///
/// Args:
///     input: first factor; a vector is a row.
///     other: second factor; a vector is a column.
///
/// Examples:
///     >>> torch.matmul(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
///     tensor(11.)
///     >>> torch.matmul(torch.ones(10, 3, 4), torch.ones(4, 5)).shape
///     torch.Size([10, 3, 5])
#[operator(function, method, out(declared, early), autocast = lower, flops = product_flops::<0>, sample = "any_product(name)")]
pub fn matmul(input: &Tensor, other: &Tensor) -> Result<Tensor> {
    let (x, y) = (input.ndim(), other.ndim());
    if x == 0 || y == 0 {
        return Err(Error::runtime(format!(
            "both arguments to matmul need to be at least 1D, but they are {x}D and {y}D"
        )));
    }
    match (x, y) {
        (2, 2) => mm(input, other),
        (1, 1) => dot(input, other),
        (2, 1) => mv(input, other),
        (1, 2) => first_row(mm(&unsqueeze(input, 0)?, other)?),
        _ if folds(input, other) => multiply_as_tall(input, other),
        _ => of_batches(input, other),
    }
}

/// Multiply two tensors as matrices; the same as `torch.matmul`.
///
/// Args:
///     input: first factor; a vector is a row.
///     other: second factor; a vector is a column.
///
/// Examples:
///     >>> torch.linalg.matmul(torch.eye(2), torch.tensor([3.0, 4.0]))
///     tensor([3., 4.])
#[operator(function, space = "linalg", out(declared, called = "matmul"), sample = "any_product('matmul')")]
pub fn linalg_matmul(input: &Tensor, other: &Tensor) -> Result<Tensor> {
    matmul(input, other)
}

impl V {
    /// The matrix product; batch dimensions broadcast.
    pub fn matmul(&self, other: impl Into<V>) -> V {
        self.with(other, product)
    }
}

/// A vector as a matrix with one column.
pub(super) fn column(t: &Tensor) -> Result<Body> {
    let body = t.body();
    Ok(body.with_layout(body.layout.unsqueeze(1)?))
}

pub(super) fn without_last(body: Body) -> Result<Body> {
    let last = body.layout.ndim() - 1;
    Ok(drop_dims(body, &[last]))
}

/// Checks the operands of `mv` and `addmv`; `input` is the summand of the latter, and the vector of the former.
pub(super) fn check_vector(input: &Tensor, mat: &Tensor, vec: &Tensor) -> Result<()> {
    if mat.ndim() != 2 || vec.ndim() != 1 {
        return Err(Error::runtime(format!(
            "vector + matrix @ vector expected, got {}, {}, {}",
            1,
            mat.ndim(),
            vec.ndim()
        )));
    }
    let (m, v) = (mat.shape(), vec.shape());
    if m[1] != v[0] {
        return Err(Error::runtime(format!(
            "size mismatch, got input ({}), mat ({}x{}), vec ({})",
            m[0], m[0], m[1], v[0]
        )));
    }
    if input.dtype() != mat.dtype() || mat.dtype() != vec.dtype() {
        let name = |t: &Tensor| t.dtype().scalar_name();
        return Err(Error::runtime(format!(
            "addmv input tensors must have the same dtype, but got {}, {}, and {}",
            name(input),
            name(mat),
            name(vec)
        )));
    }
    match mat.dtype() {
        DType::Bool if !is_nothing(&mat.body(), &vec.body()) => {
            Err(Fault::NoKernel { op: "addmv_impl_cpu", dtype: DType::Bool }.into())
        }
        _ => Ok(()),
    }
}

pub(super) fn matrix_by_vector(matrix: &Tensor, vector: &Tensor) -> Result<Tensor> {
    squeeze_one(&mm(matrix, &unsqueeze(vector, 1)?)?, 1)
}

#[primitive(tangent = multilinear)]
impl Mv {
    fn forward(input: &Tensor, vec: &Tensor) -> Result<Body> {
        check_vector(vec, input, vec)?;
        let m = input.body();
        let out = Body::new(&[m.shape()[0], 1], m.dtype, m.device().joined(vec.device()))?;
        multiply(&out, &m, &column(vec)?, 1.0, 0.0)?;
        without_last(out)
    }
    fn d_input(g: V, vec: V) -> V {
        g.with(vec.conj(), outer)
    }
    fn d_vec(g: V, input: V) -> V {
        input.conj().with(g, |m, g| mv(&t(m)?, g))
    }
    fn batch(_b: &Batch, input: &Tensor, vec: &Tensor) -> Result<Tensor> {
        matrix_by_vector(input, vec)
    }
}

/// Multiply a matrix by a vector.
///
/// Args:
///     input: the matrix, `(n, m)`.
///     vec: the vector, of length `m`.
///
/// Examples:
///     >>> torch.mv(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 1.0]))
///     tensor([3., 7.])
#[operator(
    function,
    method,
    out(
        message = "addmv input tensors must have the same dtype, but got {target}, {result}, and {result}",
        early
    ),
    sample = "product(name, lambda i, j, k, b: [(i, j), (j,)])"
)]
pub fn mv(input: &Tensor, vec: &Tensor) -> Result<Tensor> {
    Mv::call(input, vec)
}

/// Compute the outer product of two vectors: `out[i, j] = input[i] * vec2[j]`.
///
/// Args:
///     input: first vector.
///     vec2: second vector.
///
/// Examples:
///     >>> torch.outer(torch.tensor([1, 2]), torch.tensor([3, 4, 5]))
///     tensor([[ 3,  4,  5],
///             [ 6,  8, 10]])
#[operator(
    function,
    method,
    out(called = "mul"),
    composite,
    sample = "product(name, lambda i, j, k, b: [(i,), (j,)])"
)]
pub fn outer(input: &Tensor, vec2: &Tensor) -> Result<Tensor> {
    if input.ndim() != 1 || vec2.ndim() != 1 {
        let (which, n) = if input.ndim() != 1 { ("self", input.ndim()) } else { ("vec2", vec2.ndim()) };
        return Err(Error::runtime(format!("outer: Expected 1-D argument {which}, but got {n}-D")));
    }
    arithmetic::mul(&reshape(input, &[input.numel(), 1])?, vec2)
}

/// Compute the outer product of two vectors; the same as `torch.outer`.
///
/// Args:
///     input: first vector.
///     vec2: second vector.
///
/// Examples:
///     >>> torch.ger(torch.tensor([1, 2]), torch.tensor([3, 4, 5]))
///     tensor([[ 3,  4,  5],
///             [ 6,  8, 10]])
#[operator(function, method, out, sample = "product(name, lambda i, j, k, b: [(i,), (j,)])")]
pub fn ger(input: &Tensor, vec2: &Tensor) -> Result<Tensor> {
    outer(input, vec2)
}
