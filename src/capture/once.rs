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
