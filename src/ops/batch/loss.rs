//! Rules of rows that are one kernel for speed: for samples they are the formulas that they stand for.

use super::rules::{Rules, rules};
use crate::ops::loss_classes::Classes;
use crate::ops::loss_formula as formula;

pub const SEEN: Rules = rules! { seen b;
    loss::gap(x, target) => formula::difference(x, target).tensor();
    loss::mean_square(x, target; how) => formula::square_of(x, target, how).tensor();
    loss::smooth_absolute(x, target; how, beta) => formula::smooth_of(x, target, how, beta).tensor();
    loss::huber(x, target; how, delta) => formula::huber_of(x, target, how, delta).tensor();
    loss::bit_entropy(x, target; weight, how) => formula::entropy_of(x, target, &weight, how).tensor();
    loss::logit_entropy(x, target; weight, positive, how) => formula::logit_entropy_of(x, target, &weight, &positive, how).tensor();
    loss::picked_log(x; target, weight, ignored, how) => Classes { target, weight, ignored }.loss(x, how).tensor();
    loss::picked_log2d(x; target, weight, ignored, how) => Classes { target, weight, ignored }.loss(x, how).tensor();
};
