//! The negative log likelihood loss and its gradient, each in one kernel that one workgroup sums; only for
//! small batches.

use crate::base::{DType, Fault, LossReduction, Result, SourceLine};
use crate::gpu::device::fault::{self, Origin, Wrong};
use crate::gpu::device::gpu;
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::View;
use crate::gpu::launch::index_space::{Words, check, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::stored::Stored;
use smallvec::SmallVec;

/// The maximal number of samples that one workgroup sums.
pub const MOST: usize = 1 << 16;

/// A contiguous input `[n, classes, run]`, the targets `[n, run]`, the weight of each class, and the class
/// that is ignored.
#[derive(Clone, Copy)]
pub struct Nll<'a> {
    pub target: View<'a>,
    pub weight: Option<View<'a>>,
    pub ignored: i64,
    pub planes: [usize; 3],
}

/// The losses, or their sum or mean. A target that is not a class is a fault.
pub fn nll(
    line: Option<SourceLine>,
    out: View<'_>,
    x: View<'_>,
    classes: Nll<'_>,
    joined: LossReduction,
) -> Result<()> {
    let origin = Origin { op: "nll_loss", line, wrong: Wrong::Index };
    let part = if joined == LossReduction::None {
        NllPart::Each
    } else {
        NllPart::Loss { mean: joined == LossReduction::Mean }
    };
    let n = if joined == LossReduction::None { classes.samples().div_ceil(GROUP) } else { 1 };
    classes.launch(part, Some(origin), &[out, x], n)
}

/// The total weight of the targets.
pub fn nll_total(out: View<'_>, classes: Nll<'_>) -> Result<()> {
    classes.launch(NllPart::Total, None, &[out], 1)
}

/// The gradient of the input, from that of each loss (`each`), or from that of their sum, divided by
/// `total`.
pub fn nll_backward(
    out: View<'_>,
    grad: View<'_>,
    total: Option<View<'_>>,
    classes: Nll<'_>,
    each: bool,
) -> Result<()> {
    let n = (classes.samples() * classes.planes[1]).div_ceil(GROUP);
    let part = NllPart::Gradient { each, mean: total.is_some() };
    let views: SmallVec<[View<'_>; 3]> = [Some(out), Some(grad), total].into_iter().flatten().collect();
    classes.launch(part, None, &views, n)
}

/// The result of a kernel.
#[derive(Clone, Copy, Hash, PartialEq, Eq)]
enum NllPart {
    Each,
    Loss { mean: bool },
    Total,
    Gradient { each: bool, mean: bool },
}

impl Nll<'_> {
    fn samples(&self) -> usize {
        self.planes[0] * self.planes[2]
    }

    fn launch(&self, part: NllPart, origin: Option<Origin>, views: &[View<'_>], count: usize) -> Result<()> {
        let gpu = gpu()?;
        let stored = Stored::of(views[0].dtype);
        let operands: SmallVec<[View<'_>; 5]> =
            views.iter().copied().chain(self.weight).chain([self.target]).collect();
        let floats = operands.len() - 1;
        for view in &operands[..floats] {
            if !view.dtype.is_float() || Stored::of(view.dtype) != stored {
                return Err(Fault::NoShader { op: "nll_loss", dtype: view.dtype }.into());
            }
            gpu.supports("nll_loss", view.dtype)?;
        }
        operands.iter().try_for_each(check)?;
        let target = match self.target.dtype {
            DType::I64 => Stored::Bits64,
            other => Stored::of(other),
        };
        let kind = NllKind { part, stored, target, weight: self.weight.is_some() };
        let [_, classes, run] = self.planes;
        let mut words = Words::from_slice(&[self.samples() as u32, classes as u32, run as u32]);
        words.extend([self.ignored as u32, (self.ignored >> 32) as u32]);
        words.push(origin.map_or(0, fault::ticket));
        words.extend(operands.iter().map(|view| view.offset as u32));
        let buffers: SmallVec<[&Buffer; 5]> = operands.iter().map(|view| view.buffer).collect();
        gpu.launch(&kind, &buffers, &words, groups(count, 1))
    }
}

/// Distinguishes one kernel from another.
#[derive(Clone, Copy, Hash)]
struct NllKind {
    part: NllPart,
    stored: Stored,
    target: Stored,
    weight: bool,
}

impl NllKind {
    /// Returns true if the kernel reports invalid targets.
    fn looks(&self) -> bool {
        matches!(self.part, NllPart::Each | NllPart::Loss { .. })
    }

    /// Returns the WGSL that defines the class of sample `s`, and whether it is not ignored.
    fn class(&self) -> String {
        let class = if self.target == Stored::Bits64 { "t_get(t_at + s)" } else { "widen(t_get(t_at + s))" };
        format!("  let class_ = {class};\n  let counted = class_.x != low || class_.y != high;\n")
    }

    fn share(&self, class: &str) -> String {
        if self.weight { format!("w_get(w_at + {class})") } else { "T(1)".to_owned() }
    }

    /// Returns the WGSL that defines `loss` and `share` (the weight) of sample `s`.
    fn sample(&self) -> String {
        let (class, share) = (self.class(), self.share("c"));
        // A class of weight zero contributes nothing even if its loss is infinite.
        format!(
            "{class}  var loss = T(0);\n  var share = T(0);\n  if (counted) {{\n    \
             let c = place(class_, classes, 1u, false, ticket);\n    if (c < classes) {{\n      share = {share};\n      \
             if (share != T(0)) {{ loss = -(x_get(x_at + ((s / run) * classes + c) * run + s % run) * share); }}\n    }}\n  }}\n"
        )
    }

    /// Returns the WGSL that sums over all samples: `all_loss` and `total`.
    fn over_samples(&self, loss: bool) -> String {
        let body = if loss {
            format!("{}    sum += loss;\n    shares += share;\n", self.sample())
        } else {
            format!(
                "{}    if (counted && class_.y == 0u && class_.x < classes) {{ shares += {}; }}\n",
                self.class(),
                self.share("class_.x")
            )
        };
        let joined = if loss { "  let all_loss = all_sum(sum, me);\n" } else { "" };
        format!(
            "  var sum = T(0);\n  var shares = T(0);\n  for (var s = me; s < n; s += 256u) {{\n{body}  }}\n{joined}  \
             let total = all_sum(shares, me);\n"
        )
    }

    fn gradient(&self, each: bool, mean: bool) -> String {
        let g = if each { "g_get(g_at + s)" } else { "g_get(g_at)" };
        let g = if mean { format!("({g} / total_get(total_at))") } else { g.to_owned() };
        let (class, share) = (self.class(), self.share("c"));
        format!(
            "  if (i >= n * classes) {{ return; }}\n  let c = (i / run) % classes;\n  \
             let s = (i / (run * classes)) * run + i % run;\n{class}  var gradient = T(0);\n  \
             if (counted && class_.y == 0u && class_.x == c) {{\n    let share = {share};\n    \
             if (share != T(0)) {{ gradient = -({g} * share); }}\n  }}\n  o_set(o_at + i, gradient);\n"
        )
    }
}

impl ShaderKind for NllKind {
    fn name(&self) -> &'static str {
        "nll_loss"
    }

    fn shader(&self) -> Shader {
        let names: &[&str] = match self.part {
            NllPart::Each | NllPart::Loss { .. } => &["o", "x"],
            NllPart::Total => &["o"],
            NllPart::Gradient { mean: true, .. } => &["o", "g", "total"],
            NllPart::Gradient { mean: false, .. } => &["o", "g"],
        };
        let names: SmallVec<[&str; 4]> = names.iter().copied().chain(self.weight.then_some("w")).collect();
        let mut code = Code::new(self.stored.value());
        for name in &names {
            code.operand(name, self.stored, *name == "o", false);
        }
        code.operand("t", self.target, false, false);
        if self.looks() {
            code.flags();
            code.push(crate::gpu::shader::code::INDEX);
        } else {
            code.push("fn widen(v: i32) -> vec2<u32> { return vec2<u32>(bitcast<u32>(v), bitcast<u32>(v >> 31u)); }\n");
        }
        if matches!(self.part, NllPart::Loss { .. } | NllPart::Total) {
            code.group_join("all_sum", "T", "acc + next", true);
        }
        code.main_by_group();
        for name in ["n", "classes", "run", "low", "high", "ticket"] {
            let word = code.word();
            code.push(&format!("  let {name} = {word};\n"));
        }
        for name in names.iter().chain(&["t"]) {
            let at = code.word();
            code.push(&format!("  let {name}_at = {at};\n"));
        }
        code.push("  let i = row * 256u + me;\n");
        code.push(&match self.part {
            NllPart::Each => format!(
                "  if (i >= n) {{ return; }}\n  let s = i;\n{}  o_set(o_at + i, loss);\n",
                self.sample()
            ),
            NllPart::Loss { mean } => format!(
                "{}  if (me == 0u) {{ o_set(o_at, {}); }}\n",
                self.over_samples(true),
                if mean { "all_loss / total" } else { "all_loss" }
            ),
            NllPart::Total => {
                format!("{}  if (me == 0u) {{ o_set(o_at, total); }}\n", self.over_samples(false))
            }
            NllPart::Gradient { each, mean } => self.gradient(each, mean),
        });
        code.push("}\n");
        code.finish()
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(NllKind, |check| {
    let parts = [
        NllPart::Each,
        NllPart::Loss { mean: false },
        NllPart::Loss { mean: true },
        NllPart::Total,
        NllPart::Gradient { each: true, mean: false },
        NllPart::Gradient { each: false, mean: false },
        NllPart::Gradient { each: false, mean: true },
    ];
    for part in parts {
        for stored in [Stored::F32, Stored::F16, Stored::BF16, Stored::F64] {
            for target in [Stored::Bits64, Stored::U8] {
                for weight in [false, true] {
                    check(&NllKind { part, stored, target, weight });
                }
            }
        }
    }
});
