//! Loops over rows of operands of which some have one value a row: it is read once, and stays in a register.

use crate::cpu::cast::blocks::MAX_OPERANDS;

/// The most operands that an expression can have.
pub const MAX_IN: usize = MAX_OPERANDS - 1;

/// Where rows lie, of an input: its first byte, the bytes from row to row, and whether a row is one value.
#[derive(Clone, Copy)]
pub struct Line {
    pub at: *const u8,
    pub row: usize,
    pub still: bool,
}

/// A loop over rows of results, `out_row` bytes apart. The output overlaps no input.
pub type Rows = unsafe fn(rows: usize, cols: usize, out: *mut u8, out_row: usize, ins: &[Line; MAX_IN]);

/// Shorter rows are gathered first.
pub const SHORTEST: usize = 32;

/// What a loop reads of an input: a row, or a register of copies again and again.
pub struct Reader<T, const LANES: usize> {
    line: Line,
    copies: [T; LANES],
}

impl<T: Copy + Default, const LANES: usize> Reader<T, LANES> {
    #[inline(always)]
    pub fn new(line: Line) -> Reader<T, LANES> {
        Reader { line, copies: [T::default(); LANES] }
    }

    /// The next row, and which bits of a place in it count.
    ///
    /// # Safety
    /// There is such a row.
    #[inline(always)]
    pub unsafe fn next(&mut self) -> (*const T, usize) {
        let at = self.line.at.cast::<T>();
        self.line.at = self.line.at.wrapping_add(self.line.row);
        if !self.line.still {
            return (at, usize::MAX);
        }
        // SAFETY: the caller's contract.
        self.copies = [unsafe { *at }; LANES];
        (self.copies.as_ptr(), 0)
    }
}
