//! Reductions over every kind of layout, compared with plain loops.

use super::*;
use crate::base::Reduction;

/// The row-major positions of `shape`, as offsets under `strides`.
fn offsets(shape: &[usize], strides: &[usize]) -> Vec<usize> {
    let mut list = vec![0];
    for (n, s) in shape.iter().zip(strides) {
        list = list.iter().flat_map(|at| (0..*n).map(move |i| at + i * s)).collect();
    }
    list
}

/// The elements of each row of `x` that is reduced over `dims`, in order.
fn rows(x: &Array, data: &[f32], dims: &[usize]) -> Vec<Vec<f32>> {
    let pick = |of: &[usize], kept: bool| -> Vec<usize> {
        (0..x.shape.len()).filter(|d| dims.contains(d) != kept).map(|d| of[d]).collect()
    };
    let elements = offsets(&pick(&x.shape, false), &pick(&x.strides, false));
    offsets(&pick(&x.shape, true), &pick(&x.strides, true))
        .iter()
        .map(|row| elements.iter().map(|e| data[x.offset + row + e]).collect())
        .collect()
}

fn kept(x: &Array, dims: &[usize]) -> Vec<usize> {
    (0..x.shape.len()).map(|d| if dims.contains(&d) { 1 } else { x.shape[d] }).collect()
}

fn cases() -> Vec<(Array, Vec<f32>, Vec<usize>)> {
    let mut list = Vec::new();
    for (shape, dims) in [
        (vec![1], vec![0]),
        (vec![7], vec![0]),
        (vec![100_003], vec![0]),
        (vec![3, 5000], vec![1]),
        (vec![5000, 3], vec![0]),
        (vec![40, 60], vec![0]),
        (vec![40, 60], vec![1]),
        (vec![40, 60], vec![0, 1]),
        (vec![4, 5, 6, 7], vec![1, 3]),
        (vec![4, 5, 6, 7], vec![0, 2]),
        (vec![300, 2, 40], vec![1]),
    ] {
        let data = noise(numel(&shape), 7);
        let x = Array::f32(&shape, &data);
        if shape.len() > 1 {
            list.push((x.swap(0, 1), data.clone(), dims.clone()));
        }
        list.push((x, data, dims));
    }
    list
}

#[test]
fn sums_are_exact_enough() {
    for (x, data, dims) in cases() {
        let out = Array::empty(DType::F32, &kept(&x, &dims));
        type Lift = fn(f64) -> f64;
        for (fold, lift) in
            [(Reduction::Sum, (|v| v) as Lift), (Reduction::SumSq, |v| v * v), (Reduction::SumAbs, f64::abs)]
        {
            reduce(fold, out.view(), x.view(), &dims).unwrap();
            for (got, row) in out.read::<f32>().iter().zip(rows(&x, &data, &dims)) {
                let want: f64 = row.iter().map(|&v| lift(f64::from(v))).sum();
                let size: f64 = row.iter().map(|&v| lift(f64::from(v)).abs()).sum();
                assert!(
                    (f64::from(*got) - want).abs() <= 3e-7 * size,
                    "{fold:?} {:?} {dims:?}: {got} {want}",
                    x.shape
                );
            }
        }
        mean(out.view(), x.view(), &dims).unwrap();
        let averages = out.read::<f32>();
        var(out.view(), x.view(), &dims, 0.0, true).unwrap();
        for ((deviation, average), row) in out.read::<f32>().iter().zip(averages).zip(rows(&x, &data, &dims))
        {
            let n = row.len() as f64;
            let mean: f64 = row.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
            let var = row.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
            assert!((f64::from(average) - mean).abs() < 1e-6);
            assert!((f64::from(*deviation) - var.sqrt()).abs() < 1e-6, "{deviation} {}", var.sqrt());
        }
    }
}

#[test]
fn extremes_and_where_they_are() {
    for (x, mut data, dims) in cases() {
        for round in 0..2 {
            if round == 1 {
                let middle = data.len() / 2;
                data[middle] = f32::NAN;
            }
            // The buffer is shared with the transposed case.
            upload(&x.buffer, 0, bytemuck::cast_slice(&data)).unwrap();
            let shape = kept(&x, &dims);
            let (out, at) = (Array::empty(DType::F32, &shape), Array::empty(DType::I64, &shape));
            for largest in [true, false] {
                let (fold, arg) = if largest {
                    (Reduction::Max, Reduction::ArgMax)
                } else {
                    (Reduction::Min, Reduction::ArgMin)
                };
                reduce(fold, out.view(), x.view(), &dims).unwrap();
                reduce(arg, at.view(), x.view(), &dims).unwrap();
                for ((value, at), row) in
                    out.read::<f32>().iter().zip(at.read::<i64>()).zip(rows(&x, &data, &dims))
                {
                    let mut best = 0;
                    for (i, v) in row.iter().enumerate() {
                        let better = if largest { *v > row[best] } else { *v < row[best] };
                        if !row[best].is_nan() && (v.is_nan() || better) {
                            best = i;
                        }
                    }
                    assert_eq!(at, best as i64, "{:?} {dims:?}", x.shape);
                    assert!(*value == row[best] || (value.is_nan() && row[best].is_nan()));
                }
                if let [dim] = dims[..] {
                    max_with_index(out.view(), at.view(), x.view(), dim, largest).unwrap();
                    for ((value, at), row) in
                        out.read::<f32>().iter().zip(at.read::<i64>()).zip(rows(&x, &data, &dims))
                    {
                        assert!(value.to_bits() == row[at as usize].to_bits());
                    }
                }
            }
        }
    }
}

#[test]
fn integers_and_bools() {
    let data: Vec<i32> = (0..3000).map(|i| i * 7919 % 1000 - 500).collect();
    let x = Array::new(DType::I32, &[30, 100], &data);
    let out = Array::empty(DType::I64, &[30, 1]);
    reduce(Reduction::Sum, out.view(), x.view(), &[1]).unwrap();
    let want: Vec<i64> = data.chunks(100).map(|row| row.iter().map(|&v| i64::from(v)).sum()).collect();
    assert_eq!(out.read::<i64>(), want);
    let top = Array::empty(DType::I32, &[30, 1]);
    reduce(Reduction::Min, top.view(), x.view(), &[1]).unwrap();
    let want: Vec<i32> = data.chunks(100).map(|row| *row.iter().min().unwrap()).collect();
    assert_eq!(top.read::<i32>(), want);

    let wide: Vec<i64> = data.iter().map(|&v| i64::from(v) * 10_000_000_000).collect();
    let x = Array::new(DType::I64, &[3000], &wide);
    let out = Array::empty(DType::I64, &[1]);
    reduce(Reduction::Max, out.view(), x.view(), &[0]).unwrap();
    assert_eq!(out.read::<i64>(), [*wide.iter().max().unwrap()]);
    reduce(Reduction::Prod, out.view(), x.reshaped(&[3], &[1], 1).view(), &[0]).unwrap();
    assert_eq!(out.read::<i64>(), [wide[1].wrapping_mul(wide[2]).wrapping_mul(wide[3])]);

    let flags: Vec<u8> = (0..70).map(|i| u8::from(i % 10 != 3 || i < 20)).collect();
    let x = Array::new(DType::Bool, &[7, 10], &flags);
    let out = Array::empty(DType::Bool, &[7, 1]);
    reduce(Reduction::All, out.view(), x.view(), &[1]).unwrap();
    assert_eq!(out.read::<u8>(), [1, 1, 0, 0, 0, 0, 0]);
    let out = Array::empty(DType::Bool, &[1, 10]);
    reduce(Reduction::Any, out.view(), x.view(), &[0]).unwrap();
    assert_eq!(out.read::<u8>(), [1; 10]);
    let nans = Array::f32(&[3], &[0.0, f32::NAN, 0.0]);
    let out = Array::empty(DType::Bool, &[1]);
    reduce(Reduction::Any, out.view(), nans.view(), &[0]).unwrap();
    assert_eq!(out.read::<u8>(), [1]);
    let count = Array::empty(DType::I64, &[1, 1]);
    reduce(Reduction::Sum, count.view(), x.view(), &[0, 1]).unwrap();
    assert_eq!(count.read::<i64>(), [65]);
}

#[test]
fn nothing_to_reduce() {
    let x = Array { shape: Dims::from_slice(&[3, 0]), ..Array::f32(&[1], &[5.0]) };
    let out = Array::empty(DType::F32, &[3, 1]);
    reduce(Reduction::Prod, out.view(), x.view(), &[1]).unwrap_err();
    let x = x.reshaped(&[3, 0], &[1, 1], 0);
    reduce(Reduction::Prod, out.view(), x.view(), &[1]).unwrap();
    assert_eq!(out.read::<f32>(), [1.0; 3]);
    assert!(reduce(Reduction::Max, out.view(), x.view(), &[1]).is_err());
}
