"""EFF-FEWA: FEWA on windows of geometric length, with memory and time that grow with log t.

    A = the arms; for h = w_0, w_1, ...:   w_0 = 1, w_{j+1} = ceil(ratio * w_j)
        keep the arms of A whose last h rewards have a mean of at least max_A mean - 2 c(h)
        stop when one arm is left, or when an arm of A has fewer than h pulls
    pull the arm of A with the fewest pulls;   c(h) = sqrt(2 sigma^2 alpha ln(t) / h)

This is the filter of `fewa` on fewer windows. Each window's sum is stored as a finished one and a
pending one that replaces it when full, so a sum may be w_j - w_{j-1} pulls old.

Paper: Seznec, Menard, Lazaric & Valko (2020), "A single algorithm for both restless and rested
rotting bandits", and the efficient update in the appendix of Seznec et al. (2019).

Use it when arms wear out as they are pulled, over a long horizon: its memory and time grow with the
logarithm of the horizon. Not when means rise again, nor when every single pull counts: `fewa`
notices changes sooner.

It ignores the context.
"""

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import draw, greedy_probabilities, require_some
from driftbandits.numerics.levels import Levels, add_reward, empty_levels, geometric_lengths
from driftbandits.numerics.windows import LONGEST
from driftbandits.policies.fewa import filter_bonus


def eff_fewa(spec: BanditSpec, *, alpha: float = 0.06, ratio: float = 2.0) -> Policy:
    """FEWA with geometric windows: nearly as good, at a cost that grows with log t.

    Args:
        alpha: Scales the confidence bonus.
        ratio: Ratio of a window's length to that of the one before, in (1, 2].
    """
    check.positive(alpha=alpha)
    lengths = geometric_lengths(spec.horizon or LONGEST, ratio)
    windows = jnp.array(lengths, jnp.int32)

    def init(key: Key) -> Levels:
        return empty_levels(spec.num_arms, len(lengths))

    def act(key: Key, levels: Levels, observation: Observation) -> tuple[Decision, Levels]:
        require_some(observation.available)
        bonus = filter_bonus(alpha, spec.noise, levels.pulls)
        active = filter_levels(levels, windows, observation.available, bonus)
        probabilities = greedy_probabilities(-levels.pulls.astype(jnp.float32), active)
        arm = draw(key, probabilities)
        return Decision(arm, probabilities, arm), levels

    def learn(levels: Levels, arm: Array, reward: Array) -> Levels:
        return add_reward(levels, windows, arm, reward)

    return Policy(init, act, learn)


def filter_levels(levels: Levels, windows: Array, available: Array, bonus: Array) -> Array:
    """The arms that pass the filter at every window that all of them have filled."""

    def unfinished(state: tuple[Array, Array]) -> Array:
        active, level = state
        fewest = jnp.min(levels.pulls, where=active, initial=jnp.iinfo(jnp.int32).max)
        more = (level < windows.size) & (windows[level] <= fewest)
        return more & (jnp.sum(active) > 1)

    def proceed(state: tuple[Array, Array]) -> tuple[Array, Array]:
        active, level = state
        sums = levels.finished[:, level]
        best = jnp.max(sums, where=active, initial=-jnp.inf)
        close = sums >= best - bonus * jnp.sqrt(windows[level].astype(jnp.float32))
        return active & close, level + 1

    return jax.lax.while_loop(unfinished, proceed, (available, jnp.int32(0)))[0]
