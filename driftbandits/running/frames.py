"""Runs as Polars frames, a row for each run and recorded time.

docs/reference/results.md has the columns.
"""

import numpy as np
import polars as pl

from driftbandits.running.assembly import MeasuredLine
from driftbandits.running.folder import StoreError
from driftbandits.simulation.traces import Trace

CUMULATED = ["regret", "realised_regret", "expected_reward", "reward", "best_pulls", "changes"]


def trace_frame(trace: Trace, first_run: int = 0) -> pl.DataFrame:
    runs, points = trace.regret.shape
    columns = {
        "run": np.repeat(np.arange(first_run, first_run + runs), points),
        "time": np.tile(trace.times, runs),
        **{name: getattr(trace, name).ravel() for name in CUMULATED},
    }
    pulls = pl.Series("pulls", trace.pulls.reshape(runs * points, -1))
    return pl.DataFrame(columns).with_columns(pulls)


def line_frame(measured: MeasuredLine, measure: str) -> pl.DataFrame:
    """A line's part of the table of results: its names before its runs, the measure after them."""
    line, trace, values = measured
    names = {
        "line": line.label,
        "policy": line.policy,
        "environment": line.environment,
        "swept": None if line.value is None else str(line.value),
    }
    named = [pl.lit(text, dtype=pl.String).alias(name) for name, text in names.items()]
    table = trace_frame(trace).select(*named, pl.all())
    arms = pl.col("pulls").arr.to_list()  # environments may differ in their number
    return table.with_columns(arms, pl.Series(measure, values.ravel()))


def frame_trace(table: pl.DataFrame) -> Trace:
    """One policy's runs in one environment, from a piece or from a table of results."""
    if missing := [name for name in CUMULATED if name not in table.columns]:
        raise StoreError(
            f"the results have no {', '.join(missing)}: an older version wrote them; repeat the "
            "command that made them"
        )
    if isinstance(table.schema["pulls"], pl.List):
        arms = pl.col("pulls").list.to_array(len(table["pulls"][0]))
        table = table.with_columns(arms)
    times = table["time"].unique().sort().to_numpy()
    points = len(times)
    pulls = table["pulls"].to_numpy()
    return Trace(
        times,
        **{name: table[name].to_numpy().reshape(-1, points) for name in CUMULATED},
        pulls=pulls.reshape(-1, points, pulls.shape[-1]),
    )
