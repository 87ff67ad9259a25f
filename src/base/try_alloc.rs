//! Allocation of lists whose length the user decides: it can fail, and the failure becomes an error.

use super::{Fault, Result};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hash};

/// The error for a failed allocation.
#[cold]
pub fn out_of_memory(bytes: usize) -> super::Error {
    let message = format!(
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate {bytes} bytes. Error code 12 (Cannot allocate \
         memory)"
    );
    Fault::OutOfMemory { message }.into()
}

/// Returns an error if so much memory is not available at once.
pub fn check(count: usize, bytes_each: usize) -> Result<()> {
    with_capacity::<u8>(count.saturating_mul(bytes_each)).map(drop)
}

/// An empty list with capacity for `count` elements.
pub fn with_capacity<T>(count: usize) -> Result<Vec<T>> {
    let mut list = Vec::new();
    match list.try_reserve_exact(count) {
        Ok(()) => Ok(list),
        Err(_) => Err(out_of_memory(count.saturating_mul(size_of::<T>()))),
    }
}

/// Returns an error if memory does not suffice for the work on a list of so many tensors: the entries in
/// lists for each, its Python object, and more.
pub fn check_list(count: usize) -> Result<()> {
    if count < 1 << 14 { Ok(()) } else { check(count, 2048) }
}

/// Returns an error if memory does not suffice for a text of so many bytes: messages copy it, and Python
/// makes an object of it.
pub fn check_text(bytes: usize) -> Result<()> {
    if bytes < 1 << 16 { Ok(()) } else { check(bytes, 8) }
}

/// A list of `count` copies of an item.
pub fn filled<T: Clone>(item: T, count: usize) -> Result<Vec<T>> {
    let mut all = with_capacity(count)?;
    all.resize(count, item);
    Ok(all)
}

/// Appends an item to a list.
#[inline]
pub fn push<T>(list: &mut Vec<T>, item: T) -> Result<()> {
    if list.len() == list.capacity() && list.try_reserve(1).is_err() {
        return Err(out_of_memory(list.len().saturating_mul(2 * size_of::<T>())));
    }
    list.push(item);
    Ok(())
}

/// Adds a member to a set. Returns true if it is new.
#[inline]
pub fn insert<K: Eq + Hash, S: BuildHasher>(set: &mut HashSet<K, S>, key: K) -> Result<bool> {
    set.try_reserve(1).map_err(|_| out_of_memory(set.len().saturating_mul(2 * size_of::<K>())))?;
    Ok(set.insert(key))
}

/// The value under a key of a map, inserted if it is missing.
#[inline]
pub fn entry<K: Eq + Hash, T: Default, S: BuildHasher>(map: &mut HashMap<K, T, S>, key: K) -> Result<&mut T> {
    map.try_reserve(1).map_err(|_| out_of_memory(map.len().saturating_mul(2 * size_of::<(K, T)>())))?;
    Ok(map.entry(key).or_default())
}

/// Collects items up to the first error.
pub fn collect<T>(items: impl IntoIterator<Item = Result<T>>) -> Result<Vec<T>> {
    let items = items.into_iter();
    let mut all = with_capacity(items.size_hint().0)?;
    for item in items {
        push(&mut all, item?)?;
    }
    Ok(all)
}

/// Collects items that cannot fail.
pub fn all<T>(items: impl IntoIterator<Item = T>) -> Result<Vec<T>> {
    collect(items.into_iter().map(Ok))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(with_capacity::<u64>(usize::MAX / 16).is_err());
        assert!(filled(0u64, usize::MAX).is_err());
        assert_eq!(filled(7, 3).ok(), Some(vec![7, 7, 7]));
        assert_eq!(all(0..3).ok(), Some(vec![0, 1, 2]));
        assert!(all(0..usize::MAX).is_err());
        assert!(collect((0..3).map(|i| if i < 2 { Ok(i) } else { Err(out_of_memory(1)) })).is_err());
    }
}
