//! The batching rule of pointwise rows: operands are aligned, then broadcast as usual.

use crate::base::{Error, Result, broadcast};
use crate::operator::V;
use crate::operator::pointwise::clauses::Unbatched;
use crate::operator::pointwise::{Class, Operand, Pointwise, result_type};

use crate::operator::batch::Batch;
use crate::tensor::Tensor;
use smallvec::SmallVec;

/// Operands whose physical tensors broadcast with each other like the examples do.
struct Aligned<'a> {
    batch: Batch,
    tensors: SmallVec<[Option<Tensor>; 4]>,
    operands: &'a [Operand<'a>],
}

impl<'a> Aligned<'a> {
    fn new(op: &Pointwise, operands: &'a [Operand<'a>]) -> Result<Aligned<'a>> {
        let given =
            || operands.iter().filter_map(|o| if let Operand::Tensor(t) = o { Some(*t) } else { None });
        let batch = Batch::of(given());
        let rank = given().map(Tensor::ndim).max().unwrap_or(0);
        let align = |o: &Operand| match o {
            Operand::Tensor(t) if t.is_batched() => batch.aligned(t, rank).map(Some),
            Operand::Tensor(t) => Ok(Some((*t).clone())),
            Operand::Scalar(_) => Ok(None),
        };
        let tensors = operands.iter().map(align).collect::<Result<SmallVec<[Option<Tensor>; 4]>>>()?;
        let mut aligned = Aligned { batch, tensors, operands };
        aligned.keep_promotion(op)?;
        Ok(aligned)
    }

    fn physical(&self) -> SmallVec<[Operand<'_>; 4]> {
        self.tensors
            .iter()
            .zip(self.operands)
            .map(|(t, given)| match t {
                Some(t) => Operand::Tensor(t),
                None => match given {
                    Operand::Scalar(s) => Operand::Scalar(*s),
                    Operand::Tensor(t) => Operand::Tensor(t),
                },
            })
            .collect()
    }

    /// A 0-d example counts less in type promotion than its physical tensor would, so it is converted before.
    fn keep_promotion(&mut self, op: &Pointwise) -> Result<()> {
        let count = if op.class == Class::Choose { 2 } else { self.operands.len() };
        let seen = result_type(self.operands[..count].iter().copied())?;
        if result_type(self.physical()[..count].iter().copied())? == seen {
            return Ok(());
        }
        for (t, given) in self.tensors.iter_mut().zip(self.operands).take(count) {
            if let (Some(t), Operand::Tensor(given)) = (t, given)
                && given.is_batched()
                && given.ndim() == 0
            {
                *t = V::from(&*t).cast(seen).tensor()?;
            }
        }
        Ok(())
    }
}

pub fn apply(op: &'static Pointwise, operands: &[Operand]) -> Result<Tensor> {
    let given: SmallVec<[&Tensor; 4]> = operands.iter().filter_map(Operand::tensor).collect();
    let own = Batch::of(given.iter().copied()).own_samples_of(&given)?;
    if own.iter().any(Option::is_some) {
        let mut chosen: SmallVec<[Operand; 4]> = SmallVec::from_slice(operands);
        let tensors = chosen.iter_mut().filter(|o| o.tensor().is_some());
        for (operand, own) in tensors.zip(&own) {
            *operand = own.as_ref().map_or(*operand, Operand::Tensor);
        }
        return apply(op, &chosen);
    }
    // PyTorch leaves the batch dimension of a single operand in place, unless the operator wraps a number as
    // a second tensor.
    let wraps = op.clauses.wraps && op.inputs == 2;
    let alone = given.len() == 1 && (operands.len() == 1 || !wraps);
    let batch = Batch::of(given.iter().copied());
    if alone && let Some((whole, place)) = batch.as_given(given[0])? {
        let physical = |o: &Operand<'_>| {
            if let Operand::Scalar(s) = o { Operand::Scalar(*s) } else { Operand::Tensor(&whole) }
        };
        let operands: SmallVec<[Operand; 4]> = operands.iter().map(physical).collect();
        return batch.wrap_given(&crate::operator::pointwise::apply(op, &operands)?, place);
    }
    let pair = given.len() == 2 || wraps || op.clauses.underived;
    if pair && operands.len() == 2 && op.class != Class::Compare {
        check_first(operands)?;
    }
    let aligned = Aligned::new(op, operands)?;
    let made = crate::operator::pointwise::apply(op, &aligned.physical())?;
    Ok(aligned.batch.wrap(made))
}

/// PyTorch reads the first example to find the dtype if the examples are 0-d and the other operand is not;
/// that fails for an empty batch.
fn check_first(operands: &[Operand]) -> Result<()> {
    let numbers = |o: &&Operand<'_>| o.tensor().is_some_and(|t| t.is_batched() && t.ndim() == 0);
    let mut found = operands.iter().filter(numbers).filter_map(Operand::tensor);
    let (Some(t), None) = (found.next(), found.next()) else { return Ok(()) };
    let shape = t.physical().shape();
    match shape.last() {
        Some(0) => Err(Error::index(format!(
            "select(): index 0 out of range for tensor of size {:?} at dimension {}",
            shape.as_slice(),
            shape.len() - 1
        ))),
        _ => Ok(()),
    }
}

/// PyTorch's error for some operators if batched values do not fit into an unbatched target.
fn shape_error(target: &Tensor, others: &[&Tensor]) -> Option<Error> {
    let shape = target.physical().shape();
    let wide =
        others.iter().try_fold(shape.clone(), |wide, t| broadcast(&wide, &t.physical().shape())).ok()?;
    (wide != shape).then(|| {
        Error::runtime(format!(
            "output with shape {:?} doesn't match the broadcast shape {:?}",
            shape.as_slice(),
            wide.as_slice()
        ))
    })
}

pub fn apply_inplace(op: &'static Pointwise, target: &Tensor, operands: &[Operand]) -> Result<()> {
    let given = operands.iter().filter_map(|o| if let Operand::Tensor(t) = o { Some(*t) } else { None });
    let others: SmallVec<[&Tensor; 4]> = given.collect();
    crate::operator::batch::check_operator(op, target, &others).map_err(|error| {
        match op.clauses.unbatched {
            Unbatched::Misfit => shape_error(target, &others).unwrap_or(error),
            _ => error,
        }
    })?;
    let shape = target.shape();
    for other in &others {
        let wide = broadcast(&shape, &other.shape())?;
        if wide != shape {
            return Err(Error::runtime(format!(
                "output with shape {:?} doesn't match the broadcast shape {:?}",
                shape.as_slice(),
                wide.as_slice()
            )));
        }
    }
    let aligned = Aligned::new(op, operands)?;
    crate::operator::pointwise::apply_inplace(op, target.physical(), &aligned.physical())
}
