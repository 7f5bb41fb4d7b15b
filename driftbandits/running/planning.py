"""What an experiment needs: its lines, cut into pieces that can be computed apart."""

from collections.abc import Iterable
from typing import NamedTuple

from driftbandits.experiments.building import written_out
from driftbandits.experiments.experiment import Experiment, Line
from driftbandits.running.piece import Piece, program_of
from driftbandits.running.provenance import code_fingerprint
from driftbandits.simulation.surroundings import code_digest

ORACLE = "oracle"


class PlannedLine(NamedTuple):
    """A line of an experiment, and the pieces that it is made of."""

    experiment: Experiment
    line: Line
    width: int  # runs per piece
    pieces: list[Piece]
    runs: int | None = None  # None is as wide as can be

    @property
    def key(self) -> tuple[str, str]:
        """Its name among the lines of several experiments."""
        return self.experiment.name, self.line.label


class PieceJob(NamedTuple):
    """A piece to compute."""

    piece: Piece
    width: int  # its runs
    runs: int | None = None  # of its line, if the piece is no wider than they need

    @property
    def steps(self) -> int:
        return self.piece.horizon * self.width


def plan(experiment: Experiment, narrow: bool = False) -> list[PlannedLine]:
    """What has to be simulated: every line, and the oracle where the measure needs it.

    Narrow pieces have no more runs than are needed. Pieces on disk are as wide as can be, so that
    an experiment with more runs can use them.
    """
    lines = [] if experiment.drawing else experiment.lines()
    if experiment.measure == "policy_regret":
        by_environment = {line.environment: line for line in lines}
        lines = [*lines, *map(oracle_beside, by_environment.values())]
    return [plan_line(experiment, line, experiment.runs if narrow else None) for line in lines]


def oracle_beside(line: Line) -> Line:
    """The oracle in the environment of a line."""
    return Line(
        label=f"{ORACLE} on {line.environment}",
        policy_name=ORACLE,
        policy=ORACLE,
        environment_name=line.environment_name,
        environment=line.environment,
    )


def plan_line(experiment: Experiment, line: Line, runs: int | None) -> PlannedLine:
    policy = written_out("policy", line.policy)
    environment = written_out("environment", line.environment)
    first = Piece(
        policy=policy,
        environment=environment,
        horizon=experiment.horizon,
        record_every=-(-experiment.horizon // experiment.points),
        seed=experiment.seed,
        first_run=0,
        # What is not kept is compared with nothing: a digest of all code takes less time.
        code=code_fingerprint(policy, environment) if runs is None else code_digest()[:16],
    )
    width = program_of(first, runs).width
    pieces = [first._replace(first_run=run) for run in range(0, experiment.runs, width)]
    return PlannedLine(experiment, line, width, pieces, runs)


def jobs_of(planned: Iterable[PlannedLine]) -> list[PieceJob]:
    """Each piece once, though several lines may share it."""
    jobs = (PieceJob(piece, line.width, line.runs) for line in planned for piece in line.pieces)
    return list(dict.fromkeys(jobs))
