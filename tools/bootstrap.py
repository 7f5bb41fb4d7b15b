"""The bootstrap of versions before 0.11, which the calibration compares with what came after."""

from functools import lru_cache

import numpy as np
from scipy.special import ndtri, stdtrit

from driftbandits.experiments.intervals import LEVEL

RESAMPLES = 2000


@lru_cache
def resampling_weights(count: int, seed: int = 0) -> np.ndarray:
    """The share of each of `count` items in every resample."""
    generator = np.random.default_rng(seed)
    return generator.multinomial(count, np.full(count, 1 / count), size=RESAMPLES) / count


def interval(center: np.ndarray, resamples: np.ndarray, runs: int) -> np.ndarray:
    """Low and high end of the 95% bootstrap interval about an estimate.

    The central 95% of few resampled runs are too narrow. Their distance from the estimate is
    widened by what Student's t and the unbiased variance do to the interval of a mean.
    """
    ends = np.quantile(resamples, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    student, normal = stdtrit(runs - 1, (1 + LEVEL) / 2), ndtri((1 + LEVEL) / 2)
    return center + (ends - center) * student / normal * np.sqrt(runs / (runs - 1))


def resampled_means(values: np.ndarray) -> np.ndarray:
    """Means over the first axis, the runs, resampled with replacement: (RESAMPLES, ...)."""
    return np.tensordot(resampling_weights(len(values)), values, axes=1)
