//! What a replay of captured kernels costs: an empty one, one with a kernel, and the check of a tensor that the call read.

use criterion::{Criterion, criterion_group, criterion_main};
use gradiron::base::{DType, Device, Scalar};
use gradiron::capture::{Capture, Kind, Program};
use gradiron::operator::primitives::constant;
use gradiron::ops::elementwise::arithmetic;
use gradiron::tensor::Tensor;
use std::hint::black_box;

fn four() -> Tensor {
    constant::full(&[4], Scalar::Float(1.5), DType::F32, Device::Cpu).expect("four elements fit")
}

/// A program of this call, which is given all `known` tensors.
fn program(known: &[Tensor], call: impl FnOnce() -> Vec<Tensor>) -> Program {
    let capture = Capture::begin(true).expect("nothing else is captured");
    let results = call();
    let call = capture.end_call().expect("all kernels can be captured");
    call.program(known, known.len(), &results, || (), true).expect("all results are found")
}

fn replay(c: &mut Criterion) {
    let x = four();
    let empty = program(&[], Vec::new);
    c.bench_function("replay of nothing", |b| b.iter(|| black_box(&empty).replay(&[], &[]).is_ok()));
    let unit = program(std::slice::from_ref(&x), || vec![arithmetic::add(&x, &x).expect("shapes are equal")]);
    c.bench_function("replay of an add of 4", |b| b.iter(|| black_box(&unit).replay(&[&x], &[]).is_ok()));
    let kind = Kind::of(&x);
    c.bench_function("check of a tensor", |b| b.iter(|| kind.matches(black_box(&x))));
}

criterion_group!(benches, replay);
criterion_main!(benches);
