"""Two convolutions and two linear layers on digits, with dropout, batches from a loader, and a schedule."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from common import digits, steps
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, 1)
        self.conv2 = nn.Conv2d(16, 32, 3, 1)
        self.dropout1 = nn.Dropout(0.25)
        self.dropout2 = nn.Dropout(0.5)
        self.fc1 = nn.Linear(32 * 6 * 6, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = self.dropout2(F.relu(self.fc1(x)))
        return F.log_softmax(self.fc2(x), dim=1)


def main():
    torch.manual_seed(1)
    use_cuda = torch.cuda.is_available() and False
    device = torch.device("cuda" if use_cuda else "cpu")
    total = steps(20)
    train_loader = DataLoader(TensorDataset(*digits(256)), batch_size=32, shuffle=True, drop_last=True)
    model = Net().to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    step = 0
    while step < total:
        model.train()
        for data, target in train_loader:
            data, target = data.to(device), target.to(device)
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            loss.backward()
            optimizer.step()
            print(step, loss.item())
            step += 1
            if step == total:
                break
        scheduler.step()
    model.eval()
    with torch.no_grad():
        data, target = digits(64)
        output = model(data)
        pred = output.argmax(dim=1, keepdim=True)
        print("test", F.nll_loss(output, target, reduction="sum").item(), pred.eq(target.view_as(pred)).sum().item())


if __name__ == "__main__":
    main()
