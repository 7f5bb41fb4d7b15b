"""Adversarial rewards: a sequence fixed in advance, whatever the policy does.

    reward_t,k = the number in row t and column k of a file

The file has one row per step and one column of numbers per arm, with names in its first line. After
the last row it starts again from the first. The numbers are also the means: the regret compares
with the best arm of each step, not with the best arm over all steps. The range of the rewards is
that of the numbers.

Without a file there are two arms that pay 1 and 0 in turns, in stretches of 1, 2, 4, ..., 4096
steps. Each stretch is longer than all before it together, so the arm that has paid best so far is
the wrong one in a third of all steps.

Examples: an opponent, or a recorded sequence about which nothing is assumed.

Paper: Auer, Cesa-Bianchi, Freund & Schapire (2002), "The nonstochastic multiarmed bandit problem".

Use it when you want the worst case for policies that never forget, or have a sequence of your own.
Not when your file has contexts: use `table`.
"""

import numpy as np

from driftbandits.core import Environment
from driftbandits.environments.table import replay
from driftbandits.environments.table_file import Table
from driftbandits.extras import needed_for

DOUBLINGS = 13


def adversarial(*, file: str | None = None) -> Environment:
    """A given sequence of rewards, without context; by default two arms in doubling stretches.

    Args:
        file: CSV or Parquet file with one row per step and one column per arm; by default a
            built-in sequence.
    """
    if file is None:
        return replay(doubling_stretches())
    with needed_for("the environment adversarial"):
        from driftbandits.environments.table_reader import read_table  # takes Polars

    return replay(read_table(file, context=[]))


def doubling_stretches() -> Table:
    """Arm 0 pays in the first, third, ... stretch, arm 1 in the others."""
    winner = np.concatenate([np.full(2**n, n % 2) for n in range(DOUBLINGS)])
    rewards = np.eye(2, dtype=np.float32)[winner]
    return Table(rewards, np.zeros((len(rewards), 0), np.float32))
