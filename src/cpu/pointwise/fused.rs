//! Loops for instructions of groups: some operands are numbers, and the output may be the first operand.

use super::loops::{Elements, Formula, operands};
use super::rows::MAX_IN;
use crate::base::DType;
use crate::cpu::simd::simd_fn;
use std::mem::MaybeUninit;

/// A loop over `n` elements of operands of one type. Those in `constants`, one bit each, are one value. Returns false if
/// there is no loop for this choice of constants, or if the output is another operand than the first.
pub type FusedLoop =
    unsafe fn(n: usize, out: *mut u8, ins: &[*const u8; MAX_IN], count: usize, constants: usize) -> bool;

/// The loops of one expression.
pub struct Fused {
    pub f32: FusedLoop,
    pub f64: FusedLoop,
}

impl Fused {
    pub fn of(&self, compute: DType) -> Option<FusedLoop> {
        match compute {
            DType::F32 => Some(self.f32),
            DType::F64 => Some(self.f64),
            _ => None,
        }
    }
}

/// No operand is constant, or the last, or the first.
const NONE: usize = 0;
const LAST: usize = 1;
const FIRST: usize = 2;

/// True if there is a loop for these constants among `count` operands.
pub fn has_loop(count: usize, constants: usize) -> bool {
    constants == 0 || constants == 1 << (count - 1) || count == 2 && constants == 1
}

pub const fn fused_loop<F: Formula, const N: usize>() -> FusedLoop
where
    F::X: Elements<N>,
{
    choose::<F, N>
}

/// # Safety
/// See [`FusedLoop`]: constants have one element, other operands and the output have `n`.
unsafe fn choose<F: Formula, const N: usize>(
    n: usize,
    out: *mut u8,
    ins: &[*const u8; MAX_IN],
    count: usize,
    constants: usize,
) -> bool
where
    F::X: Elements<N>,
{
    debug_assert_eq!(count, N);
    let over = ins[0] == out.cast_const();
    if ins[1..N].contains(&out.cast_const()) || !has_loop(N, constants) {
        return false;
    }
    // SAFETY: the caller's contract.
    unsafe {
        let out = std::slice::from_raw_parts_mut(out.cast(), n);
        // A loop over its own output reads the first operand only through that.
        match (over, constants) {
            (false, 0) => dense::<F, N, NONE, 0>(out, ins),
            (true, 0) => dense::<F, N, NONE, 1>(out, ins),
            (false, 1) if N == 2 => dense::<F, N, FIRST, 0>(out, ins),
            (false, _) => dense::<F, N, LAST, 0>(out, ins),
            (true, _) => dense::<F, N, LAST, 1>(out, ins),
        }
    }
    true
}

simd_fn! {
    unsafe fn dense<F; N, CONSTANT, OVER>(out: &mut [MaybeUninit<F::Result>], ins: &[*const u8; MAX_IN])
    where [F: Formula, F::X: Elements<N>]
    {
        let x = operands::<<F::X as Elements<N>>::Element, N>(ins);
        // A constant that is read inside the loop would have to be loaded each time.
        let constant = match CONSTANT {
            FIRST => Some((0, *x[0])),
            LAST => Some((N - 1, *x[N - 1])),
            _ => None,
        };
        for i in 0..out.len() {
            // Compilers only vectorize a loop over its own output if they can see that it is.
            let own = out[i].as_ptr().cast::<<F::X as Elements<N>>::Element>();
            let elements = F::X::tuple(|k| match constant {
                _ if OVER == 1 && k == 0 => *own,
                Some((place, value)) if place == k => value,
                _ => *x[k].add(i),
            });
            out[i].write(F::of(elements));
        }
    }
}
