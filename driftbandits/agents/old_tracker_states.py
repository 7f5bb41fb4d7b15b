"""What the tracker remembers today, from a state that knew no outliers (files up to version 2)."""

import numpy as np

from driftbandits.policies.tracker.outliers import ENOUGH, LONGEST
from driftbandits.policies.tracker.policy import WIDEST_FULL


def completed(state: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Adds scales, settled wherever something was seen, and variances of wide contexts."""
    found, squares = dict(state), state[".context_squares"]
    del found[".context_squares"]
    time = np.full(squares.shape, state[".time"], np.float32)
    for path in found:
        if path.endswith(".bank.covariance") and squares.size > WIDEST_FULL:
            found[path] = np.diagonal(found[path], axis1=-2, axis2=-1).copy()
    return {
        **found,
        **scale_of(".contexts", time, squares),
        **settled(".contexts.sizes", squares),
        **scale_of(".seen", state[".seen.number"], state[".seen.squares"]),
        **settled(".seen.distances", state[".seen.squares"]),
        ".seen.last": state[".seen.first"],
        ".seen.alert": np.zeros((), np.float32),
        ".restart_time": np.zeros((), np.int32),
    }


def scale_of(path: str, number: np.ndarray, squares: np.ndarray) -> dict[str, np.ndarray]:
    """Scales a sum of squares to at most the number that is remembered."""
    kept = np.minimum(number, np.float32(LONGEST))
    share = kept / np.maximum(number, np.float32(1))
    return {
        f"{path}.number": np.asarray(kept, np.float32),
        f"{path}.squares": np.asarray(np.where(share < 1, share * squares, squares), np.float32),
    }


def settled(path: str, squares: np.ndarray) -> dict[str, np.ndarray]:
    return {
        f"{path}.number": np.asarray(np.where(squares > 0, ENOUGH, 0), np.int32),
        f"{path}.largest": np.zeros((3, *squares.shape), np.float32),
    }
