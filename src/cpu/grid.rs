//! `grid_sample` and its gradients. In each dimension a point has up to four neighbours, each with a weight and the
//! derivative of that weight with respect to the grid. A result is the weighted sum over all combinations of
//! neighbours.

use super::element::scratch;
use super::float::{Float, by_float};
use super::par;
use crate::base::{Result, Strided};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kernel {
    Linear,
    Nearest,
    Cubic,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Padding {
    Zeros,
    Border,
    Reflection,
}

/// The sizes and options of a call. Images of one or two dimensions are volumes whose first sizes are 1.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    pub samples: usize,
    pub channels: usize,
    pub size: [usize; 3],
    pub points: usize,
    /// Number of coordinates of a point.
    pub dims: usize,
    pub kernel: Kernel,
    pub padding: Padding,
    pub align_corners: bool,
}

/// Neighbours along one dimension.
#[derive(Copy)]
struct Along<T> {
    count: usize,
    place: [usize; 4],
    weight: [T; 4],
    slope: [T; 4],
}

/// Copies the memory at once; a derived `clone` copies numbers one by one.
impl<T: Copy> Clone for Along<T> {
    #[inline(always)]
    fn clone(&self) -> Along<T> {
        *self
    }
}

impl<T: Float> Along<T> {
    /// A single neighbour: the only element of a dimension of size 1.
    const ONE: Along<T> = Along { count: 1, place: [0; 4], weight: [T::ONE; 4], slope: [T::ZERO; 4] };

    fn push(&mut self, place: T, size: usize, weight: T, slope: T) {
        // NaN is outside, too.
        if place >= T::ZERO && place < T::from_i64(size as i64) {
            let k = self.count;
            (self.place[k], self.weight[k], self.slope[k]) = (place.to_i64() as usize, weight, slope);
            self.count += 1;
        }
    }
}

/// Clamps `x` to the image; returns the result and its derivative.
fn clipped<T: Float>(x: T, size: usize) -> (T, T) {
    let last = T::from_i64(size as i64 - 1);
    if x >= last {
        (last, T::ZERO)
    } else if x > T::ZERO {
        (x, T::ONE)
    } else {
        (T::ZERO, T::ZERO) // NaN, too.
    }
}

/// Reflects `x` between `low2 / 2` and `high2 / 2`; returns the result and its derivative.
fn mirrored<T: Float>(x: T, low2: i64, high2: i64) -> (T, T) {
    if low2 == high2 {
        return (T::ZERO, T::ZERO);
    }
    let (low, span) = (T::from_f64(low2 as f64 / 2.0), T::from_f64((high2 - low2) as f64 / 2.0));
    let from = x - low;
    let (from, sign) = if from < T::ZERO { (-from, -T::ONE) } else { (from, T::ONE) };
    let (extra, flips) = (from % span, (from / span).floor());
    if flips % T::from_f64(2.0) == T::ZERO { (extra + low, sign) } else { (span - extra + low, -sign) }
}

fn reflected<T: Float>(x: T, size: usize, align: bool) -> (T, T) {
    if align { mirrored(x, 0, 2 * (size as i64 - 1)) } else { mirrored(x, -1, 2 * size as i64 - 1) }
}

fn padded<T: Float>(of: &Sampling, x: T, size: usize) -> (T, T) {
    match of.padding {
        Padding::Zeros => (x, T::ONE),
        Padding::Border => clipped(x, size),
        Padding::Reflection => {
            let (x, first) = reflected(x, size, of.align_corners);
            let (x, second) = clipped(x, size);
            (x, first * second)
        }
    }
}

/// The cubic weights and their derivatives at `t` of the way from the second to the third neighbour.
fn cubic<T: Float>(t: T) -> ([T; 4], [T; 4]) {
    const A: f64 = -0.75;
    let of = T::from_f64;
    let near = |x: T| (of(A + 2.0) * x - of(A + 3.0)) * x * x + T::ONE;
    let far = |x: T| (((x - of(5.0)) * x + of(8.0)) * x - of(4.0)) * of(A);
    let near_slope = |x: T| (of(3.0 * (A + 2.0)) * x - of(2.0 * (A + 3.0))) * x;
    let far_slope = |x: T| ((of(3.0) * x - of(10.0)) * x + of(8.0)) * of(A);
    let (u, v, w) = (t + T::ONE, T::ONE - t, of(2.0) - t);
    ([far(u), near(t), near(v), far(w)], [far_slope(u), near_slope(t), -near_slope(v), -far_slope(w)])
}

/// Finds the neighbours of a point along a dimension of `size` elements.
#[inline(always)]
fn along<T: Float>(all: &mut Along<T>, of: &Sampling, place: T, size: usize) {
    let span = T::from_i64(if of.align_corners { size - 1 } else { size } as i64);
    let (from_left, two) = (place + T::ONE, T::from_f64(2.0));
    let factor = span / two;
    let x = if of.align_corners { from_left / two * span } else { (from_left * span - T::ONE) / two };
    all.count = 0;
    match of.kernel {
        Kernel::Linear => {
            let (x, slope) = padded(of, x, size);
            let (low, slope) = (x.floor(), slope * factor);
            let part = x - low;
            all.push(low, size, T::ONE - part, -slope);
            all.push(low + T::ONE, size, part, slope);
        }
        Kernel::Nearest => all.push(padded(of, x, size).0.round_ties_even(), size, T::ONE, T::ZERO),
        Kernel::Cubic => {
            let low = x.floor();
            let (weights, slopes) = cubic(x - low);
            for k in 0..4 {
                let at = padded(of, low + T::from_f64(k as f64) - T::ONE, size).0;
                all.push(at, size, weights[k], slopes[k] * factor);
            }
        }
    }
}

/// Finds the neighbours in each dimension of point `i`, counted over the whole batch. They are written in place, because
/// a copy would have to wait until they are stored.
unsafe fn neighbours<T: Float>(all: &mut [Along<T>; 3], of: &Sampling, grid: *const T, i: usize) {
    for k in 0..of.dims {
        // SAFETY: the grid has `dims` coordinates per point. The last dimension's comes first.
        along(&mut all[2 - k], of, unsafe { *grid.add(i * of.dims + k) }, of.size[2 - k]);
    }
}

/// Calls `f` for each combination of neighbours, with its index in a channel, its weights and their
/// derivatives.
#[inline(always)]
fn each<T: Float>(of: &Sampling, [a, b, c]: &[Along<T>; 3], mut f: impl FnMut(usize, [T; 3], [T; 3])) {
    for i in 0..a.count {
        for j in 0..b.count {
            let row = (a.place[i] * of.size[1] + b.place[j]) * of.size[2];
            for k in 0..c.count {
                f(
                    row + c.place[k],
                    [a.weight[i], b.weight[j], c.weight[k]],
                    [a.slope[i], b.slope[j], c.slope[k]],
                );
            }
        }
    }
}

unsafe fn forward_of<T: Float>(of: &Sampling, out: *mut u8, x: *const u8, grid: *const u8) {
    let plane: usize = of.size.iter().product();
    let to = par::Shared::new(out.cast::<T>().cast_const());
    let (x, grid) = (par::Shared::new(x.cast::<T>()), par::Shared::new(grid.cast::<T>()));
    let grain = (par::GRAIN / (8 * of.channels + 16)).max(1);
    par::ranges(of.samples * of.points, grain, |range| {
        range.for_each(|i| {
            let (n, at) = (i / of.points, i % of.points);
            // SAFETY: the tensors are dense and have the sizes in `of`; this task alone writes these elements.
            unsafe {
                let mut all = [Along::ONE; 3];
                neighbours(&mut all, of, grid.get().cast_const(), i);
                for c in 0..of.channels {
                    let (mut sum, x) = (T::ZERO, x.get().add((n * of.channels + c) * plane));
                    each(of, &all, |place, [a, b, c], _| sum += a * b * c * *x.add(place));
                    *to.get().add((n * of.channels + c) * of.points + at) = sum;
                }
            }
        })
    });
}

unsafe fn backward_input_of<T: Float>(
    of: &Sampling,
    out: *mut u8,
    g: *const u8,
    grid: *const u8,
) -> Result<()> {
    let plane: usize = of.size.iter().product();
    let to = par::Shared::new(out.cast::<T>().cast_const());
    let (g, grid) = (par::Shared::new(g.cast::<T>()), par::Shared::new(grid.cast::<T>()));
    // Points may share neighbours, so a channel of an example is one task.
    let grain = (par::GRAIN / (16 * of.points + plane).max(1)).max(1);
    par::try_ranges(of.samples * of.channels, grain, |range| {
        let (mut known, mut all) = (usize::MAX, scratch(of.points, [Along::ONE; 3])?);
        for i in range {
            let n = i / of.channels;
            // SAFETY: as above.
            unsafe {
                if n != known {
                    known = n;
                    for (k, all) in all.iter_mut().enumerate() {
                        neighbours(all, of, grid.get().cast_const(), n * of.points + k);
                    }
                }
                let to = std::slice::from_raw_parts_mut(to.get().add(i * plane), plane);
                to.fill(T::ZERO);
                for (k, all) in all.iter().enumerate() {
                    let g = *g.get().add(i * of.points + k);
                    each(of, all, |place, [a, b, c], _| to[place] += g * a * b * c);
                }
            }
        }
        Ok(())
    })
}

unsafe fn backward_grid_of<T: Float>(of: &Sampling, out: *mut u8, [g, x, grid]: [*const u8; 3]) {
    let plane: usize = of.size.iter().product();
    let to = par::Shared::new(out.cast::<T>().cast_const());
    let [g, x, grid] = [g, x, grid].map(|from| par::Shared::new(from.cast::<T>()));
    let grain = (par::GRAIN / (16 * of.channels + 16)).max(1);
    par::ranges(of.samples * of.points, grain, |range| {
        range.for_each(|i| {
            let (n, at) = (i / of.points, i % of.points);
            // SAFETY: as above.
            unsafe {
                let mut all = [Along::ONE; 3];
                neighbours(&mut all, of, grid.get().cast_const(), i);
                let mut sums = [T::ZERO; 3];
                for c in 0..of.channels {
                    let x = x.get().add((n * of.channels + c) * plane);
                    let g = *g.get().add((n * of.channels + c) * of.points + at);
                    each(of, &all, |place, [a, b, c], [da, db, dc]| {
                        let value = g * *x.add(place);
                        sums[0] += value * da * b * c;
                        sums[1] += value * a * db * c;
                        sums[2] += value * a * b * dc;
                    });
                }
                for k in 0..of.dims {
                    *to.get().add(i * of.dims + k) = sums[2 - k];
                }
            }
        })
    });
}

/// `out[n, c, i]` is channel `c` sampled at point `i`.
///
/// # Safety
/// The views are dense, live, of one dtype and have the sizes in `of`, none of which is 0; `out` overlaps nothing.
pub unsafe fn forward(of: &Sampling, out: Strided, x: Strided, grid: Strided) -> Result<()> {
    by_float!("grid_sampler", out.dtype, T => {
        // SAFETY: the caller's contract.
        unsafe { forward_of::<T>(of, out.ptr, x.ptr, grid.ptr) };
        Ok(())
    })
}

/// The gradient for the images, given that for the results.
///
/// # Safety
/// See [`forward`].
pub unsafe fn backward_input(of: &Sampling, out: Strided, grad: Strided, grid: Strided) -> Result<()> {
    // SAFETY: as above.
    unsafe {
        by_float!("grid_sampler", out.dtype, T => backward_input_of::<T>(of, out.ptr, grad.ptr, grid.ptr))
    }
}

/// The gradient for the grid.
///
/// # Safety
/// See [`forward`].
pub unsafe fn backward_grid(
    of: &Sampling,
    out: Strided,
    grad: Strided,
    x: Strided,
    grid: Strided,
) -> Result<()> {
    let from = [grad.ptr.cast_const(), x.ptr.cast_const(), grid.ptr.cast_const()];
    by_float!("grid_sampler", out.dtype, T => {
        // SAFETY: the caller's contract.
        unsafe { backward_grid_of::<T>(of, out.ptr, from) };
        Ok(())
    })
}
