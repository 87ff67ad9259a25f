//! SIMD: plain loops, compiled once for each instruction set, chosen at run time. No other file names a target feature.
//!
//! A multiply-add is fused only where a kernel asks for it (on machines without the instruction a library computes it),
//! so every machine gives the same bits.

use std::mem::MaybeUninit;
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

/// The best instruction set of this machine, detected once.
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

/// Defines an `unsafe fn` whose body is compiled for each [`Level`]; a call picks the best one. `simd_fn! { pub unsafe
/// fn axpy(n: usize, x: *const f32, y: *mut f32) { ... } }`
///
/// Everything that the body calls must be `#[inline(always)]`, or it is compiled for the baseline. A `[level]` in front
/// is the highest level that is used. Generic functions list their types and then their constants, which are of type
/// usize unless they name another, as in `<T: Float; N, FUSED: bool>`; further bounds follow as `where [T: Copy]`.
macro_rules! simd_fn {
    (@kind) => { usize };
    (@kind $kind:ty) => { $kind };
    ($(#[$meta:meta])* $vis:vis unsafe fn $($rest:tt)*) => {
        $crate::cpu::simd::simd_fn! { [$crate::cpu::simd::Level::V4] $(#[$meta])* $vis unsafe fn $($rest)* }
    };
    ([$most:expr] $(#[$meta:meta])* $vis:vis unsafe fn $name:ident $(<$($t:ident $(: $bound:path)?),+ $(; $($n:ident $(: $kind:ty)?),+)?>)?
        ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $(where [$($bounds:tt)*])? $body:block) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments, reason = "kernels take plain numbers and pointers")]
        $vis unsafe fn $name $(<$($t $(: $bound)?,)+ $($(const $n: $crate::cpu::simd::simd_fn!(@kind $($kind)?)),+)?>)? ($($arg: $ty),*) $(-> $ret)? $(where $($bounds)*)? {
            #[inline(always)]
            unsafe fn body $(<$($t $(: $bound)?,)+ $($(const $n: $crate::cpu::simd::simd_fn!(@kind $($kind)?)),+)?>)? ($($arg: $ty),*) $(-> $ret)? $(where $($bounds)*)? {
                // SAFETY: the contract of the function being defined.
                unsafe { $body }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt,f16c,fma")]
            unsafe fn v3 $(<$($t $(: $bound)?,)+ $($(const $n: $crate::cpu::simd::simd_fn!(@kind $($kind)?)),+)?>)? ($($arg: $ty),*) $(-> $ret)? $(where $($bounds)*)? {
                // SAFETY: as above.
                unsafe { body $(::<$($t,)+ $($($n),+)?>)? ($($arg),*) }
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,bmi1,bmi2,lzcnt,popcnt,f16c,fma")]
            unsafe fn v4 $(<$($t $(: $bound)?,)+ $($(const $n: $crate::cpu::simd::simd_fn!(@kind $($kind)?)),+)?>)? ($($arg: $ty),*) $(-> $ret)? $(where $($bounds)*)? {
                // SAFETY: as above.
                unsafe { body $(::<$($t,)+ $($($n),+)?>)? ($($arg),*) }
            }
            // SAFETY: the caller keeps the contract, and `level` has checked that the machine has the instruction set.
            unsafe {
                #[cfg(target_arch = "x86_64")]
                match ($most, $crate::cpu::simd::level()) {
                    ($crate::cpu::simd::Level::V4, $crate::cpu::simd::Level::V4) => return v4 $(::<$($t,)+ $($($n),+)?>)? ($($arg),*),
                    (_, $crate::cpu::simd::Level::Baseline) => {}
                    _ => return v3 $(::<$($t,)+ $($($n),+)?>)? ($($arg),*),
                }
                #[cfg(not(target_arch = "x86_64"))]
                let _: $crate::cpu::simd::Level = $most;
                body $(::<$($t,)+ $($($n),+)?>)? ($($arg),*)
            }
        }
    };
}
pub(crate) use simd_fn;

/// Writes `n` bytes past the caches, for results that would not stay there anyway; an ordinary write would first read
/// the old contents. Call [`streamed`] before another thread reads the result.
///
/// # Safety
/// The same as for `from.copy_to_nonoverlapping(to, n)`.
pub unsafe fn stream(n: usize, from: *const u8, to: *mut u8) {
    // SAFETY: the caller's contract; the aligned stores start at `head` and end before `n`.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
            let head = to.align_offset(64).min(n);
            from.copy_to_nonoverlapping(to, head);
            let lines = (n - head) / 64;
            for line in 0..lines {
                let (from, to) = (from.add(head + line * 64), to.add(head + line * 64));
                for part in 0..4 {
                    _mm_stream_si128(
                        to.cast::<__m128i>().add(part),
                        _mm_loadu_si128(from.cast::<__m128i>().add(part)),
                    );
                }
            }
            let done = head + lines * 64;
            from.add(done).copy_to_nonoverlapping(to.add(done), n - done);
        }
        #[cfg(not(target_arch = "x86_64"))]
        from.copy_to_nonoverlapping(to, n);
    }
}

/// Copies every second one of `2 * n - 1` elements.
///
/// # Safety
/// `from` has `2 * n - 1` elements; `to` has room for `n` and overlaps nothing.
#[inline(always)]
pub unsafe fn every_other<E: Copy>(n: usize, from: *const E, to: *mut E) {
    let mut i = 0;
    // SAFETY: the caller's contract; every x86-64 machine has the instructions.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if size_of::<E>() == 4 {
            use std::arch::x86_64::*;
            while i + 4 <= n {
                // The second load begins one element early: there may be nothing behind the last element.
                let four = |j: usize| _mm_loadu_ps(from.add(2 * i + j).cast());
                _mm_storeu_ps(to.add(i).cast(), _mm_shuffle_ps::<0b11_01_10_00>(four(0), four(3)));
                i += 4;
            }
        }
        while i < n {
            *to.add(i) = *from.add(2 * i);
            i += 1;
        }
    }
}

/// Number of bytes that [`put`] writes.
pub const REGISTER: usize = 32;

/// The elements of one register.
pub type Register<T, const LANES: usize> = [MaybeUninit<T>; LANES];

/// Number of elements before the first aligned register, at most `n`.
#[inline(always)]
pub fn to_register<T>(at: *const u8, n: usize) -> usize {
    ((at as usize).wrapping_neg() % REGISTER / size_of::<T>()).min(n)
}

/// Writes a register.
///
/// # Safety
/// `to` is valid for `LANES` elements.
#[inline(always)]
pub unsafe fn put<T, const LANES: usize>(block: &Register<T, LANES>, to: *mut T) {
    // SAFETY: the caller's contract.
    unsafe { to.copy_from_nonoverlapping(block.as_ptr().cast(), LANES) }
}

/// Writes a register past the caches, as [`stream`] does.
///
/// # Safety
/// See [`put`]; `to` is also aligned to [`REGISTER`] bytes.
#[inline(always)]
pub unsafe fn put_past<T, const LANES: usize>(block: &Register<T, LANES>, to: *mut T) {
    const { assert!(LANES * size_of::<T>() == REGISTER) }
    // SAFETY: the caller's contract.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{__m128i, _mm_stream_si128};
            let [low, high]: [__m128i; 2] = std::mem::transmute_copy(block);
            _mm_stream_si128(to.cast(), low);
            _mm_stream_si128(to.cast::<__m128i>().add(1), high);
        }
        #[cfg(not(target_arch = "x86_64"))]
        put(block, to);
    }
}

/// Transposes a square: four columns of four elements become four rows. Spelled out, because compilers turn the plain
/// loop into single loads.
///
/// # Safety
/// Both squares are valid and do not overlap; `from_step` and `to_step` are the distances in bytes between their lines.
#[inline(always)]
pub unsafe fn transpose_square<E: Copy>(from: *const u8, from_step: usize, to: *mut u8, to_step: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::*;
            match size_of::<E>() {
                1 => {
                    let line =
                        |i: usize| _mm_cvtsi32_si128(from.add(i * from_step).cast::<i32>().read_unaligned());
                    let (low, high) =
                        (_mm_unpacklo_epi8(line(0), line(1)), _mm_unpacklo_epi8(line(2), line(3)));
                    let lines: [i32; 4] = std::mem::transmute(_mm_unpacklo_epi16(low, high));
                    for (i, line) in lines.into_iter().enumerate() {
                        to.add(i * to_step).cast::<i32>().write_unaligned(line);
                    }
                    return;
                }
                2 => {
                    let line = |i: usize| _mm_loadl_epi64(from.add(i * from_step).cast());
                    let low = _mm_unpacklo_epi16(line(0), line(1));
                    let high = _mm_unpacklo_epi16(line(2), line(3));
                    let halves = [_mm_unpacklo_epi32(low, high), _mm_unpackhi_epi32(low, high)];
                    for (i, two) in halves.into_iter().enumerate() {
                        _mm_storel_epi64(to.add(2 * i * to_step).cast(), two);
                        _mm_storel_epi64(to.add((2 * i + 1) * to_step).cast(), _mm_unpackhi_epi64(two, two));
                    }
                    return;
                }
                4 => {
                    let line = |i: usize| _mm_loadu_si128(from.add(i * from_step).cast());
                    let [a, b, c, d] = [line(0), line(1), line(2), line(3)];
                    let [e, f] = [_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b)];
                    let [g, h] = [_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d)];
                    let put = |i: usize, line| _mm_storeu_si128(to.add(i * to_step).cast(), line);
                    put(0, _mm_unpacklo_epi64(e, g));
                    put(1, _mm_unpackhi_epi64(e, g));
                    put(2, _mm_unpacklo_epi64(f, h));
                    put(3, _mm_unpackhi_epi64(f, h));
                    return;
                }
                8 => {
                    for (i, j) in [(0, 0), (0, 2), (2, 0), (2, 2)] {
                        let line = |k: usize| _mm_loadu_si128(from.add((j + k) * from_step + i * 8).cast());
                        let put =
                            |k: usize, line| _mm_storeu_si128(to.add((i + k) * to_step + j * 8).cast(), line);
                        let [a, b] = [line(0), line(1)];
                        put(0, _mm_unpacklo_epi64(a, b));
                        put(1, _mm_unpackhi_epi64(a, b));
                    }
                    return;
                }
                _ => {}
            }
        }
        let line = |i: usize| from.add(i * from_step).cast::<[E; 4]>().read_unaligned();
        let lines = [line(0), line(1), line(2), line(3)];
        for i in 0..4 {
            to.add(i * to_step).cast::<[E; 4]>().write_unaligned(lines.map(|line| line[i]));
        }
    }
}

/// The sum of `n` floats, for small `n`: of sixteen elements, groups of four are added in single precision before they
/// are widened. Spelled out, because compilers make slow code of the plain loop.
///
/// # Safety
/// `x` has `n` elements.
#[inline(always)]
pub unsafe fn total_of_few<const SQUARED: bool>(x: *const f32, n: usize) -> f64 {
    let term = |i: usize| {
        // SAFETY: the caller's elements.
        let x = unsafe { *x.add(i) };
        if SQUARED { x * x } else { x }
    };
    let mut i = 0;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's elements; every x86-64 machine has the instructions.
    let mut sum = unsafe {
        use std::arch::x86_64::*;
        let four = |i: usize| {
            let four = _mm_loadu_ps(x.add(i));
            if SQUARED { _mm_mul_ps(four, four) } else { four }
        };
        let widened = |four: __m128| _mm_add_pd(_mm_cvtps_pd(four), _mm_cvtps_pd(_mm_movehl_ps(four, four)));
        let mut sums = _mm_setzero_pd();
        while i + 16 <= n {
            let fours = _mm_add_ps(_mm_add_ps(four(i), four(i + 4)), _mm_add_ps(four(i + 8), four(i + 12)));
            sums = _mm_add_pd(sums, widened(fours));
            i += 16;
        }
        while i + 4 <= n {
            sums = _mm_add_pd(sums, widened(four(i)));
            i += 4;
        }
        _mm_cvtsd_f64(_mm_add_sd(sums, _mm_unpackhi_pd(sums, sums)))
    };
    #[cfg(not(target_arch = "x86_64"))]
    let mut sum = {
        let mut sums = [0.0f64; 2];
        while i + 16 <= n {
            let four = |j: usize| (term(i + j) + term(i + 4 + j)) + (term(i + 8 + j) + term(i + 12 + j));
            sums = [0, 1].map(|j| sums[j] + (f64::from(four(j)) + f64::from(four(j + 2))));
            i += 16;
        }
        while i + 4 <= n {
            sums = [0, 1].map(|j| sums[j] + (f64::from(term(i + j)) + f64::from(term(i + j + 2))));
            i += 4;
        }
        sums[0] + sums[1]
    };
    while i < n {
        sum += f64::from(term(i));
        i += 1;
    }
    sum
}

/// Converts the first of `n` elements, eight at a time, if the machine has an instruction for it. Returns the number of
/// converted elements.
macro_rules! by_eights {
    ($(#[$meta:meta])* $name:ident, $from_size:literal => $to_size:literal, |$from:ident, $to:ident| $convert:expr) => {
        $(#[$meta])*
        ///
        /// # Safety
        /// Both pointers are valid for `n` elements.
        pub unsafe fn $name(n: usize, from: *const u8, to: *mut u8) -> usize {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx,f16c")]
                unsafe fn eights(n: usize, from: *const u8, to: *mut u8) {
                    use std::arch::x86_64::*;
                    for i in (0..n).step_by(8) {
                        // SAFETY: the caller's elements.
                        unsafe {
                            let ($from, $to) = (from.add($from_size * i).cast(), to.add($to_size * i).cast());
                            $convert;
                        }
                    }
                }
                if level() >= Level::V3 {
                    // SAFETY: the instruction set is present; the caller's contract.
                    unsafe { eights(n & !7, from, to) };
                    return n & !7;
                }
            }
            let _ = (n, from, to);
            0
        }
    };
}
by_eights! {
    /// Converts f16 to f32.
    widen_halves, 2 => 4, |from, to| _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128(from)))
}
by_eights! {
    /// Converts f32 to f16.
    narrow_to_halves, 4 => 2, |from, to| _mm_storeu_si128(to, _mm256_cvtps_ph::<0>(_mm256_loadu_ps(from)))
}

/// Prefetches `N` elements; any address is allowed.
#[inline(always)]
pub fn fetch<T, const N: usize>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..N * size_of::<T>()).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch never faults, and every x86-64 machine has the instruction.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast::<i8>().wrapping_add(line)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// Makes what [`stream`] wrote on this thread visible to others before anything that is stored later.
pub fn streamed() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 machine has the instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Results of at least this many bytes are streamed, because they do not fit into the caches.
pub const STREAMED_FROM: usize = if cfg!(target_arch = "x86_64") { 16 << 20 } else { usize::MAX };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transposes_squares_of_any_element() {
        fn check<E: Copy + PartialEq + std::fmt::Debug>(element: fn(usize) -> E) {
            let from: Vec<E> = (0..40).map(element).collect();
            let mut to = vec![element(99); 40];
            let size = size_of::<E>();
            // SAFETY: both arrays hold four lines of four elements, ten and nine elements apart.
            unsafe {
                transpose_square::<E>(
                    from.as_ptr().cast(),
                    10 * size,
                    to.as_mut_ptr().cast::<u8>().add(size),
                    9 * size,
                )
            };
            for (i, &got) in to.iter().enumerate() {
                let (line, at) = (i.wrapping_sub(1) / 9, i.wrapping_sub(1) % 9);
                let inside = line < 4 && at < 4;
                assert_eq!(got, if inside { from[10 * at + line] } else { element(99) }, "{size} {i}");
            }
        }
        check(|i| i as u8);
        check(|i| i as u16);
        check(|i| i as u32);
        check(|i| i as u64);
        check(|i| [i as u64, 7]);
    }

    #[test]
    fn every_other_of_any_count() {
        for n in 0..20 {
            let from: Vec<f32> = (0..2 * n).map(|i| i as f32).collect();
            let wide: Vec<f64> = (0..2 * n).map(|i| i as f64).collect();
            let (mut to, mut wide_to) = (vec![0.0; n], vec![0.0; n]);
            // SAFETY: the lists have `2 * n` and `n` elements.
            unsafe {
                every_other(n, from.as_ptr(), to.as_mut_ptr());
                every_other(n, wide.as_ptr(), wide_to.as_mut_ptr());
            }
            assert!(
                to.iter()
                    .zip(&wide_to)
                    .enumerate()
                    .all(|(i, (&a, &b))| a == (2 * i) as f32 && b == (2 * i) as f64)
            );
        }
    }

    #[test]
    fn totals_of_few() {
        for n in 0..200usize {
            let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
            // SAFETY: `x` has `n` elements.
            let sum = unsafe { total_of_few::<false>(x.as_ptr(), n) };
            assert_eq!(sum, (n * n.saturating_sub(1) / 2) as f64);
        }
    }

    #[test]
    fn streams_any_part() {
        let from: Vec<u8> = (0..1000).map(|i| i as u8).collect();
        for (start, n) in [(0, 0), (1, 3), (0, 64), (7, 200), (63, 900), (64, 936)] {
            let mut to = vec![255u8; 1000];
            // SAFETY: both lists are that long.
            unsafe { stream(n, from.as_ptr().add(start), to.as_mut_ptr().add(start)) };
            streamed();
            assert_eq!(to[start..start + n], from[start..start + n]);
            assert!(to[..start].iter().chain(&to[start + n..]).all(|&b| b == 255));
        }
    }
}
