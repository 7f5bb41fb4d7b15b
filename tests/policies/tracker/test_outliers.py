"""One value cannot spoil the tracker, and many are followed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import BanditSpec, build_policy
from driftbandits.policies.tracker import seen_contexts, seen_rewards
from driftbandits.policies.tracker.outliers import LONGEST
from tests.policies.playing import KEY

STEPS, RUNS = 2000, 16
POISONS = [sign * size for size in (1e3, 1e6, 1e12, 3e38) for sign in (1, -1)]
PULLS = [0, 3, 999]  # the first, an early one, the thousandth
COINS = np.float32([0.2, 0.5, 0.8])
add_reward = jax.jit(seen_rewards.add_reward)
add_context = jax.jit(seen_contexts.add_context)


def game_of(policy, draw):
    """Whether each pull was of the best arm, and the last state; draw(key, t) is one step's world:
    the context that is shown, the mean of every arm, and the arms' rewards.
    """

    def step(carry, t):
        key, state = carry
        context, means, rewards = draw(key, t)
        decision, state = policy.act(jax.random.fold_in(key, t), state, context, means == means)
        state = policy.learn(state, decision.ticket, rewards[decision.arm])
        return (key, state), decision.arm == jnp.argmax(means)

    def play(key):
        (_, state), best = jax.lax.scan(step, (key, policy.init(key)), jnp.arange(STEPS))
        return best, state

    return play


def coins(key, poison, when):
    def draw(key, t):
        lucky = jax.random.uniform(jax.random.fold_in(key, STEPS + t), COINS.shape) < COINS
        return jnp.zeros(0), COINS, jnp.where(t == when, poison, 1.0 * lucky)

    return game_of(build_policy("tracker", BanditSpec(3)), draw)(key)


def linear(key, poison, when):
    slopes = jax.random.normal(key, (3, 2))

    def draw(key, t):
        context_key, noise_key = jax.random.split(jax.random.fold_in(key, STEPS + t))
        context = jax.random.normal(context_key, (2,))
        means = slopes @ context
        shown = context.at[0].set(jnp.where(t == when, poison, context[0]))
        return shown, means, means + 0.1 * jax.random.normal(noise_key, (3,))

    return game_of(build_policy("tracker(waves=4)", BanditSpec(3, 2)), draw)(key)


@pytest.mark.parametrize("problem", [coins, linear])
def test_one_outlier_is_got_over_within_500_decisions(problem):
    """The share of the best arm in the 500 decisions after those, beside that without it."""
    whens, poisons = np.meshgrid([*PULLS, STEPS], POISONS)
    every_run = jax.vmap(problem, (0, None, None))
    play_all = jax.jit(jax.vmap(every_run, (None, 0, 0)))
    keys = jax.random.split(KEY, RUNS)
    best, state = play_all(keys, np.float32(poisons.ravel()), whens.ravel())
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(state))
    best = np.asarray(best, float).reshape(len(POISONS), len(PULLS) + 1, RUNS, STEPS)
    for place, pull in enumerate(PULLS):
        window = slice(pull + 501, pull + 1001)
        shares = best[:, place, :, window].mean(axis=(1, 2))
        clean = best[:, -1, :, window].mean()
        assert shares.min() > 0.95 * clean, (
            f"pull {pull + 1}: {dict(zip(POISONS, shares, strict=True))}"
        )
