//! The LU decomposition, and solutions from it.
#![allow(non_snake_case, reason = "PyTorch's names are A, B, LU, L and U")]

use super::factors::*;
use super::triangular::solve;
use crate::base::broadcast;
use crate::operator::bodies::{duplicate, filled};
use crate::operator::primitives::{constant, views};
use crate::ops::indexing::index;
use crate::ops::prelude::*;
use crate::ops::shape::{squeeze, view};

/// Returns `[LU, pivots, info]` of matrices.
pub fn factor(x: &Body) -> Result<[Body; 3]> {
    let [m, n] = rows_and_columns(x.shape());
    let (lu, info) = (by_columns(x)?, codes(x)?);
    let pivots = filled(&batch_of(x, &[m.min(n)]), Scalar::Int(0), DType::I32, x.device())?;
    if lu.numel() > 0 || !has_kernel(x.dtype) {
        fork!(over [lu, pivots, info], with [],
            cpu: crate::cpu::linalg::lu(lu.host()?, pivots.host()?, info.host()?),
            gpu: no_shader("linalg_lu_factor", lu.dtype))?;
    }
    Ok([lu, pivots, info])
}

/// Solves `A x = b`, or `Aᴴ x = b` if `adjoint`, from the factors of `A`. Batches broadcast.
pub fn substitute(lu: &Body, pivots: &Body, b: &Body, adjoint: bool) -> Result<Body> {
    let batch = broadcast(lead(lu), lead(b))?;
    let wide = |x: &Body, rest: &[usize]| over_batch(x, &batch, rest);
    let out = by_columns(&wide(b, &rows_and_columns(b.shape())))?;
    if out.numel() == 0 {
        return Ok(out);
    }
    let n = rows_and_columns(lu.shape())[0];
    let (lu, pivots) = (by_columns(&wide(lu, &[n, n]))?, duplicate(&wide(pivots, &[n]))?);
    fork!(over [lu, pivots, out], with [adjoint],
        cpu: crate::cpu::linalg::lu_solve(lu.host()?, pivots.host()?, out.host()?, adjoint),
        gpu: no_shader("linalg_lu_solve", out.dtype))?;
    Ok(out)
}

#[primitive(batch = in_front, results(from, to))]
impl Exchanges {
    fn forward(#[constant] pivots: &Tensor, rows: i64) -> Result<[Body; 2]> {
        let pivots = duplicate(&pivots.body())?;
        let mut shape = Dims::from_slice(&pivots.shape()[..pivots.layout.ndim() - 1]);
        shape.push(rows as usize);
        let make = || Body::new(&shape, DType::I64, pivots.device());
        let made = [make()?, make()?];
        if made[0].numel() > 0 {
            fork!([&pivots, &made[0], &made[1]],
                cpu: crate::cpu::linalg::exchanges(pivots.host()?, made[0].host()?, made[1].host()?),
                gpu: no_shader("lu_unpack", pivots.dtype))?;
        }
        Ok(made)
    }
}

/// Converts pivots to permutations: the first gives the rows of `Pᵀ x` as rows of `x`, the second those of `P x`.
fn exchanges(pivots: &Tensor, rows: usize) -> Result<[Tensor; 2]> {
    Exchanges::call(pivots, rows as i64)
}

/// The rows of `x` in this order.
fn reorder_rows(x: &V, order: &Tensor) -> V {
    x.clone().then(|t| {
        let (shape, places) = (t.shape(), order.shape());
        let [rows, width] = rows_and_columns(&shape);
        let (batch, count) = places.split_at(places.len() - 1);
        let batch = broadcast(&shape[..shape.len() - 2], batch)?;
        let wide = |t: &Tensor, rows: usize| {
            let mut shape = batch.clone();
            shape.extend([rows, width]);
            view::expand(t, views::ints(&shape))
        };
        index::Gather::call(&wide(&t, rows)?, -2, &wide(&squeeze::unsqueeze(order, -1)?, count[0])?)
    })
}

/// The gradient of the matrix from those of `L` and `U`.
fn of_factors(gl: Option<&V>, gu: Option<&V>, l: &V, u: &V, to: &Tensor, [m, n]: [usize; 2]) -> V {
    let k = m.min(n);
    let (l1, u1) = (rows_of(l, 0, k), columns_of(u, 0, k));
    // If the matrix is not square, the part of the longer factor beyond the square contributes to the triangle of the other.
    let below = plus(
        gl.map(|gl| l1.mh().matmul(rows_of(gl, 0, k))),
        gu.filter(|_| n > m).map(|gu| -columns_of(gu, k, n).matmul(columns_of(u, k, n).mh())),
    );
    let above = plus(
        gu.map(|gu| columns_of(gu, 0, k).matmul(u1.mh())),
        gl.filter(|_| m > n).map(|gl| -rows_of(l, k, m).mh().matmul(rows_of(gl, k, m))),
    );
    let inner = plus(below.map(|x| tril(x, -1)), above.map(|x| triu(x, 0))).unwrap_or_else(V::misuse);
    let first = solve(&l1.mh(), &solve(&u1.mh(), &inner, false, false, false), true, true, true);
    let whole = if n > m {
        let rest = gu.map(|gu| solve(&l1.mh(), &columns_of(gu, k, n), true, true, true));
        cat_columns(&[first, rest.unwrap_or_else(|| columns_of(u, k, n) * 0.0)])
    } else if m > n {
        let rest = gl.map(|gl| solve(&u1.mh(), &rows_of(gl, k, m), false, false, false));
        cat_rows(&[first, rest.unwrap_or_else(|| rows_of(l, k, m) * 0.0)])
    } else {
        first
    };
    reorder_rows(&whole, to)
}

/// Splits the combined matrix into `L`, with ones on its diagonal, and `U`.
fn factors_of(lu: &V, [m, n]: [usize; 2]) -> [V; 2] {
    let k = m.min(n);
    let l = tril(columns_of(lu, 0, k), -1);
    let ones = l.clone().then(|l| {
        let body = l.body();
        let eye = filled(&[m, k], Scalar::Int(0), body.dtype, body.device())?;
        let line = eye.layout.diagonal(0, 0, 1)?;
        crate::operator::bodies::fill(&eye.with_layout(line), Scalar::Int(1))?;
        Ok(Tensor::new(eye))
    });
    [l + ones, triu(rows_of(lu, 0, k), 0)]
}

#[primitive(batch = in_front, results(LU, pivots, info))]
impl LinalgLuFactorEx {
    fn forward(A: &Tensor, pivot: bool, #[hidden] checked: Checked) -> Result<[Body; 3]> {
        let _ = pivot;
        let made = factor(&A.body())?;
        if let Some(name) = checked.0
            && let Some((place, order)) = first_failure(&made[2])?
        {
            return Err(Error::runtime(format!(
                "{name}: {place}U[{order},{order}] is zero and using it on lu_solve would result in a division by zero. If \
                 you still want to perform the factorization, consider calling linalg.lu(A, pivot) or \
                 linalg.lu_factor_ex(A, pivot)"
            )));
        }
        Ok(made)
    }
    fn d_A(g: V, LU: V, pivots: Tensor, at: Meta) -> Result<V> {
        let sizes = rows_and_columns(&at.shape);
        let [l, u] = factors_of(&LU, sizes);
        let k = sizes[0].min(sizes[1]);
        let (gl, gu) = (tril(columns_of(&g, 0, k), -1), triu(rows_of(&g, 0, k), 0));
        let [_, to] = exchanges(&pivots, sizes[0])?;
        Ok(of_factors(Some(&gl), Some(&gu), &l, &u, &to, sizes))
    }
}

fn check_pivoted(name: &str, A: &Tensor, pivot: bool) -> Result<()> {
    if A.ndim() < 2 {
        return Err(Error::runtime(format!(
            "{name}: Expected tensor with 2 or more dimensions. Got size: {:?} instead",
            A.shape().as_slice()
        )));
    }
    if pivot {
        return Ok(());
    }
    Err(Error::runtime("linalg.lu_factor: LU without pivoting is not implemented on the CPU"))
}

/// Compute the LU factorization with partial pivoting, in the compact form of LAPACK.
///
/// Args:
///     pivot: whether to exchange rows; without, there may be no factorization.
///
/// Returns:
///     A named tuple `(LU, pivots)`: both triangles in one matrix, and the row exchanges, counted from 1.
///
/// Examples:
///     >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
///     >>> pivots
///     tensor([2, 2], dtype=torch.int32)
#[operator(
    function,
    space = "linalg",
    returns(LU, pivots),
    out(declared),
    sample = "on_host(rectangles(lambda x: T.linalg.lu_factor(steep(x))[0]))"
)]
pub fn linalg_lu_factor(
    A: &Tensor,
    #[keyword]
    #[default(true)]
    pivot: bool,
) -> Result<[Tensor; 2]> {
    check_pivoted("torch.lu_factor", A, pivot)?;
    let [lu, pivots, _] = LinalgLuFactorEx::call(A, pivot, Checked(Some("torch.linalg.lu_factor")))?;
    Ok([lu, pivots])
}

/// Compute the LU factorization like `torch.linalg.lu_factor`, with error codes instead of an exception.
///
/// Args:
///     pivot: whether to exchange rows; without, there may be no factorization.
///
/// Returns:
///     A named tuple `(LU, pivots, info)`: `info` is 0, or which pivot is zero.
///
/// Examples:
///     >>> torch.linalg.lu_factor_ex(torch.tensor([[1.0, 2.0], [3.0, 4.0]])).info
///     tensor(0, dtype=torch.int32)
#[operator(
    function,
    space = "linalg",
    returns(LU, pivots, info),
    out(declared),
    sample = "on_host(rectangles(lambda x: T.linalg.lu_factor_ex(steep(x))[0]))"
)]
pub fn linalg_lu_factor_ex(
    A: &Tensor,
    #[keyword]
    #[default(true)]
    pivot: bool,
    #[default(false)] check_errors: bool,
) -> Result<[Tensor; 3]> {
    check_pivoted("torch.lu_factor", A, pivot)?;
    LinalgLuFactorEx::call(A, pivot, Checked(check_errors.then_some("torch.linalg.lu_factor_ex")))
}

#[primitive(batch = in_front, results(L, U))]
impl LuUnpack {
    fn forward(LU_data: &Tensor) -> Result<[Body; 2]> {
        let x = LU_data.body();
        let [m, n] = rows_and_columns(x.shape());
        let made = crate::tensor::mode::with_grad(false, || {
            let [l, u] = factors_of(&V::from(Tensor::new(x.clone())), [m, n]);
            Ok::<_, Error>([l.tensor()?, u.tensor()?])
        })?;
        Ok(made.map(|t| t.body().clone()))
    }
    fn d_LU_data(g: [Option<V>; 2], at: Meta) -> V {
        let [m, n] = rows_and_columns(&at.shape);
        let k = m.min(n);
        let [gl, gu] = g;
        let wide = |x: V, rows: usize, columns: usize| {
            x.then(|t| {
                crate::ops::nn::pad::constant_pad_nd(
                    &t,
                    (&[0, columns as i64, 0, rows as i64][..]).into(),
                    Scalar::Int(0),
                )
            })
        };
        let gl = gl.map(|g| wide(tril(g, -1), 0, n - k));
        let gu = gu.map(|g| wide(triu(g, 0), m - k, 0));
        plus(gl, gu).unwrap_or_else(V::misuse)
    }
}

/// The permutation matrix `P` for this order of rows.
fn permutation(order: &Tensor, dtype: DType) -> Result<Tensor> {
    let shape = order.shape();
    let ones = constant::ones(&shape, dtype, order.device())?;
    reorder_rows(&diagonal_matrix(ones.into()), order).tensor()
}

/// Unpack the LU factorization of `torch.linalg.lu_factor` into matrices with `A = P @ L @ U`.
///
/// Args:
///     LU_data: the triangles in one matrix.
///     LU_pivots: the row exchanges.
///     unpack_data: whether to return `L` and `U`, else they are empty.
///     unpack_pivots: whether to return `P`, else it is empty.
///
/// Returns:
///     A named tuple `(P, L, U)`.
///
/// Examples:
///     >>> P, L, U = torch.lu_unpack(*torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [3.0, 4.0]])))
///     >>> P @ L @ U
///     tensor([[1., 2.],
///             [3., 4.]])
#[operator(
    function,
    returns(P, L, U),
    out(declared),
    sample = "on_host(rectangles(lambda x: T.lu_unpack(*T.linalg.lu_factor(steep(x)))[1:]))"
)]
pub fn lu_unpack(
    LU_data: &Tensor,
    LU_pivots: &Tensor,
    #[default(true)] unpack_data: bool,
    #[default(true)] unpack_pivots: bool,
) -> Result<[Tensor; 3]> {
    if LU_data.ndim() < 2 {
        return Err(Error::runtime(format!(
            "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: {:?} instead",
            LU_data.shape().as_slice()
        )));
    }
    if unpack_pivots && LU_pivots.dtype() != DType::I32 {
        return Err(Error::runtime(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this function is \
             intended to be used with the output produced by torch.linalg.lu_factor",
        ));
    }
    let mut wanted = LU_data.shape();
    let columns = wanted.pop().unwrap_or(0);
    let rows = wanted.pop().unwrap_or(0);
    wanted.push(rows.min(columns));
    if unpack_pivots && LU_pivots.shape() != wanted {
        return Err(Error::value(format!(
            "Expected LU_pivots to have shape {:?} but got {:?} instead.",
            wanted.as_slice(),
            LU_pivots.shape().as_slice()
        )));
    }
    let none = || constant::zeros(&[0], LU_data.dtype(), LU_data.device());
    let [l, u] = if unpack_data { LuUnpack::call(LU_data)? } else { [none()?, none()?] };
    let p =
        if unpack_pivots { permutation(&exchanges(LU_pivots, rows)?[1], LU_data.dtype())? } else { none()? };
    Ok([p, l, u])
}

/// Compute the LU factorization with partial pivoting: `A = P @ L @ U`.
///
/// Args:
///     pivot: whether to exchange rows; without, `P` is empty and there may be no factorization.
///
/// Returns:
///     A named tuple `(P, L, U)`: a permutation, a unit lower and an upper triangular matrix.
///
/// Examples:
///     >>> torch.linalg.lu(torch.tensor([[1.0, 2.0], [3.0, 4.0]])).L
///     tensor([[1.0000, 0.0000],
///             [0.3333, 1.0000]])
#[operator(
    function,
    space = "linalg",
    returns(P, L, U),
    out(declared),
    sample = "on_host(rectangles(lambda x: T.linalg.lu(steep(x))[1:]))"
)]
pub fn linalg_lu(
    A: &Tensor,
    #[keyword]
    #[default(true)]
    pivot: bool,
) -> Result<[Tensor; 3]> {
    check_pivoted("linalg.lu", A, pivot)?;
    let [lu, pivots, _] = LinalgLuFactorEx::call(A, pivot, Checked(None))?;
    lu_unpack(&lu, &pivots, true, true)
}

/// Solves a system from the factors of its matrix, which is on the left or right; with `adjoint`, for the conjugate transpose.
fn by_factors(lu: &V, pivots: &Tensor, b: &V, left: bool, adjoint: bool) -> Result<V> {
    if !left {
        return Ok(by_factors(lu, pivots, &b.mh(), true, !adjoint)?.mh());
    }
    let [from, to] = exchanges(pivots, *pivots.shape().last().unwrap_or(&0))?;
    Ok(if adjoint {
        let x = solve(&lu.mh(), b, false, true, false);
        reorder_rows(&solve(&lu.mh(), &x, true, true, true), &to)
    } else {
        let x = solve(lu, &reorder_rows(b, &from), false, true, true);
        solve(lu, &x, true, true, false)
    })
}

/// Solve `A @ X = B`, given the LU factorization of `A`.
///
/// Args:
///     LU, pivots: what `torch.linalg.lu_factor` made of `A`.
///     B: the right-hand side.
///     left: whether to solve `A @ X = B`, else `X @ A = B`.
///     adjoint: whether to take the conjugate transpose of `A`.
///
/// Examples:
///     >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
///     >>> torch.linalg.lu_solve(LU, pivots, torch.tensor([[2.0], [4.0]]))
///     tensor([[1.],
///             [1.]])
#[operator(
    function,
    space = "linalg",
    out(declared),
    sample = "on_host(right_sides(lambda x, y, left: T.linalg.lu_solve(*T.linalg.lu_factor(steep(x)), y, left=left)))"
)]
pub fn linalg_lu_solve(
    LU: &Tensor,
    pivots: &Tensor,
    B: &Tensor,
    #[keyword]
    #[default(true)]
    left: bool,
    #[default(false)] adjoint: bool,
) -> Result<Tensor> {
    let name = "torch.linalg.lu_solve";
    check_floating(name, LU, true)?;
    if LU.dtype() != B.dtype() {
        return Err(Error::runtime(format!(
            "linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type {} and B of type {} instead",
            LU.dtype().scalar_name(),
            B.dtype().scalar_name()
        )));
    }
    if pivots.dtype() != DType::I32 {
        return Err(Error::runtime("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32"));
    }
    check_square(name, LU)?;
    check_matrix(name, "B", B)?;
    check_sides("linalg.lu_solve", &LU.shape(), &B.shape(), left)?;
    if LU.shape()[..LU.ndim() - 1] != pivots.shape()[..] {
        return Err(Error::runtime(format!(
            "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape {:?} instead",
            pivots.shape().as_slice()
        )));
    }
    refuse_gpu("linalg_lu_solve", &[LU, B])?;
    by_factors(&LU.into(), pivots, &B.into(), left, adjoint)?.tensor()
}

/// Solve `A @ X = B`, given the LU factorization of `A`; `torch.linalg.lu_solve` is the newer form.
///
/// Args:
///     input: the right-hand side `B`.
///     LU_data, LU_pivots: what `torch.linalg.lu_factor` made of `A`.
///
/// Examples:
///     >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))
///     >>> torch.lu_solve(torch.tensor([[2.0], [4.0]]), LU, pivots)
///     tensor([[1.],
///             [1.]])
#[operator(
    function,
    method,
    out(declared),
    autocast = single,
    sample = "on_host(squares(lambda x: unwarned(T.lu_solve)(x[..., :2], *T.linalg.lu_factor(steep(x)))))"
)]
pub fn lu_solve(input: &Tensor, LU_data: &Tensor, LU_pivots: &Tensor) -> Result<Tensor> {
    static TOLD: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);
    crate::base::warn_once(
        &TOLD,
        "torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a future PyTorch release.\nNote \
         that torch.linalg.lu_solve has its arguments reversed.\nX = torch.lu_solve(B, LU, pivots)\nshould be replaced with\nX \
         = torch.linalg.lu_solve(LU, pivots, B)",
    )?;
    linalg_lu_solve(LU_data, LU_pivots, input, true, false)
}
