//! The only room that knows rayon: whether and how a kernel is shared among threads.

use rayon::prelude::*;
use std::ops::Range;
use std::sync::OnceLock;

/// Below this many elements (of average work) one thread is faster. Measured in `benches/kernels.rs`.
pub const GRAIN: usize = 32_768;

static POOL: OnceLock<Option<rayon::ThreadPool>> = OnceLock::new();

fn pool() -> Option<&'static rayon::ThreadPool> {
    POOL.get_or_init(|| {
        let threads = threads();
        let built = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("gradiron-{i}"))
            .build();
        if threads > 1 { built.ok() } else { None }
    })
    .as_ref()
}

/// How many threads kernels may use: `GRADIRON_NUM_THREADS`, `OMP_NUM_THREADS`, or the machine's cores.
pub fn threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| {
        ["GRADIRON_NUM_THREADS", "OMP_NUM_THREADS"]
            .iter()
            .find_map(|name| std::env::var(name).ok()?.parse().ok().filter(|&n: &usize| n > 0))
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    })
}

/// Calls `body` with ranges that cover `0..n`, on several threads when `n` is at least two grains.
/// Ranges start at multiples of `grain`, so a kernel that works in blocks gives the same bits on any number of threads.
pub fn ranges(n: usize, grain: usize, body: impl Fn(Range<usize>) + Sync) {
    let grain = grain.max(1);
    match (n >= 2 * grain).then(pool).flatten() {
        None => body(0..n),
        Some(pool) => {
            let blocks = n.div_ceil(grain);
            let step = blocks.div_ceil(4 * pool.current_num_threads()).max(1) * grain;
            pool.install(|| {
                (0..n.div_ceil(step)).into_par_iter().for_each(|i| body(i * step..((i + 1) * step).min(n)));
            });
        }
    }
}

/// As [`ranges`], for a body that can fail: the error of the first failing range is reported.
pub fn try_ranges(
    n: usize,
    grain: usize,
    body: impl Fn(Range<usize>) -> crate::base::Result<()> + Sync,
) -> crate::base::Result<()> {
    let failed = std::sync::Mutex::new(None);
    ranges(n, grain, |range| {
        let start = range.start;
        if let Err(error) = body(range) {
            let mut failed = failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            if failed.as_ref().is_none_or(|&(first, _)| start < first) {
                *failed = Some((start, error));
            }
        }
    });
    failed.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).map_or(Ok(()), |(_, error)| Err(error))
}

/// The results of `body` for the blocks `0..n`, in order; on several threads when there are at least two grains.
pub fn map<T: Send>(n: usize, grain: usize, body: impl Fn(usize) -> T + Sync + Send) -> Vec<T> {
    match (n >= 2 * grain).then(pool).flatten() {
        None => (0..n).map(body).collect(),
        Some(pool) => pool.install(|| (0..n).into_par_iter().with_min_len(grain.max(1)).map(body).collect()),
    }
}

/// A pointer that the tasks of a kernel share, each using its own part of what is behind it.
#[derive(Debug)]
pub struct Shared<T>(*mut T);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        *self
    }
}

impl<T> Copy for Shared<T> {}

impl<T> Shared<T> {
    pub fn new(pointer: *const T) -> Shared<T> {
        Shared(pointer.cast_mut())
    }

    pub fn get(self) -> *mut T {
        self.0
    }
}

// SAFETY: sharing the address is harmless; who dereferences it states why no two tasks collide.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

/// Runs `body` inside the pool, for libraries that split their own work with rayon (gemm).
pub fn inside<R: Send>(body: impl FnOnce() -> R + Send) -> R {
    match pool() {
        Some(pool) => pool.install(body),
        None => body(),
    }
}
