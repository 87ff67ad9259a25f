//! Connectionist temporal classification, like `cpu::ctc`. One workgroup per batch entry walks the steps:
//! forwards for `alpha`, the probability of reaching each place, backwards for `beta`, the probability of
//! what follows it. Then one invocation per element computes the gradient.

use crate::base::{Alignments, DType, Fault, Result, try_alloc};
use crate::gpu::device::gpu;
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::memory::alloc;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::View;
use crate::gpu::kernels::resample::uploaded;
use crate::gpu::launch::index_space::{Words, check, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::stored::Stored;

/// The label at a place (places alternate between blanks and labels), and the logarithm of a sum of
/// exponentials.
const PLACES: &str = "
fn label(start: u32, place: u32, blank: u32) -> u32 {
  if (place % 2u == 0u) { return blank; }
  return labels[start + place / 2u].x;
}
fn skips(start: u32, place: u32, blank: u32) -> bool {
  return place >= 2u && label(start, place, blank) != label(start, place - 2u, blank);
}
fn together(a: T, b: T, c: T) -> T {
  let top = fmax(a, fmax(b, c));
  if (top == -inf()) { return top; }
  return log(exp(a - top) + exp(b - top) + exp(c - top)) + top;
}
";

/// The negative log likelihood of each batch entry, and `alpha` in logarithms; all contiguous.
pub fn ctc(
    of: &Alignments,
    loss: View<'_>,
    alpha: View<'_>,
    log_probs: View<'_>,
    targets: View<'_>,
) -> Result<()> {
    let tables = Tables::new(of, &[loss, alpha, log_probs], targets)?;
    walk(of, &tables, Some(loss), alpha, log_probs)
}

/// The gradient of the log probabilities. `ins` holds the gradient of the losses, the losses, `alpha` and
/// the log probabilities.
pub fn ctc_backward(of: &Alignments, out: View<'_>, ins: [View<'_>; 4], targets: View<'_>) -> Result<()> {
    let [grad, loss, alpha, log_probs] = ins;
    let tables = Tables::new(of, &[out, grad, loss, alpha, log_probs], targets)?;
    let buffer = alloc(alpha.numel() * alpha.dtype.size())?;
    let beta = View { buffer: &buffer, offset: 0, ..alpha };
    walk(of, &tables, None, beta, log_probs)?;
    let gpu = gpu()?;
    let stored = Stored::of(out.dtype);
    let views = [out, grad, loss, alpha, beta, log_probs];
    let mut words = tables.words(of);
    words.push(u32::from(of.zero_infinity));
    words.extend(views.iter().map(|view| view.offset as u32));
    let mut buffers: Vec<&Buffer> = views.iter().map(|view| view.buffer).collect();
    buffers.extend(tables.buffers());
    gpu.launch(&CtcGradient { stored }, &buffers, &words, groups(out.numel(), GROUP))
}

/// The labels, the lengths of inputs and labels, and the offset of each entry's labels.
struct Tables<'a> {
    targets: View<'a>,
    none: Option<Buffer>,
    lengths: Buffer,
}

impl<'a> Tables<'a> {
    fn new(of: &Alignments, views: &[View<'_>], targets: View<'a>) -> Result<Tables<'a>> {
        let gpu = gpu()?;
        for view in views {
            if !matches!(view.dtype, DType::F32 | DType::F64) || view.dtype != views[0].dtype {
                return Err(Fault::NoShader { op: "ctc_loss", dtype: view.dtype }.into());
            }
            gpu.supports("ctc_loss", view.dtype)?;
            check(view)?;
        }
        check(&targets)?;
        let lists = [&of.input_lengths, &of.target_lengths, &of.starts];
        let numbers = try_alloc::all(lists.iter().flat_map(|list| list.iter().map(|n| *n as u32)))?;
        // A binding needs at least one element.
        let none = (targets.numel() == 0).then(|| alloc(8)).transpose()?;
        Ok(Tables { targets, none, lengths: uploaded(bytemuck::cast_slice(&numbers))? })
    }

    fn buffers(&self) -> [&Buffer; 2] {
        [self.none.as_ref().unwrap_or(self.targets.buffer), &self.lengths]
    }

    fn words(&self, of: &Alignments) -> Words {
        let sizes = [of.samples, of.steps, of.classes, of.places, of.blank, self.targets.offset];
        sizes.iter().map(|n| *n as u32).collect()
    }
}

/// The names of the first parameter words, which all kernels of this module share.
struct Names {
    samples: String,
    steps: String,
    classes: String,
    places: String,
    blank: String,
    labels: String,
}

impl Names {
    fn bind(code: &mut Code) {
        code.bind("labels", "vec2<u32>", false);
        code.operand("lengths", Stored::I32, false, false);
        code.push(PLACES);
    }

    fn read(code: &mut Code) -> Names {
        let [samples, steps, classes, places, blank, labels] = [(); 6].map(|()| code.word());
        Names { samples, steps, classes, places, blank, labels }
    }

    /// Defines the lengths of batch entry `row`, the offset of its labels and its number of places.
    fn sample(&self, code: &mut Code, row: &str) {
        let Names { samples, labels, .. } = self;
        code.push(&format!(
            "  let own = u32(lengths_get({row}));
  let length = u32(lengths_get({samples} + {row}));
  let start = {labels} + u32(lengths_get(2u * {samples} + {row}));
  let end = 2u * length + 1u;
"
        ));
    }
}

/// Fills a table `[batch, step, place]`: forwards with `alpha`, and the losses; or backwards with `beta`.
fn walk(
    of: &Alignments,
    tables: &Tables<'_>,
    loss: Option<View<'_>>,
    table: View<'_>,
    log_probs: View<'_>,
) -> Result<()> {
    let gpu = gpu()?;
    let stored = Stored::of(table.dtype);
    let mut words = tables.words(of);
    words.extend([table.offset as u32, log_probs.offset as u32]);
    let mut buffers = vec![table.buffer, log_probs.buffer];
    if let Some(loss) = loss {
        words.push(loss.offset as u32);
        buffers.push(loss.buffer);
    }
    buffers.extend(tables.buffers());
    let forwards = loss.is_some();
    gpu.launch(&CtcWalk { stored, forwards }, &buffers, &words, groups(of.samples, 1))
}

/// Fills the table of one direction, a workgroup a sequence.
#[derive(Hash)]
struct CtcWalk {
    stored: Stored,
    forwards: bool,
}

impl ShaderKind for CtcWalk {
    fn name(&self) -> &'static str {
        "ctc_loss"
    }

    fn shader(&self) -> Shader {
        let CtcWalk { stored, forwards } = *self;
        let mut code = Code::new(stored.value());
        code.operand("a", stored, true, false);
        code.operand("p", stored, false, false);
        if forwards {
            code.operand("loss", stored, true, false);
        }
        Names::bind(&mut code);
        code.main_by_group();
        let names = Names::read(&mut code);
        let (table, from) = (code.word(), code.word());
        let Names { samples, steps, classes, places, blank, .. } = &names;
        code.push(&format!("  if (row >= {samples}) {{ return; }}\n"));
        names.sample(&mut code, "row");
        let p = |step: &str, place: &str| {
            format!("p_get({from} + ({step} * {samples} + row) * {classes} + label(start, {place}, {blank}))")
        };
        // Steps that a sample does not have lead nowhere.
        code.push(&format!(
            "  let table = {table} + row * {steps} * {places};
  for (var k = me; k < {steps} * {places}; k += {GROUP}u) {{ a_set(table + k, -inf()); }}
  storageBarrier();
  workgroupBarrier();
  for (var k = 0u; k < {steps}; k++) {{
"
        ));
        let body = if forwards {
            format!(
                "    let step = k;
    let now = table + step * {places};
    if (step < own) {{
      for (var s = me; s < end; s += {GROUP}u) {{
        var seen = -inf();
        if (step == 0u) {{
          if (s < 2u) {{ seen = T(0); }}
        }} else {{
          let before = now - {places} + s;
          var one = -inf();
          var two = -inf();
          if (s >= 1u) {{ one = a_get(before - 1u); }}
          if (skips(start, s, {blank})) {{ two = a_get(before - 2u); }}
          seen = together(a_get(before), one, two);
        }}
        a_set(now + s, seen + {p});
      }}
    }}
",
                p = p("step", "s")
            )
        } else {
            format!(
                "    let step = {steps} - 1u - k;
    let now = table + step * {places};
    if (step < own) {{
      for (var s = me; s < end; s += {GROUP}u) {{
        var seen = -inf();
        if (step + 1u == own) {{
          if (s + 2u >= end) {{ seen = T(0); }}
        }} else {{
          let next = now + {places} + s;
          var one = -inf();
          var two = -inf();
          if (s + 1u < end) {{ one = a_get(next + 1u); }}
          if (s + 2u < end) {{ if (skips(start, s + 2u, {blank})) {{ two = a_get(next + 2u); }} }}
          seen = together(a_get(next), one, two);
        }}
        a_set(now + s, seen + {p});
      }}
    }}
",
                p = p("step", "s")
            )
        };
        code.push(&body);
        code.push("    storageBarrier();\n    workgroupBarrier();\n  }\n");
        if forwards {
            let loss = code.word();
            code.push(&format!(
                "  if (me == 0u) {{
    if (own == 0u) {{
      var none = inf();
      if (length == 0u) {{ none = T(0); }}
      loss_set({loss} + row, none);
    }} else {{
      let last = table + (own - 1u) * {places} + end;
      var other = -inf();
      if (length > 0u) {{ other = a_get(last - 2u); }}
      loss_set({loss} + row, -together(a_get(last - 1u), other, -inf()));
    }}
  }}
"
            ));
        }
        code.push("}\n");
        code.finish()
    }
}

/// The gradient with respect to the log-probabilities.
#[derive(Hash)]
struct CtcGradient {
    stored: Stored,
}

impl ShaderKind for CtcGradient {
    fn name(&self) -> &'static str {
        "ctc_loss_backward"
    }

    fn shader(&self) -> Shader {
        let stored = self.stored;
        let mut code = Code::new(stored.value());
        code.operand("o", stored, true, false);
        for name in ["g", "loss", "a", "b", "p"] {
            code.operand(name, stored, false, false);
        }
        Names::bind(&mut code);
        code.main_by_item();
        let names = Names::read(&mut code);
        let zero_infinity = code.word();
        let [o, g, loss, a, b, p] = [(); 6].map(|()| code.word());
        let Names { samples, steps, classes, places, blank, .. } = &names;
        code.push(&format!(
            "  if (i >= {steps} * {samples} * {classes}) {{ return; }}
  let class_of = i % {classes};
  let row = (i / {classes}) % {samples};
  let step = i / ({classes} * {samples});
"
        ));
        names.sample(&mut code, "row");
        code.push(&format!(
            "  let minus = loss_get({loss} + row);
  if (step >= own || ({zero_infinity} > 0u && minus == inf())) {{ o_set({o} + i, T(0)); return; }}
  let now = (row * {steps} + step) * {places};
  var met = -inf();
  for (var s = 0u; s < end; s++) {{
    if (label(start, s, {blank}) == class_of) {{
      met = together(met, a_get({a} + now + s) + b_get({b} + now + s), -inf());
    }}
  }}
  let own_p = p_get({p} + i);
  o_set({o} + i, (exp(own_p) - exp(met + minus - own_p)) * g_get({g} + row));
}}
"
        ));
        code.finish()
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(CtcWalk, |check| {
    for stored in [Stored::F32, Stored::F64] {
        check(&CtcWalk { stored, forwards: true });
        check(&CtcWalk { stored, forwards: false });
    }
});

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(CtcGradient, |check| {
    [Stored::F32, Stored::F64].iter().for_each(|&stored| check(&CtcGradient { stored }));
});
