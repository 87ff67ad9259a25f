//! Recurrent layers, like `cpu::rnn`. A step is two launches: the matrix product of the states and their
//! weight, and one kernel for the gates. The product is written where the gates then store their saved
//! values.

use crate::base::kernel_args::recurrent::{Cell, RecurrentArgs};
use crate::base::{DType, Fault, Result};
use crate::gpu::device::gpu;
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::View;
use crate::gpu::kernels::matmul::matmul;
use crate::gpu::launch::index_space::{Words, check, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::stored::Stored;
use smallvec::SmallVec;

/// Runs a layer: `out`, `[total, units]`, receives the hidden states; the state operands end as the last
/// states.
pub fn recurrent(out: View<'_>, layer: &RecurrentArgs<'_, View<'_>>) -> Result<()> {
    let operands = [Some(layer.sums), layer.bias, Some(layer.kept), Some(layer.before), Some(layer.hidden)];
    let others = [Some(out), layer.cell_before, layer.cells];
    let operands: RecurrentViews<'_> = operands.into_iter().chain(others).flatten().collect();
    supported(&operands, layer.weight)?;
    let (n, cell) = (layer.units, layer.cell);
    let (width, kept) = (cell.gates() * n, cell.kept() * n);
    layer.steps.each(false, |start, size| {
        matmul(
            View { shape: &[size, width], strides: &[kept, 1], ..from_row(layer.kept, start, kept) },
            View { shape: &[size, n], ..layer.hidden },
            View { shape: &[n, width], strides: &[1, n], ..layer.weight },
            1.0,
            0.0,
        )?;
        launch(layer, false, layer.bias.is_some(), &operands, [start, size])
    })
}

/// The backward of a layer. The gradient of the input products goes to `sums`; that of the state products,
/// where it differs (GRU), to `other`. `hidden` and `cells` hold the gradients of the last states, and end
/// as those of the first. `g` is the gradient of all hidden states.
pub fn recurrent_backward(
    g: Option<View<'_>>,
    other: Option<View<'_>>,
    layer: &RecurrentArgs<'_, View<'_>>,
) -> Result<()> {
    let operands = [Some(layer.sums), Some(layer.kept), Some(layer.hidden), g];
    // Only a GRU's gates use the states before a step.
    let before = other.map(|_| layer.before);
    let operands: RecurrentViews<'_> =
        operands.into_iter().chain([other, before, layer.cell_before, layer.cells]).flatten().collect();
    supported(&operands, layer.weight)?;
    let (n, cell) = (layer.units, layer.cell);
    let width = cell.gates() * n;
    layer.steps.each(true, |start, size| {
        launch(layer, true, g.is_some(), &operands, [start, size])?;
        let from = other.unwrap_or(layer.sums);
        matmul(
            View { shape: &[size, n], ..layer.hidden },
            View { shape: &[size, width], ..from_row(from, start, width) },
            layer.weight,
            1.0,
            // A part of a GRU's state bypasses the gates.
            if other.is_some() { 1.0 } else { 0.0 },
        )
    })
}

type RecurrentViews<'a> = SmallVec<[View<'a>; 8]>;

fn from_row(view: View<'_>, row: usize, width: usize) -> View<'_> {
    View { offset: view.offset + row * width, ..view }
}

fn supported(operands: &[View<'_>], weight: View<'_>) -> Result<()> {
    let gpu = gpu()?;
    for view in operands.iter().chain([&weight]) {
        if !matches!(view.dtype, DType::F32 | DType::F64) || view.dtype != weight.dtype {
            return Err(Fault::NoShader { op: "rnn", dtype: view.dtype }.into());
        }
        gpu.supports("rnn", view.dtype)?;
        check(view)?;
    }
    Ok(())
}

/// Launches the gates of one step, one invocation per unit of a sample. `given` says whether the optional
/// operand exists.
fn launch(
    layer: &RecurrentArgs<'_, View<'_>>,
    backward: bool,
    given: bool,
    operands: &[View<'_>],
    [start, size]: [usize; 2],
) -> Result<()> {
    let gpu = gpu()?;
    let stored = Stored::of(layer.sums.dtype);
    let mut words: Words = [size * layer.units, layer.units, start].iter().map(|n| *n as u32).collect();
    words.extend(operands.iter().map(|view| view.offset as u32));
    let buffers: SmallVec<[&Buffer; 8]> = operands.iter().map(|view| view.buffer).collect();
    gpu.launch(
        &Gates { stored, cell: layer.cell, given, backward },
        &buffers,
        &words,
        groups(size * layer.units, GROUP),
    )
}

/// The gates of one step of a cell. `given`: whether there is a bias (forward) or a gradient of the outputs (backward).
#[derive(Hash)]
struct Gates {
    stored: Stored,
    cell: Cell,
    given: bool,
    backward: bool,
}

impl ShaderKind for Gates {
    fn name(&self) -> &'static str {
        if self.backward { "rnn_backward" } else { "rnn" }
    }

    fn shader(&self) -> Shader {
        let shader = if self.backward { backward } else { forward };
        shader(self.stored, self.cell, self.given)
    }
}

/// Writes a kernel over `operands`, each with whether it is written; `NAME_at` is the position of the
/// invocation's first number.
fn kernel(stored: Stored, operands: &[(&str, bool, OperandRows)], body: &str) -> Shader {
    let mut code = Code::new(stored.value());
    for (name, write, _) in operands {
        code.operand(name, stored, *write, false);
    }
    code.main_by_item();
    let [count, n, start] = [(); 3].map(|()| code.word());
    code.push(&format!(
        "  if (i >= {count}) {{ return; }}\n  let n = {n};\n  let unit = i % n;\n  let row = i / n;\n  let packed = {start} + row;\n"
    ));
    for (name, _, rows) in operands {
        let offset = code.word();
        let place = match rows {
            OperandRows::Packed(width) => format!("packed * {width}u * n + "),
            OperandRows::Samples => "row * n + ".to_owned(),
            OperandRows::One => String::new(),
        };
        code.push(&format!("  let {name}_at = {offset} + {place}unit;\n"));
    }
    code.push(body);
    code.push("}\n");
    code.finish()
}

/// The rows of an operand: those of all steps, with this many numbers per unit; one per sample; or one for
/// all.
#[derive(Clone, Copy)]
enum OperandRows {
    Packed(usize),
    Samples,
    One,
}

fn forward(stored: Stored, of: Cell, bias: bool) -> Shader {
    let mut operands = vec![("s", false, OperandRows::Packed(of.gates()))];
    if bias {
        operands.push(("b", false, OperandRows::One));
    }
    operands.extend([
        ("k", true, OperandRows::Packed(of.kept())),
        ("before", true, OperandRows::Packed(1)),
        ("h", true, OperandRows::Samples),
        ("o", true, OperandRows::Packed(1)),
    ]);
    if of == Cell::Lstm {
        operands.extend([("cell_before", true, OperandRows::Packed(1)), ("c", true, OperandRows::Samples)]);
    }
    let mut body = String::from("  let state = h_get(h_at);\n  before_set(before_at, state);\n");
    for gate in 0..of.gates() {
        let with = if bias { format!(" + b_get(b_at + {gate}u * n)") } else { String::new() };
        body += &format!("  let own{gate} = k_get(k_at + {gate}u * n){with};\n");
        body += &format!("  let in{gate} = s_get(s_at + {gate}u * n);\n");
    }
    body += match of {
        Cell::Lstm => {
            "  let a = sigmoid(in0 + own0);
  let f = sigmoid(in1 + own1);
  let g = tanh(in2 + own2);
  let y = sigmoid(in3 + own3);
  let old = c_get(c_at);
  let now = f * old + a * g;
  k_set(k_at, a);
  k_set(k_at + n, f);
  k_set(k_at + 2u * n, g);
  k_set(k_at + 3u * n, y);
  cell_before_set(cell_before_at, old);
  c_set(c_at, now);
  let made = y * tanh(now);
"
        }
        Cell::Gru => {
            "  let r = sigmoid(in0 + own0);
  let z = sigmoid(in1 + own1);
  let g = tanh(in2 + r * own2);
  k_set(k_at, r);
  k_set(k_at + n, z);
  k_set(k_at + 2u * n, g);
  k_set(k_at + 3u * n, own2);
  let made = (state - g) * z + g;
"
        }
        // A NaN remains NaN.
        Cell::Relu => {
            "  let sum = in0 + own0;\n  let made = select(sum, T(0), sum <= T(0));\n  k_set(k_at, made);\n"
        }
        Cell::Tanh => "  let made = tanh(in0 + own0);\n  k_set(k_at, made);\n",
    };
    body += "  h_set(h_at, made);\n  o_set(o_at, made);\n";
    kernel(stored, &operands, &body)
}

fn backward(stored: Stored, of: Cell, outputs: bool) -> Shader {
    let mut operands = vec![
        ("s", true, OperandRows::Packed(of.gates())),
        ("k", false, OperandRows::Packed(of.kept())),
        // Otherwise the product overwrites all of it.
        ("h", of == Cell::Gru, OperandRows::Samples),
    ];
    if outputs {
        operands.push(("g", false, OperandRows::Packed(1)));
    }
    match of {
        Cell::Gru => {
            operands
                .extend([("other", true, OperandRows::Packed(3)), ("before", false, OperandRows::Packed(1))]);
        }
        Cell::Lstm => {
            operands
                .extend([("cell_before", false, OperandRows::Packed(1)), ("c", true, OperandRows::Samples)]);
        }
        _ => (),
    }
    let mut body = String::from("  let one = T(1);\n  let dh = h_get(h_at)");
    body += if outputs { " + g_get(g_at);\n" } else { ";\n" };
    for gate in 0..of.kept() {
        body += &format!("  let k{gate} = k_get(k_at + {gate}u * n);\n");
    }
    body += match of {
        Cell::Lstm => {
            "  let old = cell_before_get(cell_before_at);
  let t = tanh(k1 * old + k0 * k2);
  let dc = c_get(c_at) + dh * k3 * (one - t * t);
  s_set(s_at, dc * k2 * k0 * (one - k0));
  s_set(s_at + n, dc * old * k1 * (one - k1));
  s_set(s_at + 2u * n, dc * k0 * (one - k2 * k2));
  s_set(s_at + 3u * n, dh * t * k3 * (one - k3));
  c_set(c_at, dc * k1);
"
        }
        Cell::Gru => {
            "  let of_new = dh * (one - k1) * (one - k2 * k2);
  let of_reset = of_new * k3 * k0 * (one - k0);
  let of_update = dh * (before_get(before_at) - k2) * k1 * (one - k1);
  s_set(s_at, of_reset);
  s_set(s_at + n, of_update);
  s_set(s_at + 2u * n, of_new);
  other_set(other_at, of_reset);
  other_set(other_at + n, of_update);
  other_set(other_at + 2u * n, of_new * k0);
  h_set(h_at, dh * k1);
"
        }
        Cell::Relu => "  s_set(s_at, select(T(0), dh, k0 > T(0)));\n",
        Cell::Tanh => "  s_set(s_at, dh * (one - k0 * k0));\n",
    };
    kernel(stored, &operands, &body)
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(Gates, |check| {
    for stored in [Stored::F32, Stored::F64] {
        for cell in [Cell::Tanh, Cell::Relu, Cell::Lstm, Cell::Gru] {
            for (given, backward) in [(false, false), (false, true), (true, false), (true, true)] {
                check(&Gates { stored, cell, given, backward });
            }
        }
    }
});
