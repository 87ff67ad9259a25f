"""Graphs of nodes, and pairs of examples."""

from library import T as torch

from .registry import HOST, program, script

nn, F, optim = torch.nn, torch.nn.functional, torch.optim


def graph(n=30, classes=3):
    """A random graph of communities: features, adjacency and labels."""
    labels = torch.arange(n) % classes
    same = labels[:, None] == labels[None, :]
    adj = (torch.rand(n, n) < torch.where(same, 0.3, 0.05)).float()
    return torch.eye(n), ((adj + adj.t() + torch.eye(n)) > 0).float(), labels


@program()
def gcn(step, model):
    features, adj, labels = graph()
    degree = adj.sum(1)
    edges = adj.nonzero().t()
    norm = degree[edges[0]].pow(-0.5) * degree[edges[1]].pow(-0.5)
    idx_train = torch.randperm(30)[:10]
    net = model(script("gcn").GCN(30, 16, 3, 0.5))
    optimizer = optim.Adam(net.parameters(), lr=0.02, weight_decay=5e-4)

    @step
    def train():
        net.train()
        optimizer.zero_grad()
        output = net(features, edges, norm)
        loss = F.nll_loss(output[idx_train], labels[idx_train])
        loss.backward()
        optimizer.step()
        net.eval()
        with torch.no_grad():
            accuracy = (net(features, edges, norm).max(1)[1].type_as(labels) == labels).double().mean()
        return loss, accuracy

    for _ in range(12):
        loss, accuracy = train()
        yield loss + accuracy
    return net


@program()
def gat(step, model):
    class GraphAttentionLayer(nn.Module):
        def __init__(self, in_features, out_features, n_heads, concat=False, dropout=0.4, leaky_relu_slope=0.2):
            super().__init__()
            self.n_heads, self.concat, self.dropout = n_heads, concat, dropout
            self.n_hidden = out_features // n_heads if concat else out_features
            self.W = nn.Parameter(torch.empty(size=(in_features, self.n_hidden * n_heads)))
            self.a = nn.Parameter(torch.empty(size=(n_heads, 2 * self.n_hidden, 1)))
            self.leakyrelu = nn.LeakyReLU(leaky_relu_slope)
            self.softmax = nn.Softmax(dim=1)
            nn.init.xavier_normal_(self.W)
            nn.init.xavier_normal_(self.a)

        def _get_attention_scores(self, h_transformed):
            source = torch.matmul(h_transformed, self.a[:, : self.n_hidden, :])
            target = torch.matmul(h_transformed, self.a[:, self.n_hidden :, :])
            return self.leakyrelu(source + target.mT)

        def forward(self, h, adj_mat):
            n_nodes = h.shape[0]
            h_transformed = torch.mm(h, self.W)
            h_transformed = F.dropout(h_transformed, self.dropout, training=self.training)
            h_transformed = h_transformed.view(n_nodes, self.n_heads, self.n_hidden).permute(1, 0, 2)
            e = self._get_attention_scores(h_transformed)
            connectivity_mask = -9e16 * torch.ones_like(e)
            e = torch.where(adj_mat > 0, e, connectivity_mask)
            attention = F.softmax(e, dim=-1)
            attention = F.dropout(attention, self.dropout, training=self.training)
            h_prime = torch.matmul(attention, h_transformed)
            if self.concat:
                return h_prime.permute(1, 0, 2).contiguous().view(n_nodes, self.n_heads * self.n_hidden)
            return h_prime.mean(dim=0)

    class GAT(nn.Module):
        def __init__(self, in_features, n_hidden, n_heads, num_classes, dropout=0.4):
            super().__init__()
            self.gat1 = GraphAttentionLayer(in_features, n_hidden, n_heads, concat=True, dropout=dropout)
            self.gat2 = GraphAttentionLayer(n_hidden, num_classes, 1, concat=False, dropout=dropout)

        def forward(self, input_tensor):
            node_features, adj_mat = input_tensor
            x = F.elu(self.gat1(node_features, adj_mat))
            return F.log_softmax(self.gat2(x, adj_mat), dim=1)

    features, adj, labels = graph()
    net = model(GAT(30, 16, 4, 3))
    criterion = nn.NLLLoss()
    optimizer = optim.Adam(net.parameters(), lr=0.005, weight_decay=5e-4)
    index = torch.randperm(30)[:10]

    @step
    def train_iter(input, target, mask_train):
        net.train()
        optimizer.zero_grad()
        output = net(input)
        loss = criterion(output[mask_train], target[mask_train])
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(12):
        yield train_iter((features, adj), labels, index)
    return net


@program()
def forward_forward(step, model):
    """Hinton's forward-forward algorithm: each layer has a loss and an optimizer of its own."""

    class Layer(nn.Linear):
        def __init__(self, in_features, out_features, threshold=2.0, lr=0.03):
            super().__init__(in_features, out_features)
            self.relu = nn.ReLU()
            self.opt = optim.Adam(self.parameters(), lr=lr)
            self.threshold = threshold

        def forward(self, x):
            x_direction = x / (x.norm(2, 1, keepdim=True) + 1e-4)
            return self.relu(torch.mm(x_direction, self.weight.T) + self.bias.unsqueeze(0))

        def train(self, x_pos, x_neg=None):
            if x_neg is None:
                return super().train(x_pos)
            g_pos = self.forward(x_pos).pow(2).mean(1)
            g_neg = self.forward(x_neg).pow(2).mean(1)
            loss = torch.log(1 + torch.exp(torch.cat([-g_pos + self.threshold, g_neg - self.threshold]))).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            return self.forward(x_pos).detach(), self.forward(x_neg).detach(), loss

    layers = nn.ModuleList([Layer(12, 16), Layer(16, 16)])

    @step
    def train(x_pos, x_neg):
        h_pos, h_neg, total = x_pos, x_neg, 0
        for layer in layers:
            h_pos, h_neg, loss = layer.train(h_pos, h_neg)
            total = total + loss.detach()
        return total

    for _ in range(12):
        yield train(torch.randn(8, 12) + 1, torch.randn(8, 12) - 1)
    return layers


@program(step=HOST)
def simclr(step, model):
    encoder = model(nn.Sequential(nn.Linear(12, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8)))
    optimizer = optim.Adam(encoder.parameters(), 3e-4, weight_decay=1e-4)
    criterion = nn.CrossEntropyLoss()

    def info_nce_loss(features, n_views=2, temperature=0.07):
        batch = features.shape[0] // n_views
        labels = torch.cat([torch.arange(batch) for _ in range(n_views)], dim=0)
        labels = (labels.unsqueeze(0) == labels.unsqueeze(1)).float()
        features = F.normalize(features, dim=1)
        similarity = torch.matmul(features, features.T)
        mask = torch.eye(labels.shape[0], dtype=torch.bool)
        labels = labels[~mask].view(labels.shape[0], -1)
        similarity = similarity[~mask].view(similarity.shape[0], -1)
        positives = similarity[labels.bool()].view(labels.shape[0], -1)
        negatives = similarity[~labels.bool()].view(similarity.shape[0], -1)
        logits = torch.cat([positives, negatives], dim=1)
        return logits / temperature, torch.zeros(logits.shape[0], dtype=torch.long)

    @step
    def train(images):
        images = torch.cat([images + 0.1 * torch.randn_like(images), images + 0.1 * torch.randn_like(images)])
        logits, labels = info_nce_loss(encoder(images))
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(12):
        yield train(torch.randn(6, 12))
    return encoder


@program(step=HOST)
def triplets_with_mined_negatives(step, model):
    net = model(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4)))
    optimizer = optim.SGD(net.parameters(), lr=0.1)

    @step
    def train(x, y):
        z = F.normalize(net(x), dim=-1)
        distance = torch.cdist(z, z)
        same = y[:, None] == y[None, :]
        hardest_positive = distance.masked_fill(~same, 0).max(1).values
        hardest_negative = distance.masked_fill(same, float("inf")).min(1).values
        loss = F.relu(hardest_positive - hardest_negative + 0.2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(12):
        yield train(torch.randn(12, 6), torch.arange(12) % 3)
    return net
