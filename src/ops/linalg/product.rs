//! Products built on matrix products, and those that add to something.

use crate::base::{Dims, broadcast, caution_once};
use crate::operator::kernel::{copy, fill, holds, matmul as multiply};
use crate::operator::prelude::*;
use crate::ops::complex::{Vdot, scaled};
use crate::ops::creation::create::{clone_dense, to_dtype, zeros};
use crate::ops::elementwise::arithmetic as a;
use crate::ops::linalg::matmul::{
    Columns, bmm, check_batch_dtypes, check_batches, dot, is_nothing, matmul, mm, product, same_dtype,
};
use crate::ops::reduction::reduce::{quietly, sum};
use crate::ops::shape::rearrange::{clone_as_it_lies, roll};
use crate::ops::shape::view::{
    expand, ints, reshape, reshaped, squeeze, squeeze_one, t, transpose, unsafe_view, unsqueeze,
};
use std::sync::atomic::AtomicBool;

/// `beta * input + alpha * (a @ b)`; when beta is 0 the input, even NaN, is not looked at.
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
        return quietly(|| {
            let product = a::mul(&Tensor::new(out.clone()), alpha)?;
            if !beta.as_bool() {
                Ok(product)
            } else {
                a::add(&a::mul(&Tensor::new(start.clone()), beta)?, &product)
            }
        });
    }
    if beta.as_f64() != 0.0 {
        copy(&out, &start.with_layout(wide))?;
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

fn check_matrices(name: &str, a: &Tensor, b: &Tensor) -> Result<()> {
    let (sa, sb) = (a.shape(), b.shape());
    if sa[1] != sb[0] {
        return Err(Error::runtime(format!(
            "{name}: mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
            sa[0], sa[1], sb[0], sb[1]
        )));
    }
    same_dtype(a, b)
}

/// The addition has the dtype of the product.
fn check_addition(input: &Tensor, right: &Tensor) -> Result<()> {
    if input.dtype() == right.dtype() {
        return Ok(());
    }
    Err(Error::runtime(format!(
        "self and mat2 must have the same dtype, but got {} and {}",
        input.dtype().scalar_name(),
        right.dtype().scalar_name()
    )))
}

/// A vector as a matrix of one column.
fn column(t: &Tensor) -> Result<Body> {
    let body = t.body();
    Ok(body.with_layout(body.layout.unsqueeze(1)?))
}

fn without_last(body: Body) -> Result<Body> {
    let last = body.layout.ndim() - 1;
    Ok(drop_dims(body, &[last]))
}

/// `input` is what the product is added to, or the vector itself.
fn check_vector(input: &Tensor, mat: &Tensor, vec: &Tensor) -> Result<()> {
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
        check_addition(input, mat2)?;
        need_dims("mat1", mat1, 2)?;
        need_dims("mat2", mat2, 2)?;
        check_matrices("addmm", mat1, mat2)?;
        add_product(input, &mat1.body(), &mat2.body(), beta, alpha)
    }
    fn d_input(g: V, beta: Scalar) -> V {
        scaled(g, beta)
    }
    fn d_mat1(g: V, mat2: V, alpha: Scalar, columns: Columns) -> V {
        scaled(columns.left_gradient(&g, &mat2), alpha)
    }
    fn d_mat2(g: V, mat1: V, alpha: Scalar, columns: Columns) -> V {
        scaled(columns.right_gradient(&g, &mat1), alpha)
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
        scaled(g, beta)
    }
    fn d_batch1(g: V, batch2: V, alpha: Scalar) -> V {
        scaled(g.matmul(batch2.mh()), alpha)
    }
    fn d_batch2(g: V, batch1: V, alpha: Scalar) -> V {
        scaled(batch1.mh().matmul(g), alpha)
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

fn matrix_by_vector(matrix: &Tensor, vector: &Tensor) -> Result<Tensor> {
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
        scaled(g, beta)
    }
    fn d_mat(g: V, vec: V, alpha: Scalar) -> V {
        scaled(g.with(vec.conj(), outer), alpha)
    }
    fn d_vec(g: V, mat: V, alpha: Scalar) -> V {
        scaled(mat.conj().with(g, |m, g| mv(&t(m)?, g)), alpha)
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
        quietly(|| blend_outer(input, vec1, vec2, beta, alpha))
    }
    fn d_input(g: V, beta: Scalar) -> V {
        scaled(g, beta)
    }
    fn d_vec1(g: V, vec2: V, alpha: Scalar) -> V {
        scaled(g.with(vec2.conj(), mv), alpha)
    }
    fn d_vec2(g: V, vec1: V, alpha: Scalar) -> V {
        scaled(g.with(vec1.conj(), |g, v| mv(&t(g)?, v)), alpha)
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
        quietly(|| blend_batches(input, batch1, batch2, beta, alpha))
    }
    fn d_input(g: V, beta: Scalar) -> V {
        scaled(g, beta)
    }
    fn d_batch1(g: V, batch2: V, alpha: Scalar) -> V {
        scaled(g.matmul(batch2.mh()), alpha)
    }
    fn d_batch2(g: V, batch1: V, alpha: Scalar) -> V {
        scaled(batch1.mh().matmul(g), alpha)
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

#[primitive(tangent = multilinear)]
impl LinalgCross {
    fn forward(input: &Tensor, other: &Tensor, dim: i64) -> Result<Body> {
        quietly(|| turned_product(input, other, dim))
    }
    fn d_input(g: V, other: V, dim: i64) -> V {
        other.conj().with(g, |o, g| LinalgCross::call(o, g, dim))
    }
    fn d_other(g: V, input: V, dim: i64) -> V {
        g.with(input.conj(), |g, x| LinalgCross::call(g, x, dim))
    }
    fn batch(_b: &Batch, input: &Tensor, other: &Tensor, dim: i64) -> Result<Tensor> {
        turned_product(input, other, dim)
    }
}

/// Refuses a factor that the elements of a sum with an outer product cannot take.
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

/// `input` scaled and `addition` scaled, added.
fn blend(input: &Tensor, beta: Scalar, addition: &Tensor, alpha: Scalar) -> Result<Tensor> {
    let scaled = |t: &Tensor, s: Scalar| if s.is_one() { Ok(t.clone()) } else { a::mul(t, s) };
    let addition = scaled(addition, alpha)?;
    if !beta.as_bool() { Ok(addition) } else { a::add(&scaled(input, beta)?, &addition) }
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

fn turned_product(input: &Tensor, other: &Tensor, dim: i64) -> Result<Tensor> {
    let shape = broadcast(&input.shape(), &other.shape())?;
    let (x, y) = (expand(input, ints(&shape))?, expand(other, ints(&shape))?);
    let turn = |t: &Tensor, by: i64| roll(t, smallvec::smallvec![by], Some(smallvec::smallvec![dim]));
    a::sub(&a::mul(&turn(&x, -1)?, &turn(&y, -2)?)?, &a::mul(&turn(&x, -2)?, &turn(&y, -1)?)?)
}

/// `beta * input + alpha * (mat1 @ mat2)`.
#[operator(
    function,
    method,
    inplace,
    out(declared, early),
    overloads((2, 4)),
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

/// `beta * input + alpha * (batch1 @ batch2)`, matrix by matrix.
#[operator(
    function,
    method,
    inplace,
    out(declared, early),
    overloads((2, 4)),
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

/// `beta * input + alpha * (mat @ vec)`.
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

/// `beta * input + alpha * Σ batch1[i] @ batch2[i]`.
#[operator(
    function,
    method,
    inplace,
    out(message = "self and mat2 must have the same dtype, but got {target} and {result}", silent, early),
    overloads((2, 4)),
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
    check_addition(input, batch2)?;
    same_dtype(batch1, batch2)?;
    if input.dtype() == DType::Bool {
        return Err(Fault::NoKernel { op: "addmm_impl_cpu_", dtype: DType::Bool }.into());
    }
    Addbmm::call(input, batch1, batch2, beta, alpha)
}

/// `beta * input + alpha * (vec1 ⊗ vec2)`.
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

/// Product of a matrix and a vector.
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

/// Every element of one vector times every element of another.
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
    a::mul(&reshape(input, &[input.numel(), 1])?, vec2)
}

/// Every element of one vector times every element of another (`outer`).
#[operator(function, method, out, sample = "product(name, lambda i, j, k, b: [(i,), (j,)])")]
pub fn ger(input: &Tensor, vec2: &Tensor) -> Result<Tensor> {
    outer(input, vec2)
}

/// Inner product of two vectors, the first conjugated where that means something.
#[operator(
    function,
    method,
    out(message = "result dtype {target} does not match input dtype {result}", early),
    sample = "product(name, lambda i, j, k, b: [(i,), (i,)])"
)]
pub fn vdot(input: &Tensor, other: &Tensor) -> Result<Tensor> {
    let complex = input.dtype().is_complex() && input.dtype() == other.dtype();
    let real =
        input.dtype().is_float() && input.dtype() == other.dtype() && (input.ndim(), other.ndim()) == (1, 1);
    if complex || real { Vdot::call(input, other) } else { dot(input, other) }
}

/// Kronecker product: every element of `input` times the whole of `other`.
#[operator(
    function,
    method,
    out(called = "mul"),
    sample = "product(name, lambda i, j, k, b: [(i, j), (k,)])"
)]
pub fn kron(input: &Tensor, other: &Tensor) -> Result<Tensor> {
    let n = input.ndim().max(other.ndim());
    let padded = |t: &Tensor| {
        let mut shape: Dims = smallvec::smallvec![1; n - t.ndim()];
        shape.extend(t.shape());
        shape
    };
    let (sa, sb) = (padded(input), padded(other));
    let (mut wide_a, mut wide_b, mut shape) = (Dims::new(), Dims::new(), Dims::new());
    for d in 0..n {
        wide_a.extend([sa[d], 1]);
        wide_b.extend([1, sb[d]]);
        shape.push(sa[d] * sb[d]);
    }
    let wide = |t: &Tensor, shape: Dims| {
        let dense = t.body().layout.is_contiguous();
        if dense { unsafe_view(t, shape) } else { reshape(t, &shape) }
    };
    unsafe_view(&a::mul(&wide(input, wide_a)?, &wide(other, wide_b)?)?, shape)
}

/// The matrix multiplied with itself, `n` times.
#[operator(
    function,
    method,
    out,
    composite,
    sample = "shaped(lambda draw, shape: (lambda n: lambda x: x.matrix_power(n))(draw(st.integers(2, 4))), st.just((2, 3, 3)))"
)]
pub fn matrix_power(input: &Tensor, n: i64) -> Result<Tensor> {
    super::factors::check_square("linalg.matrix_power", input)?;
    if n < 0 {
        let back = n
            .checked_neg()
            .ok_or_else(|| Error::runtime("linalg.matrix_power: the exponent is too small"))?;
        return matrix_power(&super::solve::linalg_inv(input)?, back);
    }
    let shape = input.shape();
    let k = shape.len();
    if n == 0 {
        let eye = zeros(&[shape[k - 1]; 2], input.dtype(), input.device())?;
        let line = eye.body().layout.diagonal(0, 0, 1)?;
        fill(&eye.body().with_layout(line), Scalar::Int(1))?;
        return clone_dense(&expand(&eye, ints(&shape))?);
    }
    let (mut result, mut square, mut left): (Option<Tensor>, _, _) = (None, input.clone(), n);
    loop {
        if left & 1 == 1 {
            result = Some(match result {
                Some(r) => product(&r, &square)?,
                None => square.clone(),
            });
        }
        left >>= 1;
        match (left, result) {
            (0, Some(result)) => return Ok(result),
            (_, r) => result = r,
        }
        square = product(&square, &square)?;
    }
}

/// The product of several matrices, cheapest order first.
#[operator(function, out, sample = "fixed([(2, 3), (3, 4), (4, 2)], unwarned(named(name)))")]
pub fn chain_matmul(matrices: Several) -> Result<Tensor> {
    static TOLD: AtomicBool = AtomicBool::new(false);
    caution_once(
        &TOLD,
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot \
         instead, which accepts a list of two or more tensors rather than multiple parameters.",
    )?;
    let mut chain = matrices.0;
    if let Some(t) = chain.iter().find(|t| t.ndim() != 2) {
        return Err(Error::runtime(format!("Tensor dimension is {}, expected 2 instead.", t.ndim())));
    }
    match chain.as_slice() {
        [] => return Err(Error::runtime("chain_matmul(): Expected one or more matrices")),
        [only] => return clone_as_it_lies(only),
        _ => {}
    }
    while chain.len() > 1 {
        // The pair with the longest shared side goes first, the first one of several.
        let shared = |i: usize| chain[i].shape().last().copied().unwrap_or(0);
        let at = (0..chain.len() - 1).rev().max_by_key(|&i| shared(i)).unwrap_or(0);
        let pair = matmul(&chain[at], &chain[at + 1])?;
        chain.remove(at + 1);
        chain[at] = pair;
    }
    let product = chain.swap_remove(0);
    reshaped(&product, &product.shape())
}

/// Vector product along a dimension of size 3.
#[operator(
    function,
    method,
    out(declared, early, called = "linalg_cross"),
    sample = "fixed([(2, 3), (1, 3)], lambda a, b: T.cross(a, b, dim=1))"
)]
pub fn cross(input: &Tensor, other: &Tensor, dim: Option<i64>) -> Result<Tensor> {
    if input.ndim() != other.ndim() {
        return Err(Error::runtime("linalg.cross: inputs must have the same number of dimensions."));
    }
    let shape = broadcast(&input.shape(), &other.shape())?;
    let dim = match dim {
        Some(dim) => wrap_dim(dim, shape.len())?,
        None => {
            static TOLD: AtomicBool = AtomicBool::new(false);
            caution_once(
                &TOLD,
                "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or \
                 simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross in \
                 a future release.",
            )?;
            shape
                .iter()
                .position(|&n| n == 3)
                .ok_or_else(|| Error::runtime("no dimension of size 3 in input"))?
        }
    };
    if shape.get(dim) != Some(&3) {
        return Err(Error::runtime(format!(
            "linalg.cross: inputs dimension {dim} must have length 3. Got {} and {}",
            input.shape().get(dim).copied().unwrap_or(1),
            other.shape().get(dim).copied().unwrap_or(1)
        )));
    }
    LinalgCross::call(input, other, dim as i64)
}

/// `input1 · weight[k] · input2` for each k, plus `bias`.
#[operator(nn, sample = "fixed([(4, 2), (4, 3), (2, 2, 3), (2,)], lambda *xs: F.bilinear(*xs))")]
pub fn bilinear(input1: &Tensor, input2: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let (s1, s2, w) = (input1.shape(), input2.shape(), weight.shape());
    if w.len() != 3
        || s1.last() != Some(&w[1])
        || s2.last() != Some(&w[2])
        || s1[..s1.len() - 1] != s2[..s2.len() - 1]
    {
        return Err(Error::runtime(format!(
            "bilinear(): input1, input2 and weight do not fit together: {:?}, {:?}, {:?}",
            s1.as_slice(),
            s2.as_slice(),
            w.as_slice()
        )));
    }
    let rows: usize = s1[..s1.len() - 1].iter().product();
    let (x, y) = (reshape(input1, &[rows, w[1]])?, reshape(input2, &[rows, w[2]])?);
    let half =
        reshape(&mm(&x, &reshape(&transpose(weight, 0, 1)?, &[w[1], w[0] * w[2]])?)?, &[rows, w[0], w[2]])?;
    let out = squeeze(&bmm(&half, &unsqueeze(&y, 2)?)?, Some(smallvec::smallvec![2]))?;
    let mut shape = Dims::from_slice(&s1[..s1.len() - 1]);
    shape.push(w[0]);
    let out = reshape(&out, &shape)?;
    match bias {
        Some(bias) => a::add(&out, bias),
        None => Ok(out),
    }
}
