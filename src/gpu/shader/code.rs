//! Writes the WGSL that all kernels share: bindings, parameters and strided indices.

use crate::gpu::shader::prelude;
use crate::gpu::shader::stored::{Stored, Value};
use std::fmt::Write as _;

/// Invocations per workgroup, unless a kernel says otherwise.
pub(in crate::gpu) const GROUP: usize = 256;

/// Returns the number of invocations that share a row of `length` elements that are adjacent in memory.
pub(in crate::gpu) fn lanes(length: usize) -> usize {
    match length {
        0..=16 => 1,
        17..=1024 => 32,
        _ => GROUP,
    }
}

/// Words of immediates that every adapter supports: Vulkan guarantees 128 bytes.
pub(in crate::gpu) const IMMEDIATE_WORDS: usize = 32;
/// Parameters that fit into immediates. The last word is always zero; see `pin` in wgsl/f32.wgsl.
pub(in crate::gpu) const INLINE_WORDS: usize = IMMEDIATE_WORDS - 1;

/// WGSL that resolves the value of an index.
pub(in crate::gpu) const INDEX: &str = include_str!("wgsl/index.wgsl");

/// The WGSL of a kernel. All bindings are storage buffers; the set bits of `read_only` mark those that it
/// only reads.
pub(in crate::gpu) struct Shader {
    pub text: String,
    pub bindings: usize,
    pub read_only: u32,
    /// How many parameter words it reads.
    pub words: usize,
    /// True if it may record a fault.
    pub flags: bool,
}

/// Stands before and after the number of a parameter word, until `finish` knows where parameters lie.
const WORD: char = '\u{1}';
/// Stands where a shader that reads its parameters from the ring buffer finds their start.
const BASE: char = '\u{2}';

/// Builds the WGSL of a kernel.
pub(in crate::gpu) struct Code {
    text: String,
    bindings: usize,
    read_only: u32,
    flags: bool,
    words: usize,
    language: Value,
}

impl Code {
    /// A kernel whose scalar functions compute in `language`: there the name `T`.
    pub fn new(language: Value) -> Code {
        Code { text: String::new(), bindings: 0, read_only: 0, flags: false, words: 0, language }
    }

    /// Adds a binding of `array<element>`.
    pub fn bind(&mut self, name: &str, element: &str, write: bool) {
        let access = if write { "read_write" } else { "read" };
        let at = self.bindings;
        let _ =
            writeln!(self.text, "@group(0) @binding({at}) var<storage, {access}> {name}: array<{element}>;");
        self.read_only |= u32::from(!write) << at;
        self.bindings += 1;
    }

    /// Adds an operand that is accessed one element at a time: its binding, and its functions `NAME_get`
    /// and `NAME_set`. If `shared`, the operand's memory is also written through another binding, so this
    /// one must not be declared read-only.
    pub fn operand(&mut self, name: &str, stored: Stored, write: bool, shared: bool) {
        let element = stored.single_binding(write);
        self.bind(name, element, write || shared);
        self.text += &stored.single_access(name, write);
    }

    /// Adds the binding for the record of the first fault; see `fault`.
    pub fn flags(&mut self) {
        self.flags = true;
    }

    /// Adds index operands and the beginning of `main`. `NAME_at` becomes the position of element `i` in
    /// each operand of `at`; each index adds its offset to `moved`, which is one of them. A bad index is
    /// recorded, and then runs `missing`.
    pub fn indexed(
        &mut self,
        (rank, indices, negative): (usize, &[Stored], bool),
        at: [&str; 2],
        moved: &str,
        missing: &str,
    ) {
        self.flags();
        self.push(INDEX);
        self.main_by_item();
        let [n, ticket] = [self.word(), self.word()];
        self.push(&format!("  if (i >= {n}) {{ return; }}\n"));
        let dims = self.words(rank - 1);
        self.push(&Code::split("i", "c", &dims));
        for name in at {
            let offset = self.word();
            let strides = self.words(rank);
            self.push(&format!("  var {name} = {offset} + {};\n", Code::dot("c", &strides)));
        }
        for (k, stored) in indices.iter().enumerate() {
            let offset = self.word();
            let strides = self.words(rank);
            let [size, stride, dim] = [self.word(), self.word(), self.word()];
            let value = format!("index{k}_get({offset} + {})", Code::dot("c", &strides));
            let pair = if *stored == Stored::Bits64 { value } else { format!("widen({value})") };
            self.push(&format!(
                "  let v{k} = place({pair}, {size}, {dim}, {negative}, {ticket});\n  \
                 if (v{k} >= {size}) {{ {missing} return; }}\n  {moved} += v{k} * {stride};\n"
            ));
        }
    }

    pub fn push(&mut self, text: &str) {
        self.text += text;
    }

    /// Returns the WGSL of the next parameter word. A launch pushes its parameters in the order of these calls.
    pub fn word(&mut self) -> String {
        let k = self.words;
        self.words += 1;
        format!("{WORD}{k}{WORD}")
    }

    pub fn words(&mut self, count: usize) -> Vec<String> {
        (0..count).map(|_| self.word()).collect()
    }

    /// Returns statements that split the linear index `linear` into the coordinates `PREFIX0`, `PREFIX1`...
    /// `dims` holds all sizes except that of the first dimension.
    pub fn split(linear: &str, prefix: &str, dims: &[String]) -> String {
        let rank = dims.len() + 1;
        let mut text = String::new();
        let mut rest = linear.to_owned();
        for d in (1..rank).rev() {
            let size = &dims[d - 1];
            let _ = writeln!(text, "  let {prefix}q{d} = {rest} / {size};");
            let _ = writeln!(text, "  let {prefix}{d} = {rest} - {prefix}q{d} * {size};");
            rest = format!("{prefix}q{d}");
        }
        let _ = writeln!(text, "  let {prefix}0 = {rest};");
        text
    }

    /// Adds the first statements of an invocation: it returns beyond the `n` elements (four per invocation
    /// for `quads`); otherwise it gets its coordinates `c0`, `c1`...
    pub fn enter(&mut self, rank: usize, quads: bool) {
        let n = self.word();
        self.push(&format!("  let n = {n};\n"));
        self.push(if quads {
            "  if (i >= (n + 3u) / 4u) { return; }\n  let left = n - 4u * i;\n"
        } else {
            "  if (i >= n) { return; }\n"
        });
        let dims = self.words(rank - 1);
        self.push(&Code::split("i", "c", &dims));
    }

    /// Returns the offset of the coordinates `PREFIX0`... under `strides`.
    pub fn dot(prefix: &str, strides: &[String]) -> String {
        let terms: Vec<_> = strides.iter().enumerate().map(|(d, s)| format!("{prefix}{d} * {s}")).collect();
        terms.join(" + ")
    }

    /// Begins `main` for one invocation per item: `i` is its number in the launch.
    pub fn main_by_item(&mut self) {
        let _ = write!(
            self.text,
            "@compute @workgroup_size({GROUP}) fn main(@builtin(global_invocation_id) id: vec3<u32>, \
             @builtin(num_workgroups) groups: vec3<u32>) {{\n  let i = id.y * groups.x * {GROUP}u + id.x;\n"
        );
        self.base();
    }

    /// Begins `main` for one workgroup per job: `row` is the number of the job, `me` that of the
    /// invocation.
    pub fn main_by_group(&mut self) {
        let _ = write!(
            self.text,
            "@compute @workgroup_size({GROUP}) fn main(@builtin(workgroup_id) id: vec3<u32>, \
             @builtin(num_workgroups) groups: vec3<u32>, @builtin(local_invocation_index) me: u32) {{\n  \
             let row = id.y * groups.x + id.x;\n"
        );
        self.base();
    }

    /// Adds a function `NAME(v, me)` that reduces the values of a workgroup in a fixed order, sixteen at a
    /// time, since barriers cost more than steps. If `all`, every invocation gets the result, otherwise
    /// only the first. The expression `join` combines `acc` and `next`.
    pub fn group_join(&mut self, name: &str, value: &str, join: &str, all: bool) {
        const WIDTH: usize = 16;
        let (stop, wait) =
            if all { ("", "  workgroupBarrier();\n") } else { ("  if (me > 0u) { return v; }\n", "") };
        let _ = write!(
            self.text,
            "var<workgroup> {name}_seen: array<{value}, {GROUP}>;\n\
             fn {name}(v: {value}, me: u32) -> {value} {{\n  var acc = v;\n  {name}_seen[me] = v;\n  \
             workgroupBarrier();\n  if (me < {WIDTH}u) {{\n    \
             for (var j = {WIDTH}u; j < {GROUP}u; j += {WIDTH}u) {{\n      \
             let next = {name}_seen[me + j];\n      acc = {join};\n    }}\n    {name}_seen[me] = acc;\n  }}\n  \
             workgroupBarrier();\n{stop}  acc = {name}_seen[0];\n  for (var j = 1u; j < {WIDTH}u; j++) {{\n    \
             let next = {name}_seen[j];\n    acc = {join};\n  }}\n{wait}  return acc;\n}}\n"
        );
    }

    /// Adds a function `NAME(v, me)` that reduces the values of each group of `lanes` adjacent invocations
    /// in a fixed order; all of them get the result. The expression `join` combines `acc` and `next`.
    pub fn lanes_join(&mut self, name: &str, value: &str, join: &str, lanes: usize) {
        match lanes {
            1 => {
                let _ = writeln!(self.text, "fn {name}(v: {value}, me: u32) -> {value} {{ return v; }}");
            }
            GROUP => self.group_join(name, value, join, true),
            _ => {
                let _ = write!(
                    self.text,
                    "var<workgroup> {name}_seen: array<{value}, {GROUP}>;\n\
                     fn {name}(v: {value}, me: u32) -> {value} {{\n  {name}_seen[me] = v;\n  workgroupBarrier();\n  \
                     let first = me - me % {lanes}u;\n  var acc = {name}_seen[first];\n  \
                     for (var j = 1u; j < {lanes}u; j++) {{\n    let next = {name}_seen[first + j];\n    \
                     acc = {join};\n  }}\n  workgroupBarrier();\n  return acc;\n}}\n"
                );
            }
        }
    }

    /// Begins `main` for `lanes` adjacent invocations per job: `job` is the number of the job, `me` that of
    /// the invocation in the workgroup, `lane` that among the invocations of the job.
    pub fn main_by_lanes(&mut self, lanes: usize) {
        self.main_by_group();
        let per = GROUP / lanes;
        let _ = write!(self.text, "  let job = row * {per}u + me / {lanes}u;\n  let lane = me % {lanes}u;\n");
    }

    /// Defines `base` if the ring buffer is used. Only for kernels that write their own `main`.
    pub fn base(&mut self) {
        self.text.push(BASE);
    }

    /// Finishes the kernel. Its last bindings are the ring, if its parameters exceed the immediates, and the flags.
    pub fn finish(mut self) -> Shader {
        let ringed = self.words > INLINE_WORDS;
        self.text = self.text.replace(BASE, if ringed { "  let base = given[0].x;\n" } else { "" });
        self.text = place_words(&self.text, ringed);
        self.text += "var<immediate> given: array<vec4<u32>, 8>;\n";
        if ringed {
            self.bind("ring", "u32", false);
        }
        if self.flags {
            self.bind("flags", "atomic<u32>", true);
        }
        self.text += &prelude::gather(self.language, &self.text);
        let Code { text, bindings, read_only, flags, words, .. } = self;
        Shader { text, bindings, read_only, words, flags }
    }
}

/// Replaces each parameter word by the expression that reads it, from the ring buffer or from the immediates.
fn place_words(text: &str, ringed: bool) -> String {
    let mut placed = String::with_capacity(text.len());
    for (i, part) in text.split(WORD).enumerate() {
        match part.parse::<usize>() {
            Ok(k) if i % 2 == 1 && ringed => placed += &format!("ring[base + {k}u]"),
            Ok(k) if i % 2 == 1 => placed += &format!("given[{}].{}", k / 4, ["x", "y", "z", "w"][k % 4]),
            _ => placed += part,
        }
    }
    placed
}

/// Checks a kernel as wgpu will, without a GPU.
#[cfg(test)]
pub(in crate::gpu) fn validate(shader: &Shader) {
    use wgpu::naga::{front::wgsl, valid};
    let module = wgsl::parse_str(&shader.text)
        .unwrap_or_else(|e| panic!("{}\n{}", e.emit_to_string(&shader.text), shader.text));
    let mut validator = valid::Validator::new(valid::ValidationFlags::all(), valid::Capabilities::all());
    if let Err(error) = validator.validate(&module) {
        panic!("{}\n{}", error.emit_to_string(&shader.text), shader.text);
    }
    for (_, variable) in module.global_variables.iter() {
        if let Some(binding) = &variable.binding {
            assert!((binding.binding as usize) < shader.bindings, "{}", shader.text);
        }
    }
}
