//! `#[operator]`, `#[overload]`, `#[inplace]`: a function, and a static with the facts that Python needs.

use crate::call::{Param, at, doc, params, result, shorten};
use crate::clause::{self, Clause, unknown};
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{Error, ItemFn, Result};

#[derive(Clone, Copy, PartialEq)]
pub enum Role {
    First,
    Overload,
    Inplace,
}

const WORDS: &[&str] = &[
    "function",
    "method",
    "nn",
    "inplace",
    "alpha",
    "out",
    "name",
    "space",
    "alias",
    "returns",
    "sample",
    "composite",
    "unrecorded",
    "overloads",
    "elementwise",
    "formula",
    "int_args",
    "aten",
    "expanded",
    "autocast",
    "flops",
];
const OUT: &[&str] = &[
    "declared",
    "found",
    "any",
    "promoted",
    "castable",
    "apart",
    "resizes",
    "silent",
    "counted",
    "computes",
    "early",
    "called",
    "with",
    "message",
    "floating",
    "truths",
    "uninitialized",
];

/// The contents of an operator's clauses.
#[derive(Default)]
struct Facts {
    name: Option<String>,
    forms: Vec<Ident>,
    space: String,
    out: Option<TokenStream>,
    aliases: Vec<String>,
    fields: Vec<String>,
    sample: String,
    composite: bool,
    unrecorded: bool,
    elementwise: bool,
    arities: TokenStream,
    formula: Option<TokenStream>,
    expanded: Option<TokenStream>,
    autocast: Option<Ident>,
    flops: Option<TokenStream>,
    /// ATen's overload names: with a tensor, with a number.
    by_kind: Option<[String; 2]>,
    /// The fast path: a given function, or one derived from the parameters.
    int_args: Option<Option<syn::Expr>>,
}

impl Facts {
    fn read(&mut self, clause: &Clause) -> Result<()> {
        match clause.word.to_string().as_str() {
            "function" | "method" | "inplace" | "nn" | "alpha" => self.forms.push(clause.word.clone()),
            "out" => self.out = Some(out(clause)?),
            "name" => self.name = Some(clause.text()?),
            "space" => self.space = clause.text()?,
            "alias" => self.aliases.push(clause.text()?),
            "returns" => self.fields = clause.idents()?.iter().map(|i| i.unraw().to_string()).collect(),
            "sample" => self.sample = clause.text()?,
            "composite" => self.composite = true,
            "int_args" => self.int_args = Some(clause.value.as_ref().map(|_| clause.expr()).transpose()?),
            "unrecorded" => self.unrecorded = true,
            "elementwise" => self.elementwise = true,
            "overloads" => self.arities = clause.list.clone().unwrap_or_default(),
            "formula" => self.formula = clause.value.clone(),
            "expanded" => self.expanded = clause.value.clone(),
            "autocast" => self.autocast = Some(autocast(clause)?),
            "flops" => self.flops = clause.value.clone(),
            "aten" => match &clause.idents()?[..] {
                [tensor] => self.by_kind = Some([tensor.to_string(), String::new()]),
                [tensor, number] => self.by_kind = Some([tensor.to_string(), number.to_string()]),
                _ => {
                    return Err(Error::new(
                        clause.span(),
                        "`aten(Tensor, Scalar)`: with a tensor, with a number",
                    ));
                }
            },
            _ => return Err(clause.unknown(WORDS)),
        }
        Ok(())
    }
}

fn autocast(clause: &Clause) -> Result<Ident> {
    let rule = clause.rule()?.word;
    match rule.to_string().as_str() {
        "lower" => Ok(Ident::new("Lower", rule.span())),
        "single" => Ok(Ident::new("Single", rule.span())),
        "widest" => Ok(Ident::new("Widest", rule.span())),
        _ => Err(unknown(&rule, "rule of `autocast`", &["lower", "single", "widest"])),
    }
}

/// Such as `out(declared, apart)`, `out(message = "…")`, `out(called = "linalg_cross")`.
fn out(clause: &Clause) -> Result<TokenStream> {
    let op = quote!(crate::operator);
    let (mut rule, mut more) = (quote!(Cast), Vec::new());
    for word in clause.inner()? {
        match word.word.to_string().as_str() {
            "declared" => rule = quote!(Declared),
            "found" => rule = quote!(Found),
            "any" => rule = quote!(Any),
            "promoted" => rule = quote!(Promoted),
            "castable" => {
                let text = word.text()?;
                rule = quote!(Castable(#text));
            }
            "message" => {
                let text = word.text()?;
                rule = quote!(Message(#text));
            }
            "floating" => {
                let text = word.text()?;
                rule = quote!(Floating(#text));
            }
            "truths" => {
                let text = word.text()?;
                rule = quote!(Truths(#text));
            }
            "called" | "with" => {
                let (word, text) = (&word.word, word.text()?);
                more.push(quote!(#word: #text));
            }
            "apart" | "resizes" | "silent" | "counted" | "computes" | "early" | "uninitialized" => {
                let word = &word.word;
                more.push(quote!(#word: true));
            }
            _ => return Err(unknown(&word.word, "rule of `out`", OUT)),
        }
    }
    Ok(quote!(#op::OutFacts { rule: #op::OutRule::#rule, #(#more,)* ..#op::OutFacts::NONE }))
}

/// The name of the static: `SOFTMAX` for `softmax`.
fn static_ident(name: &Ident) -> Ident {
    Ident::new(&name.unraw().to_string().to_uppercase(), name.span())
}

/// Code for a parameter: its entry in the static, how it is read, how it is passed.
fn param(p: &Param, static_name: &Ident, number: usize) -> [TokenStream; 3] {
    let op = quote!(crate::operator);
    let (name, keyword, strict, required, elsewhere) =
        (&p.name, p.keyword, p.strict, p.required, p.elsewhere);
    // Operands are borrowed from the arguments.
    let lent = matches!(p.mode, crate::call::Mode::One | crate::call::Mode::Maybe | crate::call::Mode::List);
    let ty = &p.ty;
    let taken = if lent { quote!(#ty) } else { p.owned.clone() };
    let text = name.unraw().to_string();
    let maybe = matches!(p.mode, crate::call::Mode::Maybe);
    let optional = crate::call::argument(&p.ty, "Option").is_some() || maybe;
    let (shown, default) = match &p.default {
        Some(value) => (quote!(Some(stringify!(#value))), quote!(Some(|| #value))),
        None if optional && !required => (quote!(Some("None")), quote!(None)),
        None => (quote!(None), quote!(None)),
    };
    let given = match p.mode {
        crate::call::Mode::Value { by_ref: false } => quote!(#name),
        _ if lent => quote!(#name),
        _ => p.borrow(quote!(#name)),
    };
    [
        at(
            &p.ty,
            quote!(#op::Param {
                name: #text,
                kind: <#taken as #op::FromArg>::KIND,
                optional: <#taken as #op::FromArg>::OPTIONAL,
                keyword: #keyword,
                strict: #strict,
                elsewhere: #elsewhere,
                default: #shown,
            }),
        ),
        at(
            &p.ty,
            quote!(let #name: #taken = #op::take(#static_name.name, #static_name.params, args, #number, #default)?;),
        ),
        given,
    ]
}

/// The parameters that a `TensorOptions` stands for.
fn tensor_options(group: &Param) -> Result<Vec<Param>> {
    let mut signature: syn::Signature = syn::parse_quote!(fn options(
        dtype: Option<crate::base::DType>,
        layout: Option<crate::base::StridedLayout>,
        device: Option<crate::base::Device>,
        pin_memory: Option<bool>,
        #[default(false)] requires_grad: bool,
    ));
    let mut all = params(&mut signature)?;
    all.iter_mut().for_each(|p| p.keyword = group.keyword);
    Ok(all)
}

/// The fast path of a method whose other parameters are all integers, or one list of integers.
fn int_args(name: &Ident, params: &[Param]) -> Result<TokenStream> {
    let op = quote!(crate::operator);
    let [_, rest @ ..] = params else {
        return Err(Error::new(name.span(), "`int_args` is for methods, whose first parameter is a tensor"));
    };
    if let [list] = rest {
        let given = match () {
            () if list.is_ints() => Some(quote!(ints)),
            () if crate::call::is(&list.ty, "Ints") => Some(quote!(#op::Ints::from_slice(ints))),
            () if crate::call::is(&list.ty, "Sizes") => Some(quote!(#op::Sizes(#op::Ints::from_slice(ints)))),
            () => None,
        };
        if let Some(given) = given {
            return Ok(quote!(Some(|x, ints| (!ints.is_empty()).then(|| #name(x, #given)))));
        }
    }
    if let Some(other) = rest.iter().find(|p| !crate::call::is(&p.ty, "i64")) {
        let message = "`int_args` needs integer parameters, or one list of integers; otherwise write `int_args = function`";
        return Err(Error::new(other.name.span(), message));
    }
    let names: Vec<&Ident> = rest.iter().map(|p| &p.name).collect();
    Ok(quote!(Some(|x, ints| match *ints {
        [#(#names),*] => Some(#name(x, #(#names),*)),
        _ => None,
    })))
}

pub fn expand(role: Role, clauses: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut function: ItemFn = syn::parse2(item)?;
    let op = quote!(crate::operator);
    let mut facts = Facts::default();
    let (mut of, mut aten) = (None, String::new());
    for clause in clause::parse(clauses)? {
        if role != Role::First && of.is_none() && clause.value.is_none() && clause.list.is_none() {
            of = Some(static_ident(&clause.word));
            aten = clause.field.as_ref().map_or(String::new(), Ident::to_string);
        } else {
            facts.read(&clause)?;
        }
    }
    let name = function.sig.ident.unraw();
    if role == Role::First && facts.forms.is_empty() {
        let message = format!("say in which forms `{name}` is offered: function, method, nn, inplace");
        return Err(Error::new(function.sig.ident.span(), message));
    }
    let (said, overloads, inplace_of) = match (&of, role) {
        (None, Role::Overload) => {
            let message = "name the operator that this belongs to: `#[overload(max.dim)]`";
            return Err(Error::new(function.sig.ident.span(), message));
        }
        (None, Role::Inplace) => {
            let said = facts.name.clone().unwrap_or_else(|| name.to_string());
            let said = said.trim_end_matches('_').to_owned();
            (quote!(#said), quote!(None), quote!(None))
        }
        (Some(of), Role::Inplace) => (quote!(#of.name), quote!(None), quote!(Some(&#of))),
        (Some(of), _) => (quote!(#of.name), quote!(Some(&#of)), quote!(None)),
        (None, _) => {
            let name = facts.name.clone().unwrap_or_else(|| name.to_string());
            (quote!(#name), quote!(None), quote!(None))
        }
    };
    let params = params(&mut function.sig)?;
    let static_name = static_ident(&function.sig.ident);
    let (mut statics, mut takes, mut gives) = (Vec::new(), Vec::new(), Vec::new());
    for p in &params {
        let group = if crate::call::is(&p.ty, "TensorOptions") { tensor_options(p)? } else { Vec::new() };
        for p in if group.is_empty() { std::slice::from_ref(p) } else { &group } {
            let [a, b, c] = param(p, &static_name, statics.len());
            statics.push(a);
            takes.push(b);
            if group.is_empty() {
                gives.push(c);
            }
        }
        if !group.is_empty() {
            gives.push(quote!(#op::TensorOptions { dtype, device, requires_grad }));
        }
    }
    let returned = result(&function.sig)?;
    let doc = doc(&function.attrs);
    shorten(&mut function.attrs);
    let (ident, visibility) = (&function.sig.ident, &function.vis);
    let has_out = facts.out.is_some();
    let bits = facts.forms.iter().map(|f| format_ident!("{}", f.to_string().to_uppercase()));
    let out_bit = has_out.then(|| quote!(| #op::Forms::OUT));
    let forms = match (&of, role) {
        (_, Role::Inplace) => quote!(#op::Forms(#op::Forms::INPLACE)),
        (Some(of), _) if facts.forms.is_empty() => quote!(#op::Forms(#of.forms.0 #out_bit)),
        _ => quote!(#op::Forms(0 #(| #op::Forms::#bits)* #out_bit)),
    };
    let out = match (&facts.out, &of, role) {
        (Some(out), ..) => quote!(#out),
        (None, Some(of), Role::Overload) => quote!(#of.out),
        _ => quote!(#op::OutFacts::NONE),
    };
    let unrecorded = facts.unrecorded;
    let out = if unrecorded { quote!(#op::OutFacts { unrecorded: true, ..#out }) } else { out };
    let (aliases, fields, sample, composite, space) =
        (&facts.aliases, &facts.fields, &facts.sample, facts.composite, &facts.space);
    let (arities, elementwise) = (&facts.arities, facts.elementwise);
    let by_kind = match &facts.by_kind {
        Some([tensor, number]) => quote!(Some([#tensor, #number])),
        None => quote!(None),
    };
    let formula = facts.formula.as_ref().map_or(quote!(None), |formula| quote!(Some(#formula)));
    let expanded = facts.expanded.as_ref().map_or(quote!(None), |write| quote!(Some(#write)));
    let autocast = facts.autocast.as_ref().map_or(quote!(None), |rule| quote!(Some(#op::Autocast::#rule)));
    let flops = facts.flops.as_ref().map_or(quote!(None), |count| quote!(Some(#count)));
    // Without operands there is no gradient.
    let operands = params
        .iter()
        .any(|p| p.is_tensor() || crate::call::is(&p.ty, "Operand") || crate::call::is(&p.ty, "Several"));
    let composite = match (&of, role) {
        (Some(of), Role::Overload) => quote!(#composite || #of.composite),
        _ => quote!(#composite),
    };
    let differentiable = !unrecorded && operands && role == Role::First;
    let int_args = match &facts.int_args {
        None => quote!(None),
        Some(Some(own)) => quote!(Some(#own)),
        Some(None) => int_args(&function.sig.ident, &params)?,
    };
    let family = quote!(#op::family(file!()));
    let written = quote!(Some(|args| {
        let Some(#op::Arg::Tensor(target)) = args.first() else {
            return Err(#op::Error::runtime("an in-place method needs a tensor as its first argument"));
        };
        (#static_name.call)(args).map(|_| target.clone())
    }));
    let (call_inplace, inplace_of) = match (role, &of) {
        (Role::Inplace, _) => (written, inplace_of),
        // An overload of an in-place form is in place, too.
        (Role::Overload, Some(of)) => {
            (quote!(if #of.inplace_of.is_some() { #written } else { None }), quote!(#of.inplace_of))
        }
        _ => (quote!(None), inplace_of),
    };
    let returns = match &fields[..] {
        [] => quote!(<#returned as #op::Returned>::STUB),
        _ => {
            let named = format!("({})", fields.join(", "));
            quote!(#named)
        }
    };
    Ok(quote! {
        #[allow(clippy::too_many_arguments)]
        #function
        #[doc(hidden)]
        #visibility static #static_name: #op::Row = #op::Row {
            name: #said,
            doc: #doc,
            family: #family,
            params: &[#(#statics),*],
            forms: #forms,
            differentiable: #differentiable,
            call: {
                #[allow(unused_variables)]
                fn call(args: &[#op::Arg]) -> #op::Result<#op::Out> {
                    #(#takes)*
                    #ident(#(#gives),*).map(|made| #op::Returned::out(made, #static_name.name, &[#(#fields),*]))
                }
                call
            },
            call_inplace: #call_inplace,
            space: #space,
            aliases: &[#(#aliases),*],
            aten: #aten,
            overloads: #overloads,
            inplace_of: #inplace_of,
            returns: #returns,
            out: #out,
            by_kind: #by_kind,
            scaled: None,
            int_args: #int_args,
            composite: #composite,
            arities: &[#arities],
            elementwise: #elementwise,
            expanded: #expanded,
            formula: #formula,
            autocast: #autocast,
            flops: #flops,
            sample: #sample,
            at: (file!(), line!()),
        };
        const _: () = {
            use #op::inventory;
            inventory::submit!(#op::Registered(&#static_name));
        };
    })
}
