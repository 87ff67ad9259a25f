//! The active `vmap` calls of a thread, innermost last.

use crate::base::Error;
use crate::tensor::Level;
use std::cell::{Cell, RefCell};

/// The `randomness` argument of `vmap`.
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
    /// For each active reverse transform, the innermost active `vmap` level when it began; 0 if there was
    /// none.
    static REVERSED: RefCell<Vec<Level>> = const { RefCell::new(Vec::new()) };
}

/// Moves this thread's `vmap` calls into the returned closure, which sets them in the thread that calls it.
pub fn hand_over() -> impl FnOnce() + Send {
    let (frames, next, reversed) = (FRAMES.take(), NEXT.get(), REVERSED.take());
    move || {
        FRAMES.set(frames);
        NEXT.set(next);
        REVERSED.set(reversed);
    }
}

/// Begins a `vmap` over `size` examples. Level numbers are never reused: a tensor that outlives its `vmap` is
/// recognized.
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
    frame.ok_or_else(|| Error::runtime("vmap: cannot leave a level, because none is active"))
}

pub fn frames() -> Vec<Frame> {
    FRAMES.with(|frames| frames.borrow().clone())
}

/// Restores the former frames when dropped.
struct RestoreFrames(Vec<Frame>);

impl Drop for RestoreFrames {
    fn drop(&mut self) {
        swap_frames(std::mem::take(&mut self.0));
    }
}

/// Replaces the active frames and returns the former ones.
pub fn swap_frames(mut other: Vec<Frame>) -> Vec<Frame> {
    FRAMES.with(|frames| std::mem::swap(&mut *frames.borrow_mut(), &mut other));
    other
}

/// Begins a reverse mode transform.
pub fn begin_reverse() {
    let inside = FRAMES.with(|frames| frames.borrow().last().map_or(0, |f| f.level));
    REVERSED.with(|reversed| reversed.borrow_mut().push(inside));
}

pub fn end_reverse() {
    REVERSED.with(|reversed| reversed.borrow_mut().pop());
}

/// True if a reverse transform that began inside this level is active.
pub fn reversed_within(level: Level) -> bool {
    REVERSED.with(|reversed| reversed.borrow().iter().any(|&inside| inside >= level))
}

/// True if any `vmap` is active in this thread.
pub fn is_under_way() -> bool {
    FRAMES.with(|frames| !frames.borrow().is_empty())
}

/// True if this level's `vmap` is active.
pub fn is_live(level: Level) -> bool {
    depth_of(level).is_some()
}

/// The nesting depth of a level, counted from 1; `None` if its `vmap` has ended.
pub fn depth_of(level: Level) -> Option<usize> {
    FRAMES.with(|frames| frames.borrow().iter().position(|f| f.level == level).map(|at| at + 1))
}

/// Runs `f` with these levels active, including those that have ended.
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

/// Runs `f` as if this level had not been entered.
pub fn outside<R>(level: Level, f: impl FnOnce() -> R) -> R {
    // Levels inside it stay active: tangents keep their batch dimensions.
    let others = frames().into_iter().filter(|f| f.level != level).collect();
    let _restore = RestoreFrames(swap_frames(others));
    f()
}
