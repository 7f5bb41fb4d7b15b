"""What the picture of new arms counts."""

import numpy as np

from driftbandits import build_environment
from tools.publish.new_arms import Pulls, ids_over_time, mean_cost, pull_numbers

ARMS = [0, 0, 1, 0, 1, 0, 1, 1]  # pulled
IDS = [[0, 0], [0, 0], [0, 0], [1, 0], [1, 0], [1, 0], [1, 1], [1, 1]]
NUMBERS = [0, 0, 0, 1, 0, 2, 1, 2]  # of new arms alone


def test_pulls_are_counted_from_the_arrival_of_an_arm():
    pulls = np.cumsum(np.eye(2)[ARMS], axis=0)[None]
    np.testing.assert_array_equal(pull_numbers(pulls, np.array(IDS)), [NUMBERS])


def test_costs_are_those_of_the_chosen_pulls():
    pulls = Pulls(np.arange(8.0)[None], np.array([NUMBERS]))
    assert mean_cost(pulls, 1, 1) == (3 + 6) / 2
    assert mean_cost(pulls, 1, 2) == (3 + 5 + 6 + 7) / 4
    assert mean_cost(pulls, 0, 8) == 3.5


def test_places_have_the_articles_of_the_environment():
    found = ids_over_time(build_environment("articles(num_arms=2, life=2)"), 6)
    np.testing.assert_array_equal(found, np.add.outer(range(6), range(2)) // 3)
