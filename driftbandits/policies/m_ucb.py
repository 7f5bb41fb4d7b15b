"""M-UCB: UCB that restarts when the two halves of an arm's window disagree.

    turn = t mod ceil(K / exploration);  turn < K: pull arm `turn`
    otherwise arm = argmax mean_k + sqrt(xi ln(n) / pulls_k)
    |sum of the arm's last window / 2 rewards - sum of the window / 2 before| > threshold:
        forget everything about all arms

Since the last alarm, t is the number of decisions and n the number of rewards. Rewards are clipped
to `spec.reward_range` and scaled to [0, 1]. If the arm whose turn it is is unavailable, the next
available one is pulled.

Paper: Cao, Wen, Kveton & Xie (2019), "Nearly optimal adaptive procedure with change detection for
piecewise-stationary bandit".

Differences from the paper: for changes of at least d, the paper's window is
(4 / d^2) (sqrt(ln(2 K T^2)) + sqrt(ln(2 T)))^2, which is longer than the horizon for any d that
matters (24,000 for d = 0.1, K = 5 and T = 10,000). Its threshold is sqrt(window / 2 * ln(2 K T^2)),
its exploration sqrt((changes + 1) K (2 threshold + 3 sqrt(window)) / (2 T)), here nearly half of
all pulls, and xi = 2. We use a window of 200, ln(2 T) in the threshold, a twentieth of that
exploration and xi = 1, for horizons such as 10,000. A reward that arrives after an alarm counts as
new, even if the pull was before it.

Use it when all arms change at the same few moments, and by a lot: with the defaults the halves must
differ by about 0.3 of the reward range. Not when arms change one at a time: every alarm forgets all
of them. Not with many arms: an arm is tested only after `window` pulls.

It ignores the context.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import BanditSpec, Decision, Key, Observation, Policy
from driftbandits.numerics.arms import draw, greedy_probabilities
from driftbandits.numerics.horizon import horizon_of
from driftbandits.numerics.indices import ucb_index
from driftbandits.numerics.shares import share_of
from driftbandits.numerics.windows import Windows, empty_windows, remember


class MUcbState(NamedTuple):
    windows: Windows  # their pulls are those since the last alarm
    sums: Array  # (num_arms,) float32, of the rewards since the last alarm
    time: Array  # () int32, decisions since the last alarm
    alarms: Array  # () int32, so far


def m_ucb(
    spec: BanditSpec,
    *,
    changes: float = 5.0,
    window: int = 200,
    threshold: float | None = None,
    exploration: float | None = None,
    xi: float = 1.0,
) -> Policy:
    """UCB that forgets everything when an arm's recent rewards differ from those before.

    Args:
        changes: Number of changes expected within the horizon (10,000 pulls if it is unknown).
        window: Number of an arm's last rewards that are tested, an even number.
        threshold: Threshold of the test; by default sqrt(window / 2 * ln(2 horizon)).
        exploration: Share of the pulls that cycle through all arms; by default 0.05 sqrt((changes +
            1) num_arms (2 threshold + 3 sqrt(window)) / (2 horizon)).
        xi: Scales the square of the confidence bonus.
    """
    check.positive(changes=changes)
    check.integer(at_least=2, window=window)
    if window % 2:
        check.fail("window", "an even number", window)
    check.not_negative(xi=xi)
    horizon, num_arms = horizon_of(spec), spec.num_arms
    if threshold is None:
        threshold = math.sqrt(window / 2 * math.log(2 * horizon))
    if exploration is None:
        theory = (changes + 1) * num_arms * (2 * threshold + 3 * math.sqrt(window)) / (2 * horizon)
        exploration = min(0.05 * math.sqrt(theory), 1.0)
    check.positive(threshold=threshold)
    if not check.is_number(exploration) or not 0 < exploration <= 1:
        check.fail("exploration", "a share in (0, 1]", exploration)
    period = min(math.ceil(num_arms / exploration), 2**31 - 1)

    def init(key: Key) -> MUcbState:
        zero = jnp.int32(0)
        return MUcbState(empty_windows(num_arms, window), jnp.zeros(num_arms), zero, zero)

    def act(key: Key, state: MUcbState, observation: Observation) -> tuple[Decision, MUcbState]:
        turn = state.time % period
        until_turn = (jnp.arange(num_arms) - turn) % num_arms
        pulls = state.windows.pulls
        index = ucb_index(state.sums, pulls, jnp.sum(pulls), xi)
        scores = jnp.where(turn < num_arms, -until_turn.astype(jnp.float32), index)
        probabilities = greedy_probabilities(scores, observation.available)
        arm = draw(key, probabilities)
        return Decision(arm, probabilities, arm), state._replace(time=state.time + 1)

    def learn(state: MUcbState, arm: Array, reward: Array) -> MUcbState:
        gain = share_of(reward, spec.reward_range)
        windows = remember(state.windows, arm, gain)
        full = windows.pulls[arm] >= window
        alarm = full & (jnp.abs(difference_of_halves(windows, arm)) > threshold)
        sums = state.sums + jnp.where(jnp.arange(num_arms) == arm, gain, 0.0)
        return MUcbState(
            windows._replace(pulls=jnp.where(alarm, 0, windows.pulls)),
            jnp.where(alarm, 0.0, sums),
            jnp.where(alarm, 0, state.time),
            state.alarms + alarm,
        )

    return Policy(init, act, learn)


def difference_of_halves(windows: Windows, arm: Array) -> Array:
    """Sum of the newer half of an arm's window minus the older.

    It is recomputed each time; a running sum would accumulate rounding errors.
    """
    size = windows.rewards.shape[1]
    age = (windows.pulls[arm] - 1 - jnp.arange(size)) % size
    return jnp.sum(jnp.where(age < size // 2, 1.0, -1.0) * windows.rewards[arm])
