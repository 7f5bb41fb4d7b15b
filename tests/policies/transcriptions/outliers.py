"""The tracker's scales in plain NumPy: what a reward or a context counts as.

They remember 10,000 values; no twin plays that long, so here they remember all.
"""

import numpy as np

ENOUGH, FAR, GROSS, LARGEST, ALERT = 16, 30, 300, 1e12, 1000


def gross(sizes):
    third, _, largest = sorted(sizes)[-3:]
    return largest > GROSS * third


class SeenRewards:
    """As what they counted."""

    def __init__(self):
        self.start_again()

    def start_again(self):
        self.counted, self.last, self.distances, self.alert = [], None, [], 0

    def add(self, reward):
        """What it counts as, whether it is learned from, and whether all before it is forgotten.

        Whether it counts as what it is stays to be looked at.
        """
        reward = float(np.clip(reward, -LARGEST, LARGEST))
        restarts = False
        if self.counted and reward != self.last and len(self.distances) < ENOUGH:
            restarts = len(self.distances) == ENOUGH - 1 and gross(self.distances)
            self.distances.append(abs(reward - self.last))
        if restarts:
            self.start_again()
        usual, good, counts_as = True, False, reward
        if len(self.distances) == ENOUGH:
            mean, reach = np.mean(self.counted), FAR * np.sqrt(np.var(self.counted) + 1e-12)
            counts_as = float(np.clip(reward, mean - reach, mean + reach))
            usual, good = counts_as == reward, reward > mean
        believed, self.usual = usual or good or self.alert > 0, usual
        self.alert = max(self.alert - 1, 0) if usual else ALERT
        self.counted.append(counts_as)
        self.last = reward
        return counts_as, believed, restarts


class SeenCoordinate:
    """Of the context."""

    def __init__(self):
        self.counted, self.sizes = [], []

    def add(self, x):
        """In units of the root mean square of all, this one too."""
        x = float(np.clip(x, -LARGEST, LARGEST))
        if x and len(self.sizes) < ENOUGH:
            self.sizes.append(abs(x))
            if len(self.sizes) == ENOUGH and gross(self.sizes):
                self.counted = [sorted(self.sizes)[-3]]
        if len(self.sizes) == ENOUGH:
            reach = FAR * self.root_mean_square()
            x = float(np.clip(x, -reach, reach))
        self.counted.append(x)
        return x / (self.root_mean_square() or 1)

    def root_mean_square(self):
        return np.sqrt(np.mean(np.square(self.counted)))
