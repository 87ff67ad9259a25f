//! The tensors that a captured call makes and that outlive it, so that each replay can make such tensors again: results,
//! new `.grad`s, and the bases of views.

use crate::base::{Error, Result};
use crate::capture::kind::Form;
use crate::capture::origins::Origins;
use crate::storage::{Storage, UNTRACKED, WeakStorage};
use crate::tensor::{Body, Derivative, Edge, Kind, Meta, Node, NodeRef, Tensor, ViewRecipe};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};

/// A storage that each replay makes.
pub(super) struct Fresh {
    pub len: usize,
    pub version: u32,
}

impl Fresh {
    pub fn make(&self) -> Result<Storage> {
        Storage::with_version(self.len, self.version)
    }
}

/// The storage of a tensor that each replay makes.
enum Holder {
    /// The storage of a known tensor, with its version counter.
    Known(usize),
    Fresh(usize),
    /// The bytes of another one with a version counter of its own.
    Alias {
        of: usize,
        version: u32,
    },
    /// The bytes of a `.grad` that the call found.
    Memory(usize),
}

/// How a replay makes a tensor.
enum Recipe {
    Known(usize),
    /// The `.grad` that the call found at the known tensor of this number.
    Grad(usize),
    New(Box<New>),
}

struct New {
    holder: usize,
    form: Form,
    /// The memory whose place in its storage may differ from replay to replay.
    memory: Option<usize>,
    requires_grad: bool,
    spent: Option<Spent>,
    view: Option<(usize, ViewRecipe)>,
}

/// The node of a result whose graph was freed by a backward inside of the call.
struct Spent {
    derivative: &'static Derivative,
    outputs: SmallVec<[Meta; 1]>,
    output: u32,
}

impl Spent {
    /// Returns `None` if a backward could still reach a leaf.
    fn of(edge: &Edge) -> Option<Result<Spent>> {
        let (mut seen, mut waiting) = (HashSet::new(), vec![&edge.node]);
        while let Some(node) = waiting.pop() {
            if node.is_leaf() {
                return None;
            }
            if seen.insert(node.as_ptr() as usize) && !is_freed(node) {
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
    holders: Vec<Holder>,
    /// By the addresses of storages and aliases.
    holder_of: HashMap<usize, usize>,
    /// New storages, and those of the captured call.
    pub fresh: Vec<Fresh>,
    fresh_of: HashMap<usize, usize>,
    /// Keeps the ids of storages from being used again.
    _kept: Vec<WeakStorage>,
}

impl Recipes {
    /// The number of the new storage that takes the place of one of the captured call.
    pub fn fresh_of(&self, storage_id: usize) -> Option<usize> {
        self.fresh_of.get(&storage_id).copied()
    }

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
        let body = tensor.body();
        if !body.device().is_cpu() {
            return Err(Error::not_implemented(format!("a result on device {}", body.device())));
        }
        let memory = origins.memory(body.storage.id());
        let view = match tensor.view_recipe() {
            Some((base, recipe)) => Some((self.base(base, tensor, origins)?, recipe)),
            None => None,
        };
        let spent = match tensor.history() {
            Some(edge) => Some(Spent::of(&edge).unwrap_or_else(|| {
                Err(Error::runtime(
                    "a result requires gradients, and its graph is alive: gradients outside of the call are not captured",
                ))
            })?),
            None => None,
        };
        Ok(Recipe::New(Box::new(New {
            holder: self.holder(&body.storage, origins)?,
            form: Form::of(&body),
            memory,
            requires_grad: spent.is_none() && tensor.requires_grad(),
            spent,
            view,
        })))
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

    /// Adds a storage or an alias.
    fn holder(&mut self, storage: &Storage, origins: &mut Origins) -> Result<usize> {
        if let Some(&found) = self.holder_of.get(&storage.alias_id()) {
            return Ok(found);
        }
        let root = storage.of_memory();
        let is_alias = root.alias_id() != storage.alias_id();
        let known = origins.known.iter().position(|known| known.body().storage.is(storage));
        let holder = if let Some(number) = known {
            origins.need(number);
            Holder::Known(number)
        } else if let Some(memory) = origins.memory(root.id()) {
            match is_alias {
                true => {
                    let of = self.push(Holder::Memory(memory), root.alias_id());
                    Holder::Alias { of, version: storage.version() }
                }
                false => Holder::Memory(memory),
            }
        } else if is_alias {
            Holder::Alias { of: self.holder(root, origins)?, version: storage.version() }
        } else {
            self.fresh_of.insert(root.id(), self.fresh.len());
            self._kept.push(root.downgrade());
            self.fresh.push(Fresh { len: root.len(), version: root.version() });
            Holder::Fresh(self.fresh.len() - 1)
        };
        Ok(self.push(holder, storage.alias_id()))
    }

    fn push(&mut self, holder: Holder, alias_id: usize) -> usize {
        self.holders.push(holder);
        self.holder_of.insert(alias_id, self.holders.len() - 1);
        self.holders.len() - 1
    }

    /// The number of the new storage of this tensor, if the tensor is nothing but a body that alone has that storage.
    pub fn sole_fresh(&self, recipe: usize) -> Option<usize> {
        let Recipe::New(new) = &self.recipes[recipe] else { return None };
        let Holder::Fresh(fresh) = self.holders[new.holder] else { return None };
        let is_counted = self.fresh[fresh].version != UNTRACKED;
        let is_bare = !new.requires_grad && new.spent.is_none() && new.view.is_none() && is_counted;
        let uses = self
            .recipes
            .iter()
            .filter(|other| matches!(other, Recipe::New(other) if other.holder == new.holder));
        let aliases = self
            .holders
            .iter()
            .filter(|holder| matches!(holder, Holder::Alias { of, .. } if *of == new.holder));
        (is_bare && uses.count() == 1 && aliases.count() == 0).then_some(fresh)
    }

    /// What a new tensor looks like.
    pub fn form(&self, recipe: usize) -> Option<&Form> {
        match &self.recipes[recipe] {
            Recipe::New(new) => Some(&new.form),
            _ => None,
        }
    }

    /// The number of tensors.
    pub fn len(&self) -> usize {
        self.recipes.len()
    }

    /// Makes all tensors; those that are in `made` already stay.
    pub fn make(&self, found: &Found, made: &mut [Option<Tensor>]) -> Result<()> {
        let mut aliases = SmallVec::new();
        for (at, recipe) in self.recipes.iter().enumerate() {
            if made[at].is_some() {
                continue;
            }
            let tensor = match recipe {
                Recipe::Known(number) => (found.known)(*number).clone(),
                Recipe::Grad(number) => match (found.grad)(*number) {
                    Some(grad) => grad.clone(),
                    None => return Err(Error::runtime("a known tensor has no .grad any more")),
                },
                Recipe::New(new) => self.new_tensor(new, found, made, &mut aliases)?,
            };
            made[at] = Some(tensor);
        }
        Ok(())
    }

    fn new_tensor(
        &self,
        new: &New,
        found: &Found,
        made: &[Option<Tensor>],
        aliases: &mut Aliases,
    ) -> Result<Tensor> {
        let lost = || Error::runtime("the memory of a result is missing");
        let storage = self.storage(new.holder, found, aliases).ok_or_else(lost)?;
        let mut layout = new.form.layout.clone();
        if let Some(memory) = new.memory {
            let shift = (found.memory)(memory).map_or(0, |(_, shift)| *shift);
            let start = new.form.start().wrapping_add_signed(shift);
            layout.offset = start / new.form.dtype.size();
        }
        let body = Body { storage, layout, dtype: new.form.dtype, conj_neg: new.form.conj_neg };
        let edge = new.spent.as_ref().map(Spent::edge);
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

    fn storage(&self, holder: usize, found: &Found, aliases: &mut Aliases) -> Option<Storage> {
        Some(match self.holders[holder] {
            Holder::Known(number) => (found.known)(number).body().storage.clone(),
            Holder::Memory(memory) => (found.memory)(memory)?.0.of_memory().clone(),
            Holder::Fresh(fresh) => found.fresh[fresh].clone()?,
            Holder::Alias { of, version } => {
                if let Some((_, alias)) = aliases.iter().find(|(known, _)| *known == holder) {
                    return Some(alias.clone());
                }
                let alias = self.storage(of, found, aliases)?.alias();
                alias.set_version(version);
                aliases.push((holder, alias.clone()));
                alias
            }
        })
    }
}

/// The aliases that a replay has made, by the numbers of their holders.
type Aliases = SmallVec<[(usize, Storage); 2]>;

/// What a replay has found or made before it makes tensors.
pub(super) struct Found<'a> {
    pub known: &'a dyn Fn(usize) -> &'a Tensor,
    /// The `.grad` that was found at a known tensor.
    pub grad: &'a dyn Fn(usize) -> Option<&'a Tensor>,
    /// Storages, and how many bytes further than in the captured call the tensor begins that led to each.
    pub memory: &'a dyn Fn(usize) -> Option<&'a (Storage, isize)>,
    /// New storages; `None` where another one is used again.
    pub fresh: &'a [Option<Storage>],
}
