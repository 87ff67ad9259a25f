//! Parameters: how the Rust type of each is passed, kept and read.

use proc_macro2::{Ident, TokenStream};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{
    Attribute, Error, FnArg, GenericArgument, Pat, PathArguments, Result, ReturnType, Signature, Token, Type,
};

/// The form in which the tensors of a parameter are passed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// `&Tensor`
    One,
    /// `Option<&Tensor>`
    Maybe,
    /// `&[Tensor]`
    List,
    /// `&[Option<Tensor>]`
    Maybes,
    /// Anything else, by value or by reference.
    Value { by_ref: bool },
}

#[derive(Clone)]
pub struct Param {
    pub name: Ident,
    pub ty: Type,
    /// The owning type from which `ty` can be borrowed.
    pub owned: TokenStream,
    pub mode: Mode,
    pub default: Option<TokenStream>,
    pub keyword: bool,
    /// An `Option` without a default.
    pub required: bool,
    /// A tensor with dimensions is not converted to a number, nor a number to a list.
    pub strict: bool,
    /// Its tensors may be on another device.
    pub elsewhere: bool,
    /// An operand without a gradient.
    pub constant: bool,
    /// An operand that may overlap the target of a write.
    pub overlaps: bool,
    /// PyTorch's name for it, if it differs.
    pub shown: Option<String>,
    /// The fields of a struct that the node shows in its place.
    pub fields: Vec<Ident>,
}

impl Param {
    pub fn is_tensor(&self) -> bool {
        !matches!(self.mode, Mode::Value { .. })
    }
    /// PyTorch's name of the saved parameter: `self` for the first operand.
    pub fn torch_name(&self) -> String {
        match (&self.shown, self.name.to_string().as_str()) {
            (Some(shown), _) => shown.clone(),
            (None, "input") => "self".into(),
            (None, name) => name.trim_start_matches("r#").into(),
        }
    }
    /// Borrows an owned value as the parameter's type.
    pub fn borrow(&self, owned: TokenStream) -> TokenStream {
        match self.mode {
            Mode::One | Mode::Value { by_ref: true } => quote!(&#owned),
            Mode::Maybe => quote!(#owned.as_ref()),
            Mode::List | Mode::Maybes => quote!(&#owned[..]),
            Mode::Value { by_ref: false } => quote!(#owned.clone()),
        }
    }
    pub fn is_ints(&self) -> bool {
        is_ints(&self.ty)
    }
    /// Borrows the owned variable of the parameter's name as the parameter's type.
    pub fn borrow_owned(&self) -> TokenStream {
        let name = &self.name;
        if let Mode::Value { by_ref: true } = self.mode { quote!(&#name) } else { quote!(#name) }
    }
    pub fn bare_name(&self) -> String {
        self.name.unraw().to_string()
    }
    /// The parameter as an argument of another call, without giving it away.
    pub fn again(&self) -> TokenStream {
        let name = &self.name;
        if let Mode::Value { by_ref: false } = self.mode { quote!(#name.clone()) } else { quote!(#name) }
    }
}

fn last(ty: &Type) -> Option<&syn::PathSegment> {
    if let Type::Path(path) = ty { path.path.segments.last() } else { None }
}

pub fn is(ty: &Type, name: &str) -> bool {
    last(ty).is_some_and(|s| s.ident == name)
}

/// `&[i64]`
fn is_ints(ty: &Type) -> bool {
    matches!(ty, Type::Reference(r) if matches!(&*r.elem, Type::Slice(s) if is(&s.elem, "i64")))
}

/// `&Body`
pub fn is_body(ty: &Type) -> bool {
    matches!(ty, Type::Reference(reference) if is(&reference.elem, "Body"))
}

/// The `T` of `Name<T>`.
pub fn argument<'a>(ty: &'a Type, name: &str) -> Option<&'a Type> {
    let segment = last(ty).filter(|s| s.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &segment.arguments else { return None };
    if let Some(GenericArgument::Type(ty)) = arguments.args.first() { Some(ty) } else { None }
}

fn owned_type(ty: &Type) -> (TokenStream, Mode) {
    let op = quote!(crate::operator);
    if let Some(Type::Reference(inner)) = argument(ty, "Option")
        && is(&inner.elem, "Tensor")
    {
        return (quote!(Option<#op::Tensor>), Mode::Maybe);
    }
    let Type::Reference(reference) = ty else { return (quote!(#ty), Mode::Value { by_ref: false }) };
    let elem = &*reference.elem;
    match elem {
        _ if is(elem, "Tensor") => (quote!(#op::Tensor), Mode::One),
        _ if is(elem, "str") => (quote!(String), Mode::Value { by_ref: true }),
        Type::Slice(slice) if is(&slice.elem, "Tensor") => (quote!(Vec<#op::Tensor>), Mode::List),
        Type::Slice(slice) if argument(&slice.elem, "Option").is_some_and(|t| is(t, "Tensor")) => {
            (quote!(Vec<Option<#op::Tensor>>), Mode::Maybes)
        }
        Type::Slice(slice) if is(&slice.elem, "i64") => (quote!(#op::Ints), Mode::Value { by_ref: true }),
        Type::Slice(slice) => {
            let elem = &slice.elem;
            (quote!(Vec<#elem>), Mode::Value { by_ref: true })
        }
        _ => (quote!(#elem), Mode::Value { by_ref: true }),
    }
}

/// Removes our attributes from a parameter and stores what they say.
fn read_attributes(attrs: &mut Vec<Attribute>, param: &mut Param) -> Result<()> {
    for attr in std::mem::take(attrs) {
        let path = attr.path().clone();
        if path.is_ident("default") {
            param.default = Some(attr.meta.require_list()?.tokens.clone());
        } else if path.is_ident("keyword") {
            param.keyword = true;
        } else if path.is_ident("strict") {
            param.strict = true;
        } else if path.is_ident("required") {
            param.required = true;
        } else if path.is_ident("constant") {
            param.constant = true;
        } else if path.is_ident("elsewhere") {
            param.elsewhere = true;
        } else if path.is_ident("overlaps") {
            param.overlaps = true;
        } else if path.is_ident("hidden") {
            param.shown = Some(String::new());
        } else if path.is_ident("shown") {
            param.shown = Some(attr.parse_args::<syn::LitStr>()?.value());
        } else if path.is_ident("fields") {
            let names = attr.parse_args_with(Punctuated::<Ident, Token![,]>::parse_terminated)?;
            param.fields = names.into_iter().collect();
        } else if path.is_ident("doc") || path.is_ident("allow") {
            attrs.push(attr);
        } else {
            let message = "a parameter may have the attributes #[default(…)], #[keyword], #[strict], #[required], #[elsewhere], #[constant], #[overlaps], #[hidden], #[shown(\"…\")] or #[fields(…)]";
            return Err(Error::new(path.span(), message));
        }
    }
    Ok(())
}

/// The parameters of a function; removes our attributes from them.
pub fn params(sig: &mut Signature) -> Result<Vec<Param>> {
    let mut keyword = false;
    let read_one = |arg: &mut FnArg| {
        let FnArg::Typed(arg) = arg else {
            return Err(Error::new(arg.span(), "no `self` here: operators are functions"));
        };
        let Pat::Ident(name) = &*arg.pat else {
            return Err(Error::new(arg.pat.span(), "a parameter must be a plain name"));
        };
        let (owned, mode) = owned_type(&arg.ty);
        let name = name.ident.clone();
        let ty = (*arg.ty).clone();
        // A parameter with this name is a dimension, so only a number is accepted.
        let dim = name.to_string().starts_with("dim") && is(argument(&ty, "Option").unwrap_or(&ty), "i64");
        let strict = dim || is_ints(&ty);
        let mut param = Param {
            name,
            ty,
            owned,
            mode,
            default: None,
            keyword: false,
            strict,
            required: false,
            elsewhere: false,
            constant: false,
            overlaps: false,
            shown: None,
            fields: Vec::new(),
        };
        read_attributes(&mut arg.attrs, &mut param)?;
        keyword |= param.keyword;
        param.keyword = keyword;
        Ok(param)
    };
    sig.inputs.iter_mut().map(read_one).collect()
}

/// The `T` of `-> Result<T>`.
pub fn result(sig: &Signature) -> Result<Type> {
    if let ReturnType::Type(_, ty) = &sig.output
        && let Some(inner) = argument(ty, "Result")
    {
        return Ok(inner.clone());
    }
    Err(Error::new(sig.ident.span(), format!("`{}` must return a `Result<…>`", sig.ident)))
}

pub fn doc(attrs: &[Attribute]) -> TokenStream {
    let lines = attrs.iter().filter(|a| a.path().is_ident("doc")).filter_map(|a| match &a.meta {
        syn::Meta::NameValue(pair) => Some(&pair.value),
        _ => None,
    });
    quote!(concat!(#(#lines, "\n"),*))
}

/// Leaves the first paragraph: the rest of a doc is for Python alone.
pub fn shorten(attrs: &mut Vec<Attribute>) {
    let mut over = false;
    attrs.retain(|attr| {
        let syn::Meta::NameValue(pair) = &attr.meta else { return true };
        let is_doc = pair.path.is_ident("doc");
        let text = quote!(#pair).to_string();
        over |= is_doc && text.ends_with("\"\"");
        !(over && is_doc)
    });
}

/// Code whose compile errors point at the type.
pub fn at(ty: &Type, code: TokenStream) -> TokenStream {
    quote_spanned!(ty.span() => #code)
}
