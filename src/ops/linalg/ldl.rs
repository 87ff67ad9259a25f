//! The LDL decomposition of symmetric and Hermitian matrices, which need not be positive definite, and solutions from it.
#![allow(non_snake_case, reason = "PyTorch's names are LD and B")]

use super::factors::*;
use crate::base::{broadcast, existing_dim};
use crate::operator::bodies::{duplicate, filled};
use crate::operator::primitives::copies::to_dtype;
use crate::ops::derivatives::not_in_autograd;
use crate::ops::prelude::*;

/// Forward mode is not supported; the message is PyTorch's.
fn refuse_forward_mode<T>(op: &str) -> Result<T> {
    Err(Error::not_implemented(format!("Trying to use forward AD with aten::{op} that does not support it.")))
}

#[primitive(node = "NotImplemented", tangent = fn, batch = in_front, results(LD, pivots, info))]
impl LinalgLdlFactorEx {
    fn forward(input: &Tensor, hermitian: bool, #[hidden] checked: Checked) -> Result<[Body; 3]> {
        let x = input.body();
        let n = rows_and_columns(x.shape())[0];
        let (ld, info) = (by_columns(&x)?, codes(&x)?);
        let pivots = filled(&batch_of(&x, &[n]), Scalar::Int(0), DType::I32, x.device())?;
        if ld.numel() > 0 || !has_kernel(x.dtype) {
            fork!(over [ld, pivots, info], with [hermitian],
                cpu: crate::cpu::linalg::ldl(ld.host()?, pivots.host()?, info.host()?, hermitian),
                gpu: no_shader("linalg_ldl_factor_ex", ld.dtype))?;
        }
        if let Some(name) = checked.0
            && let Some((place, order)) = first_failure(&info)?
        {
            return Err(Error::runtime(format!(
                "{name}: {place}D[{order},{order}] is zero and using it on ldl_solve would result in a division by zero."
            )));
        }
        Ok([ld, pivots, info])
    }
    fn d_input() -> Result<V> {
        not_in_autograd("linalg_ldl_factor_ex")
    }
    fn tangent() -> Result<[Tensor; 3]> {
        refuse_forward_mode("linalg_ldl_factor_ex")
    }
}

/// Compute the LDL factorization of symmetric or Hermitian matrices, in the compact form of LAPACK.
///
/// Args:
///     input: matrix or batch of matrices; only the lower triangle is read.
///     hermitian: whether complex matrices are Hermitian rather than symmetric.
///
/// Returns:
///     A named tuple `(LD, pivots)`, for `torch.linalg.ldl_solve`.
///
/// Examples:
///     >>> LD, pivots = torch.linalg.ldl_factor(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
///     >>> LD.shape, pivots
///     (torch.Size([2, 2]), tensor([1, 2], dtype=torch.int32))
#[operator(function, space = "linalg", returns(LD, pivots), out(declared), sample = "underived")]
pub fn linalg_ldl_factor(
    input: &Tensor,
    #[keyword]
    #[default(false)]
    hermitian: bool,
) -> Result<[Tensor; 2]> {
    check(input)?;
    let [ld, pivots, _] =
        LinalgLdlFactorEx::call(input, hermitian, Checked(Some("torch.linalg.ldl_factor")))?;
    Ok([ld, pivots])
}

/// Compute the LDL factorization like `torch.linalg.ldl_factor`, with error codes instead of an exception.
///
/// Args:
///     input: matrix or batch of matrices; only the lower triangle is read.
///     hermitian: whether complex matrices are Hermitian rather than symmetric.
///
/// Returns:
///     A named tuple `(LD, pivots, info)`: `info` is 0, or which element of `D` is zero.
///
/// Examples:
///     >>> torch.linalg.ldl_factor_ex(torch.tensor([[2.0, 1.0], [1.0, 2.0]])).info
///     tensor(0, dtype=torch.int32)
#[operator(function, space = "linalg", returns(LD, pivots, info), out(declared), sample = "underived")]
pub fn linalg_ldl_factor_ex(
    input: &Tensor,
    #[keyword]
    #[default(false)]
    hermitian: bool,
    #[default(false)] check_errors: bool,
) -> Result<[Tensor; 3]> {
    check(input)?;
    let name = check_errors.then_some("torch.linalg.ldl_factor_ex");
    LinalgLdlFactorEx::call(input, hermitian, Checked(name))
}

fn check(input: &Tensor) -> Result<()> {
    check_square("torch.linalg.ldl_factor_ex", input)?;
    check_floating("torch.linalg.ldl_factor_ex", input, true)
}

#[primitive(node = "NotImplemented", tangent = fn, batch = each)]
impl LinalgLdlSolve {
    fn forward(LD: &Tensor, #[constant] pivots: &Tensor, B: &Tensor, hermitian: bool) -> Result<Body> {
        let (ld, pivots, b) = (LD.body(), pivots.body(), B.body());
        let batch = broadcast(lead(&ld), lead(&b))?;
        let wide = |x: &Body, rest: &[usize]| over_batch(x, &batch, rest);
        let out = by_columns(&wide(&b, &rows_and_columns(b.shape())))?;
        if out.numel() > 0 {
            let n = rows_and_columns(ld.shape())[0];
            let (ld, pivots) = (by_columns(&wide(&ld, &[n, n]))?, duplicate(&wide(&pivots, &[n]))?);
            fork!(over [ld, pivots, out], with [hermitian],
                cpu: crate::cpu::linalg::ldl_solve(ld.host()?, pivots.host()?, out.host()?, hermitian),
                gpu: no_shader("linalg_ldl_solve", out.dtype))?;
        }
        Ok(out)
    }
    fn d_LD() -> Result<V> {
        not_in_autograd("linalg_ldl_solve")
    }
    fn d_B() -> Result<V> {
        not_in_autograd("linalg_ldl_solve")
    }
    fn tangent() -> Result<Tensor> {
        refuse_forward_mode("linalg_ldl_solve")
    }
}

/// Solve `A @ X = B`, given the LDL factorization of `A`.
///
/// Args:
///     LD, pivots: what `torch.linalg.ldl_factor` made of `A`.
///     B: the right-hand side.
///     hermitian: whether complex matrices are Hermitian rather than symmetric.
///
/// Examples:
///     >>> LD, pivots = torch.linalg.ldl_factor(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
///     >>> torch.linalg.ldl_solve(LD, pivots, torch.tensor([[2.0], [4.0]]))
///     tensor([[1.],
///             [1.]])
#[operator(function, space = "linalg", out(declared), sample = "underived")]
pub fn linalg_ldl_solve(
    LD: &Tensor,
    pivots: &Tensor,
    B: &Tensor,
    #[keyword]
    #[default(false)]
    hermitian: bool,
) -> Result<Tensor> {
    let name = "torch.linalg.ldl_solve";
    check_square(name, LD)?;
    check_floating(name, LD, true)?;
    existing_dim(-2, B.ndim())?;
    let ([n, _], [rows, columns]) = (rows_and_columns(&LD.shape()), rows_and_columns(&B.shape()));
    if n != rows {
        return Err(Error::runtime(format!(
            "Incompatible matrix sizes for {name}: each A matrix is {n} by {n} but each b matrix is {rows} by {columns}"
        )));
    }
    if LD.dtype() != B.dtype() {
        return Err(Error::runtime(format!(
            "Expected b and A to have the same dtype, but found b of type {} and A of type {} instead.",
            B.dtype().scalar_name(),
            LD.dtype().scalar_name()
        )));
    }
    if !pivots.dtype().is_int() {
        return Err(Error::runtime(format!(
            "{name}: Expected pivots to be integers. Got {}",
            pivots.dtype().scalar_name()
        )));
    }
    if LD.shape()[..LD.ndim() - 1] != pivots.shape()[..] {
        return Err(Error::runtime(format!(
            "{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape {:?} instead",
            pivots.shape().as_slice()
        )));
    }
    if LD.device().is_cpu() && !has_kernel(LD.dtype()) {
        return Err(Fault::NoKernel { op: "ldl_solve_kernel_cpu", dtype: LD.dtype() }.into());
    }
    LinalgLdlSolve::call(LD, &to_dtype(pivots, DType::I32)?, B, hermitian)
}
