//! The scalar functions of expressions in WGSL, since drivers are imprecise about the built-in ones. A
//! kernel includes the functions that it uses, and those that these use.

use crate::gpu::shader::stored::Value;
use std::collections::HashMap;
use std::sync::OnceLock;

const COMMON: &str = include_str!("wgsl/common.wgsl");
const STORED: &str = include_str!("wgsl/stored.wgsl");
const RANDOM: &str = include_str!("wgsl/random.wgsl");
const DRAWS: &str = include_str!("wgsl/draws.wgsl");
const F32: &[&str] = &[
    include_str!("wgsl/f32.wgsl"),
    include_str!("wgsl/f32_trig.wgsl"),
    include_str!("wgsl/f32_special.wgsl"),
    DRAWS,
];
const F64: &[&str] = &[
    include_str!("wgsl/f64.wgsl"),
    include_str!("wgsl/f64_exp.wgsl"),
    include_str!("wgsl/f64_trig.wgsl"),
    include_str!("wgsl/f64_special.wgsl"),
    DRAWS,
];
const INT: &[&str] = &[include_str!("wgsl/int.wgsl")];

/// Built-in functions that are exact on every driver, and so can be used directly.
const BUILT_IN_FLOAT: &[&str] = &["abs", "floor", "ceil", "trunc", "sqrt", "select", "round"];
const BUILT_IN_INT: &[&str] = &["select"];

type WgslItems = HashMap<&'static str, &'static str>;

/// Returns the functions over `T = language`, by name.
fn items(language: Value) -> &'static WgslItems {
    static ITEMS: [OnceLock<WgslItems>; 3] = [const { OnceLock::new() }; 3];
    let (slot, own) = match language {
        Value::F32 => (0, F32),
        Value::F64 => (1, F64),
        _ => (2, INT),
    };
    ITEMS[slot].get_or_init(|| {
        let mut items = WgslItems::new();
        [COMMON, STORED, RANDOM].iter().chain(own).for_each(|text| split(text, &mut items));
        items
    })
}

/// Splits a file into its functions and constants: each begins at the left margin and ends before the next.
fn split(text: &'static str, items: &mut WgslItems) {
    let starts: Vec<usize> = text
        .match_indices('\n')
        .map(|(i, _)| i + 1)
        .chain([0])
        .filter(|&i| text[i..].starts_with("fn ") || text[i..].starts_with("const "))
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    for (k, &start) in starts.iter().enumerate() {
        let end = starts.get(k + 1).copied().unwrap_or(text.len());
        let item = &text[start..end];
        if let Some(name) = identifiers(item).nth(1) {
            items.insert(name, item);
        }
    }
}

/// Returns the words of a text that could be names.
fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .map(|line| line.split("//").next().unwrap_or(line))
        .flat_map(|line| line.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')))
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()))
}

/// Returns `alias T`, and every function that `text` uses, directly or indirectly.
pub(in crate::gpu) fn gather(language: Value, text: &str) -> String {
    let items = items(language);
    let bits = if matches!(language, Value::I64 | Value::F64) { 64 } else { 32 };
    let mut out = format!("alias T = {};\nconst BITS = {bits};\n", language.name());
    let mut taken: Vec<&str> = Vec::new();
    let mut queue: Vec<&str> = identifiers(text).collect();
    while let Some(word) = queue.pop() {
        if let Some((&name, &item)) = items.get_key_value(word)
            && !taken.contains(&name)
        {
            taken.push(name);
            out += item;
            queue.extend(identifiers(item));
        }
    }
    out
}

/// Returns true if every function that the expression calls exists over `language`.
pub(in crate::gpu) fn knows(language: Value, expression: &str) -> bool {
    let built_in = if matches!(language, Value::F32 | Value::F64) { BUILT_IN_FLOAT } else { BUILT_IN_INT };
    let items = items(language);
    calls(expression).all(|name| items.contains_key(name) || built_in.contains(&name) || name == "T")
}

/// Returns the expression in the form for a kernel over `language`.
pub(in crate::gpu) fn expression(language: Value, expression: &str, inputs: &[&str]) -> String {
    let renamed = rename(expression, inputs);
    match language {
        Value::F64 => widened(&renamed),
        Value::F32 => with_quotients(&renamed),
        _ => renamed,
    }
}

/// Replaces divisions by calls of `quotient`, which is exact where a driver's division is not.
fn with_quotients(expression: &str) -> String {
    if !expression.contains('/') {
        return expression.to_owned();
    }
    let mut rest = expression;
    let mut out = String::with_capacity(2 * expression.len());
    while !rest.is_empty() {
        out += &terms(&mut rest);
        // An unmatched bracket stays as it is, and wgpu reports it.
        let end = rest.chars().next().map_or(0, char::len_utf8);
        out += &rest[..end];
        rest = &rest[end..];
    }
    out
}

/// Rewrites terms and the operators between them, up to a closing bracket.
fn terms(rest: &mut &str) -> String {
    let mut out = String::new();
    loop {
        out += &term(rest);
        let end = rest.find(|c: char| !"+-<>=!&|^~%,; \n".contains(c)).unwrap_or(rest.len());
        if end == 0 {
            return out;
        }
        out += &rest[..end];
        *rest = &rest[end..];
    }
}

/// Rewrites factors with `*` and `/` between them.
fn term(rest: &mut &str) -> String {
    let mut left = factor(rest);
    loop {
        let after = rest.trim_start();
        let Some(operator) = after.chars().next().filter(|c| "*/".contains(*c)) else { return left };
        let after = after[1..].trim_start();
        let unary = after.len() - after.trim_start_matches(['-', ' ']).len();
        *rest = &after[unary..];
        let right = format!("{}{}", &after[..unary], factor(rest));
        left =
            if operator == '/' { format!("quotient({left}, {right})") } else { format!("{left} * {right}") };
    }
}

/// Rewrites a number, a name, a call or a bracketed expression, with the suffixes that follow it.
fn factor(rest: &mut &str) -> String {
    let mut out = String::new();
    loop {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_.".contains(c);
        let mut end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        // The sign of an exponent.
        let word = &rest[..end];
        if word.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            && word.ends_with('e')
            && rest[end..].starts_with(['+', '-'])
        {
            let digits = &rest[end + 1..];
            end += 1 + digits.find(|c: char| !is_word(c)).unwrap_or(digits.len());
        }
        out += &rest[..end];
        *rest = &rest[end..];
        if !rest.starts_with(['(', '[']) {
            return out;
        }
        out += &rest[..1];
        *rest = &rest[1..];
        out += &terms(rest);
        let close = usize::from(rest.starts_with([')', ']']));
        out += &rest[..close];
        *rest = &rest[close..];
    }
}

/// Marks fractions as f64: `select` between two unmarked ones would be f32.
fn widened(expression: &str) -> String {
    let mut out = String::with_capacity(expression.len() + 16);
    let mut rest = expression;
    while let Some(c) = rest.chars().next() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut end = c.len_utf8();
        let mut fraction = false;
        if c.is_ascii_digit() {
            let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
            end = digits(rest);
            if rest[end..].starts_with('.') {
                fraction = true;
                end += 1;
                end += digits(&rest[end..]);
            }
            if let Some(power) = rest[end..].strip_prefix('e') {
                fraction = true;
                end += 1 + usize::from(power.starts_with(['+', '-']));
                end += digits(&rest[end..]);
            }
        } else if is_name(c) {
            end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        }
        out += &rest[..end];
        if fraction {
            out += "lf";
        }
        rest = &rest[end..];
    }
    out
}

/// Renames the inputs, `a` to `a_`: an input's name may be reserved in WGSL or used by the prelude.
fn rename(expression: &str, inputs: &[&str]) -> String {
    let mut out = String::with_capacity(expression.len() + 8);
    let mut rest = expression;
    while !rest.is_empty() {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let end = rest.find(|c| is_name(c) != rest.starts_with(is_name)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        out += word;
        if inputs.contains(&word) && !after.trim_start().starts_with('(') {
            out.push('_');
        }
        rest = after;
    }
    out
}

/// Returns the names in front of an opening parenthesis.
fn calls(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('(').filter_map(|(at, _)| {
        let before = text[..at].trim_end();
        let start = before.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map_or(0, |i| i + 1);
        Some(&before[start..]).filter(|name| name.starts_with(|c: char| c.is_ascii_alphabetic()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_comes_along() {
        let text = gather(Value::F32, "sigmoid(x)");
        assert!(text.contains("fn sigmoid(") && text.contains("fn exp(") && !text.contains("fn lgamma("));
    }

    #[test]
    fn inputs_are_renamed() {
        assert_eq!(rename("a*exp(-std)+exp( a1 )", &["a", "std", "exp"]), "a_*exp(-std_)+exp( a1 )");
    }

    #[test]
    fn divisions_are_calls() {
        for (text, want) in [
            ("x + y", "x + y"),
            ("a / b", "quotient(a, b)"),
            ("a * b / c * d - e / f", "quotient(a * b, c) * d - quotient(e, f)"),
            ("-(x + 1.0) / exp(-x / 2.5e-3)", "-quotient((x + 1.0), exp(-quotient(x, 2.5e-3)))"),
            ("a / -b + c[i / 2]", "quotient(a, -b) + c[quotient(i, 2)]"),
            ("select(x / y, z, lt(x, y / z)) * w", "select(quotient(x, y), z, lt(x, quotient(y, z))) * w"),
            ("a / b / c", "quotient(quotient(a, b), c)"),
            ("(a / b) < c && !(d / e >= f)", "(quotient(a, b)) < c && !(quotient(d, e) >= f)"),
        ] {
            assert_eq!(with_quotients(text), want);
        }
    }

    #[test]
    fn fractions_are_widened() {
        let text = "select(0.0, 1e-7, a1 > 2) * 0.5 + .5 - exp2(x) / 3.25e+10 + 1u";
        let wide = "select(0.0lf, 1e-7lf, a1 > 2) * 0.5lf + .5 - exp2(x) / 3.25e+10lf + 1u";
        assert_eq!(widened(text), wide);
    }

    #[test]
    fn unknown_functions_are_noticed() {
        assert!(knows(Value::F32, "select(exp(x), (x + 1.0) * log1p(x), gt(x, y))"));
        assert!(knows(Value::F64, "lgamma(x)") && !knows(Value::F64, "shl(x, x)"));
        assert!(!knows(Value::I64, "exp(x)"));
    }

    #[test]
    fn every_function_is_valid() {
        for language in [Value::F32, Value::F64, Value::I32, Value::I64] {
            let names: Vec<_> = items(language).keys().copied().collect();
            let text = format!(
                "var<immediate> given: array<vec4<u32>, 8>;\n{}\n@compute @workgroup_size(1) fn main() {{}}",
                gather(language, &names.join(" "))
            );
            crate::gpu::shader::code::validate(&crate::gpu::shader::code::Shader {
                text,
                bindings: 0,
                read_only: 0,
                words: 0,
                flags: false,
            });
        }
    }
}
