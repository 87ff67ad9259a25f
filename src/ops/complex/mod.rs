//! Complex numbers: constructors, parts, conjugation, and reductions and products whose kernels work on the parts.

use crate::base::views::dense_like;
use crate::base::{Reduction, broadcast};
use crate::operator::bodies::{copy, drop_dims, kept_shape, of_pairs, parts, reduce as reduce_real};
use crate::operator::primitives::complex_views::{self, Conj, NegView, ViewAsComplex, ViewAsReal, part};
use crate::operator::primitives::copies::clone_preserved;
use crate::operator::primitives::sums::sum_over;
use crate::operator::primitives::views::{self, ints};
use crate::operator::primitives::{copies, sums};
use crate::ops::elementwise::{arithmetic, formula, unary};
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::no_grad;
use crate::ops::shape::slices::select;
use crate::ops::shape::view::expand;
use crate::ops::shape::{slices, view};

/// The batching rule: broadcasts and joins real and imaginary parts.
fn of_samples(
    b: &Batch,
    x: &Tensor,
    y: &Tensor,
    join: fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    let shape = ints(&broadcast(&x.shape(), &y.shape())?);
    let part = |t: &Tensor| b.full(&expand(t, shape.clone())?);
    Ok(b.wrap(join(&part(x)?, &part(y)?)?))
}

#[primitive(tangent = linear)]
impl Complex {
    fn forward(real: &Tensor, imag: &Tensor) -> Result<Body> {
        from_parts(&real.body(), &imag.body())
    }
    fn d_real(g: V, real: Unread, imag: Unread) -> V {
        let _ = (real, imag);
        g.re()
    }
    fn d_imag(g: &Tensor, real: Unread, imag: Unread) -> Result<Tensor> {
        let _ = (real, imag);
        self::imag(g)
    }
    fn batch(b: &Batch, real: &Tensor, imag: &Tensor) -> Result<Tensor> {
        of_samples(b, real, imag, complex)
    }
}

#[primitive]
impl Polar {
    fn forward(abs: &Tensor, angle: &Tensor) -> Result<Body> {
        check_parts(&abs.body(), &angle.body())?;
        let re = no_grad(|| arithmetic::mul(abs, &unary::cos(angle)?))?;
        let im = no_grad(|| arithmetic::mul(abs, &unary::sin(angle)?))?;
        from_parts(&re, &im)
    }
    fn d_abs(g: V, result: V) -> V {
        (g.conj() * formula::sign(result)).re()
    }
    fn d_angle(g: V, result: V) -> V {
        (g.conj() * (result * V::Scalar(Scalar::Complex(0.0, 1.0)))).re()
    }
    fn batch(b: &Batch, abs: &Tensor, angle: &Tensor) -> Result<Tensor> {
        of_samples(b, abs, angle, polar)
    }
}

/// The inner product of two vectors, the first of which is conjugated.
#[primitive]
impl Vdot {
    fn forward(input: &Tensor, other: &Tensor) -> Result<Body> {
        no_grad(|| crate::ops::linalg::matmul::dot(&conj(input)?, other))
    }
    fn d_input(g: V, other: V) -> V {
        g.conj() * other
    }
    fn d_other(g: V, input: V) -> V {
        g * input
    }
    fn batch(b: &Batch, input: &Tensor, other: &Tensor) -> Result<Tensor> {
        let (x, y) = (b.full(input)?, b.full(other)?);
        let product = arithmetic::mul(&conj(&x)?, &y)?;
        sums::Sum1::call(&product, smallvec::smallvec![-1], false).map(|t| b.wrap(t))
    }
}

fn check_parts(real: &Body, imag: &Body) -> Result<()> {
    let fits = |d: DType| matches!(d, DType::F16 | DType::F32 | DType::F64);
    if !fits(real.dtype) || !fits(imag.dtype) {
        return Err(Error::not_implemented(format!(
            "Expected both inputs to be Half, Float or Double tensors but got {} and {}",
            real.dtype.scalar_name(),
            imag.dtype.scalar_name()
        )));
    }
    if real.dtype != imag.dtype {
        return Err(Error::runtime(format!(
            "Expected object of scalar type {} but got scalar type {} for second argument",
            real.dtype.scalar_name(),
            imag.dtype.scalar_name()
        )));
    }
    Ok(())
}

/// Complex numbers from their real and imaginary parts.
pub fn from_parts(real: &Body, imag: &Body) -> Result<Body> {
    check_parts(real, imag)?;
    let shape = broadcast(real.shape(), imag.shape())?;
    let mut out = Body::new(&shape, real.dtype.of_parts(), real.device())?;
    let like = &real.layout;
    if (&like.shape, &like.strides) == (&imag.layout.shape, &imag.layout.strides) {
        out.layout = dense_like(like);
    }
    for (to, from) in parts(&out)?.iter().zip([real, imag]) {
        copy(to, &from.with_layout(from.layout.broadcast_to(&shape)))?;
    }
    Ok(out)
}

/// Return a view of complex numbers as pairs of real ones, along a new last dimension of size 2.
///
/// Args:
///     input: a complex tensor.
///
/// Examples:
///     >>> torch.view_as_real(torch.tensor([1 + 2j, 3j]))
///     tensor([[1., 2.],
///             [0., 3.]])
#[operator(function, sample = "pointwise(in_parts(lambda x: T.view_as_real(T.complex(x, x * 2))), 1, WIDE)")]
pub fn view_as_real(input: &Tensor) -> Result<Tensor> {
    ViewAsReal::call(input)
}

/// Return a view of pairs of real numbers, along the last dimension, as complex numbers.
///
/// Args:
///     input: a floating point tensor whose last dimension has size 2.
///
/// Examples:
///     >>> torch.view_as_complex(torch.tensor([[1.0, 2.0], [0.0, 3.0]]))
///     tensor([1.+2.j, 0.+3.j])
#[operator(
    function,
    autocast = single,
    sample = "pointwise(in_parts(lambda x: T.view_as_complex(T.stack([x, x * x], -1)).abs()), 1, WIDE)"
)]
pub fn view_as_complex(input: &Tensor) -> Result<Tensor> {
    ViewAsComplex::call(input)
}

/// Build complex numbers from real and imaginary parts.
///
/// Args:
///     real: the real parts.
///     imag: the imaginary parts, of the same data type.
///
/// Examples:
///     >>> torch.complex(torch.tensor([1.0, 0.0]), torch.tensor([2.0, 3.0]))
///     tensor([1.+2.j, 0.+3.j])
#[operator(
    function,
    out(message = "Expected object of scalar type {result} but got scalar type {target} for argument 'out'"),
    sample = "pointwise(in_parts(lambda x, y: T.view_as_real(T.complex(x, y))), 2, WIDE)"
)]
pub fn complex(real: &Tensor, imag: &Tensor) -> Result<Tensor> {
    Complex::call(real, imag)
}

/// Build complex numbers from absolute values and angles: `abs * exp(1j * angle)`.
///
/// Args:
///     abs: the absolute values.
///     angle: the angles in radians, of the same data type.
///
/// Examples:
///     >>> torch.polar(torch.tensor([2.0]), torch.tensor([torch.pi / 3]))
///     tensor([1.0000+1.7321j])
#[operator(
    function,
    out(message = "Expected object of scalar type {result} but got scalar type {target} for argument 'out'"),
    autocast = single,
    sample = "pointwise(in_parts(lambda x, y: T.view_as_real(T.polar(x.abs() + 0.1, y))), 2, WIDE)"
)]
pub fn polar(abs: &Tensor, angle: &Tensor) -> Result<Tensor> {
    Polar::call(abs, angle)
}

/// Compute the complex conjugate; real numbers stay as they are.
///
/// Unlike `torch.conj` it computes the values at once.
///
/// Examples:
///     >>> torch.conj_physical(torch.tensor([1 + 2j]))
///     tensor([1.-2.j])
#[operator(
    function,
    method,
    inplace,
    out(found, called = "aten::conj_physical"),
    sample = "pointwise(named(name), 1, WIDE)"
)]
pub fn conj_physical(input: &Tensor) -> Result<Tensor> {
    if input.dtype().is_complex() { unary::conj_physical(input) } else { Ok(input.clone()) }
}

/// Return the real parts of a complex tensor (a view); real tensors are returned as they are.
///
/// Examples:
///     >>> torch.real(torch.tensor([1 + 2j, 3j]))
///     tensor([1., 0.])
#[operator(function, sample = "pointwise(in_parts(lambda x: T.real(T.complex(x * 2, x))), 1, WIDE)")]
pub fn real(input: &Tensor) -> Result<Tensor> {
    complex_views::real(input)
}

/// Return the imaginary parts of a complex tensor (a view).
///
/// Raises:
///     RuntimeError: if the tensor is not complex.
///
/// Examples:
///     >>> torch.imag(torch.tensor([1 + 2j, 3j]))
///     tensor([2., 3.])
#[operator(function, sample = "pointwise(in_parts(lambda x: T.imag(T.complex(x, x * 2))), 1, WIDE)")]
pub fn imag(input: &Tensor) -> Result<Tensor> {
    if !input.dtype().is_complex() {
        return Err(Error::type_error("imag is not implemented for tensors with non-complex dtypes."));
    }
    part(input, 1)
}

/// Return the complex conjugate as a view, whose values are computed when they are read.
///
/// Real tensors are returned as they are.
///
/// Examples:
///     >>> torch.conj(torch.tensor([1 + 2j]))
///     tensor([1.-2.j])
#[operator(
    function,
    method,
    sample = "pointwise(in_parts(lambda x: T.view_as_real(T.complex(x, x * 2).conj().resolve_conj())), 1, WIDE)"
)]
pub fn conj(input: &Tensor) -> Result<Tensor> {
    if input.dtype().is_complex() { Conj::call(input) } else { Ok(input.clone()) }
}

/// Return the negated elements as a view, whose values are computed when they are read.
#[operator(function, sample = "pointwise(named(name), 1, WIDE)")]
pub fn _neg_view(input: &Tensor) -> Result<Tensor> {
    NegView::call(input)
}

/// Resolves a lazy conjugation or negation. Returns the tensor itself if it has none.
fn without(t: &Tensor, part: ConjNeg) -> Result<Tensor> {
    if t.body().conj_neg.has(part) { clone_preserved(t) } else { Ok(t.clone()) }
}

/// Return a copy with computed values if the conjugate bit is set (see `torch.conj`), else the tensor itself.
///
/// Examples:
///     >>> x = torch.tensor([1 + 2j]).conj()
///     >>> x.is_conj(), x.resolve_conj().is_conj()
///     (True, False)
#[operator(function, method, sample = "pointwise(named(name), 1, WIDE)")]
pub fn resolve_conj(input: &Tensor) -> Result<Tensor> {
    without(input, ConjNeg::CONJ)
}

/// Return a copy with computed values if the negative bit is set, else the tensor itself.
///
/// The imaginary part of a conjugate is such a view.
///
/// Examples:
///     >>> x = torch.tensor([1 + 2j]).conj().imag
///     >>> x.is_neg(), x.resolve_neg().is_neg()
///     (True, False)
#[operator(function, method, sample = "pointwise(named(name), 1, WIDE)")]
pub fn resolve_neg(input: &Tensor) -> Result<Tensor> {
    without(input, ConjNeg::NEG)
}

/// Tell whether the conjugate bit is set: the tensor is a conjugate that is not yet computed.
///
/// Examples:
///     >>> torch.is_conj(torch.tensor([1j]).conj())
///     True
#[operator(function, method, unrecorded)]
pub fn is_conj(input: &Tensor) -> Result<bool> {
    Ok(input.body().conj_neg.has(ConjNeg::CONJ))
}

/// Tell whether the negative bit is set: the tensor is a negated view that is not yet computed.
///
/// Examples:
///     >>> torch.is_neg(torch.tensor([1j]).conj().imag)
///     True
#[operator(function, method, unrecorded)]
pub fn is_neg(input: &Tensor) -> Result<bool> {
    Ok(input.body().conj_neg.has(ConjNeg::NEG))
}

/// Tell whether the data type of the tensor is complex.
///
/// Examples:
///     >>> torch.tensor([1j]).is_complex()
///     True
#[operator(method, unrecorded)]
pub fn is_complex(input: &Tensor) -> Result<bool> {
    Ok(input.dtype().is_complex())
}

/// Reduces over `dims`, which are kept with size 1. Complex sums are sums of the parts.
pub fn reduce(fold: Reduction, x: &Body, dims: &[usize], dtype: DType) -> Result<Body> {
    if !x.dtype.is_complex() {
        return reduce_real(fold, x, dims, dtype);
    }
    match fold {
        Reduction::Sum => sum_over(x, dims, dtype),
        Reduction::SumSq => {
            let last = x.layout.ndim();
            let mut all = Dims::from_slice(dims);
            all.push(last);
            reduce_real(fold, &x.as_parts(), &all, dtype).map(|body| drop_dims(body, &[last]))
        }
        Reduction::SumAbs => {
            reduce_real(Reduction::Sum, &no_grad(|| unary::abs(&Tensor::new(x.clone())))?, dims, dtype)
        }
        Reduction::All | Reduction::Any => {
            reduce_real(fold, &no_grad(|| arithmetic::ne(&Tensor::new(x.clone()), 0.0))?, dims, dtype)
        }
        Reduction::Prod => product(x, dims),
        _ => {
            let kernel = match (fold, dims.len() == x.layout.ndim()) {
                (Reduction::Max, true) => "max_all",
                (Reduction::Min, true) => "min_all",
                (Reduction::Max, false) => "max_values_cpu",
                _ => "min_values_cpu",
            };
            crate::operator::pointwise::dtype_checks::order(kernel, x.dtype)?;
            reduce_real(fold, &x.as_parts(), dims, dtype)
        }
    }
}

/// The product over `dims`, which are joined into one. The CPU takes the last cumulative product, a GPU multiplies halves.
fn product(x: &Body, dims: &[usize]) -> Result<Body> {
    let kept = kept_shape(x.shape(), dims);
    let count: usize = dims.iter().map(|&d| x.shape()[d]).product();
    if count == 0 || kept.contains(&0) {
        return crate::operator::bodies::filled(&kept, Scalar::Int(1), x.dtype, x.device());
    }
    no_grad(|| {
        let mut order: crate::operator::Ints =
            (0..x.layout.ndim()).filter(|d| !dims.contains(d)).map(|d| d as i64).collect();
        order.extend(dims.iter().map(|&d| d as i64));
        let last = view::permute(&Tensor::new(x.clone()), order)?;
        let rows = views::reshape(&last, &[kept.iter().product(), count])?;
        let product = if x.device().is_cpu() {
            let running = crate::ops::reduction::scan::Cumprod::call(&rows, 1)?;
            copies::clone_dense(&select(&running, 1, count as i64 - 1)?)?
        } else {
            by_halves(rows, count as i64)?
        };
        views::reshape(&product, &kept)
    })
}

/// The product along the second of two dimensions: the halves are multiplied until one column is left.
fn by_halves(mut rows: Tensor, mut count: i64) -> Result<Tensor> {
    let part = |t: &Tensor, start: i64, length: i64| slices::narrow(t, 1, start, length);
    while count > 1 {
        let half = count / 2;
        let product = arithmetic::mul(&part(&rows, 0, half)?, &part(&rows, half, half)?)?;
        rows = if count % 2 == 0 {
            product
        } else {
            crate::ops::shape::join::cat(&[product, part(&rows, count - 1, 1)?], 1)?
        };
        count -= half;
    }
    select(&rows, 1, 0)
}

/// The cumulative product. Each step doubles the number of factors in each element.
pub fn running_product(x: &Tensor, dim: i64) -> Result<Tensor> {
    let (mut products, mut reach) = (copies::clone_dense(x)?, 1);
    let count = x.shape().get(wrap_dim(dim, x.ndim())?).map_or(1, |&n| n as i64);
    let part = |t: &Tensor, start: i64, length: i64| slices::narrow(t, dim, start, length);
    while reach < count {
        let longer =
            arithmetic::mul(&part(&products, reach, count - reach)?, &part(&products, 0, count - reach)?)?;
        products = crate::ops::shape::join::cat(&[part(&products, 0, reach)?, longer], dim)?;
        reach *= 2;
    }
    Ok(products)
}

/// The mean over `dims`, which are kept with size 1.
pub fn mean(x: &Body, dims: &[usize], mean: impl FnOnce(&Body, &[usize]) -> Result<Body>) -> Result<Body> {
    mean(&x.as_parts(), dims).map(of_pairs)
}

/// The variance of complex numbers is the sum of the variances of the parts.
pub fn variance(parts: Body, root: bool) -> Result<Body> {
    let last = parts.layout.ndim() - 1;
    let sum = drop_dims(reduce_real(Reduction::Sum, &parts, &[last], parts.dtype)?, &[last]);
    if root { no_grad(|| unary::sqrt(&Tensor::new(sum))) } else { Ok(sum) }
}

/// The gradient of a product with `factor`.
pub fn scale(grad: V, factor: Scalar) -> V {
    if factor.is_one() { grad } else { grad * V::Scalar(factor.conj()) }
}
