//! The functions of a primitive's block, and the meaning of their parameters' names.

use crate::call::Param;
use crate::clause::unknown;
use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::{Error, ImplItem, ImplItemFn, ItemImpl, Result, Type};

#[derive(Default)]
pub(super) struct Parts {
    pub forward: Option<ImplItemFn>,
    /// The functions `d_x`, by the operand's name; the name is empty for `derivative`.
    pub derivatives: Vec<(String, ImplItemFn)>,
    pub fast: Vec<(String, ImplItemFn)>,
    pub batch: Option<ImplItemFn>,
    pub tangent: Option<ImplItemFn>,
    pub flops: Option<ImplItemFn>,
    pub check: Option<ImplItemFn>,
}

pub(super) fn sort(item: &ItemImpl) -> Parts {
    let mut parts = Parts::default();
    for inner in &item.items {
        let ImplItem::Fn(f) = inner else { continue };
        let f = f.clone();
        match f.sig.ident.to_string().as_str() {
            "forward" | "write" => parts.forward = Some(f),
            "batch" => parts.batch = Some(f),
            "tangent" => parts.tangent = Some(f),
            "flops" => parts.flops = Some(f),
            "check" => parts.check = Some(f),
            "derivative" => parts.derivatives.push((String::new(), f)),
            "fast_derivative" => parts.fast.push((String::new(), f)),
            name => {
                if let Some(of) = name.strip_prefix("d_") {
                    parts.derivatives.push((of.into(), f));
                } else if let Some(of) = name.strip_prefix("fast_d_") {
                    parts.fast.push((of.into(), f));
                }
            }
        }
    }
    parts
}

/// The meaning of a derivative's parameter.
pub(super) enum Source {
    Gradient,
    Meta,
    Tensor(usize),
    Argument(usize),
    Output(usize),
    Wants,
    Tangent(usize),
}

pub(super) struct Primitive<'a> {
    pub params: &'a [Param],
    pub tensors: Vec<&'a Param>,
    pub arguments: Vec<&'a Param>,
    pub results: Vec<String>,
    pub edges: Vec<bool>,
    pub lists: bool,
}

impl Primitive<'_> {
    pub fn source(&self, name: &Ident, in_tangent: bool) -> Result<Source> {
        let said = name.unraw().to_string();
        let place = |list: &[&Param]| list.iter().position(|p| p.name.unraw() == said);
        if let Some(at) = place(&self.tensors) {
            return Ok(Source::Tensor(at));
        }
        if let Some(at) = place(&self.arguments) {
            return Ok(Source::Argument(at));
        }
        if let Some(at) = self.results.iter().position(|r| *r == said) {
            return Ok(Source::Output(at));
        }
        let tangent = said.strip_prefix("t_").filter(|_| in_tangent);
        if let Some(at) = tangent.and_then(|of| self.tensors.iter().position(|p| p.name.unraw() == of)) {
            return Ok(Source::Tangent(at));
        }
        match said.as_str() {
            "g" if !in_tangent => return Ok(Source::Gradient),
            "at" if !in_tangent => return Ok(Source::Meta),
            "wants" if !in_tangent => return Ok(Source::Wants),
            _ => {}
        }
        let own = self.params.iter().map(Param::bare_name).chain(self.results.iter().cloned());
        let special: Vec<String> = if in_tangent {
            self.tensors.iter().map(|p| format!("t_{}", p.name.unraw())).collect()
        } else {
            ["g", "at", "wants"].map(String::from).to_vec()
        };
        let known: Vec<String> = special.into_iter().chain(own).collect();
        Err(unknown(name, "operand, argument or result", &known))
    }

    /// True if the only operand is a list with edges: then the number of the node's edges is its length.
    pub fn is_one_list(&self) -> bool {
        self.lists && self.edges == [true]
    }

    /// Code for the position of operand `i` among the node's edges or arguments.
    pub fn place(&self, i: usize) -> TokenStream {
        let op = quote!(crate::operator::call::derivative);
        if self.is_one_list() {
            return quote!(#op::Slot::all(step));
        }
        if self.lists || !self.edges[i] {
            return quote!(#op::Slot::of(EDGES, __extent, #i));
        }
        let before = self.edges[..i].iter().filter(|edge| **edge).count() as u32;
        quote!(#op::Slot::one(#before))
    }
}

pub(super) fn count_of(forward: &Type) -> Result<usize> {
    if let Type::Array(array) = forward {
        if let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(n), .. }) = &array.len {
            return n.base10_parse();
        }
        return Err(Error::new_spanned(&array.len, "the number of results must be a literal"));
    }
    Ok(1)
}

/// `SoftmaxBackward0` for `Softmax`. A number at the end of the name replaces the 0, as in PyTorch.
pub(super) fn node_name(name: &str) -> String {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = if plain.len() == name.len() { "0" } else { &name[plain.len()..] };
    format!("{plain}Backward{number}")
}
