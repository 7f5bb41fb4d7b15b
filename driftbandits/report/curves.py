"""A comparison as a figure: one line per policy, with its 95% band."""

import os
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from driftbandits import check
from driftbandits.comparison import Comparison

# Okabe & Ito's colours, which colour-blind readers can tell apart.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999"]
FORMATS = [".png", ".svg", ".pdf"]
LINES = ["-", "--", ":", "-."]
MEANINGS = {
    "regret": "cumulative regret",
    "mean_regret": "regret per pull so far",
    "realised_regret": "cumulative realised regret",
    "policy_regret": "policy regret",
    "own_count_regret": "cumulative own-count regret",
}


def check_figure_path(path: Path) -> None:
    """Refuses a path that a figure cannot be written to, before any work is done."""
    if path.suffix.lower() not in FORMATS:
        check.fail("plot", f"a file name ending in one of {', '.join(FORMATS)}", str(path))
    if path.is_dir():
        check.fail("plot", "a file, not a folder", str(path))
    nearest = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not os.access(nearest, os.W_OK) or (nearest != path and not nearest.is_dir()):
        check.fail("plot", "a file that can be written", str(path))


def draw_curves(comparison: Comparison, path: str | Path) -> Path:
    """Writes the figure; the ending of the name chooses the format."""
    path = Path(path)
    check_figure_path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "driftbandits", "font.size": 10}):
        figure = Figure(figsize=(8, 5.4), dpi=150, layout="constrained")
        axes = figure.add_subplot()
        for style, (policy, curve) in enumerate(comparison.curves().items()):
            colour = COLOURS[style % len(COLOURS)]
            line = LINES[style // len(COLOURS) % len(LINES)]
            axes.plot(comparison.times, curve.mean, line, color=colour, label=policy)
            axes.fill_between(
                comparison.times, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0
            )
        _dress(figure, axes, comparison)
        figure.savefig(path)
    return path


def _dress(figure: Figure, axes: Axes, comparison: Comparison) -> None:
    axes.set_title(comparison.environment, loc="left", fontweight="bold")
    axes.set_xlabel("pulls")
    axes.set_ylabel(MEANINGS[comparison.measure])
    axes.set_xlim(0, comparison.horizon)
    if all((values >= 0).all() for values in comparison.values.values()):
        axes.set_ylim(bottom=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)
    handles, labels = axes.get_legend_handles_labels()
    order = list(comparison.final())[::-1]
    ranked = sorted(zip(handles, labels, strict=True), key=lambda pair: order.index(pair[1]))
    band = " with its 95% band" if comparison.runs > 1 else ""
    figure.legend(
        *zip(*ranked, strict=True),
        frameon=False,
        loc="outside lower center",
        ncols=2,
        title=f"mean of {comparison.runs} runs{band}, highest first",
    )
