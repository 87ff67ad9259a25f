//! Loops over rows, in which some operands have one value per row: it is read once, and stays in a register.

use crate::cpu::cast::blocks::MAX_OPERANDS;

/// The largest number of operands of an expression.
pub const MAX_IN: usize = MAX_OPERANDS - 1;

/// The rows of an input: the first byte, the bytes from row to row, and whether all elements of a row are one value.
#[derive(Clone, Copy)]
pub struct InputRows {
    pub at: *const u8,
    pub row: usize,
    pub constant: bool,
}

/// A loop over rows of results, which are `out_row` bytes apart. The output overlaps no input.
pub type RowsLoop =
    unsafe fn(rows: usize, cols: usize, out: *mut u8, out_row: usize, ins: &[InputRows; MAX_IN]);

/// Shorter rows are gathered first.
pub const SHORTEST: usize = 32;

/// Reads an input: a row, or the same register of copies again and again.
pub struct Reader<T, const LANES: usize> {
    line: InputRows,
    copies: [T; LANES],
}

impl<T: Copy + Default, const LANES: usize> Reader<T, LANES> {
    #[inline(always)]
    pub fn new(line: InputRows) -> Reader<T, LANES> {
        Reader { line, copies: [T::default(); LANES] }
    }

    /// The next row, and a mask for indices into it: all bits, or none if the row is one value.
    ///
    /// # Safety
    /// There is such a row.
    #[inline(always)]
    pub unsafe fn next(&mut self) -> (*const T, usize) {
        let at = self.line.at.cast::<T>();
        self.line.at = self.line.at.wrapping_add(self.line.row);
        if !self.line.constant {
            return (at, usize::MAX);
        }
        // SAFETY: the caller's contract.
        self.copies = [unsafe { *at }; LANES];
        (self.copies.as_ptr(), 0)
    }
}
