"""Plausible rewards: an enormous one among small ones is moved to a border.

The border is FAR times the range of what was believed so far beyond it. So a single outlier is
worth little, whatever its size, and rewards that really are larger from now on are believed after a
few.
"""

FIRST = 8  # rewards that are looked at together; before them nothing is known
FAR = 4.0  # ranges beyond the range


class PlausibleRewards:
    """Returns rewards counted from an origin near their mean, so that no digits are lost."""

    def __init__(self) -> None:
        self.origin = 0.0
        self.least = self.most = 0.0  # of what was given back
        self._first: list[tuple[float, float]] = []  # times and rewards, until there are enough
        self.is_known = False  # whether the first ones are through
        self._alone: tuple[float, float] | None = None  # the only one that differs from the others

    def admit(self, time: float, reward: float) -> list[tuple[float, float]]:
        """Takes a reward; returns the times and values that count now, often just this one."""
        if self.is_known:
            return self._admit(time, reward - self.origin)
        self._first.append((time, reward))
        if len(self._first) < FIRST:
            return []
        self.is_known = True
        return self._admit_first(self._first)

    def _admit_first(self, first: list[tuple[float, float]]) -> list[tuple[float, float]]:
        """Takes the first rewards; the one farthest from their median counts as an outlier."""
        self.origin = sorted(reward for _, reward in first)[FIRST // 2]
        values = [(time, reward - self.origin) for time, reward in first]
        farthest = max(range(FIRST), key=lambda at: abs(values[at][1]))
        others = [value for at, (_, value) in enumerate(values) if at != farthest]
        self.least, self.most = min(0.0, *others), max(0.0, *others)
        return [pair for value in values for pair in self._admit(*value)]

    def _admit(self, time: float, value: float) -> list[tuple[float, float]]:
        if self.least <= value <= self.most:
            return [(time, value)]
        reach = FAR * (self.most - self.least)
        if reach == 0:
            return self._admit_alone(time, value)
        value = min(max(value, self.least - reach), self.most + reach)
        self.least, self.most = min(self.least, value), max(self.most, value)
        return [(time, value)]

    def _admit_alone(self, time: float, value: float) -> list[tuple[float, float]]:
        """Takes one that differs from equal ones: a second one must show whether it is large."""
        if self._alone is None:
            self._alone = time, value
            return []
        both, self._alone = [self._alone, (time, value)], None
        nearer = min((value for _, value in both), key=abs)
        self.least, self.most = min(0.0, nearer), max(0.0, nearer)
        return [pair for each in both for pair in self._admit(*each)]
