//! Which files know which: what a file's imports and paths name, followed to where it is defined, and the circles there are.

use super::{code, word};
use std::collections::{BTreeMap, BTreeSet};

/// What a file says of others: its imports, the paths in its code, and the words there.
struct Said {
    imports: Vec<Import>,
    paths: Vec<Vec<String>>,
    words: BTreeSet<String>,
    defines: BTreeSet<String>,
}

/// One import: where from, and the name that it has here (`*` for all).
struct Import {
    path: Vec<String>,
    name: String,
}

/// Words, and the signs between them, without the module of tests.
fn tokens(code: &str) -> Vec<&str> {
    let code = code.find("#[cfg(test)]\nmod tests {").map_or(code, |at| &code[..at]);
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(c) = rest.chars().next() {
        let long = if c.is_alphanumeric() || c == '_' {
            word(rest).len()
        } else if rest.starts_with("::") {
            2
        } else {
            c.len_utf8()
        };
        tokens.push(&rest[..long]);
        rest = rest[long..].trim_start();
    }
    tokens
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The imports of one `use`, from its tokens; gives back how many those were.
fn imports(tokens: &[&str], before: &[String], found: &mut Vec<Import>) -> usize {
    let mut path = before.to_vec();
    let mut at = 0;
    let end = |path: &[String], name: &str, found: &mut Vec<Import>| {
        let path = path.iter().filter(|part| *part != "self" || path[0] == "self").cloned().collect();
        found.push(Import { path, name: name.to_owned() });
    };
    loop {
        match tokens[at] {
            "::" => at += 1,
            "*" => {
                end(&path, "*", found);
                return at + 1;
            }
            "{" => {
                at += 1;
                while tokens[at] != "}" {
                    at += imports(&tokens[at..], &path, found);
                    at += usize::from(tokens[at] == ",");
                }
                return at + 1;
            }
            "as" => {
                end(&path, tokens[at + 1], found);
                return at + 2;
            }
            token if is_word(token) => {
                path.push(token.to_owned());
                at += 1;
                if !matches!(tokens[at], "::" | "as") {
                    let named = path.iter().rev().find(|part| *part != "self").cloned().unwrap_or_default();
                    end(&path, &named, found);
                    return at;
                }
            }
            _ => return at,
        }
    }
}

fn said(text: &str) -> Said {
    let code = code(text);
    let tokens = tokens(&code);
    let (mut all, mut paths, mut words, mut defines) =
        (Vec::new(), Vec::new(), BTreeSet::new(), BTreeSet::new());
    let mut at = 0;
    while at < tokens.len() {
        let (token, next) = (tokens[at], tokens.get(at + 1).copied().unwrap_or_default());
        if token == "use" && (is_word(next) || next == "{") {
            at += 1 + imports(&tokens[at + 1..], &[], &mut all);
            continue;
        }
        let lifetime = at > 0 && tokens[at - 1] == "'";
        if !lifetime && matches!(token, "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static") {
            defines.insert(next.to_owned());
        }
        if token == "mod" {
            at += 2;
            continue;
        }
        if token == "macro_rules" {
            defines.insert(tokens[at + 2].to_owned());
        }
        if is_word(token) && next == "::" {
            let mut path = vec![token.to_owned()];
            while tokens.get(at + 1) == Some(&"::") && tokens.get(at + 2).is_some_and(|t| is_word(t)) {
                path.push(tokens[at + 2].to_owned());
                at += 2;
            }
            words.insert(path[0].clone());
            paths.push(path);
        } else if is_word(token) {
            words.insert(token.to_owned());
        }
        at += 1;
    }
    Said { imports: all, paths, words, defines }
}

/// The paths that `#[primitive]` writes into a file: those that its source begins with `#op::`.
fn expansion() -> Vec<Vec<String>> {
    let macros = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/primitive");
    let mut paths = BTreeSet::new();
    for file in std::fs::read_dir(macros).unwrap() {
        let code = code(&std::fs::read_to_string(file.unwrap().path()).unwrap());
        let tokens = tokens(&code);
        for at in 0..tokens.len() {
            if tokens[at..].starts_with(&["#", "op", "::"]) {
                let names = tokens[at + 3..].iter().step_by(2).zip(tokens[at + 4..].iter().step_by(2));
                let mut path = vec!["crate".to_owned(), "operator".to_owned()];
                for (name, next) in names.take_while(|(name, _)| is_word(name)) {
                    path.push((*name).to_owned());
                    if *next != "::" {
                        break;
                    }
                }
                paths.insert(path);
            }
        }
    }
    assert!(paths.len() > 10, "how does `#[primitive]` name what it uses?");
    paths.into_iter().collect()
}

/// All files, by the path of their module.
pub struct Modules(BTreeMap<Vec<String>, Said>);

impl Modules {
    pub fn read(sources: &[(String, String)]) -> Modules {
        let module = |file: &str| -> Vec<String> {
            let path = file.strip_prefix("src/").unwrap().strip_suffix(".rs").unwrap();
            path.strip_suffix("/mod").unwrap_or(path).split('/').map(str::to_owned).collect()
        };
        let expanded = expansion();
        let said = |text: &str| {
            let mut said = said(text);
            if text.contains("\n#[primitive") {
                said.paths.extend(expanded.iter().cloned());
            }
            said
        };
        Modules(sources.iter().map(|(file, text)| (module(file), said(text))).collect())
    }

    /// A path as the crate's root sees it; none where it leads out of the crate.
    fn absolute(&self, from: &[String], path: &[String]) -> Option<Vec<String>> {
        let mut base = from.to_vec();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => (base, rest) = (Vec::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|part| part == "super") {
                    base.pop();
                    rest = &rest[1..];
                }
            }
            first => {
                let child = [from, &path[..1]].concat();
                if !self.0.contains_key(&child) {
                    let import = self.0[from].imports.iter().find(|import| import.name == first)?;
                    if import.path.first().is_some_and(|part| part == first) {
                        return None;
                    }
                    base = self.absolute(from, &import.path)?;
                    rest = &path[1..];
                }
            }
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    /// The module that a path of the crate names something of, past those that only hand it on; and whether it is the
    /// module itself that the path names.
    fn owner(&self, path: &[String], depth: usize) -> Option<(Vec<String>, bool)> {
        let long = (0..=path.len()).rev().find(|&n| self.0.contains_key(&path[..n]))?;
        let (module, rest) = path.split_at(long);
        let Some(name) = rest.first() else { return Some((module.to_vec(), true)) };
        let own = &self.0[module];
        if depth > 8 || own.defines.contains(name) {
            return Some((module.to_vec(), false));
        }
        for import in own.imports.iter().filter(|import| import.name == *name) {
            if let Some(base) = self.absolute(module, &import.path) {
                return self.owner(&[&base[..], &rest[1..]].concat(), depth + 1);
            }
        }
        for import in own.imports.iter().filter(|import| import.name == "*") {
            if let Some(base) = self.absolute(module, &import.path)
                && self.names(&base, 0).contains(name)
            {
                return self.owner(&[&base[..], rest].concat(), depth + 1);
            }
        }
        Some((module.to_vec(), false))
    }

    /// What a module defines and hands on.
    fn names(&self, module: &[String], depth: usize) -> BTreeSet<String> {
        let Some(own) = self.0.get(module).filter(|_| depth < 4) else { return BTreeSet::new() };
        let mut names = own.defines.clone();
        for import in &own.imports {
            if import.name != "*" {
                names.insert(import.name.clone());
            } else if let Some(base) = self.absolute(module, &import.path) {
                names.extend(self.names(&base, depth + 1));
            }
        }
        names
    }

    /// The modules of which a module's code names something.
    fn known_to(&self, module: &[String]) -> BTreeSet<Vec<String>> {
        let own = &self.0[module];
        let mut known = BTreeSet::new();
        let mut add = |path: &[String], whole: bool| {
            if let Some((owner, is_module)) = self.owner(path, 0)
                && (whole || !is_module)
                && owner != module
            {
                known.insert(owner);
            }
        };
        for import in &own.imports {
            let Some(path) = self.absolute(module, &import.path) else { continue };
            if import.name == "*" {
                for name in self.names(&path, 0).intersection(&own.words) {
                    add(&[&path[..], std::slice::from_ref(name)].concat(), false);
                }
            } else if import.name == "_" || own.words.contains(&import.name) {
                add(&path, false);
            }
        }
        for path in &own.paths {
            if let Some(path) = self.absolute(module, path) {
                add(&path, false);
            }
        }
        known
    }

    /// Who knows whom, all below `rooms`, after each was given a name; those without one are left out.
    fn graph(
        &self,
        rooms: &[&str],
        name: impl Fn(&[String]) -> Option<String>,
    ) -> BTreeMap<String, BTreeSet<String>> {
        let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let inside = |module: &&Vec<String>| rooms.contains(&module.first().map_or("", String::as_str));
        for module in self.0.keys().filter(inside) {
            let Some(from) = name(module) else { continue };
            let known = self.known_to(module);
            let known = known.iter().filter(inside).filter_map(|known| name(known));
            let named: Vec<String> = known.filter(|to| *to != from).collect();
            graph.entry(from).or_default().extend(named);
        }
        graph
    }

    /// The largest set of modules, all below `rooms`, of which each leads to each.
    pub fn largest_circle(&self, rooms: &[&str]) -> Vec<String> {
        largest(&self.graph(rooms, |module| Some(module.join("::"))))
    }

    /// The largest set of folders of a room of which each leads to each; what lies beside the folders does not count.
    pub fn folders_circle(&self, room: &str) -> Vec<String> {
        let is_folder =
            |path: &[String]| self.0.keys().any(|module| module.len() > 2 && module.starts_with(path));
        largest(&self.graph(&[room], |module| {
            (module.len() > 1 && is_folder(&module[..2])).then(|| module[..2].join("::"))
        }))
    }

    /// How many times a module of `below` knows one of `above`.
    pub fn arrows(&self, below: &[&str], above: &str) -> usize {
        let from = self.0.keys().filter(|module| below.contains(&module[0].as_str()));
        from.map(|module| self.known_to(module).iter().filter(|known| known[0] == above).count()).sum()
    }
}

/// The largest set of nodes of which each leads to each.
fn largest(graph: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let reached = |start: &String| {
        let (mut seen, mut todo) = (BTreeSet::new(), vec![start]);
        while let Some(at) = todo.pop() {
            for next in graph.get(at).into_iter().flatten() {
                if seen.insert(next) {
                    todo.push(next);
                }
            }
        }
        seen
    };
    let reach: BTreeMap<&String, BTreeSet<&String>> =
        graph.keys().map(|node| (node, reached(node))).collect();
    let circle = |a: &String| -> Vec<String> {
        graph.keys().filter(|b| reach[a].contains(b) && reach[*b].contains(a)).cloned().collect()
    };
    graph.keys().map(circle).max_by_key(Vec::len).unwrap_or_default()
}
