//! im2col and its inverse: images become columns `[taps of all channels, positions]`, and back. The planes are dense.

use super::element::{Element, by_dtype};
use super::par::{self, GRAIN};
use crate::base::kernel_args::pool::{PoolDivisor as Count, PoolLine as Line, PoolWindows as Pool};
use crate::base::{Strided, Windows};

/// Calls `run` with the offset of an element in a plane, the matching offset in the columns, and the number of elements
/// that follow both at even steps.
#[inline(always)]
fn each_run(windows: &Windows, lines: &[Line; 3], mut run: impl FnMut(usize, usize, usize)) {
    let (image, result) = (windows.image, windows.result);
    let mut row = 0;
    for d in &lines[0].runs {
        for h in &lines[1].runs {
            for w in &lines[2].runs {
                for od in d.low..d.high {
                    for oh in h.low..h.high {
                        let depth = d.from + (od - d.low) * lines[0].stride;
                        let line = h.from + (oh - h.low) * lines[1].stride;
                        let element = (depth * image[1] + line) * image[2] + w.from;
                        let column = row + (od * result[1] + oh) * result[2] + w.low;
                        run(element, column, w.high - w.low);
                    }
                }
                row += windows.positions();
            }
        }
    }
}

fn lines(windows: &Windows) -> [Line; 3] {
    let pool = Pool { windows: *windows, adaptive: false, count: Count::Inside };
    [0, 1, 2].map(|d| pool.line(d))
}

/// Turns images into columns; or, with `back`, columns into images, each element of which is the sum of its copies in
/// the columns.
///
/// # Safety
/// The views are dense, live, and have `planes` planes; `out` overlaps nothing.
pub unsafe fn unfold(windows: &Windows, planes: usize, out: Strided, x: Strided, back: bool) {
    let image: usize = windows.image.iter().product();
    let columns = windows.kernel_numel() * windows.positions();
    let (to, from) = if back { (image, columns) } else { (columns, image) };
    let lines = &lines(windows);
    let step = lines[2].stride;
    let (out, x) = (&out, &x);
    by_dtype!(out.dtype, T => par::ranges(planes, (GRAIN / columns.max(1)).max(1), |range| {
        for plane in range {
            // SAFETY: both views have this plane, it belongs to this task alone, and runs lie inside.
            unsafe {
                let (to, x) = (out.ptr.cast::<T>().add(plane * to), x.ptr.cast::<T>().add(plane * from));
                if back {
                    (0..image).for_each(|i| *to.add(i) = T::from_i64(0));
                    each_run(windows, lines, |element, column, n| {
                        for i in 0..n {
                            let to = to.add(element + i * step);
                            *to = T::plus(*to, *x.add(column + i));
                        }
                    });
                } else {
                    (0..columns).for_each(|i| *to.add(i) = T::from_i64(0));
                    each_run(windows, lines, |element, column, n| {
                        for i in 0..n {
                            *to.add(column + i) = *x.add(element + i * step);
                        }
                    });
                }
            }
        }
    }));
}
