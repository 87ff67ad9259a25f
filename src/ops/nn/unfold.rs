//! `unfold` and `fold`: images as columns, one for each position of a window, and back.

use crate::base::Windows;
use crate::operator::bodies::{duplicate, fill};
use crate::ops::prelude::*;
use smallvec::smallvec;

/// The windows over an image of this size.
fn windows(
    image: &[i64],
    kernel: &Ints,
    dilation: &Ints,
    padding: &Ints,
    stride: &Ints,
) -> Result<(Windows, [i64; 2])> {
    let count = |d: usize| {
        let window = dilation[d].saturating_mul(kernel[d] - 1).saturating_add(1);
        image[d].saturating_add(2 * padding[d]).saturating_sub(window).div_euclid(stride[d]) + 1
    };
    let counts = [count(0), count(1)];
    let three = |list: &[i64], missing: usize| [missing, list[0].max(0) as usize, list[1].max(0) as usize];
    let windows = Windows {
        image: three(image, 1),
        kernel: three(kernel, 1),
        result: three(&counts, 1),
        stride: three(stride, 1),
        padding: three(padding, 0),
        dilation: three(dilation, 1),
    };
    windows.check()?;
    Ok((windows, counts))
}

fn check_dtype(op: &'static str, dtype: DType) -> Result<()> {
    if dtype.is_differentiable() || dtype == DType::Bool {
        Ok(())
    } else {
        Err(Fault::NoKernel { op, dtype }.into())
    }
}

/// Runs the kernel on contiguous bodies with a batch dimension.
fn run(windows: &Windows, out: &Body, x: &Body, back: bool) -> Result<()> {
    if x.numel() == 0 || out.numel() == 0 {
        return fill(out, Scalar::Int(0));
    }
    let x = if x.layout.is_contiguous() && x.conj_neg.is_none() { x.clone() } else { duplicate(x)? };
    if out.dtype.is_complex() && !out.device().is_cpu() {
        return no_shader("im2col", out.dtype);
    }
    let (images, columns) = if back { (out, &x) } else { (&x, out) };
    let planes = images.numel() / windows.image.iter().product::<usize>();
    let samples: usize = columns.shape()[..columns.layout.ndim() - 2].iter().product();
    let channels = planes / samples;
    let flat = |body: &Body, shape: &[usize]| crate::operator::bodies::with_shape(body.clone(), shape);
    let image = [samples, channels, windows.image[0], windows.image[1], windows.image[2]];
    let (images, columns) = (
        flat(images, &image),
        flat(columns, &[samples, channels * windows.kernel_numel(), windows.positions()]),
    );
    fork!(over [images, columns], with [back, windows, planes],
    cpu: {
        let (to, from) = if back { (&images, &columns) } else { (&columns, &images) };
        crate::cpu::unfold::unfold(windows, planes, to.host()?, from.host()?, back);
        Ok(())
    },
    gpu: match back {
        true => crate::gpu::fold(windows, images.gpu()?, columns.gpu()?),
        false => crate::gpu::unfold(windows, columns.gpu()?, images.gpu()?),
    })
}

fn last_two(shape: &[usize]) -> Ints {
    shape[shape.len() - 2..].iter().map(|&n| n as i64).collect()
}

#[primitive(batch = in_front, tangent = linear)]
impl Im2Col {
    fn forward(
        input: &Tensor,
        kernel_size: &Ints,
        dilation: &Ints,
        padding: &Ints,
        stride: &Ints,
    ) -> Result<Body> {
        let input = input.body();
        let (windows, _) = windows(&last_two(input.shape()), kernel_size, dilation, padding, stride)?;
        let lead = input.layout.ndim() - 3;
        let mut shape = Dims::from_slice(&input.shape()[..lead]);
        shape.extend([input.shape()[lead] * windows.kernel_numel(), windows.positions()]);
        let out = Body::new(&shape, input.dtype, input.device())?;
        run(&windows, &out, &input, false)?;
        Ok(out)
    }
    fn d_input(
        g: Tensor,
        at: Meta,
        kernel_size: &Ints,
        dilation: &Ints,
        padding: &Ints,
        stride: &Ints,
    ) -> Result<Tensor> {
        Col2Im::call(&g, &last_two(&at.shape), kernel_size, dilation, padding, stride)
    }
}

#[primitive(batch = in_front, tangent = linear)]
impl Col2Im {
    fn forward(
        input: &Tensor,
        #[hidden] output_size: &Ints,
        kernel_size: &Ints,
        dilation: &Ints,
        padding: &Ints,
        stride: &Ints,
    ) -> Result<Body> {
        let input = input.body();
        let (windows, _) = windows(output_size, kernel_size, dilation, padding, stride)?;
        let lead = input.layout.ndim() - 2;
        let mut shape = Dims::from_slice(&input.shape()[..lead]);
        shape.push(input.shape()[lead] / windows.kernel_numel());
        shape.extend(output_size.iter().map(|&n| n as usize));
        let out = Body::new(&shape, input.dtype, input.device())?;
        run(&windows, &out, &input, true)?;
        Ok(out)
    }
    fn d_input(
        g: Tensor,
        kernel_size: &Ints,
        dilation: &Ints,
        padding: &Ints,
        stride: &Ints,
    ) -> Result<Tensor> {
        Im2Col::call(&g, kernel_size, dilation, padding, stride)
    }
}

/// Rejects lists that do not have two items, or whose items are too small.
fn check_lists(lists: [(&str, &Ints); 4]) -> Result<()> {
    for (name, list) in lists {
        if list.len() != 2 {
            return Err(Error::runtime(format!(
                "It is expected {name} equals to 2, but got size {}",
                list.len()
            )));
        }
    }
    for (name, list) in lists {
        let (short, least) = match name {
            "padding" => ("pad", 0),
            "kernel_size" => ("kernel", 1),
            _ => (name, 1),
        };
        if list.iter().any(|&n| n < least) {
            let what = if least == 0 { "non-negative" } else { "greater than zero" };
            return Err(Error::runtime(format!(
                "{} should be {what}, but got {short}_height: {} {short}_width: {}",
                name.replace('_', " "),
                list[0],
                list[1]
            )));
        }
    }
    Ok(())
}

/// Formats sizes as `(2, 3)`.
fn pair(list: &[i64]) -> String {
    format!("({}, {})", list[0], list[1])
}

/// Extract sliding windows as the columns of a matrix; `torch.nn.functional.unfold` calls it.
#[operator(nn, out(declared), sample = "unfolded(name)")]
pub fn im2col(
    input: &Tensor,
    kernel_size: Ints,
    dilation: Ints,
    padding: Ints,
    #[strict] stride: Ints,
) -> Result<Tensor> {
    check_lists([
        ("kernel_size", &kernel_size),
        ("dilation", &dilation),
        ("padding", &padding),
        ("stride", &stride),
    ])?;
    let shape = input.shape();
    let batched = shape.len() == 4;
    if (!batched && shape.len() != 3) || shape[usize::from(batched)..].contains(&0) {
        return Err(Error::runtime(format!(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but got: \
             {:?}",
            shape.as_slice()
        )));
    }
    let size = last_two(&shape);
    let (_, counts) = windows(&size, &kernel_size, &dilation, &padding, &stride)?;
    if counts.iter().any(|&n| n < 1) {
        return Err(Error::runtime(format!(
            "Given input with spatial size {}, kernel_size={}, dilation={}, padding={}, calculated shape of the array of sliding \
             blocks as {}, but its components must be at least one.",
            pair(&size),
            pair(&kernel_size),
            pair(&dilation),
            pair(&padding),
            pair(&counts)
        )));
    }
    check_dtype("im2col_out_cpu", input.dtype())?;
    Im2Col::call(input, &kernel_size, &dilation, &padding, &stride)
}

/// Sum the columns of a matrix into images, as sliding windows; `torch.nn.functional.fold` calls it.
#[operator(nn, out(declared), sample = "unfolded(name)")]
pub fn col2im(
    input: &Tensor,
    output_size: Ints,
    kernel_size: Ints,
    dilation: Ints,
    padding: Ints,
    #[strict] stride: Ints,
) -> Result<Tensor> {
    if output_size.len() != 2 {
        return Err(Error::runtime(format!(
            "It is expected output_size equals to 2, but got size {}",
            output_size.len()
        )));
    }
    check_lists([
        ("kernel_size", &kernel_size),
        ("dilation", &dilation),
        ("padding", &padding),
        ("stride", &stride),
    ])?;
    let shape = input.shape();
    let batched = usize::from(shape.len() == 3);
    if !matches!(shape.len(), 2 | 3) || shape[batched..].contains(&0) {
        return Err(Error::runtime(format!(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions for input, but \
             got: {:?}",
            shape.as_slice()
        )));
    }
    let taps = kernel_size.iter().fold(1i64, |all, &n| all.saturating_mul(n));
    if shape[batched] as i64 % taps != 0 {
        return Err(Error::runtime(format!(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)={} and \
             kernel_size={}.",
            shape[batched],
            pair(&kernel_size)
        )));
    }
    let (_, [high, wide]) = windows(&output_size, &kernel_size, &dilation, &padding, &stride)?;
    let given = shape[batched + 1];
    if high < 1 || wide < 1 {
        return Err(Error::runtime(format!(
            "Given output_size={}, kernel_size={}, dilation={}, padding={}, stride={}, calculated shape of the array of sliding \
             blocks as ({high}, {wide}), which is too small (non-positive)",
            pair(&output_size),
            pair(&kernel_size),
            pair(&dilation),
            pair(&padding),
            pair(&stride)
        )));
    }
    if high.checked_mul(wide) != Some(given as i64) {
        return Err(Error::runtime(format!(
            "Given output_size={}, kernel_size={}, dilation={}, padding={}, stride={}, expected size of input's dimension 2 to match \
             the calculated number of sliding blocks {high} * {wide} = {}, but got input.size(2)={given}.",
            pair(&output_size),
            pair(&kernel_size),
            pair(&dilation),
            pair(&padding),
            pair(&stride),
            high.saturating_mul(wide)
        )));
    }
    check_dtype("col2im_out_cpu", input.dtype())?;
    let stride: Ints = smallvec![stride[0], stride[1]];
    Col2Im::call(input, &output_size, &kernel_size, &dilation, &padding, &stride)
}
