"""One value cannot spoil the tracker, and many are followed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import BanditSpec, Observation, build_policy
from driftbandits.policies.tracker import seen_contexts, seen_rewards
from driftbandits.policies.tracker.outliers import ENOUGH, LONGEST
from tests.policies.playing import KEY

STEPS, RUNS = 2000, 12
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
        decision, state = policy.act(
            jax.random.fold_in(key, t), state, Observation(context, means == means)
        )
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

    return game_of(build_policy("tracker(waves=2)", BanditSpec(3, 2)), draw)(key)


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


def test_rewards_a_thousand_times_as_large_are_followed():
    """From step 1000 on, with the arms in the other order."""

    def play(key):
        def draw(key, t):
            later = t >= 1000
            means = jnp.where(later, COINS[::-1], COINS)
            lucky = jax.random.uniform(jax.random.fold_in(key, STEPS + t), means.shape) < means
            return jnp.zeros(0), means, jnp.where(later, 1e3, 1.0) * lucky

        return game_of(build_policy("tracker", BanditSpec(3)), draw)(key)[0]

    best = np.asarray(jax.jit(jax.vmap(play))(jax.random.split(KEY, RUNS)))
    assert best[:, 1500:].mean() > 0.9


def seen_after(rewards):
    """All of them, and what the last one counted as."""
    seen = seen_rewards.no_rewards()
    for reward in rewards:
        seen, taken = add_reward(seen, np.float32(reward))
    return seen, taken


USUAL = [0.0, 1.0] * 20


def test_a_bad_outlier_widens_the_scale_and_only_the_second_is_learned_from():
    before, _ = seen_after(USUAL)
    after, taken = seen_after([*USUAL, -1e6])
    assert not taken.believed
    assert taken.relative == pytest.approx(0.5 - 30 * 0.5, abs=0.01)
    widened = seen_rewards.reward_variance(after) / seen_rewards.reward_variance(before)
    assert 1 < widened < 1 + 30**2 / len(USUAL)
    again, taken = seen_after([*USUAL, -1e6, -1e6])
    assert taken.believed
    assert not taken.usual
    assert again.alert == 1000


def test_a_good_outlier_is_learned_from_as_what_it_counts_as():
    _, taken = seen_after([*USUAL, 1e6])
    assert taken.believed
    assert not taken.usual
    assert taken.relative == pytest.approx(0.5 + 30 * 0.5, abs=0.01)


def test_many_outliers_are_usual():
    _, taken = seen_after([*USUAL, *[1e6] * 30])
    assert taken.relative == 1e6


@pytest.mark.parametrize("place", range(6))
def test_an_outlier_among_the_first_rewards_makes_it_start_again(place):
    rewards = [0.0, 1.0] * ENOUGH
    rewards[place] = -1e6
    starts = [int(seen_after(rewards[: n + 1])[1].restarts) for n in range(len(rewards))]
    assert sum(starts) == 1
    after, _ = seen_after(rewards)
    assert abs(after.first) <= 1
    assert seen_rewards.reward_variance(after) < 1


def test_rewards_that_are_all_the_same_and_then_differ_are_believed():
    _, taken = seen_after([*[0.0] * 40, 1.0])
    assert taken.believed
    assert taken.relative == 1


def test_scales_forget():
    """What they know counts as LONGEST values at the most."""
    old, _ = seen_after(USUAL)
    old = old._replace(number=np.float32(LONGEST), squares=np.float32(LONGEST))
    seen, _ = add_reward(old, old.first + old.mean)
    assert seen.number == LONGEST
    assert seen_rewards.reward_variance(seen) == pytest.approx(1 - 1 / LONGEST, rel=1e-5)


@pytest.mark.parametrize("place", [0, 1, 5, ENOUGH - 1, 100])
@pytest.mark.parametrize("poison", [1e3, -1e6, 3e38])
def test_the_scale_of_a_context_gets_over_an_outlier(place, poison):
    seen = seen_contexts.no_contexts(2)
    values = np.random.default_rng(1).standard_normal((200, 2)).astype(np.float32)
    values[place, 0] = poison
    for context in values:
        seen, scaled = add_context(seen, context)
    ratio = scaled / context
    assert np.isfinite(scaled).all()
    assert 0.2 < ratio[0] < 5
    assert 0.8 < ratio[1] < 1.2
