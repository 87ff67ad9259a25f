//! Kernels by themselves, over sizes from the cache to memory; where threads begin to pay (`cpu::par::GRAIN`).

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use gradiron::base::{DType, Device, Scalar};
use gradiron::operator::primitives::constant;
use gradiron::ops::elementwise::{arithmetic, unary};
use gradiron::ops::linalg::matmul;
use gradiron::ops::reduction::reduce;

fn kernels(c: &mut Criterion) {
    let mut group = c.benchmark_group("elementwise");
    for n in [1 << 10, 1 << 15, 1 << 17, 1 << 20, 10_000_000] {
        let x =
            constant::full(&[n], Scalar::Float(0.5), DType::F32, Device::Cpu).expect("memory for the bench");
        group.throughput(Throughput::Elements(n as u64));
        group.bench_with_input(BenchmarkId::new("add", n), &x, |b, x| b.iter(|| arithmetic::add(x, x)));
        group.bench_with_input(BenchmarkId::new("exp", n), &x, |b, x| b.iter(|| unary::exp(x)));
        group.bench_with_input(BenchmarkId::new("tanh", n), &x, |b, x| b.iter(|| unary::tanh(x)));
        group.bench_with_input(BenchmarkId::new("sum", n), &x, |b, x| {
            b.iter(|| reduce::sum(x, None, false, None))
        });
    }
    group.finish();
    let mut group = c.benchmark_group("matmul");
    for n in [8, 32, 64, 128, 256, 512, 1024] {
        for dtype in [DType::F32, DType::F64] {
            let x = constant::full(&[n, n], Scalar::Float(0.5), dtype, Device::Cpu)
                .expect("memory for the bench");
            group.throughput(Throughput::Elements(2 * (n as u64).pow(3)));
            group.bench_with_input(BenchmarkId::new(dtype.name(), n), &x, |b, x| b.iter(|| matmul::mm(x, x)));
        }
    }
    group.finish();
}

criterion_group!(benches, kernels);
criterion_main!(benches);
