//! Rules of medians of all elements: those of one line.

use super::rules::{Rules, rules};
use crate::operator::batch::line;
use crate::ops::sort;

pub const PHYSICAL: Rules = rules! { physical b;
    sort::median_all(x) => sort::middle_along(&line(b, x)?, -1, false);
    sort::nanmedian_all(x) => sort::middle_along(&line(b, x)?, -1, true);
};
