//! The storages of tensors and of saved values that outlive a captured call: each replay finds them, or makes new ones.

use crate::base::{Device, Error, Result};
use crate::capture::kind::Form;
use crate::capture::origins::Origins;
use crate::storage::{Storage, UNTRACKED, WeakStorage};
use crate::tensor::{Body, Tensor};
use smallvec::SmallVec;
use std::collections::HashMap;

/// A storage that each replay makes.
pub(super) struct Fresh {
    pub len: usize,
    device: Device,
    pub version: u32,
    /// The operator of the last recorded write in place, for messages.
    writer: Option<&'static &'static str>,
}

impl Fresh {
    fn of(storage: &Storage) -> Fresh {
        Fresh {
            len: storage.len(),
            device: storage.device(),
            version: storage.version(),
            writer: storage.writer(),
        }
    }

    pub fn make(&self) -> Result<Storage> {
        let storage = Storage::with_version(self.len, self.version, self.device)?;
        if let Some(writer) = self.writer {
            storage.written_by(writer);
        }
        Ok(storage)
    }
}

/// The storage of a body that each replay makes.
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

/// How a replay makes a body.
pub(super) struct BodyRecipe {
    pub holder: usize,
    pub form: Form,
    /// The memory whose place in its storage may differ from replay to replay.
    memory: Option<usize>,
}

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

/// The aliases that a replay has made, by the numbers of their holders.
pub(super) type Aliases = SmallVec<[(usize, Storage); 2]>;

#[derive(Default)]
pub(super) struct Storages {
    holders: Vec<Holder>,
    /// By the addresses of storages and aliases.
    holder_of: HashMap<usize, usize>,
    /// New storages, and those of the captured call.
    pub fresh: Vec<Fresh>,
    /// The older memories of bodies and aliases, some more than once.
    pub memories: Vec<usize>,
    fresh_of: HashMap<usize, usize>,
    /// Keeps the ids of storages from being used again.
    kept: Vec<WeakStorage>,
}

impl Storages {
    /// The number of the new storage that takes the place of one of the captured call.
    pub fn fresh_of(&self, storage_id: usize) -> Option<usize> {
        self.fresh_of.get(&storage_id).copied()
    }

    /// Adds a body.
    pub fn add(&mut self, body: &Body, origins: &mut Origins) -> Result<BodyRecipe> {
        if body.device().is_meta() {
            return Err(Error::not_implemented(format!("a result on device {}", body.device())));
        }
        let memory = origins.memory(body.storage.id());
        self.memories.extend(memory);
        Ok(BodyRecipe { memory, holder: self.holder(&body.storage, origins)?, form: Form::of(body) })
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
            self.memories.push(memory);
            match is_alias {
                true => {
                    let of = self.push(Holder::Memory(memory), root.alias_id());
                    Holder::Alias { of, version: storage.version() }
                }
                false => Holder::Memory(memory),
            }
        } else if is_alias {
            Holder::Alias { of: self.holder(root, origins)?, version: storage.version() }
        } else if root.is_made_in(origins.capture) {
            self.fresh_of.insert(root.id(), self.fresh.len());
            self.kept.push(root.downgrade());
            self.fresh.push(Fresh::of(root));
            Holder::Fresh(self.fresh.len() - 1)
        } else {
            return Err(Error::runtime(
                "a result or its graph holds memory that is older than the call, of a tensor that the call neither was given \
                 nor read",
            ));
        };
        Ok(self.push(holder, storage.alias_id()))
    }

    fn push(&mut self, holder: Holder, alias_id: usize) -> usize {
        self.holders.push(holder);
        self.holder_of.insert(alias_id, self.holders.len() - 1);
        self.holders.len() - 1
    }

    /// The number of the new storage of this body, if writes to it are counted and no alias shares it.
    pub fn sole_fresh(&self, body: &BodyRecipe) -> Option<usize> {
        let Holder::Fresh(fresh) = self.holders[body.holder] else { return None };
        let is_shared = self
            .holders
            .iter()
            .any(|holder| matches!(holder, Holder::Alias { of, .. } if *of == body.holder));
        let is_counted = self.fresh[fresh].version != UNTRACKED;
        (is_counted && !is_shared).then_some(fresh)
    }

    /// Makes a body.
    pub fn make(&self, body: &BodyRecipe, found: &Found, aliases: &mut Aliases) -> Result<Body> {
        let lost = || Error::runtime("the memory of a result is missing");
        let storage = self.storage(body.holder, found, aliases).ok_or_else(lost)?;
        let mut layout = body.form.layout.clone();
        if let Some(memory) = body.memory {
            let shift = (found.memory)(memory).map_or(0, |(_, shift)| *shift);
            let start = body.form.start().wrapping_add_signed(shift);
            layout.offset = start / body.form.dtype.size();
        }
        Ok(Body { storage, layout, dtype: body.form.dtype, conj_neg: body.form.conj_neg })
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
