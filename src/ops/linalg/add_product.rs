//! Products of matrices and vectors with a summand: `addmm`, `addmv`, `baddbmm` and others.

use crate::base::Dims;
use crate::operator::bodies::{copy, holds};
use crate::operator::primitives::copies::to_dtype;
use crate::operator::primitives::views::ints;
use crate::ops::complex::scale;
use crate::ops::elementwise::arithmetic as a;
use crate::ops::linalg::gemm::{multiply, multiply_add};
use crate::ops::linalg::matmul::{
    Columns, bmm, check_batch_dtypes, check_batches, check_vector, column, gradient_flops, matrix_by_vector,
    mm, mv, outer, product_flops, without_last,
};
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::{no_grad, sum};
use crate::ops::shape::view::{expand, t};

/// `beta * input + alpha * (a @ b)`. If beta is 0, the input is ignored, even NaN.
fn add_product(input: &Tensor, left: &Body, right: &Body, beta: Scalar, alpha: Scalar) -> Result<Body> {
    let (m, n) = (left.layout.ndim(), right.layout.ndim());
    let mut shape = Dims::from_slice(&left.shape()[..m - 1]);
    shape.push(right.shape()[n - 1]);
    let out = Body::new(&shape, left.dtype, left.device().joined(right.device()))?;
    let start = input.body();
    let wide = start.layout.expand(&ints(&shape))?;
    holds(left.dtype, beta)?;
    holds(left.dtype, alpha)?;
    if alpha.imaginary() != 0.0 || beta.imaginary() != 0.0 {
        multiply(&out, left, right, 1.0, 0.0)?;
        return no_grad(|| {
            let product = a::mul(&Tensor::new(out.clone()), alpha)?;
            if !beta.as_bool() {
                Ok(product)
            } else {
                a::add(&a::mul(&Tensor::new(start.clone()), beta)?, &product)
            }
        });
    }
    if beta.as_f64() != 0.0 {
        let start = start.with_layout(wide);
        if multiply_add(&out, &start, left, right, alpha.as_f64(), beta.as_f64())? {
            return Ok(out);
        }
        copy(&out, &start)?;
    }
    multiply(&out, left, right, alpha.as_f64(), beta.as_f64())?;
    Ok(out)
}

fn need_dims(name: &str, t: &Tensor, ndim: usize) -> Result<()> {
    if t.ndim() == ndim {
        return Ok(());
    }
    let what = if ndim == 2 { "a matrix".into() } else { format!("a {ndim}D tensor") };
    Err(Error::runtime(format!("{name} must be {what}, got {}-D tensor", t.ndim())))
}

fn check_matrices(a: &Tensor, b: &Tensor) -> Result<()> {
    check_dtype("mat1", a, b)?;
    need_dims("addmm: self", a, 2)?;
    need_dims("addmm: mat2", b, 2)?;
    let (sa, sb) = (a.shape(), b.shape());
    if sa[1] != sb[0] {
        return Err(Error::runtime(format!(
            "addmm: mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
            sa[0], sa[1], sb[0], sb[1]
        )));
    }
    Ok(())
}

/// Rejects a summand, called `name` in the message, whose dtype is not that of the right operand.
fn check_dtype(name: &str, input: &Tensor, right: &Tensor) -> Result<()> {
    if input.dtype() == right.dtype() {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "{name} and mat2 must have the same dtype, but got {} and {}",
        input.dtype().scalar_name(),
        right.dtype().scalar_name()
    )))
}

#[primitive(
    tangent = added,
    shows(
        mat1_sym_sizes = sizes(mat1),
        mat2_sym_sizes = sizes(mat2),
        mat1_sym_strides = strides(mat1),
        mat2_sym_strides = strides(mat2)
    )
)]
impl Addmm {
    fn forward(
        input: &Tensor,
        mat1: &Tensor,
        mat2: &Tensor,
        beta: Scalar,
        alpha: Scalar,
        #[hidden] columns: Columns,
    ) -> Result<Body> {
        let _ = columns;
        check_dtype("self", input, mat2)?;
        check_matrices(mat1, mat2)?;
        add_product(input, &mat1.body(), &mat2.body(), beta, alpha)
    }
    fn d_input(g: V, beta: Scalar) -> V {
        scale(g, beta)
    }
    fn d_mat1(g: V, mat2: V, alpha: Scalar, columns: Columns) -> V {
        scale(columns.left_gradient(&g, &mat2), alpha)
    }
    fn d_mat2(g: V, mat1: V, alpha: Scalar, columns: Columns) -> V {
        scale(columns.right_gradient(&g, &mat1), alpha)
    }
    fn flops(given: &[Vec<usize>], made: &[Vec<usize>]) -> u64 {
        gradient_flops(given, made, 1)
    }
    fn batch(
        _b: &Batch,
        input: &Tensor,
        mat1: &Tensor,
        mat2: &Tensor,
        beta: Scalar,
        alpha: Scalar,
        _columns: Columns,
    ) -> Result<Tensor> {
        blend(input, beta, &mm(mat1, mat2)?, alpha)
    }
}

#[primitive(tangent = added)]
impl Baddbmm {
    fn forward(
        input: &Tensor,
        batch1: &Tensor,
        batch2: &Tensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<Body> {
        need_dims("batch1", batch1, 3)?;
        need_dims("batch2", batch2, 3)?;
        check_batches(&batch1.shape(), &batch2.shape())?;
        if input.dtype() != batch1.dtype() {
            let name = |t: &Tensor| t.dtype().c_name();
            return Err(Error::runtime(format!(
                "Input dtypes must be the same, got: input {}, batch1: {}, batch2: {}",
                name(input),
                name(batch1),
                name(batch2)
            )));
        }
        check_batch_dtypes("baddbmm", &batch1.body(), &batch2.body())?;
        add_product(input, &batch1.body(), &batch2.body(), beta, alpha)
    }
    fn d_input(g: V, beta: Scalar) -> V {
        scale(g, beta)
    }
    fn d_batch1(g: V, batch2: V, alpha: Scalar) -> V {
        scale(g.matmul(batch2.mh()), alpha)
    }
    fn d_batch2(g: V, batch1: V, alpha: Scalar) -> V {
        scale(batch1.mh().matmul(g), alpha)
    }
    fn flops(given: &[Vec<usize>], made: &[Vec<usize>]) -> u64 {
        gradient_flops(given, made, 1)
    }
    fn batch(
        _b: &Batch,
        input: &Tensor,
        batch1: &Tensor,
        batch2: &Tensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<Tensor> {
        blend(input, beta, &bmm(batch1, batch2)?, alpha)
    }
}

#[primitive(tangent = added)]
impl Addmv {
    fn forward(input: &Tensor, mat: &Tensor, vec: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Body> {
        check_vector(input, mat, vec)?;
        if input.ndim() > 0 && input.numel() != mat.shape()[0] && input.numel() != 1 {
            return Err(Error::runtime(format!(
                "size mismatch, got input ({}), mat ({}x{}), vec ({})",
                input.numel(),
                mat.shape()[0],
                mat.shape()[1],
                vec.numel()
            )));
        }
        let raised = match input.ndim() {
            0 => Tensor::new(input.body().clone()),
            _ => Tensor::new(column(input)?),
        };
        without_last(add_product(&raised, &mat.body(), &column(vec)?, beta, alpha)?)
    }
    fn d_input(g: V, beta: Scalar) -> V {
        scale(g, beta)
    }
    fn d_mat(g: V, vec: V, alpha: Scalar) -> V {
        scale(g.with(vec.conj(), outer), alpha)
    }
    fn d_vec(g: V, mat: V, alpha: Scalar) -> V {
        scale(mat.conj().with(g, |m, g| mv(&t(m)?, g)), alpha)
    }
    fn batch(
        _b: &Batch,
        input: &Tensor,
        mat: &Tensor,
        vec: &Tensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<Tensor> {
        blend(input, beta, &matrix_by_vector(mat, vec)?, alpha)
    }
}

#[primitive(tangent = added)]
impl Addr {
    fn forward(input: &Tensor, vec1: &Tensor, vec2: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Body> {
        no_grad(|| blend_outer(input, vec1, vec2, beta, alpha))
    }
    fn d_input(g: V, beta: Scalar) -> V {
        scale(g, beta)
    }
    fn d_vec1(g: V, vec2: V, alpha: Scalar) -> V {
        scale(g.with(vec2.conj(), mv), alpha)
    }
    fn d_vec2(g: V, vec1: V, alpha: Scalar) -> V {
        scale(g.with(vec1.conj(), |g, v| mv(&t(g)?, v)), alpha)
    }
    fn batch(
        _b: &Batch,
        input: &Tensor,
        vec1: &Tensor,
        vec2: &Tensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<Tensor> {
        blend_outer(input, vec1, vec2, beta, alpha)
    }
}

#[primitive(
    tangent = added,
    shows(
        batch1_sym_argsize_0 = size(batch1, 0),
        batch1_sym_argsize_1 = size(batch1, 1),
        batch2_sym_argsize_2 = size(batch2, 2)
    )
)]
impl Addbmm {
    fn forward(
        input: &Tensor,
        batch1: &Tensor,
        batch2: &Tensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<Body> {
        no_grad(|| blend_batches(input, batch1, batch2, beta, alpha))
    }
    fn d_input(g: V, beta: Scalar) -> V {
        scale(g, beta)
    }
    fn d_batch1(g: V, batch2: V, alpha: Scalar) -> V {
        scale(g.matmul(batch2.mh()), alpha)
    }
    fn d_batch2(g: V, batch1: V, alpha: Scalar) -> V {
        scale(batch1.mh().matmul(g), alpha)
    }
    fn batch(
        _b: &Batch,
        input: &Tensor,
        batch1: &Tensor,
        batch2: &Tensor,
        beta: Scalar,
        alpha: Scalar,
    ) -> Result<Tensor> {
        blend_batches(input, batch1, batch2, beta, alpha)
    }
}

/// Rejects a factor that does not fit the dtype of the result.
fn check_factor(name: &str, factor: Scalar, dtype: DType) -> Result<()> {
    if matches!(factor, Scalar::Bool(_)) && dtype != DType::Bool {
        return Err(Error::runtime(format!("Boolean {name} only supported for Boolean results.")));
    }
    if !dtype.is_differentiable() && !matches!(factor, Scalar::Bool(_) | Scalar::Int(_)) {
        return Err(Error::runtime(format!(
            "For integral input tensors, argument {name} must not be a floating point number."
        )));
    }
    holds(dtype, factor)
}

/// `beta * input + alpha * addition`.
fn blend(input: &Tensor, beta: Scalar, addition: &Tensor, alpha: Scalar) -> Result<Tensor> {
    let times = |t: &Tensor, s: Scalar| if s.is_one() { Ok(t.clone()) } else { a::mul(t, s) };
    let addition = times(addition, alpha)?;
    if !beta.as_bool() { Ok(addition) } else { a::add(&times(input, beta)?, &addition) }
}

fn blend_outer(input: &Tensor, vec1: &Tensor, vec2: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    for (name, vec) in [("vec1", vec1), ("vec2", vec2)] {
        if vec.ndim() != 1 {
            return Err(Error::runtime(format!(
                "addr: Expected 1-D argument {name}, but got {}-D",
                vec.ndim()
            )));
        }
    }
    let input = &expand(input, ints(&[vec1.numel(), vec2.numel()]))?;
    let dtype = input.dtype().promote(vec1.dtype()).promote(vec2.dtype());
    check_factor("beta", beta, dtype)?;
    check_factor("alpha", alpha, dtype)?;
    let cast = |t: &Tensor| to_dtype(t, dtype);
    let (input, product) = (cast(input)?, outer(&cast(vec1)?, &cast(vec2)?)?);
    if dtype != DType::Bool {
        return blend(&input, beta, &product, alpha);
    }
    let only = |t: &Tensor, factor: Scalar| a::logical_and(t, Scalar::Bool(factor.as_bool()));
    a::logical_or(&only(&input, beta)?, &only(&product, alpha)?)
}

fn blend_batches(input: &Tensor, x: &Tensor, y: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    let dtype = input.dtype();
    holds(dtype, beta)?;
    holds(dtype, alpha)?;
    let sum = sum(&bmm(x, y)?, Some(smallvec::smallvec![0]), false, Some(dtype))?;
    let fitting = |s: Scalar| if dtype.is_differentiable() { s } else { Scalar::Int(s.as_i64()) };
    blend(input, fitting(beta), &sum, fitting(alpha))
}

/// Multiply two matrices and add a matrix: `beta * input + alpha * (mat1 @ mat2)`.
///
/// Args:
///     input: the matrix to add, which can be broadcast to the product.
///     mat1, mat2: the matrices to multiply.
///     beta: factor of `input`; with 0, its elements are ignored, NaN among them.
///     alpha: factor of the product.
///
/// Examples:
///     >>> torch.addmm(torch.ones(2, 2), torch.eye(2), torch.full((2, 2), 3.0))
///     tensor([[4., 4.],
///             [4., 4.]])
#[operator(
    function,
    method,
    inplace,
    out(declared, early),
    overloads((2, 4)),
    autocast = lower, flops = product_flops::<1>,
    sample = "product(name, lambda i, j, k, b: [(i, k), (i, j), (j, k)])"
)]
pub fn addmm(
    input: &Tensor,
    mat1: &Tensor,
    mat2: &Tensor,
    #[default(Scalar::Int(1))] beta: Scalar,
    #[default(Scalar::Int(1))] alpha: Scalar,
) -> Result<Tensor> {
    Addmm::call(input, mat1, mat2, beta, alpha, Columns::of(mat1, mat2))
}

/// Multiply batches of matrices and add a batch: `beta * input + alpha * (batch1 @ batch2)`.
///
/// Args:
///     input: the batch to add, which can be broadcast to the product.
///     batch1, batch2: the batches to multiply, `(b, n, m)` and `(b, m, p)`.
///     beta: factor of `input`; with 0, its elements are ignored, NaN among them.
///     alpha: factor of the product.
///
/// Examples:
///     >>> torch.baddbmm(torch.zeros(5, 2, 4), torch.ones(5, 2, 3), torch.ones(5, 3, 4)).shape
///     torch.Size([5, 2, 4])
#[operator(
    function,
    method,
    inplace,
    out(declared, early),
    overloads((2, 4)),
    autocast = lower, flops = product_flops::<1>,
    sample = "product(name, lambda i, j, k, b: [(b, i, k), (b, i, j), (b, j, k)])"
)]
pub fn baddbmm(
    input: &Tensor,
    batch1: &Tensor,
    batch2: &Tensor,
    #[default(Scalar::Int(1))] beta: Scalar,
    #[default(Scalar::Int(1))] alpha: Scalar,
) -> Result<Tensor> {
    Baddbmm::call(input, batch1, batch2, beta, alpha)
}

/// Multiply a matrix by a vector and add a vector: `beta * input + alpha * (mat @ vec)`.
///
/// Args:
///     input: the vector to add, which can be broadcast to the product.
///     mat: the matrix.
///     vec: the vector to multiply.
///     beta: factor of `input`; with 0, its elements are ignored, NaN among them.
///     alpha: factor of the product.
///
/// Examples:
///     >>> torch.addmv(torch.ones(2), torch.eye(2), torch.tensor([3.0, 4.0]))
///     tensor([4., 5.])
#[operator(
    function,
    method,
    inplace,
    out(declared, early),
    overloads((2, 4)),
    sample = "product(name, lambda i, j, k, b: [(i,), (i, j), (j,)])"
)]
pub fn addmv(
    input: &Tensor,
    mat: &Tensor,
    vec: &Tensor,
    #[default(Scalar::Int(1))] beta: Scalar,
    #[default(Scalar::Int(1))] alpha: Scalar,
) -> Result<Tensor> {
    Addmv::call(input, mat, vec, beta, alpha)
}

/// Multiply batches of matrices, sum the products and add a matrix.
///
/// The result is `beta * input + alpha * Σ batch1[i] @ batch2[i]`.
///
/// Args:
///     input: the matrix to add, which can be broadcast to the product.
///     batch1, batch2: the batches to multiply, `(b, n, m)` and `(b, m, p)`.
///     beta: factor of `input`; with 0, its elements are ignored, NaN among them.
///     alpha: factor of the sum of products.
///
/// Examples:
///     >>> torch.addbmm(torch.zeros(2, 4), torch.ones(5, 2, 3), torch.ones(5, 3, 4))
///     tensor([[15., 15., 15., 15.],
///             [15., 15., 15., 15.]])
#[operator(
    function,
    method,
    inplace,
    out(message = "self and mat2 must have the same dtype, but got {target} and {result}", silent, early),
    overloads((2, 4)),
    autocast = lower,
    sample = "product(name, lambda i, j, k, b: [(i, k), (b, i, j), (b, j, k)])"
)]
pub fn addbmm(
    input: &Tensor,
    batch1: &Tensor,
    batch2: &Tensor,
    #[default(Scalar::Int(1))] beta: Scalar,
    #[default(Scalar::Int(1))] alpha: Scalar,
) -> Result<Tensor> {
    need_dims("batch1", batch1, 3)?;
    need_dims("batch2", batch2, 3)?;
    check_batches(&batch1.shape(), &batch2.shape())?;
    check_dtype("self", input, batch2)?;
    check_dtype("mat1", batch1, batch2)?;
    if input.dtype() == DType::Bool {
        return Err(Fault::NoKernel { op: "addmm_impl_cpu_", dtype: DType::Bool }.into());
    }
    Addbmm::call(input, batch1, batch2, beta, alpha)
}

/// Compute the outer product of two vectors and add a matrix: `beta * input + alpha * outer(vec1, vec2)`.
///
/// Args:
///     input: the matrix to add, which can be broadcast to the product.
///     vec1, vec2: the vectors.
///     beta: factor of `input`; with 0, its elements are ignored, NaN among them.
///     alpha: factor of the product.
///
/// Examples:
///     >>> torch.addr(torch.zeros(2, 2), torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
///     tensor([[3., 4.],
///             [6., 8.]])
#[operator(
    function,
    method,
    inplace,
    out,
    overloads((2, 4)),
    sample = "product(name, lambda i, j, k, b: [(i, j), (i,), (j,)])"
)]
pub fn addr(
    input: &Tensor,
    vec1: &Tensor,
    vec2: &Tensor,
    #[default(Scalar::Int(1))] beta: Scalar,
    #[default(Scalar::Int(1))] alpha: Scalar,
) -> Result<Tensor> {
    Addr::call(input, vec1, vec2, beta, alpha)
}
