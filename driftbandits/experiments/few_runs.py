"""Whether a few runs dominate a mean.

They do if a tenth of the runs or fewer make up at least half of it. If values have both signs, as
differences do, half of the sum of absolute values counts.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

FEW, MUCH = 0.1, 0.5  # of the runs, of the mean


class FewRuns(NamedTuple):
    """The runs that dominate a mean; 0 if none do."""

    runs: int = 0
    share: float = 0.0  # of the mean that they make


def few_runs(values: np.ndarray) -> FewRuns:
    """The fewest runs that make up at least half of the mean, if they are few."""
    sizes = np.sort(np.abs(values))[::-1]
    shares = np.cumsum(sizes) / max(float(sizes.sum()), np.finfo(float).tiny)
    count = int(np.searchsorted(shares, MUCH)) + 1
    return FewRuns(count, float(shares[count - 1])) if count <= FEW * len(sizes) else FewRuns()


def few_runs_text(found: FewRuns, runs: int, what: str = "the mean") -> str:
    """For example "3 of 100 runs make 70% of the mean"; empty if no runs dominate."""
    if not found.runs:
        return ""
    verb = "makes" if found.runs == 1 else "make"
    return f"{found.runs} of {runs} runs {verb} {100 * found.share:.0f}% of {what}"


def what_hangs(means: Mapping[str, np.ndarray]) -> str:
    """The one of several named means that a few runs dominate most; empty if there is none."""
    found = {what: few_runs(values) for what, values in means.items()}
    worst = max(found, key=lambda what: found[what].share)
    return few_runs_text(found[worst], len(means[worst]), worst)
