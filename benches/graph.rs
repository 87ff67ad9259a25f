//! Making and freeing graphs: nodes in the arena, chains and fans.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use gradiron::base::{DType, Device, Scalar};
use gradiron::operator::primitives::constant;
use gradiron::ops::elementwise::arithmetic;
use gradiron::tensor::Tensor;

fn leaf() -> Tensor {
    let t = constant::full(&[], Scalar::Float(1.0), DType::F32, Device::Cpu).expect("one element fits");
    t.set_requires_grad(true).expect("float tensors can require gradients");
    t
}

fn chain(x: &Tensor, length: usize) -> Tensor {
    (0..length).fold(x.clone(), |y, _| arithmetic::mul(&y, 1.0001).expect("a small product"))
}

fn graph(c: &mut Criterion) {
    let x = leaf();
    c.bench_function("make and free a chain of 1000", |b| b.iter(|| chain(&x, 1000)));
    c.bench_function("free a chain of 1000", |b| {
        b.iter_batched(|| chain(&x, 1000), drop, BatchSize::LargeInput)
    });
    c.bench_function("a fan of 1000 into one sum", |b| {
        b.iter(|| {
            (0..1000).fold(x.clone(), |sum, _| {
                arithmetic::add(&sum, &arithmetic::mul(&x, 2.0).expect("a small product"))
                    .expect("a small sum")
            })
        })
    });
}

criterion_group!(benches, graph);
criterion_main!(benches);
