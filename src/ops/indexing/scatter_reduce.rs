//! `scatter_reduce`: values sent to the same position are added, multiplied, averaged, or their maximum or minimum is taken.

use crate::base::Put;
use crate::operator::bodies::overlap;
use crate::operator::inplace;
use crate::operator::pointwise::apply;
use crate::operator::pointwise::dtype_checks;
use crate::operator::primitives::{constant, copies};
use crate::ops::elementwise::arithmetic as a;
use crate::ops::indexing::index::{Gather, from_lines, on_lines};
use crate::ops::indexing::masked::MaskedFill0;
use crate::ops::indexing::scatter::Scatter;
use crate::ops::indexing::scatter::Scatter1;
use crate::ops::prelude::*;
use crate::ops::reduction::reduce;
use crate::ops::reduction::reduce::no_grad;
use crate::tensor::facts::{Keep, Shown};
use crate::tensor::{Derivative, Edge, Recorder, any_requires_grad, no_derivative};

/// The reduce operation for values sent to the same position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScatterReduction {
    Sum,
    Prod,
    Mean,
    Max,
    Min,
}

impl Keep for ScatterReduction {
    fn shown(&self) -> Shown {
        Shown::Text(self.name().into())
    }
}

impl ScatterReduction {
    fn from_name(name: &str) -> Result<ScatterReduction> {
        let all = [
            ScatterReduction::Sum,
            ScatterReduction::Prod,
            ScatterReduction::Mean,
            ScatterReduction::Max,
            ScatterReduction::Min,
        ];
        all.into_iter().find(|how| how.name() == name).ok_or_else(|| {
            Error::runtime(format!(
                "reduce argument must be either sum, prod, mean, amax or amin, got {name}"
            ))
        })
    }

    /// The name of the operation in PyTorch's API.
    pub fn name(self) -> &'static str {
        match self {
            ScatterReduction::Sum => "sum",
            ScatterReduction::Prod => "prod",
            ScatterReduction::Mean => "mean",
            ScatterReduction::Max => "amax",
            ScatterReduction::Min => "amin",
        }
    }

    fn put(self) -> Put {
        match self {
            ScatterReduction::Sum | ScatterReduction::Mean => Put::Add,
            ScatterReduction::Prod => Put::Mul,
            ScatterReduction::Max => Put::Max,
            ScatterReduction::Min => Put::Min,
        }
    }
}

/// The neutral element of the operation at the written positions, as the start if `include_self` is false.
fn neutral(input: &Tensor, src: &Tensor, dim: i64, index: &Tensor, how: ScatterReduction) -> Result<Tensor> {
    let number = match how {
        // Any of the values sent is a valid start.
        ScatterReduction::Max | ScatterReduction::Min => {
            return Scatter::call(input, dim, index, src, Put::Assign);
        }
        ScatterReduction::Prod => Scalar::Int(1),
        ScatterReduction::Sum | ScatterReduction::Mean => Scalar::Int(0),
    };
    Scatter1::call(input, dim, index, number)
}

pub(crate) fn reduce_into(
    input: &Tensor,
    src: &Tensor,
    dim: i64,
    index: &Tensor,
    how: ScatterReduction,
    own: bool,
) -> Result<Tensor> {
    let start = if own { input.clone() } else { neutral(input, src, dim, index, how)? };
    let out = Scatter::call(&start, dim, index, src, how.put())?;
    if how != ScatterReduction::Mean {
        return Ok(out);
    }
    let count = count_values(input, dim, index, own)?;
    if input.dtype().is_differentiable() {
        return a::div(&out, &count);
    }
    a::floor_divide(&out, &copies::to_dtype(&count, input.dtype())?)
}

/// The number of values sent to each position, at least 1.
fn count_values(input: &Tensor, dim: i64, index: &Tensor, own: bool) -> Result<Tensor> {
    let start = constant::full(&input.shape(), Scalar::Int(i64::from(own)), input.dtype(), input.device())?;
    let ones = constant::ones(&index.shape(), input.dtype(), input.device())?;
    let count = Scatter::call(&start, dim, index, &ones, Put::Add)?;
    a::maximum(&crate::ops::complex::real(&count)?, 1.0)
}

/// The operands and result of a reduction, for its derivative.
pub(crate) struct Reduced<'a> {
    pub input: &'a Tensor,
    pub src: &'a Tensor,
    pub result: &'a Tensor,
    pub dim: i64,
    /// The position that each element of `src` is sent to.
    pub index: &'a Tensor,
    pub how: ScatterReduction,
    pub own: bool,
    /// The node that makes the double backward fail if several zeros are sent to the same position.
    pub twice: &'static Derivative,
}

/// The derivatives of a product, maximum or minimum by its operands.
struct OperandDerivatives {
    input: Tensor,
    src: Tensor,
}

impl Reduced<'_> {
    /// The gradient of the input, as if it took part at every position.
    pub fn for_input(&self, g: V) -> Result<V> {
        Ok(match self.how {
            ScatterReduction::Sum => g,
            ScatterReduction::Mean => g / V::from(count_values(self.input, self.dim, self.index, self.own)?),
            _ => g * V::from(self.operand_derivatives()?.input),
        })
    }

    /// The gradient of the source; `sent` gathers a gradient at the positions that elements are sent to.
    pub fn for_source(&self, g: V, sent: impl FnOnce(V) -> V) -> Result<V> {
        Ok(match self.how {
            ScatterReduction::Sum => sent(g),
            ScatterReduction::Mean => {
                sent(g / V::from(count_values(self.input, self.dim, self.index, self.own)?))
            }
            _ => sent(g) * V::from(self.operand_derivatives()?.src),
        })
    }

    fn again(&self, input: &Tensor, src: &Tensor) -> Result<Tensor> {
        ScatterReduce::call(input, self.dim, self.index, src, self.how, self.own)
    }

    fn operand_derivatives(&self) -> Result<OperandDerivatives> {
        let &Reduced { input, src, result, dim, index, how, own, twice } = self;
        let there = |t: &Tensor| Gather::call(t, dim, index);
        if how == ScatterReduction::Prod {
            let without_zeros = |t: &Tensor| MaskedFill0::call(t, &a::eq(t, 0.0)?, Scalar::Int(1));
            let (full_input, full_src) = (without_zeros(input)?, without_zeros(src)?);
            let others = self.again(&full_input, src)?;
            // The derivative by a single zero is the product of the other values.
            let zero = a::eq(src, 0.0)?;
            let none = constant::zeros(&result.shape(), src.dtype(), src.device())?;
            let counted = copies::to_dtype(&zero, src.dtype())?;
            let zeros = there(&Scatter::call(&none, dim, index, &counted, Put::Add)?)?;
            let single = a::logical_and(&zero, &a::eq(&zeros, 1.0)?)?;
            let beside = there(&self.again(input, &full_src)?)?;
            let usual = a::div(&there(result)?, &full_src)?;
            let picked = apply(&a::choose::ROW, &[(&beside).into(), (&usual).into(), (&single).into()])?;
            let several = picked.requires_grad()
                && !picked.is_batched()
                && reduce::any(&a::gt(&zeros, 1.0)?, None, false)?.item()?.as_bool();
            let src = if several { underivable(&picked, twice) } else { picked };
            return Ok(OperandDerivatives { input: a::div(&others, &full_input)?, src });
        }
        let hit = |t: &Tensor, y: &Tensor| copies::to_dtype(&a::eq(t, y)?, y.dtype());
        let (mut for_input, for_src) = (hit(input, result)?, hit(src, &there(result)?)?);
        if !own {
            for_input = Scatter1::call(&for_input, dim, index, Scalar::Int(0))?;
        }
        // Equal maxima or minima share the gradient.
        let ties = a::maximum(&Scatter::call(&for_input, dim, index, &for_src, Put::Add)?, 1.0)?;
        Ok(OperandDerivatives { input: a::div(&for_input, &ties)?, src: a::div(&for_src, &there(&ties)?)? })
    }
}

/// If several zeros are sent to the same position, the formulas above cannot be differentiated.
static SEVERAL_ZEROS: Derivative = no_derivative!(
    "torch::autograd::Error",
    "scatter_reduce(): Double backward is unsupported for src when >1 zeros in src are scattered to the same position in self"
);

/// Gives the derivatives a node whose backward is `twice`.
fn underivable(x: &Tensor, twice: &'static Derivative) -> Tensor {
    let body = x.body().clone();
    let mut recorder = Recorder::new(twice);
    recorder.input(Some(x));
    let node = recorder.publish(&[&body]);
    let made = Tensor::new(body);
    made.set_history(Some(Edge { node, output: 0 }));
    made
}

#[primitive]
impl ScatterReduce {
    fn forward(
        input: &Tensor,
        dim: i64,
        index: &Tensor,
        src: &Tensor,
        reduce: ScatterReduction,
        include_self: bool,
    ) -> Result<Body> {
        no_grad(|| reduce_into(input, src, dim, index, reduce, include_self))
    }
    fn d_input(
        g: V,
        input: &Tensor,
        dim: i64,
        index: &Tensor,
        src: &Tensor,
        result: &Tensor,
        reduce: ScatterReduction,
        include_self: bool,
    ) -> Result<V> {
        let g =
            Reduced { input, src, result, dim, index, how: reduce, own: include_self, twice: &SEVERAL_ZEROS }
                .for_input(g)?;
        Ok(if include_self { g } else { g.then(|g| Scatter1::call(&g, dim, index, Scalar::Int(0))) })
    }
    fn d_src(
        g: V,
        input: &Tensor,
        dim: i64,
        index: &Tensor,
        src: &Tensor,
        result: &Tensor,
        reduce: ScatterReduction,
        include_self: bool,
    ) -> Result<V> {
        Reduced { input, src, result, dim, index, how: reduce, own: include_self, twice: &SEVERAL_ZEROS }
            .for_source(g, |g| g.then(|g| Gather::call(&g, dim, index)))
    }
    fn batch(
        b: &Batch,
        input: &Tensor,
        dim: i64,
        index: &Tensor,
        src: &Tensor,
        reduce: ScatterReduction,
        include_self: bool,
    ) -> Result<Tensor> {
        let made = on_lines(b, input, &[index, src], dim, |x, rest, at| {
            ScatterReduce::call(x, at, &rest[0], &rest[1], reduce, include_self)
        })?;
        from_lines(b, made, input)
    }
}

/// Combine values with a copy of `input` by index along a dimension.
///
/// For `dim=0` and `"sum"`, `out[index[i][j]][j] += src[i][j]`.
///
/// Args:
///     index: where each element of `src` goes along `dim`.
///     src: the elements to combine.
///     reduce: `"sum"`, `"prod"`, `"mean"`, `"amax"` or `"amin"`.
///     include_self: whether the elements of `input` take part.
///
/// Examples:
///     >>> torch.scatter_reduce(torch.ones(2), 0, torch.tensor([0, 0]), torch.tensor([3.0, 5.0]), "amax")
///     tensor([5., 1.])
#[operator(
    function,
    method,
    out(declared),
    sample = "indexed(lambda x, dim, i, y: T.scatter_reduce(x, dim, i, y, 'mean'), lambda draw, where: [values(where, draw(SEEDS))])"
)]
pub fn scatter_reduce(
    input: &Tensor,
    dim: i64,
    index: &Tensor,
    src: &Tensor,
    reduce: &str,
    #[keyword]
    #[default(true)]
    include_self: bool,
) -> Result<Tensor> {
    let how = ScatterReduction::from_name(reduce)?;
    if matches!(how, ScatterReduction::Max | ScatterReduction::Min) {
        dtype_checks::order("scatter_gather_tensor_cpu_reduce_amax", input.dtype())?;
    }
    if input.dtype().is_complex() && any_requires_grad([input, src]) {
        return Err(Error::not_implemented(
            "scatter_reduce does not support automatic differentiation for outputs with complex dtype.",
        ));
    }
    ScatterReduce::call(input, dim, index, src, how, include_self)
}

/// Combine values with the tensor itself by index along a dimension.
#[inplace(scatter_reduce)]
pub fn scatter_reduce_(
    input: &Tensor,
    dim: i64,
    index: &Tensor,
    src: &Tensor,
    reduce: &str,
    #[default(true)] include_self: bool,
) -> Result<()> {
    let make = |input: &Tensor| scatter_reduce(input, dim, index, src, reduce, include_self);
    inplace::by_result(input, &[index, src], make, |body, made| {
        [index, src].into_iter().try_for_each(|t| overlap::check_disjoint(input, t))?;
        inplace::replace(body, made)
    })
}
