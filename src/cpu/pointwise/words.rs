//! Logic of bits, and of truth values, which are bytes 0 and 1: of eight bytes at once, whatever the elements.

use super::{Loop, MAX_IN, Source, pointwise_loop};
use crate::base::{DType, Strided};
use crate::cpu::par::{self, GRAIN, Shared};
use std::ptr::null;

/// A loop over whole words.
pub struct Words {
    each: &'static Loop,
    /// Whether it is the operator's for truth values only.
    bools: bool,
}

const AND: &Loop = pointwise_loop!(i64; (a, b) a & b);
const OR: &Loop = pointwise_loop!(i64; (a, b) a | b);
const XOR: &Loop = pointwise_loop!(i64; (a, b) a ^ b);
/// Of bytes that are 0 or 1.
const NOT: &Loop = pointwise_loop!(i64; (a) a ^ 0x0101_0101_0101_0101);

static ALL: [(&str, Words); 7] = [
    ("bit_and(input, other)", Words { each: AND, bools: false }),
    ("bit_or(input, other)", Words { each: OR, bools: false }),
    ("bit_xor(input, other)", Words { each: XOR, bools: false }),
    ("both(truth(input), truth(other))", Words { each: AND, bools: true }),
    ("either(truth(input), truth(other))", Words { each: OR, bools: true }),
    ("differ(truth(input), truth(other))", Words { each: XOR, bools: true }),
    ("not(truth(input))", Words { each: NOT, bools: true }),
];

/// The words' loop of a formula, if it has one.
pub const fn of(formula: &str) -> Option<&'static Words> {
    let mut i = 0;
    while i < ALL.len() {
        if super::powers::same(formula, ALL[i].0) {
            return Some(&ALL[i].1);
        }
        i += 1;
    }
    None
}

impl Words {
    /// Does what the operator does, if the operands are words in a row.
    ///
    /// # Safety
    /// They are valid and of the output's shape; an input may be the output itself, or else does not overlap it.
    pub unsafe fn run(&self, out: Strided, ins: &[Source]) -> bool {
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
        if self.bools && out.dtype != DType::Bool || !whole(&out) {
            return false;
        }
        let bytes = out.numel() * out.dtype.size();
        let (words, rest) = (bytes / 8, bytes % 8);
        let in_place = inputs.contains(&out.ptr.cast_const());
        let each = self.each.over.filter(|_| in_place).unwrap_or(self.each.each);
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
            (self.each.each)(
                1,
                (&raw mut result).cast(),
                &last.each_ref().map(|word| std::ptr::from_ref(word).cast()),
            );
            (&raw const result).cast::<u8>().copy_to_nonoverlapping(out.ptr.add(8 * words), rest);
        }
        true
    }
}
