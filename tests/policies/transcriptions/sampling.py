"""Pseudocode of sampling policies in plain Python and float64, for comparison with ours.

Where an arm may be unavailable, probabilities and argmaxes are over the available arms.
"""

import math

import numpy as np


def coin(reward, reward_range, level):
    """Agrawal & Goyal (2012), algorithm 2: whether the toss is won, for rewards beyond [0, 1]."""
    low, high = reward_range
    return bool(level < min(max((reward - low) / (high - low), 0.0), 1.0))


class DiscountedThompson:
    """Raj & Kalyani (2017): all the counts shrink in each step, then the pulled arm's grow."""

    def __init__(self, num_arms, reward_range, discount=0.999):
        self.reward_range, self.discount = reward_range, discount
        self.wins, self.losses = [0.0] * num_arms, [0.0] * num_arms

    def counts(self):
        return np.array(self.wins), np.array(self.losses)

    def update(self, arm, reward, level):
        won = coin(reward, self.reward_range, level)
        for k in range(len(self.wins)):
            self.wins[k] = self.discount * self.wins[k] + (k == arm and won)
            self.losses[k] = self.discount * self.losses[k] + (k == arm and not won)


class SwThompson:
    """Trovo et al. (2020): the counts of the last `window` rounds."""

    def __init__(self, num_arms, reward_range, window):
        self.num_arms, self.reward_range, self.window = num_arms, reward_range, window
        self.rounds = []

    def counts(self):
        wins, losses = np.zeros(self.num_arms), np.zeros(self.num_arms)
        for arm, won in self.rounds[-self.window :]:
            (wins if won else losses)[arm] += 1
        return wins, losses

    def update(self, arm, reward, level):
        self.rounds.append((arm, coin(reward, self.reward_range, level)))


class GaussianThompson:
    """The conjugate posterior of a normal mean, from all rewards with weights discount^age."""

    def __init__(self, num_arms, centre, deviation, noise, discount=1.0):
        self.num_arms, self.discount, self.noise = num_arms, discount, noise
        self.prior = 1 / deviation**2, centre / deviation**2
        self.arms, self.rewards = [], []

    def posterior(self):
        ages = np.arange(len(self.arms))[::-1]
        weights = self.discount**ages / self.noise**2
        own = np.array(self.arms, int) == np.arange(self.num_arms)[:, None]
        precision = self.prior[0] + (own * weights).sum(axis=1)
        moment = self.prior[1] + (own * weights * np.array(self.rewards)).sum(axis=1)
        return moment / precision, 1 / np.sqrt(precision)

    def update(self, arm, reward):
        self.arms.append(arm)
        self.rewards.append(reward)


class Exp3:
    """Auer, Cesa-Bianchi, Freund & Schapire (2002), section 3."""

    def __init__(self, num_arms, reward_range, horizon, gamma=None):
        self.num_arms, self.reward_range = num_arms, reward_range
        self.gamma = gamma or self.best_gamma(horizon)
        self.weights = np.ones(num_arms)

    def best_gamma(self, horizon):
        k = self.num_arms
        return min(1.0, math.sqrt(k * math.log(k) / ((math.e - 1) * horizon)))

    def choose(self, available):
        weights = np.where(available, self.weights, 0.0)
        uniform = available / available.sum()
        self.probabilities = (1 - self.gamma) * weights / weights.sum() + self.gamma * uniform
        return self.probabilities

    def update(self, arm, reward):
        low, high = self.reward_range
        estimate = min(max((reward - low) / (high - low), 0.0), 1.0) / self.probabilities[arm]
        self.weights[arm] *= math.exp(self.gamma * estimate / self.num_arms)


class Exp3S(Exp3):
    """Auer, Cesa-Bianchi, Freund & Schapire (2002), section 8."""

    def __init__(self, num_arms, reward_range, horizon, gamma=None, alpha=None, segments=None):
        self.segments = segments
        super().__init__(num_arms, reward_range, horizon, gamma)
        self.alpha = 1 / horizon if alpha is None else alpha

    def best_gamma(self, horizon):
        k = self.num_arms
        if self.segments is None:
            return min(1.0, math.sqrt(k * math.log(k * horizon) / horizon))
        numerator = k * (self.segments * math.log(k * horizon) + math.e)
        return min(1.0, math.sqrt(numerator / ((math.e - 1) * horizon)))

    def update(self, arm, reward):
        total = sum(self.weights)
        super().update(arm, reward)
        self.weights += math.e * self.alpha / self.num_arms * total


class Rexp3:
    """Besbes, Gur & Zeevi (2014): Exp3 anew in every batch."""

    def __init__(self, num_arms, reward_range, horizon, variation=1.0, batch=None):
        root = (num_arms * math.log(num_arms)) ** (1 / 3)
        self.batch = batch or math.ceil(root * (horizon / variation) ** (2 / 3))
        self.problem = num_arms, reward_range, self.batch
        self.pulls = 0

    def choose(self, available):
        if self.pulls % self.batch == 0:
            self.exp3 = Exp3(*self.problem)
        return self.exp3.choose(available)

    def update(self, arm, reward):
        self.exp3.update(arm, reward)
        self.pulls += 1
