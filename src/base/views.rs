//! Views as pure functions of layouts: every view operator, and every basic index, is one of these.

use super::{Dims, Error, Fault, Layout, Result, contiguous_strides, wrap_dim};

impl Layout {
    pub fn transpose(&self, a: i64, b: i64) -> Result<Layout> {
        let (a, b) = (wrap_dim(a, self.ndim())?, wrap_dim(b, self.ndim())?);
        let mut out = self.clone();
        if self.ndim() > 0 {
            out.shape.swap(a, b);
            out.strides.swap(a, b);
        }
        Ok(out)
    }

    pub fn permute(&self, dims: &[i64]) -> Result<Layout> {
        if dims.len() != self.ndim() {
            return Err(Error::runtime(format!(
                "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired \
                 ordering of dimensions i.e. input.dim() = {} is not equal to len(dims) = {}",
                self.ndim(),
                dims.len()
            )));
        }
        let mut seen: Dims = smallvec::smallvec![0; dims.len()];
        let mut out = Layout { shape: Dims::new(), strides: Dims::new(), offset: self.offset };
        for &dim in dims {
            let dim = wrap_dim(dim, self.ndim())?;
            if std::mem::replace(&mut seen[dim], 1) == 1 {
                return Err(Error::runtime("permute(): duplicate dims are not allowed."));
            }
            out.shape.push(self.shape[dim]);
            out.strides.push(self.strides[dim]);
        }
        Ok(out)
    }

    /// Expands to `sizes`, where -1 keeps a size.
    pub fn expand(&self, sizes: &[i64]) -> Result<Layout> {
        if sizes.len() < self.ndim() {
            return Err(Error::runtime(format!(
                "expand(torch.FloatTensor{{{:?}}}, size={sizes:?}): the number of sizes provided ({}) must be greater or \
                 equal to the number of dimensions in the tensor ({})",
                self.shape.as_slice(),
                sizes.len(),
                self.ndim()
            )));
        }
        let lead = sizes.len() - self.ndim();
        let mut out = Layout { shape: Dims::new(), strides: Dims::new(), offset: self.offset };
        // PyTorch reports the last mismatch.
        let mut unfit = None;
        for (i, &want) in sizes.iter().enumerate() {
            let (have, stride) =
                if i < lead { (1, 0) } else { (self.shape[i - lead], self.strides[i - lead]) };
            let size = match want {
                -1 if i >= lead => have,
                -1 => {
                    return Err(Error::runtime(format!(
                        "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {i}"
                    )));
                }
                w if w < 0 => return Err(Error::runtime(format!("negative size {w} in expand"))),
                w => w as usize,
            };
            if have != size && have != 1 {
                unfit = Some((i, size, have));
            }
            out.shape.push(size);
            out.strides.push(if have == 1 && size != 1 { 0 } else { stride });
        }
        if let Some((i, size, have)) = unfit {
            return Err(Error::runtime(format!(
                "The expanded size of the tensor ({size}) must match the existing size ({have}) at non-singleton dimension \
                 {i}.  Target sizes: {sizes:?}.  Tensor sizes: {:?}",
                self.shape.as_slice()
            )));
        }
        // New dimensions of size 1 get the strides that PyTorch gives them.
        for i in (0..lead).rev().filter(|&i| out.shape[i] == 1 && self.ndim() > 0) {
            out.strides[i] = out.shape[i + 1] * out.strides[i + 1];
        }
        checked_numel(&out.shape)?;
        Ok(out)
    }

    pub fn unsqueeze(&self, dim: i64) -> Result<Layout> {
        let dim = wrap_dim(dim, self.ndim() + 1)?;
        let mut out = self.clone();
        let stride = if dim < self.ndim() { self.shape[dim] * self.strides[dim] } else { 1 };
        out.shape.insert(dim, 1);
        out.strides.insert(dim, stride);
        Ok(out)
    }

    /// Removes those of the dimensions `dims` that have size 1.
    pub fn squeeze(&self, dims: &[usize]) -> Layout {
        let mut out = Layout { shape: Dims::new(), strides: Dims::new(), offset: self.offset };
        for i in (0..self.ndim()).filter(|i| !(dims.contains(i) && self.shape[*i] == 1)) {
            out.shape.push(self.shape[i]);
            out.strides.push(self.strides[i]);
        }
        out
    }

    pub fn select(&self, dim: i64, index: i64) -> Result<Layout> {
        if self.ndim() == 0 {
            return Err(Error::index("select() cannot be applied to a 0-dim tensor."));
        }
        let dim = wrap_dim(dim, self.ndim())?;
        let size = self.shape[dim] as i64;
        if index < -size || index >= size {
            return Err(Error::index(format!(
                "select(): index {index} out of range for tensor of size {:?} at dimension {dim}",
                self.shape.as_slice()
            )));
        }
        let index = if index < 0 { index + size } else { index } as usize;
        let mut out = self.clone();
        out.offset += index * self.strides[dim];
        out.shape.remove(dim);
        out.strides.remove(dim);
        Ok(out)
    }

    /// Elements `start`, `start + step`, … before `end`, clamped like Python's slices.
    pub fn slice(&self, dim: i64, start: Option<i64>, end: Option<i64>, step: i64) -> Result<Layout> {
        if self.ndim() == 0 {
            return Err(Error::index("slice() cannot be applied to a 0-dim tensor."));
        }
        let dim = wrap_dim(dim, self.ndim())?;
        if step <= 0 {
            return Err(Error::value("step must be greater than zero"));
        }
        let size = self.shape[dim] as i64;
        let clamp = |i: i64| if i < 0 { (i + size).max(0) } else { i.min(size) };
        let start = clamp(start.unwrap_or(0));
        let end = clamp(end.unwrap_or(size)).max(start);
        let mut out = self.clone();
        out.offset += start as usize * self.strides[dim];
        out.shape[dim] = ((end - start) as usize).div_ceil(step as usize);
        out.strides[dim] = self.strides[dim].saturating_mul(step as usize);
        Ok(out)
    }

    pub fn narrow(&self, dim: i64, start: i64, length: i64) -> Result<Layout> {
        if self.ndim() == 0 {
            return Err(Error::runtime("narrow() cannot be applied to a 0-dim tensor."));
        }
        if length < 0 {
            return Err(Error::runtime("narrow(): length must be non-negative."));
        }
        let at = wrap_dim(dim, self.ndim())?;
        let size = self.shape[at] as i64;
        if start < -size || start > size {
            return Err(Error::index(format!(
                "start out of range (expected to be in range of [{}, {size}], but got {start})",
                -size
            )));
        }
        let from = if start < 0 { start + size } else { start };
        if from > size - length {
            return Err(Error::runtime(format!(
                "start ({from}) + length ({length}) exceeds dimension size ({size})."
            )));
        }
        self.slice(dim, Some(from), Some(from + length), 1)
    }

    pub fn diagonal(&self, offset: i64, dim1: i64, dim2: i64) -> Result<Layout> {
        let (a, b) = (wrap_dim(dim1, self.ndim())?, wrap_dim(dim2, self.ndim())?);
        if a == b {
            return Err(Error::runtime(format!("diagonal dimensions cannot be identical {dim1}, {dim2}")));
        }
        let (rows, columns) = (self.shape[a] as i64, self.shape[b] as i64);
        let length =
            if offset >= 0 { rows.min(columns - offset) } else { (rows + offset).min(columns) }.max(0);
        let mut out = self.clone();
        if length > 0 {
            out.offset += if offset >= 0 {
                offset as usize * self.strides[b]
            } else {
                (-offset) as usize * self.strides[a]
            };
        }
        let stride = self.strides[a] + self.strides[b];
        for dim in [a.max(b), a.min(b)] {
            out.shape.remove(dim);
            out.strides.remove(dim);
        }
        out.shape.push(length as usize);
        out.strides.push(stride);
        Ok(out)
    }

    /// Windows of `size` along `dim`, with distance `step`, as a new last dimension.
    pub fn unfold(&self, dim: i64, size: i64, step: i64) -> Result<Layout> {
        let at = wrap_dim(dim, self.ndim())?;
        let (have, stride) = if self.ndim() == 0 { (1, 1) } else { (self.shape[at], self.strides[at]) };
        if size < 0 {
            return Err(Error::runtime(format!("size is {size} but must be >= 0")));
        }
        if size as usize > have {
            return Err(Error::runtime(format!(
                "maximum size for tensor at dimension {at} is {have} but size is {size}"
            )));
        }
        if step <= 0 {
            return Err(Error::runtime(format!("step is {step} but must be > 0")));
        }
        let mut out = self.clone();
        if self.ndim() > 0 {
            out.shape[at] = (have - size as usize) / step as usize + 1;
            out.strides[at] = stride * step as usize;
        }
        out.shape.push(size as usize);
        out.strides.push(stride);
        Ok(out)
    }

    /// The layout with another shape and the same order of elements, if strides can express it.
    pub fn view(&self, shape: &[usize]) -> Option<Layout> {
        if self.numel() == 0 {
            let kept = shape == self.shape.as_slice();
            return Some(if kept {
                self.clone()
            } else {
                Layout { offset: self.offset, ..Layout::contiguous(shape) }
            });
        }
        // (A last dimension of size 1 passes its stride on.)
        if self.strides.last().is_none_or(|&s| s == 1) && self.is_contiguous() {
            return Some(Layout { offset: self.offset, ..Layout::contiguous(shape) });
        }
        let mut strides: Dims = smallvec::smallvec![0; shape.len()];
        let mut view = shape.len();
        // Go through runs of adjacent dimensions, from the last, and divide the new shape into the same runs.
        let (mut have, mut want) = (1, 1);
        let mut run_stride = self.strides.last().copied().unwrap_or(1);
        for d in (0..self.ndim()).rev() {
            have *= self.shape[d];
            let run_ends = d == 0 || (self.shape[d - 1] != 1 && self.strides[d - 1] != have * run_stride);
            if !run_ends {
                continue;
            }
            while view > 0 && (want < have || shape[view - 1] == 1) {
                view -= 1;
                strides[view] = want * run_stride;
                want *= shape[view];
            }
            if want != have {
                return None;
            }
            if d > 0 {
                run_stride = self.strides[d - 1];
                (have, want) = (1, 1);
            }
        }
        (view == 0).then(|| Layout { shape: Dims::from_slice(shape), strides, offset: self.offset })
    }
}

impl Layout {
    /// The result of `infer_shape` and `view` in one pass, for contiguous elements. `None` if they are not
    /// contiguous or the sizes do not fit.
    pub fn view_rows(&self, sizes: &[i64]) -> Option<Layout> {
        const MOST: usize = 6;
        let count = self.rows().filter(|_| sizes.len() <= MOST)?;
        let (mut shape, mut strides) = ([0; MOST], [0; MOST]);
        let (mut known, mut hole) = (1usize, None);
        for (i, &size) in sizes.iter().enumerate() {
            shape[i] = match size {
                -1 if hole.is_none() => {
                    hole = Some(i);
                    1
                }
                _ => usize::try_from(size).ok()?,
            };
            known = known.checked_mul(shape[i])?;
        }
        if let Some(i) = hole {
            shape[i] = count.checked_div(known)?;
            known *= shape[i];
        }
        if known != count {
            return None;
        }
        let mut stride = 1;
        for i in (0..sizes.len()).rev() {
            strides[i] = stride;
            stride *= shape[i];
        }
        let dims = |dims| Dims::from_buf_and_len(dims, sizes.len());
        Some(Layout { shape: dims(shape), strides: dims(strides), offset: self.offset })
    }

    /// The number of elements, if there are any and they are contiguous.
    fn rows(&self) -> Option<usize> {
        let mut count = 1;
        for (i, (&size, &stride)) in self.shape.iter().zip(&self.strides).rev().enumerate() {
            // A last dimension of size 1 passes its stride on.
            if stride != count && (size != 1 || i == 0) {
                return None;
            }
            count *= size;
        }
        (count > 0).then_some(count)
    }
}

/// The number of elements of a user's shape, or an error if it overflows.
pub fn checked_numel(shape: &[usize]) -> Result<usize> {
    if shape.contains(&0) {
        return Ok(0);
    }
    shape
        .iter()
        .try_fold(1usize, |n, &d| n.checked_mul(d))
        .filter(|&n| n <= isize::MAX as usize)
        .ok_or_else(|| Error::runtime(format!("Storage size calculation overflowed with sizes={shape:?}")))
}

/// Resolves a user's shape, with at most one -1, for `count` elements.
pub fn infer_shape(shape: &[i64], count: usize) -> Result<Dims> {
    let invalid = || Error::from(Fault::InvalidShape { shape: format!("{shape:?}"), numel: count });
    let mut out = Dims::new();
    let mut hole = None;
    for (i, &n) in shape.iter().enumerate() {
        match n {
            -1 if hole.is_some() => return Err(Error::runtime("only one dimension can be inferred")),
            -1 => {
                hole = Some(i);
                out.push(1);
            }
            n if n < 0 => {
                return Err(Error::runtime(format!(
                    "invalid shape dimension {n} at index {i} of shape {shape:?}"
                )));
            }
            n => out.push(n as usize),
        }
    }
    let known = checked_numel(&out)?;
    if let Some(i) = hole {
        if known == 0 && count == 0 {
            return Err(Error::runtime(format!(
                "cannot reshape tensor of 0 elements into shape {shape:?} because the unspecified dimension size -1 can be \
                 any value and is ambiguous"
            )));
        }
        if known == 0 || !count.is_multiple_of(known) {
            return Err(invalid());
        }
        out[i] = count / known;
    } else if known != count {
        return Err(invalid());
    }
    Ok(out)
}

/// True if two indices may reach the same element.
pub fn may_overlap(layout: &Layout) -> bool {
    let mut dims: Vec<(usize, usize)> =
        layout.strides.iter().copied().zip(layout.shape.iter().copied()).filter(|d| d.1 > 1).collect();
    dims.sort_unstable();
    let mut reach = 0;
    for (stride, size) in dims {
        if stride <= reach {
            return true;
        }
        reach += stride * (size - 1);
    }
    false
}

/// The dimensions, innermost first, in the order of the operands' strides. The first operand that
/// distinguishes two dimensions decides.
fn order_of(shape: &[usize], operands: &[&[usize]]) -> Dims {
    // A negative result keeps the order, a positive one swaps; expanded dimensions do not count.
    let compare = |a: usize, b: usize| {
        let say = |strides: &&[usize]| match (strides[a], strides[b]) {
            (0, _) | (_, 0) => 0,
            (x, y) if x < y => -1,
            (x, y) if x > y => 1,
            _ => i32::from(shape[a] > shape[b]),
        };
        operands.iter().map(say).find(|&said| said != 0).unwrap_or(0)
    };
    let mut order: Dims = (0..shape.len()).rev().collect();
    for i in 1..order.len() {
        let mut at = i;
        for before in (0..i).rev() {
            match compare(order[before], order[at]) {
                0 => {}
                1.. => {
                    order.swap(before, at);
                    at = before;
                }
                _ => break,
            }
        }
    }
    order
}

/// The dense strides of a result: contiguous, or in the operands' order of dimensions if that differs.
pub fn ordered_strides(shape: &[usize], operands: &[&[usize]]) -> Dims {
    let order = order_of(shape, operands);
    if order.iter().rev().copied().eq(0..shape.len()) {
        return contiguous_strides(shape);
    }
    let mut strides = smallvec::smallvec![1; shape.len()];
    let mut step = 1;
    for &d in &order {
        strides[d] = step;
        step *= shape[d];
    }
    strides
}

/// A dense layout with the same shape and order of dimensions; dense layouts keep their strides.
pub fn dense_like(layout: &Layout) -> Layout {
    let (shape, strides) = (&layout.shape, &layout.strides);
    if layout.is_dense() {
        return Layout { offset: 0, ..layout.clone() };
    }
    let mut out = Layout { shape: shape.clone(), strides: smallvec::smallvec![1; shape.len()], offset: 0 };
    let mut step = 1;
    for &d in &order_of(shape, &[strides]) {
        out.strides[d] = step;
        step *= shape[d].max(1);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn view_follows_runs() {
        let whole = Layout::contiguous(&[2, 3, 4]);
        assert_eq!(whole.view(&[6, 4]).map(|l| l.strides.to_vec()), Some(vec![4, 1]));
        let turned = whole.transpose(0, 1).unwrap_or(whole.clone());
        assert!(turned.view(&[6, 4]).is_none());
        assert_eq!(turned.view(&[3, 2, 2, 2]).map(|l| l.strides.to_vec()), Some(vec![4, 12, 2, 1]));
        assert_eq!(Layout::contiguous(&[4, 1]).view(&[2, 2]).map(|l| l.numel()), Some(4));
    }

    #[test]
    fn expand_then_view_of_broadcast() {
        let row = Layout::contiguous(&[1, 3]).expand(&[2, 3]).unwrap_or(Layout::contiguous(&[0]));
        assert_eq!(row.strides.as_slice(), &[0, 1]);
        assert!(row.view(&[6]).is_none());
    }

    #[test]
    fn shapes_are_inferred() {
        assert_eq!(infer_shape(&[2, -1], 6).map(|s| s.to_vec()).ok(), Some(vec![2, 3]));
        assert!(infer_shape(&[4, -1], 6).is_err());
        assert!(infer_shape(&[i64::MAX, 4], 6).is_err());
    }

    #[test]
    fn overlap_is_seen() {
        assert!(!may_overlap(&Layout::contiguous(&[3, 4])));
        assert!(may_overlap(&Layout::contiguous(&[5]).unfold(0, 3, 1).unwrap_or(Layout::contiguous(&[1]))));
    }
}
