//! Pointwise kernels: one dense loop per expression and type, and one driver that prepares operands of any layout and
//! dtype for it. The driver converts, broadcasts and splits the work over threads, so a loop stays a few instructions,
//! and an operator costs nothing but its loops.

mod blocks;
pub mod fused;
pub mod loops;
mod memory_bound;
pub mod narrow;
pub mod packed_bytes;
pub mod powers;
pub mod rows;

use crate::base::{DType, Scalar, Strided};
use crate::cpu::cast::tile::{TILE, splat};
use crate::cpu::par::GRAIN;
use std::mem::MaybeUninit;
use std::ptr::null;

pub use fused::fused_loop;
pub use loops::{Each, Loop, element_loop, narrow_loop, plain_loop};
pub use rows::MAX_IN;

/// The loops of one expression for each compute type (`None` if it is not defined for that type).
#[derive(Clone, Copy)]
pub struct Loops {
    pub f32: Option<Loop>,
    pub f64: Option<Loop>,
    pub i64: Option<Loop>,
    pub c64: Option<Loop>,
    pub c128: Option<Loop>,
    /// True if the result is a bool.
    pub predicate: bool,
    /// Loops for instructions of groups; without them, groups use the general ones.
    pub fused: Option<&'static fused::Fused>,
    /// Loops for narrow integers; without them, these are computed as I64.
    pub narrow: Option<&'static narrow::Narrow>,
    /// Faster loops for some constant values of the last operand, which is an exponent.
    pub powers: &'static [powers::Power],
    /// A loop over words of eight bytes; for a predicate, of bools only.
    pub words: Option<Loop>,
}

impl Loops {
    pub const NONE: Loops = Loops {
        f32: None,
        f64: None,
        i64: None,
        c64: None,
        c128: None,
        predicate: false,
        fused: None,
        narrow: None,
        powers: &[],
        words: None,
    };

    /// The loop for elements of `compute` (F32, F64, I64, C64 or C128).
    #[inline]
    pub fn of(&self, compute: DType) -> Option<&Loop> {
        let found = match compute {
            DType::F32 => &self.f32,
            DType::F64 => &self.f64,
            DType::I64 => &self.i64,
            DType::C64 => &self.c64,
            DType::C128 => &self.c128,
            _ => &None,
        };
        found.as_ref()
    }
}

/// An operand: memory, already broadcast to the shape of the output (with stride 0), or a number.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    Strided(Strided<'a>),
    Scalar(Scalar),
}

/// Compiles an expression to a [`Loop`]: `pointwise_loop!(f32; (a, b) a * b)`, or, for a predicate,
/// `pointwise_loop!(f64 => bool; (a, b) lt(a, b))`. The functions of `cpu::math` for that type are in scope, and so is
/// `T`.
macro_rules! pointwise_loop {
    (@ $maker:ident($($text:expr)?) [$($functions:tt)+] $(near [$($near:tt)+])?; $out:ty; $names:tt $value:expr) => {{
        #[allow(unused_imports, reason = "a formula of signs alone names no function")]
        use $($functions)+::*;
        struct Of;
        impl $crate::cpu::pointwise::loops::Formula for Of {
            $crate::cpu::pointwise::pointwise_loop!(@types $out; $names);
            $crate::cpu::pointwise::pointwise_loop!(@of of; $names $value);
            $($crate::cpu::pointwise::pointwise_loop!(@of near; $names { use $($near)+::*; $value });)?
        }
        $crate::cpu::pointwise::$maker::<Of, _>($($text)?)
    }};
    (@types $out:ty; ($($x:ident)*)) => {
        type X = ($($crate::cpu::pointwise::operand!($x T),)*);
        type Result = $out;
    };
    (@of $name:ident; ($($x:ident)*) $value:expr) => {
        #[allow(unused_imports, reason = "most formulas name no fast function")]
        #[inline(always)]
        fn $name(($($x,)*): Self::X) -> Self::Result {
            $value
        }
    };
    (@plain $t:ident; $($formula:tt)+) => {
        $crate::cpu::pointwise::pointwise_loop!(@ plain_loop() [$crate::cpu::math::$t]; $($formula)+)
    };
    (@narrow $t:ident; $($formula:tt)+) => {
        $crate::cpu::pointwise::pointwise_loop!(@ narrow_loop() [$crate::cpu::math::narrow::$t]; $($formula)+)
    };
    (@fused $t:ident; $out:ty; ($($x:ident),* $(,)?) $value:expr) => {
        $crate::cpu::pointwise::pointwise_loop!(@ fused_loop() [$crate::cpu::math::$t]; $out; ($($x)*) $value)
    };
    (@element $t:ident; $out:ty; $names:tt $value:expr) => {
        $crate::cpu::pointwise::pointwise_loop!(@ element_loop(stringify!($value)) [$crate::cpu::math::$t] near [$crate::cpu::math::$t::near]; $out; $names $value)
    };
    (plain $t:ident => bool; ($($x:ident),* $(,)?) $value:expr) => {
        $crate::cpu::pointwise::pointwise_loop!(@plain $t; u8; ($($x)*) u8::from($value))
    };
    (plain $t:ident; ($($x:ident),* $(,)?) $value:expr) => {
        $crate::cpu::pointwise::pointwise_loop!(@plain $t; T; ($($x)*) $value)
    };
    ($t:ident => bool; ($($x:ident),* $(,)?) $value:expr) => {
        $crate::cpu::pointwise::pointwise_loop!(@element $t; u8; ($($x)*) u8::from($value))
    };
    ($t:ident; ($($x:ident),* $(,)?) $value:expr) => {
        $crate::cpu::pointwise::pointwise_loop!(@element $t; T; ($($x)*) $value)
    };
}
pub(crate) use pointwise_loop;

/// The type of an operand.
macro_rules! operand {
    ($x:ident $t:ty) => {
        $t
    };
}
pub(crate) use operand;

/// Up to this many elements, the call dominates the cost: use no tiles and no threads.
const SMALL: usize = 16;

/// Runs `element_loop` over all elements. Operands of other dtypes are converted to `compute` (F32, F64, I64, C64 or
/// C128), and the result, which has that dtype or is a bool for a `predicate`, to the dtype of the output.
///
/// # Safety
/// All views are valid and have the shape of the output; there are at most [`MAX_IN`] sources; the output does not
/// overlap itself; an input either is the output itself (with the same layout), or does not overlap it.
pub unsafe fn run(element_loop: &Loop, predicate: bool, compute: DType, out: Strided, ins: &[Source]) {
    let n = out.numel();
    let result = if predicate { DType::Bool } else { compute };
    let direct = out.dtype == result && dense_layout(&out);
    // SAFETY: the caller's contract, which is that of all three.
    unsafe {
        let done = match n {
            0 => true,
            1..=SMALL => direct && dense::<SMALL>(element_loop, compute, n, out, ins),
            _ if n < 2 * GRAIN => direct && dense_tiles(element_loop, compute, n, out, ins),
            _ => false,
        };
        if !done {
            blocks::blocks(element_loop, result, compute, out, ins);
        }
    }
}

/// A function of its own, so that its tiles do not make the stack frame of [`run`] large.
#[inline(never)]
unsafe fn dense_tiles(element_loop: &Loop, compute: DType, n: usize, out: Strided, ins: &[Source]) -> bool {
    // SAFETY: the caller's contract.
    unsafe { dense::<{ TILE / 2 }>(element_loop, compute, n, out, ins) }
}

/// The fast path for contiguous operands; returns false if an operand must be converted or gathered. Numbers, and
/// inputs that are also the output, pass through slots of `N` words.
#[inline(always)]
unsafe fn dense<const N: usize>(
    element_loop: &Loop,
    compute: DType,
    n: usize,
    out: Strided,
    ins: &[Source],
) -> bool {
    let mut slots: [MaybeUninit<[u64; N]>; MAX_IN] = [const { MaybeUninit::uninit() }; MAX_IN];
    let mut pointers = [null(); MAX_IN];
    let mut advance = [0; MAX_IN];
    let mut in_place = [null::<u8>(); MAX_IN];
    let (size, mut step) = (compute.size(), n);
    let mut each = element_loop.each;
    let room = size_of::<[u64; N]>() / size;
    // SAFETY: the caller's contract; a slot has room for `room` elements.
    unsafe {
        for (k, source) in ins.iter().enumerate() {
            let slot = slots[k].as_mut_ptr().cast::<u8>();
            match source {
                Source::Strided(s) if s.dtype == compute && dense_layout(s) => {
                    let apart = s.ptr.add(n * size) <= out.ptr || out.ptr.add(n * out.dtype.size()) <= s.ptr;
                    if !apart && let Some(over) = element_loop.over {
                        each = over;
                    }
                    if apart || element_loop.over.is_some() {
                        (pointers[k], advance[k]) = (s.ptr, size);
                        continue;
                    }
                    in_place[k] = s.ptr;
                }
                source => match constant(source) {
                    Some(value) => splat_scalar(value, compute, n.min(room), slot),
                    None => return false,
                },
            }
            (pointers[k], step) = (slot, room);
        }
        let mut start = 0;
        while start < n {
            let len = step.min(n - start);
            for k in 0..ins.len() {
                if !in_place[k].is_null() {
                    in_place[k]
                        .add(start * size)
                        .copy_to_nonoverlapping(slots[k].as_mut_ptr().cast(), len * size);
                }
            }
            each(len, out.ptr.add(start * out.dtype.size()), &pointers);
            start += len;
            for k in 0..ins.len() {
                pointers[k] = pointers[k].wrapping_add(len * advance[k]);
            }
        }
    }
    true
}

/// `Strided::is_contiguous`, for the path on which every nanosecond counts.
#[inline(always)]
fn dense_layout(s: &Strided) -> bool {
    let mut expected = 1;
    let mut d = s.shape.len().min(s.strides.len());
    while d > 0 {
        d -= 1;
        if s.shape[d] != 1 && s.strides[d] != expected {
            return false;
        }
        expected *= s.shape[d];
    }
    true
}

/// The value of an operand, if it is the same for all elements.
#[inline(always)]
unsafe fn constant(source: &Source) -> Option<Scalar> {
    match source {
        Source::Scalar(value) => Some(*value),
        Source::Strided(s) if (0..s.shape.len()).all(|d| s.strides[d] == 0 || s.shape[d] == 1) => {
            // SAFETY: a source is valid, and there is at least one element.
            Some(unsafe { Scalar::read(s.dtype, s.ptr) })
        }
        Source::Strided(_) => None,
    }
}

/// Writes `n` copies of `value`, which is converted to `compute` first.
///
/// # Safety
/// There is aligned room for them.
#[inline(always)]
pub unsafe fn splat_scalar(value: Scalar, compute: DType, n: usize, to: *mut u8) {
    // SAFETY: the caller's contract: there is aligned room.
    unsafe {
        match compute {
            DType::F32 => splat(value.as_f64() as f32, n, to),
            DType::F64 => splat(value.as_f64(), n, to),
            DType::C64 => splat([value.as_f64() as f32, value.imaginary() as f32], n, to),
            DType::C128 => splat([value.as_f64(), value.imaginary()], n, to),
            DType::I32 => splat(value.as_i64() as i32, n, to),
            DType::I16 => splat(value.as_i64() as i16, n, to),
            DType::I8 | DType::U8 | DType::Bool => splat(value.as_i64() as u8, n, to),
            _ => splat(value.as_i64(), n, to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Layout;
    use crate::cpu::simd::STREAMED_FROM;

    const ADD: &Loop = &pointwise_loop!(f32; (a, b) a + b);
    const LESS: &Loop = &pointwise_loop!(f64 => bool; (a, b) lt(a, b));
    const MULTIPLY: &Loop = &pointwise_loop!(i64; (a, b) a * b);

    fn strided<'a, E>(data: &[E], dtype: DType, layout: &'a Layout) -> Strided<'a> {
        let ptr = data.as_ptr().wrapping_add(layout.offset).cast_mut().cast();
        Strided { ptr, dtype, shape: &layout.shape, strides: &layout.strides }
    }

    /// The element at linear index `i` of the shape.
    fn at(data: &[f32], layout: &Layout, mut i: usize) -> f32 {
        let mut offset = layout.offset;
        for (n, stride) in layout.shape.iter().zip(&layout.strides).rev() {
            offset += i % n * stride;
            i /= n;
        }
        data[offset]
    }

    #[test]
    fn any_layout_any_size() {
        for shape in [
            vec![],
            vec![3],
            vec![17],
            vec![700],
            vec![5, 3],
            vec![90, 700],
            vec![4, 33, 50],
            vec![300, 3, 90],
        ] {
            let plain = Layout::contiguous(&shape);
            let data: Vec<f32> = (0..plain.numel() * 2).map(|i| i as f32).collect();
            let reversed: Vec<usize> = shape.iter().rev().copied().collect();
            let turned = Layout::contiguous(&reversed);
            let turned = Layout {
                shape: plain.shape.clone(),
                strides: turned.strides.iter().rev().copied().collect(),
                offset: 0,
            };
            let spread =
                Layout { strides: plain.strides.iter().map(|s| s * 2).collect(), offset: 1, ..plain.clone() };
            let last = Layout::contiguous(&shape[shape.len().saturating_sub(1)..]).broadcast_to(&shape);
            let layouts = [&plain, &turned, &spread, &last];
            for out in [&plain, &turned] {
                for a in layouts {
                    for b in layouts {
                        let sums = vec![0f32; plain.numel()];
                        let ins = [a, b].map(|l| Source::Strided(strided(&data, DType::F32, l)));
                        // SAFETY: all have this shape, and are within their vectors.
                        unsafe { run(ADD, false, DType::F32, strided(&sums, DType::F32, out), &ins) };
                        for i in 0..plain.numel() {
                            assert_eq!(
                                at(&sums, out, i),
                                at(&data, a, i) + at(&data, b, i),
                                "{shape:?} {a:?} {b:?}"
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn other_dtypes_are_converted() {
        for n in [3, 40, 5000] {
            let layout = Layout::contiguous(&[n]);
            let bytes: Vec<u8> = (0..n).map(|i| i as u8).collect();
            let less = vec![2u8; n];
            let products = vec![0i16; n];
            let number = Source::Scalar(Scalar::Float(2.5));
            // SAFETY: all have this shape.
            unsafe {
                let source = Source::Strided(strided(&bytes, DType::U8, &layout));
                run(LESS, true, DType::F64, strided(&less, DType::Bool, &layout), &[source, number]);
                run(MULTIPLY, false, DType::I64, strided(&products, DType::I16, &layout), &[source, source]);
            }
            for i in 0..n {
                assert_eq!(less[i], u8::from(bytes[i] < 3));
                assert_eq!(products[i], i16::from(bytes[i]).wrapping_mul(i16::from(bytes[i])));
            }
        }
    }

    #[test]
    fn in_place() {
        for n in [5, 3000, 200_000] {
            let layout = Layout::contiguous(&[n]);
            let data: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let own = strided(&data, DType::F32, &layout);
            // SAFETY: the only operand is the output itself.
            unsafe { run(ADD, false, DType::F32, own, &[Source::Strided(own), Source::Strided(own)]) };
            assert!((0..n).all(|i| data[i] == 2.0 * i as f32));
        }
    }

    /// Results that are larger than the caches are written past them, and must be the same.
    #[test]
    fn large_results() {
        let n = (STREAMED_FROM.min(64 << 20)) / 4 + 13;
        let data: Vec<f32> = (0..n + 1).map(|i| (i % 1000) as f32).collect();
        let sums = vec![0f32; n + 3];
        let layout = |offset| Layout { offset, ..Layout::contiguous(&[n]) };
        let (a, b) = (layout(0), layout(1));
        let number = Source::Scalar(Scalar::Float(0.5));
        for start in [0, 3] {
            let out = layout(start);
            let sum = |ins: &[Source]| {
                // SAFETY: all have this shape, and are within their vectors.
                unsafe { run(ADD, false, DType::F32, strided(&sums, DType::F32, &out), ins) }
            };
            let ins = [&a, &b].map(|l| Source::Strided(strided(&data, DType::F32, l)));
            sum(&ins);
            assert!((0..n).all(|i| sums[start + i] == data[i] + data[i + 1]));
            sum(&[ins[1], number]);
            assert!((0..n).all(|i| sums[start + i] == data[i + 1] + 0.5));
            sum(&[Source::Strided(strided(&sums, DType::F32, &out)), ins[0]]);
            assert!((0..n).all(|i| sums[start + i] == data[i + 1] + 0.5 + data[i]));
        }
    }
}
