//! What a captured kernel keeps of its arguments: bodies over stand-ins, and copies of everything else.

use crate::base::kernel_args::pool::PoolWindows;
use crate::base::kernel_args::{Alignments, ResampleWeights, Windows};
use crate::base::{DType, Device, Dims, Layout, Reduction, Result, Scalar};
use crate::capture::Recorder;
use crate::cpu::conv::Conv;
use crate::tensor::{Body, BodyRef};

/// An argument of a kernel that can be kept for replays.
pub trait Keep {
    type Kept: See + Send + Sync + 'static;
    fn keep(&self, recorder: &mut Recorder) -> Result<Self::Kept>;
}

/// A kept argument, as the kernel sees it: with the type of the original, or behind a reference.
pub trait See {
    type Seen<'a>
    where
        Self: 'a;
    fn see(&self) -> Self::Seen<'_>;
}

/// Kept, and seen as a copy.
pub struct Copied<T>(pub T);

impl<T: Copy> See for Copied<T> {
    type Seen<'a>
        = T
    where
        T: 'a;
    fn see(&self) -> T {
        self.0
    }
}

/// Kept, and seen behind a reference.
pub struct Whole<T>(pub T);

impl<T> See for Whole<T> {
    type Seen<'a>
        = &'a T
    where
        T: 'a;
    fn see(&self) -> &T {
        &self.0
    }
}

/// A kept slice.
pub struct Slice<T>(Vec<T>);

impl<T> See for Slice<T> {
    type Seen<'a>
        = &'a [T]
    where
        T: 'a;
    fn see(&self) -> &[T] {
        &self.0
    }
}

/// A body that may be absent, seen as an option of a reference.
pub struct MaybeBody(Option<Body>);

impl See for MaybeBody {
    type Seen<'a> = Option<&'a Body>;
    fn see(&self) -> Option<&Body> {
        self.0.as_ref()
    }
}

impl<T: Keep + ?Sized> Keep for &T {
    type Kept = T::Kept;
    fn keep(&self, recorder: &mut Recorder) -> Result<T::Kept> {
        (**self).keep(recorder)
    }
}

impl Keep for Body {
    type Kept = Whole<Body>;
    fn keep(&self, recorder: &mut Recorder) -> Result<Whole<Body>> {
        recorder.stand_in(self).map(Whole)
    }
}

impl Keep for BodyRef<'_> {
    type Kept = Whole<Body>;
    fn keep(&self, recorder: &mut Recorder) -> Result<Whole<Body>> {
        recorder.stand_in(self).map(Whole)
    }
}

impl Keep for Option<&Body> {
    type Kept = MaybeBody;
    fn keep(&self, recorder: &mut Recorder) -> Result<MaybeBody> {
        self.map(|body| recorder.stand_in(body)).transpose().map(MaybeBody)
    }
}

impl Keep for Option<Body> {
    type Kept = Whole<Option<Body>>;
    fn keep(&self, recorder: &mut Recorder) -> Result<Whole<Option<Body>>> {
        self.as_ref().map(|body| recorder.stand_in(body)).transpose().map(Whole)
    }
}

impl Keep for [Body] {
    type Kept = Slice<Body>;
    fn keep(&self, recorder: &mut Recorder) -> Result<Slice<Body>> {
        self.iter().map(|body| recorder.stand_in(body)).collect::<Result<_>>().map(Slice)
    }
}

impl Keep for Vec<Body> {
    type Kept = Slice<Body>;
    fn keep(&self, recorder: &mut Recorder) -> Result<Slice<Body>> {
        self.as_slice().keep(recorder)
    }
}

impl<const N: usize> Keep for [Body; N] {
    type Kept = Slice<Body>;
    fn keep(&self, recorder: &mut Recorder) -> Result<Slice<Body>> {
        self.as_slice().keep(recorder)
    }
}

/// Types that are kept as copies, and seen by value.
macro_rules! keep_copy {
    ($($t:ty),+ $(,)?) => {$(
        impl $crate::capture::Keep for $t {
            type Kept = $crate::capture::Copied<$t>;
            fn keep(&self, _: &mut $crate::capture::Recorder) -> $crate::base::Result<Self::Kept> {
                Ok($crate::capture::Copied(*self))
            }
        }
    )+};
}
pub(crate) use keep_copy;

/// Types that are kept as clones, and seen behind a reference.
macro_rules! keep_clone {
    ($($t:ty),+ $(,)?) => {$(
        impl $crate::capture::Keep for $t {
            type Kept = $crate::capture::Whole<$t>;
            fn keep(&self, _: &mut $crate::capture::Recorder) -> $crate::base::Result<Self::Kept> {
                Ok($crate::capture::Whole(self.clone()))
            }
        }
    )+};
}
pub(crate) use keep_clone;

keep_copy!(
    bool,
    u8,
    i32,
    u32,
    u64,
    i64,
    usize,
    f32,
    f64,
    Option<f64>,
    Option<usize>,
    Scalar,
    DType,
    Device,
    Reduction,
    fn(f64) -> f64
);
keep_copy!(fn(f64, f64) -> f64, &'static str);
keep_clone!(Layout, Dims, Windows, PoolWindows, ResampleWeights, Alignments, Conv);

impl Keep for [usize] {
    type Kept = Slice<usize>;
    fn keep(&self, _: &mut Recorder) -> Result<Slice<usize>> {
        Ok(Slice(self.to_vec()))
    }
}
