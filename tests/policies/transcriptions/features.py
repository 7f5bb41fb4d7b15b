"""Linear policies on features of arms in plain NumPy and float64, from all rewards at each step.

One long vector for each arm: what all arms share, and coefficients of each arm's own. Where arms
leave, there are two transcriptions that have only the documentation in common: in `Hybrid` an arm
that has left keeps its coefficients, and from then on their prior fades, too. In `Marginal` they
are integrated out.
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
        self.left = {}  # how many rewards there were when an arm left

    def rows_of(self, context, arms, arm_ids):
        pairs = zip(arms, arm_ids, strict=True)
        return np.array([row(context, a, i, self.ids, self.deviation) for a, i in pairs])

    def update(self, z, reward):
        self.rows.append(z)
        self.rewards.append(reward)

    def replace(self, old, _):
        """One arm leaves, and another takes its place."""
        self.left[old] = len(self.rows)
        if self.window is not None and self.deviation:
            # Its rewards count as those of an arm that does not deviate.
            for z in self.rows:
                z[self.own(old)] = 0.0

    def own(self, arm_id):
        d = self.spec.context_dim + 1
        first = (1 + self.spec.arm_dim) * d + self.ids.index(arm_id) * d
        return slice(first, first + d)

    def prior(self, size):
        """The part of each coefficient's prior that is left."""
        found = np.ones(size)
        if self.deviation:
            for arm_id, then in self.left.items():
                found[self.own(arm_id)] = self.discount ** (len(self.rows) - then)
        return found

    def fit(self, size):
        """V, W and the sum of the rewards' features, with today's weights."""
        first = 0 if self.window is None else max(len(self.rows) - self.window, 0)
        z = np.array(self.rows[first:]).reshape(-1, size)
        rewards = np.array(self.rewards[first:])
        weights = self.discount ** np.arange(len(z))[::-1]
        prior = self.prior(size)
        v = np.diag(self.ridge * prior) + (z.T * weights) @ z
        w = np.diag(self.ridge * prior**2) + (z.T * weights**2) @ z
        return v, w, z.T @ (weights * rewards)

    def predict(self, rows, squared=False):
        """Mean and deviation of every arm."""
        v, w, moment = self.fit(rows.shape[1])
        solved = np.linalg.solve(v, rows.T).T
        spread = np.einsum("ki,ij,kj->k", solved, w if squared else v, solved)
        return solved @ moment, np.sqrt(spread)


class Marginal:
    """The same with a discount: a normal distribution of the coefficients of the arms in place.

    When an arm leaves, the distribution of all other coefficients stays what it was. What it says
    beyond their prior fades as a whole.
    """

    def __init__(self, spec, ids, *, discount, deviation=0.1, ridge=1.0):
        self.ids = list(ids)  # of the arm in each place
        self.discount, self.d = discount, spec.context_dim + 1
        self.shared = (1 + spec.arm_dim) * self.d
        own = np.full(len(ids) * self.d, ridge / deviation)
        self.prior = np.diag(np.append(np.full(self.shared, ridge), own))
        self.v = np.zeros_like(self.prior)
        self.w = np.zeros_like(self.prior)
        self.moment = np.zeros(len(self.prior))

    def rows_of(self, context, arms, arm_ids):
        assert arm_ids == self.ids
        x = np.append(context, 1.0)
        return np.array([self.row(x, features, place) for place, features in enumerate(arms)])

    def row(self, x, features, place):
        z = np.zeros(len(self.prior))
        z[: self.shared] = np.outer(np.append(1.0, features), x).ravel()
        z[self.own(place)] = x
        return z

    def own(self, place):
        return self.shared + place * self.d + np.arange(self.d)

    def update(self, z, reward):
        self.v = self.discount * self.v + np.outer(z, z)
        self.w = self.discount**2 * self.w + np.outer(z, z)
        self.moment = self.discount * self.moment + reward * z

    def posterior(self):
        """The means of all coefficients, their V^-1, and the covariance of the weighted sums."""
        inverse = np.linalg.inv(self.prior + self.v)
        return inverse @ self.moment, inverse, inverse @ (self.prior + self.w) @ inverse

    def replace(self, old, new):
        place = self.ids.index(old)
        self.ids[place] = new
        stays = np.delete(np.arange(len(self.prior)), self.own(place))
        block = np.ix_(stays, stays)
        means, inverse, covariance = self.posterior()
        v = np.linalg.inv(inverse[block])
        self.v, self.w = np.zeros_like(self.v), np.zeros_like(self.w)
        self.moment = np.zeros_like(self.moment)
        self.v[block] = v - self.prior[block]
        self.w[block] = v @ covariance[block] @ v - self.prior[block]
        self.moment[stays] = v @ means[stays]

    def predict(self, rows, squared=False):
        """Mean and deviation of every arm."""
        means, inverse, covariance = self.posterior()
        matrix = covariance if squared else inverse
        return rows @ means, np.sqrt(np.einsum("ki,ij,kj->k", rows, matrix, rows))


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
