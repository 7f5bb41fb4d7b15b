"""The tracker's second tracks in plain NumPy and float64, and the gate between two tracks."""

import math

import numpy as np
from scipy.stats import norm

from tests.policies.transcriptions.classic import best_of
from tests.policies.transcriptions.outliers import SeenCoordinate
from tests.policies.transcriptions.tracker import Filters, Ours


class Second(Ours):
    """A second track: the streaks are the first one's."""

    def __init__(self, first, features, q, **constants):
        self.first = first
        super().__init__(first.K, features, q=q, n0=first.n0, a0=first.a0, **constants)

    def effect(self):
        return self.first.ps, self.first.g

    def learn_effect(self, e, pv):
        pass


class Waved(Second):
    """Cosines of the context beside it."""

    def __init__(self, first, directions, phases, q, p_waves):
        waves, dim = directions.shape
        super().__init__(first, dim + waves, q)
        self.own.prior[:waves], self.own.s[:, :waves] = p_waves, 1
        self.start()
        self.directions, self.phases = directions, phases

    def look(self, x, available):  # noqa: ARG002
        z = self.first.z
        cosines = [
            math.cos(w @ z[:-1] + b) for w, b in zip(self.directions, self.phases, strict=True)
        ]
        self.z = np.append(np.sqrt(2 / len(cosines)) * np.array(cosines), z)
        self.rows = [np.tile(self.z, (self.K, 1))]


class Remembering(Second):
    """A random network that has heard of all pulls and rewards, and each arm's own history."""

    def __init__(self, first, inner, by_arm, by_reward, p_units, p_own):
        units = len(inner)
        super().__init__(first, units + 4, q=(0,), diagonal=True)
        self.own.prior[:units], self.own.prior[units:-1] = p_units, p_own
        self.start()
        self.inner, self.by_arm, self.by_reward = inner, by_arm, by_reward
        self.units, self.heard = np.zeros(units), 0.0

    def look(self, x, available):  # noqa: ARG002
        if self.last is not None:
            drive = self.by_arm[:, self.last] + self.by_reward * self.heard
            self.units = np.tanh(self.inner @ self.units + drive)
        rows = []
        for k in range(self.K):
            rest = self.now - self.pulled_at[k] - 1
            rested = [math.exp(-rest / s) if self.pulled_at[k] else 0.0 for s in (1, 4, 16)]
            streak = min(self.streak, 20) / 10 if k == self.last else 0.0
            rows.append([*self.units, *rested, streak, 1.0])
        self.rows = [np.array(rows)]

    def learn_from(self, a, r, knows_effect):
        super().learn_from(a, r, knows_effect)
        apart = (r - np.mean(self.rewards)) / np.sqrt(np.var(self.rewards) + 1e-12)
        self.heard = np.clip(apart, -3, 3)


class Describing(Ours):
    """An arm's coefficients of the context, and shared ones of (its features, 1) x (context, 1)."""

    def __init__(self, num_arms, context_dim, arm_dim, px=3.0, p0=1.5, own_slopes=0.1, **constants):
        dim = (arm_dim + 1) * (context_dim + 1)
        self.shared = None
        super().__init__(num_arms, context_dim, px=own_slopes * px, p0=p0, **constants)
        prior = [px] * (dim - 1) + [p0]
        self.shared = Filters(1, prior, self.q, np.ones((self.J, dim)), self.diagonal)
        self.scales = [SeenCoordinate() for _ in range(arm_dim)]
        self.described = np.zeros((num_arms, arm_dim))

    @property
    def banks(self):
        return [self.own] if self.shared is None else [self.own, self.shared]

    def describe(self, described):
        """What the arms are, before a decision."""
        self.described = described.astype(float)

    def look(self, x, available):
        super().look(x, available)
        columns = []
        for scale, column in zip(self.scales, self.described.T, strict=True):
            scale.add(np.sqrt(np.mean(column[available] ** 2)))
            columns.append(np.clip(column / (scale.root_mean_square() or 1), -30, 30))
        arms = np.array([*columns, np.ones(self.K)]).T
        self.rows.append((arms[:, :, None] * self.z).reshape(self.K, -1))

    def expect(self, arms, level):
        """At the first reward, of all arms."""
        if arms.all():
            self.shared.m[:, :, -1] = level


class Sharing(Second):
    """The shared coefficients alone."""

    def __init__(self, first, q, **constants):
        super().__init__(first, first.shared.d - 1, q, xq=1.0, **constants)
        self.own = Filters(1, self.own.prior, self.q, self.own.s, first.diagonal)
        self.start()

    def look(self, x, available):  # noqa: ARG002
        self.rows = [self.first.rows[1]]

    def expect(self, arms, level):
        if arms.all():
            self.own.m[:, :, -1] = level


class Gated:
    """Two tracks: of steps in which their best arms differ, whose arms have paid more?"""

    def __init__(self, first, second, fading=0.9998, head_start=0.0):
        self.tracks, self.fading, self.head_start = (first, second), fading, head_start
        self.counted = []  # (who was followed, reward)

    def act(self, context, available):
        first, second = (track.act(context, available) for track in self.tracks)
        self.bests = [best_of(track.index, available) for track in self.tracks]
        self.chance = self.second_pays_more()
        if self.tracks[0].forced:
            return first
        return (1 - self.chance) * first + self.chance * second

    def followed(self, arm):
        return [best[arm] > 0 for best in self.bests]

    def learn(self, arm, reward, followed):
        forced = self.tracks[0].forced
        for track in self.tracks:
            track.learn(arm, reward)
        usual = self.tracks[0].seen.usual
        if len(self.tracks[0].rewards) == 1:  # for the first time, or again
            self.counted = []
        if usual and not forced and followed[0] != followed[1]:
            self.counted.append((int(followed[1]), self.tracks[0].rewards[-1]))

    def second_pays_more(self):
        """Their means are normal, with one more reward each than they have in doubt."""
        rewards = self.tracks[0].rewards
        total = (np.var(rewards) if rewards else 0.0) + 1e-12
        who = np.array([i for i, _ in self.counted], int)
        paid = np.array([r for _, r in self.counted])
        weight = self.fading ** np.arange(len(who))[::-1]
        self.number, self.mean, self.squares = np.zeros(2), np.zeros(2), 0.0
        for i in range(2):
            own = who == i
            self.number[i] = weight[own].sum()
            self.mean[i] = rewards[0] if rewards else 0.0
            if own.any():
                self.mean[i] = np.average(paid[own], weights=weight[own])
                self.squares += weight[own] @ (paid[own] - self.mean[i]) ** 2
        noise = (self.squares + 2 * total) / (self.number.sum() + 2)
        deviation = np.sqrt(noise * (1 / (self.number + 1)).sum())
        ahead = self.mean[1] - self.mean[0]
        ahead -= self.head_start * np.sqrt(noise / (self.number[1] + 1))
        return norm.cdf(ahead / deviation)
