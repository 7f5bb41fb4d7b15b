"""What is still missing of every line and experiment, and what has failed."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from driftbandits.experiments.experiment import Experiment
from driftbandits.experiments.results import Results
from driftbandits.running.compute import Failed
from driftbandits.running.piece import Piece
from driftbandits.running.planning import PieceJob, PlannedLine
from driftbandits.running.watcher import Watcher
from driftbandits.simulation.threads import WorkError

Finish = Callable[[Experiment, list[PlannedLine]], Results]


class Progress:
    """Counts what is missing, and finishes every experiment as soon as nothing is."""

    def __init__(
        self,
        experiments: Sequence[Experiment],
        planned: Sequence[PlannedLine],
        missing: Sequence[PieceJob],
        finish: Finish,
        watcher: Watcher,
    ) -> None:
        self.results: dict[str, Results] = {}
        self._finish = finish
        self._watcher = watcher
        self._failures = Failures(len(missing))
        self._lines: dict[str, list[PlannedLine]] = {each.name: [] for each in experiments}
        self._by_first_piece: dict[Piece, list[PlannedLine]] = defaultdict(list)
        for line in planned:
            self._lines[line.experiment.name].append(line)
            self._by_first_piece[line.pieces[0]].append(line)
        self._missing: Counter[str | tuple[str, str]] = Counter()  # of experiments and of lines
        self._seconds: dict[tuple[str, str], float] = defaultdict(float)
        for job in missing:
            for line in self.lines_with(job.piece):
                self._missing[line.key] += 1
                self._missing[line.experiment.name] += 1
        for experiment in experiments:
            self._finish_if_complete(experiment)

    def lines_with(self, piece: Piece) -> list[PlannedLine]:
        """The lines that share a piece, possibly with different numbers of runs."""
        equal = self._by_first_piece[piece._replace(first_run=0)]
        return [line for line in equal if piece.first_run < line.experiment.runs]

    def piece_done(self, piece: Piece, seconds: float) -> None:
        for line in self.lines_with(piece):
            self._seconds[line.key] += seconds
            self._missing[line.key] -= 1
            self._missing[line.experiment.name] -= 1
            if not self._missing[line.key]:
                self._watcher.line_done(line.experiment, line.line, self._seconds[line.key])
            self._finish_if_complete(line.experiment)

    def piece_failed(self, job: PieceJob, why: Failed) -> None:
        self._watcher.failed(job, why)
        self._failures.add(job.piece, why)

    def raise_failures(self) -> None:
        """Raises an error that names all failed pieces, if there are any."""
        self._failures.raise_if_any()

    def _finish_if_complete(self, experiment: Experiment) -> None:
        if not self._missing[experiment.name]:
            results = self._finish(experiment, self._lines[experiment.name])
            self._watcher.experiment_done(results)
            self.results[experiment.name] = results


class Failures:
    """Pieces that failed, grouped by cause."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._first_runs: dict[tuple[str, str, Failed], list[int]] = defaultdict(list)

    def add(self, piece: Piece, why: Failed) -> None:
        self._first_runs[piece.policy, piece.environment, why].append(piece.first_run)

    def raise_if_any(self) -> None:
        """Raises an error that names all failed pieces."""
        if not self._first_runs:
            return
        count = sum(map(len, self._first_runs.values()))
        lines = [
            f"  {policy} in {environment}, runs from {listed(runs)}: {why.node}: {why.reason}"
            for (policy, environment, why), runs in self._first_runs.items()
        ]
        raise WorkError(
            "\n".join(
                [
                    f"{count} of {self._total} pieces could not be computed:",
                    *lines,
                    "what is finished is kept; the same command tries again only these",
                ]
            )
        )


def listed(numbers: list[int], most: int = 20) -> str:
    """Numbers in order; of very many, only the first ones."""
    shown = ", ".join(str(number) for number in sorted(numbers)[:most])
    return shown if len(numbers) <= most else f"{shown} and {len(numbers) - most} more"
