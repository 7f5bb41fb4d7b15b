"""What every environment in the table must do, and what each of them is."""

import inspect
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import driftbandits
from driftbandits import ENVIRONMENTS, TRANSFORMATIONS, InputError, build_environment, simulate
from driftbandits.choice import settings_of
from driftbandits.environments.wheel import wheel_means

FILES = Path(driftbandits.__file__).parent / "environments"
VARIANTS = [
    'rotting(num_arms=3, law="step", life=2)',
    'rotting(num_arms=3, law="geometric", life=5)',
    'rotting(num_arms=3, law="power", life=5)',
    "abrupt(num_arms=3, times=[2])",
    "linear(num_arms=3, context_dim=1)",
    'table(file="river:image_segments", order="shuffled")',
    "rotating_wheel(sleeping=0.3)",
    "sinusoidal(num_arms=3, sleeping=[[1, 0, 1], [0, 1, 0]])",
    "linear(noisy=0.3)",
    "flipping(scaled=3)",
    "abrupt(scaled=[0.5, -2], noisy=1, sleeping=0.5, max_consecutive=2)",
]
CHOICES = [*ENVIRONMENTS, *(f"{name}(max_consecutive=2)" for name in ENVIRONMENTS), *VARIANTS]

each_choice = pytest.mark.parametrize("choice", CHOICES)


def test_every_file_is_in_a_table() -> None:
    files = {path.stem for path in FILES.glob("*.py")} - {"__init__", "table_file", "table_reader"}
    assert files == {*ENVIRONMENTS, *TRANSFORMATIONS}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_docstring_tells_every_setting(name: str) -> None:
    factory = ENVIRONMENTS[name]
    assert (inspect.getdoc(factory) or "").split("\n")[0].endswith(".")
    for setting in settings_of(factory):
        assert f"\n        {setting}: " in (factory.__doc__ or "")


def step(choice: str, pulls: list[int]) -> tuple[object, object]:
    """An environment and its state after some pulls."""
    environment = build_environment(choice)
    state = environment.init(jax.random.key(0))
    for arm in pulls:
        state = environment.advance(state, jnp.int32(arm))
    return environment, state


@each_choice
def test_shapes(choice: str) -> None:
    environment, state = step(choice, [])
    spec = environment.spec
    context, available, arms, ids = environment.observe(jax.random.key(1), state)
    sampled, mean = environment.rewards(jax.random.key(2), state, context)
    assert context.shape == (spec.context_dim,)
    assert available.shape == sampled.shape == mean.shape == (spec.num_arms,)
    assert available.dtype == bool
    assert sampled.dtype == mean.dtype == context.dtype == jnp.float32
    assert available.any()
    features = (spec.num_arms, spec.arm_dim) if spec.arm_dim else None
    assert (None if arms is None else arms.shape) == features
    assert (ids is not None) == spec.arms_change
    after = environment.advance(state, jnp.int32(0))
    shapes = [jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), s) for s in (state, after)]
    assert shapes[0] == shapes[1]
    if environment.era is not None:
        era = environment.era(state)
        assert (era.shape, era.dtype) == ((), jnp.int32)


@each_choice
def test_sampled_rewards_have_the_stated_mean(choice: str) -> None:
    environment, state = step(choice, [1, 1, 1])
    context = environment.observe(jax.random.key(1), state).context
    keys = jax.random.split(jax.random.key(3), 4000)
    sampled, mean = jax.vmap(lambda key: environment.rewards(key, state, context))(keys)
    np.testing.assert_array_equal(mean[0], mean[-1])
    deviation = np.asarray(sampled).std(axis=0).max()  # a rare coin may show but one side
    error = np.abs(np.asarray(sampled, float).mean(axis=0) - mean[0])
    assert error.max() <= 4 * deviation / np.sqrt(len(keys)) + 1e-6
    assert deviation <= environment.spec.noise * (1 + 4 / np.sqrt(2 * len(keys)))


@pytest.mark.parametrize(
    "choice",
    [
        "abrupt(hazard=0.1)",
        "abrupt(times=[7, 11])",
        "random_walk",
        "flipping(every=9)",
        "linear",
        "rotating_linear(period=20)",
        "flipping_linear(every=9)",
        "adversarial",
        "table",
        'table(file="river:image_segments", order="shuffled")',
        "bernoulli(sleeping=0.5, noisy=1, scaled=[2, 3])",
    ],
)
def test_pulls_change_nothing_in_a_restless_world(choice: str) -> None:
    environment = build_environment(choice)

    @jax.jit
    def seen_after(arms: jax.Array) -> object:
        def step(state: object, inputs: tuple[jax.Array, jax.Array]) -> tuple[object, object]:
            key, arm = inputs
            seen = environment.observe(key, state)
            rewards = environment.rewards(key, state, seen.context)
            return environment.advance(state, arm), (seen, rewards)

        keys = jax.random.split(jax.random.key(5), arms.size)
        return jax.lax.scan(step, environment.init(jax.random.key(4)), (keys, arms))

    first, second = (seen_after(jnp.full(40, arm, jnp.int32)) for arm in (0, 1))
    jax.tree.map(np.testing.assert_array_equal, first, second)


@pytest.mark.parametrize(
    "choice",
    [
        "bernoulli",
        "sinusoidal",
        "wheel",
        "rotating_wheel",
        "abrupt(hazard=0.02, sleeping=0.5)",
    ],
)
def test_all_policies_meet_the_same_world(choice: str) -> None:
    """Where pulls change nothing, regret plus reward does not depend on the policy."""
    uniform, oracle = (
        simulate(policy, choice, horizon=200, runs=3, record_every=1)
        for policy in ("uniform", "oracle")
    )
    np.testing.assert_allclose(
        uniform.regret + uniform.expected_reward, oracle.expected_reward, rtol=1e-6, atol=1e-4
    )
    np.testing.assert_allclose(
        uniform.realised_regret + uniform.reward,
        oracle.realised_regret + oracle.reward,
        rtol=1e-6,
        atol=1e-4,
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bernouli", "environment must be one of .*, got 'bernouli'; did you mean 'bernoulli'"),
        ("bernoulli(num_arms=0)", "num_arms must be a whole number of at least 1, got 0"),
        ("sinusoidal(period=-5)", "period must be a whole number of at least 1, got -5"),
        ("wheel(delta=1.5)", r"delta must be a probability in \[0, 1\], got 1.5"),
        ("rotting(max_consecutive=0)", "max_consecutive must be a whole number of at least 1"),
        ("rotting(arms=3)", "a setting of rotting must be one of num_arms, .*, got 'arms'"),
    ],
)
def test_bad_choices_are_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build_environment(text)


def test_bernoulli_means_are_uniform_and_stay() -> None:
    environment = build_environment("bernoulli(num_arms=200)")
    theta = environment.init(jax.random.key(0))
    assert np.asarray(theta).mean() == pytest.approx(0.5, abs=4 * (1 / 12 / 200) ** 0.5)
    np.testing.assert_array_equal(environment.advance(theta, jnp.int32(3)), theta)


def test_sinusoidal_follows_the_formula() -> None:
    environment = build_environment("sinusoidal(num_arms=5, period=100)")
    state = environment.init(jax.random.key(0))
    for t in range(250):
        mean = environment.rewards(jax.random.key(1), state, jnp.zeros(0)).mean
        phase = 2 * np.pi * (t / 100 + np.arange(5) / 5)
        np.testing.assert_allclose(mean, state.theta * np.abs(np.sin(phase)), atol=2e-6)
        state = environment.advance(state, jnp.int32(0))


def test_limit_stops_the_eleventh_pull_until_another_arm_is_pulled() -> None:
    choice = "bernoulli(num_arms=3, max_consecutive=10)"

    def mean_after(pulls: list[int]) -> np.ndarray:
        environment, state = step(choice, pulls)
        return np.asarray(environment.rewards(jax.random.key(0), state, jnp.zeros(0)).mean)

    fresh = mean_after([])
    np.testing.assert_array_equal(mean_after([0] * 9), fresh)
    for exhausted in ([0] * 10, [0] * 25):
        np.testing.assert_array_equal(mean_after(exhausted), fresh * [0, 1, 1])
    np.testing.assert_array_equal(mean_after([0] * 10 + [1]), fresh)
    np.testing.assert_array_equal(mean_after([0] * 5 + [1] + [0] * 5), fresh)


def test_limit_pays_nothing_and_counts_regret_against_the_arms_that_are_left() -> None:
    environment, state = step("wheel(max_consecutive=1)", [0])
    context = jnp.array([0.1, 0.1])
    sampled, mean = environment.rewards(jax.random.key(0), state, context)
    assert sampled[0] == 0
    assert mean.max() == pytest.approx(1.0), "inside, an exhausted safe arm leaves the others"


@pytest.mark.parametrize(
    ("point", "best"),
    [((0.6, 0.6), 1), ((0.6, -0.6), 2), ((-0.6, 0.6), 3), ((-0.6, -0.6), 4), ((0.3, 0.4), 0)],
)
def test_wheel_regions(point: tuple[float, float], best: int) -> None:
    mean = np.asarray(wheel_means(jnp.array(point), 0.5))
    expected = np.array([1.2, 1, 1, 1, 1])
    expected[best] = 50 if best else 1.2
    np.testing.assert_allclose(mean, expected, rtol=1e-6)


def test_wheel_regret_in_closed_form() -> None:
    """Outside has 3/4 of the disc: uniform play pays 29.41 per step, the safe arm 36.6."""
    trace = simulate("uniform", "wheel", horizon=4000, runs=8, record_every=1000)
    per_step = trace.regret[:, -1] / 4000
    error = 4 * per_step.std() / 8**0.5
    assert per_step.mean() == pytest.approx(29.41, abs=max(error, 0.3))
    environment = build_environment("wheel")
    state = environment.init(jax.random.key(0))
    contexts = jax.vmap(lambda key: environment.observe(key, state).context)(
        jax.random.split(jax.random.key(1), 20_000)
    )
    radius = np.hypot(*np.asarray(contexts).T)
    assert radius.max() <= 1 + 1e-6
    assert (radius > 0.5).mean() == pytest.approx(0.75, abs=4 * (0.75 * 0.25 / 20_000) ** 0.5)
    means = np.asarray(jax.vmap(lambda x: wheel_means(x, 0.5))(contexts))
    assert (means.max(axis=1) - means[:, 0]).mean() == pytest.approx(36.6, rel=0.02)


def test_rotating_wheel_turns_the_quadrants() -> None:
    """A quarter of a turn passes the rich arm of a fixed point on; half a turn to the opposite."""
    environment = build_environment("rotating_wheel(period=400)")
    context = jnp.array([0.6, 0.5])

    def best_at(time: int) -> int:
        state = environment.init(jax.random.key(0))._replace(time=jnp.int32(time))
        return int(jnp.argmax(environment.rewards(jax.random.key(0), state, context).mean))

    # (x', y') = (cos x + sin y, -sin x + cos y): at a quarter (0.5, -0.6), at a half (-0.6, -0.5)
    assert [best_at(t) for t in (0, 100, 200, 300, 400)] == [1, 2, 4, 3, 1]
    still = build_environment("wheel")
    assert environment.spec == still.spec


def test_rotting_falls_after_exactly_7500_pulls_of_the_second_arm() -> None:
    environment = build_environment("rotting")

    def mean_after(pulls: list[int]) -> list[float]:
        state = jnp.array(pulls, jnp.int32)
        return environment.rewards(jax.random.key(0), state, jnp.zeros(0)).mean.tolist()

    assert mean_after([9999, 7499]) == pytest.approx([0.5, 1.0])
    assert mean_after([0, 7500]) == pytest.approx([0.5, 0.4])
    keys = jax.random.split(jax.random.key(1), 4000)
    start = environment.init(jax.random.key(0))
    sampled = jax.vmap(lambda key: environment.rewards(key, start, jnp.zeros(0)).sampled)(keys)
    assert np.asarray(sampled).var(axis=0) == pytest.approx(0.2, rel=0.1)
