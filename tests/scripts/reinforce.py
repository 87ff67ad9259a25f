"""A policy gradient on a cart with a pole, whose physics stands here."""

import math
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from common import steps
from torch.distributions import Categorical


class CartPole:
    def reset(self):
        self.state = (torch.rand(4) * 0.1 - 0.05).tolist()
        return self.state

    def step(self, action):
        x, v, angle, spin = self.state
        force = 10.0 if action == 1 else -10.0
        c, s = math.cos(angle), math.sin(angle)
        temp = (force + 0.05 * spin**2 * s) / 1.1
        alpha = (9.8 * s - c * temp) / (0.5 * (4.0 / 3.0 - 0.1 * c**2 / 1.1))
        a = temp - 0.05 * alpha * c / 1.1
        self.state = [x + 0.02 * v, v + 0.02 * a, angle + 0.02 * spin, spin + 0.02 * alpha]
        return self.state, 1.0, abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.2095


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 32)
        self.dropout = nn.Dropout(p=0.2)
        self.affine2 = nn.Linear(32, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.dropout(self.affine1(x)))
        return F.softmax(self.affine2(x), dim=1)


def main():
    episodes = steps(6)
    torch.manual_seed(543)
    env, policy = CartPole(), Policy()
    optimizer = optim.Adam(policy.parameters(), lr=1e-2)
    for episode in range(episodes):
        state = env.reset()
        for _ in range(60):
            m = Categorical(policy(torch.tensor(state).float().unsqueeze(0)))
            action = m.sample()
            policy.saved_log_probs.append(m.log_prob(action))
            state, reward, done = env.step(action.item())
            policy.rewards.append(reward)
            if done:
                break
        R, returns = 0, deque()
        for r in policy.rewards[::-1]:
            R = r + 0.99 * R
            returns.appendleft(R)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + 1e-7)
        policy_loss = [-log_prob * R for log_prob, R in zip(policy.saved_log_probs, returns)]
        optimizer.zero_grad()
        loss = torch.cat(policy_loss).sum()
        loss.backward()
        optimizer.step()
        print(episode, loss.item(), len(policy.rewards))
        del policy.rewards[:]
        del policy.saved_log_probs[:]


if __name__ == "__main__":
    main()
