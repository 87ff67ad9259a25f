//! The windows of pooling: they slide with a stride, or divide the image into nearly equal parts.

use super::Windows;

#[derive(Clone, Copy, Debug)]
pub struct PoolWindows {
    /// In adaptive pooling only the image and result sizes are used.
    pub windows: Windows,
    pub adaptive: bool,
    pub count: PoolDivisor,
}

/// The divisor of an average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolDivisor {
    /// The number of elements of the window inside the image.
    Inside,
    /// The number of elements including the padding.
    Padded,
    Given(i64),
}

/// The windows along one dimension.
#[derive(Clone, Debug, Default)]
pub struct PoolLine {
    pub starts: Vec<usize>,
    pub ends: Vec<usize>,
    pub step: usize,
    /// The divisors of averages, along this dimension.
    pub counts: Vec<usize>,
    /// The stride, and the run of each tap; for sliding windows only.
    pub stride: usize,
    pub runs: Vec<TapRun>,
}

/// A tap is inside the image for the windows from `low` to `high`; for the first of them it is at `from`.
#[derive(Clone, Copy, Debug)]
pub struct TapRun {
    pub low: usize,
    pub high: usize,
    pub from: usize,
}

impl PoolWindows {
    pub fn line(&self, d: usize) -> PoolLine {
        let w = &self.windows;
        let (size, count) = (w.image[d], w.result[d]);
        if self.adaptive {
            let starts: Vec<usize> = (0..count).map(|o| o * size / count).collect();
            let ends: Vec<usize> = (0..count).map(|o| ((o + 1) * size).div_ceil(count)).collect();
            let counts = starts.iter().zip(&ends).map(|(start, end)| end - start).collect();
            return PoolLine { starts, ends, step: 1, counts, ..PoolLine::default() };
        }
        let (kernel, stride, padding, step) = (w.kernel[d], w.stride[d], w.padding[d], w.dilation[d]);
        let mut line = PoolLine { step, stride, ..PoolLine::default() };
        for o in 0..count {
            // Positions are relative to the start of the padding here.
            let first = o * stride;
            let skipped = padding.saturating_sub(first).div_ceil(step);
            let end = (first + (kernel - 1) * step + 1).min(size + padding);
            let start = (first + skipped * step).saturating_sub(padding);
            line.starts.push(start.min(size));
            line.ends.push(end.saturating_sub(padding));
            line.counts.push(match self.count {
                PoolDivisor::Inside => line.ends[o].saturating_sub(start).max(1),
                _ => (first + kernel).min(size + 2 * padding).saturating_sub(first).max(1),
            });
        }
        for k in 0..kernel {
            let low = padding.saturating_sub(k * step).div_ceil(stride);
            let high = match (size + padding).checked_sub(1 + k * step) {
                Some(last) if size > 0 => (last / stride + 1).min(count),
                _ => 0,
            };
            let from = (low * stride + k * step).saturating_sub(padding);
            line.runs.push(TapRun { low, high: high.max(low), from });
        }
        line
    }
}
