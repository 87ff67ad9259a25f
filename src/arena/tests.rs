//! Tests with chains, slot reuse and threads that end early, and with all interleavings that loom explores.

use super::{Pooled, Ref, Stats, insert, pool, stats, trim};

fn live<T: Pooled>() -> usize {
    stats::<T>().live
}

#[cfg(not(loom))]
#[allow(clippy::disallowed_methods, reason = "threads that end are what is tested")]
mod alone {
    use super::super::Id;
    use super::*;
    use std::cell::RefCell;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Barrier, mpsc};
    use std::thread;

    /// Each test has a type of its own, because the statistics are per type.
    macro_rules! link {
        ($name:ident) => {
            #[allow(dead_code, reason = "held, not read")]
            struct $name(u64, Option<Ref<$name>>);
            pool!($name);
        };
    }

    const MANY: u64 = if cfg!(miri) { 2_000 } else { 300_000 };

    #[test]
    fn a_handle_counts_and_an_id_outlives_its_value() {
        link!(A);
        let one = insert(A(7, None));
        let two = one.clone();
        assert_eq!((one.0, one.count(), one.ptr_eq(&two)), (7, 2, true));
        let id = one.id();
        assert!(id.upgrade().is_some_and(|found| found.ptr_eq(&one)));
        drop((one, two));
        assert!(id.upgrade().is_none());
        let three = insert(A(8, None));
        assert!(id.upgrade().is_none(), "the slot is reused, the id is not");
        assert_ne!(id, three.id());
        assert_eq!(live::<A>(), 1);
    }

    #[test]
    fn a_name_finds_nothing_in_a_chunk_that_is_gone() {
        link!(A);
        let ids: Vec<Id<A>> = {
            let all: Vec<_> = (0..MANY).map(|i| insert(A(i, None))).collect();
            all.iter().map(Ref::id).collect()
        };
        assert!(ids.iter().all(|id| id.upgrade().is_none()));
    }

    #[test]
    fn raw_pointers_carry_the_count() {
        link!(A);
        let one = insert(A(1, None));
        let raw = one.clone().into_raw();
        assert_eq!((raw.as_ptr().cast_const(), one.count()), (one.as_ptr(), 2));
        // SAFETY: it comes from `into_raw`.
        drop(unsafe { Ref::from_raw(raw) });
        assert_eq!(one.count(), 1);
    }

    #[test]
    fn a_long_chain_is_freed_without_recursion_and_gives_its_memory_back() {
        link!(A);
        let mut chain = None;
        for i in 0..MANY {
            chain = Some(insert(A(i, chain)));
        }
        assert_eq!(live::<A>(), MANY as usize);
        drop(chain);
        assert_eq!(live::<A>(), 0);
        assert!(stats::<A>().chunks <= 128, "{:?}", stats::<A>());
    }

    #[test]
    fn a_chain_made_by_another_thread_is_freed_and_given_back() {
        link!(A);
        let make = || (0..MANY).fold(None, |chain, i| Some(insert(A(i, chain))));
        let ended = thread::spawn(make).join().unwrap();
        drop(ended);
        assert_eq!(stats::<A>(), Stats::default(), "an ended thread's chunks are adopted, and freed");
        let (send, receive) = mpsc::channel();
        thread::scope(|scope| {
            let (done, wait) = mpsc::channel();
            let owner = scope.spawn(move || {
                send.send(make()).unwrap();
                wait.recv().unwrap();
                assert_eq!(live::<A>(), 0);
                trim::<A>();
                assert!(stats::<A>().chunks <= 128, "the owner takes back what others freed");
            });
            drop(receive.recv().unwrap());
            done.send(()).unwrap();
            owner.join().unwrap(); // The scope alone would not wait for its thread-locals.
        });
        assert_eq!(stats::<A>(), Stats::default());
    }

    #[test]
    fn a_drop_may_make_and_free_values() {
        struct Busy(u64, Option<Ref<Busy>>);
        pool!(Busy);
        thread_local! { static SEEN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) } }
        impl Drop for Busy {
            fn drop(&mut self) {
                SEEN.with_borrow_mut(|seen| seen.push(self.0));
                if self.0 > 0 {
                    let child = insert(Busy(self.0 / 2, None));
                    self.1 = Some(insert(Busy(0, Some(child.clone()))));
                }
            }
        }
        drop(insert(Busy(1 << 10, None)));
        assert_eq!(live::<Busy>(), 0);
        assert_eq!(SEEN.with_borrow(|seen| seen.iter().sum::<u64>()), (1 << 11) - 1);
    }

    #[test]
    fn a_last_owner_takes_a_value_over_under_its_name() {
        struct Owned {
            willed: bool,
            _holds: Option<Ref<Owned>>,
        }
        fn on_dropped(_: usize) {}
        fn last_owner(value: &mut Owned) -> Option<fn(Ref<Owned>)> {
            std::mem::take(&mut value.willed).then_some(|value| HEIR.set(Some(value)))
        }
        pool!(Owned, on_dropped, last_owner);
        thread_local! { static HEIR: RefCell<Option<Ref<Owned>>> = const { RefCell::new(None) } }
        let id = insert(Owned { willed: true, _holds: None }).id();
        let inherited = HEIR.take();
        assert!(inherited.as_ref().zip(id.upgrade()).is_some_and(|(one, found)| found.ptr_eq(one)));
        drop(insert(Owned { willed: false, _holds: inherited }));
        assert!(id.upgrade().is_none());
        assert_eq!(live::<Owned>(), 0);
    }

    #[test]
    fn a_panic_in_a_drop_does_not_stop_the_others() {
        static DROPPED: AtomicUsize = AtomicUsize::new(0);
        struct Loud(bool);
        pool!(Loud);
        impl Drop for Loud {
            fn drop(&mut self) {
                DROPPED.fetch_add(1, Ordering::Relaxed);
                assert!(!self.0 || thread::panicking(), "as asked");
            }
        }
        let loud = insert(Loud(true));
        assert!(std::panic::catch_unwind(move || drop(loud)).is_err());
        drop(insert(Loud(false)));
        assert_eq!(DROPPED.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn values_held_by_other_thread_locals_are_freed_when_the_thread_ends() {
        link!(A);
        struct Holder(RefCell<Option<Ref<A>>>);
        impl Drop for Holder {
            fn drop(&mut self) {
                // Either thread-local may be destroyed first: making and freeing must work in both cases.
                let chain = self.0.take();
                self.0.replace(Some(insert(A(0, chain))));
            }
        }
        thread_local! { static HOLDER: Holder = const { Holder(RefCell::new(None)) } }
        for holder_first in [true, false] {
            thread::spawn(move || {
                if holder_first {
                    HOLDER.with(|_| ());
                }
                let chain = (0..MANY / 10).fold(None, |chain, i| Some(insert(A(i, chain))));
                HOLDER.with(|holder| holder.0.replace(chain));
            })
            .join()
            .unwrap();
        }
        assert_eq!(stats::<A>(), Stats::default());
    }

    #[test]
    fn many_threads_pass_values_around() {
        link!(A);
        const THREADS: usize = 4;
        let rounds = if cfg!(miri) { 20 } else { 2_000 };
        let barrier = Barrier::new(THREADS);
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| mpsc::channel()).unzip();
        thread::scope(|scope| {
            type Inbox = mpsc::Receiver<Option<(Id<A>, Ref<A>)>>;
            let spawn = |(me, inbox): (usize, Inbox)| {
                let outbox = senders[(me + 1) % THREADS].clone();
                let barrier = &barrier;
                scope.spawn(move || {
                    for round in 0..rounds {
                        let chain = (0..50).fold(None, |chain, i| Some(insert(A(i, chain))));
                        outbox.send(chain.map(|chain| (chain.id(), chain))).unwrap();
                        if let Some((id, chain)) = inbox.recv().unwrap() {
                            assert!(id.upgrade().is_some());
                            drop(chain);
                            assert!(id.upgrade().is_none());
                        }
                        if round % 100 == 0 {
                            barrier.wait();
                        }
                    }
                })
            };
            // Joined explicitly, because a scope ends before the thread-locals of its threads are destroyed.
            let threads: Vec<_> = receivers.into_iter().enumerate().map(spawn).collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        assert_eq!(live::<A>(), 0);
        assert_eq!(stats::<A>().chunks, 0);
    }

    #[test]
    fn aligned_and_large_values_fit() {
        #[repr(align(256))]
        struct Wide([u8; 300]);
        pool!(Wide);
        struct Huge([u8; 100_000]);
        pool!(Huge);
        let wide: Vec<_> = (0..40).map(|i| insert(Wide([i; 300]))).collect();
        assert!(wide.iter().all(|w| w.as_ptr().addr() % 256 == 0));
        assert!(wide.iter().zip(0..).all(|(w, i)| w.0[299] == i));
        let huge: Vec<_> = (0..10).map(|i| insert(Huge([i; 100_000]))).collect();
        assert!(huge.iter().zip(0..).all(|(h, i)| h.0[99_999] == i));
    }

    /// `cargo test --release arena -- --ignored --nocapture` prints the cost of a value.
    #[test]
    #[ignore = "a measurement"]
    fn cost_of_make_and_free() {
        #[allow(dead_code, reason = "held, not read")]
        struct Node([u64; 50], Option<Ref<Node>>);
        pool!(Node);
        let time = |what: &str, n: u64, body: &mut dyn FnMut()| {
            let best = (0..5)
                .map(|_| {
                    let start = std::time::Instant::now();
                    body();
                    start.elapsed().as_nanos() as f64 / n as f64
                })
                .fold(f64::MAX, f64::min);
            eprintln!("{what}: {best:.1} ns");
        };
        let node = |i, next| Node([i; 50], next);
        time("make and free", 1_000_000, &mut || (0..1_000_000).for_each(|i| drop(insert(node(i, None)))));
        time("make and free, one Box", 1_000_000, &mut || {
            (0..1_000_000).for_each(|i| drop(std::hint::black_box(Box::new(node(i, None)))));
        });
        for n in [1_000, 100_000, 10_000_000] {
            time(&format!("in a chain of {n}"), n, &mut || {
                drop((0..n).fold(None, |chain, i| Some(insert(node(i, chain)))));
            });
        }
        eprintln!("{:?}", stats::<Node>());
        let one = insert(node(0, None));
        time("clone and drop", 1_000_000, &mut || {
            (0..1_000_000).for_each(|_| drop(std::hint::black_box(one.clone())))
        });
        let id = one.id();
        time("upgrade", 1_000_000, &mut || (0..1_000_000).for_each(|_| drop(id.upgrade())));
    }
}

#[cfg(loom)]
mod model {
    use super::super::Local;
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::thread;
    use std::ptr::NonNull;

    /// Fails the model if reading and dropping are not ordered.
    struct Watched(UnsafeCell<u64>, #[allow(dead_code, reason = "it is only dropped")] Option<Ref<Watched>>);
    pool!(Watched);

    impl Watched {
        fn make(next: Option<Ref<Watched>>) -> Ref<Watched> {
            insert(Watched(UnsafeCell::new(7), next))
        }

        fn read(&self) {
            // SAFETY: only `drop` writes, and loom checks that it comes after.
            self.0.with(|value| assert_eq!(unsafe { *value }, 7));
        }
    }

    impl Drop for Watched {
        fn drop(&mut self) {
            // SAFETY: the last holder drops.
            self.0.with_mut(|value| unsafe { *value = 0 });
        }
    }

    /// Loom's first thread outlives its statics, which a `Local` needs to the end, so the body runs on a
    /// second thread.
    fn model(body: fn()) {
        let ways = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = ways.clone();
        loom::model(move || {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            thread::spawn(body).join().unwrap();
        });
        eprintln!("{} interleavings", ways.load(std::sync::atomic::Ordering::Relaxed));
    }

    // SAFETY: see `read`.
    unsafe impl Sync for Watched {}
    // SAFETY: see `read`.
    unsafe impl Send for Watched {}

    #[test]
    fn two_threads_drop_the_last_handles() {
        model(|| {
            let one = Watched::make(None);
            let two = one.clone();
            let other = thread::spawn(move || two.read());
            one.read();
            drop(one);
            other.join().unwrap();
            assert_eq!(live::<Watched>(), 0);
        });
    }

    #[test]
    fn another_thread_frees_while_the_owner_allocates() {
        model(|| {
            let chain = Watched::make(Some(Watched::make(None)));
            let other = thread::spawn(move || drop(chain));
            let again = [Watched::make(None), Watched::make(None), Watched::make(None)];
            again.iter().for_each(|value| value.read());
            other.join().unwrap();
            assert_eq!(live::<Watched>(), 3);
        });
    }

    #[test]
    fn two_threads_free_to_a_third() {
        model(|| {
            let (one, two) = (Watched::make(None), Watched::make(None));
            let first = thread::spawn(move || drop(one));
            let second = thread::spawn(move || drop(two));
            let again = Watched::make(None);
            again.read();
            first.join().unwrap();
            second.join().unwrap();
            trim::<Watched>();
            assert_eq!(live::<Watched>(), 1);
        });
    }

    /// Makes `Local`s explicitly, because loom joins a thread before its thread-locals are destroyed.
    #[test]
    fn the_owner_ends_while_another_frees() {
        model(|| {
            let local = Local::<Watched>::new();
            let slot = local.take();
            // SAFETY: as in `insert`.
            unsafe { (*slot.as_ref().value.get()).write(Watched(UnsafeCell::new(7), None)) };
            let slot = slot.expose_provenance();
            let other = thread::spawn(move || {
                // SAFETY: no other thread can reach the slot.
                unsafe { Local::<Watched>::new().retire(NonNull::with_exposed_provenance(slot)) };
            });
            drop(local);
            other.join().unwrap();
            assert_eq!(stats::<Watched>(), Stats::default(), "one of the two has emptied the heap");
        });
    }

    #[test]
    fn a_name_is_upgraded_while_the_value_goes_and_its_slot_comes_back() {
        model(|| {
            let value = Watched::make(None);
            let id = value.id();
            let other = thread::spawn(move || {
                if let Some(found) = id.upgrade() {
                    found.read();
                }
            });
            drop(value);
            let again = Watched::make(None);
            again.read();
            other.join().unwrap();
            assert_eq!(live::<Watched>(), 1);
        });
    }
}
