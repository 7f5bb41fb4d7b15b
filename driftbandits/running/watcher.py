"""Progress reports."""

from collections.abc import Sequence

from driftbandits.experiments.experiment import Experiment, Line
from driftbandits.experiments.results import Results
from driftbandits.running.compute import Failed
from driftbandits.running.planning import PieceJob


class Watcher:
    """Receives progress reports; this one ignores them. Calls may come from any thread."""

    def begin(self, jobs: Sequence[PieceJob], kept: Sequence[PieceJob]) -> None:
        """The jobs to do, and those whose pieces are there already."""

    def cores_used(self, cores: int) -> None:
        """How many jobs are computed at a time, from now on."""

    def advanced(self, job: PieceJob, steps: int, seconds: float | None = None) -> None:
        """A job took more steps, over all of its runs; in so many seconds, where that is known."""

    def failed(self, job: PieceJob, why: Failed) -> None:
        """A job cannot be done; the others continue."""

    def line_done(self, experiment: Experiment, line: Line, seconds: float) -> None:
        """A policy has finished in an environment; the seconds are of one core."""

    def experiment_done(self, results: Results) -> None:
        """An experiment is complete, its claims are judged."""
