//! Generators of random numbers from which captured kernels draw: a replay that gives up at a decision puts their states back.

use smallvec::SmallVec;

/// Puts the state of a generator back.
pub type Restore = Box<dyn FnOnce()>;

/// A generator whose state can be put back.
pub trait Rewind: Clone + Send + Sync + 'static {
    /// The same number for the same generator.
    fn address(&self) -> usize;
    /// Returns what puts back the state that it has now.
    fn remember(&self) -> Restore;
}

/// The generators of a capture.
#[derive(Default)]
pub(super) struct Draws {
    generators: SmallVec<[(usize, Remember); 1]>,
    /// True if the call decided by an element after a draw.
    decides: bool,
}

type Remember = Box<dyn Fn() -> Restore + Send + Sync>;

impl Draws {
    pub fn add(&mut self, generator: &impl Rewind) {
        let address = generator.address();
        if self.generators.iter().all(|(other, _)| *other != address) {
            let generator = generator.clone();
            self.generators.push((address, Box::new(move || generator.remember())));
        }
    }

    /// Notes that the call decides by an element.
    pub fn decide(&mut self) {
        self.decides |= !self.generators.is_empty();
    }

    /// What puts the states back that the generators have now, if a run may give up after a draw.
    pub fn remember(&self) -> SmallVec<[Restore; 1]> {
        let all = if self.decides { &self.generators[..] } else { &[] };
        all.iter().map(|(_, remember)| remember()).collect()
    }
}
