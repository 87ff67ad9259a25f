//! The language in which operators are declared, explained in `docs/rows.md`. `call` reads signatures,
//! `clause` reads the parentheses of an attribute, and each macro has a file.

mod call;
mod clause;
mod entry;
mod operator;
mod primitive;
#[cfg(test)]
mod tests;

use proc_macro::TokenStream;

/// `#[primitive(clauses)] impl Name { fn forward(…); fn d_input(…); … }`: a node of the graph.
#[proc_macro_attribute]
pub fn primitive(clauses: TokenStream, item: TokenStream) -> TokenStream {
    primitive::expand(clauses.into(), item.into()).unwrap_or_else(|e| e.to_compile_error()).into()
}

/// `#[operator(clauses)] pub fn name(…)`: a function that users call.
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

/// `#[inplace(name)] pub fn name_(…)`: the in-place form of `name`, if it does more than overwrite.
#[proc_macro_attribute]
pub fn inplace(of: TokenStream, item: TokenStream) -> TokenStream {
    operator::expand(operator::Role::Inplace, of.into(), item.into())
        .unwrap_or_else(|e| e.to_compile_error())
        .into()
}

/// PyO3's attribute of the same name. A failed allocation in Python does not end the process.
#[proc_macro_attribute]
pub fn pyfunction(_: TokenStream, item: TokenStream) -> TokenStream {
    entry::function(item.into()).into()
}

/// Like `pyfunction`, for methods.
#[proc_macro_attribute]
pub fn pymethods(_: TokenStream, item: TokenStream) -> TokenStream {
    entry::methods(item.into()).unwrap_or_else(|e| e.to_compile_error()).into()
}
