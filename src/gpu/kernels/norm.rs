//! Normalization, like `cpu::norm`: over rows, over groups of channels, and over channels of a batch. One
//! workgroup takes a set of elements that share a mean and a variance. The gradients of weights and biases
//! are sums over a channel.

use crate::base::{DType, Fault, Reduction, Result, Scalar, contiguous_strides};
use crate::gpu::device::gpu;
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::memory::alloc;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::{Source, View};
use crate::gpu::kernels::columns;
use crate::gpu::kernels::pointwise::code::{number, push_number};
use crate::gpu::kernels::pointwise::{Expr, pointwise};
use crate::gpu::kernels::reduce::reduce;
use crate::gpu::launch::index_space::{Words, check, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader, lanes};
use crate::gpu::shader::stored::Stored;
use smallvec::SmallVec;

/// A contiguous input `[n, channels, run]`. Each channel has a weight and a bias. A set is a group of a
/// sample's channels, or one channel of all samples. (A row that is normalized is a sample of one group;
/// its elements are channels with a run of 1.)
#[derive(Clone, Copy, Debug)]
pub struct NormSizes {
    pub n: usize,
    pub channels: usize,
    pub run: usize,
    /// The number of groups per sample; None if a set is a channel.
    pub groups: Option<usize>,
}

/// Operands other than the elements.
#[derive(Clone, Copy)]
pub struct NormOperands<'a> {
    pub weight: Option<View<'a>>,
    pub bias: Option<View<'a>>,
    /// The mean of each set, if it is subtracted.
    pub mean: Option<View<'a>>,
    /// One over the standard deviation of each set.
    pub scale: View<'a>,
}

/// The gradients to write; None where not needed.
#[derive(Clone, Copy)]
pub struct NormGradients<'a> {
    pub input: Option<View<'a>>,
    pub weight: Option<View<'a>>,
    pub bias: Option<View<'a>>,
}

/// The origin of mean and variance.
#[derive(Clone, Copy)]
pub enum Moments<'a> {
    /// Computed from the sets, and written; so is the variance, if requested.
    Own { eps: f64, variance: Option<View<'a>> },
    /// Given by the caller, as running statistics are.
    Given,
}

impl NormSizes {
    fn sets(&self) -> usize {
        self.groups.map_or(self.channels, |groups| self.n * groups)
    }

    /// Returns the number of elements per set.
    fn each(&self) -> usize {
        match self.groups {
            Some(groups) => self.channels / groups * self.run,
            None => self.n * self.run,
        }
    }

    fn words(&self) -> Words {
        let sizes = [self.sets(), self.each(), self.channels, self.run];
        sizes.iter().map(|n| *n as u32).collect()
    }
}

/// Standardizes each set, then multiplies by the weight and adds the bias.
pub fn forward(
    out: View<'_>,
    x: View<'_>,
    with: NormOperands<'_>,
    moments: Moments<'_>,
    planes: NormSizes,
) -> Result<()> {
    let (own, variance, eps) = match moments {
        Moments::Own { eps, variance } => (true, variance, eps),
        Moments::Given => (false, None, 0.0),
    };
    let others = [with.mean, variance, with.weight, with.bias];
    let operands = [Some(out), Some(x), Some(with.scale)].into_iter().chain(others);
    let kind = NormKind {
        backward: false,
        stored: Stored::of(x.dtype),
        channels: planes.groups.is_none(),
        own,
        mean: with.mean.is_some(),
        variance: variance.is_some(),
        input: false,
        weight: with.weight.is_some(),
        bias: with.bias.is_some(),
        along: false,
        lanes: lanes(planes.each()),
    };
    kind.launch(planes, operands, Some(eps))
}

/// The gradients of elements, weights and biases. `own` is true if mean and variance were computed from the
/// sets.
pub fn backward(
    to: NormGradients<'_>,
    g: View<'_>,
    x: View<'_>,
    with: NormOperands<'_>,
    own: bool,
    planes: NormSizes,
) -> Result<()> {
    let channels = planes.groups.is_none();
    // The products for the gradient of the weight need a temporary, unless a set is a channel: then the
    // sums of the set are the gradients.
    let aside = (to.weight.is_some() && !channels).then(|| alloc(x.numel() * x.dtype.size())).transpose()?;
    let aside = aside.as_ref().map(|buffer| View { buffer, offset: 0, ..x });
    let of_weight = if channels { to.weight } else { aside };
    let of_bias = to.bias.filter(|_| channels);
    let kind = NormKind {
        backward: true,
        stored: Stored::of(x.dtype),
        channels,
        own,
        mean: with.mean.is_some(),
        variance: false,
        input: to.input.is_some(),
        weight: with.weight.is_some(),
        bias: of_bias.is_some(),
        along: of_weight.is_some(),
        lanes: lanes(planes.each()),
    };
    if to.input.is_some() || of_weight.is_some() || of_bias.is_some() {
        let others = [Some(with.scale), with.mean, with.weight];
        let operands = [to.input, of_weight, of_bias, Some(g), Some(x)].into_iter().chain(others);
        kind.launch(planes, operands, None)?;
    }
    if channels {
        return Ok(());
    }
    let shape = [planes.n, planes.channels, planes.run];
    let (strides, line) = (contiguous_strides(&shape), [1, planes.channels, 1]);
    let line_strides = contiguous_strides(&line);
    let sums = [(to.weight, aside), (to.bias, Some(g))];
    let (matrix, matrix_strides) = ([planes.n, planes.channels], [planes.channels, 1]);
    if planes.run == 1 && planes.n <= columns::LONGEST && x.dtype != DType::F64 {
        let shape = [planes.channels];
        let mut items: SmallVec<[(View<'_>, View<'_>); 2]> = SmallVec::new();
        for (to, of) in sums {
            if let (Some(to), Some(of)) = (to, of) {
                let to = View { shape: &shape, strides: &[1], ..to };
                items.push((to, View { shape: &matrix, strides: &matrix_strides, ..of }));
            }
        }
        return columns::sum_columns(&items);
    }
    for (to, of) in sums {
        if let (Some(to), Some(of)) = (to, of) {
            let to = View { shape: &line, strides: &line_strides, ..to };
            reduce(Reduction::Sum, to, View { shape: &shape, strides: &strides, ..of }, &[0, 2])?;
        }
    }
    Ok(())
}

/// Updates running statistics: `keep * old + part * new`.
pub fn running(old: View<'_>, new: View<'_>, keep: f64, part: f64) -> Result<()> {
    let expr = Expr {
        key: "running_average",
        inputs: &["old", "new", "keep", "part"],
        wgsl: "old * keep + new * part",
        predicate: false,
    };
    let factors = [keep, part].map(|factor| Source::Scalar(Scalar::Float(factor)));
    pointwise(&expr, new.dtype, old, &[Source::View(old), Source::View(new), factors[0], factors[1]])
}

/// Distinguishes one kernel from another.
#[derive(Clone, Copy, Hash)]
struct NormKind {
    backward: bool,
    stored: Stored,
    /// True if a set is a channel.
    channels: bool,
    own: bool,
    mean: bool,
    variance: bool,
    /// In the backward: true if the gradient of the elements is written.
    input: bool,
    weight: bool,
    bias: bool,
    /// In the backward: true if gradients times standardized elements are written.
    along: bool,
    /// The number of invocations that share a set.
    lanes: usize,
}

impl NormKind {
    fn launch<'a>(
        &self,
        planes: NormSizes,
        operands: impl Iterator<Item = Option<View<'a>>>,
        eps: Option<f64>,
    ) -> Result<()> {
        let gpu = gpu()?;
        let operands: SmallVec<[View<'_>; 8]> = operands.flatten().collect();
        for view in &operands {
            if !matches!(view.dtype, DType::F32 | DType::F64) || Stored::of(view.dtype) != self.stored {
                return Err(Fault::NoShader { op: self.name(), dtype: view.dtype }.into());
            }
            gpu.supports(self.name(), view.dtype)?;
            check(view)?;
        }
        let mut words = planes.words();
        words.extend(operands.iter().map(|view| view.offset as u32));
        if let Some(eps) = eps {
            push_number(self.stored.value(), Scalar::Float(eps), &mut words);
        }
        let buffers: SmallVec<[&Buffer; 8]> = operands.iter().map(|view| view.buffer).collect();
        gpu.launch(self, &buffers, &words, groups(planes.sets(), GROUP / self.lanes))
    }

    /// Begins a kernel over `operands`, each with whether it exists and whether it is written; `NAME_at` is
    /// its offset.
    fn code(&self, operands: &[(&str, bool, bool)], eps: bool) -> Code {
        let given = || operands.iter().filter(|(_, there, _)| *there);
        let mut code = Code::new(self.stored.value());
        for (name, _, write) in given() {
            code.operand(name, self.stored, *write, false);
        }
        code.lanes_join("all_sum", "T", "acc + next", self.lanes);
        code.main_by_lanes(self.lanes);
        let [sets, each, channels, run] = [(); 4].map(|()| code.word());
        for (name, ..) in given() {
            let at = code.word();
            code.push(&format!("  let {name}_at = {at};\n"));
        }
        if eps {
            let eps = number(self.stored.value(), &mut code);
            code.push(&format!("  let eps = {eps};\n"));
        }
        // Every invocation must reach the barriers; those beyond the last set do no work between them.
        code.push(&format!(
            "  let there = job < {sets};\n  let own = min(job, {sets} - 1u);\n  let first = there && lane == 0u;\n  \
             let each = select(0u, {each}, there);\n  let channels = {channels};\n  let run = {run};\n"
        ));
        code
    }

    /// Returns a loop that runs `body` for each element of the set, which is at `at`.
    fn over_set(&self, body: &str) -> String {
        let place =
            if self.channels { "(k / run) * channels * run + own * run + k % run" } else { "own * each + k" };
        let lanes = self.lanes;
        format!("  for (var k = lane; k < each; k += {lanes}u) {{ let at = {place}; {body} }}\n")
    }

    /// Returns `value` times the weight of the element at `at`.
    fn weighted(&self, value: &str) -> String {
        match (self.weight, self.channels) {
            (false, _) => value.to_owned(),
            (true, true) => format!("({value}) * w_get(w_at + own)"),
            (true, false) => format!("({value}) * w_get(w_at + (at / run) % channels)"),
        }
    }

    fn standard(&self) -> String {
        let centred = if self.mean { "(x_get(x_at + at) - mean)" } else { "x_get(x_at + at)" };
        format!("{centred} * rstd")
    }

    fn forward(&self) -> Shader {
        let operands = [
            ("o", true, true),
            ("x", true, false),
            ("rstd", true, self.own),
            ("mean", self.mean, self.own),
            ("variance", self.variance, true),
            ("w", self.weight, false),
            ("b", self.bias, false),
        ];
        let mut code = self.code(&operands, true);
        if self.own {
            if self.mean {
                code.push("  var total = T(0);\n");
                code.push(&self.over_set("total += x_get(x_at + at);"));
                code.push("  let mean = all_sum(total, me) / T(each);\n");
            }
            let centred = if self.mean { "x_get(x_at + at) - mean" } else { "x_get(x_at + at)" };
            code.push("  var squares = T(0);\n");
            code.push(&self.over_set(&format!("let centred = {centred}; squares += centred * centred;")));
            code.push(
                "  let variance = all_sum(squares, me) / T(each);\n  let rstd = T(1) / sqrt(variance + eps);\n  if (first) {\n",
            );
            for name in ["mean", "rstd", "variance"] {
                if operands.iter().any(|(other, there, _)| *other == name && *there) {
                    code.push(&format!("    {name}_set({name}_at + own, {name});\n"));
                }
            }
            code.push("  }\n");
        } else {
            code.push(&self.given());
        }
        let bias = match (self.bias, self.channels) {
            (false, _) => "",
            (true, true) => " + b_get(b_at + own)",
            (true, false) => " + b_get(b_at + (at / run) % channels)",
        };
        let value = self.weighted(&self.standard());
        code.push(&self.over_set(&format!("o_set(o_at + at, {value}{bias});")));
        code.push("}\n");
        code.finish()
    }

    /// Returns the WGSL that reads the mean of the set and one over its standard deviation.
    fn given(&self) -> String {
        let mean = if self.mean { "  let mean = mean_get(mean_at + own);\n" } else { "" };
        format!("{mean}  let rstd = rstd_get(rstd_at + own);\n")
    }

    fn backward(&self) -> Shader {
        let operands = [
            ("o", self.input, true),
            ("dw", self.along, true),
            ("db", self.bias, true),
            ("g", true, false),
            ("x", true, false),
            ("rstd", true, false),
            ("mean", self.mean, false),
            ("w", self.weight, false),
        ];
        let mut code = self.code(&operands, false);
        code.push(&self.given());
        let y = self.standard();
        // The weight of a channel is a common factor of its set.
        let (g, factor) = match self.channels {
            true => ("g_get(g_at + at)".to_owned(), self.weighted("rstd")),
            false => (self.weighted("g_get(g_at + at)"), "rstd".to_owned()),
        };
        if self.channels && (self.along || self.bias) || self.own && self.input {
            code.push("  var total = T(0);\n  var along = T(0);\n");
            code.push(&self.over_set(&format!("let g = {g}; total += g; along += g * ({y});")));
            code.push("  total = all_sum(total, me);\n  along = all_sum(along, me);\n");
        }
        if self.channels {
            for (name, there, sum) in [("dw", self.along, "along"), ("db", self.bias, "total")] {
                if there {
                    code.push(&format!("  if (first) {{ {name}_set({name}_at + own, {sum}); }}\n"));
                }
            }
        }
        if self.input {
            let inner = match (self.own, self.mean) {
                (false, _) => g,
                (true, false) => format!("{g} - ({y}) * (along / T(each))"),
                (true, true) => format!("{g} - total / T(each) - ({y}) * (along / T(each))"),
            };
            code.push(&self.over_set(&format!("o_set(o_at + at, ({inner}) * {factor});")));
        }
        if !self.channels && self.along {
            code.push(&self.over_set(&format!("dw_set(dw_at + at, g_get(g_at + at) * ({y}));")));
        }
        code.push("}\n");
        code.finish()
    }
}

impl ShaderKind for NormKind {
    fn name(&self) -> &'static str {
        if self.backward { "norm_backward" } else { "norm" }
    }

    fn shader(&self) -> Shader {
        if self.backward { self.backward() } else { self.forward() }
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(NormKind, |check| {
    for bits in 0..=255u8 {
        let [channels, own, mean, variance, input, weight, bias, along] =
            [0, 1, 2, 3, 4, 5, 6, 7].map(|k| bits >> k & 1 > 0);
        for (stored, lanes) in [(Stored::F32, 1), (Stored::F32, 32), (Stored::F32, GROUP), (Stored::F64, 32)]
        {
            let backward = false;
            let kind = NormKind {
                backward,
                stored,
                channels,
                own,
                mean,
                variance,
                input,
                weight,
                bias,
                along,
                lanes,
            };
            if !input && !along && (own || !variance) {
                check(&kind);
            }
            if !variance {
                check(&NormKind { backward: true, ..kind });
            }
        }
    }
});
