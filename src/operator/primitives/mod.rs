//! The operators that the other folders call: to batch operands, to undo a broadcast in a gradient, to write
//! through a view. Most public operators of these names are declared in `ops` and call these.

pub mod addition;
pub mod complex_views;
pub mod constant;
pub mod copies;
pub mod detached;
pub mod join;
pub mod strided;
pub mod sums;
pub mod view_part;
pub mod views;
