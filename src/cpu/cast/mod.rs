//! Copies between layouts and dtypes, and constant fills.

pub mod blocks;
pub mod convert;
pub mod tile;

use crate::base::{DType, Scalar, Strided};
use crate::cpu::par::{self, GRAIN, Shared};
use blocks::{Bytes, Operand, Place, Walk, copy_block};
use convert::Conversion;
use tile::{TILE, Tile, tile_len};

/// Copies `src` to `out`, which has the same shape, converting elements as PyTorch does.
///
/// # Safety
/// Both are valid; `out` overlaps neither `src` nor itself.
pub unsafe fn copy(out: Strided, src: Strided) {
    let n = out.numel();
    if n == 0 {
        return;
    }
    // SAFETY: the caller's contract.
    unsafe {
        match (same_bits(src.dtype, out.dtype), out.is_contiguous() && src.is_contiguous()) {
            (true, true) => copy_bytes(n * out.dtype.size(), src.ptr, out.ptr),
            (true, false) => copy_layout(out, src),
            (false, true) => convert_dense(n, src, out),
            (false, false) => convert_layout(out, src),
        }
    }
}

/// Returns true if the conversion changes no bits: integers wrap, and bools are 0 or 1.
fn same_bits(from: DType, to: DType) -> bool {
    from == to || (from.size() == to.size() && to.is_int() && (from.is_int() || from == DType::Bool))
}

unsafe fn copy_bytes(n: usize, from: *mut u8, to: *mut u8) {
    let (from, to) = (Shared::new(from), Shared::new(to));
    par::ranges(n, 8 * GRAIN, |r| {
        // SAFETY: the caller's contract; ranges do not overlap.
        unsafe { from.get().add(r.start).copy_to_nonoverlapping(to.get().add(r.start), r.len()) }
    });
}

/// Concatenates: copies the next run of bytes of each part, part after part, `outer` times. The second number of a part
/// is the length of its runs.
///
/// # Safety
/// Each part has `outer` runs, and `out` has room for all of them; they do not overlap.
pub unsafe fn join(mut out: *mut u8, outer: usize, parts: &[(*const u8, usize)]) {
    for i in 0..outer {
        for &(part, run) in parts {
            // SAFETY: the caller's contract.
            unsafe { out.copy_from_nonoverlapping(part.add(i * run), run) };
            out = out.wrapping_add(run);
        }
    }
}

/// Copies between layouts, for equal dtypes.
unsafe fn copy_layout(out: Strided, src: Strided) {
    let (size, from, to) = (out.dtype.size(), Shared::new(src.ptr), Shared::new(out.ptr));
    let operands = [out, src].map(|s| Operand { strides: s.strides, size });
    let mut walk = Walk::new(out.shape, &operands, size_of::<Tile>() / size);
    if walk.block.0 == 1 {
        walk.block.1 = GRAIN;
    }
    each_block(&walk, |offset, rows, cols| {
        // SAFETY: the walk stays within both operands, and its blocks fit a tile and do not overlap.
        unsafe {
            let (source, target) =
                (walk.place(1, from.get().add(offset[1])), walk.place(0, to.get().add(offset[0])));
            copy_block(size, rows, cols, source, target);
        }
    });
}

/// Converts between dtypes; both operands are contiguous.
unsafe fn convert_dense(n: usize, src: Strided, out: Strided) {
    let convert = Conversion::new(src.dtype, out.dtype);
    let (from, to) = (Shared::new(src.ptr), Shared::new(out.ptr));
    let (from_size, to_size) = (src.dtype.size(), out.dtype.size());
    let most = tile_len(src.dtype.is_complex() || out.dtype.is_complex());
    par::ranges(n, GRAIN, |r| {
        let mut middle = Tile::empty();
        for start in r.clone().step_by(most) {
            let len = most.min(r.end - start);
            // SAFETY: the caller's contract; ranges do not overlap.
            unsafe {
                convert.run(
                    len,
                    from.get().add(start * from_size),
                    to.get().add(start * to_size),
                    &mut middle,
                )
            };
        }
    });
}

/// Converts between dtypes and layouts: gathers, converts and scatters blocks.
unsafe fn convert_layout(out: Strided, src: Strided) {
    let convert = Conversion::new(src.dtype, out.dtype);
    let (from, to) = (Shared::new(src.ptr), Shared::new(out.ptr));
    let (from_size, to_size) = (src.dtype.size(), out.dtype.size());
    let operands = [(out, to_size), (src, from_size)].map(|(s, size)| Operand { strides: s.strides, size });
    let walk = Walk::new(out.shape, &operands, tile_len(src.dtype.is_complex() || out.dtype.is_complex()));
    each_block(&walk, |offset, rows, cols| {
        let (mut gathered, mut middle, mut converted) = (Tile::empty(), Tile::empty(), Tile::empty());
        let dense = Place::dense(gathered.at(), cols, from_size);
        let result = Place::dense(converted.at(), cols, to_size);
        // SAFETY: the walk stays within both operands, and its blocks fit a tile and do not overlap.
        unsafe {
            copy_block(from_size, rows, cols, walk.place(1, from.get().add(offset[1])), dense);
            convert.run(rows * cols, dense.at, result.at, &mut middle);
            copy_block(to_size, rows, cols, result, walk.place(0, to.get().add(offset[0])));
        }
    });
}

/// Visits all blocks, on several threads if there are many elements.
fn each_block(walk: &Walk, body: impl Fn(&Bytes, usize, usize) + Sync) {
    par::ranges(walk.blocks(), walk.grain(), |r| walk.visit(r, &body));
}

/// Sets every element to `value`.
///
/// # Safety
/// `out` is valid and does not overlap itself.
pub unsafe fn fill(out: Strided, value: Scalar) {
    let n = out.numel();
    if n == 0 {
        return;
    }
    let size = out.dtype.size();
    let mut pattern = [0u8; 16];
    // SAFETY: no element has more than sixteen bytes.
    unsafe { value.write(out.dtype, pattern.as_mut_ptr()) };
    let to = Shared::new(out.ptr);
    if !out.is_contiguous() {
        let walk = Walk::new(out.shape, &[Operand { strides: out.strides, size }], TILE);
        each_block(&walk, |offset, rows, cols| {
            let same = Place { at: pattern.as_ptr().cast_mut(), row: 0, col: 0 };
            // SAFETY: the walk stays within the output, and the pattern is only read.
            unsafe { copy_block(size, rows, cols, same, walk.place(0, to.get().add(offset[0]))) }
        });
        return;
    }
    par::ranges(n, 2 * GRAIN, |r| {
        // SAFETY: the caller's contract; ranges do not overlap.
        unsafe { splat_bytes(size, pattern, r.len(), to.get().add(r.start * size)) }
    });
}

/// Writes `n` copies of an element of `size` bytes.
///
/// # Safety
/// `to` has room for them.
pub unsafe fn splat_bytes(size: usize, element: [u8; 16], n: usize, to: *mut u8) {
    // SAFETY: the caller's contract: there is aligned room for `n` elements.
    unsafe {
        if element[..size].iter().all(|&byte| byte == element[0]) {
            return to.write_bytes(element[0], n * size);
        }
        let all = n * size;
        if all < 64 {
            return (0..n).for_each(|i| to.add(i * size).copy_from_nonoverlapping(element.as_ptr(), size));
        }
        // Writes whole registers of copies. The size of every dtype divides 64.
        let mut many = [0u8; 64];
        (0..64).for_each(|i| many[i] = element[i % size]);
        let whole = all - all % 64;
        (0..whole).step_by(64).for_each(|at| to.add(at).cast::<[u8; 64]>().write_unaligned(many));
        to.add(whole).copy_from_nonoverlapping(many.as_ptr(), all - whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;

    fn strided<'a, E>(data: &[E], dtype: DType, shape: &'a [usize], strides: &'a [usize]) -> Strided<'a> {
        Strided { ptr: data.as_ptr().cast_mut().cast(), dtype, shape, strides }
    }

    fn converted<A, B: Copy + Default>(from: &[A], a: DType, b: DType) -> Vec<B> {
        let to = vec![B::default(); from.len()];
        let shape = [from.len()];
        // SAFETY: both vectors have the dtypes given.
        unsafe { copy(strided(&to, b, &shape, &[1]), strided(from, a, &shape, &[1])) };
        to
    }

    #[test]
    fn floats_become_integers_as_on_x86() {
        let floats = [1.9f32, -1.9, 300.0, -300.0, f32::NAN, 1e20];
        assert_eq!(converted::<_, u8>(&floats, DType::F32, DType::U8), [1, 255, 44, 212, 0, 0]);
        assert_eq!(
            converted::<_, i32>(&floats, DType::F32, DType::I32),
            [1, -1, 300, -300, i32::MIN, i32::MIN]
        );
        assert_eq!(
            converted::<_, i64>(&floats, DType::F32, DType::I64),
            [1, -1, 300, -300, i64::MIN, i64::MIN]
        );
        assert_eq!(converted::<_, u8>(&[0.0f32, -0.0, 0.3, f32::NAN], DType::F32, DType::Bool), [0, 0, 1, 1]);
    }

    #[test]
    fn doubles_become_halves_with_one_rounding() {
        let ulp = 2f64.powi(-10);
        let doubles =
            [1.0 + ulp / 2.0, 1.0 + ulp / 2.0 + 1e-12, 65519.9999999, 65520.0, 2f64.powi(-25) * 1.0000000001];
        let halves = converted::<_, f16>(&doubles, DType::F64, DType::F16);
        assert_eq!(
            halves.iter().map(|h| h.to_f64()).collect::<Vec<_>>(),
            [1.0, 1.0 + ulp, 65504.0, f64::INFINITY, 2f64.powi(-24)]
        );
    }

    #[test]
    fn every_half_survives() {
        let bits: Vec<u16> = (0..=u16::MAX).collect();
        for dtype in [DType::F16, DType::BF16] {
            let singles: Vec<f32> = converted(&bits, dtype, DType::F32);
            let back: Vec<u16> = converted(&singles, DType::F32, dtype);
            assert!(bits.iter().zip(&back).zip(&singles).all(|((a, b), x)| a == b || x.is_nan()));
        }
    }

    #[test]
    fn any_layout_any_size() {
        for (rows, cols) in [(1, 1), (3, 5), (37, 70), (130, 600), (1, 2000), (400, 300)] {
            let data: Vec<i32> = (0..rows * cols).collect();
            let (rows, cols) = (rows as usize, cols as usize);
            let (shape, across, along) = ([cols, rows], [1, cols], [rows, 1]);
            let turned = vec![0i64; rows * cols];
            let copied = vec![0i32; rows * cols];
            // SAFETY: all have rows × cols elements.
            unsafe {
                let source = strided(&data, DType::I32, &shape, &across);
                copy(strided(&turned, DType::I64, &shape, &along), source);
                copy(strided(&copied, DType::I32, &shape, &along), source);
            }
            let want = |i: usize| i % rows * cols + i / rows;
            assert!((0..rows * cols).all(|i| turned[i] == want(i) as i64 && copied[i] == want(i) as i32));
        }
    }

    #[test]
    fn fill_touches_only_its_elements() {
        let data = vec![1i16; 60];
        // SAFETY: 5 × 6 elements, of which every second one is filled.
        unsafe { fill(strided(&data, DType::I16, &[5, 6], &[12, 2]), Scalar::Float(7.9)) };
        assert!((0..60).all(|i| data[i] == if i % 2 == 0 { 7 } else { 1 }));
    }
}
