"""Tuned settings: the first third of the runs chooses them, the other runs judge them.

So the results of a tuned policy come from worlds that did not choose its settings, and the results
of all other policies come from the same worlds. In hindsight all runs choose and all judge: a bound
on what tuning can achieve, which flatters the tuned policies.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from driftbandits.experiments.experiment import CHOOSING, Experiment, Line, tuned_name
from driftbandits.experiments.metrics import MORE_IS_BETTER


class ShownLines(NamedTuple):
    """The lines of an experiment that are shown."""

    lines: list[Line]
    values: dict[str, np.ndarray]  # label of a line: (runs that judge, points) of the measure


def apply_tuning(experiment: Experiment, values: Mapping[str, np.ndarray]) -> ShownLines:
    """Each policy as written and with its best settings; all lines if nothing is tuned."""
    lines = experiment.lines()
    if not experiment.tuning:
        return ShownLines(lines, dict(values))
    choosing, judging = split_runs(experiment)
    shown, judged = [], {}
    for line in lines:
        if line.tunes:
            continue
        shown.append(line)
        judged[line.label] = values[line.label][judging]
        rivals = [rival for rival in lines if rival.tunes == line.label]
        if rivals:
            best = choose([line, *rivals], values, choosing, experiment.measure)
            tuned = as_tuned(experiment, best)
            shown.append(tuned)
            judged[tuned.label] = values[best.label][judging]
    return ShownLines(shown, judged)


def split_runs(experiment: Experiment) -> tuple[slice, slice]:
    """The runs that choose the settings, and those that judge them."""
    if experiment.hindsight:
        return slice(None), slice(None)
    first = experiment.runs // CHOOSING
    return slice(first), slice(first, None)


def how_tuned(experiment: Experiment) -> str:
    """A sentence or two for the reader; empty if nothing is tuned."""
    if not experiment.tuning:
        return ""
    if experiment.hindsight:
        return (
            "Tuned in hindsight: in each environment the settings that are best on the very runs "
            "that are shown. This flatters the tuned policies."
        )
    first = experiment.runs // CHOOSING
    return (
        f"Tuned by trial: in each environment the settings that are best on the first {first} runs;"
        f" the other {experiment.runs - first} are shown."
    )


def choose(
    candidates: list[Line], values: Mapping[str, np.ndarray], choosing: slice, measure: str
) -> Line:
    """The candidate that did best at the horizon in the runs that choose."""
    sign = -1 if measure in MORE_IS_BETTER else 1
    return min(candidates, key=lambda line: sign * values[line.label][choosing, -1].mean())


def as_tuned(experiment: Experiment, line: Line) -> Line:
    name = tuned_name(line.policy_name)
    label = experiment.label(name, line.environment_name)
    return replace(line, label=label, policy_name=name, tunes="")
