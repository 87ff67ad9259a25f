//! Programs of pointwise rows: values that are computed from the elements of tensors and from numbers. A program is
//! lowered to groups, which run in one pass over memory. Optimizers are written as programs.

mod kept;
mod lower;
mod run;

use crate::base::{DType, Error, Result};
use crate::cpu::pointwise::MAX_IN;
use crate::operator::pointwise::Pointwise;
use smallvec::SmallVec;
use std::ptr::null;

pub use run::{Rule, Run, Scalars};

/// A value of a program. Values are numbered in the order in which they are computed.
#[derive(Clone)]
pub enum Node {
    /// The elements of a tensor.
    Operand(usize),
    /// The only element of a one-element tensor.
    Scalar(usize),
    /// A number that is passed to each run.
    Number(usize),
    Constant(f64),
    /// Another value, which operators detach from its history: groups are not recorded.
    Detached(usize),
    Apply {
        row: &'static Pointwise,
        args: SmallVec<[usize; 4]>,
        /// The dtype to which operators would promote these elements; that of the first operand if `None`.
        dtype: Option<DType>,
        /// The scalar to whose dtype numbers are rounded, before and after the operation.
        rounded: Option<usize>,
    },
}

/// A list of values, and the destinations of some of them.
pub struct Program {
    pub nodes: Vec<Node>,
    /// The number of operands, scalars and numbers.
    pub operands: usize,
    pub scalars: usize,
    pub numbers: usize,
    /// Operands that are overwritten, and the new values.
    pub results: Vec<(usize, usize)>,
    /// Scalars that are overwritten, and the new values.
    pub kept: Vec<(usize, usize)>,
}

impl Program {
    /// Checks that values use earlier ones only, and that all indices exist.
    pub fn checked(mut self) -> Result<Program> {
        let known = |at: usize, node: &Node| match node {
            Node::Operand(k) => *k < self.operands,
            Node::Scalar(k) => *k < self.scalars,
            Node::Number(k) => *k < self.numbers,
            Node::Constant(_) => true,
            Node::Detached(value) => *value < at,
            Node::Apply { row, args, rounded, .. } => {
                args.len() == row.forward.inputs.len()
                    && args.iter().all(|&arg| arg < at)
                    && rounded.is_none_or(|k| k < self.scalars)
            }
        };
        let written = self.results.iter().all(|&(k, value)| k < self.operands && value < self.nodes.len());
        let kept = self.kept.iter().all(|&(k, value)| k < self.scalars && value < self.nodes.len());
        let sound = self.nodes.iter().enumerate().all(|(at, node)| known(at, node));
        // Registers and numbers are stored as bytes.
        if sound && written && kept && self.nodes.len() <= 200 {
            self.skip_detached();
            return Ok(self);
        }
        Err(Error::runtime(
            "invalid program: it uses a value, tensor or number that does not exist, or has more than 200 values",
        ))
    }

    /// Replaces uses of detached values by the values themselves.
    fn skip_detached(&mut self) {
        let mut same: Vec<usize> = Vec::with_capacity(self.nodes.len());
        for (at, node) in self.nodes.iter_mut().enumerate() {
            if let Node::Apply { args, .. } = node {
                args.iter_mut().for_each(|arg| *arg = same[*arg]);
            }
            same.push(if let Node::Detached(value) = node { same[*value] } else { at });
        }
        for (_, value) in self.results.iter_mut().chain(&mut self.kept) {
            *value = same[*value];
        }
    }

    /// True if each value says in which dtype it is computed. Otherwise all operands share a dtype, and complex
    /// numbers are pairs of real ones.
    pub fn is_typed(&self) -> bool {
        self.nodes.iter().all(|node| !matches!(node, Node::Apply { dtype: None, .. }))
    }

    /// Computes all values that are numbers; other entries of `values` are meaningless. `scalars(k)` is the value of
    /// scalar `k`, and `round(k, x)` rounds `x` to its dtype.
    pub fn numbers(
        &self,
        on_gpu: &[bool],
        given: &[f64],
        scalars: impl Fn(usize) -> f64,
        round: impl Fn(usize, f64) -> f64,
        values: &mut Vec<f64>,
    ) {
        values.clear();
        for node in &self.nodes {
            let value = match node {
                Node::Operand(_) | Node::Detached(_) => f64::NAN,
                Node::Scalar(k) if on_gpu[*k] => f64::NAN,
                Node::Scalar(k) => scalars(*k),
                Node::Number(k) => given[*k],
                Node::Constant(value) => *value,
                Node::Apply { row, args, rounded, .. } => {
                    let fit = |x| rounded.map_or(x, |k| round(k, x));
                    let args: SmallVec<[f64; 4]> = args.iter().map(|&arg| fit(values[arg])).collect();
                    fit(compute_number(row, &args))
                }
            };
            values.push(value);
        }
    }
}

/// Applies a row to numbers; NaN if it has no loop for them.
fn compute_number(row: &Pointwise, args: &[f64]) -> f64 {
    let Some(element_loop) = &row.forward.loops.f64 else { return f64::NAN };
    let mut ins = [null(); MAX_IN];
    for (to, arg) in ins.iter_mut().zip(args) {
        *to = std::ptr::from_ref(arg).cast();
    }
    let (mut number, mut truth) = (0f64, 0u8);
    let out = if row.forward.loops.predicate { &raw mut truth } else { (&raw mut number).cast() };
    // SAFETY: the inputs and the output have one element each, of the types of this loop.
    unsafe { (element_loop.each)(1, out, &ins) };
    if row.forward.loops.predicate { f64::from(truth) } else { number }
}
