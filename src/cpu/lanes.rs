//! Lanes: partial sums (or maxima) side by side, one in each lane of a register, and the order in which they are
//! combined, which decides the bits of a result.

use std::ops::{Add, AddAssign, Range};

/// Number of lanes of a sum whose lanes are added in f64.
pub const LANES: usize = 32;

/// Combines eight lanes.
#[inline(always)]
pub fn combine_eight<A: Copy>([a, b, c, d, e, f, g, h]: [A; 8], join: impl Fn(A, A) -> A) -> A {
    join(join(join(a, e), join(b, f)), join(join(c, g), join(d, h)))
}

/// Combines the results of `lane` for all lanes: four neighbouring groups of eight, then the eight.
#[inline(always)]
pub fn combine<A: Copy>(lane: impl Fn(usize) -> A, join: impl Fn(A, A) -> A) -> A {
    let mut eight = [lane(0); 8];
    for j in 0..8 {
        eight[j] = join(join(lane(j), lane(j + 8)), join(lane(j + 16), lane(j + 24)));
    }
    combine_eight(eight, join)
}

/// Adds terms to lanes.
#[inline(always)]
pub fn add_terms<T: Copy + AddAssign, const N: usize>(
    lanes: &mut [T; N],
    range: Range<usize>,
    term: impl Fn(usize) -> T,
) {
    let whole = range.end - range.len() % N;
    for i in (range.start..whole).step_by(N) {
        for j in 0..N {
            lanes[j] += term(i + j);
        }
    }
    for i in whole..range.end {
        lanes[(i - whole) % N] += term(i);
    }
}

/// The sum of the lanes, in f64, because the last additions would lose most. It is not inlined, here and in
/// [`add_eight`], so that the lanes end in memory: otherwise compilers add the lanes in pairs of registers.
#[inline(never)]
pub fn add_wide<T: Copy + Into<f64>>(lanes: &[T; LANES]) -> f64 {
    combine(|j| lanes[j].into(), |a, b| a + b)
}

/// The sum of eight lanes.
#[inline(never)]
pub fn add_eight<T: Copy + Add<Output = T>>(lanes: &[T; 8]) -> T {
    combine_eight(*lanes, |a, b| a + b)
}

/// Reduces lanes by halves: the first half with the second, and so on. Spelled out in registers, because compilers
/// make slow code of the plain loop: `V` is a register of lanes, which `load` reads.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn halve<T, V: Copy, const N: usize>(
    lanes: &[T; N],
    load: impl Fn(*const T) -> V,
    step: impl Fn(V, V) -> V,
) -> V {
    const MOST: usize = 32;
    let width = size_of::<V>() / size_of::<T>();
    const { assert!(N <= MOST && N.is_multiple_of(size_of::<V>() / size_of::<T>())) }
    let start = lanes.as_ptr();
    // It starts as zeros, because compilers cut the caller's lanes into smaller registers if it starts as loads.
    // SAFETY: `V` is a register of floats, which may be zero.
    let mut all: [V; MOST / 2] = unsafe { std::mem::zeroed() };
    for i in 0..N / width {
        all[i] = load(start.wrapping_add(width * i));
    }
    let mut count = N / width;
    while count > 1 {
        count /= 2;
        for i in 0..count {
            all[i] = step(all[i], all[i + count]);
        }
    }
    all[0]
}

/// Reduces lanes by halves.
#[cfg(not(target_arch = "x86_64"))]
fn halve<T: Copy, const N: usize>(mut lanes: [T; N], step: impl Fn(T, T) -> T) -> T {
    let mut width = N;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            lanes[i] = step(lanes[i], lanes[i + width]);
        }
    }
    lanes[0]
}

macro_rules! halves {
    ($T:ident, $load:ident, $add:ident, $max:ident, |$x:ident, $step:ident| $last:expr) => {
        pub mod $T {
            use super::halve;
            #[cfg(target_arch = "x86_64")]
            use std::arch::x86_64::*;

            /// The sum of the lanes.
            #[inline(always)]
            pub fn total<const N: usize>(lanes: &[$T; N]) -> $T {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: every x86-64 machine has the instructions, here and below.
                unsafe {
                    let $step = |a, b| $add(a, b);
                    let $x = halve(lanes, |at| $load(at), $step);
                    $last
                }
                #[cfg(not(target_arch = "x86_64"))]
                halve(*lanes, |a, b| a + b)
            }

            /// The maximum of the lanes. It need not be NaN if a lane is.
            #[inline(always)]
            pub fn most<const N: usize>(lanes: &[$T; N]) -> $T {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: as above.
                unsafe {
                    let $step = |a, b| $max(b, a);
                    let $x = halve(lanes, |at| $load(at), $step);
                    $last
                }
                #[cfg(not(target_arch = "x86_64"))]
                halve(*lanes, |a, b| if b > a { b } else { a })
            }
        }
    };
}
halves!(f32, _mm_loadu_ps, _mm_add_ps, _mm_max_ps, |x, step| {
    let two = step(x, _mm_movehl_ps(x, x));
    _mm_cvtss_f32(step(two, _mm_shuffle_ps::<1>(two, two)))
});
halves!(f64, _mm_loadu_pd, _mm_add_pd, _mm_max_pd, |x, step| {
    _mm_cvtsd_f64(step(x, _mm_unpackhi_pd(x, x)))
});
