//! The profiler's data: spans with a name, start and end times, and the memory allocated in between. Without
//! a profiler, a span costs one load and one branch; with one, each thread writes to a list of its own.

use super::{Result, lock, try_alloc, watch};
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// What a session records besides names and times.
#[derive(Clone, Copy, Default)]
pub struct ProfileOptions {
    pub shapes: bool,
    pub memory: bool,
    pub stacks: bool,
}

const ON: u8 = 1;
const SHAPES: u8 = 2;
const MEMORY: u8 = 4;
const STACKS: u8 = 8;

static FLAGS: AtomicU8 = AtomicU8::new(0);
/// The number of sessions. A span that was opened in an earlier session is not recorded.
static SESSION: AtomicU32 = AtomicU32::new(0);
static THREADS: AtomicU32 = AtomicU32::new(0);
static LISTS: Mutex<Vec<Arc<Mutex<Vec<Event>>>>> = Mutex::new(Vec::new());

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// A call of an operator.
    Operator,
    /// An operator that writes in place.
    Inplace,
    /// The forward of a custom Function.
    Function,
    /// The whole run of a node in a backward: hooks, derivative, sums.
    Turn,
    /// The derivative of a node alone.
    Derivative,
    /// A span that the user marked.
    Mark,
    /// A change of memory outside all spans.
    Memory,
}

/// The shape of each operand; empty for a number.
pub type Shapes = Vec<Vec<usize>>;

/// A finished span. Times are nanoseconds since the process's first time stamp.
#[derive(Debug)]
pub struct Event {
    pub kind: EventKind,
    pub name: Cow<'static, str>,
    pub thread: u32,
    pub start: u64,
    pub end: u64,
    /// The number of enclosing spans of its thread.
    pub depth: u32,
    /// Allocated minus freed bytes, on the host and on the GPU.
    pub bytes: [i64; 2],
    pub facts: EventFacts,
}

/// Data that are recorded on request.
#[derive(Debug, Default)]
pub struct EventFacts {
    /// The sequence number of the node that the span made or ran.
    pub sequence: Option<u64>,
    pub shapes: Option<Shapes>,
    /// The number of floating point operations, if the row declares it.
    pub flops: u64,
    /// The call stack, innermost first.
    pub stack: Vec<String>,
}

/// An open span; dropping it ends it.
pub struct Span {
    kind: EventKind,
    name: Cow<'static, str>,
    session: u32,
    thread: u32,
    start: u64,
    depth: u32,
    before: [i64; 2],
    pub facts: EventFacts,
}

struct ThreadEvents {
    session: u32,
    thread: u32,
    depth: u32,
    bytes: [i64; 2],
    events: Arc<Mutex<Vec<Event>>>,
}

thread_local! {
    static LOCAL: RefCell<Option<ThreadEvents>> = const { RefCell::new(None) };
}

#[inline]
pub fn on() -> bool {
    FLAGS.load(Ordering::Relaxed) != 0
}

fn flag(which: u8) -> bool {
    FLAGS.load(Ordering::Relaxed) & which != 0
}

pub fn wants_shapes() -> bool {
    flag(SHAPES)
}

pub fn wants_stacks() -> bool {
    flag(STACKS)
}

fn first() -> (Instant, SystemTime) {
    static FIRST: OnceLock<(Instant, SystemTime)> = OnceLock::new();
    *FIRST.get_or_init(|| (Instant::now(), SystemTime::now()))
}

fn now() -> u64 {
    first().0.elapsed().as_nanos() as u64
}

/// The start of the events' clock, in nanoseconds since 1970.
pub fn clock_start() -> u64 {
    first().1.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64)
}

/// Starts a session. Returns false if one is active.
pub fn start(options: ProfileOptions) -> bool {
    let bit = |wanted: bool, flag: u8| if wanted { flag } else { 0 };
    let flags = ON | bit(options.shapes, SHAPES) | bit(options.memory, MEMORY) | bit(options.stacks, STACKS);
    let lists = lock(&LISTS);
    if on() {
        return false;
    }
    // Clears what spans wrote after the end of the last session.
    lists.iter().for_each(|list| lock(list).clear());
    SESSION.fetch_add(1, Ordering::Relaxed);
    first();
    FLAGS.store(flags, Ordering::Relaxed);
    watch::count(watch::PROFILE, true);
    true
}

/// Ends the session and returns its events, thread by thread.
pub fn stop() -> Result<Vec<Event>> {
    let mut lists = lock(&LISTS);
    if FLAGS.swap(0, Ordering::Relaxed) != 0 {
        watch::count(watch::PROFILE, false);
    }
    let events = try_alloc::all(lists.iter().flat_map(|list| std::mem::take(&mut *lock(list))));
    // Drops the lists of threads that have ended.
    lists.retain(|list| Arc::strong_count(list) > 1);
    events
}

/// Adds an event. Without memory for it the event is dropped; the operator itself will raise the error.
fn note(events: &mut Vec<Event>, event: Event) {
    let _ = try_alloc::push(events, event);
}

/// Runs `f` on this thread's record. `None` while the thread ends.
fn local<R>(f: impl FnOnce(&mut ThreadEvents) -> R) -> Option<R> {
    let enter = |cell: &RefCell<Option<ThreadEvents>>| {
        let mut cell = cell.try_borrow_mut().ok()?;
        let local = cell.get_or_insert_with(|| {
            let events = Arc::default();
            lock(&LISTS).push(Arc::clone(&events));
            let thread = THREADS.fetch_add(1, Ordering::Relaxed) + 1;
            ThreadEvents { session: 0, thread, depth: 0, bytes: [0; 2], events }
        });
        let session = SESSION.load(Ordering::Relaxed);
        if local.session != session {
            (local.session, local.depth, local.bytes) = (session, 0, [0; 2]);
        }
        Some(f(local))
    };
    LOCAL.try_with(enter).ok().flatten()
}

/// Opens a span if a profiler is active.
#[inline]
pub fn span(kind: EventKind, name: impl FnOnce() -> Cow<'static, str>) -> Option<Span> {
    if on() { open(kind, name()) } else { None }
}

#[cold]
pub fn open(kind: EventKind, name: Cow<'static, str>) -> Option<Span> {
    local(|local| {
        let depth = local.depth;
        local.depth += 1;
        let (session, thread, before) = (local.session, local.thread, local.bytes);
        Span { kind, name, session, thread, start: now(), depth, before, facts: EventFacts::default() }
    })
}

impl Drop for Span {
    fn drop(&mut self) {
        let end = now();
        local(|local| {
            if !on() || local.session != self.session {
                return;
            }
            let here = local.thread == self.thread;
            if here {
                local.depth = self.depth;
            }
            let gone = |side: usize| if here { local.bytes[side] - self.before[side] } else { 0 };
            let event = Event {
                kind: self.kind,
                name: std::mem::take(&mut self.name),
                thread: self.thread,
                start: self.start,
                end,
                depth: self.depth,
                bytes: [gone(0), gone(1)],
                facts: std::mem::take(&mut self.facts),
            };
            note(&mut lock(&local.events), event);
        });
    }
}

/// Records an allocation (`taken`) or a deallocation on the host or on the GPU.
#[inline]
pub fn memory(bytes: usize, taken: bool, gpu: bool) {
    if on() {
        count(bytes, taken, gpu);
    }
}

#[cold]
fn count(bytes: usize, taken: bool, gpu: bool) {
    if bytes == 0 || !flag(MEMORY) {
        return;
    }
    let bytes = if taken { bytes as i64 } else { -(bytes as i64) };
    local(|local| {
        local.bytes[usize::from(gpu)] += bytes;
        if local.depth == 0 {
            let at = now();
            let (kind, name) = (EventKind::Memory, Cow::Borrowed("[memory]"));
            let bytes = if gpu { [0, bytes] } else { [bytes, 0] };
            let (thread, facts) = (local.thread, EventFacts::default());
            let event = Event { kind, name, thread, start: at, end: at, depth: 0, bytes, facts };
            note(&mut lock(&local.events), event);
        }
    });
}

impl Event {
    /// The name in PyTorch's tables.
    pub fn full_name(&self) -> String {
        match self.kind {
            EventKind::Operator => format!("aten::{}", self.name),
            EventKind::Inplace => format!("aten::{}_", self.name),
            EventKind::Turn => format!("autograd::engine::evaluate_function: {}", self.name),
            EventKind::Function | EventKind::Derivative | EventKind::Mark | EventKind::Memory => {
                self.name.to_string()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_nest_and_count_bytes() {
        assert!(span(EventKind::Mark, || unreachable!()).is_none());
        assert!(start(ProfileOptions { memory: true, ..ProfileOptions::default() }));
        assert!(!start(ProfileOptions::default()));
        let outer = span(EventKind::Mark, || "outer".into());
        memory(100, true, false);
        let inner = span(EventKind::Inplace, || "add".into());
        memory(40, false, false);
        drop(inner);
        drop(outer);
        memory(7, true, true);
        let left_open = span(EventKind::Mark, || "late".into());
        let mut events = stop().unwrap_or_default();
        drop(left_open);
        // Other tests run at the same time, on other threads.
        let own = events.iter().find(|e| e.name == "outer").map(|e| e.thread);
        events.retain(|e| Some(e.thread) == own);
        let told: Vec<_> = events.iter().map(|e| (e.full_name(), e.depth, e.bytes)).collect();
        let expected = [("aten::add_", 1, [-40, 0]), ("outer", 0, [60, 0]), ("[memory]", 0, [0, 7])];
        assert_eq!(told, expected.map(|(name, depth, bytes)| (name.to_owned(), depth, bytes)));
        assert!(events[1].start <= events[0].start && events[0].end <= events[1].end);
    }
}
