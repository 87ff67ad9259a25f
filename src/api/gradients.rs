//! Gradients of tensors.

use crate::backward::{Request, run};
use crate::base::{Error, Guidance, Result};
use crate::operator::primitives::{constant, detached};
use crate::tensor::{Edge, Tensor, mode};

/// Runs `body` without recording a graph, as an optimizer's step needs it.
pub fn no_grad<R>(body: impl FnOnce() -> R) -> R {
    mode::with_grad(false, body)
}

/// The gradients of `output`, a single number, with respect to `inputs`; `None` for what it does not depend on. With
/// `create_graph` they are recorded, for derivatives of higher order.
pub fn grad(output: &Tensor, inputs: &[&Tensor], create_graph: bool) -> Result<Vec<Option<Tensor>>> {
    let edges = inputs.iter().map(|input| edge_of(input)).collect::<Result<Vec<_>>>()?;
    let root = (edge_of(output)?, first_gradient(output)?);
    run(Request {
        roots: &[root],
        retain_graph: create_graph,
        create_graph,
        inputs: Some(&edges),
        accumulate: false,
        poll: &mut || Ok(()),
    })
}

impl Tensor {
    /// Makes this leaf require gradients: operators on it are recorded, and `backward` fills its [`grad`](Tensor::grad).
    pub fn requires_grad_(self) -> Result<Tensor> {
        self.set_requires_grad(true)?;
        Ok(self)
    }

    /// Adds the gradients of this tensor, a single number, to the `grad` of the leaves that it was computed from.
    pub fn backward(&self) -> Result<()> {
        self.backward_with(&first_gradient(self)?)
    }

    /// Like [`backward`](Tensor::backward), for a tensor of any shape with this gradient.
    pub fn backward_with(&self, gradient: &Tensor) -> Result<()> {
        if gradient.shape() != self.shape() {
            let message = format!(
                "Mismatch in shape: grad_output[0] has a shape of torch.Size({:?}) and output[0] has a shape of torch.Size({:?}).",
                gradient.shape().as_slice(),
                self.shape().as_slice()
            );
            return Err(Error::runtime(message));
        }
        let root = (edge_of(self)?, gradient.clone());
        run(Request {
            roots: &[root],
            retain_graph: false,
            create_graph: false,
            inputs: None,
            accumulate: true,
            poll: &mut || Ok(()),
        })
        .map(drop)
    }

    /// The same values and memory, without the graph.
    pub fn detach(&self) -> Tensor {
        detached::shallow(self)
    }
}

fn edge_of(t: &Tensor) -> Result<Edge> {
    t.check_view()?;
    t.edge_of_many()?.ok_or_else(|| {
        let (text, line) = t.describe();
        let message = "element 0 of tensors does not require grad and does not have a grad_fn";
        Guidance::new(message).note("output", text, line).done()
    })
}

/// The gradient of a single number with respect to itself.
fn first_gradient(output: &Tensor) -> Result<Tensor> {
    if output.numel() != 1 {
        return Err(Error::runtime("grad can be implicitly created only for scalar outputs"));
    }
    constant::ones(&output.shape(), output.dtype(), output.device())
}
