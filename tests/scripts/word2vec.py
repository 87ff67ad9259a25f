"""Skip-grams with negative samples: two embeddings, a batched product, a schedule of the rate."""

from collections import Counter

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import steps
from torch.utils.data import DataLoader, Dataset

WORDS = "the king and the queen sat in the hall while the cat and the dog lay by the fire in the great hall".split() * 10


class SkipGrams(Dataset):
    def __init__(self, words, window=2):
        counts = Counter(words)
        self.vocab = sorted(counts)
        ids = [self.vocab.index(w) for w in words]
        self.pairs = [
            (ids[i], ids[j])
            for i in range(len(ids))
            for j in range(max(0, i - window), min(len(ids), i + window + 1))
            if i != j
        ]
        self.freq = torch.tensor([counts[w] for w in self.vocab], dtype=torch.float) ** 0.75

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        return self.pairs[i]


class SkipGramModel(nn.Module):
    def __init__(self, emb_size, emb_dimension):
        super().__init__()
        self.u_embeddings = nn.Embedding(emb_size, emb_dimension)
        self.v_embeddings = nn.Embedding(emb_size, emb_dimension)
        initrange = 1.0 / emb_dimension
        nn.init.uniform_(self.u_embeddings.weight.data, -initrange, initrange)
        nn.init.constant_(self.v_embeddings.weight.data, 0)

    def forward(self, pos_u, pos_v, neg_v):
        emb_u, emb_v = self.u_embeddings(pos_u), self.v_embeddings(pos_v)
        score = torch.sum(torch.mul(emb_u, emb_v), dim=1)
        score = -F.logsigmoid(torch.clamp(score, max=10, min=-10))
        neg_score = torch.bmm(self.v_embeddings(neg_v), emb_u.unsqueeze(2)).squeeze(2)
        neg_score = -torch.sum(F.logsigmoid(-torch.clamp(neg_score, max=10, min=-10)), dim=1)
        return torch.mean(score + neg_score)


def main():
    total = steps(20)
    torch.manual_seed(5)
    data = SkipGrams(WORDS)
    model = SkipGramModel(len(data.vocab), 16)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, total)
    loader = DataLoader(data, batch_size=32, shuffle=True, drop_last=True)
    for step, (u, v) in zip(range(total), loader):
        negatives = torch.multinomial(data.freq, len(u) * 5, replacement=True).view(len(u), 5)
        loss = model(u, v, negatives)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        print(step, loss.item())
    w = F.normalize(model.u_embeddings.weight.detach(), dim=1)
    print("nearest", data.vocab[(w @ w[data.vocab.index("cat")]).topk(2).indices[1]])


if __name__ == "__main__":
    main()
