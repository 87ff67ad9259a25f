//! Ranges, triangles and random numbers.

use super::*;

const DRAW: Draw = Draw { seed: 12_345 | 678 << 32, offset: 7 << 32 };

/// Philox 4x32-10 with 64-bit products.
fn philox(block: u32, draw: Draw) -> [u32; 4] {
    let mut key = [draw.seed as u32, (draw.seed >> 32) as u32];
    let at = draw.offset + u64::from(block);
    let mut x = [at as u32, (at >> 32) as u32, 0, 0];
    for _ in 0..10 {
        let (a, b) = (0xd251_1f53u64 * u64::from(x[0]), 0xcd9e_8d57u64 * u64::from(x[2]));
        x = [(b >> 32) as u32 ^ x[1] ^ key[0], b as u32, (a >> 32) as u32 ^ x[3] ^ key[1], a as u32];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    x
}

#[test]
fn uniform_numbers_are_philox() {
    let n = 4099;
    let out = Array::empty(DType::F32, &[n]);
    uniform(out.view(), DRAW, 0.0, 1.0).unwrap();
    for (i, got) in out.read::<f32>().iter().enumerate() {
        let want = (philox(i as u32 / 4, DRAW)[i % 4] >> 8) as f32 / (1 << 24) as f32;
        assert_eq!(*got, want, "{i}");
    }
    uniform(out.view(), DRAW, -3.0, 5.0).unwrap();
    assert!(out.read::<f32>().iter().all(|x| (-3.0..5.0).contains(x)));
    let halves = Array::empty(DType::F16, &[20_000]);
    uniform(halves.view(), DRAW, 0.0, 1.0).unwrap();
    assert!(halves.read::<u16>().iter().all(|&x| (0.0..1.0).contains(&half::f16::from_bits(x).to_f32())));
}

#[test]
fn distributions_have_their_moments() {
    let n = 100_000;
    let out = Array::empty(DType::F32, &[n]);
    let moments = || {
        let x = out.read::<f32>();
        let mean = x.iter().map(|&v| f64::from(v)).sum::<f64>() / n as f64;
        let var = x.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n as f64;
        (mean, var.sqrt())
    };
    normal(out.view(), DRAW, 1.0, 2.0).unwrap();
    let (mean, std) = moments();
    assert!((mean - 1.0).abs() < 0.03 && (std - 2.0).abs() < 0.03, "{mean} {std}");
    exponential(out.view(), DRAW, 2.0).unwrap();
    let (mean, std) = moments();
    assert!((mean - 0.5).abs() < 0.01 && (std - 0.5).abs() < 0.01, "{mean} {std}");
    bernoulli(out.view(), DRAW, Source::Scalar(Scalar::Float(0.25))).unwrap();
    assert!((moments().0 - 0.25).abs() < 0.01);
    let whole = Array::empty(DType::I64, &[n]);
    for (low, high) in [(-5i64, 5i64), (0, 1), (3, 1 << 33), (i64::MIN, i64::MAX)] {
        randint(whole.view(), DRAW, low, high).unwrap();
        let x = whole.read::<i64>();
        assert!(x.iter().all(|v| (low..high).contains(v)), "{low} {high}");
        let mean = x.iter().map(|&v| v as f64 / n as f64).sum::<f64>();
        let middle = (low as f64 + high as f64 - 1.0) / 2.0;
        assert!((mean - middle).abs() <= 0.02 * (high as f64 - low as f64), "{mean} {middle}");
    }
}

#[test]
fn permutations_hold_everything() {
    let out = Array::empty(DType::I64, &[1001]);
    randperm(out.view(), DRAW).unwrap();
    let mut got = out.read::<i64>();
    assert!(got[..20].windows(2).any(|w| w[0] > w[1]));
    got.sort_unstable();
    assert_eq!(got, (0..1001).collect::<Vec<_>>());
}

#[test]
fn ranges_and_triangles() {
    let out = Array::empty(DType::I64, &[5]);
    arange(out.view(), Scalar::Int(-3), Scalar::Int(4)).unwrap();
    assert_eq!(out.read::<i64>(), [-3, 1, 5, 9, 13]);
    let out = Array::empty(DType::F32, &[5]);
    arange(out.view(), Scalar::Float(0.5), Scalar::Float(0.25)).unwrap();
    assert_eq!(out.read::<f32>(), [0.5, 0.75, 1.0, 1.25, 1.5]);
    linspace(out.view(), -1.0, 1.0).unwrap();
    assert_eq!(out.read::<f32>(), [-1.0, -0.5, 0.0, 0.5, 1.0]);
    let whole = Array::empty(DType::I32, &[4]);
    linspace(whole.view(), 0.0, 9.0).unwrap();
    assert_eq!(whole.read::<i32>(), [0, 3, 6, 9]);
    for dtype in [DType::F32, DType::I64, DType::Bool, DType::F16] {
        let (rows, columns) = (5, 7);
        let data: Vec<u8> = (0..2 * rows * columns * dtype.size()).map(|i| (i % 200 + 1) as u8).collect();
        let x = Array::new(dtype, &[2, rows, columns], &data);
        for diagonal in [-2i64, 0, 3] {
            for lower in [true, false] {
                let out = Array::empty(dtype, &[2, rows, columns]);
                triangle(out.view(), x.view(), diagonal, lower).unwrap();
                for (i, got) in out.read::<u8>().chunks(dtype.size()).enumerate() {
                    let (row, column) = ((i / columns % rows) as i64, (i % columns) as i64);
                    let keep = if lower { column - row <= diagonal } else { column - row >= diagonal };
                    let want = &data[i * dtype.size()..][..dtype.size()];
                    assert!(if keep { got == want } else { got.iter().all(|&b| b == 0) });
                }
            }
        }
    }
}
