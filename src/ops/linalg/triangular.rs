//! Systems of equations with triangular matrices.
#![allow(non_snake_case, reason = "PyTorch's parameters are A and B")]

use super::factors::*;
use crate::base::{broadcast, warn_once};
use crate::operator::bodies::duplicate;
use crate::ops::prelude::*;
use std::sync::atomic::AtomicBool;

fn solution(a: &Body, b: &Body, upper: bool, left: bool, unit: bool) -> Result<Body> {
    if !left {
        // Solve aᵀ xᵀ = bᵀ instead of x a = b.
        let solved = solution(&transposed(a)?, &transposed(b)?, !upper, true, unit)?;
        return by_columns(&transposed(&solved)?);
    }
    let batch = broadcast(lead(a), lead(b))?;
    let wide = |x: &Body| over_batch(x, &batch, &rows_and_columns(x.shape()));
    let out = by_columns(&wide(b))?;
    if out.numel() == 0 {
        return Ok(out);
    }
    let a = by_columns(&wide(a))?;
    fork!(over [a, out], with [upper, unit],
        cpu: crate::cpu::linalg::solve_triangular(a.host()?, out.host()?, upper, unit),
        gpu: no_shader("linalg_solve_triangular", out.dtype))?;
    Ok(out)
}

#[primitive]
impl LinalgSolveTriangular {
    fn forward(
        input: &Tensor,
        #[shown("B")] other: &Tensor,
        upper: bool,
        left: bool,
        unitriangular: bool,
    ) -> Result<Body> {
        solution(&input.body(), &other.body(), upper, left, unitriangular)
    }
    fn d_input(g: V, input: V, result: V, at: Meta, upper: bool, left: bool, unitriangular: bool) -> V {
        let g = solve(&input.mh(), &g, !upper, left, unitriangular);
        let whole = if left { -g.matmul(result.mh()) } else { -result.mh().matmul(g) };
        let shift = i64::from(unitriangular);
        let part = if upper { triu(whole, shift) } else { tril(whole, -shift) };
        part.sum_to(&at.shape)
    }
    fn d_other(g: V, input: V, at: Meta, upper: bool, left: bool, unitriangular: bool) -> V {
        solve(&input.mh(), &g, !upper, left, unitriangular).sum_to(&at.shape)
    }
    fn batch(
        b: &Batch,
        input: &Tensor,
        other: &Tensor,
        upper: bool,
        left: bool,
        unitriangular: bool,
    ) -> Result<Tensor> {
        let [x, y] = aligned(b, input, other)?;
        LinalgSolveTriangular::call(&x, &y, upper, left, unitriangular).map(|t| b.wrap(t))
    }
}

/// The solution, for use in formulas.
pub fn solve(a: &V, b: &V, upper: bool, left: bool, unit: bool) -> V {
    a.with(b, |a, b| LinalgSolveTriangular::call(a, b, upper, left, unit))
}

/// Solve systems of linear equations `A @ X = B` with triangular matrices.
///
/// Args:
///     input: the triangular matrix `A`, or a batch of them; the other triangle is not read.
///     B: right-hand side.
///     upper: whether `A` is upper triangular, else lower.
///     left: whether to solve `A @ X = B`, else `X @ A = B`.
///     unitriangular: whether the diagonal of `A` is taken as ones.
///
/// Examples:
///     >>> A = torch.tensor([[1.0, 1.0], [0.0, 2.0]])
///     >>> torch.linalg.solve_triangular(A, torch.tensor([[3.0], [4.0]]), upper=True)
///     tensor([[1.],
///             [2.]])
#[operator(
    function,
    space = "linalg",
    out(message = "expected scalar type {result} but found {target}"),
    sample = "on_host(right_sides(lambda x, y, left: T.linalg.solve_triangular( \
              x.triu() + 3 * T.eye(x.shape[-1], dtype=x.dtype), y, upper=True, left=left)))"
)]
pub fn linalg_solve_triangular(
    input: &Tensor,
    B: &Tensor,
    #[keyword] upper: bool,
    #[default(true)] left: bool,
    #[default(false)] unitriangular: bool,
) -> Result<Tensor> {
    let name = "linalg.solve_triangular";
    check_square(name, input)?;
    check_matrix(name, "B", B)?;
    check_sides(name, &input.shape(), &B.shape(), left)?;
    if input.device().is_cpu() && !has_kernel(input.dtype()) {
        return Err(Fault::NoKernel { op: "triangular_solve_cpu", dtype: input.dtype() }.into());
    }
    check_same(name, input, B)?;
    LinalgSolveTriangular::call(input, B, upper, left, unitriangular)
}

#[primitive(results(solution, cloned_coefficient), batch = each)]
impl TriangularSolve {
    fn forward(
        input: &Tensor,
        A: &Tensor,
        upper: bool,
        transpose: bool,
        unitriangular: bool,
    ) -> Result<[Body; 2]> {
        let (b, a) = (input.body(), A.body());
        let of = if transpose { transposed(&a)? } else { a.clone() };
        let copied = by_columns(&duplicate(&a)?)?;
        Ok([solution(&of, &b, upper != transpose, true, unitriangular)?, copied])
    }
    fn derivative(
        g: [Option<V>; 2],
        input: Unread,
        A: V,
        solution: V,
        upper: bool,
        transpose: bool,
        unitriangular: bool,
        wants: [bool; 2],
    ) -> [Option<V>; 2] {
        let [first, second] = g;
        let _ = input;
        let of_b = first.map(|g| {
            let a = if transpose { A.clone().conj() } else { A.mh() };
            solve(&a, &g, upper == transpose, true, unitriangular)
        });
        let of_a = of_b.as_ref().filter(|_| wants[1]).map(|g| {
            let whole =
                if transpose { -(solution.clone().conj().matmul(g.mt())) } else { -g.matmul(solution.mh()) };
            let shift = i64::from(unitriangular);
            if upper { triu(whole, shift) } else { tril(whole, -shift) }
        });
        let of_a = match (of_a, second.filter(|_| wants[1])) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        [of_b.filter(|_| wants[0]), of_a]
    }
}

/// Solve `A @ X = input` with triangular matrices; `torch.linalg.solve_triangular` is the newer form.
///
/// Args:
///     input: right-hand side.
///     A: triangular matrix, or a batch of them; the other triangle is not read.
///     upper: whether `A` is upper triangular, else lower.
///     transpose: whether to take the transpose of `A`.
///     unitriangular: whether the diagonal of `A` is taken as ones.
///
/// Returns:
///     A named tuple `(solution, cloned_coefficient)`, the latter a copy of `A`.
///
/// Examples:
///     >>> A = torch.tensor([[1.0, 1.0], [0.0, 2.0]])
///     >>> torch.triangular_solve(torch.tensor([[3.0], [4.0]]), A).solution
///     tensor([[1.],
///             [2.]])
#[operator(
    function,
    method,
    returns(solution, cloned_coefficient),
    out(declared),
    autocast = single,
    sample = "on_host(squares(lambda x: unwarned(T.triangular_solve)(x[..., :2], x + 3 * T.eye(x.shape[-1], dtype=x.dtype))[0]))"
)]
pub fn triangular_solve(
    input: &Tensor,
    A: &Tensor,
    #[default(true)] upper: bool,
    #[default(false)] transpose: bool,
    #[default(false)] unitriangular: bool,
) -> Result<[Tensor; 2]> {
    static TOLD: AtomicBool = AtomicBool::new(false);
    warn_once(
        &TOLD,
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangular and will be removed in a future \
         release.",
    )?;
    for x in [input, A] {
        if x.ndim() < 2 {
            let which = if x.same(input) { "b" } else { "A" };
            return Err(Error::runtime(format!(
                "torch.triangular_solve: Expected {which} to have at least 2 dimensions, but it has {} dimensions instead",
                x.ndim()
            )));
        }
    }
    check_pair("triangular_solve", input, A)?;
    TriangularSolve::call(input, A, upper, transpose, unitriangular)
}

/// Checks the operands of the legacy solvers: a right-hand side and its matrix.
pub fn check_pair(name: &str, b: &Tensor, a: &Tensor) -> Result<()> {
    if b.dtype() != a.dtype() {
        return Err(Error::runtime(format!(
            "Expected b and A to have the same dtype, but found b of type {} and A of type {} instead.",
            b.dtype().scalar_name(),
            a.dtype().scalar_name()
        )));
    }
    let ([n, columns], [rows, width]) = (rows_and_columns(&a.shape()), rows_and_columns(&b.shape()));
    if n != columns {
        return Err(Error::runtime(format!(
            "A must be batches of square matrices, but they are {n} by {columns} matrices"
        )));
    }
    if n != rows {
        return Err(Error::runtime(format!(
            "Incompatible matrix sizes for {name}: each A matrix is {n} by {n} but each b matrix is {rows} by {width}"
        )));
    }
    Ok(())
}
