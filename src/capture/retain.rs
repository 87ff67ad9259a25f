//! What a captured kernel keeps of its arguments: bodies over stand-ins, and copies of everything else.

use crate::base::kernel_args::pool::PoolWindows;
use crate::base::kernel_args::{Alignments, LossReduction, ResampleWeights, Windows};
use crate::base::{DType, Device, Dims, Layout, Reduction, Result, Scalar};
use crate::capture::Recorder;
use crate::cpu::conv::Conv;
use crate::cpu::pool::At;
use crate::tensor::{Body, BodyRef};

/// An argument of a kernel that can be kept for replays.
pub trait Retain {
    type Retained: See + Send + Sync + 'static;
    fn retain(&self, recorder: &mut Recorder) -> Result<Self::Retained>;
}

/// A kept argument, as the kernel sees it: with the type of the original, or behind a reference.
pub trait See {
    type Seen<'a>
    where
        Self: 'a;
    fn see(&self) -> Self::Seen<'_>;
}

/// Retained, and seen as a copy.
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

/// Retained, and seen behind a reference.
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

impl<T: Retain + ?Sized> Retain for &T {
    type Retained = T::Retained;
    fn retain(&self, recorder: &mut Recorder) -> Result<T::Retained> {
        (**self).retain(recorder)
    }
}

impl Retain for Body {
    type Retained = Whole<Body>;
    fn retain(&self, recorder: &mut Recorder) -> Result<Whole<Body>> {
        recorder.stand_in(self).map(Whole)
    }
}

impl Retain for BodyRef<'_> {
    type Retained = Whole<Body>;
    fn retain(&self, recorder: &mut Recorder) -> Result<Whole<Body>> {
        recorder.stand_in(self).map(Whole)
    }
}

impl Retain for Option<&Body> {
    type Retained = MaybeBody;
    fn retain(&self, recorder: &mut Recorder) -> Result<MaybeBody> {
        self.map(|body| recorder.stand_in(body)).transpose().map(MaybeBody)
    }
}

impl Retain for Option<Body> {
    type Retained = Whole<Option<Body>>;
    fn retain(&self, recorder: &mut Recorder) -> Result<Whole<Option<Body>>> {
        self.as_ref().map(|body| recorder.stand_in(body)).transpose().map(Whole)
    }
}

impl Retain for [Option<Body>; 3] {
    type Retained = Whole<[Option<Body>; 3]>;
    fn retain(&self, recorder: &mut Recorder) -> Result<Self::Retained> {
        let [a, b, c] = self;
        Ok(Whole([a.retain(recorder)?.0, b.retain(recorder)?.0, c.retain(recorder)?.0]))
    }
}

impl Retain for [Body] {
    type Retained = Slice<Body>;
    fn retain(&self, recorder: &mut Recorder) -> Result<Slice<Body>> {
        self.iter().map(|body| recorder.stand_in(body)).collect::<Result<_>>().map(Slice)
    }
}

impl Retain for Vec<Body> {
    type Retained = Slice<Body>;
    fn retain(&self, recorder: &mut Recorder) -> Result<Slice<Body>> {
        self.as_slice().retain(recorder)
    }
}

impl<const N: usize> Retain for [Body; N] {
    type Retained = Slice<Body>;
    fn retain(&self, recorder: &mut Recorder) -> Result<Slice<Body>> {
        self.as_slice().retain(recorder)
    }
}

/// Types that are kept as copies, and seen by value.
macro_rules! retain_copy {
    ($($t:ty),+ $(,)?) => {$(
        impl $crate::capture::Retain for $t {
            type Retained = $crate::capture::Copied<$t>;
            fn retain(&self, _: &mut $crate::capture::Recorder) -> $crate::base::Result<Self::Retained> {
                Ok($crate::capture::Copied(*self))
            }
        }
    )+};
}
pub(crate) use retain_copy;

/// Types that are kept as clones, and seen behind a reference.
macro_rules! retain_clone {
    ($($t:ty),+ $(,)?) => {$(
        impl Retain for $t {
            type Retained = Whole<$t>;
            fn retain(&self, _: &mut Recorder) -> Result<Whole<$t>> {
                Ok(Whole(self.clone()))
            }
        }
    )+};
}

retain_copy!(
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
    fn(f64) -> f64,
    [bool; 3]
);
retain_copy!(fn(f64, f64) -> f64, &'static str, LossReduction, At);
retain_clone!(Layout, Dims, Vec<i64>, Windows, PoolWindows, ResampleWeights, Alignments, Conv);

impl Retain for [usize] {
    type Retained = Slice<usize>;
    fn retain(&self, _: &mut Recorder) -> Result<Slice<usize>> {
        Ok(Slice(self.to_vec()))
    }
}
