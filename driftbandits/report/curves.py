"""Curves over time with their 95% bands, each labelled where it ends."""

import io
import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from driftbandits import check
from driftbandits.experiments.experiment import Experiment, Line
from driftbandits.experiments.metrics import MORE_IS_BETTER, Estimate, estimate
from driftbandits.experiments.results import Results
from driftbandits.report.bands import (
    BAR_NOTE,
    CUT_NOTE,
    covering,
    cut_below,
    draw_intervals,
    lower_edge,
)
from driftbandits.report.style import MEANINGS, Look, looks_of, number
from driftbandits.running.folder import write_file

FORMATS = [".png", ".svg", ".pdf"]
TOLD_APART = 12  # lines in a panel
DRAWN = 250  # points of a curve that a figure or a CSV file shows


def styled() -> AbstractContextManager[None]:
    """The same look, and the same bytes, wherever a figure is drawn."""
    return mpl.rc_context({"svg.hashsalt": "driftbandits", "font.size": 10})


def check_figure_path(path: Path) -> None:
    """Raises `InputError` if a figure cannot be written there, before any work is done."""
    if path.suffix.lower() not in FORMATS:
        check.fail("plot", f"a file name ending in one of {', '.join(FORMATS)}", str(path))
    if path.is_dir():
        check.fail("plot", "a file, not a folder", str(path))
    nearest = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not os.access(nearest, os.W_OK) or (nearest != path and not nearest.is_dir()):
        check.fail("plot", "a file that can be written", str(path))


def draw_curves(results: Results, path: str | Path) -> Path:
    """Draws the curves of an experiment with their 95% bands, and writes the figure to a file.

    Each environment has its own panel, with at most twelve policies. It needs the extra `report`.

    Args:
        results: What `compare`, `run_experiment` or `read_results` returned.
        path: The file to write. Its ending chooses the format: .png, .svg or .pdf. Missing folders
            are made.

    Returns:
        The path of the file.

    Raises:
        InputError: If the format is not one of these, or the file cannot be written.

    Example:
        ```python
        from driftbandits import compare, draw_curves

        results = compare(["ucb", "uniform"], horizon=200, runs=4)
        draw_curves(results, "curves.svg")
        ```
    """
    path = Path(path)
    check_figure_path(path)
    with styled():
        figure = curves_figure(results, looks_of(line.policy_name for line in results.lines))
        save(figure, path)
    return path


def save(figure: Figure, path: Path) -> None:
    ending = path.suffix.lower()
    undated = {".png": {"Software": None}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    buffer = io.BytesIO()
    figure.savefig(buffer, format=ending[1:], metadata=undated[ending], dpi=150)
    write_file(path, buffer.getvalue())


def thinned(times: np.ndarray) -> np.ndarray:
    """Indices of the times that are drawn, the last one among them."""
    step = -(-len(times) // DRAWN)
    return np.arange(len(times) - 1, -1, -step)[::-1]


def thin_curves(results: Results) -> tuple[np.ndarray, dict[str, Estimate]]:
    chosen = thinned(results.times)
    curves = {label: estimate(values[:, chosen]) for label, values in results.values.items()}
    return results.times[chosen], curves


def curves_figure(results: Results, looks: Mapping[str, Look]) -> Figure:
    """One panel for each environment, each with its best lines."""
    experiment = results.experiment
    panels = {name: best_lines(results, name) for name, _ in experiment.environments}
    columns = min(len(panels), 2)
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(8 if columns == 1 else 13, 4.5 * rows), layout="constrained")
    times, curves = thin_curves(results)
    notes: list[str] = []
    for place, (name, lines) in enumerate(panels.items(), start=1):
        axes = figure.add_subplot(rows, columns, place)
        styles = {line.label: looks[line.policy_name] for line in lines}
        names = {line.label: line.policy_name for line in lines}
        here = {label: curves[label] for label in styles}
        notes += draw_panel(axes, times, here, styles, experiment)
        axes.set_title(experiment.title if len(panels) == 1 else name, loc="left", weight="bold")
        label_ends(axes, {names[label]: curves[label] for label in styles}, list(styles.values()))
    footnote(figure, results, notes)
    return figure


def best_lines(results: Results, environment: str) -> list[Line]:
    """The best lines, as many as a reader can tell apart, in the order of the experiment."""
    sign = -1 if results.experiment.measure in MORE_IS_BETTER else 1
    lines = [line for line in results.lines if line.environment_name == environment]
    here = list({line.policy: line for line in reversed(lines)}.values())[
        ::-1
    ]  # tuned or not: once
    best = sorted(here, key=lambda line: sign * results.values[line.label][:, -1].mean())[
        :TOLD_APART
    ]
    return [line for line in here if line in best]


def draw_panel(
    axes: Axes,
    times: np.ndarray,
    curves: Mapping[str, Estimate],
    styles: Mapping[str, Look],
    experiment: Experiment,
) -> list[str]:
    """Draws the curves of one environment; returns notes for the reader."""
    edge = lower_edge(curves) if experiment.scale == "log" else 0.0
    shown = cut_below(curves, edge) if edge > 0 else dict(curves)
    for label, curve in shown.items():
        colour, dash = styles[label]
        axes.plot(times, curve.mean, linestyle=dash, color=colour, linewidth=1.8)
    draw_intervals(axes, times, shown, styles)
    dress(axes, experiment)
    scale_values(axes, experiment, curves, edge)
    cut = any((curves[label].low < edge).any() for label in curves) and edge > 0
    return [BAR_NOTE] * bool(covering(shown)) + [CUT_NOTE] * cut


def dress(axes: Axes, experiment: Experiment) -> None:
    axes.set_xlabel("pulls")
    axes.set_ylabel(MEANINGS[experiment.measure])
    axes.set_xlim(0, experiment.horizon)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)


def scale_values(
    axes: Axes, experiment: Experiment, curves: Mapping[str, Estimate], edge: float
) -> None:
    """Scales the vertical axis; `edge` is the lower edge of a logarithmic axis, or 0."""
    if edge > 0:
        axes.set_yscale("log")
        axes.set_ylim(bottom=edge)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif experiment.scale == "log":
        largest = max(float(curve.mean[-1]) for curve in curves.values())
        axes.set_yscale("symlog", linthresh=max(largest, 1.0) / 200)
    elif min(float(curve.mean.min()) for curve in curves.values()) >= 0:
        axes.set_ylim(bottom=0)
    if experiment.scale == "log" or axes.get_ylim()[1] >= 1000:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def label_ends(axes: Axes, curves: Mapping[str, Estimate], styles: Sequence[Look]) -> None:
    """Writes each name and final value next to the end of its curve, without overlaps."""
    axes.get_ylim()  # settles the limits, which a transformation does not
    inside = axes.transData + axes.transAxes.inverted()
    finals = [float(curve.mean[-1]) for curve in curves.values()]
    heights = [float(inside.transform((0, value))[1]) for value in finals]
    places = apart(heights, gap=0.058)
    for (name, _), value, height, place, (colour, dash) in zip(
        curves.items(), finals, heights, places, styles, strict=True
    ):
        axes.plot(
            [1.0, 1.03, 1.075],
            [height, place, place],
            transform=axes.transAxes,
            color=colour,
            linestyle=dash,
            linewidth=1.3,
            clip_on=False,
        )
        axes.text(
            1.085,
            place,
            f"{name}  {number(value)}",
            transform=axes.transAxes,
            color=colour,
            va="center",
            fontsize=9,
        )


def apart(heights: Sequence[float], gap: float) -> list[float]:
    """Moves heights in [0, 1] as little as needed for a gap between neighbours."""
    order = np.argsort(heights, kind="stable")
    places = np.clip(np.asarray(heights, float)[order], 0.0, 1.0)
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + gap)
    ceiling = 1.0
    for i in range(len(places) - 1, -1, -1):
        places[i] = min(places[i], ceiling)
        ceiling = places[i] - gap
    found = np.empty(len(places))
    found[order] = places
    return found.tolist()


def footnote(figure: Figure, results: Results, notes: Sequence[str]) -> None:
    runs = len(next(iter(results.values.values())))
    band = " with 95% band" if runs > 1 else ""
    text = f"mean of {runs} run{'s' * (runs > 1)}{band}; the final mean beside each name"
    more = "; ".join(dict.fromkeys(notes))
    lines = f"{text}\n{more}" if more else text
    figure.supxlabel(lines, fontsize=8, color="#666666", x=0.01, ha="left")
