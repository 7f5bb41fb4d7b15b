"""Figures that need no runs: which arm is best where, and a test of Theorem 1."""

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from driftbandits.experiments.results import Results
from driftbandits.experiments.theorem import DRAWS

ARM_COLOURS = ["#bbbbbb", "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"]


def best_arms_figure(results: Results) -> Figure:
    """Discs of contexts, coloured by the best arm: environments down, times across."""
    table = results.table
    environments = table["environment"].unique(maintain_order=True).to_list()
    times = table["time"].unique().sort().to_list()
    figure = Figure(figsize=(3.1 * len(times) + 1.2, 3.3 * len(environments)), layout="constrained")
    arms = table["best_arm"].unique().sort().to_list()
    for row, environment in enumerate(environments):
        for column, time in enumerate(times):
            axes = figure.add_subplot(len(environments), len(times), row * len(times) + column + 1)
            here = pl.col("environment") == environment, pl.col("time") == time
            cells = table.filter(*here)
            colours = [ARM_COLOURS[arm % len(ARM_COLOURS)] for arm in cells["best_arm"]]
            axes.scatter(cells["x"], cells["y"], c=colours, s=2.2, marker="s", rasterized=True)
            axes.set_title(f"{environment}, after {time:,} pulls", fontsize=9)
            axes.set_aspect("equal")
            axes.set_xticks([-1, 0, 1])
            axes.set_yticks([-1, 0, 1])
            axes.set_xlabel("x")
            axes.set_ylabel("y")
            axes.spines[:].set_visible(False)
    highest = table.group_by("best_arm").agg(pl.col("mean").max()).sort("best_arm")
    figure.legend(
        handles=[
            Patch(color=ARM_COLOURS[arm % len(ARM_COLOURS)], label=f"arm {arm + 1} pays {mean:.3g}")
            for arm, mean in zip(arms, highest["mean"], strict=True)
        ],
        loc="outside lower center",
        ncols=len(arms),
        frameon=False,
        fontsize=9,
        title="the best arm for a context (x, y), and its mean reward",
    )
    return figure


def ratio_bound_figure(results: Results) -> Figure:
    """The claimed bound, the ratios reached with zero mean energy, and the true bound."""
    table = results.table
    figure = Figure(figsize=(12, 4.6), layout="constrained")
    ratio, logit = figure.subplots(1, 2)
    n = table["num_arms"].to_numpy()
    drawn = 10 ** np.minimum(table["drawn_median_log10_ratio"].to_numpy(), 300)
    ratio.loglog(n, drawn, "s:", color="#CC79A7", label=f"median of {DRAWS:,} random draws")
    counter = table["counterexample_ratio"].to_numpy()
    ratio.loglog(n, counter, "o--", color="#D55E00", label="one winner, the others' logits at -10")
    claimed = table["claimed_ratio_bound"].to_numpy()
    ratio.loglog(n, claimed, color="#0072B2", linewidth=2, label="the bound that Theorem 1 claims")
    ratio.set_title("p_max / p_min with zero mean energy", loc="left", weight="bold")
    ratio.set_ylabel("p_max / p_min")
    bound = table["largest_logit_bound"].to_numpy()
    logit.semilogx(n, bound, color="#009E73", linewidth=2, label="W((n - 1) / e), which bounds it")
    found = table["drawn_largest_logit"].to_numpy()
    logit.semilogx(n, found, "s", color="#CC79A7", label=f"largest of {DRAWS:,} random draws")
    logit.set_title("what is true: their largest logit is bounded", loc="left", weight="bold")
    logit.set_ylabel("largest logit")
    for axes in (ratio, logit):
        axes.legend(frameon=False, loc="upper left", fontsize=9)
        axes.set_xlabel("number of arms n")
        axes.set_xticks([2, 5, 10, 20, 50, 100], ["2", "5", "10", "20", "50", "100"])
        axes.xaxis.set_minor_locator(mpl.ticker.NullLocator())
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#e5e5e5", linewidth=0.6)
    ratio.set_ylim(1, 1e11)
    return figure
