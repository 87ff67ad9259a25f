//! Trains a small network to tell the two arms of a spiral apart: `cargo run --release --example mlp`.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use gradiron::prelude::*;

struct Linear {
    weight: Tensor,
    bias: Tensor,
}

impl Linear {
    fn new(inputs: usize, outputs: usize) -> Result<Linear> {
        let weight = (Tensor::randn(&[inputs, outputs])? * (2.0 / inputs as f64).sqrt())?;
        let bias = Tensor::zeros(&[outputs])?;
        Ok(Linear { weight: weight.requires_grad_()?, bias: bias.requires_grad_()? })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        x.matmul(&self.weight)? + &self.bias
    }
}

/// Stochastic gradient descent with momentum.
struct Sgd {
    parameters: Vec<Tensor>,
    momenta: Vec<Tensor>,
}

impl Sgd {
    fn new(layers: &[Linear]) -> Result<Sgd> {
        let parameters: Vec<Tensor> =
            layers.iter().flat_map(|layer| [layer.weight.clone(), layer.bias.clone()]).collect();
        let momenta = parameters.iter().map(|p| Tensor::zeros(&p.shape())).collect::<Result<_>>()?;
        Ok(Sgd { parameters, momenta })
    }

    fn step(&self, rate: f64) -> Result<()> {
        no_grad(|| {
            for (parameter, momentum) in self.parameters.iter().zip(&self.momenta) {
                let Some(gradient) = parameter.grad() else { continue };
                momentum.mul_(0.9)?.add_(&gradient)?;
                parameter.sub_(momentum * rate)?;
                parameter.set_grad(None);
            }
            Ok(())
        })
    }
}

/// Points on two arms of a spiral, and the number of the arm of each.
fn spiral(count: usize) -> Result<(Tensor, Tensor)> {
    let (mut points, mut classes) = (Vec::new(), Vec::new());
    for i in 0..count {
        let (arm, along) = (i % 2, i as f32 / count as f32);
        let angle = along * 9.0 + arm as f32 * std::f32::consts::PI;
        points.extend([along * angle.cos(), along * angle.sin()]);
        classes.push(arm as i64);
    }
    Ok((Tensor::from_slice(&points, &[count, 2])?, Tensor::from_slice(&classes, &[count])?))
}

fn main() -> Result<()> {
    manual_seed(0);
    let (points, classes) = spiral(400)?;
    let layers = [Linear::new(2, 64)?, Linear::new(64, 64)?, Linear::new(64, 2)?];
    let optimizer = Sgd::new(&layers)?;
    for step in 0..=500 {
        let [first, second, last] = &layers;
        let hidden = second.forward(&first.forward(&points)?.relu()?)?.relu()?;
        let scores = last.forward(&hidden)?;
        let loss = scores.cross_entropy(&classes)?;
        loss.backward()?;
        optimizer.step(0.05)?;
        if step % 100 == 0 {
            let found: Vec<i64> = scores.argmax(1)?.to_vec()?;
            let right = found.iter().zip(classes.to_vec::<i64>()?).filter(|(a, b)| **a == *b).count();
            println!("step {step:3}  loss {:.4}  right {right} of 400", loss.item()?.as_f64());
        }
    }
    Ok(())
}
