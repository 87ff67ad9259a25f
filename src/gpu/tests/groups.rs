//! Groups of instructions over elements, rows and several items, sums of columns and kept launches, compared with plain loops.

use super::*;
use crate::base::Reduction;
use crate::base::group::{Argument, Group, Instruction, Number};
use smallvec::smallvec;

const MUL: Expr = Expr { key: "mul", inputs: &["input", "other"], wgsl: "input * other", predicate: false };
const SUB: Expr = Expr { key: "sub", inputs: &["input", "other"], wgsl: "input - other", predicate: false };
const SAME: Expr = Expr { key: "same", inputs: &["x"], wgsl: "x", predicate: false };

fn instruction(expr: Expr, to: u8, args: &[Argument]) -> Instruction<Expr> {
    Instruction { expr, compute: DType::F32, rounds: None, to, args: args.into() }
}

fn register(at: u8) -> Argument {
    Argument::Register(at)
}

const NUMBER: Number = Number { value: 0, compute: DType::F32, rounds: None };

/// `x2 = (x0 - x1) * n`
fn scaled_difference() -> Group<Expr> {
    Group {
        instructions: vec![
            instruction(SUB, 3, &[register(0), register(1)]),
            instruction(MUL, 4, &[register(3), Argument::Number(0)]),
        ],
        operands: 3,
        registers: 5,
        results: vec![(2, 4)],
        numbers: vec![NUMBER],
    }
}

#[test]
fn operands_of_all_layouts_join_a_group() {
    let group = scaled_difference();
    for (rows, columns) in [(3, 8), (3, 7), (1, 1), (40, 64)] {
        let (a, b) = (noise(rows * columns, 1), noise(rows * columns, 2));
        let shape = [rows, columns];
        let x = Array::f32(&shape, &a);
        let whole = Array::f32(&shape, &b);
        for (other, at) in [
            (whole.reshaped(&shape, &[columns, 1], 0), [columns, 1]),
            (whole.reshaped(&shape, &[0, 1], 0), [0, 1]),
            (whole.reshaped(&shape, &[1, 0], 0), [1, 0]),
            (whole.reshaped(&shape, &[0, 0], 0), [0, 0]),
        ] {
            let out = Array::f32(&shape, &vec![f32::NAN; rows * columns]);
            run_group(&group, &[x.view(), other.view(), out.view()], &[Scalar::Float(2.0)]).unwrap();
            let want: Vec<f32> = (0..rows * columns)
                .map(|i| (a[i] - b[i / columns * at[0] + i % columns * at[1]]) * 2.0)
                .collect();
            assert_eq!(out.read::<f32>(), want, "{shape:?} {at:?}");
        }
    }
}

#[test]
fn several_items_are_one_launch() {
    let group = scaled_difference();
    let sizes = [5, 300, 1, 64, 7];
    let make = |seed: u32| -> Vec<Array> {
        sizes.iter().map(|&n| Array::f32(&[n], &noise(n, seed + n as u32))).collect()
    };
    let (x, y, out) = (make(1), make(2), make(3));
    let items: Vec<_> =
        (0..sizes.len()).map(|k| smallvec![x[k].view(), y[k].view(), out[k].view()]).collect();
    let before = launches_here();
    run_group_over(&group, &items, &[Scalar::Float(0.5)]).unwrap();
    assert_eq!(launches_here() - before, 1);
    for k in 0..sizes.len() {
        let want: Vec<f32> =
            x[k].read::<f32>().iter().zip(y[k].read::<f32>()).map(|(a, b)| (a - b) * 0.5).collect();
        assert_eq!(out[k].read::<f32>(), want);
    }
    // What one item writes and another reads cannot run at once.
    let chained: Vec<_> = vec![
        smallvec![x[1].view(), y[1].view(), out[1].view()],
        smallvec![out[1].view(), y[1].view(), x[1].view()],
    ];
    let (a, b) = (x[1].read::<f32>(), y[1].read::<f32>());
    let before = launches_here();
    run_group_over(&group, &chained, &[Scalar::Float(2.0)]).unwrap();
    assert_eq!(launches_here() - before, 2);
    let want: Vec<f32> = a.iter().zip(&b).map(|(a, b)| ((a - b) * 2.0 - b) * 2.0).collect();
    assert_eq!(x[1].read::<f32>(), want);
}

#[test]
fn folds_of_rows_are_read_by_later_instructions() {
    for (fold, rows, columns) in [
        (Reduction::Sum, 5, 3),
        (Reduction::Sum, 70, 33),
        (Reduction::Max, 300, 20),
        (Reduction::Min, 2, 3000),
        (Reduction::Sum, 1, 500),
    ] {
        let data = noise(rows * columns, 9);
        let first = noise(rows, 4);
        let x = Array::f32(&[rows, columns], &data);
        let out = Array::empty(DType::F32, &[rows, columns]);
        let state = Array::f32(&[rows], &first);
        let by_row = state.reshaped(&[rows, columns], &[1, 0], 0);
        // The fold of each row; `out = x - fold`; `state = fold(out) - state`, in place.
        let group = Group {
            instructions: vec![
                instruction(SAME, 3, &[register(0)]),
                instruction(SUB, 4, &[register(0), register(3)]),
                instruction(SAME, 5, &[register(4), Argument::Number(0)]),
                instruction(SUB, 6, &[register(5), register(2)]),
            ],
            operands: 3,
            registers: 7,
            results: vec![(1, 4), (2, 6)],
            numbers: vec![NUMBER],
        };
        let levels = [Level::Fold(fold), Level::Element, Level::Fold(Reduction::Sum), Level::Row];
        let views = [x.view(), out.view(), by_row.view()];
        run_row_group(&group, &levels, &views, 1, &[Scalar::Float(0.5)]).unwrap();
        let (made, states) = (out.read::<f32>(), state.read::<f32>());
        for r in 0..rows {
            let row = &data[r * columns..][..columns];
            let folded = match fold {
                Reduction::Max => row.iter().copied().fold(f32::NEG_INFINITY, f32::max),
                Reduction::Min => row.iter().copied().fold(f32::INFINITY, f32::min),
                _ => row.iter().sum(),
            };
            let near = |a: f32, b: f32| (a - b).abs() <= 1e-3 * (1.0 + b.abs());
            assert!((0..columns).all(|c| near(made[r * columns + c], row[c] - folded)), "{fold:?} {rows}");
            let sum: f32 = row.iter().map(|x| x - folded).sum();
            assert!(near(states[r], 0.5 * sum - first[r]), "{fold:?} {rows}: {} {sum}", states[r]);
        }
    }
}

#[test]
fn columns_of_several_matrices_are_summed_at_once() {
    let sizes = [(1, 1), (7, 3), (64, 100), (300, 33)];
    let data: Vec<Vec<f32>> = sizes.iter().map(|&(r, c)| noise(r * c, c as u32)).collect();
    let x: Vec<Array> = sizes.iter().zip(&data).map(|(&(r, c), data)| Array::f32(&[r, c], data)).collect();
    let out: Vec<Array> = sizes.iter().map(|&(_, c)| Array::f32(&[c], &vec![f32::NAN; c])).collect();
    let items: Vec<_> = out.iter().zip(&x).map(|(out, x)| (out.view(), x.view())).collect();
    let before = launches_here();
    sum_columns(&items).unwrap();
    assert_eq!(launches_here() - before, 1);
    for ((&(rows, columns), data), out) in sizes.iter().zip(&data).zip(&out) {
        for (c, got) in out.read::<f32>().into_iter().enumerate() {
            let want: f64 = (0..rows).map(|r| f64::from(data[r * columns + c])).sum();
            assert!((f64::from(got) - want).abs() < 1e-4, "{rows} {columns}: {got} {want}");
        }
    }
}

#[test]
fn kept_launches_run_over_other_memory() {
    let group = scaled_difference();
    let arrays = |seed: u32| [0u32, 1, 2].map(|k| Array::f32(&[50], &noise(50, seed + k)));
    let first = arrays(1);
    let given = |all: &[Array; 3]| all.each_ref().map(|array| array.buffer.clone());
    let of = |all: &[Array; 3]| run_group(&group, &all.each_ref().map(Array::view), &[Scalar::Float(3.0)]);
    let buffers = given(&first);
    let mut kept = keep(&buffers.each_ref(), || of(&first)).unwrap().unwrap();
    for seed in [20, 30] {
        let other = arrays(seed);
        for _ in 0..2 {
            kept.send(&given(&other).each_ref()).unwrap();
        }
        let (a, b) = (other[0].read::<f32>(), other[1].read::<f32>());
        let want: Vec<f32> = a.iter().zip(&b).map(|(a, b)| (a - b) * 3.0).collect();
        assert_eq!(other[2].read::<f32>(), want);
    }
    let reads = || {
        first[0].read::<f32>();
        Ok(())
    };
    assert!(keep(&buffers.each_ref(), reads).unwrap().is_none(), "the host reads");
}
