"""Plans an experiment: its lines, divided into pieces that can be computed separately."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from driftbandits.experiments.building import written_out
from driftbandits.experiments.experiment import Experiment, Line
from driftbandits.running.piece import Piece, program_of
from driftbandits.running.provenance import code_fingerprint
from driftbandits.simulation.surroundings import code_digest

ORACLE = "oracle"


class PlannedLine(NamedTuple):
    """A line of an experiment, and its pieces."""

    experiment: Experiment
    line: Line
    width: int  # runs per piece
    pieces: list[Piece]

    @property
    def key(self) -> tuple[str, str]:
        """A unique name among the lines of several experiments."""
        return self.experiment.name, self.line.label


class PieceJob(NamedTuple):
    """A piece to compute."""

    piece: Piece
    width: int  # its runs

    @property
    def steps(self) -> int:
        return self.piece.horizon * self.width


def plan(experiment: Experiment, in_memory: bool = False) -> list[PlannedLine]:
    """What has to be simulated: every line, and the oracle if the measure needs it.

    Pieces in memory are never compared with those of other code. So their code is identified by a
    digest of all files, which takes less time than a fingerprint of the files that matter.
    """
    lines = [] if experiment.drawing else experiment.lines()
    if experiment.measure == "policy_regret":
        by_environment = {line.environment: line for line in lines}
        lines = [*lines, *map(oracle_beside, by_environment.values())]
    fingerprint = digest_of_all if in_memory else code_fingerprint
    return [plan_line(experiment, line, fingerprint) for line in lines]


def digest_of_all(policy: str, environment: str) -> str:
    return code_digest()[:16]


def oracle_beside(line: Line) -> Line:
    """The oracle in the environment of a line."""
    return Line(
        label=f"{ORACLE} on {line.environment}",
        policy_name=ORACLE,
        policy=ORACLE,
        environment_name=line.environment_name,
        environment=line.environment,
    )


def plan_line(
    experiment: Experiment, line: Line, fingerprint: Callable[[str, str], str]
) -> PlannedLine:
    policy = written_out("policy", line.policy)
    environment = written_out("environment", line.environment)
    first = Piece(
        policy=policy,
        environment=environment,
        horizon=experiment.horizon,
        record_every=-(-experiment.horizon // experiment.points),
        seed=experiment.seed,
        first_run=0,
        code=fingerprint(policy, environment),
    )
    width = program_of(first).width
    pieces = [first._replace(first_run=run) for run in range(0, experiment.runs, width)]
    return PlannedLine(experiment, line, width, pieces)


def jobs_of(planned: Iterable[PlannedLine]) -> list[PieceJob]:
    """Each piece once, even if several lines share it."""
    jobs = (PieceJob(piece, line.width) for line in planned for piece in line.pieces)
    return list(dict.fromkeys(jobs))
