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
    ("capture", &["base", "arena", "cpu", "gpu", "storage", "tensor"]),
    ("operator", &["base", "arena", "cpu", "gpu", "storage", "tensor", "capture"]),
    ("ops", &["base", "arena", "cpu", "gpu", "storage", "tensor", "capture", "operator"]),
    ("backward", &["base", "arena", "cpu", "gpu", "storage", "tensor", "operator"]),
    ("api", &["base", "storage", "tensor", "operator", "ops", "backward"]),
    (
        "python",
        &["base", "arena", "cpu", "gpu", "storage", "tensor", "capture", "operator", "ops", "backward"],
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

/// What is known of an operator stands in its row: these numbers only fall. (Derivatives are counted outside of the machinery;
/// forward mode has one of its own.)
const LEFT: &[(&str, usize)] = &[("derivatives made by hand", 0), ("operators named by their names", 0)];

/// Operators' names that mean something else where they stand: how losses and scatters reduce, what `gelu` approximates, how
/// divisions round and quantiles interpolate, rules of tangents, names of arguments, the words of small languages and of messages.
const OTHERWISE: &[(&str, &[&str])] = &[
    ("src/ops/nn/", &["mean", "sum"]),
    ("src/ops/nn/mod.rs", &["tanh"]),
    ("src/api/methods.rs", &["mean"]),
    ("src/ops/nn/unfold.rs", &["pad"]),
    ("src/ops/indexing/scatter_reduce.rs", &["sum", "prod", "mean", "amax", "amin"]),
    ("src/ops/indexing/index_reduce.rs", &["prod", "mean", "amax", "amin"]),
    ("src/ops/indexing/scatter.rs", &["add"]),
    ("src/ops/reduction/quantile.rs", &["linear"]),
    ("src/operator/tangent/mod.rs", &["linear"]),
    ("src/ops/elementwise/", &["floor", "trunc"]),
    ("src/operator/row/names.rs", &["min", "max"]),
    ("src/operator/pointwise/dtype_checks.rs", &["min", "max"]),
    ("src/operator/row/mod.rs", &["complex"]),
    ("src/base/scalar.rs", &["complex"]),
    ("src/python/distributed/pmi.rs", &["put"]),
    ("src/python/call/docs.rs", &["norm"]),
    ("src/python/tensor/properties.rs", &["view"]),
    ("src/tensor/view.rs", &["view"]),
    ("src/tensor/graph/describe.rs", &["where"]),
];

/// Clauses of a row that say a name: what PyTorch's refusals call its operator, ATen its kernel; whose refusal is its own; how tests
/// draw arguments.
const NAMING: &[&str] = &["called = ", "aten = ", "no_complex = Of(", "sample = "];

/// The largest circle of files that know one another, and what it shall be at most one day: these numbers only fall.
const CIRCLES: &[(&[&str], usize, usize)] = &[
    (&["operator"], 19, 6),
    (&["python"], 3, 4),
    (&["ops"], 14, 22),
    (&["tensor"], 4, 4),
    (&["backward"], 2, 4),
    (&["api"], 1, 4),
    (&["gpu"], 4, 4),
    (&["cpu"], 4, 4),
    (&["storage"], 3, 4),
    (&["arena"], 3, 4),
    (&["base"], 1, 4),
];

/// The largest circle of folders of a room; elsewhere a folder that knows another is not known by it. A call asks
/// `vmap` and forward mode for their rules, and the rules call operators.
const FOLDERS: &[(&str, usize)] = &[("operator", 8)];

/// Globals that are set once while the program runs. One of functions would let a room call what stands above it, unseen by the
/// other tests: only the host language sets such: `LOOK`, `TELL` and `HOST`. `PLANS` are those of a library, which calls no room.
const ONCE: &[(&str, &str)] = &[
    ("src/base/profile.rs", "FIRST"),
    ("src/base/signals.rs", "LOOK"),
    ("src/base/warning.rs", "TELL"),
    ("src/cpu/fft.rs", "PLANS"),
    ("src/gpu/device/mod.rs", "GPU"),
    ("src/gpu/shader/prelude.rs", "ITEMS"),
    ("src/operator/row/generator.rs", "GLOBAL"),
    ("src/operator/row/registry.rs", "ROWS"),
    ("src/tensor/graph/anomaly.rs", "HOST"),
];

/// Functions that rooms below the operators are handed in as data: a node's derivative and what is known of it, how a view is made
/// again, how sparse gradients add up, how a level of forward mode takes gradients, and what the host language does.
const HANDED_IN: &[(&str, &[&str])] = &[
    ("src/tensor/node.rs", &["apply"]),
    ("src/tensor/graph/facts.rs", &["ShowKept", "DerivativeFlops", "lengths"]),
    ("src/tensor/mod.rs", &["history", "values", "to_dense", "join"]),
    ("src/tensor/levels/tangents.rs", &["Reverse"]),
    ("src/tensor/graph/anomaly.rs", &["line", "here", "tell", "note"]),
    ("src/base/signals.rs", &["Look"]),
    ("src/base/warning.rs", &["Tell"]),
];

/// Operators of every kind, of which only the file of their row, and their kernels, may say more than a call.
const IN_ONE_FILE: &[&str] = &[
    "exp",
    "softmax",
    "cumprod",
    "std",
    "cat",
    "index_put",
    "matmul",
    "scatter_reduce",
    "layer_norm",
    "dropout",
    "cumsum",
    "sigmoid",
    "index_select",
    "topk",
    "var_mean",
    "logsumexp",
    "nll_loss",
    "kthvalue",
    "searchsorted",
    "diag_embed",
    "masked_select",
];

fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
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
    let name = |file: &PathBuf| file.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
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

/// The name at the beginning of a pointwise row, after its clauses.
fn pointwise_name(line: &str) -> Option<&str> {
    let row = line.strip_prefix("    ").filter(|line| !line.starts_with([' ', '/']))?;
    let row = if row.starts_with('[') { row.rsplit_once("] ")?.1 } else { row };
    let name = word(row);
    let rest = row[name.len()..].strip_prefix('(')?;
    rest.split_once(')')
        .filter(|(_, rest)| rest.starts_with([':', ' ']) && rest.contains(" = "))
        .map(|_| name)
}

/// The names of operators, by file: those of functions under `#[operator]` and the like, and of rows of `pointwise!`.
fn operators(sources: &[(String, String)]) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    for (file, text) in sources.iter().filter(|(file, _)| file.starts_with("src/ops/")) {
        let mut add = |name: &str| found.insert((name.trim_end_matches('_').to_owned(), file.clone()));
        for (at, _) in text
            .match_indices("#[operator")
            .chain(text.match_indices("#[overload"))
            .chain(text.match_indices("#[inplace"))
        {
            let Some((clauses, rest)) = text[at..].split_once("pub fn ") else { continue };
            if !word(rest).is_empty() {
                add(word(rest));
            }
            if let Some((_, name)) = clauses.split_once(" name = \"") {
                add(word(name));
            }
        }
        for part in text.split("\npointwise! {\n").skip(1) {
            let rows = part.split("\n}\n").next().unwrap_or(part);
            rows.lines().filter_map(pointwise_name).for_each(|name| {
                add(name);
            });
        }
    }
    found
}

#[test]
#[allow(clippy::print_stderr)]
fn operators_are_known_in_their_rows() {
    let sources = sources();
    let known = operators(&sources);
    let names: BTreeSet<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.len() > 400 && names.contains("exp") && names.contains("softmax"), "{} names", names.len());
    let (mut derivatives, mut literals) = (0, Vec::new());
    for (file, text) in
        sources.iter().filter(|(file, _)| !file.starts_with("src/cpu/") && !file.starts_with("src/gpu/"))
    {
        if !["src/tensor/", "src/operator/"].iter().any(|room| file.starts_with(room)) {
            let code = code(text);
            derivatives +=
                code.matches("Derivative {").count() - code.matches("-> &'static Derivative {").count();
        }
        let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
        let plain: String =
            text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
        let otherwise = |said: &str| {
            OTHERWISE.iter().any(|(place, words)| file.starts_with(place) && words.contains(&said))
        };
        let pieces: Vec<&str> = plain.split('"').collect();
        for (before, said) in pieces.iter().zip(&pieces[1..]).step_by(2) {
            if NAMING.iter().any(|clause| before.ends_with(clause)) {
                continue;
            }
            // In-place forms, and ATen's names of signatures.
            let said =
                said.strip_prefix("aten::").map_or(*said, |name| name.split('.').next().unwrap_or(name));
            let said = said.trim_end_matches('_');
            if names.contains(said) && !known.contains(&(said.to_owned(), file.clone())) && !otherwise(said) {
                literals.push(format!("{file}: {said}"));
            }
        }
    }
    for ((what, most), found) in LEFT.iter().zip([derivatives, literals.len()]) {
        assert!(
            found <= *most,
            "{what}: {found}, and there were {most}: what is known of an operator stands in its row\n{}",
            literals.join("\n")
        );
        if found < *most {
            eprintln!("{what}: {found} are left, and LEFT says {most}: lower it");
        }
    }
}

/// Whether code says of an operator more than that it is called: it takes the row, has an entry for it in a table, or says its name.
fn tells_of(name: &str, code: &str, text: &str) -> bool {
    let constant = name.to_uppercase();
    let row = format!("{name}::ROW");
    let entry = format!("    {name}(");
    let words = |said: &str| code.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == said);
    code.contains(&format!("::{row}"))
        || code.contains(&format!(" {row}"))
        || (constant.len() > 3 && words(&constant))
        || code
            .lines()
            .any(|line| line.starts_with(&entry) && (line.contains(") = ") || line.ends_with(");")))
        || text.contains(&format!("\"{name}\""))
}

#[test]
fn an_operator_is_told_of_in_one_file() {
    let sources = sources();
    let known = operators(&sources);
    let mut complaints = Vec::new();
    for name in IN_ONE_FILE {
        assert!(known.iter().any(|(own, _)| own == name), "{name} is no operator");
        for (file, text) in &sources {
            let kernel = ["src/cpu/", "src/gpu/", "src/base/"].iter().any(|room| file.starts_with(room));
            let own = known.contains(&((*name).to_owned(), file.clone()));
            let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or(text);
            if !kernel && !own && tells_of(name, &code(text), text) {
                complaints.push(format!("{file} tells of {name}"));
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn no_global_hides_a_callback() {
    let mut complaints = Vec::new();
    for (file, text) in sources().iter().filter(|(file, _)| !file.starts_with("src/python/")) {
        for line in code(text).lines().filter(|line| line.contains("static ")) {
            let Some((name, kind)) = line.rsplit_once("static ").and_then(|(_, rest)| rest.split_once(':'))
            else {
                continue;
            };
            let once = kind.contains("OnceLock<") || kind.contains("LazyLock<");
            let calls = kind.contains(" fn(") || kind.contains("<fn(") || kind.contains("dyn ");
            let global = name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
            if global && (once || calls) && !ONCE.contains(&(file.as_str(), name.trim())) {
                complaints.push(format!("{file} has the global {}", name.trim()));
            }
        }
    }
    assert!(complaints.is_empty(), "hand it over with what it belongs to\n{}", complaints.join("\n"));
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
    // Families may name one another, in derivatives.
    for (room, _) in ROOMS.iter().filter(|(room, _)| *room != "ops") {
        let most = FOLDERS.iter().find(|(name, _)| name == room).map_or(0, |(_, most)| *most);
        let circle = modules.folders_circle(room);
        assert!(circle.len() <= most, "folders of {room} know one another: {circle:?}");
    }
    let found = modules.arrows(&["tensor", "operator", "backward"], "ops");
    assert!(found == 0, "the machinery knows no operator, and names families {found} times");
}

#[test]
fn few_functions_are_handed_down() {
    let mut complaints = Vec::new();
    for (file, text) in sources() {
        if !["base", "arena", "storage", "tensor"].contains(&room_of(&file)) || file.ends_with("tests.rs") {
            continue;
        }
        let known = HANDED_IN.iter().find(|(own, _)| *own == file).map_or(&[][..], |(_, names)| names);
        for line in code(&text).lines() {
            let Some((before, _)) = line.split_once(": fn(").or_else(|| line.split_once(" = fn(")) else {
                continue;
            };
            let name = before.rsplit(' ').next().unwrap_or_default();
            if !known.contains(&name) {
                complaints.push(format!("{file} keeps the function {name}"));
            }
        }
    }
    assert!(complaints.is_empty(), "what stands above is called from below:\n{}", complaints.join("\n"));
}

#[test]
fn a_name_that_ends_in_an_underscore_writes_in_place() {
    let mut complaints = Vec::new();
    for (file, text) in sources() {
        if !["operator", "ops"].contains(&room_of(&file)) {
            continue;
        }
        for (at, _) in text.match_indices("_(").filter(|(at, _)| text[..*at].contains("fn ")) {
            let (before, name) = text[..at].rsplit_once("fn ").unwrap();
            if name.is_empty() || word(name) != name {
                continue;
            }
            let attributes = before.rsplit_once("\n\n").map_or(before, |(_, own)| own);
            let inplace = attributes.contains("#[inplace") || attributes.contains("_.");
            if !inplace && name != "embedding_renorm" {
                complaints.push(format!("{file}: {name}_"));
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// PyO3's own `pyfunction` and `pymethods` panic where Python has no memory left; ours have a guard.
#[test]
fn entries_have_a_guard() {
    for (file, text) in sources() {
        let text = code(&text);
        for entry in ["pyfunction", "pymethods"] {
            let used = text.contains(&format!("#[{entry}]")) || text.contains(&format!("#[{entry}("));
            let imported =
                text.lines().any(|line| line.starts_with("use gradiron_macros::") && line.contains(entry));
            assert!(
                imported || !used,
                "{file} has entries by PyO3's {entry}: import gradiron_macros::{entry}"
            );
        }
    }
}

#[test]
fn writes_follow_one_protocol() {
    const PROTOCOL: &str = "src/operator/inplace/write.rs";
    for (file, text) in sources() {
        let counts = code(&text).contains(".bump()");
        assert!(!counts || file == PROTOCOL, "{file} counts a write by itself: {PROTOCOL} does so");
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

/// Numbers of lines of `src/cpu` in a hundred that may stand inside macros, and in one macro.
const MACRO_SHARE: usize = 5;
const LONGEST_MACRO: usize = 60;

/// The traits of `src/cpu` that number types implement, and what each is for: this list only shrinks. A kernel for f32 and f64 is
/// generic over `Float`.
const NUMBER_TRAITS: &[(&str, &str)] = &[
    ("src/cpu/cast/convert.rs", "Castable"),
    ("src/cpu/element.rs", "Element"),
    ("src/cpu/fft.rs", "Planned"),
    ("src/cpu/float.rs", "Float"),
    ("src/cpu/linalg/number.rs", "Number"),
    ("src/cpu/linalg/number.rs", "Double"),
    ("src/cpu/linalg/number.rs", "Stored"),
    ("src/cpu/math/fast_ranges.rs", "Ranges"),
    ("src/cpu/pool.rs", "Pooled"),
    ("src/cpu/reduce/loops.rs", "ReduceInput"),
    ("src/cpu/reduce/steps.rs", "Wide"),
    ("src/cpu/scan.rs", "Running"),
    ("src/cpu/search.rs", "Sought"),
];

/// Traits of `src/cpu` that no number type implements.
const OTHER_TRAITS: &[&str] = &["Argument", "Elements", "Formula", "Op"];

#[test]
fn kernels_are_generic_functions() {
    let (mut complaints, mut all, mut inside) = (Vec::new(), 0, 0);
    for (file, text) in sources().iter().filter(|(file, _)| file.starts_with("src/cpu/")) {
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            all += 1;
            let start = line.trim_start();
            if let Some(name) = start.strip_prefix("macro_rules! ") {
                let end = format!("{}}}", &line[..line.len() - start.len()]);
                let count = lines.by_ref().take_while(|line| *line != end).count();
                (all, inside) = (all + count + 1, inside + count);
                if count > LONGEST_MACRO {
                    complaints.push(format!("{file}: {count} lines in the macro {}", word(name)));
                }
            }
            if let Some((before, name)) = start.split_once("trait ")
                && (before.is_empty() || before.starts_with("pub"))
                && !OTHER_TRAITS.contains(&word(name))
                && !NUMBER_TRAITS.contains(&(file.as_str(), word(name)))
            {
                complaints.push(format!("{file}: is the trait {} not Float?", word(name)));
            }
        }
    }
    assert!(complaints.is_empty(), "a kernel is a generic function\n{}", complaints.join("\n"));
    assert!(inside * 100 < all * MACRO_SHARE, "{inside} of {all} lines of src/cpu are inside macros");
}
