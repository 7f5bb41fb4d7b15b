"""The inputs of a policy's programs: one array for each call, and views of it to write to."""

from typing import Any

import numpy as np

from driftbandits.agents.packed_tickets import WORD
from driftbandits.agents.programs import HEAD, Programs
from driftbandits.core import BanditSpec


class CallBuffers:
    """Attributes:
    to_act: words for `Programs.act`.
    contexts, available: its rows.
    to_learn: words for `Programs.learn`.
    rewards, tickets: its rows.
    """

    def __init__(self, programs: Programs, spec: BanditSpec, key_words: np.ndarray) -> None:
        self._made_with = programs, spec, key_words
        rows, dim = programs.rows, spec.context_dim
        requests = 1 if programs.still else rows
        self.to_act = np.zeros(HEAD + requests * (dim + spec.num_arms), WORD)
        self.to_act[2:HEAD] = key_words
        table = self.to_act[HEAD:].reshape(requests, -1)
        self.contexts, self.available = table[:, :dim].view(np.float32), table[:, dim:]
        self.to_learn = np.zeros(1 + rows * (1 + programs.ticket.width), WORD)
        rewarded = self.to_learn[1:].reshape(rows, -1)
        self.rewards, self.tickets = rewarded[:, 0].view(np.float32), rewarded[:, 1:]

    def __deepcopy__(self, memo: dict[int, Any]) -> "CallBuffers":
        """A copy of the arrays would not have the views."""
        return CallBuffers(*self._made_with)
