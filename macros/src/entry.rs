//! PyO3's attributes, with the guard of `src/python/entry.rs` around functions that Python calls.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, ImplItem, ImplItemFn, ItemImpl, ReturnType, Type, parse_quote};

/// Methods that PyO3 combines with their reflected form in one slot: the guard is inside the method.
const SHARED: [&str; 20] = [
    "__getattr__",
    "__setattr__",
    "__delattr__",
    "__setitem__",
    "__delitem__",
    "__add__",
    "__radd__",
    "__sub__",
    "__rsub__",
    "__mul__",
    "__rmul__",
    "__truediv__",
    "__rtruediv__",
    "__matmul__",
    "__rmatmul__",
    "__pow__",
    "__rpow__",
    "__eq__",
    "__set__",
    "__delete__",
];

pub fn function(item: TokenStream) -> TokenStream {
    quote! {
        #[::pyo3::pyfunction]
        #[pyo3(crate = "crate::python::entry")]
        #item
    }
}

pub fn methods(item: TokenStream) -> syn::Result<TokenStream> {
    let mut item: ItemImpl = syn::parse2(item)?;
    for part in &mut item.items {
        if let ImplItem::Fn(method) = part
            && is_reached_directly(method)
        {
            let (body, output) = (&method.block, &method.sig.output);
            match head(output).as_deref() {
                Some("PyResult") => {
                    method.block = parse_quote!({ crate::python::entry::guard(move || #output #body) });
                }
                None | Some("bool" | "ToObject" | "Option") => {}
                _ => {
                    return Err(Error::new_spanned(
                        output,
                        "a method whose result may fail to convert must return a PyResult",
                    ));
                }
            }
        }
    }
    Ok(quote! {
        #[::pyo3::pymethods]
        #[pyo3(crate = "crate::python::entry")]
        #item
    })
}

/// True if PyO3 calls the method from an entry without a guard.
fn is_reached_directly(method: &ImplItemFn) -> bool {
    let property = ["getter", "setter", "deleter"];
    SHARED.iter().any(|name| method.sig.ident == name)
        || method.attrs.iter().any(|attribute| property.iter().any(|name| attribute.path().is_ident(name)))
}

/// The outermost name of a method's return type.
fn head(output: &ReturnType) -> Option<String> {
    match output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => match &**ty {
            Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
            _ => Some(String::new()),
        },
    }
}
