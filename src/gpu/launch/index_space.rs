//! Shapes and strides as kernels walk them: with as few dimensions as the operands allow, as 32-bit words.

use crate::base::{Error, Result};
use crate::gpu::device::view::View;
use smallvec::{SmallVec, smallvec};

/// The parameter words of a launch.
pub(in crate::gpu) type Words = SmallVec<[u32; 32]>;

/// A shape that several operands are walked over; adjacent dimensions are merged where every operand's
/// strides permit.
pub(in crate::gpu) struct Space {
    /// Never empty: a single element has one dimension of size 1.
    pub dims: SmallVec<[usize; 6]>,
    /// The strides of each operand.
    pub strides: SmallVec<[SmallVec<[usize; 6]>; 8]>,
}

impl Space {
    pub fn new(shape: &[usize], operands: &[&[usize]]) -> Space {
        let mut space = Space { dims: SmallVec::new(), strides: smallvec![SmallVec::new(); operands.len()] };
        for (d, &n) in shape.iter().enumerate() {
            if n == 1 {
                continue;
            }
            let merges = space.dims.len().checked_sub(1).filter(|&last| {
                space
                    .strides
                    .iter()
                    .zip(operands)
                    .all(|(merged, strides)| merged[last] == strides[d].wrapping_mul(n))
            });
            match merges {
                Some(last) => space.dims[last] *= n,
                None => space.dims.push(n),
            }
            for (merged, strides) in space.strides.iter_mut().zip(operands) {
                match merges {
                    Some(last) => merged[last] = strides[d],
                    None => merged.push(strides[d]),
                }
            }
        }
        if space.dims.is_empty() {
            space.dims.push(1);
            space.strides.iter_mut().for_each(|strides| strides.push(1));
        }
        space
    }

    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Pushes the sizes of all dimensions but the first, with which a kernel splits a linear index.
    pub fn push_dims(&self, words: &mut Words) {
        words.extend(self.dims[1..].iter().map(|&n| n as u32));
    }

    pub fn push_strides(&self, operand: usize, words: &mut Words) {
        words.extend(self.strides[operand].iter().map(|&s| s as u32));
    }
}

/// Refuses a view that exceeds its buffer, or the range of 32-bit offsets.
pub(in crate::gpu) fn check(view: &View<'_>) -> Result<()> {
    if view.shape.len() != view.strides.len() {
        return Err(Error::runtime("GPU error: a view must have as many strides as dimensions"));
    }
    if view.shape.contains(&0) {
        return Ok(());
    }
    let reach =
        view.shape.iter().zip(view.strides).try_fold(view.offset, |end, (n, s)| {
            (n - 1).checked_mul(*s).and_then(|step| end.checked_add(step))
        });
    let end = reach.and_then(|last| last.checked_add(1)).and_then(|end| end.checked_mul(view.dtype.size()));
    let count = view.shape.iter().try_fold(1usize, |count, &n| count.checked_mul(n));
    match end {
        Some(end) if end <= view.buffer.len() && count.is_some_and(|n| n <= u32::MAX as usize) => Ok(()),
        _ => Err(Error::runtime(format!(
            "GPU error: a view of shape {:?} with strides {:?} exceeds its GPU memory of {} bytes",
            view.shape,
            view.strides,
            view.buffer.len()
        ))),
    }
}

/// Returns the number of workgroups for `items` work items, `size` per workgroup, folded into two
/// dimensions of at most 65,535. A kernel finds its item as [`crate::gpu::shader::code::Code::main_by_item`] writes it.
pub(in crate::gpu) fn groups(items: usize, size: usize) -> [u32; 3] {
    let count = items.div_ceil(size);
    if count <= 65_535 {
        return [count as u32, 1, 1];
    }
    [65_535, count.div_ceil(65_535) as u32, 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_steps_merge() {
        let space = Space::new(&[4, 1, 5, 6], &[&[30, 9, 6, 1], &[30, 0, 6, 1]]);
        assert_eq!((space.dims.as_slice(), space.strides[1].as_slice()), (&[120][..], &[1][..]));
        let space = Space::new(&[4, 5, 6], &[&[30, 6, 1], &[0, 6, 1]]);
        assert_eq!((space.dims.as_slice(), space.strides[1].as_slice()), (&[4, 30][..], &[0, 1][..]));
        assert_eq!(Space::new(&[], &[&[]]).dims.as_slice(), &[1]);
        assert_eq!(Space::new(&[3, 4], &[&[0, 0]]).dims.as_slice(), &[12]);
    }

    #[test]
    fn groups_cover_and_fit() {
        for items in [1, 256, 257, 65_535 * 256, 65_535 * 256 + 1, usize::MAX >> 33] {
            let [x, y, _] = groups(items, 256);
            assert!(x <= 65_535 && y <= 65_535 && x as usize * y as usize * 256 >= items);
        }
    }
}
