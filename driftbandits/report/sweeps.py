"""A sweep as a figure: the final value against the swept setting, and the curves behind it."""

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from driftbandits.experiments.experiment import Line
from driftbandits.experiments.metrics import estimate
from driftbandits.experiments.results import Results
from driftbandits.report.curves import draw_panel, footnote, label_ends, thin_curves
from driftbandits.report.style import MEANINGS, Look

RUN_COLOUR, MEAN_COLOUR = "#888888", "#0072B2"


def sweep_figure(results: Results) -> Figure:
    """A row of two panels for each policy and environment."""
    groups: dict[str, list[Line]] = {}
    for line in results.lines:
        groups.setdefault(line.group, []).append(line)
    figure = Figure(figsize=(12, 4.5 * len(groups)), layout="constrained")
    times, curves = thin_curves(results)
    notes: list[str] = []
    for row, (group, lines) in enumerate(groups.items()):
        final, over_time = (figure.add_subplot(len(groups), 2, 2 * row + k) for k in (1, 2))
        draw_finals(final, results, lines)
        title = results.experiment.title if len(groups) == 1 else group
        final.set_title(title, loc="left", weight="bold")
        shades = mpl.colormaps["viridis"](np.linspace(0, 0.88, len(lines)))
        styles: dict[str, Look] = {
            line.label: (mpl.colors.to_hex(shade), "-")
            for line, shade in zip(lines, shades, strict=True)
        }
        here = {label: curves[label] for label in styles}
        notes += draw_panel(over_time, times, here, styles, results.experiment)
        named = {f"{line.value}": curves[line.label] for line in lines}
        label_ends(over_time, named, list(styles.values()))
    footnote(figure, results, notes)
    return figure


def draw_finals(axes: mpl.axes.Axes, results: Results, lines: list[Line]) -> None:
    """Every run as a dot, and the mean with its interval."""
    sweep = results.experiment.sweep
    assert sweep is not None
    for place, line in enumerate(lines):
        values = results.values[line.label][:, -1]
        beside = place + np.linspace(-0.16, 0.16, len(values))
        axes.plot(beside, values, ".", color=RUN_COLOUR, markersize=4, alpha=0.7)
        mean, low, high = (float(x) for x in estimate(values))
        spread = [[0.0 if np.isnan(low) else mean - low], [0.0 if np.isnan(high) else high - mean]]
        axes.errorbar(place, mean, spread, fmt="o", color=MEAN_COLOUR, capsize=5, linewidth=2)
    axes.set_xticks(range(len(lines)), [str(line.value) for line in lines])
    axes.set_xlabel(f"{sweep.setting} (setting of the {sweep.of})")
    axes.set_ylabel(f"{MEANINGS[results.experiment.measure]} at the horizon; dots are runs")
    if min(float(results.values[line.label][:, -1].min()) for line in lines) >= 0:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)
