//! Rows along one dimension of several operands, for softmax, scans and sorts.

use crate::base::{Dims, Error, Result};
use crate::gpu::device::view::View;
use crate::gpu::launch::index_space::{Space, Words, check};
use crate::gpu::shader::code::Code;

/// The other dimensions, merged, and each operand's offset and stride along the dimension.
pub(in crate::gpu) struct RowWalk<'a> {
    space: Space,
    views: &'a [View<'a>],
    dim: usize,
    pub count: usize,
    pub length: usize,
}

impl<'a> RowWalk<'a> {
    /// All views must have the same shape.
    pub fn new(views: &'a [View<'a>], dim: usize) -> Result<RowWalk<'a>> {
        let shape = views[0].shape;
        for view in views {
            check(view)?;
            if view.shape != shape {
                return Err(Error::runtime(format!(
                    "GPU error: shapes {shape:?} and {:?} differ",
                    view.shape
                )));
            }
        }
        // A tensor without dimensions is one row of one element.
        let without = |of: &[usize]| -> Dims { (0..of.len()).filter(|&d| d != dim).map(|d| of[d]).collect() };
        let strides: Vec<Dims> = views.iter().map(|v| without(v.strides)).collect();
        let operands: Vec<&[usize]> = strides.iter().map(|s| s.as_slice()).collect();
        let others = without(shape);
        let length = shape.get(dim).copied().unwrap_or(1);
        Ok(RowWalk {
            space: Space::new(&others, &operands),
            views,
            dim,
            count: others.iter().product(),
            length,
        })
    }

    pub fn rank(&self) -> usize {
        self.space.rank()
    }

    /// Returns the distance between neighbours of a row, in elements.
    pub fn stride(&self, operand: usize) -> usize {
        self.views[operand].strides.get(self.dim).copied().unwrap_or(1)
    }

    pub fn push(&self, words: &mut Words) {
        words.extend([self.count as u32, self.length as u32]);
        self.space.push_dims(words);
        for (k, view) in self.views.iter().enumerate() {
            words.push(view.offset as u32);
            self.space.push_strides(k, words);
            words.push(self.stride(k) as u32);
        }
    }

    /// Defines `length`, and for each name `NAME_at` (the first element of row `row`) and `NAME_step`.
    /// Invocations without a row return.
    pub fn code(code: &mut Code, rank: usize, names: &[&str], row: &str) {
        let (count, length) = (code.word(), code.word());
        code.push(&format!("  if ({row} >= {count}) {{ return; }}\n  let length = {length};\n"));
        RowWalk::find(code, rank, names, row);
    }

    /// Like `code`, for rows with number `job` that several invocations share. All invocations reach the
    /// barriers; a row that does not exist has no elements, so that nothing is read or written for it.
    pub fn shared(code: &mut Code, rank: usize, names: &[&str]) {
        let (count, length) = (code.word(), code.word());
        code.push(&format!("  let length = select(0u, {length}, job < {count});\n"));
        RowWalk::find(code, rank, names, "job");
    }

    /// Like `code`, without the bounds check, for kernels that split an invocation's number into a row and
    /// a position in it.
    pub fn find(code: &mut Code, rank: usize, names: &[&str], row: &str) {
        let dims = code.words(rank - 1);
        code.push(&Code::split(row, "g", &dims));
        for name in names {
            let offset = code.word();
            let strides = code.words(rank);
            let step = code.word();
            code.push(&format!(
                "  let {name}_at = {offset} + {};\n  let {name}_step = {step};\n",
                Code::dot("g", &strides)
            ));
        }
    }
}
