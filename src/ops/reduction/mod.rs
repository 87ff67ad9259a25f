//! Reductions, and scans along a dimension.

pub mod counts;
pub mod covariance;
pub mod extrema;
pub mod quantile;
pub mod reduce;
pub mod scan;
pub mod softmax;
pub mod trapezoid;
pub mod variance;
