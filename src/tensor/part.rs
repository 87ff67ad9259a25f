//! A part of a tensor, by layouts: what a write through a view changed of the view's base.

use crate::base::{DType, Layout};
use crate::tensor::Body;

/// A part of a tensor: the layout of the whole, counted from its first element; the dtype as which the part is read; and the part's
/// layout in elements of that dtype.
#[derive(Clone)]
pub struct Part {
    pub whole: Layout,
    pub dtype: DType,
    pub layout: Layout,
}

impl Part {
    /// Where `part` is in a tensor with the elements and the layout of `base`.
    pub fn between(base: &Body, part: &Body) -> Part {
        let (size, part_size) = (base.dtype.size(), part.dtype.size());
        // Complex numbers begin at even places.
        let odd = if part_size > size { base.layout.offset % 2 } else { 0 };
        let start = base.layout.offset - odd;
        let offset = part.layout.offset.wrapping_sub(start * size / part_size);
        Part {
            whole: Layout { offset: odd, ..base.layout.clone() },
            dtype: part.dtype,
            layout: Layout { offset, ..part.layout.clone() },
        }
    }

    /// A part of a tensor like `whole`, but dense.
    pub fn in_dense(whole: &Body, layout: Layout) -> Part {
        Part { whole: Layout::contiguous(whole.shape()), dtype: whole.dtype, layout }
    }

    /// The part of a body with the layout of the whole.
    pub fn of(&self, whole: &Body) -> Body {
        Body { dtype: self.dtype, ..whole.with_layout(self.layout.clone()) }
    }
}
