"""Pseudocode of the papers in plain NumPy and float64, for comparison with the policies.

`choose` gives the arms' probabilities: uniform over those that the paper ties. Where an arm may be
unavailable, every argmax, argmin and filter is over the available arms.
"""

import math

import numpy as np


def best_of(scores, candidates):
    """The probabilities of an argmax over the candidates, ties shared."""
    best = candidates & (scores == scores[candidates].max())
    return best / best.sum()


class Thompson:
    """Chapelle & Li (2011), with the coin of Agrawal & Goyal (2012), algorithm 2."""

    def __init__(self, num_arms, reward_range):
        self.low, self.high = reward_range
        self.wins = np.zeros(num_arms, int)
        self.losses = np.zeros(num_arms, int)

    def choose(self, theta, available):
        return best_of(theta, available)

    def update(self, arm, reward, level):
        share = (reward - self.low) / (self.high - self.low)
        if level < min(max(share, 0.0), 1.0):
            self.wins[arm] += 1
        else:
            self.losses[arm] += 1


class Ucb:
    """Auer, Cesa-Bianchi & Fischer (2002), UCB1, for rewards in [0, 1]."""

    def __init__(self, num_arms, noise=None, scale=1.0):  # noqa: ARG002
        self.scale = scale
        self.rewards = [[] for _ in range(num_arms)]

    def choose(self, available):
        pulls = np.array([len(rewards) for rewards in self.rewards])
        new = available & (pulls == 0)
        if new.any():
            return new / new.sum()
        logarithm = math.log(pulls.sum())
        index = np.array(
            [
                sum(rewards) / len(rewards) + self.scale * math.sqrt(2 * logarithm / len(rewards))
                if rewards
                else -math.inf
                for rewards in self.rewards
            ]
        )
        return best_of(index, available)

    def update(self, arm, reward):
        self.rewards[arm].append(reward)


class Swa:
    """Levine, Crammer & Mannor (2017), SWA of the non-parametric case."""

    def __init__(self, num_arms, noise, horizon, alpha=0.2):
        root_of = 16 * noise**2 * horizon**2 * math.log(math.sqrt(2) * horizon) / num_arms**2
        self.window = math.ceil(alpha * root_of ** (1 / 3))
        self.rewards = [[] for _ in range(num_arms)]

    def choose(self, available):
        pulls = np.array([len(rewards) for rewards in self.rewards])
        warming_up = available & (pulls < self.window)
        if warming_up.any():
            return best_of(-pulls, warming_up)
        sums = np.array([sum(rewards[-self.window :]) for rewards in self.rewards])
        return best_of(sums / self.window, available)

    def update(self, arm, reward):
        self.rewards[arm].append(reward)


class DoublingSwa:
    """Levine, Crammer & Mannor (2017), wSWA: SWA afresh in epochs of 1, 2, 4, ... pulls."""

    def __init__(self, *problem):
        self.problem = problem
        self.length, self.pulls = 1, 0
        self.swa = Swa(*problem, self.length)

    def choose(self, available):
        return self.swa.choose(available)

    def update(self, arm, reward):
        self.swa.update(arm, reward)
        self.pulls += 1
        if self.pulls == self.length:
            self.length, self.pulls = 2 * self.length, 0
            self.swa = Swa(*self.problem, self.length)


class Fewa:
    """Seznec et al. (2019), FEWA with delta_t = t^-alpha."""

    def __init__(self, num_arms, noise, alpha=0.06, longest=math.inf):
        self.noise, self.alpha, self.longest = noise, alpha, longest
        self.pulls = [0] * num_arms
        self.sums = [[0.0] for _ in range(num_arms)]  # of the first 0, 1, ... rewards of each arm

    def window(self, level):
        return level + 1

    def means(self, arm):
        """Of the arm's last rewards, on the windows of all levels that it can fill."""
        sums = np.array(self.sums[arm])
        h = np.arange(1, len(sums))
        return ((sums[-1] - sums[-1 - h]) / h).tolist()

    def filter(self, active):
        """The arms to choose from, at the end of the filter."""
        means, level = {arm: self.means(arm) for arm in active}, 0
        squared = 2 * self.noise**2 * self.alpha * math.log(sum(self.pulls) or 1)
        while True:
            h = self.window(level)
            short = [arm for arm in active if self.pulls[arm] < h]
            if short or len(active) == 1 or h > self.longest:
                return short or active
            here = [means[arm][level] for arm in active]
            bar = max(here) - 2 * math.sqrt(squared / h)
            if min(here) < bar:
                active = [arm for arm in active if means[arm][level] >= bar]
            level += 1

    def choose(self, available):
        left = np.zeros(len(available), bool)
        left[self.filter(np.flatnonzero(available).tolist())] = True
        return best_of(-np.array(self.pulls), left)

    def update(self, arm, reward):
        self.sums[arm].append(self.sums[arm][-1] + reward)
        self.pulls[arm] += 1


class EffFewa(Fewa):
    """Seznec et al. (2019, 2020), EFF-FEWA: FEWA on geometric windows that may be stale."""

    def __init__(self, num_arms, noise, alpha=0.06, ratio=2.0):
        super().__init__(num_arms, noise, alpha)
        self.ratio, self.windows = ratio, [1]
        self.current = [{} for _ in range(num_arms)]  # level -> sum
        self.pending = [[(0.0, 0)] for _ in range(num_arms)]  # level -> sum, count

    def window(self, level):
        while len(self.windows) <= level:
            self.windows.append(math.ceil(self.ratio * self.windows[-1]))
        return self.windows[level]

    def means(self, arm):
        return [total / self.window(level) for level, total in sorted(self.current[arm].items())]

    def update(self, arm, reward):
        current = self.current[arm]
        longer = self.pending[arm][1:]
        pending = [(reward, 1), *((total + reward, count + 1) for total, count in longer)]
        new = list(pending)
        for level, (total, count) in enumerate(pending):
            if count < self.window(level):
                continue
            if level not in current:
                new.append((total, count))
            current[level] = total
            if level:
                new[level] = pending[level - 1]
        self.pending[arm] = new
        self.pulls[arm] += 1


class LinTs:
    """Agrawal & Goyal (2013), linear Thompson sampling with one ridge regression per arm."""

    def __init__(self, num_arms, dim, ridge=1.0, variance=1.0):
        self.variance = variance
        self.precision = np.stack([ridge * np.eye(dim)] * num_arms)
        self.moment = np.zeros((num_arms, dim))

    def choose(self, context, normals, available):
        z = np.append(context, 1.0)
        mean = np.linalg.solve(self.precision, self.moment[..., None])[..., 0] @ z
        spread = np.array([z @ np.linalg.solve(p, z) for p in self.precision])
        return best_of(mean + np.sqrt(self.variance * spread) * normals, available)

    def update(self, arm, context, reward):
        z = np.append(context, 1.0)
        self.precision[arm] += np.outer(z, z)
        self.moment[arm] += reward * z


def last_hidden_layer(network, inputs):
    """Features of Riquelme, Tucker & Snoek (2018), for each row of inputs."""
    z = np.asarray(inputs, float)
    for layer in network[:-1]:
        z = np.maximum(z @ np.asarray(layer.weights, float).T + np.asarray(layer.bias, float), 0)
    return z


def bayesian_regression(z, rewards, precision, shape, scale):
    """Riquelme, Tucker & Snoek (2018): mu, P^-1, a and b of one arm."""
    p = precision * np.eye(z.shape[1]) + z.T @ z
    mean = np.linalg.solve(p, z.T @ rewards)
    b = scale + (rewards @ rewards - mean @ p @ mean) / 2
    return mean, np.linalg.inv(p), shape + len(rewards) / 2, b
