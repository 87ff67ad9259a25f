//! Faults that kernels find in values. The host does not wait for them: the first fault leaves a record,
//! which becomes an error when the host next waits.

use crate::base::lock;
use crate::base::{Error, Guidance, LINES_HINT, SourceLine};
use std::collections::HashMap;
use std::sync::Mutex;

/// The size of the record in bytes.
pub(in crate::gpu) const RECORD: u64 = 32;

/// The launch of a kernel, for the error that may result.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Origin {
    pub op: &'static str,
    /// The user's source line, if lines are recorded.
    pub line: Option<SourceLine>,
    pub wrong: Wrong,
}

/// The kinds of faults.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Wrong {
    /// An index is out of bounds.
    Index,
    /// The index of a single element is out of bounds.
    Element,
    /// Values violate this expectation.
    Values(&'static str),
}

/// All origins so far. Their number is bounded by the places in the program that launch such kernels.
#[derive(Default)]
struct Origins {
    all: Vec<Origin>,
    numbers: HashMap<Origin, u32>,
}

static ORIGINS: Mutex<Option<Origins>> = Mutex::new(None);

/// Returns the number that stands for an origin in records.
pub(in crate::gpu) fn ticket(origin: Origin) -> u32 {
    let mut origins = lock(&ORIGINS);
    let Origins { all, numbers } = origins.get_or_insert_default();
    *numbers.entry(origin).or_insert_with_key(|origin| {
        all.push(origin.clone());
        all.len() as u32 - 1
    })
}

/// Decodes a record into an error: set, ticket, and for an index its value (low, high), dimension and size.
pub(in crate::gpu) fn error(record: &[u8]) -> Option<Error> {
    let words: [u32; 6] = bytemuck::pod_read_unaligned(record.get(..24)?);
    let [set, ticket, low, high, dim, size] = words;
    if set == 0 {
        return None;
    }
    let Origin { op, line, wrong } = lock(&ORIGINS).as_ref()?.all.get(ticket as usize)?.clone();
    let message = match wrong {
        Wrong::Index | Wrong::Element => {
            let value = (u64::from(high) << 32 | u64::from(low)) as i64;
            format!("index {value} is out of bounds for dimension {dim} with size {size}")
        }
        Wrong::Values(message) => message.to_owned(),
    };
    let known = line.is_some();
    let told = Guidance::new(message).note("operator", op, line);
    let told = if known { told } else { told.note("where", LINES_HINT, None) };
    Some(match wrong {
        Wrong::Index => Error::index(told.to_string()),
        Wrong::Element | Wrong::Values(_) => Error::runtime(told.to_string()),
    })
}
