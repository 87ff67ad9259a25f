//! Convolutions against their definition, for random sizes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use crate::base::{Windows, contiguous_strides};

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
    fn list(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.below(2001) as f64 / 1000.0 - 1.0).collect()
    }
}

fn view<'a>(data: &mut [f64], shape: &'a [usize], strides: &'a [usize]) -> Strided<'a> {
    Strided { ptr: data.as_mut_ptr().cast(), dtype: DType::F64, shape, strides }
}

/// Calls `each` with the indices of result, image and weight that meet.
fn meet(c: &Conv, mut each: impl FnMut(usize, usize, usize)) {
    let flat = |size: [usize; 3], at: [usize; 3]| (at[0] * size[1] + at[1]) * size[2] + at[2];
    let all = |size: [usize; 3]| {
        (0..size.iter().product())
            .map(move |i: usize| [i / (size[1] * size[2]), i / size[2] % size[1], i % size[2]])
    };
    let sizes = [c.windows.image, c.windows.kernel, c.windows.result].map(|s| s.iter().product::<usize>());
    for n in 0..c.samples {
        for g in 0..c.groups {
            for o in 0..c.outputs {
                for i in 0..c.inputs {
                    for at in all(c.windows.result) {
                        for tap in all(c.windows.kernel) {
                            let from: [isize; 3] = std::array::from_fn(|d| {
                                (at[d] * c.windows.stride[d] + tap[d] * c.windows.dilation[d]) as isize
                                    - c.windows.padding[d] as isize
                            });
                            if (0..3).any(|d| from[d] < 0 || from[d] >= c.windows.image[d] as isize) {
                                continue;
                            }
                            let y =
                                ((n * c.groups + g) * c.outputs + o) * sizes[2] + flat(c.windows.result, at);
                            let x = ((n * c.groups + g) * c.inputs + i) * sizes[0]
                                + flat(c.windows.image, from.map(|f| f as usize));
                            let w =
                                ((g * c.outputs + o) * c.inputs + i) * sizes[1] + flat(c.windows.kernel, tap);
                            each(y, x, w);
                        }
                    }
                }
            }
        }
    }
}

fn close(found: &[f64], wanted: &[f64], what: &str, c: &Conv) {
    for (i, (f, w)) in found.iter().zip(wanted).enumerate() {
        assert!((f - w).abs() < 1e-9, "{what} {i}: {f}, not {w}, of {c:?}");
    }
}

#[test]
fn all_three_are_their_definition() {
    let mut r = Random(7);
    for round in 0..150 {
        let dims = 1 + round % 3;
        let mut c = Conv {
            samples: 1 + r.below(5),
            groups: 1 + r.below(3),
            // Many rows of weights go by way of columns.
            inputs: 1 + r.below(if round % 5 == 0 { 24 } else { 4 }),
            outputs: 1 + r.below(if round % 4 == 0 { 24 } else { 9 }),
            windows: Windows {
                image: [1; 3],
                kernel: [1; 3],
                result: [1; 3],
                stride: [1; 3],
                padding: [0; 3],
                dilation: [1; 3],
            },
        };
        let w = &mut c.windows;
        for d in 3 - dims..3 {
            w.kernel[d] = 1 + r.below(4);
            w.stride[d] = 1 + r.below(3);
            w.dilation[d] = 1 + r.below(2);
            w.padding[d] = r.below(4);
            let window = (w.kernel[d] - 1) * w.dilation[d] + 1;
            w.image[d] = window.saturating_sub(2 * w.padding[d]).max(1) + r.below(12);
            w.result[d] = (w.image[d] + 2 * w.padding[d] - window) / w.stride[d] + 1;
        }
        let shape = |a: usize, b: usize, s: [usize; 3]| [a, b, s[0], s[1], s[2]];
        let (xs, ys) = (
            shape(c.samples, c.groups * c.inputs, c.windows.image),
            shape(c.samples, c.groups * c.outputs, c.windows.result),
        );
        let ws = shape(c.groups * c.outputs, c.inputs, c.windows.kernel);
        let [xt, yt, wt] = [xs, ys, ws].map(|s| contiguous_strides(&s));
        let [mut x, mut y, mut w] = [xs, ys, ws].map(|s| r.list(s.iter().product()));
        let (mut bias, mut want) = (r.list(ys[1]), vec![0.0; y.len()]);
        let area: usize = c.windows.result.iter().product();
        want.iter_mut().enumerate().for_each(|(i, v)| *v = bias[i / area % ys[1]]);
        meet(&c, |a, b, k| want[a] += x[b] * w[k]);
        // SAFETY: all views are of vectors of these sizes.
        unsafe {
            let bias =
                Strided { ptr: bias.as_mut_ptr().cast(), dtype: DType::F64, shape: &ys[1..2], strides: &[1] };
            forward(&c, view(&mut y, &ys, &yt), view(&mut x, &xs, &xt), view(&mut w, &ws, &wt), Some(bias))
                .unwrap();
        }
        close(&y, &want, "result", &c);
        let mut g = r.list(y.len());
        let (mut dx, mut dw) = (vec![0.0; x.len()], vec![0.0; w.len()]);
        meet(&c, |a, b, k| {
            dx[b] += g[a] * w[k];
            dw[k] += g[a] * x[b];
        });
        let (mut found_x, mut found_w) = (vec![9.0; x.len()], vec![9.0; w.len()]);
        // SAFETY: as above.
        unsafe {
            let mut grad = || view(&mut *std::ptr::from_mut(&mut g), &ys, &yt);
            backward_input(&c, view(&mut found_x, &xs, &xt), grad(), view(&mut w, &ws, &wt), None).unwrap();
            backward_weight(&c, view(&mut found_w, &ws, &wt), view(&mut x, &xs, &xt), grad()).unwrap();
        }
        close(&found_x, &dx, "gradient of the image", &c);
        close(&found_w, &dw, "gradient of the weights", &c);
    }
}

fn single(data: &[f64]) -> Vec<f32> {
    data.iter().map(|v| *v as f32).collect()
}

fn view_f32<'a>(data: &mut [f32], shape: &'a [usize], strides: &'a [usize]) -> Strided<'a> {
    Strided { ptr: data.as_mut_ptr().cast(), dtype: DType::F32, shape, strides }
}

/// Elements of `[samples, channels, 1, height, width]` with channels next to one another.
fn channels_last([_, c, _, h, w]: [usize; 5]) -> [usize; 5] {
    [c * h * w, 1, h * w * c, w * c, c]
}

#[test]
fn tiles_give_what_sums_give() {
    let mut r = Random(11);
    for round in 0..8 {
        let mut c = Conv {
            samples: 2 + r.below(2),
            groups: 1 + round % 2,
            inputs: 32 + r.below(5),
            outputs: 32 + r.below(20),
            windows: Windows {
                image: [1, 9 + r.below(4), 9 + r.below(4)],
                kernel: [1, 3, 3],
                result: [1; 3],
                stride: [1; 3],
                padding: [0, r.below(3), r.below(3)],
                dilation: [1; 3],
            },
        };
        let w = &mut c.windows;
        (1..3).for_each(|d| w.result[d] = w.image[d] + 2 * w.padding[d] - 2);
        assert!(Tiling::new(&c, &c.window()).is_some(), "{c:?}");
        let shape = |a: usize, b: usize, s: [usize; 3]| [a, b, s[0], s[1], s[2]];
        let (xs, ys) = (
            shape(c.samples, c.groups * c.inputs, c.windows.image),
            shape(c.samples, c.groups * c.outputs, c.windows.result),
        );
        let ws = shape(c.groups * c.outputs, c.inputs, c.windows.kernel);
        let steps = |s: &[usize; 5]| {
            if round % 3 == 2 {
                channels_last(*s)
            } else {
                contiguous_strides(s).as_slice().try_into().unwrap()
            }
        };
        let (xt, yt, wt) = (steps(&xs), steps(&ys), contiguous_strides(&ws));
        let [x, w, g] = [xs, ws, ys].map(|s| r.list(s.iter().product()));
        let bias = r.list(ys[1]);
        let [mut x, mut w, mut g, mut bias] = [x, w, g, bias].map(|v| single(&v));
        // In some, what is not finite must reach what it touches, and no more.
        if round % 4 == 3 {
            let (i, j) = (r.below(x.len()), r.below(g.len()));
            (x[i], g[j]) = (f32::INFINITY, f32::NAN);
        }
        let exact = |v: &[f32]| v.iter().map(|v| f64::from(*v)).collect::<Vec<_>>();
        let [mut x64, mut w64, mut g64, mut bias64] = [&x, &w, &g, &bias].map(|v| exact(v));
        let sizes = [ys, xs, ws].map(|s| s.iter().product::<usize>());
        let [mut y, mut dx, mut dw] = sizes.map(|n| vec![7.0f32; n]);
        let [mut y64, mut dx64, mut dw64] = sizes.map(|n| vec![7.0; n]);
        // SAFETY: all views are of vectors of these sizes.
        unsafe {
            let b = |ptr: *mut u8, dtype| Some(Strided { ptr, dtype, shape: &ys[1..2], strides: &[1] });
            let of = b(bias.as_mut_ptr().cast(), DType::F32);
            let out = view_f32(&mut y, &ys, &yt);
            forward(&c, out, view_f32(&mut x, &xs, &xt), view_f32(&mut w, &ws, &wt), of).unwrap();
            let of = b(bias64.as_mut_ptr().cast(), DType::F64);
            forward(&c, view(&mut y64, &ys, &yt), view(&mut x64, &xs, &xt), view(&mut w64, &ws, &wt), of)
                .unwrap();
            let (out, grad) = (view_f32(&mut dx, &xs, &xt), view_f32(&mut g, &ys, &yt));
            backward_input(&c, out, grad, view_f32(&mut w, &ws, &wt), None).unwrap();
            let (out, grad) = (view(&mut dx64, &xs, &xt), view(&mut g64, &ys, &yt));
            backward_input(&c, out, grad, view(&mut w64, &ws, &wt), None).unwrap();
            let (out, grad) = (view_f32(&mut dw, &ws, &wt), view_f32(&mut g, &ys, &yt));
            backward_weight(&c, out, view_f32(&mut x, &xs, &xt), grad).unwrap();
            let (out, grad) = (view(&mut dw64, &ws, &wt), view(&mut g64, &ys, &yt));
            backward_weight(&c, out, view(&mut x64, &xs, &xt), grad).unwrap();
        }
        for (what, found, wanted) in [("result", &y, &y64), ("image", &dx, &dx64), ("weights", &dw, &dw64)] {
            for (i, (f, w)) in found.iter().zip(wanted).enumerate() {
                let same = if w.is_finite() {
                    (f64::from(*f) - w).abs() < 2e-5
                } else {
                    f.to_string() == w.to_string()
                };
                assert!(same, "{what} {i}: {f}, not {w}, of {c:?}");
            }
        }
    }
}
