//! Unfolds images to columns, `[taps of all channels, positions]`: the element under each tap of the window
//! at each position. And folds them back: each element becomes the sum of its copies, in a fixed order.

use crate::base::{Error, Result, Windows};
use crate::gpu::device::gpu;
use crate::gpu::device::pipeline::ShaderKind;
use crate::gpu::device::view::View;
use crate::gpu::launch::index_space::{Words, check, groups};
use crate::gpu::shader::code::{Code, GROUP, Shader};
use crate::gpu::shader::stored::Stored;

/// Unfolds images `[sample, channel, …]`. `columns` is `[sample, channel * tap, position]`, with any
/// strides.
pub fn unfold(windows: &Windows, columns: View<'_>, images: View<'_>) -> Result<()> {
    run(windows, columns, images, false)
}

/// Folds columns: each element of the images becomes the sum of its copies.
pub fn fold(windows: &Windows, images: View<'_>, columns: View<'_>) -> Result<()> {
    run(windows, columns, images, true)
}

fn run(windows: &Windows, columns: View<'_>, images: View<'_>, back: bool) -> Result<()> {
    let gpu = gpu()?;
    for view in [&columns, &images] {
        check(view)?;
        gpu.supports(if back { "col2im" } else { "im2col" }, view.dtype)?;
    }
    let (shape, missing) = (images.shape, 5 - images.shape.len());
    let &[samples, rows, positions] = columns.shape else {
        return Err(Error::runtime("the columns must have three dimensions"));
    };
    let channels = shape[1];
    let fits = samples == shape[0]
        && rows == channels * windows.kernel_numel()
        && positions == windows.positions()
        && (0..3).all(|d| windows.image[d] == if d < missing { 1 } else { shape[2 + d - missing] })
        && columns.dtype == images.dtype;
    if !fits {
        return Err(Error::runtime(format!(
            "columns of shape {:?} do not fit images of shape {shape:?}",
            columns.shape
        )));
    }
    // An invocation takes one tap at `SHARE` positions, `apart` from one another.
    let apart = positions.div_ceil(SHARE);
    let count = if back { images.numel() } else { samples * rows * apart };
    if count == 0 {
        return Ok(());
    }
    let mut words = Words::new();
    words.extend([count, channels].map(|n| n as u32));
    for sizes in
        [windows.image, windows.kernel, windows.result, windows.stride, windows.padding, windows.dilation]
    {
        words.extend(sizes.map(|n| n as u32));
    }
    words.push(columns.offset as u32);
    words.extend(columns.strides.iter().map(|&s| s as u32));
    words.push(images.offset as u32);
    words.extend(images.strides[..2].iter().map(|&s| s as u32));
    words.extend([0, 1, 2].map(|d| if d < missing { 0 } else { images.strides[2 + d - missing] as u32 }));
    let shared = columns.buffer.same(images.buffer);
    let kind = UnfoldKind { stored: Stored::of(columns.dtype), back, shared };
    let buffers = if back { [images.buffer, columns.buffer] } else { [columns.buffer, images.buffer] };
    gpu.launch(&kind, &buffers, &words, groups(count, GROUP))
}

/// The number of positions per invocation: finding the tap takes many divisions.
const SHARE: usize = 4;

#[derive(Hash)]
struct UnfoldKind {
    stored: Stored,
    back: bool,
    shared: bool,
}

impl ShaderKind for UnfoldKind {
    fn name(&self) -> &'static str {
        if self.back { "fold" } else { "unfold" }
    }

    fn shader(&self) -> Shader {
        let value = self.stored.value();
        let mut code = Code::new(value);
        code.operand("o", self.stored, true, false);
        code.operand("x", self.stored, false, self.shared);
        code.push(
            "fn split(p: i32, size: vec3<i32>) -> vec3<i32> {\n  \
             return vec3<i32>(p / (size.y * size.z), p / size.z % size.y, p % size.z);\n}\n",
        );
        code.main_by_item();
        let [count, channels] = [(); 2].map(|()| code.word());
        code.push(&format!("  if (i >= {count}) {{ return; }}\n"));
        for name in ["image", "kernel", "result", "stride", "padding", "dilation"] {
            let [d, h, w] = [(); 3].map(|()| code.word());
            code.push(&format!("  let {name} = vec3<i32>(vec3<u32>({d}, {h}, {w}));\n"));
        }
        let columns: Vec<String> = code.words(4);
        let images: Vec<String> = code.words(6);
        let column = |n: &str, row: &str, at: &str| {
            format!("{} + {n} * {} + {row} * {} + {at} * {}", columns[0], columns[1], columns[2], columns[3])
        };
        let element = |n: &str, c: &str, at: &str| {
            format!(
                "{} + {n} * {} + {c} * {} + u32({at}.x) * {} + u32({at}.y) * {} + u32({at}.z) * {}",
                images[0], images[1], images[2], images[3], images[4], images[5]
            )
        };
        code.push("  let taps = u32(kernel.x * kernel.y * kernel.z);\n");
        if self.back {
            let sum = value.convert_to_stored(self.stored, "sum");
            code.push(&format!(
                "  var rest = i;\n  var at = vec3<i32>(0);\n  at.z = i32(rest % u32(image.z));\n  rest /= u32(image.z);\n  \
                 at.y = i32(rest % u32(image.y));\n  rest /= u32(image.y);\n  at.x = i32(rest % u32(image.x));\n  \
                 rest /= u32(image.x);\n  let c = rest % {channels};\n  let n = rest / {channels};\n  var sum = T(0);\n  \
                 for (var x = 0; x < kernel.x; x++) {{\n    let d = at.x + padding.x - x * dilation.x;\n    \
                 let to_d = d / stride.x;\n    if (d < 0 || to_d * stride.x != d || to_d >= result.x) {{ continue; }}\n    \
                 for (var y = 0; y < kernel.y; y++) {{\n      let h = at.y + padding.y - y * dilation.y;\n      \
                 let to_h = h / stride.y;\n      if (h < 0 || to_h * stride.y != h || to_h >= result.y) {{ continue; }}\n      \
                 for (var z = 0; z < kernel.z; z++) {{\n        let w = at.z + padding.z - z * dilation.z;\n        \
                 let to_w = w / stride.z;\n        if (w < 0 || to_w * stride.z != w || to_w >= result.z) {{ continue; }}\n        \
                 let p = u32((to_d * result.y + to_h) * result.z + to_w);\n        \
                 let row = c * taps + u32((x * kernel.y + y) * kernel.z + z);\n        sum += x_get({});\n      }}\n    }}\n  }}\n  \
                 o_set({}, {sum});\n}}\n",
                column("n", "row", "p"),
                element("n", "c", "at"),
            ));
        } else {
            let found = value.convert_to_stored(self.stored, "found");
            code.push(&format!(
                "  let positions = u32(result.x * result.y * result.z);\n  let apart = (positions + {SHARE}u - 1u) / {SHARE}u;\n  \
                 var p = i % apart;\n  let rest = i / apart;\n  let rows = taps * {channels};\n  let row = rest % rows;\n  \
                 let n = rest / rows;\n  let c = row / taps;\n  let k = i32(row % taps);\n  \
                 let tap = split(k, kernel) * dilation - padding;\n  \
                 var place = split(i32(p), result);\n  let far = split(i32(apart), result);\n  \
                 for (var turn = 0u; turn < {SHARE}u; turn++) {{\n    if (p >= positions) {{ return; }}\n    \
                 let at = place * stride + tap;\n    var found = T(0);\n    \
                 if (all(at >= vec3<i32>(0)) && all(at < image)) {{ found = x_get({}); }}\n    o_set({}, {found});\n    \
                 p += apart;\n    place += far;\n    if (place.z >= result.z) {{ place.z -= result.z; place.y++; }}\n    \
                 if (place.y >= result.y) {{ place.y -= result.y; place.x++; }}\n  }}\n}}\n",
                element("n", "c", "at"),
                column("n", "row", "p"),
            ));
        }
        code.finish()
    }
}

#[cfg(test)]
crate::gpu::shader::samples::shader_samples!(UnfoldKind, |check| {
    for stored in [Stored::Bool, Stored::F16, Stored::I32, Stored::F32, Stored::I64, Stored::F64] {
        for back in [false, true] {
            check(&UnfoldKind { stored, back, shared: back });
        }
    }
});
