//! The storage formats of elements in buffers, and their conversion to shader values and back. WGSL can store
//! neither bytes nor (on every adapter) 16-bit numbers: these share 32-bit words.

use crate::base::DType;

/// An element type in memory as a shader sees it. `Bits64` moves eight bytes without interpreting them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub(in crate::gpu) enum Stored {
    Bool,
    U8,
    I8,
    I16,
    F16,
    BF16,
    I32,
    F32,
    I64,
    F64,
    Bits64,
}

/// The type of a value in a shader.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(in crate::gpu) enum Value {
    Bool,
    I32,
    F32,
    I64,
    F64,
    Bits64,
}

impl Stored {
    pub const fn of(dtype: DType) -> Stored {
        match dtype {
            DType::Bool => Stored::Bool,
            DType::U8 => Stored::U8,
            DType::I8 => Stored::I8,
            DType::I16 => Stored::I16,
            DType::F16 => Stored::F16,
            DType::BF16 => Stored::BF16,
            DType::I32 => Stored::I32,
            DType::F32 => Stored::F32,
            DType::I64 => Stored::I64,
            DType::F64 => Stored::F64,
            // Shaders see complex tensors only as their real and imaginary parts.
            DType::C64 | DType::C128 => Stored::Bits64,
            // Shaders see these only as integers of their size.
            DType::F8E4M3 | DType::F8E5M2 | DType::U16 | DType::U32 | DType::U64 | DType::C32 => {
                Stored::bits(dtype)
            }
        }
    }

    /// The type that moves a dtype's bytes without reading them as numbers: that needs fewer kernels, and
    /// no features.
    pub const fn bits(dtype: DType) -> Stored {
        match dtype.size() {
            1 => Stored::U8,
            2 => Stored::I16,
            4 => Stored::I32,
            _ => Stored::Bits64,
        }
    }

    pub const fn size(self) -> usize {
        match self {
            Stored::Bool | Stored::U8 | Stored::I8 => 1,
            Stored::I16 | Stored::F16 | Stored::BF16 => 2,
            Stored::I32 | Stored::F32 => 4,
            Stored::I64 | Stored::F64 | Stored::Bits64 => 8,
        }
    }

    /// Returns true if several elements share a word.
    pub const fn packed(self) -> bool {
        self.size() < 4
    }

    pub const fn value(self) -> Value {
        match self {
            Stored::Bool | Stored::U8 | Stored::I8 | Stored::I16 | Stored::I32 => Value::I32,
            Stored::F16 | Stored::BF16 | Stored::F32 => Value::F32,
            Stored::I64 => Value::I64,
            Stored::F64 => Value::F64,
            Stored::Bits64 => Value::Bits64,
        }
    }

    /// The array element of a binding that is accessed one element at a time.
    pub const fn single(self) -> &'static str {
        match self {
            Stored::I32 => "i32",
            Stored::F32 => "f32",
            Stored::I64 => "i64",
            Stored::F64 => "f64",
            Stored::Bits64 => "vec2<u32>",
            _ => "u32",
        }
    }

    /// The array element of a binding that is accessed four elements at a time (eight-byte ones stay
    /// single).
    pub const fn quad(self) -> &'static str {
        match self {
            Stored::I32 => "vec4<i32>",
            Stored::F32 => "vec4<f32>",
            Stored::I16 | Stored::F16 | Stored::BF16 => "vec2<u32>",
            _ => self.single(),
        }
    }

    /// Returns the value in the bits of a word from `shift` on.
    fn unpack(self, word: &str, shift: &str) -> String {
        match self {
            Stored::I8 => format!("extractBits(bitcast<i32>({word}), {shift}, 8u)"),
            Stored::I16 => format!("extractBits(bitcast<i32>({word}), {shift}, 16u)"),
            Stored::F16 => format!("widen_f16(({word} >> {shift}) & 0xffffu)"),
            Stored::BF16 => format!("bitcast<f32>((({word} >> {shift}) & 0xffffu) << 16u)"),
            _ => format!("i32(({word} >> {shift}) & 0xffu)"),
        }
    }

    /// Returns the low bits of a word that store `value` (of type `self.value()`).
    fn pack(self, value: &str) -> String {
        match self {
            Stored::Bool => format!("select(0u, 1u, {value} != 0)"),
            Stored::F16 => format!("narrow_f16({value})"),
            Stored::BF16 => format!("narrow_bf16({value})"),
            Stored::I16 => format!("(bitcast<u32>({value}) & 0xffffu)"),
            _ => format!("(bitcast<u32>({value}) & 0xffu)"),
        }
    }

    /// The number of elements per word as a shift count, and the mask of one element.
    const fn lanes(self) -> (u32, u32) {
        if self.size() == 1 { (2, 0xff) } else { (1, 0xffff) }
    }

    /// For a compare-and-exchange on the word of element `i`: returns statements that define `at` (and
    /// `shift`), the expression of the element's value in `word`, and that of the word with `next` in its
    /// place.
    pub fn lane(self, i: &str, next: &str) -> (String, String, String) {
        match self {
            Stored::I32 => {
                (format!("let at = {i};"), "bitcast<i32>(word)".into(), format!("bitcast<u32>({next})"))
            }
            Stored::F32 => {
                (format!("let at = {i};"), "bitcast<f32>(word)".into(), format!("bitcast<u32>({next})"))
            }
            _ => {
                let (log, mask) = self.lanes();
                let (lane_mask, bits) = ((1 << log) - 1, 32 >> log);
                let find = format!("let at = {i} >> {log}u; let shift = ({i} & {lane_mask}u) * {bits}u;");
                let packed = self.pack(next);
                (
                    find,
                    self.unpack("word", "shift"),
                    format!("((word & ~({mask}u << shift)) | ({packed} << shift))"),
                )
            }
        }
    }

    /// Returns functions `NAME_get(i)` and, for outputs, `NAME_set(i, value)` that access the binding
    /// `name` one element at a time. Setting an element of a shared word is atomic, since its other
    /// elements belong to other invocations.
    pub fn single_access(self, name: &str, write: bool) -> String {
        let value = self.value().name();
        if !self.packed() {
            let mut text = format!("fn {name}_get(i: u32) -> {value} {{ return {name}[i]; }}\n");
            if write {
                text += &format!("fn {name}_set(i: u32, v: {value}) {{ {name}[i] = v; }}\n");
            }
            return text;
        }
        let (log, mask) = self.lanes();
        let (lane_mask, bits) = ((1 << log) - 1, 32 >> log);
        let shift = format!("((i & {lane_mask}u) * {bits}u)");
        if !write {
            let read = self.unpack("word", "shift");
            return format!(
                "fn {name}_get(i: u32) -> {value} {{ let word = {name}[i >> {log}u]; let shift = {shift}; \
                 return {read}; }}\n"
            );
        }
        let (read, packed) = (self.unpack("word", "shift"), self.pack("v"));
        format!(
            "fn {name}_get(i: u32) -> {value} {{ let word = atomicLoad(&{name}[i >> {log}u]); let shift = {shift}; \
             return {read}; }}\n\
             fn {name}_set(i: u32, v: {value}) {{ let shift = {shift}; let at = i >> {log}u; \
             atomicAnd(&{name}[at], ~({mask}u << shift)); atomicOr(&{name}[at], {packed} << shift); }}\n"
        )
    }

    /// Returns the element type of the binding for [`Stored::single_access`].
    pub const fn single_binding(self, write: bool) -> &'static str {
        if self.packed() && write { "atomic<u32>" } else { self.single() }
    }

    /// Returns statements that read the four elements of quad `NAME_quad` into `NAME_0` to `NAME_3`. `last`
    /// is the number of the last lane that may be accessed, if that is less than three.
    pub fn quad_load(self, name: &str, last: &str) -> String {
        let mut text = String::new();
        match self {
            Stored::I32 | Stored::F32 => {
                text += &format!("  let {name}_v = {name}[{name}_quad];\n");
                for (k, lane) in ["x", "y", "z", "w"].iter().enumerate() {
                    text += &format!("  let {name}_{k} = {name}_v.{lane};\n");
                }
            }
            Stored::I64 | Stored::F64 | Stored::Bits64 => {
                for k in 0..4 {
                    text += &format!("  let {name}_{k} = {name}[4u * {name}_quad + min({k}u, {last})];\n");
                }
            }
            _ => {
                text += &format!("  let {name}_v = {name}[{name}_quad];\n");
                for k in 0..4 {
                    let (word, shift) = if self.size() == 1 {
                        (format!("{name}_v"), 8 * k)
                    } else {
                        (format!("{name}_v.{}", ["x", "y"][k / 2]), 16 * (k % 2))
                    };
                    text += &format!("  let {name}_{k} = {};\n", self.unpack(&word, &format!("{shift}u")));
                }
            }
        }
        text
    }

    /// Returns statements that write `r_0` to `r_3` (the first `left` of them) to quad `NAME_quad`.
    pub fn quad_store(self, name: &str) -> String {
        let at = format!("{name}[{name}_quad]");
        match self {
            Stored::I32 | Stored::F32 => {
                let whole = format!("{at} = {}(r_0, r_1, r_2, r_3);", self.quad());
                let parts: String =
                    (0..3).map(|k| format!("if (left > {k}u) {{ {at}[{k}u] = r_{k}; }} ")).collect();
                format!("  if (left >= 4u) {{ {whole} }} else {{ {parts}}}\n")
            }
            Stored::I64 | Stored::F64 | Stored::Bits64 => (0..4)
                .map(|k| format!("  if (left > {k}u) {{ {name}[4u * {name}_quad + {k}u] = r_{k}; }}\n"))
                .collect(),
            _ if self.size() == 1 => {
                let lanes: Vec<_> =
                    (0..4).map(|k| format!("({} << {}u)", self.pack(&format!("r_{k}")), 8 * k)).collect();
                let word = lanes.join(" | ");
                format!(
                    "  let word = {word};\n  if (left >= 4u) {{ {at} = word; }} else {{ \
                     let keep = 0xffffffffu << (8u * left); {at} = ({at} & keep) | (word & ~keep); }}\n"
                )
            }
            _ => {
                let pair = |k| {
                    let (low, high) = (self.pack(&format!("r_{k}")), self.pack(&format!("r_{}", k + 1)));
                    format!("({low} | ({high} << 16u))")
                };
                let (x, y) = (pair(0), pair(2));
                format!(
                    "  if (left >= 2u) {{ {at}.x = {x}; }} else {{ {at}.x = ({at}.x & 0xffff0000u) | ({x} & 0xffffu); }}\n\
                     \x20 if (left >= 4u) {{ {at}.y = {y}; }} else if (left == 3u) {{ \
                     {at}.y = ({at}.y & 0xffff0000u) | ({y} & 0xffffu); }}\n"
                )
            }
        }
    }
}

impl Value {
    pub const fn name(self) -> &'static str {
        match self {
            Value::Bool => "bool",
            Value::I32 => "i32",
            Value::F32 => "f32",
            Value::I64 => "i64",
            Value::F64 => "f64",
            Value::Bits64 => "vec2<u32>",
        }
    }

    /// Converts `text`, a value of this type, to type `to`.
    pub fn convert(self, to: Value, text: &str) -> String {
        if self == to {
            return text.to_owned();
        }
        match (self, to) {
            (_, Value::Bool) => format!("!({text} == {}(0))", self.name()),
            (Value::Bool, _) => format!("select({0}(0), {0}(1), {text})", to.name()),
            // Mesa's software driver loses the sign of a widened number in comparisons; this form keeps it.
            (Value::I32, Value::I64) => {
                format!("((i64(u64(bitcast<u32>({text}))) ^ 0x80000000li) - 0x80000000li)")
            }
            _ => format!("{}({text})", to.name()),
        }
    }

    /// Converts a value to how it is stored: to bool by comparison, to integers by truncation.
    pub fn convert_to_stored(self, stored: Stored, text: &str) -> String {
        if stored == Stored::Bool {
            let bit = self.convert(Value::Bool, text);
            return Value::Bool.convert(Value::I32, &bit);
        }
        self.convert(stored.value(), text)
    }
}

/// Returns the value type for a compute dtype.
pub(in crate::gpu) const fn compute(dtype: DType) -> Value {
    match dtype {
        DType::I64 => Value::I64,
        DType::F64 => Value::F64,
        DType::F16 | DType::BF16 | DType::F32 => Value::F32,
        _ => Value::I32,
    }
}
