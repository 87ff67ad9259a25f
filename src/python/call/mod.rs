//! Calls from Python: argument parsing, dispatch to the rows, and the results.

pub mod deprecated_signatures;
pub mod docs;
pub mod out;
pub mod overrides;
pub mod parse;
pub mod run;
pub mod signature;
pub mod signature_errors;
pub mod table;
