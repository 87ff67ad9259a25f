//! Random numbers. Each element depends only on its index and the position in the stream.

use crate::base::{DType, Result, Scalar};
use crate::gpu::device::gpu;
use crate::gpu::device::memory::alloc;
use crate::gpu::device::view::{Source, View};
use crate::gpu::kernels::pointwise::{PointwiseMap, run};
use crate::gpu::kernels::sort::sort;
use crate::gpu::shader::stored::{Stored, Value, compute};

/// A position in the random number stream: the seed, and the number of blocks of four numbers drawn so far.
/// Drawing `n` elements uses [`Draw::blocks`] blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    pub seed: u64,
    pub offset: u64,
}

impl Draw {
    /// Returns the number of blocks that `n` elements use.
    pub fn blocks(n: usize) -> u64 {
        n.div_ceil(4) as u64
    }

    fn words(self) -> [u32; 4] {
        [self.seed, self.seed >> 32, self.offset, self.offset >> 32].map(|x| x as u32)
    }
}

/// Returns the beginning of a body. `words` holds the four random words that an element shares with its
/// neighbours; `more` holds four words of a separate stream, for float64 only; `word` holds the element's
/// own words.
fn drawn(value: Value) -> String {
    let more = if value == Value::F64 {
        "draw(at, vec2<u32>(p0, p1), vec2<u32>(p2, p3 ^ 0x80000000u))"
    } else {
        "vec4<u32>()"
    };
    format!(
        "let words = draw(at, vec2<u32>(p0, p1), vec2<u32>(p2, p3)); let more = {more}; \
         let word = vec2<u32>(words[at & 3u], more[at & 3u]);"
    )
}

fn random(
    name: &'static str,
    body: &'static str,
    value: Value,
    inputs: &[&str],
    out: View<'_>,
    (draw, ins): (Draw, &[Source<'_>]),
) -> Result<()> {
    let gpu = gpu()?;
    gpu.supports(name, out.dtype)?;
    let text = || format!("{} {body}", drawn(value));
    let words = draw.words();
    let map = PointwiseMap {
        family: "random",
        name,
        inputs,
        body: &text,
        compute: value,
        result: value,
        words: &words,
        bits: false,
    };
    run(gpu, &map, out, Stored::of(out.dtype), ins)
}

fn numbers<const N: usize>(values: [f64; N]) -> [Source<'static>; N] {
    values.map(|x| Source::Scalar(Scalar::Float(x)))
}

/// Uniform from `low` to just below `high`. The number of steps matches the precision of the dtype, since
/// rounding must not reach `high`.
pub fn uniform(out: View<'_>, draw: Draw, low: f64, high: f64) -> Result<()> {
    let body = match out.dtype {
        DType::F16 => {
            "let x = low_ + f32(word.x >> 21u) * 4.8828125e-4 * (high_ - low_); return select(x, low_, x >= high_);"
        }
        DType::BF16 => {
            "let x = low_ + f32(word.x >> 24u) * 3.90625e-3 * (high_ - low_); return select(x, low_, x >= high_);"
        }
        _ => "let x = low_ + unit(word) * (high_ - low_); return select(x, low_, x >= high_);",
    };
    random("uniform_", body, compute(out.dtype), &["low", "high"], out, (draw, &numbers([low, high])))
}

/// Normal distribution.
pub fn normal(out: View<'_>, draw: Draw, mean: f64, std: f64) -> Result<()> {
    let body = "return mean_ + spread_ * gauss(words, more, at);";
    random("normal_", body, compute(out.dtype), &["mean", "spread"], out, (draw, &numbers([mean, std])))
}

/// Log-normal distribution.
pub fn log_normal(out: View<'_>, draw: Draw, mean: f64, std: f64) -> Result<()> {
    let body = "return exp(mean_ + spread_ * gauss(words, more, at));";
    random("log_normal_", body, compute(out.dtype), &["mean", "spread"], out, (draw, &numbers([mean, std])))
}

/// Cauchy distribution, from the tangent of one tail: there small random numbers have the most digits. A
/// random bit chooses the sign.
pub fn cauchy(out: View<'_>, draw: Draw, median: f64, sigma: f64) -> Result<()> {
    let body = "let far = T(1) / tan(T(1.5707963267948966) * unit_above(word)); \
                return median_ + sigma_ * select(far, -far, ((word.x ^ word.y) & 1u) == 1u);";
    random("cauchy_", body, compute(out.dtype), &["median", "sigma"], out, (draw, &numbers([median, sigma])))
}

/// Geometric distribution: the number of trials with probability `p` until the first success.
pub fn geometric(out: View<'_>, draw: Draw, p: f64) -> Result<()> {
    let body = "return max(ceil(log(unit_above(word)) / fail_), 1.0);";
    random("geometric_", body, Value::F32, &["fail"], out, (draw, &numbers([(-p).ln_1p()])))
}

/// Exponential distribution with rate `lambda`.
pub fn exponential(out: View<'_>, draw: Draw, lambda: f64) -> Result<()> {
    let body = "return -log(unit_above(word)) / lambda_;";
    random("exponential_", body, compute(out.dtype), &["lambda"], out, (draw, &numbers([lambda])))
}

/// Bernoulli distribution: one with probability `p`, otherwise zero.
pub fn bernoulli(out: View<'_>, draw: Draw, p: Source<'_>) -> Result<()> {
    random("bernoulli_", "return select(0.0, 1.0, unit(word) < p_);", Value::F32, &["p"], out, (draw, &[p]))
}

/// Integers from `low` to `high - 1`. `high` may wrap, so that the largest integer can be included. Ranges
/// beyond 32 bits need 64-bit integers in shaders.
pub fn randint(out: View<'_>, draw: Draw, low: i64, high: i64) -> Result<()> {
    let range = high.wrapping_sub(low) as u64;
    let ins = [Source::Scalar(Scalar::Int(low)), Source::Scalar(Scalar::Int(range as i64))];
    let narrow =
        i32::try_from(low).is_ok() && i32::try_from(high.wrapping_sub(1)).is_ok() && range >> 32 == 0;
    if narrow {
        let body = "return low_ + bitcast<i32>(mul_high(word.x, bitcast<u32>(range_)));";
        return random("random_", body, Value::I32, &["low", "range"], out, (draw, &ins));
    }
    gpu()?.supports("random_", DType::I64)?;
    let body = "let other = words[(at + 1u) & 3u]; let wide = (u64(word.x) << 32u) | u64(other); \
                if range_ == 0li { return i64(wide); } return low_ + i64(wide % u64(range_));";
    random("random_", body, Value::I64, &["low", "range"], out, (draw, &ins))
}

/// The integers below `n` (the length of `out`, an int64 vector) in random order.
pub fn randperm(out: View<'_>, draw: Draw) -> Result<()> {
    let n = out.numel();
    let aside = alloc(n * 8)?;
    let part = |offset| View { buffer: &aside, dtype: DType::I32, shape: out.shape, strides: &[1], offset };
    random("randperm", "return bitcast<i32>(word.x);", Value::I32, &[], part(0), (draw, &[]))?;
    sort(part(n), out, part(0), 0, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_four_words() {
        let draw = Draw { seed: 0x1_0000_0002, offset: 0x3_0000_0004 };
        assert_eq!(draw.words(), [2, 1, 4, 3]);
        assert_eq!((Draw::blocks(0), Draw::blocks(4), Draw::blocks(5)), (0, 1, 2));
    }
}
