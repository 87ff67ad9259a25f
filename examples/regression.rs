//! Fits a line to noisy points by gradient descent: `cargo run --release --example regression`.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use gradiron::prelude::*;

fn main() -> Result<()> {
    manual_seed(0);
    let x = Tensor::randn(&[200, 1])?;
    let noise = (Tensor::randn(&[200, 1])? * 0.1)?;
    let y = (((&x * 3.0)? + 0.5)? + noise)?;
    let weight = Tensor::zeros(&[1, 1])?.requires_grad_()?;
    let bias = Tensor::zeros(&[1])?.requires_grad_()?;
    for step in 0..=100 {
        let loss = (x.matmul(&weight)? + &bias)?.mse_loss(&y)?;
        loss.backward()?;
        if step % 20 == 0 {
            println!("step {step:3}  loss {:.4}", loss.item()?.as_f64());
        }
        no_grad(|| -> Result<()> {
            for parameter in [&weight, &bias] {
                if let Some(gradient) = parameter.grad() {
                    parameter.sub_(gradient * 0.1)?;
                    parameter.set_grad(None);
                }
            }
            Ok(())
        })?;
    }
    println!("weight {weight}\nbias {bias}");
    Ok(())
}
