//! Eigenvalues and eigenvectors of Hermitian matrices.
#![allow(non_snake_case, reason = "PyTorch's names are A and UPLO")]

use super::factors::*;
use crate::operator::bodies::filled;
use crate::operator::primitives::constant;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce;
use crate::ops::shape::{slices, squeeze};

/// The eigenvalues and eigenvectors. Without `with_vectors`, the second result is scratch memory.
fn decompose(x: &Body, upper: bool, with_vectors: bool) -> Result<[Body; 2]> {
    let n = rows_and_columns(x.shape())[0];
    let info = codes(x)?;
    // The upper triangle is the lower one of the transpose, which is the conjugate matrix.
    let vectors = by_columns(&if upper { transposed(x)? } else { x.clone() })?;
    let vectors = if upper && x.dtype.is_complex() {
        by_columns(&reduce::no_grad(|| crate::ops::complex::conj_physical(&Tensor::new(vectors)))?)?
    } else {
        vectors
    };
    let values = filled(&batch_of(x, &[n]), Scalar::Int(0), x.dtype.to_real(), x.device())?;
    if vectors.numel() > 0 || !has_kernel(x.dtype) {
        fork!(over [vectors, values, info], with [with_vectors, x],
            cpu: crate::cpu::linalg::eigh(vectors.host()?, values.host()?, info.host()?, with_vectors),
            gpu: no_shader("linalg_eigh", x.dtype))?;
    }
    if let Some((place, code)) = first_failure(&info)? {
        return Err(not_converged("linalg.eigh", &place, "eigenvalues", code));
    }
    Ok([values, vectors])
}

#[primitive(batch = in_front, results(eigenvalues, eigenvectors))]
impl LinalgEigh {
    fn forward(A: &Tensor, #[hidden] upper: bool) -> Result<[Body; 2]> {
        decompose(&A.body(), upper, true)
    }
    fn d_A(g: [Option<V>; 2], eigenvalues: V, eigenvectors: V) -> Result<V> {
        let row = |x: &V| x.clone().then(|t| squeeze::unsqueeze(&t, -2));
        let high = |x: &V| x.clone().then(|t| squeeze::unsqueeze(&t, -1));
        let adjoint = eigenvectors.mh();
        Ok(match g {
            [Some(values), None] => (&eigenvectors * row(&values)).matmul(adjoint),
            [values, Some(vectors)] => {
                let in_basis = adjoint.matmul(vectors);
                if in_basis.is_complex() && !in_basis.is_special() {
                    check_phase("linalg_eigh", &in_basis)?;
                }
                // The derivative of the eigenvectors in their own basis is skew-Hermitian.
                let in_basis = (&in_basis - in_basis.mh()) * 0.5;
                let line = unit_of(&eigenvalues)?;
                let gaps = row(&eigenvalues) - high(&eigenvalues) + &line;
                let dtype = eigenvectors.clone().tensor()?.dtype();
                let inner = plus(
                    Some(in_basis / gaps * (1.0 - line)),
                    values.map(|g| diagonal_matrix(g.cast(dtype))),
                );
                let inner = inner.unwrap_or_else(V::misuse);
                eigenvectors.matmul(inner.matmul(adjoint))
            }
            [None, None] => return Err(Error::runtime("a derivative was called without a gradient")),
        })
    }
}

/// The identity matrix with the dtype, device and size of a vector.
fn unit_of(values: &V) -> Result<V> {
    let t = values.clone().tensor()?;
    let n = *t.shape().last().unwrap_or(&0);
    let ones = constant::ones(&[n], t.dtype(), t.device())?;
    Ok(diagonal_matrix(V::from(ones)))
}

/// Complex eigenvectors are determined up to a phase, so a loss that depends on the phase has no gradient.
pub(super) fn check_phase(op: &str, in_basis: &V) -> Result<()> {
    let line = in_basis.clone().then(|t| slices::diagonal(&t, 0, -2, -1));
    let imaginary = abs(line.then(|t| crate::ops::complex::imag(&t))).tensor()?;
    let imaginary = crate::ops::creation::factories::detach(&imaginary)?;
    if imaginary.numel() > 0
        && !imaginary.device().is_meta()
        && crate::ops::reduction::extrema::max(&imaginary)?.item()?.as_f64() > 1e-2
    {
        return Err(Error::runtime(format!(
            "{op}_backward: The eigenvectors in the complex case are specified up to multiplication by e^{{i phi}}. The \
             specified loss function depends on this quantity, so it is ill-defined."
        )));
    }
    Ok(())
}

fn is_upper(UPLO: &str) -> Result<bool> {
    match UPLO {
        "U" | "u" => Ok(true),
        "L" | "l" => Ok(false),
        other => Err(Error::runtime(format!("Expected UPLO argument to be 'L' or 'U', but got {other}"))),
    }
}

/// Compute the eigenvalues and eigenvectors of symmetric (Hermitian) matrices, in ascending order.
///
/// Args:
///     input: matrix or batch of matrices; only one triangle is read.
///     UPLO: which triangle: `"L"` the lower, `"U"` the upper one.
///
/// Returns:
///     A named tuple `(eigenvalues, eigenvectors)`, with orthonormal eigenvectors as columns.
///
/// Examples:
///     >>> torch.linalg.eigh(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
///     tensor([1., 3.])
#[operator(
    function,
    space = "linalg",
    returns(eigenvalues, eigenvectors),
    out(declared),
    sample = "on_host(squares(lambda x: signless(*T.linalg.eigh(symmetric(apart(x))))))"
)]
pub fn linalg_eigh(input: &Tensor, #[default("L".to_string())] UPLO: String) -> Result<[Tensor; 2]> {
    check_square("linalg.eigh", input)?;
    LinalgEigh::call(input, is_upper(&UPLO)?)
}

/// Compute the eigenvalues of symmetric (Hermitian) matrices, in ascending order.
///
/// Args:
///     input: matrix or batch of matrices; only one triangle is read.
///     UPLO: which triangle: `"L"` the lower, `"U"` the upper one.
///
/// Examples:
///     >>> torch.linalg.eigvalsh(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
///     tensor([1., 3.])
#[operator(
    function,
    space = "linalg",
    out(declared),
    sample = "on_host(squares(lambda x: T.linalg.eigvalsh(symmetric(apart(x)))))"
)]
pub fn linalg_eigvalsh(input: &Tensor, #[default("L".to_string())] UPLO: String) -> Result<Tensor> {
    check_square("linalg.eigh", input)?;
    let upper = is_upper(&UPLO)?;
    if values_suffice(input) {
        return decompose(&input.body(), upper, false).map(|[values, _]| Tensor::new(values));
    }
    let [values, _] = LinalgEigh::call(input, upper)?;
    Ok(values)
}
