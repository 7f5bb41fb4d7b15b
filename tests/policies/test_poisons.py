"""One number far out of its range, clipped to its end: every policy gets over it.

That a refused one changes nothing is in tests/agents/test_policies.py.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import POLICIES, BanditSpec, Observation, Policy, build_policy
from driftbandits.agents.ranges import ranges
from driftbandits.agents.soundness import is_finite
from driftbandits.simulation.compiling import jit
from tests.policies.problems import looks_at_context

POISONS = [sign * size for size in (1e3, 1e6, 1e12, 3e38) for sign in (1, -1)]
RUNS, AFTER = 24, 500  # decisions that are looked at after the poison
COINS = jnp.array([0.2, 0.5, 0.8])  # means of the arms without a context
SLOPES = jnp.array([[1.0, 0.0], [-0.5, 0.8], [-0.5, -0.8]])  # with one, from (-1, -1) to (1, 1)
NETWORKS = {  # small, and for fewer steps: they take longest
    "recurrent": "recurrent(layers=1, hidden=8, learning_rate=0.01)",
    "recurrent_linear": "recurrent_linear(hidden=8, window=4)",
    "neural_linear": "neural_linear(layers=1, hidden=8, train_steps=5, batch=16)",
    "neural_ucb": "neural_ucb(hidden=8)",
    "neural_ts": "neural_ts(hidden=8)",
}
SETTINGS = {**NETWORKS, "swa": "swa(doubling=true)", "tracker": "tracker(waves=2)"}


class Poison(NamedTuple):
    """As the policy meets it: NaN stands for the usual number."""

    when: Any = -1  # pulls before it; never
    reward: Any = jnp.nan
    context: Any = jnp.nan


def clipped_poisons(with_context: bool, pulls: list[int]) -> list[Poison]:
    """The table of poisons: what is left of it when it is clipped, each once."""
    names = ("x", "y")
    kept = ranges((0.0, 1.0), names, dict.fromkeys(names, (-1.0, 1.0)), "clip")
    rewards = sorted({float(kept.clipped([poison])[0]) for poison in POISONS})
    contexts = sorted({float(kept.checked(np.full(2, poison))[0]) for poison in POISONS})
    assert (rewards, contexts) == ([0, 1], [-1, 1])
    found = [Poison(when, reward=reward) for when in pulls for reward in rewards]
    if with_context:
        found += [Poison(when, context=context) for when in pulls for context in contexts]
    return found


def usual_or(poison: Any, usual: Any, hit: Any) -> Any:
    return jnp.where(hit & ~jnp.isnan(poison), poison, usual)


def game_of(policy: Policy, spec: BanditSpec, steps: int) -> Any:
    """Whether each pull was of the best arm, and whether the last state is sound."""

    def play(seed: Any, poison: Poison) -> Any:
        key = jax.random.key(seed)

        def step(state: Any, t: Any) -> Any:
            context_key, reward_key, own_key = jax.random.split(jax.random.fold_in(key, t), 3)
            context = jax.random.uniform(context_key, (spec.context_dim,), minval=-1, maxval=1)
            means = 0.5 + 0.4 * SLOPES @ context if spec.context_dim else COINS
            shown = usual_or(poison.context, context, t == poison.when)
            made, state = policy.act(
                own_key, state, Observation(shown, jnp.ones(spec.num_arms, bool))
            )
            paid = 1.0 * (jax.random.uniform(reward_key, means.shape) < means)[made.arm]
            state = policy.learn(
                state, made.ticket, usual_or(poison.reward, paid, t == poison.when)
            )
            return state, made.arm == jnp.argmax(means)

        state, best = jax.lax.scan(step, policy.init(key), jnp.arange(steps))
        return best, is_finite(state)

    return play


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "oracle"])
def test_the_best_arm_is_pulled_as_often_as_without_it(name: str) -> None:
    """At the first pull and at the thousandth; networks have learned enough at the hundredth."""
    seen, late = looks_at_context(name), 99 if name in NETWORKS else 999
    spec = BanditSpec(3, 2 if seen else 0, horizon=late + 1 + AFTER)
    poisons = clipped_poisons(seen, [0, late])
    play = game_of(build_policy(SETTINGS.get(name, name), spec), spec, late + 1 + AFTER)
    play_all = jit(jax.vmap(jax.vmap(play, (0, None)), (None, 0)))
    cases = Poison(*map(np.float32, zip(Poison(), *poisons, strict=True)))
    best, sound = map(np.asarray, play_all(np.arange(RUNS), cases))
    assert sound.all()
    for poison, found in zip(poisons, best[1:], strict=True):
        window = slice(poison.when + 1, poison.when + 1 + AFTER)
        share, clean = found[:, window].mean(), best[0][:, window].mean()
        assert share >= 0.95 * clean, (poison, share, clean)
