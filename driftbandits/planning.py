"""What an experiment needs: its lines, cut into pieces that can be computed apart."""

from typing import NamedTuple

from driftbandits.choice import parse, with_defaults
from driftbandits.environments import ENVIRONMENTS, build_environment
from driftbandits.experiment import Experiment, Line
from driftbandits.policies import POLICIES, build_policy
from driftbandits.provenance import code_fingerprint
from driftbandits.results import Piece
from driftbandits.simulation import program_for

ORACLE = "oracle"


class Task(NamedTuple):
    """A line of an experiment, and the pieces that it is made of."""

    experiment: Experiment
    line: Line
    width: int  # runs per piece
    pieces: list[Piece]


class Job(NamedTuple):
    """A piece to compute."""

    piece: Piece
    width: int

    @property
    def steps(self) -> int:
        return self.piece.horizon * self.width


def plan(experiment: Experiment) -> list[Task]:
    """What has to be simulated: every line, and the oracle where the measure needs it."""
    lines = [] if experiment.drawing else experiment.lines()
    if experiment.measure == "policy_regret":
        worlds = {line.environment: line for line in lines}
        lines = [
            *lines,
            *(
                Line(f"{ORACLE} on {text}", ORACLE, ORACLE, line.environment_name, text)
                for text, line in worlds.items()
            ),
        ]
    return [plan_line(experiment, line) for line in lines]


def plan_line(experiment: Experiment, line: Line) -> Task:
    chosen = with_defaults(parse("policy", line.policy), POLICIES)
    world = with_defaults(parse("environment", line.environment), ENVIRONMENTS)
    environment = build_environment(str(world))
    spec = environment.spec._replace(horizon=experiment.horizon)
    policy = build_policy(str(chosen), spec)
    every = -(-experiment.horizon // experiment.points)
    program = program_for(policy, environment, experiment.horizon, every)
    first = Piece(
        str(chosen),
        str(world),
        experiment.horizon,
        program.every,
        experiment.seed,
        0,
        code_fingerprint(str(chosen), str(world)),
    )
    pieces = [first._replace(first_run=run) for run in range(0, experiment.runs, program.width)]
    return Task(experiment, line, program.width, pieces)
