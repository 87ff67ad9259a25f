//! What PyTorch calls the node of a row, and which of a call's operands have edges there.

use crate::operator::pointwise::{Class, Operand, Pointwise};
use crate::operator::row::{Forms, Param, Row};
use crate::tensor::Derivative;

/// The node of an operator that has no derivative, but is recorded.
const NOT_IMPLEMENTED: &str = "NotImplemented";

impl Pointwise {
    /// What a call's node runs, and how many of the operands have edges: conditions have none, nor have numbers at the end.
    #[inline]
    pub fn node_of(&'static self, operands: &[Operand]) -> (&'static Derivative, usize) {
        match operands.last() {
            Some(Operand::Scalar(_)) if !self.wraps => {
                let numbers = operands.iter().rev().take_while(|o| matches!(o, Operand::Scalar(_))).count();
                (&self.by_number, operands.len() - numbers)
            }
            _ if self.class == Class::Choose => (&self.derivative, 2),
            _ => (&self.derivative, operands.len()),
        }
    }

    /// The same formulas under another name, with parameters and nodes of that name.
    pub const fn renamed(
        &self,
        name: &'static str,
        params: &'static [Param],
        [node, by_number]: [&'static str; 2],
    ) -> Pointwise {
        let row = Row { name, params, forms: Forms(0), ..self.row };
        let derivative = Derivative { facts: None, name: node, ..self.derivative };
        Pointwise {
            row,
            derivative,
            by_number: Derivative { facts: None, name: by_number, ..self.by_number },
            ..*self
        }
    }

    /// Whether calls of this row are recorded.
    #[inline]
    pub fn is_recorded(&self) -> bool {
        !self.gradients.is_empty() || self.refuses()
    }

    /// Whether PyTorch records calls of this row although it has no derivative for them.
    pub fn refuses(&self) -> bool {
        self.derivative.name == NOT_IMPLEMENTED
    }
}

/// Rows whose nodes PyTorch numbers or names otherwise.
const NODE_NAMES: &[(&str, &str)] = &[
    ("add_scaled", "AddBackward0"),
    ("sub_scaled", "SubBackward0"),
    ("pow_tensor", "PowBackward1"),
    ("pow_zero", "PowBackward0"),
    ("pow_square", "PowBackward0"),
    ("pow_one", "PowBackward0"),
    ("pow_number", "PowBackward2"),
    ("rsub_by_number", "RsubBackward1"),
    ("rsub_scaled", "RsubBackward0"),
    ("rsub_scaled_by_number", "RsubBackward0"),
    ("rsub_number_scaled", "RsubBackward1"),
    ("eq", "EqBackward1"),
    ("eq_by_number", "EqBackward0"),
    ("ne", "NeBackward1"),
    ("ne_by_number", "NeBackward0"),
    ("lt", "LtBackward1"),
    ("lt_by_number", "LtBackward0"),
    ("le", "LeBackward1"),
    ("le_by_number", "LeBackward0"),
    ("gt", "GtBackward1"),
    ("gt_by_number", "GtBackward0"),
    ("ge", "GeBackward1"),
    ("ge_by_number", "GeBackward0"),
    ("remainder", "RemainderBackward1"),
    ("remainder_by_number", "RemainderBackward0"),
    ("fmod", "FmodBackward1"),
    ("fmod_by_number", "FmodBackward0"),
    ("copysign_by_number", "CopysignBackward1"),
    ("xlogy_by_number", "XlogyBackward2"),
    ("lerp", "LerpBackward1"),
    ("lerp_by_number", "LerpBackward0"),
    ("logit_free", "LogitBackward0"),
    ("logit_within", "LogitBackward0"),
    ("clamp_min_number", "ClampMinBackward0"),
    ("clamp_max_number", "ClampMaxBackward0"),
    ("clamp_low", "ClampBackward1"),
    ("clamp_high", "ClampBackward1"),
    ("choose", "WhereBackward0"),
    ("clamp_both", "ClampBackward1"),
    ("clamp_tensors", "ClampBackward0"),
    ("clamp_above", "ClampMinBackward1"),
    ("clamp_below", "ClampMaxBackward1"),
    ("clamp_from", "ClampBackward0"),
    ("clamp_upto", "ClampBackward0"),
    ("floor_quotient", "DivBackward2"),
    ("trunc_quotient", "DivBackward2"),
    ("round_places", "RoundBackward1"),
    ("replace_special", "NanToNumBackward0"),
    ("gelu_erf", "GeluBackward0"),
    ("gelu_tanh", "GeluBackward0"),
    ("floor_divide", NOT_IMPLEMENTED),
    ("heaviside", NOT_IMPLEMENTED),
    ("logsigmoid", "LogSigmoidBackward0"),
];

/// `log_softmax` becomes `LogSoftmaxBackward0`; the result's length comes along.
pub const fn camel<const N: usize>(name: &str) -> ([u8; N], usize) {
    let mut out = [0; N];
    let mut i = 0;
    while i < NODE_NAMES.len() {
        let (row, node) = NODE_NAMES[i];
        if same(row, name) {
            let bytes = node.as_bytes();
            let mut k = 0;
            while k < bytes.len() {
                out[k] = bytes[k];
                k += 1;
            }
            return (out, k);
        }
        i += 1;
    }
    if let Some(plain) = without(name, "_by_number") {
        return camel(plain);
    }
    // Another set of numbers, and the form in place, whose derivative reads the result.
    if let Some(plain) = without(name, "_scaled") {
        return camel(plain);
    }
    if let Some(plain) = without(name, "_over") {
        let (mut made, length) = camel(plain);
        made[length - 1] = b'1';
        return (made, length);
    }
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

/// A row's own name, without the end that says which variant it is.
const fn without<'a>(name: &'a str, variant: &str) -> Option<&'a str> {
    let Some(length) = name.len().checked_sub(variant.len()) else { return None };
    let (plain, end) = name.as_bytes().split_at(length);
    let mut i = 0;
    while i < end.len() {
        if end[i] != variant.as_bytes()[i] {
            return None;
        }
        i += 1;
    }
    match std::str::from_utf8(plain) {
        Ok(plain) => Some(plain),
        Err(_) => None,
    }
}

/// What PyTorch calls a row's parameter where a node saved it.
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

/// In which order a node saves its operands, and pack hooks see them: by their names.
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

/// What a call saves whichever of its gradients are wanted, as PyTorch does: what several derivatives read, or the only one,
/// and every output; a bit for each.
pub const fn always_saved<const N: usize>(reads: [u64; N]) -> u64 {
    let (mut once, mut again, mut i) = (0, 0, 0);
    while i < N {
        again |= once & reads[i];
        once |= reads[i];
        i += 1;
    }
    if N == 1 { once } else { again | once & OUTPUTS }
}

/// The bits of outputs, the first of which is the highest.
pub const OUTPUTS: u64 = 0xff << 56;

/// The bits of a pointwise formula's sources.
pub const fn source_bits(sources: &[u16]) -> u64 {
    let (mut bits, mut i) = (0, 0);
    while i < sources.len() {
        bits |= match sources[i] {
            crate::operator::pointwise::GRAD => 0,
            crate::tensor::Saved::OUTPUT => 1 << 63,
            input => 1 << input,
        };
        i += 1;
    }
    bits
}

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

/// Whether PyTorch makes a tensor of a number that this row is given.
pub const fn wraps_numbers(name: &str) -> bool {
    const ROWS: &[&str] = &["add", "sub", "mul", "div", "floor_quotient", "trunc_quotient", "choose"];
    let mut i = 0;
    while i < ROWS.len() {
        if same(ROWS[i], name) {
            return true;
        }
        i += 1;
    }
    false
}

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
