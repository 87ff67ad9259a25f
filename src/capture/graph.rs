//! The graph of results through which gradients flow out of a captured call: each replay makes its nodes again, with values of
//! its own that they save, so that a backward outside of the call is the engine's as ever.

use crate::base::{ConjNeg, Error, Result};
use crate::capture::backward::Backwards;
use crate::capture::origins::Origins;
use crate::capture::storages::{Aliases, BodyRecipe, Found, Storages};
use crate::tensor::changes::is_older;
use crate::tensor::{
    CopySlices, Derivative, Edge, Kind, Meta, Node, NodeRef, Params, Part, ReplayedNodes, Saved, Tensor,
};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// Where an edge of a node leads.
enum Link {
    Node {
        at: usize,
        output: u32,
    },
    /// To where the gradient of the known tensor at this place flows.
    Known(usize),
}

enum NodeKind {
    Op(&'static Derivative),
    CopySlices { place: Box<Part>, conj_neg: ConjNeg, writer: usize },
}

/// The tensor that was saved.
enum SavedTensor {
    Known(usize),
    /// The tensor of this recipe.
    Made(usize),
}

struct SavedRecipe {
    body: BodyRecipe,
    /// The number of writes to the storage after the value was saved.
    unseen: u32,
    source: u32,
    view: bool,
    tensor: Option<SavedTensor>,
}

/// How a replay makes a node.
struct NodeRecipe {
    kind: NodeKind,
    edges: SmallVec<[Option<Link>; 3]>,
    outputs: SmallVec<[Meta; 1]>,
    params: Option<Params>,
    saved: Vec<SavedRecipe>,
    freed: bool,
    lost: bool,
    number: bool,
}

/// The edges of known tensors.
pub(super) struct Boundary {
    /// By node and output; `None` where several tensors have this edge.
    numbers: HashMap<(usize, u32), Option<usize>>,
}

fn key(node: &NodeRef) -> usize {
    node.as_ptr() as usize
}

impl Boundary {
    pub fn new(known: &[Tensor]) -> Boundary {
        let mut numbers = HashMap::new();
        for (number, tensor) in known.iter().enumerate() {
            if let Some(edge) = tensor.edge() {
                let entry = numbers.entry((key(&edge.node), edge.output));
                entry.and_modify(|found: &mut Option<usize>| {
                    *found = found.filter(|&at| known[at].same(tensor))
                });
                numbers.entry((key(&edge.node), edge.output)).or_insert(Some(number));
            }
        }
        Boundary { numbers }
    }

    pub fn has(&self, edge: &Edge) -> bool {
        self.numbers.contains_key(&(key(&edge.node), edge.output))
    }

    fn number(&self, edge: &Edge) -> Result<Option<usize>> {
        match self.numbers.get(&(key(&edge.node), edge.output)) {
            Some(None) => Err(Error::runtime(
                "two tensors that are older than the call have the same place in the graph",
            )),
            Some(number) => Ok(*number),
            None => Ok(None),
        }
    }
}

#[derive(Default)]
pub(super) struct Graph {
    nodes: Vec<NodeRecipe>,
    /// The nodes so that each comes after those to which it leads.
    order: Vec<usize>,
    /// The known tensors to which edges lead.
    pub known: Vec<usize>,
    /// The nodes of the captured call, until [`finish`](Graph::finish).
    captured: Vec<NodeRef>,
    at: HashMap<usize, usize>,
    /// The captured backwards through all nodes.
    pub backwards: Arc<Backwards>,
}

impl Graph {
    pub fn is_empty(&self) -> bool {
        self.captured.is_empty()
    }

    /// Adds the node of an edge with all nodes behind it, as far as the boundary, and returns its number.
    pub fn add(&mut self, edge: &Edge, boundary: &Boundary) -> Result<usize> {
        let first = self.number(&edge.node);
        let mut at = self.nodes.len();
        while at < self.captured.len() {
            let node = self.captured[at].clone();
            let recipe = self.recipe(&node, boundary)?;
            self.nodes.push(recipe);
            at += 1;
        }
        Ok(first)
    }

    fn number(&mut self, node: &NodeRef) -> usize {
        let next = self.captured.len();
        let number = *self.at.entry(key(node)).or_insert(next);
        if number == next {
            self.captured.push(node.clone());
        }
        number
    }

    fn recipe(&mut self, node: &NodeRef, boundary: &Boundary) -> Result<NodeRecipe> {
        let refused = |why: &str| Err(Error::runtime(format!("a result requires gradients, and {why}")));
        if node.is_leaf() {
            return refused("its graph leads to a leaf that the call neither was given nor read");
        }
        if is_older(node.sequence) {
            return refused(
                "its graph leads to one that is older than the call and of no tensor that the call was given",
            );
        }
        if node.has_hooks() {
            return refused("its graph has hooks, or retains a .grad");
        }
        let kind = match &node.kind {
            Kind::Op(derivative) => {
                let holds_edges = derivative.facts.is_some_and(|facts| {
                    node.params.as_ref().is_some_and(|params| (facts.holds_edges)(&**params))
                });
                if holds_edges {
                    return refused(&format!("{} keeps edges of operands without gradients", node.name()));
                }
                NodeKind::Op(derivative)
            }
            Kind::CopySlices(slices) => NodeKind::CopySlices {
                place: Box::new(slices.place.clone()),
                conj_neg: slices.conj_neg,
                writer: self.number(&slices.writer),
            },
            _ => {
                return refused(&format!(
                    "its graph has a node of {}, which a replay cannot make",
                    node.name()
                ));
            }
        };
        let mut edges = SmallVec::with_capacity(node.edges.len());
        for edge in &node.edges {
            edges.push(match edge {
                Some(edge) => Some(match boundary.number(edge)? {
                    Some(number) => {
                        let place = self.known.iter().position(|&known| known == number);
                        Link::Known(place.unwrap_or_else(|| {
                            self.known.push(number);
                            self.known.len() - 1
                        }))
                    }
                    None => Link::Node { at: self.number(&edge.node), output: edge.output },
                }),
                None => None,
            });
        }
        let saves = node.saves();
        let (freed, lost, number) = (saves.freed, saves.lost, saves.number);
        drop(saves);
        let (outputs, params) = (node.outputs.clone(), node.params.clone());
        Ok(NodeRecipe { kind, edges, outputs, params, saved: Vec::new(), freed, lost, number })
    }

    /// Adds the saved values of all nodes. `recipe` gives the number of a tensor that each replay makes.
    pub fn finish(
        &mut self,
        storages: &mut Storages,
        origins: &mut Origins,
        recipe: impl Fn(&Tensor) -> Option<usize>,
    ) -> Result<()> {
        for (node, captured) in self.nodes.iter_mut().zip(&self.captured) {
            for saved in &captured.saves().values {
                let Some(body) = saved.body() else {
                    return Err(Error::runtime("a saved tensor was packed by a hook"));
                };
                let known = saved.tensor().and_then(|tensor| origins.number(&tensor));
                if known.is_none() && saved.is_remembered() {
                    return Err(Error::runtime(
                        "a tensor that the graph of a result saved was changed afterwards",
                    ));
                }
                let made = || saved.tensor().and_then(|tensor| recipe(&tensor)).map(SavedTensor::Made);
                let tensor = known.map(SavedTensor::Known).or_else(made);
                if let Some(SavedTensor::Known(number)) = tensor {
                    origins.need(number);
                }
                let unseen = body.storage.version().wrapping_sub(saved.version);
                let body = storages.add(body, origins)?;
                node.saved.push(SavedRecipe { body, unseen, source: saved.source, view: saved.view, tensor });
            }
        }
        for &number in &self.known {
            origins.need(number);
            if !origins.known[number].fits_edge() {
                return Err(Error::runtime(
                    "a tensor that is older than the call got another shape than its graph knows",
                ));
            }
        }
        self.order = (0..self.nodes.len()).collect();
        self.order.sort_by_key(|&at| self.captured[at].sequence);
        self.captured.clear();
        self.at.clear();
        Ok(())
    }

    /// True if a node saved a value in this storage.
    pub fn saves(&self, holder: usize) -> bool {
        self.nodes.iter().any(|node| node.saved.iter().any(|saved| saved.body.holder == holder))
    }

    /// Makes all nodes.
    pub fn make(&self, storages: &Storages, found: &Found, aliases: &mut Aliases) -> Result<Nodes> {
        let mut made = Nodes(vec![None; self.nodes.len()]);
        if self.nodes.is_empty() {
            return Ok(made);
        }
        // The nodes of leaves are made before those of the replay.
        let mut ends: SmallVec<[Option<Edge>; 8]> = SmallVec::with_capacity(self.known.len());
        for &number in &self.known {
            ends.push((found.known)(number).edge_of_many()?);
        }
        let replayed = ReplayedNodes::new(self.nodes.len(), self.backwards.clone());
        for &at in &self.order {
            let recipe = &self.nodes[at];
            let kind = match &recipe.kind {
                NodeKind::Op(derivative) => Kind::Op(derivative),
                NodeKind::CopySlices { place, conj_neg, writer } => Kind::CopySlices(Box::new(CopySlices {
                    place: Part::clone(place),
                    conj_neg: *conj_neg,
                    writer: made.get(*writer)?,
                })),
            };
            let mut node = Node::draft(kind);
            for link in &recipe.edges {
                node.edges.push(match link {
                    None => None,
                    Some(Link::Node { at, output }) => Some(Edge { node: made.get(*at)?, output: *output }),
                    Some(Link::Known(place)) => ends[*place].clone(),
                });
            }
            node.outputs.clone_from(&recipe.outputs);
            node.params.clone_from(&recipe.params);
            let saves = node.saves_mut();
            (saves.freed, saves.lost, saves.number) = (recipe.freed, recipe.lost, recipe.number);
            for saved in &recipe.saved {
                let body = storages.make(&saved.body, found, aliases)?;
                let mut again = Saved::again(body, saved.unseen, saved.source, saved.view);
                if let Some(SavedTensor::Known(number)) = saved.tensor {
                    again.set_tensor((found.known)(number));
                }
                saves.values.push(again);
            }
            node.replayed = Some((replayed.clone(), at as u32));
            let node = Node::publish(node);
            replayed.note(&node);
            made.0[at] = Some(node);
        }
        Ok(made)
    }

    /// Tells nodes which tensors they saved, now that these are made.
    pub fn set_tensors(&self, nodes: &Nodes, made: &[Option<Tensor>]) {
        for (recipe, node) in self.nodes.iter().zip(&nodes.0) {
            for (at, saved) in recipe.saved.iter().enumerate() {
                if let (Some(SavedTensor::Made(tensor)), Some(node)) = (&saved.tensor, node)
                    && let Some(tensor) = &made[*tensor]
                    && let Some(saved) = node.saves().values.get_mut(at)
                {
                    saved.set_tensor(tensor);
                }
            }
        }
    }
}

/// The nodes that a replay has made.
pub(super) struct Nodes(Vec<Option<NodeRef>>);

impl Nodes {
    pub fn get(&self, at: usize) -> Result<NodeRef> {
        self.0[at].clone().ok_or_else(|| Error::runtime("a node is made before one to which it leads"))
    }
}
