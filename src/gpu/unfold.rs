//! Images as columns: `[taps of all channels, positions]`, what each tap of a window meets at each position; and back, where
//! an element is the sum of what was taken from it, in a fixed order.

use super::View;
use super::code::{Code, GROUP, Shader};
use super::device::gpu;
use super::index_space::{Words, check, groups};
use super::pipeline::Key;
use super::stored::Stored;
use super::stream::Launch;
use crate::base::{Error, Result, Windows};

/// Columns of images `[sample, channel, …]`. `columns` is `[sample, channel * tap, position]`, in any order of memory.
pub fn unfold(windows: &Windows, columns: View<'_>, images: View<'_>) -> Result<()> {
    run(windows, columns, images, false)
}

/// The images whose elements are the sums of their places in columns.
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
        return Err(Error::runtime("columns have three dimensions"));
    };
    let channels = shape[1];
    let fits = samples == shape[0]
        && rows == channels * windows.kernel_numel()
        && positions == windows.positions()
        && (0..3).all(|d| windows.image[d] == if d < missing { 1 } else { shape[2 + d - missing] })
        && columns.dtype == images.dtype;
    if !fits {
        return Err(Error::runtime(format!(
            "columns of shape {:?} for images of shape {shape:?}",
            columns.shape
        )));
    }
    let count = if back { images.numel() } else { columns.numel() };
    if count == 0 {
        return Ok(());
    }
    let mut words = Words::new();
    words.extend([count, channels, positions].map(|n| n as u32));
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
    let kind = Kind { stored: Stored::of(columns.dtype), back, shared };
    let kernel = gpu.kernel(&kind.key(), || Ok(kind.shader()))?;
    let buffers = if back { [images.buffer, columns.buffer] } else { [columns.buffer, images.buffer] };
    let groups = groups(count, GROUP);
    gpu.stream()
        .launch(gpu, &Launch { kernel: &kernel, buffers: &buffers, words: &words, groups, flags: false })
}

struct Kind {
    stored: Stored,
    back: bool,
    shared: bool,
}

impl Kind {
    fn key(&self) -> Key {
        Key::new("unfold", if self.back { "fold" } else { "unfold" })
            .with(self.stored as u8)
            .with(u8::from(self.shared))
    }

    fn shader(&self) -> Shader {
        let value = self.stored.value();
        let mut code = Code::new(3 + 18 + 4 + 6, value);
        code.operand("o", self.stored, true, false);
        code.operand("x", self.stored, false, self.shared);
        code.main_by_item();
        let [count, channels, positions] = [(); 3].map(|()| code.word());
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
                 var tap = vec3<i32>(0);\n  var row = c * taps;\n  \
                 for (tap.x = 0; tap.x < kernel.x; tap.x++) {{\n  for (tap.y = 0; tap.y < kernel.y; tap.y++) {{\n  \
                 for (tap.z = 0; tap.z < kernel.z; tap.z++) {{\n    \
                 let moved = at + padding - tap * dilation;\n    let to = moved / stride;\n    \
                 if (all(moved >= vec3<i32>(0)) && all(to * stride == moved) && all(to < result)) {{\n      \
                 let p = u32((to.x * result.y + to.y) * result.z + to.z);\n      sum += x_get({});\n    }}\n    \
                 row++;\n  }}\n  }}\n  }}\n  o_set({}, {sum});\n}}\n",
                column("n", "row", "p"),
                element("n", "c", "at"),
            ));
        } else {
            let found = value.convert_to_stored(self.stored, "found");
            code.push(&format!(
                "  let p = i32(i % {positions});\n  var rest = i / {positions};\n  let rows = taps * {channels};\n  \
                 let row = rest % rows;\n  let n = rest / rows;\n  let c = row / taps;\n  let k = i32(row % taps);\n  \
                 let tap = vec3<i32>(k / (kernel.y * kernel.z), k / kernel.z % kernel.y, k % kernel.z);\n  \
                 let at = vec3<i32>(p / (result.y * result.z), p / result.z % result.y, p % result.z) * stride \
                 + tap * dilation - padding;\n  var found = T(0);\n  \
                 if (all(at >= vec3<i32>(0)) && all(at < image)) {{ found = x_get({}); }}\n  o_set({}, {found});\n}}\n",
                element("n", "c", "at"),
                column("n", "row", "u32(p)"),
            ));
        }
        code.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::pipeline::validate;
    use super::*;

    #[test]
    fn kernels_are_valid() {
        for stored in [Stored::Bool, Stored::F16, Stored::I32, Stored::F32, Stored::I64, Stored::F64] {
            for back in [false, true] {
                validate(&Kind { stored, back, shared: back }.shader());
            }
        }
    }
}
