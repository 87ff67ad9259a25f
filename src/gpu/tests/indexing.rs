//! Gather and scatter, compared with plain loops, and the errors of bad indices.

use super::*;
use crate::gpu::{Origin, Wrong};

fn test() -> Origin {
    Origin { op: "test", line: None, wrong: Wrong::Index }
}

fn by<'a>(index: &'a Array, size: usize, stride: usize) -> IndexBy<'a> {
    IndexBy { index: index.view(), size, stride, dim: 0 }
}

#[test]
fn rows_are_selected_and_added() {
    let data = noise(50, 1);
    let x = Array::f32(&[10, 5], &data);
    let picks = [3i64, -1, 0, 3];
    let index = Array::new(DType::I64, &[4], &picks).reshaped(&[4, 5], &[1, 0], 0);
    let out = Array::empty(DType::F32, &[4, 5]);
    index_get(test(), out.view(), x.reshaped(&[4, 5], &[0, 1], 0).view(), &[by(&index, 10, 5)], true)
        .unwrap();
    let row = |i: usize| (picks[i].rem_euclid(10)) as usize;
    let got = out.read::<f32>();
    for i in 0..4 {
        assert_eq!(got[i * 5..][..5], data[row(i) * 5..][..5]);
    }

    let sums = Array::f32(&[10, 5], &[1.0; 50]);
    index_put(
        test(),
        sums.reshaped(&[4, 5], &[0, 1], 0).view(),
        out.view(),
        &[by(&index, 10, 5)],
        Put::Add,
        true,
    )
    .unwrap();
    let mut want = vec![1.0; 50];
    for i in 0..20 {
        want[row(i / 5) * 5 + i % 5] += got[i];
    }
    for (a, b) in sums.read::<f32>().iter().zip(&want) {
        assert!((a - b).abs() < 1e-6);
    }
}

#[test]
fn every_width_is_put() {
    let index = Array::new(DType::I32, &[4], &[1i32, 6, 2, 1]);
    for dtype in DType::REAL {
        let size = dtype.size();
        let bytes = |numbers: &[f64]| -> Vec<u8> {
            let mut bytes = vec![0; numbers.len() * size];
            for (k, &x) in numbers.iter().enumerate() {
                // SAFETY: there is room for every number.
                unsafe { Scalar::Float(x).write(dtype, bytes.as_mut_ptr().add(k * size)) };
            }
            bytes
        };
        let check = |dst: &Array, want: &[f64], what: &str| {
            assert_eq!(dst.read::<u8>(), bytes(want), "{dtype:?} {what}");
        };
        let src = Array::new(dtype, &[4], &bytes(&[1.0, 2.0, 3.0, 1.0]));
        let fresh = || Array::new(dtype, &[8], &bytes(&[0., 1., 2., 3., 0., 1., 1., 2.]));
        let dst = fresh();
        let place = dst.reshaped(&[4], &[0], 0);
        index_put(test(), place.view(), src.view(), &[by(&index, 8, 1)], Put::Assign, false).unwrap();
        check(&dst, &[0., 1., 3., 3., 0., 1., 2., 2.], "assign");
        for (mode, want) in [
            (Put::Add, [0., 3., 5., 3., 0., 1., 3., 2.]),
            (Put::Mul, [0., 1., 6., 3., 0., 1., 2., 2.]),
            (Put::Max, [0., 1., 3., 3., 0., 1., 2., 2.]),
            (Put::Min, [0., 1., 2., 3., 0., 1., 1., 2.]),
        ] {
            let dst = fresh();
            let place = dst.reshaped(&[4], &[0], 0);
            index_put(test(), place.view(), src.view(), &[by(&index, 8, 1)], mode, false).unwrap();
            check(&dst, &want, &format!("{mode:?}"));
        }
        let out = Array::empty(dtype, &[4]);
        index_get(test(), out.view(), fresh().reshaped(&[4], &[0], 0).view(), &[by(&index, 8, 1)], false)
            .unwrap();
        check(&out, &[1., 1., 2., 1.], "get");
    }
}

#[test]
fn long_sums_carry() {
    let dst = Array::new(DType::I64, &[1], &[-5i64]);
    let src = Array::new(DType::I64, &[300], &[4_000_000_000i64; 300]);
    let index = Array::new(DType::I64, &[300], &[0i64; 300]);
    index_put(test(), dst.reshaped(&[300], &[0], 0).view(), src.view(), &[by(&index, 1, 1)], Put::Add, false)
        .unwrap();
    assert_eq!(dst.read::<i64>(), [1_199_999_999_995]);
}

#[test]
fn a_bad_index_is_told_at_the_next_read() {
    // In its own process: another test's read would take the error.
    if !alone("gpu::tests::indexing::a_bad_index_is_told_at_the_next_read") {
        return;
    }
    let x = Array::f32(&[3], &[1.0, 2.0, 3.0]);
    for (bad, negative) in [(3i64, true), (-4, true), (-1, false), (1 << 40, true), (i64::MIN, true)] {
        let index = Array::new(DType::I64, &[2], &[1, bad]);
        let out = Array::f32(&[2], &[9.0, 9.0]);
        index_get(test(), out.view(), x.reshaped(&[2], &[0], 0).view(), &[by(&index, 3, 1)], negative)
            .unwrap();
        let error = synchronize().unwrap_err();
        let told = format!("index {bad} is out of bounds for dimension 0 with size 3\n  operator: test");
        assert!(error.to_string().starts_with(&told), "{error}");
        assert_eq!(out.read::<f32>(), [2.0, 9.0]);
    }
}

#[test]
fn sums_go_in_one_order() {
    // More entries than a chunk holds, for several rounds, with three columns.
    for (n, places) in [(64, 1), (65, 2), (5000, 3), (5000, 4000), (9000, 1)] {
        let (data, picks) = (noise(3 * n, 7), (0..n).map(|i| (i * 7919 % places) as i64).collect::<Vec<_>>());
        let src = Array::f32(&[n, 3], &data);
        let index = Array::new(DType::I64, &[n], &picks).reshaped(&[n, 3], &[1, 0], 0);
        let sums = || {
            let dst = Array::f32(&[places, 3], &vec![0.5; 3 * places]);
            let place = dst.reshaped(&[n, 3], &[0, 1], 0);
            index_put(test(), place.view(), src.view(), &[by(&index, places, 3)], Put::Add, false).unwrap();
            dst.read::<f32>()
        };
        let mut want = vec![0.5; 3 * places];
        for i in 0..3 * n {
            want[picks[i / 3] as usize * 3 + i % 3] += f64::from(data[i]);
        }
        let first = sums();
        for (got, want) in first.iter().zip(&want) {
            assert!((f64::from(*got) - want).abs() < 1e-2, "{n} {places}: {got} {want}");
        }
        for _ in 0..3 {
            assert_eq!(sums(), first, "{n} {places}");
        }
    }
}
