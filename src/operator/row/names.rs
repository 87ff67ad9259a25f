//! Derived names: of nodes, and of their saved values.

/// Turns `log_softmax` into `LogSoftmaxBackward0`; also returns the length of the result.
pub const fn camel<const N: usize>(name: &str) -> ([u8; N], usize) {
    let mut out = [0; N];
    let (bytes, mut k, mut upper) = (name.as_bytes(), 0, true);
    let mut i = 0;
    while i < bytes.len() {
        if bytes[i] == b'_' {
            upper = true;
        } else {
            out[k] = if upper { bytes[i].to_ascii_uppercase() } else { bytes[i] };
            upper = bytes[i].is_ascii_digit();
            k += 1;
        }
        i += 1;
    }
    let tail = b"Backward0";
    let mut i = 0;
    while i < tail.len() {
        out[k] = tail[i];
        k += 1;
        i += 1;
    }
    (out, k)
}

/// PyTorch's name of a saved parameter.
pub const fn saved_name(parameter: &str) -> &str {
    const NAMES: &[(&str, &str)] =
        &[("input", "self"), ("x", "self"), ("a", "self"), ("b", "other"), ("low", "min"), ("high", "max")];
    let mut i = 0;
    while i < NAMES.len() {
        if same(NAMES[i].0, parameter) {
            return NAMES[i].1;
        }
        i += 1;
    }
    parameter
}

/// The order in which a node saves its operands and pack hooks see them: sorted by name.
pub const fn saved_order<const N: usize>(parameters: [&str; N]) -> [u8; N] {
    let mut order = [0; N];
    let mut i = 0;
    while i < N {
        let mut at = i;
        while at > 0
            && comes_before(saved_name(parameters[i]), saved_name(parameters[order[at - 1] as usize]))
        {
            order[at] = order[at - 1];
            at -= 1;
        }
        order[at] = i as u8;
        i += 1;
    }
    order
}

/// The values that a call saves whichever gradients are needed, as in PyTorch, one bit each: those that
/// several derivatives read (or all, if there is one derivative), and the outputs.
pub const fn always_saved<const N: usize>(reads: [u64; N]) -> u64 {
    let (mut once, mut again, mut i) = (0, 0, 0);
    while i < N {
        again |= once & reads[i];
        once |= reads[i];
        i += 1;
    }
    if N == 1 { once } else { again | once & OUTPUTS }
}

/// The bits of outputs; output 0 has the highest.
pub const OUTPUTS: u64 = 0xff << 56;

const fn comes_before(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() {
        if a[i] != b[i] {
            return a[i] < b[i];
        }
        i += 1;
    }
    a.len() < b.len()
}

/// String equality in constant expressions.
pub(crate) const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut i = 0;
    while i < a.len() {
        if a[i] != b[i] {
            return false;
        }
        i += 1;
    }
    true
}
