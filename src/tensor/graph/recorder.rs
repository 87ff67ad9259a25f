//! Records an operator: makes a node with one edge for each input and the values that the derivative needs.

use crate::arena::Draft;
use crate::base::{Error, Guidance, Result};
use crate::storage::reserve;
use crate::tensor::{Body, Derivative, Edge, Kept, Kind, Node, Params, REPLACED, Saved, Tensor, mode};

/// True if an operator on these inputs must be recorded.
pub fn any_requires_grad<'a>(inputs: impl IntoIterator<Item = &'a Tensor>) -> bool {
    mode::grad_enabled() && inputs.into_iter().any(Tensor::requires_grad)
}

/// True if an operator on these inputs must be recorded. Returns an error if an input is a view that cannot
/// follow a write to its base in the graph.
pub fn records<'a>(inputs: impl IntoIterator<Item = &'a Tensor> + Clone) -> Result<bool> {
    let recorded = any_requires_grad(inputs.clone());
    if recorded {
        inputs.into_iter().try_for_each(Tensor::check_view)?;
    }
    Ok(recorded)
}

/// A node that is being built.
pub struct Recorder {
    node: Draft<Node>,
    /// One bit for each input: set if it is a view.
    views: u64,
    /// True if a value made in inference mode was saved.
    inference: bool,
}

impl Recorder {
    #[inline]
    pub fn new(derivative: &'static Derivative) -> Recorder {
        Recorder { node: Node::draft(Kind::Op(derivative)), views: 0, inference: false }
    }

    /// Adds the edge of the next input: `None` for scalars and for tensors that require no gradient.
    #[inline]
    pub fn input(&mut self, tensor: Option<&Tensor>) -> &mut Recorder {
        let edges = &mut self.node.edges;
        self.views |= tensor.map_or(0, |t| u64::from(t.as_view().is_some())) << (edges.len() & 63);
        edges.push(tensor.and_then(Tensor::edge));
        self
    }

    /// Like `input`, for an operator whose gradient takes its shape from that input. If the tensor was
    /// resized without recording, its edge expects another shape: an extra node reshapes the gradient.
    #[inline]
    pub fn input_as_shown(&mut self, tensor: &Tensor) {
        self.input(Some(tensor));
        if tensor.flags() & REPLACED != 0 {
            self.bridge(tensor);
        }
    }

    #[cold]
    fn bridge(&mut self, tensor: &Tensor) {
        static RELAID: Derivative = Derivative {
            facts: None,
            flops: None,
            name: "RelaidBackward",
            apply: |step| Ok(step.grads.iter().cloned().collect()),
        };
        let (Some(Some(edge)), false) = (self.node.edges.last_mut(), tensor.is_batched()) else { return };
        let (made, body) = (&edge.node.outputs[edge.output as usize], tensor.body());
        if made.shape == body.layout.shape {
            return;
        }
        let mut node = Node::draft(Kind::Op(&RELAID));
        node.edges.push(Some(edge.clone()));
        node.outputs.push(body.meta());
        *edge = Edge { node: Node::publish(node), output: 0 };
    }

    #[inline]
    pub fn derivative(&self) -> Option<&'static Derivative> {
        match self.node.kind {
            Kind::Op(derivative) => Some(derivative),
            _ => None,
        }
    }

    /// Replaces the derivative of the node.
    pub fn rename(&mut self, derivative: &'static Derivative) {
        self.node.kind = Kind::Op(derivative);
    }

    /// One bit for each input: set if it requires a gradient.
    pub fn wanted(&self) -> u64 {
        self.node.edges.iter().enumerate().fold(0, |bits, (i, e)| bits | u64::from(e.is_some()) << i)
    }

    /// True if a gradient flows to this input.
    #[inline]
    pub fn has_edge(&self, index: usize) -> bool {
        self.node.edges.get(index).is_some_and(Option::is_some)
    }

    #[inline]
    pub fn save_input(&mut self, tensor: &Tensor, body: &Body, index: usize) -> &mut Recorder {
        let view = self.views >> (index & 63) & 1 == 1;
        let version = body.storage.version();
        let kept = Kept::Body(body.clone());
        let saved = Saved { kept, version, source: index as u32, tensor: Some(tensor.downgrade()), view };
        if view && self.node.edges.get(index).is_none_or(Option::is_none) {
            tensor.note_unrecorded_view();
        }
        self.inference |= body.storage.is_of_inference();
        self.node.saves_mut().values.push(saved);
        self
    }

    #[inline]
    pub fn save_output(&mut self, body: &Body, index: usize) -> &mut Recorder {
        self.node.saves_mut().values.push(Saved::output(body, index));
        self
    }

    /// Saves a tensor that has no edge: an index, a mask.
    pub fn save_argument(&mut self, tensor: &Tensor, at: usize) -> &mut Recorder {
        let saved = Saved::new(&tensor.body(), Saved::ARGUMENT + at as u32).of(tensor);
        self.inference |= tensor.physical().body().storage.is_of_inference();
        self.node.saves_mut().values.push(saved);
        self
    }

    /// Returns an error for what must not be recorded: a view that cannot follow a write to its base in the
    /// graph; a value made in inference mode (if `outside` says that the node is recorded outside of all
    /// transforms); a graph for which there is no memory.
    #[inline]
    pub fn check<'a>(
        &self,
        inputs: impl Iterator<Item = &'a Tensor>,
        outside: impl FnOnce(&Node) -> bool,
    ) -> Result<()> {
        reserve::check()?;
        if self.views != 0 {
            inputs.into_iter().try_for_each(Tensor::check_view)?;
        }
        if self.inference && outside(&self.node) { Err(inference_error(&self.node)) } else { Ok(()) }
    }

    pub fn params(&mut self, params: Params) -> &mut Recorder {
        self.node.params = Some(params);
        self
    }

    /// Makes a number among the params count as a saved value: it is freed together with the saved values.
    pub fn saves_number(&mut self) -> &mut Recorder {
        self.node.saves_mut().number = true;
        self
    }

    /// Publishes the node; `outputs` are the bodies of the results.
    #[inline]
    pub fn publish_all(mut self, outputs: &[Body]) -> crate::tensor::NodeRef {
        for body in outputs {
            self.node.outputs.push(body.meta());
        }
        Node::publish(self.node)
    }

    /// Like [`Recorder::publish_all`], for borrowed bodies.
    #[inline]
    pub fn publish(mut self, outputs: &[&Body]) -> crate::tensor::NodeRef {
        for body in outputs {
            self.node.outputs.push(body.meta());
        }
        Node::publish(self.node)
    }
}

/// The error for a tensor of inference mode that would be saved for a derivative.
#[cold]
pub fn inference_error(node: &Node) -> Error {
    const MESSAGE: &str = "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode \
        in computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in \
        autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.";
    Guidance::new(MESSAGE).note("operator", node.name(), None).into()
}
