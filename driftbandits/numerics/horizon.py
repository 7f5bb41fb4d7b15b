"""The horizon, for settings that depend on it in theory."""

import math

from driftbandits.core import BanditSpec

UNKNOWN = 10_000


def horizon_of(spec: BanditSpec) -> int:
    """The horizon of the problem, or 10,000 pulls if it is unknown."""
    return spec.horizon or UNKNOWN


def usual_window(spec: BanditSpec) -> int:
    """4 sqrt(T ln T), but at most the horizon T: Garivier & Moulines (2011)."""
    horizon = horizon_of(spec)
    return max(1, min(horizon, math.ceil(4 * math.sqrt(horizon * math.log(horizon)))))
