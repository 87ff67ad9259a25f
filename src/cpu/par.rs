//! The only room that knows rayon: whether and how a kernel is shared among threads.

use crate::base::lock;
use smallvec::SmallVec;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Below this many elements (of average work) one thread is faster. Measured in `benches/kernels.rs`.
pub const GRAIN: usize = 32_768;

type Pool = rayon::ThreadPool;

/// The pool in use; null until the first kernel asks, after a change of [`set_threads`], and in a forked child, where
/// the parent's threads do not exist.
static POOL: AtomicPtr<Pool> = AtomicPtr::new(std::ptr::null_mut());
/// Zero: not asked for yet.
static THREADS: AtomicUsize = AtomicUsize::new(0);
/// How many forks lie between this process and the first.
static FORKS: AtomicUsize = AtomicUsize::new(0);
/// Pools that were made, by fork and size: a pool is never dropped, for a kernel may still be in it.
static MADE: Mutex<Vec<(usize, usize, &'static Pool)>> = Mutex::new(Vec::new());

fn pool() -> Option<&'static Pool> {
    let pool = POOL.load(Ordering::Acquire);
    // SAFETY: what is stored there is never dropped.
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
    let mut made = lock(&MADE);
    let known = made.iter().find(|m| (m.0, m.1) == (fork, threads)).map(|m| m.2);
    let pool = known.or_else(|| {
        let name = |i| format!("gradiron-{i}");
        // Threads are started while there is memory for their stacks and thread-local data: the system kills the process where
        // a thread finds none.
        crate::base::try_alloc::check(threads, 4 << 20).ok()?;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(name).build().ok()?;
        pool.broadcast(|_| ());
        let pool: &'static Pool = Box::leak(Box::new(pool));
        made.push((fork, threads, pool));
        Some(pool)
    })?;
    if THREADS.load(Ordering::Acquire) == threads {
        POOL.store(std::ptr::from_ref(pool).cast_mut(), Ordering::Release);
    }
    Some(pool)
}

/// How many threads kernels may use: what was set, `GRADIRON_NUM_THREADS`, `OMP_NUM_THREADS`, or the machine's cores.
pub fn threads() -> usize {
    match THREADS.load(Ordering::Acquire) {
        0 => {
            let wished = ["GRADIRON_NUM_THREADS", "OMP_NUM_THREADS"]
                .iter()
                .find_map(|name| std::env::var(name).ok()?.parse().ok().filter(|&n: &usize| n > 0))
                .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
            let _ = THREADS.compare_exchange(0, wished, Ordering::AcqRel, Ordering::Acquire);
            THREADS.load(Ordering::Acquire)
        }
        threads => threads,
    }
}

/// Kernels that start from now on use `threads` threads.
pub fn set_threads(threads: usize) {
    THREADS.store(threads.max(1), Ordering::Release);
    POOL.store(std::ptr::null_mut(), Ordering::Release);
}

#[cfg(unix)]
fn watch_forks() {
    static WATCHING: std::sync::Once = std::sync::Once::new();
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
    WATCHING.call_once(|| unsafe {
        pthread_atfork(None, None, Some(in_child));
    });
}

#[cfg(not(unix))]
fn watch_forks() {}

/// Calls `body` with ranges that cover `0..n`, on several threads when `n` is at least two grains.
/// Ranges start at multiples of `grain`, so a kernel that works in blocks gives the same bits on any number of threads.
pub fn ranges(n: usize, grain: usize, body: impl Fn(Range<usize>) + Sync) {
    let grain = grain.max(1);
    match (n >= 2 * grain).then(pool).flatten() {
        None => body(0..n),
        Some(pool) => {
            let step = n.div_ceil(grain).div_ceil(16 * pool.current_num_threads()).max(1) * grain;
            let shares = n.div_ceil(step);
            let stretches = Stretches::new(shares, pool.current_num_threads());
            together(pool, shares, &|| stretches.walk(|i| body(i * step..((i + 1) * step).min(n))));
        }
    }
}

/// Shares of work in as many ranges as there are threads: each does its own, then helps with the others.
/// Threads that alternate between neighbouring shares read memory at half the speed of those that are far apart; and the
/// next kernel finds in a core's cache what the last one left there.
struct Stretches {
    shares: usize,
    /// How many shares of each range are taken.
    taken: SmallVec<[AtomicUsize; 16]>,
}

impl Stretches {
    fn new(shares: usize, threads: usize) -> Stretches {
        let taken = (0..threads.clamp(1, shares.max(1))).map(|_| AtomicUsize::new(0)).collect();
        Stretches { shares, taken }
    }

    fn walk(&self, body: impl Fn(usize)) {
        let stretches = self.taken.len();
        let start = |stretch: usize| stretch * self.shares / stretches;
        // The owner, which is not of the pool, has the first.
        let own = rayon::current_thread_index().map_or(0, |i| 1 + i % (stretches - 1).max(1));
        for stretch in (own..own + stretches).map(|stretch| stretch % stretches) {
            loop {
                let i = start(stretch) + self.taken[stretch].fetch_add(1, Ordering::Relaxed);
                if i >= start(stretch + 1) {
                    break;
                }
                body(i);
            }
        }
    }
}

/// Work that the pool's threads may join until its owner closes it.
struct Crew {
    work: *const (dyn Fn() + Sync),
    /// How many threads take part, and whether it is closed.
    present: AtomicUsize,
    panicked: AtomicBool,
}
// SAFETY: `work` is Sync, and is only called by threads that are present.
unsafe impl Send for Crew {}
// SAFETY: as above.
unsafe impl Sync for Crew {}

const CLOSED: usize = 1 << (usize::BITS - 1);

impl Crew {
    /// Takes part in the work, if it is still open.
    fn join(&self) {
        if self.present.fetch_add(1, Ordering::Acquire) & CLOSED == 0 {
            // SAFETY: it was open, so the owner waits until this thread has left.
            let done = catch_unwind(AssertUnwindSafe(|| unsafe { (*self.work)() }));
            self.panicked.fetch_or(done.is_err(), Ordering::Relaxed);
        }
        self.present.fetch_sub(1, Ordering::Release);
    }
}

/// Runs `work` here, and on those of the pool's threads that come in time. A sleeping thread takes tens of
/// microseconds to wake, which is longer than most kernels: so the caller does not wait for a late one, which finds the
/// work closed; and one that has finished looks out for more before it sleeps.
fn together(pool: &rayon::ThreadPool, most: usize, work: &(dyn Fn() + Sync)) {
    // SAFETY: only the lifetime changes: `Closing` keeps this frame until nobody is present.
    let work: *const (dyn Fn() + Sync) = unsafe { std::mem::transmute(work) };
    let crew = Arc::new(Crew { work, present: AtomicUsize::new(0), panicked: AtomicBool::new(false) });
    let awake = offer(&crew);
    // Known when a thread is called, not when it has woken: what is offered in between is news to it.
    let seen = OFFERS.load(Ordering::SeqCst);
    for _ in 1 + awake..pool.current_num_threads().min(most) {
        let crew = Arc::clone(&crew);
        AWAKE.fetch_add(1, Ordering::SeqCst);
        pool.spawn(move || {
            crew.join();
            look_out(seen);
        });
    }
    let closing = Closing(&crew);
    // SAFETY: the owner's own reference.
    unsafe { (*crew.work)() };
    drop(closing);
    assert!(!crew.panicked.load(Ordering::Relaxed), "a kernel panicked in another thread");
}

/// How long a thread looks out for more work: kernels often follow each other at once.
const LOOK_OUT: Duration = Duration::from_micros(100);
/// The newest work, and how many there have been.
static OFFER: Mutex<Option<Arc<Crew>>> = Mutex::new(None);
static OFFERS: AtomicUsize = AtomicUsize::new(0);
/// How many of the pool's threads are called, at work or look out. As many as may help are never joined by one more, which would
/// take turns with them on a core.
static AWAKE: AtomicUsize = AtomicUsize::new(0);

/// Shows the work to the threads that are awake, and tells how many they are.
fn offer(crew: &Arc<Crew>) -> usize {
    if AWAKE.load(Ordering::SeqCst) == 0 {
        return 0;
    }
    if let Ok(mut newest) = OFFER.try_lock() {
        *newest = Some(Arc::clone(crew));
        drop(newest);
        OFFERS.fetch_add(1, Ordering::SeqCst);
    }
    AWAKE.load(Ordering::SeqCst)
}

/// Joins the work on offer, until there was none for a while; `seen` is what this thread knows of.
fn look_out(mut seen: usize) {
    loop {
        let until = Instant::now() + LOOK_OUT;
        while OFFERS.load(Ordering::SeqCst) == seen && Instant::now() < until {
            std::hint::spin_loop();
        }
        if OFFERS.load(Ordering::SeqCst) == seen {
            AWAKE.fetch_sub(1, Ordering::SeqCst);
            // Asked after leaving: who offered before it counted on this thread.
            if OFFERS.load(Ordering::SeqCst) == seen {
                return;
            }
            AWAKE.fetch_add(1, Ordering::SeqCst);
        }
        seen = OFFERS.load(Ordering::SeqCst);
        let crew = lock(&OFFER).clone();
        crew.inspect(|crew| crew.join());
    }
}

/// Closes the work when the owner is done with it, even by a panic, and waits until the others have left.
struct Closing<'a>(&'a Crew);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.present.fetch_or(CLOSED, Ordering::Acquire);
        let mut spins = 0u32;
        while self.0.present.load(Ordering::Acquire) != CLOSED {
            spins += 1;
            if spins < 1000 { std::hint::spin_loop() } else { std::thread::yield_now() }
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

/// Results of blocks that are waited for at once: there may be more blocks than memory for all of theirs.
const TOGETHER: usize = 4096;

/// Calls `take` with the results of `body` for the blocks `0..n`, in order; they are computed on several threads when there
/// are at least two grains.
pub fn each<T: Send>(n: usize, grain: usize, body: impl Fn(usize) -> T + Sync, mut take: impl FnMut(T)) {
    for first in (0..n).step_by(TOGETHER) {
        let count = TOGETHER.min(n - first);
        written(Vec::with_capacity(count), count, grain, |i| body(first + i)).into_iter().for_each(&mut take);
    }
}

/// The results of `body` for the blocks `0..n`, in order; on several threads when there are at least two grains.
pub fn map<T: Send>(n: usize, grain: usize, body: impl Fn(usize) -> T + Sync) -> crate::base::Result<Vec<T>> {
    Ok(written(crate::base::try_alloc::with_capacity(n)?, n, grain, body))
}

/// The results of all calls, written to a list with the capacity for them.
fn written<T: Send>(mut results: Vec<T>, n: usize, grain: usize, body: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let to = Shared::new(results.as_ptr());
    ranges(n, grain, |range| {
        for i in range {
            // SAFETY: there is room for `n`, and no two ranges share a place.
            unsafe { to.get().add(i).write(body(i)) };
        }
    });
    // SAFETY: the ranges cover all `n` places.
    unsafe { results.set_len(n) };
    results
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Work that follows work at once, from several owners: each piece is done once, by any thread.
    #[test]
    fn shares_in_a_row() {
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
