//! The language in which operators are declared: `docs/rows.md` explains it. `call` reads signatures, `clause` reads what
//! stands in an attribute's parentheses, and each macro has a file.

mod call;
mod clause;
mod entry;
mod operator;
mod primitive;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// `#[primitive(clauses)] impl Name { fn forward(…); fn d_input(…); … }`: what the graph records.
#[proc_macro_attribute]
pub fn primitive(clauses: TokenStream, item: TokenStream) -> TokenStream {
    primitive::expand(clauses.into(), item.into()).unwrap_or_else(|e| e.to_compile_error()).into()
}

/// `#[operator(clauses)] pub fn name(…)`: what the user calls.
#[proc_macro_attribute]
pub fn operator(clauses: TokenStream, item: TokenStream) -> TokenStream {
    operator::expand(operator::Role::First, clauses.into(), item.into())
        .unwrap_or_else(|e| e.to_compile_error())
        .into()
}

/// `#[overload(name)] pub fn other(…)`: another signature of the operator `name`.
#[proc_macro_attribute]
pub fn overload(of: TokenStream, item: TokenStream) -> TokenStream {
    operator::expand(operator::Role::Overload, of.into(), item.into())
        .unwrap_or_else(|e| e.to_compile_error())
        .into()
}

/// `#[inplace(name)] pub fn name_(…)`: the in-place form of `name`, where that is no plain overwriting.
#[proc_macro_attribute]
pub fn inplace(of: TokenStream, item: TokenStream) -> TokenStream {
    operator::expand(operator::Role::Inplace, of.into(), item.into())
        .unwrap_or_else(|e| e.to_compile_error())
        .into()
}

/// PyO3's attribute of the same name, for functions that Python calls: no failed allocation of Python's ends the process.
#[proc_macro_attribute]
pub fn pyfunction(_: TokenStream, item: TokenStream) -> TokenStream {
    entry::function(item.into()).into()
}

/// The same for methods.
#[proc_macro_attribute]
pub fn pymethods(_: TokenStream, item: TokenStream) -> TokenStream {
    entry::methods(item.into()).unwrap_or_else(|e| e.to_compile_error()).into()
}
