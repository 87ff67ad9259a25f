//! Interpolation along the last dimensions. For every mode, an element of the result is a weighted sum of a few elements of the
//! input, dimension by dimension. So one kernel computes all modes, and its transpose is the gradient.

use crate::base::{MemoryFormat, ResampleWeights, numel, try_alloc};
use crate::operator::bodies::copy;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::no_grad;

#[derive(Clone, Copy, PartialEq, Eq)]
enum ResizeRule {
    Nearest,
    NearestExact,
    Linear,
    Cubic,
    /// Antialiased modes, whose filter widens with the reduction: linear, cubic, and Lanczos with three lobes.
    WideLinear,
    WideCubic,
    WideLanczos,
}

/// The options for resizing one dimension.
#[derive(Clone, Copy)]
struct ResizeOptions {
    rule: ResizeRule,
    align_corners: bool,
    scale: Option<f64>,
    /// Compute in double precision. Otherwise every step is rounded to single precision, as in PyTorch.
    double: bool,
}

impl ResizeOptions {
    fn round(&self, x: f64) -> f64 {
        if self.double { x } else { f64::from(x as f32) }
    }

    /// The distance in the source between neighbouring elements of the result.
    fn step(&self, from: usize, to: usize) -> f64 {
        if self.align_corners {
            return if to > 1 { self.round((from - 1) as f64 / (to - 1) as f64) } else { 0.0 };
        }
        match self.scale {
            Some(scale) if scale > 0.0 => self.round(1.0 / scale),
            _ => self.round(from as f64 / to as f64),
        }
    }

    /// The coordinate in the source of element `i` of the result.
    fn source(&self, step: f64, i: usize, cubic: bool) -> f64 {
        if self.align_corners {
            return self.round(step * i as f64);
        }
        let at = self.round(self.round(step * (i as f64 + 0.5)) - 0.5);
        if at < 0.0 && !cubic { 0.0 } else { at }
    }

    fn taps(&self, from: usize, to: usize) -> ResampleWeights {
        let mut taps = ResampleWeights::new(from);
        let last = from - 1;
        match self.rule {
            ResizeRule::Nearest | ResizeRule::NearestExact => {
                let single = ResizeOptions { double: false, align_corners: false, ..*self };
                let (step, half) =
                    (single.step(from, to), if self.rule == ResizeRule::Nearest { 0.0 } else { 0.5 });
                for i in 0..to {
                    let at = match self.rule {
                        ResizeRule::Nearest if from == to => i,
                        ResizeRule::Nearest if to == 2 * from => i / 2,
                        _ => single.round((i as f64 + half) * step).floor() as usize,
                    };
                    taps.push([(at.min(last), 1.0)]);
                }
            }
            ResizeRule::Linear => {
                let step = self.step(from, to);
                for i in 0..to {
                    if from == to {
                        taps.push([(i, 1.0)]);
                        continue;
                    }
                    let at = self.source(step, i, false);
                    let low = (at as usize).min(last);
                    let part = self.round((at - low as f64).clamp(0.0, 1.0));
                    let high = (low + 1).min(last);
                    match high == low {
                        true => taps.push([(low, 1.0)]),
                        false => taps.push([(low, self.round(1.0 - part)), (high, part)]),
                    }
                }
            }
            ResizeRule::Cubic => {
                let step = self.step(from, to);
                for i in 0..to {
                    let at = self.source(step, i, true);
                    let low = at.floor();
                    let part = self.round(at - low);
                    let weights = cubic_weights(part);
                    let place = |k: usize| (low as i64 - 1 + k as i64).clamp(0, last as i64) as usize;
                    taps.push((0..4).map(|k| (place(k), self.round(weights[k]))));
                }
            }
            ResizeRule::WideLinear | ResizeRule::WideCubic | ResizeRule::WideLanczos => {
                self.wide(&mut taps, from, to)
            }
        }
        taps
    }

    fn wide(&self, taps: &mut ResampleWeights, from: usize, to: usize) {
        let (reach, filter): (f64, fn(f64) -> f64) = match self.rule {
            ResizeRule::WideLinear => (1.0, |x| (1.0 - x.abs()).max(0.0)),
            ResizeRule::WideCubic => (2.0, |x| cubic(x.abs(), -0.5)),
            _ => (3.0, lanczos),
        };
        let step = self.step(from, to);
        let support = if step >= 1.0 { reach * step } else { reach };
        let shrink = if step >= 1.0 { 1.0 / step } else { 1.0 };
        for i in 0..to {
            let centre = self.round(step * (i as f64 + 0.5));
            let first = ((centre - support + 0.5) as i64).clamp(0, from as i64) as usize;
            let end = ((centre + support + 0.5) as i64).clamp(first as i64, from as i64) as usize;
            let weights: Vec<f64> =
                (first..end).map(|at| filter((at as f64 - centre + 0.5) * shrink)).collect();
            let total: f64 = weights.iter().sum();
            let total = if total == 0.0 { 1.0 } else { total };
            taps.push((first..end).zip(weights).map(|(at, w)| (at, self.round(w / total))));
        }
    }
}

/// The cubic convolution kernel, whose parameter is `a`.
fn cubic(x: f64, a: f64) -> f64 {
    if x < 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        (((x - 5.0) * x + 8.0) * x - 4.0) * a
    } else {
        0.0
    }
}

/// The weights of four neighbours, at the fraction `part` of the way from the second to the third.
pub fn cubic_weights(part: f64) -> [f64; 4] {
    [part + 1.0, part, 1.0 - part, 2.0 - part].map(|x| cubic(x, -0.75))
}

fn lanczos(x: f64) -> f64 {
    let sinc = |x: f64| {
        let x = x * std::f64::consts::PI;
        if x == 0.0 { 1.0 } else { x.sin() / x }
    };
    if x.abs() < 3.0 { sinc(x) * sinc(x / 3.0) } else { 0.0 }
}

/// The numbers of elements of a contiguous body before and after dimension `dim`.
fn around(shape: &[usize], format: MemoryFormat, dim: usize) -> [usize; 2] {
    // The order in memory: batch, space, channels; or batch, channels, space.
    let order: Dims = if matches!(format, MemoryFormat::ChannelsLast(_)) {
        [0].into_iter().chain(2..shape.len()).chain([1]).collect()
    } else {
        (0..shape.len()).collect()
    };
    let at = order.iter().position(|&d| d == dim).unwrap_or(0);
    let count = |dims: &[usize]| dims.iter().map(|&d| shape[d]).product();
    [count(&order[..at]), count(&order[at + 1..])]
}

fn in_format(shape: &[usize], dtype: DType, device: Device, format: MemoryFormat) -> Result<Body> {
    let mut body = Body::new(shape, dtype, device)?;
    body.layout = format.layout(&body.layout)?;
    Ok(body)
}

/// Resizes dimension by dimension; with `back`, back to the size that it came from, for the gradient.
fn resize(x: &Body, sizes: &[usize], ways: &[ResizeOptions], back: bool) -> Result<Body> {
    let ndim = x.layout.ndim();
    let dims = sizes.len();
    let format = MemoryFormat::suggested(&x.layout);
    let dtype = x.dtype;
    let wide = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let start = in_format(x.shape(), wide, x.device(), format)?;
    let dense = x.dtype == wide && x.layout.strides == start.layout.strides;
    let mut now = if dense {
        x.clone()
    } else {
        copy(&start, x)?;
        start
    };
    // Dimensions that shrink come first, then the outermost ones.
    let mut order: Vec<usize> = (0..dims).collect();
    order.sort_by_key(|&k| sizes[k] >= x.shape()[ndim - dims + k]);
    let mut made = !dense;
    for (k, rest) in order.into_iter().zip((0..dims).rev()) {
        let dim = ndim - dims + k;
        let (from, to) = (now.shape()[dim], sizes[k]);
        let mut shape = Dims::from_slice(now.shape());
        shape[dim] = to;
        // Allocates before computing the weights, so that a size too large for memory is rejected early.
        let out = in_format(&shape, wide, now.device(), format)?;
        let [outer, inner] = around(&shape, format, dim);
        if out.numel() > 0 {
            try_alloc::check(from.saturating_add(to), 256)?;
            let taps = if back { ways[k].taps(to, from).transposed() } else { ways[k].taps(from, to) };
            // At least one copy is made, even if no size changes.
            if taps.change_nothing() && (made || rest > 0) {
                continue;
            }
            fork!(over [out, now], with [outer, inner, taps],
                cpu: crate::cpu::resample::resample(out.host()?, now.host()?, outer, inner, &taps),
                gpu: crate::gpu::resample(flat(&out)?.gpu()?, flat(&now)?.gpu()?, outer, inner, &taps))?;
        }
        (now, made) = (out, true);
    }
    if dtype == wide {
        return Ok(now);
    }
    if dtype == DType::U8 {
        let whole = crate::ops::elementwise::unary::round(&Tensor::new(now))?;
        now = no_grad(|| maximum(minimum(V::from(whole), 255.0), 0.0).tensor())?;
    }
    let out = in_format(now.shape(), dtype, now.device(), format)?;
    copy(&out, &now)?;
    Ok(out)
}

/// Flattens a contiguous body in memory order.
#[cfg(feature = "gpu")]
fn flat(body: &Body) -> Result<Body> {
    let shape: Dims = smallvec::smallvec![body.numel()];
    let strides = crate::base::contiguous_strides(&shape);
    Ok(body.with_layout(Layout { shape, strides, offset: body.layout.offset }))
}

/// Checks what all kernels check. Returns the shape of the result.
fn infer_shape(input: &Tensor, size: &[i64], dims: usize) -> Result<Dims> {
    let shape = input.shape();
    let own = &shape[2..];
    if size.len() != dims || own.len() != dims {
        return Err(Error::runtime(format!(
            "It is expected output_size equals to {dims}, but got size {}",
            size.len()
        )));
    }
    if own.contains(&0) || size.iter().any(|n| *n <= 0) {
        let names = ["D", "H", "W"];
        let show = |sizes: &[i64]| {
            let all = names[3 - dims..].iter().zip(sizes).map(|(name, n)| format!("{name}: {n}"));
            all.collect::<Vec<_>>().join(", ")
        };
        let own: Vec<i64> = own.iter().map(|n| *n as i64).collect();
        return Err(Error::runtime(format!(
            "Input and output sizes should be greater than 0, but got input ({}) output ({})",
            show(&own),
            show(size)
        )));
    }
    if numel(&shape[1..]) == 0 {
        return Err(Error::runtime(format!(
            "Non-empty {}D data tensor expected but got a tensor with sizes {:?}",
            dims + 2,
            shape.as_slice()
        )));
    }
    let mut out = Dims::from_slice(&shape[..2]);
    out.extend(size.iter().map(|n| *n as usize));
    Ok(out)
}

fn check_dtype(input: &Tensor, op: &'static str, rule: ResizeRule) -> Result<()> {
    let dtype = input.dtype();
    let bytes = dtype == DType::U8 && input.device().is_cpu() && rule != ResizeRule::WideLanczos;
    if dtype.is_float() || bytes { Ok(()) } else { Err(Fault::NoKernel { op, dtype }.into()) }
}

/// A primitive for each mode and number of dimensions, and one for its gradient. They are each other's derivative.
macro_rules! resizes {
    ($($Forward:ident, $Backward:ident, $rule:ident, $dims:literal, $kernel:literal
        [$($align:ident)?] [$($scale:ident)+];)*) => { $(
        #[primitive(batch = merged, tangent = linear, shows(self_sym_sizes = sizes(input)))]
        impl $Forward {
            fn forward(
                input: &Tensor,
                output_size: Ints,
                $($align: bool,)?
                $($scale: Option<f64>),+
            ) -> Result<Body> {
                check_dtype(input, $kernel, ResizeRule::$rule)?;
                let shape = infer_shape(input, &output_size, $dims)?;
                let ways = ways(ResizeRule::$rule, false $(|| $align)?, &[$($scale),+], input.dtype());
                resize(&input.body(), &shape[2..], &ways, false)
            }
            fn d_input(
                g: V,
                at: Meta,
                output_size: Ints,
                $($align: bool,)?
                $($scale: Option<f64>),+
            ) -> V {
                // An attribute of the node only.
                drop(output_size);
                let size = at.shape.iter().map(|n| *n as i64).collect();
                g.then(|g| $Backward::call(&g, size, $($align,)? $($scale),+))
            }
        }

        #[primitive(batch = merged, tangent = linear)]
        impl $Backward {
            fn forward(
                grad_output: &Tensor,
                input_size: Ints,
                $($align: bool,)?
                $($scale: Option<f64>),+
            ) -> Result<Body> {
                let sizes: Dims = input_size[2..].iter().map(|n| *n as usize).collect();
                let ways = ways(ResizeRule::$rule, false $(|| $align)?, &[$($scale),+], grad_output.dtype());
                resize(&grad_output.body(), &sizes, &ways, true)
            }
            fn d_grad_output(g: V, at: Meta, $($align: bool,)? $($scale: Option<f64>),+) -> V {
                let size = at.shape[2..].iter().map(|n| *n as i64).collect();
                g.then(|g| $Forward::call(&g, size, $($align,)? $($scale),+))
            }
        }
    )* };
}

fn ways(rule: ResizeRule, align_corners: bool, scales: &[Option<f64>], dtype: DType) -> Vec<ResizeOptions> {
    let double = dtype == DType::F64;
    scales.iter().map(|&scale| ResizeOptions { rule, align_corners, scale, double }).collect()
}
resizes! {
    UpsampleNearest1D, UpsampleNearest1DBackward, Nearest, 1, "compute_indices_weights_nearest" [] [scales];
    UpsampleNearest2D, UpsampleNearest2DBackward, Nearest, 2, "upsample_nearest2d_channels_last" [] [scales_h scales_w];
    UpsampleNearest3D, UpsampleNearest3DBackward, Nearest, 3, "compute_indices_weights_nearest" [] [scales_d scales_h scales_w];
    UpsampleNearestExact1D, UpsampleNearestExact1DBackward, NearestExact, 1, "compute_indices_weights_nearest" [] [scales];
    UpsampleNearestExact2D, UpsampleNearestExact2DBackward, NearestExact, 2, "upsample_nearest2d_channels_last"
        [] [scales_h scales_w];
    UpsampleNearestExact3D, UpsampleNearestExact3DBackward, NearestExact, 3, "compute_indices_weights_nearest"
        [] [scales_d scales_h scales_w];
    UpsampleLinear1D, UpsampleLinear1DBackward, Linear, 1, "compute_indices_weights_linear" [align_corners] [scales];
    UpsampleBilinear2D, UpsampleBilinear2DBackward, Linear, 2, "upsample_bilinear2d_channels_last"
        [align_corners] [scales_h scales_w];
    UpsampleTrilinear3D, UpsampleTrilinear3DBackward, Linear, 3, "compute_indices_weights_linear"
        [align_corners] [scales_d scales_h scales_w];
    UpsampleBicubic2D, UpsampleBicubic2DBackward, Cubic, 2, "compute_indices_weights_cubic" [align_corners] [scales_h scales_w];
    UpsampleBilinear2DAa, UpsampleBilinear2DAaBackward, WideLinear, 2, "compute_index_ranges_weights"
        [align_corners] [scales_h scales_w];
    UpsampleBicubic2DAa, UpsampleBicubic2DAaBackward, WideCubic, 2, "compute_index_ranges_weights"
        [align_corners] [scales_h scales_w];
    UpsampleLanczos2DAa, UpsampleLanczos2DAaBackward, WideLanczos, 2, "compute_index_ranges_weights"
        [align_corners] [scales_h scales_w];
}

/// The output size, from `size` or from the scale factors.
fn sizes_of(input: &Tensor, size: Option<Ints>, scales: &[Option<f64>]) -> Ints {
    size.unwrap_or_else(|| {
        let own = input.shape();
        scales.iter().zip(&own[2..]).map(|(scale, n)| (*n as f64 * scale.unwrap_or(1.0)) as i64).collect()
    })
}

/// Resize by a rule, given by its number; `interpolate` calls it with checked arguments.
///
/// The rules: 0 nearest, 1 nearest-exact, 2 linear, 3 cubic; 4, 5 and 6 linear, cubic and Lanczos with antialiasing.
#[operator(nn, name = "_resample")]
pub fn resample(
    input: &Tensor,
    rule: i64,
    #[strict] size: Option<Ints>,
    scale_d: Option<f64>,
    scale_h: Option<f64>,
    scale_w: Option<f64>,
    #[default(false)] align_corners: bool,
) -> Result<Tensor> {
    let (d, h, w, align) = (scale_d, scale_h, scale_w, align_corners);
    let dims = match input.ndim() {
        rank @ 3..=5 => rank - 2,
        rank => {
            return Err(Error::runtime(format!(
                "interpolate: expected a 3D, 4D or 5D tensor, but got {rank}D"
            )));
        }
    };
    let size = sizes_of(input, size, &[d, h, w][3 - dims..]);
    match (rule, dims) {
        (0, 1) => UpsampleNearest1D::call(input, size, w),
        (0, 2) => UpsampleNearest2D::call(input, size, h, w),
        (0, _) => UpsampleNearest3D::call(input, size, d, h, w),
        (1, 1) => UpsampleNearestExact1D::call(input, size, w),
        (1, 2) => UpsampleNearestExact2D::call(input, size, h, w),
        (1, _) => UpsampleNearestExact3D::call(input, size, d, h, w),
        (2, 1) => UpsampleLinear1D::call(input, size, align, w),
        (2, 2) => UpsampleBilinear2D::call(input, size, align, h, w),
        (2, _) => UpsampleTrilinear3D::call(input, size, align, d, h, w),
        (3, 2) => UpsampleBicubic2D::call(input, size, align, h, w),
        (4, 2) => UpsampleBilinear2DAa::call(input, size, align, h, w),
        (5, 2) => UpsampleBicubic2DAa::call(input, size, align, h, w),
        (6, 2) => UpsampleLanczos2DAa::call(input, size, align, h, w),
        _ => Err(Error::runtime(format!(
            "interpolate: mode number {rule} is not supported for {dims} spatial dimensions"
        ))),
    }
}
