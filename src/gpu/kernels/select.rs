//! Operators whose result size depends on the data: the positions of non-zero elements, and the elements
//! there. Only the count is read back.

use crate::base::{DType, Error, Result, contiguous_strides};
use crate::gpu::device::memory::Buffer;
use crate::gpu::device::memory::alloc;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::{Source, View};
use crate::gpu::device::{Gpu, gpu};
use crate::gpu::kernels::pointwise::{PointwiseMap, run};
use crate::gpu::kernels::scan::{Scan, scan};
use crate::gpu::kernels::transfer::download;
use crate::gpu::launch::index_space::{Words, check, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::stored::{Stored, Value};

/// The coordinates of all non-zero elements in row-major order, int64, `count` by `ndim`; and the count.
pub fn nonzero(x: View<'_>) -> Result<(Buffer, usize)> {
    let gpu = gpu()?;
    let Some((running, count)) = rank(gpu, x)? else { return Ok((alloc(0)?, 0)) };
    let rank = x.shape.len();
    let out = alloc(count * rank * 8)?;
    if count > 0 && rank > 0 {
        let mut words = Words::from_slice(&[x.numel() as u32]);
        words.extend(x.shape.iter().map(|&n| n as u32));
        launch(gpu, &NonzeroKind { rank }, &[&out, &running], &words, x.numel())?;
    }
    Ok((out, count))
}

/// The elements of `x` where `mask` (of the same shape) is true, in order; and their count.
pub fn masked_select(x: View<'_>, mask: View<'_>) -> Result<(Buffer, usize)> {
    let gpu = gpu()?;
    check(&x)?;
    if x.shape != mask.shape {
        return Err(Error::runtime("masked_select: the mask must have the shape of the input"));
    }
    let Some((running, count)) = rank(gpu, mask)? else { return Ok((alloc(0)?, 0)) };
    let out = alloc(count * x.dtype.size())?;
    if count > 0 {
        let rank = x.shape.len();
        let mut words = Words::from_slice(&[x.numel() as u32]);
        words.extend(x.shape.iter().chain(x.strides).map(|&n| n as u32));
        words.push(x.offset as u32);
        let stored = Stored::bits(x.dtype);
        launch(gpu, &MaskedSelectKind { rank, stored }, &[&out, &running, x.buffer], &words, x.numel())?;
    }
    Ok((out, count))
}

/// For each element the number of non-zero elements up to it, and their total; None for an empty input.
fn rank(gpu: &Gpu, x: View<'_>) -> Result<Option<(Buffer, usize)>> {
    let n = x.numel();
    if n == 0 {
        return Ok(None);
    }
    let running = alloc(4 * n)?;
    let strides = contiguous_strides(x.shape);
    let marks = View { buffer: &running, dtype: DType::I32, shape: x.shape, strides: &strides, offset: 0 };
    let value = Stored::of(x.dtype).value();
    let body = || "return truth(x_);".to_owned();
    let map = PointwiseMap {
        family: "pointwise",
        name: "nonzero_marks",
        inputs: &["x"],
        body: &body,
        compute: value,
        result: Value::Bool,
        words: &[],
        bits: false,
    };
    run(gpu, &map, marks, Stored::I32, &[Source::View(x)])?;
    let flat = [n];
    let line = View { shape: &flat, strides: &[1], ..marks };
    scan(Scan::Sum, line, line, 0)?;
    let mut last = [0; 4];
    download(&running, 4 * (n - 1), &mut last)?;
    Ok(Some((running, u32::from_le_bytes(last) as usize)))
}

fn launch(gpu: &Gpu, kind: &impl ShaderKind, buffers: &[&Buffer], words: &Words, n: usize) -> Result<()> {
    gpu.launch(kind, buffers, words, groups(n, GROUP))
}

/// Defines `to`, the rank of element `i` among the non-zero ones, and its coordinates `c0`...; invocations
/// of zero elements return.
fn find(code: &mut Code, rank: usize) -> Vec<String> {
    code.main_by_item();
    let n = code.word();
    code.push(&format!(
        "  if (i >= {n}) {{ return; }}\n  let here = running[i];\n  var before = 0;\n  \
         if (i > 0u) {{ before = running[i - 1u]; }}\n  if (here == before) {{ return; }}\n  let to = u32(before);\n"
    ));
    let shape = code.words(rank);
    if rank > 0 {
        code.push(&Code::split("i", "c", &shape[1..]));
    }
    shape
}

/// Writes the coordinates of the elements that are not zero.
#[derive(Hash)]
struct NonzeroKind {
    rank: usize,
}

impl ShaderKind for NonzeroKind {
    fn name(&self) -> &'static str {
        "nonzero"
    }

    fn shader(&self) -> Shader {
        let rank = self.rank;
        let mut code = Code::new(Value::I32);
        code.bind("o", "vec2<u32>", true);
        code.bind("running", "i32", false);
        find(&mut code, rank);
        for d in 0..rank {
            code.push(&format!("  o[to * {rank}u + {d}u] = vec2<u32>(c{d}, 0u);\n"));
        }
        code.push("}\n");
        code.finish()
    }
}

/// Copies the elements at which a mask is true.
#[derive(Hash)]
struct MaskedSelectKind {
    rank: usize,
    stored: Stored,
}

impl ShaderKind for MaskedSelectKind {
    fn name(&self) -> &'static str {
        "masked_select"
    }

    fn shader(&self) -> Shader {
        let MaskedSelectKind { rank, stored } = *self;
        let mut code = Code::new(Value::I32);
        code.operand("o", stored, true, false);
        code.bind("running", "i32", false);
        code.operand("x", stored, false, false);
        find(&mut code, rank);
        let strides = code.words(rank);
        let offset = code.word();
        let place = if rank == 0 { offset } else { format!("{offset} + {}", Code::dot("c", &strides)) };
        code.push(&format!("  o_set(to, x_get({place}));\n}}\n"));
        code.finish()
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(NonzeroKind, |check| {
    [0, 1, 3, 20].iter().for_each(|&rank| check(&NonzeroKind { rank }));
});

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(MaskedSelectKind, |check| {
    for rank in [0, 1, 3, 20] {
        for stored in [Stored::U8, Stored::I16, Stored::I32, Stored::Bits64] {
            check(&MaskedSelectKind { rank, stored });
        }
    }
});
