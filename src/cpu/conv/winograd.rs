//! 3x3 convolutions of stride 1 by Winograd's F(2x2, 3x3). Tiles of 4x4 elements, which give 2x2 results, and the taps
//! are transformed so that the convolution becomes sixteen matrix products, with 4 multiplications per result instead
//! of 9. The transforms only add, subtract and halve, and the sums are short: results are more exact than those of one
//! long sum.

#![allow(clippy::needless_range_loop, reason = "plain indexed loops over arrays are what vectorises")]

use super::lanes::{transpose_in, transpose_out};
use super::sizes::{Conv, Image, MovedWindow, Window};
use crate::base::{Result, Strided, try_alloc};
use crate::cpu::element::scratch;
use crate::cpu::matmul::{self, Product};
use crate::cpu::par::{self, Shared};
use crate::cpu::simd::{Level, simd_fn};
use std::array::from_fn;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Number of elements of a transformed tile.
const POINTS: usize = 16;
const TAPS: usize = 9;
/// Number of channels that are transformed at a time.
const LANES: usize = 16;
/// With fewer channels or tiles, the transforms cost more than they save.
const CHANNELS: usize = 32;
const FEW_TILES: usize = 32;
/// With more weights, or tiles in a row, the transformed values would take too much memory.
const MANY_WEIGHTS: usize = 1 << 22;
const MANY_TILES: usize = 512;
/// Number of tiles that are multiplied at a time, which stay in the second cache. The gradient of the weights sums over
/// as many.
const TILES: usize = 96;
/// Number of channels that are summed before the sum is stored, so that long sums stay exact.
const SHORT: usize = 32;
/// Smallest number of channels in a thread's part of the results.
const PART: usize = 64;
/// Largest number of transformed weights that a thread accumulates.
const ROOM: usize = 1 << 18;

type Lanes = [f32; LANES];

/// Distance between the points of a tile, for points of `n` elements: an odd multiple of two cache lines. Otherwise all
/// points would share one set of the cache.
fn point_distance(n: usize) -> usize {
    (n + 32).next_multiple_of(64) - 32
}

/// An empty list with room for `n` numbers. Zeros would cost time, and all numbers are written before they are read.
fn room(n: usize) -> Result<Vec<f32>> {
    try_alloc::with_capacity(n)
}

/// How results are cut into tiles.
pub struct Tiling {
    /// Number of tiles of an example, down and along.
    tiles: [usize; 2],
    results: [usize; 2],
    /// Coordinates in the image of the first tile.
    corner: [isize; 2],
    /// For each place of the 3x3 square, row by row, the number of its tap in the window.
    order: [usize; TAPS],
}

impl Tiling {
    /// Returns a tiling if it makes the convolution faster, else `None`.
    pub fn new(conv: &Conv, window: &Window) -> Option<Tiling> {
        let [deep, down, along] = &window.taps;
        let lowest = |taps: &[isize]| taps.iter().min().copied().filter(|_| taps.len() == 3);
        let corner = [lowest(down)?, lowest(along)?];
        let mut order = [0; TAPS];
        for (place, tap) in order.iter_mut().enumerate() {
            let at = |taps: &[isize], wanted| taps.iter().position(|&t| t == wanted);
            let row = at(down, corner[0] + (place / 3) as isize)?;
            *tap = row * 3 + at(along, corner[1] + (place % 3) as isize)?;
        }
        let [depth, height, width] = window.positions;
        let tiles = [height.div_ceil(2), width.div_ceil(2)];
        let count = tiles[0] * tiles[1];
        let flat = depth == 1 && deep.as_slice() == [0] && window.step[1..] == [1, 1];
        let worth = conv.inputs.min(conv.outputs) >= CHANNELS && conv.samples * count >= FEW_TILES;
        let fits = conv.groups * conv.inputs * conv.outputs <= MANY_WEIGHTS && tiles[1] <= MANY_TILES;
        // Tiles at the edge are partly unused.
        let saves = 3 * count * POINTS <= 2 * height * width * TAPS;
        (flat && worth && fits && saves).then_some(Tiling { tiles, results: [height, width], corner, order })
    }

    /// The rows of tiles of all examples, cut into blocks: the number of blocks, and of rows in a block.
    fn blocks(&self, samples: usize) -> [usize; 2] {
        let rows = samples * self.tiles[0];
        let blocks = rows.div_ceil((TILES / self.tiles[1]).max(1));
        [blocks, rows.div_ceil(blocks)]
    }

    /// The example and row of tiles of each row in a block.
    fn rows(&self, samples: usize, block: usize, most: usize) -> impl Iterator<Item = [usize; 2]> {
        let [down, _] = self.tiles;
        (block * most..(samples * down).min((block + 1) * most)).map(move |row| [row / down, row % down])
    }
}

/// Rows of an image with channels in the lanes, padded with zeros.
struct PaddedRows<'a> {
    image: &'a Image,
    first: isize,
    /// The elements of a row that are inside the image, and their offsets there.
    inside: Range<usize>,
    steps: Vec<usize>,
    length: usize,
}

impl PaddedRows<'_> {
    fn new(image: &Image, [first, left]: [isize; 2], length: usize) -> PaddedRows<'_> {
        let size = image.size[2] as isize;
        let inside =
            (-left).clamp(0, length as isize) as usize..(size - left).clamp(0, length as isize) as usize;
        let steps = inside.clone().map(|x| (x as isize + left) as usize * image.strides[2]).collect();
        PaddedRows { image, first, inside, steps, length }
    }

    /// Writes row `y` of these channels to `to`.
    ///
    /// # Safety
    /// The image has this example and these channels; `to` has [`PaddedRows::length`] times `width` elements.
    unsafe fn get(&self, sample: usize, channels: &Range<usize>, y: usize, to: *mut f32, width: usize) {
        let (image, y) = (self.image, self.first + y as isize);
        // SAFETY: the caller's contract; the offsets are inside the image.
        unsafe {
            let zeros = |range: Range<usize>| to.add(range.start * width).write_bytes(0, range.len() * width);
            if y < 0 || y >= image.size[1] as isize {
                zeros(0..self.length);
                return;
            }
            zeros(0..self.inside.start);
            zeros(self.inside.end..self.length);
            let at = sample * image.sample + channels.start * image.channel + y as usize * image.strides[1];
            let (from, to) = (image.ptr.cast::<f32>().add(at), to.add(self.inside.start * width));
            transpose_in(from, image.channel, channels.len(), &self.steps, to, width);
        }
    }
}

/// Transformed tiles of an image: `[point][tile][channel]`.
struct Tiles<'a> {
    rows: PaddedRows<'a>,
    along: usize,
}

impl Tiles<'_> {
    fn new<'a>(tiling: &Tiling, image: &'a Image) -> Tiles<'a> {
        let along = tiling.tiles[1];
        Tiles { rows: PaddedRows::new(image, tiling.corner, 2 * along + 2), along }
    }

    /// Number of elements of four rows.
    fn ring(&self, width: usize) -> usize {
        4 * self.rows.length * width
    }

    /// Transforms some rows of tiles. Neighbouring rows of tiles share two rows of the image.
    ///
    /// # Safety
    /// See [`PaddedRows::get`]; `to` has room for all points, `point_step` elements apart, and `ring` for four rows.
    unsafe fn get(
        &self,
        rows: impl Iterator<Item = [usize; 2]>,
        channels: &Range<usize>,
        width: usize,
        ring: *mut f32,
        to: *mut f32,
        point_step: usize,
    ) {
        let slot = |y: usize| y % 4 * self.rows.length * width;
        for (i, [sample, row]) in rows.enumerate() {
            let kept = if i > 0 && row > 0 { 2 } else { 0 };
            // SAFETY: the caller's contract.
            unsafe {
                for y in 2 * row + kept..2 * row + 4 {
                    self.rows.get(sample, channels, y, ring.add(slot(y)), width);
                }
                let lines = from_fn(|y| ring.add(slot(2 * row + y)).cast_const());
                tiles_in(self.along, width, lines, to.add(i * self.along * width), point_step);
            }
        }
    }
}

/// `out = x * weight + bias`, if the transforms are faster and all results are finite; otherwise returns false. (If an
/// element is not finite, the transforms spread it to other results.)
///
/// # Safety
/// See [`super::forward`], for `f32`.
pub unsafe fn product(
    conv: &Conv,
    parts: &[MovedWindow],
    out: &Strided,
    x: &Strided,
    weight: &Strided,
    bias: Option<&Strided>,
) -> Result<bool> {
    let [moved] = parts else { return Ok(false) };
    let Some(tiling) = &Tiling::new(conv, &moved.window).filter(|_| moved.every == [1; 3]) else {
        return Ok(false);
    };
    let (result, image) = (&Image::new(out), &Image::new(x));
    let [sums, channels] = moved.from;
    let [wide, lanes] = moved.from.map(|n| n.next_multiple_of(LANES));
    let weights = &Weights::new(conv, moved, tiling, weight);
    let tiles = &Tiles::new(tiling, image);
    let along = tiling.tiles[1];
    let [blocks, most] = tiling.blocks(conv.samples);
    let all = conv.groups * blocks;
    let run = sums.div_ceil(sums.div_ceil(SHORT));
    // Weights that only one block reads are transformed where they are multiplied, and never leave the cache.
    let once = blocks == 1;
    let plane = point_distance(sums * lanes);
    // SAFETY: the caller's contract.
    let transformed = &if once { vec![] } else { unsafe { weights.all(plane)? } };
    let parts = (2 * par::threads()).div_ceil(all).clamp(1, (lanes / PART).max(1));
    let parts = if once { parts.max(lanes.div_ceil(2 * PART)) } else { parts };
    let part = lanes.div_ceil(parts).next_multiple_of(LANES);
    let parts = lanes.div_ceil(part);
    let finite = &AtomicBool::new(true);
    par::try_ranges(all * parts, 1, |range| {
        let mut own = room(POINTS * point_distance(most * along * wide))?;
        let mut products = room(POINTS * point_distance(most * along * part))?;
        let mut ring = room(tiles.ring(wide))?;
        let mut back = room(4 * along * part)?;
        let mut taps = room(if once { run * TAPS * part } else { 0 })?;
        let mut piece = room(if once { POINTS * point_distance(run * part) } else { 0 })?;
        let mut shift = scratch(part, 0.0f32)?;
        for task in range {
            let (group, block) = (task / parts / blocks, task / parts % blocks);
            let first = task % parts * part;
            let width = part.min(lanes - first);
            let real = width.min(channels - first);
            if let Some(bias) = bias {
                // SAFETY: the bias has one element per channel.
                let value = |i| unsafe {
                    *bias.ptr.cast::<f32>().add((group * channels + first + i) * bias.strides[0])
                };
                shift[..real].iter_mut().enumerate().for_each(|(i, to)| *to = value(i));
            }
            let rows = || tiling.rows(conv.samples, block, most);
            let count = rows().count() * along;
            let (point_step, out_point_step) = (point_distance(count * wide), point_distance(count * width));
            let summed = group * sums..(group + 1) * sums;
            let (from, to) = (own.as_mut_ptr(), products.as_mut_ptr());
            // SAFETY: the caller's images; the buffers hold such blocks; these results belong to this task alone.
            unsafe {
                tiles.get(rows(), &summed, wide, ring.as_mut_ptr(), from, point_step);
                let multiply = |point: usize, term: usize, weights: *const f32, row: usize| {
                    let p = Product {
                        sizes: [count, width, run.min(sums - term)],
                        out: [width, 1],
                        a: [wide, 1],
                        b: [row, 1],
                        threads: false,
                    };
                    let (to, from) = (to.add(point * out_point_step), from.add(point * point_step + term));
                    matmul::sum(p, to, from, weights, if term == 0 { 0.0 } else { 1.0 });
                };
                let terms = || (0..sums).step_by(run);
                if once {
                    let (taps, to, point_step) =
                        (taps.as_mut_ptr(), piece.as_mut_ptr(), point_distance(run * width));
                    for term in terms() {
                        weights.transform(
                            group,
                            term..sums.min(term + run),
                            first..first + real,
                            taps,
                            to,
                            [width, point_step],
                        );
                        (0..POINTS)
                            .for_each(|point| multiply(point, term, to.add(point * point_step), width));
                    }
                } else {
                    let weights = transformed.as_ptr().add(group * POINTS * plane + first);
                    for point in 0..POINTS {
                        terms().for_each(|term| {
                            multiply(point, term, weights.add(point * plane + term * lanes), lanes);
                        });
                    }
                }
                for (i, [sample, row]) in rows().enumerate() {
                    let from = products.as_ptr().add(i * along * width);
                    let (to, shift) = (back.as_mut_ptr(), shift.as_ptr());
                    if !tiles_out(along, width, from, out_point_step, shift, to) {
                        finite.store(false, Ordering::Relaxed);
                    }
                    for y in 2 * row..tiling.results[0].min(2 * row + 2) {
                        let from = back.as_ptr().add(y % 2 * 2 * along * width);
                        let channel = group * channels + first;
                        let at = sample * result.sample + channel * result.channel + y * result.strides[1];
                        let (to, size) = (result.ptr.cast::<f32>().add(at), [real, tiling.results[1]]);
                        transpose_out(size, from, width, to, [result.channel, result.strides[2]], false);
                    }
                }
            }
        }
        Ok(())
    })?;
    Ok(finite.load(Ordering::Relaxed))
}

/// The weights of a convolution, before they are transformed.
struct Weights<'a> {
    conv: &'a Conv,
    from: [usize; 2],
    order: &'a [usize; TAPS],
    image: Image,
    channel_step: usize,
    at: Vec<usize>,
}

impl Weights<'_> {
    fn new<'a>(conv: &'a Conv, moved: &MovedWindow, tiling: &'a Tiling, weight: &Strided) -> Weights<'a> {
        let (image, channel_step, at) = moved.weights(weight);
        Weights { conv, from: moved.from, order: &tiling.order, image, channel_step, at }
    }

    /// Transforms the weights of some summed and some resulting channels: `[point][summed channel][channel]`, in rows
    /// of `width`, with points `point_step` apart.
    ///
    /// # Safety
    /// The weights have these channels; `taps` and `to` have room for them.
    unsafe fn transform(
        &self,
        group: usize,
        terms: Range<usize>,
        channels: Range<usize>,
        taps: *mut f32,
        to: *mut f32,
        [width, point_step]: [usize; 2],
    ) {
        let at = &self.at[terms.start * TAPS..terms.end * TAPS];
        // SAFETY: the caller's contract.
        unsafe {
            let from = self.image.ptr.cast::<f32>();
            let from =
                from.add(group * self.conv.outputs * self.image.sample + channels.start * self.channel_step);
            transpose_in(from, self.channel_step, channels.len(), at, taps, width);
            for term in 0..terms.len() {
                let from = taps.add(term * TAPS * width);
                weights_in(width, from, self.order, to.add(term * width), point_step);
            }
        }
    }

    /// Transforms all weights, group by group, with points `plane` elements apart.
    ///
    /// # Safety
    /// The weights are live.
    unsafe fn all(&self, plane: usize) -> Result<Vec<f32>> {
        let [sums, channels] = self.from;
        let lanes = channels.next_multiple_of(LANES);
        let transformed = room(self.conv.groups * POINTS * plane)?;
        let to = Shared::new(transformed.as_ptr());
        let blocks = sums.div_ceil(LANES);
        par::try_ranges(self.conv.groups * blocks, 1, |range| {
            let mut taps = room(LANES * TAPS * lanes)?;
            for task in range {
                let (group, first) = (task / blocks, task % blocks * LANES);
                // SAFETY: these terms belong to this task alone.
                unsafe {
                    let to = to.get().add(group * POINTS * plane + first * lanes);
                    let terms = first..sums.min(first + LANES);
                    self.transform(group, terms, 0..channels, taps.as_mut_ptr(), to, [lanes, plane]);
                }
            }
            Ok(())
        })?;
        Ok(transformed)
    }
}

// SAFETY: it only describes weights, which are read.
unsafe impl Sync for Weights<'_> {}

/// The gradient of the weights, if the transforms are faster and all results are finite, as for [`product`]; otherwise
/// returns false.
///
/// # Safety
/// See [`super::backward_weight`], for `f32`.
pub unsafe fn weights(conv: &Conv, out: &Strided, x: &Strided, grad: &Strided) -> Result<bool> {
    let Some(tiling) = &Tiling::new(conv, &conv.window()) else { return Ok(false) };
    let (image, grads) = (&Image::new(x), &Image::new(grad));
    let columns = conv.inputs * TAPS;
    let along = tiling.tiles[1];
    let [blocks, most] = tiling.blocks(conv.samples);
    let tiles = &Tiles::new(tiling, image);
    let lines = &PaddedRows::new(grads, [0, 0], 2 * along);
    let [cuts, sizes] = cuts(conv);
    let to = Shared::new(out.ptr.cast::<f32>());
    let finite = &AtomicBool::new(true);
    par::try_ranges(conv.groups * cuts[0] * cuts[1], 1, |range| {
        let [wide, lanes] = sizes;
        let mut images = room(POINTS * point_distance(most * along * wide))?;
        let mut transposed_grads = room(POINTS * point_distance(most * along * lanes))?;
        let mut ring = room(tiles.ring(wide))?;
        let mut pair = room(4 * along * lanes)?;
        let plane = point_distance(wide * lanes);
        let mut sums = room(POINTS * plane)?;
        let mut back = room(TAPS * wide * lanes)?;
        for task in range {
            let (group, cut) = (task / (cuts[0] * cuts[1]), task % (cuts[0] * cuts[1]));
            let part = |at: usize, size: usize, all: usize| at * size..all.min((at + 1) * size);
            let inputs = part(cut / cuts[1], wide, conv.inputs);
            let outputs = part(cut % cuts[1], lanes, conv.outputs);
            let of = |part: &Range<usize>, all: usize| group * all + part.start..group * all + part.end;
            let (from, met) = (of(&inputs, conv.inputs), of(&outputs, conv.outputs));
            // SAFETY: the caller's images; the buffers hold such blocks; these weights belong to this task alone.
            unsafe {
                for block in 0..blocks {
                    let rows = || tiling.rows(conv.samples, block, most);
                    let count = rows().count() * along;
                    let (point_step, out_point_step) =
                        (point_distance(count * wide), point_distance(count * lanes));
                    tiles.get(rows(), &from, wide, ring.as_mut_ptr(), images.as_mut_ptr(), point_step);
                    for (i, [sample, row]) in rows().enumerate() {
                        for y in 0..2 {
                            let to = pair.as_mut_ptr().add(y * 2 * along * lanes);
                            lines.get(sample, &met, 2 * row + y, to, lanes);
                        }
                        let to = transposed_grads.as_mut_ptr().add(i * along * lanes);
                        grads_in(along, lanes, pair.as_ptr(), to, out_point_step);
                    }
                    for point in 0..POINTS {
                        let p = Product {
                            sizes: [wide, lanes, count],
                            out: [lanes, 1],
                            a: [1, wide],
                            b: [lanes, 1],
                            threads: false,
                        };
                        let (a, b) = (images.as_ptr().add(point * point_step), transposed_grads.as_ptr());
                        let to = sums.as_mut_ptr().add(point * plane);
                        matmul::sum(
                            p,
                            to,
                            a,
                            b.add(point * out_point_step),
                            if block == 0 { 0.0 } else { 1.0 },
                        );
                    }
                }
                for input in 0..inputs.len() {
                    let to = back.as_mut_ptr().add(input * TAPS * lanes);
                    if !weights_out(lanes, sums.as_ptr().add(input * lanes), plane, to) {
                        finite.store(false, Ordering::Relaxed);
                    }
                }
                let to = to.get().add(met.start * columns + inputs.start * TAPS);
                let size = [outputs.len(), inputs.len() * TAPS];
                transpose_out(size, back.as_ptr(), lanes, to, [columns, 1], false);
            }
        }
        Ok(())
    })?;
    Ok(finite.load(Ordering::Relaxed))
}

/// Number of parts that inputs and outputs are cut into, and the size of a part: each thread has at least one, whose
/// sums stay in its cache.
fn cuts(conv: &Conv) -> [[usize; 2]; 2] {
    let all = [conv.inputs, conv.outputs];
    let mut cuts = [1, 1];
    loop {
        let sizes: [usize; 2] = from_fn(|i| all[i].div_ceil(cuts[i]).next_multiple_of(LANES));
        let enough = conv.groups * cuts[0] * cuts[1] >= par::threads();
        let longer = usize::from(sizes[1] > sizes[0]);
        if sizes[longer] <= CHANNELS || (enough && POINTS * sizes[0] * sizes[1] <= ROOM) {
            return [from_fn(|i| all[i].div_ceil(sizes[i])), sizes];
        }
        cuts[longer] += 1;
    }
}

// The following functions must be inlined, or they are compiled for the baseline: hence plain loops, without closures.
// With wider registers the compiler gathers across the squares, which takes ten times as long.
#[inline(always)]
fn add(a: &Lanes, b: &Lanes) -> Lanes {
    let mut sum = *a;
    for i in 0..LANES {
        sum[i] += b[i];
    }
    sum
}

#[inline(always)]
fn sub(a: &Lanes, b: &Lanes) -> Lanes {
    let mut difference = *a;
    for i in 0..LANES {
        difference[i] -= b[i];
    }
    difference
}

#[inline(always)]
fn times(factor: f32, a: &Lanes) -> Lanes {
    let mut product = *a;
    for i in 0..LANES {
        product[i] *= factor;
    }
    product
}

/// Transforms four neighbouring elements.
#[inline(always)]
fn tile([a, b, c, d]: &[Lanes; 4]) -> [Lanes; 4] {
    [sub(a, c), add(b, c), sub(c, b), sub(b, d)]
}

/// Two results from four points: the transpose of [`grad`].
#[inline(always)]
fn results([a, b, c, d]: &[Lanes; 4]) -> [Lanes; 2] {
    [add(a, &add(b, c)), sub(&sub(b, c), d)]
}

/// Transforms two neighbouring gradients.
#[inline(always)]
fn grad([a, b]: &[Lanes; 2]) -> [Lanes; 4] {
    [*a, add(a, b), sub(a, b), times(-1.0, b)]
}

/// Transforms three neighbouring taps.
#[inline(always)]
fn taps([a, b, c]: &[Lanes; 3]) -> [Lanes; 4] {
    let (ends, middle) = (times(0.5, &add(a, c)), times(0.5, b));
    [*a, add(&ends, &middle), sub(&ends, &middle), *c]
}

/// The transpose of [`taps`].
#[inline(always)]
fn taps_back([a, b, c, d]: &[Lanes; 4]) -> [Lanes; 3] {
    let (sum, difference) = (times(0.5, &add(b, c)), times(0.5, &sub(b, c)));
    [add(a, &sum), difference, add(&sum, d)]
}

/// Transforms a square in both directions.
#[inline(always)]
fn both<const A: usize, const B: usize>(
    square: &[[Lanes; A]; A],
    f: impl Fn(&[Lanes; A]) -> [Lanes; B],
) -> [[Lanes; B]; B] {
    let mut rows = [[[0.0; LANES]; B]; A];
    for i in 0..A {
        rows[i] = f(&square[i]);
    }
    let mut points = [[[0.0; LANES]; B]; B];
    for j in 0..B {
        let mut column = [[0.0; LANES]; A];
        for i in 0..A {
            column[i] = rows[i][j];
        }
        let transformed = f(&column);
        for i in 0..B {
            points[i][j] = transformed[i];
        }
    }
    points
}

/// Reads a square whose elements are `down` and `along` elements apart.
///
/// # Safety
/// All elements are there, each with all lanes.
#[inline(always)]
unsafe fn square<const N: usize>(from: *const f32, down: usize, along: usize) -> [[Lanes; N]; N] {
    let mut square = [[[0.0; LANES]; N]; N];
    for i in 0..N {
        for j in 0..N {
            // SAFETY: the caller's contract.
            square[i][j] = unsafe { *from.add(i * down + j * along).cast::<Lanes>() };
        }
    }
    square
}

/// Writes a square, laid out as [`square`] reads it.
///
/// # Safety
/// See [`square`].
#[inline(always)]
unsafe fn put<const N: usize>(square: &[[Lanes; N]; N], to: *mut f32, down: usize, along: usize) {
    for i in 0..N {
        for j in 0..N {
            // SAFETY: the caller's contract.
            unsafe { *to.add(i * down + j * along).cast::<Lanes>() = square[i][j] };
        }
    }
}

simd_fn! {
    [Level::V3]
    /// Transforms a row of tiles: four rows of elements with `width` channels each. Points are `point_step` apart.
    ///
    /// # Safety
    /// The rows have two elements per tile, and two more; `to` has all points.
    unsafe fn tiles_in(tiles: usize, width: usize, rows: [*const f32; 4], to: *mut f32, point_step: usize) {
        for t in 0..tiles {
            for c in (0..width).step_by(LANES) {
                let mut elements = [[[0.0; LANES]; 4]; 4];
                for i in 0..4 {
                    for j in 0..4 {
                        elements[i][j] = *rows[i].add((2 * t + j) * width + c).cast::<Lanes>();
                    }
                }
                put(&both(&elements, tile), to.add(t * width + c), 4 * point_step, point_step);
            }
        }
    }
}

simd_fn! {
    [Level::V3]
    /// Writes two rows of results for a row of tiles, plus `shift`. Returns true if all are finite.
    ///
    /// # Safety
    /// See [`tiles_in`], with the operands exchanged; `shift` has `width` elements.
    unsafe fn tiles_out(tiles: usize, width: usize, from: *const f32, point_step: usize, shift: *const f32, to: *mut f32) -> bool {
        let mut zero = [0.0; LANES];
        for t in 0..tiles {
            for c in (0..width).step_by(LANES) {
                let mut values = both(&square::<4>(from.add(t * width + c), 4 * point_step, point_step), results);
                for i in 0..2 {
                    for j in 0..2 {
                        zero = add(&zero, &times(0.0, &values[i][j]));
                        values[i][j] = add(&values[i][j], &*shift.add(c).cast::<Lanes>());
                    }
                }
                put(&values, to.add(2 * t * width + c), 2 * tiles * width, width);
            }
        }
        all_zero(&zero)
    }
}

simd_fn! {
    [Level::V3]
    /// Transforms the gradients of a row of tiles: two rows of results.
    ///
    /// # Safety
    /// See [`tiles_in`].
    unsafe fn grads_in(tiles: usize, width: usize, from: *const f32, to: *mut f32, point_step: usize) {
        for t in 0..tiles {
            for c in (0..width).step_by(LANES) {
                let gradients = square::<2>(from.add(2 * t * width + c), 2 * tiles * width, width);
                put(&both(&gradients, grad), to.add(t * width + c), 4 * point_step, point_step);
            }
        }
    }
}

simd_fn! {
    [Level::V3]
    /// Transforms weights: taps of `width` channels each, in the order that `order` gives.
    ///
    /// # Safety
    /// `from` has all taps, `to` all points.
    unsafe fn weights_in(width: usize, from: *const f32, order: &[usize; TAPS], to: *mut f32, point_step: usize) {
        for c in (0..width).step_by(LANES) {
            let mut weights = [[[0.0; LANES]; 3]; 3];
            for place in 0..TAPS {
                weights[place / 3][place % 3] = *from.add(order[place] * width + c).cast::<Lanes>();
            }
            put(&both(&weights, taps), to.add(c), 4 * point_step, point_step);
        }
    }
}

simd_fn! {
    [Level::V3]
    /// Writes the gradients of the taps. Returns true if all are finite.
    ///
    /// # Safety
    /// See [`weights_in`], with the operands exchanged.
    unsafe fn weights_out(width: usize, from: *const f32, point_step: usize, to: *mut f32) -> bool {
        let mut zero = [0.0; LANES];
        for c in (0..width).step_by(LANES) {
            let values = both(&square::<4>(from.add(c), 4 * point_step, point_step), taps_back);
            for i in 0..3 {
                for j in 0..3 {
                    zero = add(&zero, &times(0.0, &values[i][j]));
                }
            }
            put(&values, to.add(c), 3 * width, width);
        }
        all_zero(&zero)
    }
}

/// True if all are zero. They are products of values with zero, which are NaN for values that are not finite.
#[inline(always)]
fn all_zero(lanes: &Lanes) -> bool {
    lanes.iter().all(|v| *v == 0.0)
}
