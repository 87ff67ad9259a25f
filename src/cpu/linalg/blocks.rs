//! Products of blocks of matrices, by the matrix multiplication kernel. Large factorizations spend most of their time
//! here.

use super::number::Number;
use crate::base::Result;
use crate::cpu::matmul::Product;
use std::ops::Range;

/// A part of a column-major matrix: the offset of its first element, the distance between its columns, and its sizes.
#[derive(Clone, Copy)]
pub struct Block {
    pub at: usize,
    pub lead: usize,
    pub rows: usize,
    pub columns: usize,
}

impl Block {
    pub fn new(rows: usize, columns: usize) -> Block {
        Block { at: 0, lead: rows, rows, columns }
    }

    pub fn part(self, rows: Range<usize>, columns: Range<usize>) -> Block {
        let at = self.place(rows.start, columns.start);
        Block { at, rows: rows.len(), columns: columns.len(), ..self }
    }

    /// The offset of an element.
    pub fn place(self, row: usize, column: usize) -> usize {
        self.at + row + column * self.lead
    }

    /// The offsets of a column.
    pub fn column(self, column: usize) -> Range<usize> {
        self.place(0, column)..self.place(self.rows, column)
    }

    /// Number of elements that the memory must have.
    fn end(self) -> usize {
        if self.rows == 0 || self.columns == 0 { 0 } else { self.place(self.rows, self.columns - 1) }
    }

    /// True if two parts of one matrix have no element in common.
    fn apart(self, other: Block) -> bool {
        let ends = |x: Block| {
            let (row, column) = (x.at % x.lead.max(1), x.at / x.lead.max(1));
            [row, row + x.rows, column, column + x.columns]
        };
        let ([a, b, c, d], [e, f, g, h]) = (ends(self), ends(other));
        let whole = b.max(f) <= self.lead && self.lead == other.lead;
        self.end() == 0 || other.end() == 0 || (whole && (b <= e || f <= a || d <= g || h <= c))
    }
}

/// Squares with at most this many columns are computed whole, which is as fast as their lower triangle.
const WHOLE: usize = 64;

/// Calls `each` with the rows and columns of blocks that cover the lower triangle of a square, and little above it.
pub fn lower_triangle(
    square: Range<usize>,
    each: &mut impl FnMut(Range<usize>, Range<usize>) -> Result<()>,
) -> Result<()> {
    if square.len() <= WHOLE {
        return each(square.clone(), square);
    }
    let half = square.start + square.len() / 2;
    let (low, high) = (square.start..half, half..square.end);
    lower_triangle(low.clone(), each)?;
    each(high.clone(), low)?;
    lower_triangle(high, each)
}

/// An operand of a product: a block of other memory, or of the memory that is written to; itself, or its conjugate
/// transpose.
#[derive(Clone, Copy)]
pub struct Factor<'a, T> {
    memory: Option<&'a [T]>,
    block: Block,
    adjoint: bool,
}

impl<'a, T> Factor<'a, T> {
    pub fn of(memory: &'a [T], block: Block) -> Factor<'a, T> {
        Factor { memory: Some(memory), block, adjoint: false }
    }

    /// A block of the memory that is written to.
    pub fn own(block: Block) -> Factor<'a, T> {
        Factor { memory: None, block, adjoint: false }
    }

    pub fn adjoint(self) -> Factor<'a, T> {
        Factor { adjoint: !self.adjoint, ..self }
    }

    fn sizes(&self) -> [usize; 2] {
        let (m, n) = (self.block.rows, self.block.columns);
        if self.adjoint { [n, m] } else { [m, n] }
    }
}

/// `out += alpha * a * b`, where `out` is a block of `x`.
pub fn add_product<T: Number>(x: &mut [T], out: Block, alpha: f64, a: Factor<T>, b: Factor<T>) -> Result<()> {
    let ([m, k], [rows, n]) = (a.sizes(), b.sizes());
    assert!(k == rows && [m, n] == [out.rows, out.columns] && out.end() <= x.len());
    for factor in [&a, &b] {
        let (inside, apart) = match factor.memory {
            Some(memory) => (factor.block.end() <= memory.len(), true),
            None => (factor.block.end() <= x.len(), factor.block.apart(out)),
        };
        assert!(inside && apart);
    }
    if k == 0 {
        return Ok(());
    }
    let parts = if T::COMPLEX { 2 } else { 1 };
    let to = x.as_mut_ptr();
    let operand = |factor: &Factor<T>| {
        let block = factor.block;
        let steps = if factor.adjoint { [block.lead, 1] } else { [1, block.lead] };
        let memory = factor.memory.map_or(to.cast_const(), <[T]>::as_ptr);
        (memory.wrapping_add(block.at).cast::<T::Part>(), steps.map(|step| parts * step))
    };
    let ((a_at, a_steps), (b_at, b_steps)) = (operand(&a), operand(&b));
    let product =
        Product { sizes: [m, n, k], out: [parts, parts * out.lead], a: a_steps, b: b_steps, threads: true };
    // The real and imaginary parts of complex matrices are interleaved matrices, which are multiplied separately.
    for (p, q) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        if p >= parts || q >= parts {
            continue;
        }
        let negative = (p == 1 && q == 1) ^ (p == 1 && a.adjoint) ^ (q == 1 && b.adjoint);
        // SAFETY: the assertions above checked that the blocks are inside live memory and do not overlap the result; a
        // number is one or two parts.
        unsafe {
            let out = to.add(out.at).cast::<T::Part>().add(p ^ q);
            T::add_product(product, out, a_at.add(p), b_at.add(q), if negative { -alpha } else { alpha })?;
        }
    }
    Ok(())
}
