//! Shapes as inline lists, and arithmetic on them that checks for overflow.

use super::{Error, Fault, Result};
use smallvec::SmallVec;

/// Sizes, strides or indices, one for each dimension; up to six are stored inline.
pub type Dims = SmallVec<[usize; 6]>;

/// The number of elements. Shapes are checked when they are made, so this cannot overflow.
pub fn numel(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// Row-major strides. Dimensions of size 0 or 1 get the same strides as in PyTorch.
pub fn contiguous_strides(shape: &[usize]) -> Dims {
    let mut strides: Dims = SmallVec::from_elem(1, shape.len());
    for i in (0..shape.len().saturating_sub(1)).rev() {
        strides[i] = strides[i + 1] * shape[i + 1].max(1);
    }
    strides
}

/// The shape to which both broadcast.
pub fn broadcast(a: &[usize], b: &[usize]) -> Result<Dims> {
    if a == b {
        return Ok(Dims::from_slice(a));
    }
    let (long, short) = if a.len() >= b.len() { (a, b) } else { (b, a) };
    let mut out = Dims::from_slice(long);
    let lead = long.len() - short.len();
    // From the last dimension on, because errors name the last mismatch.
    for (i, &s) in short.iter().enumerate().rev() {
        let l = long[lead + i];
        if s == l || s == 1 {
            continue;
        }
        if l == 1 {
            out[lead + i] = s;
            continue;
        }
        let dim = lead + i;
        let (sa, sb) = if a.len() >= b.len() { (l, s) } else { (s, l) };
        return Err(Error::from(Fault::Broadcast { a: sa, b: sb, dim }));
    }
    Ok(out)
}

/// Converts a dimension that may be negative to an index.
pub fn wrap_dim(dim: i64, ndim: usize) -> Result<usize> {
    let range = ndim.max(1) as i64;
    if dim < -range || dim >= range {
        return Err(Error::from(Fault::DimRange { dim, low: -range, high: range - 1 }));
    }
    Ok(if dim < 0 { (dim + range) as usize } else { dim as usize })
}

/// Like `wrap_dim`, but an error for 0-d tensors.
pub fn existing_dim(dim: i64, ndim: usize) -> Result<usize> {
    if ndim == 0 {
        return Err(Error::index(format!("Dimension specified as {dim} but tensor has no dimensions")));
    }
    wrap_dim(dim, ndim)
}

/// The checked indices of the dimensions to reduce; none given, or an empty list, means all.
pub fn dims_or_all(dims: Option<&[i64]>, ndim: usize) -> Result<Dims> {
    match dims {
        None | Some([]) => Ok((0..ndim).collect()),
        Some(dims) => {
            let mut out = Dims::new();
            for &d in dims {
                let d = wrap_dim(d, ndim)?;
                if out.contains(&d) {
                    return Err(Error::runtime(format!(
                        "dim {d} appears multiple times in the list of dims"
                    )));
                }
                if ndim > 0 {
                    out.push(d);
                }
            }
            Ok(out)
        }
    }
}
