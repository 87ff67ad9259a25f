//! `#[primitive] impl Name { … }`: the functions of one primitive, known by their names.
//!
//! - `forward(…) -> Result<Body>` (or several bodies, a layout, several layouts), or `write(input: &Body, …)` over the first operand
//! - `d_input(…)` for each operand that has a gradient, or one `derivative(…)` for all of them
//! - `fast_d_input(…)`, `fast_derivative(…)`: one kernel, for a gradient that nobody differentiates again
//! - `tangent(…)`, `batch(b, …)`, `flops(…)`: rules of its own
//!
//! Other functions of the block are its helpers.

use crate::call::{Mode, Param, at, params, result};
use crate::clause::{self, Clause, unknown};
use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{Error, ImplItem, ImplItemFn, ItemImpl, Result, Type};

const WORDS: &[&str] = &[
    "node", "batch", "tangent", "dtypes", "results", "scratch", "shows", "devices", "inplace", "untied",
    "copy", "dense", "draft", "aten",
];
const TANGENTS: &[&str] = &["linear", "multilinear", "added", "still", "fn", "transposed"];
const DTYPES: &[&str] = &["float", "number", "real", "differentiable"];
const BATCHES: &[&str] = &["pointwise", "along", "over", "in_front", "merged", "each", "none"];
const FACTS: &[&str] = &["sizes", "strides", "numel", "ndim", "size"];

struct Clauses {
    node: Option<String>,
    batch: Option<(Ident, Vec<Ident>)>,
    tangent: String,
    dtypes: TokenStream,
    results: Vec<String>,
    /// The results that are saved but not returned: the last ones.
    scratch: Vec<Ident>,
    shows: Vec<Clause>,
    anywhere: bool,
    /// The node of a view operator's in-place form.
    inplace: Option<String>,
    untied: bool,
    /// Whether there is a copying form, too.
    copy: bool,
    /// The copy that a `write` is called on lies in the order of its dimensions.
    dense: bool,
    /// Whether nodes are made that no call makes.
    draft: bool,
    /// The name of PyTorch's kernel, where it is not the node's.
    aten: String,
}

fn camel(word: &str) -> Ident {
    let mut letters = word.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    format_ident!("{}", first.into_iter().chain(letters).collect::<String>())
}

fn read(tokens: TokenStream) -> Result<Clauses> {
    let mut all = Clauses {
        node: None,
        batch: None,
        tangent: "transposed".into(),
        dtypes: quote!(Any),
        results: Vec::new(),
        scratch: Vec::new(),
        shows: Vec::new(),
        anywhere: false,
        inplace: None,
        untied: false,
        copy: false,
        dense: false,
        draft: false,
        aten: String::new(),
    };
    for clause in clause::parse(tokens)? {
        match clause.word.to_string().as_str() {
            "node" => all.node = Some(clause.text()?),
            "batch" => {
                let rule = clause.rule()?;
                if !BATCHES.contains(&rule.word.to_string().as_str()) {
                    return Err(unknown(&rule.word, "rule of `batch`", BATCHES));
                }
                all.batch = Some((rule.word.clone(), rule.idents()?));
            }
            "tangent" => {
                let rule = clause.rule()?;
                all.tangent = rule.word.to_string();
                if !TANGENTS.contains(&all.tangent.as_str()) {
                    return Err(unknown(&rule.word, "rule of `tangent`", TANGENTS));
                }
            }
            "dtypes" => {
                let rule = clause.rule()?;
                if !DTYPES.contains(&rule.word.to_string().as_str()) {
                    return Err(unknown(&rule.word, "set of dtypes", DTYPES));
                }
                let (set, kernel) = (camel(&rule.word.to_string()), rule.quoted()?);
                all.dtypes = quote!(#set(#kernel));
            }
            "inplace" => all.inplace = Some(clause.text()?),
            "untied" => all.untied = true,
            "copy" => all.copy = true,
            "draft" => all.draft = true,
            "aten" => all.aten = clause.text()?,
            "results" => all.results = clause.idents()?.iter().map(Ident::to_string).collect(),
            "scratch" => all.scratch = clause.idents()?,
            "shows" => all.shows = clause.inner()?,
            "dense" => all.dense = true,
            "devices" => all.anywhere = clause::anywhere(&clause)?,
            _ => return Err(clause.unknown(WORDS)),
        }
    }
    Ok(all)
}

#[derive(Default)]
struct Parts {
    forward: Option<ImplItemFn>,
    /// `d_x` by the operand's name; the name is empty for `derivative`.
    derivatives: Vec<(String, ImplItemFn)>,
    fast: Vec<(String, ImplItemFn)>,
    batch: Option<ImplItemFn>,
    tangent: Option<ImplItemFn>,
    flops: Option<ImplItemFn>,
    check: Option<ImplItemFn>,
}

fn sort(item: &ItemImpl) -> Parts {
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

/// What a derivative's parameter stands for.
enum Source {
    Gradient,
    Meta,
    Tensor(usize),
    Argument(usize),
    Output(usize),
    Wants,
    Tangent(usize),
}

struct Primitive<'a> {
    params: &'a [Param],
    tensors: Vec<&'a Param>,
    arguments: Vec<&'a Param>,
    results: Vec<String>,
    edges: Vec<bool>,
    lists: bool,
}

impl Primitive<'_> {
    fn source(&self, name: &Ident, moving: bool) -> Result<Source> {
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
        let tangent = said.strip_prefix("t_").filter(|_| moving);
        if let Some(at) = tangent.and_then(|of| self.tensors.iter().position(|p| p.name.unraw() == of)) {
            return Ok(Source::Tangent(at));
        }
        match said.as_str() {
            "g" if !moving => return Ok(Source::Gradient),
            "at" if !moving => return Ok(Source::Meta),
            "wants" if !moving => return Ok(Source::Wants),
            _ => {}
        }
        let own = self.params.iter().map(Param::bare_name).chain(self.results.iter().cloned());
        let special: Vec<String> = if moving {
            self.tensors.iter().map(|p| format!("t_{}", p.name.unraw())).collect()
        } else {
            ["g", "at", "wants"].map(String::from).to_vec()
        };
        let known: Vec<String> = special.into_iter().chain(own).collect();
        Err(unknown(name, "operand, argument or result", &known))
    }

    /// Whether the only operand is a list with edges: then the node's edges say how long it was.
    fn is_one_list(&self) -> bool {
        self.lists && self.edges == [true]
    }

    /// Where tensor parameter `i` is among the node's edges, or among its arguments.
    fn place(&self, i: usize) -> TokenStream {
        let op = quote!(crate::operator::derivative);
        if self.is_one_list() {
            return quote!(#op::Slot::all(step));
        }
        if self.lists || !self.edges[i] {
            return quote!(#op::Slot::of(EDGES, __extent, #i));
        }
        let before = self.edges[..i].iter().filter(|edge| **edge).count() as u16;
        quote!(#op::Slot::one(#before))
    }
}

fn count_of(forward: &Type) -> Result<usize> {
    if let Type::Array(array) = forward {
        if let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Int(n), .. }) = &array.len {
            return n.base10_parse();
        }
        return Err(Error::new_spanned(&array.len, "the number of results stands here as a number"));
    }
    Ok(1)
}

/// `Softmax` becomes `SoftmaxBackward0`; a number at the end of the name is PyTorch's.
fn node_name(name: &str) -> String {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = if plain.len() == name.len() { "0" } else { &name[plain.len()..] };
    format!("{plain}Backward{number}")
}

const OUTPUT_BIT: usize = 63;
const OUTPUTS: u64 = 0xff << 56;

/// Code that makes the arguments of a derivative, and what it reads.
struct Reads {
    lets: Vec<TokenStream>,
    names: Vec<TokenStream>,
    bits: u64,
    incoming: TokenStream,
}

/// What derivatives need together.
#[derive(Default)]
struct Kept {
    /// The arguments that nodes keep, by their places.
    arguments: Vec<usize>,
    /// PyTorch's names of what may be saved, with code for the place and whether it is a list.
    saved: Vec<(String, TokenStream)>,
    uses_extent: bool,
}

fn bare(ty: &Type) -> (Type, bool) {
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

fn reads(this: &Primitive, f: &ImplItemFn, wrt: usize, kept: &mut Kept) -> Result<Reads> {
    let op = quote!(crate::operator);
    let mut all = Reads { lets: Vec::new(), names: Vec::new(), bits: 0, incoming: quote!(#op::V) };
    for input in &f.sig.inputs {
        let syn::FnArg::Typed(input) = input else {
            return Err(Error::new_spanned(input, "a derivative has no `self`"));
        };
        let syn::Pat::Ident(p) = &*input.pat else {
            return Err(Error::new_spanned(&input.pat, "a derivative's parameters are plain names"));
        };
        let p = &p.ident;
        let (bare, lent) = bare(&input.ty);
        let local = format_ident!("__{}", p.unraw());
        let fetch = |place: TokenStream| {
            at(&bare, quote!(let #local: #bare = #op::derivative::Fetch::fetch(step, &#place)?;))
        };
        match this.source(p, false)? {
            Source::Gradient => {
                all.incoming = quote!(#bare);
                all.lets.push(quote!(let #local = __g.clone();));
            }
            Source::Meta => {
                let place = this.place(wrt);
                all.lets.push(quote!(let #local: #bare = #op::derivative::FetchMeta::meta(step, &#place)?;))
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
                all.lets.push(quote!(let #local: #bare = #op::derivative::FetchMeta::meta(step, &#place)?;))
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
                let i = i as u16;
                all.lets.push(fetch(quote!(#op::derivative::Slot::output(#i, RETURNED))));
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
            Source::Tangent(_) => return Err(Error::new(p.span(), "a derivative knows no tangents")),
        }
        all.names.push(if lent { quote!(&#local) } else { quote!(#local) });
    }
    Ok(all)
}

/// Code of one derivative: `d_x`, with its fast form where there is one.
fn step(
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
        quote!(#op::derivative::IntoAllGrads::put_all(made, step, &mut grads, &[#(#places),*])?;)
    } else {
        quote!(#op::derivative::IntoGrads::put(made, &mut grads, __own_edges.start())?;)
    };
    let mut bits = 0;
    let mut run = |f: &ImplItemFn| -> Result<TokenStream> {
        let Reads { lets, names, bits: own, incoming } = reads(this, f, wrt, kept)?;
        bits |= own;
        let ident = &f.sig.ident;
        Ok(quote! {
            if let Some(__g) = <#incoming as #op::derivative::Incoming>::incoming(step)? {
                #(#lets)*
                let made = #name::#ident(#(#names),*);
                #put
            }
        })
    };
    let slow = run(f)?;
    let code = match fast.map(run).transpose()? {
        Some(fast) => quote!(if #op::derivative::is_plain(step) { #fast } else { #slow }),
        None => slow,
    };
    let wanted = if together { quote!(true) } else { quote!(__own_edges.is_wanted(step)) };
    Ok((quote! { { let __own_edges = #place; if #wanted { #code } } }, bits))
}

/// As `always_saved` of pointwise rows: what several derivatives read, or the only one, and outputs.
fn always(reads: &[u64], together: bool) -> u64 {
    let (mut once, mut again) = (0, 0);
    for bits in reads {
        again |= once & bits;
        once |= bits;
    }
    if together || reads.len() == 1 { once } else { again | once & OUTPUTS }
}

pub fn expand(clauses: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let clauses = read(clauses)?;
    let mut item: ItemImpl = syn::parse2(item)?;
    let Type::Path(path) = &*item.self_ty else {
        return Err(Error::new(Span::call_site(), "`#[primitive] impl Name { … }`"));
    };
    let name = path.path.require_ident()?.clone();
    // Our attributes on parameters are read, then taken away.
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
        // What is written is the first operand: `call` and `over` take its tensor.
        let Some(target) = signature.first_mut().filter(|p| crate::call::is_body(&p.ty)) else {
            let message = "`write` begins with what it writes: the first operand as `&Body`";
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
        let message =
            format!("`{name}` has no operand: what makes a tensor of nothing is an `#[operator]` alone");
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
        let message = "`scratch` names the last results: those that are saved but not returned";
        return Err(Error::new(clauses.scratch[0].span(), message));
    }
    let lists = tensors.iter().any(|p| matches!(p.mode, Mode::List | Mode::Maybes));
    let together = parts.derivatives.iter().any(|(of, _)| of.is_empty());
    if together && parts.derivatives.len() > 1 {
        let message = "either one `derivative` for all operands, or a `d_…` for each";
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
            let message =
                "a fast form stands beside a form that can be differentiated again, of the same name";
            return Err(Error::new(f.sig.ident.span(), message));
        }
    }
    let always = always(&reads, together);
    // What is saved in any case need not be asked for.
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
        kept_types.push(quote!(#op::primitive::Extent));
        keeps.push(quote!(#op::primitive::Extent::of(&__groups, EDGES)));
    }
    let keep = if keeps.is_empty() { quote!(None) } else { quote!(Some(Box::new((#(#keeps,)*)) as _)) };
    let args = if keeps.is_empty() { quote!() } else { quote!(let __args = step.params::<Args>()?;) };
    let (bind_extent, find_extent) = if extent {
        (
            quote!(let __extent = Some(&__args.#extent_at);),
            quote!(|args| args.downcast_ref::<Args>().map(|args| &args.#extent_at.lengths[..])),
        )
    } else {
        (quote!(let __extent: Option<&#op::primitive::Extent> = None;), quote!(|_| None))
    };
    let visible = kept_params.iter().enumerate().filter(|(_, p)| !p.torch_name().is_empty());
    let shown_args = visible.map(|(place, p)| {
        let (said, place) = (p.torch_name(), syn::Index::from(place));
        at(&p.ty, quote!((#said, |args| args.downcast_ref::<Args>().map(|args| #op::facts::Keep::shown(&args.#place)))))
    });
    let shows = clauses.shows.iter().map(|c| fact(&this, c)).collect::<Result<Vec<_>>>()?;
    let node = clauses.node.clone().unwrap_or_else(|| node_name(&name.to_string()));
    let flops = match &parts.flops {
        None => quote!(None),
        Some(_) => quote!(Some(#name::flops)),
    };

    // The call.
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
        let message = "a `check` stands beside a `write`; a `forward` looks at its arguments itself";
        return Err(Error::new(f.sig.ident.span(), message));
    }
    let compute = if writes {
        let copy = if clauses.dense { quote!(dense_copy_of) } else { quote!(copy_of) };
        let check = check(quote!(&out));
        quote! {
            let out = #op::primitive::#copy(#first)?;
            #check
            #name::write(&out, #(#rest),*)?;
            #op::results::Forward::put(out, __made);
            Ok(())
        }
    } else {
        quote! {
            #op::results::Forward::put(#name::forward(#(#again),*)?, __made);
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
            return Err(Error::new(f.sig.ident.span(), "a rule of its own wants `tangent = fn`"));
        }
        _ => quote!(None),
    };
    let tangent = camel(if clauses.tangent == "fn" { "transposed" } else { &clauses.tangent });
    let call_of = |primitive: TokenStream, method: TokenStream| {
        quote! {
            let __again = |__xs: &[#op::Tensor]| -> #op::Result<#op::results::Tensors> {
                #rebuilt
                #name::#method(#(#again),*).map(#op::results::Outputs::list)
            };
            let __call = #op::primitive::Call {
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
            #op::results::Forward::put(#op::results::Copied::copied(#name::forward(#(#again),*)?, #first)?, __made);
            Ok(())
        };
        let bodies = quote!(<#made as #op::results::Copied>::Bodies);
        let copy_node = format!("{node}_copy");
        (
            quote! {
                /// What it would show, in memory of its own.
                #[allow(clippy::too_many_arguments)]
                pub fn copy(#(#sig_params),*) -> #op::Result<<#bodies as #op::results::Forward>::Tensors> {
                    let __groups: [#op::primitive::Group; #n] = [#(#tensor_names.into()),*];
                    let __flags = #op::primitive::flags(&__groups).unread();
                    if __flags.is_batched() {
                        return #op::batch::dense(#name::call(#(#again),*)?);
                    }
                    #call
                    let made = #op::primitive::run(&__call, &mut |_, __made| { #copied })?;
                    <#bodies as #op::results::Forward>::tensors(made)
                }
            },
            quote! {
                static COPY: #op::primitive::Primitive = #op::primitive::Primitive {
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
            /// A node of it that no call made; its edges and outputs are the caller's to say.
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
            /// The same over the first operand.
            #[allow(clippy::too_many_arguments)]
            pub fn over(#(#sig_params),*) -> #op::Result<()> {
                let __groups: [#op::primitive::Group; #n] = [#(#tensor_names.into()),*];
                let __flags = #op::primitive::flags(&__groups);
                #call
                #op::primitive::over(
                    &__call,
                    &[#(#apart),*],
                    &|out| { #check Ok(()) },
                    &mut |out| #name::write(out, #(#rest),*),
                )
            }
        }
    };
    // A view of which nothing else is to be said takes no further steps.
    let one_view = crate::call::is(&made, "Layout")
        || crate::call::is(&made, "ConjNeg")
        || matches!(made, Type::Tuple(_));
    let recorded = if one_view && !clauses.untied {
        quote! {
            if #op::primitive::is_only_recorded(__flags) {
                let view = || Ok(#op::results::Seen::body(#name::forward(#(#again),*)?, #first));
                return #op::primitive::view_of(&__call, #first, view);
            }
        }
    } else {
        quote!()
    };
    let quick = if one_view && !clauses.untied {
        let given = params.iter().map(|p| &p.name);
        quote! {
            if #op::primitive::is_plain_view(__flags, #first) {
                return Ok(#op::results::Seen::seen(#name::forward(#(#given),*)?, #first));
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
    let untied = clauses.untied;
    let docs: Vec<_> = item.attrs.iter().filter(|a| a.path().is_ident("doc")).cloned().collect();
    item.attrs.retain(|a| !a.path().is_ident("doc"));
    let aten = &clauses.aten;
    let (dtypes, anywhere, edges, results) = (&clauses.dtypes, clauses.anywhere, &this.edges, &this.results);
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
                aten: #aten,
                inplace: #inplace,
            };
            #inplace_static
            static PRIMITIVE: #op::primitive::Primitive = #op::primitive::Primitive {
                derivative: #op::Derivative { facts: Some(&FACTS), flops: #flops, name: #node, apply },
                dtypes: #op::primitive::DTypes::#dtypes,
                edges: EDGES,
                saves: &[#(#saves),*],
                always: #always,
                order: &[#(#order),*],
                returned: RETURNED,
                tangent: #op::primitive::Tangent::#tangent,
                views: <#made as #op::results::Forward>::VIEWS,
                untied: #untied,
                anywhere: #anywhere,
            };
            #copy_static
            impl #name {
                /// Runs it, recorded where that is due.
                #[allow(clippy::too_many_arguments)]
                pub fn call(#(#sig_params),*) -> #op::Result<<#forward_type as #op::results::Forward>::Tensors> {
                    let __groups: [#op::primitive::Group; #n] = [#(#tensor_names.into()),*];
                    let __flags = #op::primitive::flags(&__groups);
                    #quick
                    #call
                    #recorded
                    if __flags.is_batched() {
                        return #op::primitive::cold(|| {
                            if let Some(xs) = __call.with_own_samples()? {
                                return <#forward_type as #op::results::Forward>::tensors(__again(&xs)?);
                            }
                            #batch
                        });
                    }
                    let made = #op::primitive::run(&__call, &mut |__plain, __made| match __plain {
                        None => { #compute }
                        Some(__xs) => {
                            #rebuilt
                            #compute
                        }
                    })?;
                    <#forward_type as #op::results::Forward>::tensors(made)
                }
                #over
                #copy
                #draft
            }
        };
    })
}

/// The operands taken from `__xs`, one after the other.
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

/// The tangent rule of a primitive's own, as a closure over the call's arguments.
fn tangent(this: &Primitive, name: &Ident, f: &ImplItemFn) -> Result<TokenStream> {
    let op = quote!(crate::operator);
    let (mut lets, mut names) = (Vec::new(), Vec::new());
    for input in &f.sig.inputs {
        let syn::FnArg::Typed(input) = input else {
            return Err(Error::new_spanned(input, "a tangent rule has no `self`"));
        };
        let syn::Pat::Ident(p) = &*input.pat else {
            return Err(Error::new_spanned(&input.pat, "a tangent rule's parameters are plain names"));
        };
        let p = &p.ident;
        let (bare, lent) = bare(&input.ty);
        let local = format_ident!("__{}", p.unraw());
        let pick = |code: TokenStream| at(&bare, quote!(let #local: #bare = #code?;));
        match this.source(p, true)? {
            Source::Tangent(i) if this.edges[i] => {
                lets.push(pick(quote!(#op::moving::Pick::tangent(__moving, EDGES, #i))))
            }
            Source::Tangent(_) => {
                return Err(Error::new(p.span(), "this operand has no gradient, and so no tangent"));
            }
            Source::Tensor(i) => lets.push(pick(quote!(#op::moving::Pick::value(__moving, EDGES, #i)))),
            Source::Output(i) => lets.push(pick(quote!(#op::moving::Pick::output(__moving, #i)))),
            Source::Argument(i) => {
                names.push(this.arguments[i].again());
                continue;
            }
            _ => {
                return Err(Error::new(
                    p.span(),
                    "a tangent rule is given tangents, operands, results, arguments",
                ));
            }
        }
        names.push(if lent { quote!(&#local) } else { quote!(#local) });
    }
    let ident = &f.sig.ident;
    Ok(quote! {
        Some(&|__moving: &#op::moving::Moving| {
            #(#lets)*
            let mut grads: #op::Grads = #op::smallvec::smallvec![None; __moving.outputs.len()];
            #op::moving::IntoTangents::put(#name::#ident(#(#names),*), &mut grads)?;
            Ok(grads)
        })
    })
}

/// `self_sym_sizes = sizes(input)`, `approximate = "none"`, `alpha = 1`, `max = none`.
fn fact(this: &Primitive, clause: &Clause) -> Result<TokenStream> {
    let op = quote!(crate::operator::facts::Fact);
    let said = clause.word.to_string();
    let wrong = || {
        Error::new(
            clause.span(),
            "a fact is sizes(x), strides(x), numel(x), ndim(x), size(x, 0), none or a literal",
        )
    };
    let shown = match clause.expr()? {
        syn::Expr::Call(call) => {
            let (syn::Expr::Path(f), Some(syn::Expr::Path(of))) = (&*call.func, call.args.first()) else {
                return Err(wrong());
            };
            let (f, of) = (f.path.require_ident()?, of.path.require_ident()?);
            let Source::Tensor(at) = this.source(of, false)? else {
                return Err(Error::new(of.span(), format!("`{of}` is no operand")));
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

fn batch(name: &Ident, this: &Primitive, clauses: &Clauses, own: bool) -> Result<TokenStream> {
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
    let each = quote!(#op::batch::each(&__call, |xs| { let __xs = xs; __again(__xs).and_then(#op::batch::Stack::of) }));
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
            (true, false, _) => p.lend_owned(),
            (false, true, name) => p.lend(quote!(#name)),
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
        quote!(if __groups[1..].iter().flat_map(#op::primitive::Group::iter).any(#op::Tensor::is_batched) { return #each; })
    });
    let others: Vec<TokenStream> =
        others
            .map(|own| {
                if alone.is_some() {
                    quote!()
                } else {
                    quote!(let #own = #op::batch::Full::full(#own, &__b)?;)
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
        let #first = #op::batch::Full::full(#first, &__b)?;
        #(#others)*
        #op::batch::#rule(&__b, &#first, (#(#owned,)*), |#first, (#(#args,)*)| #name::call(#(#given),*))
    })
}
