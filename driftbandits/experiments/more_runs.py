"""How many runs would decide an undecided claim.

If the estimate stays where it is, the ends of its interval approach it as 1 / sqrt(runs). If the
true effect equals the estimate, that many runs decide in about half of all cases, and twice as many
in about four out of five.
"""

import math

import numpy as np

from driftbandits.experiments.effects import Effect, Range

MANY = 100  # times as many runs are not worth a number


def runs_to_decide(effect: Effect, claimed: Range, runs: int) -> float:
    """Infinite if the estimate lies on the boundary, NaN if an end is missing."""
    value, low, high = effect
    if value in claimed:
        return np.inf
    if value < claimed.low:
        gaps = [(high - value, claimed.low - value)]
    elif value > claimed.high:
        gaps = [(value - low, value - claimed.high)]
    else:
        gaps = [(value - low, value - claimed.low), (high - value, claimed.high - value)]
    closer = max(reach / gap for reach, gap in gaps if not np.isinf(gap))
    return runs * closer**2 if np.isfinite(closer) else np.nan


def needed_text(needed: float, runs: int) -> str:
    """The explanation of an undecided claim for the reader."""
    if np.isnan(needed):
        return "how many runs would decide it cannot be said, as an end of its interval is missing"
    if needed > MANY * runs:
        return "more runs would hardly decide it, as the estimate is on the boundary or next to it"
    return f"about {rounded_up(needed):,} runs would decide it, if the estimate stays"


def rounded_up(count: float) -> int:
    """To two digits."""
    unit = 10 ** max(math.floor(math.log10(count)) - 1, 0)
    return math.ceil(count / unit) * unit
