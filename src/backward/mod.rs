//! The scheduler: runs nodes in decreasing order of their sequence numbers, calls their derivatives, adds up
//! gradients, and sets the `.grad` of leaves. A node's number exceeds those of its inputs, so the node with
//! the highest number among those with a gradient is always ready, without counting dependencies beforehand.
//! The order of additions is fixed, so that the same program gives the same bits.

mod accumulate;
mod copy_slices;
pub mod forward_mode;
pub mod graph_task;
mod leaf_counts;
mod match_gradient;
mod older;
mod ready_queue;
pub mod sparse;
pub mod sum_buffers;
mod together;

use crate::base::{Error, Guidance, Result, profile, try_alloc};
use crate::operator::batch;
use crate::operator::pointwise::nan::has_nan;
use crate::storage::access;
use crate::tensor::{
    Edge, Grads, Kind, Node, NodeRef, Step, Tensor, When, add_failed_node, anomaly, any_hosted, mode,
    saved_hooks, with_snapshot,
};
pub use accumulate::{enforce_layouts, hand_over};
use copy_slices::DeriveOptions;
use match_gradient::{fit, fit_root};
use ready_queue::{ReadyNode, ReadyQueue, key};
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use together::Around;

/// The arguments of a backward.
pub struct Request<'a> {
    pub roots: &'a [(Edge, Tensor)],
    pub retain_graph: bool,
    pub create_graph: bool,
    /// If set, only the gradients of these edges are computed (`inputs=`, or `autograd.grad`).
    pub inputs: Option<&'a [Edge]>,
    /// True if the leaves get `.grad` (`backward`); false if the gradients are returned (`grad`).
    pub accumulate: bool,
    /// Called from time to time; an error stops the backward (Ctrl-C).
    pub poll: &'a mut dyn FnMut() -> Result<()>,
}

/// Runs a backward. With `inputs`, returns their gradients.
pub fn run(request: Request) -> Result<Vec<Option<Tensor>>> {
    let Request { roots, retain_graph, create_graph, inputs, accumulate, poll } = request;
    sum_buffers::check()?;
    let plan = inputs.map(|inputs| BackwardPlan::find(roots, inputs)).transpose()?;
    let captured = try_alloc::filled(None, inputs.map_or(0, <[Edge]>::len))?;
    let ready_queue = ReadyQueue::new(create_graph);
    let mut run =
        BackwardRun { plan, captured, ready_queue, retain_graph, create_graph, accumulate, apart: 0 };
    if access::captures() {
        older::note(roots, |node| run.executes(node))?;
    }
    let _recording = GradModeGuard::start(create_graph);
    let _hooks = saved_hooks::RestoreHooks::now();
    let watched = any_hosted();
    if watched {
        let starts = roots.iter().map(|(edge, _)| &edge.node);
        run.ready_queue.count(leaf_counts::count_edges(starts, |node| run.executes(node))?);
    }
    let task = match &run.plan {
        _ if !watched => graph_task::TaskGuard::without_task(),
        plan => graph_task::TaskGuard::new(roots, accumulate, plan.as_ref().map(|p| &p.leads))?,
    };
    // A single root runs, with its hooks, even if it leads to no needed input.
    let only = roots.len() == 1;
    for (i, (edge, grad)) in roots.iter().enumerate() {
        let grad = fit_root(i, edge, grad)?;
        if only || run.plan.as_ref().is_none_or(|plan| plan.leads(&edge.node)) {
            run.ready_queue.add(edge, Some(grad))?;
        }
    }
    match run.go(poll) {
        Ok(()) => task.finish().map(|()| run.captured),
        Err(error) => {
            if !watched {
                run.finish_leaves();
            }
            Err(error)
        }
    }
}

/// For each of `leaves`, true if it is reachable from `starts`.
pub fn reached(starts: &[NodeRef], leaves: &[NodeRef]) -> Result<Vec<bool>> {
    let uses = leaf_counts::count_edges(starts.iter(), |_| true)?;
    let mut reached = try_alloc::filled(false, leaves.len())?;
    for (place, leaf) in reached.iter_mut().zip(leaves) {
        *place = uses.contains_key(&key(leaf));
    }
    Ok(reached)
}

struct BackwardRun {
    plan: Option<BackwardPlan>,
    captured: Vec<Option<Tensor>>,
    ready_queue: ReadyQueue,
    retain_graph: bool,
    create_graph: bool,
    accumulate: bool,
    /// The address of the replay whose nodes run one by one.
    apart: usize,
}

impl BackwardRun {
    fn go(&mut self, poll: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let mut runs_done = 0u32;
        while let Some(mut ready) = self.ready_queue.next() {
            runs_done = runs_done.wrapping_add(1);
            if runs_done & 1023 == 0 {
                poll()?;
            }
            // A node or a hook may have changed the grad mode.
            mode::set_grad_enabled(self.create_graph);
            if ready.node.replayed.is_some() {
                match self.run_together(ready)? {
                    Some(alone) => ready = alone,
                    None => continue,
                }
            }
            let _span = span(profile::EventKind::Turn, &ready.node);
            // If a needed input lies behind a node, its output hooks do not affect the gradient captured at
            // the node.
            let beyond = self.plan.as_ref().is_some_and(|p| p.passes(&ready.node));
            if beyond {
                self.capture(&ready);
            }
            if ready.node.has_hooks() {
                output_hooks(&mut ready).map_err(|error| failed(error, &ready.node))?;
            }
            if !beyond {
                self.capture(&ready);
            }
            if ready.node.is_leaf() {
                self.accumulate(&ready).map_err(|error| failed(error, &ready.node))?;
            } else if self.executes(&ready.node) {
                self.execute(ready)?;
            }
        }
        Ok(())
    }

    /// Runs all nodes of a replay of which one is next, or returns that one because it must run alone.
    fn run_together(&mut self, next: ReadyNode) -> Result<Option<ReadyNode>> {
        let Some((replayed, _)) = next.node.replayed.clone() else { return Ok(Some(next)) };
        let address = Arc::as_ptr(&replayed) as usize;
        if self.create_graph || self.apart == address || !together::is_possible() {
            return Ok(Some(next));
        }
        let (node, plan) = (next.node.clone(), self.plan.as_ref());
        let around = Around {
            runs: &|node| plan.is_none_or(|plan| plan.passes(node) && !plan.wants(node)),
            leads: &|node| plan.is_none_or(|plan| plan.leads(node)),
            derive: &|node, grads| derive(node, grads, wanted(node, |_| true), true, false),
            retain_graph: self.retain_graph,
            is_for_leaves: self.accumulate && plan.is_none() && accumulate::enforces_layouts(),
        };
        let left = together::run(&mut self.ready_queue, &replayed, next, &around);
        if !matches!(left, Ok(None)) {
            self.apart = address;
        }
        left.map_err(|error| failed(error, &node))
    }

    fn capture(&mut self, ready: &ReadyNode) {
        let Some(plan) = &self.plan else { return };
        for (slot, output) in plan.captures(&ready.node) {
            self.captured[slot] = ready.grads.get(output).cloned().flatten();
        }
    }

    /// True if the node's derivative must run: a needed input lies behind it, or its own output accumulates a
    /// gradient.
    fn executes(&self, node: &NodeRef) -> bool {
        let plan = self.plan.as_ref();
        plan.is_none_or(|p| p.passes(node) || (self.accumulate && p.wants(node)))
    }

    fn accumulate(&self, ready: &ReadyNode) -> Result<()> {
        match &ready.node.kind {
            Kind::Leaf(leaf)
                if self.accumulate && self.plan.as_ref().is_none_or(|p| p.wants(&ready.node)) =>
            {
                let _span = span(profile::EventKind::Derivative, &ready.node);
                accumulate::accumulate(ready, leaf, self.create_graph)
            }
            _ => Ok(()),
        }
    }

    fn execute(&mut self, ready: ReadyNode) -> Result<()> {
        let ReadyNode { node, grads } = ready;
        let (retain, create) = (self.retain_graph, self.create_graph);
        let done = run_node(&node, grads, &mut self.ready_queue, self.plan.as_ref(), retain, create);
        done.map_err(|error| {
            let error = failed(error, &node);
            self.ready_queue.put_back(node);
            error
        })
    }

    /// After an error, accumulates the gradients of leaves that are already complete.
    fn finish_leaves(&mut self) {
        let (leaves, rest) = self.ready_queue.take_all();
        let starts = rest.iter().map(|ready| &ready.node);
        // The first error takes precedence.
        let Ok(uses) = leaf_counts::count_edges(starts, |node| self.executes(node)) else { return };
        for ready in leaves.iter().filter(|ready| !uses.contains_key(&key(&ready.node))) {
            let _ = self.accumulate(ready);
        }
    }
}

/// Calls a single node with gradients of its outputs: no hook runs, nothing is freed.
pub fn call(node: &NodeRef, grads: SmallVec<[Option<Tensor>; 1]>) -> Result<Grads> {
    let create_graph = mode::grad_enabled();
    if let Kind::Leaf(leaf) = &node.kind {
        let ready = ReadyNode { node: node.clone(), grads };
        return accumulate::accumulate(&ready, leaf, create_graph).map(|()| Grads::new());
    }
    let results = derive(node, &grads, wanted(node, |_| true), true, create_graph)?;
    let fitting = |(i, (edge, grad)): (usize, (&Option<Edge>, Option<Tensor>))| match edge {
        Some(edge) => grad.map(|grad| fit(node, i, edge, grad)).transpose(),
        None => Ok(None),
    };
    node.edges.iter().zip(results).enumerate().map(fitting).collect()
}

/// Adds the node to an error; in anomaly mode, reports the forward call that made the node.
#[cold]
fn failed(error: Error, node: &Node) -> Error {
    if anomaly::enabled() {
        node.report_failure();
    }
    add_failed_node(error, node)
}

/// Runs one node: its hooks, its derivative, and the delivery of its gradients.
fn run_node(
    node: &NodeRef,
    mut grads: SmallVec<[Option<Tensor>; 1]>,
    ready_queue: &mut ReadyQueue,
    plan: Option<&BackwardPlan>,
    retain_graph: bool,
    create_graph: bool,
) -> Result<()> {
    let hooked = node.has_hooks();
    if hooked {
        for (_, hook) in node.hooks_at(|w| w == When::Before)? {
            if let Some(changed) = hook.call(&[], &grads)? {
                grads = changed.into_iter().collect();
            }
        }
    }
    let wanted = wanted(node, |edge| plan.is_none_or(|plan| plan.leads(&edge.node)));
    let shown = sum_buffers::show(node, wanted, ready_queue, create_graph);
    let derived = derive(node, &grads, wanted, retain_graph, create_graph);
    drop(shown);
    let mut results = derived?;
    if hooked {
        // Hooks see the gradients already converted to the shape and dtype of the inputs.
        for (i, (edge, result)) in node.edges.iter().zip(&mut results).enumerate() {
            if let Some(edge) = edge {
                *result = result.take().map(|grad| fit(node, i, edge, grad)).transpose()?;
            }
        }
        let is_shown =
            |i: usize| if let Kind::Custom(custom) = &node.kind { custom.is_tensor(i) } else { true };
        for (_, hook) in node.hooks_at(|w| w == When::After)? {
            let shown: Grads =
                (0..).zip(&results).filter(|(i, _)| is_shown(*i)).map(|(_, g)| g.clone()).collect();
            if let Some(changed) = hook.call(&shown, &grads)? {
                let places = (0..results.len()).filter(|i| is_shown(*i)).collect::<Vec<_>>();
                places.into_iter().zip(changed).for_each(|(i, new)| results[i] = new);
            }
        }
    }
    drop(grads);
    for (i, (edge, grad)) in node.edges.iter().zip(results).enumerate() {
        let Some(edge) = edge else { continue };
        if wanted >> i.min(63) & 1 == 1 {
            let grad = grad.map(|g| fit(node, i, edge, g)).transpose()?;
            ready_queue.add(edge, grad)?;
        } else if let (Kind::Custom(_), Some(grad)) = (&node.kind, grad) {
            // A custom Function's gradient is checked even if it is not needed.
            fit(node, i, edge, grad)?;
        }
    }
    Ok(())
}

/// One bit for each edge of a node: set if there is one that `wants` a gradient.
fn wanted(node: &Node, wants: impl Fn(&Edge) -> bool) -> u64 {
    node.edges
        .iter()
        .enumerate()
        .fold(0u64, |bits, (i, edge)| bits | u64::from(edge.as_ref().is_some_and(&wants)) << i.min(63))
}

/// A profiler span around the run of a node, if a profiler is active.
#[inline]
fn span(kind: profile::EventKind, node: &Node) -> Option<Box<profile::Span>> {
    if profile::on() { open_span(kind, node) } else { None }
}

#[cold]
fn open_span(kind: profile::EventKind, node: &Node) -> Option<Box<profile::Span>> {
    let mut span = profile::open(kind, node.full_name().into())?;
    span.facts.sequence = Some(node.sequence);
    Some(Box::new(span))
}

/// Records shapes and the amount of work of a derivative in the profiler.
#[cold]
fn note_sizes(span: &mut profile::Span, node: &Node, grads: &[Option<Tensor>], wanted: u64) {
    if !profile::wants_shapes() {
        return;
    }
    let given = grads.iter().map(|grad| grad.as_ref().map_or_else(Vec::new, |g| g.shape().to_vec()));
    let made = node.edges.iter().enumerate().map(|(i, edge)| match edge {
        Some(edge) if wanted >> i.min(63) & 1 == 1 => {
            edge.node.outputs.get(edge.output as usize).map_or_else(Vec::new, |meta| meta.shape.to_vec())
        }
        _ => Vec::new(),
    });
    let (given, made): (profile::Shapes, profile::Shapes) = (given.collect(), made.collect());
    let count = match node.kind {
        Kind::Op(derivative) => derivative.flops,
        _ => None,
    };
    span.facts.flops = count.map_or(0, |count| count(&given, &made));
    span.facts.shapes = Some(given);
}

fn derive(
    node: &NodeRef,
    grads: &[Option<Tensor>],
    wanted: u64,
    retain_graph: bool,
    create_graph: bool,
) -> Result<Grads> {
    let mut span = span(profile::EventKind::Derivative, node);
    if let Some(span) = &mut span {
        note_sizes(span, node, grads, wanted);
    }
    let _parent = node.set_parent();
    crate::storage::reserve::check()?;
    try_alloc::check_list(node.edges.len().max(grads.len()))?;
    // The derivatives of operators know no sparse gradients.
    let is_operator = matches!(node.kind, Kind::Op(_) | Kind::CopySlices(_));
    let dense = if is_operator && grads.iter().flatten().any(Tensor::is_sparse) {
        let dense = |grad: &Option<Tensor>| grad.as_ref().map(sparse::to_dense).transpose();
        grads.iter().map(dense).collect::<Result<SmallVec<[Option<Tensor>; 1]>>>()?
    } else {
        SmallVec::new()
    };
    let grads = if dense.is_empty() { grads } else { &dense };
    let mut step = Step::new(node, grads, create_graph, wanted);
    let results = match &node.kind {
        Kind::Op(derivative) => {
            step.take(retain_graph)?;
            if grads.iter().all(Option::is_none) {
                Grads::from_elem(None, node.edges.len())
            } else {
                with_snapshot(|| (derivative.apply)(&step))?
            }
        }
        Kind::Custom(custom) => {
            step.take(true)?;
            let results = custom.apply(&step)?;
            if !retain_graph {
                node.release();
            }
            results
        }
        Kind::CopySlices(written) => {
            copy_slices::derive(node, written, grads, &DeriveOptions { wanted, retain_graph, create_graph })?
        }
        Kind::Leaf(_) => Grads::new(),
    };
    if anomaly::checks_nan() {
        for (i, grad) in results.iter().enumerate() {
            let Some(grad) = grad.as_ref().filter(|g| g.dtype().is_differentiable()) else { continue };
            let parts = grad.coo_parts();
            let values = parts.as_ref().map_or(grad, |parts| &parts.values);
            if values.numel() > 0 && has_nan(values)? {
                let message = format!("Function '{}' returned nan values in its {i}th output.", node.name());
                let advice = "look at the values that the operator was given: at the edge of its domain (0/0, sqrt(0), \
                    log(0)) a derivative is not finite";
                return Err(Guidance::new(message).node("operator", node).advice(advice).done());
            }
        }
    }
    Ok(results)
}

/// Runs the hooks of a node's outputs, then updates retained `.grad`s.
fn output_hooks(ready: &mut ReadyNode) -> Result<()> {
    for (when, hook) in ready.node.hooks_at(|w| matches!(w, When::Output(_)))? {
        let When::Output(output) = when else { continue };
        let at = output as usize;
        if at < ready.grads.len() {
            let changed = hook.call(&ready.grads[at..=at], &[])?;
            if let Some(Some(new)) = changed.and_then(|g| g.into_iter().next()) {
                ready.grads[at] = Some(new);
            }
        }
    }
    let retained = ready.node.hooks().retained()?;
    for (output, tensor) in retained {
        if let (Some(tensor), Some(Some(grad))) = (tensor.upgrade(), ready.grads.get(output as usize)) {
            tensor.update_grad(|old| match old {
                None => sparse::copy(grad),
                // A batched gradient of a `vmap` that has ended cannot be added to.
                Some(old) if batch::has_escaped(&old) => Ok(old),
                Some(old) => sparse::add(&old, grad),
            })?;
        }
    }
    Ok(())
}

/// Sets the grad mode to `create_graph` during a backward.
struct GradModeGuard(bool);

impl GradModeGuard {
    fn start(create_graph: bool) -> GradModeGuard {
        GradModeGuard(mode::set_grad_enabled(create_graph))
    }
}

impl Drop for GradModeGuard {
    fn drop(&mut self) {
        mode::set_grad_enabled(self.0);
    }
}

/// The nodes on paths from the roots to the needed inputs.
struct BackwardPlan {
    leads: HashSet<usize>,
    targets: HashMap<usize, SmallVec<[(usize, usize); 1]>>,
    passes: HashSet<usize>,
}

impl BackwardPlan {
    fn find(roots: &[(Edge, Tensor)], inputs: &[Edge]) -> Result<BackwardPlan> {
        let mut targets: HashMap<usize, SmallVec<[(usize, usize); 1]>> = HashMap::new();
        for (slot, edge) in inputs.iter().enumerate() {
            try_alloc::entry(&mut targets, key(&edge.node))?.push((slot, edge.output as usize));
        }
        // Depth first with an explicit stack: a node is decided after all nodes that it points to.
        let (mut leads, mut passes, mut seen) = (HashSet::new(), HashSet::new(), HashSet::new());
        let mut stack: Vec<(&NodeRef, usize)> = Vec::new();
        for (edge, _) in roots {
            if try_alloc::insert(&mut seen, key(&edge.node))? {
                try_alloc::push(&mut stack, (&edge.node, 0))?;
            }
            while let Some((node, next)) = stack.pop() {
                if let Some(edge) = node.edges.get(next) {
                    stack.push((node, next + 1));
                    if let Some(edge) = edge
                        && try_alloc::insert(&mut seen, key(&edge.node))?
                    {
                        try_alloc::push(&mut stack, (&edge.node, 0))?;
                    }
                    continue;
                }
                let through = node.edges.iter().flatten().any(|e| leads.contains(&key(&e.node)));
                if through {
                    try_alloc::insert(&mut passes, key(node))?;
                }
                if through || targets.contains_key(&key(node)) {
                    try_alloc::insert(&mut leads, key(node))?;
                }
            }
        }
        Ok(BackwardPlan { leads, targets, passes })
    }

    fn leads(&self, node: &NodeRef) -> bool {
        self.leads.contains(&key(node))
    }

    /// True if a needed input lies behind this node.
    fn passes(&self, node: &NodeRef) -> bool {
        self.passes.contains(&key(node))
    }

    fn wants(&self, node: &NodeRef) -> bool {
        self.targets.contains_key(&key(node))
    }

    fn captures(&self, node: &NodeRef) -> SmallVec<[(usize, usize); 1]> {
        self.targets.get(&key(node)).cloned().unwrap_or_default()
    }
}
