//! A recurrent layer in one direction, as one primitive for all time steps. With projections or in half precision it is composed
//! of other operators.

use crate::base::kernel_args::recurrent::{self, Cell, RecurrentSteps};
use crate::capture::{Recorder, Retain, Whole};
use crate::operator::bodies::{duplicate, filled, reduce};
use crate::operator::primitives::constant;
use crate::ops::linalg::gemm::multiply;
use crate::ops::nn::norm::{bodies, dense, host};
use crate::ops::prelude::*;
use crate::ops::shape::{join, slices};
use crate::tensor::facts::{Keep, Shown};
use crate::tensor::mode;

impl Keep for Cell {
    fn shown(&self) -> Shown {
        Shown::Nothing
    }
}

/// The operands of a layer: the inputs' contributions to the gates (rows of all steps), the initial states, the weights and
/// biases of the states, and the projection of hidden states.
struct LayerOperands<T> {
    cell: Cell,
    sums: T,
    hidden: T,
    cells: Option<T>,
    weight: T,
    bias: Option<T>,
    projection: Option<T>,
}

impl<T> LayerOperands<T> {
    fn values(self, value: impl Fn(T) -> V) -> LayerOperands<V> {
        let LayerOperands { cell, sums, hidden, cells, weight, bias, projection } = self;
        let [cells, bias, projection] = [cells, bias, projection].map(|operand| operand.map(&value));
        let [sums, hidden, weight] = [sums, hidden, weight].map(&value);
        LayerOperands { cell, sums, hidden, cells, weight, bias, projection }
    }
}

/// The size of a dimension; 0 if an earlier operation failed.
fn size(x: &V, dim: usize) -> usize {
    x.shape().get(dim).copied().unwrap_or(0)
}

fn rows(x: &V, start: i64, count: i64) -> V {
    x.clone().then(|t| slices::narrow(&t, 0, start, count))
}

fn concatenate(parts: Vec<V>, dim: i64) -> V {
    let tensors: Result<Vec<Tensor>> = parts.into_iter().map(V::tensor).collect();
    match tensors {
        Ok(one) if one.len() == 1 => V::from(&one[0]),
        Ok(tensors) => V::from(join::cat(&tensors, dim)),
        Err(error) => V::from(Err(error)),
    }
}

/// Replaces the states of the first `count` examples; the others have ended already and stay.
fn replace_first(new: V, old: &V, count: i64) -> V {
    let samples = size(old, 0) as i64;
    if count == samples || matches!(old, V::Failed(_)) {
        new
    } else {
        concatenate(vec![new, rows(old, count, samples - count)], 0)
    }
}

/// Splits a matrix into the parts of its gates.
fn gates(x: &V, count: usize) -> Vec<V> {
    let width = (size(x, 1) / count) as i64;
    (0..count as i64).map(|i| x.clone().then(|t| slices::narrow(&t, 1, i * width, width))).collect()
}

/// The first row and the number of examples of each step, in the order of computation.
fn in_order(sizes: &[i64], backwards: bool) -> Vec<(usize, i64, i64)> {
    let mut start = 0;
    let mut steps: Vec<(usize, i64, i64)> = Vec::new();
    for (i, &size) in sizes.iter().enumerate() {
        steps.push((i, start, size));
        start += size;
    }
    if backwards {
        steps.reverse();
    }
    steps
}

/// The results of a step that the backward needs.
struct RecurrentStep {
    at: usize,
    start: i64,
    size: i64,
    before: V,
    cell_before: Option<V>,
    gates: Vec<V>,
    /// For a GRU the states' part of the new gate. For an LSTM the tanh of the cells, and the hidden states before the
    /// projection.
    more: Vec<V>,
    out: V,
}

impl LayerOperands<V> {
    /// Runs all steps. Returns them and the last states.
    fn run(&self, sizes: &[i64], backwards: bool) -> (Vec<RecurrentStep>, V, Option<V>) {
        let (mut hidden, mut cells) = (self.hidden.clone(), self.cells.clone());
        let mut steps = Vec::new();
        for (at, start, size) in in_order(sizes, backwards) {
            let before = rows(&hidden, 0, size);
            let cell_before = cells.as_ref().map(|c| rows(c, 0, size));
            let x = rows(&self.sums, start, size);
            let own = before.matmul(self.weight.mt());
            let own = self.bias.as_ref().map_or_else(|| own.clone(), |bias| &own + bias);
            let (made, more, out) = match (self.cell, &cell_before) {
                (Cell::Lstm, Some(c)) => {
                    let sums = gates(&(x + own), 4);
                    let (i, f, g, o) =
                        (sigmoid(&sums[0]), sigmoid(&sums[1]), tanh(&sums[2]), sigmoid(&sums[3]));
                    let new = &f * c + &i * &g;
                    let t = tanh(&new);
                    let raw = &o * &t;
                    let out = self.projection.as_ref().map_or_else(|| raw.clone(), |w| raw.matmul(w.mt()));
                    cells = cells.map(|old| replace_first(new, &old, size));
                    (vec![i, f, g, o], vec![t, raw], out)
                }
                (Cell::Gru, _) => {
                    let (x, own) = (gates(&x, 3), gates(&own, 3));
                    let (r, z) = (sigmoid(&x[0] + &own[0]), sigmoid(&x[1] + &own[1]));
                    let n = tanh(&x[2] + &r * &own[2]);
                    let out = (&before - &n) * &z + &n;
                    (vec![r, z, n], vec![own[2].clone()], out)
                }
                (Cell::Relu, _) => {
                    let sum = x + own;
                    let out = select(&sum, 0.0, le(&sum, 0.0));
                    (Vec::new(), Vec::new(), out)
                }
                _ => (Vec::new(), Vec::new(), tanh(x + own)),
            };
            hidden = replace_first(out.clone(), &hidden, size);
            steps.push(RecurrentStep { at, start, size, before, cell_before, gates: made, more, out });
        }
        (steps, hidden, cells)
    }

    /// The hidden states of all steps, concatenated.
    fn outputs(steps: &[RecurrentStep]) -> V {
        let mut order: Vec<&RecurrentStep> = steps.iter().collect();
        order.sort_by_key(|step| step.at);
        concatenate(order.into_iter().map(|step| step.out.clone()).collect(), 0)
    }

    /// The wanted gradients of the sums, initial states, weights, biases and projection.
    fn gradients(
        &self,
        sizes: &[i64],
        backwards: bool,
        g: [Option<V>; 3],
        wants: [bool; 6],
    ) -> [Option<V>; 6] {
        let (steps, ..) = self.run(sizes, backwards);
        let [g_out, g_hidden, g_cells] = g;
        let mut d_hidden = g_hidden.unwrap_or_else(|| zero_of(&self.hidden));
        let mut d_cells = self.cells.as_ref().map(|c| g_cells.unwrap_or_else(|| zero_of(c)));
        let mut d_sums: Vec<(usize, V)> = Vec::new();
        let mut d_weight = zero_of(&self.weight);
        let mut d_bias = self.bias.as_ref().map(zero_of);
        let mut d_projection = self.projection.as_ref().map(zero_of);
        for step in steps.iter().rev() {
            let size = step.size;
            let mut dh = rows(&d_hidden, 0, size);
            if let Some(g) = &g_out {
                dh = dh + rows(g, step.start, size);
            }
            let mut past = None;
            let slope = |y: &V| y * (1.0 - y);
            let (of_x, of_own) = match (self.cell, &step.cell_before, &mut d_cells) {
                (Cell::Lstm, Some(c), Some(all)) => {
                    let [i, f, g, o] = [0, 1, 2, 3].map(|k| step.gates[k].clone());
                    let (t, raw) = (&step.more[0], &step.more[1]);
                    if let (Some(w), Some(d)) = (&self.projection, &mut d_projection) {
                        *d = &*d + dh.mt().matmul(raw);
                        dh = dh.matmul(w);
                    }
                    let dc = rows(all, 0, size) + &dh * &o * (1.0 - t * t);
                    let parts = vec![
                        &dc * &g * slope(&i),
                        &dc * c * slope(&f),
                        &dc * &i * (1.0 - &g * &g),
                        &dh * t * slope(&o),
                    ];
                    *all = replace_first(&dc * &f, all, size);
                    let sums = concatenate(parts, 1);
                    (sums.clone(), sums)
                }
                (Cell::Gru, ..) => {
                    let [r, z, n] = [0, 1, 2].map(|k| step.gates[k].clone());
                    let of_new = &dh * (1.0 - &z) * (1.0 - &n * &n);
                    let of_reset = &of_new * &step.more[0] * slope(&r);
                    let of_update = &dh * (&step.before - &n) * slope(&z);
                    past = Some(&dh * &z);
                    let own = vec![of_reset.clone(), of_update.clone(), &of_new * &r];
                    (concatenate(vec![of_reset, of_update, of_new], 1), concatenate(own, 1))
                }
                (Cell::Relu, ..) => {
                    let sums = select(dh, 0.0, le(&step.out, 0.0));
                    (sums.clone(), sums)
                }
                _ => {
                    let sums = dh * (1.0 - &step.out * &step.out);
                    (sums.clone(), sums)
                }
            };
            d_weight = d_weight + of_own.mt().matmul(&step.before);
            d_bias = d_bias.map(|d| d + of_own.clone().sum(&[0], false));
            let back = of_own.matmul(&self.weight);
            let back = past.map_or_else(|| back.clone(), |past| &back + past);
            d_hidden = replace_first(back, &d_hidden, size);
            d_sums.push((step.at, of_x));
        }
        d_sums.sort_by_key(|(at, _)| *at);
        let d_sums = concatenate(d_sums.into_iter().map(|(_, d)| d).collect(), 0);
        let made = [Some(d_sums), Some(d_hidden), d_cells, Some(d_weight), d_bias, d_projection];
        let mut wants = wants.into_iter();
        made.map(|gradient| {
            let wanted = wants.next() == Some(true);
            gradient.filter(|_| wanted)
        })
    }
}

/// True if the kernels support the operands.
fn by_kernels(sums: &Body, projected: bool) -> bool {
    !projected && matches!(sums.dtype, DType::F32 | DType::F64) && sums.numel() > 0
}

/// The buffers of a layer for the kernels.
struct LayerBuffers {
    cell: Cell,
    sums: Body,
    weight: Body,
    bias: Option<Body>,
    kept: Body,
    before: Body,
    cell_before: Option<Body>,
    hidden: Body,
    cells: Option<Body>,
}

impl Retain for LayerBuffers {
    type Retained = Whole<LayerBuffers>;
    fn retain(&self, recorder: &mut Recorder) -> Result<Self::Retained> {
        let mut keep = |body: &Body| recorder.stand_in(body);
        Ok(Whole(LayerBuffers {
            cell: self.cell,
            sums: keep(&self.sums)?,
            weight: keep(&self.weight)?,
            bias: self.bias.as_ref().map(&mut keep).transpose()?,
            kept: keep(&self.kept)?,
            before: keep(&self.before)?,
            cell_before: self.cell_before.as_ref().map(&mut keep).transpose()?,
            hidden: keep(&self.hidden)?,
            cells: self.cells.as_ref().map(&mut keep).transpose()?,
        }))
    }
}

impl LayerBuffers {
    /// The layer in the form that the kernels take; `view` returns the memory of each buffer.
    fn layer<'a, B>(
        &'a self,
        sizes: &'a [i64],
        backwards: bool,
        view: impl Fn(&'a Body) -> Result<B>,
    ) -> Result<recurrent::RecurrentArgs<'a, B>> {
        let maybe = |body: &'a Option<Body>| body.as_ref().map(&view).transpose();
        Ok(recurrent::RecurrentArgs {
            cell: self.cell,
            steps: RecurrentSteps { sizes, backwards },
            samples: self.hidden.shape()[0],
            units: self.hidden.shape()[1],
            sums: view(&self.sums)?,
            weight: view(&self.weight)?,
            bias: maybe(&self.bias)?,
            kept: view(&self.kept)?,
            before: view(&self.before)?,
            cell_before: maybe(&self.cell_before)?,
            hidden: view(&self.hidden)?,
            cells: maybe(&self.cells)?,
        })
    }
}

#[primitive(
    results(output, hidden_n, cells_n, kept, before, cell_before),
    scratch(kept, before, cell_before)
)]
impl RecurrentLayer {
    #[allow(clippy::too_many_arguments, reason = "a layer has so many")]
    fn forward(
        sums: &Tensor,
        hidden: &Tensor,
        cells: Option<&Tensor>,
        weight: &Tensor,
        bias: Option<&Tensor>,
        projection: Option<&Tensor>,
        cell: Cell,
        sizes: Vec<i64>,
        backwards: bool,
    ) -> Result<[Body; 6]> {
        let x = sums.body();
        let nothing = || Body::new(&[0], x.dtype, x.device());
        if !by_kernels(&x, projection.is_some()) {
            let layer = LayerOperands { cell, sums, hidden, cells, weight, bias, projection }.values(V::from);
            return mode::with_grad(false, || {
                let (steps, hidden, cells) = layer.run(&sizes, backwards);
                let own = |v: V| v.tensor().and_then(|t| duplicate(&t.body()));
                let out = own(LayerOperands::outputs(&steps))?;
                Ok([out, own(hidden)?, cells.map_or_else(nothing, own)?, nothing()?, nothing()?, nothing()?])
            });
        }
        let (total, units) = (x.shape()[0], hidden.shape()[1]);
        let new = |width: usize| Body::new(&[total, width], x.dtype, x.device());
        let own = LayerBuffers {
            cell,
            sums: dense(&x, x.dtype)?,
            weight: dense(&weight.body(), x.dtype)?,
            bias: bias.map(|bias| dense(&bias.body(), x.dtype)).transpose()?,
            kept: new(cell.kept() * units)?,
            before: new(units)?,
            cell_before: cells.map(|_| new(units)).transpose()?,
            hidden: duplicate(&hidden.body())?,
            cells: cells.map(|cells| duplicate(&cells.body())).transpose()?,
        };
        let out = new(units)?;
        fork!(over [out], with [own, sizes, backwards],
            cpu: crate::cpu::rnn::forward(out.host()?, own.layer(&sizes, backwards, Body::host)?),
            gpu: crate::gpu::recurrent(out.gpu()?, &own.layer(&sizes, backwards, Body::gpu)?))?;
        let LayerBuffers { kept, before, cell_before, hidden, cells, .. } = own;
        let or_nothing = |body: Option<Body>| body.map_or_else(nothing, Ok);
        Ok([out, hidden, or_nothing(cells)?, kept, before, or_nothing(cell_before)?])
    }
    #[allow(clippy::too_many_arguments, reason = "a layer has so many")]
    fn derivative(
        g: [Option<V>; 3],
        sums: V,
        hidden: V,
        cells: Option<V>,
        weight: V,
        bias: Option<V>,
        projection: Option<V>,
        cell: Cell,
        sizes: Vec<i64>,
        backwards: bool,
        wants: [bool; 6],
    ) -> [Option<V>; 6] {
        let layer = LayerOperands { cell, sums, hidden, cells, weight, bias, projection };
        layer.gradients(&sizes, backwards, g, wants)
    }
    #[allow(clippy::too_many_arguments, reason = "a layer has so many")]
    fn fast_derivative(
        g: [Option<Body>; 3],
        sums: Body,
        hidden: Body,
        cells: Option<Body>,
        weight: Body,
        bias: Option<Body>,
        projection: Option<Body>,
        kept: Body,
        before: Body,
        cell_before: Body,
        cell: Cell,
        sizes: Vec<i64>,
        backwards: bool,
        wants: [bool; 6],
    ) -> Result<[Option<Body>; 6]> {
        if !by_kernels(&sums, projection.is_some()) {
            let value = |body: Body| V::from(Tensor::new(body));
            let layer = LayerOperands { cell, sums, hidden, cells, weight, bias, projection }.values(value);
            return bodies(layer.gradients(&sizes, backwards, g.map(|g| g.map(value)), wants));
        }
        let (dtype, device) = (sums.dtype, sums.device());
        let [g_out, g_hidden, g_cells] = g;
        let start = |g: Option<Body>, like: &Body| match g {
            Some(g) => duplicate(&g),
            None => filled(like.shape(), Scalar::Int(0), dtype, device),
        };
        let new = || Body::new(sums.shape(), dtype, device);
        let other = (cell == Cell::Gru).then(new).transpose()?;
        let g_out = g_out.map(|g| dense(&g, dtype)).transpose()?;
        let own = LayerBuffers {
            cell,
            sums: new()?,
            weight: dense(&weight, dtype)?,
            bias: None,
            kept,
            before,
            cell_before: cells.as_ref().map(|_| cell_before),
            hidden: start(g_hidden, &hidden)?,
            cells: cells.map(|cells| start(g_cells, &cells)).transpose()?,
        };
        let sums = &own.sums;
        fork!(over [sums], with [own, g_out, other, sizes, backwards],
            cpu: crate::cpu::rnn::backward(
                host(&g_out)?, host(&other)?, own.layer(&sizes, backwards, Body::host)?),
            gpu: crate::gpu::recurrent_backward(
                g_out.as_ref().map(Body::gpu).transpose()?,
                other.as_ref().map(Body::gpu).transpose()?,
                &own.layer(&sizes, backwards, Body::gpu)?))?;
        let of_own = other.as_ref().unwrap_or(&own.sums);
        let of_weight = || -> Result<Body> {
            let out = Body::new(own.weight.shape(), dtype, device)?;
            multiply(&out, &of_own.with_layout(of_own.layout.transpose(0, 1)?), &own.before, 1.0, 0.0)?;
            Ok(out)
        };
        let of_bias = || -> Result<Body> {
            let sum = reduce(crate::base::Reduction::Sum, of_own, &[0], dtype)?;
            Ok(drop_dims(sum, &[0]))
        };
        let d_weight = wants[3].then(of_weight).transpose()?;
        let d_bias = wants[4].then(of_bias).transpose()?;
        let LayerBuffers { sums, hidden, cells, .. } = own;
        Ok([
            wants[0].then_some(sums),
            wants[1].then_some(hidden),
            cells.filter(|_| wants[2]),
            d_weight,
            d_bias,
            None,
        ])
    }
    #[allow(clippy::too_many_arguments, reason = "a layer has so many")]
    fn batch(
        _b: &Batch,
        sums: &Tensor,
        hidden: &Tensor,
        cells: Option<&Tensor>,
        weight: &Tensor,
        bias: Option<&Tensor>,
        projection: Option<&Tensor>,
        cell: Cell,
        sizes: Vec<i64>,
        backwards: bool,
    ) -> Result<[Tensor; 3]> {
        let layer = LayerOperands { cell, sums, hidden, cells, weight, bias, projection }.values(V::from);
        let (steps, hidden, cells) = layer.run(&sizes, backwards);
        let none = || constant::zeros(&[0], sums.dtype(), sums.device());
        Ok([LayerOperands::outputs(&steps).tensor()?, hidden.tensor()?, cells.map_or_else(none, V::tensor)?])
    }
}
