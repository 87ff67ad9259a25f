use gradiron::prelude::*;

fn main() -> Result<()> {
    let x = Tensor::from_slice(&[1.0_f32, 2.0, 3.0], &[3])?.requires_grad_()?;
    let y = ((x.square()? * 2.0)? + 1.0)?.sum()?;
    y.backward()?;
    assert_eq!(y.to_string(), "tensor(31., grad_fn=<SumBackward0>)");
    assert_eq!(x.grad().map(|g| g.to_string()).as_deref(), Some("tensor([ 4.,  8., 12.])"));
    Ok(())
}
