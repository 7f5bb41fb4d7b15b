"""Numbers are arguments: programs that differ in them alone are compiled once."""

import functools
import inspect

import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import POLICIES, InputError, Policy, build_environment, build_policy, simulate
from driftbandits.choice import takes_float
from driftbandits.environments.noisy import noisy
from driftbandits.simulation.arguments import template_of
from driftbandits.simulation.engine import Program, Shape, Steps, program_for

WORLD = build_environment("linear(num_arms=3, context_dim=2)")
# They train in jax.custom_batching.sequential_vmap, which takes no numbers from outside.
CONSTANTS = {"neural_linear", "neural_ucb", "neural_ts"}
SPEC = WORLD.spec._replace(horizon=50)


def program(policy: str, environment: str = "bernoulli(num_arms=3)") -> Program:
    world = build_environment(environment)
    return program_for(build_policy(policy, world.spec._replace(horizon=50)), world, 50)


def with_all_numbers(name: str, value: float) -> Policy:
    """The policy with every number set to this one, where it may be."""
    settings: dict[str, float] = {}
    for setting, parameter in inspect.signature(POLICIES[name]).parameters.items():
        if takes_float(parameter):
            try:
                POLICIES[name](SPEC, **settings, **{setting: value})
            except InputError:
                continue
            settings[setting] = value
    return POLICIES[name](SPEC, **settings)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_takes_its_numbers_as_arguments(name: str, value: float) -> None:
    traced = Steps(template_of((with_all_numbers(name, value), WORLD)), Shape(2, 1, 1))._traced
    assert traced is not None
    assert "while" in traced.lower().as_text(), "lowering finds numbers that are no constants"


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in CONSTANTS])
def test_a_policy_that_is_built_twice_is_one_template(name: str) -> None:
    factory = POLICIES[name]
    assert template_of(factory(SPEC)) == template_of(factory(SPEC))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("recurrent", "recurrent(energy=0, learning_rate=0.01, temperature=2)"),
        ("tracker", "tracker(prior=5, growth=1.5, share=1e-3, memory=0.99, doubt=5, effect=0)"),
        ("ucb", "ucb(scale=0.3)"),
        ("d_ucb", "d_ucb(discount=0.9, xi=0.02)"),
        ("kl_ucb", "kl_ucb(c=3)"),
        ("eff_fewa", "eff_fewa(alpha=0.3)"),
        ("lin_ucb(delta=0.1)", "lin_ucb(delta=0.2, precision=2)"),
    ],
)
def test_policies_that_differ_in_numbers_are_one_program(one: str, other: str) -> None:
    assert program(one).steps() is program(other).steps()


def test_worlds_that_differ_in_numbers_are_one_program() -> None:
    one, other = ("sinusoidal(num_arms=3, sleeping=0.5)", "sinusoidal(num_arms=3, sleeping=0.7)")
    assert program("uniform", one).steps() is program("uniform", other).steps()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("recurrent", "recurrent(dropout=0)"),
        ("recurrent", "recurrent(hidden=64)"),
        ("recurrent", "recurrent(epsilon=0.01)"),
        ("recurrent", "recurrent(history=true)"),
        ("tracker", "tracker(drifts=[0.0])"),
        ("sw_ucb(window=20)", "sw_ucb(window=10)"),
        ("lin_ts", "lin_ucb"),
    ],
)
def test_what_shapes_a_program_is_no_number(one: str, other: str) -> None:
    assert program(one)._template != program(other)._template


def test_a_shared_program_gives_each_its_own_numbers() -> None:
    choices = [f"d_ucb(discount={discount}, xi=0.1)" for discount in (0.99, 0.5, 0.99)]
    first, other, again = (
        simulate(choice, "abrupt(num_arms=3)", horizon=200, runs=3, record_every=1).pulls
        for choice in choices
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_arguments_and_constants_give_the_same_numbers() -> None:
    world = build_environment("abrupt(num_arms=3)")
    built = build_policy("d_ucb(discount=0.97, xi=0.1)", world.spec._replace(horizon=200))

    def act(*args):  # a user's function: its closure stays as it is
        return built.act(*args)

    assert len(template_of(built).numbers) > len(template_of(built._replace(act=act)).numbers)
    ours, own = (
        simulate(policy, world, horizon=200, runs=3, record_every=1)
        for policy in (built, built._replace(act=act))
    )
    np.testing.assert_array_equal(ours.regret, own.regret)


def test_a_number_of_several_functions_is_one_argument() -> None:
    assert template_of(build_policy("d_ucb(discount=0.75)", SPEC)).numbers.count(0.75) == 1


def test_a_user_s_policy_may_branch_on_its_numbers() -> None:
    built, scale = build_policy("uniform", SPEC), 0.5

    def learn(state, ticket, reward):
        return state if scale > 0.1 else built.learn(state, ticket, reward)

    mine = built._replace(learn=learn)
    assert simulate(mine, "bernoulli(num_arms=3)", horizon=5).pulls.sum() > 0


PEAK = 1.0


def test_what_a_user_s_function_reads_may_have_changed(monkeypatch) -> None:
    world = build_environment("bernoulli(num_arms=2)")

    def rewards(key, state, context):
        found = world.rewards(key, state, context)
        return found._replace(sampled=found.sampled * PEAK, mean=found.mean * PEAK)

    def regret() -> float:
        noisy_world = noisy(world._replace(rewards=rewards), 0.1)
        return float(simulate("uniform", noisy_world, horizon=20).regret[0, -1])

    assert regret() > 0
    monkeypatch.setattr("tests.simulation.test_arguments.PEAK", 0.0)
    assert regret() == 0


def test_a_wrapper_is_not_what_it_wraps() -> None:
    world = build_environment("bernoulli(num_arms=2)")
    built = build_policy("uniform", world.spec)

    def always(arm: int) -> Policy:
        @functools.wraps(built.act)
        def act(*args):
            decision, state = built.act(*args)
            return decision._replace(arm=jnp.int32(arm)), state

        return built._replace(act=act)

    for arm in (0, 1):
        assert simulate(always(arm), world, horizon=10).pulls[0, -1, arm] == 10
