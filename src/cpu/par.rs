//! Splits kernels over threads. This is the only module that uses rayon.

use crate::base::lock;
use smallvec::SmallVec;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// One thread is faster below this many elements, at average work per element. Measured in `benches/kernels.rs`.
pub const GRAIN: usize = 32_768;

type Pool = rayon::ThreadPool;

/// The pool in use. Null before the first kernel asks for it, after [`set_threads`] has changed the number of threads,
/// and in a forked child, which has none of the parent's threads.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());
/// The number of threads; zero until somebody asks for it.
static THREADS: AtomicUsize = AtomicUsize::new(0);
/// Number of forks between the first process and this one.
static FORKS: AtomicUsize = AtomicUsize::new(0);
/// All pools, by fork and number of threads. A pool is never dropped, because a kernel may still run in it.
static POOLS: Mutex<Vec<(usize, usize, &'static Pool)>> = Mutex::new(Vec::new());

fn pool() -> Option<&'static Pool> {
    let pool = POOL.load(Ordering::Acquire);
    // SAFETY: a pool is never dropped.
    unsafe { pool.as_ref() }.or_else(find_pool)
}

#[cold]
fn find_pool() -> Option<&'static Pool> {
    let threads = threads();
    if threads < 2 {
        return None;
    }
    watch_forks();
    let fork = FORKS.load(Ordering::Acquire);
    let mut pools = lock(&POOLS);
    let known = pools.iter().find(|m| (m.0, m.1) == (fork, threads)).map(|m| m.2);
    let pool = known.or_else(|| {
        let name = |i| format!("gradiron-{i}");
        // Start the threads now, and only if there is memory for their stacks and thread-local data: the system kills
        // the process if a thread finds none later.
        crate::base::try_alloc::check(threads, 4 << 20).ok()?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build().ok()?;
        pool.broadcast(|_| ());
        let pool: &'static Pool = Box::leak(Box::new(pool));
        pools.push((fork, threads, pool));
        Some(pool)
    })?;
    if THREADS.load(Ordering::Acquire) == threads {
        POOL.store(std::ptr::from_ref(pool).cast_mut(), Ordering::Release);
    }
    Some(pool)
}

/// The number of threads that kernels may use: the one that was set, else `GRADIRON_NUM_THREADS`, else
/// `OMP_NUM_THREADS`, else the number of cores.
pub fn threads() -> usize {
    match THREADS.load(Ordering::Acquire) {
        0 => {
            let requested = ["GRADIRON_NUM_THREADS", "OMP_NUM_THREADS"]
                .iter()
                .find_map(|name| std::env::var(name).ok()?.parse().ok().filter(|&n: &usize| n > 0))
                .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
            let _ = THREADS.compare_exchange(0, requested, Ordering::AcqRel, Ordering::Acquire);
            THREADS.load(Ordering::Acquire)
        }
        threads => threads,
    }
}

/// Sets the number of threads for kernels that start from now on.
pub fn set_threads(threads: usize) {
    THREADS.store(threads.max(1), Ordering::Release);
    POOL.store(std::ptr::null_mut(), Ordering::Release);
}

#[cfg(unix)]
fn watch_forks() {
    static REGISTERED: std::sync::Once = std::sync::Once::new();
    extern "C" fn in_child() {
        POOL.store(std::ptr::null_mut(), Ordering::Release);
        FORKS.fetch_add(1, Ordering::AcqRel);
        AWAKE.store(0, Ordering::SeqCst);
    }
    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> i32;
    }
    // SAFETY: the handler lives as long as the process (extension modules are never unloaded) and only stores numbers.
    REGISTERED.call_once(|| unsafe {
        pthread_atfork(None, None, Some(in_child));
    });
}

#[cfg(not(unix))]
fn watch_forks() {}

/// Calls `body` with ranges that cover `0..n`, on several threads if `n` is at least two grains. Each range starts at a
/// multiple of `grain`, so a kernel that works in blocks of that size gives the same bits on any number of threads.
pub fn ranges(n: usize, grain: usize, body: impl Fn(Range<usize>) + Sync) {
    let grain = grain.max(1);
    match (n >= 2 * grain).then(pool).flatten() {
        None => body(0..n),
        Some(pool) => {
            let step = n.div_ceil(grain).div_ceil(16 * pool.current_num_threads()).max(1) * grain;
            let chunks = n.div_ceil(step);
            let queues = ChunkQueues::new(chunks, pool.current_num_threads());
            scope(pool, chunks, &|| queues.run(|i| body(i * step..((i + 1) * step).min(n))));
        }
    }
}

/// Chunks of work in one queue per thread. A thread takes the chunks of its own queue, then helps with the others.
/// Threads that alternate between neighbouring chunks would read memory at half the speed of threads that are far
/// apart; and the next kernel finds in a core's cache what the last one left there.
struct ChunkQueues {
    chunks: usize,
    /// For each queue, the number of chunks that threads have taken.
    taken: SmallVec<[AtomicUsize; 16]>,
}

impl ChunkQueues {
    fn new(chunks: usize, threads: usize) -> ChunkQueues {
        let taken = (0..threads.clamp(1, chunks.max(1))).map(|_| AtomicUsize::new(0)).collect();
        ChunkQueues { chunks, taken }
    }

    fn run(&self, body: impl Fn(usize)) {
        let queues = self.taken.len();
        let start = |queue: usize| queue * self.chunks / queues;
        // The caller, which is no thread of the pool, has the first queue.
        let own = rayon::current_thread_index().map_or(0, |i| 1 + i % (queues - 1).max(1));
        for queue in (own..own + queues).map(|queue| queue % queues) {
            loop {
                let i = start(queue) + self.taken[queue].fetch_add(1, Ordering::Relaxed);
                if i >= start(queue + 1) {
                    break;
                }
                body(i);
            }
        }
    }
}

/// Work that the pool's threads may join until its owner closes it.
struct Job {
    work: *const (dyn Fn() + Sync),
    /// Number of threads that take part; the highest bit is set once the job is closed.
    present: AtomicUsize,
    panicked: AtomicBool,
}
// SAFETY: `work` is Sync, and only threads that are counted in `present` call it.
unsafe impl Send for Job {}
// SAFETY: as above.
unsafe impl Sync for Job {}

const CLOSED: usize = 1 << (usize::BITS - 1);

impl Job {
    /// Takes part in the work, if the job is still open.
    fn join(&self) {
        if self.present.fetch_add(1, Ordering::Acquire) & CLOSED == 0 {
            // SAFETY: the job was open, so its owner waits until this thread has left.
            let done = catch_unwind(AssertUnwindSafe(|| unsafe { (*self.work)() }));
            self.panicked.fetch_or(done.is_err(), Ordering::Relaxed);
        }
        self.present.fetch_sub(1, Ordering::Release);
    }
}

/// Runs `work` on this thread, and on those threads of the pool that come in time. A sleeping thread takes tens of
/// microseconds to wake, which is longer than most kernels. The caller therefore does not wait for a late thread, which
/// finds the job closed; and a thread that has finished spins for a while before it sleeps.
fn scope(pool: &rayon::ThreadPool, max_threads: usize, work: &(dyn Fn() + Sync)) {
    // SAFETY: only the lifetime changes: `CloseGuard` keeps this stack frame alive until no thread is present.
    let work: *const (dyn Fn() + Sync) = unsafe { std::mem::transmute(work) };
    let job = Arc::new(Job { work, present: AtomicUsize::new(0), panicked: AtomicBool::new(false) });
    let awake = submit(&job);
    // Read before the threads are called rather than when they wake, so that they notice jobs submitted in between.
    let seen = SUBMITTED.load(Ordering::SeqCst);
    for _ in 1 + awake..pool.current_num_threads().min(max_threads) {
        let job = Arc::clone(&job);
        AWAKE.fetch_add(1, Ordering::SeqCst);
        pool.spawn(move || {
            job.join();
            spin(seen);
        });
    }
    let guard = CloseGuard(&job);
    // SAFETY: the caller borrows the work until this function returns.
    unsafe { (*job.work)() };
    drop(guard);
    assert!(!job.panicked.load(Ordering::Relaxed), "a kernel panicked in another thread");
}

/// Time that a thread spins before it sleeps: kernels often follow one another at once.
const SPIN_TIME: Duration = Duration::from_micros(100);
/// The newest job, and the number of jobs submitted so far.
static NEWEST: Mutex<Option<Arc<Job>>> = Mutex::new(None);
static SUBMITTED: AtomicUsize = AtomicUsize::new(0);
/// Number of the pool's threads that have been called, work or spin. No more are called than cores are free: one more
/// would take turns with another on a core.
static AWAKE: AtomicUsize = AtomicUsize::new(0);

/// Shows the job to the threads that are awake, and returns their number.
fn submit(job: &Arc<Job>) -> usize {
    if AWAKE.load(Ordering::SeqCst) == 0 {
        return 0;
    }
    if let Ok(mut newest) = NEWEST.try_lock() {
        *newest = Some(Arc::clone(job));
        drop(newest);
        SUBMITTED.fetch_add(1, Ordering::SeqCst);
    }
    AWAKE.load(Ordering::SeqCst)
}

/// Joins new jobs until there has been none for a while. `seen` is the number of jobs that this thread knows of.
fn spin(mut seen: usize) {
    loop {
        let until = Instant::now() + SPIN_TIME;
        while SUBMITTED.load(Ordering::SeqCst) == seen && Instant::now() < until {
            std::hint::spin_loop();
        }
        if SUBMITTED.load(Ordering::SeqCst) == seen {
            AWAKE.fetch_sub(1, Ordering::SeqCst);
            // Ask again after leaving: whoever submitted a job before counted on this thread.
            if SUBMITTED.load(Ordering::SeqCst) == seen {
                return;
            }
            AWAKE.fetch_add(1, Ordering::SeqCst);
        }
        seen = SUBMITTED.load(Ordering::SeqCst);
        let job = lock(&NEWEST).clone();
        job.inspect(|job| job.join());
    }
}

/// Closes the job when its owner is done with it, even by a panic, and waits until the other threads have left.
struct CloseGuard<'a>(&'a Job);

impl Drop for CloseGuard<'_> {
    fn drop(&mut self) {
        self.0.present.fetch_or(CLOSED, Ordering::Acquire);
        let mut spins = 0u32;
        while self.0.present.load(Ordering::Acquire) != CLOSED {
            spins += 1;
            if spins < 1000 { std::hint::spin_loop() } else { std::thread::yield_now() }
        }
    }
}

/// [`ranges`] for a body that can fail: returns the error of the first range that failed.
pub fn try_ranges(
    n: usize,
    grain: usize,
    body: impl Fn(Range<usize>) -> crate::base::Result<()> + Sync,
) -> crate::base::Result<()> {
    let failed = std::sync::Mutex::new(None);
    ranges(n, grain, |range| {
        let start = range.start;
        if let Err(error) = body(range) {
            let mut failed = lock(&failed);
            if failed.as_ref().is_none_or(|&(first, _)| start < first) {
                *failed = Some((start, error));
            }
        }
    });
    failed
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .map_or(Ok(()), |(_, error)| Err(error))
}

/// Number of results that [`each`] keeps in memory at once.
const BATCH: usize = 4096;

/// Calls `take` with the result of `body` for each of the blocks `0..n`, in order. Several threads compute them if
/// there are at least two grains.
pub fn each<T: Send>(n: usize, grain: usize, body: impl Fn(usize) -> T + Sync, mut take: impl FnMut(T)) {
    for first in (0..n).step_by(BATCH) {
        let count = BATCH.min(n - first);
        collect(Vec::with_capacity(count), count, grain, |i| body(first + i)).into_iter().for_each(&mut take);
    }
}

/// Returns the results of `body` for the blocks `0..n`, in order. Several threads compute them if there are at least
/// two grains.
pub fn map<T: Send>(n: usize, grain: usize, body: impl Fn(usize) -> T + Sync) -> crate::base::Result<Vec<T>> {
    Ok(collect(crate::base::try_alloc::with_capacity(n)?, n, grain, body))
}

/// Appends the results of all calls to an empty list that has the capacity for them.
fn collect<T: Send>(mut results: Vec<T>, n: usize, grain: usize, body: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let to = Shared::new(results.as_ptr());
    ranges(n, grain, |range| {
        for i in range {
            // SAFETY: the list has room for `n`, and no two ranges write the same element.
            unsafe { to.get().add(i).write(body(i)) };
        }
    });
    // SAFETY: the ranges have written all `n` elements.
    unsafe { results.set_len(n) };
    results
}

/// A pointer that the tasks of a kernel share. Each task uses its own part of the memory behind it.
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

// SAFETY: sharing the address is harmless; a task that dereferences it states why it collides with no other.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Several owners submit job after job without a pause: each piece is done exactly once, by any thread.
    #[test]
    fn jobs_in_a_row() {
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 0..500 {
                        let n = 4 + round % 60;
                        let done: Vec<AtomicUsize> = (0..n).map(|_| AtomicUsize::new(0)).collect();
                        ranges(n, 1, |range| {
                            for i in range {
                                done[i].fetch_add(1, Ordering::Relaxed);
                            }
                        });
                        assert!(done.iter().all(|d| d.load(Ordering::Relaxed) == 1));
                    }
                });
            }
        });
    }
}
