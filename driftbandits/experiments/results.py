"""What an experiment gave: its lines, their measure over time, and the verdicts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandits.experiments.experiment import Experiment, Line
from driftbandits.experiments.metrics import MORE_IS_BETTER, Summary, summarise

if TYPE_CHECKING:
    import polars as pl


def as_it_is(table: "pl.DataFrame") -> "pl.DataFrame":
    """For `make_table`, where there is a table already: a lambda could not be pickled."""
    return table


@dataclass(frozen=True)
class Results:
    """What an experiment gave."""

    experiment: Experiment
    lines: list[Line]  # what is shown
    times: np.ndarray  # (points,)
    values: dict[str, np.ndarray]  # label of a line: (runs, points) of the experiment's measure
    provenance: dict[str, Any]
    claims: list[dict[str, Any]]  # with their verdicts
    make_table: Callable[[], "pl.DataFrame"] = field(repr=False)

    @classmethod
    def of_drawing(
        cls,
        experiment: Experiment,
        provenance: dict[str, Any],
        claims: list[dict[str, Any]],
        table: "pl.DataFrame",
    ) -> "Results":
        """Of an experiment that computes a drawing: a table and no lines."""
        return cls(
            experiment=experiment,
            lines=[],
            times=np.zeros(0),
            values={},
            provenance=provenance,
            claims=claims,
            make_table=partial(as_it_is, table),
        )

    @cached_property
    def table(self) -> "pl.DataFrame":
        """Every run of every line at every recorded time; of a drawing: its numbers.

        It is a Polars frame, made when it is first asked for.
        """
        return self.make_table()

    def final(self) -> dict[str, Summary]:
        """Each line's measure at the horizon, best mean first."""
        measure = self.experiment.measure
        sign = -1 if measure in MORE_IS_BETTER else 1
        finals = {label: summarise(values[:, -1], measure) for label, values in self.values.items()}
        return dict(sorted(finals.items(), key=lambda item: sign * item[1].mean))

    def named_claims(self) -> list[dict[str, Any]]:
        """The claims, each with the name of its experiment."""
        return [{"experiment": self.experiment.name, **claim} for claim in self.claims]
