//! Convolutions in one to three dimensions, and transposed ones. One primitive computes all of them, and another their gradients,
//! so that gradients of any order are convolutions again.

use crate::base::{MemoryFormat, Reduction, Windows, warn};
use crate::cpu::conv::Conv;
use crate::operator::bodies::{copy, fill, place_of};
use crate::ops::complex::{complex, imag, real, reduce};
use crate::ops::nn::pad::constant_pad_nd;
use crate::ops::prelude::*;
use crate::ops::shape::squeeze;
use smallvec::smallvec;

/// Stride, padding and dilation. Lists have an item for each spatial dimension.
#[derive(Clone)]
pub struct ConvOptions {
    pub stride: Ints,
    pub padding: Ints,
    pub dilation: Ints,
    pub transposed: bool,
    pub output_padding: Ints,
    pub groups: i64,
}

/// The convolution whose input is `image`. For a transposed convolution, `image` is its result.
fn sizes(options: &ConvOptions, image: &[usize], weight: &[usize], result: &[usize]) -> Conv {
    let groups = options.groups as usize;
    let dims = image.len() - 2;
    let of = |list: &[usize], d: usize| if d + dims < 3 { 1 } else { list[d + dims - 1] };
    let three = |list: &[usize]| [0, 1, 2].map(|d| of(list, d));
    let moved = |list: &Ints, missing| {
        [0, 1, 2].map(|d| if d + dims < 3 { missing } else { list[d + dims - 3] as usize })
    };
    Conv {
        samples: image[0],
        groups,
        inputs: weight[1],
        outputs: weight[0] / groups,
        windows: Windows {
            image: three(image),
            kernel: three(weight),
            result: three(result),
            stride: moved(&options.stride, 1),
            padding: moved(&options.padding, 0),
            dilation: moved(&options.dilation, 1),
        },
    }
}

/// The shape of the result of convolving `input`. The operands must fit.
pub(super) fn result_shape(input: &[usize], weight: &[usize], options: &ConvOptions) -> Result<Dims> {
    let groups = options.groups as usize;
    let size = |d: usize| {
        let at = |list: &Ints| list[d];
        let (n, window) =
            (input[d + 2] as i64, (weight[d + 2] as i64 - 1).saturating_mul(at(&options.dilation)));
        if options.transposed {
            ((n - 1).saturating_mul(at(&options.stride)))
                .saturating_sub(2 * at(&options.padding))
                .saturating_add(window + at(&options.output_padding) + 1)
        } else {
            (n + 2 * at(&options.padding) - window - 1).div_euclid(at(&options.stride)) + 1
        }
    };
    let sizes: Ints = (0..input.len() - 2).map(size).collect();
    if sizes.iter().any(|&n| n <= 0) {
        let given = input[2..].iter().map(|&n| n as i64).collect();
        return Err(Error::runtime(format!(
            "Given input size per channel: {}. Calculated output size per channel: {}. Output size is too small",
            format_sizes(&given),
            format_sizes(&sizes)
        )));
    }
    let mut shape: Dims =
        smallvec![input[0], if options.transposed { weight[1] * groups } else { weight[0] }];
    shape.extend(sizes.iter().map(|&n| n as usize));
    Ok(shape)
}

/// Formats a list as `(1 x 4)`.
fn format_sizes(list: &Ints) -> String {
    let all: Vec<String> = as_plane(list, 1).iter().map(i64::to_string).collect();
    format!("({})", all.join(" x "))
}

/// The dtype that kernels compute in: float32 for half precision.
fn compute_type(op: &'static str, dtype: DType) -> Result<DType> {
    match dtype {
        DType::F64 => Ok(DType::F64),
        DType::F32 | DType::F16 | DType::BF16 => Ok(DType::F32),
        _ => Err(Fault::NoKernel { op, dtype }.into()),
    }
}

/// A new body in the memory format that the operands suggest.
fn new_in_format(shape: &[usize], dtype: DType, x: &Body, w: &Body) -> Result<Body> {
    let mut out = Body::new(shape, dtype, x.device())?;
    let format = [x, w].map(|x| MemoryFormat::suggested(&x.layout));
    if let Some(&format) = format.iter().find(|&&f| f != MemoryFormat::Contiguous) {
        out.layout = format.layout(&out.layout)?;
    }
    Ok(out)
}

/// Memory for the kernel's result. The GPU's kernels write contiguous results only.
fn like(shape: &[usize], x: &Body, w: &Body, dtype: DType) -> Result<Body> {
    if x.device().is_cpu() { new_in_format(shape, dtype, x, w) } else { Body::new(shape, dtype, x.device()) }
}

/// Converts the kernel's result to the dtype and memory format of the operator's result.
fn finish(out: Body, x: &Body, w: &Body) -> Result<Body> {
    if out.dtype == x.dtype && out.device().is_cpu() {
        return Ok(out);
    }
    let to = new_in_format(out.shape(), x.dtype, x, w)?;
    if to.dtype == out.dtype && to.layout == out.layout {
        return Ok(out);
    }
    copy(&to, &out)?;
    Ok(to)
}

/// Computes a convolution.
fn convolve(x: &Body, w: &Body, bias: Option<&Body>, options: &ConvOptions) -> Result<Body> {
    let shape = result_shape(x.shape(), w.shape(), options)?;
    let dtype = compute_type("convolution", x.dtype)?;
    let out = like(&shape, x, w, dtype)?;
    if out.numel() > 0 {
        let (x, w) = (in_dtype(x.clone(), dtype)?, in_dtype(w.clone(), dtype)?);
        let bias = bias.map(|bias| in_dtype(bias.clone(), dtype)).transpose()?;
        into(&out, &x, &w, bias.as_ref(), options)?;
    }
    finish(out, x, w)
}

/// Calls the kernel: a convolution, or, if transposed, the gradient of its image.
fn into(out: &Body, x: &Body, w: &Body, bias: Option<&Body>, options: &ConvOptions) -> Result<()> {
    if let Some(bias) = bias {
        place_of(&[out, bias])?;
    }
    if options.transposed {
        let conv = sizes(options, out.shape(), w.shape(), x.shape());
        return fork!(over [out, x, w], with [conv, bias],
            cpu: crate::cpu::conv::backward_input(&conv, out.host()?, x.host()?, w.host()?, bias.map(Body::host).transpose()?),
            gpu: crate::gpu::conv_backward_input(&conv.windows, conv.groups, out.gpu()?, x.gpu()?, w.gpu()?, bias.map(Body::gpu).transpose()?));
    }
    let conv = sizes(options, x.shape(), w.shape(), out.shape());
    fork!(over [out, x, w], with [conv, bias],
        cpu: crate::cpu::conv::forward(&conv, out.host()?, x.host()?, w.host()?, bias.map(Body::host).transpose()?),
        gpu: crate::gpu::conv_forward(&conv.windows, conv.groups, out.gpu()?, x.gpu()?, w.gpu()?, bias.map(Body::gpu).transpose()?))
}

/// The gradients of input, weight and bias. Those not wanted are empty.
fn gradients(g: &Body, x: &Body, w: &Body, options: &ConvOptions, wants: [bool; 3]) -> Result<[Body; 3]> {
    let dtype = compute_type("convolution_backward", x.dtype)?;
    let nothing = || Body::new(&[0], x.dtype, x.device());
    let (wide_g, wide_x, wide_w) =
        (in_dtype(g.clone(), dtype)?, in_dtype(x.clone(), dtype)?, in_dtype(w.clone(), dtype)?);
    let d_input = || {
        let out = like(x.shape(), x, w, dtype)?;
        if g.numel() == 0 || w.numel() == 0 {
            fill(&out, Scalar::Float(0.0))?;
        } else {
            into(
                &out,
                &wide_g,
                &wide_w,
                None,
                &ConvOptions { transposed: !options.transposed, ..options.clone() },
            )?;
        }
        finish(out, x, w)
    };
    let d_weight = || {
        let out = Body::new(w.shape(), dtype, w.device())?;
        if g.numel() == 0 || x.numel() == 0 {
            fill(&out, Scalar::Float(0.0))?;
        } else {
            // The image of a transposed convolution is its result.
            let (image, result) = if options.transposed { (&wide_g, &wide_x) } else { (&wide_x, &wide_g) };
            let conv = sizes(options, image.shape(), w.shape(), result.shape());
            fork!(over [out, image, result], with [conv],
                cpu: crate::cpu::conv::backward_weight(&conv, out.host()?, image.host()?, result.host()?),
                gpu: crate::gpu::conv_backward_weight(&conv.windows, conv.groups, out.gpu()?, image.gpu()?, result.gpu()?))?;
        }
        in_dtype(out, w.dtype)
    };
    let d_bias = || {
        let dims: Vec<usize> = (0..g.shape().len()).filter(|&d| d != 1).collect();
        let sums = reduce(Reduction::Sum, g, &dims, g.dtype)?;
        Ok::<Body, Error>(drop_dims(sums, &dims))
    };
    Ok([
        if wants[0] { d_input()? } else { nothing()? },
        if wants[1] { d_weight()? } else { nothing()? },
        if wants[2] { d_bias()? } else { nothing()? },
    ])
}

#[primitive(batch = merged)]
impl Convolution {
    fn forward(
        #[shown("input")] input: &Tensor,
        weight: &Tensor,
        bias: Option<&Tensor>,
        #[fields(stride, padding, dilation, transposed, output_padding, groups)] options: &ConvOptions,
        #[shown("bias_sym_sizes_opt")] _bias_sizes: &Ints,
    ) -> Result<Body> {
        let bias = bias.map(|bias| bias.body().clone());
        convolve(&input.body(), &weight.body(), bias.as_ref(), options)
    }
    fn derivative(
        g: Tensor,
        input: Tensor,
        weight: Tensor,
        options: &ConvOptions,
        _bias_sizes: &Ints,
        wants: [bool; 3],
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let [input, weight, bias] = ConvolutionBackward::call(&g, &input, &weight, options, mask(wants))?;
        let [a, b, c] = wants;
        Ok((a.then_some(input), b.then_some(weight), c.then_some(bias)))
    }
}

#[primitive(batch = each, node = "ConvolutionBackwardBackward0")]
impl ConvolutionBackward {
    fn forward(
        grad_output: &Tensor,
        #[shown("input")] input: &Tensor,
        weight: &Tensor,
        #[fields(stride, padding, dilation, transposed, output_padding, groups)] options: &ConvOptions,
        #[hidden] wanted: i64,
    ) -> Result<[Body; 3]> {
        let wants = [0, 1, 2].map(|i| wanted >> i & 1 == 1);
        gradients(&grad_output.body(), &input.body(), &weight.body(), options, wants)
    }
    fn derivative(
        g: [Option<V>; 3],
        grad_output: Tensor,
        input: Tensor,
        weight: Tensor,
        options: &ConvOptions,
        wanted: i64,
        wants: [bool; 3],
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let made = |i: usize, g: Option<V>| g.filter(|_| wanted >> i & 1 == 1).map(V::tensor).transpose();
        let [gi, gw, gb] = g;
        let (gi, gw, gb) = (made(0, gi)?, made(1, gw)?, made(2, gb)?);
        let forward = |x: &Tensor, w: &Tensor| Convolution::call(x, w, None, options, &smallvec![0]);
        let backward = |g: &Tensor, x: &Tensor, w: &Tensor, i: usize| {
            let all = ConvolutionBackward::call(g, x, w, options, 1 << i)?;
            Ok::<Tensor, Error>(all[i].clone())
        };
        let mut to_grad: Option<V> = None;
        if wants[0] {
            let mut parts = vec![];
            if let Some(gi) = &gi {
                parts.push(V::from(forward(gi, &weight)));
            }
            if let Some(gw) = &gw {
                parts.push(V::from(forward(&input, gw)));
            }
            if let Some(gb) = &gb {
                let mut shape: Dims = smallvec![1; grad_output.ndim()];
                shape[1] = gb.numel();
                parts.push(V::from(gb).reshape(&shape).expand(&grad_output.shape()));
            }
            to_grad = parts.into_iter().reduce(|a, b| a + b);
        }
        let to_input = match &gw {
            Some(gw) if wants[1] => Some(backward(&grad_output, &input, gw, 0)?),
            _ => None,
        };
        let to_weight = match &gi {
            Some(gi) if wants[2] => Some(backward(&grad_output, gi, &weight, 1)?),
            _ => None,
        };
        Ok((to_grad.map(V::tensor).transpose()?, to_input, to_weight))
    }
}

fn mask(wants: [bool; 3]) -> i64 {
    wants.iter().enumerate().map(|(i, &wants)| i64::from(wants) << i).sum()
}

/// Expands a single number to one for each dimension.
fn for_each_dim(name: &str, list: &Ints, dims: usize) -> Result<Ints> {
    match list.len() {
        1 => Ok(smallvec![list[0]; dims]),
        n if n == dims => Ok(list.clone()),
        _ => Err(Error::runtime(format!(
            "expected {name} to be a single integer value or a list of {dims} values to match the convolution dimensions, \
             but got {name}={:?}",
            list.as_slice()
        ))),
    }
}

fn refuse(message: impl Into<String>) -> Result<()> {
    Err(Error::runtime(message.into()))
}

/// Rejects operands that do not fit together, with PyTorch's messages and in its order.
fn check(input: &Tensor, weight: &Tensor, bias: Option<&Tensor>, options: &ConvOptions) -> Result<()> {
    let (x, w, groups) = (input.shape(), weight.shape(), options.groups);
    let any = |list: &Ints, is: fn(i64) -> bool| list.iter().any(|&n| is(n));
    if any(&options.padding, |n| n < 0) {
        return refuse("negative padding is not supported");
    }
    if any(&options.output_padding, |n| n < 0) {
        return refuse("negative output_padding is not supported");
    }
    if any(&options.stride, |n| n <= 0) {
        return refuse("non-positive stride is not supported");
    }
    if any(&options.dilation, |n| n < 0) {
        return refuse("dilation should be greater than zero");
    }
    if any(&options.dilation, |n| n == 0) {
        let shown = if options.transposed {
            by_axis("dilation", &options.dilation, ", ")
        } else {
            format_list(&options.dilation)
        };
        return refuse(format!("dilation should be greater than zero, but got {shown}"));
    }
    if groups <= 0 {
        return refuse("non-positive groups is not supported");
    }
    let (shown, groups) = (w.as_slice(), groups as usize);
    if w.len() != x.len() {
        return refuse(format!(
            "Expected {}-dimensional input for {}-dimensional weight {shown:?}, but got {}-dimensional input of size {:?} instead",
            w.len(),
            w.len(),
            x.len(),
            x.as_slice()
        ));
    }
    if w[0] < groups {
        return refuse(format!(
            "Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size {shown:?} instead"
        ));
    }
    if !w[0].is_multiple_of(groups) {
        return refuse(format!(
            "Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size [{shown:?}] \
             instead"
        ));
    }
    let (wanted, given, outputs) = if options.transposed {
        (w[0], "transposed=1".to_owned(), w[1] * groups)
    } else {
        (w[1] * groups, format!("groups={groups}"), w[0])
    };
    if x[1] != wanted {
        return refuse(format!(
            "Given {given}, weight of size {shown:?}, expected input{:?} to have {wanted} channels, but got {} channels instead",
            x.as_slice(),
            x[1]
        ));
    }
    if let Some(bias) = bias.filter(|bias| bias.shape().as_slice() != [outputs]) {
        let given = if options.transposed { format!("{given}, ") } else { String::new() };
        return refuse(format!(
            "Given {given}weight of size {shown:?}, expected bias to be 1-dimensional with {outputs} elements, but got bias of size \
             {:?} instead",
            bias.shape().as_slice()
        ));
    }
    if options.transposed {
        let fits = |d: usize| {
            options.output_padding[d] < options.stride[d] || options.output_padding[d] < options.dilation[d]
        };
        return if (0..x.len() - 2).all(fits) {
            Ok(())
        } else {
            refuse(format!(
                "output padding must be smaller than either stride or dilation, but got {} {} {}",
                by_axis("output_padding", &options.output_padding, " "),
                by_axis("stride", &options.stride, " "),
                by_axis("dilation", &options.dilation, " ")
            ))
        };
    }
    let padded: Vec<i64> =
        (0..x.len() - 2).map(|d| (x[d + 2] as i64).saturating_add(2 * options.padding[d])).collect();
    let window: Vec<i64> = (0..x.len() - 2)
        .map(|d| (w[d + 2] as i64 - 1).saturating_mul(options.dilation[d]).saturating_add(1))
        .collect();
    if padded.iter().zip(&window).any(|(have, need)| have < need) {
        let by = |list: &[i64]| list.iter().map(i64::to_string).collect::<Vec<_>>().join(" x ");
        return refuse(format!(
            "Calculated padded input size per channel: ({}). Kernel size: ({}). Kernel size can't be greater than actual input size",
            by(&padded),
            by(&window)
        ));
    }
    Ok(())
}

/// Adds a dimension in front of one-dimensional lists: a line is computed as a plane.
fn as_plane(list: &Ints, missing: i64) -> Ints {
    if list.len() == 1 { smallvec![missing, list[0]] } else { list.clone() }
}

fn format_list(list: &Ints) -> String {
    format!("{:?}", as_plane(list, 1).as_slice())
}

/// Formats a list as `stride_height: 1 stride_width: 2`.
fn by_axis(name: &str, list: &Ints, between: &str) -> String {
    let list = as_plane(list, if name == "output_padding" { 0 } else { 1 });
    let axes = ["depth", "height", "width"];
    let all = axes[3 - list.len()..].iter().zip(&list).map(|(axis, n)| format!("{name}_{axis}: {n}"));
    all.collect::<Vec<_>>().join(between)
}

fn check_types(input: &Tensor, weight: &Tensor, bias: Option<&Tensor>, options: &ConvOptions) -> Result<()> {
    let bias = bias.filter(|bias| bias.dtype() != input.dtype());
    // Transposed convolutions check the weight before the bias.
    let weighed = input.dtype() != weight.dtype() && (options.transposed || bias.is_none());
    if weighed {
        return refuse(format!(
            "expected scalar type {} but found {}",
            input.dtype().scalar_name(),
            weight.dtype().scalar_name()
        ));
    }
    match bias {
        None => Ok(()),
        Some(bias) => refuse(format!(
            "Input type ({}) and bias type ({}) should be the same",
            input.dtype().c_name(),
            bias.dtype().c_name()
        )),
    }
}

/// Rejects windows without elements.
fn check_window(window: &[usize]) -> Result<()> {
    if window.iter().all(|&n| n > 0) {
        return Ok(());
    }
    let shown = match *window {
        [width] => format!(", but got kernel_height: 1 kernel_width: {width}"),
        [height, width] => format!(", but got kernel_height: {height} kernel_width: {width}"),
        [depth, height, width] => format!(", but got: {depth} x {height} x {width} (TxHxW)"),
        _ => String::new(),
    };
    refuse(format!("kernel size should be greater than zero{shown}"))
}

/// Checks the operands and computes the convolution of a batch. A single example is given a batch dimension, which is removed
/// again.
fn run(
    name: &str,
    dims: usize,
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    options: &ConvOptions,
) -> Result<Tensor> {
    let single = input.ndim() == dims + 1;
    if !single && input.ndim() != dims + 2 {
        return Err(Error::runtime(format!(
            "Expected {}D (unbatched) or {}D (batched) input to {name}, but got input of size: {:?}",
            dims + 1,
            dims + 2,
            input.shape().as_slice()
        )));
    }
    let batch = if single { squeeze::unsqueeze(input, 0)? } else { input.clone() };
    // A single number is repeated for the operator's number of dimensions, whatever that of the weight is.
    let wide = |list: &Ints| if list.len() == 1 { smallvec![list[0]; dims] } else { list.clone() };
    let options = ConvOptions {
        stride: wide(&options.stride),
        padding: wide(&options.padding),
        dilation: wide(&options.dilation),
        output_padding: wide(&options.output_padding),
        ..options.clone()
    };
    let out = check_and_convolve(&batch, weight, bias, &options)?;
    if single { squeeze::squeeze(&out, Some(smallvec![0])) } else { Ok(out) }
}

fn check_and_convolve(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    options: &ConvOptions,
) -> Result<Tensor> {
    let dims = weight.ndim().saturating_sub(2);
    if dims == 0 || dims > 3 {
        return Err(Error::runtime("weight should have at least three dimensions"));
    }
    let list = |name, list| for_each_dim(name, list, dims);
    let options = ConvOptions {
        stride: list("stride", &options.stride)?,
        padding: list("padding", &options.padding)?,
        dilation: list("dilation", &options.dilation)?,
        output_padding: list("output_padding", &options.output_padding)?,
        ..options.clone()
    };
    check(input, weight, bias, &options)?;
    check_types(input, weight, bias, &options)?;
    check_window(&weight.shape()[2..])?;
    if input.dtype().is_complex() {
        return of_complex(input, weight, bias, &options);
    }
    if input.dtype().is_int() {
        return with_bias(super::conv_whole::of_whole(input, weight, &options)?, bias);
    }
    let sizes = bias.map_or(0, Tensor::numel) as i64;
    Convolution::call(input, weight, bias, &options, &smallvec![sizes])
}

/// A complex convolution, as three real ones.
fn of_complex(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    options: &ConvOptions,
) -> Result<Tensor> {
    let parts = |t: &Tensor| -> Result<[Tensor; 2]> { Ok([real(t)?, imag(t)?]) };
    let sum = |[re, im]: &[Tensor; 2]| (V::from(re) + V::from(im)).tensor();
    let (x, w) = (parts(input)?, parts(weight)?);
    let first = V::from(check_and_convolve(&x[0], &w[0], None, options)?);
    let second = V::from(check_and_convolve(&x[1], &w[1], None, options)?);
    let both = V::from(check_and_convolve(&sum(&x)?, &sum(&w)?, None, options)?);
    let made = complex(&(&first - &second).tensor()?, &(both - first - second).tensor()?)?;
    with_bias(made, bias)
}

fn with_bias(made: Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let Some(bias) = bias else { return Ok(made) };
    let mut shape = vec![1; made.ndim()];
    shape[1] = bias.numel();
    (V::from(made) + V::from(bias).reshape(&shape)).tensor()
}

/// Convolves with `padding="same"` or `"valid"`. If the total padding is odd, its larger half is at the end.
fn by_name(
    name: &str,
    dims: usize,
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    options: ConvOptions,
    padding: &str,
) -> Result<Tensor> {
    match padding {
        "valid" => {}
        "same" if options.stride.iter().any(|&s| s != 1) => {
            return Err(Error::runtime("padding='same' is not supported for strided convolutions"));
        }
        "same" => {}
        _ => return Err(Error::runtime(format!("Invalid padding string: '{padding}'"))),
    }
    let mut options = ConvOptions { padding: smallvec![0; dims], ..options };
    if padding == "valid" || weight.ndim() != dims + 2 {
        return run(name, dims, input, weight, bias, &options);
    }
    let dilation = for_each_dim("dilation", &options.dilation, dims)?;
    let total: Vec<i64> = (0..dims).map(|d| (weight.shape()[d + 2] as i64 - 1) * dilation[d]).collect();
    options.padding = total.iter().map(|n| n / 2).collect();
    if total.iter().all(|n| n % 2 == 0) {
        return run(name, dims, input, weight, bias, &options);
    }
    warn(
        "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy of the input be created",
    )?;
    // An odd padding has its larger half at the end, so pad the odd element there first.
    let pad: Ints = total.iter().rev().flat_map(|n| [0, n % 2]).collect();
    run(name, dims, &constant_pad_nd(input, pad, Scalar::Int(0))?, weight, bias, &options)
}

macro_rules! convolutions {
    ($($dims:literal $name:ident $named:ident $transposed:ident $three:literal $five:literal;)*) => { $(
        #[doc = concat!("Apply a ", $dims, "D convolution to an input with channels.")]
        ///
        /// Args:
        ///     input: the input, `(N, C_in, *)`, or `(C_in, *)` without a batch.
        ///     weight: the filters, `(C_out, C_in / groups, *)`.
        ///     bias: vector of length `C_out` to add.
        ///     stride: step between neighboring positions of the filter.
        ///     padding: number of zeros to add on both sides of each dimension, or `"valid"` (none), or `"same"`: as many as keep the
        ///         size. Default: `0`
        ///     dilation: step between the elements that the filter looks at.
        ///
        /// Examples:
        #[doc = concat!("     >>> F.", stringify!($name), "(torch.ones(1, 3, ", $five, "), torch.ones(8, 3, ", $three, ")).shape")]
        #[doc = concat!("     torch.Size([1, 8, ", $three, "])")]
        #[operator(function, composite, autocast = lower, sample = "convolved(name)")]
        #[allow(clippy::too_many_arguments, reason = "PyTorch's signature")]
        pub fn $name(
            input: &Tensor,
            weight: &Tensor,
            bias: Option<&Tensor>,
            #[default(smallvec![1])] stride: Ints,
            #[default(smallvec![0])] padding: Ints,
            #[default(smallvec![1])] dilation: Ints,
            #[default(1)] groups: i64,
        ) -> Result<Tensor> {
            let output_padding = smallvec![0; $dims];
            let options = ConvOptions { stride, padding, dilation, transposed: false, output_padding, groups };
            run(stringify!($name), $dims, input, weight, bias, &options)
        }

        #[doc = concat!("Apply a ", $dims, "D convolution with a padding that has a name: `valid` or `same`.")]
        #[overload($name.padding)]
        #[allow(clippy::too_many_arguments, reason = "PyTorch's signature")]
        pub fn $named(
            input: &Tensor,
            weight: &Tensor,
            bias: Option<&Tensor>,
            #[default(smallvec![1])] stride: Ints,
            #[default("valid".to_string())] padding: &str,
            #[default(smallvec![1])] dilation: Ints,
            #[default(1)] groups: i64,
        ) -> Result<Tensor> {
            let none: Ints = smallvec![0; $dims];
            let options = ConvOptions {
                stride, padding: none.clone(), dilation, transposed: false, output_padding: none, groups,
            };
            by_name(stringify!($name), $dims, input, weight, bias, options, padding)
        }

        #[doc = concat!("Apply a ", $dims, "D transposed convolution, the gradient of a convolution with respect to its input.")]
        ///
        /// Args:
        ///     input: the input, `(N, C_in, *)`, or `(C_in, *)` without a batch.
        ///     weight: the filters, `(C_in, C_out / groups, *)`.
        ///     bias: vector of length `C_out` to add.
        ///     stride: by how much the output grows: the stride of the convolution.
        ///     padding: the padding of the convolution, which is cut off from the output.
        ///
        /// Examples:
        #[doc = concat!("     >>> F.", stringify!($transposed), "(torch.ones(1, 3, ", $three, "), torch.ones(3, 8, ", $three, ")).shape")]
        #[doc = concat!("     torch.Size([1, 8, ", $five, "])")]
        #[operator(function, composite, autocast = lower, sample = "convolved(name)")]
        #[allow(clippy::too_many_arguments, reason = "PyTorch's signature")]
        pub fn $transposed(
            input: &Tensor,
            weight: &Tensor,
            bias: Option<&Tensor>,
            #[default(smallvec![1])] stride: Ints,
            #[default(smallvec![0])] padding: Ints,
            #[default(smallvec![0])] output_padding: Ints,
            #[default(1)] groups: i64,
            #[default(smallvec![1])] dilation: Ints,
        ) -> Result<Tensor> {
            let options = ConvOptions { stride, padding, dilation, transposed: true, output_padding, groups };
            run(stringify!($transposed), $dims, input, weight, bias, &options)
        }
    )* };
}
convolutions! {
    1 conv1d conv1d_padding conv_transpose1d "3" "5";
    2 conv2d conv2d_padding conv_transpose2d "3, 3" "5, 5";
    3 conv3d conv3d_padding conv_transpose3d "3, 3, 3" "5, 5, 5";
}

/// Apply a convolution or a transposed convolution, over as many dimensions as `weight` has beyond two.
///
/// Args:
///     input: the input, `(N, C_in, *)`.
///     weight: the filters, `(C_out, C_in / groups, *)`, or `(C_in, C_out / groups, *)` if transposed.
///     bias: vector of length `C_out` to add, or None.
///     stride: step between neighboring positions of the filter.
///     transposed: whether to apply a transposed convolution.
///
/// Examples:
///     >>> x, w = torch.ones(1, 1, 4), torch.ones(1, 1, 2)
///     >>> torch.convolution(x, w, None, [1], [0], [1], False, [0], 1)
///     tensor([[[2., 2., 2.]]])
#[operator(function, composite, sample = "convolved(name)")]
#[allow(clippy::too_many_arguments, reason = "PyTorch's signature")]
pub fn convolution(
    input: &Tensor,
    weight: &Tensor,
    #[required] bias: Option<&Tensor>,
    #[strict] stride: Ints,
    padding: Ints,
    dilation: Ints,
    transposed: bool,
    output_padding: Ints,
    groups: i64,
) -> Result<Tensor> {
    let options = ConvOptions { stride, padding, dilation, transposed, output_padding, groups };
    check_and_convolve(input, weight, bias, &options)
}
