//! Products composed of other products: chains of matrices, Kronecker, cross, outer and bilinear products.

use crate::base::{Dims, broadcast, warn_once};
use crate::operator::bodies::fill;
use crate::operator::primitives::constant::zeros;
use crate::operator::primitives::copies::{clone_dense, clone_preserved};
use crate::operator::primitives::views::{ints, reshape, reshaped, unsafe_view};
use crate::ops::complex::Vdot;
use crate::ops::elementwise::arithmetic as a;
use crate::ops::linalg::matmul::{bmm, dot, matmul, product};
use crate::ops::prelude::*;
use crate::ops::reduction::reduce::no_grad;
use crate::ops::shape::rearrange::roll;
use crate::ops::shape::squeeze::{squeeze, unsqueeze};
use crate::ops::shape::view::{expand, transpose};
use std::sync::atomic::AtomicBool;

#[primitive(tangent = multilinear)]
impl LinalgCross {
    fn forward(input: &Tensor, other: &Tensor, dim: i64) -> Result<Body> {
        no_grad(|| cross_with_signs(input, other, dim))
    }
    fn d_input(g: V, other: V, dim: i64) -> V {
        other.conj().with(g, |o, g| LinalgCross::call(o, g, dim))
    }
    fn d_other(g: V, input: V, dim: i64) -> V {
        g.with(input.conj(), |g, x| LinalgCross::call(g, x, dim))
    }
    fn batch(_b: &Batch, input: &Tensor, other: &Tensor, dim: i64) -> Result<Tensor> {
        cross_with_signs(input, other, dim)
    }
}

fn cross_with_signs(input: &Tensor, other: &Tensor, dim: i64) -> Result<Tensor> {
    let shape = broadcast(&input.shape(), &other.shape())?;
    let (x, y) = (expand(input, ints(&shape))?, expand(other, ints(&shape))?);
    let turn = |t: &Tensor, by: i64| roll(t, smallvec::smallvec![by], Some(smallvec::smallvec![dim]));
    a::sub(&a::mul(&turn(&x, -1)?, &turn(&y, -2)?)?, &a::mul(&turn(&x, -2)?, &turn(&y, -1)?)?)
}

/// Compute the dot product of two vectors, with the first one conjugated if it is complex.
///
/// Args:
///     input: first vector.
///     other: second vector, of the same length.
///
/// Examples:
///     >>> torch.vdot(torch.tensor([1 + 1j, 2j]), torch.tensor([1j, 2.0 + 0j]))
///     tensor(1.-3.j)
#[operator(
    function,
    method,
    out(message = "result dtype {target} does not match input dtype {result}", early),
    sample = "product(name, lambda i, j, k, b: [(i,), (i,)])"
)]
pub fn vdot(input: &Tensor, other: &Tensor) -> Result<Tensor> {
    let complex = input.dtype().is_complex() && input.dtype() == other.dtype();
    let real =
        input.dtype().is_float() && input.dtype() == other.dtype() && (input.ndim(), other.ndim()) == (1, 1);
    if complex || real { Vdot::call(input, other) } else { dot(input, other) }
}

/// Compute the Kronecker product: each element of `input` times the whole of `other`, as blocks.
///
/// Args:
///     input: first factor.
///     other: second factor.
///
/// Examples:
///     >>> torch.kron(torch.tensor([[1, 2]]), torch.tensor([[1, 1], [1, 1]]))
///     tensor([[1, 1, 2, 2],
///             [1, 1, 2, 2]])
#[operator(
    function,
    method,
    out(called = "mul"),
    sample = "product(name, lambda i, j, k, b: [(i, j), (k,)])"
)]
pub fn kron(input: &Tensor, other: &Tensor) -> Result<Tensor> {
    let n = input.ndim().max(other.ndim());
    let padded = |t: &Tensor| {
        let mut shape: Dims = smallvec::smallvec![1; n - t.ndim()];
        shape.extend(t.shape());
        shape
    };
    let (sa, sb) = (padded(input), padded(other));
    let (mut wide_a, mut wide_b, mut shape) = (Dims::new(), Dims::new(), Dims::new());
    for d in 0..n {
        wide_a.extend([sa[d], 1]);
        wide_b.extend([1, sb[d]]);
        shape.push(sa[d] * sb[d]);
    }
    let wide = |t: &Tensor, shape: Dims| {
        let dense = t.body().layout.is_contiguous();
        if dense { unsafe_view(t, shape) } else { reshape(t, &shape) }
    };
    // The product with a transposed matrix has a transposed layout.
    wide(&a::mul(&wide(input, wide_a)?, &wide(other, wide_b)?)?, shape)
}

/// Raise square matrices to an integer power; the same as `torch.linalg.matrix_power`.
///
/// Args:
///     input: square matrix or batch of square matrices.
///     n: the exponent; negative ones raise the inverse.
///
/// Examples:
///     >>> torch.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 3)
///     tensor([[1., 3.],
///             [0., 1.]])
#[operator(
    function,
    method,
    out(declared),
    composite,
    sample = "shaped(lambda draw, shape: (lambda n: lambda x: x.matrix_power(n))(draw(st.integers(2, 4))), st.just((2, 3, 3)))"
)]
pub fn matrix_power(input: &Tensor, n: i64) -> Result<Tensor> {
    super::factors::check_square("linalg.matrix_power", input)?;
    if n < 0 {
        let back = n
            .checked_neg()
            .ok_or_else(|| Error::runtime("linalg.matrix_power: the exponent is too small"))?;
        return matrix_power(&super::solve::linalg_inv(input)?, back);
    }
    let shape = input.shape();
    let k = shape.len();
    if n == 0 {
        let eye = zeros(&[shape[k - 1]; 2], input.dtype(), input.device())?;
        let line = eye.body().layout.diagonal(0, 0, 1)?;
        fill(&eye.body().with_layout(line), Scalar::Int(1))?;
        // The result is in the graph; its gradient is zero.
        let made = clone_dense(input)?;
        crate::operator::inplace::copy_into(&made, &eye)?;
        return Ok(made);
    }
    if n == 1 {
        return clone_preserved(input);
    }
    let (mut result, mut square, mut left): (Option<Tensor>, _, _) = (None, input.clone(), n);
    loop {
        if left & 1 == 1 {
            result = Some(match result {
                Some(r) => product(&r, &square)?,
                None => square.clone(),
            });
        }
        left >>= 1;
        match (left, result) {
            (0, Some(result)) => return Ok(result),
            (_, r) => result = r,
        }
        square = product(&square, &square)?;
    }
}

/// Multiply a chain of matrices in the cheapest order; `torch.linalg.multi_dot` is the newer form.
///
/// Args:
///     matrices: the matrices, one by one.
///
/// Examples:
///     >>> torch.chain_matmul(torch.ones(2, 3), torch.ones(3, 4), torch.ones(4, 1))
///     tensor([[12.],
///             [12.]])
#[operator(function, out(declared), autocast = lower, sample = "fixed([(2, 3), (3, 4), (4, 2)], unwarned(named(name)))")]
pub fn chain_matmul(matrices: Several) -> Result<Tensor> {
    static TOLD: AtomicBool = AtomicBool::new(false);
    warn_once(
        &TOLD,
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot \
         instead, which accepts a list of two or more tensors rather than multiple parameters.",
    )?;
    let mut chain = matrices.0;
    if let Some(t) = chain.iter().find(|t| t.ndim() != 2) {
        return Err(Error::runtime(format!("Tensor dimension is {}, expected 2 instead.", t.ndim())));
    }
    match chain.as_slice() {
        [] => return Err(Error::runtime("chain_matmul(): Expected one or more matrices")),
        [only] => return clone_preserved(only),
        _ => {}
    }
    while chain.len() > 1 {
        // The pair with the largest shared dimension goes first; of equal ones, the leftmost.
        let shared = |i: usize| chain[i].shape().last().copied().unwrap_or(0);
        let at = (0..chain.len() - 1).rev().max_by_key(|&i| shared(i)).unwrap_or(0);
        let pair = matmul(&chain[at], &chain[at + 1])?;
        chain.remove(at + 1);
        chain[at] = pair;
    }
    let product = chain.swap_remove(0);
    reshaped(&product, &product.shape())
}

/// Rejects booleans, and operands with different dtypes.
pub fn check_cross(input: &Tensor, other: &Tensor) -> Result<()> {
    let (dtype, found) = (input.dtype(), other.dtype());
    if dtype == DType::Bool {
        return Err(Fault::NoKernel { op: "cross", dtype }.into());
    }
    if dtype == found {
        return Ok(());
    }
    let (dtype, found) = (dtype.scalar_name(), found.scalar_name());
    Err(Error::runtime(format!("expected scalar type {dtype} but found {found}")))
}

/// Compute the cross product of vectors with three elements.
///
/// Args:
///     dim: dimension of the vectors; the first one of size 3 if not given.
///
/// Examples:
///     >>> torch.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]), dim=-1)
///     tensor([0., 0., 1.])
#[operator(
    function,
    method,
    out(declared, early, called = "linalg_cross"),
    sample = "fixed([(2, 3), (1, 3)], lambda a, b: T.cross(a, b, dim=1))"
)]
pub fn cross(input: &Tensor, other: &Tensor, dim: Option<i64>) -> Result<Tensor> {
    if input.ndim() != other.ndim() {
        return Err(Error::runtime("linalg.cross: inputs must have the same number of dimensions."));
    }
    let shape = broadcast(&input.shape(), &other.shape())?;
    let dim = match dim {
        Some(dim) => wrap_dim(dim, shape.len())?,
        None => {
            static TOLD: AtomicBool = AtomicBool::new(false);
            warn_once(
                &TOLD,
                "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass the dim explicitly or \
                 simply use torch.linalg.cross.\nThe default value of dim will change to agree with that of linalg.cross in \
                 a future release.",
            )?;
            shape
                .iter()
                .position(|&n| n == 3)
                .ok_or_else(|| Error::runtime("no dimension of size 3 in input"))?
        }
    };
    if shape.get(dim) != Some(&3) {
        return Err(Error::runtime(format!(
            "linalg.cross: inputs dimension {dim} must have length 3. Got {} and {}",
            input.shape().get(dim).copied().unwrap_or(1),
            other.shape().get(dim).copied().unwrap_or(1)
        )));
    }
    check_cross(input, other)?;
    LinalgCross::call(input, other, dim as i64)
}

/// Rejects operands of `bilinear` that do not fit together.
fn check_bilinear(input1: &Tensor, input2: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<()> {
    let refuse = |text: String| Err(Error::runtime(text));
    let named = [("input1", input1), ("input2", input2), ("weight", weight)];
    let named = || named.into_iter().chain(bias.map(|bias| ("bias", bias)));
    if named().any(|(_, t)| t.dtype() != input1.dtype()) {
        let dtypes: Vec<String> =
            named().map(|(name, t)| format!("{name}: {}", t.dtype().c_name())).collect();
        return refuse(format!("All tensors must have the same dtype, got {}", dtypes.join(", ")));
    }
    let (s1, s2, w) = (input1.shape(), input2.shape(), weight.shape());
    if s1.len() != s2.len() {
        return refuse(format!(
            "bilinear(): input dimensions do not match: got {} and {}",
            s1.len(),
            s2.len()
        ));
    }
    let Some(last) = s1.len().checked_sub(1) else {
        return Err(Error::index("Dimension specified as -1 but tensor has no dimensions"));
    };
    if let Some(dim) = (0..last).find(|&dim| s1[dim] != s2[dim]) {
        return refuse(format!(
            "bilinear(): input batch dimensions do not match at dim {dim}: got {} and {}",
            s1[dim], s2[dim]
        ));
    }
    if w.len() != 3 {
        return refuse(format!("bilinear(): weight must have 3 dimensions, got {}", w.len()));
    }
    for (name, have, want) in [("input1", s1[last], w[1]), ("input2", s2[last], w[2])] {
        if have != want {
            return refuse(format!(
                "bilinear(): {name} size does not match weight size: got {have} but expected {want}"
            ));
        }
    }
    match bias.map(|bias| bias.shape()) {
        Some(shape) if shape.first() != Some(&w[0]) => refuse(format!(
            "bilinear(): bias size does not match weight size: got {} but expected {}",
            shape.first().copied().unwrap_or(1),
            w[0]
        )),
        _ => Ok(()),
    }
}

/// Apply a bilinear map: `out[k] = input1 @ weight[k] @ input2 + bias[k]`.
///
/// Args:
///     input1: first input, `(*, in1_features)`.
///     input2: second input, `(*, in2_features)`.
///     weight: matrices of the map, `(out_features, in1_features, in2_features)`.
///     bias: vector to add, `(out_features,)`.
///
/// Examples:
///     >>> F.bilinear(torch.ones(8, 2), torch.ones(8, 3), torch.ones(4, 2, 3)).shape
///     torch.Size([8, 4])
#[operator(nn, sample = "fixed([(4, 2), (4, 3), (2, 2, 3), (2,)], lambda *xs: F.bilinear(*xs))")]
pub fn bilinear(input1: &Tensor, input2: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    check_bilinear(input1, input2, weight, bias)?;
    let (s1, w) = (input1.shape(), weight.shape());
    let rows: usize = s1[..s1.len() - 1].iter().product();
    let (x, y) = (reshape(input1, &[rows, w[1]])?, reshape(input2, &[rows, w[2]])?);
    // One product for each output feature, so that no derivative is a single long sum over the features, too.
    let halves = bmm(&expand(&unsqueeze(&x, 0)?, ints(&[w[0], rows, w[1]]))?, weight)?;
    let out = squeeze(&bmm(&transpose(&halves, 0, 1)?, &unsqueeze(&y, 2)?)?, Some(smallvec::smallvec![2]))?;
    let mut shape = Dims::from_slice(&s1[..s1.len() - 1]);
    shape.push(w[0]);
    let out = reshape(&out, &shape)?;
    match bias {
        Some(bias) => a::add(&out, bias),
        None => Ok(out),
    }
}
