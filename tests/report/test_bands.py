"""Intervals in figures: readable with few runs, and never off the plot."""

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from driftbandits.experiments.experiment import Experiment
from driftbandits.experiments.metrics import Estimate
from driftbandits.experiments.results import Results
from driftbandits.report.bands import BAR_NOTE, CUT_NOTE, covering, lower_edge
from driftbandits.report.curves import curves_figure
from driftbandits.report.style import looks_of

NAMES = ["a", "b", "c", "d"]
TIMES = np.arange(10, 101, 10)


def flat(mean: float, low: float, high: float) -> Estimate:
    return Estimate(*(np.full(10, x) for x in (mean, low, high)))


def made_up(runs: int, spread: float, scale: str = "linear") -> Results:
    """Four curves at 1, 2, 3 and 4, whose runs are spread about them."""
    experiment = Experiment(
        "made_up", "Made up",
        environments=(("bernoulli", "bernoulli"),),
        policies=tuple((name, name) for name in NAMES),
        horizon=100, runs=runs, scale=scale,
    )  # fmt: skip
    noise = spread * (np.arange(runs) - (runs - 1) / 2)[:, None] / max(runs - 1, 1) * 2
    values = {name: k + noise + np.zeros(10) for k, name in enumerate(NAMES, start=1)}
    return Results(experiment, experiment.lines(), TIMES, values, {}, [], dict)


def drawn(results: Results) -> tuple[Figure, Axes]:
    figure = curves_figure(results, looks_of(NAMES))
    figure.canvas.draw()
    return figure, figure.axes[0]


def bars(axes: Axes) -> list[ErrorbarContainer]:
    return [found for found in axes.containers if isinstance(found, ErrorbarContainer)]


def test_a_band_that_covers_several_curves_is_told_from_one_that_does_not() -> None:
    curves = {"a": flat(1, 0.5, 2.5), "b": flat(2, 1.5, 2.5), "c": flat(3, 0, 5)}
    assert covering(curves) == ["c"], "two others; a covers one"
    halfway = curves["c"]._replace(low=np.repeat([0.0, 2.5], 5))
    assert covering({**curves, "c": halfway}) == [], "not for most of the time"


@pytest.mark.parametrize(
    ("runs", "spread", "bands"),
    [(4, 2.0, 0), (16, 4.0, 2), (100, 4.0, 4), (1, 2.0, 4), (4, 0.1, 4)],
)
def test_what_is_not_a_band_is_a_bar(runs: int, spread: float, bands: int) -> None:
    figure, axes = drawn(made_up(runs, spread))
    filled = [x for x in axes.collections if isinstance(x, mpl.collections.PolyCollection)]
    assert len(filled) == bands
    assert len(bars(axes)) == 4 - bands
    assert (BAR_NOTE in figure.get_supxlabel()) == (bands < 4)


def test_bars_are_not_over_each_other_and_have_the_length_of_the_interval() -> None:
    results = made_up(4, 2.0)
    _, axes = drawn(results)
    segments = [bar.lines[2][0].get_segments()[0] for bar in bars(axes)]
    places = [segment[0, 0] for segment in segments]
    assert len(set(places)) == 4
    lengths = [float(np.ptp(segment[:, 1])) for segment in segments]
    error = results.values["a"][:, -1].std(ddof=1) / 2
    assert lengths == pytest.approx([2 * 3.18245 * error] * 4, rel=1e-4)


@pytest.mark.parametrize("runs", [1, 4, 16, 100])
def test_a_log_axis_keeps_curves_and_intervals_on_the_plot(runs: int) -> None:
    results = made_up(runs, 1.5, "log")
    figure, axes = drawn(results)
    bottom, top = axes.get_ylim()
    assert axes.get_yscale() == "log"
    assert 1 / 3 - 1e-9 <= bottom < 1, "set by the lowest curve, not by an end at 0 or below"
    ends = [path.vertices[:, 1] for found in axes.collections for path in found.get_paths()]
    if runs > 1:
        assert bottom - 1e-9 <= min(map(min, ends)) <= max(map(max, ends)) <= top
    assert (CUT_NOTE in figure.get_supxlabel()) == (runs == 4)


def test_a_mean_of_nothing_has_no_log_axis() -> None:
    assert lower_edge({"a": flat(0, 0, 0), "b": flat(1, 0.5, 2)}) == 0
    results = made_up(16, 0.1, "log")
    values = {name: x - 1 for name, x in results.values.items()}
    assert drawn(replace(results, values=values))[1].get_yscale() == "symlog"
