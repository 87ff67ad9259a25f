//! Code of a primitive's other rules: its tangent, its facts for Python, its batching rule.

use super::clauses::{Clauses, FACTS, camel};
use super::derivative::bare;
use super::parts::{Primitive, Source};
use crate::call::{Mode, Param, at};
use crate::clause::{Clause, unknown};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{Error, ImplItemFn, Result};

/// A custom jvp, as a closure over the call's arguments.
pub(super) fn tangent(this: &Primitive, name: &Ident, f: &ImplItemFn) -> Result<TokenStream> {
    let op = quote!(crate::operator);
    let (mut lets, mut names) = (Vec::new(), Vec::new());
    for input in &f.sig.inputs {
        let syn::FnArg::Typed(input) = input else {
            return Err(Error::new_spanned(input, "a tangent rule has no `self`"));
        };
        let syn::Pat::Ident(p) = &*input.pat else {
            return Err(Error::new_spanned(
                &input.pat,
                "the parameters of a tangent rule must be plain names",
            ));
        };
        let p = &p.ident;
        let (bare, lent) = bare(&input.ty);
        let local = format_ident!("__{}", p.unraw());
        let pick = |code: TokenStream| at(&bare, quote!(let #local: #bare = #code?;));
        match this.source(p, true)? {
            Source::Tangent(i) if this.edges[i] => {
                lets.push(pick(quote!(#op::tangent::FromTangentCall::tangent(__call, EDGES, #i))))
            }
            Source::Tangent(_) => {
                return Err(Error::new(p.span(), "this operand has no gradient, and so no tangent"));
            }
            Source::Tensor(i) => {
                lets.push(pick(quote!(#op::tangent::FromTangentCall::value(__call, EDGES, #i))))
            }
            Source::Output(i) => lets.push(pick(quote!(#op::tangent::FromTangentCall::output(__call, #i)))),
            Source::Argument(i) => {
                names.push(this.arguments[i].again());
                continue;
            }
            _ => {
                return Err(Error::new(
                    p.span(),
                    "a tangent rule can use tangents, operands, results and arguments",
                ));
            }
        }
        names.push(if lent { quote!(&#local) } else { quote!(#local) });
    }
    let ident = &f.sig.ident;
    Ok(quote! {
        Some(&|__call: &#op::tangent::TangentCall| {
            #(#lets)*
            let mut grads: #op::Grads = #op::smallvec::smallvec![None; __call.outputs.len()];
            #op::tangent::IntoTangents::put(#name::#ident(#(#names),*), &mut grads)?;
            Ok(grads)
        })
    })
}

/// Such as `self_sym_sizes = sizes(input)`, `approximate = "none"`, `alpha = 1`, `max = none`.
pub(super) fn fact(this: &Primitive, clause: &Clause) -> Result<TokenStream> {
    let op = quote!(crate::operator::facts::Fact);
    let said = clause.word.to_string();
    let wrong = || {
        Error::new(
            clause.span(),
            "a fact must be sizes(x), strides(x), numel(x), ndim(x), size(x, 0), none or a literal",
        )
    };
    let shown = match clause.expr()? {
        syn::Expr::Call(call) => {
            let (syn::Expr::Path(f), Some(syn::Expr::Path(of))) = (&*call.func, call.args.first()) else {
                return Err(wrong());
            };
            let (f, of) = (f.path.require_ident()?, of.path.require_ident()?);
            let Source::Tensor(at) = this.source(of, false)? else {
                return Err(Error::new(of.span(), format!("`{of}` is not an operand")));
            };
            if !FACTS.contains(&f.to_string().as_str()) {
                return Err(unknown(f, "fact", FACTS));
            }
            let kind = camel(&f.to_string());
            let rest = call.args.iter().skip(1);
            quote!(#op::#kind(#at #(, #rest)*))
        }
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => quote!(#op::Text(#text)),
        syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Bool(flag), .. }) => quote!(#op::Flag(#flag)),
        syn::Expr::Lit(number) => quote!(#op::Int(#number)),
        syn::Expr::Path(path) if path.path.is_ident("none") => quote!(#op::Nothing),
        _ => return Err(wrong()),
    };
    Ok(quote!((#said, #shown)))
}

pub(super) fn batch(name: &Ident, this: &Primitive, clauses: &Clauses, own: bool) -> Result<TokenStream> {
    let op = quote!(crate::operator);
    let again: Vec<TokenStream> = this.params.iter().map(Param::again).collect();
    if own {
        return Ok(quote!(#name::batch(&__call.batch(), #(#again),*)));
    }
    let Some((rule, args)) = &clauses.batch else {
        let message = format!(
            "how is a batch of `{name}` computed? `batch = pointwise`, `along(dim)`, `over(dim, keepdim)`, `in_front`, `merged`, \
             `each`, `none`, or a function: fn batch(b: &Batch, …)"
        );
        return Err(Error::new(name.span(), message));
    };
    let node = clauses.node.clone().unwrap_or_else(|| name.to_string());
    let each = quote!(#op::batch::each(&__call, |xs| { let __xs = xs; __again(__xs).and_then(#op::batch::StackResults::of) }));
    match rule.to_string().as_str() {
        "none" => return Ok(quote!(Err(#op::batch::no_rule(#node)))),
        "each" => return Ok(each),
        _ => {}
    }
    if let Some(arg) = args.iter().find(|arg| !this.arguments.iter().any(|p| p.name == **arg)) {
        let known: Vec<String> = this.arguments.iter().map(|p| p.name.to_string()).collect();
        return Err(unknown(arg, "argument", &known));
    }
    let first = &this.tensors[0].name;
    let own = |p: &Param| p.name == *first || args.contains(&p.name);
    let given: Vec<TokenStream> = this
        .params
        .iter()
        .map(|p| match (own(p), p.is_tensor(), &p.name) {
            (true, true, name) => quote!(#name),
            (true, false, _) => p.borrow_owned(),
            (false, true, name) => p.borrow(quote!(#name)),
            (false, false, _) => p.again(),
        })
        .collect();
    let owned: Vec<TokenStream> = args
        .iter()
        .filter_map(|arg| this.arguments.iter().find(|p| p.name == *arg))
        .map(|p| {
            let name = &p.name;
            if let Mode::Value { by_ref: true } = p.mode {
                quote!(#name.into())
            } else {
                quote!(#name.clone())
            }
        })
        .collect();
    let others = this.tensors.iter().skip(1).map(|p| &p.name);
    let alone = matches!(rule.to_string().as_str(), "in_front" | "merged").then(|| {
        quote!(if __groups[1..].iter().flat_map(#op::call::Group::iter).any(#op::Tensor::is_batched) { return #each; })
    });
    let others: Vec<TokenStream> = others
        .map(|own| {
            if alone.is_some() {
                quote!()
            } else {
                quote!(let #own = #op::batch::ToPhysical::full(#own, &__b)?;)
            }
        })
        .collect();
    let given = if alone.is_some() {
        this.params
            .iter()
            .map(|p| match (p.name == *first, &p.name) {
                (true, name) => quote!(#name),
                (false, _) => p.again(),
            })
            .collect()
    } else {
        given
    };
    Ok(quote! {
        #alone
        let __b = __call.batch();
        let #first = #op::batch::ToPhysical::full(#first, &__b)?;
        #(#others)*
        #op::batch::#rule(&__b, &#first, (#(#owned,)*), |#first, (#(#args,)*)| #name::call(#(#given),*))
    })
}
