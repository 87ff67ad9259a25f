//! Memory formats: in which order the dimensions of a copy lie in memory.

use super::views::dense_like;
use super::{Dims, Error, Layout, Result};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryFormat {
    Contiguous,
    /// As the original lies.
    Preserve,
    /// Of images (four dimensions) or volumes (five): the second dimension varies fastest.
    ChannelsLast(usize),
}

/// The layout of a tensor that has all its elements; others are made of such tensors, in Python.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StridedLayout;

impl StridedLayout {
    pub const NAME: &str = "strided";
}

impl MemoryFormat {
    /// From PyTorch's name for it.
    pub fn parse(name: &str) -> Option<MemoryFormat> {
        Some(match name {
            "contiguous_format" => MemoryFormat::Contiguous,
            "preserve_format" => MemoryFormat::Preserve,
            "channels_last" => MemoryFormat::ChannelsLast(4),
            "channels_last_3d" => MemoryFormat::ChannelsLast(5),
            _ => return None,
        })
    }

    /// The layout in which a copy of a tensor that lies like this is made.
    pub fn layout(self, like: &Layout) -> Result<Layout> {
        match self {
            MemoryFormat::Contiguous => Ok(Layout::contiguous(&like.shape)),
            MemoryFormat::Preserve => Ok(dense_like(like)),
            MemoryFormat::ChannelsLast(ndim) => channels_last(&like.shape, ndim),
        }
    }

    /// Whether elements that lie like this lie in the format.
    pub fn holds(self, layout: &Layout) -> bool {
        let MemoryFormat::ChannelsLast(ndim) = self else { return layout.is_contiguous() };
        if layout.ndim() != ndim {
            return false;
        }
        let mut step = 1;
        channels_first_to_vary(ndim).all(|d| {
            let (size, stride) = (layout.shape[d], layout.strides[d]);
            let fits = size == 1 || stride == step;
            step *= if size == 1 { 1 } else { size };
            fits
        })
    }

    /// The format that a tensor of this layout hands on.
    pub fn suggested(layout: &Layout) -> MemoryFormat {
        let format = MemoryFormat::ChannelsLast(layout.ndim());
        if matches!(layout.ndim(), 4 | 5) && has_channels_last(layout) {
            format
        } else {
            MemoryFormat::Contiguous
        }
    }
}

/// The dimensions from the one that varies fastest to the one that varies slowest.
fn channels_first_to_vary(ndim: usize) -> impl Iterator<Item = usize> {
    std::iter::once(1).chain((2..ndim).rev()).chain(std::iter::once(0))
}

/// Whether strides grow in the order of the format; where both orders fit, this one has to show in the first stride.
fn has_channels_last(layout: &Layout) -> bool {
    let mut least = 0;
    layout.strides[1] != 0
        && channels_first_to_vary(layout.ndim()).all(|d| {
            let (size, stride) = (layout.shape[d], layout.strides[d]);
            if size == 0 || stride < least || (d == 0 && least == layout.strides[1]) {
                return false;
            }
            least = stride * size.max(1);
            true
        })
}

fn channels_last(shape: &Dims, ndim: usize) -> Result<Layout> {
    if shape.len() != ndim {
        return Err(refused(ndim));
    }
    let mut layout = Layout::contiguous(shape);
    let mut step = 1;
    for d in channels_first_to_vary(ndim) {
        layout.strides[d] = step;
        step *= shape[d];
    }
    Ok(layout)
}

/// A tensor of another rank has no such format.
pub fn refused(ndim: usize) -> Error {
    let name = if ndim == 4 { "channels_last" } else { "channels_last_3d" };
    Error::runtime(format!("required rank {ndim} tensor to use {name} format"))
}
