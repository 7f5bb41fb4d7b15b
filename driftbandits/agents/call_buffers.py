"""The inputs of a policy's programs: one array for each call, and views of it to write to."""

from typing import Any

import numpy as np

from driftbandits.agents.packed_tickets import WORD
from driftbandits.agents.programs import HEAD, Loops, Programs


class CallBuffers:
    """Attributes:
    loops: the programs.
    to_act: words for `Loops.act`.
    contexts, available: its rows.
    to_learn: tables for `Loops.learn`.
    """

    def __init__(self, programs: Programs, loops: Loops, key_words: np.ndarray) -> None:
        self._made_with = programs, loops, key_words
        self.loops, spec = loops, programs.spec
        requests, dim = 1 if programs.still else loops.rows, spec.context_dim
        self.to_act = np.zeros(HEAD + requests * (dim + spec.num_arms), WORD)
        self.to_act[2:HEAD] = key_words
        table = self.to_act[HEAD:].reshape(requests, -1)
        self.contexts, self.available = table[:, :dim].view(np.float32), table[:, dim:]
        rows, columns = loops.rewarded
        self.to_learn = tuple(
            np.zeros((1 + rows, each.stop - each.start), WORD) for each in columns
        )
        self.set_views()

    def set_views(self) -> None:
        """Finds what to write of rewards in the tables for `learn`."""
        first, *others = self.to_learn
        self.rewarded = first[0]  # its first word is how many there are
        self._rewards = first[1:, 0].view(np.float32)
        self._tickets, start = [], 0
        for table in (first[1:, 1:], *(other[1:] for other in others)):
            self._tickets.append((table, slice(start, start + table.shape[1])))
            start += table.shape[1]

    def set_reward(self, reward: float, ticket: np.ndarray) -> None:
        """One reward for `learn`."""
        self.rewarded[0] = 1
        self._rewards[0] = reward
        for table, words in self._tickets:
            table[0] = ticket[words]

    def set_rewards(self, rewards: np.ndarray, tickets: np.ndarray) -> None:
        """Rewards for `learn`, each with its ticket."""
        self.rewarded[0] = count = len(rewards)
        self._rewards[:count] = rewards
        for table, words in self._tickets:
            table[:count] = tickets[:, words]

    def __deepcopy__(self, memo: dict[int, Any]) -> "CallBuffers":
        """A copy of the arrays would not have the views."""
        return CallBuffers(*self._made_with)
