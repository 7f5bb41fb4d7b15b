"""EFF-RAW-UCB: RAW-UCB on windows of geometric length, whose memory and cost grow with log t.

    index_k = min over j with w_j <= pulls_k of  mean over a window of w_j rewards + c(w_j)
    c(h) = sqrt(2 sigma^2 alpha ln(t) / h);   infinite before the first pull
    w_0 = 1, w_{j+1} = ceil(ratio * w_j)

Seznec, Menard, Lazaric & Valko (2020), "A single algorithm for both restless and rested rotting
bandits". t counts the rewards so far, sigma is `spec.noise`. Each window's sum is kept as a
finished one and a pending one that takes over when it is full, so a sum may be as old as
w_j - w_{j-1} pulls.

Differences from the paper: none of its constants inside the logarithm (as in the authors' own
experiments).

Use it when rewards only fall, by being pulled or with time, and the horizon is long; a ratio of 1.1
comes closer to raw_ucb than the default of 2. Not when means rise again (an arm that looked bad is
hardly tried), or when rewards are noisier than `spec.noise`.

It ignores the context.
"""

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Policy
from driftbandits.numerics.arms import draw, greedy_probabilities
from driftbandits.numerics.levels import Levels, add_reward, empty_levels, geometric_lengths
from driftbandits.numerics.windows import LONGEST, confidence


def eff_raw_ucb(spec: BanditSpec, *, alpha: float = 1.4, ratio: float = 2.0) -> Policy:
    """RAW-UCB with geometric windows: a little worse, at a cost that grows with log t.

    Args:
        alpha: scales the confidence bonus (the theory asks for 4, practice for 1.4).
        ratio: of one window's length to the one before, in (1, 2].
    """
    check.positive(alpha=alpha)
    lengths = geometric_lengths(spec.horizon or LONGEST, ratio)
    windows = jnp.array(lengths, jnp.int32)
    sizes = jnp.array(lengths, jnp.float32)

    def init(key: Key) -> Levels:
        return empty_levels(spec.num_arms, len(lengths))

    def act(key: Key, levels: Levels, context: Array, available: Array) -> tuple[Decision, Levels]:
        bonus = confidence(alpha, spec.noise, levels.pulls)
        bounds = levels.finished / sizes + bonus / jnp.sqrt(sizes)
        full = windows <= levels.pulls[:, None]
        index = jnp.min(bounds, axis=1, where=full, initial=jnp.inf)
        probabilities = greedy_probabilities(index, available)
        arm = draw(key, probabilities)
        return Decision(arm, probabilities, arm), levels

    def learn(levels: Levels, arm: Array, reward: Array) -> Levels:
        return add_reward(levels, windows, arm, reward)

    return Policy(init, act, learn)
