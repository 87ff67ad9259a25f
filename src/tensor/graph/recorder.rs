//! Recording an operator: a node with an edge per input and the values that its derivative will read.

use crate::arena::Draft;
use crate::base::{Error, Guidance, Result};
use crate::storage::reserve;
use crate::tensor::{Body, Derivative, Edge, Kept, Kind, Node, REPLACED, Saved, Tensor, mode};
use std::any::Any;

/// Whether an operator on these inputs is recorded.
pub fn any_requires_grad<'a>(inputs: impl IntoIterator<Item = &'a Tensor>) -> bool {
    mode::grad_enabled() && inputs.into_iter().any(Tensor::requires_grad)
}

/// Whether an operator on these inputs is recorded; an error for a view whose base was written since, and whose history cannot
/// follow.
pub fn records<'a>(inputs: impl IntoIterator<Item = &'a Tensor> + Clone) -> Result<bool> {
    let recorded = any_requires_grad(inputs.clone());
    if recorded {
        inputs.into_iter().try_for_each(Tensor::check_view)?;
    }
    Ok(recorded)
}

/// A node in the making.
pub struct Recorder {
    node: Draft<Node>,
    /// Which inputs are views.
    views: u64,
    /// Whether a value made in inference mode was saved.
    inference: bool,
}

impl Recorder {
    #[inline]
    pub fn new(derivative: &'static Derivative) -> Recorder {
        Recorder { node: Node::draft(Kind::Op(derivative)), views: 0, inference: false }
    }

    /// The next input's edge; nothing for scalars and for tensors that want no gradient.
    #[inline]
    pub fn input(&mut self, tensor: Option<&Tensor>) -> &mut Recorder {
        let edges = &mut self.node.edges;
        self.views |= tensor.map_or(0, |t| u64::from(t.as_view().is_some())) << (edges.len() & 63);
        edges.push(tensor.and_then(Tensor::edge));
        self
    }

    /// The next input's edge, for an operator whose gradient takes its shape from that input. A tensor that was resized without
    /// recording has a history that wants another shape: a node between them brings the gradient to it.
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

    /// What the node will run.
    #[inline]
    pub fn derivative(&self) -> Option<&'static Derivative> {
        match self.node.kind {
            Kind::Op(derivative) => Some(derivative),
            _ => None,
        }
    }

    /// Lets the node run another derivative.
    pub fn rename(&mut self, derivative: &'static Derivative) {
        self.node.kind = Kind::Op(derivative);
    }

    /// Which inputs want gradients.
    pub fn wanted(&self) -> u64 {
        self.node.edges.iter().enumerate().fold(0, |bits, (i, e)| bits | u64::from(e.is_some()) << i)
    }

    /// Whether a gradient flows to this input.
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

    /// Saves a tensor that is among the operator's arguments: an index, a mask.
    pub fn save_argument(&mut self, tensor: &Tensor, at: usize) -> &mut Recorder {
        let saved = Saved::new(&tensor.body(), Saved::ARGUMENT + at as u32).of(tensor);
        self.inference |= tensor.physical().body().storage.is_of_inference();
        self.node.saves_mut().values.push(saved);
        self
    }

    /// Refuses what must not be recorded: views whose history cannot follow a write to their base, values of inference mode (which
    /// a node knows that is recorded `outside` of all transforms), and a graph for which there is no memory.
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

    pub fn params(&mut self, params: Box<dyn Any + Send + Sync>) -> &mut Recorder {
        self.node.params = Some(params);
        self
    }

    /// Counts a number among the params as a saved value, which is given up as one.
    pub fn saves_number(&mut self) -> &mut Recorder {
        self.node.saves_mut().number = true;
        self
    }

    /// Publishes the node; `outputs` are the bodies that it made.
    #[inline]
    pub fn publish_all(mut self, outputs: &[Body]) -> crate::tensor::NodeRef {
        for body in outputs {
            self.node.outputs.push(body.meta());
        }
        Node::publish(self.node)
    }

    /// Publishes the node; `outputs` are the bodies that it made.
    #[inline]
    pub fn publish(mut self, outputs: &[&Body]) -> crate::tensor::NodeRef {
        for body in outputs {
            self.node.outputs.push(body.meta());
        }
        Node::publish(self.node)
    }
}

/// Why a tensor of inference mode cannot be saved for a derivative.
#[cold]
pub fn inference_error(node: &Node) -> Error {
    const MESSAGE: &str = "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode \
        in computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in \
        autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`.";
    Guidance::new(MESSAGE).note("operator", node.name(), None).into()
}
