"""The horizon, for settings that theory makes depend on it."""

from driftbandits.core import BanditSpec

UNKNOWN = 10_000


def horizon_of(spec: BanditSpec) -> int:
    """As the problem tells, or 10,000 pulls where it does not."""
    return spec.horizon or UNKNOWN
