"""Pictures: classifiers, and networks from pictures to pictures."""

from library import T as torch

from .registry import example, program, script

nn, F, optim = torch.nn, torch.nn.functional, torch.optim
common = script("common")


@program()
def mnist_convnet(step, model):
    net = model(script("mnist_convnet").Net())
    optimizer = optim.Adadelta(net.parameters(), lr=1.0)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.7)

    @step
    def train(data, target):
        optimizer.zero_grad()
        output = net(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        return loss

    net.train()
    for _ in range(12):
        yield train(*common.digits(8))
        scheduler.step()
    return net


@program()
def mnist_rnn(step, model):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(input_size=16, hidden_size=32, batch_first=True)
            self.batchnorm = nn.BatchNorm1d(32)
            self.dropout1 = nn.Dropout(0.25)
            self.dropout2 = nn.Dropout(0.5)
            self.fc1 = nn.Linear(32, 16)
            self.fc2 = nn.Linear(16, 10)

        def forward(self, input):
            input = input.reshape(-1, 16, 16)
            output, hidden = self.rnn(input)
            output = output[:, -1, :]
            output = self.batchnorm(output)
            output = self.dropout1(output)
            output = self.fc1(output)
            output = F.relu(output)
            output = self.dropout2(output)
            output = self.fc2(output)
            return F.log_softmax(output, dim=1)

    net = model(Net())
    optimizer = optim.Adadelta(net.parameters(), lr=0.1)

    @step
    def train(data, target):
        net.train()
        optimizer.zero_grad()
        loss = F.nll_loss(net(data), target)
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(12):
        yield train(*common.digits(8))
    return net


@program()
def resnet(step, model):
    net = script("resnet").ResNet()
    average = optim.swa_utils.AveragedModel(net)
    net = model(net)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    scheduler = optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=5)

    @step
    def train(inputs, targets):
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        return loss, outputs.argmax(1).eq(targets).sum()

    for _ in range(12):
        loss, correct = train(*common.digits(8))
        scheduler.step()
        average.update_parameters(getattr(net, "_orig_mod", net))
        yield loss + correct
    return net, average


@program()
def siamese(step, model):
    parts = script("siamese")
    net, contrastive, triplet = model(parts.SiameseNetwork()), parts.ContrastiveLoss(), nn.TripletMarginLoss(margin=1.0)
    optimizer = optim.SGD(net.parameters(), lr=0.02, momentum=0.9, nesterov=True)

    @step
    def train(x, y):
        a, b, c = net(x, x.roll(1, 0), x.roll(2, 0))
        label = (y != y.roll(1, 0)).float().unsqueeze(1)
        loss = contrastive(a, b, label) + 0.1 * triplet(a, b, c)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(12):
        yield train(*common.digits(8))
    return net


@program()
def vit(step, model):
    net = model(script("vit").ViT())
    optimizer = optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.05)
    scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=13)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)

    @step
    def train(x, y):
        loss = criterion(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    for _ in range(12):
        yield train(*common.digits(8))
        scheduler.step()
    return net


@program()
def examples_convnet(step, model):
    digits = example("convnet").digits
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(3),
        nn.Flatten(),
        nn.Linear(144, 10),
    )
    net = model(net)
    optimizer = optim.AdamW(net.parameters(), lr=3e-3)

    @step
    def train(images, labels):
        loss = F.cross_entropy(net(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    for _ in range(12):
        yield train(*digits(8))
    return net


@program()
def mlp_mixer(step, model):
    class PreNormResidual(nn.Module):
        def __init__(self, dim, fn):
            super().__init__()
            self.fn = fn
            self.norm = nn.LayerNorm(dim)

        def forward(self, x):
            return self.fn(self.norm(x)) + x

    def feed_forward(dim, hidden, dropout=0.1, dense=nn.Linear):
        return nn.Sequential(dense(dim, hidden), nn.GELU(), nn.Dropout(dropout), dense(hidden, dim), nn.Dropout(dropout))

    class Mixer(nn.Module):
        def __init__(self, patch=4, dim=16, depth=2):
            super().__init__()
            self.patch = patch
            self.embed = nn.Linear(patch * patch, dim)
            conv = lambda a, b: nn.Conv1d(a, b, kernel_size=1)
            self.layers = nn.Sequential(
                *[
                    nn.Sequential(
                        PreNormResidual(dim, feed_forward(16, 32, dense=conv)), PreNormResidual(dim, feed_forward(dim, 32))
                    )
                    for _ in range(depth)
                ]
            )
            self.head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 10))

        def forward(self, x):
            b, c, h, w = x.shape
            p = self.patch
            x = x.view(b, c, h // p, p, w // p, p).permute(0, 2, 4, 3, 5, 1).reshape(b, -1, p * p * c)
            return self.head[1](self.head[0](self.layers(self.embed(x))).mean(dim=1))

    net = model(Mixer())
    optimizer = optim.AdamW(net.parameters(), lr=1e-3)

    @step
    def train(x, y):
        logits = net(x)
        loss = F.cross_entropy(logits, y)
        acc = (logits.argmax(dim=-1) == y).float().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item(), "acc": acc.item()}

    for _ in range(12):
        yield train(*common.digits(8))["loss"]
    return net


@program()
def unet(step, model):
    class DoubleConv(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.double_conv = nn.Sequential(
                nn.Conv2d(i, o, 3, padding=1, bias=False),
                nn.BatchNorm2d(o),
                nn.ReLU(inplace=True),
                nn.Conv2d(o, o, 3, padding=1, bias=False),
                nn.BatchNorm2d(o),
                nn.ReLU(inplace=True),
            )

        def forward(self, x):
            return self.double_conv(x)

    class Up(nn.Module):
        def __init__(self, i, o, bilinear):
            super().__init__()
            if bilinear:
                self.up = nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear"), nn.Conv2d(i, i // 2, 1))
            else:
                self.up = nn.ConvTranspose2d(i, i // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(i, o)

        def forward(self, x1, x2):
            x1 = self.up(x1)
            dy, dx = x2.size(2) - x1.size(2), x2.size(3) - x1.size(3)
            x1 = F.pad(x1, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
            return self.conv(torch.cat([x2, x1], dim=1))

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.inc = DoubleConv(1, 4)
            self.down1 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(4, 8))
            self.down2 = nn.Sequential(nn.MaxPool2d(2), DoubleConv(8, 16))
            self.up1 = Up(16, 8, bilinear=True)
            self.up2 = Up(8, 4, bilinear=False)
            self.outc = nn.Conv2d(4, 2, 1)

        def forward(self, x):
            x1 = self.inc(x)
            x2 = self.down1(x1)
            x3 = self.down2(x2)
            return self.outc(self.up2(self.up1(x3, x2), x1))

    def dice(input, target, epsilon=1e-6):
        inter = 2 * (input * target).sum(dim=(-1, -2))
        sets = input.sum(dim=(-1, -2)) + target.sum(dim=(-1, -2))
        sets = torch.where(sets == 0, inter, sets)
        return ((inter + epsilon) / (sets + epsilon)).mean()

    net = model(UNet())
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.RMSprop(net.parameters(), lr=1e-4, weight_decay=1e-8, momentum=0.9, foreach=True)

    @step
    def train(images, masks):
        pred = net(images)
        loss = criterion(pred, masks)
        loss += 1 - dice(F.softmax(pred, dim=1).float(), F.one_hot(masks, 2).permute(0, 3, 1, 2).float())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        return loss

    for _ in range(12):
        images, _ = common.digits(2)
        yield train(images, (images[:, 0] > 0.5).long())
    return net


@program()
def super_resolution(step, model):
    class Net(nn.Module):
        def __init__(self, upscale_factor):
            super().__init__()
            self.relu = nn.ReLU()
            self.conv1 = nn.Conv2d(1, 8, (5, 5), (1, 1), (2, 2))
            self.conv2 = nn.Conv2d(8, 8, (3, 3), (1, 1), (1, 1))
            self.conv3 = nn.Conv2d(8, 4, (3, 3), (1, 1), (1, 1))
            self.conv4 = nn.Conv2d(4, upscale_factor**2, (3, 3), (1, 1), (1, 1))
            self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
            nn.init.orthogonal_(self.conv1.weight, nn.init.calculate_gain("relu"))
            nn.init.orthogonal_(self.conv4.weight)

        def forward(self, x):
            x = self.relu(self.conv1(x))
            x = self.relu(self.conv2(x))
            x = self.relu(self.conv3(x))
            return self.pixel_shuffle(self.conv4(x))

    net = model(Net(2))
    criterion = nn.MSELoss()
    optimizer = optim.Adam(net.parameters(), lr=0.001)

    @step
    def train(batch):
        input, target = batch[0], batch[1]
        optimizer.zero_grad()
        loss = criterion(net(input), target)
        loss.backward()
        optimizer.step()
        return loss.item()

    epoch_loss = 0
    for _ in range(12):
        images, _ = common.digits(4)
        epoch_loss += train([F.avg_pool2d(images, 2), images])
        yield epoch_loss
    return net


@program()
def style_transfer(step, model):
    content, style = (common.digits(1)[0] for _ in range(2))
    features = model(nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU()).requires_grad_(False).eval())

    def gram_matrix(input):
        a, b, c, d = input.size()
        features = input.view(a * b, c * d)
        return torch.mm(features, features.t()).div(a * b * c * d)

    content_target, style_target = features(content).detach(), gram_matrix(features(style)).detach()
    image = content.clone().requires_grad_(True)
    optimizer = optim.Adam([image], lr=0.05)

    @step
    def train():
        with torch.no_grad():
            image.clamp_(0, 1)
        optimizer.zero_grad()
        found = features(image)
        style_score, content_score = F.mse_loss(gram_matrix(found), style_target), F.mse_loss(found, content_target)
        loss = 1e4 * style_score + content_score
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(12):
        yield train()
    return (image,)
