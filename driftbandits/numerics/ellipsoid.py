"""How far a ridge regression may be from the truth: the width of the bonus of linear UCB.

    |z' (theta - truth)| <= radius * sqrt(z' V^-1 z)
    radius = sqrt(lambda) S + noise * sqrt(2 ln(1 / delta) + d ln(1 + n / (lambda d)))

for each z at once with probability 1 - delta, where S bounds the norm of the truth, d = dim(z)
and n is the sum of all squared weights, for |z| <= 1 (a longer one changes only the logarithm).

Abbasi-Yadkori, Pal & Szepesvari (2011), "Improved algorithms for linear stochastic bandits";
Russac, Vernade & Cappe (2019) for the weights.
"""

import math
from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec


def check_width(*, alpha: float, delta: float | None, precision: float) -> None:
    """The settings that all linear UCB policies have."""
    check.not_negative(alpha=alpha)
    check.positive(precision=precision)
    if delta is not None and not (check.is_number(delta) and 0 < delta < 1):
        check.fail("delta", "none or a probability in (0, 1)", delta)


def reward_width(spec: BanditSpec) -> float:
    low, high = spec.reward_range
    return high - low


def radius_of(
    spec: BanditSpec, delta: float | None, precision: float, dim: int | None = None
) -> Callable[[Array], Array | float]:
    """The radius as a function of n, with the width of the reward range as S; only S without delta.

    Args:
        spec: The problem.
        delta: Probability that the bound of an arm fails.
        precision: lambda.
        dim: d; by default the dimension of the context plus 1.
    """
    norm = reward_width(spec)
    if delta is None:
        return lambda _: norm
    dim = spec.context_dim + 1 if dim is None else dim
    least, bias, scale = 2 * math.log(1 / delta), math.sqrt(precision) * norm, precision * dim
    return lambda weight: bias + spec.noise * jnp.sqrt(least + dim * jnp.log1p(weight / scale))
