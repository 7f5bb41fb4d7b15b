"""A field of policies over many problems: the ranking, and the heat map of regrets."""

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from driftbandits.experiments.ranking import kinds_of, scores, shares, standings
from driftbandits.experiments.results import Results
from driftbandits.report.style import MEANINGS

HOTTEST = 1.0  # uniform play; what is worse has the same colour


def ranking_table(results: Results) -> pl.DataFrame:
    """The standing of every policy, tuned (if anything is tuned) and as written."""
    tables = [
        pl.DataFrame(standings(scores(results, tuned)), orient="row").select(
            "policy", pl.exclude("policy").name.prefix("tuned_" if tuned else "default_")
        )
        for tuned in kinds_of(results)
    ]
    first, *others = tables
    for other in others:
        first = first.join(other, on="policy", maintain_order="left")
    return first


def heat_map_figure(results: Results) -> Figure:
    """Mean regret as a share of uniform play's: policies down, problems across."""
    kinds = kinds_of(results)
    problems = [name for name, _ in results.experiment.environments]
    width, height = 3.0 + 0.62 * len(problems), 1.6 + 0.27 * len(results.experiment.policies)
    figure = Figure(figsize=(width, height * len(kinds)), layout="constrained")
    panels = figure.subplots(len(kinds), 1, squeeze=False)[:, 0]
    for axes, tuned in zip(panels, kinds, strict=True):
        field = scores(results, tuned)
        order = [standing.policy for standing in standings(field)]
        rows = [field.policies.index(name) for name in order]
        draw_heat(axes, shares(field)[rows], order, problems)
        axes.set_title("tuned" if tuned else "default settings", loc="left", weight="bold")
    one = "the worst policy's" if scores(results, False).uniform is None else "uniform play's"
    figure.supxlabel(
        f"mean {MEANINGS[results.experiment.measure]} in % of {one}; best mean rank at the top; "
        "the best of each problem in bold",
        fontsize=8, color="#666666", x=0.01, ha="left",
    )  # fmt: skip
    return figure


def draw_heat(axes: Axes, heat: np.ndarray, policies: list[str], problems: list[str]) -> None:
    colours = mpl.colormaps["viridis_r"]
    clipped = np.clip(heat / HOTTEST, 0, 1) ** 0.5  # small regrets differ by factors
    axes.imshow(clipped, cmap=colours, vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(problems)), problems, rotation=40, ha="right", fontsize=8)
    axes.set_yticks(range(len(policies)), policies, fontsize=8)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    best = heat.argmin(axis=0)
    for (row, column), value in np.ndenumerate(heat):
        axes.text(
            column,
            row,
            f"{100 * value:.0f}" if value >= 0.0995 else f"{100 * value:.2g}",
            ha="center",
            va="center",
            fontsize=7,
            color="white" if clipped[row, column] > 0.55 else "black",
            weight="bold" if best[column] == row else "normal",
        )
