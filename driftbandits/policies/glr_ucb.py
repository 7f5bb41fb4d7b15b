"""GLR-klUCB: kl-UCB that restarts an arm when a likelihood ratio test detects a change.

    arm = argmax max{q: pulls_k kl(mean_k, q) <= ln(t_k) + loglog ln ln(t_k)},
    but uniform with probability exploration
    max_s s kl(m_1:s, m_1:n) + (n - s) kl(m_s+1:n, m_1:n) >= ln(3 n sqrt(n) / delta):
        forget everything about this arm (or about all arms: restart = global)

m_i:j is the mean of the arm's i-th to j-th reward. Since the arm's last restart, n is the number of
its pulls and t_k the number of rewards of all arms. kl is that of Bernoulli rewards. Rewards are
clipped to `spec.reward_range` and scaled to [0, 1].

Paper: Besson & Kaufmann (2019), "The generalized likelihood ratio test meets klUCB".

Differences from the paper: exploration is drawn at random, where the paper cycles through the arms
at fixed steps. All arms are tested together after every check_every-th reward, where the paper
tests the pulled arm at once. s is a multiple of `stride`. For an arm with more than `longest` pulls
only the last ones are tested, against the threshold of all n. So one test in ten steps serves all
runs of a simulation, and memory is bounded. delta, the factor 0.1 in `exploration`, the simple
threshold and the missing ln ln are those of public experiments. A reward that arrives after an
alarm counts as new, even if the pull was before it.

Use it when arms jump now and then: unlike `cusum_ucb` and `m_ucb` it does not need to know the size
of the change. Local restarts suit arms that change one at a time; if all change together,
restart=global is better. Not when rewards change slowly, which looks like no change for a long
time. Not when changes are frequent: each costs dozens of pulls of the arm.

It ignores the context.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import count_pull, draw, greedy_probabilities, with_exploration
from driftbandits.numerics.horizon import UNKNOWN, horizon_of
from driftbandits.numerics.kl import bernoulli_entropy, upper_score
from driftbandits.numerics.occasionally import occasionally
from driftbandits.numerics.shares import share_of


class Arms(NamedTuple):
    """What is known about every arm since its last restart."""

    pulls: Array  # (num_arms,) int32
    sums: Array  # (num_arms,) float32, of the rewards
    ages: Array  # (num_arms,) int32, rewards of all arms


class GlrUcbState(NamedTuple):
    arms: Arms
    marks: Array  # (num_arms, size) float32, the sum after every stride-th pull, a ring buffer
    learnt: Array  # () int32, rewards so far
    alarms: Array  # (num_arms,) int32, so far


def glr_ucb(
    spec: BanditSpec,
    *,
    changes: float = 5.0,
    restart: str = "local",
    delta: float | None = None,
    exploration: float | None = None,
    loglog: float = 0.0,
    check_every: int = 10,
    stride: int = 10,
    longest: int | None = None,
) -> Policy:
    """kl-UCB that forgets an arm when a likelihood ratio test says that it has changed.

    Args:
        changes: Number of changes expected within the horizon (10,000 pulls if it is unknown).
        restart: What an alarm makes it forget: local is the arm, global is all arms.
        delta: Probability of a false alarm; by default 1 / sqrt(num_arms * changes * horizon),
            without num_arms if restarts are global.
        exploration: Probability of a uniform arm; by default 0.1 sqrt(num_arms * changes *
            ln(horizon) / horizon).
        loglog: Weight of ln ln(t) in the index; theory asks for 3, practice for 0.
        check_every: Rewards between two tests of all arms.
        stride: Pulls of an arm between two places where its rewards may be split.
        longest: Number of an arm's last pulls that are tested; by default the horizon, but at most
            10,000. Memory is num_arms * longest / stride.
    """
    check.positive(changes=changes)
    check.known("restart", restart, ["local", "global"])
    check.not_negative(loglog=loglog)
    horizon = horizon_of(spec)
    longest = min(horizon, UNKNOWN) if longest is None else longest
    check.integer(check_every=check_every, stride=stride, longest=longest)
    crowd = spec.num_arms * changes
    if delta is None:
        delta = min(1 / math.sqrt((crowd if restart == "local" else changes) * horizon), 1.0)
    if exploration is None:
        exploration = min(0.1 * math.sqrt(crowd * math.log(horizon) / horizon), 1.0)
    if not check.is_number(delta) or not 0 < delta <= 1:
        check.fail("delta", "a probability in (0, 1]", delta)
    check.probability(exploration=exploration)
    size = -(-longest // stride) + 1  # a full history begins at a mark, too

    def init(key: Key) -> GlrUcbState:
        counts = jnp.zeros(spec.num_arms, jnp.int32)
        arms = Arms(counts, jnp.zeros(spec.num_arms), counts)
        return GlrUcbState(arms, jnp.zeros((spec.num_arms, size)), jnp.int32(0), counts)

    def act(key: Key, state: GlrUcbState, observation: Observation) -> tuple[Decision, GlrUcbState]:
        greedy = greedy_probabilities(kl_index(state.arms, loglog), observation.available)
        probabilities = with_exploration(greedy, exploration, observation.available)
        arm = draw(key, probabilities)
        return Decision(arm, probabilities, arm), state

    def learn(state: GlrUcbState, arm: Array, reward: Array) -> GlrUcbState:
        gain = share_of(reward, spec.reward_range)
        pulled = jnp.arange(spec.num_arms) == arm
        sums = state.arms.sums + jnp.where(pulled, gain, 0.0)
        arms = Arms(count_pull(state.arms.pulls, arm), sums, state.arms.ages + 1)
        marks = mark(state.marks, arms, arm, stride)
        learned = state.learnt + 1

        def test(now: tuple[Arms, Array]) -> tuple[Arms, Array]:
            arms, alarms = now
            threshold = jnp.log(3 / delta) + 1.5 * jnp.log(arms.pulls)
            alarm = likelihood_ratio(arms, marks, stride) >= threshold
            return forget(arms, alarm if restart == "local" else alarm.any()), alarms + alarm

        # The marks are not carried by the loop, which would copy them in every run.
        arms, alarms = occasionally(learned % check_every == 0, test, (arms, state.alarms))
        return GlrUcbState(arms, marks, learned, alarms)

    return Policy(init, act, learn)


def forget(arms: Arms, forgotten: Array) -> Arms:
    """Restarts all arms, or those of a mask."""
    return jax.tree.map(lambda value: jnp.where(forgotten, 0, value), arms)


def kl_index(arms: Arms, loglog: float) -> Array:
    """The upper confidence bound of every arm, infinite before its first pull."""
    logarithm = jnp.log(jnp.maximum(arms.ages, 1).astype(jnp.float32))
    level = logarithm + loglog * jnp.log(jnp.maximum(logarithm, 1.0))
    pulls = jnp.maximum(arms.pulls, 1)
    bound = upper_score(jnp.clip(arms.sums / pulls, 0.0, 1.0), level / pulls)
    return jnp.where(arms.pulls == 0, jnp.inf, bound)


def mark(marks: Array, arms: Arms, arm: Array, stride: int) -> Array:
    """Notes the arm's sum after every stride-th pull."""
    pulls = arms.pulls[arm]
    place = arm, pulls // stride % marks.shape[1]
    return marks.at[place].set(jnp.where(pulls % stride == 0, arms.sums[arm], marks[place]))


def likelihood_ratio(arms: Arms, marks: Array, stride: int) -> Array:
    """max_s s kl(m_1:s, m_1:n) + (n - s) kl(m_s+1:n, m_1:n) of every arm, over the marks s.

    Where the ring is full the arm's history begins at its oldest mark. The sum is written as
    n entropy(m_1:n) - s entropy(m_1:s) - (n - s) entropy(m_s+1:n), which is the same.
    """
    size = marks.shape[1]
    newest = arms.pulls[:, None] // stride
    oldest = jnp.maximum(newest - size + 1, 0)
    lag = newest % size - jnp.arange(size)
    number = newest - jnp.where(lag < 0, lag + size, lag)  # of the mark in every slot
    start = jnp.where(oldest > 0, jnp.take_along_axis(marks, oldest % size, axis=1), 0.0)

    before = ((number - oldest) * stride).astype(jnp.float32)
    after = (arms.pulls[:, None] - number * stride).astype(jnp.float32)
    tested = (arms.pulls[:, None] - oldest * stride).astype(jnp.float32)
    sums = arms.sums[:, None]
    split = entropy_of(marks - start, before) + entropy_of(sums - marks, after)
    candidate = (number > oldest) & (after > 0)
    lowest = jnp.min(split, axis=1, where=candidate, initial=jnp.inf)
    return entropy_of(sums - start, tested)[:, 0] - lowest


def entropy_of(sums: Array, counts: Array) -> Array:
    """counts * entropy(mean), with means that rounding cannot take out of [0, 1]."""
    return counts * bernoulli_entropy(jnp.clip(sums / counts, 0.0, 1.0))
