//! The Cholesky decomposition, and solutions and inverses from it.
#![allow(non_snake_case, reason = "PyTorch's parameters are A and L")]

use super::factors::*;
use super::triangular::{check_pair, solve};
use crate::base::broadcast;
use crate::ops::prelude::*;

fn factor(x: &Body, upper: bool, checked: Checked) -> Result<[Body; 2]> {
    let info = codes(x)?;
    // For the upper factor, decompose the transpose, which is the conjugate matrix, and transpose the lower factor.
    let out = by_columns(&if upper { transposed(x)? } else { x.clone() })?;
    if out.numel() > 0 {
        fork!(over [out, info], with [],
            cpu: crate::cpu::linalg::cholesky(out.host()?, info.host()?),
            gpu: no_shader("linalg_cholesky", out.dtype))?;
    }
    if let Some(name) = checked.0
        && let Some((place, order)) = first_failure(&info)?
    {
        return Err(Error::linalg(format!(
            "{name}: {place}The factorization could not be completed because the input is not positive-definite (the \
             leading minor of order {order} is not positive-definite)."
        )));
    }
    if !upper {
        return Ok([out, info]);
    }
    Ok([by_columns(&transposed(&out)?)?, info])
}

#[primitive(batch = in_front, results(L, info))]
impl LinalgCholeskyEx {
    fn forward(input: &Tensor, upper: bool, #[hidden] checked: Checked) -> Result<[Body; 2]> {
        factor(&input.body(), upper, checked)
    }
    fn d_input(g: V, L: V, upper: bool) -> V {
        let (g, l) = if upper { (g.mh(), L.mh()) } else { (g, L) };
        let inner = l.mh().matmul(g);
        let inner = (tril(inner.clone(), 0) + tril(inner, -1).mh()) * 0.5;
        let left = solve(&l.mh(), &inner, true, true, false);
        solve(&l, &left, false, false, false)
    }
}

/// Compute the Cholesky factorization of symmetric (Hermitian) positive definite matrices: `A = L @ L.mH`.
///
/// Args:
///     input: matrix or batch of matrices; only one triangle is read.
///     upper: whether to return the upper factor `U` with `A = U.mH @ U`, else the lower one.
///
/// Raises:
///     torch.linalg.LinAlgError: if a matrix is not positive definite.
///
/// Examples:
///     >>> torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
///     tensor([[2., 0.],
///             [1., 2.]])
#[operator(
    function,
    space = "linalg",
    out(declared),
    sample = "on_host(squares(lambda x: [T.linalg.cholesky(positive(x)), T.linalg.cholesky(positive(x), upper=True)]))"
)]
pub fn linalg_cholesky(
    input: &Tensor,
    #[keyword]
    #[default(false)]
    upper: bool,
) -> Result<Tensor> {
    check_square("linalg.cholesky", input)?;
    check_floating("linalg.cholesky", input, true)?;
    let [l, _] = LinalgCholeskyEx::call(input, upper, Checked(Some("linalg.cholesky")))?;
    Ok(l)
}

/// Compute the Cholesky factorization like `torch.linalg.cholesky`, with error codes instead of an exception.
///
/// Args:
///     input: matrix or batch of matrices; only one triangle is read.
///     upper: whether to return the upper factor, else the lower one.
///
/// Returns:
///     A named tuple `(L, info)`: `info` is 0, or the order of the leading minor that is not positive definite.
///
/// Examples:
///     >>> torch.linalg.cholesky_ex(torch.tensor([[1.0, 2.0], [2.0, 1.0]])).info
///     tensor(2, dtype=torch.int32)
#[operator(
    function,
    space = "linalg",
    returns(L, info),
    out(declared),
    sample = "on_host(squares(lambda x: T.linalg.cholesky_ex(positive(x))))"
)]
pub fn linalg_cholesky_ex(
    input: &Tensor,
    #[keyword]
    #[default(false)]
    upper: bool,
    #[default(false)] check_errors: bool,
) -> Result<[Tensor; 2]> {
    check_square("linalg.cholesky", input)?;
    check_floating("linalg.cholesky", input, true)?;
    LinalgCholeskyEx::call(input, upper, Checked(check_errors.then_some("linalg.cholesky_ex")))
}

/// Solves `L Lᴴ X = B`.
fn by_triangle(b: &V, l: &V, upper: bool) -> V {
    if upper {
        return solve(l, &solve(&l.mh(), b, false, true, false), true, true, false);
    }
    solve(&l.mh(), &solve(l, b, false, true, false), true, true, false)
}

#[primitive]
impl CholeskySolve {
    fn forward(input: &Tensor, input2: &Tensor, upper: bool) -> Result<Body> {
        crate::ops::reduction::reduce::no_grad(|| by_triangle(&input.into(), &input2.into(), upper).tensor())
    }
    fn d_input(g: V, input2: V, at: Meta, upper: bool) -> V {
        by_triangle(&g, &input2, upper).sum_to(&at.shape)
    }
    fn d_input2(g: V, input2: V, result: V, at: Meta, upper: bool) -> V {
        let common = by_triangle(&g, &input2, upper).matmul(result.mh());
        let common = &common + common.mh();
        let whole = if upper { -input2.matmul(common) } else { -common.matmul(input2) };
        whole.sum_to(&at.shape)
    }
    fn batch(b: &Batch, input: &Tensor, input2: &Tensor, upper: bool) -> Result<Tensor> {
        let [x, y] = aligned(b, input, input2)?;
        CholeskySolve::call(&x, &y, upper).map(|t| b.wrap(t))
    }
}

/// Solve `A @ X = B`, given a Cholesky factor of `A`.
///
/// Args:
///     input: the right-hand side `B`.
///     input2: the Cholesky factor.
///     upper: whether the factor is the upper one.
///
/// Examples:
///     >>> factor = torch.linalg.cholesky(torch.tensor([[4.0, 0.0], [0.0, 9.0]]))
///     >>> torch.cholesky_solve(torch.tensor([[4.0], [18.0]]), factor)
///     tensor([[1.],
///             [2.]])
#[operator(
    function,
    method,
    out(castable = "cholesky_solve: Expected result"),
    autocast = single,
    sample = "on_host(squares(lambda x: T.cholesky_solve(x[..., :2], x.tril() + 3 * T.eye(x.shape[-1], dtype=x.dtype))))"
)]
pub fn cholesky_solve(input: &Tensor, input2: &Tensor, #[default(false)] upper: bool) -> Result<Tensor> {
    for (name, x) in [("b", input), ("u", input2)] {
        if x.ndim() < 2 {
            return Err(Error::runtime(format!(
                "{name} should have at least 2 dimensions, but has {} dimensions instead",
                x.ndim()
            )));
        }
    }
    check_pair("cholesky_solve", input, input2)?;
    broadcast(&input.shape()[..input.ndim() - 2], &input2.shape()[..input2.ndim() - 2])?;
    if input.device().is_cpu() && input.dtype().size() == 2 {
        return Err(Fault::NoKernel { op: "cholesky_solve_cpu", dtype: input.dtype() }.into());
    }
    CholeskySolve::call(input, input2, upper)
}

#[primitive(batch = in_front)]
impl CholeskyInverse {
    fn forward(input: &Tensor, upper: bool) -> Result<Body> {
        let units = Tensor::new(super::factors::units(&input.body())?);
        crate::ops::reduction::reduce::no_grad(|| by_triangle(&units.into(), &input.into(), upper).tensor())
    }
    fn d_input(g: V, input: V, result: V, upper: bool) -> V {
        let common = result.matmul((&g + g.mh()).matmul(&result));
        if upper { -input.matmul(common) } else { -common.matmul(input) }
    }
}

/// Compute the inverse of a matrix, given its Cholesky factor.
///
/// Args:
///     input: the Cholesky factor, or a batch of them.
///     upper: whether it is the upper one.
///
/// Examples:
///     >>> factor = torch.linalg.cholesky(torch.tensor([[4.0, 0.0], [0.0, 2.0]]))
///     >>> torch.cholesky_inverse(factor)
///     tensor([[0.2500, 0.0000],
///             [0.0000, 0.5000]])
#[operator(
    function,
    method,
    out(castable = "cholesky_inverse: Expected result"),
    autocast = single,
    sample = "on_host(squares(lambda x: T.cholesky_inverse(x.tril() + 3 * T.eye(x.shape[-1], dtype=x.dtype))))"
)]
pub fn cholesky_inverse(input: &Tensor, #[default(false)] upper: bool) -> Result<Tensor> {
    check_square("cholesky_inverse", input)?;
    if !matches!(input.dtype(), DType::F32 | DType::F64 | DType::C64 | DType::C128) {
        return Err(Fault::NoKernel { op: "cholesky_inverse_out_cpu", dtype: input.dtype() }.into());
    }
    CholeskyInverse::call(input, upper)
}
