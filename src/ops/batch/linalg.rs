//! Rules of products: batches of matrices where both operands are batched, one tall product where only one is.

use super::Batch;
use super::rules::{Rules, rules};
use crate::base::{Error, Result, Scalar};
use crate::ops::linalg::{bmm, matmul, mm, product};
use crate::ops::view::{squeeze_one, transpose, unsqueeze};
use crate::ops::{arithmetic as a, reduce};
use crate::tensor::Tensor;

/// Up to so many columns of samples are rows of one product with the shared matrix.
const COLUMNS: usize = 4;

/// The product of two matrices; what a sample may not do is refused in its own words.
fn matrices(b: &Batch, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let (sx, sy) = (x.shape(), y.shape());
    for (t, shape, which) in [(x, &sx, "self"), (y, &sy, "mat2")] {
        if t.ndim() != 2 {
            return Err(Error::runtime(format!(
                "mm: {which} must be a matrix, got {}-D tensor",
                shape.len()
            )));
        }
    }
    if sx[1] != sy[0] {
        return Err(Error::runtime(format!(
            "mm: mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
            sx[0], sx[1], sy[0], sy[1]
        )));
    }
    let made = match (x.is_batched(), y.is_batched()) {
        (true, false) => matmul(x.physical().clone(), y.clone()),
        // Few columns: the transposed product is a tall one.
        (false, true) if sy[1] <= COLUMNS => {
            let turned = |t: &Tensor| transpose(t, -2, -1);
            matmul(turned(y.physical())?, turned(x)?).and_then(|t| turned(&t))
        }
        (false, true) => product(x, y.physical()),
        _ => product(&b.full(x)?, &b.full(y)?),
    };
    made.map(|t| b.wrap(t))
}

fn batches(b: &Batch, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let (sx, sy) = (x.shape(), y.shape());
    if sx.len() != 3 || sy.len() != 3 {
        let which = if sx.len() != 3 { "batch1" } else { "batch2" };
        return Err(Error::runtime(format!("{which} must be a 3D tensor")));
    }
    if sx[0] != sy[0] || sx[2] != sy[1] {
        return Err(Error::runtime(format!(
            "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
            sx[0], sx[2], sy[0], sy[1]
        )));
    }
    product(&b.full(x)?, &b.full(y)?).map(|t| b.wrap(t))
}

fn matrix_by_vector(matrix: &Tensor, vector: &Tensor) -> Result<Tensor> {
    squeeze_one(&mm(matrix, &unsqueeze(vector, 1)?)?, 1)
}

/// `beta * input + alpha * product`; when beta is 0 the input, even NaN, is not looked at.
fn added(input: &Tensor, product: Tensor, beta: Scalar, alpha: Scalar) -> Result<Tensor> {
    let product = if alpha.is_one() { product } else { a::mul(&product, alpha)? };
    if !beta.as_bool() {
        return Ok(product);
    }
    if beta.is_one() { a::add(input, &product) } else { a::add(&a::mul(input, beta)?, &product) }
}

pub const PHYSICAL: Rules = rules! { physical b;
    linalg::inner_product(x, y) => reduce::Sum1::call(&a::mul(x, y)?, smallvec::smallvec![-1], false);
};

pub const SEEN: Rules = rules! { seen b;
    linalg::product_of_matrices(x, y; _columns) => matrices(b, x, y);
    linalg::bmm(x, y) => batches(b, x, y);
    product::mv(x, vector) => matrix_by_vector(x, vector);
    product::added_matrices(input, x, y; beta, alpha, _columns) => added(input, mm(x, y)?, beta, alpha);
    product::baddbmm(input, x, y; beta, alpha) => added(input, bmm(x, y)?, beta, alpha);
    product::added_outer(input, x, y; beta, alpha) => crate::ops::product::blend_outer(input, x, y, beta, alpha);
    product::added_batches(input, x, y; beta, alpha) => crate::ops::product::blend_batches(input, x, y, beta, alpha);
    product::vector_product(x, y; dim) => crate::ops::product::turned_product(x, y, dim);
    product::addmv(input, x, vector; beta, alpha) => added(input, matrix_by_vector(x, vector)?, beta, alpha);
};
