//! Reductions over any dimensions of any layout. The division into blocks depends on sizes and strides only, never on
//! threads, so a reduction has the same bits on any number of them.

mod loops;
mod parts;
mod plan;
mod steps;

use super::element::scratch;
use super::par::Shared;
use super::strided_run::{RunBuffers, StridedRun, TILE, compute_type};
use crate::base::{DType, Dims, Reduction, Result, Strided};
use loops::ReduceInput;
use plan::ReducePlan;
use steps::Wide;

pub use parts::{RowFold, RowParts};

/// Reduces `x` over `dims` into `out`, which has the shape of `x` with size 1 in `dims`. `ArgMax` and `ArgMin` give the
/// linear index within `dims`; of several equal elements, that of the first.
///
/// # Safety
/// The views are live, and `out` overlaps nothing.
pub unsafe fn reduce(reduction: Reduction, out: Strided, x: Strided, dims: &[usize]) {
    // SAFETY: the caller's contract.
    unsafe {
        if reduction.is_arg() {
            dispatch(
                ReduceJob { reduction, values: None, indices: Some(out), finish: Finish::AsIs },
                x,
                dims,
            );
        } else {
            dispatch(
                ReduceJob { reduction, values: Some(out), indices: None, finish: Finish::AsIs },
                x,
                dims,
            );
        }
    }
}

/// The arithmetic mean over `dims`, rounded once; for float dtypes.
///
/// # Safety
/// See [`reduce`].
pub unsafe fn mean(out: Strided, x: Strided, dims: &[usize]) {
    let count = count(&x, dims);
    let job = ReduceJob {
        reduction: Reduction::Sum,
        values: Some(out),
        indices: None,
        finish: Finish::Over(count, false),
    };
    // SAFETY: the caller's contract.
    unsafe { dispatch(job, x, dims) };
}

/// The variance over `dims` (or its square root), divided by the number of elements minus `correction`; for float
/// dtypes. Two passes in f64 are as exact for data far from zero as for data near it.
///
/// # Safety
/// See [`reduce`].
pub unsafe fn var(out: Strided, x: Strided, dims: &[usize], correction: f64, sqrt: bool) -> Result<()> {
    let count = count(&x, dims);
    let mut means = scratch(out.numel(), 0.0f64)?;
    let finish = Finish::Over((count - correction).max(0.0), sqrt);
    let job = ReduceJob { reduction: Reduction::SumSq, values: Some(out), indices: None, finish };
    // SAFETY: the caller's contract.
    unsafe {
        match x.dtype {
            DType::F64 => variance::<f64>(&job, x, dims, count, &mut means),
            _ => variance::<f32>(&job, x, dims, count, &mut means),
        }
    }
    Ok(())
}

/// The largest (or smallest) element along `dim`, and the index of its first occurrence; NaN wins.
///
/// # Safety
/// See [`reduce`]; the same holds for both outputs.
pub unsafe fn max_with_index(values: Strided, indices: Strided, x: Strided, dim: usize, largest: bool) {
    let reduction = if largest { Reduction::ArgMax } else { Reduction::ArgMin };
    let job = ReduceJob { reduction, values: Some(values), indices: Some(indices), finish: Finish::AsIs };
    // SAFETY: the caller's contract.
    unsafe { dispatch(job, x, &[dim]) };
}

/// Number of elements behind each result.
fn count(x: &Strided, dims: &[usize]) -> f64 {
    dims.iter().filter_map(|&d| x.shape.get(d)).product::<usize>() as f64
}

/// The last step before a value is stored.
#[derive(Clone, Copy)]
enum Finish {
    AsIs,
    /// Division by a number, followed by the square root if the flag is set.
    Over(f64, bool),
}

struct ReduceJob<'a> {
    reduction: Reduction,
    values: Option<Strided<'a>>,
    indices: Option<Strided<'a>>,
    finish: Finish,
}

unsafe fn dispatch(job: ReduceJob, x: Strided, dims: &[usize]) {
    // SAFETY: the caller's contract.
    unsafe {
        match compute_type(x.dtype) {
            DType::F32 => job.store(&job.plan::<f32>(&x, dims), None),
            DType::F64 => job.store(&job.plan::<f64>(&x, dims), None),
            _ => job.store(&job.plan::<i64>(&x, dims), None),
        }
    }
}

/// Both passes of a variance: the means, then the sums of squared differences from them.
unsafe fn variance<S: ReduceInput<Wide = f64>>(
    job: &ReduceJob,
    x: Strided,
    dims: &[usize],
    count: f64,
    means: &mut [f64],
) {
    let to = Shared::new(means.as_ptr());
    let plan = job.plan::<S>(&x, dims);
    // SAFETY: there is a mean per output, and groups of outputs are disjoint.
    plan.run(Reduction::Sum, None, &|found| unsafe {
        found.values.iter().enumerate().for_each(|(i, sum)| *to.get().add(found.first + i) = sum / count);
    });
    // SAFETY: the caller's contract.
    unsafe { job.store(&plan, Some(means)) };
}

impl ReduceJob<'_> {
    fn plan<S: ReduceInput>(&self, x: &Strided, dims: &[usize]) -> ReducePlan<S> {
        let nowhere: Dims = x.shape.iter().map(|_| 0).collect();
        let outs = [self.values, self.indices].map(|out| out.map_or(&nowhere[..], |out| out.strides));
        ReducePlan::new(self.reduction, x, outs, dims)
    }

    /// Runs the plan, and stores the results.
    unsafe fn store<S: ReduceInput>(&self, plan: &ReducePlan<S>, shift: Option<&[S::Wide]>) {
        let [_, value_step, index_step] = plan.steps;
        let values = self.values.map(|out| StridedRun::writer(&out, value_step, S::Wide::DTYPE));
        let indices = self.indices.map(|out| StridedRun::writer(&out, index_step, DType::I64));
        plan.run(self.reduction, shift, &|found| {
            let mut room = RunBuffers::empty();
            let n = found.values.len();
            // SAFETY: the group's outputs are inside `out`, and belong to no other group.
            unsafe {
                if let (Some(line), Finish::AsIs) = (&values, self.finish) {
                    line.write(found.values.as_ptr().cast(), found.at[0], n, &mut room);
                } else if let (Some(line), Finish::Over(divisor, sqrt)) = (&values, self.finish) {
                    let mut finished = [S::Wide::ZERO; TILE];
                    finished
                        .iter_mut()
                        .zip(found.values)
                        .for_each(|(to, value)| *to = value.over(divisor, sqrt));
                    line.write(finished.as_ptr().cast(), found.at[0], n, &mut room);
                }
                if let Some(line) = &indices {
                    line.write(found.indices.as_ptr().cast(), found.at[1], n, &mut room);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::contiguous_strides;

    fn run(reduction: Reduction, x: &[f32], shape: &[usize], dims: &[usize]) -> Vec<f32> {
        let kept: Dims = (0..shape.len()).map(|d| if dims.contains(&d) { 1 } else { shape[d] }).collect();
        let mut out = vec![0f32; kept.iter().product()];
        let (strides, out_strides) = (contiguous_strides(shape), contiguous_strides(&kept));
        let x = Strided { ptr: x.as_ptr().cast_mut().cast(), dtype: DType::F32, shape, strides: &strides };
        let ptr = out.as_mut_ptr().cast();
        // SAFETY: the views cover the vectors above.
        unsafe {
            reduce(
                reduction,
                Strided { ptr, dtype: DType::F32, shape: &kept, strides: &out_strides },
                x,
                dims,
            )
        };
        out
    }

    #[test]
    fn rows_columns_and_everything() {
        let x: Vec<f32> = (0..12).map(|i| i as f32).collect();
        assert_eq!(run(Reduction::Sum, &x, &[3, 4], &[1]), [6.0, 22.0, 38.0]);
        assert_eq!(run(Reduction::Sum, &x, &[3, 4], &[0]), [12.0, 15.0, 18.0, 21.0]);
        assert_eq!(run(Reduction::Max, &x, &[2, 3, 2], &[0, 2]), [7.0, 9.0, 11.0]);
        assert_eq!(run(Reduction::Sum, &x, &[3, 4], &[0, 1]), [66.0]);
        assert_eq!(run(Reduction::Sum, &[], &[0, 2], &[0]), [0.0, 0.0]);
        assert_eq!(run(Reduction::Prod, &[], &[0], &[0]), [1.0]);
    }

    #[test]
    fn the_first_of_several_largest_and_nan_above_all() {
        assert_eq!(run(Reduction::ArgMax, &[1.0, 3.0, 3.0], &[3], &[0]), [1.0]);
        assert_eq!(run(Reduction::ArgMax, &[f32::NEG_INFINITY; 5], &[5], &[0]), [0.0]);
        let mut x = vec![1.0f32; 100];
        (x[40], x[77]) = (f32::NAN, f32::NAN);
        assert_eq!(run(Reduction::ArgMin, &x, &[100], &[0]), [40.0]);
        assert!(run(Reduction::Max, &x, &[100], &[0])[0].is_nan());
    }

    #[test]
    fn a_million_tenths_are_a_hundred_thousand() {
        assert_eq!(run(Reduction::Sum, &vec![0.1f32; 1_000_000], &[1_000_000], &[0]), [100_000.0]);
    }
}
