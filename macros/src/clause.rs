//! The clauses in an attribute's parentheses: `word`, `word(…)`, `word = …`, separated by commas.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Result, Token};

pub struct Clause {
    pub word: Ident,
    /// The word after a dot: `dim` of `max.dim`.
    pub field: Option<Ident>,
    /// The tokens in parentheses.
    pub list: Option<TokenStream>,
    /// The tokens after `=`.
    pub value: Option<TokenStream>,
}

impl Parse for Clause {
    fn parse(input: ParseStream) -> Result<Clause> {
        let word = input.call(<Ident as syn::ext::IdentExt>::parse_any)?;
        let mut clause = Clause { word, field: None, list: None, value: None };
        if input.parse::<Option<Token![.]>>()?.is_some() {
            clause.field = Some(input.call(<Ident as syn::ext::IdentExt>::parse_any)?);
        }
        if input.peek(syn::token::Paren) {
            let inner;
            syn::parenthesized!(inner in input);
            clause.list = Some(inner.parse()?);
        } else if input.parse::<Option<Token![=]>>()?.is_some() {
            let mut value = TokenStream::new();
            while !input.is_empty() && !input.peek(Token![,]) {
                value.extend([input.parse::<TokenTree>()?]);
            }
            clause.value = Some(value);
        }
        Ok(clause)
    }
}

pub fn parse(tokens: TokenStream) -> Result<Vec<Clause>> {
    Ok(Punctuated::<Clause, Token![,]>::parse_terminated.parse2(tokens)?.into_iter().collect())
}

impl Clause {
    pub fn span(&self) -> Span {
        self.word.span()
    }
    pub fn expr(&self) -> Result<Expr> {
        match &self.value {
            Some(value) => syn::parse2(value.clone()),
            None => Err(Error::new(self.span(), format!("`{}` needs a value: `{0} = …`", self.word))),
        }
    }
    /// The string after `=`.
    pub fn text(&self) -> Result<String> {
        match self.expr()? {
            Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Ok(text.value()),
            _ => Err(Error::new(self.span(), format!("`{}` needs a string: `{0} = \"…\"`", self.word))),
        }
    }
    pub fn idents(&self) -> Result<Vec<Ident>> {
        let list = self.list.clone().unwrap_or_default();
        let ident = <Ident as syn::ext::IdentExt>::parse_any;
        let parser = |input: ParseStream| Punctuated::<Ident, Token![,]>::parse_terminated_with(input, ident);
        Ok(parser.parse2(list)?.into_iter().collect())
    }
    /// The clauses in parentheses.
    pub fn inner(&self) -> Result<Vec<Clause>> {
        parse(self.list.clone().unwrap_or_default())
    }
    /// The single clause after `=`: `along(dim)` of `batch = along(dim)`.
    pub fn rule(&self) -> Result<Clause> {
        let mut rules = parse(self.value.clone().unwrap_or_default())?;
        match (rules.pop(), rules.is_empty()) {
            (Some(rule), true) => Ok(rule),
            _ => Err(Error::new(self.span(), format!("`{}` needs one rule: `{0} = rule(…)`", self.word))),
        }
    }
    /// An error at the word that lists the known ones.
    pub fn unknown(&self, known: &[&str]) -> Error {
        unknown(&self.word, "clause", known)
    }
}

pub fn unknown<S: AsRef<str>>(word: &Ident, what: &str, known: &[S]) -> Error {
    let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    Error::new(word.span(), format!("no {what} is called `{word}`; there are {}", known.join(", ")))
}

/// `devices = any`: operands may be on different devices.
pub fn anywhere(clause: &Clause) -> Result<bool> {
    let rule = clause.rule()?;
    if rule.word != "any" {
        return Err(unknown(&rule.word, "rule of `devices`", &["any"]));
    }
    Ok(true)
}
