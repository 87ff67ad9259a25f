//! The row that CONTRIBUTING.md adds. It is compiled and tested here, so that the guide stays correct.
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(dead_code, reason = "no other formula says the word of this row")]

use crate::base::{DType, Scalar};
use crate::operator::V;
use crate::operator::pointwise::declare::pointwise;
use crate::operator::primitives::constant::scalar_tensor;
use crate::ops::elementwise::formula;
use crate::tensor::Tensor;

pointwise! {
    /// Apply the softsign activation, `input / (1 + |input|)`, with values between -1 and 1.
    ///
    /// Examples:
    ///     >>> F.softsign(torch.tensor([-1.0, 0.0, 3.0]))
    ///     tensor([-0.5000,  0.0000,  0.7500])
    [nn] softsign(input): Float = input / (abs(input) + 1.0),
        input: |g, input| g * square(recip(abs(input) + 1.0));
}

const GUIDE: &str = include_str!("../../../CONTRIBUTING.md");

fn number(x: f64) -> Tensor {
    scalar_tensor(Scalar::Float(x), Some(DType::F64)).unwrap()
}

fn value(x: f64) -> f64 {
    softsign(&number(x)).unwrap().item().unwrap().as_f64()
}

#[test]
fn the_guide_shows_this_row() {
    let own = include_str!("example.rs");
    let row = &own[own.find("pointwise! {").unwrap()..own.find("const GUIDE").unwrap()];
    assert!(GUIDE.contains(row.trim()), "CONTRIBUTING.md does not show:\n{row}");
}

#[test]
fn the_row_works() {
    assert_eq!((value(3.0), value(-1.0), value(0.0)), (0.75, -0.5, 0.0));
    assert_eq!(ROWS[0].row.name, "softsign");
    assert_eq!(softsign::ROW.derivative.name, "SoftsignBackward0");
}

#[test]
fn its_derivative_is_that_of_the_formula() {
    for x in [-2.5, -0.3, 0.7, 4.0] {
        let differences = (value(x + 1e-6) - value(x - 1e-6)) / 2e-6;
        let formula = (softsign::ROW.gradients[0].formal)(&[V::from(1.0), V::from(number(x))]);
        let found = formula.tensor().unwrap().item().unwrap().as_f64();
        assert!((found - differences).abs() < 1e-8, "at {x}: {found}, differences say {differences}");
    }
}
