//! Backwards through the nodes that replays of one captured call make, captured in their turn: the first backward that begins
//! in a certain way runs node by node, the second is captured, and later ones replay its kernels.

use crate::base::{DType, Result, default_dtype};
use crate::capture::Capture;
use crate::capture::kind::Form;
use crate::capture::program::enter;
use crate::capture::replay::{Program, Replayed};
use crate::tensor::{EnteringGrad, LeavingGrad, Params, Start, Tensor, Together};
use smallvec::SmallVec;
use std::collections::HashSet;
use std::sync::{Arc, Mutex};

/// The backwards through the nodes of one captured call.
#[derive(Default)]
pub(super) struct Backwards {
    found: Mutex<Vec<Backward>>,
    /// Whether kernels are joined to groups.
    fuses: bool,
}

/// Backwards that begin alike.
struct Backward {
    grads: Vec<Entry>,
    is_for_leaves: bool,
    default_dtype: DType,
    state: State,
    /// How often it was captured, and how many replays were refused since the last one that was not.
    captures: u32,
    refusals: u32,
    replays: usize,
}

/// What a gradient is that enters, at the output of a node.
struct Entry {
    node: usize,
    output: usize,
    form: Option<Form>,
}

enum State {
    Seen,
    Captured(Box<CapturedBackward>),
    /// In words why it cannot be captured.
    Refused(String),
}

struct CapturedBackward {
    program: Program,
    /// The values that are given to the program after the entering gradients: the nodes that saved them, and their places there.
    saved: Vec<(usize, usize)>,
    /// The arguments of operators.
    params: Vec<(usize, Option<Params>)>,
    /// The gradients that leave: nodes, edges, and the numbers of results.
    leaving: Vec<(usize, usize, Option<usize>)>,
}

/// What is known of the captured backwards through a graph.
#[derive(Default)]
pub struct BackwardCounts {
    pub captures: usize,
    /// How often one was replayed.
    pub replays: usize,
    /// The last one's kernels, the kernels and groups that a replay runs, and the groups.
    pub kernels: usize,
    pub units: usize,
    pub groups: usize,
    /// The bytes of memory that only their kernels reach.
    pub bytes: usize,
    /// Why one cannot be captured.
    pub reason: Option<String>,
}

/// More ways to begin run node by node; a backward is captured again if replays are refused so often, and so many times.
const MOST: usize = 8;
const PATIENCE: u32 = 2;
const MOST_CAPTURES: u32 = 4;
/// A backward through fewer nodes is not worth a capture.
const FEWEST: usize = 2;

impl Together for Backwards {
    fn run(
        &self,
        start: &Start,
        one_by_one: &mut dyn FnMut() -> Result<Vec<LeavingGrad>>,
    ) -> Result<Option<Vec<LeavingGrad>>> {
        if start.nodes.iter().flatten().count() < FEWEST {
            return Ok(None);
        }
        let Some(mut found) = enter(&self.found) else { return Ok(None) };
        let Some(backward) = found.iter_mut().find(|backward| backward.matches(start)) else {
            if found.len() < MOST {
                found.push(Backward::new(start));
            }
            return Ok(None);
        };
        match &backward.state {
            State::Refused(_) => Ok(None),
            State::Seen => backward.capture(start, one_by_one, self.fuses),
            State::Captured(captured) => {
                let leaving = captured.replay(start)?;
                backward.count(leaving.is_some());
                Ok(leaving)
            }
        }
    }
}

impl Backwards {
    pub fn new(fuses: bool) -> Backwards {
        Backwards { found: Mutex::default(), fuses }
    }

    pub fn counts(&self) -> BackwardCounts {
        let mut counts = BackwardCounts::default();
        // A thread that captures one may wait for the interpreter.
        let Some(found) = enter(&self.found) else { return counts };
        for backward in found.iter() {
            counts.replays += backward.replays;
            match &backward.state {
                State::Seen => {}
                State::Captured(captured) => {
                    let program = &captured.program;
                    counts.captures += 1;
                    (counts.kernels, counts.units) = (program.kernels(), program.units());
                    counts.groups = program.counts().groups;
                    counts.bytes += program.bytes();
                }
                State::Refused(reason) => counts.reason = Some(reason.clone()),
            }
        }
        counts
    }
}

impl Backward {
    fn new(start: &Start) -> Backward {
        let form = |grad: &Tensor| Form::of(&grad.body());
        let entry = |&EnteringGrad { node, output, grad }: &EnteringGrad| Entry {
            node,
            output,
            form: grad.map(form),
        };
        Backward {
            grads: start.grads.iter().map(entry).collect(),
            is_for_leaves: start.is_for_leaves,
            default_dtype: default_dtype(),
            state: State::Seen,
            captures: 0,
            refusals: 0,
            replays: 0,
        }
    }

    fn matches(&self, start: &Start) -> bool {
        let is_alike = |(own, grad): (&Entry, &EnteringGrad)| {
            own.node == grad.node
                && own.output == grad.output
                && match (&own.form, grad.grad) {
                    (Some(form), Some(grad)) => form.matches(&grad.body()),
                    (None, None) => true,
                    _ => false,
                }
        };
        self.grads.len() == start.grads.len()
            && self.is_for_leaves == start.is_for_leaves
            && self.default_dtype == default_dtype()
            && self.grads.iter().zip(start.grads).all(is_alike)
    }

    /// Counts a replay that was done, or refused because memory is shared in another way than in the captured backward.
    fn count(&mut self, is_done: bool) {
        if is_done {
            self.replays += 1;
            self.refusals = 0;
        } else {
            self.refusals += 1;
            if self.refusals >= PATIENCE && self.captures < MOST_CAPTURES {
                self.state = State::Seen;
            }
        }
    }

    /// Runs the nodes, and captures that. If that is not possible, only these results are used.
    fn capture(
        &mut self,
        start: &Start,
        one_by_one: &mut dyn FnMut() -> Result<Vec<LeavingGrad>>,
        fuses: bool,
    ) -> Result<Option<Vec<LeavingGrad>>> {
        self.captures += 1;
        self.refusals = 0;
        // They are made before the capture begins, and so are no tensors of it.
        let (saved, values) = saved_values(start);
        let mut known: Vec<Tensor> = start.grads.iter().filter_map(|grad| grad.grad.cloned()).collect();
        known.extend(values);
        let capture = Capture::begin(true)?;
        let leaving = match one_by_one() {
            Ok(leaving) => leaving,
            Err(error) => {
                // The engine meets it again, and says where it is from.
                self.state = State::Refused(error.to_string());
                return Ok(None);
            }
        };
        let results: Vec<Tensor> = leaving.iter().filter_map(|leaving| leaving.grad.clone()).collect();
        let call = capture.end_call();
        let program = call.and_then(|call| call.program(&known, known.len(), &results, || {}, fuses));
        let is_dense = results.iter().all(|grad| !grad.is_sparse() && !grad.is_special());
        self.state = match program {
            _ if !is_dense => State::Refused("a gradient is sparse, or lazily conjugated or negated".into()),
            Err(error) => State::Refused(error.to_string()),
            Ok(program) if program.has_effects() || program.numbers().next().is_some() => {
                State::Refused("it changes more than gradients".into())
            }
            Ok(program) => {
                let mut results = 0..;
                let place = |LeavingGrad { node, edge, grad }: &LeavingGrad| {
                    (*node, *edge, grad.as_ref().and_then(|_| results.next()))
                };
                let leaving = leaving.iter().map(place).collect();
                let nodes = start.nodes.iter().enumerate();
                let params =
                    nodes.filter_map(|(at, node)| Some((at, node.as_ref()?.params.clone()))).collect();
                State::Captured(Box::new(CapturedBackward { program, saved, params, leaving }))
            }
        };
        Ok(Some(leaving))
    }
}

/// The values that nodes saved, as tensors, one for each storage; and the nodes with their places there.
fn saved_values(start: &Start) -> (Vec<(usize, usize)>, Vec<Tensor>) {
    let (mut seen, mut places, mut values) = (HashSet::new(), Vec::new(), Vec::new());
    for (number, node) in start.nodes.iter().enumerate() {
        let Some(node) = node else { continue };
        for (at, saved) in node.saves().values.iter().enumerate() {
            if let Some(body) = saved.body()
                && seen.insert(body.storage.alias_id())
            {
                places.push((number, at));
                values.push(Tensor::of(body.clone(), None));
            }
        }
    }
    (places, values)
}

impl CapturedBackward {
    /// Runs the kernels again; `None` if these gradients or values differ from the captured ones in more than elements.
    fn replay(&self, start: &Start) -> Result<Option<Vec<LeavingGrad>>> {
        let is_same = |(number, params): &(usize, Option<Params>)| {
            let address =
                |params: &Option<Params>| params.as_ref().map(|params| Arc::as_ptr(params).cast::<()>());
            start.nodes[*number].is_some_and(|node| address(&node.params) == address(params))
        };
        if !self.params.iter().all(is_same) {
            return Ok(None);
        }
        let grads: SmallVec<[&Tensor; 4]> = start.grads.iter().filter_map(|grad| grad.grad).collect();
        let used = self.program.used();
        let mut values: SmallVec<[Tensor; 16]> = SmallVec::new();
        for &number in used.iter().filter(|&&number| number >= grads.len()) {
            let (node, at) = self.saved[number - grads.len()];
            let Some(node) = start.nodes[node] else { return Ok(None) };
            let saves = node.saves();
            let Some(body) = saves.values.get(at).and_then(|saved| saved.body()) else { return Ok(None) };
            values.push(Tensor::of(body.clone(), None));
        }
        let mut next = values.iter();
        let mut given: SmallVec<[&Tensor; 16]> = SmallVec::with_capacity(used.len());
        given.extend(used.iter().filter_map(|&number| grads.get(number).copied().or_else(|| next.next())));
        let made = match self.program.replay(&given, &[]) {
            Ok(Replayed::Results(made)) => made,
            Ok(Replayed::Refused(_)) => return Ok(None),
            Err(failed) => return Err(failed.error),
        };
        let mut made: SmallVec<[Option<Tensor>; 16]> = made.into_iter().map(Some).collect();
        let leaving = self.leaving.iter().map(|&(node, edge, result)| LeavingGrad {
            node,
            edge,
            grad: result.and_then(|result| made[result].take()),
        });
        Ok(Some(leaving.collect()))
    }
}
