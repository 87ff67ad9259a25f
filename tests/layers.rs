//! The rooms of `src/` know one another in one direction only; this test reads the paths and says who broke in.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

#[path = "layers/circles.rs"]
mod circles;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Each room, and what it may know. `lib.rs` knows them all.
const ROOMS: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("arena", &[]),
    ("cpu", &["base"]),
    ("gpu", &["base"]),
    ("storage", &["base", "cpu", "gpu"]),
    ("tensor", &["base", "arena", "cpu", "gpu", "storage"]),
    // (What `operator` and `transforms` still know of the rooms above them is counted below.)
    ("operator", &["base", "arena", "cpu", "gpu", "storage", "tensor", "transforms", "ops"]),
    ("transforms", &["base", "arena", "cpu", "gpu", "storage", "tensor", "operator", "ops"]),
    ("ops", &["base", "arena", "cpu", "gpu", "storage", "tensor", "operator", "transforms"]),
    ("backward", &["base", "arena", "cpu", "gpu", "storage", "tensor", "operator", "transforms", "ops"]),
    (
        "python",
        &["base", "arena", "cpu", "gpu", "storage", "tensor", "operator", "transforms", "ops", "backward"],
    ),
];

/// Words that only some files may say.
const WORDS: &[(&str, &str)] = &[
    ("rayon", "src/cpu/par.rs"),
    ("target_feature", "src/cpu/simd.rs"),
    ("loom", "src/arena/"),
    ("wgpu", "src/gpu/"),
    ("pyo3", "src/python/"),
];

/// A longer file may hold two topics: worth a look, but length alone is no reason to cut.
const LONG: usize = 700;

/// What is left of the old form of rows: these numbers only fall.
const LEFT: &[(&str, usize)] = &[
    ("rows in ops!", 106),
    ("rows in compose!", 181),
    ("derivatives made by hand", 29),
    ("operators named by their names", 571),
];

/// The largest circle of files that know one another, and what it shall be at most one day: these numbers only fall.
const CIRCLES: &[(&[&str], usize, usize)] =
    &[(&["operator", "transforms"], 26, 4), (&["python"], 32, 4), (&["ops"], 22, 22)];

/// How many times the machinery names a family: none, one day.
const FAMILIES: usize = 77;

fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut folders = vec![root.join("src")];
    let mut files: Vec<PathBuf> = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    assert!(!files.is_empty(), "no sources in {}", root.display());
    let name = |file: &PathBuf| file.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
    files.iter().map(|file| (name(file), fs::read_to_string(file).unwrap())).collect()
}

/// The text without comments, whose words bind nobody, and without what stands in quotation marks.
fn code(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        code.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if code.ends_with("r#") || code.ends_with('r') && rest.starts_with('"') {
            let close = if code.ends_with('#') { "\"#" } else { "\"" };
            rest[1..].find(close).map_or(rest.len(), |end| 1 + end + close.len())
        } else if rest.starts_with('"') {
            string_end(rest)
        } else if let Some(escaped) = rest.strip_prefix("'\\") {
            escaped.find('\'').map_or(rest.len(), |end| end + 3)
        } else if rest.starts_with("'\"'") || rest.starts_with("'/'") {
            3
        } else {
            code.push_str(&rest[..1]);
            1
        };
        rest = &rest[end..];
    }
    code + rest
}

fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            _ => escaped = c == '\\' && !escaped,
        }
    }
    text.len()
}

fn word(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len())]
}

/// The names that follow a path's `::`: one, or the first of each path of a group.
fn heads(path: &str) -> Vec<&str> {
    let path = path.trim_start();
    let Some(group) = path.strip_prefix('{') else { return vec![word(path)] };
    let (mut depth, mut start, mut heads) = (0, true, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => start = true,
            c if start && !c.is_whitespace() => {
                heads.push(word(&group[at..]));
                start = false;
            }
            _ => {}
        }
    }
    heads
}

/// Everything that the code names from the crate's root, by `crate::` or by climbing there.
fn named(code: &str) -> BTreeSet<&str> {
    let mut names = BTreeSet::new();
    for (at, key) in code.match_indices("crate::") {
        names.extend(heads(&code[at + key.len()..]));
    }
    for (at, key) in code.match_indices("super::super::") {
        let climbed = code[at + key.len()..].trim_start_matches("super::");
        names.extend(heads(climbed).into_iter().filter(|head| ROOMS.iter().any(|(room, _)| room == head)));
    }
    names
}

fn room_of(file: &str) -> &str {
    word(&file["src/".len()..])
}

#[test]
fn arrows_point_down() {
    let mut complaints = Vec::new();
    for (file, text) in sources().iter().filter(|(file, _)| file != "src/lib.rs") {
        let room = room_of(file);
        let Some((_, known)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            complaints.push(format!("{file}: `{room}` is no room; add it to the table in tests/layers.rs"));
            continue;
        };
        for name in named(&code(text)) {
            if name != room && !known.contains(&name) {
                complaints
                    .push(format!("{file} names `crate::{name}`, but `{room}` may know only {known:?}"));
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn some_words_stay_in_their_files() {
    let mut complaints = Vec::new();
    for (file, text) in sources() {
        let code = code(&text);
        for (word, place) in WORDS {
            let said = code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|said| said == *word);
            if said && !file.starts_with(place) {
                complaints.push(format!("{file} says `{word}`, which belongs into {place}"));
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn long_files_are_named() {
    for (file, text) in sources() {
        let lines = text.lines().count();
        if lines > LONG {
            eprintln!("warning: {file} has {lines} lines; does it hold one topic?");
        }
    }
}

/// What follows the opening of a macro's call up to its end.
fn calls<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let opening = format!("{name}! {{");
    let inside = |(at, _): (usize, &str)| {
        let rest = &text[at + opening.len()..];
        let mut depth = 1;
        let end = rest.find(|c: char| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            depth == 0
        });
        &rest[..end.unwrap_or(rest.len())]
    };
    text.match_indices(&opening).map(inside).collect()
}

/// How often the outermost level of a macro's call says `fn`.
fn rows_in(call: &str) -> usize {
    let (mut depth, mut count) = (0, 0);
    for (at, c) in call.char_indices() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        count += usize::from(depth == 0 && call[at..].starts_with("fn "));
    }
    count
}

/// The names of operators, new and old, by file.
fn operators(sources: &[(String, String)]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (file, text) in sources.iter().filter(|(file, _)| file.starts_with("src/ops/")) {
        for line in text.lines().map(str::trim) {
            let name =
                line.strip_prefix("pub fn ").or_else(|| line.split_once("] fn ").map(|(_, rest)| rest));
            let name = name.or_else(|| line.strip_prefix("fn ")).map(word).filter(|name| name.len() > 2);
            found.extend(name.map(|name| (name.trim_end_matches('_').to_owned(), file.clone())));
        }
        for (at, key) in text.match_indices("#[operator(") {
            let rest = &text[at + key.len()..];
            if let Some(at) = rest.find("pub fn ") {
                found.push((word(&rest[at + 7..]).to_owned(), file.clone()));
            }
        }
    }
    found
}

#[test]
#[allow(clippy::print_stderr)]
fn the_old_form_of_rows_goes() {
    let sources = sources();
    let (mut ops, mut compose, mut derivatives, mut literals) = (0, 0, 0, 0);
    let known = operators(&sources);
    let own: BTreeSet<(&str, &str)> =
        known.iter().map(|(name, file)| (name.as_str(), file.as_str())).collect();
    let names: BTreeSet<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    for (file, text) in
        sources.iter().filter(|(file, _)| !file.starts_with("src/cpu/") && !file.starts_with("src/gpu/"))
    {
        let code = code(text);
        let machinery = file.starts_with("src/tensor/")
            || file.starts_with("src/operator/")
            || file.starts_with("src/transforms/");
        if !machinery {
            ops += calls(&code, "ops").iter().map(|call| rows_in(call)).sum::<usize>();
            compose += calls(&code, "compose").iter().map(|call| rows_in(call)).sum::<usize>();
            derivatives +=
                code.matches("Derivative {").count() - code.matches("-> &'static Derivative {").count();
        }
        let plain: String =
            text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        literals += plain
            .split('"')
            .skip(1)
            .step_by(2)
            .filter(|said| names.contains(said) && !own.contains(&(*said, file.as_str())))
            .count();
    }
    let found = [ops, compose, derivatives, literals];
    for ((what, most), found) in LEFT.iter().zip(found) {
        assert!(
            found <= *most,
            "{what}: {found}, and there were {most}: new operators are written in the new form"
        );
        if found < *most {
            eprintln!("{what}: {found} are left, and LEFT says {most}: lower it");
        }
    }
}

#[test]
fn circles_shrink() {
    let modules = circles::Modules::read(&sources());
    for (rooms, most, goal) in CIRCLES {
        let circle = modules.largest_circle(rooms);
        let found = circle.len();
        assert!(
            found <= *most,
            "{found} files of {rooms:?} know one another, and there were {most}: {circle:?}"
        );
        if found < *most && most > goal {
            eprintln!("{found} files of {rooms:?} know one another, and CIRCLES says {most}: lower it");
        }
    }
    let found = modules.arrows(&["operator", "transforms"], "ops");
    assert!(found <= FAMILIES, "the machinery names families {found} times, and there were {FAMILIES}");
    if found < FAMILIES {
        eprintln!("the machinery names families {found} times, and FAMILIES says {FAMILIES}: lower it");
    }
}

#[test]
fn the_reader_reads() {
    let text = r#"
        //! Mentions [`crate::python`] and "rayon".
        use crate::{base::{DType, Dims}, cpu, self};
        let s = "crate::ops // no comment"; let c = '"'; let l: &'static str = "\" crate::gpu";
        use super::super::storage::Bytes; use super::super::Id;
        $crate::tensor::make!();
    "#;
    let names: Vec<_> = named(&code(text)).into_iter().map(str::to_owned).collect();
    assert_eq!(names, ["base", "cpu", "self", "storage", "tensor"]);
}
