"""Learning to act: a pole on a cart, whose physics stands in tests/scripts."""

import random
from collections import deque, namedtuple

from library import T as torch

from .registry import CHANGED, program, script

nn, F, optim = torch.nn, torch.nn.functional, torch.optim
Categorical = torch.distributions.Categorical
reinforced = script("reinforce")
Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
SavedAction = namedtuple("SavedAction", ["log_prob", "value"])


@program(step="it runs a backward through")
def reinforce(step, model):
    env, net = reinforced.CartPole(), reinforced.Policy()
    policy = model(net)
    optimizer = optim.Adam(net.parameters(), lr=1e-2)

    @step
    def finish_episode():
        R = 0
        policy_loss = []
        returns = deque()
        for r in net.rewards[::-1]:
            R = r + 0.99 * R
            returns.appendleft(R)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + 1e-7)
        for log_prob, R in zip(net.saved_log_probs, returns):
            policy_loss.append(-log_prob * R)
        optimizer.zero_grad()
        policy_loss = torch.cat(policy_loss).sum()
        policy_loss.backward()
        optimizer.step()
        del net.rewards[:]
        del net.saved_log_probs[:]
        return policy_loss

    for _ in range(8):
        state = env.reset()
        for _ in range(8):
            probs = policy(torch.tensor(state).float().unsqueeze(0))
            m = Categorical(probs)
            action = m.sample()
            net.saved_log_probs.append(m.log_prob(action))
            state, reward, done = env.step(action.item())
            net.rewards.append(reward)
            if done:
                break
        yield finish_episode()
    return net


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 16)
        self.action_head = nn.Linear(16, 2)
        self.value_head = nn.Linear(16, 1)

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


def actions(step, model, net):
    """What a policy does in each step of an episode: a distribution, a draw, its probability."""
    env, policy = reinforced.CartPole(), model(net)

    @step
    def select_action(state):
        probs = policy(state)
        m = Categorical(probs)
        action = m.sample()
        return action, m.log_prob(action), m.entropy()

    state = env.reset()
    for _ in range(12):
        with torch.no_grad():
            action, log_prob, entropy = select_action(torch.tensor(state))
        state, _, done = env.step(action.item())
        if done:
            state = env.reset()
        yield log_prob + entropy
    return net


class Actor(ActorCritic):
    def forward(self, x):
        return super().forward(x)[0]


@program()
def select_action(step, model):
    return (yield from actions(step, model, Actor()))


@program()
def select_action_with_dropout(step, model):
    """The distribution checks its probabilities, which are random already."""
    return (yield from actions(step, model, nn.Sequential(nn.Unflatten(0, (1, 4)), reinforced.Policy())))


@program()
def actor_critic(step, model):
    env, net = reinforced.CartPole(), ActorCritic()
    policy = model(net)
    optimizer = optim.Adam(net.parameters(), lr=3e-2)

    @step
    def update(states, actions, returns):
        probs, values = policy(states)
        m = Categorical(probs)
        advantage = returns - values.squeeze(-1)
        policy_losses = -m.log_prob(actions) * advantage.detach()
        value_losses = F.smooth_l1_loss(values.squeeze(-1), returns, reduction="none")
        optimizer.zero_grad()
        loss = policy_losses.sum() + value_losses.sum()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(10):
        state, states, actions, rewards = env.reset(), [], [], []
        for _ in range(8):
            states.append(torch.tensor(state))
            with torch.no_grad():
                probs, _ = policy(states[-1])
            actions.append(Categorical(probs).sample())
            state, reward, _ = env.step(actions[-1].item())
            rewards.append(reward)
        R, returns = 0, []
        for r in rewards[::-1]:
            R = r + 0.99 * R
            returns.insert(0, R)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + 1e-6)
        yield update(torch.stack(states), torch.stack(actions), returns)
    return net


@program()
def dqn(step, model):
    class ReplayMemory:
        def __init__(self, capacity):
            self.memory = deque([], maxlen=capacity)

        def push(self, *args):
            self.memory.append(Transition(*args))

        def sample(self, batch_size):
            return chance.sample(self.memory, batch_size)

        def __len__(self):
            return len(self.memory)

    def make():
        return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))

    chance, env = random.Random(0), reinforced.CartPole()
    policy_net, target_net = model(make()), model(make())
    target_net.load_state_dict(policy_net.state_dict())
    optimizer = optim.AdamW(policy_net.parameters(), lr=1e-4, amsgrad=True)
    memory = ReplayMemory(100)

    @step
    def optimize(state_batch, action_batch, reward_batch, next_states, non_final):
        state_action_values = policy_net(state_batch).gather(1, action_batch)
        with torch.no_grad():
            next_state_values = target_net(next_states).max(1).values * non_final
        expected_state_action_values = (next_state_values * 0.99) + reward_batch
        criterion = nn.SmoothL1Loss()
        loss = criterion(state_action_values, expected_state_action_values.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
        optimizer.step()
        target_net_state_dict = target_net.state_dict()
        policy_net_state_dict = policy_net.state_dict()
        for key in policy_net_state_dict:
            target_net_state_dict[key] = policy_net_state_dict[key] * 0.005 + target_net_state_dict[key] * (1 - 0.005)
        target_net.load_state_dict(target_net_state_dict)
        return loss

    state = torch.tensor(env.reset()).unsqueeze(0)
    for _ in range(20):
        if chance.random() > 0.5:
            with torch.no_grad():
                action = policy_net(state).max(1).indices.view(1, 1)
        else:
            action = torch.tensor([[chance.randrange(2)]], dtype=torch.long)
        observation, reward, done = env.step(action.item())
        following = torch.tensor(observation).unsqueeze(0)
        memory.push(state, action, following, torch.tensor([reward]))
        state = torch.tensor(env.reset()).unsqueeze(0) if done else following
        if len(memory) < 8:
            continue
        batch = Transition(*zip(*memory.sample(8)))
        yield optimize(
            torch.cat(batch.state), torch.cat(batch.action), torch.cat(batch.reward), torch.cat(batch.next_state), torch.ones(8)
        )
    return policy_net, target_net


@program()
def ppo(step, model):
    class Agent(nn.Module):
        def __init__(self):
            super().__init__()
            self.critic = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
            self.actor = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))

        def get_action_and_value(self, x, action=None):
            logits = self.actor(x)
            probs = Categorical(logits=logits)
            if action is None:
                action = probs.sample()
            return action, probs.log_prob(action), probs.entropy(), self.critic(x)

        forward = get_action_and_value

    agent = model(Agent())
    optimizer = optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)

    @step
    def update(obs, actions, logprobs, advantages, returns, values):
        _, newlogprob, entropy, newvalue = agent(obs, actions)
        logratio = newlogprob - logprobs
        ratio = logratio.exp()
        with torch.no_grad():
            approx_kl = ((ratio - 1) - logratio).mean()
            clipfrac = ((ratio - 1.0).abs() > 0.2).float().mean().item()
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
        pg_loss1 = -advantages * ratio
        pg_loss2 = -advantages * torch.clamp(ratio, 1 - 0.2, 1 + 0.2)
        pg_loss = torch.max(pg_loss1, pg_loss2).mean()
        newvalue = newvalue.view(-1)
        v_clipped = values + torch.clamp(newvalue - values, -0.2, 0.2)
        v_loss = 0.5 * torch.max((newvalue - returns) ** 2, (v_clipped - returns) ** 2).mean()
        loss = pg_loss - 0.01 * entropy.mean() + v_loss * 0.5
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
        return loss, approx_kl, clipfrac

    for it in range(12):
        optimizer.param_groups[0]["lr"] = (1.0 - it / 12) * 2.5e-4
        obs = torch.randn(16, 4)
        with torch.no_grad():
            actions, logprobs, _, values = agent(obs)
        returns = torch.randn(16)
        loss, kl, clipfrac = update(obs, actions, logprobs, returns - values.view(-1), returns, values.view(-1))
        yield loss + kl + clipfrac
    return agent


@program(step=CHANGED)
def soft_actor_critic(step, model):
    """Twin critics, a squashed Gaussian policy, a temperature that learns, targets that follow slowly."""

    class Policy(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.mean, self.log_std = nn.Linear(3, 16), nn.Linear(16, 1), nn.Linear(16, 1)

        def forward(self, state):
            x = F.relu(self.body(state))
            mean, log_std = self.mean(x), torch.clamp(self.log_std(x), min=-20, max=2)
            normal = torch.distributions.Normal(mean, log_std.exp())
            x_t = normal.rsample()
            y_t = torch.tanh(x_t)
            log_prob = normal.log_prob(x_t) - torch.log(1 - y_t.pow(2) + 1e-6)
            return y_t, log_prob.sum(1, keepdim=True)

    def critic():
        return nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))

    policy, q1, q2 = model(Policy()), model(critic()), model(critic())
    t1, t2 = critic(), critic()
    t1.load_state_dict(getattr(q1, "_orig_mod", q1).state_dict())
    t2.load_state_dict(getattr(q2, "_orig_mod", q2).state_dict())
    log_alpha = torch.zeros(1, requires_grad=True)
    q_optim = optim.Adam([*q1.parameters(), *q2.parameters()], lr=1e-3)
    p_optim, a_optim = optim.Adam(policy.parameters(), lr=1e-3), optim.Adam([log_alpha], lr=1e-3)

    @step
    def update(state, action, reward, following):
        with torch.no_grad():
            a2, logp2 = policy(following)
            both = torch.cat([following, a2], 1)
            target = reward + 0.99 * (torch.min(t1(both), t2(both)) - log_alpha.exp() * logp2)
        both = torch.cat([state, action], 1)
        q_loss = F.mse_loss(q1(both), target) + F.mse_loss(q2(both), target)
        q_optim.zero_grad()
        q_loss.backward()
        q_optim.step()
        a, logp = policy(state)
        both = torch.cat([state, a], 1)
        p_loss = (log_alpha.exp().detach() * logp - torch.min(q1(both), q2(both))).mean()
        p_optim.zero_grad()
        p_loss.backward()
        p_optim.step()
        a_loss = -(log_alpha * (logp + -1.0).detach()).mean()
        a_optim.zero_grad()
        a_loss.backward()
        a_optim.step()
        for target_net, net in ((t1, q1), (t2, q2)):
            for target_param, param in zip(target_net.parameters(), net.parameters()):
                target_param.data.copy_(target_param.data * (1.0 - 0.005) + param.data * 0.005)
        return q_loss.item(), p_loss.item()

    for _ in range(12):
        yield sum(update(torch.randn(8, 3), torch.rand(8, 1) * 2 - 1, torch.randn(8, 1), torch.randn(8, 3)))
    return policy, q1, q2, t1, t2, log_alpha
