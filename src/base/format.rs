//! Memory formats: the order of dimensions in memory.

use super::views::dense_like;
use super::{Dims, Error, Layout, Result};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryFormat {
    Contiguous,
    /// The layout of the original tensor.
    Preserve,
    /// For images (rank 4) or volumes (rank 5): the second dimension varies fastest.
    ChannelsLast(usize),
}

/// PyTorch's layout of a dense tensor. Sparse tensors are made of dense ones, in Python.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StridedLayout;

impl StridedLayout {
    pub const NAME: &str = "strided";
}

impl MemoryFormat {
    /// Parses PyTorch's name.
    pub fn parse(name: &str) -> Option<MemoryFormat> {
        Some(match name {
            "contiguous_format" => MemoryFormat::Contiguous,
            "preserve_format" => MemoryFormat::Preserve,
            "channels_last" => MemoryFormat::ChannelsLast(4),
            "channels_last_3d" => MemoryFormat::ChannelsLast(5),
            _ => return None,
        })
    }

    /// The layout in this format of a copy of a tensor with layout `like`.
    pub fn layout(self, like: &Layout) -> Result<Layout> {
        match self {
            MemoryFormat::Contiguous => Ok(Layout::contiguous(&like.shape)),
            MemoryFormat::Preserve => Ok(dense_like(like)),
            MemoryFormat::ChannelsLast(ndim) => channels_last(&like.shape, ndim),
        }
    }

    /// True if the layout is in this format.
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

    /// The memory format that a tensor with this layout passes on to results.
    pub fn suggested(layout: &Layout) -> MemoryFormat {
        let format = MemoryFormat::ChannelsLast(layout.ndim());
        if matches!(layout.ndim(), 4 | 5) && has_channels_last(layout) {
            format
        } else {
            MemoryFormat::Contiguous
        }
    }
}

/// The dimensions in the order of the channels-last format, fastest first.
fn channels_first_to_vary(ndim: usize) -> impl Iterator<Item = usize> {
    std::iter::once(1).chain((2..ndim).rev()).chain(std::iter::once(0))
}

/// True if strides grow in the order of the channels-last format. If both formats fit, dimension 0 must
/// decide for this one.
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

/// The error for a tensor of another rank.
pub fn refused(ndim: usize) -> Error {
    let name = if ndim == 4 { "channels_last" } else { "channels_last_3d" };
    Error::runtime(format!("required rank {ndim} tensor to use {name} format"))
}
