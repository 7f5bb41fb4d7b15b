"""Delayed rewards: the rewards of any environment arrive later, or never.

    delayed=100                          every reward 100 steps after its pull
    delayed="geometric(mean=100)"        each after its own time, at most 20 means
    delayed="never(share=0.1)"           at once, but a tenth of them never

All of them take `share`, the share of rewards that never arrive. The policy continues to choose
while rewards are on their way, and learns from each when it arrives. The regret is counted at the
pull.

Examples: clicks that are counted after the next decision, sales that are reported overnight.

Paper: Pike-Burke, Agrawal, Szepesvari & Grunewalder (2018), "Bandits with delayed, aggregated
anonymous feedback", describe the setting. Here it is known which pull a reward belongs to.

Use it when rewards take time in your application. Not when they arrive before the next decision.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.choice import construct, parse
from driftbandits.core import Delay, Environment, Key

LATEST = 100_000  # steps; every run stores the tickets of that many pulls
LONGEST = 20  # means; one reward in 500 million takes longer


def delayed(environment: Environment, delay: Any) -> Environment:
    """Rewards arrive after a constant or a geometric time, or never.

    Args:
        environment: The environment to change.
        delay: A number of steps, or a choice such as `geometric(mean=100)`.
    """
    if environment.delay is not None:
        check.fail("delayed", "given once", delay)
    if isinstance(delay, str):
        drawn: Delay = construct("delayed", DISTRIBUTIONS, parse("delayed", delay))
    else:
        check.integer(delayed=delay, at_least=0, at_most=LATEST)
        drawn = constant(steps=delay)
    return environment._replace(delay=drawn)


def constant(*, steps: int = 100, share: float = 0.0) -> Delay:
    """Every reward after the same number of steps."""
    check.integer(steps=steps, at_least=0, at_most=LATEST)
    return sometimes_never(share, steps, lambda _: jnp.int32(steps))


def geometric(*, mean: float = 100.0, share: float = 0.0) -> Delay:
    """Each reward after a geometric number of steps, which may be 0."""
    check.positive(mean=mean)
    if mean > LATEST / LONGEST:
        check.fail("mean", f"at most {LATEST // LONGEST}", mean)
    longest = int(LONGEST * (mean + 1))
    scale = jnp.log1p(1 / mean)

    def draw(key: Key) -> Array:
        waited = jax.random.exponential(key) / scale
        return jnp.minimum(waited, longest + 1).astype(jnp.int32)

    return sometimes_never(share, longest, draw)


def never(*, share: float = 1.0) -> Delay:
    """Each reward at once, or never."""
    return constant(steps=0, share=share)


def sometimes_never(share: float, longest: int, draw: Callable[[Key], Array]) -> Delay:
    check.probability(share=share)
    if not share:
        return Delay(longest, draw)

    def draw_or_lose(key: Key) -> Array:
        draw_key, loss_key = jax.random.split(key)
        return jnp.where(jax.random.bernoulli(loss_key, share), longest + 1, draw(draw_key))

    return Delay(longest, draw_or_lose)


DISTRIBUTIONS: dict[str, Callable[..., Delay]] = {
    "constant": constant,
    "geometric": geometric,
    "never": never,
}
