//! Convolutions and their gradients as matrix products with the unfolded columns of the images.

use crate::base::{Dims, Result, Windows, contiguous_strides, numel};
use crate::gpu::device::memory::{Buffer, alloc};
use crate::gpu::device::view::{Source, View};
use crate::gpu::kernels::matmul::matmul;
use crate::gpu::kernels::pointwise::{Expr, copy, pointwise};
use crate::gpu::kernels::unfold::{fold, unfold};

/// The maximal number of column elements in memory at once.
const HELD: usize = 1 << 26;

/// A contiguous temporary.
struct Dense<'a> {
    buffer: Buffer,
    shape: Dims,
    strides: Dims,
    like: View<'a>,
}

impl<'a> Dense<'a> {
    fn new(shape: &[usize], like: View<'a>) -> Result<Dense<'a>> {
        let buffer = alloc(numel(shape) * like.dtype.size())?;
        Ok(Dense { buffer, shape: Dims::from_slice(shape), strides: contiguous_strides(shape), like })
    }

    fn view(&self) -> View<'_> {
        View {
            buffer: &self.buffer,
            dtype: self.like.dtype,
            shape: &self.shape,
            strides: &self.strides,
            offset: 0,
        }
    }
}

/// Calls `run` with `x`, or with a contiguous copy of it.
fn dense(x: View<'_>, run: impl FnOnce(View<'_>) -> Result<()>) -> Result<()> {
    if x.strides == contiguous_strides(x.shape).as_slice() {
        return run(x);
    }
    let own = Dense::new(x.shape, x)?;
    copy(own.view(), x)?;
    run(own.view())
}

/// Returns the batch entries from `first` on.
fn samples<'a>(x: View<'a>, first: usize, shape: &'a [usize]) -> View<'a> {
    View { offset: x.offset + first * x.strides[0], shape, ..x }
}

/// A view with the dimensions batch, group, row and column.
struct Blocks {
    shape: [usize; 4],
    strides: [usize; 4],
}

impl Blocks {
    fn view<'a>(&'a self, x: View<'a>) -> View<'a> {
        View { shape: &self.shape, strides: &self.strides, ..x }
    }
}

/// Splits a batch into parts that are small enough; yields the first entry and the count of each.
fn parts(all: usize, elements: usize) -> impl Iterator<Item = (usize, usize)> {
    let step = (HELD / elements.max(1)).clamp(1, all.max(1));
    (0..all).step_by(step).map(move |first| (first, step.min(all - first)))
}

fn with_samples(count: usize, shape: &[usize]) -> Dims {
    std::iter::once(count).chain(shape[1..].iter().copied()).collect()
}

/// `out = x * weight + bias`; `out` is contiguous.
pub fn conv_forward(
    windows: &Windows,
    groups: usize,
    out: View<'_>,
    x: View<'_>,
    weight: View<'_>,
    bias: Option<View<'_>>,
) -> Result<()> {
    let (rows, positions) = (x.shape[1] * windows.kernel_numel(), windows.positions());
    let (inner, outputs) = (rows / groups, weight.shape[0] / groups);
    dense(weight, |weight| {
        for (first, n) in parts(x.shape[0], rows * positions) {
            let shape = with_samples(n, x.shape);
            let part = samples(x, first, &shape);
            let multiply = |columns: View<'_>| {
                let w =
                    Blocks { shape: [n, groups, outputs, inner], strides: [0, outputs * inner, inner, 1] };
                let c = Blocks {
                    shape: [n, groups, inner, positions],
                    strides: [columns.strides[0], inner * positions, positions, 1],
                };
                let o = Blocks {
                    shape: [n, groups, outputs, positions],
                    strides: [out.strides[0], outputs * positions, positions, 1],
                };
                let to = View { offset: out.offset + first * out.strides[0], ..out };
                matmul(o.view(to), w.view(weight), c.view(columns), 1.0, 0.0)
            };
            if windows.are_elements() {
                dense(part, multiply)?;
            } else {
                let columns = Dense::new(&[n, rows, positions], x)?;
                unfold(windows, columns.view(), part)?;
                multiply(columns.view())?;
            }
        }
        Ok(())
    })?;
    bias.map_or(Ok(()), |bias| add_bias(out, bias))
}

fn add_bias(out: View<'_>, bias: View<'_>) -> Result<()> {
    let mut strides: Dims = out.strides.iter().map(|_| 0).collect();
    strides[1] = bias.strides[0];
    let bias = View { shape: out.shape, strides: &strides, ..bias };
    let add = Expr { key: "bias_added", inputs: &["x", "b"], wgsl: "x + b", predicate: false };
    pointwise(&add, out.dtype, out, &[Source::View(out), Source::View(bias)])
}

/// The gradient of a convolution's input, which is also the transposed convolution of `grad`.
pub fn conv_backward_input(
    windows: &Windows,
    groups: usize,
    out: View<'_>,
    grad: View<'_>,
    weight: View<'_>,
    bias: Option<View<'_>>,
) -> Result<()> {
    let (rows, positions) = (out.shape[1] * windows.kernel_numel(), windows.positions());
    let (inner, outputs) = (rows / groups, weight.shape[0] / groups);
    dense(weight, |weight| {
        dense(grad, |grad| {
            for (first, n) in parts(out.shape[0], rows * positions) {
                let shape = with_samples(n, out.shape);
                let columns = Dense::new(&[n, rows, positions], out)?;
                let w =
                    Blocks { shape: [n, groups, inner, outputs], strides: [0, outputs * inner, 1, inner] };
                let g = Blocks {
                    shape: [n, groups, outputs, positions],
                    strides: [grad.strides[0], outputs * positions, positions, 1],
                };
                let c = Blocks {
                    shape: [n, groups, inner, positions],
                    strides: [rows * positions, inner * positions, positions, 1],
                };
                let from = View { offset: grad.offset + first * grad.strides[0], ..grad };
                matmul(c.view(columns.view()), w.view(weight), g.view(from), 1.0, 0.0)?;
                fold(windows, samples(out, first, &shape), columns.view())?;
            }
            Ok(())
        })
    })?;
    bias.map_or(Ok(()), |bias| add_bias(out, bias))
}

/// The gradient of a convolution's weight; `out` is contiguous.
pub fn conv_backward_weight(
    windows: &Windows,
    groups: usize,
    out: View<'_>,
    x: View<'_>,
    grad: View<'_>,
) -> Result<()> {
    let (rows, positions) = (x.shape[1] * windows.kernel_numel(), windows.positions());
    let (inner, outputs) = (rows / groups, out.shape[0] / groups);
    dense(grad, |grad| {
        for (first, n) in parts(x.shape[0], rows * positions) {
            // The columns of adjacent batch entries lie side by side, so that one matrix product sums over
            // the batch.
            let long = n * positions;
            let columns = Dense::new(&[rows, n, positions], x)?;
            let (c_shape, c_strides) = ([n, rows, positions], [positions, long, 1]);
            let shape = with_samples(n, x.shape);
            unfold(
                windows,
                View { shape: &c_shape, strides: &c_strides, ..columns.view() },
                samples(x, first, &shape),
            )?;
            let lines = Dense::new(&[outputs * groups, n, positions], x)?;
            let g_strides = [positions, grad.strides[0], 1];
            let g = View { shape: &lines.shape, strides: &g_strides, ..grad };
            copy(lines.view(), View { offset: grad.offset + first * grad.strides[0], ..g })?;
            let g = Blocks { shape: [1, groups, outputs, long], strides: [0, outputs * long, long, 1] };
            let c = Blocks { shape: [1, groups, long, inner], strides: [0, inner * long, 1, long] };
            let o = Blocks { shape: [1, groups, outputs, inner], strides: [0, outputs * inner, inner, 1] };
            let beta = if first == 0 { 0.0 } else { 1.0 };
            matmul(o.view(out), g.view(lines.view()), c.view(columns.view()), 1.0, beta)?;
        }
        Ok(())
    })
}
