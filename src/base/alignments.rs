//! What is aligned by connectionist temporal classification: sizes, and where each sample's labels begin among all of them.

#[derive(Clone, Debug)]
pub struct Alignments {
    pub steps: usize,
    pub samples: usize,
    pub classes: usize,
    /// Places in a row of the table of alignments.
    pub places: usize,
    pub blank: usize,
    pub input_lengths: Vec<usize>,
    pub target_lengths: Vec<usize>,
    pub starts: Vec<usize>,
    pub zero_infinity: bool,
}
