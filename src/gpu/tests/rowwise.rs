//! Softmax, scans, sorts and selections, compared with plain loops.

use super::*;

#[test]
fn softmax_and_its_gradient() {
    for (shape, dim) in [(vec![4, 7], 1), (vec![3, 1000], 1), (vec![50, 60], 0), (vec![2, 9, 40], 1)] {
        let n = numel(&shape);
        let (xs, gs) = (noise(n, 1), noise(n, 2));
        let (x, g) = (Array::f32(&shape, &xs), Array::f32(&shape, &gs));
        let (out, back) = (Array::empty(DType::F32, &shape), Array::empty(DType::F32, &shape));
        let (length, step) = (shape[dim], x.strides[dim]);
        for log in [false, true] {
            softmax(out.view(), x.view(), dim, log).unwrap();
            softmax_backward(back.view(), g.view(), out.view(), dim, log).unwrap();
            let (ys, bs) = (out.read::<f32>(), back.read::<f32>());
            for first in (0..n).filter(|i| i / step % length == 0) {
                let row = || (0..length).map(|k| first + k * step);
                let total: f64 = row().map(|i| f64::from(xs[i]).exp()).sum();
                let y = |i: usize| f64::from(xs[i]).exp() / total;
                let dot: f64 = row().map(|i| f64::from(gs[i]) * if log { 1.0 } else { y(i) }).sum();
                for i in row() {
                    let (want, slope) = if log {
                        (y(i).ln(), f64::from(gs[i]) - y(i) * dot)
                    } else {
                        (y(i), y(i) * (f64::from(gs[i]) - dot))
                    };
                    assert!(
                        (f64::from(ys[i]) - want).abs() < 2e-6 * want.abs().max(0.1),
                        "{shape:?} {dim} {log}"
                    );
                    assert!(
                        (f64::from(bs[i]) - slope).abs() < 1e-5,
                        "{shape:?} {dim} {log}: {} {slope}",
                        bs[i]
                    );
                }
            }
        }
    }
}

#[test]
fn running_sums_and_products() {
    for (shape, dim) in
        [(vec![5], 0), (vec![5000], 0), (vec![3, 2500], 1), (vec![300, 40], 0), (vec![40, 300], 0)]
    {
        let n = numel(&shape);
        let xs: Vec<i32> = (0..n).map(|i| (i * 31 % 17) as i32 - 8).collect();
        let x = Array::new(DType::I32, &shape, &xs);
        let (length, step) = (shape[dim], x.strides[dim]);
        let out = Array::empty(DType::I64, &shape);
        for kind in [Scan::Sum, Scan::Prod] {
            scan(kind, out.view(), x.view(), dim).unwrap();
            let got = out.read::<i64>();
            for first in (0..n).filter(|i| i / step % length == 0) {
                let mut run = if kind == Scan::Sum { 0i64 } else { 1 };
                for i in (0..length).map(|k| first + k * step) {
                    let v = i64::from(xs[i]);
                    run = if kind == Scan::Sum { run + v } else { run.wrapping_mul(v) };
                    assert_eq!(got[i], run, "{shape:?} {dim} {kind:?} at {i}");
                }
            }
        }
        let floats: Vec<f32> = xs.iter().map(|&v| v as f32).collect();
        let (x, out) = (Array::f32(&shape, &floats), Array::empty(DType::F16, &shape));
        scan(Scan::Sum, out.view(), x.view(), dim).unwrap();
        assert_eq!(half::f16::from_bits(out.read::<u16>()[0]).to_f32(), floats[0]);
    }
}

#[test]
fn sorts_are_stable_and_know_nan() {
    for (shape, dim) in
        [(vec![1], 0), (vec![2000], 0), (vec![7, 33], 1), (vec![33, 7], 0), (vec![2, 65, 3], 1)]
    {
        let n = numel(&shape);
        let mut xs: Vec<f32> = noise(n, 4).iter().map(|x| (x * 9.0).round()).collect();
        xs[0] = -0.0;
        if n > 9 {
            (xs[3], xs[n - 2]) = (f32::NAN, f32::NEG_INFINITY);
        }
        let x = Array::f32(&shape, &xs);
        let (values, indices) = (Array::empty(DType::F32, &shape), Array::empty(DType::I64, &shape));
        let (length, step) = (shape[dim], x.strides[dim]);
        for descending in [false, true] {
            sort(values.view(), indices.view(), x.view(), dim, descending).unwrap();
            let (got, at) = (values.read::<f32>(), indices.read::<i64>());
            for first in (0..n).filter(|i| i / step % length == 0) {
                let mut order: Vec<usize> = (0..length).collect();
                let value = |k: usize| xs[first + k * step];
                order.sort_by(|&a, &b| {
                    let (a, b) = (value(a), value(b));
                    let up = a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()));
                    if descending { up.reverse() } else { up }
                });
                for (k, &want) in order.iter().enumerate() {
                    let i = first + k * step;
                    assert_eq!(at[i], want as i64, "{shape:?} {dim} {descending}");
                    assert!(got[i].to_bits() == value(want).to_bits());
                }
            }
        }
    }
    let xs: Vec<i64> = (0..100).map(|i| (i * 7919 % 100 - 50) * 10_000_000_000).collect();
    let x = Array::new(DType::I64, &[100], &xs);
    let indices = Array::empty(DType::I64, &[100]);
    sort(x.view(), indices.view(), x.view(), 0, true).unwrap();
    let mut want = xs;
    want.sort_by(|a, b| b.cmp(a));
    assert_eq!(x.read::<i64>(), want);
}

#[test]
fn what_is_not_zero() {
    let xs: Vec<f32> = (0..6000).map(|i| if i % 7 < 3 { 0.0 } else { i as f32 }).collect();
    let x = Array::f32(&[20, 300], &xs);
    let turned = x.swap(0, 1);
    let (buffer, count) = nonzero(turned.view()).unwrap();
    let mut bytes = vec![0; buffer.len()];
    download(&buffer, 0, &mut bytes).unwrap();
    let got: Vec<i64> = bytemuck::pod_collect_to_vec(&bytes);
    let mut want = Vec::new();
    for i in 0..300 {
        for j in 0..20 {
            if xs[j * 300 + i] != 0.0 {
                want.extend([i as i64, j as i64]);
            }
        }
    }
    assert_eq!((got.len(), count), (want.len(), want.len() / 2));
    assert_eq!(got, want);

    let mask: Vec<u8> = (0..6000).map(|i| u8::from(i % 5 == 0)).collect();
    for dtype in [DType::Bool, DType::F32, DType::I64] {
        let data: Vec<u8> = (0..6000 * dtype.size()).map(|i| (i % 251) as u8).collect();
        let (x, mask) = (Array::new(dtype, &[6000], &data), Array::new(DType::Bool, &[6000], &mask));
        let (buffer, count) = masked_select(x.view(), mask.view()).unwrap();
        assert_eq!(count, 1200);
        let mut bytes = vec![0; buffer.len()];
        download(&buffer, 0, &mut bytes).unwrap();
        let want: Vec<u8> = data.chunks(dtype.size()).step_by(5).flatten().copied().collect();
        assert_eq!(bytes, want);
    }
    let none = Array::f32(&[5], &[0.0; 5]);
    assert_eq!(nonzero(none.view()).unwrap().1, 0);
    assert_eq!(nonzero(none.reshaped(&[0], &[1], 0).view()).unwrap().1, 0);
}

#[test]
fn running_extremes_and_exponentials() {
    let xs = [3.0f32, 1.0, 4.0, 4.0, f32::NAN, 5.0, -1.0, -2.0, 0.0, 7.0, 7.0, 6.0];
    let x = Array::f32(&[2, 6], &xs);
    let (values, indices) = (Array::empty(DType::F32, &[2, 6]), Array::empty(DType::I64, &[2, 6]));
    cum_extreme(values.view(), indices.view(), x.view(), 1, true).unwrap();
    assert_eq!(indices.read::<i64>(), [0, 0, 2, 3, 4, 4, 0, 0, 2, 3, 4, 4]);
    assert_eq!(
        format!("{:?}", values.read::<f32>()),
        "[3.0, 3.0, 4.0, 4.0, NaN, NaN, -1.0, -1.0, 0.0, 7.0, 7.0, 7.0]"
    );
    cum_extreme(values.view(), indices.view(), x.view(), 0, false).unwrap();
    assert_eq!(indices.read::<i64>(), [0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0]);
    let x = Array::f32(&[4], &[f32::NEG_INFINITY, 100.0, 100.0, f32::INFINITY]);
    let out = Array::empty(DType::F32, &[4]);
    scan(Scan::LogSumExp, out.view(), x.view(), 0).unwrap();
    let got = out.read::<f32>();
    assert!(got[0] == f32::NEG_INFINITY && got[1] == 100.0 && got[3] == f32::INFINITY);
    assert!((got[2] - 100.693_15).abs() < 1e-4, "{}", got[2]);
}
