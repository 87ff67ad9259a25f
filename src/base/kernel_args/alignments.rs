//! The sizes of a CTC loss, and the start of each example's labels in the concatenated targets.

#[derive(Clone, Debug)]
pub struct Alignments {
    pub steps: usize,
    pub samples: usize,
    pub classes: usize,
    /// The length of a row in the table of alignments.
    pub places: usize,
    pub blank: usize,
    pub input_lengths: Vec<usize>,
    pub target_lengths: Vec<usize>,
    pub starts: Vec<usize>,
    pub zero_infinity: bool,
}
