//! What nodes remember of the forward call that made them: the user's line, or in anomaly mode the whole stack, and the
//! node in whose backward it happened. The host language says where it stands and shows reports; here are the switches.

use crate::base::Line;
use crate::base::lock;
use crate::storage::Storage;
use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

static MODE: AtomicU8 = AtomicU8::new(CHECK);
static HOST: OnceLock<Host> = OnceLock::new();

const ON: u8 = 1;
const CHECK: u8 = 2;
const LINES: u8 = 4;
/// Some thread has node creation hooks.
const HOOKED: u8 = 8;
/// How deep a report follows nodes that were made in the turn of other nodes.
const DEEPEST: u32 = 64;

/// How many writes in place are remembered.
const REMEMBERED: usize = 4096;
static WRITES: Mutex<VecDeque<Write>> = Mutex::new(VecDeque::new());

struct Write {
    storage: usize,
    found: u32,
    line: Line,
}

thread_local! {
    static TURN: RefCell<Option<Parent>> = const { RefCell::new(None) };
}

/// What the host language does for these modes.
pub struct Host {
    /// The user's present line.
    pub line: fn() -> Option<Line>,
    /// The present stack.
    pub here: fn() -> Option<Box<dyn Stack>>,
    /// Shows a report as a warning.
    pub tell: fn(&str),
    /// Adds a note to an exception of the user's.
    pub note: fn(&(dyn Any + Send + Sync), &str, &Line),
}

/// The host language's stack as it was; most are forgotten before somebody asks for the text.
pub trait Stack: Send + Sync {
    fn text(&self) -> Option<String>;
}

/// Where a node was made.
pub struct Trace {
    pub line: Option<Line>,
    /// The stack, in anomaly mode.
    pub stack: Option<Box<dyn Stack>>,
    pub parent: Option<Parent>,
}

/// The node in whose turn another one was made.
#[derive(Clone)]
pub struct Parent {
    pub name: Arc<str>,
    pub trace: Option<Arc<Trace>>,
    depth: u32,
}

/// Takes the turn that this thread is in for the thread that calls what is returned.
pub(in crate::tensor) fn hand_over() -> impl FnOnce() + Send {
    let turn = TURN.take();
    move || TURN.set(turn)
}

pub fn set_host(host: Host) {
    let _ = HOST.set(host);
}

fn forget_writes() {
    lock(&WRITES).clear();
}

pub fn set(on: bool, check_nan: bool) {
    let bits = u8::from(on) * ON + u8::from(check_nan) * CHECK;
    let _ =
        MODE.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |mode| Some(mode & (LINES | HOOKED) | bits));
    if !keeps_lines() {
        forget_writes();
    }
}

/// Whether nodes remember the user's line; returns what it was.
pub fn set_lines(on: bool) -> bool {
    if !on {
        forget_writes();
    }
    let before =
        if on { MODE.fetch_or(LINES, Ordering::Relaxed) } else { MODE.fetch_and(!LINES, Ordering::Relaxed) };
    before & LINES != 0
}

#[inline]
fn mode() -> u8 {
    MODE.load(Ordering::Relaxed)
}

#[inline]
pub fn enabled() -> bool {
    mode() & ON != 0
}

/// Whether gradients are checked for NaN now.
pub fn checks_nan() -> bool {
    mode() & (ON | CHECK) == ON | CHECK
}

/// Whether gradients are checked for NaN where the mode is on.
pub fn would_check_nan() -> bool {
    mode() & CHECK != 0
}

/// Whether nodes remember lines: by that switch, or in anomaly mode.
pub fn keeps_lines() -> bool {
    mode() & (ON | LINES) != 0
}

/// Whether nothing is to be noted of a new node.
#[inline]
pub fn is_idle() -> bool {
    mode() & (ON | LINES | HOOKED) == 0
}

/// One more thread, or one less, wants to know of its nodes.
pub(in crate::tensor) fn watch_nodes(more: bool) {
    static THREADS: Mutex<usize> = Mutex::new(0);
    let mut threads = lock(&THREADS);
    *threads = if more { *threads + 1 } else { threads.saturating_sub(1) };
    match *threads {
        0 => MODE.fetch_and(!HOOKED, Ordering::Relaxed),
        _ => MODE.fetch_or(HOOKED, Ordering::Relaxed),
    };
}

/// Where the user's program stands, when somebody wants to know.
#[inline]
pub fn trace() -> Option<Arc<Trace>> {
    if mode() & (ON | LINES) == 0 { None } else { look() }
}

/// The user's present line, where lines are kept.
#[inline]
pub fn line() -> Option<Line> {
    if keeps_lines() { HOST.get().and_then(|host| (host.line)()) } else { None }
}

#[cold]
fn look() -> Option<Arc<Trace>> {
    let host = HOST.get()?;
    let stack = if enabled() { (host.here)() } else { None };
    let parent = TURN.with_borrow(|turn| turn.clone().filter(|parent| parent.depth < DEEPEST));
    Some(Arc::new(Trace { line: (host.line)(), stack, parent }))
}

/// Says whose turn it is in this thread, until dropped.
pub struct Turn(Option<Parent>);

impl Drop for Turn {
    fn drop(&mut self) {
        TURN.with_borrow_mut(|turn| *turn = self.0.take());
    }
}

/// Nodes that are made from now on are made in the turn of the node of this name, made as `trace` says.
pub(in crate::tensor) fn begin_turn(name: &str, trace: Option<Arc<Trace>>) -> Turn {
    let above = trace.as_ref().and_then(|trace| trace.parent.as_ref());
    let depth = above.map_or(0, |parent| parent.depth + 1);
    let parent = Parent { name: name.into(), trace, depth };
    Turn(TURN.with_borrow_mut(|turn| turn.replace(parent)))
}

/// Adds a note, which names a line, to an exception of the user's.
pub(in crate::tensor) fn annotate(exception: &(dyn Any + Send + Sync), text: &str, line: &Line) {
    if let Some(host) = HOST.get() {
        (host.note)(exception, text, line);
    }
}

/// Remembers a write in place, with the version that it found: for whom lines are kept ([`keeps_lines`]).
#[cold]
pub fn wrote(storage: &Storage) {
    let Some(line) = HOST.get().and_then(|host| (host.line)()) else { return };
    let mut writes = lock(&WRITES);
    if writes.len() == REMEMBERED {
        writes.pop_front();
    }
    writes.push_back(Write { storage: storage.id(), found: storage.version(), line });
}

/// The first write to `storage` that found it at `version` or later, if it is remembered.
pub fn written_at(storage: &Storage, version: u32) -> Option<Line> {
    let writes = lock(&WRITES);
    let (mut found, mut next) = (None, u32::MAX);
    for write in writes.iter().rev().filter(|write| write.storage == storage.id()) {
        // Another storage, long gone, may have had this number: its versions do not go on here.
        if write.found >= next || write.found < version {
            break;
        }
        (found, next) = (Some(&write.line), write.found);
    }
    found.cloned()
}

/// Tells which forward call made the node that failed, and in whose turn that was, and so on.
pub(in crate::tensor) fn report(name: &str, mut trace: Option<Arc<Trace>>) {
    let Some(host) = HOST.get() else { return };
    (host.tell)(&said(&format!("Error detected in {name}."), "caused the error", trace.as_deref()));
    while let Some(Parent { name, trace: above, .. }) = trace.as_deref().and_then(|t| t.parent.clone()) {
        let what = match above.as_deref().and_then(|t| t.stack.as_ref()) {
            Some(_) => format!("\n\nPrevious calculation was induced by {name}."),
            None => format!("Error detected in {name}."),
        };
        (host.tell)(&said(&what, "induced the previous calculation", above.as_deref()));
        trace = above;
    }
}

fn said(what: &str, did: &str, trace: Option<&Trace>) -> String {
    match trace.and_then(|t| t.stack.as_ref()?.text()) {
        Some(stack) => format!("{what} Traceback of forward call that {did}:\n{stack}"),
        None => format!(
            "{what} No forward pass information available. Enable detect anomaly during forward pass for more \
             information."
        ),
    }
}
