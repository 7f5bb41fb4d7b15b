"""docs/evidence/speed/growth.png: the curves that `python -m benchmarks growth memory` measured."""

from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from benchmarks.growth import SIZES, points
from benchmarks.measuring import Part

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7"]  # Okabe & Ito


def draw(growth: Part, memory: Part, target: Path) -> None:
    with plt.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure, axes = plt.subplots(1, 4, figsize=(14, 3.6), layout="constrained")
        for ax, of, unit in zip(axes[:2], ("horizon", "runs"), ("steps", "runs"), strict=True):
            draw_doubling(ax, growth, of, unit)
        draw_fewa(axes[2], growth)
        draw_memory(axes[3], memory)
        figure.savefig(target, dpi=150)
        plt.close(figure)


def draw_doubling(ax: Axes, part: Part, of: str, unit: str) -> None:
    """Time over that of the smallest size, beside the straight line."""
    factors = np.array([1, 8])
    ax.plot(factors, factors, color="0.75", linewidth=5, zorder=0)
    where = {"transform": ax.transAxes, "ha": "right"}
    ax.text(0.98, 0.04, "grey: twice as many, twice as long", color="0.5", **where)
    for i, (colour, policy) in enumerate(zip(COLOURS, SIZES, strict=False)):
        sizes, times = points(part.series, f"{policy}, {of} ", "s")
        x, y = np.array(sizes) / sizes[0], np.array(times) / times[0]
        ax.plot(x, y, "o-", color=colour, markersize=4)
        name = f"{policy} (from {sizes[0]:,})"
        ax.text(0.04, 0.96 - 0.08 * i, name, color=colour, transform=ax.transAxes, va="top")
    ax.set(xscale="log", yscale="log", xlim=(0.9, 8.8), xlabel=f"{unit}, times the smallest")
    ax.set(title=f"Time against {unit}", ylabel="time, times the smallest")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(mpl.ticker.FixedLocator([1, 2, 4, 8]))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_locator(mpl.ticker.NullLocator())


def draw_fewa(ax: Axes, part: Part) -> None:
    for i, (colour, policy) in enumerate(zip(COLOURS, ("fewa", "eff_fewa"), strict=False)):
        at, costs = points(part.series, f"{policy}, step ", "us per step and run")
        ax.plot(at, costs, ".", color=colour, markersize=4)
        line = np.polyfit(np.log(at), costs, 1)
        if policy == "eff_fewa":
            ax.plot(at, np.polyval(line, np.log(at)), color=colour, linewidth=1)
        name = policy + (" and its fit to ln t" if policy == "eff_fewa" else ", exact")
        ax.text(0.04, 0.96 - 0.08 * i, name, color=colour, transform=ax.transAxes, va="top")
    ax.set(xscale="log", yscale="log", title="FEWA against t", xlabel="step t")
    ax.set(ylabel="us per step and run")


def draw_memory(ax: Axes, part: Part) -> None:
    horizons, megabytes = points(part.series, "recurrent, ", "MB")
    ax.plot(horizons, megabytes, "o-", color=COLOURS[2], markersize=4)
    ax.text(horizons[0], megabytes[0] + 25, "10 runs of recurrent", color=COLOURS[2])
    ax.axhline(1000, color="0.6", linewidth=1)
    ax.text(horizons[0], 985, "the goal: 1 GB", color="0.4", va="top")
    ax.set(xscale="log", ylim=(0, 1100), title="Peak memory", xlabel="steps", ylabel="MB")
