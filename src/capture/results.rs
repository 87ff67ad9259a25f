//! The tensors that a captured call makes and that outlive it, so that each replay can make such tensors again: results,
//! new `.grad`s, and the bases of views.

use crate::base::{Error, Result};
use crate::capture::backward::Backwards;
use crate::capture::graph::{Boundary, Graph, Nodes};
use crate::capture::kind::Form;
use crate::capture::origins::Origins;
use crate::capture::storages::{Aliases, BodyRecipe, Found, Storages};
use crate::tensor::{Derivative, Edge, Kind, Meta, Node, NodeRef, Tensor, ViewRecipe};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// How a replay makes a tensor.
enum Recipe {
    Known(usize),
    /// The `.grad` that the call found at the known tensor of this number.
    Grad(usize),
    New(Box<New>),
}

struct New {
    body: BodyRecipe,
    requires_grad: bool,
    history: Option<History>,
    view: Option<(usize, ViewRecipe)>,
}

/// The node that made a result.
enum History {
    Spent(Spent),
    /// A node of the graph, through which gradients can flow out of the call.
    Live {
        node: usize,
        output: u32,
    },
}

/// The node of a result whose graph was freed by a backward inside of the call.
struct Spent {
    derivative: &'static Derivative,
    outputs: SmallVec<[Meta; 1]>,
    output: u32,
}

impl Spent {
    /// Returns `None` if a backward could still reach a leaf or a tensor that is older than the call.
    fn of(edge: &Edge, boundary: &Boundary) -> Option<Result<Spent>> {
        let (mut seen, mut waiting) = (HashSet::new(), vec![&edge.node]);
        while let Some(node) = waiting.pop() {
            if node.is_leaf() {
                return None;
            }
            if seen.insert(node.as_ptr() as usize) && !is_freed(node) {
                if node.edges.iter().flatten().any(|edge| boundary.has(edge)) {
                    return None;
                }
                waiting.extend(node.held());
            }
        }
        Some(match edge.node.kind {
            Kind::Op(derivative) => {
                Ok(Spent { derivative, outputs: edge.node.outputs.clone(), output: edge.output })
            }
            _ => Err(Error::runtime(format!(
                "a result was made by {}, whose node a replay cannot make",
                edge.node.name()
            ))),
        })
    }

    fn edge(&self) -> Edge {
        let mut node = Node::draft(Kind::Op(self.derivative));
        node.outputs.clone_from(&self.outputs);
        let saves = node.saves_mut();
        (saves.freed, saves.lost) = (true, true);
        Edge { node: Node::publish_unseen(node), output: self.output }
    }
}

/// True if a backward that reaches this node raises an error, because its saved values were freed.
fn is_freed(node: &NodeRef) -> bool {
    let is_lost = |node: &NodeRef| {
        let saves = node.saves();
        saves.freed && saves.lost
    };
    is_lost(node) || matches!(&node.kind, Kind::CopySlices(slices) if is_lost(&slices.writer))
}

/// The tensors that each replay makes, in an order in which each needs only earlier ones.
#[derive(Default)]
pub(super) struct Recipes {
    recipes: Vec<Recipe>,
    recipe_of: HashMap<usize, usize>,
    pub storages: Storages,
    graph: Graph,
    boundary: Option<Boundary>,
    /// The tensors whose graph was freed, with their edges, until [`finish`](Recipes::finish).
    spent: Vec<(usize, Edge)>,
}

impl Recipes {
    /// True if a replay makes this tensor.
    pub fn has(&self, tensor: &Tensor) -> bool {
        self.recipe_of.contains_key(&tensor.id())
    }

    /// Adds a tensor, and returns its number.
    pub fn add(&mut self, tensor: &Tensor, origins: &mut Origins) -> Result<usize> {
        if let Some(&found) = self.recipe_of.get(&tensor.id()) {
            return Ok(found);
        }
        let recipe = self.recipe(tensor, origins)?;
        self.recipes.push(recipe);
        self.recipe_of.insert(tensor.id(), self.recipes.len() - 1);
        Ok(self.recipes.len() - 1)
    }

    fn recipe(&mut self, tensor: &Tensor, origins: &mut Origins) -> Result<Recipe> {
        if let Some(number) = origins.number(tensor) {
            origins.need(number);
            return Ok(Recipe::Known(number));
        }
        if tensor.is_batched() || tensor.is_dual() {
            return Err(Error::runtime("a tensor of a transform outlives the call"));
        }
        if tensor.retains_grad() || tensor.grad().is_some() || tensor.hook_numbers().is_some() {
            return Err(Error::runtime("a result has a .grad, retains it, or has hooks"));
        }
        if let Some(number) = origins.number_of_grad(tensor) {
            origins.memory(tensor.body().storage.id());
            return Ok(Recipe::Grad(number));
        }
        let view = match tensor.view_recipe() {
            Some((base, recipe)) => Some((self.base(base, tensor, origins)?, recipe)),
            None => None,
        };
        let edge = tensor.history();
        let history = edge.as_ref().map(|edge| self.history(edge, origins.known)).transpose()?;
        if let (Some(edge), Some(History::Spent(_))) = (edge, &history) {
            self.spent.push((self.recipes.len(), edge));
        }
        Ok(Recipe::New(Box::new(New {
            body: self.storages.add(&tensor.body(), origins)?,
            requires_grad: history.is_none() && tensor.requires_grad() && tensor.edge().is_some(),
            history,
            view,
        })))
    }

    fn history(&mut self, edge: &Edge, known: &[Tensor]) -> Result<History> {
        let boundary = self.boundary.get_or_insert_with(|| Boundary::new(known));
        match Spent::of(edge, boundary) {
            Some(spent) => spent.map(History::Spent),
            None => Ok(History::Live { node: self.graph.add(edge, boundary)?, output: edge.output }),
        }
    }

    /// Adds what the graph saved, once all tensors are there.
    pub fn finish(&mut self, origins: &mut Origins) -> Result<()> {
        // A backward can reach freed nodes beside living ones, and fails only if they lead to what it asks for.
        let spent = std::mem::take(&mut self.spent);
        if let (Some(boundary), false) = (&self.boundary, self.graph.is_empty()) {
            for (recipe, edge) in spent {
                if let Recipe::New(new) = &mut self.recipes[recipe] {
                    let node = self.graph.add(&edge, boundary)?;
                    new.history = Some(History::Live { node, output: edge.output });
                }
            }
        }
        let recipe_of = &self.recipe_of;
        self.graph.finish(&mut self.storages, origins, |tensor| recipe_of.get(&tensor.id()).copied())
    }

    /// Lets captured backwards join kernels to groups, or keeps them apart.
    pub fn fuse_backwards(&mut self, fuses: bool) {
        self.graph.backwards = Arc::new(Backwards::new(fuses));
    }

    /// The captured backwards through the graph of results.
    pub fn backwards(&self) -> &Backwards {
        &self.graph.backwards
    }

    /// The known tensors to which the graph of results leads.
    pub fn ends(&self) -> &[usize] {
        &self.graph.known
    }

    /// Adds the base of a view, or a known tensor that is another view of that base.
    fn base(&mut self, base: &Tensor, view: &Tensor, origins: &mut Origins) -> Result<usize> {
        let is_older = origins.memory(view.body().storage.id()).is_some();
        if !is_older || origins.number(base).is_some() {
            return self.add(base, origins);
        }
        let shares = |known: &&Tensor| known.as_view().is_some_and(|view| view.base.same(base));
        match origins.known.iter().find(shares) {
            Some(known) => self.add(known, origins),
            None => Err(Error::runtime("a result is a view of a tensor that the call was not given")),
        }
    }

    /// The number of the new storage of this tensor, if the tensor is nothing but a body that alone has that storage.
    pub fn sole_fresh(&self, recipe: usize) -> Option<usize> {
        let Recipe::New(new) = &self.recipes[recipe] else { return None };
        let holder = new.body.holder;
        let is_bare = !new.requires_grad && new.history.is_none() && new.view.is_none();
        let uses = self
            .recipes
            .iter()
            .filter(|other| matches!(other, Recipe::New(other) if other.body.holder == holder));
        let is_sole = is_bare && uses.count() == 1 && !self.graph.saves(holder);
        if is_sole { self.storages.sole_fresh(&new.body) } else { None }
    }

    /// What a new tensor looks like.
    pub fn form(&self, recipe: usize) -> Option<&Form> {
        match &self.recipes[recipe] {
            Recipe::New(new) => Some(&new.body.form),
            _ => None,
        }
    }

    /// The number of tensors.
    pub fn len(&self) -> usize {
        self.recipes.len()
    }

    /// True if a replay looks at the `.grad`s that it finds to make tensors; `is_of_grad` says whether a memory is that of one.
    pub fn need_grads(&self, is_of_grad: impl FnMut(usize) -> bool) -> bool {
        self.recipes.iter().any(|recipe| matches!(recipe, Recipe::Grad(_)))
            || self.storages.memories.iter().copied().any(is_of_grad)
    }

    /// Makes the `missing` tensors with the graph; those that are in `made` already stay.
    pub fn make(
        &self,
        missing: impl Iterator<Item = usize>,
        found: &Found,
        made: &mut [Option<Tensor>],
    ) -> Result<()> {
        let mut aliases = SmallVec::new();
        let nodes = self.graph.make(&self.storages, found, &mut aliases)?;
        for at in missing {
            if made[at].is_some() {
                continue;
            }
            let tensor = match &self.recipes[at] {
                Recipe::Known(number) => (found.known)(*number).clone(),
                Recipe::Grad(number) => match (found.grad)(*number) {
                    Some(grad) => grad.clone(),
                    None => return Err(Error::runtime("a known tensor has no .grad any more")),
                },
                Recipe::New(new) => self.new_tensor(new, found, &nodes, made, &mut aliases)?,
            };
            made[at] = Some(tensor);
        }
        self.graph.set_tensors(&nodes, made);
        Ok(())
    }

    fn new_tensor(
        &self,
        new: &New,
        found: &Found,
        nodes: &Nodes,
        made: &[Option<Tensor>],
        aliases: &mut Aliases,
    ) -> Result<Tensor> {
        let body = self.storages.make(&new.body, found, aliases)?;
        let edge = match &new.history {
            None => None,
            Some(History::Spent(spent)) => Some(spent.edge()),
            Some(History::Live { node, output }) => Some(Edge { node: nodes.get(*node)?, output: *output }),
        };
        let tensor = match &new.view {
            Some((base, recipe)) => match &made[*base] {
                Some(base) => Tensor::view_again(base, body, edge, recipe),
                None => return Err(Error::runtime("a view is made before its base")),
            },
            None => Tensor::of(body, edge),
        };
        if new.requires_grad {
            tensor.set_requires_grad(true)?;
        }
        Ok(tensor)
    }
}
