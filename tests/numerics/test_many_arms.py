"""Selection probabilities of up to a thousand arms, against the truth in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from driftbandits.numerics.best_arm import best_score_probabilities
from driftbandits.numerics.beta import best_bernoulli_probabilities
from tests.numerics.test_best_arm import truth

NUM_ARMS = [2, 3, 10, 100, 400, 1000]
bernoulli_probabilities = jax.jit(best_bernoulli_probabilities)
score_probabilities = jax.jit(best_score_probabilities)


def assert_true(probabilities: jax.Array, distributions: list, copies: list[int]) -> None:
    """Of arms that are copies of these, in this order."""
    expected = np.repeat(truth(distributions, copies), copies)
    np.testing.assert_allclose(probabilities, expected, atol=1e-4)
    assert float(probabilities.sum()) == pytest.approx(1, abs=1e-5)


def assert_bernoulli(pairs: list[tuple[float, float]], copies: list[int]) -> None:
    rounded = np.float32(pairs)  # the probabilities are of the counts as float32 holds them
    a, b = np.repeat(rounded, copies, axis=0).T
    probabilities = bernoulli_probabilities(a, b, np.ones(a.size, bool))
    assert_true(probabilities, [stats.beta(*pair) for pair in rounded.astype(float)], copies)


def shared(num_arms: int, kinds: int) -> list[int]:
    """How many arms of each kind; the first kinds are rare."""
    few = [1] * (kinds - 1)
    return [*few, num_arms - len(few)]


HARD = {
    "priors": [(1, 1)],
    "as good as the best of the others": [(1000, 1), (1, 1)],
    "narrow among flat": [(500_000, 500_000), (1, 1)],
    "narrow near the top": [(1_000_000, 1001), (1, 1)],
    "far ahead": [(600, 400), (501, 501)],
    "a bit ahead": [(60, 940), (30, 970)],
    "a million pulls": [(500_400, 499_600), (500_000, 500_000)],
    "ten million pulls": [(5_000_900, 4_999_100), (5_000_000, 5_000_000)],
    "ten million wins": [(10_000_000, 1), (9_999_998, 3)],
    "ten million losses": [(3, 10_000_000), (1, 10_000_000)],
    "broken counts": [(1.0003, 1.02), (9.7, 2.4)],
}


@pytest.mark.parametrize("num_arms", NUM_ARMS)
@pytest.mark.parametrize("name", HARD)
def test_hard_bernoulli_arms(name: str, num_arms: int) -> None:
    assert_bernoulli(HARD[name], shared(num_arms, len(HARD[name])))


@pytest.mark.parametrize("seed", range(12))
def test_random_bernoulli_arms_of_all_widths(seed: int) -> None:
    generator = np.random.default_rng(seed)
    kinds = int(generator.integers(2, 7))
    pulls = 10 ** generator.uniform(0, generator.choice([2, 4, 7]), kinds)
    scatter = generator.uniform(-4, 2, kinds) * 0.5 / np.sqrt(pulls)
    means = [generator.uniform(0, 1, kinds), np.clip(0.5 + scatter, 0, 1)][seed % 2]
    wins, losses = pulls * means, pulls * (1 - means)
    if seed % 4 < 2:
        wins, losses = np.round(wins), np.round(losses)
    copies = generator.choice([1, 2, 10, 100], kinds).tolist()
    assert_bernoulli(list(zip(1 + wins, 1 + losses, strict=True)), copies)


@pytest.mark.parametrize("freedom", [None, 3.0, 6.0, 50.0])
@pytest.mark.parametrize("num_arms", [3, 100, 1000])
@pytest.mark.parametrize(
    ("centres", "scales"),
    [
        ([0.0, 0.0], [1e-6, 1.0]),
        ([3.0, 0.0], [1e-6, 1.0]),
        ([50.0, 49.9, 0.0], [1e-3, 0.1, 1000.0]),
        ([4.0, 3.0, 0.0], [1.0, 3.0, 1.0]),
    ],
)
def test_scores_of_all_widths(
    centres: list[float], scales: list[float], freedom: float | None, num_arms: int
) -> None:
    copies = shared(num_arms, len(centres))
    centres32, scales32 = np.float32(centres), np.float32(scales)
    degrees = None if freedom is None else jnp.full(num_arms, freedom)
    probabilities = score_probabilities(
        np.repeat(centres32, copies), np.repeat(scales32, copies), np.ones(num_arms, bool), degrees
    )
    places = zip(centres32.astype(float), scales32.astype(float), strict=True)
    distributions = [
        stats.norm(*place) if freedom is None else stats.t(freedom, *place) for place in places
    ]
    assert_true(probabilities, distributions, copies)


@pytest.mark.parametrize("left", [1, 2, 10])
def test_retired_arms_have_no_probability_and_no_influence(left: int) -> None:
    generator = np.random.default_rng(left)
    a, b = np.float32(1 + 10 ** generator.uniform(0, 7, (2, 400)))
    available = np.zeros(400, bool)
    available[generator.choice(400, left, replace=False)] = True
    a[available], b[available] = 1 + generator.integers(0, 9, (2, left))  # most others are better
    probabilities = np.asarray(bernoulli_probabilities(a, b, available))
    alone = bernoulli_probabilities(a[available], b[available], np.ones(left, bool))
    assert (probabilities[~available] == 0).all()
    np.testing.assert_allclose(probabilities[available], alone, atol=1e-5)
    scores = np.asarray(score_probabilities(a, np.sqrt(b), available))
    assert (scores[~available] == 0).all()
    assert scores.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("probabilities", [best_bernoulli_probabilities, best_score_probabilities])
def test_work_is_proportional_to_the_number_of_arms(probabilities) -> None:
    def operations(num_arms: int) -> float:
        numbers = jax.ShapeDtypeStruct((num_arms,), jnp.float32)
        mask = jax.ShapeDtypeStruct((num_arms,), bool)
        lowered = jax.jit(probabilities).lower(numbers, numbers, mask)
        return lowered.cost_analysis()["flops"]

    assert operations(1000) < 10.5 * operations(100)
