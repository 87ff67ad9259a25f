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

/// Takes other calls for the live ones, and gives those that were.
pub fn swap_frames(mut other: Vec<Frame>) -> Vec<Frame> {
    FRAMES.with(|frames| std::mem::swap(&mut *frames.borrow_mut(), &mut other));
    other
}

/// How deep a level is nested, counted from 1; nothing when its `vmap` is over.
pub fn depth_of(level: Level) -> Option<usize> {
    FRAMES.with(|frames| frames.borrow().iter().position(|f| f.level == level).map(|at| at + 1))
}

/// Runs `f` as if the level, and those inside it, had not been entered.
pub fn outside<R>(level: Level, f: impl FnOnce() -> R) -> R {
    struct Back(Vec<Frame>);
    impl Drop for Back {
        fn drop(&mut self) {
            FRAMES.with(|frames| frames.borrow_mut().append(&mut self.0));
        }
    }
    let _back = Back(FRAMES.with(|frames| {
        let mut frames = frames.borrow_mut();
        let at = frames.iter().position(|f| f.level == level).unwrap_or(frames.len());
        frames.split_off(at)
    }));
    f()
}
