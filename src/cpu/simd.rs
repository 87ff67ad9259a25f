//! The one door to SIMD: plain loops compiled once per instruction set, chosen at run time.
//! No other file names a target feature. Kernels use no fused multiply-add, so every machine gives the same bits.

use std::sync::atomic::{AtomicU8, Ordering};

/// The instruction sets that loops are compiled for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Level {
    Baseline = 1,
    /// AVX2.
    V3 = 2,
    /// AVX-512 F, VL, BW, DQ.
    V4 = 3,
}

static LEVEL: AtomicU8 = AtomicU8::new(0);

/// What this machine can run, found out once.
#[inline]
pub fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        1 => Level::Baseline,
        2 => Level::V3,
        3 => Level::V4,
        _ => detect(),
    }
}

#[cold]
fn detect() -> Level {
    #[cfg(target_arch = "x86_64")]
    let found = if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
    {
        Level::V4
    } else if is_x86_feature_detected!("avx2") {
        Level::V3
    } else {
        Level::Baseline
    };
    #[cfg(not(target_arch = "x86_64"))]
    let found = Level::Baseline;
    LEVEL.store(found as u8, Ordering::Relaxed);
    found
}

/// Defines an `unsafe fn` whose body is compiled for each [`Level`]; calling it picks the best one.
/// `simd_fn! { pub unsafe fn axpy(n: usize, x: *const f32, y: *mut f32) { ... } }`
/// Everything that the body calls must be `#[inline(always)]`, or it is compiled for the baseline.
macro_rules! simd_fn {
    ($(#[$meta:meta])* $vis:vis unsafe fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        $vis unsafe fn $name($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            unsafe fn body($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: the contract of the function being defined.
                unsafe { $body }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,f16c,fma")]
            unsafe fn v3($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: as above.
                unsafe { body($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,bmi1,bmi2,lzcnt,popcnt,f16c,fma")]
            unsafe fn v4($($arg: $ty),*) $(-> $ret)? {
                // SAFETY: as above.
                unsafe { body($($arg),*) }
            }
            // SAFETY: the caller keeps the contract, and `level` has found the instruction set present.
            unsafe {
                #[cfg(target_arch = "x86_64")]
                match $crate::cpu::simd::level() {
                    $crate::cpu::simd::Level::V4 => return v4($($arg),*),
                    $crate::cpu::simd::Level::V3 => return v3($($arg),*),
                    $crate::cpu::simd::Level::Baseline => {}
                }
                body($($arg),*)
            }
        }
    };
}
pub(crate) use simd_fn;
