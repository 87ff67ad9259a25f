//! The part of a base that a view covers, described by layouts.

use crate::base::{DType, Layout};
use crate::tensor::Body;

/// A part of a tensor: the layout of the whole, relative to its first element; the dtype of the part; the
/// part's layout, in elements of that dtype.
#[derive(Clone)]
pub struct Part {
    pub whole: Layout,
    pub dtype: DType,
    pub layout: Layout,
}

impl Part {
    /// The part of `base` that `part` covers.
    pub fn between(base: &Body, part: &Body) -> Part {
        let (size, part_size) = (base.dtype.size(), part.dtype.size());
        // A complex number must begin at an even offset.
        let odd = if part_size > size { base.layout.offset % 2 } else { 0 };
        let start = base.layout.offset - odd;
        let offset = part.layout.offset.wrapping_sub(start * size / part_size);
        Part {
            whole: Layout { offset: odd, ..base.layout.clone() },
            dtype: part.dtype,
            layout: Layout { offset, ..part.layout.clone() },
        }
    }

    /// A part of a contiguous tensor with the shape and dtype of `whole`.
    pub fn in_dense(whole: &Body, layout: Layout) -> Part {
        Part { whole: Layout::contiguous(whole.shape()), dtype: whole.dtype, layout }
    }

    /// The view of this part of `whole`, a body with the layout of the whole.
    pub fn of(&self, whole: &Body) -> Body {
        Body { dtype: self.dtype, ..whole.with_layout(self.layout.clone()) }
    }
}
