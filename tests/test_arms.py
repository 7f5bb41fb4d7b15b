"""The draw of an arm from a law."""

import jax
import numpy as np
import pytest
from scipy.stats import chisquare

from driftbandits import keys
from driftbandits.parts.arms import draw

DRAWS = 60_000


@pytest.mark.parametrize("num_arms", [1, 2, 10, 16, 17, 50])
def test_arms_come_as_often_as_the_law_says(num_arms):
    law = np.random.default_rng(num_arms).dirichlet(np.ones(num_arms)).astype(np.float32)
    law[num_arms // 2 + 1 :: 3] = 0
    own = jax.random.split(keys.key(num_arms), DRAWS)
    arms = np.asarray(jax.jit(jax.vmap(draw, (0, None)))(own, law))
    counts = np.bincount(arms, minlength=num_arms)
    assert counts.size == num_arms
    assert (counts[law == 0] == 0).all()
    expected = DRAWS * law[law > 0].astype(float) / law.sum(dtype=float)
    assert num_arms == 1 or chisquare(counts[law > 0], expected, sum_check=False).pvalue > 1e-4


@pytest.mark.parametrize("law", [[np.nan, 0.5], [0.0, 0.0], [0.5, np.nan]])
def test_no_law_gives_no_arm(law):
    assert draw(keys.key(0), np.float32(law)) == -1
