//! `grid_sample` and its gradients. In each dimension a point has up to four neighbours, each with a weight and the
//! derivative of that weight with respect to the grid. A result is the weighted sum over all combinations of
//! neighbours.

use super::element::scratch;
use super::par;
use crate::base::{DType, Fault, Result, Strided};

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

macro_rules! kernels {
    ($($T:ident, $module:ident;)*) => { $(
        mod $module {
            use super::*;

            /// Neighbours along one dimension.
            #[derive(Clone, Copy)]
            struct Along {
                count: usize,
                place: [usize; 4],
                weight: [$T; 4],
                slope: [$T; 4],
            }

            const ONE: Along = Along { count: 1, place: [0; 4], weight: [1.0; 4], slope: [0.0; 4] };

            impl Along {
                fn push(&mut self, place: $T, size: usize, weight: $T, slope: $T) {
                    // NaN is outside, too.
                    if place >= 0.0 && place < size as $T {
                        let k = self.count;
                        (self.place[k], self.weight[k], self.slope[k]) = (place as usize, weight, slope);
                        self.count += 1;
                    }
                }
            }

            /// Clamps `x` to the image; returns the result and its derivative.
            fn clipped(x: $T, size: usize) -> ($T, $T) {
                let last = (size - 1) as $T;
                if x >= last {
                    (last, 0.0)
                } else if x > 0.0 {
                    (x, 1.0)
                } else {
                    (0.0, 0.0) // NaN, too.
                }
            }

            /// Reflects `x` between `low2 / 2` and `high2 / 2`; returns the result and its derivative.
            fn mirrored(x: $T, low2: i64, high2: i64) -> ($T, $T) {
                if low2 == high2 {
                    return (0.0, 0.0);
                }
                let (low, span) = (low2 as $T / 2.0, (high2 - low2) as $T / 2.0);
                let from = x - low;
                let (from, sign) = if from < 0.0 { (-from, -1.0) } else { (from, 1.0) };
                let (extra, flips) = (from % span, (from / span).floor());
                if flips % 2.0 == 0.0 { (extra + low, sign) } else { (span - extra + low, -sign) }
            }

            fn reflected(x: $T, size: usize, align: bool) -> ($T, $T) {
                if align { mirrored(x, 0, 2 * (size as i64 - 1)) } else { mirrored(x, -1, 2 * size as i64 - 1) }
            }

            fn padded(of: &Sampling, x: $T, size: usize) -> ($T, $T) {
                match of.padding {
                    Padding::Zeros => (x, 1.0),
                    Padding::Border => clipped(x, size),
                    Padding::Reflection => {
                        let (x, first) = reflected(x, size, of.align_corners);
                        let (x, second) = clipped(x, size);
                        (x, first * second)
                    }
                }
            }

            /// The cubic weights and their derivatives at `t` of the way from the second to the third neighbour.
            fn cubic(t: $T) -> ([$T; 4], [$T; 4]) {
                const A: $T = -0.75;
                let near = |x: $T| ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0;
                let far = |x: $T| (((x - 5.0) * x + 8.0) * x - 4.0) * A;
                let near_slope = |x: $T| (3.0 * (A + 2.0) * x - 2.0 * (A + 3.0)) * x;
                let far_slope = |x: $T| ((3.0 * x - 10.0) * x + 8.0) * A;
                let (u, v, w) = (t + 1.0, 1.0 - t, 2.0 - t);
                ([far(u), near(t), near(v), far(w)], [far_slope(u), near_slope(t), -near_slope(v), -far_slope(w)])
            }

            fn along(of: &Sampling, place: $T, size: usize) -> Along {
                let factor = if of.align_corners { (size - 1) as $T / 2.0 } else { size as $T / 2.0 };
                let x = if of.align_corners {
                    (place + 1.0) / 2.0 * (size - 1) as $T
                } else {
                    ((place + 1.0) * size as $T - 1.0) / 2.0
                };
                let mut all = Along { count: 0, ..ONE };
                match of.kernel {
                    Kernel::Linear => {
                        let (x, slope) = padded(of, x, size);
                        let (low, slope) = (x.floor(), slope * factor);
                        let part = x - low;
                        all.push(low, size, 1.0 - part, -slope);
                        all.push(low + 1.0, size, part, slope);
                    }
                    Kernel::Nearest => all.push(padded(of, x, size).0.round_ties_even(), size, 1.0, 0.0),
                    Kernel::Cubic => {
                        let low = x.floor();
                        let (weights, slopes) = cubic(x - low);
                        for k in 0..4 {
                            let at = padded(of, low + k as $T - 1.0, size).0;
                            all.push(at, size, weights[k], slopes[k] * factor);
                        }
                    }
                }
                all
            }

            /// The neighbours in each dimension of point `i`, counted over the whole batch.
            unsafe fn neighbours(of: &Sampling, grid: *const $T, i: usize) -> [Along; 3] {
                let mut all = [ONE; 3];
                for k in 0..of.dims {
                    // SAFETY: the grid has `dims` coordinates per point. The last dimension's comes first.
                    all[2 - k] = along(of, unsafe { *grid.add(i * of.dims + k) }, of.size[2 - k]);
                }
                all
            }

            /// Calls `f` for each combination of neighbours, with its index in a channel, its weights and their
            /// derivatives.
            #[inline(always)]
            fn each(of: &Sampling, [a, b, c]: &[Along; 3], mut f: impl FnMut(usize, [$T; 3], [$T; 3])) {
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

            pub unsafe fn forward(of: &Sampling, out: *mut u8, x: *const u8, grid: *const u8) {
                let plane: usize = of.size.iter().product();
                let to = par::Shared::new(out.cast::<$T>().cast_const());
                let (x, grid) = (par::Shared::new(x.cast::<$T>()), par::Shared::new(grid.cast::<$T>()));
                let grain = (par::GRAIN / (8 * of.channels + 16)).max(1);
                par::ranges(of.samples * of.points, grain, |range| range.for_each(|i| {
                    let (n, at) = (i / of.points, i % of.points);
                    // SAFETY: the tensors are dense and have the sizes in `of`; this task alone writes these elements.
                    unsafe {
                        let all = neighbours(of, grid.get().cast_const(), i);
                        for c in 0..of.channels {
                            let (mut sum, x) = (0.0, x.get().add((n * of.channels + c) * plane));
                            each(of, &all, |place, [a, b, c], _| sum += a * b * c * *x.add(place));
                            *to.get().add((n * of.channels + c) * of.points + at) = sum;
                        }
                    }
                }));
            }

            pub unsafe fn backward_input(of: &Sampling, out: *mut u8, g: *const u8, grid: *const u8) -> Result<()> {
                let plane: usize = of.size.iter().product();
                let to = par::Shared::new(out.cast::<$T>().cast_const());
                let (g, grid) = (par::Shared::new(g.cast::<$T>()), par::Shared::new(grid.cast::<$T>()));
                // Points may share neighbours, so a channel of an example is one task.
                let grain = (par::GRAIN / (16 * of.points + plane).max(1)).max(1);
                par::try_ranges(of.samples * of.channels, grain, |range| {
                    let (mut known, mut all) = (usize::MAX, scratch(of.points, [ONE; 3])?);
                    for i in range {
                        let n = i / of.channels;
                        // SAFETY: as above.
                        unsafe {
                            if n != known {
                                known = n;
                                for (k, all) in all.iter_mut().enumerate() {
                                    *all = neighbours(of, grid.get().cast_const(), n * of.points + k);
                                }
                            }
                            let to = std::slice::from_raw_parts_mut(to.get().add(i * plane), plane);
                            to.fill(0.0);
                            for (k, all) in all.iter().enumerate() {
                                let g = *g.get().add(i * of.points + k);
                                each(of, all, |place, [a, b, c], _| to[place] += g * a * b * c);
                            }
                        }
                    }
                    Ok(())
                })
            }

            pub unsafe fn backward_grid(of: &Sampling, out: *mut u8, [g, x, grid]: [*const u8; 3]) {
                let plane: usize = of.size.iter().product();
                let to = par::Shared::new(out.cast::<$T>().cast_const());
                let [g, x, grid] = [g, x, grid].map(|from| par::Shared::new(from.cast::<$T>()));
                let grain = (par::GRAIN / (16 * of.channels + 16)).max(1);
                par::ranges(of.samples * of.points, grain, |range| range.for_each(|i| {
                    let (n, at) = (i / of.points, i % of.points);
                    // SAFETY: as above.
                    unsafe {
                        let all = neighbours(of, grid.get().cast_const(), i);
                        let mut sums = [0.0; 3];
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
                }));
            }
        }
    )* };
}
kernels! {
    f32, single;
    f64, double;
}

macro_rules! by_dtype {
    ($dtype:expr, $name:ident ( $($arg:expr),* )) => {
        match $dtype {
            // SAFETY: the contract of the function that uses this macro.
            DType::F32 => unsafe { single::$name($($arg),*) },
            // SAFETY: as above.
            DType::F64 => unsafe { double::$name($($arg),*) },
            dtype => return Err(Fault::NoKernel { op: "grid_sampler", dtype }.into()),
        }
    };
}

/// `out[n, c, i]` is channel `c` sampled at point `i`.
///
/// # Safety
/// The views are dense, live, of one dtype and have the sizes in `of`, none of which is 0; `out` overlaps nothing.
pub unsafe fn forward(of: &Sampling, out: Strided, x: Strided, grid: Strided) -> Result<()> {
    by_dtype!(out.dtype, forward(of, out.ptr, x.ptr, grid.ptr));
    Ok(())
}

/// The gradient for the images, given that for the results.
///
/// # Safety
/// See [`forward`].
pub unsafe fn backward_input(of: &Sampling, out: Strided, grad: Strided, grid: Strided) -> Result<()> {
    by_dtype!(out.dtype, backward_input(of, out.ptr, grad.ptr, grid.ptr))
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
    by_dtype!(
        out.dtype,
        backward_grid(of, out.ptr, [grad.ptr.cast_const(), x.ptr.cast_const(), grid.ptr.cast_const()])
    );
    Ok(())
}
