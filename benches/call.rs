//! What one small operator costs, from operands to result, recorded or not.

use criterion::{Criterion, criterion_group, criterion_main};
use gradiron::base::{DType, Device, Scalar};
use gradiron::operator::primitives::constant;
use gradiron::ops::elementwise::{arithmetic, unary};
use gradiron::ops::shape::slices;
use gradiron::tensor::Tensor;
use std::hint::black_box;

fn four(requires_grad: bool) -> Tensor {
    let t = constant::full(&[4], Scalar::Float(1.5), DType::F32, Device::Cpu).expect("four elements fit");
    t.set_requires_grad(requires_grad).expect("float tensors can require gradients");
    t
}

fn call(c: &mut Criterion) {
    let (plain, leaf) = (four(false), four(true));
    c.bench_function("add of 4, not recording", |b| b.iter(|| arithmetic::add(black_box(&plain), &plain)));
    c.bench_function("add of 4, recording", |b| b.iter(|| arithmetic::add(black_box(&leaf), &plain)));
    c.bench_function("mul of 4 by a number, recording", |b| {
        b.iter(|| arithmetic::mul(black_box(&leaf), 2.0))
    });
    c.bench_function("exp of 4", |b| b.iter(|| unary::exp(black_box(&plain))));
    c.bench_function("select", |b| b.iter(|| slices::select(black_box(&plain), 0, 1)));
    c.bench_function("item", |b| {
        let one = constant::full(&[], Scalar::Float(1.0), DType::F32, Device::Cpu).expect("one element fits");
        b.iter(|| black_box(&one).item())
    });
}

criterion_group!(benches, call);
criterion_main!(benches);
