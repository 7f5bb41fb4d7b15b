"""The engine: the same numbers however the work is cut; worlds that make no sense are refused."""

import hashlib
import os
import subprocess
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from driftbandits import (
    BanditSpec,
    InputError,
    Trace,
    build_environment,
    build_policy,
    simulate,
)
from driftbandits.simulation.engine import WIDEST, block_width

CASES = [  # each of two blocks of runs at least
    ("recurrent(hidden=60)", "sinusoidal", 60, 20),
    ("tracker", "sinusoidal", 120, WIDEST + 6),
    ("thompson", "bernoulli(max_consecutive=3)", 120, WIDEST + 6),
    ("fewa", "rotting", 120, WIDEST + 6),
    ("lin_ts", "rotating_wheel", 120, WIDEST + 6),
    ("neural_linear(hidden=50, batch=32, train_steps=4)", "wheel", 60, 40),
]

each_case = pytest.mark.parametrize(("policy", "environment", "horizon", "runs"), CASES)


def run(policy: str, environment: str, horizon: int, runs: int, **how: object) -> Trace:
    return simulate(policy, environment, horizon=horizon, runs=runs, record_every=1, **how)


def digest(trace: Trace) -> str:
    return hashlib.sha256(b"".join(np.ascontiguousarray(x).tobytes() for x in trace)).hexdigest()


@each_case
def test_cores_and_chunks_do_not_change_a_bit(policy, environment, horizon, runs) -> None:
    spec = build_environment(environment).spec._replace(horizon=horizon)
    assert block_width(build_policy(policy, spec)) < runs, "the case is of one block"
    one_core = run(policy, environment, horizon, runs, cores=1)
    assert digest(run(policy, environment, horizon, runs, cores=3, chunk=7)) == digest(one_core)


@each_case
def test_more_runs_do_not_change_the_first_ones(policy, environment, horizon, runs) -> None:
    few, many = run(policy, environment, horizon, 3), run(policy, environment, horizon, runs)
    for name in Trace._fields[1:]:
        np.testing.assert_array_equal(getattr(few, name), getattr(many, name)[:3])


def test_devices_and_threads_do_not_change_a_bit() -> None:
    """In a process of its own, for XLA's devices and threads are fixed when it starts."""
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        "from driftbandits.simulation import devices; devices.POOL_THREADS = 3\n"
        "from tests.simulation.test_engine import CASES, digest, run\n"
        "print(digest(run(*CASES[0])))"
    )
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=3", "JAX_PLATFORMS": "cpu"}
    out = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **flags},
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.strip() == digest(run(*CASES[0]))


def test_other_seed_other_numbers() -> None:
    first, second = (run("uniform", "bernoulli", 30, 2, seed=seed) for seed in (0, 1))
    assert not np.array_equal(first.reward, second.reward)


def test_runs_differ_from_each_other() -> None:
    trace = run("uniform", "bernoulli", 50, 20)
    assert len(np.unique(trace.regret[:, -1])) == 20


def test_thinned_recording_sums_the_same_steps() -> None:
    fine = simulate("thompson", "sinusoidal", horizon=103, runs=3, record_every=1)
    coarse = simulate("thompson", "sinusoidal", horizon=103, runs=3, record_every=25)
    assert coarse.times.tolist() == [25, 50, 75, 100, 103]
    np.testing.assert_array_equal(coarse.pulls, fine.pulls[:, coarse.times - 1])
    for name in ("regret", "realised_regret", "expected_reward", "reward"):
        np.testing.assert_allclose(
            getattr(coarse, name), getattr(fine, name)[:, coarse.times - 1], rtol=1e-5
        )


def test_memory_does_not_grow_with_the_horizon() -> None:
    short, long = (simulate("uniform", "bernoulli", horizon=h) for h in (2_000, 50_000))
    assert short.regret.shape == long.regret.shape == (1, 1000)
    assert long.times[-1] == 50_000
    assert long.pulls[0, -1].sum() == 50_000


def test_trace_adds_up() -> None:
    trace = run("uniform", "bernoulli(num_arms=3)", 50, 4)
    assert (trace.pulls.sum(axis=2) == trace.times).all()
    assert (np.diff(trace.regret, axis=1) >= 0).all()
    assert (trace.regret[:, -1] > 0).all()
    oracle = run("oracle", "bernoulli(num_arms=3)", 50, 4)
    assert (oracle.regret == 0).all()


def test_progress_goes_from_nothing_to_all() -> None:
    calls: list[tuple[int, int]] = []
    run("uniform", "bernoulli", 100, 40, chunk=10, progress=lambda *call: calls.append(call))
    done = [call[0] for call in calls]
    assert done[0] == 0
    assert done == sorted(done)
    assert done[-1] == calls[-1][1]
    assert len(set(done)) > 10


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"horizon": 0}, "horizon must be a whole number of at least 1, got 0"),
        ({"horizon": 10, "runs": -1}, "runs must be a whole number of at least 1, got -1"),
        ({"horizon": 10, "seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"horizon": 10, "record_every": 0}, "record_every must be a whole number"),
        ({"horizon": 10, "cores": 0}, "cores must be a whole number of at least 1, got 0"),
        ({"horizon": 10, "chunk": 0}, "chunk must be a whole number of at least 1, got 0"),
        ({"horizon": 10, "seed": 2**40}, "seed must be a whole number of at most 2147483647"),
        ({"horizon": 10**12}, "horizon must be a whole number of at most 2147483647"),
        ({"horizon": 2.5}, "horizon must be a whole number of at least 1, got 2.5"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate("uniform", "bernoulli", **settings)


def test_a_world_without_an_available_arm_is_refused() -> None:
    world = build_environment("bernoulli")

    def observe(key, state):
        return world.observe(key, state)._replace(available=jnp.zeros(10, bool))

    with pytest.raises(InputError, match="available must be true for at least one arm"):
        simulate("uniform", world._replace(observe=observe), horizon=5)


@pytest.mark.parametrize("value", [jnp.nan, jnp.inf])
def test_a_reward_that_is_not_finite_is_refused(value: float) -> None:
    world = build_environment("bernoulli")

    def rewards(key, state, context):
        return world.rewards(key, state, context)._replace(sampled=jnp.full(10, value))

    with pytest.raises(InputError, match="reward must be a finite number at every step"):
        simulate("uniform", world._replace(rewards=rewards), horizon=5)


def test_a_policy_that_diverges_is_refused() -> None:
    with pytest.raises(InputError, match=r"arm must be an available one.*diverged"):
        simulate("recurrent(hidden=8, learning_rate=1e30)", "bernoulli", horizon=50)


def test_an_error_inside_a_policy_reaches_the_caller() -> None:
    world = build_environment("bernoulli")

    def rewards(key, state, context):
        raise RuntimeError("the world has ended")

    with pytest.raises(RuntimeError, match="the world has ended"):
        simulate("uniform", world._replace(rewards=rewards), horizon=5)


def test_a_policy_of_before_0_14_is_told_what_has_changed() -> None:
    def act(key, state, context, available):
        raise AssertionError

    old = build_policy("uniform", BanditSpec(2))._replace(act=act)
    with pytest.raises(
        InputError, match=r"act must be .* observation.*got 'act\(key, state, context"
    ):
        simulate(old, "bernoulli(num_arms=2)", horizon=10)
