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

macro_rules! rows_loop {
    ($out:ty; ($($x:ident)*) $value:expr) => {{
        $crate::cpu::simd::simd_fn! {
            [$crate::cpu::simd::Level::V3]
            unsafe fn rows_loop(
                rows: usize,
                cols: usize,
                out: *mut u8,
                out_row: usize,
                ins: &[$crate::cpu::pointwise::rows::Line; $crate::cpu::pointwise::rows::MAX_IN],
            ) {
                use $crate::cpu::pointwise::rows::Reader;
                use $crate::cpu::simd::{Block, REGISTER, put};
                const LANES: usize = REGISTER / size_of::<$out>();
                let [$($x,)* ..] = *ins;
                $(let mut $x = Reader::<T, LANES>::new($x);)*
                for row in 0..rows {
                    let out = out.add(row * out_row).cast::<$out>();
                    $(let $x = $x.next();)*
                    if cols < LANES {
                        for i in 0..cols {
                            $(let $x = *$x.0.add(i & $x.1);)*
                            out.add(i).write($value);
                        }
                        continue;
                    }
                    // The register `k` behind the place `i`.
                    let register = |i: usize, k: usize| {
                        $(let $x = $x.0.add((i & $x.1) + k * (LANES & $x.1)).cast::<[T; LANES]>().read_unaligned();)*
                        let mut block: Block<$out, LANES> = [const { std::mem::MaybeUninit::uninit() }; LANES];
                        for lane in 0..LANES {
                            $(let $x = $x[lane];)*
                            block[lane].write($value);
                        }
                        put(&block, out.add(i + k * LANES));
                    };
                    let mut i = 0;
                    // Several share their addresses: fewer instructions let the machine read farther ahead.
                    while i + 4 * LANES <= cols {
                        (0..4).for_each(|k| register(i, k));
                        i += 4 * LANES;
                    }
                    while i + LANES <= cols {
                        register(i, 0);
                        i += LANES;
                    }
                    // The last one may overlap the one before.
                    if i < cols {
                        register(cols - LANES, 0);
                    }
                }
            }
        }
        rows_loop as $crate::cpu::pointwise::rows::Rows
    }};
}
pub(crate) use rows_loop;
