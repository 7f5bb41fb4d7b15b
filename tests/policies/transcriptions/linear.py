"""Linear policies of the papers in plain NumPy and float64.

The features of arm k are (context, 1) in block k of a long vector and zeros elsewhere, as the
papers have one vector per arm and one model for all.
"""

import math

import numpy as np
from scipy.special import ndtr


class Blocks:
    """What the policies share: the features of every arm, and the settings."""

    def __init__(self, num_arms, dim, ridge=1.0):
        self.num_arms, self.dim, self.ridge = num_arms, dim, ridge
        self.size = num_arms * dim
        self.identity = np.eye(self.size)
        self.diagonal = np.diag_indices(num_arms)

    def features(self, context):
        x = np.zeros((self.num_arms, self.num_arms, self.dim))
        x[self.diagonal] = np.append(context, 1.0)
        return x.reshape(self.num_arms, self.size)


class Ucb(Blocks):
    """The bonus of alpha times a norm; `width` is that of the rewards, which start at `low`."""

    def __init__(self, num_arms, dim, spec, ridge=1.0, alpha=1.0, delta=None):
        super().__init__(num_arms, dim, ridge)
        self.low, high = spec.reward_range
        self.width, self.noise = high - self.low, spec.noise
        self.alpha, self.delta = alpha, delta

    def index(self, context):
        radius = self.width if self.delta is None else self.radius()
        estimate, norm_matrix = self.estimate()
        x = self.features(context)
        norms = np.sqrt(np.einsum("ki,ij,kj->k", x, norm_matrix, x))
        return x @ estimate + self.alpha * radius * norms


class LinUcb(Ucb):
    """Li et al. (2010), algorithm 1; the radius of Abbasi-Yadkori et al. (2011), theorem 2."""

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self.a, self.b, self.t = self.ridge * self.identity, np.zeros(self.size), 0

    def estimate(self):
        inverse = np.linalg.inv(self.a)
        return inverse @ self.b, inverse

    def radius(self):
        inside = 2 * math.log(1 / self.delta)
        inside += self.dim * math.log(1 + self.t / (self.ridge * self.dim))
        return math.sqrt(self.ridge) * self.width + self.noise * math.sqrt(inside)

    def update(self, arm, context, reward):
        x = self.features(context)[arm]
        self.a += np.outer(x, x)
        self.b += (reward - self.low) * x
        self.t += 1


class DLinUcb(Ucb):
    """Russac, Vernade & Cappe (2019), algorithm 1."""

    mistaken = False  # as their public code, which makes V~ from V

    def __init__(self, *args, discount, **settings):
        super().__init__(*args, **settings)
        self.g = discount
        self.v = self.ridge * self.identity
        self.v_tilde = self.ridge * self.identity
        self.b, self.t = np.zeros(self.size), 0

    def estimate(self):
        inverse = np.linalg.inv(self.v)
        return inverse @ self.b, inverse @ self.v_tilde @ inverse

    def radius(self):
        g, d = self.g, self.dim
        rewards = (1 - g ** (2 * self.t)) / (1 - g**2)
        inside = 2 * math.log(1 / self.delta) + d * math.log(1 + rewards / (self.ridge * d))
        return math.sqrt(self.ridge) * self.width + self.noise * math.sqrt(inside)

    def update(self, arm, context, reward):
        x, g = self.features(context)[arm], self.g
        back = self.ridge * self.identity
        self.v = g * self.v + np.outer(x, x) + (1 - g) * back
        before = self.v if self.mistaken else self.v_tilde
        self.v_tilde = g**2 * before + np.outer(x, x) + (1 - g**2) * back
        self.b = g * self.b + (reward - self.low) * x
        self.t += 1


class MistakenDLinUcb(DLinUcb):
    mistaken = True


class SwLinUcb(Ucb):
    """Cheung, Simchi-Levi & Zhu (2019), algorithm 1, from a list of everything seen."""

    def __init__(self, *args, window, **settings):
        super().__init__(*args, **settings)
        self.window = window
        self.x, self.rewards = np.zeros((0, self.size)), []

    def estimate(self):
        x, rewards = self.x[-self.window :], np.array(self.rewards[-self.window :])
        inverse = np.linalg.inv(self.ridge * self.identity + x.T @ x)
        return inverse @ (x.T @ rewards), inverse

    def radius(self):
        inside = self.dim * math.log((1 + self.window / self.ridge) / self.delta)
        return math.sqrt(self.ridge) * self.width + self.noise * math.sqrt(inside)

    def update(self, arm, context, reward):
        self.x = np.vstack([self.x, self.features(context)[arm]])
        self.rewards.append(reward - self.low)


class DLinTs:
    """Thompson sampling on weighted ridge regressions, one per arm, from all that was seen."""

    def __init__(self, num_arms, dim, discount=0.99, ridge=1.0, variance=1.0):
        self.discount, self.variance = discount, variance
        self.prior = ridge * np.eye(dim)
        self.num_arms, self.arms, self.rewards = num_arms, [], []
        self.features = np.zeros((0, dim))

    def posterior(self, context):
        """Mean and deviation of every arm's score."""
        z = np.append(context, 1.0)
        means, deviations = np.zeros(self.num_arms), np.zeros(self.num_arms)
        arms, features, rewards = np.array(self.arms), self.features, np.array(self.rewards)
        weights = self.discount ** np.arange(len(arms))[::-1]
        for arm in range(self.num_arms):
            own = arms == arm
            weighted = weights[own, None] * features[own]
            precision = self.prior + weighted.T @ features[own]
            means[arm] = z @ np.linalg.solve(precision, weighted.T @ rewards[own])
            deviations[arm] = math.sqrt(self.variance * z @ np.linalg.solve(precision, z))
        return means, deviations

    def update(self, arm, context, reward):
        self.arms.append(arm)
        self.features = np.vstack([self.features, np.append(context, 1.0)])
        self.rewards.append(reward)


def best_of_normals(means, deviations, available):
    """P(best), as an integral over each arm's own quantiles."""
    levels, step = np.linspace(-8, 8, 2001, retstep=True)
    density = step * np.exp(-(levels**2) / 2) / math.sqrt(2 * math.pi)
    probabilities = np.zeros(len(means))
    for i in np.flatnonzero(available):
        below = density.copy()
        for j in np.flatnonzero(available):
            if j != i:
                at = (means[i] + deviations[i] * levels - means[j]) / deviations[j]
                below *= ndtr(at)
        probabilities[i] = below.sum()
    return probabilities
