//! The backward of a pointwise node: each gradient in one fused pass, or over differentiable tensors if the
//! backward itself is recorded.

use crate::base::{Error, Result, Scalar, broadcast};
use crate::operator::V;
use crate::operator::pointwise::clauses::Rounds;
use crate::operator::pointwise::{GRAD, Gradient, Input, Numbers, Pointwise, compute_type, execute};
use crate::tensor::{Body, Edge, Grads, Step, Tensor};
use smallvec::SmallVec;

/// Computes the gradients of a node: by fused kernels, or over tensors if the backward itself is recorded.
pub fn backward(op: &'static Pointwise, step: &Step) -> Result<Grads> {
    if op.refuses() {
        return Err(Error::runtime(format!("derivative for aten::{} is not implemented", op.row.name)));
    }
    let mut grads: Grads = smallvec::smallvec![None; step.node.edges.len()];
    let Some(g) = step.grad(0) else { return Ok(grads) };
    let dual = step.is_dual() || g.is_batched_or_conj_neg();
    for gradient in op.gradients {
        let at = gradient.of as usize;
        let Some(Some(edge)) = step.node.edges.get(at).filter(|_| step.wants(at)) else { continue };
        if gradient.expr.is_identity() && gradient.sources[0] == GRAD {
            grads[at] = Some(g.clone());
            continue;
        }
        // There are no fused kernels for complex gradients, nor any that round operands: these formulas run
        // over tensors.
        if step.create_graph || dual || is_complex(g, edge) || is_rounded(op, gradient, step, g)? {
            let value = |&source: &u32| -> Result<V> {
                Ok(match source {
                    GRAD => V::from(g),
                    _ => match number(op, step, source)? {
                        Some(number) => V::Scalar(number),
                        None => V::from(step.tensor(source)?),
                    },
                })
            };
            let values = gradient.sources.iter().map(value).collect::<Result<SmallVec<[V; 4]>>>()?;
            grads[at] = Some((gradient.formal)(&values).tensor()?);
            continue;
        }
        grads[at] = Some(fused(op, gradient, step, g, edge)?);
    }
    Ok(grads)
}

fn is_complex(g: &Tensor, edge: &Edge) -> bool {
    g.dtype().is_complex() || edge.node.outputs[edge.output as usize].dtype.is_complex()
}

/// True if an operand that the formula reads was rounded to half precision in the forward call.
fn is_rounded(op: &Pointwise, gradient: &Gradient, step: &Step, g: &Tensor) -> Result<bool> {
    let half = g.dtype();
    if !half.is_half() || op.clauses.rounds == Rounds::Nothing {
        return Ok(false);
    }
    for &source in gradient.sources {
        if source != GRAD && number(op, step, source)?.is_none() && step.body(source)?.dtype != half {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The number that an operand was in this call, if it was no tensor.
fn number(op: &Pointwise, step: &Step, source: u32) -> Result<Option<Scalar>> {
    if source as usize >= op.forward.inputs.len() {
        return Ok(None);
    }
    let numbers = step.node.params.as_ref().and_then(|params| params.downcast_ref::<Numbers>());
    Ok(numbers.and_then(|numbers| numbers.get(source as usize).copied().flatten()))
}

fn fused(
    op: &'static Pointwise,
    gradient: &'static Gradient,
    step: &Step,
    g: &Tensor,
    edge: &Edge,
) -> Result<Tensor> {
    let target = &edge.node.outputs[edge.output as usize];
    let g_body = g.body();
    let mut dtype = g_body.dtype;
    let mut shape = g_body.layout.shape.clone();
    let mut plain = true;
    let mut inputs: SmallVec<[Input; 4]> = SmallVec::new();
    for &source in gradient.sources {
        inputs.push(match source {
            GRAD => Input::Body(&g_body),
            _ if let Some(number) = number(op, step, source)? => Input::Scalar(match source as usize {
                operand if operand < op.inputs => op.beside(operand, number, target.dtype),
                _ => number,
            }),
            _ => {
                let body = step.body(source)?;
                plain &= body.conj_neg.is_none();
                if body.dtype.is_float() {
                    dtype = dtype.promote(body.dtype);
                }
                if body.layout.shape != shape {
                    shape = broadcast(&shape, &body.layout.shape)?;
                }
                Input::Body(body)
            }
        });
    }
    if plain
        && dtype == target.dtype
        && let Some(done) = crate::operator::pointwise::small::compute(&gradient.expr, dtype, &inputs)
    {
        return done.map(Tensor::new);
    }
    let compute = compute_type(dtype.promote(target.dtype));
    let mut out = Body::new(&shape, target.dtype, g_body.device())?;
    if let Some(layout) =
        crate::operator::pointwise::memory_format::of_gradient(op, gradient, &shape, &inputs)
    {
        out.layout = layout;
    }
    execute(op.row.name, &gradient.expr, compute, &out, &inputs)?;
    Ok(Tensor::new(out))
}
