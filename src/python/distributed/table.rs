//! The contents of the store: values and queues by key, and the requests that wait for keys.

use super::wire::{LONGEST_KEY, LONGEST_VALUE, lock};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

pub type Bytes = Arc<[u8]>;

/// A waiting request checks at this interval that its client still exists.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Entries {
    values: HashMap<Bytes, Bytes>,
    queues: HashMap<Bytes, VecDeque<Bytes>>,
    /// The waiting requests by the key that they lack. A request for several keys waits for one after the
    /// other.
    waiting: HashMap<Bytes, Vec<Arc<Condvar>>>,
}

impl Entries {
    fn has(&self, key: &[u8]) -> bool {
        self.values.contains_key(key) || self.queues.contains_key(key)
    }
    fn wake(&mut self, key: &[u8]) {
        for waiter in self.waiting.remove(key).into_iter().flatten() {
            waiter.notify_one();
        }
    }
    fn put(&mut self, key: &[u8], value: Bytes) {
        self.values.insert(key.into(), value);
        self.wake(key);
    }
    fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.values.get(key).cloned()
    }
    fn forget(&mut self, key: &[u8], waiter: &Arc<Condvar>) {
        if let Some(list) = self.waiting.get_mut(key) {
            list.retain(|other| !Arc::ptr_eq(other, waiter));
            if list.is_empty() {
                self.waiting.remove(key);
            }
        }
    }
}

#[derive(Default)]
pub struct Table {
    entries: Mutex<Entries>,
    closed: AtomicBool,
}

/// The reason why a wait ended without success.
pub enum WaitError {
    TimedOut,
    /// The client is gone, or the store stops.
    Gone,
}

/// The end of a wait, and a check that somebody still waits.
pub struct Patience<'a> {
    pub deadline: Instant,
    pub is_gone: &'a dyn Fn() -> bool,
}

pub fn check_key(key: &[u8]) -> Result<(), String> {
    if key.len() <= LONGEST_KEY {
        return Ok(());
    }
    Err(format!("a key of {} bytes is longer than the {LONGEST_KEY} that a store takes", key.len()))
}

pub fn check_value(value: &[u8]) -> Result<(), String> {
    if value.len() <= LONGEST_VALUE {
        return Ok(());
    }
    Err(format!("a value of {} bytes is longer than the {LONGEST_VALUE} that a store takes", value.len()))
}

impl Table {
    pub fn set(&self, key: &[u8], value: &[u8]) {
        lock(&self.entries).put(key, value.into());
    }
    pub fn get(&self, key: &[u8]) -> Option<Bytes> {
        lock(&self.entries).get(key)
    }
    /// Adds to a number, which is stored as text; a missing key counts as 0.
    pub fn add(&self, key: &[u8], amount: i64) -> Result<i64, String> {
        let mut entries = lock(&self.entries);
        let before = match entries.values.get(key) {
            None => 0,
            Some(value) => {
                std::str::from_utf8(value).ok().and_then(|text| text.parse::<i64>().ok()).ok_or_else(
                    || format!("add: the value of '{}' is not an integer", String::from_utf8_lossy(key)),
                )?
            }
        };
        let sum = before.wrapping_add(amount);
        entries.put(key, sum.to_string().as_bytes().into());
        Ok(sum)
    }
    pub fn append(&self, key: &[u8], more: &[u8]) -> Result<(), String> {
        let mut entries = lock(&self.entries);
        let mut value = entries.get(key).map_or_else(Vec::new, |value| value.to_vec());
        value.extend_from_slice(more);
        check_value(&value)?;
        entries.put(key, value.into());
        Ok(())
    }
    /// Sets the value if the current one is `expected`, or if there is none and `expected` is empty;
    /// returns the value afterwards.
    pub fn compare_set(&self, key: &[u8], expected: &[u8], desired: &[u8]) -> Bytes {
        let mut entries = lock(&self.entries);
        match entries.get(key) {
            Some(value) if *value != *expected => return value,
            None if !expected.is_empty() => return expected.into(),
            _ => {}
        }
        let desired: Bytes = desired.into();
        entries.put(key, desired.clone());
        desired
    }
    pub fn delete(&self, key: &[u8]) -> bool {
        let mut entries = lock(&self.entries);
        let value = entries.values.remove(key).is_some();
        let queue = entries.queues.remove(key).is_some();
        value || queue
    }
    pub fn count_keys(&self) -> usize {
        lock(&self.entries).values.len()
    }
    pub fn keys(&self) -> Vec<Bytes> {
        lock(&self.entries).values.keys().cloned().collect()
    }
    pub fn has_all(&self, keys: &[Vec<u8>]) -> bool {
        let entries = lock(&self.entries);
        keys.iter().all(|key| entries.has(key))
    }
    pub fn push(&self, key: &[u8], value: &[u8]) {
        let mut entries = lock(&self.entries);
        entries.queues.entry(key.into()).or_default().push_back(value.into());
        entries.wake(key);
    }
    /// Removes the first element of a queue.
    pub fn pop(&self, key: &[u8]) -> Option<Bytes> {
        let mut entries = lock(&self.entries);
        let queue = entries.queues.get_mut(key)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            entries.queues.remove(key);
        } else {
            // A push wakes all who wait; those who came too late wait for the next push.
            entries.wake(key);
        }
        first
    }
    pub fn queue_length(&self, key: &[u8]) -> usize {
        lock(&self.entries).queues.get(key).map_or(0, VecDeque::len)
    }
    /// Waits until all keys exist.
    pub fn wait(&self, keys: &[Vec<u8>], patience: &Patience<'_>) -> Result<(), WaitError> {
        let waiter = Arc::new(Condvar::new());
        let mut entries = lock(&self.entries);
        loop {
            let Some(missing) = keys.iter().find(|key| !entries.has(key)) else { return Ok(()) };
            if self.closed.load(Ordering::Acquire) {
                return Err(WaitError::Gone);
            }
            let left = patience.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(WaitError::TimedOut);
            }
            entries.waiting.entry(missing.as_slice().into()).or_default().push(waiter.clone());
            let woken = waiter.wait_timeout(entries, left.min(LOOK));
            let (after, result) = woken.unwrap_or_else(std::sync::PoisonError::into_inner);
            entries = after;
            entries.forget(missing, &waiter);
            if result.timed_out() {
                drop(entries);
                if (patience.is_gone)() {
                    return Err(WaitError::Gone);
                }
                entries = lock(&self.entries);
            }
        }
    }
    /// Ends all waits.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        let mut entries = lock(&self.entries);
        for waiter in std::mem::take(&mut entries.waiting).into_values().flatten() {
            waiter.notify_one();
        }
    }
}
