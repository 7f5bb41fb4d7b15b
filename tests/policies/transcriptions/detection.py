"""Pseudocode of the change-detecting policies in plain NumPy and float64.

Every list holds an arm's rewards since it was last started afresh, as shares of their range.
`choose` gives the probabilities of the arms, uniform over those that the paper ties.
"""

import math

import numpy as np

from tests.policies.transcriptions.classic import best_of


def ucb_of(rewards, time, xi):
    """The index of an arm whose rewards these are."""
    if not rewards:
        return math.inf
    return sum(rewards) / len(rewards) + math.sqrt(xi * math.log(time) / len(rewards))


def mixed(probabilities, exploration, available):
    return (1 - exploration) * probabilities + exploration * available / available.sum()


class CusumUcb:
    """Liu, Lee & Shroff (2018), CUSUM-UCB."""

    def __init__(self, num_arms, warm_up, drift, threshold, exploration, xi):
        self.warm_up, self.drift, self.threshold = warm_up, drift, threshold
        self.exploration, self.xi = exploration, xi
        self.rewards = [[] for _ in range(num_arms)]
        self.alarms = [0] * num_arms

    def choose(self, available):
        time = sum(map(len, self.rewards))
        index = np.array([ucb_of(rewards, time, self.xi) for rewards in self.rewards])
        return mixed(best_of(index, available), self.exploration, available)

    def rings(self, rewards):
        reference = np.mean(rewards[: self.warm_up])
        up = down = highest = 0.0
        for reward in rewards[self.warm_up :]:
            up = max(0.0, up + reward - reference - self.drift)
            down = max(0.0, down + reference - reward - self.drift)
            highest = max(highest, up, down)
        return highest >= self.threshold

    def update(self, arm, reward):
        self.rewards[arm].append(reward)
        if self.rings(self.rewards[arm]):
            self.rewards[arm] = []
            self.alarms[arm] += 1


class MUcb:
    """Cao, Wen, Kveton & Xie (2019), M-UCB; a sleeping arm gives its turn to the next one."""

    def __init__(self, num_arms, window, threshold, exploration, xi):
        self.num_arms, self.half, self.threshold = num_arms, window // 2, threshold
        self.period, self.xi = math.ceil(num_arms / exploration), xi
        self.alarms = 0
        self.restart()

    def restart(self):
        self.rewards = [[] for _ in range(self.num_arms)]
        self.time = 0

    def choose(self, available):
        turn = self.time % self.period
        if turn < self.num_arms:
            while not available[turn % self.num_arms]:
                turn += 1
            return np.eye(self.num_arms)[turn % self.num_arms]
        index = [ucb_of(rewards, self.time, self.xi) for rewards in self.rewards]
        return best_of(np.array(index), available)

    def update(self, arm, reward):
        self.time += 1
        self.rewards[arm].append(reward)
        last = self.rewards[arm][-2 * self.half :]
        if len(last) == 2 * self.half:
            newer, older = sum(last[self.half :]), sum(last[: self.half])
            if abs(newer - older) > self.threshold:
                self.restart()
                self.alarms += 1


def kl(p, q):
    first = p * math.log(p / q) if p > 0 else 0.0
    return first + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def kl_bound(mean, level):
    """By bisection."""
    low, high = mean, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        if middle < 1 and kl(mean, middle) <= level:
            low = middle
        else:
            high = middle
    return low


class GlrKlUcb:
    """Besson & Kaufmann (2019), GLR-klUCB, tested now and then and at some splits only."""

    def __init__(self, num_arms, delta, exploration, local, loglog, every, stride, longest):
        self.delta, self.exploration, self.local = delta, exploration, local
        self.loglog, self.every, self.stride, self.longest = loglog, every, stride, longest
        self.rewards = [[] for _ in range(num_arms)]
        self.started = [0] * num_arms
        self.time = 0
        self.alarms = [0] * num_arms

    def index(self):
        return np.array([self.index_of(arm) for arm in range(len(self.rewards))])

    def index_of(self, arm):
        rewards = self.rewards[arm]
        if not rewards:
            return math.inf
        logarithm = math.log(self.time - self.started[arm])
        level = logarithm + self.loglog * math.log(max(logarithm, 1.0))
        return kl_bound(sum(rewards) / len(rewards), level / len(rewards))

    def rings(self, rewards):
        marks = len(rewards) // self.stride
        kept = math.ceil(self.longest / self.stride)
        tested = np.array(rewards[max(marks - kept, 0) * self.stride :])
        n = len(tested)
        ratios = [
            s * kl(tested[:s].mean(), tested.mean())
            + (n - s) * kl(tested[s:].mean(), tested.mean())
            for s in range(self.stride, n, self.stride)
        ]
        bar = math.log(1 / self.delta) + 1.5 * math.log(len(rewards) or 1) + math.log(3)
        return max(ratios, default=-math.inf) >= bar

    def update(self, arm, reward):
        self.rewards[arm].append(reward)
        self.time += 1
        if self.time % self.every:
            return
        ringing = [arm for arm, rewards in enumerate(self.rewards) if self.rings(rewards)]
        for arm in ringing:
            self.alarms[arm] += 1
        for arm in ringing if self.local else range(len(self.rewards) if ringing else 0):
            self.rewards[arm], self.started[arm] = [], self.time


class BanditOverBandit:
    """Cheung, Simchi-Levi & Zhu (2019): Exp3 over the windows of a sliding-window UCB."""

    def __init__(self, num_arms, block, windows, gamma, xi):
        self.num_arms, self.block, self.windows = num_arms, block, windows
        self.gamma, self.xi = gamma, xi
        self.weights = np.ones(len(windows))

    def window_probabilities(self):
        share = self.weights / self.weights.sum()
        return (1 - self.gamma) * share + self.gamma / len(self.windows)

    def begin_block(self, chosen):
        self.chosen, self.past = chosen, []

    def choose(self, available):
        window = self.windows[self.chosen]
        last = self.past[-window:]
        rewards = [[r for a, r in last if a == arm] for arm in range(self.num_arms)]
        time = max(min(len(self.past), window), 1)
        return best_of(np.array([ucb_of(own, time, self.xi) for own in rewards]), available)

    def update(self, arm, reward):
        self.past.append((arm, reward))

    def end_block(self):
        gain = (
            sum(reward for _, reward in self.past)
            / self.block
            / self.window_probabilities()[self.chosen]
        )
        self.weights[self.chosen] *= math.exp(self.gamma * gain / len(self.windows))
