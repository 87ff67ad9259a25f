//! The list of all rows. Each row registers itself when the program is linked.

use crate::operator::Row;
use std::sync::OnceLock;

pub struct Registered(pub &'static Row);
inventory::collect!(Registered);

/// All rows in source order, independent of the linker's order.
pub fn rows() -> &'static [&'static Row] {
    static ROWS: OnceLock<Vec<&'static Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let mut all: Vec<&'static Row> = inventory::iter::<Registered>().map(|r| r.0).collect();
        all.sort_by_key(|row| row.at);
        all
    })
}
