"""Final values and curves as tables."""

import numpy as np
import polars as pl

from driftbandits.metrics import estimate
from driftbandits.report.curves import thin_curves
from driftbandits.results import Results


def final_table(results: Results) -> pl.DataFrame:
    """Each line's measure at the horizon, lowest mean first within its environment."""
    rows = []
    for line in results.experiment.lines():
        values = results.values[line.label][:, -1]
        mean, low, high = (float(x) for x in estimate(values))
        rows.append(
            {
                "environment": line.environment_name,
                "line": line.label,
                "policy": line.policy,
                "mean": mean,
                "low": None if np.isnan(low) else low,
                "high": None if np.isnan(high) else high,
                "median": float(np.median(values)),
                "percentile_95": float(np.quantile(values, 0.95)),
                "worst": float(values.max()),
                "runs": len(values),
            }
        )
    rank = pl.col("mean").rank("min").over("environment").cast(pl.Int64).alias("rank")
    order = ["environment", "rank"]
    table = pl.DataFrame(rows, infer_schema_length=None).with_columns(rank)
    return table.sort(order, maintain_order=True).select("rank", pl.exclude("rank"))


def curve_table(results: Results) -> pl.DataFrame:
    """The drawn curves: mean and 95% interval of every line at the drawn times."""
    times, curves = thin_curves(results)
    return pl.concat(
        pl.DataFrame(
            {"time": times, "mean": curve.mean, "low": curve.low, "high": curve.high}
        ).select(pl.lit(label).alias("line"), pl.all())
        for label, curve in curves.items()
    ).fill_nan(None)
