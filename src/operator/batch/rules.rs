//! The batching rules that primitives name. With the batch dimensions in front, a rule says which call on the
//! whole tensor does the same as the calls on the examples.

use crate::base::{Dims, Error, Result, try_alloc};
use crate::operator::Ints;
use crate::operator::batch::Batch;
use crate::operator::call::Call;
use crate::operator::call::results::Tensors;
use crate::operator::primitives::copies::clone_dense;
use crate::operator::primitives::join;
use crate::operator::primitives::view_part::Select;
use crate::operator::primitives::views::{Squeeze1, Unsqueeze, reshape};
use crate::tensor::Tensor;

#[cold]
pub fn no_rule(node: &str) -> Error {
    Error::not_implemented(format!("vmap: {node} has no batching rule"))
}

/// An operand's physical tensor, with the batch dimensions of all levels in front.
pub trait ToPhysical {
    type Own;
    fn full(self, b: &Batch) -> Result<Self::Own>;
}
impl ToPhysical for &Tensor {
    type Own = Tensor;
    fn full(self, b: &Batch) -> Result<Tensor> {
        b.full(self)
    }
}
impl ToPhysical for Option<&Tensor> {
    type Own = Option<Tensor>;
    fn full(self, b: &Batch) -> Result<Option<Tensor>> {
        self.map(|t| b.full(t)).transpose()
    }
}
impl ToPhysical for &[Tensor] {
    type Own = Vec<Tensor>;
    fn full(self, b: &Batch) -> Result<Vec<Tensor>> {
        self.iter().map(|t| b.full(t)).collect()
    }
}
impl ToPhysical for &[Option<Tensor>] {
    type Own = Vec<Option<Tensor>>;
    fn full(self, b: &Batch) -> Result<Vec<Option<Tensor>>> {
        self.iter().map(|t| t.as_ref().map(|t| b.full(t)).transpose()).collect()
    }
}

/// The results of a call on physical tensors, wrapped as batched tensors.
pub trait WrapResults: Sized {
    fn each(self, f: &dyn Fn(Tensor) -> Result<Tensor>) -> Result<Self>;
    fn wrap(self, b: &Batch) -> Result<Self> {
        self.each(&|t| Ok(b.wrap(t)))
    }
}
impl WrapResults for Tensor {
    fn each(self, f: &dyn Fn(Tensor) -> Result<Tensor>) -> Result<Self> {
        f(self)
    }
}
impl<const N: usize> WrapResults for [Tensor; N] {
    fn each(self, f: &dyn Fn(Tensor) -> Result<Tensor>) -> Result<Self> {
        let made: Result<Vec<Tensor>> = self.into_iter().map(f).collect();
        made?.try_into().map_err(|_| Error::runtime("a batching rule returned the wrong number of results"))
    }
}
impl WrapResults for Vec<Tensor> {
    fn each(self, f: &dyn Fn(Tensor) -> Result<Tensor>) -> Result<Self> {
        self.into_iter().map(f).collect()
    }
}

/// Copies views of examples into memory of their own.
pub fn dense<R: WrapResults>(views: R) -> Result<R> {
    views.each(&|t| clone_dense(&t))
}

/// For operators that treat elements independently of their position; all operands have one shape.
pub fn pointwise<R: WrapResults, A>(
    b: &Batch,
    x: &Tensor,
    arguments: A,
    op: impl FnOnce(&Tensor, A) -> Result<R>,
) -> Result<R> {
    op(x, arguments)?.wrap(b)
}

/// For operators over the last dimensions, which more dimensions in front do not change.
pub fn in_front<R: WrapResults>(
    b: &Batch,
    x: &Tensor,
    (): (),
    op: impl FnOnce(&Tensor, ()) -> Result<R>,
) -> Result<R> {
    op(x, ())?.wrap(b)
}

/// Arguments with a dimension, and perhaps `keepdim`.
pub trait DimArgs: Sized {
    fn dim(&self) -> i64;
    fn at(self, dim: i64, real: bool) -> Self;
    fn keeps(&self) -> bool;
}
impl DimArgs for (i64,) {
    fn dim(&self) -> i64 {
        self.0
    }
    fn at(self, dim: i64, _: bool) -> Self {
        (dim,)
    }
    fn keeps(&self) -> bool {
        true
    }
}
impl DimArgs for (i64, bool) {
    fn dim(&self) -> i64 {
        self.0
    }
    fn at(self, dim: i64, real: bool) -> Self {
        (dim, self.1 && real)
    }
    fn keeps(&self) -> bool {
        false
    }
}

/// For operators along one dimension, which is shifted by the batch dimensions. 0-d examples are taken as
/// vectors of length 1.
pub fn along<R: WrapResults, L: DimArgs>(
    b: &Batch,
    x: &Tensor,
    line: L,
    op: impl FnOnce(&Tensor, L) -> Result<R>,
) -> Result<R> {
    let rank = b.rank(x);
    let at = b.dim(line.dim(), rank)?;
    if rank > 0 {
        return op(x, line.at(at, true))?.wrap(b);
    }
    let keeps = line.keeps();
    let made = op(&Unsqueeze::call(x, -1)?, line.at(at, false))?;
    if keeps { made.each(&|t| Squeeze1::call(&t, -1))?.wrap(b) } else { made.wrap(b) }
}

/// The dimensions of a reduction.
pub trait ReducedDims: Sized {
    fn seen(&self) -> Option<&[i64]>;
    fn of(dims: Ints) -> Self;
}
impl ReducedDims for Ints {
    fn seen(&self) -> Option<&[i64]> {
        Some(self)
    }
    fn of(dims: Ints) -> Self {
        dims
    }
}
impl ReducedDims for Option<Ints> {
    fn seen(&self) -> Option<&[i64]> {
        self.as_deref()
    }
    fn of(dims: Ints) -> Self {
        Some(dims)
    }
}

/// For reductions over several dimensions, or all, with `keepdim`.
pub fn over<R: WrapResults, D: ReducedDims>(
    b: &Batch,
    x: &Tensor,
    (dims, keepdim): (D, bool),
    op: impl FnOnce(&Tensor, (D, bool)) -> Result<R>,
) -> Result<R> {
    let rank = b.rank(x);
    let seen = crate::base::dims_or_all(dims.seen(), rank)?;
    if rank == 0 {
        let dims = D::of(smallvec::smallvec![b.k() as i64]);
        return op(&Unsqueeze::call(x, -1)?, (dims, false))?.wrap(b);
    }
    let dims = seen.iter().map(|&d| (d + b.k()) as i64).collect();
    op(x, (D::of(dims), keepdim))?.wrap(b)
}

/// All visible elements as one dimension, the last.
pub fn line(b: &Batch, x: &Tensor) -> Result<Tensor> {
    reshape(x, &b.shape(&[x.shape()[b.k()..].iter().product()]))
}

/// Merges the batch into the first dimension, which the operator treats as a batch anyway: convolutions,
/// pools.
pub fn merged<R: WrapResults>(
    b: &Batch,
    x: &Tensor,
    (): (),
    op: impl FnOnce(&Tensor, ()) -> Result<R>,
) -> Result<R> {
    let (shape, k) = (x.shape(), b.k());
    let first = *shape
        .get(k)
        .ok_or_else(|| Error::runtime("vmap: the operator needs examples with at least one dimension"))?;
    let mut flat: Dims = smallvec::smallvec![b.sizes.iter().product::<usize>() * first];
    flat.extend_from_slice(&shape[k + 1..]);
    let made = op(&reshape(x, &flat)?, ())?;
    let count: usize = b.sizes.iter().product();
    made.each(&|t| {
        let own = t.shape();
        let mut wide = b.sizes.clone();
        wide.push(own[0] / count.max(1));
        wide.extend_from_slice(&own[1..]);
        reshape(&t, &wide)
    })?
    .wrap(b)
}

/// Stacks the results of the calls on single examples.
pub trait StackResults: Sized {
    fn of(made: Tensors) -> Result<Self>;
    fn list(self) -> Vec<Tensor>;
}
impl StackResults for Tensor {
    fn of(made: Tensors) -> Result<Self> {
        made.into_iter().next().ok_or_else(|| Error::runtime("a primitive returned no result"))
    }
    fn list(self) -> Vec<Tensor> {
        vec![self]
    }
}
impl<const N: usize> StackResults for [Tensor; N] {
    fn of(made: Tensors) -> Result<Self> {
        made.into_vec()
            .try_into()
            .map_err(|_| Error::runtime("a primitive returned the wrong number of results"))
    }
    fn list(self) -> Vec<Tensor> {
        self.into()
    }
}
impl StackResults for Vec<Tensor> {
    fn of(made: Tensors) -> Result<Self> {
        Ok(made.into_vec())
    }
    fn list(self) -> Vec<Tensor> {
        self
    }
}

/// Runs one example after the other, for operators that are rarely used.
pub fn each<R: StackResults>(call: &Call, op: impl Fn(&[Tensor]) -> Result<R>) -> Result<R> {
    let b = call.batch();
    let flat = |t: &Tensor| -> Result<Tensor> {
        let full = b.full(t)?;
        let mut shape: Dims = smallvec::smallvec![b.sizes.iter().product()];
        shape.extend_from_slice(&t.shape());
        reshape(&full, &shape)
    };
    let count: usize = b.sizes.iter().product();
    let whole = call.operands().map(flat).collect::<Result<Vec<_>>>()?;
    let mut made: Vec<Vec<Tensor>> = try_alloc::with_capacity(count)?;
    for i in 0..count {
        let example = whole.iter().map(|t| Select::call(t, 0, i as i64)).collect::<Result<Vec<_>>>()?;
        made.push(op(&example)?.list());
    }
    let Some(first) = made.first() else {
        return Err(Error::runtime("vmap: the batch is empty, and this operator needs at least one example"));
    };
    let together = |k: usize| -> Result<Tensor> {
        let all: Vec<Tensor> = made.iter().map(|results| results[k].clone()).collect();
        let all = join::Stack::call(&all, 0)?;
        let mut shape = b.sizes.clone();
        shape.extend_from_slice(&all.shape()[1..]);
        Ok(b.wrap(reshape(&all, &shape)?))
    };
    R::of((0..first.len()).map(together).collect::<Result<Tensors>>()?)
}
