//! The live calls of `vmap` in a thread, innermost last.

use crate::base::Error;
use crate::tensor::Level;
use std::cell::{Cell, RefCell};

/// What random operators do inside a `vmap`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Randomness {
    Error,
    Different,
    Same,
}

#[derive(Clone, Copy)]
pub struct Frame {
    pub level: Level,
    pub size: usize,
    pub randomness: Randomness,
}

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
    static NEXT: Cell<Level> = const { Cell::new(0) };
    /// The innermost live level when each of the reverse transforms began that are under way; 0 outside of all.
    static REVERSED: RefCell<Vec<Level>> = const { RefCell::new(Vec::new()) };
}

/// Takes this thread's calls for the thread that calls what is returned.
pub fn hand_over() -> impl FnOnce() + Send {
    let (frames, next, reversed) = (FRAMES.take(), NEXT.get(), REVERSED.take());
    move || {
        FRAMES.set(frames);
        NEXT.set(next);
        REVERSED.set(reversed);
    }
}

/// Begins a `vmap` over `size` samples. Levels are never used twice: a tensor that outlives its `vmap` stays foreign.
pub fn enter(size: usize, randomness: Randomness) -> Level {
    let level = NEXT.with(|next| {
        next.set(next.get() + 1);
        next.get()
    });
    FRAMES.with(|frames| frames.borrow_mut().push(Frame { level, size, randomness }));
    level
}

pub fn leave() -> Result<Frame, Error> {
    let frame = FRAMES.with(|frames| frames.borrow_mut().pop());
    frame.ok_or_else(|| Error::runtime("vmap: there is no level to leave"))
}

pub fn frames() -> Vec<Frame> {
    FRAMES.with(|frames| frames.borrow().clone())
}

/// Brings calls back when it is dropped.
struct RestoreFrames(Vec<Frame>);

impl Drop for RestoreFrames {
    fn drop(&mut self) {
        swap_frames(std::mem::take(&mut self.0));
    }
}

/// Takes other calls for the live ones, and gives those that were.
pub fn swap_frames(mut other: Vec<Frame>) -> Vec<Frame> {
    FRAMES.with(|frames| std::mem::swap(&mut *frames.borrow_mut(), &mut other));
    other
}

/// Begins a transform by reverse mode.
pub fn begin_reverse() {
    let inside = FRAMES.with(|frames| frames.borrow().last().map_or(0, |f| f.level));
    REVERSED.with(|reversed| reversed.borrow_mut().push(inside));
}

pub fn end_reverse() {
    REVERSED.with(|reversed| reversed.borrow_mut().pop());
}

/// Whether a transform that began inside of this level differentiates what happens now.
pub fn reversed_within(level: Level) -> bool {
    REVERSED.with(|reversed| reversed.borrow().iter().any(|&inside| inside >= level))
}

/// Whether any `vmap` is under way in this thread.
pub fn is_under_way() -> bool {
    FRAMES.with(|frames| !frames.borrow().is_empty())
}

/// Whether a level's `vmap` is under way.
pub fn is_live(level: Level) -> bool {
    depth_of(level).is_some()
}

/// How deep a level is nested, counted from 1; nothing when its `vmap` is over.
pub fn depth_of(level: Level) -> Option<usize> {
    FRAMES.with(|frames| frames.borrow().iter().position(|f| f.level == level).map(|at| at + 1))
}

/// Runs `f` with these levels under way, also those that were left.
pub fn within<R>(levels: &[Level], sizes: &[usize], f: impl FnOnce() -> R) -> R {
    let mut all = frames();
    for (&level, &size) in levels.iter().zip(sizes) {
        if let Err(place) = all.binary_search_by_key(&level, |f| f.level) {
            all.insert(place, Frame { level, size, randomness: Randomness::Error });
        }
    }
    let _restore = RestoreFrames(swap_frames(all));
    f()
}

/// Runs `f` as if the level had not been entered.
pub fn outside<R>(level: Level, f: impl FnOnce() -> R) -> R {
    // Those inside go on: what moves there along tangents stays batched.
    let others = frames().into_iter().filter(|f| f.level != level).collect();
    let _restore = RestoreFrames(swap_frames(others));
    f()
}
