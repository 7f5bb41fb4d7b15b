"""The Recurrent Bandit as an eager PyTorch loop: what one would write first."""

import torch
from torch import nn

ENERGY, LEARNING_RATE, DROPOUT, HIDDEN = 0.1, 0.001, 0.1, 128


class RecurrentNetwork(nn.Module):
    def __init__(self, inputs: int, num_arms: int) -> None:
        super().__init__()
        self.first = nn.GRUCell(inputs, HIDDEN)
        self.second = nn.GRUCell(HIDDEN, HIDDEN)
        self.output = nn.Linear(HIDDEN, num_arms)
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, x, hidden):
        first = self.first(x, hidden[0])
        second = self.second(self.drop(first), hidden[1])
        return self.output(self.drop(second)), (first.detach(), second.detach())


def run(steps: int, num_arms: int = 10, period: int = 10_000, seed: int = 0) -> float:
    """Pulls in the sinusoidal bandit; returns the expected regret."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    network = RecurrentNetwork(1, num_arms)
    optimizer = torch.optim.RMSprop(network.parameters(), lr=LEARNING_RATE)
    theta = torch.rand(num_arms)
    phases = torch.arange(num_arms) / num_arms
    x = torch.ones(1, 1)
    hidden = (torch.zeros(1, HIDDEN), torch.zeros(1, HIDDEN))
    baseline, regret = 0.0, 0.0
    for t in range(steps):
        logits, hidden = network(x, hidden)
        distribution = torch.distributions.Categorical(logits=logits[0])
        arm = distribution.sample()
        mean = theta * torch.sin(2 * torch.pi * (t / period + phases)).abs()
        reward = float(torch.rand(()) < mean[arm])
        energy = (distribution.probs * logits[0]).sum() ** 2
        loss = -(reward - baseline) * distribution.log_prob(arm) + ENERGY * energy
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        baseline += (reward - baseline) / (t + 1)
        regret += float(mean.max() - mean[arm])
    return regret
