//! The memory of a captured program: storages that only its kernels reach share one block, at places that are free for
//! their whole life.

/// When and how much memory a storage needs. Units are counted from 0; both ends are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    pub bytes: usize,
    pub first: usize,
    pub last: usize,
}

const ALIGN: usize = 64;

/// The place of each storage in one block, and the size of the block.
pub fn place(lifetimes: &[Lifetime]) -> (Vec<usize>, usize) {
    let size = |at: usize| lifetimes[at].bytes.div_ceil(ALIGN) * ALIGN;
    let mut births: Vec<usize> = (0..lifetimes.len()).collect();
    births.sort_by_key(|&at| (lifetimes[at].first, std::cmp::Reverse(lifetimes[at].bytes)));
    let mut deaths = births.clone();
    deaths.sort_by_key(|&at| lifetimes[at].last);
    let mut dead = deaths.into_iter().peekable();
    // Free ranges by their start; what lies beyond the end is free, too.
    let mut free = std::collections::BTreeMap::<usize, usize>::new();
    let (mut places, mut end) = (vec![0; lifetimes.len()], 0);
    for at in births {
        while let Some(gone) = dead.next_if(|&gone| lifetimes[gone].last < lifetimes[at].first) {
            release(&mut free, places[gone], size(gone));
        }
        let fits = |range: &(&usize, &usize)| *range.1 >= size(at);
        let found = free.iter().filter(fits).min_by_key(|range| *range.1).map(|(&from, &room)| (from, room));
        places[at] = match found {
            Some((from, room)) => {
                free.remove(&from);
                if room > size(at) {
                    free.insert(from + size(at), room - size(at));
                }
                from
            }
            None => {
                // A free range at the end grows.
                let from = match free.last_key_value() {
                    Some((&from, &room)) if from + room == end => {
                        free.remove(&from);
                        from
                    }
                    _ => end,
                };
                end = from + size(at);
                from
            }
        };
    }
    (places, end)
}

/// The buffer of each storage, and the sizes of the buffers: storages that never live together share one.
pub fn share(lifetimes: &[Lifetime]) -> (Vec<usize>, Vec<usize>) {
    let mut births: Vec<usize> = (0..lifetimes.len()).collect();
    births.sort_by_key(|&at| (lifetimes[at].first, std::cmp::Reverse(lifetimes[at].bytes)));
    let (mut places, mut sizes) = (vec![0; lifetimes.len()], Vec::<usize>::new());
    // For each buffer, the last unit that reaches it so far.
    let mut until: Vec<usize> = Vec::new();
    for at in births {
        let Lifetime { bytes, first, last } = lifetimes[at];
        let fits =
            |&buffer: &usize| until[buffer] < first && (bytes..=2 * bytes + 64).contains(&sizes[buffer]);
        let found = (0..sizes.len()).filter(fits).min_by_key(|&buffer| sizes[buffer]);
        places[at] = found.unwrap_or(sizes.len());
        match found {
            Some(buffer) => until[buffer] = last,
            None => {
                sizes.push(bytes);
                until.push(last);
            }
        }
    }
    (places, sizes)
}

fn release(free: &mut std::collections::BTreeMap<usize, usize>, mut from: usize, mut room: usize) {
    if room == 0 {
        return;
    }
    if let Some((&before, &length)) = free.range(..from).next_back()
        && before + length == from
    {
        free.remove(&before);
        (from, room) = (before, length + room);
    }
    if let Some(length) = free.remove(&(from + room)) {
        room += length;
    }
    free.insert(from, room);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overlap(a: (usize, Lifetime), b: (usize, Lifetime)) -> bool {
        let in_time = a.1.first <= b.1.last && b.1.first <= a.1.last && a.1.bytes.min(b.1.bytes) > 0;
        in_time && a.0 < b.0 + b.1.bytes && b.0 < a.0 + a.1.bytes
    }

    #[test]
    fn storages_that_live_together_lie_apart() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..200 {
            let lifetimes: Vec<Lifetime> = (0..random(40))
                .map(|_| {
                    let first = random(50) as usize;
                    Lifetime { bytes: random(500) as usize, first, last: first + random(9) as usize }
                })
                .collect();
            let (places, end) = place(&lifetimes);
            for (i, &a) in lifetimes.iter().enumerate() {
                assert!(places[i] % ALIGN == 0 && places[i] + a.bytes <= end.max(places[i]) + ALIGN);
                for (j, &b) in lifetimes.iter().enumerate().skip(i + 1) {
                    assert!(!overlap((places[i], a), (places[j], b)), "{a:?} and {b:?}");
                }
            }
            let (buffers, sizes) = share(&lifetimes);
            for (i, &a) in lifetimes.iter().enumerate() {
                assert!(sizes[buffers[i]] >= a.bytes);
                let meets = |(j, b): (usize, &Lifetime)| {
                    j != i && buffers[j] == buffers[i] && a.first <= b.last && b.first <= a.last
                };
                assert!(!lifetimes.iter().enumerate().any(meets));
            }
        }
    }

    #[test]
    fn a_chain_needs_two_buffers() {
        let lifetimes: Vec<Lifetime> =
            (0..100).map(|first| Lifetime { bytes: 1000, first, last: first + 1 }).collect();
        assert_eq!(place(&lifetimes).1, 2 * 1024);
        assert_eq!(share(&lifetimes).1, [1000, 1000]);
    }
}
