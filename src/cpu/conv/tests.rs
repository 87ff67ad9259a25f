//! Convolutions against their definition, for random sizes.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::*;
use crate::base::{Windows, contiguous_strides};
use crate::cpu::element::Element;

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

fn view<'a, T: Element>(data: &mut [T], shape: &'a [usize], strides: &'a [usize]) -> Strided<'a> {
    Strided { ptr: data.as_mut_ptr().cast(), dtype: T::DTYPE, shape, strides }
}

/// Shapes and strides of image, weights and result.
type Layouts<'a> = [(&'a [usize], &'a [usize]); 3];

/// The result, the gradient of the image and that of the weights; `given` is `[image, weights, gradient, bias]`.
fn all_three<T: Element>(c: &Conv, [xs, ws, ys]: Layouts, given: [&[f64]; 4]) -> [Vec<f64>; 3] {
    let [mut x, mut w, mut g, mut bias] =
        given.map(|list| list.iter().map(|v| T::from_f64(*v)).collect::<Vec<_>>());
    // The old values must not matter.
    let [mut y, mut dx, mut dw] = [ys, xs, ws].map(|(s, _)| vec![T::from_f64(9.0); s.iter().product()]);
    // SAFETY: all views are of vectors of these sizes.
    unsafe {
        let bias = view(&mut bias, &ys.0[1..2], &[1]);
        let [x, w, g] = [view(&mut x, xs.0, xs.1), view(&mut w, ws.0, ws.1), view(&mut g, ys.0, ys.1)];
        forward(c, view(&mut y, ys.0, ys.1), x, w, Some(bias)).unwrap();
        backward_input(c, view(&mut dx, xs.0, xs.1), g, w, None).unwrap();
        backward_weight(c, view(&mut dw, ws.0, ws.1), x, g).unwrap();
    }
    [y, dx, dw].map(|list| list.iter().map(|v| v.to_f64()).collect())
}

/// Calls `each` with the indices of result, image and weight, for each term of the sums.
fn each_term(c: &Conv, mut each: impl FnMut(usize, usize, usize)) {
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
            // Include sizes with many channels.
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
        let [x, w, g] = [xs, ws, ys].map(|s| r.list(s.iter().product()));
        let bias = r.list(ys[1]);
        let area: usize = c.windows.result.iter().product();
        let mut y: Vec<f64> = (0..g.len()).map(|i| bias[i / area % ys[1]]).collect();
        let (mut dx, mut dw) = (vec![0.0; x.len()], vec![0.0; w.len()]);
        each_term(&c, |a, b, k| {
            y[a] += x[b] * w[k];
            dx[b] += g[a] * w[k];
            dw[k] += g[a] * x[b];
        });
        let layouts = [(&xs[..], &xt[..]), (&ws, &wt), (&ys, &yt)];
        let [found_y, found_x, found_w] = all_three::<f64>(&c, layouts, [&x, &w, &g, &bias]);
        close(&found_y, &y, "result", &c);
        close(&found_x, &dx, "gradient of the image", &c);
        close(&found_w, &dw, "gradient of the weights", &c);
    }
}

/// Strides of `[batch, channels, 1, height, width]` with channels innermost.
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
            outputs: 32 + r.below(if round % 4 == 1 { 140 } else { 20 }),
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
        assert!(winograd::Tiling::new(&c, &c.window()).is_some(), "{c:?}");
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
        let [mut x, w, mut g, bias] =
            [x, w, g, bias].map(|list| list.into_iter().map(|v| f64::from(v as f32)).collect::<Vec<_>>());
        // In some rounds, values that are not finite must reach the results that depend on them, and no others.
        if round % 4 == 3 {
            let (i, j) = (r.below(x.len()), r.below(g.len()));
            (x[i], g[j]) = (f64::INFINITY, f64::NAN);
        }
        let layouts = [(&xs[..], &xt[..]), (&ws, &wt), (&ys, &yt)];
        let found = all_three::<f32>(&c, layouts, [&x, &w, &g, &bias]);
        let wanted = all_three::<f64>(&c, layouts, [&x, &w, &g, &bias]);
        for (what, (found, wanted)) in
            ["result", "image", "weights"].into_iter().zip(found.iter().zip(&wanted))
        {
            for (i, (f, w)) in found.iter().zip(wanted).enumerate() {
                let same = if w.is_finite() { (f - w).abs() < 2e-5 } else { f.to_string() == w.to_string() };
                assert!(same, "{what} {i}: {f}, not {w}, of {c:?}");
            }
        }
    }
}
