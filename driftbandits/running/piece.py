"""A piece: a block of runs that can be computed on its own, and its program."""

import hashlib
import json
import re
import threading
from typing import NamedTuple

from driftbandits.experiments.building import line_environment, line_policy
from driftbandits.simulation.engine import Program, program_for
from driftbandits.simulation.program_names import block_name

_one_at_a_time = threading.Lock()


class Piece(NamedTuple):
    """A block of runs of one policy in one environment: everything that determines its numbers."""

    policy: str  # with every setting written out
    environment: str
    horizon: int
    record_every: int
    seed: int
    first_run: int
    code: str  # of the program that makes the numbers

    @property
    def name(self) -> str:
        """A name that is different whenever the numbers might be."""
        digest = hashlib.sha256(json.dumps(self).encode()).hexdigest()[:16]
        policy = re.sub(r"\W+", "-", self.policy.split("(")[0])
        return f"{policy}-{self.first_run:05d}-{digest}"


def program_of(piece: Piece) -> Program:
    """The program of a piece, ready to compile; the pieces of one line share it."""
    environment = line_environment(piece.environment)
    policy = line_policy(piece.policy, environment, piece.horizon)
    name = block_name(piece.policy, piece.environment, piece.horizon, piece.record_every)
    with _one_at_a_time:  # two threads that both missed the cache would have a program each
        return program_for(policy, environment, piece.horizon, piece.record_every, name=name)
