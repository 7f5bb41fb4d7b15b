"""The results of an experiment: its curves, their measure over time, and the verdicts."""

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
    """A `make_table` for a table that exists already; a lambda could not be pickled."""
    return table


@dataclass(frozen=True)
class Results:
    """The results of an experiment: every curve of every run, and the verdicts on its claims.

    [`compare`][driftbandits.compare], [`run_experiment`][driftbandits.run_experiment] and
    [`read_results`][driftbandits.read_results] return one.

    Attributes:
        experiment: The experiment as it was run.
        lines: The curves that are shown, in order.
        times: The recorded times, as numbers of pulls, of shape `(points,)`.
        values: For the label of each curve, the measure of every run: an array of shape
            `(runs, points)`.
        provenance: Versions, revision, machine and time of the computation.
        claims: The claims with their verdicts, as in `claims.json`.
        make_table: Makes `table` when it is first used.

    Example:
        ```python
        from driftbandits import Results, compare

        results = compare(["ucb", "uniform"], horizon=200, runs=4)
        assert isinstance(results, Results)
        for policy, final in results.final().items():
            print(f"{policy}: {final.mean:.1f} ({final.low:.1f} to {final.high:.1f})")
        print(results.values["ucb"].shape)
        ```
    """

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
        """Returns the results of a drawing, which have a table and no curves."""
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
        """A Polars data frame with one row per curve, run and recorded time.

        It is made when it is first used and needs the extra `report`. The table of a drawing has
        the numbers that are drawn.
        """
        return self.make_table()

    def final(self) -> dict[str, Summary]:
        """Returns a `Summary` of each curve at the horizon, best mean first."""
        measure = self.experiment.measure
        sign = -1 if measure in MORE_IS_BETTER else 1
        finals = {label: summarise(values[:, -1], measure) for label, values in self.values.items()}
        return dict(sorted(finals.items(), key=lambda item: sign * item[1].mean))

    def named_claims(self) -> list[dict[str, Any]]:
        """Returns the claims, each with the name of its experiment."""
        return [{"experiment": self.experiment.name, **claim} for claim in self.claims]
