//! Anomaly mode. Nodes remember the forward call that made them: the user's source line, or the whole stack
//! in anomaly mode, and the node whose backward made them. The host language provides lines and stacks and
//! shows the reports; this module holds the switches.

use crate::base::SourceLine;
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
/// Set while some thread has node creation hooks.
const HOOKED: u8 = 8;
/// The longest chain of nodes, each made in the backward of the next, that a report follows.
const DEEPEST: u32 = 64;

/// The number of in-place writes whose lines are remembered.
const REMEMBERED: usize = 4096;
static WRITES: Mutex<VecDeque<Write>> = Mutex::new(VecDeque::new());

struct Write {
    storage: usize,
    found: u32,
    line: SourceLine,
}

thread_local! {
    static PARENT: RefCell<Option<Parent>> = const { RefCell::new(None) };
}

/// Functions of the host language that these modes use.
pub struct Host {
    /// Returns the line of the user's program that runs now.
    pub line: fn() -> Option<SourceLine>,
    /// Returns the current stack.
    pub here: fn() -> Option<Box<dyn Stack>>,
    /// Shows a report as a warning.
    pub tell: fn(&str),
    /// Adds a note to a user's exception.
    pub note: fn(&(dyn Any + Send + Sync), &str, &SourceLine),
}

/// A captured stack of the host language. Its text is made on request, because most stacks are dropped
/// unread.
pub trait Stack: Send + Sync {
    fn text(&self) -> Option<String>;
}

/// Describes where a node was made.
pub struct Trace {
    pub line: Option<SourceLine>,
    /// Set in anomaly mode only.
    pub stack: Option<Box<dyn Stack>>,
    pub parent: Option<Parent>,
}

/// The node whose backward made another node.
#[derive(Clone)]
pub struct Parent {
    pub name: Arc<str>,
    pub trace: Option<Arc<Trace>>,
    depth: u32,
}

/// Moves this thread's current parent node into the returned closure, which sets it in the thread that calls
/// it.
pub(in crate::tensor) fn hand_over() -> impl FnOnce() + Send {
    let current = PARENT.take();
    move || PARENT.set(current)
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

/// Sets whether nodes remember the user's line; returns the former setting.
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

/// True if anomaly mode is on and checks gradients for NaN.
pub fn checks_nan() -> bool {
    mode() & (ON | CHECK) == ON | CHECK
}

/// The `check_nan` setting, which has an effect only while anomaly mode is on.
pub fn would_check_nan() -> bool {
    mode() & CHECK != 0
}

/// True if nodes remember lines: because of `set_lines` or because of anomaly mode.
pub fn keeps_lines() -> bool {
    mode() & (ON | LINES) != 0
}

/// True if new nodes need no trace and no hooks are to be told of them.
#[inline]
pub fn is_idle() -> bool {
    mode() & (ON | LINES | HOOKED) == 0
}

/// Counts the threads that have node creation hooks.
pub(in crate::tensor) fn watch_nodes(more: bool) {
    static THREADS: Mutex<usize> = Mutex::new(0);
    let mut threads = lock(&THREADS);
    *threads = if more { *threads + 1 } else { threads.saturating_sub(1) };
    match *threads {
        0 => MODE.fetch_and(!HOOKED, Ordering::Relaxed),
        _ => MODE.fetch_or(HOOKED, Ordering::Relaxed),
    };
}

/// The trace for a new node, if anomaly mode or line recording is on.
#[inline]
pub fn trace() -> Option<Arc<Trace>> {
    if mode() & (ON | LINES) == 0 { None } else { capture() }
}

/// The user's current line, if lines are recorded.
#[inline]
pub fn line() -> Option<SourceLine> {
    if keeps_lines() { HOST.get().and_then(|host| (host.line)()) } else { None }
}

/// The user's current line, whether or not lines are recorded.
pub fn current_line() -> Option<SourceLine> {
    HOST.get().and_then(|host| (host.line)())
}

#[cold]
fn capture() -> Option<Arc<Trace>> {
    let host = HOST.get()?;
    let stack = if enabled() { (host.here)() } else { None };
    let parent = PARENT.with_borrow(|current| current.clone().filter(|parent| parent.depth < DEEPEST));
    Some(Arc::new(Trace { line: (host.line)(), stack, parent }))
}

/// Restores this thread's former parent node when dropped.
pub struct ParentGuard(Option<Parent>);

impl Drop for ParentGuard {
    fn drop(&mut self) {
        PARENT.with_borrow_mut(|current| *current = self.0.take());
    }
}

/// Until the result is dropped, nodes made by this thread get the node `name` as their parent.
pub(in crate::tensor) fn set_parent(name: &str, trace: Option<Arc<Trace>>) -> ParentGuard {
    let above = trace.as_ref().and_then(|trace| trace.parent.as_ref());
    let depth = above.map_or(0, |parent| parent.depth + 1);
    let parent = Parent { name: name.into(), trace, depth };
    ParentGuard(PARENT.with_borrow_mut(|current| current.replace(parent)))
}

/// Adds a note, which names a line, to a user's exception.
pub(in crate::tensor) fn annotate(exception: &(dyn Any + Send + Sync), text: &str, line: &SourceLine) {
    if let Some(host) = HOST.get() {
        (host.note)(exception, text, line);
    }
}

/// Remembers the line of an in-place write and the storage's version before it. Called only if
/// [`keeps_lines`].
#[cold]
pub fn wrote(storage: &Storage) {
    let Some(line) = HOST.get().and_then(|host| (host.line)()) else { return };
    let mut writes = lock(&WRITES);
    if writes.len() == REMEMBERED {
        writes.pop_front();
    }
    writes.push_back(Write { storage: storage.id(), found: storage.version(), line });
}

/// The line of the first write to `storage` at or after `version`, if it is still remembered.
pub fn written_at(storage: &Storage, version: u32) -> Option<SourceLine> {
    let writes = lock(&WRITES);
    let (mut found, mut next) = (None, u32::MAX);
    for write in writes.iter().rev().filter(|write| write.storage == storage.id()) {
        // A freed storage may have had the same id: its versions do not continue those found so far.
        if write.found >= next || write.found < version {
            break;
        }
        (found, next) = (Some(&write.line), write.found);
    }
    found.cloned()
}

/// Reports the forward call that made the failed node, then the one that made its parent, and so on.
pub(in crate::tensor) fn report(name: &str, mut trace: Option<Arc<Trace>>) {
    let Some(host) = HOST.get() else { return };
    (host.tell)(&failure_text(&format!("Error detected in {name}."), "caused the error", trace.as_deref()));
    while let Some(Parent { name, trace: above, .. }) = trace.as_deref().and_then(|t| t.parent.clone()) {
        let what = match above.as_deref().and_then(|t| t.stack.as_ref()) {
            Some(_) => format!("\n\nPrevious calculation was induced by {name}."),
            None => format!("Error detected in {name}."),
        };
        (host.tell)(&failure_text(&what, "induced the previous calculation", above.as_deref()));
        trace = above;
    }
}

fn failure_text(what: &str, did: &str, trace: Option<&Trace>) -> String {
    match trace.and_then(|t| t.stack.as_ref()?.text()) {
        Some(stack) => format!("{what} Traceback of forward call that {did}:\n{stack}"),
        None => format!(
            "{what} No forward pass information available. Enable detect anomaly during forward pass for more \
             information."
        ),
    }
}
