//! Batch norm and group norm: turns weights, biases and moments into the mean and factor of each set.

use super::{Sets, affine, affine_backward, gradient_sums, moments, normalize_by_own};
use crate::base::{DType, Result, Strided, try_alloc};

/// With at least this many sets, threads get whole sets; with fewer, they split the elements.
const MANY: usize = 16;

/// Numbers of sets or channels: dense, f32 or f64.
#[derive(Clone, Copy)]
pub struct Line<'a>(pub Strided<'a>);

impl Line<'_> {
    unsafe fn get(&self, i: usize) -> f64 {
        // SAFETY: the caller's element.
        unsafe {
            match self.0.dtype {
                DType::F64 => *self.0.ptr.cast::<f64>().add(i),
                _ => f64::from(*self.0.ptr.cast::<f32>().add(i)),
            }
        }
    }

    unsafe fn set(&self, i: usize, value: f64) {
        // SAFETY: the caller's element.
        unsafe {
            match self.0.dtype {
                DType::F64 => *self.0.ptr.cast::<f64>().add(i) = value,
                _ => *self.0.ptr.cast::<f32>().add(i) = value as f32,
            }
        }
    }
}

/// Element `i` of a line, or `other` if there is no line.
unsafe fn or(line: Option<Line>, i: usize, other: f64) -> f64 {
    // SAFETY: the caller's element.
    line.map_or(other, |line| unsafe { line.get(i) })
}

/// Weights and biases of channels; means and factors of channels or groups.
#[derive(Clone, Copy)]
pub struct With<'a> {
    pub weight: Option<Line<'a>>,
    pub bias: Option<Line<'a>>,
    pub mean: Line<'a>,
    /// `1 / sqrt(variance + eps)`.
    pub scale: Line<'a>,
}

/// The gradients to write, if they are wanted.
#[derive(Clone, Copy)]
pub struct Grads<'a> {
    pub input: Option<Strided<'a>>,
    pub weight: Option<Line<'a>>,
    pub bias: Option<Line<'a>>,
}

/// Normalizes each channel of a batch by its own mean and variance, which are written to `with` and `spread`.
///
/// # Safety
/// The views are dense and live; `out` and `x` have one dtype and the size of `sets`, and lines have an element per
/// set.
pub unsafe fn batch(out: Strided, x: Strided, with: With, spread: Line, sets: Sets, eps: f64) -> Result<()> {
    // SAFETY: the caller's contract.
    unsafe {
        let of = |i: usize, [mean, var]: [f64; 2]| {
            [mean, or(with.weight, i, 1.0) / (var + eps).sqrt(), or(with.bias, i, 0.0)]
        };
        let whole = sets.n == 1 && sets.sets >= MANY;
        let found = if whole {
            normalize_by_own(out, x, sets, 1, |i, _, found| of(i, found))?
        } else {
            moments(x, sets)?
        };
        for (i, &[mean, var]) in found.iter().enumerate() {
            with.mean.set(i, mean);
            with.scale.set(i, 1.0 / (var + eps).sqrt());
            spread.set(i, var);
        }
        if whole {
            return Ok(());
        }
        let by: Vec<[f64; 3]> = try_alloc::all(found.iter().enumerate().map(|(i, &found)| of(i, found)))?;
        affine(out, x, &by, sets)
    }
}

/// Normalizes with the means and factors in `with`.
///
/// # Safety
/// See [`batch`].
pub unsafe fn normalize_by(out: Strided, x: Strided, with: With, sets: Sets) -> Result<()> {
    // SAFETY: the caller's contract; a line has an element per set.
    unsafe {
        let of = |i| [with.mean.get(i), with.scale.get(i) * or(with.weight, i, 1.0), or(with.bias, i, 0.0)];
        let by: Vec<[f64; 3]> = try_alloc::all((0..sets.sets).map(of))?;
        affine(out, x, &by, sets)
    }
}

/// The gradients of [`batch`] if the means are the batch's own, else of [`normalize_by`].
///
/// # Safety
/// See [`batch`].
pub unsafe fn batch_backward(
    to: Grads,
    g: Strided,
    x: Strided,
    with: With,
    sets: Sets,
    own: bool,
) -> Result<()> {
    let count = sets.each() as f64;
    // SAFETY: the caller's contract; a line has an element per set.
    unsafe {
        let mean: Vec<f64> = try_alloc::all((0..sets.sets).map(|i| with.mean.get(i)))?;
        let needed = own || to.weight.is_some() || to.bias.is_some();
        let sums = if needed { gradient_sums(g, x, &mean, sets)? } else { Vec::new() };
        for (i, [plain, along]) in sums.iter().enumerate() {
            to.weight.inspect(|line| line.set(i, along * with.scale.get(i)));
            to.bias.inspect(|line| line.set(i, *plain));
        }
        let Some(out) = to.input else { return Ok(()) };
        let factor = |i: usize| with.scale.get(i) * or(with.weight, i, 1.0);
        if !own {
            let by: Vec<[f64; 3]> = try_alloc::all((0..sets.sets).map(|i| [0.0, factor(i), 0.0]))?;
            return affine(out, g, &by, sets);
        }
        let of = |i: usize| {
            let ([plain, along], scale) = (sums[i], with.scale.get(i));
            let factor = factor(i);
            [mean[i], factor, -factor * scale * scale * along / count, -factor * plain / count]
        };
        let by: Vec<[f64; 4]> = try_alloc::all((0..sets.sets).map(of))?;
        affine_backward(out, g, x, &by, sets)
    }
}

/// The sizes of `[n, channels, run]` elements whose `groups` groups of neighbouring channels are normalized for each
/// example.
#[derive(Clone, Copy, Debug)]
pub struct Groups {
    pub n: usize,
    pub groups: usize,
    pub channels: usize,
    pub run: usize,
}

impl Groups {
    /// Every channel of every example as a set.
    fn planes(&self) -> Sets {
        Sets { n: 1, sets: self.n * self.channels, run: self.run }
    }

    fn each(&self) -> usize {
        self.channels / self.groups.max(1)
    }

    /// The group that a plane belongs to.
    fn group(&self, plane: usize) -> usize {
        plane / self.each().max(1)
    }
}

/// Normalizes each group by its own mean and variance, which are written to `with`.
///
/// # Safety
/// The views are dense and live; `out` and `x` have one dtype and the size in `groups`. Weights and biases have an
/// element per channel, the other lines one per group of each example.
pub unsafe fn group(out: Strided, x: Strided, with: With, groups: Groups, eps: f64) -> Result<()> {
    let whole = Sets { n: 1, sets: groups.n * groups.groups, run: groups.each() * groups.run };
    // SAFETY: the caller's contract.
    unsafe {
        let of = |channel: usize, [mean, var]: [f64; 2]| {
            [mean, or(with.weight, channel, 1.0) / (var + eps).sqrt(), or(with.bias, channel, 0.0)]
        };
        let at_once = whole.sets >= MANY;
        let found = if at_once {
            let first = |set: usize| set % groups.groups * groups.each();
            normalize_by_own(out, x, whole, groups.each(), |set, part, found| of(first(set) + part, found))?
        } else {
            moments(x, whole)?
        };
        for (i, &[mean, var]) in found.iter().enumerate() {
            with.mean.set(i, mean);
            with.scale.set(i, 1.0 / (var + eps).sqrt());
        }
        if at_once {
            return Ok(());
        }
        let plane = |plane: usize| of(plane % groups.channels, found[groups.group(plane)]);
        let by: Vec<[f64; 3]> = try_alloc::all((0..groups.n * groups.channels).map(plane))?;
        affine(out, x, &by, groups.planes())
    }
}

/// The gradients of [`group`].
///
/// # Safety
/// See [`group`].
pub unsafe fn group_backward(to: Grads, g: Strided, x: Strided, with: With, groups: Groups) -> Result<()> {
    let planes = groups.n * groups.channels;
    let count = (groups.each() * groups.run) as f64;
    // SAFETY: the caller's contract.
    unsafe {
        let mean: Vec<f64> = try_alloc::all((0..planes).map(|plane| with.mean.get(groups.group(plane))))?;
        let sums = gradient_sums(g, x, &mean, groups.planes())?;
        let mut all = try_alloc::filled([0.0; 2], groups.n * groups.groups)?;
        let mut of_channels = try_alloc::filled([0.0; 2], groups.channels)?;
        for (plane, [plain, along]) in sums.iter().enumerate() {
            let (group, channel) = (groups.group(plane), plane % groups.channels);
            let weight = or(with.weight, channel, 1.0);
            all[group][0] += weight * plain;
            all[group][1] += weight * along;
            of_channels[channel][0] += plain;
            of_channels[channel][1] += along * with.scale.get(group);
        }
        for (channel, [plain, along]) in of_channels.into_iter().enumerate() {
            to.weight.inspect(|line| line.set(channel, along));
            to.bias.inspect(|line| line.set(channel, plain));
        }
        let Some(out) = to.input else { return Ok(()) };
        let of = |plane: usize| {
            let (group, channel) = (groups.group(plane), plane % groups.channels);
            let ([plain, along], scale) = (all[group], with.scale.get(group));
            let factor = scale * or(with.weight, channel, 1.0);
            [mean[plane], factor, -scale * scale * scale * along / count, -scale * plain / count]
        };
        let by: Vec<[f64; 4]> = try_alloc::all((0..planes).map(of))?;
        affine_backward(out, g, x, &by, groups.planes())
    }
}
