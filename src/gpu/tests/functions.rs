//! The functions of the prelude, compared with the host's float64 results.

use super::*;

const EDGES: [f32; 20] = [
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1e-40,
    -1e-40,
    1e-45,
    1e-30,
    1e30,
    3.4e38,
    -3.4e38,
    100.0,
    -100.0,
    88.5,
    -104.5,
];

fn apply(key: &'static str, wgsl: &'static str, xs: &[f32]) -> Vec<f32> {
    let expr = Expr { key, inputs: &["x"], wgsl, predicate: false };
    let (x, out) = (Array::f32(&[xs.len()], xs), Array::empty(DType::F32, &[xs.len()]));
    pointwise(&expr, DType::F32, out.view(), &[x.source()]).unwrap();
    out.read()
}

fn ulps(got: f32, want: f64) -> f64 {
    let nearest = want as f32;
    if got == nearest || (got.is_nan() && nearest.is_nan()) {
        return 0.0;
    }
    if !got.is_finite() || !nearest.is_finite() {
        return f64::INFINITY;
    }
    let at = nearest.abs().max(f32::MIN_POSITIVE);
    let ulp = f64::from(f32::from_bits(at.to_bits() + 1)) - f64::from(at);
    (f64::from(got) - want).abs() / ulp
}

#[test]
fn functions_are_within_a_few_ulps() {
    type FunctionCase = (&'static str, &'static str, fn(f64) -> f64, f32, f64);
    let cases: [FunctionCase; 27] = [
        ("t_exp", "exp(x)", f64::exp, 110.0, 2.0),
        ("t_exp2", "exp2(x)", f64::exp2, 155.0, 2.0),
        ("t_expm1", "expm1(x)", f64::exp_m1, 90.0, 3.0),
        ("t_log", "log(x)", f64::ln, 1000.0, 2.0),
        ("t_log2", "log2(x)", f64::log2, 1000.0, 3.0),
        ("t_log10", "log10(x)", f64::log10, 1000.0, 3.0),
        ("t_log1p", "log1p(x)", f64::ln_1p, 100.0, 3.0),
        ("t_sin", "sin(x)", f64::sin, 1e5, 2.5),
        ("t_cos", "cos(x)", f64::cos, 1e5, 2.5),
        ("t_tan", "tan(x)", f64::tan, 1e3, 5.0),
        ("t_asin", "asin(x)", f64::asin, 1.01, 4.0),
        ("t_acos", "acos(x)", f64::acos, 1.01, 4.0),
        ("t_atan", "atan(x)", f64::atan, 50.0, 3.0),
        ("t_sinh", "sinh(x)", f64::sinh, 91.0, 4.0),
        ("t_cosh", "cosh(x)", f64::cosh, 91.0, 4.0),
        ("t_tanh", "tanh(x)", f64::tanh, 10.0, 4.0),
        ("t_asinh", "asinh(x)", f64::asinh, 100.0, 4.0),
        ("t_acosh", "acosh(x)", f64::acosh, 100.0, 4.0),
        ("t_atanh", "atanh(x)", f64::atanh, 1.01, 4.0),
        ("t_sigmoid", "sigmoid(x)", |x| 1.0 / (1.0 + (-x).exp()), 80.0, 4.0),
        ("t_sqrt", "sqrt(x)", f64::sqrt, 1e6, 1.0),
        ("t_rsqrt", "rsqrt(x)", |x| 1.0 / x.sqrt(), 1e6, 2.0),
        ("t_recip", "recip(x)", |x| 1.0 / x, 1e6, 1.0),
        ("t_round", "round(x)", f64::round_ties_even, 20.0, 0.0),
        ("t_frac", "frac(x)", |x| x - x.trunc(), 20.0, 0.0),
        ("t_cube", "pow(x, 3.0)", |x| x * x * x, 1e12, 2.0),
        ("t_floor", "floor(x)", f64::floor, 20.0, 0.0),
    ];
    for (key, wgsl, exact, range, bound) in cases {
        let mut xs: Vec<f32> = noise(4000, 9).iter().map(|x| x * range).collect();
        xs.extend(noise(2000, 10).iter().map(|x| x * 1.5));
        xs.extend(noise(500, 11).iter().enumerate().map(|(i, x)| x * 10f32.powi(i as i32 % 70 - 36)));
        xs.extend(EDGES);
        let got = apply(key, wgsl, &xs);
        let mut worst = (0.0, 0.0f32, 0.0f32);
        for (&x, &y) in xs.iter().zip(&got) {
            let want = exact(f64::from(x));
            // Adapters may flush subnormal results.
            if want.abs() < f64::from(f32::MIN_POSITIVE) && y.abs() <= f32::MIN_POSITIVE {
                continue;
            }
            let error = ulps(y, want);
            if error > worst.0 {
                worst = (error, x, y);
            }
        }
        println!("{wgsl}: {:.2} ulp at {}", worst.0, worst.1);
        let (error, x, y) = worst;
        assert!(error <= bound, "{wgsl}: {error} ulp at {x}: {y}, not {}", exact(f64::from(x)));
    }
}

#[test]
fn two_argument_functions() {
    let specials = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        -2.0,
        0.5,
        3.0,
        -3.5,
        1e-40,
        1e30,
    ];
    let mut pairs: Vec<(f32, f32)> = specials.iter().flat_map(|&a| specials.map(|b| (a, b))).collect();
    let (p, q) = (noise(3000, 21), noise(3000, 22));
    pairs.extend(p.iter().zip(&q).map(|(a, b)| (a.abs() * 50.0, b * 20.0)));
    pairs.extend(p.iter().zip(&q).map(|(a, b)| (a * 1e10, b * 3.0)));
    let (a, b): (Vec<f32>, Vec<f32>) = pairs.iter().copied().unzip();
    let n = a.len();
    let (x, y) = (Array::f32(&[n], &a), Array::f32(&[n], &b));
    type PairCase = (&'static str, &'static str, fn(f64, f64) -> f64, f64);
    let cases: [PairCase; 8] = [
        ("u_pow", "pow(a, b)", f64::powf, 4.0),
        ("u_fmod", "fmod(a, b)", |a, b| a % b, 0.0),
        ("u_atan2", "atan2(a, b)", f64::atan2, 4.0),
        ("u_hypot", "hypot(a, b)", f64::hypot, 3.0),
        (
            "u_maximum",
            "maximum(a, b)",
            |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) },
            0.0,
        ),
        (
            "u_minimum",
            "minimum(a, b)",
            |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) },
            0.0,
        ),
        ("u_fmax", "fmax(a, b)", f64::max, 0.0),
        ("u_copysign", "copysign(a, b)", |a, b| if a.is_nan() { f64::NAN } else { a.abs().copysign(b) }, 0.0),
    ];
    for (key, wgsl, exact, bound) in cases {
        let expr = Expr { key, inputs: &["a", "b"], wgsl, predicate: false };
        let out = Array::empty(DType::F32, &[n]);
        pointwise(&expr, DType::F32, out.view(), &[x.source(), y.source()]).unwrap();
        let got = out.read::<f32>();
        let mut worst = 0.0f64;
        for i in 0..n {
            let want = exact(f64::from(a[i]), f64::from(b[i]));
            // Adapters may flush subnormal operands and results.
            if a[i].is_subnormal() || b[i].is_subnormal() {
                continue;
            }
            if want.abs() < f64::from(f32::MIN_POSITIVE) && got[i].abs() <= f32::MIN_POSITIVE {
                continue;
            }
            let error = ulps(got[i], want);
            assert!(error <= bound, "{wgsl}: {error} ulp at {} {}: {}, not {want}", a[i], b[i], got[i]);
            worst = worst.max(error);
        }
        println!("{wgsl}: {worst:.2} ulp");
    }
}

#[test]
fn nan_and_infinity_survive() {
    let xs = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 1.0];
    let x = Array::f32(&[5], &xs);
    let zero = Source::Scalar(Scalar::Float(0.0));
    let ask = |key, wgsl, predicate| {
        let expr = Expr { key, inputs: &["x", "y"], wgsl, predicate };
        let out = Array::empty(if predicate { DType::Bool } else { DType::F32 }, &[5]);
        pointwise(&expr, DType::F32, out.view(), &[x.source(), zero]).unwrap();
        out
    };
    assert_eq!(ask("v_ne", "ne(x, x)", true).read::<u8>(), [1, 0, 0, 0, 0]);
    assert_eq!(ask("v_eq", "eq(x, y)", true).read::<u8>(), [0, 0, 0, 1, 0]);
    assert_eq!(ask("v_truth", "truth(x)", true).read::<u8>(), [1, 1, 1, 0, 1]);
    assert_eq!(ask("v_nan", "is_nan(x)", true).read::<u8>(), [1, 0, 0, 0, 0]);
    assert_eq!(ask("v_finite", "is_finite(x)", true).read::<u8>(), [0, 0, 0, 1, 1]);
    assert_eq!(ask("v_ge", "ge(x, y)", true).read::<u8>(), [0, 1, 0, 1, 1]);
    assert_eq!(ask("v_not", "not(lt(x, y))", true).read::<u8>(), [1, 1, 0, 1, 1]);
    let product = ask("v_mul", "x * y", false).read::<f32>();
    assert!(product[..3].iter().all(|p| p.is_nan()) && product[3..] == [0.0, 0.0]);
    assert!(ask("v_sub", "x - x", false).read::<f32>()[3] == 0.0);
    assert_eq!(
        ask("v_relu", "select(x, y, lt(x, y))", false).read::<f32>()[1..],
        [f32::INFINITY, 0.0, -0.0, 1.0]
    );
    assert!(ask("v_relu", "select(x, y, lt(x, y))", false).read::<f32>()[0].is_nan());
}

#[test]
fn special_functions() {
    // PyTorch's float64 results for these float32 arguments.
    type SpecialCase = (&'static str, &'static [(f32, f64)]);
    let cases: [SpecialCase; 7] = [
        (
            "erf",
            &[
                (1e-06, 1.128379164e-06),
                (0.1, 1.124629177e-01),
                (0.5, 5.204998778e-01),
                (0.84, 7.651426968e-01),
                (0.9, 7.969082005e-01),
                (1.2, 9.103139910e-01),
                (1.3, 9.340079350e-01),
                (2.0, 9.953222650e-01),
                (2.8, 9.999249868e-01),
                (2.9, 9.999589021e-01),
                (3.5, 9.999992569e-01),
                (-0.3, -3.286267718e-01),
                (-1.1, -8.802050776e-01),
                (-4.0, -9.999999846e-01),
            ],
        ),
        (
            "erfc",
            &[
                (1e-06, 9.999988716e-01),
                (0.1, 8.875370823e-01),
                (0.24, 7.342999468e-01),
                (0.3, 6.713732282e-01),
                (0.5, 4.795001222e-01),
                (0.84, 2.348573032e-01),
                (0.9, 2.030917995e-01),
                (1.2, 8.968600902e-02),
                (1.3, 6.599206499e-02),
                (2.0, 4.677734981e-03),
                (2.8, 7.501321585e-05),
                (2.9, 4.109785414e-05),
                (3.5, 7.430983723e-07),
                (6.0, 2.151973671e-17),
                (8.5, 2.762324071e-33),
                (-0.3, 1.328626772e+00),
                (-1.1, 1.880205078e+00),
                (-4.0, 1.999999985e+00),
            ],
        ),
        (
            "erfinv",
            &[
                (1e-06, 8.862269232e-07),
                (0.1, 8.885599183e-02),
                (0.3, 2.724627261e-01),
                (0.5, 4.769362762e-01),
                (0.7, 7.328690599e-01),
                (0.9, 1.163087072e+00),
                (0.99, 1.821386601e+00),
                (0.999, 2.326756327e+00),
                (0.999999, 3.457074726e+00),
                (-0.2, -1.791434573e-01),
                (-0.95, -1.385903752e+00),
            ],
        ),
        (
            "lgamma",
            &[
                (1e-06, 1.381550998e+01),
                (0.1, 2.252712636e+00),
                (0.3, 1.095797953e+00),
                (0.5, 5.723649429e-01),
                (0.75, 2.032809514e-01),
                (1.25, -9.827183642e-02),
                (1.9, -3.898428442e-02),
                (2.1, 4.543769226e-02),
                (2.6, 3.574117919e-01),
                (3.5, 1.200973602e+00),
                (5.0, 3.178053830e+00),
                (7.9, 8.324266059e+00),
                (8.1, 8.727389037e+00),
                (30.0, 7.125703897e+01),
                (100000.0, 1.051287709e+06),
                (-0.25, 1.589575313e+00),
                (-0.75, 1.575704597e+00),
                (-1.5, 8.600470154e-01),
                (-3.3, -8.243556324e-01),
                (-10.5, -1.514727059e+01),
            ],
        ),
        (
            "digamma",
            &[
                (0.001, -1.000575524e+03),
                (0.1, -1.042375479e+01),
                (0.3, -3.502524076e+00),
                (0.5, -1.963510026e+00),
                (1.0, -5.772156649e-01),
                (1.25, -2.274535334e-01),
                (2.0, 4.227843351e-01),
                (3.5, 1.103156641e+00),
                (7.9, 2.002238500e+00),
                (30.0, 3.384438133e+00),
                (100000.0, 1.151292046e+01),
                (-0.25, 2.914139120e+00),
                (-0.75, -2.894120200e+00),
                (-1.6, -2.697181269e-01),
                (-3.3, 3.620354167e+00),
                (-10.4, 3.409882433e+00),
            ],
        ),
        (
            "trigamma",
            &[
                (0.001, 1.000001548e+06),
                (0.1, 1.014332962e+02),
                (0.3, 1.224536365e+01),
                (0.5, 4.934802202e+00),
                (1.0, 1.644934068e+00),
                (1.25, 1.197329155e+00),
                (2.0, 6.449340671e-01),
                (3.5, 3.303577562e-01),
                (7.9, 1.349307817e-01),
                (30.0, 3.389506036e-02),
                (100000.0, 1.000005000e-05),
                (-0.25, 1.854187965e+01),
                (-0.75, 1.897510693e+01),
                (-1.6, 1.044375990e+01),
                (-3.3, 1.481774280e+01),
                (-10.4, 1.081989580e+01),
            ],
        ),
        (
            "polygamma",
            &[
                (0.1, -2.001861368e+03),
                (0.3, -7.527252773e+01),
                (0.5, -1.682879664e+01),
                (1.0, -2.404113806e+00),
                (1.25, -1.327739938e+00),
                (2.0, -4.041138063e-01),
                (3.5, -1.082040516e-01),
                (7.9, -1.817900437e-02),
                (30.0, -1.148765204e-03),
                (-0.25, 1.226973668e+02),
                (-0.75, -1.245869992e+02),
                (-1.6, -2.249159487e+01),
                (-3.3, 6.876948215e+01),
            ],
        ),
    ];
    for (name, points) in cases {
        let wgsl =
            ["erf(x)", "erfc(x)", "erfinv(x)", "lgamma(x)", "digamma(x)", "trigamma(x)", "polygamma(2.0, x)"]
                .into_iter()
                .find(|w| w.split('(').next() == Some(name))
                .unwrap();
        let xs: Vec<f32> = points.iter().map(|p| p.0).collect();
        for ((x, want), got) in points.iter().zip(apply(name, wgsl, &xs)) {
            let error = (f64::from(got) - want).abs() / want.abs().max(0.05);
            assert!(error < 2e-6, "{name}({x}) = {got}, not {want}");
        }
    }
    let edges = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -1.0, 1.0];
    let show = |name, wgsl| format!("{:?}", apply(name, wgsl, &edges));
    assert_eq!(show("erf", "erf(x)"), "[NaN, 1.0, -1.0, 0.0, -0.8427008, 0.8427008]");
    // The exact result lies between these two, 0.39 and 0.61 units from them.
    let ways = ["1.8427008", "1.8427007"].map(|next| format!("[NaN, 0.0, 2.0, 1.0, {next}, 0.1572992]"));
    assert!(ways.contains(&show("erfc", "erfc(x)")));
    assert_eq!(show("erfinv", "erfinv(x)"), "[NaN, NaN, NaN, 0.0, -inf, inf]");
    assert_eq!(show("lgamma", "lgamma(x)"), "[NaN, inf, inf, inf, inf, 0.0]");
}

#[test]
fn quotients_are_exact() {
    let mut a =
        vec![20.5f32, 3e38, 3e38, -0.0, 0.0, 1.0, f32::INFINITY, 1.0, f32::NAN, 3e38, 7.0, -1.0, 1e-30];
    let mut b =
        vec![20.5f32, 3e38, -1e38, 2.0, 0.0, 0.0, 2.0, f32::INFINITY, 1.0, 1e-3, -0.0, f32::NAN, 1e38];
    let (p, q) = (noise(3000, 31), noise(3000, 32));
    a.extend(p.iter().map(|x| x * 1e3));
    b.extend(&q);
    a.extend(&q);
    b.extend(&q);
    let n = a.len();
    let (x, y) = (Array::f32(&[n], &a), Array::f32(&[n], &b));
    let expr = Expr { key: "exact_quotient", inputs: &["a", "b"], wgsl: "a / b", predicate: false };
    let out = Array::empty(DType::F32, &[n]);
    pointwise(&expr, DType::F32, out.view(), &[x.source(), y.source()]).unwrap();
    for (i, got) in out.read::<f32>().into_iter().enumerate() {
        let want = a[i] / b[i];
        let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
        assert!(same || want.is_subnormal(), "{} / {} = {got}, not {want}", a[i], b[i]);
    }
}

#[test]
fn doubles_divide_exactly() {
    let values = [5.5, -7.25, 1e300, 3.0, 1e-310, 0.1, f64::INFINITY, f64::NAN, 9.0, -0.0];
    let pairs: Vec<(f64, f64)> = values.iter().flat_map(|&a| values.map(|b| (a, b))).collect();
    let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let n = a.len();
    let (x, y) = (Array::new(DType::F64, &[n], &a), Array::new(DType::F64, &[n], &b));
    if !info().unwrap().has_f64 {
        return;
    }
    let ask = |key, wgsl| {
        let out = Array::empty(DType::F64, &[n]);
        let expr = Expr { key, inputs: &["a", "b"], wgsl, predicate: false };
        pointwise(&expr, DType::F64, out.view(), &[x.source(), y.source()]).unwrap();
        out.read::<f64>()
    };
    let (mods, floors) = (ask("fmod", "fmod(a, b)"), ask("floor_div", "floor_div(a, b)"));
    for i in 0..n {
        let want = a[i] % b[i];
        assert!(
            mods[i].to_bits() == want.to_bits() || (want.is_nan() && mods[i].is_nan()),
            "{} {}: {}",
            a[i],
            b[i],
            mods[i]
        );
        let floor = (a[i] / b[i]).floor();
        if floor.abs() < 1e15 && want.is_finite() {
            assert!((floors[i] - floor).abs() <= 1.0, "{} {}: {}", a[i], b[i], floors[i]);
        }
    }
}
