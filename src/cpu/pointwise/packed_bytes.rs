//! Bitwise and boolean logic: eight bytes at once, whatever the elements.

use super::{Loop, MAX_IN, Source};
use crate::base::{DType, Strided};
use crate::cpu::par::{self, GRAIN, Shared};
use std::ptr::null;

/// Runs the loop if the operands are contiguous, aligned words (and, for a `predicate`, bools). Returns false if they
/// are not.
///
/// # Safety
/// The views are valid and have the shape of the output; an input either is the output itself, or does not overlap it.
pub unsafe fn run(element_loop: &Loop, predicate: bool, out: Strided, ins: &[Source]) -> bool {
    let mut inputs = [null::<u8>(); MAX_IN];
    let whole = |s: &Strided| {
        s.dtype == out.dtype && s.is_contiguous() && (s.ptr as usize).is_multiple_of(size_of::<u64>())
    };
    for (input, source) in inputs.iter_mut().zip(ins) {
        match source {
            Source::Strided(s) if whole(s) => *input = s.ptr,
            _ => return false,
        }
    }
    if predicate && out.dtype != DType::Bool || !whole(&out) {
        return false;
    }
    let bytes = out.numel() * out.dtype.size();
    let (words, rest) = (bytes / 8, bytes % 8);
    let in_place = inputs.contains(&out.ptr.cast_const());
    let each = element_loop.over.filter(|_| in_place).unwrap_or(element_loop.each);
    let (to, from) = (Shared::new(out.ptr), inputs.map(Shared::new));
    par::ranges(words, GRAIN, |range| {
        let ins = from.map(|ptr| ptr.get().wrapping_add(8 * range.start).cast_const());
        // SAFETY: the caller's contract; ranges do not overlap.
        unsafe { each(range.len(), to.get().add(8 * range.start), &ins) };
    });
    let (mut last, mut result) = ([0u64; MAX_IN], 0u64);
    // SAFETY: as above; fewer bytes are left than a word has.
    unsafe {
        for (word, from) in last.iter_mut().zip(inputs).take(ins.len()) {
            from.add(8 * words).copy_to_nonoverlapping((&raw mut *word).cast(), rest);
        }
        (element_loop.each)(
            1,
            (&raw mut result).cast(),
            &last.each_ref().map(|word| std::ptr::from_ref(word).cast()),
        );
        (&raw const result).cast::<u8>().copy_to_nonoverlapping(out.ptr.add(8 * words), rest);
    }
    true
}
