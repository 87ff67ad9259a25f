//! The errors of the macros about wrong rows.

use crate::operator::{self, Role};
use crate::primitive;
use quote::quote;

fn refusal<T>(made: syn::Result<T>) -> String {
    made.err().map_or_else(String::new, |error| error.to_string())
}

#[test]
fn a_derivative_names_what_there_is() {
    let row = quote! {
        impl Softmax {
            fn forward(input: &Tensor, dim: i64) -> Result<Body> { todo!() }
            fn d_input(g: V, reslt: V, dim: i64) -> V { todo!() }
        }
    };
    let said = refusal(primitive::expand(quote!(batch = along(dim)), row));
    assert_eq!(
        said,
        "no operand, argument or result is called `reslt`; there are g, at, wants, input, dim, result"
    );
}

#[test]
fn a_derivative_is_for_an_operand() {
    let row = quote! {
        impl Softmax {
            fn forward(input: &Tensor, dim: i64) -> Result<Body> { todo!() }
            fn d_imput(g: V) -> V { todo!() }
        }
    };
    let said = refusal(primitive::expand(quote!(batch = along(dim)), row));
    assert_eq!(said, "no derivative is called `d_imput`; there are d_input");
}

#[test]
fn a_primitive_says_how_a_batch_is_computed() {
    let row = quote! { impl Softmax { fn forward(input: &Tensor) -> Result<Body> { todo!() } } };
    let said = refusal(primitive::expand(quote!(), row.clone()));
    assert!(
        said.starts_with("how is a batch of `Softmax` computed? `batch = pointwise`, `along(dim)`"),
        "{said}"
    );
    let said = refusal(primitive::expand(quote!(batch = along(axis)), row.clone()));
    assert!(said.starts_with("no argument is called `axis`"), "{said}");
    let said = refusal(primitive::expand(quote!(batch = beside), row));
    assert!(said.starts_with("no rule of `batch` is called `beside`; there are pointwise, along"), "{said}");
}

#[test]
fn clauses_are_known() {
    let row = quote! { impl Softmax { fn forward(input: &Tensor) -> Result<Body> { todo!() } } };
    let said = refusal(primitive::expand(quote!(bath = pointwise), row.clone()));
    assert!(said.starts_with("no clause is called `bath`; there are node, batch, tangent"), "{said}");
    let said = refusal(primitive::expand(quote!(batch = pointwise, tangent = fn), row.clone()));
    assert_eq!(said, "`tangent = fn`, but `Softmax` has no `fn tangent(…)`");
}

#[test]
fn results_are_counted() {
    let row = quote! { impl Max { fn forward(input: &Tensor) -> Result<[Body; 2]> { todo!() } } };
    let said = refusal(primitive::expand(quote!(batch = pointwise, results(a, b, c)), row));
    assert_eq!(said, "`results` names 3, but `forward` makes 2");
}

#[test]
fn a_write_begins_with_what_it_writes() {
    let row = quote! { impl IndexPut { fn write(values: &Tensor) -> Result<()> { todo!() } } };
    let said = refusal(primitive::expand(quote!(batch = each), row));
    assert_eq!(said, "the first parameter of `write` is its target: the first operand, as `&Body`");
}

#[test]
fn an_operator_says_its_forms() {
    let function = quote! { pub fn softmax(input: &Tensor) -> Result<Tensor> { todo!() } };
    let said = refusal(operator::expand(Role::First, quote!(), function.clone()));
    assert_eq!(said, "say in which forms `softmax` is offered: function, method, nn, inplace");
    let said = refusal(operator::expand(Role::Overload, quote!(), function.clone()));
    assert!(said.starts_with("name the operator that this belongs to"), "{said}");
    let said = refusal(operator::expand(Role::First, quote!(function, out(declred)), function));
    assert!(said.starts_with("no rule of `out` is called `declred`; there are declared"), "{said}");
}

#[test]
fn a_parameters_attributes_are_known() {
    let function = quote! { pub fn f(#[defualt(1)] dim: i64) -> Result<Tensor> { todo!() } };
    let said = refusal(operator::expand(Role::First, quote!(function), function));
    assert!(said.starts_with("a parameter may have the attributes #[default(…)]"), "{said}");
    let function = quote! { pub fn f(self) -> Result<Tensor> { todo!() } };
    let said = refusal(operator::expand(Role::First, quote!(function), function));
    assert_eq!(said, "no `self` here: operators are functions");
}

#[test]
fn rust_sees_the_first_paragraph_of_a_doc() {
    let mut function: syn::ItemFn = syn::parse_quote! {
        /// What it does.
        ///
        /// Args:
        ///     input: the input.
        #[must_use]
        fn exp() {}
    };
    crate::call::shorten(&mut function.attrs);
    let kept = function.attrs.iter().map(|attr| quote!(#attr).to_string()).collect::<Vec<_>>();
    assert_eq!(kept, ["# [doc = r\" What it does.\"]", "# [must_use]"]);
}
