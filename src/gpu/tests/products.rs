//! Matrix products of every shape class, compared with plain loops.

use super::*;

/// `a @ b` for one batch entry, in float64.
fn product(a: &[f64], b: &[f64], (m, n, k): (usize, usize, usize)) -> Vec<f64> {
    let mut out = vec![0.0; m * n];
    for i in 0..m {
        for p in 0..k {
            for j in 0..n {
                out[i * n + j] += a[i * k + p] * b[p * n + j];
            }
        }
    }
    out
}

fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&v| f64::from(v)).collect()
}

fn turned(x: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    (0..rows * columns).map(|i| x[i % columns * rows + i / columns]).collect()
}

#[test]
fn products_of_all_shapes() {
    for (m, n, k) in [
        (1, 1, 1),
        (3, 5, 7),
        (1, 600, 300),
        (600, 1, 300),
        (2, 2, 1000),
        (70, 90, 65),
        (64, 64, 64),
        (130, 66, 33),
    ] {
        let (a, b) = (noise(m * k, 1), noise(k * n, 2));
        let want = product(&wide(&a), &wide(&b), (m, n, k));
        let (x, y) = (Array::f32(&[m, k], &a), Array::f32(&[k, n], &b));
        for transposed in 0..4 {
            let narrow = |v: Vec<f64>| v.iter().map(|&x| x as f32).collect::<Vec<_>>();
            let x = if transposed & 1 > 0 {
                Array::f32(&[k, m], &narrow(turned(&wide(&a), k, m).clone())).swap(0, 1)
            } else {
                x.reshaped(&[m, k], &x.strides, 0)
            };
            let y = if transposed & 2 > 0 {
                Array::f32(&[n, k], &narrow(turned(&wide(&b), n, k))).swap(0, 1)
            } else {
                y.reshaped(&[k, n], &y.strides, 0)
            };
            let out = Array::f32(&[m, n], &vec![f32::NAN; m * n]);
            matmul(out.view(), x.view(), y.view(), 1.0, 0.0).unwrap();
            for (got, want) in out.read::<f32>().iter().zip(&want) {
                assert!(
                    (f64::from(*got) - want).abs() < 1e-5 * k as f64,
                    "{m} {n} {k} {transposed}: {got} {want}"
                );
            }
            matmul(out.view(), x.view(), y.view(), 0.5, 2.0).unwrap();
            for (got, want) in out.read::<f32>().iter().zip(&want) {
                assert!((f64::from(*got) - 2.5 * want).abs() < 1e-5 * k as f64);
            }
            let line = noise(n, 8);
            let start = Array::f32(&[n], &line).reshaped(&[m, n], &[0, 1], 0);
            add_matmul(out.view(), start.view(), x.view(), y.view(), 0.5, 3.0).unwrap();
            for (i, (got, want)) in out.read::<f32>().iter().zip(&want).enumerate() {
                let want = 0.5 * want + 3.0 * f64::from(line[i % n]);
                assert!((f64::from(*got) - want).abs() < 1e-5 * k as f64 + 1e-5);
            }
        }
    }
}

#[test]
fn the_large_tile_is_right() {
    // 12 by 11 tiles of 128, partial at both ends, and a short inner dimension to be quick.
    let (m, n, k) = (1430, 1290, 20);
    let (a, b) = (noise(m * k, 3), noise(k * n, 4));
    let want = product(&wide(&a), &wide(&b), (m, n, k));
    let out = Array::empty(DType::F32, &[m, n]);
    let (x, y) = (Array::f32(&[m, k], &a), Array::f32(&[k, n], &b));
    matmul(out.view(), x.view(), y.view(), 1.0, 0.0).unwrap();
    assert!(out.read::<f32>().iter().zip(&want).all(|(got, want)| (f64::from(*got) - want).abs() < 1e-4));
}

#[test]
fn the_large_tile_without_edges_is_right() {
    // 12 by 11 tiles, all four combinations of transposed operands.
    let (m, n, k) = (1536, 1408, 32);
    let (a, b) = (noise(m * k, 3), noise(k * n, 4));
    let want = product(&wide(&a), &wide(&b), (m, n, k));
    let narrow = |v: Vec<f64>| v.iter().map(|&x| x as f32).collect::<Vec<_>>();
    let x = [Array::f32(&[m, k], &a), Array::f32(&[k, m], &narrow(turned(&wide(&a), k, m))).swap(0, 1)];
    let y = [Array::f32(&[k, n], &b), Array::f32(&[n, k], &narrow(turned(&wide(&b), n, k))).swap(0, 1)];
    let out = Array::f32(&[m, n], &vec![1.0; m * n]);
    for (i, (x, y)) in x.iter().flat_map(|x| y.iter().map(move |y| (x, y))).enumerate() {
        fill(out.view(), Scalar::Float(i as f64)).unwrap();
        matmul(out.view(), x.view(), y.view(), 0.5, 2.0).unwrap();
        let right =
            |(got, want): (&f32, &f64)| (f64::from(*got) - (0.5 * want + 2.0 * i as f64)).abs() < 1e-4;
        assert!(out.read::<f32>().iter().zip(&want).all(right), "{i}");
        let start = Array::f32(&[1], &[7.0]).reshaped(&[m, n], &[0, 0], 0);
        add_matmul(out.view(), start.view(), x.view(), y.view(), 1.0, 1.0).unwrap();
        let right = |(got, want): (&f32, &f64)| (f64::from(*got) - (want + 7.0)).abs() < 1e-4;
        assert!(out.read::<f32>().iter().zip(&want).all(right), "{i}");
    }
}

#[test]
fn batches_and_other_types() {
    let (a, b) = (noise(3 * 4 * 5, 5), noise(5 * 6, 6));
    let x = Array::f32(&[3, 4, 5], &a);
    let y = Array::f32(&[5, 6], &b).reshaped(&[3, 5, 6], &[0, 6, 1], 0);
    let out = Array::empty(DType::F32, &[3, 4, 6]);
    matmul(out.view(), x.view(), y.view(), 1.0, 0.0).unwrap();
    let got = out.read::<f32>();
    for g in 0..3 {
        let want = product(&wide(&a[g * 20..][..20]), &wide(&b), (4, 6, 5));
        assert!(
            got[g * 24..][..24].iter().zip(&want).all(|(got, want)| (f64::from(*got) - want).abs() < 1e-5)
        );
    }
    let whole: Vec<i64> = (0..100).map(|i| i * i - 50).collect();
    let x = Array::new(DType::I64, &[10, 10], &whole);
    let out = Array::empty(DType::I64, &[10, 10]);
    matmul(out.view(), x.view(), x.view(), 1.0, 0.0).unwrap();
    let numbers: Vec<f64> = whole.iter().map(|&v| v as f64).collect();
    let want: Vec<i64> = product(&numbers, &numbers, (10, 10, 10)).iter().map(|&v| v as i64).collect();
    assert_eq!(out.read::<i64>(), want);

    let halves: Vec<u16> =
        (0..64 * 64).map(|i| half::f16::from_f32((i % 17) as f32 - 8.0).to_bits()).collect();
    let x = Array::new(DType::F16, &[64, 64], &halves);
    let out = Array::empty(DType::F16, &[64, 64]);
    matmul(out.view(), x.view(), x.view(), 0.125, 0.0).unwrap();
    let numbers: Vec<f64> = halves.iter().map(|&v| half::f16::from_bits(v).to_f64()).collect();
    let want = product(&numbers, &numbers, (64, 64, 64));
    for (got, want) in out.read::<u16>().iter().zip(&want) {
        assert_eq!(*got, half::f16::from_f64(want / 8.0).to_bits());
    }
}
