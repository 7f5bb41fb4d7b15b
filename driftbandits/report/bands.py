"""95% intervals around curves, drawn so that the curves stay readable.

A band that covers several other curves most of the time hides more than it shows. In its place a
bar near the end shows how far it reaches. On a logarithmic axis, intervals are cut at the lower
edge, which is set by the curves: an end at 0 or below is infinitely far down.
"""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes

from driftbandits.experiments.metrics import Estimate
from driftbandits.report.style import Look

SEVERAL = 2  # other curves
BELOW = 3.0  # the lowest curve: so many times less is the lower edge of a logarithmic axis
BAR_NOTE = (
    "a bar near the end shows how far a band reaches that would cover two or more other curves"
)
CUT_NOTE = "intervals are cut at the lower edge"


def covering(curves: Mapping[str, Estimate]) -> list[str]:
    """The curves whose band covers several others for more than half of the time."""
    means = np.array([curve.mean for curve in curves.values()])
    found = []
    for label, curve in curves.items():
        inside = (curve.low <= means) & (means <= curve.high)
        others = inside.sum(axis=0) - 1  # without itself
        if (others >= SEVERAL).mean() > 0.5:
            found.append(label)
    return found


def lower_edge(curves: Mapping[str, Estimate]) -> float:
    """The lower edge of a logarithmic axis; 0 if a mean is not above 0, which rules one out."""
    lowest = min(float(curve.mean.min()) for curve in curves.values())
    ends = [
        float(np.nanmin(curve.low)) for curve in curves.values() if not np.isnan(curve.low).all()
    ]
    return max(min([lowest / 1.2, *ends]), lowest / BELOW, 0.0)


def cut_below(curves: Mapping[str, Estimate], edge: float) -> dict[str, Estimate]:
    return {
        label: curve._replace(low=np.maximum(curve.low, edge)) for label, curve in curves.items()
    }


def draw_intervals(
    axes: Axes, times: np.ndarray, curves: Mapping[str, Estimate], styles: Mapping[str, Look]
) -> None:
    """Draws a band for each curve that has an interval, or a bar near the end."""
    wide = covering(curves)
    for label, (mean, low, high) in curves.items():
        colour = styles[label][0]
        if label not in wide:
            axes.fill_between(times, low, high, color=colour, alpha=0.18, linewidth=0)
            continue
        place = (0.98 - 0.025 * wide.index(label)) * times[-1]
        middle, lowest, highest = (np.interp(place, times, each) for each in (mean, low, high))
        reach = [[middle - lowest], [highest - middle]]
        axes.errorbar(place, middle, reach, color=colour, capsize=3, linewidth=1.2)
