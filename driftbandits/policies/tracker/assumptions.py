"""What each track assumes before the first reward: features, drifts, speeds and priors.

    first track             second track
    level                   level and history            without a context
    slopes and level        these and waves              with a context
    these and shared ones   shared ones alone            with features of arms

The shared coefficients belong to (features of the arm, 1) x (context, 1), and all arms have the
same ones. Beside them an arm's own coefficients only say how it differs, so their prior is
narrower.
"""

from functools import partial
from typing import NamedTuple

from driftbandits.core import BanditSpec
from driftbandits.policies.tracker import tracks
from driftbandits.policies.tracker.history import OWN
from driftbandits.policies.tracker.tracks import Constants, Learning

WAVE_DRIFTS = (0.0, 1e-3)
WAVE_PRIOR = 1.0
UNIT_PRIOR, OWN_PRIOR = 0.1, 1.0  # of the history's features: of the network, of the arm
OWN_SLOPES = 0.1  # times the prior of slopes, beside shared ones
WIDEST_SHARED = 64  # shared coefficients with full covariances


class Assumptions(NamedTuple):
    """Settings of the policy."""

    drifts: tuple[float, ...]
    slow_slopes: tuple[float, ...]
    prior: float
    slope_prior: float
    slope_speed: float
    diagonal: bool
    learning: Learning


def tracks_of(
    given: Assumptions, spec: BanditSpec, *, waves: int, units: int, describes: bool
) -> list[Constants]:
    """The tracks of a problem.

    Args:
        given: Settings of the policy.
        spec: The problem.
        waves: Fourier features of the context in the second track.
        units: Units of the network of the history in the second track.
        describes: Whether arms have features.
    """
    if describes:
        alone, beside = shared_track(given, spec), shared_track(given, spec, given.slow_slopes)
        own = context_track(given, spec, OWN_SLOPES)
        return [own._replace(diagonal=beside.diagonal, shared=beside.shared), alone]
    first = context_track(given, spec)
    if waves:
        return [first, wave_track(given, spec, waves)]
    return [first, history_track(given, units)] if units else [first]


def build(given: Assumptions, drifts: tuple[float, ...]) -> "partial[Constants]":
    return partial(tracks.constants, drifts, learning=given.learning, diagonal=given.diagonal)


def context_track(given: Assumptions, spec: BanditSpec, slopes: float = 1.0) -> Constants:
    """Slopes of the context and a level."""
    dim = spec.context_dim
    return build(given, given.drifts)(
        speeds=[given.slope_speed] * dim + [1.0],
        prior=[slopes * given.slope_prior] * dim + [given.prior],
        steady=given.slow_slopes,
    )


def wave_track(given: Assumptions, spec: BanditSpec, waves: int) -> Constants:
    dim = spec.context_dim
    return build(given, WAVE_DRIFTS)(
        speeds=[1.0] * waves + [given.slope_speed] * dim + [1.0],
        prior=[WAVE_PRIOR] * waves + [given.slope_prior] * dim + [given.prior],
    )


def history_track(given: Assumptions, units: int) -> Constants:
    """Variances alone: units are so much alike that float32 would lose their covariances."""
    prior = [UNIT_PRIOR] * units + [OWN_PRIOR] * OWN + [given.prior]
    found = build(given, (0.0,))(speeds=[1.0] * len(prior), prior=prior)
    return found._replace(diagonal=True)


def shared_track(given: Assumptions, spec: BanditSpec, steady: tuple[float, ...] = ()) -> Constants:
    """Coefficients that all arms share, as slow as levels.

    Experts whose own slopes are as slow, `steady`, are here to match those of the arms' own.
    """
    dim = (spec.arm_dim + 1) * (spec.context_dim + 1)
    found = build(given, given.drifts)(
        speeds=[1.0] * dim,
        prior=[given.slope_prior] * (dim - 1) + [given.prior],
        steady=steady,
        shared=True,
    )
    return found._replace(diagonal=given.diagonal or dim > WIDEST_SHARED)
