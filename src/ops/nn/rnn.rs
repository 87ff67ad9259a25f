//! Recurrent layers and cells: layer by layer, direction by direction.

use crate::base::kernel_args::recurrent::Cell;
use crate::base::try_alloc;
use crate::operator::primitives::views;
use crate::ops::indexing::index::to_i64;
use crate::ops::nn::recurrent_layer::RecurrentLayer;
use crate::ops::prelude::*;
use crate::ops::shape::{join, slices, view};

/// The weights of one layer in one direction.
struct RnnWeights {
    input: Tensor,
    state: Tensor,
    biases: Option<[Tensor; 2]>,
    projection: Option<Tensor>,
}

/// Groups the parameters by layer, and within a layer by direction.
fn weights_of(params: &[Tensor], layers: usize, biases: bool, projected: bool) -> Result<Vec<RnnWeights>> {
    let each = 2 + 2 * usize::from(biases) + usize::from(projected);
    if params.len() != layers * each {
        return Err(Error::runtime(format!(
            "Got an incorrect number of RNN parameters: {} where {} are needed",
            params.len(),
            layers * each
        )));
    }
    let made = params.chunks_exact(each).map(|p| RnnWeights {
        input: p[0].clone(),
        state: p[1].clone(),
        biases: biases.then(|| [p[2].clone(), p[3].clone()]),
        projection: projected.then(|| p[each - 1].clone()),
    });
    Ok(made.collect())
}

/// Runs one layer in one direction. Returns the hidden states of all steps, the last hidden states, and the last cells.
fn layer(
    cell: Cell,
    data: &Tensor,
    sizes: &[i64],
    hidden: &Tensor,
    cells: Option<&Tensor>,
    weights: &RnnWeights,
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
            "rnn: hidden state of shape {:?} and weight of shape {:?} do not fit a batch of {samples} and gates of total size {}",
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

struct RnnOptions {
    cell: Cell,
    biases: bool,
    layers: i64,
    dropout: f64,
    train: bool,
    both: bool,
}

/// Runs all layers on packed steps. Returns the outputs, the last hidden states, and the last cells.
fn run(
    data: &Tensor,
    sizes: &[i64],
    hidden: &Tensor,
    cells: Option<&Tensor>,
    params: &[Tensor],
    options: &RnnOptions,
) -> Result<[Tensor; 3]> {
    let directions = 1 + usize::from(options.both);
    let count = usize::try_from(options.layers).unwrap_or(0) * directions;
    if hidden.ndim() != 3
        || hidden.shape()[0] != count
        || cells.is_some_and(|c| c.ndim() != 3 || c.shape()[0] != count)
    {
        return Err(Error::runtime(format!(
            "rnn: expected states for {count} layers and directions, but got hidden states of shape {:?}",
            hidden.shape().as_slice()
        )));
    }
    let projected = cells.is_some_and(|c| c.shape()[2] != hidden.shape()[2]);
    let weights = weights_of(params, count, options.biases, projected)?;
    let of = |t: &Tensor, i: usize| slices::select(t, 0, i as i64);
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

/// Runs the layers on a padded batch, `[time, batch, width]` or batch first.
fn run_whole(
    input: &Tensor,
    hidden: &Tensor,
    cells: Option<&Tensor>,
    params: &[Tensor],
    options: &RnnOptions,
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
    let flat = views::reshape(&input, &[steps * samples, width])?;
    try_alloc::check_list(steps)?;
    let sizes = try_alloc::filled(samples as i64, steps)?;
    let [out, h, c] = run(&flat, &sizes, hidden, cells, params, options)?;
    let out = views::reshape(&out, &[steps, samples, out.shape()[1]])?;
    Ok([if batch_first { view::transpose(&out, 0, 1)? } else { out }, h, c])
}

/// The batch sizes of packed steps.
fn sizes_of(data: &Tensor, batch_sizes: &Tensor) -> Result<Vec<i64>> {
    if batch_sizes.ndim() != 1 || batch_sizes.dtype() != DType::I64 {
        return Err(Error::runtime("batch_sizes tensor should be a vector of int64"));
    }
    if !batch_sizes.device().is_cpu() {
        return Err(Error::runtime("batch_sizes tensor should be on CPU"));
    }
    try_alloc::check_list(batch_sizes.numel())?;
    let sizes = to_i64(batch_sizes)?;
    let rows = data.shape().first().copied().unwrap_or(0) as i64;
    let falling = sizes.windows(2).all(|pair| pair[1] <= pair[0]) && sizes.iter().all(|&n| n > 0);
    if data.ndim() != 2 || !falling || sizes.iter().sum::<i64>() != rows || sizes.is_empty() {
        return Err(Error::runtime(format!(
            "rnn: expected packed data with one row per example and step, and batch sizes that are positive and do not increase, \
             but got data of shape {:?} and {} steps",
            data.shape().as_slice(),
            sizes.len()
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
    ($($name:ident, $packed:ident, $step:ident, $cell:expr, $doc:literal, $layer:literal, $step_doc:literal, $rows:literal $(, $cast:ident)?;)*) => { $(
        #[doc = $doc]
        ///
        /// Called with packed sequences, it takes `data` and `batch_sizes` instead of `input`.
        ///
        /// Args:
        ///     input: the sequence, `(L, N, H_in)`, or `(N, L, H_in)` if `batch_first`.
        ///     data, batch_sizes: the fields of a packed sequence.
        ///     hx: the initial hidden states of all layers.
        ///     params: weights and biases of all layers, in the order of the module.
        ///     has_biases: whether there are biases.
        ///     num_layers: number of layers.
        ///     dropout: probability of dropout between layers.
        ///     train: whether to apply dropout.
        ///     bidirectional: whether to run over the sequence in both directions.
        ///     batch_first: whether the batch is the first dimension.
        ///
        /// Returns:
        ///     The outputs and the last hidden states.
        ///
        /// Examples:
        #[doc = concat!("     >>> layer = nn.", $layer)]
        ///     >>> x, h = torch.ones(5, 2, 3), torch.zeros(1, 2, 4)
        #[doc = concat!("     >>> out, h = torch.", stringify!($name), "(x, h, layer._flat_weights, True, 1, 0.0, False, False, False)")]
        ///     >>> out.shape
        ///     torch.Size([5, 2, 4])
        #[operator(function, composite, $(autocast = $cast,)? sample = "recurrent(name)")]
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
            let options = RnnOptions { cell: $cell, biases: has_biases, layers: num_layers, dropout, train, both: bidirectional };
            let [out, h, _] = run_whole(input, hx, None, params, &options, batch_first)?;
            Ok([out, h])
        }

        #[doc = $doc]
        #[overload($name.data)]
        #[allow(clippy::too_many_arguments, reason = "they are the operator's")]
        pub fn $packed(
            data: &Tensor,
            #[elsewhere] batch_sizes: &Tensor,
            hx: &Tensor,
            params: &[Tensor],
            has_biases: bool,
            num_layers: i64,
            dropout: f64,
            train: bool,
            bidirectional: bool,
        ) -> Result<[Tensor; 2]> {
            let options = RnnOptions { cell: $cell, biases: has_biases, layers: num_layers, dropout, train, both: bidirectional };
            let [out, h, _] = run(data, &sizes_of(data, batch_sizes)?, hx, None, params, &options)?;
            Ok([out, h])
        }

        #[doc = $step_doc]
        ///
        /// Args:
        ///     input: the input, `(N, H_in)`.
        ///     hx: the hidden state, `(N, H)`.
        ///     w_ih: weights of the input, `(H, H_in)`, with the gates of a GRU one after the other.
        ///     w_hh: weights of the hidden state, `(H, H)`; likewise.
        ///     b_ih, b_hh: biases, `(H,)`; likewise.
        ///
        /// Examples:
        ///     >>> x, h = torch.ones(2, 3), torch.zeros(2, 4)
        #[doc = concat!("     >>> torch.", stringify!($step), "(x, h, torch.ones(", $rows, ", 3), torch.ones(", $rows, ", 4)).shape")]
        ///     torch.Size([2, 4])
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

/// Computes one step of a cell.
fn step(
    cell: Cell,
    input: &Tensor,
    hidden: &Tensor,
    cells: Option<&Tensor>,
    [w_ih, w_hh]: [&Tensor; 2],
    biases: [Option<&Tensor>; 2],
) -> Result<[Tensor; 3]> {
    if input.ndim() != 2 {
        return Err(Error::runtime(format!(
            "Expected 2D input (batch x feature), but got {}D input",
            input.ndim()
        )));
    }
    if input.shape()[1] != w_ih.shape().last().copied().unwrap_or(0) {
        return Err(Error::runtime(format!(
            "input has inconsistent input_size: got {} expected {}",
            input.shape()[1],
            w_ih.shape().last().copied().unwrap_or(0)
        )));
    }
    let size = w_hh.shape().last().copied().unwrap_or(0);
    for (at, state) in [Some(hidden), cells].into_iter().flatten().enumerate() {
        let &[samples, units] = state.shape().as_slice() else {
            return Err(Error::runtime(format!(
                "Expected 2D hidden{at} (batch x hidden_size), but got {}D tensor",
                state.ndim()
            )));
        };
        if samples != input.shape()[0] {
            return Err(Error::runtime(format!(
                "Input batch size {} doesn't match hidden{at} batch size {samples}",
                input.shape()[0]
            )));
        }
        if units != size {
            return Err(Error::runtime(format!(
                "hidden{at} has inconsistent hidden_size: got {units}, expected {size}"
            )));
        }
    }
    let weights = RnnWeights {
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
    "Run the layers of a recurrent network (RNN) with tanh over a sequence.", "RNN(3, 4)",
    "Apply one step of a recurrent cell with tanh.", 4, lower;
    rnn_relu, rnn_relu_packed, rnn_relu_cell, Cell::Relu,
    "Run the layers of a recurrent network (RNN) with ReLU over a sequence.", "RNN(3, 4, nonlinearity='relu')",
    "Apply one step of a recurrent cell with ReLU.", 4, lower;
    gru, gru_packed, gru_cell, Cell::Gru,
    "Run the layers of a gated recurrent network (GRU) over a sequence.", "GRU(3, 4)",
    "Apply one step of a gated recurrent cell (GRU).", 12;
}

/// Run the layers of a long short-term memory network (LSTM) over a sequence.
///
/// Called with packed sequences, it takes `data` and `batch_sizes` instead of `input`.
///
/// Args:
///     input: the sequence, `(L, N, H_in)`, or `(N, L, H_in)` if `batch_first`.
///     data, batch_sizes: the fields of a packed sequence.
///     hx: the initial hidden and cell state of all layers.
///     params: weights and biases of all layers, in the order of `nn.LSTM`.
///     has_biases: whether there are biases.
///     num_layers: number of layers.
///     dropout: probability of dropout between layers.
///     train: whether to apply dropout.
///     bidirectional: whether to run over the sequence in both directions.
///     batch_first: whether the batch is the first dimension.
///
/// Returns:
///     The outputs, the last hidden states and the last cell states.
///
/// Examples:
///     >>> layer = nn.LSTM(3, 4)
///     >>> states = [torch.zeros(1, 2, 4), torch.zeros(1, 2, 4)]
///     >>> out, h, c = torch.lstm(torch.ones(5, 2, 3), states, layer._flat_weights, True, 1, 0.0, False, False, False)
///     >>> out.shape
///     torch.Size([5, 2, 4])
#[operator(function, composite, autocast = lower, sample = "recurrent(name)")]
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
    let options = RnnOptions {
        cell: Cell::Lstm,
        biases: has_biases,
        layers: num_layers,
        dropout,
        train,
        both: bidirectional,
    };
    run_whole(input, &h, Some(&c), params, &options, batch_first)
}

/// Run an LSTM over a packed sequence.
#[overload(lstm.data)]
#[allow(clippy::too_many_arguments, reason = "they are the operator's")]
pub fn lstm_packed(
    data: &Tensor,
    #[elsewhere] batch_sizes: &Tensor,
    hx: &[Tensor],
    params: &[Tensor],
    has_biases: bool,
    num_layers: i64,
    dropout: f64,
    train: bool,
    bidirectional: bool,
) -> Result<[Tensor; 3]> {
    let [h, c] = pair(hx, "lstm")?;
    let options = RnnOptions {
        cell: Cell::Lstm,
        biases: has_biases,
        layers: num_layers,
        dropout,
        train,
        both: bidirectional,
    };
    run(data, &sizes_of(data, batch_sizes)?, &h, Some(&c), params, &options)
}

/// Apply one step of a long short-term memory cell (LSTM).
///
/// Args:
///     input: the input, `(N, H_in)`.
///     hx: hidden and cell state, each `(N, H)`.
///     w_ih: weights of the input, `(4 * H, H_in)`.
///     w_hh: weights of the hidden state, `(4 * H, H)`.
///     b_ih, b_hh: biases, each `(4 * H,)`.
///
/// Returns:
///     The new hidden state and the new cell state.
///
/// Examples:
///     >>> h, c = torch.lstm_cell(torch.ones(2, 3), [torch.zeros(2, 4)] * 2, torch.ones(16, 3), torch.ones(16, 4))
///     >>> h.shape, c.shape
///     (torch.Size([2, 4]), torch.Size([2, 4]))
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
