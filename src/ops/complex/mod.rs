//! Complex numbers: made of their parts and taken apart, as views and as copies, and the reductions and products whose
//! kernels run over the parts.

use crate::base::views::dense_like;
use crate::base::{Fold, broadcast};
use crate::operator::kernel::{copy, drop_dims, kept_shape, parts, reduce as reduce_real, with_shape};
use crate::operator::prelude::*;
use crate::ops::elementwise::{arithmetic, formula, unary};
use crate::ops::reduction::reduce::quietly;
use crate::ops::shape::view;
use crate::ops::shape::view::{expand, ints, select};

/// A body of parts, [.., 2] and dense, as the complex numbers that they are.
fn joined(parts: Body) -> Body {
    let mut shape = Dims::from_slice(parts.shape());
    shape.pop();
    let dtype = parts.dtype.to_complex();
    Body { layout: Layout::contiguous(&shape), dtype, ..parts }
}

/// The layout of complex numbers over these parts, where they lie in pairs.
fn over_pairs(parts: &Body) -> Result<Layout> {
    if parts.dtype.is_complex() {
        return Err(Error::type_error("view_as_complex is not supported for complex tensors"));
    }
    if !matches!(parts.dtype, DType::F32 | DType::F64) {
        return Err(Error::not_implemented(format!(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: {}",
            parts.dtype.scalar_name()
        )));
    }
    let mut layout = parts.layout.clone();
    let (Some(size), Some(step)) = (layout.shape.pop(), layout.strides.pop()) else {
        return Err(Error::runtime("Input tensor must have one or more dimensions"));
    };
    if size != 2 {
        return Err(Error::runtime("Tensor must have a last dimension of size 2"));
    }
    if step != 1 {
        return Err(Error::runtime("Tensor must have a last dimension with stride 1"));
    }
    if layout.strides.iter().zip(&layout.shape).any(|(s, &n)| s % 2 != 0 && n != 1) {
        return Err(Error::runtime("Tensor must have a stride divisible by 2 for all but last dimension"));
    }
    if !layout.offset.is_multiple_of(2) {
        return Err(Error::runtime("Tensor must have a storage_offset divisible by 2"));
    }
    layout.strides.iter_mut().for_each(|s| *s /= 2);
    layout.offset /= 2;
    Ok(layout)
}

#[primitive(copy, tangent = linear, batch = pointwise)]
impl ViewAsReal {
    fn forward(input: &Tensor) -> Result<(Layout, DType)> {
        let body = input.body();
        if !body.dtype.is_complex() {
            return Err(Error::type_error("view_as_real is only supported for complex tensors"));
        }
        if body.conj_neg.has(ConjNeg::CONJ) {
            return Err(Error::runtime(
                "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can view \
                 it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the original.",
            ));
        }
        Ok((body.layout.as_parts(), body.dtype.to_real()))
    }
    fn d_input(g: &Tensor) -> Result<Tensor> {
        view_as_complex(&dense(g)?)
    }
}

#[primitive(tangent = linear, batch = pointwise)]
impl ViewAsComplex {
    fn forward(input: &Tensor) -> Result<(Layout, DType)> {
        let body = input.body();
        Ok((over_pairs(&body)?, body.dtype.to_complex()))
    }
    fn d_input(g: &Tensor) -> Result<Tensor> {
        view_as_real(&resolve_conj(g)?)
    }
}

/// Conjugates of complex elements, made when they are read (a view).
#[primitive(tangent = linear, batch = pointwise)]
impl Conj {
    fn forward(input: &Tensor) -> Result<ConjNeg> {
        let _ = input;
        Ok(ConjNeg::CONJ)
    }
    fn d_input(g: Tensor) -> Result<Tensor> {
        conjugate_gradient(g)
    }
}

/// Opposites of elements, made when they are read (a view).
#[primitive(copy, tangent = linear, batch = pointwise)]
impl NegView {
    fn forward(input: &Tensor) -> Result<ConjNeg> {
        let _ = input;
        Ok(ConjNeg::NEG)
    }
    fn d_input(g: V) -> V {
        -g
    }
}

/// Samples of parts that broadcast against each other, made one.
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
        let re = quietly(|| arithmetic::mul(abs, &unary::cos(angle)?))?;
        let im = quietly(|| arithmetic::mul(abs, &unary::sin(angle)?))?;
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

/// Inner product of two vectors, the first one conjugated.
#[primitive]
impl Vdot {
    fn forward(input: &Tensor, other: &Tensor) -> Result<Body> {
        quietly(|| crate::ops::linalg::matmul::dot(&conj(input)?, other))
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
        crate::ops::reduction::reduce::Sum1::call(&product, smallvec::smallvec![-1], false).map(|t| b.wrap(t))
    }
}

/// Of a conjugate, parts of what it is the conjugate of; the imaginary ones then count the other way round.
fn part(t: &Tensor, which: i64) -> Result<Tensor> {
    if !t.body().conj_neg.has(ConjNeg::CONJ) {
        return select(&view_as_real(t)?, t.ndim() as i64, which);
    }
    let parts = view_as_real(&Conj::call(t)?)?;
    let parts = if which == 1 { NegView::call(&parts)? } else { parts };
    select(&parts, t.ndim() as i64, which)
}

fn dense(t: &Tensor) -> Result<Tensor> {
    let body = t.body();
    let paired = body.layout.strides.last() == Some(&1);
    let ready = paired && body.layout.is_contiguous() && !body.conj_neg.has(ConjNeg::CONJ);
    if ready { Ok(t.clone()) } else { crate::ops::creation::create::clone_dense(t) }
}

/// A gradient that nobody differentiates again belongs to no base, so that a leaf may take it over as it is.
fn conjugate_gradient(g: Tensor) -> Result<Tensor> {
    if !g.dtype().is_complex() {
        return Ok(g);
    }
    if g.is_dual() || g.is_batched() || crate::tensor::mode::grad_enabled() {
        return Conj::call(&g);
    }
    let body = g.body();
    Ok(Tensor::new(Body { conj_neg: body.conj_neg.then(ConjNeg::CONJ), ..body.clone() }))
}

fn check_parts(real: &Body, imag: &Body) -> Result<()> {
    if real.dtype == DType::F16 && imag.dtype == DType::F16 {
        return Err(Error::not_implemented(
            "complex numbers of half precision are not supported: use float32",
        ));
    }
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

/// Complex numbers of these parts.
pub fn from_parts(real: &Body, imag: &Body) -> Result<Body> {
    check_parts(real, imag)?;
    let shape = broadcast(real.shape(), imag.shape())?;
    let mut out = Body::new(&shape, real.dtype.to_complex(), real.device())?;
    let like = &real.layout;
    if (&like.shape, &like.strides) == (&imag.layout.shape, &imag.layout.strides) {
        out.layout = dense_like(like);
    }
    for (to, from) in parts(&out)?.iter().zip([real, imag]) {
        copy(to, &from.with_layout(from.layout.broadcast_to(&shape)))?;
    }
    Ok(out)
}

/// Real and imaginary parts along a new last dimension (a view).
#[operator(function, sample = "pointwise(in_parts(lambda x: T.view_as_real(T.complex(x, x * 2))), 1, WIDE)")]
pub fn view_as_real(input: &Tensor) -> Result<Tensor> {
    ViewAsReal::call(input)
}

/// Pairs in the last dimension as complex numbers (a view).
#[operator(
    function,
    autocast = single,
    sample = "pointwise(in_parts(lambda x: T.view_as_complex(T.stack([x, x * x], -1)).abs()), 1, WIDE)"
)]
pub fn view_as_complex(input: &Tensor) -> Result<Tensor> {
    ViewAsComplex::call(input)
}

/// Complex numbers from their real and imaginary parts.
#[operator(
    function,
    out(message = "Expected object of scalar type {result} but got scalar type {target} for argument 'out'"),
    sample = "pointwise(in_parts(lambda x, y: T.view_as_real(T.complex(x, y))), 2, WIDE)"
)]
pub fn complex(real: &Tensor, imag: &Tensor) -> Result<Tensor> {
    Complex::call(real, imag)
}

/// Complex numbers from their magnitudes and angles.
#[operator(
    function,
    out(message = "Expected object of scalar type {result} but got scalar type {target} for argument 'out'"),
    autocast = single,
    sample = "pointwise(in_parts(lambda x, y: T.view_as_real(T.polar(x.abs() + 0.1, y))), 2, WIDE)"
)]
pub fn polar(abs: &Tensor, angle: &Tensor) -> Result<Tensor> {
    Polar::call(abs, angle)
}

/// The complex conjugate, computed; real numbers are their own.
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

/// The real part (a view); real tensors are their own.
#[operator(function, sample = "pointwise(in_parts(lambda x: T.real(T.complex(x * 2, x))), 1, WIDE)")]
pub fn real(input: &Tensor) -> Result<Tensor> {
    if input.dtype().is_complex() { part(input, 0) } else { Ok(input.clone()) }
}

/// The imaginary part (a view).
#[operator(function, sample = "pointwise(in_parts(lambda x: T.imag(T.complex(x, x * 2))), 1, WIDE)")]
pub fn imag(input: &Tensor) -> Result<Tensor> {
    if !input.dtype().is_complex() {
        return Err(Error::type_error("imag is not implemented for tensors with non-complex dtypes."));
    }
    part(input, 1)
}

/// The complex conjugate (a view, whose elements are conjugated when they are read); real tensors are their own.
#[operator(
    function,
    method,
    sample = "pointwise(in_parts(lambda x: T.view_as_real(T.complex(x, x * 2).conj().resolve_conj())), 1, WIDE)"
)]
pub fn conj(input: &Tensor) -> Result<Tensor> {
    if input.dtype().is_complex() { Conj::call(input) } else { Ok(input.clone()) }
}

/// The opposites (a view, whose elements are negated when they are read).
#[operator(function, sample = "pointwise(named(name), 1, WIDE)")]
pub fn _neg_view(input: &Tensor) -> Result<Tensor> {
    NegView::call(input)
}

/// A copy only where there is something to do.
fn without(t: &Tensor, part: ConjNeg) -> Result<Tensor> {
    if t.body().conj_neg.has(part) {
        crate::ops::shape::rearrange::clone_as_it_lies(t)
    } else {
        Ok(t.clone())
    }
}

/// A copy with the values of a conjugate that is still to be computed; any other tensor itself.
#[operator(function, method, sample = "pointwise(named(name), 1, WIDE)")]
pub fn resolve_conj(input: &Tensor) -> Result<Tensor> {
    without(input, ConjNeg::CONJ)
}

/// A copy with the values of an opposite that is still to be computed; any other tensor itself.
#[operator(function, method, sample = "pointwise(named(name), 1, WIDE)")]
pub fn resolve_neg(input: &Tensor) -> Result<Tensor> {
    without(input, ConjNeg::NEG)
}

/// Whether the tensor is a conjugate that is still to be computed.
#[operator(function, method, unrecorded)]
pub fn is_conj(input: &Tensor) -> Result<bool> {
    Ok(input.body().conj_neg.has(ConjNeg::CONJ))
}

/// Whether the tensor is an opposite that is still to be computed.
#[operator(function, method, unrecorded)]
pub fn is_neg(input: &Tensor) -> Result<bool> {
    Ok(input.body().conj_neg.has(ConjNeg::NEG))
}

/// Whether the dtype is a complex one.
#[operator(method, unrecorded)]
pub fn is_complex(input: &Tensor) -> Result<bool> {
    Ok(input.dtype().is_complex())
}

/// Reduces over `dims`, keeping them as 1: complex sums are those of the parts.
pub fn reduce(fold: Fold, x: &Body, dims: &[usize], dtype: DType) -> Result<Body> {
    if !x.dtype.is_complex() {
        return reduce_real(fold, x, dims, dtype);
    }
    let real = x.dtype.to_real();
    match fold {
        Fold::Sum if dims.len() == x.layout.ndim() && x.numel() >= 4096 && x.layout.is_contiguous() => {
            sum_of_row(x).map(|sum| with_shape(sum, &kept_shape(x.shape(), dims)))
        }
        Fold::Sum => reduce_real(fold, &x.as_parts(), dims, real).map(joined),
        Fold::SumSq => {
            let last = x.layout.ndim();
            let mut all = Dims::from_slice(dims);
            all.push(last);
            reduce_real(fold, &x.as_parts(), &all, dtype).map(|body| drop_dims(body, &[last]))
        }
        Fold::SumAbs => {
            reduce_real(Fold::Sum, &quietly(|| unary::abs(&Tensor::new(x.clone())))?, dims, dtype)
        }
        Fold::All | Fold::Any => {
            reduce_real(fold, &quietly(|| arithmetic::ne(&Tensor::new(x.clone()), 0.0))?, dims, dtype)
        }
        Fold::Prod => product(x, dims),
        _ => {
            let kernel = match (fold, dims.len() == x.layout.ndim()) {
                (Fold::Max, true) => "max_all",
                (Fold::Min, true) => "min_all",
                (Fold::Max, false) => "max_values_cpu",
                _ => "min_values_cpu",
            };
            crate::operator::dtype_checks::order(kernel, x.dtype)?;
            reduce_real(fold, &x.as_parts(), dims, dtype)
        }
    }
}

/// The sum of many numbers in a row: in columns that are wide enough for the kernel of real numbers.
fn sum_of_row(x: &Body) -> Result<Body> {
    const WIDE: usize = 64;
    let parts = x.as_parts();
    let piece = |start: usize, rows: usize, columns: usize| {
        let layout = Layout::contiguous(&[rows, columns]);
        parts.with_layout(Layout { offset: parts.layout.offset + start, ..layout })
    };
    let (rows, rest) = (x.numel() / WIDE, x.numel() % WIDE);
    let columns = reduce_real(Fold::Sum, &piece(0, rows, 2 * WIDE), &[0], parts.dtype)?;
    let mut sum = reduce_real(Fold::Sum, &with_shape(columns, &[WIDE, 2]), &[0], parts.dtype)?;
    if rest > 0 {
        let tail = reduce_real(Fold::Sum, &piece(2 * rows * WIDE, rest, 2), &[0], parts.dtype)?;
        sum = quietly(|| arithmetic::add(&Tensor::new(sum), &Tensor::new(tail)))?;
    }
    Ok(joined(sum))
}

/// The last of the running products over the reduced dimensions, joined into one.
fn product(x: &Body, dims: &[usize]) -> Result<Body> {
    let kept = kept_shape(x.shape(), dims);
    let count: usize = dims.iter().map(|&d| x.shape()[d]).product();
    if count == 0 || kept.contains(&0) {
        return crate::operator::kernel::filled(&kept, Scalar::Int(1), x.dtype, x.device());
    }
    quietly(|| {
        let mut order: crate::operator::Ints =
            (0..x.layout.ndim()).filter(|d| !dims.contains(d)).map(|d| d as i64).collect();
        order.extend(dims.iter().map(|&d| d as i64));
        let last = view::permute(&Tensor::new(x.clone()), order)?;
        let rows = view::reshape(&last, &[kept.iter().product(), count])?;
        let product = if x.device().is_cpu() {
            let running = crate::ops::reduction::scan::Cumprod::call(&rows, 1)?;
            crate::ops::creation::create::clone_dense(&select(&running, 1, count as i64 - 1)?)?
        } else {
            by_halves(rows, count as i64)?
        };
        view::reshape(&product, &kept)
    })
}

/// The product along the second of two dimensions, whose halves are multiplied until one column is left.
fn by_halves(mut rows: Tensor, mut count: i64) -> Result<Tensor> {
    let part = |t: &Tensor, start: i64, length: i64| view::narrow(t, 1, start, length);
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

/// The products of the elements up to each: after every step those of twice as many.
pub fn running_product(x: &Tensor, dim: i64) -> Result<Tensor> {
    let (mut products, mut reach) = (crate::ops::creation::create::clone_dense(x)?, 1);
    let count = x.shape().get(wrap_dim(dim, x.ndim())?).map_or(1, |&n| n as i64);
    let part = |t: &Tensor, start: i64, length: i64| view::narrow(t, dim, start, length);
    while reach < count {
        let longer =
            arithmetic::mul(&part(&products, reach, count - reach)?, &part(&products, 0, count - reach)?)?;
        products = crate::ops::shape::join::cat(&[part(&products, 0, reach)?, longer], dim)?;
        reach *= 2;
    }
    Ok(products)
}

/// The mean over `dims`, kept as 1.
pub fn mean(x: &Body, dims: &[usize], mean: impl FnOnce(&Body, &[usize]) -> Result<Body>) -> Result<Body> {
    mean(&x.as_parts(), dims).map(joined)
}

/// The variance of complex numbers is the sum of their parts' variances.
pub fn variance(spread: Body, root: bool) -> Result<Body> {
    let last = spread.layout.ndim() - 1;
    let sum = drop_dims(reduce_real(Fold::Sum, &spread, &[last], spread.dtype)?, &[last]);
    if root { quietly(|| unary::sqrt(&Tensor::new(sum))) } else { Ok(sum) }
}

/// The same bytes with the other kind of elements, for what a view shows of its base: parts of complex
/// numbers, or complex numbers of all parts in a row.
pub fn seen_as(t: &Tensor, dtype: DType) -> Result<Tensor> {
    match (t.dtype() == dtype, dtype.is_complex()) {
        (true, _) => Ok(t.clone()),
        (false, false) => view_as_real(&dense(t)?),
        (false, true) => {
            let flat = view::reshape(&dense(t)?, &[t.numel() / 2, 2])?;
            view_as_complex(&flat)
        }
    }
}

/// A gradient by way of a factor: times its conjugate, unless that is 1.
pub fn scaled(grad: V, factor: Scalar) -> V {
    if factor.is_one() { grad } else { grad * V::Scalar(factor.conj()) }
}
