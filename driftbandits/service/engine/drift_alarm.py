"""A drift alarm for one arm: when the mean of its rewards changed, and from what to what.

The rewards since the last alarm are split in two at every place that is remembered, and the parts'
means are compared by a generalised likelihood ratio, as in Besson, Kaufmann, Maillard and Seznec
(2022), "Efficient Change-Point Detection for Tackling Piecewise-Stationary Bandits". Its rate is
that of Hoeffding (1963), theorem 3, for rewards of a given variance and a bounded distance from
their mean: on 0/1 rewards it is the Bernoulli divergence to the letter, however rare the ones; on
others it knows their variance; and an outlier weighs no more than a rare one among zeros. Nor can
one hide later changes behind an enormous variance: a reward far outside of all others counts as one
at the border of what is believed (`plausible_rewards`). Scale and origin of the rewards do not
matter. What is remembered is the exponential histogram of ADWIN (Bifet and Gavaldà, 2007): blocks
of rewards that are the longer the older they are.
"""

import math
from typing import NamedTuple

from driftbandits.service.engine.plausible_rewards import PlausibleRewards

BLOCK = 8  # rewards between two looks
KEPT = 6  # blocks of each length
SHORTEST = 24  # rewards before a change


class Alarm(NamedTuple):
    """The mean of the rewards changed."""

    time: float  # about when
    raised: float  # when it was noticed
    before: float  # mean
    after: float  # mean


class Block(NamedTuple):
    """Rewards that came one after the other."""

    size: int
    total: float  # of the rewards, counted from the window's origin
    since: float  # time of the first


class DriftAlarm:
    """Sees the rewards of one arm one by one; memory grows with the logarithm of their number.

    In a still world the chance of a false alarm at the n-th reward is of the order of `risk` / n,
    so that false alarms, rare as they are, come soon after a start or not at all.
    """

    def __init__(self, risk: float = 0.01) -> None:
        self._caution = -math.log(risk)
        self._forget()

    def _forget(self) -> None:
        self._lengths: list[list[Block]] = [[]]  # by length, the shortest first; oldest first
        self._count = 0
        self._total = self._squares = 0.0
        self._plausible = PlausibleRewards()
        self._count_before = 0  # the newest block
        self._total_before = 0.0
        self._block_since = 0.0

    def see(self, time: float, reward: float) -> Alarm | None:
        """Takes one more reward; returns an alarm if the mean has changed."""
        plausible = self._plausible
        value = reward - plausible.origin
        if plausible.least <= value <= plausible.most and plausible.is_known:  # as most are
            return self._see(time, value)
        for moment, value in self._plausible.admit(time, reward):
            if alarm := self._see(moment, value):
                return alarm
        return None

    def _see(self, time: float, value: float) -> Alarm | None:
        """Takes a plausible reward, counted from the origin."""
        if self._count == self._count_before:
            self._block_since = time
        self._count += 1
        self._total += value
        self._squares += value * value
        if self._count - self._count_before < BLOCK:
            return None
        change = self._look(self._close_block())
        if change is None:
            return None
        seen, total, since = self._look(len(self._lengths)) or change  # the best of all places
        alarm = self._alarm(seen, total, since, time)
        self._forget()
        return alarm

    def _close_block(self) -> int:
        """How many lengths have a new block: half as many times for each that is longer."""
        size, total = self._count - self._count_before, self._total - self._total_before
        self._lengths[0].append(Block(size, total, self._block_since))
        self._count_before, self._total_before = self._count, self._total
        for index, blocks in enumerate(self._lengths):
            if len(blocks) <= KEPT:
                return index + 1
            if index + 1 == len(self._lengths):
                self._lengths.append([])
            older, newer = blocks.pop(0), blocks.pop(0)
            both = Block(older.size + newer.size, older.total + newer.total, older.since)
            self._lengths[index + 1].append(both)
        raise AssertionError("the last length has room")

    def _look(self, lengths: int) -> tuple[int, float, float] | None:
        """The place among so many lengths, the shortest first, where before and after differ most.

        What comes after a far border changes little with eight more rewards, so that it is enough
        to look there when its length has a new block. Gives the rewards before, their total and the
        time of the first one after.
        """
        count, mean = self._count, self._total / self._count
        variance = self._squares / count - mean * mean
        if not 0 < variance < math.inf:
            return None
        highest = self._caution + math.log(count)
        change = None
        seen, total = count, self._total
        for blocks in self._lengths[:lengths]:
            for block in reversed(blocks):
                seen -= block.size
                total -= block.total
                if seen < SHORTEST:
                    return change
                # The divergence is at most the chi-square distance, which costs no logarithm.
                shift = total - seen * mean
                if (
                    shift * shift * count > highest * variance * seen * (count - seen)
                    and (ratio := self._ratio(seen, shift, mean, variance)) > highest
                ):
                    highest = ratio
                    change = seen, total, block.since
        return change

    def _ratio(self, seen: int, shift: float, mean: float, variance: float) -> float:
        """Log likelihood ratio of a change after `seen` rewards, which had `shift` too much."""
        above, below = self._plausible.most - mean, mean - self._plausible.least
        first, second = (above, below) if shift > 0 else (below, above)
        left = self._count - seen
        return seen * divergence(abs(shift) / seen, variance, first) + left * divergence(
            abs(shift) / left, variance, second
        )

    def _alarm(self, seen: int, total: float, since: float, now: float) -> Alarm:
        origin = self._plausible.origin
        after = (self._total - total) / (self._count - seen)
        return Alarm(since, now, origin + total / seen, origin + after)


def divergence(distance: float, variance: float, bound: float) -> float:
    """Hoeffding's rate at which a mean so far from the truth becomes unlikely.

    It is the divergence of two distributions on the points `bound` and `-variance / bound`.
    """
    if distance <= 0 or bound <= 0:
        return 0.0
    share = variance / (variance + bound * bound)
    moved = share + distance * (1 - share) / bound
    rate = moved * math.log(moved / share)
    return rate + (1 - moved) * math.log((1 - moved) / (1 - share)) if moved < 1 else rate
