"""Progress reports."""

from collections.abc import Sequence

from driftbandits.experiments.experiment import Experiment, Line
from driftbandits.experiments.results import Results
from driftbandits.running.compute import Failed
from driftbandits.running.planning import PieceJob


class Watcher:
    """Receives progress reports. This one ignores them; override the methods that you need.

    The methods may be called from any thread.
    """

    def begin(self, jobs: Sequence[PieceJob], kept: Sequence[PieceJob]) -> None:
        """Called first, with the jobs to do and those that are finished already."""

    def cores_used(self, cores: int) -> None:
        """Called when the number of jobs that are computed at the same time changes."""

    def advanced(self, job: PieceJob, steps: int, seconds: float | None = None) -> None:
        """Called when a job has done more steps, summed over its runs; `seconds` may be unknown."""

    def failed(self, job: PieceJob, why: Failed) -> None:
        """Called when a job has failed; the others continue."""

    def line_done(self, experiment: Experiment, line: Line, seconds: float) -> None:
        """Called when a policy has finished in an environment; `seconds` are of one core."""

    def experiment_done(self, results: Results) -> None:
        """Called when an experiment is complete and its claims are judged."""
