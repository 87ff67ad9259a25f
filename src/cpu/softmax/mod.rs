//! Softmax and log-softmax along one dimension, and their derivatives. They are fused, because a composition of four
//! operators reads and writes memory four times as often. If the dimension is not the innermost, a tile of neighbouring
//! lines is computed at once.

mod loops;

use super::element::scratch;
use super::float::Float;
use super::par;
use super::strided_run::{RunBuffers, StridedRun, TILE, compute_type};
use super::walk::Walk;
use crate::base::{DType, Dims, Fault, Result, Strided};
use loops::{Lines, MAX_ELEMENTS, MAX_LINES};
use smallvec::SmallVec;

/// `out = softmax(x)` along `dim`, or its logarithm; for float dtypes.
///
/// # Safety
/// The views are live and share a shape; `out` overlaps nothing.
pub unsafe fn softmax(out: Strided, x: Strided, dim: usize, log: bool) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe {
        run(if log { "log_softmax" } else { "softmax" }, out, [x, x], dim, SoftmaxKernel::Forward { log })
    }
}

/// The gradient of the operand of [`softmax`], given its result `y` and the gradient of that.
///
/// # Safety
/// See [`softmax`].
pub unsafe fn softmax_backward(out: Strided, grad: Strided, y: Strided, dim: usize, log: bool) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe { run("softmax_backward", out, [grad, y], dim, SoftmaxKernel::Backward { log }) }
}

#[derive(Clone, Copy)]
enum SoftmaxKernel {
    Forward { log: bool },
    Backward { log: bool },
}

unsafe fn run(
    op: &'static str,
    out: Strided,
    ins: [Strided; 2],
    dim: usize,
    kernel: SoftmaxKernel,
) -> Result<()> {
    let dtype = ins[0].dtype;
    // SAFETY: the caller's contract.
    unsafe {
        match compute_type(dtype) {
            DType::F32 => each_line::<f32>(out, ins, dim, kernel),
            DType::F64 => each_line::<f64>(out, ins, dim, kernel),
            _ => Err(Fault::NoKernel { op, dtype }.into()),
        }
    }
}

/// Cuts the tensor into lines along `dim` (if they are dense), or into tiles of lines.
unsafe fn each_line<T: Float>(
    out: Strided,
    ins: [Strided; 2],
    dim: usize,
    kernel: SoftmaxKernel,
) -> Result<()> {
    let (n, along) = match out.shape.get(dim) {
        Some(&n) => (n, [out.strides[dim], ins[0].strides[dim], ins[1].strides[dim]]),
        None => (1, [1; 3]),
    };
    let mut others: Dims = (0..out.shape.len()).filter(|&d| d != dim).collect();
    others.sort_by_key(|&d| std::cmp::Reverse(out.strides[d]));
    let strides = [out.strides, ins[0].strides, ins[1].strides];
    let mut walk = Walk::over(&others, out.shape, strides);
    if n == 0 || walk.numel() == 0 {
        return Ok(());
    }
    let (neighbours, across) = match along == [1; 3] || n == 1 {
        true => (1, [0; 3]),
        false => walk.pop(),
    };
    let tiles = neighbours.div_ceil(TILE);
    let width = neighbours.min(TILE);
    let step = |i: usize| if neighbours == 1 { along[i] } else { across[i] };
    let lines = [
        StridedRun::reader(&ins[0], step(1), T::DTYPE),
        StridedRun::reader(&ins[1], step(2), T::DTYPE),
        StridedRun::writer(&out, step(0), T::DTYPE),
    ];
    let grain = (par::GRAIN / (n * width)).max(1);
    par::try_ranges(walk.numel() * tiles, grain, |range| {
        if neighbours == 1 && lines.iter().all(StridedRun::is_direct) {
            walk.runs(range, |at, steps, count| {
                let most = (MAX_ELEMENTS / n).clamp(1, MAX_LINES);
                for first in (0..count).step_by(most) {
                    let count = most.min(count - first);
                    let at = [0, 1, 2].map(|i| at[i].wrapping_add(first.wrapping_mul(steps[i])));
                    // SAFETY: the lines are inside the views, and belong to this task alone.
                    unsafe { several::<T>(&lines, at, steps, [n, count], kernel) };
                }
            });
            return Ok(());
        }
        let mut buffers = Buffers::<T>::new(&lines, if neighbours == 1 { n } else { 0 })?;
        if neighbours == 1 {
            // SAFETY: the lines are inside the views, and belong to this task alone.
            walk.each(range, |at| unsafe { one_line(&lines, at, n, kernel, &mut buffers) });
            return Ok(());
        }
        for group in range {
            let at = walk.at(group / tiles);
            let first = group % tiles * TILE;
            let at = [0, 1, 2].map(|i| at[i] + first * across[i]);
            let width = width.min(neighbours - first);
            // SAFETY: as above.
            unsafe { tile(&lines, at, along, n, width, kernel, &mut buffers) };
        }
        Ok(())
    })
}

/// Copies of lines that the loops cannot use in place.
struct Buffers<T> {
    lines: [Vec<T>; 3],
    room: RunBuffers,
}

impl<T: Float> Buffers<T> {
    fn new(lines: &[StridedRun; 3], n: usize) -> Result<Buffers<T>> {
        let copy = |line: &StridedRun| scratch(if line.is_direct() { 0 } else { n }, T::ZERO);
        Ok(Buffers {
            lines: [copy(&lines[0])?, copy(&lines[1])?, copy(&lines[2])?],
            room: RunBuffers::empty(),
        })
    }
}

/// Computes several lines that already have the layout and dtype of the loops.
unsafe fn several<T: Float>(
    lines: &[StridedRun; 3],
    at: [usize; 3],
    [step, first, second]: [usize; 3],
    [n, count]: [usize; 2],
    kernel: SoftmaxKernel,
) {
    let out = Lines { n, count, out: lines[2].at(at[0]).cast::<T>(), step };
    let ins = [0, 1].map(|i| lines[i].at(at[i + 1]).cast_const().cast::<T>());
    // SAFETY: the caller's lines.
    unsafe {
        match kernel {
            SoftmaxKernel::Forward { log } => loops::forward(out, ins[0], first, log),
            SoftmaxKernel::Backward { log } => loops::backward(out, ins, [first, second], log),
        }
    }
}

unsafe fn one_line<T: Float>(
    lines: &[StridedRun; 3],
    at: [usize; 3],
    n: usize,
    kernel: SoftmaxKernel,
    buffers: &mut Buffers<T>,
) {
    let Buffers { lines: copies, room } = buffers;
    let inputs = if matches!(kernel, SoftmaxKernel::Forward { .. }) { 1 } else { 2 };
    let mut ins = [std::ptr::null::<T>(); 2];
    for i in 0..inputs {
        let (line, offset) = (&lines[i], at[i + 1]);
        ins[i] = line.at(offset).cast_const().cast();
        if !line.is_direct() {
            for first in (0..n).step_by(TILE) {
                let len = TILE.min(n - first);
                // SAFETY: a part of the caller's line.
                unsafe {
                    let from = line.read(offset + first * line.step, len, room).cast::<T>();
                    copies[i][first..first + len].as_mut_ptr().copy_from_nonoverlapping(from, len);
                }
            }
            ins[i] = copies[i].as_ptr();
        }
    }
    let line = &lines[2];
    let to = if line.is_direct() { line.at(at[0]).cast::<T>() } else { copies[2].as_mut_ptr() };
    // SAFETY: each has `n` elements, by the caller's contract or because it is a copy of that length.
    unsafe {
        match kernel {
            SoftmaxKernel::Forward { log } => {
                loops::forward(Lines { n, count: 1, out: to, step: 0 }, ins[0], 0, log)
            }
            SoftmaxKernel::Backward { log } => {
                loops::backward(Lines { n, count: 1, out: to, step: 0 }, ins, [0; 2], log)
            }
        }
        if !line.is_direct() {
            for first in (0..n).step_by(TILE) {
                let len = TILE.min(n - first);
                line.write(to.add(first).cast(), at[0] + first * line.step, len, room);
            }
        }
    }
}

/// Computes `width` neighbouring lines of `n` elements, row by row: one pass for the maxima, one for the sums, and one
/// for the result.
unsafe fn tile<T: Float>(
    lines: &[StridedRun; 3],
    at: [usize; 3],
    along: [usize; 3],
    n: usize,
    width: usize,
    kernel: SoftmaxKernel,
    buffers: &mut Buffers<T>,
) {
    let room = &mut buffers.room;
    let mut other = RunBuffers::empty();
    let mut largest: SmallVec<[T; TILE]> = SmallVec::from_elem(T::NEG_INFINITY, width);
    let mut sums: SmallVec<[T; TILE]> = SmallVec::from_elem(T::ZERO, width);
    let mut result: SmallVec<[T; TILE]> = SmallVec::from_elem(T::ZERO, width);
    // SAFETY: row `i` of the tile is inside each operand.
    unsafe {
        let row = |input: usize, i: usize, room: &mut RunBuffers| {
            lines[input].read(at[input + 1] + i * along[input + 1], width, room).cast::<T>()
        };
        if let SoftmaxKernel::Forward { log } = kernel {
            (0..n).for_each(|i| loops::rows_max(width, row(0, i, room), &mut largest));
            (0..n).for_each(|i| loops::rows_exp_sum(width, row(0, i, room), &largest, &mut sums));
            loops::finish_sums(&mut sums, log);
        } else if let SoftmaxKernel::Backward { log } = kernel {
            (0..n)
                .for_each(|i| loops::rows_dot(width, row(0, i, room), row(1, i, &mut other), log, &mut sums));
        }
        for i in 0..n {
            match kernel {
                SoftmaxKernel::Forward { log } => {
                    loops::rows_softmax(width, row(0, i, room), &largest, &sums, log, &mut result)
                }
                SoftmaxKernel::Backward { log } => {
                    loops::rows_gradient(
                        width,
                        row(0, i, room),
                        row(1, i, &mut other),
                        &sums,
                        log,
                        &mut result,
                    );
                }
            }
            let line = &lines[2];
            let offset = at[0] + i * along[0];
            if line.is_direct() {
                line.at(offset).cast::<T>().copy_from_nonoverlapping(result.as_ptr(), width);
            } else {
                line.write(result.as_ptr().cast(), offset, width, room);
            }
        }
    }
}
