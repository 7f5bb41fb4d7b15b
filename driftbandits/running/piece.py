"""A piece: a block of runs that can be computed apart, as text and numbers; and its program."""

import hashlib
import json
import re
import threading
from typing import NamedTuple

from driftbandits.experiments.building import line_environment, line_policy
from driftbandits.simulation.engine import Program, program_for, wide_enough
from driftbandits.simulation.program_names import block_name

_one_at_a_time = threading.Lock()


class Piece(NamedTuple):
    """A block of runs of one policy in one environment: all that shapes its numbers."""

    policy: str  # with every setting written out
    environment: str
    horizon: int
    record_every: int
    seed: int
    first_run: int
    code: str  # of the program that makes the numbers

    @property
    def name(self) -> str:
        """Another one whenever its numbers may be others."""
        digest = hashlib.sha256(json.dumps(self).encode()).hexdigest()[:16]
        policy = re.sub(r"\W+", "-", self.policy.split("(")[0])
        return f"{policy}-{self.first_run:05d}-{digest}"


def program_of(piece: Piece, runs: int | None = None) -> Program:
    """What a piece names, ready to compile; the pieces of one line share it.

    With `runs`, its blocks are no wider than so many need.
    """
    environment = line_environment(piece.environment)
    policy = line_policy(piece.policy, environment, piece.horizon)
    most = None if runs is None else wide_enough(runs)
    name = block_name(
        piece.policy, piece.environment, piece.horizon, piece.record_every, None, most
    )
    with _one_at_a_time:  # two threads that both missed the cache would have a program each
        return program_for(policy, environment, piece.horizon, piece.record_every, None, most, name)
