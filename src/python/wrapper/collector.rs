//! Python's garbage collector and the graph. A cycle may run through a node's hook, context or packed
//! value, while several tensors of the cycle share the node: none of them alone owns it, all of them
//! together do.
//!
//! The collector works in two phases. First it subtracts the references between the candidate objects; then
//! it marks the objects that can be reached from those with references left over. In the first phase we
//! report a node's Python objects once, when the last handle of the node was found in a candidate; in the
//! second phase, from the first reachable object that leads there. Objects that were reported but not
//! reached are garbage.

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

/// The state of a collection in this thread. Tensors and nodes are identified by address: nothing is freed
/// during a phase.
#[derive(Default)]
struct Pass {
    running: bool,
    /// The Python objects whose handles were counted.
    counted: HashSet<usize>,
    /// The number of handles found so far, for each tensor or node.
    seen: HashMap<usize, usize>,
    /// The tensors and nodes of which all handles were found.
    whole: HashSet<usize>,
    /// Those of `whole` that are reachable from outside.
    reached: HashSet<usize>,
    /// Those that were reached in an earlier pass of the same collection.
    kept: HashSet<usize>,
    /// The stack of a walk, kept for its memory.
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

/// Registers callbacks for the collector's start and stop. Must be called before a node holds its first
/// Python object.
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
    /// A Function's context, which its node holds. Whoever holds the context also keeps the node alive, so
    /// it counts as a handle.
    Shown(Id<Node>),
}

impl<'a> Start<'a> {
    fn new<T>(value: &T, held: Root<'a>) -> Start<'a> {
        Start { object: std::ptr::from_ref(value) as usize - VALUE_OFFSET.load(Ordering::Relaxed), held }
    }
    /// The object that contains `value` and stands for a tensor.
    pub fn tensor<T>(value: &T, tensor: &'a Tensor) -> Start<'a> {
        Start::new(value, Root::Tensor(tensor))
    }
    /// The object that contains `value` and holds a node.
    pub fn node<T>(value: &T, node: &'a NodeRef) -> Start<'a> {
        Start::new(value, Root::Node(node))
    }
    /// The context that contains `value` and is held by its node.
    pub fn shown<T>(value: &T, node: Id<Node>) -> Start<'a> {
        Start::new(value, Root::Shown(node))
    }
}

/// Reports the objects behind `start` to the collector. Returns false if the call is not part of a
/// collection that we follow.
pub fn traverse(start: &Start<'_>, visit: &PyVisit<'_>) -> Result<bool, PyTraverseError> {
    PASS.with(|pass| {
        let Ok(mut pass) = pass.try_borrow_mut() else { return Ok(false) };
        let Some(phase) = pass.phase(start.object, visit) else { return Ok(false) };
        let mut outcome = Ok(());
        pass.walk(phase, start, |found| {
            let mut see = |object: *mut std::ffi::c_void| {
                if outcome.is_ok() && !object.is_null() {
                    // SAFETY: the tensor or node keeps the object alive, and this thread is attached during
                    // a collection.
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

/// A tensor or node that may hold Python objects.
enum Found<'a> {
    Node(&'a NodeRef),
    Tensor(&'a Tensor),
}

/// Breaks a cycle for the collector: drops the objects that garbage nodes and tensors hold.
pub fn clear(start: &Start<'_>) {
    let mut gone = Vec::new();
    let mut bare = Vec::new();
    PASS.with(|pass| {
        if let Ok(mut pass) = pass.try_borrow_mut()
            && pass.running
            && pass.counted.contains(&start.object)
        {
            // Without memory for this list the objects stay, and the next collection finds them again.
            pass.walk(Phase::Clear, start, |found| match found {
                Found::Node(node) if gone.try_reserve(1).is_ok() => gone.push(node.give_up()),
                Found::Tensor(tensor) if bare.try_reserve(1).is_ok() => bare.push(tensor.clone()),
                _ => {}
            });
        }
    });
    // Dropped here, outside of `PASS`: destructors may call us again.
    drop(gone);
    for tensor in &bare {
        tensor.drop_host_state();
    }
}

/// Returns true in the subtracting phase. Only in that phase does the collector pass the object itself to
/// its visitor (free-threaded Python passes null).
fn subtracts(visit: &PyVisit<'_>, object: usize) -> bool {
    const { assert!(size_of::<PyVisit<'_>>() == size_of::<[usize; 2]>()) };
    // SAFETY: a `PyVisit` is a function pointer and its argument, in some order: two words, read as
    // numbers.
    let words = unsafe { std::ptr::from_ref(visit).cast::<[usize; 2]>().read() };
    words.contains(&if cfg!(Py_GIL_DISABLED) { 0 } else { object })
}

/// Returns the address of the Function's context that a node holds, or 0.
fn context_of(node: &Node) -> usize {
    if let Kind::Custom(custom) = &node.kind { custom.host() as usize } else { 0 }
}

impl Pass {
    /// Determines the phase in which an object is traversed; None if we do not follow this collection.
    fn phase(&mut self, object: usize, visit: &PyVisit<'_>) -> Option<Phase> {
        if !self.running {
            return None;
        }
        if !subtracts(visit, object) {
            return self.counted.contains(&object).then_some(Phase::Spread);
        }
        if self.counted.contains(&object) {
            // The collector makes a second pass since finalizers may have revived objects; objects reached
            // before stay reached.
            *self = Pass { running: true, kept: std::mem::take(&mut self.reached), ..Pass::default() };
        }
        // An object that is not counted looks as if others held it, and so is not freed.
        if self.counted.try_reserve(1).is_ok() {
            self.counted.insert(object);
        }
        Some(Phase::Subtract)
    }

    /// Calls `show` with the nodes behind an object whose turn it is in this phase.
    fn walk(&mut self, phase: Phase, start: &Start<'_>, mut show: impl FnMut(Found<'_>)) {
        // Our own clones; they are subtracted from the handle counts.
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
            // SAFETY: the node is in `ours` or is held by a visited node, and nothing is freed during a
            // phase.
            let node = unsafe { node.as_ref() };
            show(Found::Node(node));
            if let Kind::Leaf(leaf) = &node.kind
                && let Some(grad) = leaf.orphan_grad()
            {
                // The gradient is not in a graph, so there are no nodes to walk into.
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
        // Reserves room for all nodes now: later phases must not fail.
        if phase == Phase::Subtract && waiting.try_reserve(self.whole.len() + 1 - waiting.len()).is_err() {
            return false;
        }
        let clones = ours.iter().filter(|own| own.ptr_eq(node)).count();
        // If the collector does not traverse a context because others hold it, the context still keeps its
        // node alive.
        let shown = usize::from(context_of(node) != 0);
        self.is_due(phase, node.as_ptr() as usize, Ref::count(node) - clones + shown)
    }

    /// Counts one more handle out of `all`; returns true if the walk continues behind it.
    fn is_due(&mut self, phase: Phase, key: usize, all: usize) -> bool {
        match phase {
            Phase::Subtract => {
                // An uncounted handle looks as if others held the node, which is safe. Every node in
                // `whole` can be reached later, so room for that is reserved too.
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

    /// Collects the nodes that a tensor and those behind it hold, once all handles of each are found;
    /// `clones` of the handles are ours.
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
        let Referents { nodes, grad, beside } = tensor.referents();
        ours.extend(nodes);
        for held in grad.iter().chain(&beside) {
            self.tensor(phase, held, 1, ours, show);
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

/// Reports the Python objects of nodes that only these handles keep alive. Each node comes with the number
/// of its handles.
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
                // SAFETY: the node keeps the object alive, and this thread is attached during a collection.
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

/// Reports the Python objects that the nodes behind this tensor hold. Outside of a collection that we
/// follow, only nodes that this tensor alone keeps alive count.
pub fn traverse_tensor(
    start: &Start<'_>,
    tensor: &Tensor,
    visit: &PyVisit<'_>,
) -> Result<(), PyTraverseError> {
    if traverse(start, visit)? {
        return Ok(());
    }
    // A batched tensor may be the only holder of its physical tensor.
    let physical = tensor.physical();
    if tensor.handles() != 1 || physical.handles() != 1 {
        return Ok(());
    }
    // The nodes of the tensor itself, and those of `.grad`'s own graph.
    let Referents { nodes, grad, .. } = physical.referents();
    // Two handles: the leaf's and ours.
    let beyond = grad.filter(|grad| grad.handles() == 2).map(|grad| grad.referents().nodes);
    // Each node has the tensor's handle and ours.
    traverse_nodes(nodes.iter().chain(beyond.iter().flatten()).map(|node| (node, 2)), visit)
}

/// Nodes all of whose handles were seen: they are freed together with the first of them.
#[derive(Default)]
struct Owned<'a> {
    waiting: Vec<&'a NodeRef>,
    /// The number of handles seen so far, for nodes with several.
    seen: HashMap<*const Node, usize>,
}

impl<'a> Owned<'a> {
    fn see(&mut self, node: &'a NodeRef, handles: usize) {
        // An object that is not reported looks as if others held it.
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
