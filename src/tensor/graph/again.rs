//! What a replay needs to make a node again that a captured call made, and to run it together with others.

use crate::tensor::{Body, GradType, Kept, Kind, Node, NodeRef, REPLACED, Saved, Tensor};

impl Saved {
    /// A value that was saved before the last `unseen` writes to its storage.
    pub fn again(body: Body, unseen: u32, source: u32, view: bool) -> Saved {
        let version = body.storage.version().wrapping_sub(unseen);
        Saved { kept: Kept::Body(body), version, source, tensor: None, view }
    }

    /// The tensor that was saved, while it lives.
    pub fn tensor(&self) -> Option<Tensor> {
        self.tensor.as_ref()?.upgrade()
    }

    /// True if a derivative of `node` would get this value as it was saved.
    #[inline]
    pub fn is_as_saved(&self, node: &NodeRef) -> bool {
        self.body().is_some_and(|body| {
            body.storage.version() == self.version
                && (!body.storage.has_shared_state() || self.is_current(node, body))
        })
    }

    /// True if the tensor that was saved still has this body.
    #[cold]
    fn is_current(&self, node: &NodeRef, body: &Body) -> bool {
        let mut now = self.share();
        let is_same = |now: &Body| {
            let same_kind = now.dtype == body.dtype && now.conj_neg == body.conj_neg;
            now.storage.is(&body.storage) && now.layout == body.layout && same_kind
        };
        now.update(node).is_ok() && now.body().is_some_and(is_same)
    }

    /// True if the storage remembers something of the saved tensor that is not in the value.
    pub fn is_remembered(&self) -> bool {
        let (Some(body), Some(tensor)) = (self.body(), &self.tensor) else { return false };
        body.storage.member(tensor.address()).is_some()
    }
}

impl Tensor {
    /// False if this tensor was given another shape since its edge was made, so that gradients must be reshaped on their way.
    pub fn fits_edge(&self) -> bool {
        if self.flags() & REPLACED == 0 {
            return true;
        }
        let body = self.body();
        self.edge().is_none_or(|edge| {
            edge.node.outputs.get(edge.output as usize).is_some_and(|meta| meta.shape == body.layout.shape)
        })
    }
}

impl Node {
    /// True if this is an operator's node that nobody watches, and its derivative would get all values as they were saved.
    pub fn is_as_made(node: &NodeRef) -> bool {
        if !matches!(node.kind, Kind::Op(_)) || node.has_hooks() {
            return false;
        }
        let saves = node.saves();
        !saves.freed && saves.values.iter().all(|saved| saved.is_as_saved(node))
    }

    /// True if code of the user's can tell when a gradient arrives here, or says what it must be.
    pub fn is_particular(&self) -> bool {
        match &self.kind {
            Kind::Leaf(leaf) => self.hook_numbers().is_some() || leaf.grad_type() != GradType::Own,
            _ => false,
        }
    }
}
