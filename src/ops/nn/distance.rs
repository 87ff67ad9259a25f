//! Distances between all pairs of vectors.

use crate::base::{broadcast, numel};
use crate::cpu::distance::{self as kernel, Pairs};
use crate::operator::bodies::duplicate;
use crate::operator::primitives::{constant, views};
use crate::ops::indexing::index;
use crate::ops::indexing::scatter::IndexAdd;
use crate::ops::prelude::*;
use crate::ops::reduction::extrema;
use crate::ops::reduction::reduce::{no_grad, ratio};
use crate::ops::shape::slices;
use crate::ops::shape::squeeze::unsqueeze;
use crate::ops::shape::triangle::triu_indices;

/// The differences of all pairs of vectors. The vectors' elements are the last dimension.
fn gaps(x1: &V, x2: &V) -> V {
    x1.clone().then(|t| unsqueeze(&t, -2)) - x2.clone().then(|t| unsqueeze(&t, -3))
}

/// The norm along the last dimension.
fn norm(gaps: V, p: f64) -> V {
    let size = abs(gaps);
    if p == 0.0 {
        let dtype = size.clone().tensor().map(|t| t.dtype());
        return match dtype {
            Ok(dtype) => ne(size, 0.0).cast(dtype).sum(&[-1], false),
            Err(error) => V::from(Err(error)),
        };
    }
    if p == 1.0 {
        return size.sum(&[-1], false);
    }
    if p.is_infinite() {
        return size.then(|t| extrema::amax(&t, Some(smallvec::smallvec![-1]), false));
    }
    if p == 2.0 {
        return sqrt((&size * &size).sum(&[-1], false));
    }
    pow(pow(size, p).sum(&[-1], false), 1.0 / p)
}

/// The gradient of the differences, from the gradient `g` of the distances. It is 0 where the distance is 0.
fn norm_gradient(g: V, gaps: V, result: V, p: f64) -> V {
    let line = |v: V| v.then(|t| unsqueeze(&t, -1));
    let (g, result) = (line(g), line(result));
    if p == 0.0 {
        return &g * zero_of(&gaps);
    }
    if p == 1.0 {
        return g * sign(gaps);
    }
    if p.is_infinite() {
        let largest = eq(abs(&gaps), &result);
        return select(0.0, g * sign(gaps), largest);
    }
    let still = eq(&result, 0.0);
    let safe = select(&result, 1.0, &still);
    if p == 2.0 {
        return select(&g * &gaps / &safe, 0.0, still);
    }
    let size = abs(&gaps);
    let none = either(eq(&size, 0.0), still);
    let size = select(size, 1.0, &none);
    select(g * sign(gaps) * pow(size / safe, p - 1.0), 0.0, none)
}

/// Both operands as contiguous batches of vectors with the same batch dimensions.
fn blocks(x1: &Body, x2: &Body) -> Result<(Pairs, [Body; 2], Dims)> {
    let (a, b) = (x1.shape(), x2.shape());
    let lead = broadcast(&a[..a.len() - 2], &b[..b.len() - 2])?;
    let dense = |x: &Body| {
        let mut shape = lead.clone();
        shape.extend_from_slice(&x.shape()[x.shape().len() - 2..]);
        let wide = x.with_layout(x.layout.broadcast_to(&shape));
        if wide.layout.is_contiguous() { Ok(wide) } else { duplicate(&wide) }
    };
    let pairs =
        Pairs { batch: numel(&lead), first: a[a.len() - 2], second: b[b.len() - 2], length: a[a.len() - 1] };
    let mut shape = lead.clone();
    shape.extend([pairs.first, pairs.second]);
    Ok((pairs, [dense(x1)?, dense(x2)?], shape))
}

fn distances(x1: &Body, x2: &Body, p: f64) -> Result<Body> {
    if !x1.device().is_cpu() {
        let (x1, x2) = (Tensor::new(x1.clone()), Tensor::new(x2.clone()));
        return no_grad(|| norm(gaps(&x1.into(), &x2.into()), p).tensor());
    }
    let (pairs, [x1, x2], shape) = blocks(x1, x2)?;
    let out = Body::new(&shape, x1.dtype, x1.device())?;
    if out.numel() > 0 {
        // SAFETY: all bodies are contiguous and have the sizes that `blocks` returned; `out` is new.
        unsafe { kernel::cdist(pairs, out.host()?, x1.host()?, x2.host()?, p)? };
    }
    Ok(out)
}

/// The gradient of `x1`, with the batch dimensions that both operands broadcast to.
fn distance_gradient(g: &Body, x1: &Body, x2: &Body, result: &Body, p: f64) -> Result<Body> {
    if !x1.device().is_cpu() {
        let [g, x1, x2, result] = [g, x1, x2, result].map(|b| V::from(Tensor::new(b.clone())));
        return no_grad(|| norm_gradient(g, gaps(&x1, &x2), result, p).sum(&[-2], false).tensor());
    }
    let (pairs, [x1, x2], shape) = blocks(x1, x2)?;
    let dense = |b: &Body| if b.layout.is_contiguous() { Ok(b.clone()) } else { duplicate(b) };
    let (g, result) = (dense(g)?, dense(result)?);
    if g.shape() != shape.as_slice() || result.shape() != shape.as_slice() {
        return Err(Error::runtime("cdist: the gradient must have the shape of the distances"));
    }
    let out = Body::new(x1.shape(), x1.dtype, x1.device())?;
    if out.numel() > 0 {
        // SAFETY: as in `forward`.
        unsafe {
            kernel::cdist_backward(
                pairs,
                out.host()?,
                [g.host()?, x1.host()?, x2.host()?, result.host()?],
                p,
            )?;
        }
    }
    Ok(out)
}

fn transpose(body: &Body) -> Result<Body> {
    Ok(body.with_layout(body.layout.transpose(-1, -2)?))
}

#[primitive(batch = each)]
impl Cdist {
    fn forward(x1: &Tensor, x2: &Tensor, p: f64) -> Result<Body> {
        distances(&x1.body(), &x2.body(), p)
    }
    fn d_x1(g: V, x1: V, x2: V, result: V, p: f64) -> V {
        norm_gradient(g, gaps(&x1, &x2), result, p).sum(&[-2], false)
    }
    fn fast_d_x1(g: Body, x1: Body, x2: Body, result: Body, p: f64) -> Result<Body> {
        distance_gradient(&g, &x1, &x2, &result, p)
    }
    fn d_x2(g: V, x1: V, x2: V, result: V, p: f64) -> V {
        -norm_gradient(g, gaps(&x1, &x2), result, p).sum(&[-3], false)
    }
    fn fast_d_x2(g: Body, x1: Body, x2: Body, result: Body, p: f64) -> Result<Body> {
        distance_gradient(&transpose(&g)?, &x2, &x1, &transpose(&result)?, p)
    }
}

/// Computes distances by a matrix product, which is faster and less exact.
fn euclidean(x1: &V, x2: &V) -> V {
    let squares = |x: &V| (x * x).sum(&[-1], true);
    let product = x1.matmul(x2.mt());
    sqrt(maximum(squares(x1) + squares(x2).mt() - product * 2.0, 0.0))
}

#[primitive(batch = each)]
impl EuclideanDist {
    fn forward(x1: &Tensor, x2: &Tensor) -> Result<Body> {
        no_grad(|| euclidean(&x1.into(), &x2.into()).tensor())
    }
    fn d_x1(g: V, x1: V, x2: V, result: V) -> V {
        let ratio = ratio(g, result);
        x1 * ratio.clone().sum(&[-1], true) - ratio.matmul(x2)
    }
    fn d_x2(g: V, x1: V, x2: V, result: V) -> V {
        let ratio = ratio(g, result).mt();
        x2 * ratio.clone().sum(&[-1], true) - ratio.matmul(x1)
    }
}

/// With more vectors than this, a matrix product pays off.
const MANY: usize = 25;

/// Compute the distance between each pair of vectors of two collections, by the `p`-norm.
///
/// Args:
///     x1: vectors, `(*, P, M)`.
///     x2: vectors, `(*, R, M)`; the result has shape `(*, P, R)`.
///     p: order of the norm.
///     compute_mode: how Euclidean distances may be computed by a matrix product:
///         `"use_mm_for_euclid_dist_if_necessary"` (for more than 25 vectors), `"use_mm_for_euclid_dist"` or
///         `"donot_use_mm_for_euclid_dist"`.
///
/// Examples:
///     >>> torch.cdist(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
///     tensor([[5., 1.]])
#[operator(function, autocast = single, sample = "distances([1.0, 2.0, 2.5, math.inf])")]
pub fn cdist(
    x1: &Tensor,
    x2: &Tensor,
    #[default(2.0)] p: f64,
    #[default("use_mm_for_euclid_dist_if_necessary".to_string())] compute_mode: String,
) -> Result<Tensor> {
    let product = match compute_mode.as_str() {
        "use_mm_for_euclid_dist_if_necessary" => None,
        "use_mm_for_euclid_dist" => Some(true),
        "donot_use_mm_for_euclid_dist" => Some(false),
        other => return Err(Error::value(format!("{other} is not a valid value for compute_mode"))),
    };
    for (name, x) in [("X1", x1), ("X2", x2)] {
        if x.ndim() < 2 {
            return Err(Error::runtime(format!(
                "cdist only supports at least 2D tensors, {name} got: {}D",
                x.ndim()
            )));
        }
    }
    let (a, b) = (x1.shape(), x2.shape());
    if a.last() != b.last() {
        return Err(Error::runtime(format!(
            "X1 and X2 must have the same number of columns. X1: {} X2: {}",
            a[a.len() - 1],
            b[b.len() - 1]
        )));
    }
    for (name, x) in [("X1", x1), ("X2", x2)] {
        if !x.dtype().is_float() {
            return Err(Error::runtime(format!(
                "cdist only supports floating-point dtypes, {name} got: {}",
                x.dtype().scalar_name()
            )));
        }
    }
    // PyTorch checks the sign only, so that NaN passes.
    if p < 0.0 {
        return Err(Error::runtime("cdist only supports non-negative p values"));
    }
    let shape = broadcast(&a[..a.len() - 2], &b[..b.len() - 2])?;
    if x1.dtype() != x2.dtype() {
        return Err(Error::runtime(format!(
            "expected scalar type {} but found {}",
            x1.dtype().scalar_name(),
            x2.dtype().scalar_name()
        )));
    }
    let many = a[a.len() - 2] > MANY || b[b.len() - 2] > MANY;
    if p == 2.0 && product.unwrap_or(many) && x1.numel() > 0 && x2.numel() > 0 {
        let made = EuclideanDist::call(x1, x2)?;
        let mut whole = shape;
        whole.extend([a[a.len() - 2], b[b.len() - 2]]);
        return views::View::call(&made, whole);
    }
    if x1.device().is_cpu() && x1.dtype().size() == 2 {
        return Err(Fault::NoKernel { op: "cdist", dtype: x1.dtype() }.into());
    }
    Cdist::call(x1, x2, p)
}

/// The row numbers of all pairs of `n` rows, each pair once.
fn each_pair(n: usize, like: &Tensor) -> Result<[Tensor; 2]> {
    let places = triu_indices(n as i64, n as i64, 1, DType::I64, like.device(), None)?;
    Ok([slices::select(&places, 0, 0)?, slices::select(&places, 0, 1)?])
}

#[primitive(batch = each)]
impl Pdist {
    fn forward(input: &Tensor, p: f64) -> Result<Body> {
        let n = input.shape()[0];
        let all = Tensor::new(distances(&input.body(), &input.body(), p)?);
        no_grad(|| {
            let [i, j] = each_pair(n, input)?;
            let place = (V::from(i) * n as f64 + V::from(j)).cast(DType::I64).tensor()?;
            index::index_select(&views::reshape(&all, &[n * n])?, 0, &place)
        })
    }
    fn d_input(g: V, input: Tensor, result: V, p: f64) -> Result<Tensor> {
        let shape = input.shape();
        let [i, j] = each_pair(shape[0], &input)?;
        let x = |place: &Tensor| index::index_select(&input, 0, place).map(V::from);
        let slope = norm_gradient(g, x(&i)? - x(&j)?, result, p).tensor()?;
        let zeros = constant::zeros(&shape, slope.dtype(), slope.device())?;
        let one = || Scalar::Int(1);
        let half = IndexAdd::call(&zeros, 0, &i, &slope, one())?;
        IndexAdd::call(&half, 0, &j, &slope, Scalar::Int(-1))
    }
}

/// Compute the distance between each pair of rows of a matrix, by the `p`-norm; each pair once.
///
/// Args:
///     input: a matrix with a vector in each row.
///     p: order of the norm.
///
/// Examples:
///     >>> F.pdist(torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
///     tensor([5.0000, 1.0000, 4.2426])
#[operator(
    nn,
    sample = "of_wide(shaped(lambda draw, shape: (lambda p: lambda x: F.pdist(x, p))(draw(st.sampled_from([1, 2, 2.5]))), \
              st.sampled_from([(4, 3), (2, 2), (1, 3)])))"
)]
pub fn pdist(input: &Tensor, #[default(2.0)] p: f64) -> Result<Tensor> {
    if input.ndim() != 2 {
        return Err(Error::runtime(format!("pdist only supports 2D tensors, got: {}D", input.ndim())));
    }
    if !input.dtype().is_float() {
        return Err(Error::runtime("pdist only supports floating-point dtypes"));
    }
    if p < 0.0 {
        return Err(Error::runtime("pdist only supports non-negative p values"));
    }
    if input.device().is_cpu() && input.dtype().size() == 2 {
        return Err(Fault::NoKernel { op: "pdist", dtype: input.dtype() }.into());
    }
    Pdist::call(input, p)
}
