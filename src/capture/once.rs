//! Units on the GPU whose results are the same in each run, such as masks that are made of numbers: only the first run needs
//! them.

use crate::capture::group::Facts;
use crate::capture::program::Unit;

/// What is kept from run to run takes no more bytes than this.
const MOST: usize = 16 << 20;

/// For each unit, true if only the first run needs it.
pub(super) fn units(units: &[Unit], slots: &[Facts]) -> Vec<bool> {
    let is_inside = |&slot: &usize| !slots[slot].outside;
    let mut once: Vec<bool> =
        units.iter().map(|unit| unit.is_steady && unit.reaches.iter().all(is_inside)).collect();
    loop {
        // A slot keeps its elements if such units alone write it, all before another one reads it.
        let mut keeps = vec![true; slots.len()];
        let mut is_read = vec![false; slots.len()];
        for (at, unit) in units.iter().enumerate() {
            for &slot in &unit.reaches {
                let writes = unit.writes.contains(&slot);
                keeps[slot] &= if once[at] { !(writes && is_read[slot]) } else { !writes };
                is_read[slot] |= !once[at];
            }
        }
        let mut is_done = true;
        for (own, unit) in once.iter_mut().zip(units) {
            if *own && !unit.reaches.iter().all(|&slot| keeps[slot]) {
                (*own, is_done) = (false, false);
            }
        }
        if is_done {
            break;
        }
    }
    let mut kept = vec![false; slots.len()];
    let reached = units.iter().zip(&once).filter(|(_, once)| **once).flat_map(|(unit, _)| &unit.reaches);
    reached.for_each(|&slot| kept[slot] = true);
    let bytes: usize = slots.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(slot, _)| slot.bytes).sum();
    if bytes > MOST { vec![false; units.len()] } else { once }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Device;
    use crate::storage::Storage;

    fn unit(is_steady: bool, reaches: &[usize], writes: &[usize]) -> Unit {
        Unit {
            run: Box::new(|| Ok(())),
            line: None,
            reaches: reaches.into(),
            writes: writes.into(),
            bytes: 0,
            pointwise: None,
            is_steady,
            decision: None,
        }
    }

    fn once(all: &[Unit]) -> Vec<bool> {
        // The last slot outlives a run.
        let facts = |slot| Facts {
            outside: slot == 3,
            bytes: 4,
            span: None,
            stand_in: Storage::stand_in(4, Device::Cpu),
        };
        units(all, &(0..4).map(facts).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_made_of_numbers_alone_is_made_once() {
        let mask = || [unit(true, &[0], &[0]), unit(true, &[1, 0], &[1])];
        let then = |more: Vec<Unit>| once(&mask().into_iter().chain(more).collect::<Vec<_>>());
        assert_eq!(then(vec![unit(true, &[3, 1, 2], &[2])]), [true, true, false]);
        assert_eq!(then(vec![unit(false, &[1, 2], &[2])]), [true, true, false]);
        assert_eq!(then(vec![unit(true, &[2, 1], &[2])]), [true, true, true]);
        // What is written later, by a unit that each run needs, is not there in the next run.
        assert_eq!(then(vec![unit(true, &[3, 1], &[1])]), [true, false, false]);
        assert_eq!(then(vec![unit(true, &[3, 0], &[0])]), [false, false, false]);
        // Neither is what such a unit has read before it is written again.
        assert_eq!(
            then(vec![unit(true, &[3, 1], &[3]), unit(true, &[1], &[1])]),
            [true, false, false, false]
        );
    }
}
