//! Recognizes expressions that wait for memory.

/// Returns true if an expression waits for memory more than it computes, because it calls no expensive function. With
/// registers wider than AVX2's, it would load a fifth slower.
pub const fn is_memory_bound(expression: &str) -> bool {
    let mut i = 0;
    while i < expression.len() {
        if expression.as_bytes()[i] == b'(' && !is_called(&["maximum", "minimum", "abs"], expression, i) {
            return false;
        }
        i += 1;
    }
    true
}

/// Returns true if one of these names ends right before `end`.
const fn is_called(names: &[&str], expression: &str, end: usize) -> bool {
    let (text, mut k) = (expression.as_bytes(), 0);
    while k < names.len() {
        let (name, mut i) = (names[k].as_bytes(), 0);
        while i < name.len() && i < end && text[end - 1 - i] == name[name.len() - 1 - i] {
            i += 1;
        }
        let whole = i == end || !(text[end - 1 - i].is_ascii_alphanumeric() || text[end - 1 - i] == b'_');
        if i == name.len() && whole {
            return true;
        }
        k += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::is_memory_bound;

    #[test]
    fn names_are_whole() {
        assert!(["a + b", "maximum(a, 0.0)", "minimum(maximum(a, b), c)"].into_iter().all(is_memory_bound));
        assert!(!["exp(a)", "fabs(a)", "a * (b + c)", "maximum(exp(a), b)"].into_iter().any(is_memory_bound));
    }
}
