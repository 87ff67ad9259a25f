"""Words, characters and sequences."""

import math

from library import T as torch

from .registry import example, program, script

nn, F, optim = torch.nn, torch.nn.functional, torch.optim


@program()
def char_gpt(step, model):
    parts = script("char_gpt")
    data = torch.randint(0, 27, (400,))
    config = parts.GPTConfig(vocab_size=27, block_size=16, n_embd=16)
    net = parts.GPT(config)
    optimizer = net.configure_optimizers(1e-1, 1e-3, (0.9, 0.99))
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    net = model(net)

    @step
    def train(x, y):
        logits, loss = net(x, y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        return loss

    for it in range(12):
        ix = torch.randint(len(data) - config.block_size, (4,))
        x = torch.stack([data[i : i + config.block_size] for i in ix])
        y = torch.stack([data[i + 1 : i + 1 + config.block_size] for i in ix])
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * min(1.0, (it + 1) / 5) * 0.5 * (1.0 + math.cos(math.pi * it / 12))
        yield train(x, y)
    return net


@program()
def lstm_lm(step, model):
    parts = script("lstm_lm")
    lr, ntokens = 5.0, 20
    net = model(parts.RNNModel(ntokens, 12, 16, 2))
    criterion = nn.NLLLoss()
    net.train()

    @step
    def train(data, targets, hidden):
        net.zero_grad()
        hidden = parts.repackage_hidden(hidden)
        output, hidden = net(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.25)
        for p in net.parameters():
            p.data.add_(p.grad, alpha=-lr)
        return loss.item(), hidden

    hidden = getattr(net, "_orig_mod", net).init_hidden(4)
    for _ in range(12):
        words = torch.randint(0, ntokens, (6, 4))
        loss, hidden = train(words[:-1], words[1:].reshape(-1), hidden)
        yield loss
    return net


@program()
def word_language_model_transformer(step, model):
    class PositionalEncoding(nn.Module):
        def __init__(self, d_model, dropout=0.1, max_len=64):
            super().__init__()
            self.dropout = nn.Dropout(p=dropout)
            pe = torch.zeros(max_len, d_model)
            position = torch.arange(0, max_len, dtype=torch.float).unsqueeze(1)
            div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
            pe[:, 0::2] = torch.sin(position * div_term)
            pe[:, 1::2] = torch.cos(position * div_term)
            self.register_buffer("pe", pe.unsqueeze(0).transpose(0, 1))

        def forward(self, x):
            x = x + self.pe[: x.size(0), :]
            return self.dropout(x)

    class TransformerModel(nn.Transformer):
        def __init__(self, ntoken, ninp, nhead, nhid, nlayers):
            super().__init__(d_model=ninp, nhead=nhead, dim_feedforward=nhid, num_encoder_layers=nlayers)
            self.src_mask = None
            self.pos_encoder = PositionalEncoding(ninp)
            self.input_emb = nn.Embedding(ntoken, ninp)
            self.ninp = ninp
            self.decoder = nn.Linear(ninp, ntoken)

        def _generate_square_subsequent_mask(self, sz):
            return torch.log(torch.tril(torch.ones(sz, sz)))

        def forward(self, src, has_mask=True):
            if has_mask:
                device = src.device
                if self.src_mask is None or self.src_mask.size(0) != len(src):
                    self.src_mask = self._generate_square_subsequent_mask(len(src)).to(device)
            else:
                self.src_mask = None
            src = self.input_emb(src) * math.sqrt(self.ninp)
            src = self.pos_encoder(src)
            output = self.encoder(src, mask=self.src_mask)
            return F.log_softmax(self.decoder(output), dim=-1)

    net = model(TransformerModel(20, 16, 2, 16, 2))
    criterion = nn.NLLLoss()

    @step
    def train(data, targets):
        net.zero_grad()
        output = net(data)
        output = output.view(-1, 20)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.25)
        for p in net.parameters():
            if p.grad is not None:
                p.data.add_(p.grad, alpha=-1.0)
        return loss

    for _ in range(12):
        words = torch.randint(0, 20, (9, 4))
        yield train(words[:-1], words[1:].reshape(-1))
    return net


@program()
def word2vec(step, model):
    net = model(script("word2vec").SkipGramModel(19, 16))
    optimizer = optim.Adam(net.parameters(), lr=0.02)
    scheduler = optim.lr_scheduler.CosineAnnealingLR(optimizer, 12)

    @step
    def train(u, v, negatives):
        loss = net(u, v, negatives)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(12):
        yield train(torch.randint(0, 19, (8,)), torch.randint(0, 19, (8,)), torch.randint(0, 19, (8, 5)))
        scheduler.step()
    return net


@program()
def seq2seq_with_attention(step, model):
    class EncoderRNN(nn.Module):
        def __init__(self, input_size, hidden_size, dropout_p=0.1):
            super().__init__()
            self.embedding = nn.Embedding(input_size, hidden_size)
            self.gru = nn.GRU(hidden_size, hidden_size, batch_first=True)
            self.dropout = nn.Dropout(dropout_p)

        def forward(self, input):
            embedded = self.dropout(self.embedding(input))
            output, hidden = self.gru(embedded)
            return output, hidden

    class BahdanauAttention(nn.Module):
        def __init__(self, hidden_size):
            super().__init__()
            self.Wa = nn.Linear(hidden_size, hidden_size)
            self.Ua = nn.Linear(hidden_size, hidden_size)
            self.Va = nn.Linear(hidden_size, 1)

        def forward(self, query, keys):
            scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
            scores = scores.squeeze(2).unsqueeze(1)
            weights = F.softmax(scores, dim=-1)
            return torch.bmm(weights, keys), weights

    class AttnDecoderRNN(nn.Module):
        def __init__(self, hidden_size, output_size, dropout_p=0.1):
            super().__init__()
            self.embedding = nn.Embedding(output_size, hidden_size)
            self.attention = BahdanauAttention(hidden_size)
            self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
            self.out = nn.Linear(hidden_size, output_size)
            self.dropout = nn.Dropout(dropout_p)

        def forward(self, encoder_outputs, encoder_hidden, target_tensor=None):
            batch_size = encoder_outputs.size(0)
            decoder_input = torch.empty(batch_size, 1, dtype=torch.long).fill_(0)
            decoder_hidden = encoder_hidden
            decoder_outputs, attentions = [], []
            for i in range(5):
                decoder_output, decoder_hidden, attn_weights = self.forward_step(decoder_input, decoder_hidden, encoder_outputs)
                decoder_outputs.append(decoder_output)
                attentions.append(attn_weights)
                if target_tensor is not None:
                    decoder_input = target_tensor[:, i].unsqueeze(1)
                else:
                    _, topi = decoder_output.topk(1)
                    decoder_input = topi.squeeze(-1).detach()
            decoder_outputs = torch.cat(decoder_outputs, dim=1)
            decoder_outputs = F.log_softmax(decoder_outputs, dim=-1)
            return decoder_outputs, decoder_hidden, torch.cat(attentions, dim=1)

        def forward_step(self, input, hidden, encoder_outputs):
            embedded = self.dropout(self.embedding(input))
            query = hidden.permute(1, 0, 2)
            context, attn_weights = self.attention(query, encoder_outputs)
            input_gru = torch.cat((embedded, context), dim=2)
            output, hidden = self.gru(input_gru, hidden)
            return self.out(output), hidden, attn_weights

    encoder, decoder = model(EncoderRNN(12, 16)), model(AttnDecoderRNN(16, 12))
    encoder_optimizer = optim.Adam(encoder.parameters(), lr=1e-3)
    decoder_optimizer = optim.Adam(decoder.parameters(), lr=1e-3)
    criterion = nn.NLLLoss()

    @step
    def train(input_tensor, target_tensor):
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        encoder_outputs, encoder_hidden = encoder(input_tensor)
        decoder_outputs, _, _ = decoder(encoder_outputs, encoder_hidden, target_tensor)
        loss = criterion(decoder_outputs.view(-1, decoder_outputs.size(-1)), target_tensor.view(-1))
        loss.backward()
        encoder_optimizer.step()
        decoder_optimizer.step()
        return loss.item()

    for _ in range(12):
        words = torch.randint(0, 12, (4, 5))
        yield train(words, words.flip(1))
    return encoder, decoder


@program()
def lstm_by_hand(step, model):
    class LSTM(nn.Module):
        def __init__(self, input_sz, hidden_sz):
            super().__init__()
            self.hidden_size = hidden_sz
            self.W = nn.Parameter(torch.Tensor(input_sz, hidden_sz * 4))
            self.U = nn.Parameter(torch.Tensor(hidden_sz, hidden_sz * 4))
            self.bias = nn.Parameter(torch.Tensor(hidden_sz * 4))
            self.init_weights()

        def init_weights(self):
            stdv = 1.0 / math.sqrt(self.hidden_size)
            for weight in self.parameters():
                weight.data.uniform_(-stdv, stdv)

        def forward(self, x, init_states=None):
            bs, seq_sz, _ = x.size()
            hidden_seq = []
            if init_states is None:
                h_t, c_t = (torch.zeros(bs, self.hidden_size), torch.zeros(bs, self.hidden_size))
            else:
                h_t, c_t = init_states
            HS = self.hidden_size
            for t in range(seq_sz):
                x_t = x[:, t, :]
                gates = x_t @ self.W + h_t @ self.U + self.bias
                i_t, f_t, g_t, o_t = (
                    torch.sigmoid(gates[:, :HS]),
                    torch.sigmoid(gates[:, HS : HS * 2]),
                    torch.tanh(gates[:, HS * 2 : HS * 3]),
                    torch.sigmoid(gates[:, HS * 3 :]),
                )
                c_t = f_t * c_t + i_t * g_t
                h_t = o_t * torch.tanh(c_t)
                hidden_seq.append(h_t.unsqueeze(0))
            hidden_seq = torch.cat(hidden_seq, dim=0)
            hidden_seq = hidden_seq.transpose(0, 1).contiguous()
            return hidden_seq, (h_t, c_t)

    net = model(LSTM(3, 8))
    optimizer = optim.Adam(net.parameters(), lr=0.01)

    @step
    def train(x, y):
        optimizer.zero_grad()
        out, (h, c) = net(x)
        loss = ((out.sum(-1) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(12):
        x = torch.randn(4, 10, 3)
        yield train(x, x.sum(-1).cumsum(1))
    return net


@program()
def examples_lstm(step, model):
    parts = example("lstm")
    net = model(parts.Foretell())
    optimizer = optim.Adam(net.parameters(), lr=5e-3)

    @step
    def train(wave):
        loss = F.mse_loss(net(wave[:, :-1]), wave[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    for _ in range(12):
        yield train(parts.waves(4, "cpu"))
    return net


@program()
def examples_transformer(step, model):
    parts = example("transformer")
    net = model(parts.Transformer(20))
    data = torch.randint(0, 20, (300,))
    optimizer = optim.AdamW(net.parameters(), lr=2e-3)

    @step
    def train():
        starts = torch.randint(0, 300 - 9, (4, 1))
        pieces = data[starts + torch.arange(9)]
        loss = F.cross_entropy(net(pieces[:, :-1]).flatten(0, 1), pieces[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss.item()

    for _ in range(12):
        yield train()
    return net


@program()
def time_sequence_prediction(step, model):
    class Sequence(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm1 = nn.LSTMCell(1, 8)
            self.lstm2 = nn.LSTMCell(8, 8)
            self.linear = nn.Linear(8, 1)

        def forward(self, input, future=0):
            outputs = []
            h_t = torch.zeros(input.size(0), 8, dtype=torch.double)
            c_t = torch.zeros(input.size(0), 8, dtype=torch.double)
            h_t2 = torch.zeros(input.size(0), 8, dtype=torch.double)
            c_t2 = torch.zeros(input.size(0), 8, dtype=torch.double)
            for input_t in input.split(1, dim=1):
                h_t, c_t = self.lstm1(input_t, (h_t, c_t))
                h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
                output = self.linear(h_t2)
                outputs += [output]
            for _ in range(future):
                h_t, c_t = self.lstm1(output, (h_t, c_t))
                h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
                output = self.linear(h_t2)
                outputs += [output]
            return torch.cat(outputs, dim=1)

    data = torch.sin(torch.arange(12.0, dtype=torch.double) / 3 + torch.rand(4, 1, dtype=torch.double))
    input, target = data[:, :-1], data[:, 1:]
    seq = Sequence()
    seq.double()
    seq = model(seq)
    criterion = nn.MSELoss()
    optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=5)

    # LBFGS calls this as often as it needs, so it is what is worth compiling.
    @step
    def closure():
        optimizer.zero_grad()
        out = seq(input)
        loss = criterion(out, target)
        loss.backward()
        return loss

    for _ in range(3):
        yield optimizer.step(closure)
        with torch.no_grad():
            pred = seq(input, future=3)
            yield criterion(pred[:, :-3], target)
    return seq
