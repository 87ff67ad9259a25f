//! Walks over several layouts at once: yields offsets in row-major order, and joins dimensions where it can. A negative
//! stride is stored as its two's complement.

use crate::base::Dims;
use std::array::from_fn;
use std::ops::Range;

/// A shape, and the strides of each operand.
#[derive(Clone, Debug)]
pub struct Walk<const N: usize> {
    pub shape: Dims,
    pub strides: [Dims; N],
}

impl<const N: usize> Walk<N> {
    /// A walk over `dims` (some of the dimensions, in this order). Neighbouring dimensions are joined if they can be
    /// stepped through as one in every operand.
    pub fn over(dims: &[usize], shape: &[usize], strides: [&[usize]; N]) -> Walk<N> {
        let mut walk = Walk { shape: Dims::new(), strides: from_fn(|_| Dims::new()) };
        for &dim in dims.iter().filter(|&&d| shape[d] != 1) {
            walk.push(shape[dim], from_fn(|i| strides[i][dim]));
        }
        walk
    }

    pub fn new(shape: &[usize], strides: [&[usize]; N]) -> Walk<N> {
        let dims: Dims = (0..shape.len()).collect();
        Walk::over(&dims, shape, strides)
    }

    fn push(&mut self, size: usize, steps: [usize; N]) {
        let last = self.shape.len().wrapping_sub(1);
        let joins =
            !self.shape.is_empty() && (0..N).all(|i| self.strides[i][last] == steps[i].wrapping_mul(size));
        if joins {
            self.shape[last] *= size;
            (0..N).for_each(|i| self.strides[i][last] = steps[i]);
        } else {
            self.shape.push(size);
            (0..N).for_each(|i| self.strides[i].push(steps[i]));
        }
    }

    pub fn numel(&self) -> usize {
        self.shape.iter().product()
    }

    /// Removes the last dimension and returns its size and strides. A walk without dimensions returns size 1.
    pub fn pop(&mut self) -> (usize, [usize; N]) {
        match self.shape.pop() {
            None => (1, [0; N]),
            Some(size) => (size, from_fn(|i| self.strides[i].pop().unwrap_or(0))),
        }
    }

    /// The offset of the element with a linear index, for each operand.
    pub fn at(&self, mut linear: usize) -> [usize; N] {
        let mut offsets = [0usize; N];
        for (dim, &size) in self.shape.iter().enumerate().rev() {
            let index = linear % size;
            linear /= size;
            for (offset, strides) in offsets.iter_mut().zip(&self.strides) {
                *offset = offset.wrapping_add(index.wrapping_mul(strides[dim]));
            }
        }
        offsets
    }

    /// Calls `body` with the offsets of each linear index in `range`, in order.
    #[inline]
    pub fn each(&self, range: Range<usize>, mut body: impl FnMut([usize; N])) {
        self.runs(range, |mut offsets, steps, n| {
            for _ in 0..n {
                body(offsets);
                for i in 0..N {
                    offsets[i] = offsets[i].wrapping_add(steps[i]);
                }
            }
        });
    }

    /// Like [`Walk::each`], but calls `body` once for each run along the last dimension, with the first offsets, the
    /// steps and the length.
    #[inline]
    pub fn runs(&self, range: Range<usize>, mut body: impl FnMut([usize; N], [usize; N], usize)) {
        if range.is_empty() {
            return;
        }
        let Some(&inner) = self.shape.last() else { return body([0; N], [0; N], 1) };
        let last = self.shape.len() - 1;
        let steps: [usize; N] = from_fn(|i| self.strides[i][last]);
        let first = range.start % inner;
        let n = range.len().min(inner - first);
        body(self.at(range.start), steps, n);
        let mut left = range.len() - n;
        if left == 0 {
            return;
        }
        // All further runs start at the beginning of the last dimension: counting the index up takes no divisions.
        let start = range.start + n;
        let (mut at, mut rest) = (self.at(start), start / inner);
        let mut index = Dims::from_elem(0, last);
        for d in (0..last).rev() {
            index[d] = rest % self.shape[d];
            rest /= self.shape[d];
        }
        loop {
            let n = left.min(inner);
            body(at, steps, n);
            left -= n;
            if left == 0 {
                return;
            }
            for d in (0..last).rev() {
                index[d] += 1;
                let back = if index[d] < self.shape[d] { 0 } else { self.shape[d] };
                for (at, strides) in at.iter_mut().zip(&self.strides) {
                    *at = at.wrapping_add(strides[d]).wrapping_sub(back.wrapping_mul(strides[d]));
                }
                if back == 0 {
                    break;
                }
                index[d] = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joins_even_dimensions_and_skips_ones() {
        let walk = Walk::new(&[2, 3, 1, 4], [&[12, 4, 9, 1], &[0, 4, 9, 1]]);
        assert_eq!(walk.shape.as_slice(), [2, 12]);
        assert_eq!(walk.strides[1].as_slice(), [0, 1]);
    }

    #[test]
    fn visits_offsets_in_order() {
        let walk = Walk::new(&[2, 3], [&[1, 2]]);
        let mut seen = vec![];
        walk.each(1..6, |[at]| seen.push(at));
        assert_eq!(seen, [2, 4, 1, 3, 5]);
        let walk = Walk::new(&[2, 3, 2], [&[10, 3, 1], &[0, 5, 7]]);
        for range in [0..12, 1..12, 3..4, 2..9, 5..11] {
            let mut seen = vec![];
            walk.each(range.clone(), |at| seen.push(at));
            assert_eq!(seen, range.map(|i| walk.at(i)).collect::<Vec<_>>());
        }
        let mut scalar = 0;
        Walk::new(&[], [&[]]).each(0..1, |[at]| scalar += at + 1);
        assert_eq!(scalar, 1);
    }
}
