//! The clauses of `#[primitive(clauses)]`.

use crate::clause::{self, Clause, unknown};
use proc_macro2::{Ident, TokenStream};
use quote::format_ident;
use syn::Result;

pub(super) const WORDS: &[&str] = &[
    "node", "batch", "tangent", "results", "scratch", "shows", "devices", "inplace", "copy", "dense",
    "draft", "aten",
];
pub(super) const TANGENTS: &[&str] = &["linear", "multilinear", "added", "still", "fn", "transposed"];
pub(super) const BATCHES: &[&str] = &["pointwise", "along", "over", "in_front", "merged", "each", "none"];
pub(super) const FACTS: &[&str] = &["sizes", "strides", "numel", "ndim", "size"];

pub(super) struct Clauses {
    pub node: Option<String>,
    pub batch: Option<(Ident, Vec<Ident>)>,
    pub tangent: String,
    pub results: Vec<String>,
    /// Results that are saved but not returned: the last ones.
    pub scratch: Vec<Ident>,
    pub shows: Vec<Clause>,
    pub anywhere: bool,
    /// The name of the node of a view operator's in-place form.
    pub inplace: Option<String>,
    /// True if there is also a copying form.
    pub copy: bool,
    /// True if the copy on which `write` runs must be contiguous.
    pub dense: bool,
    /// True if nodes are also made without a call.
    pub draft: bool,
    /// The name of PyTorch's kernel, if it differs from the node's.
    pub aten: String,
}

pub(super) fn camel(word: &str) -> Ident {
    let mut letters = word.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    format_ident!("{}", first.into_iter().chain(letters).collect::<String>())
}

pub(super) fn read(tokens: TokenStream) -> Result<Clauses> {
    let mut all = Clauses {
        node: None,
        batch: None,
        tangent: "transposed".into(),
        results: Vec::new(),
        scratch: Vec::new(),
        shows: Vec::new(),
        anywhere: false,
        inplace: None,
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
            "inplace" => all.inplace = Some(clause.text()?),
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
