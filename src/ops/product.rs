//! Products built on matrix products, and those that add to something.

use super::arithmetic as a;
use super::complex::scaled;
use super::create::to_dtype;
use super::kernel::{copy, holds, matmul as multiply};
use super::linalg::{Columns, bmm, check_batch_dtypes, dot, is_nothing, matmul, mm, product, same_dtype};
use super::macros::{compose, ops};
use super::reduce::quietly;
use super::view::{expand, ints, reshape, reshaped, t, transpose, unsafe_view, unsqueeze};
use crate::base::{DType, Dims, Error, Fault, Result, Scalar, caution_once, wrap_dim};
use crate::tensor::{Body, Tensor};
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
        return super::reduce::quietly(|| {
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

fn check_batches(a: &Tensor, b: &Tensor) -> Result<()> {
    need_dims("batch1", a, 3)?;
    need_dims("batch2", b, 3)?;
    let (sa, sb) = (a.shape(), b.shape());
    if sa[0] != sb[0] || sa[2] != sb[1] {
        return Err(Error::runtime(format!(
            "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
            sa[0], sa[2], sb[0], sb[1]
        )));
    }
    Ok(())
}

/// A vector as a matrix of one column.
fn column(t: &Tensor) -> Result<Body> {
    let body = t.body();
    Ok(body.with_layout(body.layout.unsqueeze(1)?))
}

fn outer(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    more::outer(a.clone(), b.clone())
}

fn without_last(body: Body) -> Result<Body> {
    let last = body.layout.ndim() - 1;
    Ok(super::kernel::drop_dims(body, &[last]))
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

/// `beta * input + alpha * (mat1 @ mat2)`.
pub fn addmm(input: &Tensor, mat1: &Tensor, mat2: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    added_matrices(input, mat1, mat2, beta, alpha, Columns::of(mat1, mat2))
}

ops! { "linalg";
    /// `beta * input + alpha * (mat1 @ mat2)`.
    [hidden, added] fn added_matrices(input, mat1, mat2; beta: Scalar, alpha: Scalar, columns: Columns) -> y {
        check_addition(input, mat2)?;
        need_dims("mat1", mat1, 2)?;
        need_dims("mat2", mat2, 2)?;
        check_matrices("addmm", mat1, mat2)?;
        add_product(input, &mat1.body(), &mat2.body(), beta, alpha)
    }
    input: |g, beta| scaled(g, beta);
    mat1: |g, mat2, alpha, columns| scaled(columns.left_gradient(&g, &mat2), alpha);
    mat2: |g, mat1, alpha, columns| scaled(columns.right_gradient(&g, &mat1), alpha);
    /// `beta * input + alpha * (batch1 @ batch2)`, matrix by matrix.
    [inplace, out, added] fn baddbmm(input, batch1, batch2; beta: Scalar = Scalar::Int(1), alpha: Scalar = Scalar::Int(1)) -> y {
        check_batches(batch1, batch2)?;
        if input.dtype() != batch1.dtype() {
            let name = |t: &Tensor| t.dtype().c_name();
            return Err(Error::runtime(format!(
                "Input dtypes must be the same, got: input {}, batch1: {}, batch2: {}", name(input), name(batch1), name(batch2)
            )));
        }
        check_batch_dtypes("baddbmm", &batch1.body(), &batch2.body())?;
        add_product(input, &batch1.body(), &batch2.body(), beta, alpha)
    }
    input: |g, beta| scaled(g, beta);
    batch1: |g, batch2, alpha| scaled(g.matmul(batch2.mh()), alpha);
    batch2: |g, batch1, alpha| scaled(batch1.mh().matmul(g), alpha);
    /// Product of a matrix and a vector.
    [out, multilinear] fn mv(input, vec) -> y {
        check_vector(vec, input, vec)?;
        let m = input.body();
        let out = Body::new(&[m.shape()[0], 1], m.dtype, m.device().joined(vec.device()))?;
        multiply(&out, &m, &column(vec)?, 1.0, 0.0)?;
        without_last(out)
    }
    input: |g, vec| g.with(vec.conj(), outer);
    vec: |g, input| input.conj().with(g, |m, g| mv(&t(m)?, g));
    /// `beta * input + alpha * (mat @ vec)`.
    [inplace, out, added] fn addmv(input, mat, vec; beta: Scalar = Scalar::Int(1), alpha: Scalar = Scalar::Int(1)) -> y {
        check_vector(input, mat, vec)?;
        if input.ndim() > 0 && input.numel() != mat.shape()[0] && input.numel() != 1 {
            return Err(Error::runtime(format!(
                "size mismatch, got input ({}), mat ({}x{}), vec ({})",
                input.numel(), mat.shape()[0], mat.shape()[1], vec.numel()
            )));
        }
        let raised = match input.ndim() {
            0 => Tensor::new(input.body().clone()),
            _ => Tensor::new(column(input)?),
        };
        without_last(add_product(&raised, &mat.body(), &column(vec)?, beta, alpha)?)
    }
    input: |g, beta| scaled(g, beta);
    mat: |g, vec, alpha| scaled(g.with(vec.conj(), outer), alpha);
    vec: |g, mat, alpha| scaled(mat.conj().with(g, |m, g| mv(&t(m)?, g)), alpha);
    /// `beta * input + alpha * (vec1 ⊗ vec2)`.
    [hidden, added] fn added_outer(input, vec1, vec2; beta: Scalar, alpha: Scalar) -> y {
        quietly(|| blend_outer(input, vec1, vec2, beta, alpha))
    }
    input: |g, beta| scaled(g, beta);
    vec1: |g, vec2, alpha| scaled(g.with(vec2.conj(), mv), alpha);
    vec2: |g, vec1, alpha| scaled(g.with(vec1.conj(), |g, v| mv(&t(g)?, v)), alpha);
    /// `beta * input + alpha * Σ batch1[i] @ batch2[i]`.
    [hidden, added] fn added_batches(input, batch1, batch2; beta: Scalar, alpha: Scalar) -> y {
        quietly(|| blend_batches(input, batch1, batch2, beta, alpha))
    }
    input: |g, beta| scaled(g, beta);
    batch1: |g, batch2, alpha| scaled(g.matmul(batch2.mh()), alpha);
    batch2: |g, batch1, alpha| scaled(batch1.mh().matmul(g), alpha);
    /// Vector product along a dimension of size 3.
    [hidden, multilinear] fn vector_product(input, other; dim: i64) -> y { quietly(|| turned_product(input, other, dim)) }
    input: |g, other, dim| other.conj().with(g, |o, g| vector_product(o, g, dim));
    other: |g, input, dim| g.with(input.conj(), |g, x| vector_product(g, x, dim));
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

pub fn blend_outer(
    input: &Tensor,
    vec1: &Tensor,
    vec2: &Tensor,
    beta: Scalar,
    alpha: Scalar,
) -> Result<Tensor> {
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
    let (input, outer) = (cast(input)?, outer(&cast(vec1)?, &cast(vec2)?)?);
    if dtype != DType::Bool {
        return blend(&input, beta, &outer, alpha);
    }
    let only = |t: &Tensor, factor: Scalar| a::logical_and(t, Scalar::Bool(factor.as_bool()));
    a::logical_or(&only(&input, beta)?, &only(&outer, alpha)?)
}

pub fn blend_batches(input: &Tensor, x: &Tensor, y: &Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    let dtype = input.dtype();
    holds(dtype, beta)?;
    holds(dtype, alpha)?;
    let sum = crate::ops::reduce::sum(&bmm(x, y)?, Some(smallvec::smallvec![0]), false, Some(dtype))?;
    let fitting = |s: Scalar| if dtype.is_differentiable() { s } else { Scalar::Int(s.as_i64()) };
    blend(input, fitting(beta), &sum, fitting(alpha))
}

pub fn turned_product(input: &Tensor, other: &Tensor, dim: i64) -> Result<Tensor> {
    let shape = crate::base::broadcast(&input.shape(), &other.shape())?;
    let (x, y) = (expand(input, ints(&shape))?, expand(other, ints(&shape))?);
    let turn = |t: &Tensor, by: i64| {
        crate::ops::shape::roll(t, smallvec::smallvec![by], Some(smallvec::smallvec![dim]))
    };
    a::sub(&a::mul(&turn(&x, -1)?, &turn(&y, -2)?)?, &a::mul(&turn(&x, -2)?, &turn(&y, -1)?)?)
}

mod more {
    use super::*;

    compose! { "linalg";
        /// `beta * input + alpha * (mat1 @ mat2)`.
        [inplace, out] fn addmm(input: Tensor, mat1: Tensor, mat2: Tensor, beta: Scalar = Scalar::Int(1), alpha: Scalar = Scalar::Int(1)) -> Tensor {
            super::addmm(&input, &mat1, &mat2, beta, alpha)
        }
        /// `beta * input + alpha * Σ batch1[i] @ batch2[i]`.
        [inplace, out] fn addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, beta: Scalar = Scalar::Int(1), alpha: Scalar = Scalar::Int(1)) -> Tensor {
            check_batches(&batch1, &batch2)?;
            check_addition(&input, &batch2)?;
            same_dtype(&batch1, &batch2)?;
            if input.dtype() == DType::Bool {
                return Err(Fault::NoKernel { op: "addmm_impl_cpu_", dtype: DType::Bool }.into());
            }
            added_batches(&input, &batch1, &batch2, beta, alpha)
        }
        /// `beta * input + alpha * (vec1 ⊗ vec2)`.
        [inplace, out] fn addr(input: Tensor, vec1: Tensor, vec2: Tensor, beta: Scalar = Scalar::Int(1), alpha: Scalar = Scalar::Int(1)) -> Tensor {
            added_outer(&input, &vec1, &vec2, beta, alpha)
        }
        /// Every element of one vector times every element of another.
        [out] fn outer(input: Tensor, vec2: Tensor) -> Tensor {
            if input.ndim() != 1 || vec2.ndim() != 1 {
                let (which, n) = if input.ndim() != 1 { ("self", input.ndim()) } else { ("vec2", vec2.ndim()) };
                return Err(Error::runtime(format!("outer: Expected 1-D argument {which}, but got {n}-D")));
            }
            a::mul(&reshape(&input, &[input.numel(), 1])?, &vec2)
        }
        /// Every element of one vector times every element of another (`outer`).
        [out] fn ger(input: Tensor, vec2: Tensor) -> Tensor { outer(input, vec2) }
        /// Inner product of two vectors, the first conjugated where that means something.
        [out] fn vdot(input: Tensor, other: Tensor) -> Tensor {
            let complex = input.dtype().is_complex() && input.dtype() == other.dtype();
            let real = input.dtype().is_float() && input.dtype() == other.dtype() && (input.ndim(), other.ndim()) == (1, 1);
            if complex || real { crate::ops::complex::conjugate_product(&input, &other) } else { dot(input, other) }
        }
        /// Kronecker product: every element of `input` times the whole of `other`.
        [out] fn kron(input: Tensor, other: Tensor) -> Tensor {
            let n = input.ndim().max(other.ndim());
            let padded = |t: &Tensor| {
                let mut shape: Dims = smallvec::smallvec![1; n - t.ndim()];
                shape.extend(t.shape());
                shape
            };
            let (sa, sb) = (padded(&input), padded(&other));
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
            unsafe_view(&a::mul(&wide(&input, wide_a)?, &wide(&other, wide_b)?)?, shape)
        }
        /// The matrix multiplied with itself, `n` times.
        [out] fn matrix_power(input: Tensor, n: i64) -> Tensor {
            let shape = input.shape();
            let k = shape.len();
            if k < 2 || shape[k - 1] != shape[k - 2] {
                return Err(Error::runtime("linalg.matrix_power: A must be batches of square matrices"));
            }
            if n < 0 {
                return Err(Error::not_implemented("matrix_power: negative powers need the inverse, which gradiron does not have yet"));
            }
            if n == 0 {
                let eye = crate::ops::create::zeros(&[shape[k - 1]; 2], input.dtype(), input.device())?;
                let line = eye.body().layout.diagonal(0, 0, 1)?;
                crate::ops::kernel::fill(&eye.body().with_layout(line), Scalar::Int(1))?;
                return crate::ops::create::clone_dense(&expand(&eye, ints(&shape))?);
            }
            let (mut result, mut square, mut left): (Option<Tensor>, _, _) = (None, input, n);
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
        [no_method, out] fn chain_matmul(matrices: crate::ops::Several) -> Tensor {
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
                [only] => return crate::ops::shape::clone_as_it_lies(only),
                _ => {}
            }
            while chain.len() > 1 {
                // The pair with the longest shared side goes first, the first one of several.
                let shared = |i: usize| chain[i].shape().last().copied().unwrap_or(0);
                let at = (0..chain.len() - 1).rev().max_by_key(|&i| shared(i)).unwrap_or(0);
                let pair = matmul(chain[at].clone(), chain.remove(at + 1))?;
                chain[at] = pair;
            }
            let product = chain.swap_remove(0);
            reshaped(&product, &product.shape())
        }
        /// Vector product along a dimension of size 3.
        [out] fn cross(input: Tensor, other: Tensor, dim: Option<i64> = None) -> Tensor {
            if input.ndim() != other.ndim() {
                return Err(Error::runtime("linalg.cross: inputs must have the same number of dimensions."));
            }
            let shape = crate::base::broadcast(&input.shape(), &other.shape())?;
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
                    shape.iter().position(|&n| n == 3).ok_or_else(|| Error::runtime("no dimension of size 3 in input"))?
                }
            };
            if shape.get(dim) != Some(&3) {
                return Err(Error::runtime(format!(
                    "linalg.cross: inputs dimension {dim} must have length 3. Got {} and {}",
                    input.shape().get(dim).copied().unwrap_or(1), other.shape().get(dim).copied().unwrap_or(1)
                )));
            }
            vector_product(&input, &other, dim as i64)
        }
        /// `input1 · weight[k] · input2` for each k, plus `bias`.
        [nn] fn bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Option<Tensor> = None) -> Tensor {
            let (s1, s2, w) = (input1.shape(), input2.shape(), weight.shape());
            if w.len() != 3 || s1.last() != Some(&w[1]) || s2.last() != Some(&w[2]) || s1[..s1.len() - 1] != s2[..s2.len() - 1] {
                return Err(Error::runtime(format!(
                    "bilinear(): input1, input2 and weight do not fit together: {:?}, {:?}, {:?}", s1.as_slice(), s2.as_slice(), w.as_slice()
                )));
            }
            let rows: usize = s1[..s1.len() - 1].iter().product();
            let (x, y) = (reshape(&input1, &[rows, w[1]])?, reshape(&input2, &[rows, w[2]])?);
            let half = reshape(&mm(&x, &reshape(&transpose(&weight, 0, 1)?, &[w[1], w[0] * w[2]])?)?, &[rows, w[0], w[2]])?;
            let out = crate::ops::view::squeeze(&bmm(&half, &unsqueeze(&y, 2)?)?, Some(smallvec::smallvec![2]))?;
            let mut shape = Dims::from_slice(&s1[..s1.len() - 1]);
            shape.push(w[0]);
            let out = reshape(&out, &shape)?;
            match bias {
                Some(bias) => a::add(&out, &bias),
                None => Ok(out),
            }
        }
    }
}
pub use more::COMPOSED;
