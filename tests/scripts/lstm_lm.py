"""A word language model: embedding, two LSTM layers with dropout, truncated backpropagation, plain gradient steps."""

import math

import torch
import torch.nn as nn
from common import steps

WORDS = "a man saw a dog and the dog saw the man so the man ran and the dog ran after him all day long".split() * 40


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers, dropout=0.2):
        super().__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        self.nhid, self.nlayers = nhid, nlayers
        self.init_weights()

    def init_weights(self):
        initrange = 0.1
        nn.init.uniform_(self.encoder.weight, -initrange, initrange)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -initrange, initrange)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return nn.functional.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return (weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid))


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


def main():
    total, bptt, lr = steps(20), 10, 5.0
    torch.manual_seed(1111)
    words = sorted(set(WORDS))
    data = batchify(torch.LongTensor([words.index(w) for w in WORDS]), 8)
    model = RNNModel(len(words), 24, 32, 2)
    criterion = nn.NLLLoss()
    model.train()
    hidden = model.init_hidden(8)
    i = 0
    for step in range(total):
        if i + bptt + 1 > data.size(0):
            i = 0
        x, y = data[i : i + bptt], data[i + 1 : i + 1 + bptt].reshape(-1)
        i += bptt
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(x, hidden)
        loss = criterion(output, y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        print(step, loss.item())
    print("ppl", math.exp(loss.item()))


if __name__ == "__main__":
    main()
