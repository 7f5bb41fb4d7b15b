"""A field of policies over many problems: the ranking, and the heat map of regrets."""

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from driftbandits.ranking import scores, shares, standings
from driftbandits.results import Results

HOTTEST = 1.0  # blind play; what is worse has the same colour


def ranking_table(results: Results) -> pl.DataFrame:
    """Every policy's standing, tuned where there is something to tune, and as written."""
    kinds = {"tuned": True, "default": False} if results.experiment.tuning else {"default": False}
    tables = [
        pl.DataFrame(standings(scores(results, tuned)), orient="row").select(
            "policy", pl.exclude("policy").name.prefix(f"{kind}_")
        )
        for kind, tuned in kinds.items()
    ]
    first, *others = tables
    for other in others:
        first = first.join(other, on="policy", maintain_order="left")
    return first


def heat_map_figure(results: Results) -> Figure:
    """Mean regret as a share of uniform play's: policies down, problems across."""
    kinds = [True, False] if results.experiment.tuning else [False]
    order = ranking_table(results)["policy"].to_list()
    problems = [name for name, _ in results.experiment.environments]
    width, height = 1.2 + 0.62 * len(problems), 2.2 + 0.3 * len(order)
    figure = Figure(figsize=(2.0 + width * len(kinds), height), layout="constrained")
    panels = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for axes, tuned in zip(panels, kinds, strict=True):
        field = scores(results, tuned)
        rows = [field.policies.index(name) for name in order]
        draw_heat(axes, shares(field)[rows], order, problems)
        axes.set_title("tuned" if tuned else "default settings", loc="left", weight="bold")
    figure.supxlabel(
        "mean regret in % of uniform play's; best mean rank at the top; the best of each problem "
        "in bold",
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
