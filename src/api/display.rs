//! Prints tensors as PyTorch does: four digits, columns of one width, and of a long dimension only its ends.

use crate::base::{DType, Device, Result, Scalar, default_dtype};
use crate::operator::bodies::conj_neg;
use crate::operator::primitives::copies::to_device;
use crate::operator::primitives::detached::shallow;
use crate::tensor::Tensor;
use std::fmt;

const LINE_WIDTH: usize = 80;
/// A tensor with more elements shows only the ends of its long dimensions.
const THRESHOLD: usize = 1000;
/// The elements that are shown at each end.
const EDGE: usize = 3;

impl fmt::Debug for Tensor {
    /// Tells what the tensor is. Unlike `Display` it does not wait for the elements, which may be on the GPU.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tensor")
            .field("shape", &self.shape().as_slice())
            .field("dtype", &self.dtype())
            .field("device", &self.device())
            .field("requires_grad", &self.requires_grad())
            .finish()
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAME: &str = "tensor(";
        // Printing cannot fail: elements that are out of reach are left out.
        let values = values(self, NAME.len()).unwrap_or_else(|_| "...".into());
        f.write_str(&with_notes(format!("{NAME}{values}"), &notes(self), NAME.len()))
    }
}

/// The remarks after the values: only what the values do not tell.
fn notes(t: &Tensor) -> Vec<String> {
    let (device, dtype, usual) = (t.device(), t.dtype(), default_dtype());
    let empty = t.numel() == 0 || device.is_meta();
    let mut notes = Vec::new();
    if !device.is_cpu() {
        notes.push(format!("device='{device}'"));
    }
    if device.is_meta() || (empty && t.ndim() != 1) {
        let sizes: Vec<String> = t.shape().iter().map(usize::to_string).collect();
        notes.push(format!("size=({}{})", sizes.join(", "), if sizes.len() == 1 { "," } else { "" }));
    }
    let is_usual =
        dtype == usual || (!empty && [usual.to_complex(), DType::I64, DType::Bool].contains(&dtype));
    if !is_usual {
        notes.push(format!("dtype=torch.{}", dtype.name()));
    }
    match t.history() {
        Some(edge) => {
            let name = edge.node.name();
            notes.push(format!("grad_fn=<{}>", name.rsplit("::").next().unwrap_or(&name)));
        }
        None if t.requires_grad() => notes.push("requires_grad=True".into()),
        None => {}
    }
    notes
}

fn with_notes(mut text: String, notes: &[String], indent: usize) -> String {
    // The two more are PyTorch's, which breaks lines where they would still fit.
    let mut column = text.len() - text.rfind('\n').map_or(0, |at| at + 1) + 2;
    for note in notes {
        if column + note.len() + 2 > LINE_WIDTH {
            text.push_str(&format!(",\n{:indent$}{note}", ""));
            column = indent + note.len();
        } else {
            text.push_str(&format!(", {note}"));
            column += note.len() + 2;
        }
    }
    text + ")"
}

/// The elements in nested brackets.
fn values(t: &Tensor, indent: usize) -> Result<String> {
    if t.device().is_meta() {
        return Ok("...".into());
    }
    if t.numel() == 0 {
        return Ok("[]".into());
    }
    let host = to_device(&shallow(t), Device::Cpu)?;
    let body = conj_neg::values(&host.body())?;
    let memory = body.host_of_any_dtype()?;
    let summarised = t.numel() > THRESHOLD;
    let gaps: Vec<bool> = body.shape().iter().map(|&n| summarised && n > 2 * EDGE).collect();
    let mut places = vec![0];
    let mut shape = Vec::new();
    for (dim, &n) in body.shape().iter().enumerate() {
        let shown: Vec<usize> =
            if gaps[dim] { (0..EDGE).chain(n - EDGE..n).collect() } else { (0..n).collect() };
        let stride = memory.strides[dim];
        places = places.iter().flat_map(|&at| shown.iter().map(move |i| at + i * stride)).collect();
        shape.push(shown.len());
    }
    let size = body.dtype.size();
    // SAFETY: the layout lies inside the storage, whose elements were written when the tensor was made.
    let read = |&place: &usize| unsafe { Scalar::read(body.dtype, memory.ptr.add(place * size)) };
    let (cells, width) = cells(&places.iter().map(read).collect::<Vec<_>>(), body.dtype);
    let mut page = Page { cells: cells.into_iter(), shape, gaps, width };
    Ok(if page.shape.is_empty() { page.cells.next().unwrap_or_default() } else { page.block(0, indent) })
}

/// The texts of elements, and the width of a column.
fn cells(values: &[Scalar], dtype: DType) -> (Vec<String>, usize) {
    let part = |of: fn(&Scalar) -> f64| values.iter().map(of).collect::<Vec<f64>>();
    if dtype.is_complex() {
        let (reals, real_width) = float_cells(&part(|x| x.as_f64()));
        let (imaginaries, width) = float_cells(&part(|x| x.imaginary()));
        let join = |(re, im): (String, String)| {
            let im = im.trim_start();
            format!("{re}{}{im}j", if im.starts_with('-') { "" } else { "+" })
        };
        return (reals.into_iter().zip(imaginaries).map(join).collect(), real_width + width + 1);
    }
    if dtype.is_float() {
        return float_cells(&part(|x| x.as_f64()));
    }
    let cell = |value: &Scalar| match value {
        Scalar::Bool(true) => "True".to_owned(),
        Scalar::Bool(false) => "False".to_owned(),
        other => other.as_i64().to_string(),
    };
    let cells: Vec<String> = values.iter().map(cell).collect();
    let width = cells.iter().map(String::len).max().unwrap_or(0);
    (cells.iter().map(|cell| format!("{cell:>width$}")).collect(), width)
}

/// Zeros, infinities and NaN have no say in the notation and the width.
fn float_cells(values: &[f64]) -> (Vec<String>, usize) {
    let telling: Vec<f64> = values.iter().copied().filter(|x| *x != 0.0 && x.is_finite()).collect();
    let (least, greatest) =
        telling.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), x| (low.min(x.abs()), high.max(x.abs())));
    let whole = telling.iter().all(|x| x.fract() == 0.0);
    let scientific = !telling.is_empty() && (greatest / least > 1e3 || greatest > 1e8 || least < 1e-4);
    let text = |x: f64| match x {
        x if x.is_nan() => "nan".to_owned(),
        x if x.is_infinite() => x.to_string(),
        x if scientific => in_scientific_notation(x),
        x if whole => format!("{x:.0}."),
        x => format!("{x:.4}"),
    };
    let width = telling.iter().map(|&x| text(x).len()).max().unwrap_or(0).max(1);
    (values.iter().map(|&x| format!("{:>width$}", text(x))).collect(), width)
}

/// Rust writes `1.5e-5`, and PyTorch `1.5000e-05`.
fn in_scientific_notation(x: f64) -> String {
    let text = format!("{x:.4e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    match exponent.strip_prefix('-') {
        Some(exponent) => format!("{digits}e-{exponent:0>2}"),
        None => format!("{digits}e+{exponent:0>2}"),
    }
}

/// Lays cells out in nested brackets, in the order of the elements.
struct Page {
    cells: std::vec::IntoIter<String>,
    shape: Vec<usize>,
    /// The dimensions of which only the ends are shown.
    gaps: Vec<bool>,
    width: usize,
}

impl Page {
    fn block(&mut self, dim: usize, indent: usize) -> String {
        let depth = self.shape.len() - dim;
        if depth == 1 {
            return self.row(indent);
        }
        let mut parts: Vec<String> = (0..self.shape[dim]).map(|_| self.block(dim + 1, indent + 1)).collect();
        if self.gaps[dim] {
            parts.insert(EDGE, "...".into());
        }
        let separator = format!(",{}{:2$}", "\n".repeat(depth - 1), "", indent + 1);
        format!("[{}]", parts.join(&separator))
    }

    fn row(&mut self, indent: usize) -> String {
        let last = self.shape.len() - 1;
        let mut cells: Vec<String> = self.cells.by_ref().take(self.shape[last]).collect();
        if self.gaps[last] {
            cells.insert(EDGE, " ...".into());
        }
        let in_a_line = (LINE_WIDTH.saturating_sub(indent) / (self.width + 2)).max(1);
        let lines: Vec<String> = cells.chunks(in_a_line).map(|line| line.join(", ")).collect();
        format!("[{}]", lines.join(&format!(",\n{:1$}", "", indent + 1)))
    }
}
