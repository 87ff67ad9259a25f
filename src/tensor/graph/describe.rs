//! Describes nodes and tensors in error messages: what they are, and the line of the user's program that made
//! them.

use crate::base::{Error, Fault, Guidance, LINES_HINT, SourceLine};
use crate::tensor::graph::anomaly::{self, ParentGuard};
use crate::tensor::graph::saved::Saved;
use crate::tensor::node::Node;
use crate::tensor::{Edge, Tensor};

impl Guidance {
    /// Adds a note that names a node and the line that made it.
    #[must_use]
    pub fn node(self, label: &'static str, node: &Node) -> Guidance {
        let (text, line) = node.describe();
        self.note(label, text, line)
    }

    /// Finishes an error about nodes. If lines are not recorded, it adds a hint how to record them.
    #[must_use]
    pub fn done(self) -> Error {
        if anomaly::keeps_lines() { self } else { self.note("where", LINES_HINT, None) }.into()
    }
}

impl Node {
    /// A description of the node, and the line that made it.
    pub fn describe(&self) -> (String, Option<SourceLine>) {
        let line = self.trace.as_ref().and_then(|trace| trace.line.clone());
        let (what, how) = match self.outputs.first() {
            Some(meta) if self.is_leaf() => {
                (format!("a leaf of shape {:?}", meta.shape.as_slice()), ", first seen")
            }
            _ => (self.name(), ", made"),
        };
        (if line.is_some() { what + how } else { what }, line)
    }

    /// In anomaly mode, nodes made until the result is dropped have this node as their parent.
    #[inline]
    pub fn set_parent(&self) -> Option<ParentGuard> {
        anomaly::enabled().then(|| anomaly::set_parent(&self.name(), self.trace.clone()))
    }

    /// In anomaly mode, reports the forward call that made this node, whose backward failed.
    pub fn report_failure(&self) {
        anomaly::report(&self.full_name(), self.trace.clone());
    }
}

/// Adds the node to an error that its backward raised.
#[cold]
pub fn add_failed_node(error: Error, node: &Node) -> Error {
    match error.into_fault() {
        Fault::Runtime(message) => Guidance::new(message).node("operator", node).done(),
        Fault::Foreign(inner) => {
            if anomaly::keeps_lines()
                && let (text, Some(line)) = node.describe()
            {
                anomaly::annotate(&*inner, &format!("in the backward of {text}"), &line);
            }
            Fault::Foreign(inner).into()
        }
        other => other.into(),
    }
}

impl Saved {
    /// A description of this value's role in the node that saved it.
    pub(in crate::tensor) fn describe(&self, node: &Node) -> String {
        match self.source {
            source if source >= Saved::OUTPUT => format!("output {} of the operator", source - Saved::OUTPUT),
            Saved::DETACHED => "a value that the operator computed".into(),
            source if source >= Saved::ARGUMENT => format!("an argument of {}", node.name()),
            source => format!("input {source} of {}", node.name()),
        }
    }
}

impl Tensor {
    /// A description of the tensor, and the line that made it.
    pub fn describe(&self) -> (String, Option<SourceLine>) {
        // Uses the leaf's node only if it exists: describing a tensor must not make one.
        let leaf = || self.0.extra.get()?.leaf.get().cloned().map(|node| Edge { node, output: 0 });
        match self.history().or_else(leaf) {
            Some(Edge { node, .. }) if !node.is_leaf() => {
                let (text, line) = node.describe();
                (format!("the result of {text}"), line)
            }
            Some(Edge { node, .. }) => node.describe(),
            None => (format!("a tensor of shape {:?}", self.shape().as_slice()), None),
        }
    }
}
