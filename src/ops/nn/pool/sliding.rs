//! Pools with sliding windows.

use super::{
    WORDS, as_line, as_plane, check_rank, fail, gather_planes, highest, image, largest, max_pool_gradient,
    means, one, per_dim, single, three, zeros,
};
use crate::base::Windows;
use crate::base::kernel_args::pool::{PoolDivisor, PoolWindows};
use crate::ops::prelude::*;
use crate::tensor::any_requires_grad;
use smallvec::smallvec;

/// The arguments of a sliding window, with an item for each dimension.
#[derive(Clone)]
pub struct Slide {
    pub kernel_size: Ints,
    pub stride: Ints,
    pub padding: Ints,
    pub dilation: Ints,
    pub ceil_mode: bool,
}

impl Slide {
    /// The number of windows along a dimension. Rejects what PyTorch rejects.
    fn count(&self, d: usize, size: i64) -> Result<i64> {
        let (kernel, stride, padding, dilation) =
            (self.kernel_size[d], self.stride[d], self.padding[d], self.dilation[d]);
        if stride == 0 {
            return Err(Error::runtime("stride should not be zero"));
        }
        if padding < 0 {
            return Err(Error::runtime(format!("pad must be non-negative, but got pad: {padding}")));
        }
        let reach = (kernel - 1).saturating_mul(dilation);
        if padding > (reach + 1) / 2 {
            return Err(Error::runtime(format!(
                "pad should be at most half of effective kernel size, but got pad={padding}, kernel_size={kernel} and \
                 dilation={dilation}"
            )));
        }
        let more = if self.ceil_mode { stride - 1 } else { 0 };
        let last_start = size.saturating_add(2 * padding).saturating_sub(reach).saturating_sub(1);
        let count = last_start.saturating_add(more).div_euclid(stride) + 1;
        // The last window must begin inside the image or the padding before it.
        let outside = self.ceil_mode && (count - 1).saturating_mul(stride) >= size + padding;
        Ok(count - i64::from(outside))
    }

    fn pool(&self, shape: &[usize], count: PoolDivisor) -> Result<PoolWindows> {
        let sizes = image(shape, self.kernel_size.len());
        let result: Result<Ints> = (0..sizes.len()).map(|d| self.count(d, sizes[d])).collect();
        let windows = Windows {
            image: three(&sizes, 1),
            kernel: three(&self.kernel_size, 1),
            result: three(&result?, 1),
            stride: three(&self.stride, 1),
            padding: three(&self.padding, 0),
            dilation: three(&self.dilation, 1),
        };
        windows.check()?;
        Ok(PoolWindows { windows, adaptive: false, count })
    }
}

const WHOLE: &[DType] = &[DType::U8, DType::I8, DType::I16, DType::I32, DType::I64];

/// The arguments of an average over sliding windows.
#[derive(Clone)]
pub struct Averaging {
    pub kernel_size: Ints,
    pub stride: Ints,
    pub padding: Ints,
    pub ceil_mode: bool,
    pub count_include_pad: bool,
    pub divisor_override: Option<i64>,
}

impl Averaging {
    fn slide(&self) -> Slide {
        Slide {
            kernel_size: self.kernel_size.clone(),
            stride: self.stride.clone(),
            padding: self.padding.clone(),
            dilation: smallvec![1; self.kernel_size.len()],
            ceil_mode: self.ceil_mode,
        }
    }

    fn pool(&self, shape: &[usize]) -> Result<PoolWindows> {
        let count = match self.divisor_override {
            Some(n) => PoolDivisor::Given(n),
            None if self.count_include_pad => PoolDivisor::Padded,
            None => PoolDivisor::Inside,
        };
        self.slide().pool(shape, count)
    }
}

macro_rules! primitives {
    ($($dims:literal $max_name:literal $avg_name:literal $Max:ident $MaxBack:ident $Avg:ident $AvgBack:ident;)*) => { $(
        #[primitive(batch = in_front, tangent = fn, results(result0, result1))]
        impl $Max {
            fn forward(
                input: &Tensor,
                #[fields(kernel_size, stride, padding, dilation, ceil_mode)] slide: &Slide,
            ) -> Result<[Body; 2]> {
                let input = input.body();
                largest($max_name, &input, &slide.pool(input.shape(), PoolDivisor::Inside)?, $dims, WHOLE)
            }
            fn d_input(
                g: Tensor,
                input: Tensor,
                result1: Tensor,
                slide: &Slide,
            ) -> Result<Tensor> {
                $MaxBack::call(&g, &input, &result1, slide.pool(&input.shape(), PoolDivisor::Inside)?)
            }
            fn tangent(t_input: &Tensor, result1: &Tensor) -> Result<Tensor> {
                gather_planes(t_input, result1, $dims)
            }
        }

        #[primitive(tangent = fn)]
        impl $MaxBack {
            fn forward(grad_output: &Tensor, input: &Tensor, indices: &Tensor, #[hidden] pool: PoolWindows) -> Result<Body> {
                max_pool_gradient(&grad_output.body(), &indices.body(), &input.body(), Some(&pool), $dims)
            }
            fn d_grad_output(g: Tensor, indices: Tensor) -> Result<Tensor> {
                gather_planes(&g, &indices, $dims)
            }
            fn d_input(at: Meta) -> Result<Tensor> {
                zeros(&at)
            }
            fn tangent(t_grad_output: &Tensor, input: &Tensor, indices: &Tensor, pool: PoolWindows) -> Result<Tensor> {
                $MaxBack::call(t_grad_output, input, indices, pool)
            }
            fn batch(b: &Batch, grad_output: &Tensor, input: &Tensor, indices: &Tensor, pool: PoolWindows) -> Result<Tensor> {
                let (g, x, indices) = (b.full(grad_output)?, b.full(input)?, b.full(indices)?);
                Ok(b.wrap($MaxBack::call(&g, &x, &indices, pool)?))
            }
        }

        #[primitive(batch = in_front, tangent = linear)]
        impl $Avg {
            fn forward(
                input: &Tensor,
                #[fields(kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)] options: &Averaging,
            ) -> Result<Body> {
                let input = input.body();
                means($avg_name, &input, &options.pool(input.shape())?, $dims, &[DType::I64], None)
            }
            fn d_input(
                g: Tensor,
                input: Tensor,
                options: &Averaging,
            ) -> Result<Tensor> {
                $AvgBack::call(&g, &input, options)
            }
        }

        #[primitive(tangent = fn)]
        impl $AvgBack {
            fn forward(
                grad_output: &Tensor,
                input: &Tensor,
                #[fields(kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)] options: &Averaging,
            ) -> Result<Body> {
                let input = input.body();
                means($avg_name, &grad_output.body(), &options.pool(input.shape())?, $dims, &[], Some(&input))
            }
            fn d_grad_output(
                g: Tensor,
                options: &Averaging,
            ) -> Result<Tensor> {
                $Avg::call(&g, options)
            }
            fn d_input(at: Meta) -> Result<Tensor> {
                zeros(&at)
            }
            fn tangent(
                t_grad_output: &Tensor,
                input: &Tensor,
                options: &Averaging,
            ) -> Result<Tensor> {
                $AvgBack::call(t_grad_output, input, options)
            }
            fn batch(
                b: &Batch,
                grad_output: &Tensor,
                input: &Tensor,
                options: &Averaging,
            ) -> Result<Tensor> {
                let (g, x) = (b.full(grad_output)?, b.full(input)?);
                Ok(b.wrap($AvgBack::call(&g, &x, options)?))
            }
        }
    )* };
}
primitives! {
    2 "max_pool2d" "avg_pool2d" MaxPool2DWithIndices MaxPool2DWithIndicesBackward AvgPool2D AvgPool2DBackward;
    3 "max_pool3d" "avg_pool3d_out_frame" MaxPool3DWithIndices MaxPool3DWithIndicesBackward AvgPool3D AvgPool3DBackward;
}

/// Rejects lists that have neither one item nor one for each dimension.
fn check_list(name: &str, what: &str, list: &Ints, dims: usize, says: &str) -> Result<()> {
    if list.len() == 1 || list.len() == dims || (list.is_empty() && what == "stride") {
        return Ok(());
    }
    let omitted = if what == "stride" { "omitted, a single int" } else { "a single int" };
    fail(format!("{name}: {what} must {says} {omitted}, or a tuple of {} ints", WORDS[dims]))
}

/// Formats sizes as `kH: 2 kW: 2`.
fn format_sizes(prefix: &str, list: &[i64], letters: &[&str]) -> String {
    let all: Vec<String> = letters.iter().zip(list).map(|(l, n)| format!("{prefix}{l}: {n}")).collect();
    all.join(" ")
}

/// Rejects inputs and windows that do not fit together, with PyTorch's messages.
fn check_slide(name: &str, input: &Tensor, slide: &Slide, largest: bool) -> Result<()> {
    let (shape, dims) = (input.shape(), slide.kernel_size.len());
    let letters: &[&str] = if dims == 2 { &["H", "W"] } else { &["T", "H", "W"] };
    let batched = shape.len() == dims + 2;
    let ranked = batched || shape.len() == dims + 1;
    if !ranked && (largest || dims == 3) {
        return fail(format!(
            "non-empty {}D or {}D (batch mode) tensor expected for input",
            dims + 1,
            dims + 2
        ));
    }
    if shape.len() < dims + 1 {
        return Err(Error::index(format!(
            "Dimension out of range (expected to be in range of [-{0}, {1}], but got -{2})",
            shape.len().max(1),
            shape.len().max(1) - 1,
            dims + 1
        )));
    }
    let sizes = image(&shape, dims);
    let result: Result<Ints> = (0..dims).map(|d| slide.count(d, sizes[d])).collect();
    let result = result?;
    for (what, list, letter) in [
        ("kernel size", &slide.kernel_size, "k"),
        ("stride", &slide.stride, "d"),
        ("dilation", &slide.dilation, "dilation"),
    ] {
        if list.iter().any(|&n| n <= 0) {
            return fail(format!(
                "{what} should be greater than zero, but got {}",
                format_sizes(letter, list, letters)
            ));
        }
    }
    if dims == 3 {
        if let Some(d) = (usize::from(batched)..shape.len()).find(|&d| shape[d] == 0) {
            let call = if largest { "max_pool3d_with_indices_out_cpu_template" } else { name };
            return fail(format!(
                "{call}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {:?} with \
                 dimension {d} being empty",
                shape.as_slice()
            ));
        }
    } else if !ranked || shape[usize::from(batched)..].contains(&0) {
        return fail(format!(
            "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:{:?}",
            shape.as_slice()
        ));
    }
    if (0..dims).any(|d| slide.padding[d] > slide.kernel_size[d] / 2) {
        let pads: Vec<String> =
            letters.iter().zip(&slide.padding).rev().map(|(l, n)| format!("pad{l} = {n}")).collect();
        let kernels: Vec<String> =
            letters.iter().zip(&slide.kernel_size).rev().map(|(l, n)| format!("k{l} = {n}")).collect();
        return fail(format!(
            "pad should be smaller than or equal to half of kernel size, but got {}, {}",
            pads.join(", "),
            kernels.join(", ")
        ));
    }
    if !largest && dims == 3 && (0..3).any(|d| sizes[d] < slide.kernel_size[d]) {
        return fail(format!(
            "input image ({}) smaller than kernel size ({})",
            format_sizes("", &sizes, letters),
            format_sizes("k", &slide.kernel_size, letters)
        ));
    }
    if result.iter().any(|&n| n < 1) {
        let by = |list: &[i64]| list.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
        let channels = shape[shape.len() - dims - 1];
        return fail(format!(
            "Given input size: ({channels}x{}). Calculated output size: ({channels}x{}). Output size is too small",
            by(&sizes),
            by(&result)
        ));
    }
    Ok(())
}

macro_rules! operators {
    ($($dims:literal $max:ident $max_name:literal $both:ident $avg:ident $avg_name:literal $Max:ident $Avg:ident $says:literal
       $four:literal $two:literal $(, $cast:ident)?;)*) => { $(
        #[doc = concat!("Take the maxima of windows that slide over the last ", $dims, " dimensions, and their indices.")]
        #[operator(nn, out(declared), sample = "pooled(name)")]
        pub fn $both(
            input: &Tensor,
            kernel_size: Ints,
            stride: Option<Ints>,
            #[default(smallvec![0])] padding: Ints,
            #[default(smallvec![1])] dilation: Ints,
            #[default(false)] ceil_mode: bool,
        ) -> Result<[Tensor; 2]> {
            let stride = stride.unwrap_or_default();
            for (what, list) in [("kernel_size", &kernel_size), ("stride", &stride), ("padding", &padding)] {
                check_list($max_name, what, list, $dims, "either be")?;
            }
            check_list($max_name, "dilation", &dilation, $dims, "be either")?;
            let kernel_size = per_dim(&kernel_size, $dims, &one());
            let slide = Slide {
                stride: per_dim(&stride, $dims, &kernel_size),
                padding: per_dim(&padding, $dims, &one()),
                dilation: per_dim(&dilation, $dims, &one()),
                kernel_size,
                ceil_mode,
            };
            check_slide($max_name, input, &slide, true)?;
            $Max::call(input, &slide)
        }

        #[doc = concat!("Take the maxima of windows that slide over the last ", $dims, " dimensions.")]
        ///
        /// Args:
        ///     input: the input, `(N, C, *)` or `(C, *)`.
        ///     stride: step between neighboring windows; the size of the window if not given.
        ///     padding: number of elements to add on both sides, which are never the maximum.
        ///
        /// Examples:
        #[doc = concat!("     >>> torch.", $max_name, "(torch.ones(1, 3, ", $four, "), 2).shape")]
        #[doc = concat!("     torch.Size([1, 3, ", $two, "])")]
        #[operator(function, composite, $(autocast = $cast,)? sample = "pooled(name)")]
        pub fn $max(
            input: &Tensor,
            kernel_size: Ints,
            stride: Option<Ints>,
            #[default(smallvec![0])] padding: Ints,
            #[default(smallvec![1])] dilation: Ints,
            #[default(false)] ceil_mode: bool,
        ) -> Result<Tensor> {
            $both(input, kernel_size, stride, padding, dilation, ceil_mode).map(|[values, _]| values)
        }

        #[doc = concat!("Average the elements of windows that slide over the last ", $dims, " dimensions.")]
        ///
        /// Args:
        ///     input: the input, `(N, C, *)` or `(C, *)`.
        ///     stride: step between neighboring windows; the size of the window if not given.
        ///     padding: number of zeros to add on both sides.
        ///     count_include_pad: whether the added zeros count in the averages.
        ///     divisor_override: what sums are divided by, instead of the number of elements.
        ///
        /// Examples:
        #[doc = concat!("     >>> F.", $avg_name, "(torch.ones(1, 3, ", $four, "), 2).shape")]
        #[doc = concat!("     torch.Size([1, 3, ", $two, "])")]
        #[operator(nn, out(declared), $(autocast = $cast,)? sample = "pooled(name)")]
        pub fn $avg(
            input: &Tensor,
            kernel_size: Ints,
            stride: Option<Ints>,
            #[default(smallvec![0])] padding: Ints,
            #[default(false)] ceil_mode: bool,
            #[default(true)] count_include_pad: bool,
            divisor_override: Option<i64>,
        ) -> Result<Tensor> {
            let stride = stride.unwrap_or_default();
            for (what, list) in [("kernel_size", &kernel_size), ("stride", &stride), ("padding", &padding)] {
                check_list($avg_name, what, list, $dims, $says)?;
            }
            if divisor_override == Some(0) {
                return fail("divisor must be not zero");
            }
            let kernel_size = per_dim(&kernel_size, $dims, &one());
            let options = Averaging {
                stride: per_dim(&stride, $dims, &kernel_size),
                padding: per_dim(&padding, $dims, &one()),
                kernel_size,
                ceil_mode,
                count_include_pad,
                divisor_override,
            };
            check_slide($avg_name, input, &options.slide(), false)?;
            $Avg::call(input, &options)
        }
    )* };
}
operators! {
    2 max_pool2d "max_pool2d" max_pool2d_with_indices avg_pool2d "avg_pool2d" MaxPool2DWithIndices AvgPool2D "either be" "4, 4" "2, 2";
    3 max_pool3d "max_pool3d" max_pool3d_with_indices avg_pool3d "avg_pool3d" MaxPool3DWithIndices AvgPool3D "be" "4, 4, 4" "2, 2, 2", single;
}

/// Checks one-dimensional windows, in PyTorch's order.
fn of_line(
    name: &str,
    kernel_size: &Ints,
    stride: Option<Ints>,
    padding: &Ints,
    dilation: &Ints,
) -> Result<[i64; 4]> {
    let kernel = single(name, "kernel_size", kernel_size)?;
    let stride = match stride.filter(|list| !list.is_empty()) {
        Some(list) => single(name, "stride", &list)?,
        None => kernel,
    };
    Ok([kernel, stride, single(name, "padding", padding)?, single(name, "dilation", dilation)?])
}

/// Take the maxima of windows that slide over the last dimension, and their indices.
///
/// Args:
///     input: the input, `(N, C, L)` or `(C, L)`.
///     stride: step between neighboring windows; the size of the window if not given.
///     padding: number of elements to add on both sides, which are never the maximum.
///
/// Examples:
///     >>> torch.max_pool1d_with_indices(torch.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
///     (tensor([[3., 4.]]), tensor([[1, 3]]))
#[operator(function, composite, sample = "pooled(name)")]
pub fn max_pool1d_with_indices(
    input: &Tensor,
    kernel_size: Ints,
    stride: Option<Ints>,
    #[default(smallvec![0])] padding: Ints,
    #[default(smallvec![1])] dilation: Ints,
    #[default(false)] ceil_mode: bool,
) -> Result<[Tensor; 2]> {
    check_rank("max_pool1d", input)?;
    let [kernel, stride, padding, dilation] =
        of_line("max_pool1d", &kernel_size, stride, &padding, &dilation)?;
    let across = |n: i64, one: i64| smallvec![one, n];
    let [values, indices] = as_plane(input, |x| {
        let stride = Some(across(stride, 1));
        max_pool2d_with_indices(
            x,
            across(kernel, 1),
            stride,
            across(padding, 0),
            across(dilation, 1),
            ceil_mode,
        )
    })?;
    Ok([as_line(&values)?, as_line(&indices)?])
}

/// Take the maxima of windows that slide over the last dimension.
///
/// Args:
///     input: the input, `(N, C, L)` or `(C, L)`.
///     stride: step between neighboring windows; the size of the window if not given.
///     padding: number of elements to add on both sides, which are never the maximum.
///
/// Examples:
///     >>> torch.max_pool1d(torch.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
///     tensor([[3., 4.]])
#[operator(function, composite, sample = "pooled(name)")]
pub fn max_pool1d(
    input: &Tensor,
    kernel_size: Ints,
    stride: Option<Ints>,
    #[default(smallvec![0])] padding: Ints,
    #[default(smallvec![1])] dilation: Ints,
    #[default(false)] ceil_mode: bool,
) -> Result<Tensor> {
    let shape = input.shape();
    let ranked = matches!(shape.len(), 2 | 3);
    if !ranked || shape[shape.len() - 2..].contains(&0) {
        return fail(format!(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:{:?}",
            shape.as_slice()
        ));
    }
    let own = stride.unwrap_or_default();
    for (what, list, wanted) in [
        ("kernel_size", &kernel_size, "an int, list of ints or tuple of ints"),
        ("stride", &own, "None, an int, list of ints, or tuple of ints"),
        ("padding", &padding, "an int, list of ints, or tuple of ints"),
        ("dilation", &dilation, "an int, list of ints or tuple of ints"),
    ] {
        if list.len() != 1 && (what != "stride" || !list.is_empty()) {
            return fail(format!(
                "max_pool1d() {what} must be {wanted} of size 1 but got size {}",
                list.len()
            ));
        }
    }
    let (kernel, by) = (kernel_size[0], own.first().copied().unwrap_or(kernel_size[0]));
    for (what, n) in [("kernel_size", kernel), ("stride", by)] {
        if n <= 0 {
            return fail(format!("max_pool1d() {what} must be greater than zero, but got {n}"));
        }
    }
    if padding[0] < 0 {
        return fail(format!("max_pool1d() padding must be non-negative, but got {}", padding[0]));
    }
    if padding[0] > kernel / 2 {
        return fail(format!(
            "max_pool1d() padding should be at most half of kernel size, but got padding={} and kernel_size={kernel}",
            padding[0]
        ));
    }
    if dilation[0] <= 0 {
        return fail(format!("max_pool1d() dilation must be greater than zero, but got {}", dilation[0]));
    }
    let slide = Slide {
        kernel_size: smallvec![kernel],
        stride: smallvec![by],
        padding: padding.clone(),
        dilation: dilation.clone(),
        ceil_mode,
    };
    let count = slide.count(0, shape[shape.len() - 1] as i64)?;
    if count <= 0 {
        return fail(format!("max_pool1d() Invalid computed output size: {count}"));
    }
    if !input.dtype().is_float() {
        return Err(Fault::NoKernel { op: "max_pool1d_impl", dtype: input.dtype() }.into());
    }
    // Indices are only needed for gradients.
    if input.device().is_cpu() && !any_requires_grad([input]) && !input.is_special() {
        let pool = slide.pool(&shape, PoolDivisor::Inside)?;
        return highest("max_pool1d_impl", &input.body(), &pool, 1).map(Tensor::new);
    }
    max_pool1d_with_indices(input, kernel_size, Some(own), padding, dilation, ceil_mode)
        .map(|[values, _]| values)
}

/// Average the elements of windows that slide over the last dimension.
///
/// Args:
///     input: the input, `(N, C, L)` or `(C, L)`.
///     stride: step between neighboring windows; the size of the window if not given.
///     padding: number of zeros to add on both sides.
///     count_include_pad: whether the added zeros count in the averages.
///
/// Examples:
///     >>> F.avg_pool1d(torch.tensor([[1.0, 3.0, 2.0, 4.0]]), 2)
///     tensor([[2., 3.]])
#[operator(function, composite, sample = "pooled(name)")]
pub fn avg_pool1d(
    input: &Tensor,
    kernel_size: Ints,
    stride: Option<Ints>,
    #[default(smallvec![0])] padding: Ints,
    #[default(false)] ceil_mode: bool,
    #[default(true)] count_include_pad: bool,
) -> Result<Tensor> {
    check_rank("avg_pool1d", input)?;
    let [kernel, stride, padding, _] = of_line("avg_pool1d", &kernel_size, stride, &padding, &one())?;
    let out = as_plane(input, |x| {
        let (stride, padding) = (Some(smallvec![1, stride]), smallvec![0, padding]);
        avg_pool2d(x, smallvec![1, kernel], stride, padding, ceil_mode, count_include_pad, None)
    })?;
    as_line(&out)
}
