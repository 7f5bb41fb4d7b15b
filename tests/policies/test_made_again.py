"""Decisions that are made again: as if the draw had come out as the known arm."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import Observation, build_policy
from driftbandits.numerics.made_again import Made, making_again
from tests.policies.problems import CASES, CONTEXTUAL, FREE, SPECS, compiled

# Policies whose key decides nothing but the arm, so that another key may draw another arm.
ONLY_DRAWN = {
    "tracker": CONTEXTUAL,
    "recurrent(dropout=0.0, hidden=4)": FREE,
    "exp3(gamma=0.5)": FREE,
    "exp3_s(gamma=0.5)": FREE,
    "rexp3(gamma=0.5)": FREE,
    "epsilon_greedy(epsilon=0.5)": FREE,
}
STEPS = 40
KEYS = 200


@pytest.mark.parametrize(("name", "problem"), CASES)
def test_every_policy_takes_the_known_arm(name: str, problem: str) -> None:
    """Found by tracing alone: nothing between the known arm and the decision's."""
    spec, policy = SPECS[problem], compiled(name, problem).policy
    size = spec.num_arms if policy.sees_means else spec.context_dim
    found: list[bool] = []

    def act(key: Any, state: Any, arm: Any) -> None:
        with making_again(Made(arm, jnp.float32(0.25))):
            made, _ = policy.act(
                key, state, Observation(jnp.zeros(size), jnp.ones(spec.num_arms, bool))
            )
        found.append(made.arm is arm)

    key = jax.random.key(0)
    jax.eval_shape(act, key, jax.eval_shape(policy.init, key), jnp.int32(2))
    assert found == [True]


@pytest.mark.parametrize("text", ONLY_DRAWN)
def test_state_and_ticket_are_those_of_another_draw(text: str) -> None:
    spec = ONLY_DRAWN[text]
    policy, rng = build_policy(text, spec), np.random.default_rng(0)
    act, learn = jax.jit(policy.act), jax.jit(policy.learn)

    @jax.jit
    def act_as(arm: Any, probability: Any, *given: Any) -> Any:
        with making_again(Made(arm, probability)):
            return policy.act(*given)

    state = policy.init(jax.random.key(0))
    for step in range(STEPS):
        context = np.float32(rng.normal(size=spec.context_dim))
        made, state = act(
            jax.random.key(step), state, Observation(context, np.ones(spec.num_arms, bool))
        )
        state = learn(state, made.ticket, np.float32(rng.random() < 0.3))
    context, some = np.float32(rng.normal(size=spec.context_dim)), np.array([1, 1, 1, 0], bool)
    drawn: dict[int, Any] = {}
    for seed in range(KEYS):
        found = act(jax.random.key(seed), state, Observation(context, some))
        drawn.setdefault(int(found[0].arm), found)
    assert len(drawn) > 1
    for arm, found in drawn.items():
        chance = found[0].probabilities[arm]
        again = act_as(
            np.int32(arm), chance, jax.random.key(KEYS), state, Observation(context, some)
        )
        same = jax.tree.map(lambda a, b: np.allclose(a, b, rtol=1e-6), again, found)
        assert all(jax.tree.leaves(same)), (arm, same)


def test_a_reward_is_divided_by_the_probability_of_the_known_draw() -> None:
    policy = build_policy("exp3(gamma=0.5)", FREE)
    with making_again(Made(jnp.int32(1), jnp.float32(0.125))):
        made, state = policy.act(
            jax.random.key(0),
            policy.init(jax.random.key(0)),
            Observation(jnp.zeros(0), jnp.ones(4, bool)),
        )
    state = policy.learn(state, made.ticket, jnp.float32(1.0))
    gain = 0.5 / FREE.num_arms / 0.125
    np.testing.assert_allclose(state.log_weights, [-gain, 0, -gain, -gain], rtol=1e-6)
    np.testing.assert_allclose(made.probabilities, np.full(4, 0.25), rtol=1e-6)
