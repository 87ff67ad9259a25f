//! The list of all rows: each registers its own static when the program is linked.

use crate::operator::Row;
use std::sync::OnceLock;

pub struct Registered(pub &'static Row);
inventory::collect!(Registered);

/// Every row, in the order of the source, whatever the linker's order is.
pub fn rows() -> &'static [&'static Row] {
    static ROWS: OnceLock<Vec<&'static Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let mut all: Vec<&'static Row> = inventory::iter::<Registered>().map(|r| r.0).collect();
        all.sort_by_key(|row| row.at);
        all
    })
}
