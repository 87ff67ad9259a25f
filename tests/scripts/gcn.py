"""Graph convolutions on a random graph of communities, messages summed by index."""

import math

import torch
import torch.nn.functional as F
from common import steps
from torch import nn
from torch.nn.parameter import Parameter


class GraphConvolution(nn.Module):
    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(torch.FloatTensor(in_features, out_features))
        if bias:
            self.bias = Parameter(torch.FloatTensor(out_features))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, edges, norm):
        support = torch.mm(input, self.weight)
        src, dst = edges
        output = torch.zeros_like(support).index_add_(0, dst, support[src] * norm[:, None])
        return output + self.bias if self.bias is not None else output

    def extra_repr(self):
        return f"{self.in_features} -> {self.out_features}"


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, dropout):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass)
        self.dropout = dropout

    def forward(self, x, edges, norm):
        x = F.relu(self.gc1(x, edges, norm))
        x = F.dropout(x, self.dropout, training=self.training)
        return F.log_softmax(self.gc2(x, edges, norm), dim=1)


def main():
    total = steps(20)
    torch.manual_seed(42)
    n, classes = 90, 3
    labels = torch.arange(n) % classes
    same = labels[:, None] == labels[None, :]
    adj = (torch.rand(n, n) < torch.where(same, 0.15, 0.02)).float()
    adj = ((adj + adj.t() + torch.eye(n)) > 0).float()
    degree = adj.sum(1)
    edges = adj.nonzero().t()
    norm = degree[edges[0]].pow(-0.5) * degree[edges[1]].pow(-0.5)
    features = torch.eye(n)
    idx_train = torch.randperm(n)[:30]
    model = GCN(n, 16, classes, 0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
    for step in range(total):
        model.train()
        optimizer.zero_grad()
        output = model(features, edges, norm)
        loss = F.nll_loss(output[idx_train], labels[idx_train])
        loss.backward()
        optimizer.step()
        model.eval()
        accuracy = (model(features, edges, norm).max(1)[1].type_as(labels) == labels).double().mean()
        print(step, loss.item(), accuracy.item())


if __name__ == "__main__":
    main()
