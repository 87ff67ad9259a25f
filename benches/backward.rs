//! The scheduler: backward over chains, fans and a small network.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use gradiron::backward::{Request, run};
use gradiron::base::{DType, Device, Scalar};
use gradiron::operator::primitives::constant;
use gradiron::ops::elementwise::{arithmetic, unary};
use gradiron::ops::linalg::matmul;
use gradiron::ops::reduction::reduce;
use gradiron::tensor::Tensor;

fn leaf(shape: &[usize]) -> Tensor {
    let t = constant::full(shape, Scalar::Float(0.01), DType::F32, Device::Cpu).expect("a small tensor");
    t.set_requires_grad(true).expect("float tensors can require gradients");
    t
}

fn backward(root: &Tensor) {
    let one = constant::ones(&root.shape(), root.dtype(), root.device()).expect("one element fits");
    let edge = root.edge().expect("the root was recorded");
    run(Request {
        roots: &[(edge, one)],
        retain_graph: false,
        create_graph: false,
        inputs: None,
        accumulate: true,
        poll: &mut || Ok(()),
    })
    .expect("a backward without errors");
}

fn bench(c: &mut Criterion) {
    let x = leaf(&[]);
    let chain = || (0..1000).fold(x.clone(), |y, _| arithmetic::mul(&y, 1.0001).expect("a small product"));
    c.bench_function("backward of a chain of 1000", |b| {
        b.iter_batched(chain, |y| backward(&y), BatchSize::LargeInput);
    });
    let (input, first, second) = (leaf(&[32, 64]), leaf(&[64, 64]), leaf(&[64, 10]));
    c.bench_function("forward and backward of a small network", |b| {
        b.iter(|| {
            let hidden = unary::tanh(&matmul::mm(&input, &first)?)?;
            let loss = reduce::sum(&matmul::mm(&hidden, &second)?, None, false, None)?;
            backward(&loss);
            Ok::<_, gradiron::base::Error>(())
        })
    });
}

criterion_group!(benches, bench);
criterion_main!(benches);
