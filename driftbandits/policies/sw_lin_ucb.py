"""SW-LinUCB: linear UCB on the last `window` rewards.

    z = (context, 1);  index_k = z' theta_k + alpha * width * sqrt(z' V_k^-1 z)
    V_k = precision * I + sum z z',  theta_k = V_k^-1 sum (r - low) z
                                     over those of the last `window` rewards that arm k paid

The features of each arm are a block of their own, so V splits into one matrix per arm. The window
is over the rewards of all arms: an arm that is not pulled becomes as uncertain as at the start.
(low, low + width) is `spec.reward_range`, as in `lin_ucb`. With `delta`, width is replaced by the
paper's radius, for each arm on its own, where d = dim(z) and noise is `spec.noise`:

    width * sqrt(precision) + noise * sqrt(d ln((1 + window / precision) / delta))

The default window is the paper's (d T / B)^(2/3). The variation B of the coefficients over the
horizon T is unknown; we take 1. Without a context z is the constant 1. Where arms have features,
all arms share one model of them (`deviation`), as in `lin_ucb`, in the same window.

Paper: Cheung, Simchi-Levi & Zhu (2019), "Learning to optimize under non-stationarity".

Differences from the paper: the width is constant unless `delta` is given. The paper's width has
several times the regret on Bernoulli arms. A new reward is added to the sums and the oldest one
subtracted; from time to time the sums are recomputed, so that rounding errors do not accumulate. In
a window of 3000 the coefficients are right to a few 1e-4 of the width.

Use it when rewards are roughly linear in the context and the relation jumps or drifts: what is
older than the window is gone for good. Choose `window` so that the relation hardly changes within
that many pulls; the default is long. Not when nothing drifts (`lin_ucb`), nor when memory is
scarce: it stores the whole window. Each step inverts two matrices, which is slow with 30 features
or more.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import draw, greedy_probabilities, set_arm, without_new
from driftbandits.numerics.ellipsoid import check_width, reward_width
from driftbandits.numerics.hybrid import dimension, ridge_of, uses_features
from driftbandits.numerics.hybrid_policy import optimistic
from driftbandits.numerics.hybrid_window import window_policy
from driftbandits.numerics.linear import LinearPosterior, predict, prior
from driftbandits.numerics.occasionally import occasionally
from driftbandits.numerics.regression import Memory, empty_memory, store
from driftbandits.numerics.ridge import Sums, add, fit, memory_length, no_sums

RESUM_EVERY = 500  # rewards, or a quarter of the window if that is more


class SwLinUcbState(NamedTuple):
    memory: Memory  # the last `window` rewards, with their features as inputs
    sums: Sums  # over the memory
    posterior: LinearPosterior  # theta_k and V_k^-1


class SwLinUcbTicket(NamedTuple):
    features: Array  # (context_dim + 1,) float32
    arm: Array  # () int32


def sw_lin_ucb(
    spec: BanditSpec,
    *,
    window: int | None = None,
    alpha: float = 1.0,
    precision: float = 1.0,
    delta: float | None = None,
    deviation: float | None = 0.1,
) -> Policy:
    """Linear upper confidence bounds on a sliding window.

    Args:
        window: Number of the last rewards that count; by default (d T)^(2/3), where d is the
            dimension of the context plus 1 and T the horizon, or 10,000 if it is unknown.
        alpha: Scales the bonus.
        precision: Precision of the prior on each coefficient (the ridge).
        delta: Probability that an arm's bound fails; by default the bonus is as wide as the reward
            range.
        deviation: Prior variance of an arm's own coefficients, in units of that of the coefficients
            that all arms share, where arms have features. 0 means that arms with the same features
            are the same; None ignores the features and learns each arm by itself.
    """
    check_width(alpha=alpha, delta=delta, precision=precision)
    size = math.ceil(memory_length(spec)) if window is None else window
    check.integer(window=size)
    low, dim = spec.reward_range[0], spec.context_dim + 1
    if uses_features(spec, deviation):
        ridge = ridge_of(precision, deviation)
        norm = window_radius(spec, delta, precision, size, dimension(spec, ridge))
        wide = optimistic(alpha, lambda _: norm)
        return window_policy(spec, ridge, wide, window=size, low=low)
    width = alpha * window_radius(spec, delta, precision, size, dim)

    def init(key: Key) -> SwLinUcbState:
        posterior = prior(spec.num_arms, dim, precision)
        return SwLinUcbState(empty_memory(size, dim), no_sums(spec.num_arms, dim), posterior)

    def act(
        key: Key, state: SwLinUcbState, observation: Observation
    ) -> tuple[Decision, SwLinUcbState]:
        features = jnp.append(observation.context, 1.0)
        mean, spread = predict(state.posterior, features)
        probabilities = greedy_probabilities(mean + width * jnp.sqrt(spread), observation.available)
        arm = draw(key, probabilities)
        return Decision(arm, probabilities, SwLinUcbTicket(features, arm)), state

    def learn(state: SwLinUcbState, ticket: SwLinUcbTicket, reward: Array) -> SwLinUcbState:
        features, arm = ticket
        old = state.memory.arms[state.memory.seen % size]
        sums = add(without_oldest(state), arm, features, reward - low)
        memory = store(state.memory, features, arm, reward - low)
        state = SwLinUcbState(memory, sums, refit(state.posterior, sums, [old, arm], precision))
        due = memory.seen % max(RESUM_EVERY, size // 4) == 0
        return occasionally(due, fit_anew, state)

    def fit_anew(state: SwLinUcbState) -> SwLinUcbState:
        sums = sums_of(state.memory, spec.num_arms)
        return SwLinUcbState(state.memory, sums, fit(sums, precision))

    def forget(old: SwLinUcbState, new: SwLinUcbState, is_new: Array) -> SwLinUcbState:
        arms = without_new(new.memory.arms, is_new)
        return new._replace(memory=new.memory._replace(arms=arms))

    return Policy(init, act, learn, forget=forget)


def window_radius(
    spec: BanditSpec, delta: float | None, precision: float, window: int, dim: int
) -> float:
    """The radius of the formula above; without delta the width of the reward range."""
    norm = reward_width(spec)
    if delta is None:
        return norm
    logarithm = math.log((1 + window / precision) / delta)
    return norm * math.sqrt(precision) + spec.noise * math.sqrt(dim * logarithm)


def refit(
    posterior: LinearPosterior, sums: Sums, arms: list[Array], precision: float
) -> LinearPosterior:
    """The posterior, recomputed for the arms whose sums have changed."""
    changed = jax.tree.map(lambda leaf: jnp.stack([leaf[arm] for arm in arms]), sums)
    new = fit(changed, precision)
    for i, arm in enumerate(arms):
        posterior = LinearPosterior(
            set_arm(posterior.mean, arm, new.mean[i]),
            set_arm(posterior.covariance, arm, new.covariance[i]),
        )
    return posterior


def without_oldest(state: SwLinUcbState) -> Sums:
    """The sums without the reward whose place the next one takes, if there is one."""
    memory, size = state.memory, state.memory.arms.size
    slot = memory.seen % size
    weight = -(memory.seen >= size).astype(jnp.float32)
    return add(state.sums, memory.arms[slot], memory.inputs[slot], memory.rewards[slot], weight)


def sums_of(memory: Memory, num_arms: int) -> Sums:
    kept = jnp.arange(memory.arms.size) < memory.seen
    own = (memory.arms == jnp.arange(num_arms)[:, None]) & kept
    weighted = own[:, :, None] * memory.inputs
    return Sums(jnp.swapaxes(weighted, 1, 2) @ memory.inputs, memory.rewards @ weighted)
