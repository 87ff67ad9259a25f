//! `grid_sample`, which samples images and volumes at the places given by a grid, and `affine_grid`.

use crate::base::numel;
use crate::cpu::grid::{self as kernel, Kernel, Padding, Sampling};
use crate::operator::bodies::duplicate;
use crate::operator::primitives::copies::to_dtype;
use crate::operator::primitives::views::reshape;
use crate::operator::primitives::{constant, detached};
use crate::ops::indexing::{index, scatter};
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::no_grad;
use crate::ops::reduction::scan;
use crate::ops::shape::join;
use crate::ops::shape::slices::select as pick;
use crate::tensor::mode;

/// Translates the integer codes for mode and padding.
fn sampling(input: &[usize], grid: &[usize], how: [i64; 2], align_corners: bool) -> Sampling {
    let dims = input.len() - 2;
    let mut size = [1; 3];
    size[3 - dims..].copy_from_slice(&input[2..]);
    Sampling {
        samples: input[0],
        channels: input[1],
        size,
        points: numel(&grid[1..grid.len() - 1]),
        dims,
        kernel: [Kernel::Linear, Kernel::Nearest, Kernel::Cubic][how[0].clamp(0, 2) as usize],
        padding: [Padding::Zeros, Padding::Border, Padding::Reflection][how[1].clamp(0, 2) as usize],
        align_corners,
    }
}

fn result_shape(input: &[usize], grid: &[usize]) -> Dims {
    input[..2].iter().chain(&grid[1..grid.len() - 1]).copied().collect()
}

/// One neighbour of each place along one dimension: its index, clamped to the image; its weight, which is 0 outside; and the
/// derivative of the weight by the grid.
struct Neighbour {
    places: V,
    weight: V,
    gradient: V,
}

/// Detaches the value from the graph.
fn detach(v: V) -> V {
    v.then(|t| Ok(detached::shallow(&t)))
}

/// Reflects `x` between the bounds `low2 / 2` and `high2 / 2`. Returns the result and its derivative, which is 1 or -1.
fn reflect(x: V, low2: i64, high2: i64) -> [V; 2] {
    if low2 == high2 {
        return [zero_of(&x), zero_of(x)];
    }
    let (low, span) = (low2 as f64 / 2.0, (high2 - low2) as f64 / 2.0);
    let below = lt(&x, low);
    let from = abs(x - low);
    let flips = detach(floor(&from / span));
    let extra = from - &flips * span;
    let odd = ne(&flips - floor(&flips / 2.0) * 2.0, 0.0);
    let sign = select(1.0, -1.0, ne(&below, &odd));
    [select(&extra + low, (span - &extra) + low, odd), sign]
}

/// Applies the padding mode to coordinates. Returns the result and its derivative, which is 0 where a coordinate was clipped.
fn pad_coordinates(of: &Sampling, x: V, size: usize) -> [V; 2] {
    let last = (size - 1) as f64;
    let clipped = |[x, gradient]: [V; 2]| {
        let inside = both(gt(&x, 0.0), lt(&x, last));
        let kept = select(select(0.0, &x, gt(&x, 0.0)), last, ge(&x, last));
        [kept, select(0.0, gradient, inside)]
    };
    let one = zeroth_power(zero_of(detach(x.clone())));
    match of.padding {
        Padding::Zeros => [x, one],
        Padding::Border => clipped([x, one]),
        Padding::Reflection => clipped(match of.align_corners {
            true => reflect(x, 0, 2 * (size as i64 - 1)),
            false => reflect(x, -1, 2 * size as i64 - 1),
        }),
    }
}

/// The neighbours of all places of the grid along one dimension, by differentiable formulas.
fn along(of: &Sampling, place: V, size: usize) -> Vec<Neighbour> {
    let factor = (size - usize::from(of.align_corners)) as f64 / 2.0;
    let x = match of.align_corners {
        true => (place + 1.0) * factor,
        false => ((place + 1.0) * size as f64 - 1.0) / 2.0,
    };
    let one = |at: V, weight: V, gradient: V| {
        let inside = both(ge(&at, 0.0), lt(&at, size as f64));
        let places = select(0.0, &at, &inside).cast(DType::I64);
        Neighbour { places, weight: select(0.0, weight, &inside), gradient: select(0.0, gradient, inside) }
    };
    match of.kernel {
        Kernel::Linear => {
            let [x, gradient] = pad_coordinates(of, x, size);
            let (low, gradient) = (detach(floor(&x)), gradient * factor);
            let part = x - &low;
            vec![one(low.clone(), 1.0 - &part, -&gradient), one(low + 1.0, part, gradient)]
        }
        Kernel::Nearest => {
            let [at, _] = pad_coordinates(of, detach(x), size);
            let none = zero_of(&at);
            vec![one(at.then(|t| crate::ops::elementwise::unary::round(&t)), zeroth_power(&none), none)]
        }
        Kernel::Cubic => {
            let low = detach(floor(&x));
            let t = x - &low;
            const A: f64 = -0.75;
            let near = |x: &V| ((x * (A + 2.0) - (A + 3.0)) * x) * x + 1.0;
            let far = |x: &V| (((x - 5.0) * x + 8.0) * x - 4.0) * A;
            let near_gradient = |x: &V| (x * (3.0 * (A + 2.0)) - 2.0 * (A + 3.0)) * x;
            let far_gradient = |x: &V| ((x * 3.0 - 10.0) * x + 8.0) * A;
            let [a, b, c, d] = [&t + 1.0, t.clone(), 1.0 - &t, 2.0 - &t];
            let weights = [
                (far(&a), far_gradient(&a)),
                (near(&b), near_gradient(&b)),
                (near(&c), -near_gradient(&c)),
                (far(&d), -far_gradient(&d)),
            ];
            let at = |k: usize| pad_coordinates(of, &low + (k as f64 - 1.0), size)[0].clone();
            let each = weights.into_iter().enumerate();
            each.map(|(k, (weight, gradient))| one(at(k), weight, gradient * factor)).collect()
        }
    }
}

/// One combination of neighbours: its flat index in a channel, and for each dimension the weight and its derivative.
struct Term {
    places: Tensor,
    factors: Vec<[V; 2]>,
}

impl Term {
    /// The product of the weights. If `d` is given, the weight of that dimension is replaced by its derivative.
    fn weight(&self, d: Option<usize>) -> V {
        let factor = |k: usize| &self.factors[k][usize::from(d == Some(k))];
        (1..self.factors.len()).fold(factor(0).clone(), |product, k| product * factor(k))
    }
}

fn terms(grid: &Tensor, of: &Sampling) -> Result<Vec<Term>> {
    let flat = reshape(grid, &[of.samples, of.points, of.dims])?;
    let mut all: Vec<(V, Vec<[V; 2]>)> = vec![(V::from(0.0), Vec::new())];
    for d in 3 - of.dims..3 {
        // The grid stores the coordinate of the last dimension first.
        let along = along(of, V::from(pick(&flat, -1, (2 - d) as i64)?), of.size[d]);
        let mut more = Vec::with_capacity(all.len() * along.len());
        for (places, factors) in &all {
            for one in &along {
                let mut factors = factors.clone();
                factors.push(
                    [&one.weight, &one.gradient].map(|v| v.clone().reshape(&[of.samples, 1, of.points])),
                );
                more.push((places * of.size[d] as f64 + &one.places, factors));
            }
        }
        all = more;
    }
    let shape = [of.samples, of.channels, of.points];
    let term = |(places, factors): (V, Vec<[V; 2]>)| {
        let places = places.cast(DType::I64).reshape(&[of.samples, 1, of.points]);
        Ok(Term { places: places.expand(&shape).tensor()?, factors })
    };
    all.into_iter().map(term).collect()
}

fn planes(input: &Tensor, of: &Sampling) -> Result<Tensor> {
    reshape(input, &[of.samples, of.channels, of.size.iter().product()])
}

/// The sampled values, by operators that are differentiable and run on any device.
fn sample_formula(input: &Tensor, grid: &Tensor, of: &Sampling) -> Result<Tensor> {
    let x = planes(input, of)?;
    let mut sum: Option<V> = None;
    for term in terms(grid, of)? {
        let one = V::from(index::Gather::call(&x, 2, &term.places)?) * term.weight(None);
        sum = Some(sum.map_or(one.clone(), |sum| sum + one));
    }
    sum.unwrap_or_else(V::misuse).reshape(&result_shape(&input.shape(), &grid.shape())).tensor()
}

/// The gradients of input and grid, by the same operators.
fn gradient_formula(
    g: &Tensor,
    input: &Tensor,
    grid: &Tensor,
    of: &Sampling,
    wants: [bool; 2],
) -> Result<[Option<Tensor>; 2]> {
    let (x, terms) = (planes(input, of)?, terms(grid, of)?);
    let g = reshape(g, &[of.samples, of.channels, of.points])?;
    let (mut of_input, mut of_grid) = (None, None);
    if wants[0] {
        let mut sum = constant::zeros(&x.shape(), x.dtype(), x.device())?;
        for term in &terms {
            let part = (V::from(&g) * term.weight(None)).tensor()?;
            sum = scatter::scatter_add(&sum, 2, &term.places, &part)?;
        }
        of_input = Some(reshape(&sum, &input.shape())?);
    }
    if wants[1] {
        let mut sums: Vec<Option<V>> = vec![None; of.dims];
        for term in &terms {
            let value = V::from(&g) * V::from(index::Gather::call(&x, 2, &term.places)?);
            for (d, sum) in sums.iter_mut().enumerate() {
                let part = (&value * term.weight(Some(d))).sum(&[1], false);
                *sum = Some(sum.take().map_or(part.clone(), |sum| sum + part));
            }
        }
        let numbers = sums.into_iter().rev().map(|sum| sum.unwrap_or_else(V::misuse).tensor());
        let together = join::stack(&numbers.collect::<Result<Vec<Tensor>>>()?, -1)?;
        of_grid = Some(reshape(&together, &grid.shape())?);
    }
    Ok([of_input, of_grid])
}

/// Makes the body contiguous, and widens half precision to a dtype that kernels compute in.
fn dense(body: &Body) -> Result<Body> {
    let wide = if body.dtype.size() == 2 { DType::F32 } else { body.dtype };
    if body.dtype == wide && body.layout.is_contiguous() {
        return Ok(body.clone());
    }
    if body.dtype == wide {
        return duplicate(body);
    }
    no_grad(|| to_dtype(&Tensor::new(duplicate(body)?), wide))
}

fn to_half(body: Body, dtype: DType) -> Result<Body> {
    if body.dtype == dtype { Ok(body) } else { no_grad(|| to_dtype(&Tensor::new(body), dtype)) }
}

fn forward(input: &Tensor, grid: &Tensor, of: &Sampling) -> Result<Body> {
    let shape = result_shape(&input.shape(), &grid.shape());
    if !input.device().is_cpu() {
        return no_grad(|| sample_formula(input, grid, of));
    }
    let (x, places) = (dense(&input.body())?, dense(&grid.body())?);
    let out = Body::new(&shape, x.dtype, x.device())?;
    if out.numel() > 0 {
        // SAFETY: all bodies are contiguous, with the sizes in `of`.
        unsafe { kernel::forward(of, out.host()?, x.host()?, places.host()?)? };
    }
    to_half(out, input.dtype())
}

/// The gradients of input and grid by kernels.
fn backward(
    g: &Body,
    input: &Body,
    grid: &Body,
    of: &Sampling,
    wants: [bool; 2],
) -> Result<[Option<Body>; 2]> {
    let [g, x, places] = [dense(g)?, dense(input)?, dense(grid)?];
    let (mut of_input, mut of_grid) = (None, None);
    if wants[0] {
        let out = Body::new(x.shape(), x.dtype, x.device())?;
        if out.numel() > 0 {
            // SAFETY: all bodies are contiguous, with the sizes in `of`.
            unsafe { kernel::backward_input(of, out.host()?, g.host()?, places.host()?)? };
        }
        of_input = Some(to_half(out, input.dtype)?);
    }
    if wants[1] {
        let out = Body::new(places.shape(), places.dtype, places.device())?;
        if out.numel() > 0 {
            // SAFETY: all bodies are contiguous, with the sizes in `of`.
            unsafe { kernel::backward_grid(of, out.host()?, g.host()?, x.host()?, places.host()?)? };
        }
        of_grid = Some(to_half(out, grid.dtype)?);
    }
    Ok([of_input, of_grid])
}

macro_rules! samplers {
    ($($Sampler:ident;)*) => { $(
        #[primitive]
        impl $Sampler {
            fn forward(
                #[shown("input")] input: &Tensor,
                grid: &Tensor,
                interpolation_mode: i64,
                padding_mode: i64,
                align_corners: bool,
            ) -> Result<Body> {
                let how = [interpolation_mode, padding_mode];
                forward(input, grid, &sampling(&input.shape(), &grid.shape(), how, align_corners))
            }
            fn derivative(
                g: &Tensor,
                input: &Tensor,
                grid: &Tensor,
                interpolation_mode: i64,
                padding_mode: i64,
                align_corners: bool,
                wants: [bool; 2],
            ) -> Result<[Option<Tensor>; 2]> {
                let how = [interpolation_mode, padding_mode];
                gradient_formula(g, input, grid, &sampling(&input.shape(), &grid.shape(), how, align_corners), wants)
            }
            fn fast_derivative(
                g: Body,
                input: Body,
                grid: Body,
                interpolation_mode: i64,
                padding_mode: i64,
                align_corners: bool,
                wants: [bool; 2],
            ) -> Result<[Option<Body>; 2]> {
                let how = [interpolation_mode, padding_mode];
                let of = sampling(input.shape(), grid.shape(), how, align_corners);
                if input.device().is_cpu() {
                    return backward(&g, &input, &grid, &of, wants);
                }
                let [g, input, grid] = [g, input, grid].map(Tensor::new);
                let made = mode::with_grad(false, || gradient_formula(&g, &input, &grid, &of, wants))?;
                Ok(made.map(|t| t.map(|t| t.body().clone())))
            }
            fn batch(
                b: &Batch,
                input: &Tensor,
                grid: &Tensor,
                interpolation_mode: i64,
                padding_mode: i64,
                align_corners: bool,
            ) -> Result<Tensor> {
                // The batch dimension of vmap is merged into that of the operator.
                let merged = |t: &Tensor| -> Result<Tensor> {
                    let (t, k) = (b.full(t)?, b.k());
                    let shape = t.shape();
                    let mut flat: Dims = smallvec::smallvec![numel(&shape[..=k])];
                    flat.extend_from_slice(&shape[k + 1..]);
                    reshape(&t, &flat)
                };
                let (x, g) = (merged(input)?, merged(grid)?);
                let made = $Sampler::call(&x, &g, interpolation_mode, padding_mode, align_corners)?;
                let mut shape = b.sizes.clone();
                let count = numel(&shape).max(1);
                shape.push(made.shape()[0] / count);
                shape.extend_from_slice(&made.shape()[1..]);
                Ok(b.wrap(reshape(&made, &shape)?))
            }
        }
    )* };
}
samplers! {
    GridSampler2D;
    GridSampler3D;
}

/// Sample an input at the locations of a grid, as `torch.nn.functional.grid_sample` does.
///
/// Args:
///     input: the input, `(N, C, H, W)` or `(N, C, D, H, W)`.
///     grid: locations between -1 and 1, `(N, H_out, W_out, 2)` or `(N, D_out, H_out, W_out, 3)`.
///     interpolation_mode: 0 for linear, 1 for nearest, 2 for cubic.
///     padding_mode: 0 for zeros, 1 for the border, 2 for reflection.
///     align_corners: whether -1 and 1 are the centers of the corner pixels, else their edges.
///
/// Examples:
///     >>> x = torch.arange(4.0).reshape(1, 1, 2, 2)
///     >>> torch.grid_sampler(x, torch.zeros(1, 1, 1, 2), 0, 0, False)
///     tensor([[[[1.5000]]]])
#[operator(function, autocast = single, sample = "gridded()")]
pub fn grid_sampler(
    input: &Tensor,
    grid: &Tensor,
    interpolation_mode: i64,
    padding_mode: i64,
    align_corners: bool,
) -> Result<Tensor> {
    let (own, places) = (input.shape(), grid.shape());
    let refuse = |what: String| Err(Error::runtime(format!("grid_sampler(): expected {what}")));
    if input.device() != grid.device() {
        return refuse(format!(
            "input and grid to be on same device, but input is on {} and grid is on {}",
            input.device(),
            grid.device()
        ));
    }
    if own.is_empty() || places.is_empty() || own[0] != places[0] {
        return refuse(format!(
            "grid and input to have same batch size, but got input with sizes {:?} and grid with sizes {:?}",
            own.as_slice(),
            places.as_slice()
        ));
    }
    if places[places.len() - 1] + 2 != own.len() {
        return refuse(format!(
            "grid to have size {} in last dimension, but got grid with sizes {:?}",
            own.len() - 2,
            places.as_slice()
        ));
    }
    if !matches!(own.len(), 4 | 5) || own.len() != places.len() {
        return refuse(format!(
            "4D or 5D input and grid with same number of dimensions, but got input with sizes {:?} and grid with sizes {:?}",
            own.as_slice(),
            places.as_slice()
        ));
    }
    if let Some(d) = (2..own.len()).find(|d| own[*d] == 0) {
        return refuse(format!(
            "input to have non-empty spatial dimensions, but input has sizes {:?} with dimension {d} being empty",
            own.as_slice()
        ));
    }
    let flat = own.len() == 4;
    let dtype = input.dtype();
    if !dtype.is_float() {
        let op = if flat { "grid_sampler_2d_cpu_kernel_impl" } else { "grid_sampler3d_cpu" };
        return Err(Fault::NoKernel { op, dtype }.into());
    }
    if dtype != grid.dtype() {
        return Err(Error::runtime(format!(
            "expected scalar type {} but found {}",
            dtype.scalar_name(),
            grid.dtype().scalar_name()
        )));
    }
    match flat {
        true => GridSampler2D::call(input, grid, interpolation_mode, padding_mode, align_corners),
        false => GridSampler3D::call(input, grid, interpolation_mode, padding_mode, align_corners),
    }
}

/// The coordinates of all pixels, from -1 to 1, with a 1 appended to each: `[places, dims + 1]`.
fn places(size: &[i64], align_corners: bool, dtype: DType, device: Device) -> Result<Tensor> {
    let whole: Dims = size.iter().map(|n| *n as usize).collect();
    let line = |d: usize| -> Result<V> {
        let n = whole[d];
        let ones = constant::ones(&[n], DType::I64, device)?;
        let count = V::from(scan::cumsum(&ones, 0, None)?).cast(dtype) - 1.0;
        let spread = match (align_corners, n) {
            (_, 1) => count * 0.0,
            (true, _) => count * (2.0 / (n - 1) as f64) - 1.0,
            (false, _) => (count * 2.0 + 1.0) / n as f64 - 1.0,
        };
        let mut shape: Dims = smallvec::smallvec![1; whole.len()];
        shape[d] = n;
        Ok(spread.reshape(&shape).expand(&whole).reshape(&[numel(&whole)]))
    };
    let mut all = (0..whole.len()).rev().map(|d| line(d)?.tensor()).collect::<Result<Vec<Tensor>>>()?;
    all.push(constant::ones(&[numel(&whole)], dtype, device)?);
    join::stack(&all, -1)
}

#[primitive(batch = each, tangent = linear)]
impl AffineGridGenerator {
    fn forward(#[hidden] theta: &Tensor, size: Ints, align_corners: bool) -> Result<Body> {
        let wide = if theta.dtype().size() == 2 { DType::F32 } else { theta.dtype() };
        no_grad(|| {
            let base = V::from(places(&size[2..], align_corners, wide, theta.device())?);
            let made = base.matmul(V::from(theta).cast(wide).mt());
            let mut shape: Dims = smallvec::smallvec![size[0] as usize];
            shape.extend(size[2..].iter().map(|n| *n as usize));
            shape.push(size.len() - 2);
            made.reshape(&shape).cast(theta.dtype()).tensor()
        })
    }
    fn d_theta(g: V, at: Meta, size: Ints, align_corners: bool) -> Result<Tensor> {
        let base = V::from(places(&size[2..], align_corners, at.dtype, at.device)?);
        let (dims, samples) = (size.len() - 2, at.shape[0]);
        let g = g.reshape(&[samples, base.shape()[0], dims]);
        g.mt().matmul(base).tensor()
    }
}

/// Return the sampling grid of affine maps, as `torch.nn.functional.affine_grid` does.
///
/// Args:
///     theta: affine matrices, `(N, 2, 3)` or `(N, 3, 4)`.
///     size: size of the output, `(N, C, H, W)` or `(N, C, D, H, W)`.
///     align_corners: whether -1 and 1 are the centers of the corner pixels, else their edges.
///
/// Examples:
///     >>> torch.affine_grid_generator(torch.eye(2, 3)[None], (1, 1, 2, 2), True)[0, :, :, 0]
///     tensor([[-1.,  1.],
///             [-1.,  1.]])
#[operator(
    function,
    sample = "lambda draw: ([values((2, 2, 3), draw(SEEDS))], lambda x: T.affine_grid_generator(x, (2, 3, 2, 4), True))"
)]
pub fn affine_grid_generator(theta: &Tensor, #[strict] size: Ints, align_corners: bool) -> Result<Tensor> {
    let dims = size.len().saturating_sub(2);
    let shape = theta.shape();
    if !matches!(dims, 2 | 3) || size.iter().any(|n| *n < 0) {
        return Err(Error::runtime("affine_grid_generator needs 4d (2D affine) or 5d (3D affine) size"));
    }
    if shape.len() != 3 || shape[1..] != [dims, dims + 1] {
        return Err(Error::runtime(format!(
            "Expected a batch of {dims}D affine matrices of shape Nx{dims}x{} for size {size:?}. Got {:?}.",
            dims + 1,
            shape.as_slice()
        )));
    }
    if shape[0] as i64 != size[0] {
        return Err(Error::runtime(format!(
            "Expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: [{}, {}].",
            size[0],
            dims + 1,
            shape[0],
            dims + 1
        )));
    }
    AffineGridGenerator::call(theta, size, align_corners)
}
