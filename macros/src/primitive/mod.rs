//! `#[primitive] impl Name { … }`: the functions of one primitive, which are recognized by name.
//!
//! - `forward(…) -> Result<Body>` (or several bodies, a layout, several layouts), or `write(input: &Body, …)`
//!   over the first operand
//! - `d_input(…)` for each operand with a gradient, or one `derivative(…)` for all of them
//! - `fast_d_input(…)`, `fast_derivative(…)`: a single kernel, for a gradient that is not differentiated
//!   again
//! - `tangent(…)`, `batch(b, …)`, `flops(…)`: custom rules
//!
//! Other functions in the block are helpers.

mod clauses;
mod derivative;
mod parts;
mod rules;

use crate::call::{Mode, Param, at, params, result};
use crate::clause::unknown;
use clauses::{camel, read};
use derivative::{Kept, always, step};
use parts::{Primitive, count_of, node_name, sort};
use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use rules::{batch, fact, tangent};
use syn::ext::IdentExt;
use syn::{Error, ImplItem, ImplItemFn, ItemImpl, Result, Type};

pub fn expand(clauses: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let clauses = read(clauses)?;
    let mut item: ItemImpl = syn::parse2(item)?;
    let Type::Path(path) = &*item.self_ty else {
        return Err(Error::new(Span::call_site(), "`#[primitive] impl Name { … }`"));
    };
    let name = path.path.require_ident()?.clone();
    // Our attributes on parameters are read, then removed.
    let mut signature = Vec::new();
    for inner in &mut item.items {
        if let ImplItem::Fn(f) = inner
            && matches!(f.sig.ident.to_string().as_str(), "forward" | "write")
        {
            signature = params(&mut f.sig)?;
        }
    }
    let parts = sort(&item);
    let Some(forward) = &parts.forward else {
        return Err(Error::new(name.span(), format!("`{name}` has no `forward`, nor a `write`")));
    };
    let op = quote!(crate::operator);
    let writes = forward.sig.ident == "write";
    if writes {
        // The target is the first operand: `call` and `over` take it as a tensor.
        let Some(target) = signature.first_mut().filter(|p| crate::call::is_body(&p.ty)) else {
            let message = "the first parameter of `write` is its target: the first operand, as `&Body`";
            return Err(Error::new(forward.sig.ident.span(), message));
        };
        target.ty = syn::parse_quote!(&#op::Tensor);
        target.owned = quote!(#op::Tensor);
        target.mode = Mode::One;
    }
    let params = signature;
    let returned = result(&forward.sig)?;
    let made: Type = if writes { syn::parse_quote!(#op::Body) } else { returned.clone() };
    let tensors: Vec<&Param> = params.iter().filter(|p| p.is_tensor()).collect();
    let arguments: Vec<&Param> = params.iter().filter(|p| !p.is_tensor()).collect();
    if tensors.is_empty() {
        let message = format!(
            "`{name}` has no operand: to make a tensor from nothing, an `#[operator]` needs no primitive"
        );
        return Err(Error::new(name.span(), message));
    }
    let count = count_of(&made)?;
    let results = match (&clauses.results[..], count) {
        ([], 1) => vec!["result".to_string()],
        ([], n) => (0..n).map(|i| format!("result{i}")).collect(),
        (names, n) if names.len() == n || n == 1 => names.to_vec(),
        (names, n) => {
            let message = format!("`results` names {}, but `forward` makes {n}", names.len());
            return Err(Error::new(forward.sig.ident.span(), message));
        }
    };
    let scratch = clauses.scratch.len();
    if !results.iter().rev().zip(clauses.scratch.iter().rev()).all(|(a, b)| *b == a.as_str()) {
        let message = "`scratch` must name the last results: those that are saved but not returned";
        return Err(Error::new(clauses.scratch[0].span(), message));
    }
    let lists = tensors.iter().any(|p| matches!(p.mode, Mode::List | Mode::Maybes));
    let together = parts.derivatives.iter().any(|(of, _)| of.is_empty());
    if together && parts.derivatives.len() > 1 {
        let message = "write either one `derivative` for all operands, or a `d_…` for each";
        return Err(Error::new(name.span(), message));
    }
    let of_operand = |of: &str, f: &ImplItemFn| match tensors.iter().position(|p| p.name.unraw() == of) {
        Some(at) => Ok(at),
        None => {
            let known: Vec<String> = tensors.iter().map(|p| format!("d_{}", p.name.unraw())).collect();
            Err(unknown(&f.sig.ident, "derivative", &known))
        }
    };
    let mut edges = vec![false; tensors.len()];
    for (of, f) in &parts.derivatives {
        match of.is_empty() {
            true => {
                let differentiable = |p: &&Param| !p.constant && p.mode != Mode::Maybes;
                edges = tensors.iter().map(differentiable).collect();
            }
            false => edges[of_operand(of, f)?] = true,
        }
    }
    let this = Primitive { params: &params, tensors: tensors.clone(), arguments, results, edges, lists };
    let first_edge = this.edges.iter().position(|edge| *edge).unwrap_or(0);

    let (mut kept, mut steps) = (Kept::default(), Vec::new());
    let (mut bits_of, mut reads): (Vec<(u8, u64)>, Vec<u64>) = (Vec::new(), Vec::new());
    for one in &parts.derivatives {
        let wrt = if one.0.is_empty() { first_edge } else { of_operand(&one.0, &one.1)? };
        let fast = parts.fast.iter().find(|(of, _)| *of == one.0).map(|(_, f)| f);
        let (code, bits) = step(&this, &name, one, fast, wrt, &mut kept)?;
        steps.push(code);
        reads.push(bits);
        bits_of.push((wrt as u8, bits));
    }
    for (of, f) in &parts.fast {
        if !parts.derivatives.iter().any(|(own, _)| own == of) {
            let message = "a fast form needs the form of the same name that can be differentiated again";
            return Err(Error::new(f.sig.ident.span(), message));
        }
    }
    let always = always(&reads, together);
    // Values that are always saved need not be tested for.
    let saves = bits_of.iter().filter(|(_, bits)| bits & !always != 0);
    let saves = saves.map(|(at, bits)| quote!((#at, #bits)));
    let mut order: Vec<usize> = (0..this.tensors.len()).collect();
    order.sort_by_key(|&i| this.tensors[i].torch_name());
    let order = order.iter().map(|&i| i as u8);
    kept.saved.sort_by(|a, b| a.0.cmp(&b.0));
    kept.saved.dedup_by(|a, b| a.0 == b.0);
    let saved = kept.saved.iter().filter(|(name, _)| !name.is_empty()).map(|(name, at)| quote!((#name, #at)));

    // The arguments that a node keeps, and how Python shows them.
    let extent = this.lists && !this.is_one_list() && !parts.derivatives.is_empty() || kept.uses_extent;
    let kept_params: Vec<&&Param> = kept.arguments.iter().map(|&i| &this.arguments[i]).collect();
    let mut kept_types: Vec<TokenStream> = kept_params.iter().map(|p| p.owned.clone()).collect();
    let mut keeps: Vec<TokenStream> = kept_params
        .iter()
        .map(|p| {
            let (own, owned) = (&p.name, &p.owned);
            match p.mode {
                Mode::Value { by_ref: true } if p.is_ints() => quote!(<#owned>::from_slice(#own)),
                Mode::Value { by_ref: true } => quote!(::std::borrow::ToOwned::to_owned(#own)),
                _ => quote!(#own.clone()),
            }
        })
        .collect();
    let extent_at = syn::Index::from(keeps.len());
    if extent {
        kept_types.push(quote!(#op::call::Extent));
        keeps.push(quote!(#op::call::Extent::of(&__groups, EDGES)));
    }
    let keep =
        if keeps.is_empty() { quote!(None) } else { quote!(Some(::std::sync::Arc::new((#(#keeps,)*)) as _)) };
    let args = if keeps.is_empty() { quote!() } else { quote!(let __args = step.params::<Args>()?;) };
    let (bind_extent, find_extent, holds_edges) = if extent {
        (
            quote!(let __extent = Some(&__args.#extent_at);),
            quote!(|args| args.downcast_ref::<Args>().map(|args| &args.#extent_at.lengths[..])),
            quote!(|args| args.downcast_ref::<Args>().is_some_and(|args| args.#extent_at.holds_edges())),
        )
    } else {
        (quote!(let __extent: Option<&#op::call::Extent> = None;), quote!(|_| None), quote!(|_| false))
    };
    let visible = kept_params.iter().enumerate().filter(|(_, p)| !p.torch_name().is_empty());
    let shown_args = visible.flat_map(|(place, p)| {
        let place = syn::Index::from(place);
        let show = |said: String, value: TokenStream| {
            at(&p.ty, quote!((#said, |args| args.downcast_ref::<Args>().map(|args| #op::facts::Keep::shown(&args.#value)))))
        };
        match &p.fields[..] {
            [] => vec![show(p.torch_name(), quote!(#place))],
            fields => fields.iter().map(|field| show(field.to_string(), quote!(#place.#field))).collect(),
        }
    });
    let shows = clauses.shows.iter().map(|c| fact(&this, c)).collect::<Result<Vec<_>>>()?;
    let node = clauses.node.clone().unwrap_or_else(|| node_name(&name.to_string()));
    let flops = match &parts.flops {
        None => quote!(None),
        Some(_) => quote!(Some(#name::flops)),
    };

    let sig_params: Vec<_> = params
        .iter()
        .map(|p| {
            let (name, ty) = (&p.name, &p.ty);
            quote!(#name: #ty)
        })
        .collect();
    let tensor_names: Vec<&Ident> = this.tensors.iter().map(|p| &p.name).collect();
    let again: Vec<TokenStream> = params.iter().map(Param::again).collect();
    let rest = &again[usize::from(writes)..];
    let n = tensor_names.len();
    let first = &tensor_names[0];
    let check =
        |target: TokenStream| parts.check.as_ref().map(|_| quote!(#name::check(#target, #(#rest),*)?;));
    if let Some(f) = parts.check.as_ref().filter(|_| !writes) {
        let message = "only a `write` has a `check`; a `forward` checks its arguments itself";
        return Err(Error::new(f.sig.ident.span(), message));
    }
    let compute = if writes {
        let copy = if clauses.dense { quote!(dense_copy_of) } else { quote!(copy_of) };
        let check = check(quote!(&out));
        quote! {
            let out = #op::call::#copy(#first)?;
            #check
            #name::write(&out, #(#rest),*)?;
            #op::call::results::Forward::put(out, __made);
            Ok(())
        }
    } else {
        quote! {
            #op::call::results::Forward::put(#name::forward(#(#again),*)?, __made);
            Ok(())
        }
    };
    let batch = batch(&name, &this, &clauses, parts.batch.is_some())?;
    let rebuilt = rebuilt(&this.tensors);
    let own_tangent = match (&parts.tangent, clauses.tangent.as_str()) {
        (Some(f), "fn") => tangent(&this, &name, f)?,
        (None, "fn") => {
            let message = format!("`tangent = fn`, but `{name}` has no `fn tangent(…)`");
            return Err(Error::new(name.span(), message));
        }
        (Some(f), _) => {
            return Err(Error::new(
                f.sig.ident.span(),
                "a function `tangent` needs the clause `tangent = fn`",
            ));
        }
        _ => quote!(None),
    };
    let tangent = camel(if clauses.tangent == "fn" { "transposed" } else { &clauses.tangent });
    let call_of = |primitive: TokenStream, method: TokenStream| {
        quote! {
            let __again = |__xs: &[#op::Tensor]| -> #op::Result<#op::call::results::Tensors> {
                #rebuilt
                #name::#method(#(#again),*).map(#op::call::results::Outputs::list)
            };
            let __call = #op::call::Call {
                primitive: &#primitive,
                flags: __flags,
                groups: &__groups,
                keep: &|| #keep,
                again: &__again,
                tangent: #own_tangent,
            };
        }
    };
    let call = call_of(quote!(PRIMITIVE), quote!(call));
    let (copy, copy_static) = if clauses.copy {
        let call = call_of(quote!(COPY), quote!(copy));
        let copied = quote! {
            #op::call::results::Forward::put(#op::call::results::Copied::copied(#name::forward(#(#again),*)?, #first)?, __made);
            Ok(())
        };
        let bodies = quote!(<#made as #op::call::results::Copied>::Bodies);
        let copy_node = format!("{node}_copy");
        (
            quote! {
                /// Returns a copy instead of a view.
                #[allow(clippy::too_many_arguments)]
                pub fn copy(#(#sig_params),*) -> #op::Result<<#bodies as #op::call::results::Forward>::Tensors> {
                    let __groups: [#op::call::Group; #n] = [#(#tensor_names.into()),*];
                    let __flags = #op::call::flags(&__groups).unread();
                    if __flags.is_batched() {
                        return #op::batch::dense(#name::call(#(#again),*)?);
                    }
                    #call
                    let made = #op::call::run(&__call, &mut |_, __made| { #copied })?;
                    <#bodies as #op::call::results::Forward>::tensors(made)
                }
            },
            quote! {
                static COPY: #op::call::Primitive = #op::call::Primitive {
                    derivative: #op::Derivative { facts: Some(&FACTS), flops: #flops, name: #copy_node, apply },
                    views: false,
                    ..PRIMITIVE
                };
            },
        )
    } else {
        (quote!(), quote!())
    };
    let arguments = params.iter().filter(|p| !p.is_tensor()).map(|p| {
        let (name, ty) = (&p.name, &p.ty);
        quote!(#name: #ty)
    });
    let draft = clauses.draft.then(|| {
        quote! {
            /// A node that no call makes; the caller sets its edges and outputs.
            #[allow(clippy::too_many_arguments)]
            pub fn draft(#(#arguments),*) -> crate::arena::Draft<crate::tensor::Node> {
                let mut node = crate::tensor::Node::draft(crate::tensor::Kind::Op(&PRIMITIVE.derivative));
                node.params = #keep;
                node
            }
        }
    });
    let over = if !writes {
        quote!()
    } else {
        let check = check(quote!(out));
        let apart = this.tensors.iter().map(|p| !p.overlaps);
        quote! {
            /// Like `call`, but writes over the first operand.
            #[allow(clippy::too_many_arguments)]
            pub fn over(#(#sig_params),*) -> #op::Result<()> {
                let __groups: [#op::call::Group; #n] = [#(#tensor_names.into()),*];
                let __flags = #op::call::flags(&__groups);
                #call
                #op::call::over(
                    &__call,
                    &[#(#apart),*],
                    &|out| { #check Ok(()) },
                    &mut |out| #name::write(out, #(#rest),*),
                )
            }
        }
    };
    // A single view takes a fast path.
    let one_view = crate::call::is(&made, "Layout")
        || crate::call::is(&made, "ConjNeg")
        || matches!(made, Type::Tuple(_));
    let recorded = if one_view {
        quote! {
            if #op::call::is_only_recorded(__flags) {
                let view = || Ok(#op::call::results::PlainView::body(#name::forward(#(#again),*)?, #first));
                return #op::call::view_of(&__call, #first, view);
            }
        }
    } else {
        quote!()
    };
    let quick = if one_view {
        let given = params.iter().map(|p| &p.name);
        quote! {
            if #op::call::is_plain_view(__flags, #first) {
                return Ok(#op::call::results::PlainView::plain_view(#name::forward(#(#given),*)?, #first));
            }
        }
    } else {
        quote!()
    };
    let (inplace, inplace_static) = match &clauses.inplace {
        None => (quote!(None), quote!()),
        Some(node) => (
            quote!(Some(&INPLACE)),
            quote! {
                static INPLACE: #op::Derivative = #op::Derivative { facts: Some(&FACTS), flops: #flops, name: #node, apply };
            },
        ),
    };
    let docs: Vec<_> = item.attrs.iter().filter(|a| a.path().is_ident("doc")).cloned().collect();
    item.attrs.retain(|a| !a.path().is_ident("doc"));
    let aten = &clauses.aten;
    let (anywhere, edges, results) = (clauses.anywhere, &this.edges, &this.results);
    let returned_count = if scratch > 0 { quote!(#count - #scratch) } else { quote!(usize::MAX) };
    let forward_type = if scratch > 0 {
        let left = count - scratch;
        if left == 1 { quote!(#op::Body) } else { quote!([#op::Body; #left]) }
    } else {
        quote!(#made)
    };
    Ok(quote! {
        #(#docs)*
        pub struct #name;
        #[allow(clippy::too_many_arguments)]
        #item
        const _: () = {
            #[allow(unused_parens)]
            type Args = (#(#kept_types,)*);
            const EDGES: &[bool] = &[#(#edges),*];
            const RETURNED: usize = #returned_count;
            #[allow(unused_variables)]
            fn apply(step: &#op::Step) -> #op::Result<#op::Grads> {
                let mut grads: #op::Grads = #op::smallvec::smallvec![None; step.node.edges.len()];
                #args
                #bind_extent
                #(#steps)*
                Ok(grads)
            }
            static FACTS: #op::facts::Facts = #op::facts::Facts {
                saved: &[#(#saved),*],
                kept: &[#(#shown_args),*],
                shown: &[#(#shows),*],
                results: &[#(#results),*],
                edges: EDGES,
                lengths: #find_extent,
                holds_edges: #holds_edges,
                aten: #aten,
                inplace: #inplace,
            };
            #inplace_static
            static PRIMITIVE: #op::call::Primitive = #op::call::Primitive {
                derivative: #op::Derivative { facts: Some(&FACTS), flops: #flops, name: #node, apply },
                edges: EDGES,
                saves: &[#(#saves),*],
                always: #always,
                order: &[#(#order),*],
                returned: RETURNED,
                tangent: #op::call::Tangent::#tangent,
                views: <#made as #op::call::results::Forward>::VIEWS,
                anywhere: #anywhere,
            };
            #copy_static
            impl #name {
                /// Runs the primitive, and records it if an operand requires a gradient.
                #[allow(clippy::too_many_arguments)]
                pub fn call(#(#sig_params),*) -> #op::Result<<#forward_type as #op::call::results::Forward>::Tensors> {
                    let __groups: [#op::call::Group; #n] = [#(#tensor_names.into()),*];
                    let __flags = #op::call::flags(&__groups);
                    #quick
                    #call
                    #recorded
                    if __flags.is_batched() {
                        return #op::call::cold(|| {
                            if let Some(xs) = __call.with_own_samples()? {
                                return <#forward_type as #op::call::results::Forward>::tensors(__again(&xs)?);
                            }
                            #batch
                        });
                    }
                    let made = #op::call::run(&__call, &mut |__plain, __made| match __plain {
                        None => { #compute }
                        Some(__xs) => {
                            #rebuilt
                            #compute
                        }
                    })?;
                    <#forward_type as #op::call::results::Forward>::tensors(made)
                }
                #over
                #copy
                #draft
            }
        };
    })
}

/// Code that takes the operands from `__xs`, one after the other.
fn rebuilt(tensors: &[&Param]) -> TokenStream {
    let mut code = quote!(let mut __from = 0usize;);
    for p in tensors {
        let own = &p.name;
        code.extend(match p.mode {
            Mode::Maybe => quote! {
                let #own = #own.map(|_| { __from += 1; &__xs[__from - 1] });
            },
            Mode::List => quote! {
                let #own = { __from += #own.len(); &__xs[__from - #own.len()..__from] };
            },
            Mode::Maybes => quote! {
                let #own: ::std::vec::Vec<Option<crate::operator::Tensor>> =
                    #own.iter().map(|t| t.as_ref().map(|_| { __from += 1; __xs[__from - 1].clone() })).collect();
                let #own = &#own[..];
            },
            _ => quote!(let #own = { __from += 1; &__xs[__from - 1] };),
        });
    }
    quote!(#code let _ = __from;)
}
