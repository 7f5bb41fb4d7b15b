"""Settings chosen by trial: the first third of the runs chooses, the others judge.

So the figures of a tuned policy come from worlds that its settings were not chosen in, and those of
all other policies from the same worlds.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from driftbandits.experiment import CHOOSING, Experiment, Line, tuned_name
from driftbandits.metrics import MORE_IS_BETTER


class Settled(NamedTuple):
    """What is shown of an experiment."""

    lines: list[Line]
    values: dict[str, np.ndarray]  # label of a line: (runs that judge, points) of the measure


def settle(experiment: Experiment, values: Mapping[str, np.ndarray]) -> Settled:
    """Without tuning everything; else each policy as written, and with its best settings."""
    lines = experiment.lines()
    if not experiment.tuning:
        return Settled(lines, dict(values))
    choosing = experiment.runs // CHOOSING
    shown, judged = [], {}
    for line in lines:
        if line.tunes:
            continue
        shown.append(line)
        judged[line.label] = values[line.label][choosing:]
        rivals = [rival for rival in lines if rival.tunes == line.label]
        if rivals:
            best = choose([line, *rivals], values, choosing, experiment.measure)
            tuned = as_tuned(experiment, best)
            shown.append(tuned)
            judged[tuned.label] = values[best.label][choosing:]
    return Settled(shown, judged)


def choose(
    candidates: list[Line], values: Mapping[str, np.ndarray], choosing: int, measure: str
) -> Line:
    """The candidate that did best at the horizon in the first runs."""
    sign = -1 if measure in MORE_IS_BETTER else 1
    return min(candidates, key=lambda line: sign * values[line.label][:choosing, -1].mean())


def as_tuned(experiment: Experiment, line: Line) -> Line:
    name = tuned_name(line.policy_name)
    label = experiment.label(name, line.environment_name)
    return replace(line, label=label, policy_name=name, tunes="")
