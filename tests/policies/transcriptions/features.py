"""Linear policies on features of arms in plain NumPy and float64, from all rewards at each step.

One long vector for each arm: what all arms share, and coefficients of each arm's own. An arm that
leaves keeps its coefficients, so that what it said about the shared ones stays as it was.
"""

import numpy as np
from scipy.special import ndtr


def row(context, features, arm_id, ids, deviation):
    """z of one arm: (1, features) x (context, 1), and its own (context, 1) among those of all."""
    x = np.append(context, 1.0)
    shared = np.outer(np.append(1.0, features), x).ravel()
    if not deviation:
        return shared
    own = np.zeros((len(ids), x.size))
    own[ids.index(arm_id)] = x * np.sqrt(deviation)
    return np.append(shared, own)


class Hybrid:
    """Li et al. (2010), equation 6, by ridge regression on everything that was seen."""

    def __init__(self, spec, ids, *, deviation=0.1, ridge=1.0, discount=1.0, window=None):
        self.spec, self.ids = spec, ids  # those of all arms that will ever be there
        self.deviation, self.ridge = deviation, ridge
        self.discount, self.window = discount, window
        self.rows, self.rewards = [], []

    def rows_of(self, context, arms, arm_ids):
        pairs = zip(arms, arm_ids, strict=True)
        return np.array([row(context, a, i, self.ids, self.deviation) for a, i in pairs])

    def update(self, z, reward):
        self.rows.append(z)
        self.rewards.append(reward)

    def fit(self, size):
        """V, W and the sum of the rewards' features, with today's weights."""
        first = 0 if self.window is None else max(len(self.rows) - self.window, 0)
        z = np.array(self.rows[first:]).reshape(-1, size)
        rewards = np.array(self.rewards[first:])
        weights = self.discount ** np.arange(len(z))[::-1]
        ridge = self.ridge * np.eye(size)
        v = ridge + (z.T * weights) @ z
        w = ridge + (z.T * weights**2) @ z
        return v, w, z.T @ (weights * rewards)

    def predict(self, rows, squared=False):
        """Mean and deviation of every arm."""
        v, w, moment = self.fit(rows.shape[1])
        solved = np.linalg.solve(v, rows.T).T
        spread = np.einsum("ki,ij,kj->k", solved, w if squared else v, solved)
        return solved @ moment, np.sqrt(spread)


def best_of_normals(means, deviations, available, points=4001):
    """The probability of each arm that its normal score is the highest."""
    low, high = (means - 8 * deviations).min(), (means + 8 * deviations).max()
    grid = np.linspace(low, high, points)
    below = ndtr((grid - means[:, None]) / deviations[:, None])
    below[~available] = 1.0
    found = np.zeros(len(means))
    for k in np.flatnonzero(available):
        others = np.delete(below, k, axis=0).prod(axis=0)
        found[k] = np.sum(np.diff(below[k]) * (others[1:] + others[:-1]) / 2)
    return found
