//! Memory, copies, fills and pointwise expressions.

use super::*;

const ADD: Expr = Expr { key: "add", inputs: &["a", "b"], wgsl: "a + b", predicate: false };
const LT: Expr = Expr { key: "lt", inputs: &["a", "b"], wgsl: "lt(a, b)", predicate: true };

#[test]
fn bytes_come_back() {
    ready();
    for n in [1usize, 3, 4, 5, 63, 1000, 70_001] {
        let data: Vec<u8> = (0..n).map(|i| (i * 7 % 251) as u8).collect();
        let buffer = alloc(n).unwrap();
        upload(&buffer, 0, &data).unwrap();
        if n > 8 {
            upload(&buffer, 3, &[1, 2, 3]).unwrap();
        }
        let mut back = vec![0; n];
        download(&buffer, 0, &mut back).unwrap();
        let mut want = data.clone();
        if n > 8 {
            want[3..6].copy_from_slice(&[1, 2, 3]);
            let mut part = [0; 3];
            download(&buffer, 3, &mut part).unwrap();
            assert_eq!(part, [1, 2, 3]);
        }
        assert_eq!(back, want);
    }
    assert!(upload(&alloc(4).unwrap(), 2, &[0; 3]).is_err());
}

#[test]
fn adds_dense_and_strided() {
    for n in [1usize, 2, 3, 4, 7, 256, 1025] {
        let (a, b) = (noise(n, 1), noise(n, 2));
        let (x, y, out) = (Array::f32(&[n], &a), Array::f32(&[n], &b), Array::empty(DType::F32, &[n]));
        pointwise(&ADD, DType::F32, out.view(), &[x.source(), y.source()]).unwrap();
        let want: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        assert_eq!(out.read::<f32>(), want);
        pointwise(&ADD, DType::F32, out.view(), &[x.source(), Source::Scalar(Scalar::Float(2.5))]).unwrap();
        assert_eq!(out.read::<f32>(), a.iter().map(|a| a + 2.5).collect::<Vec<_>>());
    }
    let a = noise(6 * 5 * 4, 3);
    let x = Array::f32(&[6, 5, 4], &a);
    let row = Array::f32(&[1, 5, 1], &[1.0, 2.0, 3.0, 4.0, 5.0]).reshaped(&[4, 5, 6], &[0, 1, 0], 0);
    let out = Array::empty(DType::F32, &[4, 5, 6]);
    pointwise(&ADD, DType::F32, out.view(), &[x.swap(0, 2).source(), row.source()]).unwrap();
    let got = out.read::<f32>();
    for i in 0..4 {
        for j in 0..5 {
            for k in 0..6 {
                assert_eq!(got[(i * 5 + j) * 6 + k], a[(k * 5 + j) * 4 + i] + (j + 1) as f32);
            }
        }
    }
}

#[test]
fn a_partial_view_leaves_its_neighbours_alone() {
    let out = Array::f32(&[12], &[9.0; 12]);
    fill(out.reshaped(&[6], &[1], 4).view(), Scalar::Float(1.0)).unwrap();
    assert_eq!(out.read::<f32>(), [9., 9., 9., 9., 1., 1., 1., 1., 1., 1., 9., 9.]);
    fill(out.reshaped(&[3], &[4], 1).view(), Scalar::Int(2)).unwrap();
    assert_eq!(out.read::<f32>(), [9., 2., 9., 9., 1., 2., 1., 1., 1., 2., 9., 9.]);
    for (dtype, start) in [(DType::Bool, 4), (DType::Bool, 3), (DType::U8, 8), (DType::I8, 1)] {
        let out = Array::new(dtype, &[16], &[1u8; 16]);
        fill(out.reshaped(&[6], &[1], start).view(), Scalar::Int(0)).unwrap();
        let want: Vec<u8> = (0..16).map(|i| u8::from(!(start..start + 6).contains(&i))).collect();
        assert_eq!(out.read::<u8>(), want, "{dtype:?} {start}");
    }
    for start in [4, 3] {
        for n in 1..7 {
            let out = Array::new(DType::I16, &[16], &[7i16; 16]);
            fill(out.reshaped(&[n], &[1], start).view(), Scalar::Int(-3)).unwrap();
            let want: Vec<i16> =
                (0..16).map(|i| if (start..start + n).contains(&i) { -3 } else { 7 }).collect();
            assert_eq!(out.read::<i16>(), want);
        }
    }
}

#[test]
fn predicates_store_bools() {
    let (a, b) = (noise(37, 1), noise(37, 2));
    let (x, y) = (Array::f32(&[37], &a), Array::f32(&[37], &b));
    let want: Vec<u8> = a.iter().zip(&b).map(|(a, b)| u8::from(a < b)).collect();
    let out = Array::empty(DType::Bool, &[37]);
    pointwise(&LT, DType::F32, out.view(), &[x.source(), y.source()]).unwrap();
    assert_eq!(out.read::<u8>(), want);
    // Strided: words shared with other elements.
    let wide = Array::new(DType::Bool, &[37, 2], &[1u8; 74]);
    pointwise(&LT, DType::F32, wide.reshaped(&[37], &[2], 1).view(), &[x.source(), y.source()]).unwrap();
    let got = wide.read::<u8>();
    assert!((0..37).all(|i| got[2 * i] == 1 && got[2 * i + 1] == want[i]));
}

#[test]
fn integers_wrap_and_mix() {
    let a = Array::new(DType::I64, &[5], &[1i64, -5_000_000_000, i64::MAX, 7, -7]);
    let b = Array::new(DType::I32, &[5], &[2i32, 3, 1, -2, 2]);
    let out = Array::empty(DType::I64, &[5]);
    pointwise(&ADD, DType::I64, out.view(), &[a.source(), b.source()]).unwrap();
    assert_eq!(out.read::<i64>(), [3, -4_999_999_997, i64::MIN, 5, -5]);
    let divide = Expr { key: "floor_div", inputs: &["a", "b"], wgsl: "floor_div(a, b)", predicate: false };
    pointwise(&divide, DType::I64, out.view(), &[a.source(), b.source()]).unwrap();
    assert_eq!(out.read::<i64>(), [0, -1_666_666_667, i64::MAX, -4, -4]);
    let modulo = Expr { key: "remainder", inputs: &["a", "b"], wgsl: "remainder(a, b)", predicate: false };
    pointwise(&modulo, DType::I64, out.view(), &[a.source(), b.source()]).unwrap();
    assert_eq!(out.read::<i64>(), [1, 1, 0, -1, 1]);
    let big = Source::Scalar(Scalar::Int(-6_000_000_000));
    pointwise(&ADD, DType::I64, out.view(), &[b.source(), big]).unwrap();
    assert_eq!(out.read::<i64>()[0], -5_999_999_998);
    let more = Expr { key: "add_one", inputs: &["x"], wgsl: "x + T(1)", predicate: false };
    pointwise(&more, DType::I64, out.view(), &[out.source()]).unwrap();
    assert_eq!(out.read::<i64>()[0], -5_999_999_997);
}

#[test]
fn every_dtype_converts_to_every_other() {
    let numbers = [0.0f64, 1.0, 2.5, 3.75, 100.0, 5.0, 127.0];
    for from in DType::REAL {
        for to in DType::REAL {
            let n = numbers.len();
            let mut bytes = vec![0u8; n * from.size()];
            let mut want = vec![0u8; n * to.size()];
            for (i, &x) in numbers.iter().enumerate() {
                // SAFETY: both arrays hold n elements of their dtype.
                unsafe {
                    Scalar::Float(x).write(from, bytes.as_mut_ptr().add(i * from.size()));
                    let there = Scalar::read(from, bytes.as_ptr().add(i * from.size()));
                    there.write(to, want.as_mut_ptr().add(i * to.size()));
                }
            }
            let (src, dst) = (Array::new(from, &[n], &bytes), Array::empty(to, &[n]));
            copy(dst.view(), src.view()).unwrap();
            assert_eq!(dst.read::<u8>(), want, "{from:?} to {to:?}");
        }
    }
}

#[test]
fn halves_round_to_even_and_keep_nan() {
    use half::{bf16, f16};
    let mut data = vec![
        f32::NAN,
        f32::INFINITY,
        -0.0,
        65_519.9,
        65_520.0,
        6e-8,
        2.98e-8,
        2.99e-8,
        6.1e-5,
        1e-45,
        3.4e38,
    ];
    data.extend(noise(500, 5).iter().enumerate().map(|(i, x)| x * 10f32.powi(i as i32 % 14 - 9)));
    let n = data.len();
    let src = Array::f32(&[n], &data);
    let dst = Array::empty(DType::F16, &[n]);
    copy(dst.view(), src.view()).unwrap();
    for (&got, &x) in dst.read::<u16>().iter().zip(&data) {
        let want = f16::from_f32(x);
        assert!(
            got == want.to_bits() || (want.is_nan() && f16::from_bits(got).is_nan()),
            "{x}: {got:x} {want:?}"
        );
    }
    let back = Array::empty(DType::F32, &[n]);
    copy(back.view(), dst.view()).unwrap();
    for (got, bits) in back.read::<f32>().iter().zip(dst.read::<u16>()) {
        let want = f16::from_bits(bits).to_f32();
        assert!(got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()));
    }
    let dst = Array::empty(DType::BF16, &[n]);
    copy(dst.view(), src.view()).unwrap();
    for (&got, &x) in dst.read::<u16>().iter().zip(&data) {
        let want = bf16::from_f32(x);
        assert!(got == want.to_bits() || (want.is_nan() && bf16::from_bits(got).is_nan()), "{x}");
    }
}

#[test]
fn overlapping_views_are_read_before_they_are_written() {
    let x = Array::f32(&[9], &[0., 1., 2., 3., 4., 5., 6., 7., 8.]);
    let (head, tail) = (x.reshaped(&[8], &[1], 0), x.reshaped(&[8], &[1], 1));
    pointwise(&ADD, DType::F32, tail.view(), &[head.source(), tail.source()]).unwrap();
    assert_eq!(x.read::<f32>(), [0., 1., 3., 5., 7., 9., 11., 13., 15.]);
    pointwise(&ADD, DType::F32, x.view(), &[x.source(), x.source()]).unwrap();
    assert_eq!(x.read::<f32>()[8], 30.0);
}

#[test]
fn deep_shapes_use_the_ring() {
    let shape = [2, 3, 2, 3, 2, 3, 2];
    let n: usize = shape.iter().product();
    let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let x = Array::f32(&shape, &a);
    let mut turned = x.swap(0, 6);
    for (i, j) in [(1, 5), (2, 4)] {
        turned = turned.swap(i, j);
    }
    let out = Array::empty(DType::F32, &turned.shape);
    for _ in 0..200 {
        pointwise(&ADD, DType::F32, out.view(), &[turned.source(), turned.source()]).unwrap();
    }
    let got = out.read::<f32>();
    for (i, value) in got.iter().enumerate() {
        let (mut rest, mut at) = (i, 0);
        for d in (0..7).rev() {
            at += rest % turned.shape[d] * turned.strides[d];
            rest /= turned.shape[d];
        }
        assert_eq!(*value, 2.0 * at as f32);
    }
}

#[test]
fn launches_are_batched() {
    let x = Array::f32(&[8], &[0.0; 8]);
    synchronize().unwrap();
    let one = Source::Scalar(Scalar::Float(1.0));
    let before = dispatches();
    for _ in 0..640 {
        pointwise(&ADD, DType::F32, x.view(), &[x.source(), one]).unwrap();
    }
    assert!(dispatches() - before >= 640);
    assert_eq!(x.read::<f32>(), [640.0; 8]);
}

#[test]
fn bad_views_are_refused() {
    let x = Array::f32(&[8], &[0.0; 8]);
    assert!(fill(x.reshaped(&[9], &[1], 0).view(), Scalar::Int(0)).is_err());
    assert!(fill(x.reshaped(&[usize::MAX, 3], &[usize::MAX, 1], 1).view(), Scalar::Int(0)).is_err());
    assert!(alloc(1 << 60).is_err());
}

#[test]
fn four_threads_at_once() {
    ready();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let x = Array::f32(&[8], &[0.0; 8]);
                for _ in 0..100 {
                    let one = Source::Scalar(Scalar::Float(1.0));
                    pointwise(&ADD, DType::F32, x.view(), &[x.source(), one]).unwrap();
                }
                assert_eq!(x.read::<f32>(), [100.0; 8]);
            });
        }
    });
}

#[test]
fn broadcasts_go_in_quads_too() {
    for (rows, columns) in [(3, 8), (5, 12), (4, 6)] {
        let (a, b) = (noise(rows * columns, 1), noise(columns, 2));
        let x = Array::f32(&[rows, columns], &a);
        let bias = Array::f32(&[columns], &b).reshaped(&[rows, columns], &[0, 1], 0);
        let tall = Array::f32(&[columns], &b).reshaped(&[rows, columns], &[1, 0], 0);
        for (other, pick) in [(&bias, 0), (&tall, 1)] {
            let out = Array::empty(DType::Bool, &[rows, columns]);
            pointwise(&LT, DType::F32, out.view(), &[x.source(), other.source()]).unwrap();
            let sum = Array::empty(DType::F64, &[rows, columns]);
            pointwise(&ADD, DType::F32, sum.view(), &[x.source(), other.source()]).unwrap();
            let (less, sums) = (out.read::<u8>(), sum.read::<f64>());
            for i in 0..rows * columns {
                let y = b[if pick == 0 { i % columns } else { i / columns }];
                assert_eq!((less[i], sums[i]), (u8::from(a[i] < y), f64::from(a[i] + y)));
            }
        }
        // The middle columns of a wider tensor, of every element size.
        for dtype in [DType::U8, DType::I16, DType::F32, DType::I64] {
            let wide = Array::new(dtype, &[rows, 32], &vec![1u8; rows * 32 * dtype.size()]);
            fill(wide.reshaped(&[rows, columns], &[32, 1], 8).view(), Scalar::Int(0)).unwrap();
            for (i, bytes) in wide.read::<u8>().chunks(dtype.size()).enumerate() {
                let inside = (8..8 + columns).contains(&(i % 32));
                assert!(bytes.iter().all(|&b| b == u8::from(!inside)), "{dtype:?} {i}");
            }
        }
    }
}

#[test]
fn large_numbers_convert_as_in_rust() {
    let whole =
        [0i64, 1, -1, 1 << 24, (1 << 24) + 1, (1 << 40) + (1 << 16) + 1, -(1 << 53) - 1, i64::MAX, i64::MIN];
    let x = Array::new(DType::I64, &[9], &whole);
    let (single, double) = (Array::empty(DType::F32, &[9]), Array::empty(DType::F64, &[9]));
    copy(single.view(), x.view()).unwrap();
    copy(double.view(), x.view()).unwrap();
    assert_eq!(single.read::<f32>(), whole.map(|v| v as f32));
    assert_eq!(double.read::<f64>(), whole.map(|v| v as f64));
    let floats = [0.0f32, -0.9, 1.9, -2.5, 3e9, -3e9, 1e18, -1e18, 123_456.7];
    let back = Array::empty(DType::I64, &[9]);
    copy(back.view(), Array::f32(&[9], &floats).view()).unwrap();
    assert_eq!(back.read::<i64>(), floats.map(|v| v as i64));
    let negative = Expr { key: "t_negative", inputs: &["x"], wgsl: "lt(x, T(0))", predicate: true };
    let signs = Array::empty(DType::Bool, &[9]);
    pointwise(&negative, DType::I64, signs.view(), &[Array::f32(&[9], &floats).source()]).unwrap();
    assert_eq!(signs.read::<u8>(), floats.map(|v| u8::from((v as i64) < 0)));
}

#[test]
fn transposed_copies() {
    for (a, b, c) in [(40, 3, 50), (17, 2, 90), (64, 1, 64), (20, 33, 16)] {
        let n = a * b * c;
        for dtype in [DType::I32, DType::I64, DType::I16] {
            let size = dtype.size();
            let bytes: Vec<u8> = (0..n * size).map(|i| (i * 31 % 251) as u8).collect();
            let x = Array::new(dtype, &[a, b, c], &bytes);
            for (i, j) in [(0, 2), (0, 1), (1, 2)] {
                let turned = x.swap(i, j);
                let out = Array::empty(dtype, &turned.shape);
                copy(out.view(), turned.view()).unwrap();
                let got = out.read::<u8>();
                let mut place = 0;
                for p in 0..turned.shape[0] {
                    for q in 0..turned.shape[1] {
                        for r in 0..turned.shape[2] {
                            let s = &turned.strides;
                            let from = (p * s[0] + q * s[1] + r * s[2]) * size;
                            assert_eq!(got[place..place + size], bytes[from..from + size]);
                            place += size;
                        }
                    }
                }
            }
        }
    }
}

/// Random shapes, permutations, slices, broadcasts and dtypes, each compared with a plain loop.
#[test]
fn any_layout_will_do() {
    let mut state = 12_345u32;
    let mut roll = move |n: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % n
    };
    // A view of `shape` somewhere in fresh memory: permuted, sliced, and (for inputs) broadcast.
    let place = |shape: &[usize], broadcast: bool, roll: &mut dyn FnMut(usize) -> usize| {
        let mut order: Vec<usize> = (0..shape.len()).collect();
        for i in (1..order.len()).rev() {
            if roll(3) == 0 {
                order.swap(i, roll(i + 1));
            }
        }
        let mut strides = vec![0; shape.len()];
        let mut step = 1 + usize::from(roll(4) == 0);
        for &d in order.iter().rev() {
            if broadcast && roll(5) == 0 {
                continue;
            }
            strides[d] = step;
            step *= shape[d] + usize::from(roll(6) == 0) * 4;
        }
        let offset = roll(3) * roll(5);
        (strides, offset, offset + step + 8)
    };
    for case in 0..60 {
        let rank = roll(5);
        let shape: Vec<usize> = (0..rank).map(|_| [1, 2, 3, 4, 8, 12][roll(6)]).collect();
        let dtypes = [DType::F32, DType::Bool, DType::F16, DType::I64, DType::I32];
        let (to, from) = (dtypes[roll(5)], dtypes[roll(5)]);
        let (out_strides, out_offset, out_len) = place(&shape, false, &mut roll);
        let (a_strides, a_offset, a_len) = place(&shape, true, &mut roll);
        let (b_strides, b_offset, b_len) = place(&shape, true, &mut roll);
        let a: Vec<f32> = noise(a_len, case).iter().map(|x| (x * 8.0).round()).collect();
        let mut b = vec![0u8; b_len * from.size()];
        for (i, x) in noise(b_len, case + 1000).iter().enumerate() {
            // SAFETY: there is room for every element.
            unsafe {
                Scalar::Float(f64::from((x * 8.0).round())).write(from, b.as_mut_ptr().add(i * from.size()))
            };
        }
        let (x, y) = (Array::f32(&[a_len], &a), Array::new(from, &[b_len], &b));
        let mut want = vec![0u8; out_len * to.size()];
        let out = Array::new(to, &[out_len], &want);
        let mut at = vec![0usize; rank];
        for _ in 0..numel(&shape) {
            let dot = |s: &[usize]| at.iter().zip(s).map(|(i, s)| i * s).sum::<usize>();
            // SAFETY: the offsets stay inside the memory, as those of the view do.
            unsafe {
                let other =
                    Scalar::read(from, b.as_ptr().add((b_offset + dot(&b_strides)) * from.size())).as_f64();
                let sum = f64::from(a[a_offset + dot(&a_strides)]) + other;
                Scalar::Float(sum)
                    .write(to, want.as_mut_ptr().add((out_offset + dot(&out_strides)) * to.size()));
            }
            for d in (0..rank).rev() {
                at[d] += 1;
                if at[d] < shape[d] {
                    break;
                }
                at[d] = 0;
            }
        }
        let view = out.reshaped(&shape, &out_strides, out_offset);
        let ins = [x.reshaped(&shape, &a_strides, a_offset), y.reshaped(&shape, &b_strides, b_offset)];
        pointwise(&ADD, DType::F32, view.view(), &[ins[0].source(), ins[1].source()]).unwrap();
        assert!(
            out.read::<u8>() == want,
            "case {case}: {shape:?} {to:?} from {from:?}, strides {out_strides:?} {a_strides:?} {b_strides:?}"
        );
    }
}
