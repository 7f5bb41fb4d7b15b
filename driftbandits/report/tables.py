"""Final values and curves as tables."""

import polars as pl

from driftbandits.experiments.metrics import (
    MORE_IS_BETTER,
    best_share,
    recovery_time,
    window_regret,
)
from driftbandits.experiments.results import Results
from driftbandits.report.curves import thin_curves
from driftbandits.running.frames import frame_trace
from driftbandits.simulation.traces import Trace


def final_table(results: Results) -> pl.DataFrame:
    """Each line's measure at the horizon, best mean first within its environment.

    It also has the regret per pull in the last twentieth of the horizon, the share of pulls of a
    best arm and, if the environment changes abruptly, the mean number of pulls to recover.
    """
    more = results.experiment.measure in MORE_IS_BETTER
    rows = []
    parts, finals = parts_of(results), results.final()
    for line in results.lines:
        trace = frame_trace(parts[line.policy, line.environment])
        rows.append(
            {
                "environment": line.environment_name,
                "line": line.label,
                "policy": line.policy,
                **finals[line.label].as_json(),
                "late_regret": float(window_regret(trace)[:, -1].mean()),
                "best_share": float(best_share(trace)[:, -1].mean()),
                "recovery_time": mean_recovery(trace),
                "runs": len(results.values[line.label]),
            }
        )
    rank = (
        pl.col("mean").rank("min", descending=more).over("environment").cast(pl.Int64).alias("rank")
    )
    order = ["environment", "rank"]
    table = pl.DataFrame(rows, infer_schema_length=None).with_columns(rank)
    return table.sort(order, maintain_order=True).select("rank", pl.exclude("rank"))


def parts_of(results: Results) -> dict[tuple[str, str], pl.DataFrame]:
    """The runs that judge, by policy and environment as written."""
    judging = len(next(iter(results.values.values())))
    runs = results.table.filter(pl.col("run") >= results.experiment.runs - judging)
    groups = runs.partition_by("policy", "environment", as_dict=True)
    return {(str(policy), str(world)): part for (policy, world), part in groups.items()}


def mean_recovery(trace: Trace) -> float | None:
    """The mean over the runs in which something has changed; None if nothing has."""
    changed = trace.changes[:, -1] > 0
    return float(recovery_time(trace)[changed, -1].mean()) if changed.any() else None


def curve_table(results: Results) -> pl.DataFrame:
    """The drawn curves: mean and 95% interval of every line at the drawn times."""
    times, curves = thin_curves(results)
    return pl.concat(
        pl.DataFrame(
            {"time": times, "mean": curve.mean, "low": curve.low, "high": curve.high}
        ).select(pl.lit(label).alias("line"), pl.all())
        for label, curve in curves.items()
    ).fill_nan(None)
