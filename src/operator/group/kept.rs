//! A captured run of a program: what was checked when it was captured is kept, so that a replay only computes numbers and
//! runs groups.

use super::run::{Lowered, Rule, Single};
use crate::base::group::Number;
use crate::base::{Result, Scalar};
use crate::cpu::group::Tiles;
use crate::cpu::group::code::Code;
use crate::operator::bodies::holds;
use crate::tensor::Body;
use smallvec::SmallVec;
use std::ptr::null_mut;
use std::sync::Arc;

/// The checked items of a run, over stand-ins.
pub struct Kept {
    rule: Arc<Rule>,
    /// The scalars of each item, one after another.
    scalars: Vec<Body>,
    batches: Vec<Batch>,
}

/// Items that one compiled group runs over.
struct Batch {
    lowered: Arc<Lowered>,
    tiles: Tiles,
    items: Vec<usize>,
    /// The operands of each item, one after another.
    operands: Vec<Body>,
}

impl Kept {
    /// Keeps items in host memory with dense operands; `None` for others. `bodies` and `scalars` are those of each item,
    /// one after another.
    pub fn new(
        rule: &Arc<Rule>,
        lowered: &[Arc<Lowered>],
        bodies: Vec<Body>,
        scalars: Vec<Body>,
    ) -> Option<Kept> {
        let width = bodies.len() / lowered.len().max(1);
        let mut batches: Vec<Batch> = Vec::new();
        for (item, (lowered, own)) in lowered.iter().zip(bodies.chunks(width.max(1))).enumerate() {
            let n = own.first()?.numel();
            let fits = |body: &Body| {
                body.device().is_cpu() && body.numel() == n && n > 0 && body.layout.is_contiguous()
            };
            if !own.iter().all(fits) {
                return None;
            }
            let same = |batch: &&mut Batch| {
                Arc::ptr_eq(&batch.lowered, lowered)
                    && batch.operands.first().is_some_and(|body| body.numel() == n)
            };
            match batches.iter_mut().find(same) {
                Some(batch) => {
                    batch.items.push(item);
                    batch.operands.extend_from_slice(own);
                }
                None => {
                    let dtypes: SmallVec<[_; 8]> = own.iter().map(|body| body.dtype).collect();
                    let tiles = Tiles::new(&Code::of_group(&lowered.loops, &dtypes, n)?)?;
                    let (lowered, operands) = (Arc::clone(lowered), own.to_vec());
                    batches.push(Batch { lowered, tiles, items: vec![item], operands });
                }
            }
        }
        Some(Kept { rule: Arc::clone(rule), scalars, batches })
    }

    /// Runs the program with these numbers.
    pub fn run(&self, given: &[f64]) -> Result<()> {
        let program = self.rule.program();
        let width = program.scalars;
        let address = |body: &Body| {
            let start = body.storage.host().unwrap_or(null_mut());
            start.wrapping_add(body.layout.offset * body.dtype.size())
        };
        let read = |body: &Body| {
            // SAFETY: a scalar has one element.
            let value = unsafe { Scalar::read(body.dtype, address(body)) }.as_f64();
            Single { value, dtype: body.dtype }
        };
        // One scalar may serve all items, so all are read before any is written.
        let singles: Vec<Single> = self.scalars.iter().map(read).collect();
        let mut values = Vec::new();
        for batch in &self.batches {
            let mut parameters: Vec<SmallVec<[Scalar; 8]>> = Vec::new();
            let mut parameters_of: Vec<usize> = Vec::with_capacity(batch.items.len());
            let mut last: &[Single] = &[];
            for &item in &batch.items {
                let (bodies, singles) =
                    (&self.scalars[item * width..][..width], &singles[item * width..][..width]);
                // Usually all parameters have taken the same number of steps.
                if parameters.is_empty() || !singles.iter().zip(last).all(|(a, b)| a.is_same(b)) {
                    let round = |k: usize, x| singles[k].dtype.round(x);
                    program.numbers(&batch.lowered.on_gpu, given, |k| singles[k].value, round, &mut values);
                    let round = |number: &Number| {
                        let value = values[number.value];
                        Scalar::Float(number.rounds.map_or(value, |dtype| dtype.round(value)))
                    };
                    parameters.push(batch.lowered.loops.numbers.iter().map(round).collect());
                    last = singles;
                }
                parameters_of.push(parameters.len() - 1);
                for &(k, value) in &program.kept {
                    let (body, value) = (&bodies[k], Scalar::Float(values[value]));
                    // A single half may become infinite, as in `fill`.
                    if !body.dtype.is_half() {
                        holds(body.dtype, value)?;
                    }
                    // SAFETY: as above.
                    unsafe { value.write(body.dtype, address(body)) };
                }
            }
            let operands: Vec<*mut u8> = batch.operands.iter().map(address).collect();
            let parameters: Vec<&[Scalar]> = parameters_of.iter().map(|&at| &parameters[at][..]).collect();
            // SAFETY: the operands are dense and of one size, and were found to be apart when they were captured.
            unsafe { batch.tiles.run_all(&operands, &parameters) };
        }
        Ok(())
    }
}
