//! The loops of pointwise expressions. They are generic over the expression, which is given as a function of one
//! element of each operand and always inlined.

use super::memory_bound::is_memory_bound;
use super::rows::{InputRows, MAX_IN, Reader, RowsLoop};
use crate::cpu::math::fast_ranges::{Near, Ranges, SPAN, required_range};
use crate::cpu::simd::{Level, REGISTER, Register, put, put_past, simd_fn, to_register};
use std::mem::MaybeUninit;

/// A dense inner loop over `n` elements. Inputs are packed in the compute type; so is the output, or it is bytes 0 and
/// 1 for a predicate. The output overlaps no input.
pub type Each = unsafe fn(n: usize, out: *mut u8, ins: &[*const u8; MAX_IN]);

/// The loops of one expression in one type. Memory-bound expressions have several.
#[derive(Clone, Copy)]
pub struct Loop {
    pub each: Each,
    /// The output may be the same memory as an input.
    pub over: Option<Each>,
    /// Results are written past the caches, as by `simd::stream`.
    pub past: Option<Each>,
    /// A loop over rows, in which some inputs have one value per row.
    pub rows: Option<RowsLoop>,
}

/// An expression, as functions that are always inlined.
pub trait Formula: 'static {
    /// A tuple with an element of each operand.
    type X;
    type Result;

    fn of(x: Self::X) -> Self::Result;

    /// The expression with the fast functions, for elements that meet their condition.
    #[inline(always)]
    fn near(x: Self::X) -> Self::Result {
        Self::of(x)
    }
}

/// Elements of `N` operands: a tuple.
pub trait Elements<const N: usize>: Copy {
    type Element: Copy;

    /// The elements at index `i`.
    ///
    /// # Safety
    /// The operands have such an element.
    unsafe fn at(x: &[*const Self::Element; N], i: usize) -> Self;

    /// A register of results, for the elements from index `i` on. All of them are read before any result is computed.
    ///
    /// # Safety
    /// The operands have these elements.
    unsafe fn block<F: Formula<X = Self>, const LANES: usize>(
        x: &[*const Self::Element; N],
        i: usize,
    ) -> Register<F::Result, LANES>;

    /// Calls `of` for each operand.
    fn array<A>(of: impl FnMut(usize) -> A) -> [A; N];

    /// The elements that `of` returns for each operand.
    fn tuple(of: impl FnMut(usize) -> Self::Element) -> Self;
}

macro_rules! elements {
    ($($n:literal: $($x:ident $k:literal $t:ident),+;)*) => { $(
        impl<T: Copy> Elements<$n> for ($($t,)+) {
            type Element = T;

            #[inline(always)]
            unsafe fn at(x: &[*const T; $n], i: usize) -> Self {
                // SAFETY: the caller's contract.
                unsafe { ($(*x[$k].add(i),)+) }
            }

            #[inline(always)]
            unsafe fn block<F: Formula<X = Self>, const LANES: usize>(
                x: &[*const T; $n],
                i: usize,
            ) -> Register<F::Result, LANES> {
                // SAFETY: the caller's contract.
                $(let $x = unsafe { x[$k].add(i).cast::<[T; LANES]>().read_unaligned() };)+
                let mut block = [const { MaybeUninit::uninit() }; LANES];
                for lane in 0..LANES {
                    block[lane].write(F::of(($($x[lane],)+)));
                }
                block
            }

            #[inline(always)]
            fn array<A>(mut of: impl FnMut(usize) -> A) -> [A; $n] {
                [$(of($k)),+]
            }

            #[inline(always)]
            fn tuple(mut of: impl FnMut(usize) -> T) -> Self {
                ($(of($k),)+)
            }
        }
    )* };
}
elements! {
    1: a 0 T;
    2: a 0 T, b 1 T;
    3: a 0 T, b 1 T, c 2 T;
    4: a 0 T, b 1 T, c 2 T, d 3 T;
    5: a 0 T, b 1 T, c 2 T, d 3 T, e 4 T;
    6: a 0 T, b 1 T, c 2 T, d 3 T, e 4 T, f 5 T;
}

/// The loops of an expression; its text tells which of them it needs.
pub const fn element_loop<F: Formula, const N: usize>(text: &str) -> Loop
where
    F::X: Elements<N, Element: Ranges + Default>,
{
    if is_memory_bound(text) {
        let size = size_of::<F::Result>();
        return Loop {
            each: each::<F, N>,
            over: Some(wide_loop::<F, N>()),
            past: Some(match size {
                1 => past::<F, N, REGISTER>,
                4 => past::<F, N, { REGISTER / 4 }>,
                _ => past::<F, N, { REGISTER / 8 }>,
            }),
            rows: Some(match size {
                1 => rows::<F, N, REGISTER>,
                4 => rows::<F, N, { REGISTER / 4 }>,
                _ => rows::<F, N, { REGISTER / 8 }>,
            }),
        };
    }
    let each = match required_range(text, <F::X as Elements<N>>::Element::FUNCTIONS) {
        None => computed::<F, N>,
        Some(Near::Small) => small::<F, N>,
        Some(Near::Quotient) => quotient::<F, N>,
    };
    Loop { each, over: None, past: None, rows: None }
}

/// The loop of an expression over complex numbers. It is compiled for one instruction set only: pairs would gain little
/// from wider registers, and the binary would grow.
pub const fn plain_loop<F: Formula<X: Elements<N>>, const N: usize>() -> Loop {
    Loop { each: plain::<F, N>, over: None, past: None, rows: None }
}

/// The loop of an expression over narrow integers.
pub const fn narrow_loop<F: Formula<X: Elements<N>>, const N: usize>() -> Loop {
    let each = wide_loop::<F, N>();
    Loop { each, over: Some(each), past: None, rows: None }
}

const fn wide_loop<F: Formula<X: Elements<N>>, const N: usize>() -> Each {
    match size_of::<F::Result>() {
        1 => wide::<F, N, REGISTER>,
        2 => wide::<F, N, { REGISTER / 2 }>,
        4 => wide::<F, N, { REGISTER / 4 }>,
        _ => wide::<F, N, { REGISTER / 8 }>,
    }
}

/// The operands of a loop.
#[inline(always)]
pub fn operands<T, const N: usize>(ins: &[*const u8; MAX_IN]) -> [*const T; N] {
    const { assert!(N <= MAX_IN) }
    // SAFETY: they are the first `N` of the list.
    unsafe { *ins.as_ptr().cast() }
}

unsafe fn plain<F: Formula<X: Elements<N>>, const N: usize>(
    n: usize,
    out: *mut u8,
    ins: &[*const u8; MAX_IN],
) {
    let (out, x) = (out.cast::<F::Result>(), operands(ins));
    for i in 0..n {
        // SAFETY: the contract of `Each`.
        unsafe { out.add(i).write(F::of(F::X::at(&x, i))) };
    }
}

macro_rules! dense_loop {
    ($name:ident, $most:expr, |$out:ident, $x:ident| $body:block) => {
        unsafe fn $name<F: Formula, const N: usize>(n: usize, out: *mut u8, ins: &[*const u8; MAX_IN])
        where
            F::X: Elements<N, Element: Ranges>,
        {
            simd_fn! {
                [$most]
                unsafe fn each<F; N>(out: &mut [MaybeUninit<F::Result>], ins: &[*const u8; MAX_IN])
                where [F: Formula, F::X: Elements<N, Element: Ranges>]
                {
                    #[allow(unused_mut, reason = "some loops do not move on")]
                    let ($out, mut $x) = (out, operands::<<F::X as Elements<N>>::Element, N>(ins));
                    $body
                }
            }
            // SAFETY: the contract of `Each`.
            unsafe { each::<F, N>(std::slice::from_raw_parts_mut(out.cast(), n), ins) }
        }
    };
}

macro_rules! elements_loop {
    ($of:ident, $out:ident, $x:ident) => {
        for i in 0..$out.len() {
            $out[i].write(F::$of(F::X::at(&$x, i)));
        }
    };
}

macro_rules! ranged_loop {
    ($near:expr, $out:ident, $x:ident) => {
        for out in $out.chunks_mut(SPAN) {
            if Ranges::fits($near, out.len(), &$x) {
                elements_loop!(near, out, $x);
            } else {
                elements_loop!(of, out, $x);
            }
            for x in &mut $x {
                *x = x.add(out.len());
            }
        }
    };
}

// Four loops: for memory-bound expressions; for those that compute, in the widest registers; and two that check their
// operands first.
dense_loop!(each, Level::V3, |out, x| { elements_loop!(of, out, x) });
dense_loop!(computed, Level::V4, |out, x| { elements_loop!(of, out, x) });
dense_loop!(small, Level::V4, |out, x| { ranged_loop!(Near::Small, out, x) });
dense_loop!(quotient, Level::V4, |out, x| { ranged_loop!(Near::Quotient, out, x) });

/// Loops that read a register of each input before they write one. The compiler unrolls plain loops such that they read
/// one operand far ahead of the others, which loads a fifth slower.
macro_rules! by_registers {
    ($name:ident, $put:ident) => {
        simd_fn! {
            [Level::V3]
            unsafe fn $name<F; N, LANES>(n: usize, out: *mut u8, ins: &[*const u8; MAX_IN])
            where [F: Formula<X: Elements<N>>]
            {
                let head = to_register::<F::Result>(out, n);
                let wide = (n - head) / LANES;
                let (out, x) = (out.cast::<F::Result>(), operands(ins));
                for i in 0..head {
                    out.add(i).write(F::of(F::X::at(&x, i)));
                }
                for register in 0..wide {
                    let i = head + register * LANES;
                    $put(&F::X::block::<F, LANES>(&x, i), out.add(i));
                }
                for i in head + wide * LANES..n {
                    out.add(i).write(F::of(F::X::at(&x, i)));
                }
            }
        }
    };
}
by_registers!(wide, put);
by_registers!(past, put_past);

/// The constant operands are known only when the loop runs.
const ANY: usize = usize::MAX;

/// The loops over rows of an expression. With two operands there is one loop for each choice of the constant operand,
/// which then stays in a register.
unsafe fn rows<F, const N: usize, const LANES: usize>(
    rows: usize,
    cols: usize,
    out: *mut u8,
    out_row: usize,
    ins: &[InputRows; MAX_IN],
) where
    F: Formula<X: Elements<N, Element: Default>>,
{
    let run = match (N, ins[0].constant, ins[1].constant) {
        (2, true, false) => some_rows::<F, N, LANES, 1>,
        (2, false, true) => some_rows::<F, N, LANES, 2>,
        (2, false, false) => some_rows::<F, N, LANES, 0>,
        _ => some_rows::<F, N, LANES, ANY>,
    };
    // SAFETY: the caller's contract.
    unsafe { run(rows, cols, out, out_row, ins) }
}

simd_fn! {
    [Level::V3]
    unsafe fn some_rows<F; N, LANES, CONSTANT>(rows: usize, cols: usize, out: *mut u8, out_row: usize, ins: &[InputRows; MAX_IN])
    where [F: Formula<X: Elements<N, Element: Default>>]
    {
        let mut readers = F::X::array(|k| {
            let constant = if CONSTANT == ANY { ins[k].constant } else { CONSTANT >> k & 1 == 1 };
            Reader::<<F::X as Elements<N>>::Element, LANES>::new(InputRows { constant, ..ins[k] })
        });
        for row in 0..rows {
            let out = out.add(row * out_row).cast::<F::Result>();
            let x = F::X::array(|k| readers[k].next());
            if cols < LANES {
                for i in 0..cols {
                    let x = F::X::array(|k| x[k].0.add(i & x[k].1));
                    out.add(i).write(F::of(F::X::at(&x, 0)));
                }
                continue;
            }
            // Computes register `k` after index `i`.
            let register = |i: usize, k: usize| {
                let x = F::X::array(|n| x[n].0.add((i & x[n].1) + k * (LANES & x[n].1)));
                put(&F::X::block::<F, LANES>(&x, 0), out.add(i + k * LANES));
            };
            let mut i = 0;
            // Several registers share their addresses: with fewer instructions, the machine reads farther ahead.
            while i + 4 * LANES <= cols {
                (0..4).for_each(|k| register(i, k));
                i += 4 * LANES;
            }
            while i + LANES <= cols {
                register(i, 0);
                i += LANES;
            }
            // The last register may overlap the one before.
            if i < cols {
                register(cols - LANES, 0);
            }
        }
    }
}
