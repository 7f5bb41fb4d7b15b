"""Selection probabilities by quadrature, against the truth in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from driftbandits import BanditSpec, Observation, build_policy
from driftbandits.numerics.best_arm import best_score_probabilities
from driftbandits.numerics.beta import best_bernoulli_probabilities

TAILS = np.logspace(-12, -3, 200)
LEVELS = np.concatenate([TAILS, np.linspace(1e-3, 1 - 1e-3, 4001), 1 - TAILS])

bernoulli_probabilities = jax.jit(best_bernoulli_probabilities)


def truth(distributions: list, copies: list[int] | None = None) -> np.ndarray:
    """P(best) by summing over the quantiles of all distributions; with copies, of one of each."""
    counts = np.array(copies or [1] * len(distributions))[:, None]
    grid = np.unique(np.concatenate([one.ppf(LEVELS) for one in distributions]))
    below = np.stack([one.cdf(grid) for one in distributions])
    itself = np.eye(len(distributions), dtype=int)[..., None]
    others = [np.prod(below ** (counts - one), axis=0) for one in itself]
    rises = np.diff(below, axis=1)
    return np.array([r @ (o[1:] + o[:-1]) / 2 for r, o in zip(rises, others, strict=True)])


def computed(a: list[float], b: list[float]) -> tuple[np.ndarray, np.ndarray]:
    everything = jnp.ones(len(a), bool)
    probabilities = bernoulli_probabilities(
        jnp.array(a, jnp.float32), jnp.array(b, jnp.float32), everything
    )
    return np.asarray(probabilities), truth([stats.beta(*pair) for pair in zip(a, b, strict=True)])


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([1] * 10, [1] * 10),  # flat
        ([1, 500_000], [1, 500_000]),  # flat beside narrow
        ([500_000, 500_300], [500_000, 499_800]),  # two narrow ones
        ([1, 1_000_000], [1_000_000, 1]),  # at the ends
        ([1, 1], [1_000_000, 1_000_000]),
        ([1_000_000, 999_998, 500_000], [1, 3, 2]),
        ([3, 400, 20_000, 1], [5, 500, 21_000, 1]),
        ([1.0001, 1.02, 1.3, 2.7], [1.6, 1.004, 1.0, 9.9]),  # as a discount leaves them
        ([1.0, 10_000.5], [9999.7, 1.3]),
    ],
)
def test_bernoulli(a: list[float], b: list[float]) -> None:
    probabilities, expected = computed(a, b)
    np.testing.assert_allclose(probabilities, expected, atol=1e-4)


def test_random_bernoulli_arms() -> None:
    generator = np.random.default_rng(0)
    for _ in range(25):
        num_arms = int(generator.choice([2, 5, 10]))
        pulls = 10 ** generator.uniform(0, 6, num_arms)
        means = generator.uniform(0, 1, num_arms)
        if generator.random() < 0.5:
            means = 0.5 + generator.normal(size=num_arms) * 0.5 / np.sqrt(pulls.max())
        wins = np.round(pulls * np.clip(means, 0, 1))
        probabilities, expected = computed(
            list(1 + wins), list(1 + np.round(pulls) - np.round(wins))
        )
        np.testing.assert_allclose(probabilities, expected, atol=1e-4)


def test_random_bernoulli_arms_with_broken_counts() -> None:
    """As a discount leaves them, from hardly anything to ten thousand pulls."""
    generator = np.random.default_rng(1)
    for _ in range(15):
        num_arms = int(generator.choice([2, 5, 10]))
        wins, losses = 10 ** generator.uniform(-4, 4, (2, num_arms))
        probabilities, expected = computed(list(1 + wins), list(1 + losses))
        np.testing.assert_allclose(probabilities, expected, atol=1e-4)


def test_narrow_bernoulli_arms_are_drawn_as_often_as_their_probabilities_say() -> None:
    """Near 1 the sampled means of two good arms look the same in float32; their odds do not."""
    policy = build_policy("thompson", BanditSpec(2))
    counts = jnp.full(2, 1_000_000), jnp.zeros(2, jnp.int32)
    state = policy.init(jax.random.key(0))._replace(wins=counts[0], losses=counts[1])
    keys = jax.random.split(jax.random.key(1), 20_000)
    decide = jax.jit(
        jax.vmap(lambda k: policy.act(k, state, Observation(jnp.zeros(0), jnp.ones(2, bool)))[0])
    )
    decisions = decide(keys)
    np.testing.assert_allclose(decisions.probabilities[0], [0.5, 0.5], atol=1e-4)
    assert float(decisions.arm.mean()) == pytest.approx(0.5, abs=4 * 0.5 / len(keys) ** 0.5)


def test_bernoulli_arms_that_are_not_available_do_not_count() -> None:
    a, b = jnp.array([5.0, 50.0, 8.0]), jnp.array([5.0, 2.0, 9.0])
    probabilities = bernoulli_probabilities(a, b, jnp.array([True, False, True]))
    expected = truth([stats.beta(5, 5), stats.beta(8, 9)])
    np.testing.assert_allclose(probabilities, [expected[0], 0, expected[1]], atol=1e-4)


@pytest.mark.parametrize("freedom", [None, [6.0, 12.0, 5000.0], [3.0, 3.0, 3.0]])
@pytest.mark.parametrize(
    ("centres", "scales"),
    [
        ([0.0, 0.0, 0.0], [1.0, 1.0, 1.0]),
        ([50.0, 49.99, 1.2], [0.01, 0.02, 7.0]),
        ([0.3, 0.0, -1.0], [1e-3, 1.0, 10.0]),
        ([1.0, 1.0001, 0.9], [1e-4, 1e-4, 0.1]),
        ([-40.0, 50.0, 0.0], [1e-7, 1e-7, 1.0]),
    ],
)
def test_scores(centres: list[float], scales: list[float], freedom: list[float] | None) -> None:
    shape = None if freedom is None else jnp.array(freedom)
    # The probabilities are of the scores as float32 holds them.
    centres32, scales32 = np.float32(centres), np.float32(scales)
    probabilities = best_score_probabilities(
        jnp.array(centres32), jnp.array(scales32), jnp.ones(3, bool), shape
    )
    distributions = [
        stats.norm(c, s) if freedom is None else stats.t(freedom[i], c, s)
        for i, (c, s) in enumerate(
            zip(centres32.astype(float), scales32.astype(float), strict=True)
        )
    ]
    np.testing.assert_allclose(probabilities, truth(distributions), atol=1e-4)


def test_scores_without_any_spread() -> None:
    nothing, everything = jnp.zeros(3), jnp.ones(3, bool)
    one_best = best_score_probabilities(jnp.array([1.0, 3.0, 2.0]), nothing, everything)
    np.testing.assert_allclose(one_best, [0, 1, 0], atol=1e-6)
    tied = best_score_probabilities(nothing, nothing, everything, jnp.full(3, 6.0))
    np.testing.assert_allclose(tied, [1 / 3] * 3, atol=1e-6)
