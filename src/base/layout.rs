//! Layouts of tensors in their storage. A view is another layout over the same bytes.

use super::{DType, Dims, contiguous_strides, numel};
use smallvec::SmallVec;

/// Shape, strides and offset, all in elements. Strides are never negative, as in PyTorch.
#[derive(PartialEq, Eq, Debug)]
pub struct Layout {
    pub shape: Dims,
    pub strides: Dims,
    pub offset: usize,
}

/// Copies the inline numbers at once; a derived `clone` copies them one by one.
impl Clone for Layout {
    #[inline]
    fn clone(&self) -> Layout {
        Layout {
            shape: Dims::from_slice(&self.shape),
            strides: Dims::from_slice(&self.strides),
            offset: self.offset,
        }
    }
}

impl Layout {
    pub fn contiguous(shape: &[usize]) -> Layout {
        Layout { shape: Dims::from_slice(shape), strides: contiguous_strides(shape), offset: 0 }
    }

    pub fn numel(&self) -> usize {
        numel(&self.shape)
    }

    pub fn ndim(&self) -> usize {
        self.shape.len()
    }

    /// The layout of the parts of complex elements, with a new last dimension of size 2.
    pub fn as_parts(&self) -> Layout {
        let mut parts = Layout { offset: 2 * self.offset, ..self.clone() };
        parts.strides.iter_mut().for_each(|s| *s *= 2);
        parts.shape.push(2);
        parts.strides.push(1);
        parts
    }

    /// True if row-major without gaps; strides of dimensions of size 1 are ignored.
    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        for (&n, &s) in self.shape.iter().zip(&self.strides).rev() {
            if n == 0 {
                return true;
            }
            if n != 1 && s != expected {
                return self.numel() == 0;
            }
            expected *= n;
        }
        true
    }

    /// True if the elements fill their memory without gaps, in any order of dimensions.
    pub fn is_dense(&self) -> bool {
        if self.is_contiguous() && self.numel() > 0 {
            return true;
        }
        let mut dims: SmallVec<[(usize, usize); 6]> =
            self.strides.iter().copied().zip(self.shape.iter().copied()).filter(|d| d.1 > 1).collect();
        dims.sort_unstable();
        dims.iter().try_fold(1, |gap, &(stride, size)| (stride == gap).then_some(gap * size)).is_some()
    }

    /// True if several elements share memory through a stride of 0.
    pub fn is_expanded(&self) -> bool {
        let mut dims = self.shape.iter().zip(&self.strides);
        self.numel() > 0 && dims.any(|(&n, &s)| n > 1 && s == 0)
    }

    /// The layout with expanded dimensions reduced to size 1.
    pub fn unexpanded(&self) -> Layout {
        let shape =
            self.shape.iter().zip(&self.strides).map(|(&n, &s)| if s == 0 { n.min(1) } else { n }).collect();
        Layout { shape, ..self.clone() }
    }

    /// One past the last element in the storage, counted from the storage's start.
    pub fn end(&self) -> usize {
        if self.numel() == 0 {
            return self.offset;
        }
        self.offset + self.shape.iter().zip(&self.strides).map(|(n, s)| (n - 1) * s).sum::<usize>() + 1
    }

    /// The number of bytes from the storage's start that this layout covers. `None` if it overflows, which a
    /// user's sizes may cause.
    pub fn bytes(&self, dtype: DType) -> Option<usize> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        let mut steps = self.shape.iter().zip(&self.strides);
        let last = steps.try_fold(self.offset, |end, (&n, &s)| end.checked_add((n - 1).checked_mul(s)?))?;
        last.checked_add(1)?.checked_mul(dtype.size()).filter(|&bytes| bytes <= isize::MAX as usize)
    }

    /// The layout of this tensor broadcast to shape `to`: expanded dimensions get stride 0. This shape must
    /// broadcast to `to`.
    pub fn broadcast_to(&self, to: &[usize]) -> Layout {
        let lead = to.len() - self.shape.len();
        let mut strides: Dims = smallvec::smallvec![0; to.len()];
        for (i, (&n, &s)) in self.shape.iter().zip(&self.strides).enumerate() {
            strides[lead + i] = if n == 1 && to[lead + i] != 1 { 0 } else { s };
        }
        Layout { shape: Dims::from_slice(to), strides, offset: self.offset }
    }
}

/// Host memory with a layout, for CPU kernels. `ptr` points at the first element (the layout's offset is
/// added); strides count elements.
#[derive(Clone, Copy, Debug)]
pub struct Strided<'a> {
    pub ptr: *mut u8,
    pub dtype: DType,
    pub shape: &'a [usize],
    pub strides: &'a [usize],
}

impl Strided<'_> {
    pub fn numel(&self) -> usize {
        numel(self.shape)
    }

    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        for (&n, &s) in self.shape.iter().zip(self.strides).rev() {
            if n != 1 && s != expected {
                return self.numel() == 0;
            }
            expected *= n;
        }
        true
    }
}

// SAFETY: a Strided is a plain description; its maker keeps the bytes alive and unaliased while kernels run.
unsafe impl Send for Strided<'_> {}
// SAFETY: as above.
unsafe impl Sync for Strided<'_> {}

/// An index operand of a gather or scatter. `index` (int64 or int32) is already broadcast to the shape of the
/// elements that are moved. Each of its values, which may count from the end of a dimension of `size`, is
/// multiplied by `stride` and added to the offset of the indexed operand. `dim` is for messages.
#[derive(Clone, Copy, Debug)]
pub struct IndexBy<'a> {
    pub index: Strided<'a>,
    pub size: usize,
    pub stride: usize,
    pub dim: usize,
}
