//! What a Rust program sees, with PyTorch's texts as the measure of what is printed.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use super::{grad, no_grad};
use crate::base::{DType, Result};
use crate::tensor::Tensor;

fn vector(values: &[f32]) -> Tensor {
    Tensor::from_slice(values, &[values.len()]).unwrap()
}

#[test]
fn values_come_back_in_the_order_of_rows() {
    let x = Tensor::from_slice(&[1_i64, 2, 3, 4, 5, 6], &[2, 3]).unwrap();
    assert_eq!(x.t().unwrap().to_vec::<i64>().unwrap(), [1, 4, 2, 5, 3, 6]);
    assert_eq!(x.to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert!(Tensor::from_slice(&[1.0_f32], &[2]).is_err());
    assert!(Tensor::from_slice::<f64>(&[], &[0, 3]).unwrap().to_vec::<f64>().unwrap().is_empty());
}

#[test]
fn operators_take_tensors_numbers_and_results() {
    let (x, y) = (vector(&[1.0, 2.0]), vector(&[3.0, 5.0]));
    let shown = |result: Result<Tensor>| result.unwrap().to_vec::<f32>().unwrap();
    assert_eq!(shown(&x + &y), [4.0, 7.0]);
    assert_eq!(shown(&x - y.clone()), [-2.0, -3.0]);
    assert_eq!(shown(x.clone() * 2.0), [2.0, 4.0]);
    assert_eq!(shown(1.0 / &x), [1.0, 0.5]);
    assert_eq!(shown(1.0 - x.clone()), [0.0, -1.0]);
    assert_eq!(shown(&x * (&y + 1)), [4.0, 12.0]);
    assert_eq!(shown((&x * &y) + &x), [4.0, 12.0]);
    assert_eq!(shown(-&x), [-1.0, -2.0]);
    assert!((&x + &vector(&[1.0, 2.0, 3.0])).is_err());
    assert!((&x + (&x + vector(&[1.0, 2.0, 3.0]))).is_err());
}

#[test]
fn in_place_operators_write_and_are_recorded() {
    let x = vector(&[1.0, 2.0]).requires_grad_().unwrap();
    assert!(x.add_(1.0).is_err());
    no_grad(|| x.sub_(vector(&[0.5, 0.5])).map(drop)).unwrap();
    let y = (&x * 2.0).unwrap();
    y.mul_(&x).unwrap().div_(2.0).unwrap();
    y.sum().unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [1.0, 3.0]);
}

#[test]
fn gradients_of_higher_order() {
    let x = vector(&[2.0]).requires_grad_().unwrap();
    let cube = x.pow(3.0).unwrap().sum().unwrap();
    let first = grad(&cube, &[&x], true).unwrap().remove(0).unwrap();
    let second = grad(&first, &[&x], false).unwrap().remove(0).unwrap();
    assert_eq!(first.to_vec::<f32>().unwrap(), [12.0]);
    assert_eq!(second.to_vec::<f32>().unwrap(), [12.0]);
    assert!(x.grad().is_none() && cube.backward().is_ok());
    assert!(vector(&[1.0]).backward().is_err());
    assert!((&x * &vector(&[1.0, 2.0])).unwrap().backward().is_err());
    (&x * &vector(&[1.0, 2.0])).unwrap().backward_with(&vector(&[1.0, 1.0])).unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [15.0]);
}

#[test]
fn tensors_print_as_in_pytorch() {
    let matrix = Tensor::from_slice(&[1.0_f32, 2.0, 3.0, 4.0], &[2, 2]).unwrap();
    assert_eq!(matrix.to_string(), "tensor([[1., 2.],\n        [3., 4.]])");
    assert_eq!(vector(&[0.5, -12.25]).to_string(), "tensor([  0.5000, -12.2500])");
    assert_eq!(vector(&[1e-5, 1.0]).to_string(), "tensor([1.0000e-05, 1.0000e+00])");
    assert_eq!(vector(&[f32::NAN, f32::INFINITY, 1.0]).to_string(), "tensor([nan, inf, 1.])");
    assert_eq!(Tensor::from_slice(&[7_i32], &[]).unwrap().to_string(), "tensor(7, dtype=torch.int32)");
    assert_eq!(Tensor::zeros(&[0]).unwrap().to_string(), "tensor([])");
    assert_eq!(Tensor::zeros(&[0, 2]).unwrap().to_string(), "tensor([], size=(0, 2))");
    let truth = Tensor::ones(&[1]).unwrap().to_dtype(DType::Bool).unwrap();
    assert_eq!(truth.to_string(), "tensor([True])");
    let long = Tensor::zeros(&[1001]).unwrap().requires_grad_().unwrap();
    assert_eq!(long.to_string(), "tensor([0., 0., 0.,  ..., 0., 0., 0.], requires_grad=True)");
    let complex = vector(&[1.0, 2.5]).to_dtype(DType::C64).unwrap();
    assert_eq!(complex.to_string(), "tensor([1.0000+0.j, 2.5000+0.j])");
    assert_eq!(
        format!("{matrix:?}"),
        "Tensor { shape: [2, 2], dtype: F32, device: Cpu, requires_grad: false }"
    );
}
