"""Rewards that come late: who is told what, and when."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import BanditSpec, InputError, Observation, Policy, build_environment, simulate
from driftbandits.core import Decision, Environment, blank_observation
from driftbandits.numerics.random_keys import key
from driftbandits.policies import build_policy
from driftbandits.simulation.delays import Waiting, add_waiting, learn_due, nothing_waiting

STEPS = 300


def diary() -> Policy:
    """Writes down the step of every pull whose reward it is told, in the order of telling."""

    def init(key: Any) -> tuple:
        return jnp.int32(0), jnp.full(STEPS, -1, jnp.int32), jnp.int32(0)

    def act(key: Any, state: tuple, observation: Observation) -> tuple:
        time, pages, told = state
        available = observation.available
        probabilities = available / available.sum()
        return Decision(time % available.size, probabilities, time), (time + 1, pages, told)

    def learn(state: tuple, ticket: Any, reward: Any) -> tuple:
        time, pages, told = state
        return time, pages.at[told].set(ticket), told + 1

    return Policy(init, act, learn)


def told_at(environment: Environment, delays: np.ndarray) -> list[list[int]]:
    """For each step, the pulls whose rewards have been told by its end."""
    policy = diary()
    policy_state = policy.init(jax.random.key(0))
    waiting = nothing_waiting(policy, environment, jax.random.key(0))

    @jax.jit
    def step(policy_state: Any, waiting: Waiting, time: Any, delay: Any) -> tuple:
        decision, policy_state = policy.act(
            None, policy_state, Observation(jnp.zeros(0), jnp.ones(3, bool))
        )
        waiting = add_waiting(waiting, time, delay, decision.ticket, jnp.float32(0))
        return learn_due(policy, policy_state, waiting, time)

    history = []
    for time, delay in enumerate(delays):
        policy_state, waiting = step(policy_state, waiting, time, jnp.int32(delay))
        history.append(np.asarray(policy_state[1])[: int(policy_state[2])].tolist())
    return history


def test_rewards_are_told_in_the_order_of_arrival_and_then_of_pulls() -> None:
    environment = build_environment('bernoulli(num_arms=3, delayed="geometric(mean=4)")')
    longest = environment.delay.longest
    delays = np.random.default_rng(0).geometric(0.2, STEPS) - 1
    delays[::7] = longest + 1  # never
    delays[3] = longest
    arrivals = np.arange(STEPS) + delays
    expected = sorted((arrivals[pull], pull) for pull in range(STEPS) if delays[pull] <= longest)
    together = np.bincount(arrivals)
    assert together.max() >= 3, "rewards arrive together somewhere"
    for time, told in enumerate(told_at(environment, delays)):
        assert told == [pull for arrival, pull in expected if arrival <= time]


@pytest.mark.parametrize("policy", ["ucb", "thompson", "recurrent(hidden=4)", "oracle"])
def test_no_delay_changes_nothing(policy: str) -> None:
    plain = simulate(policy, "sinusoidal", horizon=200, runs=3)
    late = simulate(policy, "sinusoidal(delayed=0)", horizon=200, runs=3)
    for first, second in zip(plain, late, strict=True):
        np.testing.assert_array_equal(first, second)


def test_a_constant_delay_is_a_queue() -> None:
    """By hand, with the same keys as the engine's: learning lags `delay` pulls behind."""
    delay, horizon = 5, 60
    environment = build_environment(f"bernoulli(num_arms=4, delayed={delay})")
    policy = build_policy("ucb", environment.spec._replace(horizon=horizon))
    trace = simulate(policy, environment, horizon=horizon, runs=1, record_every=1)
    own = jax.random.split(jax.random.fold_in(key(0), 0), 5)
    world, policy_state = environment.init(own[0]), policy.init(own[1])
    queue = []
    keys_at = jax.jit(lambda time: [jax.random.fold_in(key_, time) for key_ in own[2:]])
    observe, pay, act, learn = map(
        jax.jit, (environment.observe, environment.rewards, policy.act, policy.learn)
    )
    for time in range(horizon):
        seen, paid, acting = keys_at(time)
        observation = observe(seen, world)
        rewards = pay(paid, world, observation.context)
        decision, policy_state = act(acting, policy_state, observation)
        queue.append((decision.ticket, rewards.sampled[decision.arm]))
        if len(queue) > delay:
            policy_state = learn(policy_state, *queue.pop(0))
        assert (
            trace.pulls[0, time, decision.arm]
            - (trace.pulls[0, time - 1, decision.arm] if time else 0)
            == 1
        ), f"step {time}"


def test_rewards_that_never_come_teach_nothing() -> None:
    without_rewards = simulate("ucb", 'bernoulli(delayed="never")', horizon=300, runs=20)
    uniform = simulate("uniform", "bernoulli", horizon=300, runs=20)
    difference = (without_rewards.regret - uniform.regret)[:, -1]
    assert abs(difference.mean()) <= 4 * difference.std() / 20**0.5, "ties for ever"


def test_geometric_delays_have_their_mean() -> None:
    delay = build_environment('bernoulli(delayed="geometric(mean=30, share=0.25)")').delay
    drawn = np.asarray(jax.vmap(delay.draw)(jax.random.split(jax.random.key(0), 20_000)))
    lost = drawn > delay.longest
    assert lost.mean() == pytest.approx(0.25, abs=4 * (0.25 * 0.75 / 20_000) ** 0.5)
    kept = drawn[~lost]
    assert kept.min() == 0
    assert kept.mean() == pytest.approx(30, abs=4 * kept.std() / len(kept) ** 0.5)
    assert (kept == 0).mean() == pytest.approx(1 / 31, abs=0.006)


def test_delay_survives_other_transformations() -> None:
    before = build_environment("bernoulli(delayed=7, max_consecutive=3)")
    after = build_environment("bernoulli(max_consecutive=3, delayed=7)")
    assert before.delay.longest == after.delay.longest == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("delayed=-1", "delayed must be a whole number of at least 0, got -1"),
        ("delayed=2000000", "delayed must be a whole number of at most 100000, got 2000000"),
        ("delayed='geometric(mean=1e6)'", "mean must be at most 5000, got 1000000.0"),
        ("delayed=1.5", "delayed must be a whole number of at least 0, got 1.5"),
        ("delayed='gemoetric(mean=3)'", "delayed must be one of constant, geometric, never.*did"),
        ("delayed='geometric(mean=0)'", "mean must be a positive number, got 0"),
        ("delayed='never(share=2)'", r"share must be a probability in \[0, 1\], got 2"),
        ("delayed='geometric(steps=2)'", "a setting of geometric must be .*, got 'steps'"),
    ],
)
def test_bad_delays_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_environment(f"bernoulli({text})")


def test_tickets_of_every_shape_wait() -> None:
    environment = build_environment("wheel(delayed=3)")
    spec: BanditSpec = environment.spec
    policy = build_policy("neural_linear(hidden=4, memory=20)", spec)
    waiting = nothing_waiting(policy, environment, jax.random.key(0))
    shapes = jax.eval_shape(
        policy.act, jax.random.key(0), policy.init(jax.random.key(0)), blank_observation(spec)
    )[0].ticket
    for ring, leaf in zip(jax.tree.leaves(waiting.tickets), jax.tree.leaves(shapes), strict=True):
        assert ring.shape == (4, *leaf.shape)
        assert ring.dtype == leaf.dtype
