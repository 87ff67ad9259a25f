//! The possible results of a primitive's `forward`, values or views of its first operand, and the results of
//! its call.

use crate::base::{ConjNeg, DType, Error, Layout, Result, try_alloc};
use crate::operator::bodies::conj_neg;
use crate::operator::bodies::duplicate;
use crate::operator::primitives::strided::VIEW_FUNC;
use crate::tensor::{Body, CreationMeta, Edge, Tensor};
use smallvec::SmallVec;

pub type Tensors = SmallVec<[Tensor; 3]>;

/// The results of a `forward`: values, or views of the first operand.
#[derive(Default)]
pub struct PrimitiveResults {
    pub(crate) bodies: SmallVec<[Body; 2]>,
    pub(crate) views: Views,
}

#[derive(Default)]
pub(crate) enum Views {
    #[default]
    None,
    One(Layout),
    /// A view as another dtype.
    Reread(Layout, DType),
    /// A view with this conj or neg bit.
    ConjNeg(ConjNeg),
    Several(Vec<Layout>),
    Untied(Vec<Layout>),
}

/// Views without a base, each with its own version counter.
pub struct Untied(pub Vec<Layout>);

/// The result type of a `forward`, which determines what the call returns.
pub trait Forward {
    type Tensors;
    const VIEWS: bool = false;
    fn put(self, made: &mut PrimitiveResults);
    fn tensors(made: Tensors) -> Result<Self::Tensors>;
}

/// A view whose edge can be made again from its base.
#[inline]
pub fn view_of(of: &Tensor, body: Body, edge: Option<Edge>, viewing: CreationMeta) -> Tensor {
    Tensor::view_of(of, body, edge, viewing, &VIEW_FUNC)
}

pub(crate) fn one(mut made: Tensors) -> Result<Tensor> {
    made.pop().ok_or_else(|| Error::runtime("a primitive returned no result"))
}

macro_rules! one_tensor {
    ($ty:ty, $views:literal, |$x:ident, $made:ident| $put:expr) => {
        impl Forward for $ty {
            type Tensors = Tensor;
            const VIEWS: bool = $views;
            #[inline]
            fn put(self, $made: &mut PrimitiveResults) {
                let $x = self;
                $put
            }
            #[inline]
            fn tensors(made: Tensors) -> Result<Tensor> {
                one(made)
            }
        }
    };
}
one_tensor!(Body, false, |x, made| made.bodies.push(x));
one_tensor!(Layout, true, |x, made| made.views = Views::One(x));
one_tensor!((Layout, DType), true, |x, made| made.views = Views::Reread(x.0, x.1));
one_tensor!(ConjNeg, true, |x, made| made.views = Views::ConjNeg(x));

/// One view of an operand, without an edge.
pub trait PlainView: Sized {
    fn body(self, of: &Tensor) -> Body;
    #[inline]
    fn plain_view(self, of: &Tensor) -> Tensor {
        view_of(of, self.body(of), None, CreationMeta::Plain)
    }
}

macro_rules! seen {
    ($($ty:ty, |$x:ident, $body:ident| $seen:expr;)*) => { $(impl PlainView for $ty {
        #[inline]
        fn body(self, of: &Tensor) -> Body {
            let ($x, body) = (self, of.body());
            let $body = &*body;
            $seen
        }
    })* };
}
seen! {
    Layout, |x, body| body.with_layout(x);
    (Layout, DType), |x, body| Body { dtype: x.1, ..body.with_layout(x.0) };
    ConjNeg, |x, body| Body { conj_neg: body.conj_neg.then(x), ..body.clone() };
}

/// Makes copies in place of views of an operand.
pub trait Copied {
    type Bodies: Forward;
    fn copied(self, of: &Tensor) -> Result<Self::Bodies>;
}

fn in_order(body: &Body) -> Result<Body> {
    duplicate(&conj_neg::values(body)?)
}

macro_rules! copied {
    ($($ty:ty, |$x:ident, $body:ident| $seen:expr;)*) => { $(impl Copied for $ty {
        type Bodies = Body;
        fn copied(self, of: &Tensor) -> Result<Body> {
            let ($x, body) = (self, of.body());
            let $body = &*body;
            in_order(&$seen)
        }
    })* };
}
copied! {
    Layout, |x, body| body.with_layout(x);
    (Layout, DType), |x, body| Body { dtype: x.1, ..body.with_layout(x.0) };
    ConjNeg, |x, body| Body { conj_neg: body.conj_neg.then(x), ..body.clone() };
}
impl Copied for Vec<Layout> {
    type Bodies = Vec<Body>;
    fn copied(self, of: &Tensor) -> Result<Vec<Body>> {
        let body = of.body();
        try_alloc::collect(self.into_iter().map(|layout| in_order(&body.with_layout(layout))))
    }
}

impl<const N: usize> Forward for [Body; N] {
    type Tensors = [Tensor; N];
    #[inline]
    fn put(self, made: &mut PrimitiveResults) {
        self.into_iter().for_each(|body| made.bodies.push(body));
    }
    fn tensors(made: Tensors) -> Result<[Tensor; N]> {
        if made.len() != N {
            return Err(Error::runtime("a primitive returned the wrong number of results"));
        }
        Ok(std::array::from_fn(|i| made[i].clone()))
    }
}
impl Forward for Vec<Body> {
    type Tensors = Vec<Tensor>;
    fn put(self, made: &mut PrimitiveResults) {
        made.bodies.extend(self);
    }
    fn tensors(made: Tensors) -> Result<Vec<Tensor>> {
        Ok(made.into_vec())
    }
}
impl Forward for Vec<Layout> {
    type Tensors = Vec<Tensor>;
    const VIEWS: bool = true;
    fn put(self, made: &mut PrimitiveResults) {
        made.views = Views::Several(self);
    }
    fn tensors(made: Tensors) -> Result<Vec<Tensor>> {
        Ok(made.into_vec())
    }
}
impl Forward for Untied {
    type Tensors = Vec<Tensor>;
    const VIEWS: bool = true;
    fn put(self, made: &mut PrimitiveResults) {
        made.views = Views::Untied(self.0);
    }
    fn tensors(made: Tensors) -> Result<Vec<Tensor>> {
        Ok(made.into_vec())
    }
}

/// The results of a call as a list.
pub trait Outputs {
    fn list(self) -> Tensors;
}
impl Outputs for Tensor {
    fn list(self) -> Tensors {
        smallvec::smallvec![self]
    }
}
impl<const N: usize> Outputs for [Tensor; N] {
    fn list(self) -> Tensors {
        self.into_iter().collect()
    }
}
impl Outputs for Vec<Tensor> {
    fn list(self) -> Tensors {
        self.into()
    }
}
