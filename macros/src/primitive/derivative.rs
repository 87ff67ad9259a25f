//! Code of derivatives: what they read from the node, and how they are called.

use super::parts::{Primitive, Source};
use crate::call::{Mode, at};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{Error, ImplItemFn, Result, Type};

pub(super) const OUTPUT_BIT: usize = 63;
pub(super) const OUTPUTS: u64 = 0xff << 56;

/// Code that makes the arguments of a derivative, and the bits of the values that it reads.
pub(super) struct Reads {
    pub lets: Vec<TokenStream>,
    pub names: Vec<TokenStream>,
    pub bits: u64,
    pub incoming: TokenStream,
}

/// The needs of all derivatives together.
#[derive(Default)]
pub(super) struct Kept {
    /// The arguments that nodes keep, by index.
    pub arguments: Vec<usize>,
    /// PyTorch's names of saved tensors, with code for their positions.
    pub saved: Vec<(String, TokenStream)>,
    pub uses_extent: bool,
}

pub(super) fn bare(ty: &Type) -> (Type, bool) {
    match ty {
        Type::Reference(r) => match &*r.elem {
            Type::Slice(slice) => {
                let elem = &slice.elem;
                (syn::parse_quote!(::std::vec::Vec<#elem>), true)
            }
            elem => (elem.clone(), true),
        },
        ty => (ty.clone(), false),
    }
}

pub(super) fn reads(this: &Primitive, f: &ImplItemFn, wrt: usize, kept: &mut Kept) -> Result<Reads> {
    let op = quote!(crate::operator);
    let mut all = Reads { lets: Vec::new(), names: Vec::new(), bits: 0, incoming: quote!(#op::V) };
    for input in &f.sig.inputs {
        let syn::FnArg::Typed(input) = input else {
            return Err(Error::new_spanned(input, "a derivative has no `self`"));
        };
        let syn::Pat::Ident(p) = &*input.pat else {
            return Err(Error::new_spanned(&input.pat, "the parameters of a derivative must be plain names"));
        };
        let p = &p.ident;
        let (bare, lent) = bare(&input.ty);
        let local = format_ident!("__{}", p.unraw());
        let fetch = |place: TokenStream| {
            at(&bare, quote!(let #local: #bare = #op::call::derivative::Fetch::fetch(step, &#place)?;))
        };
        match this.source(p, false)? {
            Source::Gradient => {
                all.incoming = quote!(#bare);
                all.lets.push(quote!(let #local = __g.clone();));
            }
            Source::Meta => {
                let place = this.place(wrt);
                all.lets
                    .push(quote!(let #local: #bare = #op::call::derivative::FetchMeta::meta(step, &#place)?;))
            }
            Source::Wants if crate::call::is(&bare, "Vec") => {
                let place = this.place(wrt);
                all.lets.push(quote!(let #local: #bare = #place.each_wanted(step);));
            }
            Source::Wants => {
                let places: Vec<_> = (0..this.edges.len())
                    .filter(|&i| this.edges[i])
                    .map(|i| {
                        let place = this.place(i);
                        quote!(#place.is_wanted(step))
                    })
                    .collect();
                all.lets.push(quote!(let #local: #bare = [#(#places),*];));
            }
            Source::Tensor(i)
                if crate::call::is(crate::call::argument(&bare, "Option").unwrap_or(&bare), "Meta") =>
            {
                let place = this.place(i);
                all.lets
                    .push(quote!(let #local: #bare = #op::call::derivative::FetchMeta::meta(step, &#place)?;))
            }
            Source::Tensor(i) => {
                all.bits |= 1 << i;
                kept.uses_extent |= !this.edges[i];
                let list = matches!(this.tensors[i].mode, Mode::List | Mode::Maybes);
                kept.saved.push((
                    this.tensors[i].torch_name(),
                    quote!(#op::facts::SavedAt::Operand { at: #i, list: #list }),
                ));
                all.lets.push(fetch(this.place(i)));
            }
            Source::Output(i) => {
                all.bits |= 1 << (OUTPUT_BIT - i);
                kept.saved.push((this.results[i].clone(), quote!(#op::facts::SavedAt::Output(#i))));
                let i = i as u32;
                all.lets.push(fetch(quote!(#op::call::derivative::Slot::output(#i, RETURNED))));
            }
            Source::Argument(i) => {
                let place = kept.arguments.iter().position(|k| *k == i).unwrap_or_else(|| {
                    kept.arguments.push(i);
                    kept.arguments.len() - 1
                });
                let place = syn::Index::from(place);
                if lent {
                    all.lets.push(quote!(let #local = &__args.#place;));
                    all.names.push(quote!(#local));
                    continue;
                }
                all.lets.push(quote!(let #local = __args.#place.clone();));
            }
            Source::Tangent(_) => return Err(Error::new(p.span(), "a derivative cannot use tangents")),
        }
        all.names.push(if lent { quote!(&#local) } else { quote!(#local) });
    }
    Ok(all)
}

/// Code of one derivative, `d_x`, with its fast form if there is one.
pub(super) fn step(
    this: &Primitive,
    name: &Ident,
    (of, f): &(String, ImplItemFn),
    fast: Option<&ImplItemFn>,
    wrt: usize,
    kept: &mut Kept,
) -> Result<(TokenStream, u64)> {
    let op = quote!(crate::operator);
    let together = of.is_empty();
    let place = this.place(wrt);
    let put = if together {
        let places = (0..this.edges.len()).filter(|&i| this.edges[i]).map(|i| {
            let place = this.place(i);
            quote!(#place.start())
        });
        quote!(#op::call::derivative::IntoAllGrads::put_all(made, step, &mut grads, &[#(#places),*])?;)
    } else {
        quote!(#op::call::derivative::IntoGrads::put(made, &mut grads, __own_edges.start())?;)
    };
    let mut bits = 0;
    let mut run = |f: &ImplItemFn| -> Result<TokenStream> {
        let Reads { lets, names, bits: own, incoming } = reads(this, f, wrt, kept)?;
        bits |= own;
        let ident = &f.sig.ident;
        Ok(quote! {
            if let Some(__g) = <#incoming as #op::call::derivative::Incoming>::incoming(step)? {
                #(#lets)*
                let made = #name::#ident(#(#names),*);
                #put
            }
        })
    };
    let slow = run(f)?;
    let code = match fast.map(run).transpose()? {
        Some(fast) => quote!(if #op::call::derivative::is_plain(step) { #fast } else { #slow }),
        None => slow,
    };
    let wanted = if together { quote!(true) } else { quote!(__own_edges.is_wanted(step)) };
    Ok((quote! { { let __own_edges = #place; if #wanted { #code } } }, bits))
}

/// Like `always_saved` of pointwise rows: the values that several derivatives read (or all, if there is one
/// derivative), and outputs.
pub(super) fn always(reads: &[u64], together: bool) -> u64 {
    let (mut once, mut again) = (0, 0);
    for bits in reads {
        again |= once & bits;
        once |= bits;
    }
    if together || reads.len() == 1 { once } else { again | once & OUTPUTS }
}
