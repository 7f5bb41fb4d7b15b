"""Pseudocode of index policies in plain NumPy and float64, written from the papers' formulas.

All rewards are kept in lists, in the order in which they came. `choose` gives the probabilities of
the arms; every argmax is over the available ones, and ties are shared.
"""

import math

import numpy as np

from tests.policies.transcriptions.classic import EffFewa, best_of


class Indices:
    """The arm with the highest index; an arm without one, for want of rewards, comes first.

    Each policy has its own `index(arm)`.
    """

    def __init__(self, num_arms, noise=0.5):
        self.num_arms, self.noise = num_arms, noise
        self.arms, self.paid = [], []  # what was pulled, and its reward
        self.rewards = [[] for _ in range(num_arms)]  # of each arm

    def indices(self):
        return np.array([self.index(arm) for arm in range(self.num_arms)])

    def choose(self, available):
        return best_of(self.indices(), available)

    def update(self, arm, reward):
        self.arms.append(arm)
        self.paid.append(reward)
        self.rewards[arm].append(reward)


class SwUcb(Indices):
    """Garivier & Moulines (2011), SW-UCB for rewards in [0, B]."""

    def __init__(self, num_arms, noise=None, window=1000, xi=0.6, b=1.0):
        super().__init__(num_arms, noise)
        self.window, self.xi, self.b = window, xi, b

    def indices(self):
        arms, paid = self.arms[-self.window :], self.paid[-self.window :]
        counts = np.bincount(np.array(arms, int), minlength=self.num_arms)
        sums = np.bincount(np.array(arms, int), paid, self.num_arms)
        index = np.full(self.num_arms, math.inf)
        seen = counts > 0
        if seen.any():
            padding = self.b * np.sqrt(self.xi * math.log(len(arms)) / counts[seen])
            index[seen] = sums[seen] / counts[seen] + padding
        return index


class DUcb(Indices):
    """Garivier & Moulines (2011), D-UCB for rewards in [0, B]."""

    def __init__(self, num_arms, noise=None, discount=0.99, xi=0.5, b=1.0):
        super().__init__(num_arms, noise)
        self.discount, self.xi, self.b = discount, xi, b

    def counts_and_sums(self):
        """Every reward has the weight discount^(t - s)."""
        t, arms = len(self.arms), np.array(self.arms, int)
        weights = self.discount ** (t - 1.0 - np.arange(t))
        counts = np.bincount(arms, weights, self.num_arms)
        return counts, np.bincount(arms, weights * self.paid, self.num_arms)

    def indices(self):
        counts, sums = self.counts_and_sums()
        index = np.full(self.num_arms, math.inf)
        pulled = [arm for arm in range(self.num_arms) if self.rewards[arm]]
        if pulled:
            padding = 2 * self.b * np.sqrt(self.xi * math.log(counts.sum()) / counts[pulled])
            index[pulled] = sums[pulled] / counts[pulled] + padding
        return index


class KlUcb(Indices):
    """Garivier & Cappe (2011), KL-UCB for coins: indices by bisection.

    It looks for v = -ln(1 - q), since q itself is often 1 in double precision too.
    """

    def __init__(self, num_arms, noise=None, c=0.0, reward_range=(0.0, 1.0)):
        super().__init__(num_arms, noise)
        self.c, self.range = c, reward_range

    def index(self, arm):
        own, t = self.rewards[arm], len(self.arms)
        if not own:
            return math.inf
        p = min(1.0, sum(own) / len(own))
        if p == 1:
            return 1e300
        bound = math.log(t)
        if self.c and t > math.e:
            bound += self.c * math.log(math.log(t))
        return self.highest(p, bound / len(own))

    @staticmethod
    def highest(p, level):
        def divergence(v):
            q = -math.expm1(-v)
            wins = p * math.log(p / q) if p else 0.0
            return wins + (1 - p) * (math.log1p(-p) + v)

        low = -math.log1p(-p)
        high = low + 1.0
        while divergence(high) <= level:
            high = 2 * high
        for _ in range(40):
            middle = (low + high) / 2
            if middle and divergence(middle) > level:
                high = middle
            else:
                low = middle
        return low

    def update(self, arm, reward):
        low, high = self.range
        super().update(arm, (min(max(reward, low), high) - low) / (high - low))


class EpsilonGreedy(Indices):
    """Sutton & Barto (2018), section 2.2, and section 2.5 with a constant step."""

    def __init__(self, num_arms, noise=None, epsilon=0.1, rate=None):
        super().__init__(num_arms, noise)
        self.epsilon, self.rate = epsilon, rate

    def index(self, arm):
        own = self.rewards[arm]
        if not own:
            return math.inf
        if self.rate is None:
            return sum(own) / len(own)
        value = own[0]
        for reward in own[1:]:
            value = value + self.rate * (reward - value)
        return value

    def choose(self, available):
        greedy = super().choose(available)
        return (1 - self.epsilon) * greedy + self.epsilon * available / available.sum()


class RawUcb(Indices):
    """Seznec et al. (2020), RAW-UCB with delta_t = t^-alpha."""

    def __init__(self, num_arms, noise, alpha=1.4, longest=None):
        super().__init__(num_arms, noise)
        self.alpha, self.longest = alpha, longest

    def confidence(self, h):
        return np.sqrt(2 * self.noise**2 * self.alpha * math.log(len(self.arms)) / h)

    def index(self, arm):
        if not self.rewards[arm]:
            return math.inf
        newest_first = np.array(self.rewards[arm][::-1][: self.longest])
        h = np.arange(1, len(newest_first) + 1)
        return np.min(np.cumsum(newest_first) / h + self.confidence(h))


class DyadicRawUcb(RawUcb):
    """EFF-RAW-UCB for a ratio of 2, whose windows end at multiples of half their length."""

    def index(self, arm):
        own, h = self.rewards[arm], 1
        bounds = [math.inf]
        while h <= len(own):
            step = max(1, h // 2)
            end = len(own) // step * step
            bounds.append(sum(own[end - h : end]) / h + self.confidence(h))
            h *= 2
        return min(bounds)


class EffRawUcb(RawUcb):
    """Seznec et al. (2020), EFF-RAW-UCB for any ratio, on the windows of EFF-FEWA."""

    def __init__(self, num_arms, noise, alpha=1.4, ratio=2.0):
        super().__init__(num_arms, noise, alpha)
        self.windows = EffFewa(num_arms, noise, ratio=ratio)

    def index(self, arm):
        means = self.windows.means(arm)
        return min(
            (mean + self.confidence(self.windows.window(j)) for j, mean in enumerate(means)),
            default=math.inf,
        )

    def update(self, arm, reward):
        super().update(arm, reward)
        self.windows.update(arm, reward)
