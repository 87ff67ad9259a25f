//! Reads and writes runs of elements of any dtype and stride as one of the types that kernels compute in.

use super::cast::blocks::{Place, copy_block};
use super::cast::convert::{Convert, narrow, widen};
use super::cast::tile::Tile;
use crate::base::{DType, Strided};

pub use super::cast::tile::TILE;

/// The dtype that kernels compute in for operands of a dtype.
pub fn compute_type(dtype: DType) -> DType {
    match dtype {
        DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 | DType::F32 => DType::F32,
        DType::F64 => DType::F64,
        DType::C32 | DType::C64 | DType::C128 => DType::C128,
        _ => DType::I64,
    }
}

/// Two tiles: one for gathered elements, one for converted elements.
pub struct RunBuffers {
    gathered: Tile,
    converted: Tile,
}

impl RunBuffers {
    pub const fn empty() -> RunBuffers {
        RunBuffers { gathered: Tile::empty(), converted: Tile::empty() }
    }
}

/// Reads or writes runs of elements of one operand, `step` elements apart.
#[derive(Clone, Copy)]
pub struct StridedRun {
    convert: Option<Convert>,
    ptr: *mut u8,
    size: usize,
    pub step: usize,
}

// SAFETY: it only describes memory, like the Strided that it comes from.
unsafe impl Send for StridedRun {}
// SAFETY: as above.
unsafe impl Sync for StridedRun {}

impl StridedRun {
    /// Reads `x` as `compute`.
    pub fn reader(x: &Strided, step: usize, compute: DType) -> StridedRun {
        let convert = (x.dtype != compute).then(|| widen(x.dtype, compute));
        StridedRun { convert, ptr: x.ptr, size: x.dtype.size(), step }
    }

    /// Writes values of dtype `compute` to `out`.
    pub fn writer(out: &Strided, step: usize, compute: DType) -> StridedRun {
        let convert = (out.dtype != compute).then(|| narrow(compute, out.dtype));
        StridedRun { convert, ptr: out.ptr, size: out.dtype.size(), step }
    }

    /// Returns true if runs of any length need no copy.
    pub fn is_direct(&self) -> bool {
        self.convert.is_none() && self.step == 1
    }

    pub fn at(&self, offset: usize) -> *mut u8 {
        self.ptr.wrapping_add(offset * self.size)
    }

    /// The `n` elements from `offset` on, packed: in place if possible, else copied to `room`, which holds one tile at
    /// most.
    ///
    /// # Safety
    /// The elements are inside the operand.
    #[inline]
    pub unsafe fn read(&self, offset: usize, n: usize, room: &mut RunBuffers) -> *const u8 {
        let mut from: *const u8 = self.at(offset);
        // SAFETY: the tiles have room for `n` elements of any dtype.
        unsafe {
            if self.step != 1 && n > 1 {
                let source = Place { at: from.cast_mut(), row: 0, col: self.step * self.size };
                copy_block(self.size, 1, n, source, Place::dense(room.gathered.at(), n, self.size));
                from = room.gathered.at();
            }
            if let Some(convert) = self.convert {
                convert(n, from, room.converted.at());
                from = room.converted.at();
            }
        }
        from
    }

    /// Stores `n` values of the compute type: one tile at most, unless `values` already is their place in the operand.
    ///
    /// # Safety
    /// The elements from `offset` on are inside the operand.
    #[inline]
    pub unsafe fn write(&self, values: *const u8, offset: usize, n: usize, room: &mut RunBuffers) {
        let to = self.at(offset);
        if to.cast_const() == values {
            return;
        }
        let dense = self.step == 1 || n == 1;
        // SAFETY: the tiles have room for `n` elements; `values` is not the tile that is written.
        unsafe {
            let mut from = values;
            if let Some(convert) = self.convert {
                let landing = if dense { to } else { room.gathered.at() };
                convert(n, from, landing);
                from = landing;
            }
            if from != to.cast_const() {
                let target = Place { at: to, row: 0, col: self.step * self.size };
                copy_block(self.size, 1, n, Place::dense(from.cast_mut(), n, self.size), target);
            }
        }
    }
}
