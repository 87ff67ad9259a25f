//! Eigenvalues and eigenvectors of square matrices.

use super::eigh::check_phase;
use super::factors::*;
use super::solve::linalg_solve;
use crate::operator::bodies::filled;
use crate::operator::primitives::constant;
use crate::ops::prelude::*;
use crate::ops::shape::{slices, squeeze};

/// The eigenvalues and eigenvectors, which are always complex. Without `with_vectors`, the second result is scratch memory.
fn decompose(x: &Body, with_vectors: bool) -> Result<[Body; 2]> {
    if !has_kernel(x.dtype) {
        return Err(Fault::NoKernel { op: "linalg_eig_out_cpu", dtype: x.dtype }.into());
    }
    let n = rows_and_columns(x.shape())[0];
    let (info, dtype, real) = (codes(x)?, x.dtype.to_complex(), !x.dtype.is_complex());
    let values = filled(&batch_of(x, &[n]), Scalar::Int(0), dtype, x.device())?;
    let vectors = columns(x.shape(), dtype, x.device())?;
    crate::operator::bodies::copy(&vectors, x)?;
    if vectors.numel() > 0 {
        fork!(over [vectors, values, info], with [real, with_vectors, x],
            cpu: crate::cpu::linalg::eig(vectors.host()?, values.host()?, info.host()?, real, with_vectors),
            gpu: no_shader("linalg_eig", x.dtype))?;
    }
    if let Some((place, code)) = first_failure(&info)? {
        return Err(not_converged("linalg.eig", &place, "eigenvalues", code));
    }
    Ok([values, vectors])
}

#[primitive(batch = in_front, results(eigenvalues, eigenvectors))]
impl LinalgEig {
    fn forward(input: &Tensor) -> Result<[Body; 2]> {
        decompose(&input.body(), true)
    }
    fn d_input(g: [Option<V>; 2], at: Meta, eigenvalues: V, eigenvectors: V) -> Result<V> {
        let row = |x: &V| x.clone().then(|t| squeeze::unsqueeze(&t, -2));
        let high = |x: &V| x.clone().then(|t| squeeze::unsqueeze(&t, -1));
        let adjoint = eigenvectors.mh();
        let inner = match g {
            [Some(values), None] => diagonal_matrix(values),
            [values, Some(vectors)] => {
                let in_basis = adjoint.clone().matmul(vectors);
                if !in_basis.is_special() {
                    check_phase("linalg_eig", &in_basis)?;
                }
                let line = in_basis.clone().then(|t| slices::diagonal(&t, 0, -2, -1)).re();
                // Eigenvectors are normalized, so the component of their gradient that changes the length is removed.
                let dtype = eigenvectors.clone().tensor()?.dtype();
                let along = adjoint.clone().matmul(&eigenvectors * row(&line).cast(dtype));
                let n = at.shape.last().copied().unwrap_or(0);
                let ones = constant::ones(&[n], dtype, at.device)?;
                let unit = diagonal_matrix(V::from(ones));
                let gaps = (row(&eigenvalues) - high(&eigenvalues)).conj() + &unit;
                let moved = (in_basis - along) / gaps * (1.0 - unit);
                plus(Some(moved), values.map(diagonal_matrix)).unwrap_or_else(V::misuse)
            }
            [None, None] => return Err(Error::runtime("a derivative was called without a gradient")),
        };
        let right = inner.matmul(adjoint.clone()).tensor()?;
        let found = V::from(linalg_solve(&adjoint.tensor()?, &right, true)?);
        Ok(if at.dtype.is_complex() { found } else { found.re() })
    }
}

fn check_finite(input: &Tensor) -> Result<()> {
    if input.is_batched() || !input.dtype().is_differentiable() {
        return Ok(());
    }
    let known = crate::ops::creation::factories::detach(input)?;
    let finite = is_finite(V::from(known)).tensor()?;
    let strange = crate::ops::elementwise::unary::logical_not(&finite)?;
    if crate::ops::reduction::reduce::any_true(&strange)? {
        return Err(Error::runtime("torch.linalg.eig: input tensor should not contain infs or NaNs."));
    }
    Ok(())
}

fn check(name: &str, input: &Tensor) -> Result<()> {
    check_square(name, input)?;
    if !input.dtype().is_differentiable() {
        return Err(Error::runtime(format!(
            "Unknown Complex ScalarType for {}",
            input.dtype().scalar_name()
        )));
    }
    check_finite(input)
}

/// Compute the eigenvalues and eigenvectors of square matrices.
///
/// Results are complex. Eigenvectors are the columns, of length 1, up to a complex factor.
///
/// Args:
///     input: square matrix or batch of square matrices.
///
/// Returns:
///     A named tuple `(eigenvalues, eigenvectors)`.
///
/// Examples:
///     >>> torch.linalg.eig(torch.tensor([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
///     tensor([0.+1.j, 0.-1.j])
#[operator(
    function,
    space = "linalg",
    returns(eigenvalues, eigenvectors),
    out(castable = "torch.linalg.eig: Expected {name}"),
    sample = "on_host(squares(lambda x: of_any_phase(*T.linalg.eig(apart(x)))))"
)]
pub fn linalg_eig(input: &Tensor) -> Result<[Tensor; 2]> {
    check("linalg.eig", input)?;
    LinalgEig::call(input)
}

/// Compute the eigenvalues of square matrices; they are complex, in no order.
///
/// Args:
///     input: square matrix or batch of square matrices.
///
/// Examples:
///     >>> torch.linalg.eigvals(torch.tensor([[2.0, 0.0], [0.0, 3.0]]))
///     tensor([2.+0.j, 3.+0.j])
#[operator(
    function,
    space = "linalg",
    out(castable = "torch.linalg.eigvals: Expected eigenvalues"),
    sample = "on_host(squares(lambda x: parts(T.linalg.eigvals(apart(x)))))"
)]
pub fn linalg_eigvals(input: &Tensor) -> Result<Tensor> {
    check("linalg.eigvals", input)?;
    if values_suffice(input) {
        return decompose(&input.body(), false).map(|[values, _]| Tensor::new(values));
    }
    let [values, _] = LinalgEig::call(input)?;
    Ok(values)
}
