//! A box that is filled once, by the first thread. No thread waits: a later one drops its own value.
//! (`OnceLock` keeps a queue, which costs more than the box.)

use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};

pub struct OnceBox<T>(AtomicPtr<T>, PhantomData<Box<T>>);

impl<T> Default for OnceBox<T> {
    #[inline]
    fn default() -> OnceBox<T> {
        OnceBox(AtomicPtr::new(null_mut()), PhantomData)
    }
}

impl<T: Default + Send + Sync> OnceBox<T> {
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // SAFETY: the pointer is null, or the box that is ours until we are dropped.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    #[inline]
    pub fn get_or_default(&self) -> &T {
        self.get().unwrap_or_else(|| self.fill())
    }

    fn fill(&self) -> &T {
        let made = Box::into_raw(Box::<T>::default());
        match self.0.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: the box is ours from now on, until we are dropped.
            Ok(_) => unsafe { &*made },
            // SAFETY: no other thread has seen `made`; the first box is ours as above.
            Err(first) => unsafe {
                drop(Box::from_raw(made));
                &*first
            },
        }
    }
}

impl<T> Drop for OnceBox<T> {
    #[inline]
    fn drop(&mut self) {
        let held = *self.0.get_mut();
        if !held.is_null() {
            // SAFETY: it came from a box that has no other owner.
            drop(unsafe { Box::from_raw(held) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::lock;
    use std::sync::Mutex;

    #[test]
    fn all_threads_see_one_value() {
        let once = OnceBox::<Mutex<usize>>::default();
        assert!(once.get().is_none());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| *lock(once.get_or_default()) += 1);
            }
        });
        assert!(once.get().is_some_and(|count| *lock(count) == 8));
    }
}
