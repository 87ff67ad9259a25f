//! Failures must become errors: no memory, a forked child, a failing kernel.

use super::*;

#[test]
fn memory_runs_out_and_comes_back() {
    if !alone("gpu::tests::robust::memory_runs_out_and_comes_back") {
        return;
    }
    ready();
    set_cap(Some(64 << 20));
    let held: Vec<_> = (0..6).map(|_| alloc(10 << 20).unwrap()).collect();
    let error = alloc(10 << 20).unwrap_err();
    assert!(matches!(error.fault(), crate::base::Fault::OutOfMemory { .. }));
    assert!(error.to_string().starts_with("CUDA out of memory. Tried to allocate 10.00 MiB."), "{error}");
    let before = memory();
    assert_eq!((before.allocated, before.reserved), (60 << 20, 60 << 20));
    drop(held);
    assert_eq!(memory().allocated, 0);
    // The idle buffers of another size make room.
    let large = alloc(48 << 20).unwrap();
    assert_eq!(memory().reserved, 48 << 20);
    drop(large);
    empty_cache();
    assert_eq!(memory().reserved, 0);
    reset_peak();
    assert_eq!(memory().max_allocated, 0);
    set_cap(None);
    let again = alloc(10 << 20).unwrap();
    let creations = memory().creations;
    drop(again);
    let _again = alloc(10 << 20).unwrap();
    assert_eq!(memory().creations, creations);
}

#[cfg(unix)]
#[test]
fn a_forked_child_is_refused() {
    if !alone("gpu::tests::robust::a_forked_child_is_refused") {
        return;
    }
    unsafe extern "C" {
        fn fork() -> i32;
        fn waitpid(pid: i32, status: *mut i32, options: i32) -> i32;
        fn _exit(code: i32) -> !;
    }
    let x = Array::f32(&[4], &[1.0; 4]);
    assert_eq!(x.read::<f32>(), [1.0; 4]);
    // SAFETY: the child only asks whether the GPU works, frees a buffer, and exits.
    unsafe {
        let child = fork();
        if child == 0 {
            let refused = alloc(4).is_err_and(|e| e.to_string().contains("forked subprocess"));
            drop(x);
            _exit(if refused && !available() && synchronize().is_ok() { 7 } else { 1 });
        }
        let mut status = 0;
        waitpid(child, &mut status, 0);
        assert_eq!(status >> 8 & 0xff, 7);
    }
    assert_eq!(x.read::<f32>(), [1.0; 4]);
}

#[test]
fn a_failing_kernel_names_itself_and_the_next_one_works() {
    let x = Array::f32(&[4], &[1.0; 4]);
    let bad = Expr { key: "bad", inputs: &["x"], wgsl: "x + nonsense", predicate: false };
    let error = pointwise(&bad, DType::F32, x.view(), &[x.source()]).unwrap_err().to_string();
    assert!(error.contains("the kernel bad") && error.contains("nonsense"), "{error}");
    let good = Expr { key: "good", inputs: &["std"], wgsl: "std + 1.0", predicate: false };
    pointwise(&good, DType::F32, x.view(), &[x.source()]).unwrap();
    assert_eq!(x.read::<f32>(), [2.0; 4]);
}

#[test]
fn what_has_no_shader_says_so() {
    let x = Array::new(DType::I64, &[2], &[1i64, 2]);
    let expr = Expr { key: "exp", inputs: &["x"], wgsl: "exp(x)", predicate: false };
    let error = pointwise(&expr, DType::I64, x.view(), &[x.source()]).unwrap_err();
    assert!(matches!(error.fault(), crate::base::Fault::NoShader { op: "exp", dtype: DType::I64 }));
    let x = Array::new(DType::F64, &[2], &[1.0f64, 2.0]);
    let expr = Expr { key: "mul", inputs: &["x", "y"], wgsl: "x * y", predicate: false };
    if info().unwrap().has_f64 {
        pointwise(&expr, DType::F64, x.view(), &[x.source(), Source::Scalar(Scalar::Float(0.1))]).unwrap();
        assert_eq!(x.read::<f64>(), [0.1, 0.2]);
    }
}

#[test]
fn transfers_in_pieces() {
    let n = (64 << 20) + 5;
    let data: Vec<u8> = (0..n).map(|i| (i % 253) as u8).collect();
    let buffer = alloc(n).unwrap();
    upload(&buffer, 0, &data).unwrap();
    let mut back = vec![0; n];
    download(&buffer, 0, &mut back).unwrap();
    assert!(back == data);
}

#[test]
fn a_lost_device_is_an_error() {
    if !alone("gpu::tests::robust::a_lost_device_is_an_error") {
        return;
    }
    let x = Array::f32(&[4], &[1.0; 4]);
    assert_eq!(x.read::<f32>(), [1.0; 4]);
    crate::gpu::device::gpu().unwrap().device.destroy();
    let mut bytes = [0; 16];
    let outcomes = [
        fill(x.view(), Scalar::Int(1)).err(),
        download(&x.buffer, 0, &mut bytes).err(),
        synchronize().err(),
        upload(&x.buffer, 0, &bytes).err(),
        alloc(1 << 20).err(),
    ];
    assert!(outcomes.iter().flatten().count() >= 3, "{outcomes:?}");
    let last = synchronize().unwrap_err().to_string();
    assert!(last.starts_with("GPU error: the GPU was lost"), "{last}");
    assert!(!available());
}

#[test]
fn results_may_share_memory_with_operands() {
    let x = Array::f32(&[12], &[1.0; 12]);
    let (six, one) = (x.reshaped(&[6], &[1], 0), x.reshaped(&[1], &[1], 9));
    reduce(crate::base::Reduction::Sum, one.view(), six.view(), &[0]).unwrap();
    let (two, four) = (x.reshaped(&[2, 2], &[2, 1], 0), x.reshaped(&[2, 2], &[2, 1], 4));
    matmul(four.view(), two.view(), two.view(), 3.0, 0.0).unwrap();
    softmax(two.view(), two.view(), 1, false).unwrap();
    assert_eq!(x.read::<f32>(), [0.5, 0.5, 0.5, 0.5, 6.0, 6.0, 6.0, 6.0, 1.0, 6.0, 1.0, 1.0]);
}

#[test]
fn the_adapter_introduces_itself() {
    ready();
    let info = info().unwrap();
    assert!(!info.name.is_empty() && info.max_buffer >= 1 << 27 && count() == 1);
    assert!(info.total_memory.is_none_or(|bytes| bytes > 1 << 20), "{info:?}");
    println!("{info:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn long_runs_do_not_grow() {
    if !alone("gpu::tests::robust::long_runs_do_not_grow") {
        return;
    }
    let add = Expr { key: "add", inputs: &["a", "b"], wgsl: "a + b", predicate: false };
    let x = Array::f32(&[1000], &[1.0; 1000]);
    let resident = || -> usize {
        let status = std::fs::read_to_string("/proc/self/statm").unwrap();
        status.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    };
    let run = |n: usize| {
        for _ in 0..n {
            let out = Array {
                buffer: alloc(4000).unwrap(),
                shape: x.shape.clone(),
                strides: x.strides.clone(),
                ..x
            };
            pointwise(&add, DType::F32, out.view(), &[x.source(), x.source()]).unwrap();
        }
        synchronize().unwrap();
    };
    // Long enough to fill the quarantine that a sanitizer keeps of freed memory, too.
    run(8000);
    let (before, creations) = (resident(), memory().creations);
    run(20_000);
    assert!(resident() < before + (8 << 20), "{before} {}", resident());
    assert_eq!(memory().creations, creations);
}

/// Not a test: measures and prints what recording costs the host.
#[test]
#[ignore = "a measurement"]
fn recording_costs() {
    let add = Expr { key: "add", inputs: &["a", "b"], wgsl: "a + b", predicate: false };
    let x = Array::f32(&[4], &[1.0; 4]);
    let mut best = f64::INFINITY;
    for _ in 0..200 {
        synchronize().unwrap();
        let start = std::time::Instant::now();
        for _ in 0..50 {
            let out = alloc(16).unwrap();
            let out = Array {
                buffer: out,
                dtype: DType::F32,
                shape: x.shape.clone(),
                strides: x.strides.clone(),
                offset: 0,
            };
            pointwise(&add, DType::F32, out.view(), &[x.source(), x.source()]).unwrap();
        }
        best = best.min(start.elapsed().as_secs_f64() / 50.0);
    }
    println!("recording an addition: {:.2} us", best * 1e6);
}

#[test]
#[ignore = "a measurement"]
fn kernels_cost() {
    let time = |what: &str, run: &dyn Fn()| {
        let mut best = f64::INFINITY;
        for _ in 0..8 {
            synchronize().unwrap();
            let start = std::time::Instant::now();
            run();
            synchronize().unwrap();
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!("{what}: {:.2} ms", best * 1e3);
    };
    let add = Expr { key: "add", inputs: &["a", "b"], wgsl: "a + b", predicate: false };
    let exp = Expr { key: "exp", inputs: &["a"], wgsl: "exp(a)", predicate: false };
    let n = 1_000_000;
    let (x, out) = (Array::f32(&[1000, 1000], &noise(n, 1)), Array::empty(DType::F32, &[1000, 1000]));
    let row = x.reshaped(&[1000, 1000], &[0, 1], 0);
    let one = Array::empty(DType::F32, &[1, 1]);
    let side = Array::empty(DType::F32, &[1, 1000]);
    let tall = Array::empty(DType::F32, &[1000, 1]);
    let sum = crate::base::Reduction::Sum;
    time("add", &|| pointwise(&add, DType::F32, out.view(), &[x.source(), x.source()]).unwrap());
    time("add a row", &|| pointwise(&add, DType::F32, out.view(), &[x.source(), row.source()]).unwrap());
    time("add transposed", &|| {
        pointwise(&add, DType::F32, out.view(), &[x.source(), x.swap(0, 1).source()]).unwrap()
    });
    time("exp", &|| pointwise(&exp, DType::F32, out.view(), &[x.source()]).unwrap());
    time("copy transposed", &|| copy(out.view(), x.swap(0, 1).view()).unwrap());
    time("sum", &|| reduce(sum, one.view(), x.view(), &[0, 1]).unwrap());
    time("sum of rows", &|| reduce(sum, tall.view(), x.view(), &[1]).unwrap());
    time("sum of columns", &|| reduce(sum, side.view(), x.view(), &[0]).unwrap());
    time("softmax of rows", &|| softmax(out.view(), x.view(), 1, false).unwrap());
    time("softmax of columns", &|| softmax(out.view(), x.view(), 0, false).unwrap());
    for n in [64, 128, 256, 512] {
        let (a, o) = (Array::f32(&[n, n], &noise(n * n, 1)), Array::empty(DType::F32, &[n, n]));
        time(&format!("matmul {n}"), &|| matmul(o.view(), a.view(), a.view(), 1.0, 0.0).unwrap());
    }
}
