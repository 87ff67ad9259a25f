//! Python's collector and the graph. A cycle may run through a node's hook, context or packed value, and the node may
//! be shared by tensors that the cycle holds: none of them owns it, all of them together do.
//!
//! The collector first subtracts what the objects in question hold of one another, then spreads from those that
//! something else holds. In the first phase a node's Python objects are shown once, when the last of its handles was
//! found to belong to objects in question; in the second, by the first of them that is reached. What was shown and
//! not reached is garbage.

use crate::arena::{Id, Ref};
use crate::python::wrapper::grad_cycles;
use crate::python::wrapper::identity::VALUE_OFFSET;
use crate::tensor::{Kind, Node, NodeRef, Referents, Tensor};
use gradiron_macros::pyfunction;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

/// One collection of this thread. Tensors and nodes are known by their addresses: nothing is freed during a phase.
#[derive(Default)]
struct Pass {
    running: bool,
    /// The Python objects whose own handles were counted.
    counted: HashSet<usize>,
    /// How many handles of a tensor or node were found.
    seen: HashMap<usize, usize>,
    /// Those of which all handles were found.
    whole: HashSet<usize>,
    /// Those of them that are held from outside.
    reached: HashSet<usize>,
    /// Those that were reached in an earlier pass of the same collection.
    kept: HashSet<usize>,
    /// A walk's stack of nodes, kept between walks for its memory.
    waiting: Vec<NonNull<NodeRef>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Subtract,
    Spread,
    Clear,
}

thread_local! {
    static PASS: RefCell<Pass> = RefCell::new(Pass::default());
}

/// Registers callbacks for the collector's start and stop; called before a node keeps its first Python object.
pub fn follow(py: Python<'_>) -> PyResult<()> {
    static FOLLOWED: PyOnceLock<()> = PyOnceLock::new();
    FOLLOWED.get_or_try_init(py, || {
        let told = wrap_pyfunction!(collecting, py)?;
        py.import("gc")?.getattr("callbacks")?.call_method1("append", (told,)).map(drop)
    })?;
    Ok(())
}

#[pyfunction]
fn collecting(phase: &str, info: &Bound<'_, PyAny>) {
    let _ = info;
    if phase == "start" {
        grad_cycles::collect();
    }
    PASS.with(|pass| {
        if let Ok(mut pass) = pass.try_borrow_mut() {
            *pass = Pass { running: phase == "start", ..Pass::default() };
        }
    });
}

/// A Python object that holds a part of the graph: its address, and what it holds.
pub struct Start<'a> {
    object: usize,
    held: Root<'a>,
}

enum Root<'a> {
    Tensor(&'a Tensor),
    Node(&'a NodeRef),
    /// A Function's context that its node keeps: who has it keeps the node, so that it counts as a handle.
    Shown(Id<Node>),
}

impl<'a> Start<'a> {
    fn new<T>(value: &T, held: Root<'a>) -> Start<'a> {
        Start { object: std::ptr::from_ref(value) as usize - VALUE_OFFSET.load(Ordering::Relaxed), held }
    }
    /// The object around `value`, which stands for a tensor.
    pub fn tensor<T>(value: &T, tensor: &'a Tensor) -> Start<'a> {
        Start::new(value, Root::Tensor(tensor))
    }
    /// The object around `value`, which keeps a node.
    pub fn node<T>(value: &T, node: &'a NodeRef) -> Start<'a> {
        Start::new(value, Root::Node(node))
    }
    /// The context around `value`, which its node keeps.
    pub fn shown<T>(value: &T, node: Id<Node>) -> Start<'a> {
        Start::new(value, Root::Shown(node))
    }
}

/// Shows the collector what it asks for; false when this is not a call of a collection that we follow.
pub fn traverse(start: &Start<'_>, visit: &PyVisit<'_>) -> Result<bool, PyTraverseError> {
    PASS.with(|pass| {
        let Ok(mut pass) = pass.try_borrow_mut() else { return Ok(false) };
        let Some(phase) = pass.phase(start.object, visit) else { return Ok(false) };
        let mut outcome = Ok(());
        pass.walk(phase, start, |found| {
            let mut see = |object: *mut std::ffi::c_void| {
                if outcome.is_ok() && !object.is_null() {
                    // SAFETY: what we found keeps the object alive, and the collector runs with the interpreter held.
                    let object = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Py<PyAny>>(object) };
                    outcome = visit.call(&object);
                    std::mem::forget(object);
                }
            };
            match found {
                Found::Node(node) => node.visit_hosts(phase == Phase::Spread, &mut see),
                Found::Tensor(tensor) => tensor.visit_host_state(&mut see),
            }
        });
        outcome.map(|()| true)
    })
}

/// What may hold Python objects.
enum Found<'a> {
    Node(&'a NodeRef),
    Tensor(&'a Tensor),
}

/// The collector breaks a cycle: what garbage nodes and tensors keep goes.
pub fn clear(start: &Start<'_>) {
    let mut gone = Vec::new();
    let mut bare = Vec::new();
    PASS.with(|pass| {
        if let Ok(mut pass) = pass.try_borrow_mut()
            && pass.running
            && pass.counted.contains(&start.object)
        {
            // Where memory for this list is missing, the objects stay, and are garbage at the next collection.
            pass.walk(Phase::Clear, start, |found| match found {
                Found::Node(node) if gone.try_reserve(1).is_ok() => gone.push(node.give_up()),
                Found::Tensor(tensor) if bare.try_reserve(1).is_ok() => bare.push(tensor.clone()),
                _ => {}
            });
        }
    });
    // Dropped here: whatever runs now may come back to us.
    drop(gone);
    for tensor in &bare {
        tensor.drop_host_state();
    }
}

/// Whether the collector subtracts: then alone it passes the object itself to its visitor, or nothing where Python is
/// free-threaded.
fn subtracts(visit: &PyVisit<'_>, object: usize) -> bool {
    const { assert!(size_of::<PyVisit<'_>>() == size_of::<[usize; 2]>()) };
    // SAFETY: a visitor is a function and what to pass to it, in some order: two words, read as numbers.
    let words = unsafe { std::ptr::from_ref(visit).cast::<[usize; 2]>().read() };
    words.contains(&if cfg!(Py_GIL_DISABLED) { 0 } else { object })
}

/// The Function's context that a node keeps, by its address, or 0.
fn context_of(node: &Node) -> usize {
    if let Kind::Custom(custom) = &node.kind { custom.host() as usize } else { 0 }
}

impl Pass {
    /// In which phase an object is asked; nothing when the collection is none that we follow.
    fn phase(&mut self, object: usize, visit: &PyVisit<'_>) -> Option<Phase> {
        if !self.running {
            return None;
        }
        if !subtracts(visit, object) {
            return self.counted.contains(&object).then_some(Phase::Spread);
        }
        if self.counted.contains(&object) {
            // A second pass, as finalizers may have revived objects; what was reached stays so.
            *self = Pass { running: true, kept: std::mem::take(&mut self.reached), ..Pass::default() };
        }
        // An object that is not counted seems to be held by something else, and stays.
        if self.counted.try_reserve(1).is_ok() {
            self.counted.insert(object);
        }
        Some(Phase::Subtract)
    }

    /// Calls `show` with the nodes behind an object that are due in this phase.
    fn walk(&mut self, phase: Phase, start: &Start<'_>, mut show: impl FnMut(Found<'_>)) {
        // Clones, which do not count.
        let mut ours = Vec::new();
        match start.held {
            Root::Tensor(tensor) => self.tensor(phase, tensor, 0, &mut ours, &mut show),
            Root::Node(node) => ours.push(node.clone()),
            Root::Shown(node) => {
                ours.extend(node.upgrade().filter(|node| context_of(node) == start.object));
            }
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        for node in &ours {
            if self.due(phase, node, &ours, &mut waiting) {
                waiting.push(NonNull::from(node));
            }
        }
        while let Some(node) = waiting.pop() {
            // SAFETY: one of ours, or held by a node that was looked at: nothing is freed during a phase.
            let node = unsafe { node.as_ref() };
            show(Found::Node(node));
            if let Kind::Leaf(leaf) = &node.kind
                && let Some(grad) = leaf.orphan_grad()
            {
                // It has no history to walk into.
                self.tensor(phase, &grad, 1, &mut Vec::new(), &mut show);
            }
            for held in node.held() {
                if self.due(phase, held, &ours, &mut waiting) {
                    waiting.push(NonNull::from(held));
                }
            }
        }
        self.waiting = waiting;
    }

    fn due(
        &mut self,
        phase: Phase,
        node: &NodeRef,
        ours: &[NodeRef],
        waiting: &mut Vec<NonNull<NodeRef>>,
    ) -> bool {
        // The stack has room for all of them: later phases must not fail.
        if phase == Phase::Subtract && waiting.try_reserve(self.whole.len() + 1 - waiting.len()).is_err() {
            return false;
        }
        let clones = ours.iter().filter(|own| own.ptr_eq(node)).count();
        // A context that the collector does not ask about, as somebody has it, keeps its node.
        let shown = usize::from(context_of(node) != 0);
        self.is_due(phase, node.as_ptr() as usize, Ref::count(node) - clones + shown)
    }

    /// Notes one more handle, of `all`; whether the walk goes on behind it.
    fn is_due(&mut self, phase: Phase, key: usize, all: usize) -> bool {
        match phase {
            Phase::Subtract => {
                // A handle that is not noted seems to be held by something else; those that are whole can be reached.
                let reserved = self.seen.try_reserve(1).and_then(|()| self.whole.try_reserve(1));
                if reserved.and_then(|()| self.reached.try_reserve(self.whole.len() + 1)).is_err() {
                    return false;
                }
                let seen = self.seen.entry(key).or_default();
                *seen += 1;
                *seen == all && !self.kept.contains(&key) && self.whole.insert(key)
            }
            Phase::Spread => self.whole.contains(&key) && self.reached.insert(key),
            Phase::Clear => self.whole.remove(&key) && !self.reached.contains(&key),
        }
    }

    /// The nodes that a tensor and those behind it hold, once all handles of each are known; `clones` are ours.
    fn tensor(
        &mut self,
        phase: Phase,
        tensor: &Tensor,
        clones: usize,
        ours: &mut Vec<NodeRef>,
        show: &mut impl FnMut(Found<'_>),
    ) {
        if !self.is_due(phase, tensor.id(), tensor.handles() - clones) {
            return;
        }
        show(Found::Tensor(tensor));
        let Referents { nodes, grad, tangents } = tensor.referents();
        ours.extend(nodes);
        for beside in grad.iter().chain(&tangents) {
            self.tensor(phase, beside, 1, ours, show);
        }
        if let Some(batched) = tensor.as_batched() {
            for behind in std::iter::once(&batched.value).chain(&batched.given) {
                self.tensor(phase, behind, 0, ours, show);
            }
        }
        if let Some(view) = tensor.as_view() {
            self.tensor(phase, &view.base, 0, ours, show);
        }
    }
}

/// Shows the collector the Python objects of nodes that only these handles keep alive; how many handles of each node is said beside
/// it.
pub fn traverse_nodes<'a>(
    starts: impl Iterator<Item = (&'a NodeRef, usize)>,
    visit: &PyVisit<'_>,
) -> Result<(), PyTraverseError> {
    let mut found = Owned::default();
    for (node, handles) in starts {
        found.see(node, handles);
    }
    let mut outcome = Ok(());
    while let Some(node) = found.waiting.pop() {
        node.visit_hosts(false, &mut |object| {
            if outcome.is_ok() && !object.is_null() {
                // SAFETY: the node keeps the object alive, and the collector runs with the interpreter held.
                let object = unsafe { std::mem::transmute::<*mut std::ffi::c_void, Py<PyAny>>(object) };
                outcome = visit.call(&object);
                std::mem::forget(object);
            }
        });
        for held in node.held() {
            found.see(held, 1);
        }
    }
    outcome
}

/// Shows the collector the Python objects that the nodes behind this tensor keep. Outside of a collection that we
/// follow, these are the nodes which it alone keeps alive.
pub fn traverse_tensor(
    start: &Start<'_>,
    tensor: &Tensor,
    visit: &PyVisit<'_>,
) -> Result<(), PyTraverseError> {
    if traverse(start, visit)? {
        return Ok(());
    }
    // Behind samples lies their physical tensor, which they may keep alone, too.
    let physical = tensor.physical();
    if tensor.handles() != 1 || physical.handles() != 1 {
        return Ok(());
    }
    // The tensor itself and `.grad`'s own graph.
    let Referents { nodes, grad, .. } = physical.referents();
    // Two handles: the leaf's and ours.
    let beyond = grad.filter(|grad| grad.handles() == 2).map(|grad| grad.referents().nodes);
    // To each of the tensors' own handles comes ours.
    traverse_nodes(nodes.iter().chain(beyond.iter().flatten()).map(|node| (node, 2)), visit)
}

/// The nodes that have no other handles than those that were seen: they go when the first of them goes.
#[derive(Default)]
struct Owned<'a> {
    waiting: Vec<&'a NodeRef>,
    /// How often nodes with several handles were seen.
    seen: HashMap<*const Node, usize>,
}

impl<'a> Owned<'a> {
    fn see(&mut self, node: &'a NodeRef, handles: usize) {
        // An object that is not shown seems to be held by something else.
        if self.seen.try_reserve(1).is_err() || self.waiting.try_reserve(1).is_err() {
            return;
        }
        let all = Ref::count(node);
        let seen = if all == handles {
            all
        } else {
            let seen = self.seen.entry(std::ptr::from_ref::<Node>(node)).or_default();
            *seen += handles;
            *seen
        };
        if seen == all {
            self.waiting.push(node);
        }
    }
}
