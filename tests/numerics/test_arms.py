"""The draw of an arm."""

import jax
import numpy as np
import pytest
from scipy.stats import chisquare

from driftbandits.numerics import random_keys
from driftbandits.numerics.arms import draw

DRAWS = 60_000


@pytest.mark.parametrize("num_arms", [1, 2, 10, 16, 17, 50])
def test_arms_come_as_often_as_their_probabilities_say(num_arms):
    probabilities = np.random.default_rng(num_arms).dirichlet(np.ones(num_arms)).astype(np.float32)
    probabilities[num_arms // 2 + 1 :: 3] = 0
    own = jax.random.split(random_keys.key(num_arms), DRAWS)
    arms = np.asarray(jax.jit(jax.vmap(draw, (0, None)))(own, probabilities))
    counts = np.bincount(arms, minlength=num_arms)
    assert counts.size == num_arms
    assert (counts[probabilities == 0] == 0).all()
    expected = (
        DRAWS * probabilities[probabilities > 0].astype(float) / probabilities.sum(dtype=float)
    )
    assert (
        num_arms == 1
        or chisquare(counts[probabilities > 0], expected, sum_check=False).pvalue > 1e-4
    )


@pytest.mark.parametrize("probabilities", [[np.nan, 0.5], [0.0, 0.0], [0.5, np.nan]])
def test_invalid_probabilities_give_no_arm(probabilities):
    assert draw(random_keys.key(0), np.float32(probabilities)) == -1
