//! Recurrent layers and cells. A layer in one direction is one primitive, all its time steps included: on the CPU by kernels,
//! elsewhere, with projections and in halves by other operators.

use crate::cpu::rnn::{self as kernel, Cell};
use crate::operator::kernel::{duplicate, filled, reduce};
use crate::operator::prelude::*;
use crate::ops::creation::create;
use crate::ops::linalg::gemm::multiply;
use crate::ops::nn::norm::{bodies, dense, host};
use crate::ops::shape::{join, view};
use crate::tensor::facts::{Keep, Shown};
use crate::tensor::mode;

impl Keep for Cell {
    fn shown(&self) -> Shown {
        Shown::Nothing
    }
}

/// The operands of a layer: what inputs add to the sums of gates (rows of all steps), the first states, the weights of states
/// and their biases, and what hidden states are projected by.
struct Layer {
    cell: Cell,
    sums: V,
    hidden: V,
    cells: Option<V>,
    weight: V,
    bias: Option<V>,
    projection: Option<V>,
}

/// A size; nothing of what has failed.
fn size(x: &V, dim: usize) -> usize {
    x.shape().get(dim).copied().unwrap_or(0)
}

fn rows(x: &V, start: i64, count: i64) -> V {
    x.clone().then(|t| view::narrow(&t, 0, start, count))
}

fn together(parts: Vec<V>, dim: i64) -> V {
    let tensors: Result<Vec<Tensor>> = parts.into_iter().map(V::tensor).collect();
    match tensors {
        Ok(one) if one.len() == 1 => V::from(&one[0]),
        Ok(tensors) => V::from(join::cat(&tensors, dim)),
        Err(error) => V::from(Err(error)),
    }
}

/// The states of the first samples are new, the others stay.
fn renewed(new: V, old: &V, count: i64) -> V {
    let samples = size(old, 0) as i64;
    if count == samples || matches!(old, V::Failed(_)) {
        new
    } else {
        together(vec![new, rows(old, count, samples - count)], 0)
    }
}

/// The parts of a unit's gates.
fn gates(x: &V, count: usize) -> Vec<V> {
    let width = (size(x, 1) / count) as i64;
    (0..count as i64).map(|i| x.clone().then(|t| view::narrow(&t, 1, i * width, width))).collect()
}

/// Each step's first row and number of samples, in the order of time.
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

/// What a step made, for the way back.
struct Step {
    at: usize,
    start: i64,
    size: i64,
    before: V,
    cell_before: Option<V>,
    gates: Vec<V>,
    /// The sums of states of a GRU's new values; the tanh of an LSTM's cells, and its hidden states before the projection.
    more: Vec<V>,
    out: V,
}

impl Layer {
    /// All steps, and the last states.
    fn run(&self, sizes: &[i64], backwards: bool) -> (Vec<Step>, V, Option<V>) {
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
                    cells = cells.map(|old| renewed(new, &old, size));
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
            hidden = renewed(out.clone(), &hidden, size);
            steps.push(Step { at, start, size, before, cell_before, gates: made, more, out });
        }
        (steps, hidden, cells)
    }

    /// The hidden states of all steps, as their rows lie.
    fn outputs(steps: &[Step]) -> V {
        let mut order: Vec<&Step> = steps.iter().collect();
        order.sort_by_key(|step| step.at);
        together(order.into_iter().map(|step| step.out.clone()).collect(), 0)
    }

    /// The gradients of sums, first states, weights, biases and projections.
    fn gradients(&self, sizes: &[i64], backwards: bool, g: [Option<V>; 3]) -> [V; 6] {
        let (steps, ..) = self.run(sizes, backwards);
        let [g_out, g_hidden, g_cells] = g;
        let mut d_hidden = g_hidden.unwrap_or_else(|| nought(&self.hidden));
        let mut d_cells = self.cells.as_ref().map(|c| g_cells.unwrap_or_else(|| nought(c)));
        let mut d_sums: Vec<(usize, V)> = Vec::new();
        let mut d_weight = nought(&self.weight);
        let mut d_bias = self.bias.as_ref().map(nought);
        let mut d_projection = self.projection.as_ref().map(nought);
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
                    *all = renewed(&dc * &f, all, size);
                    let sums = together(parts, 1);
                    (sums.clone(), sums)
                }
                (Cell::Gru, ..) => {
                    let [r, z, n] = [0, 1, 2].map(|k| step.gates[k].clone());
                    let of_new = &dh * (1.0 - &z) * (1.0 - &n * &n);
                    let of_reset = &of_new * &step.more[0] * slope(&r);
                    let of_update = &dh * (&step.before - &n) * slope(&z);
                    past = Some(&dh * &z);
                    let own = vec![of_reset.clone(), of_update.clone(), &of_new * &r];
                    (together(vec![of_reset, of_update, of_new], 1), together(own, 1))
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
            d_hidden = renewed(back, &d_hidden, size);
            d_sums.push((step.at, of_x));
        }
        d_sums.sort_by_key(|(at, _)| *at);
        let d_sums = together(d_sums.into_iter().map(|(_, d)| d).collect(), 0);
        let none = || V::from(0.0);
        [
            d_sums,
            d_hidden,
            d_cells.unwrap_or_else(none),
            d_weight,
            d_bias.unwrap_or_else(none),
            d_projection.unwrap_or_else(none),
        ]
    }
}

/// Whether the kernels can take it.
fn by_kernels(sums: &Body, projected: bool) -> bool {
    sums.device().is_cpu() && !projected && matches!(sums.dtype, DType::F32 | DType::F64) && sums.numel() > 0
}

/// Buffers of a layer, for the kernels.
struct Own {
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

impl Own {
    fn layer<'a>(&'a self, sizes: &'a [i64], backwards: bool) -> Result<kernel::Layer<'a>> {
        Ok(kernel::Layer {
            cell: self.cell,
            steps: kernel::Steps { sizes, backwards },
            samples: self.hidden.shape()[0],
            units: self.hidden.shape()[1],
            sums: self.sums.host()?,
            weight: self.weight.host()?,
            bias: host(&self.bias)?,
            kept: self.kept.host()?,
            before: self.before.host()?,
            cell_before: host(&self.cell_before)?,
            hidden: self.hidden.host()?,
            cells: host(&self.cells)?,
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
            let layer = Layer {
                cell,
                sums: sums.into(),
                hidden: hidden.into(),
                cells: cells.map(V::from),
                weight: weight.into(),
                bias: bias.map(V::from),
                projection: projection.map(V::from),
            };
            return mode::with_grad(false, || {
                let (steps, hidden, cells) = layer.run(&sizes, backwards);
                let own = |v: V| v.tensor().and_then(|t| duplicate(&t.body()));
                let out = own(Layer::outputs(&steps))?;
                Ok([out, own(hidden)?, cells.map_or_else(nothing, own)?, nothing()?, nothing()?, nothing()?])
            });
        }
        let (total, units) = (x.shape()[0], hidden.shape()[1]);
        let new = |width: usize| Body::new(&[total, width], x.dtype, x.device());
        let own = Own {
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
        fork!([&out, &own.sums],
            cpu: kernel::forward(out.host()?, own.layer(&sizes, backwards)?),
            gpu: Err(Error::runtime("recurrent layers are made of other operators there")))?;
        let Own { kept, before, cell_before, hidden, cells, .. } = own;
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
        let layer = Layer { cell, sums, hidden, cells, weight, bias, projection };
        let made = layer.gradients(&sizes, backwards, g);
        let mut wants = wants.into_iter();
        made.map(|v| Some(v).filter(|_| wants.next() == Some(true)))
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
            let layer = Layer {
                cell,
                sums: value(sums),
                hidden: value(hidden),
                cells: cells.map(value),
                weight: value(weight),
                bias: bias.map(value),
                projection: projection.map(value),
            };
            let made = layer.gradients(&sizes, backwards, g.map(|g| g.map(value)));
            let mut wants = wants.into_iter();
            return bodies(made.map(|v| Some(v).filter(|_| wants.next() == Some(true))));
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
        let own = Own {
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
        fork!([&own.sums, &own.weight],
            cpu: kernel::backward(host(&g_out)?, host(&other)?, own.layer(&sizes, backwards)?),
            gpu: Err(Error::runtime("recurrent layers are made of other operators there")))?;
        let of_own = other.as_ref().unwrap_or(&own.sums);
        let of_weight = || -> Result<Body> {
            let out = Body::new(own.weight.shape(), dtype, device)?;
            multiply(&out, &of_own.with_layout(of_own.layout.transpose(0, 1)?), &own.before, 1.0, 0.0)?;
            Ok(out)
        };
        let of_bias = || -> Result<Body> {
            let sum = reduce(crate::base::Fold::Sum, of_own, &[0], dtype)?;
            Ok(drop_dims(sum, &[0]))
        };
        let d_weight = wants[3].then(of_weight).transpose()?;
        let d_bias = wants[4].then(of_bias).transpose()?;
        let Own { sums, hidden, cells, .. } = own;
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
        let layer = Layer {
            cell,
            sums: sums.into(),
            hidden: hidden.into(),
            cells: cells.map(V::from),
            weight: weight.into(),
            bias: bias.map(V::from),
            projection: projection.map(V::from),
        };
        let (steps, hidden, cells) = layer.run(&sizes, backwards);
        let none = || create::zeros(&[0], sums.dtype(), sums.device());
        Ok([Layer::outputs(&steps).tensor()?, hidden.tensor()?, cells.map_or_else(none, V::tensor)?])
    }
}

/// The weights of one layer in one direction.
struct Weights {
    input: Tensor,
    state: Tensor,
    biases: Option<[Tensor; 2]>,
    projection: Option<Tensor>,
}

/// Layer by layer, direction by direction.
fn weights_of(params: &[Tensor], layers: usize, biases: bool, projected: bool) -> Result<Vec<Weights>> {
    let each = 2 + 2 * usize::from(biases) + usize::from(projected);
    if params.len() != layers * each {
        return Err(Error::runtime(format!(
            "Got an incorrect number of RNN parameters: {} where {} are needed",
            params.len(),
            layers * each
        )));
    }
    let made = params.chunks_exact(each).map(|p| Weights {
        input: p[0].clone(),
        state: p[1].clone(),
        biases: biases.then(|| [p[2].clone(), p[3].clone()]),
        projection: projected.then(|| p[each - 1].clone()),
    });
    Ok(made.collect())
}

/// One layer in one direction: the hidden states of all steps, the last ones, and the last cells.
fn layer(
    cell: Cell,
    data: &Tensor,
    sizes: &[i64],
    hidden: &Tensor,
    cells: Option<&Tensor>,
    weights: &Weights,
    backwards: bool,
) -> Result<[Tensor; 3]> {
    let bias = weights.biases.as_ref();
    let sums = super::affine(data, &weights.input, bias.map(|b| &b[0]))?;
    let (x, h, w) = (sums.shape(), hidden.shape(), weights.state.shape());
    let samples = sizes.iter().copied().max().unwrap_or(0) as usize;
    let units = x[1] / cell.gates();
    let fits = h.len() == 2
        && w.len() == 2
        && h[0] == samples
        && w[..] == [x[1], h[1]]
        && units * cell.gates() == x[1]
        && (weights.projection.is_some() || h[1] == units)
        && weights.projection.as_ref().is_none_or(|p| p.shape()[..] == [h[1], units])
        && bias.is_none_or(|b| b[1].shape()[..] == [x[1]])
        && cells.is_none_or(|c| c.shape()[..] == [samples, units]);
    if !fits {
        return Err(Error::runtime(format!(
            "rnn: hidden state of shape {:?} and weight of shape {:?} do not go with {} gates' sums of {samples} samples",
            h.as_slice(),
            w.as_slice(),
            x[1]
        )));
    }
    let others = [Some(hidden), cells, Some(&weights.state)];
    if let Some(other) = others.into_iter().flatten().find(|t| t.dtype() != sums.dtype()) {
        return Err(Error::runtime(format!(
            "rnn: expected all tensors of one dtype, but got {} and {}",
            sums.dtype().scalar_name(),
            other.dtype().scalar_name()
        )));
    }
    let bias = bias.map(|b| &b[1]);
    let projection = weights.projection.as_ref();
    RecurrentLayer::call(
        &sums,
        hidden,
        cells,
        &weights.state,
        bias,
        projection,
        cell,
        sizes.to_vec(),
        backwards,
    )
}

/// What all layers are told.
struct Options {
    cell: Cell,
    biases: bool,
    layers: i64,
    dropout: f64,
    train: bool,
    both: bool,
}

/// All layers on packed steps: the outputs, the last hidden states, and the last cells.
fn run(
    data: &Tensor,
    sizes: &[i64],
    hidden: &Tensor,
    cells: Option<&Tensor>,
    params: &[Tensor],
    options: &Options,
) -> Result<[Tensor; 3]> {
    let directions = 1 + usize::from(options.both);
    let count = usize::try_from(options.layers).unwrap_or(0) * directions;
    if hidden.ndim() != 3
        || hidden.shape()[0] != count
        || cells.is_some_and(|c| c.ndim() != 3 || c.shape()[0] != count)
    {
        return Err(Error::runtime(format!(
            "rnn: expected states of {count} layers and directions, but got hidden states of shape {:?}",
            hidden.shape().as_slice()
        )));
    }
    let projected = cells.is_some_and(|c| c.shape()[2] != hidden.shape()[2]);
    let weights = weights_of(params, count, options.biases, projected)?;
    let of = |t: &Tensor, i: usize| view::select(t, 0, i as i64);
    let (mut data, mut last, mut last_cells) = (data.clone(), Vec::new(), Vec::new());
    for (i, pair) in weights.chunks(directions).enumerate() {
        if i > 0 && options.dropout > 0.0 && options.train {
            data = super::dropout(&data, options.dropout, true)?;
        }
        let mut outs = Vec::new();
        for (direction, weights) in pair.iter().enumerate() {
            let at = i * directions + direction;
            let (h, c) = (of(hidden, at)?, cells.map(|c| of(c, at)).transpose()?);
            let [out, h, c] = layer(options.cell, &data, sizes, &h, c.as_ref(), weights, direction == 1)?;
            outs.push(out);
            last.push(h);
            last_cells.push(c);
        }
        data = if outs.len() == 1 { outs.swap_remove(0) } else { join::cat(&outs, 1)? };
    }
    Ok([data, join::stack(&last, 0)?, join::stack(&last_cells, 0)?])
}

/// The same on steps that all have as many samples, `[time, samples, width]`, or samples first.
fn run_whole(
    input: &Tensor,
    hidden: &Tensor,
    cells: Option<&Tensor>,
    params: &[Tensor],
    options: &Options,
    batch_first: bool,
) -> Result<[Tensor; 3]> {
    if input.ndim() != 3 {
        return Err(Error::runtime(format!("input must have 3 dimensions, got {}", input.ndim())));
    }
    let input = if batch_first { view::transpose(input, 0, 1)? } else { input.clone() };
    let [steps, samples, width] = [0, 1, 2].map(|d| input.shape()[d]);
    if steps == 0 {
        return Err(Error::runtime("Expected sequence length to be larger than 0 in RNN"));
    }
    let flat = view::reshape(&input, &[steps * samples, width])?;
    let sizes = crate::base::room::filled(samples as i64, steps)?;
    let [out, h, c] = run(&flat, &sizes, hidden, cells, params, options)?;
    let out = view::reshape(&out, &[steps, samples, out.shape()[1]])?;
    Ok([if batch_first { view::transpose(&out, 0, 1)? } else { out }, h, c])
}

/// The numbers of samples of packed steps.
fn sizes_of(data: &Tensor, batch_sizes: &Tensor) -> Result<Vec<i64>> {
    if batch_sizes.ndim() != 1 || batch_sizes.dtype() != DType::I64 {
        return Err(Error::runtime("batch_sizes tensor should be a vector of int64"));
    }
    if !batch_sizes.device().is_cpu() {
        return Err(Error::runtime("batch_sizes tensor should be on CPU"));
    }
    let one = |i| Ok(view::select(batch_sizes, 0, i)?.item()?.as_i64());
    let sizes = (0..batch_sizes.numel() as i64).map(one).collect::<Result<Vec<i64>>>()?;
    let rows = data.shape().first().copied().unwrap_or(0) as i64;
    let falling = sizes.windows(2).all(|pair| pair[1] <= pair[0]) && sizes.iter().all(|&n| n > 0);
    if data.ndim() != 2 || !falling || sizes.iter().sum::<i64>() != rows || sizes.is_empty() {
        return Err(Error::runtime(format!(
            "expected packed data with a row for each sample of each step, in falling numbers, but got data of shape {:?} and \
             batch_sizes {sizes:?}",
            data.shape().as_slice()
        )));
    }
    Ok(sizes)
}

fn pair(hx: &[Tensor], op: &str) -> Result<[Tensor; 2]> {
    match hx {
        [h, c] => Ok([h.clone(), c.clone()]),
        _ => Err(Error::runtime(format!("{op} expects two hidden states"))),
    }
}

macro_rules! one_state {
    ($($name:ident, $packed:ident, $step:ident, $cell:expr, $doc:literal, $step_doc:literal;)*) => { $(
        #[doc = $doc]
        #[operator(function, composite, sample = "recurrent(name)")]
        #[allow(clippy::too_many_arguments, reason = "they are the operator's")]
        pub fn $name(
            input: &Tensor,
            hx: &Tensor,
            params: &[Tensor],
            has_biases: bool,
            num_layers: i64,
            dropout: f64,
            train: bool,
            bidirectional: bool,
            batch_first: bool,
        ) -> Result<[Tensor; 2]> {
            let options = Options { cell: $cell, biases: has_biases, layers: num_layers, dropout, train, both: bidirectional };
            let [out, h, _] = run_whole(input, hx, None, params, &options, batch_first)?;
            Ok([out, h])
        }

        #[doc = $doc]
        #[overload($name.data)]
        #[allow(clippy::too_many_arguments, reason = "they are the operator's")]
        pub fn $packed(
            data: &Tensor,
            batch_sizes: &Tensor,
            hx: &Tensor,
            params: &[Tensor],
            has_biases: bool,
            num_layers: i64,
            dropout: f64,
            train: bool,
            bidirectional: bool,
        ) -> Result<[Tensor; 2]> {
            let options = Options { cell: $cell, biases: has_biases, layers: num_layers, dropout, train, both: bidirectional };
            let [out, h, _] = run(data, &sizes_of(data, batch_sizes)?, hx, None, params, &options)?;
            Ok([out, h])
        }

        #[doc = $step_doc]
        #[operator(function, composite, sample = "recurrent_step(name)")]
        pub fn $step(
            input: &Tensor,
            hx: &Tensor,
            w_ih: &Tensor,
            w_hh: &Tensor,
            b_ih: Option<&Tensor>,
            b_hh: Option<&Tensor>,
        ) -> Result<Tensor> {
            let [_, h, _] = step($cell, input, hx, None, [w_ih, w_hh], [b_ih, b_hh])?;
            Ok(h)
        }
    )* };
}

/// A step of a cell.
fn step(
    cell: Cell,
    input: &Tensor,
    hidden: &Tensor,
    cells: Option<&Tensor>,
    [w_ih, w_hh]: [&Tensor; 2],
    biases: [Option<&Tensor>; 2],
) -> Result<[Tensor; 3]> {
    if input.ndim() != 2 || hidden.ndim() != 2 {
        return Err(Error::runtime(format!(
            "a recurrent cell expects matrices, but got input of {} and hidden state of {} dimensions",
            input.ndim(),
            hidden.ndim()
        )));
    }
    if input.shape()[1] != w_ih.shape().last().copied().unwrap_or(0) {
        return Err(Error::runtime(format!(
            "input has inconsistent input_size: got {} expected {}",
            input.shape()[1],
            w_ih.shape().last().copied().unwrap_or(0)
        )));
    }
    if input.shape()[0] != hidden.shape()[0] {
        return Err(Error::runtime(format!(
            "Input batch size {} doesn't match hidden batch size {}",
            input.shape()[0],
            hidden.shape()[0]
        )));
    }
    let weights = Weights {
        input: w_ih.clone(),
        state: w_hh.clone(),
        biases: match biases {
            [Some(input), Some(state)] => Some([input.clone(), state.clone()]),
            _ => None,
        },
        projection: None,
    };
    layer(cell, input, &[input.shape()[0] as i64], hidden, cells, &weights, false)
}

one_state! {
    rnn_tanh, rnn_tanh_packed, rnn_tanh_cell, Cell::Tanh,
    "Recurrent layers that take the tanh of their sums: all outputs, and the last states.",
    "A step of a recurrent layer that takes the tanh of its sums.";
    rnn_relu, rnn_relu_packed, rnn_relu_cell, Cell::Relu,
    "Recurrent layers that take what is positive of their sums: all outputs, and the last states.",
    "A step of a recurrent layer that takes what is positive of its sums.";
    gru, gru_packed, gru_cell, Cell::Gru,
    "Gated recurrent layers: all outputs, and the last states.",
    "A step of a gated recurrent layer.";
}

/// Layers of long short-term memory: all outputs, the last hidden states, and the last cells.
#[operator(function, composite, sample = "recurrent(name)")]
#[allow(clippy::too_many_arguments, reason = "they are the operator's")]
pub fn lstm(
    input: &Tensor,
    hx: &[Tensor],
    params: &[Tensor],
    has_biases: bool,
    num_layers: i64,
    dropout: f64,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> Result<[Tensor; 3]> {
    let [h, c] = pair(hx, "lstm")?;
    let options = Options {
        cell: Cell::Lstm,
        biases: has_biases,
        layers: num_layers,
        dropout,
        train,
        both: bidirectional,
    };
    run_whole(input, &h, Some(&c), params, &options, batch_first)
}

/// The same on packed steps.
#[overload(lstm.data)]
#[allow(clippy::too_many_arguments, reason = "they are the operator's")]
pub fn lstm_packed(
    data: &Tensor,
    batch_sizes: &Tensor,
    hx: &[Tensor],
    params: &[Tensor],
    has_biases: bool,
    num_layers: i64,
    dropout: f64,
    train: bool,
    bidirectional: bool,
) -> Result<[Tensor; 3]> {
    let [h, c] = pair(hx, "lstm")?;
    let options = Options {
        cell: Cell::Lstm,
        biases: has_biases,
        layers: num_layers,
        dropout,
        train,
        both: bidirectional,
    };
    run(data, &sizes_of(data, batch_sizes)?, &h, Some(&c), params, &options)
}

/// A step of long short-term memory: the hidden state, and the cell.
#[operator(function, composite, sample = "recurrent_step(name)")]
pub fn lstm_cell(
    input: &Tensor,
    hx: &[Tensor],
    w_ih: &Tensor,
    w_hh: &Tensor,
    b_ih: Option<&Tensor>,
    b_hh: Option<&Tensor>,
) -> Result<[Tensor; 2]> {
    let [h, c] = pair(hx, "lstm_cell")?;
    let [_, h, c] = step(Cell::Lstm, input, &h, Some(&c), [w_ih, w_hh], [b_ih, b_hh])?;
    Ok([h, c])
}
