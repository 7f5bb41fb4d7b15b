"""EFF-RAW-UCB: RAW-UCB on windows of geometric length, with memory and time that grow with log t.

    index_k = min over j with w_j <= pulls_k of  mean over a window of w_j rewards + c(w_j)
    c(h) = sqrt(2 sigma^2 alpha ln(t) / h);   infinite before the first pull
    w_0 = 1, w_{j+1} = ceil(ratio * w_j)

t is the number of rewards so far, and sigma is `spec.noise`. Each window's sum is stored as a
finished one and a pending one that replaces it when full, so a sum may be w_j - w_{j-1} pulls old.

Paper: Seznec, Menard, Lazaric & Valko (2020), "A single algorithm for both restless and rested
rotting bandits".

Differences from the paper: the constants inside the logarithm are left out, as in the authors' own
experiments.

Use it when rewards only fall, with pulls or with time, and the horizon is long; a ratio of 1.1 is
closer to `raw_ucb` than the default of 2. Not when means rise again (an arm that looked bad is
hardly tried), nor when rewards are noisier than `spec.noise`.

It ignores the context.
"""

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import draw, greedy_probabilities
from driftbandits.numerics.levels import Levels, add_reward, empty_levels, geometric_lengths
from driftbandits.numerics.windows import LONGEST, confidence


def eff_raw_ucb(spec: BanditSpec, *, alpha: float = 1.4, ratio: float = 2.0) -> Policy:
    """RAW-UCB with geometric windows: a little worse, at a cost that grows with log t.

    Args:
        alpha: Scales the confidence bonus (theory asks for 4, practice for 1.4).
        ratio: Ratio of a window's length to that of the one before, in (1, 2].
    """
    check.positive(alpha=alpha)
    lengths = geometric_lengths(spec.horizon or LONGEST, ratio)
    windows = jnp.array(lengths, jnp.int32)
    sizes = jnp.array(lengths, jnp.float32)

    def init(key: Key) -> Levels:
        return empty_levels(spec.num_arms, len(lengths))

    def act(key: Key, levels: Levels, observation: Observation) -> tuple[Decision, Levels]:
        bonus = confidence(alpha, spec.noise, levels.pulls)
        bounds = levels.finished / sizes + bonus / jnp.sqrt(sizes)
        full = windows <= levels.pulls[:, None]
        index = jnp.min(bounds, axis=1, where=full, initial=jnp.inf)
        probabilities = greedy_probabilities(index, observation.available)
        arm = draw(key, probabilities)
        return Decision(arm, probabilities, arm), levels

    def learn(levels: Levels, arm: Array, reward: Array) -> Levels:
        return add_reward(levels, windows, arm, reward)

    return Policy(init, act, learn)
