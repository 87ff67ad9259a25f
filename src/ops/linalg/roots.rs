//! Square roots of Hermitian matrices, and the polar decomposition.
#![allow(non_snake_case, reason = "PyTorch's names are A, U and H")]

use super::eigh::LinalgEigh;
use super::factors::*;
use super::solve::linalg_solve;
use super::svd::LinalgSvd;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce;
use crate::ops::shape::squeeze;
use crate::tensor::mode;

fn row(x: &V) -> V {
    x.clone().then(|t| squeeze::unsqueeze(&t, -2))
}

fn high(x: &V) -> V {
    x.clone().then(|t| squeeze::unsqueeze(&t, -1))
}

/// The eigenvalues, with negative ones clamped to 0, and the eigenvectors.
fn spectrum(A: &V) -> Result<[V; 2]> {
    let [values, vectors] = LinalgEigh::call(&A.clone().tensor()?, false)?;
    let values = V::from(values);
    Ok([select(&values, 0.0, lt(&values, 0.0)), vectors.into()])
}

/// Solves `M X + X M = R`, where `M` has these eigenvalues and eigenvectors.
fn sylvester(values: &V, vectors: &V, R: V) -> V {
    let in_basis = vectors.mh().matmul(R.matmul(vectors)) / (row(values) + high(values));
    vectors.matmul(in_basis.matmul(vectors.mh()))
}

#[primitive(batch = in_front)]
impl LinalgMatrixSqrth {
    fn forward(A: &Tensor) -> Result<Body> {
        reduce::no_grad(|| {
            let [values, vectors] = spectrum(&A.into())?;
            (&vectors * row(&sqrt(values))).matmul(vectors.mh()).tensor()
        })
    }
    fn d_A(g: V, A: V) -> Result<V> {
        let [values, vectors] = spectrum(&A)?;
        Ok(sylvester(&sqrt(values), &vectors, (&g + g.mh()) * 0.5))
    }
}

/// Compute the positive semidefinite square root of symmetric (Hermitian) matrices.
///
/// Args:
///     input: matrix or batch of matrices; only the lower triangle is read.
///
/// Examples:
///     >>> torch.linalg.matrix_sqrth(torch.tensor([[4.0, 0.0], [0.0, 9.0]]))
///     tensor([[2., 0.],
///             [0., 3.]])
#[operator(
    function,
    space = "linalg",
    sample = "on_host(squares(lambda x: T.linalg.matrix_sqrth(symmetric(apart(x)))))"
)]
pub fn linalg_matrix_sqrth(input: &Tensor) -> Result<Tensor> {
    check_square("linalg.matrix_sqrth", input)?;
    check_floating("linalg.matrix_sqrth", input, false)?;
    LinalgMatrixSqrth::call(input)
}

#[primitive(batch = in_front, results(U, H))]
impl LinalgPolar {
    fn forward(A: &Tensor) -> Result<[Body; 2]> {
        let [U, H] = mode::with_grad(false, || -> Result<[V; 2]> {
            let [left, values, right] = LinalgSvd::call(A, false)?;
            let right = V::from(right);
            Ok([V::from(left).matmul(&right), right.mh().matmul(high(&values.into()) * &right)])
        })?;
        Ok([U.tensor()?.body().clone(), H.tensor()?.body().clone()])
    }
    /// `H` is `Uᴴ A`. One part of the gradient of `U` rotates its columns, the other leaves their span.
    fn d_A(g: [Option<V>; 2], A: V, U: V, H: V) -> Result<V> {
        let [g_U, g_H] = g;
        let through_H = g_H.as_ref().map(|g| A.matmul(g.mh()));
        let g_U = plus(g_U, through_H).unwrap_or_else(V::misuse);
        let [values, vectors] = spectrum(&H)?;
        let along = U.mh().matmul(&g_U);
        let mut whole = U.matmul(sylvester(&values, &vectors, &along - along.mh()));
        let [rows, columns] = rows_and_columns(&A.shape());
        if rows > columns {
            let beyond = g_U - U.matmul(along);
            whole = whole + H.with(beyond, |H, beyond| linalg_solve(H, beyond, false));
        }
        Ok(plus(Some(whole), g_H.map(|g| U.matmul(g))).unwrap_or_else(V::misuse))
    }
}

/// Compute the polar decomposition of matrices: `A = U @ H`.
///
/// Returns:
///     A named tuple `(U, H)`: orthonormal columns, and a positive semidefinite Hermitian matrix.
///
/// Examples:
///     >>> torch.linalg.polar(torch.tensor([[2.0, 0.0], [0.0, 3.0]])).H
///     tensor([[2., 0.],
///             [0., 3.]])
#[operator(
    function,
    space = "linalg",
    returns(U, H),
    out(declared),
    sample = "on_host(rectangles(lambda x: T.linalg.polar(apart(x if x.shape[-2] >= x.shape[-1] else x.mT))))"
)]
pub fn linalg_polar(A: &Tensor) -> Result<[Tensor; 2]> {
    check_matrix("linalg.polar", "A", A)?;
    check_floating("linalg.polar", A, true)?;
    let [rows, columns] = rows_and_columns(&A.shape());
    if rows < columns {
        return Err(Error::runtime(format!(
            "linalg.polar: input must have at least as many rows as columns, but got {rows} by {columns} matrices"
        )));
    }
    LinalgPolar::call(A)
}
