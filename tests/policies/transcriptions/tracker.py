"""The tracker's pseudocode in plain NumPy and float64, by the names of the pseudocode.

Experts are j, arms k; the intercept is the last feature. Where the pseudocode is silent:

- A decision is forced if an available arm has fewer than n0 pulls; learning from it is "during the
  forced pulls", from all others "after" them.
- An arm never pulled has the mean of all rewards for its intercept, however late it is.
- Not-available arms cannot be chosen, but count in the sum of the effective pulls.
- The first of a bucket's lengths is the edge: 24-31, 32-41, and so on, the last without end.
- A context coordinate that was always 0 stays 0.
- pslab=0 is a world without an effect of streaks, h=0 one without unseen changes.

`Tracker` is the pseudocode as it stands, and `Ours` has the changes that the policy makes to it.
`tracker_tracks` has its second tracks.
"""

import math

import numpy as np

from tests.policies.transcriptions.classic import best_of
from tests.policies.transcriptions.outliers import SeenCoordinate, SeenRewards

NB = 40
EXACT = 24  # streaks of length 0 to 23 have a bucket each
EDGES = [32]
while EXACT + len(EDGES) < NB - 1:
    EDGES.append(EDGES[-1] * 4 // 3)


def bucket(length):
    return length if length < EXACT else EXACT + sum(edge <= length for edge in EDGES)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def log_normal(e, mean, variance):
    return -0.5 * math.log(2 * math.pi * variance) - (e - mean) ** 2 / (2 * variance)


def log_student(e, nu, mean, squared_scale):
    constant = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - math.log(math.pi * nu) / 2
    squared = (e - mean) ** 2 / squared_scale
    return constant - math.log(squared_scale) / 2 - (nu + 1) / 2 * math.log(1 + squared / nu)


def outer(rows):
    """Of each row with itself."""
    return rows[..., :, None] * rows[..., None, :]


class Filters:
    """The coefficients of each arm by each expert: m (J, K, d), P (J, K, d, d)."""

    def __init__(self, num_arms, prior, q, s, diagonal):
        self.K, self.d, self.J = num_arms, len(prior), len(q)
        self.prior, self.q, self.s = np.array(prior, float), np.array(q, float), np.array(s, float)
        self.diagonal = diagonal
        self.start()

    def start(self):
        self.m = np.zeros((self.J, self.K, self.d))
        self.P = np.tile(np.diag(self.prior), (self.J, self.K, 1, 1))

    def predict(self, z):
        """Mean and variance along the features of each arm, (K, d)."""
        mean = (self.m * z).sum(axis=-1)
        return mean, np.maximum((self.P * outer(z)).sum(axis=(-2, -1)), 1e-12)

    def correct(self, a, z, e, pv):
        """An arm's, by errors `e` with variances 1 + pv."""
        h = self.P[:, a] @ z
        self.m[:, a] += h * (e / (1 + pv))[:, None]
        self.P[:, a] -= outer(h) / (1 + pv)[:, None, None]

    def mix(self, w, s2, be):
        """IMM: the experts of an arm take over some of their common state."""
        sb, be = w @ s2, be.reshape(-1, 1, 1, 1)
        mb = np.tensordot(w, self.m, 1)
        away = outer(self.m - mb)
        pb = np.tensordot(w, s2.reshape(be.shape) * self.P + away, 1) / sb
        self.P = (1 - be) * self.P + be * pb + be * (1 - be) * away / sb
        self.m = self.m + be[..., 0] * (mb - self.m)

    def pass_time(self, steps):
        if self.diagonal:
            self.P *= np.eye(self.d)
        i = np.arange(self.d)
        room = np.maximum(0, 1 - self.P[:, :, i, i] / self.prior)
        gained = np.minimum(steps * self.q[:, None, None] * self.s[:, None], self.prior)
        self.P[:, :, i, i] += gained * room


class Tracker:
    """Every decision is `act`, then `learn` with the arm that was pulled and its reward."""

    def __init__(
        self,
        num_arms,
        context_dim,
        q=(0, 1e-5, 1e-4, 1e-3, 1e-2),
        pi=None,
        share=1e-4,
        p0=1.5,
        px=3.0,
        xq=30.0,
        c0=1.0,
        c1=1.0,
        n0=None,
        gs=0.999,
        a0=2.0,
        pslab=0.01,
        diagonal=False,
        slow=(),
        h=0.0,
        freedom=None,
    ):
        self.J, self.K, self.d = len(q) + len(slow), num_arms, context_dim + 1
        halves = 0.5 ** np.array([*range(len(q)), *range(1, 1 + len(slow))])
        self.q, self.h = np.array([*q, *slow], float), h
        self.pi = halves / halves.sum() if pi is None else np.array(pi, float)
        self.share, self.c0, self.c1, self.gs, self.a0 = share, c0, c1, gs, a0
        self.freedom = a0 if freedom is None else freedom
        self.pslab, self.diagonal = pslab, diagonal
        self.n0 = (8 if context_dim else 2) if n0 is None else n0
        s = np.ones((self.J, self.d))
        s[: len(q), :-1] = xq
        self.own = Filters(num_arms, [px] * context_dim + [p0], self.q, s, diagonal)
        self.now, self.pulled_at = 0, np.zeros(num_arms)
        self.seen, self.coordinates = SeenRewards(), [SeenCoordinate() for _ in range(context_dim)]
        self.last, self.streak, self.steps = None, 0, 0
        self.start()

    @property
    def banks(self):
        """The filters, and whose the features of each are."""
        return [self.own]

    @property
    def m(self):
        return self.own.m

    @property
    def P(self):  # noqa: N802
        return self.own.P

    def start(self):
        """Before the first reward, and again if the first ones were in the wrong units."""
        for bank in self.banks:
            bank.start()
        self.w = self.pi.copy()
        self.s2, self.ss, self.sn = np.ones(self.J), np.zeros(self.J), np.zeros(self.J)
        self.logodds, self.gn, self.ge = self.no_evidence(), np.zeros(NB), np.zeros(NB)
        self.pulls = np.zeros(self.K, int)

    def no_evidence(self):
        return np.full(NB, math.log(self.pslab / (1 - self.pslab)) if self.pslab else -math.inf)

    @property
    def rewards(self):
        """As what they counted."""
        return self.seen.counted

    def act(self, context, available=None):
        """The arms' probabilities; the index, without the effect, stays to be looked at."""
        available = np.ones(self.K, bool) if available is None else np.asarray(available, bool)
        self.now, self.steps = self.now + 1, self.steps + 1
        self.look(np.array(context, float), available)
        w, s2 = self.w, self.s2
        self.predict()
        self.b = bucket(self.streak)
        self.ps, self.g = self.effect() if self.streak > 0 and self.pslab else (0.0, 0.0)

        mean = w @ self.pm
        var = w @ (s2[:, None] * self.pv + (self.pm - mean) ** 2)
        mean, var = self.perhaps_changed(mean, var)
        sb = w @ s2
        n = sb / var  # N of the pseudocode
        log = np.log(np.maximum(1, n.sum() / n))
        self.width = np.sqrt(var) * np.sqrt(self.c0 + self.c1 * log)
        self.index = mean + self.width
        self.affected = self.index.copy()  # if the streak has an effect
        if self.streak > 0:
            self.affected[self.last] += self.g

        self.forced = bool((self.pulls[available] < self.n0).any())
        if self.forced:
            return best_of(-self.pulls.astype(float), available)
        plain, affected = (
            self.probabilities(self.index, available),
            self.probabilities(self.affected, available),
        )
        return (1 - self.ps) * plain + self.ps * affected

    def perhaps_changed(self, mean, var):
        """Mean and variance of a mixture: the arm as it was, or one drawn like all others."""
        if self.h == 0 or not (self.pulls > 0).any():
            return mean, var
        others = mean[self.pulls > 0]
        p = 1 - np.exp(-self.h * (self.now - self.pulled_at - 1))
        second_moment = (1 - p) * (var + mean**2) + p * (others.var() + others.mean() ** 2)
        new = (1 - p) * mean + p * others.mean()
        return new, second_moment - new**2

    def look(self, x, available):  # noqa: ARG002
        """Finds the features of the arms for each of the banks, (K, d)."""
        scaled = [seen.add(i) for seen, i in zip(self.coordinates, x, strict=True)]
        self.z = np.array([*scaled, 1.0])
        self.rows = [np.tile(self.z, (self.K, 1))]

    def predict(self):
        """By each expert, of each arm: what the banks add up to."""
        found = [bank.predict(rows) for bank, rows in zip(self.banks, self.rows, strict=True)]
        self.pm, self.pv = sum(mean for mean, _ in found), sum(variance for _, variance in found)

    def effect(self):
        """Of a streak of length b: the chance that there is one, and its size."""
        return sigmoid(self.logodds[self.b]), self.ge[self.b] / (self.gn[self.b] + 1)

    def probabilities(self, index, available):
        return best_of(index, available)

    def learn(self, arm, reward):
        r, believed, restarts = self.seen.add(reward)
        if restarts:
            self.start()
            self.predict()
        if believed:
            self.learn_from(arm, r, knows_effect=not restarts)
        self.streak = self.streak + 1 if arm == self.last else 1
        self.last = arm
        self.pulls[arm] += 1
        self.pulled_at[arm] = self.now
        if believed:
            self.expect(self.pulls == 0, np.mean(self.rewards))

    def expect(self, arms, level):
        """Of arms of which nothing is known."""
        self.own.m[:, arms, -1] = level

    def learn_from(self, a, r, knows_effect):
        if len(self.rewards) == 1:
            self.expect(np.ones(self.K, bool), r)
            self.pm[:, a] = r
        vtot = np.var(self.rewards) + 1e-12
        pm, pv = self.pm[:, a], self.pv[:, a]

        y = r
        if self.streak > 0 and a == self.last and knows_effect:
            y = r - self.ps * self.g
            if self.pslab and self.seen.usual:
                self.learn_effect(r - self.w @ pm, pv)

        e, nu, v = y - pm, self.sn + self.a0, self.s2 * (1 + pv)
        if not self.forced:
            self.weigh(e, nu, v)
        self.ss = self.gs * self.ss + e**2 / (1 + pv)
        self.sn = self.gs * self.sn + 1
        self.s2 = (self.ss + self.a0 * vtot) / (self.sn + self.a0)

        for bank, rows in zip(self.banks, self.rows, strict=True):
            arm = a if bank.K > 1 else 0
            bank.correct(arm, rows[a], e, pv)
            if not self.forced:
                bank.mix(self.w, self.s2, self.share * self.pi / self.w)
            bank.pass_time(self.steps)
        self.steps = 0

    def learn_effect(self, e, pv):
        """Spike and slab: has a streak of length b an effect, shared by the arms?"""
        b, g = self.b, self.g
        v = self.s2[0] + self.w @ (self.s2 * pv)
        v1 = v + self.s2[0] / (self.gn[b] + 1)
        evidence = log_normal(e, g, v1) - log_normal(e, 0, v)
        self.logodds[b] = np.clip(self.logodds[b] + evidence, -6, 30)
        self.gn[b] += 1
        self.ge[b] += e

    def weigh(self, e, nu, v):
        """Student-t evidence, in logarithms as all densities may be too small for float64."""
        log_w = np.log(self.w) - np.log(v) / 2 - (nu + 1) / 2 * np.log(1 + e**2 / (v * nu))
        w = np.exp(log_w - log_w.max())
        self.w = (1 - self.share) * w / w.sum() + self.share * self.pi


class Ours(Tracker):
    """With what the policy changes.

    - The effect is weighed by Student's density, and not on forced pulls.
    - `logodds` is evidence alone. An effect at b - 1 makes one at b likelier, of about its size.
    - Probabilities are by inverse gaps, in units of `randomness` times the best arm's width.
    """

    def __init__(self, num_arms, context_dim, randomness=0.1, **constants):
        super().__init__(num_arms, context_dim, **constants)
        self.randomness = randomness

    def no_evidence(self):
        return np.zeros(NB)

    def chance(self, b, prior):
        odds = math.exp(self.logodds[b]) * prior / (1 - prior)
        return odds / (1 + odds)

    def effect(self):
        b = self.b
        before = self.chance(b - 1, self.pslab)
        its_size = self.ge[b - 1] / (self.gn[b - 1] + 1)
        chance = self.chance(b, before * 0.5 + (1 - before) * self.pslab)
        return chance, (self.ge[b] + before * its_size) / (self.gn[b] + 1)

    def learn_effect(self, e, pv):
        if self.forced:
            return
        b, nu = self.b, self.sn[0] + self.freedom
        v = self.s2[0] + self.w @ (self.s2 * pv)
        v1 = v + self.s2[0] / (self.gn[b] + 1)
        evidence = log_student(e, nu, self.g, v1) - log_student(e, nu, 0, v)
        self.logodds[b] = min(max(self.logodds[b] + evidence, -1.5), 35)
        self.gn[b] += 1
        self.ge[b] += e

    def probabilities(self, index, available):
        best = best_of(index, available)
        if not self.randomness:
            return best
        top = index[available].max()
        unit = self.randomness * self.width[best > 0].mean()
        probabilities = np.zeros(self.K)
        for k in range(self.K):
            if available[k] and index[k] < top:
                probabilities[k] = 1 / (available.sum() * (1 + ((top - index[k]) / unit) ** 3))
        return probabilities + best * (1 - probabilities.sum())
