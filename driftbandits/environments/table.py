"""Table: rewards from your own file, with one row per step and one column per arm.

    context_t, reward_t,k = the numbers of row t, or of row pi(t), pi a random permutation per run

A row may hold a context, too. The whole table is held in memory. After the last row it starts again
from the first, in the same order. The mean of a reward is not known, so the number in the table
stands for it: the regret is then the realised regret, which compares with the arm that paid most in
each single step. No policy can bring it near zero where rewards are mostly noise.
`spec.reward_range` spans all numbers of the arms, and `spec.noise` is the largest standard
deviation of an arm.

As written, all runs see the same rewards, and intervals reflect only the policy's randomness.
Shuffled, each run has its own order, and any drift is gone.

Two tables come with the package river (`pip install 'driftbandits[data]'`), which is BSD-3-Clause.
"river:sp500" has the daily returns in per cent of ten stocks over 1,257 days, from Kaggle's "S&P
500 stock data". "river:image_segments" has 2,310 rows with eighteen features as context,
standardised over the table, and seven classes as arms, from the UCI repository's "Image
Segmentation".

Use it for any log in which the reward of every arm is known: prices, sensors, or a classification
data set, where the right class pays 1. Not when only the reward of the pulled arm is known.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from driftbandits import check
from driftbandits.core import Environment, Key, Observation, Rewards
from driftbandits.environments.table_file import Table, spec_of
from driftbandits.extras import needed_for

ORDERS = ("as written", "shuffled")


class TableState(NamedTuple):
    time: Array  # () int32, modulo the rows
    order: Array  # (rows,) int32; empty as written


def table(
    *,
    file: str = "river:sp500",
    arms: str | list[str] | None = None,
    context: str | list[str] | None = None,
    order: str = "as written",
) -> Environment:
    """Rewards, and perhaps contexts, from a CSV or Parquet file with a column per arm.

    Args:
        file: File whose name ends in .csv, .csv.gz or .parquet, relative to the working directory
            and with names in its first line; or river:sp500, river:image_segments.
        arms: Columns that are arms, by their names or by a common prefix; by default every column
            of numbers that is not context.
        context: Columns that are the context, likewise; by default none (for river's tables, the
            features).
        order: "as written", or "shuffled" for each run.
    """
    with needed_for("the environment table"):
        from driftbandits.environments.table_reader import read_table  # takes Polars

    check.known("order", order, ORDERS)
    return replay(read_table(file, arms, context), shuffled=order == "shuffled")


def replay(rows: Table, *, shuffled: bool = False) -> Environment:
    """An environment that replays the rows, and starts again after the last."""
    spec, length = spec_of(rows), len(rows.rewards)

    def init(key: Key) -> TableState:
        order = jax.random.permutation(key, length) if shuffled else jnp.zeros(0, jnp.int32)
        return TableState(jnp.int32(0), order.astype(jnp.int32))

    def row(state: TableState) -> Array:
        return state.order[state.time] if shuffled else state.time

    def observe(key: Key, state: TableState) -> Observation:
        context = jnp.asarray(rows.contexts)[row(state)]
        return Observation(context, jnp.ones(spec.num_arms, bool))

    def rewards(key: Key, state: TableState, context: Array) -> Rewards:
        given = jnp.asarray(rows.rewards)[row(state)]
        return Rewards(given, given)

    def advance(state: TableState, arm: Array) -> TableState:
        return state._replace(time=(state.time + 1) % length)

    return Environment(spec, init, observe, rewards, advance)
