//! The arguments of the kernels of recurrent layers: the cell, the steps, and the buffers.

use crate::base::Result;

/// The kind of recurrent cell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cell {
    Tanh,
    Relu,
    Lstm,
    Gru,
}

impl Cell {
    /// The number of gates of a unit.
    pub fn gates(self) -> usize {
        match self {
            Cell::Tanh | Cell::Relu => 1,
            Cell::Lstm => 4,
            Cell::Gru => 3,
        }
    }

    /// The number of values that a unit saves for the derivative.
    pub fn kept(self) -> usize {
        match self {
            Cell::Tanh | Cell::Relu => 1,
            Cell::Lstm | Cell::Gru => 4,
        }
    }
}

/// The sequence of steps. The rows of all steps are concatenated; later steps never have more examples.
#[derive(Clone, Copy)]
pub struct RecurrentSteps<'a> {
    pub sizes: &'a [i64],
    pub backwards: bool,
}

impl RecurrentSteps<'_> {
    /// Calls `body` with each step's first row and number of examples, in the order of time or, if `turned`,
    /// in reverse.
    pub fn each(&self, turned: bool, mut body: impl FnMut(usize, usize) -> Result<()>) -> Result<()> {
        if self.backwards == turned {
            let mut start = 0;
            return self.sizes.iter().try_for_each(|&size| {
                let first = start;
                start += size as usize;
                body(first, size as usize)
            });
        }
        let mut end = self.sizes.iter().map(|&size| size as usize).sum();
        self.sizes.iter().rev().try_for_each(|&size| {
            end -= size as usize;
            body(end, size as usize)
        })
    }
}

/// A layer's buffers, all contiguous and of one dtype: `total` is the number of rows of all steps, `samples`
/// that of the states, `units` the width.
#[derive(Clone, Copy)]
pub struct RecurrentArgs<'a, B> {
    pub cell: Cell,
    pub steps: RecurrentSteps<'a>,
    pub samples: usize,
    pub units: usize,
    /// `[total, gates * units]`: the inputs' contribution to the gates.
    pub sums: B,
    /// `[gates * units, units]`; the bias has one number for each row.
    pub weight: B,
    pub bias: Option<B>,
    /// `[total, kept * units]`: the activations of the gates.
    pub kept: B,
    /// `[total, units]`: the states before each step.
    pub before: B,
    pub cell_before: Option<B>,
    /// `[samples, units]`: the states, initially those before the first step.
    pub hidden: B,
    pub cells: Option<B>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_go_with_time_and_against_it() {
        let order = |backwards, turned| {
            let mut seen = Vec::new();
            let steps = RecurrentSteps { sizes: &[3, 2, 1], backwards };
            steps
                .each(turned, |start, size| {
                    seen.push((start, size));
                    Ok(())
                })
                .unwrap();
            seen
        };
        let along = [(0, 3), (3, 2), (5, 1)];
        let against = [(5, 1), (3, 2), (0, 3)];
        assert_eq!(order(false, false), along);
        assert_eq!(order(true, true), along);
        assert_eq!(order(true, false), against);
        assert_eq!(order(false, true), against);
    }
}
